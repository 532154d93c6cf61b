"""Drawn workflows under six brokers and six planners: bytes are one number, reads follow writes, no SLR is below 1."""

import pytest

from tests.helpers.drawn_workflows import check_bytes_order_and_slr


@pytest.mark.parametrize("seed", range(9))  # each form with files, pairs and both
def test_bytes_are_one_number_and_nothing_is_read_before_it_is_written(seed):
    check_bytes_order_and_slr(seed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", range(9, 3009, 100))
def test_bytes_are_one_number_and_nothing_is_read_before_it_is_written_in_3000_workflows(first):
    for seed in range(first, first + 100):
        check_bytes_order_and_slr(seed)
