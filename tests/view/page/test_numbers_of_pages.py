"""The numbers of pages of random runs of each kind are those of the results, distributions and rows included."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import pytest

from simmodel import Job, compare, simulate
from simmodel.metrics.report import metric_rows
from simmodel.metrics.workflow import machine_rows
from simmodel.platform import ClusterSpec, GridSpec, LinkSpec, NetworkSpec, NodeSpec, PartitionSpec, SiteSpec
from simmodel.records.steps import Steps
from simmodel.view.page.results import comparison_page
from tests.helpers.read_pages import Read, check_rows, page_of, read_page, same

POLICIES = ("fcfs", "easy", "sjf+easy", "conservative", "largest", "best-fit")
DISTRIBUTION = "waits of the jobs that ended: share that waited at most so long"


def drawn_jobs(rng: np.random.Generator, **more: Callable[[], Any]) -> list[Job]:
    """Return up to 40 jobs: some too wide, some of no length, many alike."""
    submit = np.cumsum(rng.choice([0, 0, 1, 5, 30], int(rng.integers(0, 40))))
    return [
        Job(
            id=f"job {at}" if rng.integers(2) else at,
            submit=float(at),
            processors=int(rng.choice([1, 1, 2, 3, 4, 12])),
            run=float(rng.choice([0, 1.5, 20, 20, 90])),
            requested=float(rng.choice([10, 20, 100])),
            **{name: value() for name, value in more.items()},
        )
        for at in submit.tolist()
    ]


def once_each(jobs: list[Job]) -> list[Job]:
    """Leave out jobs whose name another has."""
    return list({job.id: job for job in jobs}.values())


def cluster_run(rng: np.random.Generator) -> Any:
    """Simulate a cluster of processors, of nodes or of partitions, to its end or not."""
    kind = int(rng.integers(3))
    if kind == 2:
        parts = [PartitionSpec(name="a", processors=8), PartitionSpec(name="b", processors=4)]
        spec, jobs = ClusterSpec(partitions=parts), drawn_jobs(rng, partition=lambda: "ab"[int(rng.integers(2))])
    else:
        nodes = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(count=3, cores=2)])])
        spec, jobs = (ClusterSpec.simple(8), nodes)[kind], drawn_jobs(rng)
    until = {"until": float(rng.integers(1, 100))} if rng.integers(3) == 0 else {}
    return simulate(spec, once_each(jobs), str(rng.choice(POLICIES)), **until)


def grid_run(rng: np.random.Generator) -> Any:
    sites = [SiteSpec(name=name, hosts=[NodeSpec(count=2, cores=4)]) for name in "abc"]
    links = [LinkSpec(name="ab", bandwidth="1GBps", between=("a", "b"))]
    spec = GridSpec(sites=sites, network=NetworkSpec(links=links))
    return simulate(spec, once_each(drawn_jobs(rng)), str(rng.choice(["round-robin", "least-loaded"])))


def machine_run(rng: np.random.Generator) -> Any:
    machine = str(rng.choice(["hetsim-slow-setup", "hetsim-slow", "fpga-server", "xeon-2s"]))
    work = f"layered:n={rng.integers(1, 50)},fat={rng.choice([0.2, 0.5, 1.0])}"
    return simulate(machine, work, str(rng.choice(["heft", "hrr"])), seed=int(rng.integers(1000)))


def check_jobs(page: Read, result: Any) -> None:
    """Compare facts, rows, quantities and distribution of a page with those of its result."""
    assert page.head["facts"] == [list(each) for each in metric_rows(result.metrics())]
    assert len(page.head["tiles"]) == min(5, len(page.head["facts"]))
    names = {column["name"] for column in page.head["table"]["columns"]}
    check_rows(page, result.jobs, tuple(name for name in result.jobs.names if name not in names))
    for title, steps in (("busy processors", result.busy()), ("waiting jobs", result.queue_length())):
        line = page.panel(title)["lines"][0]
        shown = Steps(page.numbers(line["times"]), page.numbers(line["values"]), line["until"])
        assert shown.integral() == steps.integral()
    check_boxes(page, page.head["panels"], result)
    check_distribution(page, [result])


def check_boxes(page: Read, panels: list[dict[str, Any]], result: Any) -> None:
    """The rectangles of a schedule cover what the jobs held, none over another."""
    boxes = next(each for each in panels if each["type"] == "boxes")
    row, low, high = (page.numbers(boxes[name]).astype(int) for name in ("row", "low", "high"))
    place = np.zeros(len(row), dtype=int) if boxes["place"] is None else page.numbers(boxes["place"]).astype(int)
    ends = np.where(np.isnan(result.jobs["end"]), result.ended, result.jobs["end"])
    start = result.jobs["start"][row] if boxes["start"] is None else page.numbers(boxes["start"])
    end = ends[row] if boxes["end"] is None else page.numbers(boxes["end"])
    assert set(row.tolist()) == set(np.flatnonzero(np.isfinite(result.jobs["start"])).tolist())
    if boxes["axis"] == "processor":
        assert ((high - low) * (end - start)).sum() == pytest.approx(result.busy().integral())
        lanes = [
            (int(p), lane, a, b)
            for p, f, t, a, b in zip(place, low, high, start, end, strict=True)
            for lane in range(f, t)
        ]
        for _, taken in groupby(sorted(lanes), key=lambda each: each[:2]):
            spans = [(a, b) for *_, a, b in taken if b > a]
            assert all(before[1] <= after[0] for before, after in pairwise(spans))
    elif not len(row):
        assert boxes["empty"]


def check_distribution(page: Read, results: list[Any]) -> None:
    """The steps of the page are those of the plot."""
    from matplotlib.pyplot import close

    panel = page.panel(DISTRIBUTION)
    known = [result for result in results if result.counted.any()]
    assert bool(panel["curves"]) == bool(known)
    assert panel["empty"]
    for curve, result in zip(panel["curves"], known, strict=True):
        axes = result.plot.cdf()
        plotted = axes.lines[0].get_xydata()
        close(axes.figure)
        assert [curve["values"][0], *curve["values"]] == plotted[:, 0].tolist()
        assert [0.0, *curve["shares"]] == plotted[:, 1].tolist()
        waits = result.jobs["wait"][result.counted]
        for at, share in zip(curve["values"], curve["shares"], strict=True):
            assert share == (waits <= at).mean()


def check_machine(page: Read, result: Any) -> None:
    """Facts and rows are those of the result, rows of processors and rectangles those of the plot."""
    from matplotlib.pyplot import close

    assert page.head["facts"] == [list(each) for each in machine_rows(result)]
    names = {column["name"] for column in page.head["table"]["columns"]}
    check_rows(page, result.tasks, tuple(name for name in result.tasks.names if name not in names))
    boxes = next(each for each in page.head["panels"] if each["type"] == "boxes")
    axes = result.plot.gantt(labels=False)
    ticks = zip(axes.get_yticks().tolist(), (each.get_text() for each in axes.get_yticklabels()), strict=True)
    drawn = [path.vertices for path in axes.collections[0].get_paths()]
    close(axes.figure)
    middles = [((low + high) / 2, name) for low, high, name in boxes["labels"]]
    assert middles[:: max(1, len(middles) // 40)] == list(ticks)
    shown = [page.numbers(boxes[name]) for name in ("start", "end", "low", "high")]
    of_page = sorted((a, b, (f + t) / 2) for a, b, f, t in zip(*(each.tolist() for each in shown), strict=True))
    of_plot = sorted((v[:, 0].min(), v[:, 0].max(), (v[:, 1].min() + v[:, 1].max()) / 2) for v in drawn)
    assert np.allclose(np.array(of_page), np.array(of_plot))


def check_comparison(rng: np.random.Generator) -> None:
    jobs = once_each(drawn_jobs(rng)) or [Job(run=1)]
    chosen = [str(each) for each in rng.choice(POLICIES, 3, replace=False)]
    found = compare(8, jobs, chosen)
    page = read_page(comparison_page(found.results, "three", choice="policy", differences=found._apart).html())
    grid = page.panel("metrics")
    cells = {row[0]: row[1:] for row in grid["rows"]}
    for at, result in enumerate(found):
        assert {label: row[at] for label, row in cells.items() if row[at] and "difference" not in label} == dict(
            metric_rows(result.metrics())
        )
        assert same(page.column(f"wait under {result.name}"), result.jobs["wait"])
        apart = found.difference(result.name, chosen[0]) if at else None
        shown = cells["difference, mean wait"][at]
        assert shown == "baseline" if apart is None else shown.startswith("+") == (apart.mean > 0)
    boxes = page.panel("schedules of the runs")
    assert (boxes["choice"], [each["name"] for each in boxes["places"]]) == ("policy", chosen)
    check_distribution(page, found.results)


@pytest.mark.parametrize("kind", ["cluster", "grid", "machine", "comparison"])
@pytest.mark.parametrize(
    "runs", [8, pytest.param(60, marks=pytest.mark.long), pytest.param(300, marks=pytest.mark.exhaustive)]
)
def test_the_numbers_of_a_page_are_those_of_the_result(kind: str, runs: int) -> None:
    for seed in range(runs):
        rng = np.random.default_rng([seed, len(kind)])
        if kind == "comparison":
            check_comparison(rng)
        elif kind == "machine":
            result = machine_run(rng)
            check_machine(page_of(result), result)
        else:
            result = cluster_run(rng) if kind == "cluster" else grid_run(rng)
            check_jobs(page_of(result), result)
