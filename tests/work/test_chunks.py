"""Workloads in chunks, and the ids that they have had."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from simmodel import Workload
from simmodel.work.chunks import ChunkedWorkload, KnownIds


def with_ids(ids: list[int]) -> Workload:
    ones = np.ones(len(ids))
    return Workload({"job": np.array(ids, dtype=np.int64), "submit": ones, "run": ones, "processors": ones})


@given(st.lists(st.lists(st.integers(-2, 40) | st.sampled_from([10**9, 10**15, 2**40]), max_size=8), max_size=8))
def test_no_id_comes_twice_and_first_ones_stay(chunks: list[list[int]]) -> None:
    known, given_ids, found = KnownIds(), set[int](), list[int]()
    for ids in chunks:
        distinct, repaired = known.distinct(with_ids(ids))
        new = distinct["job"].tolist()
        changed = [(old, now) for old, now in zip(ids, new, strict=True) if old != now]
        assert len(changed) == repaired
        for old, now in zip(ids, new, strict=True):
            if old not in given_ids and old not in found:
                assert now == old
            given_ids.add(old)
            found.append(now)
    assert len(set(found)) == len(found)


def test_a_workload_in_memory_has_its_report_once() -> None:
    log = with_ids([1, 2, 3])
    log.report.skipped["bad lines"] += 2
    chunks = list(ChunkedWorkload.of(log, 2))
    assert [chunk.report.skipped.total() for chunk in chunks] == [2, 0]
    assert repr(ChunkedWorkload.of(log)) == "<ChunkedWorkload workload>"
