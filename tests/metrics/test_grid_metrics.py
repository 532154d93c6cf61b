"""Metrics of grids by hand: per site, and errors against recorded times."""

import math
from typing import Any

import numpy as np
import pytest

from simmodel import Environment, Job, simulate
from simmodel.foundation.errors import InputError
from simmodel.metrics.grid import by_site, geometric_mean_error, recorded_errors, site_lines
from simmodel.platform import FileSpec, GridSpec, LinkSpec, NetworkSpec, SiteOutageSpec, SiteSpec, StorageSpec
from simmodel.systems.grid.system import Grid
from simmodel.work import File, Workload
from simmodel.work.table import Table

DISK = StorageSpec(read_bandwidth=10, write_bandwidth=5)


def two_sites(**options):
    wan = NetworkSpec(links=[LinkSpec(name="wan", bandwidth=2, between=("a", "b"))])
    sites = [SiteSpec(name="a", cores=4, storage=DISK), SiteSpec(name="b", cores=2, storage=DISK)]
    return GridSpec(sites=sites, network=wan, files=[FileSpec(name="f", size=20, sites=["a"])], **options)


def test_metrics_by_site_are_as_by_hand():
    grid = Grid(Environment(), two_sites(), "siloed")
    grid.submit(Job(processors=2, run=10, inputs=["f"], outputs=[File("o", 10)]), home="b")
    grid.submit(Job(processors=2, run=6), home="b")
    grid.submit(Job(processors=4, run=10), home="a")
    grid.env.run()
    a, b, everything = by_site(grid.result()).rows()
    # b: the second job runs from 0 to 6; the file comes at 10, is read until 12, the job ends at 22, and with
    # it the time that utilisation is over; its output is there at 24
    assert (b["jobs"], b["finished"], b["failed"], b["attempts"]) == (2, 2, 0, 2)
    assert (b["queue_time"], b["walltime"]) == (5, 9)
    assert b["cpu_efficiency"] == pytest.approx((10 + 6) / (12 + 6))
    assert b["utilisation"] == pytest.approx((12 + 6) * 2 / (2 * 22))
    assert (b["bytes_in"], b["bytes_out"]) == (20, 10)
    assert (a["queue_time"], a["walltime"], a["cpu_efficiency"], a["bytes_in"]) == (0, 10, 1, 0)
    assert a["utilisation"] == pytest.approx(10 / 22)
    assert everything["site"] == "all"
    assert (everything["cores"], everything["finished"]) == (6, 3)
    assert everything["utilisation"] == pytest.approx((36 + 40) / (6 * 22))
    assert everything["throughput"] == pytest.approx(3 / 22 * 86400)


def test_a_site_without_jobs_has_no_means():
    row = next(by_site(simulate(two_sites(), [Job(run=5, site="b")], "siloed")).rows())
    assert (row["jobs"], row["utilisation"], row["throughput"]) == (0, 0, 0)
    assert all(math.isnan(row[name]) for name in ("queue_time", "walltime", "cpu_efficiency"))


def test_flows_count_what_arrives_and_what_fails():
    grid = Grid(Environment(), two_sites(outages=[SiteOutageSpec(site="a", at=4, until=6)], retries=3), "siloed")
    grid.submit(Job(processors=2, run=10, inputs=["f"]), home="b")
    grid.env.run()
    assert list(grid.result().flows.rows()) == [
        {"source": "a", "destination": "b", "files": 1, "bytes": 20.0, "failed": 1}
    ]
    assert len(simulate(two_sites(), [Job(run=5)], "round-robin").flows) == 0


def recorded(**columns):
    log = {"submit": [0, 0, 0, 0], "run": [10, 20, 30, 40], "processors": [1, 1, 2, 1], "site": ["a", "a", "a", "b"]}
    return simulate(two_sites(), Workload(log | columns), "recorded")


def test_errors_are_mean_differences_over_the_mean_recorded():
    nan = math.nan
    result = recorded(recorded_start=[5, 0, 10, nan], recorded_end=[20, 16, 40, nan])
    single, several = recorded_errors(result).rows()
    # a has 4 cores: all start at 0; walls 10, 20 for 15, 16 recorded, and waits 0, 0 for 5, 0
    assert (single["site"], single["class"], single["jobs"]) == ("a", "single", 2)
    assert single["walltime"] == pytest.approx((5 + 4) / (15 + 16))
    assert single["queue_time"] == pytest.approx(1)
    assert (several["class"], several["jobs"], several["walltime"], several["queue_time"]) == ("multi", 1, 0, 1)
    # an error of zero has no logarithm: it is left out
    assert geometric_mean_error(result.errors) == pytest.approx(9 / 31)


def test_errors_need_recorded_times():
    with pytest.raises(InputError, match="must have jobs with recorded_start and recorded_end, got none"):
        recorded_errors(recorded())


def test_a_summary_says_how_many_sites_it_leaves_out_and_where_nothing_waited() -> None:
    columns: dict[str, list[Any]] = {"site": [f"s{i:02d}" for i in range(14)] + ["all"], "cores": [8] * 15}
    columns |= {
        "jobs": [14 - i for i in range(14)] + [105],
        "failed": [0] * 15,
        "utilisation": [0.5, math.nan] * 7 + [0.5],
    }
    columns |= {"queue_time": [90.0, math.nan] * 7 + [90.0], "bytes_in": [0.0] * 15, "bytes_out": [2e9] * 15}
    lines = site_lines(Table({name: np.array(values) for name, values in columns.items()}), {"finished": 105})
    assert len(lines) == 2 + 12 + 1 + 1
    assert lines[2].split() == ["s00", "8", "14", "0", "1", "min", "30", "s", "50.0%", "0B", "2GB"]
    assert lines[3].split()[4:6] == ["-", "-"]
    assert lines[-2].split()[0] == "all"
    assert lines[-1] == "  and 2 more sites"
