"""SWF: real logs, exact round trips, and the errors for invalid files."""

import gzip
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from simmodel.formats.numbers import read_columns_of_numbers
from simmodel.formats.swf import FIELDS, read_swf, write_swf
from simmodel.foundation.errors import InputError
from simmodel.work.workload import Workload
from tests.helpers.data_files import data_file
from tests.helpers.examples import up_to

# name: jobs, processors
LOGS = {
    "KTH-SP2-1996-2-filtered": (28481, 100),
    "KTH-SP2-1996-2.1-cln": (28476, 100),
    "LANL-CM5-1994-4.1-cln": (122060, 1024),
    "LCG-2005-1": (188041, 24515),
    "NASA-iPSC-1993-3.1-cln": (18239, 128),
    "RICC-2010-2": (447794, 8192),
    "SDSC-BLUE-2000-4-filtered": (232542, 1152),
    "SDSC-SP2-1998-4-filtered": (54006, 128),
    "UniLu-Gaia-2014-2": (51987, 2004),
    "cluster_0_3270": (610, 3270),
    "cluster_1_1090": (390, 1090),
    "hpc2n-first3170": (3170, 240),
    "lublin_256": (10000, 256),
    "theta2kj": (2000, 4360),
    "theta2kjp": (2000, 4360),
    "theta_1000": (1000, 4360),
    "theta_2022": (23911, 4360),
}
JOB = "1 0 -1 100 5 -1 -1 5 120 -1 1 7 -1 -1 -1 -1 -1 -1"


def line(**fields):
    return " ".join(str(fields.get(name, -1)) for name in FIELDS)


def log(*lines):
    return io.StringIO("\n".join(lines) + "\n")


def same(one, other):
    return one.table.names == other.table.names and all(
        one[name].dtype == other[name].dtype
        and np.array_equal(one[name], other[name], equal_nan=one[name].dtype.kind == "f")
        for name in one.table.names
    )


@pytest.mark.few(2)
@pytest.mark.parametrize("name", LOGS)
def test_every_real_log_is_read_and_its_numbers_are_python_s(name):
    path = data_file(f"swf/{name}.swf.gz")
    workload = read_swf(path)
    assert (len(workload), workload.processors) == LOGS[name]
    text = gzip.decompress(path.read_bytes()).decode("latin-1")
    rows = [row for row in text.splitlines() if not row.lstrip().startswith(";") and row.strip()]
    for at in [*range(0, len(rows), max(1, len(rows) // 500)), len(rows) - 1]:
        for field, word in zip(FIELDS, rows[at].split(), strict=True):
            expected = float(word)
            if workload[field].dtype == np.float64 and field != "submit" and expected == -1:
                expected = np.nan
            if field in ("used_memory", "requested_memory"):
                expected *= 1024
            assert workload[field][at] == pytest.approx(expected, rel=0, abs=0, nan_ok=True), (at, field)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["KTH-SP2-1996-2.1-cln", "UniLu-Gaia-2014-2", "hpc2n-first3170", "theta_1000"])
def test_a_log_is_the_same_after_writing_and_reading(name, tmp_path):
    workload = read_swf(data_file(f"swf/{name}.swf.gz"))
    report = write_swf(workload, tmp_path / "copy.swf.gz")
    copy = read_swf(tmp_path / "copy.swf.gz")
    assert same(workload, copy)
    assert not report
    assert not copy.report
    header = dict(workload.header)
    if name in ("hpc2n-first3170", "theta_1000"):  # their headers count too many jobs, and none
        header["MaxRecords"] = str(len(workload))
    assert list(copy.header.items()) == list(header.items())


def test_what_the_header_says_is_kept_in_order():
    header = read_swf(data_file("swf/LANL-CM5-1994-4.1-cln.swf.gz")).header
    assert list(header)[:3] == ["Version", "Computer", "Installation"]
    assert header["Information"].split("\n") == [
        "http://www.lanl.gov/",
        "http://www.cs.huji.ac.il/labs/parallel/workload/",
    ]
    assert len(header["Queue"].split("\n")) == 18
    assert header["MaxRecords"] == "201387"


def test_a_log_that_ends_before_its_header_says_is_counted():
    workload = read_swf(data_file("swf/hpc2n-first3170.swf.gz"))
    assert workload.report.skipped == {"promised by the header, not in the file": 527371 - 3170}
    assert np.isnan(workload["run"]).sum() == 25


def test_units_and_unknown_values():
    workload = read_swf(log("; MaxNodes: 8", line(job=3, submit=-1, run=-1, used_memory=2, processors=-1, requested=0)))
    assert workload.processors == 8
    assert workload["submit"].tolist() == [-1.0]
    assert np.isnan(workload["run"]).all()
    assert workload["used_memory"].tolist() == [2048.0]
    assert workload["processors"].tolist() == [-1]
    assert workload["requested"].tolist() == [0.0]
    assert "".join(workload[field].dtype.kind for field in FIELDS) == "ifffiffiffiiiiiiif"


def test_comments_and_blank_lines_between_the_jobs():
    workload = read_swf(
        log("; Note: a", JOB, "", "  ; Queue: 1 x", "\t" + JOB.replace(" ", "\t") + "\r", "; Queue: 2 y")
    )
    assert len(workload) == 2
    assert workload.header == {"Note": "a", "Queue": "1 x\n2 y"}


@pytest.mark.parametrize("make", [str, Path, lambda path: path.open(), lambda path: path.open("rb")])
def test_paths_and_open_files_are_read_alike(make, tmp_path):
    plain, packed = tmp_path / "log.swf", tmp_path / "log.swf.gz"
    plain.write_text(JOB + "\n")
    packed.write_bytes(gzip.compress(plain.read_bytes(), mtime=0))
    source = make(plain)
    assert same(read_swf(source), read_swf(packed))
    if hasattr(source, "close"):
        source.close()


WRONG_FILES = {
    "empty": (b"", "no jobs"),
    "blank lines": (b"\n \n", "no jobs"),
    "header only": (b"; MaxProcs: 3\n", "no jobs"),
    "markdown": (
        b"# simmodel\n\nread me\n",
        "line 1: not a log in the Standard Workload Format: must have 18 numbers",
    ),
    "one word": (b"hello", "line 1: not a log"),
    "binary": (b"\x7fELF\0\0\1", "must be text, got binary data"),
    "cut gzip": (gzip.compress(JOB.encode() * 100, mtime=0)[:40], "corrupt gzip file"),
    "false gzip": (b"\x1f\x8bnonsense", "corrupt gzip file"),
    "short line": (f"; x\n{JOB}\n1 2 3\n{JOB}\n".encode(), "line 3: must have 18 numbers, got 3 fields: '1 2 3'"),
    "long line": (f"{JOB}\n{JOB} 4\n".encode(), "line 2: must have 18 numbers, got 19 fields"),
    "clock time": (
        f"{JOB}\n\n{JOB.replace('120', '2:00')}\n".encode(),
        "line 3: column 9 (requested): must be a number, got '2:00'",
    ),
    "nan": (f"{JOB}\n{JOB.replace('120', 'nan')}\n".encode(), "line 2: column 9 (requested): must be a finite number"),
    "underscore": (f"{JOB}\n{JOB.replace('120', '1_0')}\n".encode(), "line 2: column 9 (requested): must be a number"),
    "fraction": (
        f"{JOB}\n{JOB.replace('7', '7.5')}\n".encode(),
        "line 2: column 12 (user): must be a whole number, got '7.5'",
    ),
    "dash": (f"{JOB}\n- {JOB[2:]}\n".encode(), "line 2: column 1 (job): must be a number, got '-'"),
    "two jobs in a line": (f"{JOB} {JOB}\n\n".encode(), "line 1: not a log"),
}


@pytest.mark.parametrize(("content", "sentence"), WRONG_FILES.values(), ids=WRONG_FILES)
def test_a_wrong_file_gets_one_sentence(content, sentence, tmp_path):
    path = tmp_path / "log.swf"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_swf(path)
    assert str(caught.value).startswith(str(path))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(InputError, match=r"none\.swf: no such file"):
        read_swf(tmp_path / "none.swf")
    with pytest.raises(InputError, match="must be a file, got a folder"):
        read_swf(tmp_path)


def test_bad_lines_are_counted_where_that_is_asked_for():
    workload = read_swf(log(JOB, "1 2 3", "x " + JOB[2:], JOB), strict=False)
    assert len(workload) == 2
    assert workload.report.skipped == {"lines that are not 18 numbers": 2}


@pytest.mark.parametrize("rest", ["2 0 -1 10", "2 0 -", "2", JOB[:-1]])
def test_a_last_line_that_is_cut_off_is_counted(rest):
    workload = read_swf(io.StringIO(f"{JOB}\n{rest}"))
    assert len(workload) == 1
    assert workload.report.skipped == {"last line, cut off": 1}


def test_text_is_numbered_and_what_has_no_place_is_reported(tmp_path):
    workload = Workload(
        {
            "job": ["a", "b", "c"],
            "submit": [0, 1, 2.25],
            "run": [1, np.nan, 3],
            "processors": [1, 2, 3],
            "queue": ["long", "", "short"],
            "preceding": ["", "a", "x"],
            "used_memory": [np.nan, 1024.0, 512],
            "gpus_per_node": [0, 1, 1],
        },
        processors=4,
    )
    report = write_swf(workload, tmp_path / "x.swf")
    copy = read_swf(tmp_path / "x.swf")
    assert copy["job"].tolist() == [1, 2, 3]
    assert copy["submit"].tolist() == [0, 1, 2.25]
    assert copy["queue"].tolist() == [1, -1, 2]
    assert copy["preceding"].tolist() == [-1, 1, -1]
    assert copy["used_memory"].tolist()[1:] == [1024.0, 512.0]
    assert copy.header == {"MaxRecords": "3", "MaxProcs": "4", "Queue": "1 long\n2 short"}
    assert list(report.skipped) == ["column gpus_per_node: no place for it in SWF"]


def test_the_same_workload_gives_the_same_bytes(tmp_path):
    workload = read_swf(log(JOB))
    write_swf(workload, tmp_path / "a.swf.gz")
    write_swf(workload, tmp_path / "b.swf.gz")
    assert (tmp_path / "a.swf.gz").read_bytes() == (tmp_path / "b.swf.gz").read_bytes()


def test_a_part_of_a_log_does_not_promise_the_whole(tmp_path):
    workload = read_swf(log("; MaxRecords: 3", JOB, JOB, JOB)).where(slice(2))
    write_swf(workload, tmp_path / "part.swf")
    assert not read_swf(tmp_path / "part.swf").report


_NUMBER = st.one_of(
    st.integers(-(10**20), 10**20),
    st.integers(-120, 120),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([-1, 0, 99999999, 100000000, -99999999, 10**16 - 1, 10**16, 2**63 - 1, -(2**63)]),
)


@settings(max_examples=up_to(300), deadline=None)
@given(
    st.lists(st.tuples(_NUMBER, _NUMBER, _NUMBER), max_size=8),
    st.lists(st.sampled_from(["\n", "\n\n", " \n\t", "\r\n"]), min_size=9, max_size=9),
    st.booleans(),
)
def test_fast_numbers_are_python_s_numbers(rows, breaks, ends_with_break):
    text = "".join(
        " \t".join(map(repr, row)) + (breaks[at] if at < len(rows) - 1 or ends_with_break else "")
        for at, row in enumerate(rows)
    )
    found = read_columns_of_numbers(text.encode(), 3)
    assert found is not None
    for position, column in enumerate(found):
        numbers = [row[position] for row in rows]
        whole = all(isinstance(n, int) and abs(n) < 2**63 for n in numbers)
        assert column.dtype == (np.int64 if whole else np.float64)
        assert column.tolist() == (numbers if whole else [float(n) for n in numbers])


@settings(max_examples=up_to(300), deadline=None)
@given(st.lists(st.lists(st.integers(-5, 10**9), max_size=5), max_size=8))
def test_fast_numbers_see_every_line_of_another_length(rows):
    text = "\n".join(" ".join(map(str, row)) for row in rows)
    wrong = any(len(row) not in (0, 3) for row in rows)
    assert (read_columns_of_numbers(text.encode(), 3) is None) == wrong


@settings(max_examples=up_to(200), deadline=None)
@given(st.text(alphabet="0123456789-+.e_ax", min_size=1, max_size=20))
def test_fast_numbers_take_only_what_is_a_number(word):
    try:
        expected = float(word) if "_" not in word else None
    except ValueError:
        expected = None
    if expected is not None and not np.isfinite(expected):
        expected = None
    found = read_columns_of_numbers(word.encode(), 1)
    assert (found is None) == (expected is None)
    if found is not None:
        assert found[0].tolist() == [pytest.approx(expected, rel=0, abs=0)] or found[0][0] == int(word)


def test_blocks_are_cut_between_lines():
    rows = 120_000
    text = b"".join(b"%d %d\n" % (row, row * 1000003) for row in range(rows))
    one, two = read_columns_of_numbers(text, 2)
    assert one.tolist() == list(range(rows))
    assert two[-1] == (rows - 1) * 1000003
