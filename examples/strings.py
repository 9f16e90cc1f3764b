"""
Words and series of different lengths
=====================================

Where vectors are rows of the data, rows may be anything that a function can compare: the kernel is
``function(X, Z) -> matrix``. Here are words, by the triples of letters that they share (a spectrum
kernel), and series of different lengths, by all ways to align them (Cuturi and others, 2007).
"""

import matplotlib.pyplot as plt
import numpy as np

from pursuit import KernelMatchingPursuitClassifier

rng = np.random.default_rng(0)
# Made words of two languages with the same syllables, and endings of their own.
syllables = ["ba", "ver", "sto", "li", "mon", "ra", "ken", "tu", "fra", "del"]
endings = [["en", "ung", "heit"], ["are", "ione", "ezza"]]


def made_words(n):
    language = rng.integers(2, size=n)
    stems = ["".join(rng.choice(syllables, size=rng.integers(1, 5))) for _ in range(n)]
    return [s + rng.choice(endings[k]) for s, k in zip(stems, language, strict=True)], language


def spectrum(X, Z, n=3):
    """Cosines of the numbers of all n-tuples of letters, the ends of words marked."""

    def tuples(words):
        marked = [f"^{word}$" for word in words]
        return [[word[i : i + n] for i in range(len(word) - n + 1)] for word in marked]

    found = [tuples(words) for words in (X, Z)]
    place = {t: i for i, t in enumerate(sorted({t for words in found for w in words for t in w}))}
    tables = []
    for words in found:
        table = np.zeros((len(words), len(place)))
        for row, word in zip(table, words, strict=True):
            np.add.at(row, [place[t] for t in word], 1.0)
        tables.append(table / np.linalg.norm(table, axis=1, keepdims=True))
    return tables[0] @ tables[1].T


words, language = made_words(300)
new_words, new_language = made_words(1000)
of_words = KernelMatchingPursuitClassifier(20, kernel=spectrum).fit(words, language)
errors = [100 * (p != new_language).mean() for p in of_words.staged_predict(new_words)]
print("first vectors:", ", ".join(of_words.support_vectors_[:6]))
print(f"words: {errors[-1]:.1f} % errors with {of_words.n_components_} vectors")


LONGEST = 30


def alignments(x, z, n, m):
    """Sums over all alignments of the products of likenesses along each; x and z are padded."""
    near = np.exp(-((x[..., :, None] - z[..., None, :]) ** 2))
    near /= 2.0 - near
    sums = np.zeros((*near.shape[:-2], LONGEST + 1, LONGEST + 1))
    sums[..., 0, 0] = 1.0
    for i, j in np.ndindex(LONGEST, LONGEST):
        before = sums[..., i, j] + sums[..., i + 1, j] + sums[..., i, j + 1]
        sums[..., i + 1, j + 1] = near[..., i, j] * before
    return sums[(*np.indices(sums.shape[:-2]), n, m)]


def aligned(X, Z):
    """The global alignment kernel, 1 for a series and itself."""
    (n, m), (x, z) = ([len(s) for s in X], [len(s) for s in Z]), (padded(X), padded(Z))
    own = np.outer(alignments(x, x, n, n), alignments(z, z, m, m))
    return alignments(x[:, None], z, np.array(n)[:, None], m) / np.sqrt(own)


def padded(series):
    return np.array([np.pad(s, (0, LONGEST - len(s))) for s in series])


def made_series(n):
    """One bump, or two, at any pace."""
    bumps = rng.integers(1, 3, size=n)
    times = [
        np.linspace(0, 1, rng.integers(15, LONGEST + 1)) ** rng.uniform(0.6, 1.7) for _ in bumps
    ]
    clean = [np.sin(np.pi * k * t) ** 2 for k, t in zip(bumps, times, strict=True)]
    return [s + rng.normal(0, 0.15, len(s)) for s in clean], bumps


series, bumps = made_series(60)
new_series, new_bumps = made_series(60)
of_series = KernelMatchingPursuitClassifier(4, kernel=aligned).fit(series, bumps)
wrong = int((of_series.predict(new_series) != new_bumps).sum())
print(f"series: {wrong} of {len(new_bumps)} wrong with {of_series.n_components_} vectors")

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
left.plot(np.arange(1, 9), errors[:8], ".-")
for n, word in enumerate(of_words.support_vectors_[:8], 1):
    left.annotate(word, (n, errors[n - 1]), xytext=(2, 6), textcoords="offset points", rotation=40)
left.set(title="Each vector is a word", xlabel="Number of vectors", ylabel="Test errors in %")
left.set(xlim=(0.5, 9.5), ylim=(-0.5, 40))
for k, label in enumerate(["one bump", "two bumps"], 1):
    for i, s in enumerate(series[i] for i in np.flatnonzero(bumps == k)[:4]):
        right.plot(s, color=f"C{k - 1}", lw=0.8, alpha=0.6, label=label if i == 0 else None)
for i, s in enumerate(of_series.support_vectors_):
    right.plot(s, color="black", lw=1.4, label=None if i else "vectors")
right.set(title="Each vector is a series", xlabel="Time in steps", ylabel="Value")
right.set_ylim(top=1.7)
right.legend(ncols=3, loc="upper center")
plt.show()
