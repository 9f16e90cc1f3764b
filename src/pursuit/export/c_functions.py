"""The functions of an exported model in C99, put together from `pursuit.export.c_templates`."""

from __future__ import annotations

from typing import Any

import numpy as np

from pursuit import kernels
from pursuit.export import c_templates as c
from pursuit.export.c_templates import filled
from pursuit.export.c_text import array, number, string
from pursuit.export.plain_model import PlainModel
from pursuit.export.stored_model import COSINES, PRODUCTS, StoredModel, StoredPart

__all__ = ["class_names", "n_decisions", "program", "stack_bytes", "tables"]

# What a coordinate adds to a distance.
DISTANCES = {
    kernels.RBF: "s += e * e;",
    kernels.Laplacian: "s += e < 0.0f ? -e : e;",
    kernels.ChiSquared: "s += u[j] + z > 0.0f ? e * e / (u[j] + z) : 0.0f;",
}


def program(name: str, stored: StoredModel) -> str:
    """All functions of a model."""
    kinds = [part.kernel for part in stored.parts]
    helpers = filled(c.ROOT, NAME=name) if any(isinstance(k, COSINES) for k in kinds) else ""
    helpers += filled(c.POWER, NAME=name) if any(map(_is_whole, kinds)) else ""
    parts = "".join(_part(name, p, stored) for p in range(len(kinds)))
    return helpers + parts + _outputs(name, stored) + _answer(name, stored.model)


def tables(name: str, stored: StoredModel) -> str:
    """All constant arrays of a model."""
    found = [
        array(f"{name}_{table}{p}", values)
        for p, part in enumerate(stored.parts)
        for table, values in part.tables.items()
    ]
    model = stored.model
    if model.fill is not None:
        found.append(array(f"{name}_fill", np.nan_to_num(model.fill).astype(np.float32)))
    found.append(array(f"{name}_intercept", model.intercept.astype(np.float32)))
    return "".join(found)


def stack_bytes(stored: StoredModel) -> int:
    """Bytes of the arrays that the functions have on the stack, about."""
    model = stored.model
    own = max((part.rank for part in stored.parts), default=0) + len(model.intercept)
    voted = 2 * len(model.classes) if "vote" in model.rule else 0
    return 4 * (own + voted + (0 if model.fill is None else model.n_columns)) + 48


# --- the kernels --------------------------------------------------------------------------------


def _is_whole(kernel: Any) -> bool:
    """Whether a kernel has a degree that is a whole number."""
    degree = float(getattr(kernel, "degree", -1.0))
    return degree.is_integer() and 0 <= degree < 2**15


def _part(name: str, p: int, stored: StoredModel) -> str:
    """sum_k a_k K(u, z_k) of one kernel, added to f."""
    part = stored.parts[p]
    values = _words(name, part, stored)
    text = _head(name, p, part) + filled(_map_template(part), **values)
    if isinstance(part.kernel, COSINES):
        text += filled(c.UNIT_ROW, **values)
    if values["PRODUCTS"] and "steps" in part.tables:
        text += filled(c.CODED_ROW, **values)
    return text + filled(c.LOOP, **values)


def _words(name: str, part: StoredPart, stored: StoredModel) -> dict[str, Any]:
    """What the templates of a part ask for."""
    products = isinstance(part.kernel, (*PRODUCTS, kernels.Linear))
    zeros = "zeros" in part.tables
    return {
        "NAME": name,
        "D": stored.model.n_columns,
        "RANK": part.rank,
        "N": part.n_vectors,
        "T": len(stored.model.intercept),
        "SHIFT": "shift" in part.tables,
        "DIAGONAL": "map" in part.tables,
        "ZEROS": zeros,
        "START": "start" if products and zeros else "0.0f",
        "PRODUCTS": products,
        "DIFFERENCES": not products,
        "Z": _code("vectors", "j", stored.dtype) if products else _element(part, stored.dtype),
        "DISTANCE": DISTANCES.get(type(part.kernel), ""),
        "LENGTHS": "lengths" in part.tables,
        "LINEAR": isinstance(part.kernel, kernels.Linear),
        "SUM": not isinstance(part.kernel, kernels.Linear),
        "VALUE": _value(name, part.kernel),
        "TERM": _coefficient(stored.dtype),
    }


def _head(name: str, p: int, part: StoredPart) -> str:
    """The declarations of a part's function."""
    lines = [f"static inline void {name}_part{p}(const float *x, float *f) {{"]
    for table, values in part.tables.items():
        kind = {"float32": "float"}.get(values.dtype.name, f"{values.dtype.name}_t")
        lines.append(f"    const {kind} *{table} = {name}_{table}{p};")
    lines.append(f"    float u[{part.rank}];")
    if isinstance(part.kernel, COSINES):
        lines.append("    float length = 0.0f, largest = 0.0f;")
    if "zeros" in part.tables and isinstance(part.kernel, (*PRODUCTS, kernels.Linear)):
        lines.append("    float start = 0.0f;")
    lines.append("    int j, k;" if isinstance(part.kernel, kernels.Linear) else "    int j, k, t;")
    return "\n".join(lines) + "\n"


def _map_template(part: StoredPart) -> str:
    """U = (x - s) M with a full map, or a diagonal."""
    return c.FULL_MAP if np.ndim(part.tables.get("map", 0.0)) == 2 else c.DIAGONAL_MAP


def _code(table: str, index: str, dtype: str) -> str:
    """An entry of an array, as a float."""
    if dtype == "float32":
        return f"PURSUIT_F32({table}, {index})"
    return f"(float)PURSUIT_{'I8' if dtype == 'int8' else 'I16'}({table}, {index})"


def _element(part: StoredPart, dtype: str) -> str:
    """z_kj."""
    code = _code("vectors", "j", dtype)
    if dtype != "float32":
        code = f"PURSUIT_F32(steps, j) * {code}"
    return f"PURSUIT_F32(zeros, j) + {code}" if "zeros" in part.tables else code


def _coefficient(dtype: str) -> str:
    """a_kt."""
    code = _code("coefficients", "t", dtype)
    if dtype == "float32":
        return code
    return f"(PURSUIT_F32(coefficient_zeros, t) + PURSUIT_F32(coefficient_steps, t) * {code})"


def _value(name: str, kernel: Any) -> str:
    """K from a distance or a product s."""
    if type(kernel) in DISTANCES:
        return f"PURSUIT_EXPF(-{number(kernel.gamma)} * s)"
    if isinstance(kernel, (kernels.Linear, kernels.Cosine)):
        return "s"
    shifted = f"s + {number(kernel.coef0)}"
    if hasattr(kernel, "gamma"):
        shifted = f"{number(kernel.gamma)} * {shifted}"
    if isinstance(kernel, kernels.Sigmoid):
        return f"1.0f - 2.0f / (1.0f + PURSUIT_EXPF(2.0f * ({shifted})))"
    if _is_whole(kernel):
        return f"{name}_power({shifted}, {int(kernel.degree)})"
    return f"powf({shifted}, {number(kernel.degree)})"


def _outputs(name: str, stored: StoredModel) -> str:
    """The outputs of all parts together."""
    model = stored.model
    calls = [f"    {name}_part{p}(x, f);" for p in range(len(stored.parts))]
    told = [
        f"    known[{len(model.features) + i}] = x[{j}] == x[{j}] ? 0.0f : 1.0f;"
        for i, j in enumerate(model.indicated)
    ]
    return filled(
        c.OUTPUTS,
        NAME=name,
        D=len(model.features),
        COLUMNS=model.n_columns,
        T=len(model.intercept),
        FILL=model.fill is not None,
        INDICATED=bool(told),
        TOLD="\n".join(told),
        CALLS="\n".join(calls or ["    (void)x;"]),
    )


# --- the answers --------------------------------------------------------------------------------


def n_decisions(model: PlainModel) -> int:
    """Number of decision values."""
    return len(model.classes) if _is_voted(model) else len(model.intercept)


def _is_voted(model: PlainModel) -> bool:
    return model.rule == "vote_values" or model.one_value_a_class


def _answer(name: str, model: PlainModel) -> str:
    """What becomes of the outputs."""
    if model.task == "classifier":
        return _classifier(name, model)
    if model.task == "outlier_detector":
        more = ">=" if model.zero_is_positive else ">"
        words = {"NAME": name, "MORE": more, "OFFSET": number(model.offset)}
        return _decision(name, model, "") + filled(c.PREDICT_OUTLIER, **words)
    numbers = {"NAME": name, "T": len(model.intercept), "EXP": model.link == "exp"}
    if model.task == "regressor":
        return filled(c.PREDICT_NUMBERS, METHOD="predict", WHAT="The predicted numbers", **numbers)
    return filled(c.PREDICT_NUMBERS, METHOD="transform", WHAT="The features", **numbers)


def _decision(name: str, model: PlainModel, positive: str) -> str:
    """The decision values."""
    return filled(
        c.DECISION,
        NAME=name,
        T=len(model.intercept),
        DECISIONS=n_decisions(model),
        VOTED=_is_voted(model),
        DIRECT=not _is_voted(model),
        POSITIVE=positive,
    )


def _classifier(name: str, model: PlainModel) -> str:
    """Classes, their decision values, probabilities and names."""
    n, paired = len(model.classes), "vote" in model.rule
    text = filled(c.PAIRS, NAME=name, C=n) if paired else ""
    text += _decision(name, model, ", positive for class 1" if model.rule == "sign" else "")
    text += filled(
        c.PREDICT_CLASS,
        NAME=name,
        C=n,
        LAST=n - 1,
        T=len(model.intercept),
        SIGN=model.rule == "sign",
        LARGEST=model.rule != "sign",
        PAIRED=paired,
        COUNT=model.rule,
        VALUES="values" if paired else "f",
        MORE=">=" if model.zero_is_positive else ">",
    )
    return text + _probabilities(name, model) + _names(name, "class_name", class_names(model))


def _probabilities(name: str, model: PlainModel) -> str:
    """The probabilities of a classifier that has some."""
    if model.probabilities is None:
        return ""
    return filled(
        c.PROBABILITIES,
        NAME=name,
        C=len(model.classes),
        TWO=len(model.intercept) == 1,
        MORE=len(model.intercept) > 1,
        SOFTMAX=model.probabilities == "softmax",
        SIGMOIDS=model.probabilities == "sigmoids",
        SCALE=number(1.0 / model.temperature),
    )


def class_names(model: PlainModel) -> list[str]:
    """The labels as texts."""
    return [str(label) for label in np.asarray(model.classes).tolist()]


def _names(name: str, function: str, texts: list[str]) -> str:
    """A function from numbers to names."""
    strings = ",\n        ".join(map(string, texts))
    words = {"WHAT": "a class", "FUNCTION": function, "N": len(texts), "STRINGS": strings}
    return filled(c.NAMES, NAME=name, **words)
