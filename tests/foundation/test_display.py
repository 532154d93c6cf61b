"""Tables of text on terminals of any width."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings, strategies as st

from simmodel.foundation import WIDTH
from simmodel.foundation.display import text_table

WIDE = [["", *(f"metric {i}" for i in range(6))], ["easy", *map(str, range(6))], ["sjf", *map(str, range(6, 12))]]


@pytest.fixture
def narrow() -> Iterator[None]:
    token = WIDTH.set(30)
    yield
    WIDTH.reset(token)


def test_a_wide_table_folds_and_repeats_its_labels(narrow: None) -> None:
    assert text_table(WIDE) == [
        "      metric 0  metric 1",
        "easy         0         1",
        "sjf          6         7",
        "",
        "      metric 2  metric 3",
        "easy         2         3",
        "sjf          8         9",
        "",
        "      metric 4  metric 5",
        "easy         4         5",
        "sjf         10        11",
    ]


def test_a_long_cell_goes_on_below(narrow: None) -> None:
    said = text_table([["name", "text"], ["easy", "a promised start for the head of the queue"], ["sjf", "short"]], 2)
    assert said == [
        "name  text",
        "easy  a promised start for the",
        "      head of the queue",
        "sjf   short",
    ]


def test_without_a_terminal_it_stays_whole() -> None:
    assert max(map(len, text_table(WIDE))) == 4 + 6 * 10


CELLS = st.text("ab -", max_size=30)


@settings(max_examples=60)
@given(
    st.integers(1, 4).flatmap(lambda n: st.lists(st.lists(CELLS, min_size=n, max_size=n), min_size=1, max_size=4)),
    st.integers(0, 4),
    st.integers(0, 3),
    st.integers(24, 60),
)
def test_no_line_is_wider_and_no_word_is_lost(rows: list[list[str]], left: int, indent: int, width: int) -> None:
    whole = text_table(rows, left, indent)
    token = WIDTH.set(width)
    try:
        said = text_table(rows, left, indent)
    finally:
        WIDTH.reset(token)
    assert all(len(line) <= width for line in said)
    if all(len(line) <= width for line in whole):
        assert said == whole
    assert len("".join(said).replace(" ", "")) >= len("".join(whole).replace(" ", ""))
