"""Columns of words: one byte a row, and an array of texts to all who read it."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from simmodel import load_result, simulate
from simmodel.work.table import Words, joined_words

TEXTS = st.lists(st.sampled_from(["completed", "timeout", "", "lost"]), max_size=30)


@given(TEXTS, st.sampled_from(["completed", "lost", "unknown"]), st.data())
def test_words_read_as_the_array_of_their_texts(texts: list[str], word: str, data: st.DataObject) -> None:
    column, array = Words.of(texts), np.array(texts, dtype="<U9")
    assert (column == word).tolist() == (array == word).tolist()
    assert (column != word).tolist() == (array != word).tolist()
    assert (column == array).all()
    assert (array == column).all()
    assert column.tolist() == list(column) == array.tolist() == np.asarray(column).tolist()
    assert column.isin((word, "timeout")).tolist() == np.isin(array, (word, "timeout")).tolist()
    assert np.isin(column, (word, "timeout")).tolist() == np.isin(array, (word, "timeout")).tolist()
    assert column.counts() == dict(zip(*(each.tolist() for each in np.unique(array, return_counts=True)), strict=True))
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts))), dtype=bool)
    assert column[mask].tolist() == array[mask].tolist()
    assert column[::-1].tolist() == array[::-1].tolist()
    assert joined_words([column, column[mask]]).tolist() == [*texts, *array[mask].tolist()]
    assert (pickle.loads(pickle.dumps(column)) == column).all()


def test_a_result_keeps_one_byte_a_job_for_its_status() -> None:
    status = simulate(None, "lublin-128-week", "fcfs").jobs["status"]
    assert status.nbytes == len(status)
    assert (status == "completed").sum() == len(status)
    assert status[0] == "completed"
    assert isinstance(status[0], str)
    assert status.dtype == "<U13"
    assert status.size == len(status)
    with pytest.raises(TypeError):
        status[0] = "lost"


def test_stores_and_data_frames_have_the_words(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    result = simulate(None, "probe-4", "fcfs")
    result.to_sqlite(tmp_path / "probe.db")
    result.to_csv(tmp_path / "csv")
    result.to_parquet(tmp_path / "parquet")
    (tmp_path / "probe.json").write_text(result.to_json(jobs=True))
    for name in ("probe.db", "csv", "parquet", "probe.json"):
        again = load_result(tmp_path / name)
        assert again.jobs["status"].tolist() == result.jobs["status"].tolist()
        assert again.jobs["status"].nbytes == len(result.jobs)
    frame = result.jobs.to_pandas()
    assert (frame["status"] == "completed").all()
    assert frame["status"].dtype == pandas.DataFrame({"status": result.jobs["status"].tolist()})["status"].dtype


def test_many_rows_are_shown_as_numpy_shows_them() -> None:
    texts = ["lost", "failed"] * 600
    column = Words.of(texts)
    assert repr(column) == "array(['lost', 'failed', 'lost', ..., 'failed', 'lost', 'failed'], dtype='<U6')"
    assert str(column) == str(np.array(texts))


def test_more_words_than_a_byte_numbers_are_kept_too() -> None:
    texts = [f"state {i}" for i in range(300)]
    assert Words.of(texts).tolist() == texts
