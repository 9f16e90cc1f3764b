"""What a prediction takes."""

import numpy as np

from pursuit.reports.timing import microseconds_a_row


def test_timing_is_the_best_of_several_over_the_rows():
    calls = []
    spent = microseconds_a_row(calls.append, np.zeros((1000, 1)), seconds=0.01)
    assert len(calls) > 2
    assert 0 < spent < 1
