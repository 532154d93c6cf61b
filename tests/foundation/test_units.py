"""Quantities with units: parsing, formatting, invalid input."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from simmodel.foundation.errors import InputError
from simmodel.foundation.units import UNITS, parse_quantity, show_quantity

READ = [
    ("40Gbps", "B/s", 5e9),
    ("4750MBps", "B/s", 4.75e9),
    ("2817GBps", "B/s", 2.817e12),
    ("1 GB/s", "B/s", 1e9),
    ("8Gib/s", "B/s", 2**30),
    ("1MiBps", "B/s", 2**20),
    ("125", "B/s", 125),
    ("64GB", "B", 64e9),
    ("64GiB", "B", 64 * 2**30),
    ("1KiB", "B", 1024),
    ("3kB", "B", 3000),
    ("3KB", "B", 3000),
    ("8b", "B", 1),
    ("2TB", "B", 2e12),
    ("11.5ms", "s", 0.0115),
    ("88ns", "s", 88e-9),
    ("50us", "s", 50e-6),
    ("3ps", "s", 3e-12),
    ("2m", "s", 120),
    ("2min", "s", 120),
    ("1.5h", "s", 5400),
    ("1d", "s", 86400),
    ("1w", "s", 604800),
    ("  7 s ", "s", 7),
    ("1e-3s", "s", 1e-3),
    (".5s", "s", 0.5),
    ("1Gf", "flop/s", 1e9),
    ("98.095Mf", "flop/s", 98095000),
    ("2Gflop", "flop", 2e9),
    ("2.5Gflop/s", "flop/s", 2.5e9),
    ("250W", "W", 250),
    ("1.5kW", "W", 1500),
    ("20mW", "W", 0.02),
    (0, "s", 0),
    (12.5, "B", 12.5),
    (np.int64(3), "s", 3),
    (np.float32(0.5), "s", 0.5),
]
REFUSED = [
    ("", "B"),
    ("GB", "B"),
    ("64 G", "B"),
    ("64GBps", "B"),
    ("64GB", "B/s"),
    ("10mB", "B"),
    ("1.2.3s", "s"),
    ("1,5s", "s"),
    ("5S", "s"),
    ("-5s", "s"),
    ("1e400s", "s"),
    ("1e999999999999s", "s"),
    ("nan", "s"),
    ("inf", "s"),
    ("٣s", "s"),
    (float("nan"), "s"),
    (float("inf"), "s"),
    (-1, "B"),
    (True, "B"),
    (None, "B"),
    ([1], "B"),
]


@pytest.mark.parametrize(("text", "unit", "value"), READ)
def test_quantities_are_read_in_each_unit(text, unit, value):
    assert parse_quantity(text, unit) == value


@pytest.mark.parametrize(("text", "unit"), REFUSED)
def test_refuses_with_what_was_found_and_expected(text, unit):
    with pytest.raises(InputError, match=f"must be a (finite )?quantity in {unit}.*, got") as caught:
        parse_quantity(text, unit, source="site.json", place="A:B")
    assert str(caught.value).startswith("site.json, A:B: ")


def test_refuses_an_unknown_unit():
    with pytest.raises(InputError, match="unknown unit 'bytes'"):
        parse_quantity(1, "bytes")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (5e9, "B/s", "5GBps"),
        (1024, "B", "1.024kB"),
        (999, "B", "999B"),
        (0, "B", "0B"),
        (0.5, "B", "0.5B"),
        (86400, "s", "86400s"),
        (0.25, "s", "250ms"),
        (1e-15, "s", "1e-15s"),
        (98095000, "flop/s", "98.095Mf"),
        (0.02, "W", "20mW"),
        (1e300, "s", "1e+300s"),
    ],
)
def test_quantities_are_shown_in_a_fitting_unit(value, unit, text):
    assert show_quantity(value, unit) == text


@given(st.floats(min_value=0, allow_infinity=False), st.sampled_from(UNITS))
def test_what_is_shown_reads_back_as_the_same_number(value, unit):
    assert parse_quantity(show_quantity(value, unit), unit) == value


@given(st.integers(0, 10**15), st.sampled_from(["k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti"]))
def test_a_byte_is_eight_bits(number, prefix):
    assert parse_quantity(f"{8 * number}{prefix}bps", "B/s") == parse_quantity(f"{number}{prefix}Bps", "B/s")
