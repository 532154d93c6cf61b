"""Real logs, start by start, against schedules that other simulators computed."""

import csv
import gzip

import pytest

from simmodel.formats.swf import read_swf
from tests.helpers.batch_runs import run
from tests.helpers.data_files import data_file

COLUMNS = {
    "start_easy": ("easy", "requested"),
    "start_easy_clairvoyant": ("easy", "exact"),
    "start_easy_sjbf_clairvoyant": ("easy-sjbf", "exact"),
}


@pytest.mark.parametrize(
    "log",
    [
        "KTH-SP2-1996-2",
        *(pytest.param(each, marks=pytest.mark.long) for each in ("SDSC-SP2-1998-4", "SDSC-BLUE-2000-4")),
    ],
)
def test_easy_as_pyss_schedules(log):
    workload = read_swf(data_file(f"swf/{log}-filtered.swf.gz"))
    with gzip.open(data_file(f"refsched/{log}-filtered.starts.csv.gz"), "rt") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["job"]) for row in rows] == workload["job"].tolist()
    for column, (policy, estimates) in COLUMNS.items():
        watch = run(workload, workload.processors, policy, exclusive=False, decide_on="event", estimates=estimates)
        differing = [row["job"] for row, start in zip(rows, watch.starts, strict=True) if float(row[column]) != start]
        assert not differing, f"{len(differing)} of {len(rows)} starts differ under {policy}, {estimates} estimates"


@pytest.mark.long  # smaller: the other tests of the file
def test_conservative_as_cqsim_schedules():
    workload = read_swf(data_file("swf/theta_1000.swf.gz"))
    with gzip.open(data_file("cqsim/theta_1000.rst.gz"), "rt") as file:
        rows = [line.split(";") for line in file.read().split()]
    # The result counts its seconds from the first submission.
    expected = {int(row[0]): float(row[7]) + workload["submit"][0] for row in rows}
    options = {"estimates": "cqsim", "decide_on": "event", "event_order": "ends-first"}
    watch = run(workload, workload.processors, "conservative", **options)
    assert len(expected) == 1000
    assert dict(zip(workload["job"].tolist(), watch.starts, strict=True)) == expected
