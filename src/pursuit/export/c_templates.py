"""The C99 text of an exported model; `filled` puts names and numbers in.

A word ``@NAME@`` is replaced; lines between ``@if WORD@`` and ``@end@`` stay where it is true.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["filled"]


def filled(template: str, **values: Any) -> str:
    r"""A template with its words replaced and its conditions decided.

    Examples
    --------
    >>> from pursuit.export.c_templates import filled
    >>> filled("a @N@;\n@if MORE@\nb;\n@end@\n", N=3, MORE=False)
    'a 3;\n'
    """
    kept: list[str] = []
    open_lines = [True]
    for line in template.splitlines(keepends=True):
        if line.startswith("@if "):
            open_lines.append(open_lines[-1] and bool(values[line[4:-2]]))
        elif line == "@end@\n":
            open_lines.pop()
        elif open_lines[-1]:
            kept.append(line)
    return re.sub(r"@(\w+)@", lambda match: str(values[match[1]]), "".join(kept))


# Arrays stay in flash on AVR, where a program memory of its own is read by macros.
COMMON = """\
#include <math.h>
#include <stdint.h>

#ifndef PURSUIT_FLASH
#if defined(__AVR__)
#include <avr/pgmspace.h>
#define PURSUIT_FLASH PROGMEM
#define PURSUIT_F32(a, i) pgm_read_float((a) + (i))
#define PURSUIT_I8(a, i) ((int8_t)pgm_read_byte((a) + (i)))
#define PURSUIT_I16(a, i) ((int16_t)pgm_read_word((a) + (i)))
#else
#define PURSUIT_FLASH
#define PURSUIT_F32(a, i) ((a)[i])
#define PURSUIT_I8(a, i) ((a)[i])
#define PURSUIT_I16(a, i) ((a)[i])
#endif
#endif
#ifndef PURSUIT_EXPF
#define PURSUIT_EXPF expf /* or a table of your own */
#endif
"""

ROOT = """\
static inline float @NAME@_root(float s) { /* Newton's method from a power of two */
    float root = 1.0f, rest = s;
    int i;
    if (!(s > 0.0f)) {
        return 0.0f;
    }
    for (; rest > 4.0f; rest *= 0.25f) {
        root *= 2.0f;
    }
    for (; rest < 1.0f; rest *= 4.0f) {
        root *= 0.5f;
    }
    for (i = 0; i < 5; i++) {
        root = 0.5f * (root + s / root);
    }
    return root;
}

"""

POWER = """\
static inline float @NAME@_power(float base, int degree) {
    float power = 1.0f;
    for (; degree > 0; degree >>= 1) {
        power *= (degree & 1) ? base : 1.0f;
        base *= degree > 1 ? base : 1.0f;
    }
    return power;
}

"""

DIAGONAL_MAP = """\
    for (j = 0; j < @RANK@; j++) {
        u[j] = x[j];
@if SHIFT@
        u[j] -= PURSUIT_F32(shift, j);
@end@
@if DIAGONAL@
        u[j] *= PURSUIT_F32(map, j);
@end@
    }
"""

FULL_MAP = """\
    for (j = 0; j < @RANK@; j++) {
        u[j] = 0.0f;
    }
    for (k = 0; k < @D@; k++, map += @RANK@) {
        float e = x[k];
@if SHIFT@
        e -= PURSUIT_F32(shift, k);
@end@
        for (j = 0; j < @RANK@; j++) {
            u[j] += e * PURSUIT_F32(map, j);
        }
    }
"""

# Rows of unit length; of all zeros as they are.
UNIT_ROW = """\
    for (j = 0; j < @RANK@; j++) {
        float e = u[j] < 0.0f ? -u[j] : u[j];
        largest = e > largest ? e : largest;
    }
    if (largest > 0.0f) {
        for (j = 0; j < @RANK@; j++) {
            u[j] /= largest;
            length += u[j] * u[j];
        }
        length = @NAME@_root(length);
        for (j = 0; j < @RANK@; j++) {
            u[j] /= length;
        }
    }
"""

# u'z = u'zero + sum_j (u_j step_j) c_j.
CODED_ROW = """\
    for (j = 0; j < @RANK@; j++) {
@if ZEROS@
        start += u[j] * PURSUIT_F32(zeros, j);
@end@
        u[j] *= PURSUIT_F32(steps, j);
    }
"""

LOOP = """\
    for (k = 0; k < @N@; k++) {
        float s = @START@;
        for (j = 0; j < @RANK@; j++) {
@if PRODUCTS@
            s += u[j] * @Z@;
@end@
@if DIFFERENCES@
            float z = @Z@;
            float e = u[j] - z;
            @DISTANCE@
@end@
        }
@if LENGTHS@
        s *= PURSUIT_F32(lengths, k);
@end@
@if LINEAR@
        f[k] += s;
@end@
@if SUM@
        s = @VALUE@;
        for (t = 0; t < @T@; t++) {
            f[t] += s * @TERM@;
        }
        coefficients += @T@;
@end@
        vectors += @RANK@;
    }
}

"""

OUTPUTS = """\
/* The @T@ output(s) f(x) = b + sum_k a_k K(x, z_k). */
static inline void @NAME@_outputs(const float *x, float *f) {
    int t;
@if FILL@
    float known[@COLUMNS@];
    for (t = 0; t < @D@; t++) {
        known[t] = x[t] == x[t] ? x[t] : PURSUIT_F32(@NAME@_fill, t);
    }
@if INDICATED@
@TOLD@
@end@
    x = known;
@end@
    for (t = 0; t < @T@; t++) {
        f[t] = PURSUIT_F32(@NAME@_intercept, t);
    }
@CALLS@
}

"""

# The class with the most votes of pairs, and values that break ties.
PAIRS = """\
static inline void @NAME@_vote_values(const float *f, float *values) {
    float sums[@C@];
    int p, q, i = 0;
    for (p = 0; p < @C@; p++) {
        values[p] = sums[p] = 0.0f;
    }
    for (p = 0; p < @C@; p++) {
        for (q = p + 1; q < @C@; q++, i++) {
            sums[p] += f[i];
            sums[q] -= f[i];
            values[f[i] >= 0.0f ? p : q] += 1.0f;
        }
    }
    for (p = 0; p < @C@; p++) {
        float size = sums[p] < 0.0f ? -sums[p] : sums[p];
        values[p] += sums[p] / (3.0f * (size + 1.0f));
    }
}

static inline void @NAME@_votes(const float *f, float *votes) {
    int p, q, i = 0;
    for (p = 0; p < @C@; p++) {
        votes[p] = 0.0f;
    }
    for (p = 0; p < @C@; p++) {
        for (q = p + 1; q < @C@; q++, i++) {
            votes[f[i] > 0.0f ? p : q] += 1.0f;
        }
    }
}

"""

DECISION = """\
/* The @DECISIONS@ decision value(s)@POSITIVE@. */
static inline void @NAME@_decision(const float *x, float *values) {
@if VOTED@
    float f[@T@];
    @NAME@_outputs(x, f);
    @NAME@_vote_values(f, values);
@end@
@if DIRECT@
    @NAME@_outputs(x, values);
@end@
}

"""

PREDICT_CLASS = """\
/* The number of the class, from 0 to @LAST@: see @NAME@_class_name. */
static inline int @NAME@_predict(const float *x) {
    float f[@T@];
@if PAIRED@
    float values[@C@];
@end@
@if LARGEST@
    int c, best = 0;
@end@
    @NAME@_outputs(x, f);
@if PAIRED@
    @NAME@_@COUNT@(f, values);
@end@
@if LARGEST@
    for (c = 1; c < @C@; c++) {
        best = @VALUES@[c] > @VALUES@[best] ? c : best;
    }
    return best;
@end@
@if SIGN@
    return f[0] @MORE@ 0.0f;
@end@
}

"""

PREDICT_OUTLIER = """\
/* The score, the larger the less of an outlier. */
static inline float @NAME@_score(const float *x) {
    float f[1];
    @NAME@_outputs(x, f);
    return f[0] + @OFFSET@;
}

/* 1 inside, -1 for an outlier. */
static inline int @NAME@_predict(const float *x) {
    float f[1];
    @NAME@_outputs(x, f);
    return f[0] @MORE@ 0.0f ? 1 : -1;
}

"""

PREDICT_NUMBERS = """\
/* @WHAT@. */
static inline void @NAME@_@METHOD@(const float *x, float *y) {
@if EXP@
    int t;
@end@
    @NAME@_outputs(x, y);
@if EXP@
    for (t = 0; t < @T@; t++) {
        y[t] = PURSUIT_EXPF(y[t]);
    }
@end@
}

"""

PROBABILITIES = """\
/* The probabilities of the @C@ classes. */
static inline void @NAME@_probabilities(const float *x, float *p) {
@if TWO@
    float f[1], e;
    @NAME@_outputs(x, f);
    e = PURSUIT_EXPF(f[0] > 0.0f ? -@SCALE@ * f[0] : @SCALE@ * f[0]);
    p[0] = (f[0] > 0.0f ? e : 1.0f) / (1.0f + e);
    p[1] = (f[0] > 0.0f ? 1.0f : e) / (1.0f + e);
@end@
@if MORE@
    float largest, sum = 0.0f;
    int c;
    @NAME@_outputs(x, p);
    largest = p[0];
    for (c = 1; c < @C@; c++) {
        largest = p[c] > largest ? p[c] : largest;
    }
    for (c = 0; c < @C@; c++) {
@if SOFTMAX@
        p[c] = PURSUIT_EXPF(@SCALE@ * (p[c] - largest));
@end@
@if SIGMOIDS@
        if (largest < -20.0f) { /* 1 / (1 + exp(-f)) is exp(f) */
            p[c] = PURSUIT_EXPF(p[c] - largest);
        } else {
            p[c] = 1.0f / (1.0f + PURSUIT_EXPF(-p[c]));
        }
@end@
        sum += p[c];
    }
    for (c = 0; c < @C@; c++) {
        p[c] /= sum;
    }
@end@
}

"""

NAMES = """\
/* The name of @WHAT@. */
static inline const char *@NAME@_@FUNCTION@(int number) {
    static const char *const names[@N@] = {
        @STRINGS@};
    return names[number];
}

"""

SELFTEST = """\
#ifdef PURSUIT_SELFTEST
#include <stdio.h>

@ARRAYS@
/* The number of answers on @ROWS@ rows that are not those of the model. */
static inline int @NAME@_selftest(void) {
    float f[@T@];
    int i, t, failures = 0;
    for (i = 0; i < @ROWS@; i++) {
        @NAME@_outputs(@NAME@_selftest_rows + i * @D@, f);
        for (t = 0; t < @T@; t++) {
            float e = f[t] - @NAME@_selftest_outputs[i * @T@ + t];
            failures += !(e <= @TOLERANCE@ && e >= -@TOLERANCE@);
        }
@if CODED@
        if (@NAME@_selftest_classes[i] > -2) {
            failures += @NAME@_predict(@NAME@_selftest_rows + i * @D@)
                != @NAME@_selftest_classes[i];
        }
@end@
    }
    return failures;
}
#endif
"""

MAIN = """\
#if defined(PURSUIT_SELFTEST) && !defined(PURSUIT_NO_MAIN)
int main(void) {
    int failures = @NAME@_selftest();
    if (failures) {
        printf("@NAME@: %d answers differ\\n", failures);
    } else {
        puts("OK");
    }
    return failures != 0;
}
#endif
"""

HEADER = """\
@COMMENT@
#ifndef @UPPER@_H
#define @UPPER@_H

@COMMON@
#define @UPPER@_FEATURES @D@
#define @UPPER@_OUTPUTS @T@
#define @UPPER@_VECTORS @VECTORS@
#define @UPPER@_BYTES @BYTES@
@if CLASSIFIER@
#define @UPPER@_CLASSES @C@
#define @UPPER@_DECISIONS @DECISIONS@
@end@
@if LARGE@

#if defined(__AVR__)
#error "@NAME@: an array of more than 32767 bytes; use fewer vectors or dtype='int8'"
#endif
@end@

#ifdef __cplusplus
extern "C" {
#endif

@TABLES@
@FUNCTIONS@@SELFTEST@
#ifdef __cplusplus
}
#endif

@MAIN@
#endif
"""
