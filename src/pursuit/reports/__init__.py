"""A report on a fitted model: what it is, how good it is, what it costs, and where it ends.

`report` makes one from a model and rows that it has not seen. `parts` holds what a report consists
of, `subject` the model and the rows as all sections want them, `contents` the sections, `pictures`
their figures, `measures` what is measured, `html` the page and `markdown` the model card. Read
`contents` first. matplotlib is imported when a report is made, skops when a card is written.
"""

from pursuit.reports.make_report import Report, report

__all__ = ["Report", "report"]
