"""The SchedTwin experiment."""

from __future__ import annotations

import pytest

from simmodel.studies.schedtwin import PAPER_AREAS, PAPER_SHARES, schedtwin_run, schedtwin_seeds


@pytest.mark.long  # the examples of both functions run by default
def test_the_paper_s_experiment():
    found = schedtwin_seeds([1, 2])
    assert set(PAPER_AREAS) == set(found.names)
    assert sum(PAPER_SHARES.values()) == pytest.approx(1)
    assert (found.scores["portfolio"] < found.scores["fcfs"]).all()
    runs = schedtwin_run(1)
    assert runs.names == found.names
    assert runs.scores.tolist() == [found.scores[name][0] for name in runs.names]
