"""What counts as doubt."""

import numpy as np

from pren.label.suggest import _doubt


def test_a_label_is_doubtful_if_it_is_unsure_then_if_its_lead_is_small():
    lead = np.array([5.0, 1.0, 9.0, 2.0])
    assert np.argsort(_doubt(lead, np.array([0.9, 0.9, 0.2, 0.9]))).tolist() == [0, 3, 1, 2]


def test_the_lead_alone_counts_where_nobody_knows_how_sure_labels_are():
    lead = np.array([5.0, 1.0, 9.0, 2.0])
    assert np.argsort(_doubt(lead, np.full(4, np.nan))).tolist() == [2, 0, 3, 1]
