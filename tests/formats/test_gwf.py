"""GWF: a converted log equals its SWF original, and the variants of the format."""

import io

import numpy as np
import pytest

from simmodel.formats.gwf import FIELDS, read_gwf
from simmodel.formats.swf import read_swf
from simmodel.foundation.errors import InputError
from tests.helpers.data_files import data_file

JOB = {"job": "1", "submit": "1132444805", "run": "83", "processors": "1", "user": "U1", "structure": "UNITARY"}


def fields(**changes):
    return [{**JOB, **changes}.get(name, "-1") for name in FIELDS]


def read(*rows, separator="\t", **options):
    return read_gwf(io.StringIO("\n".join(separator.join(row) for row in rows)), **options)


@pytest.mark.long  # smaller: the other tests of the file
def test_the_converted_log_is_the_swf_log():
    grid = read_gwf(data_file("gwf/LCG-2005-1-first40000.converted.gwf.gz"))
    batch = read_swf(data_file("swf/LCG-2005-1.swf.gz")).where(slice(40000))
    assert len(grid) == 40000
    for name in ("job", "processors", "status", "queue", "partition"):
        assert np.array_equal(grid[name], batch[name]), name
    for name in ("wait", "run", "requested", "cpu_time", "used_memory"):
        assert np.array_equal(grid[name], batch[name], equal_nan=True), name
    start = int(read_swf(data_file("swf/LCG-2005-1.swf.gz")).header["UnixStartTime"])
    offset = grid["submit"] - batch["submit"]
    assert (offset == offset[0]).all()
    assert offset[0] in (0, start)
    assert grid["user"].tolist() == [f"U{user}" for user in batch["user"].tolist()]
    assert grid["group"].tolist() == [f"G{group}" for group in batch["group"].tolist()]
    assert set(grid["structure"].tolist()) == {"UNITARY"}
    assert grid["run_site"][0] == "S1"
    assert "project" not in grid
    assert grid.header["Note"].startswith("CONVERTED")


def test_a_cancelled_job_has_no_run_time():
    grid = read(fields(run="-1", wait="-1", status="5"), fields(run="0"))
    assert np.isnan(grid["run"][0])
    assert grid["run"][1] == 0
    assert grid["status"].tolist() == [5, -1]


@pytest.mark.parametrize("separator", ["\t", " "])
@pytest.mark.parametrize("form", ["28", "29", "30 with a trailing tab", "30 with an unnamed column"])
def test_the_forms_of_a_line(form, separator):
    row = fields(used_memory="2", run_site="siteA", project="-1")
    if form == "28":
        row = row[:-1]
    elif form == "30 with a trailing tab" and separator == "\t":
        row = [*row, ""]
    elif form == "30 with an unnamed column":
        row = [*row[:18], "7", *row[18:]]
    grid = read(row, separator=separator)
    assert grid["structure"].tolist() == ["UNITARY"]
    assert grid["run_site"].tolist() == ["siteA"]
    assert grid["used_memory"].tolist() == [2048.0]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "no jobs"),
        ("# JobID\n", "no jobs"),
        ("hello\n", "line 1: not a log in the Grid Workloads Format: must have 29 fields, got 1"),
        ("\t".join(fields()) + "\n1\t2\n", "line 2: must have 29 fields, got 2"),
        ("\t".join(fields(run="x")), "column 4 (run): must be a number, got 'x'"),
        ("\t".join(fields(processors="1.5")), "column 5 (processors): must be a whole number"),
    ],
)
def test_a_wrong_file_gets_one_sentence(text, sentence):
    with pytest.raises(InputError) as caught:
        read_gwf(io.StringIO(text))
    assert sentence in str(caught.value)


def test_bad_lines_are_counted_where_that_is_asked_for():
    grid = read(fields(), ["1", "2"], strict=False)
    assert len(grid) == 1
    assert grid.report.skipped.total() == 1
