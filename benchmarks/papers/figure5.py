"""Figure 5 of Kernel Matching Pursuit: margin losses, and traditional losses as such.

Source: P. Vincent and Y. Bengio, Kernel Matching Pursuit, Machine Learning 48 (2002), section 3.2.
Fixed by the paper: the losses as functions of the margin m = y f(x). Above those of the SVM, of
AdaBoost, LogitBoost and Doom II, below the squared error and the squared error after tanh with the
target 0.65. The paper says that those above reward large margins and differ in what a large
negative one costs, and that the squared error after tanh is like Doom II's loss, but rises a
little for large margins. The bounds below the tables are these remarks in numbers.
Our choice: the smooth hinge that stands in for the SVM's loss (beta = 10), and the range of m.
The lines are the library's losses; the SVM's is max(0, 1 - m). The table also gives the slopes
L'(m), the pull of a point on the fit.
"""

import numpy as np
from matplotlib.figure import Figure

from pursuit.losses import LOSSES

MARGINS = np.linspace(-3.0, 3.0, 1201)
TABLE_AT = (-3.0, -1.0, 0.0, 1.0, 3.0)
# Name, label, colour, dashes.
ABOVE = (
    ("exponential", "exp(-m)  [AdaBoost]", "#D55E00", "-"),
    ("logit_boost", "log2(1 + exp(-2m))  [LogitBoost]", "#0072B2", "--"),
    ("doom2", "1 - tanh(m)  [Doom II]", "#009E73", "-."),
    ("smooth_hinge", "smooth hinge, beta = 10", "#CC79A7", (0, (1, 1))),
)
BELOW = (
    ("squared_error", "squared error as a margin loss", "#D55E00", "-"),
    ("squared_error_tanh", "squared error after tanh, target 0.65", "#009E73", "-."),
)
SOFT_MARGIN = ("soft margin [1 - m]+  [SVM]", "#222222")


def run(report):
    """Draw both panels and hold what the paper says of them against the losses."""
    points = np.array(TABLE_AT)
    header = ["", *(f"m = {m:g}" for m in TABLE_AT)]
    losses = [row(SOFT_MARGIN[0], soft_margin(points))]
    losses += [row(label, evaluate(name, points, "value")) for name, label, *_ in ABOVE + BELOW]
    slopes = [row(label, evaluate(name, points, "gradient")) for name, label, *_ in ABOVE + BELOW]
    report.table(header, losses, "Loss")
    report.table(header, slopes, "Slope")
    values = {name: evaluate(name, MARGINS, "value") for name, *_ in ABOVE + BELOW}
    report.figure("figure5", draw(values))
    check(report, values)


def row(label, values):
    """A line of the table."""
    return [label, *(f"{value:z.3f}" for value in values)]


def evaluate(name, margins, method):
    """A loss, or its slope, as a function of the margin: y = 1 and f = m."""
    outputs = margins[:, None]
    return getattr(LOSSES[name], method)(np.ones_like(outputs), outputs)[:, 0]


def soft_margin(margins):
    """The loss of the SVM (equation 13)."""
    return np.maximum(0.0, 1.0 - margins)


def check(report, values):
    """What the paper says of its figure, in numbers."""
    rising = max(evaluate(name, MARGINS, "gradient").max() for name, *_ in ABOVE)
    report.check("largest slope of a margin loss (all of them fall)", rising, at_most=0.0)
    gap = np.abs(values["smooth_hinge"] - soft_margin(MARGINS)).max()
    report.check("distance of the smooth hinge from the soft margin", gap, at_most=0.07)
    doom, tanh = values["doom2"], values["squared_error_tanh"]
    likeness = np.corrcoef(doom, tanh)[0, 1]
    report.check("correlation of tanh with Doom II", likeness, at_least=0.95)
    report.check("margin where the squared error after tanh is least",
                 abs(MARGINS[tanh.argmin()] - np.arctanh(0.65)), at_most=0.01)  # fmt: skip
    report.check("its rise from there to m = 3", tanh[-1] - tanh.min(), at_least=0.1)
    report.check("cost of m = -3 under these two", max(doom[0], tanh[0]), at_most=2.8)
    others = [line[0] for name, line in values.items() if not name.endswith(("doom2", "tanh"))]
    report.check("and the least under the others", min(others), at_least=3.9)


def draw(values):
    """Margin losses above, traditional losses below."""
    figure = Figure(figsize=(7.0, 8.5), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    above.plot(MARGINS, soft_margin(MARGINS), color=SOFT_MARGIN[1], label=SOFT_MARGIN[0])
    for axes, lines in ((above, ABOVE), (below, BELOW)):
        for name, label, colour, dashes in lines:
            axes.plot(MARGINS, values[name], color=colour, linestyle=dashes, label=label, lw=1.8)
        axes.axvline(0.0, color="#6b6b6b", lw=0.7)
        axes.set(ylabel="loss(m)", ylim=(-0.05, 4.0), xlim=(MARGINS[0], MARGINS[-1]))
        axes.legend(loc="upper center", bbox_to_anchor=(1.1, 4.05), bbox_transform=axes.transData)
        axes.spines[["top", "right"]].set_visible(False)
    above.set_title("Losses of boosting and of the SVM", loc="left")
    below.set_title("Traditional losses", loc="left")
    below.set_xlabel("margin  m = y f(x)")
    return figure
