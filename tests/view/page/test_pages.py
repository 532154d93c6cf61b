"""What a page says equals the result: rows, metrics, rectangles and quantities over time, read back from the file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from simmodel import Elastic, InputError, Job, Result, Workload, compare, simulate, start
from simmodel.metrics.bins import distribution
from simmodel.metrics.report import duration, metric_rows
from simmodel.metrics.workflow import machine_rows
from simmodel.platform import FileSpec, GridSpec, LinkSpec, NetworkSpec, NodeSpec, RouteSpec, SiteSpec
from simmodel.records import NetworkRecorder
from simmodel.records.steps import Steps
from simmodel.view.page.document import Page
from tests.helpers.read_pages import check_rows, page_of, read_page, same


def test_the_page_of_a_week_has_all_jobs_and_metrics() -> None:
    result = simulate(None, "lublin-128-week", "easy")
    page = page_of(result)
    check_rows(page, result.jobs, ("requested_processors", "recorded_run"))
    assert page.head["facts"] == [list(each) for each in metric_rows(result.metrics())]
    assert page.head["notes"] == result.report.lines()
    assert page.head["span"] == [result.started, result.ended]
    boxes = page.panel("executions by processor")
    assert boxes["start"] is None  # each lasts from the start to the end of its row
    held = (page.numbers(boxes["high"]).astype(int) - page.numbers(boxes["low"])) * result.jobs["run"][
        page.numbers(boxes["row"])
    ]
    assert held.sum() == pytest.approx(float(result.busy().integral()))
    assert (np.diff(result.jobs["start"][page.numbers(boxes["row"])]) >= 0).all()


def test_the_page_of_a_run_with_failures_and_a_running_job() -> None:
    from simmodel.platform import ClusterSpec, FailureModel, PartitionSpec

    spec = ClusterSpec(
        partitions=[PartitionSpec(name="a", processors=8), PartitionSpec(name="b", processors=4)],
        failures=[FailureModel(partition="a", mean_time_between_failures=900, mean_time_to_repair=50)],
    )
    jobs = [Job(submit=i * 7, processors=1 + i % 4, run=60, requested=90, partition="ab"[i % 2]) for i in range(200)]
    result = simulate(spec, jobs, "easy", until=900, seed=3)
    page = page_of(result)
    check_rows(page, result.jobs)
    assert not all(status == "completed" for status in page.column("status"))
    boxes = page.panel("executions by processor")
    assert [each["name"] for each in boxes["places"]] == ["a", "b"]
    assert (np.diff(page.numbers(boxes["place"]).astype(int)) >= 0).all()
    assert page.numbers(boxes["end"]).max() <= result.ended
    busy = page.panel("busy processors")["lines"][0]
    shown = Steps(page.numbers(busy["times"]), page.numbers(busy["values"]), busy["until"])
    assert shown.integral() == result.busy().integral()


def test_the_page_of_a_malleable_run_has_a_rectangle_for_each_size() -> None:
    jobs = [Job(id=f"job {i}", submit=5 * i, run=100, elastic=Elastic(1, 4, 8)) for i in range(6)]
    result = simulate(8, jobs, "equal-shares")
    page = page_of(result)
    check_rows(page, result.jobs)
    boxes = page.panel("executions by processor")
    tall = page.numbers(boxes["high"]).astype(int) - page.numbers(boxes["low"])
    wide = page.numbers(boxes["end"]) - page.numbers(boxes["start"])
    assert (tall * wide).sum() == pytest.approx(result.busy().integral())
    assert set(page.numbers(boxes["row"]).tolist()) == set(range(6))


def test_the_page_of_a_machine() -> None:
    result = simulate("hetsim-slow-setup", "layered:n=40,fat=0.5", "heft")
    page = page_of(result)
    check_rows(page, result.tasks)
    assert page.head["facts"] == [list(each) for each in machine_rows(result)]
    boxes = page.panel("tasks by processor (6 idle processors left out)")
    kinds = [each["label"] for each in boxes["kinds"]]
    executed = page.numbers(boxes["kind"]) == kinds.index("execution")
    wide = (page.numbers(boxes["end"]) - page.numbers(boxes["start"]))[executed]
    assert wide.sum() == pytest.approx((result.tasks["end"] - result.tasks["start"]).sum())
    used = {*result.tasks["processor"].tolist(), *result.cpu_phases["core"].tolist()}
    known = result.processors["processor"].tolist()
    assert [label for _, _, label in boxes["labels"]] == [name for name in known if name in used]
    moved = page.panel("transfers between memories")
    assert moved["row"]["count"] == len(result.transfers)


def test_the_page_of_a_machine_has_the_rows_of_its_plot() -> None:
    from matplotlib.pyplot import close

    result = simulate("fpga-server", "fork-join-dressed", "heft")
    page = page_of(result)
    boxes = page.panel("tasks by processor (63 idle processors left out)")
    axes = result.plot.gantt()
    plotted = {tick: name.get_text() for tick, name in zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)}
    close(axes.figure)
    assert {(low + high) / 2: name for low, high, name in boxes["labels"]} == plotted == {0.5: "core0", 1.5: "fpga"}
    assert boxes["rows"] == 2
    kinds = [each["label"] for each in boxes["kinds"]]
    where = {}
    for row, low, kind in zip(*(page.numbers(boxes[each]).tolist() for each in ("row", "low", "kind")), strict=True):
        if kinds[kind] == "execution":
            where[result.tasks["task"][row]] = boxes["labels"][low][2]
    assert where == dict(zip(result.tasks["task"].tolist(), result.tasks["processor"].tolist(), strict=True))


def test_the_distribution_of_waits_steps_as_its_plot_does() -> None:
    from matplotlib.pyplot import close

    jobs = [Job(id=number, run=90, processors=4 if number == 3 else 1) for number in range(4)]
    result = simulate(4, jobs, "fcfs")
    curve = page_of(result).panel("waits of the jobs that ended: share that waited at most so long")["curves"][0]
    assert (curve["values"], curve["shares"]) == ([0.0, 90.0], [0.75, 1.0])
    axes = result.plot.cdf()
    plotted = axes.lines[0].get_xydata().tolist()
    close(axes.figure)
    assert plotted == [[0.0, 0.0], [0.0, 0.75], [90.0, 1.0]]


@given(st.lists(st.sampled_from([0.0, 1.5, 2.0, 7.0, np.nan, np.inf]), max_size=12))
def test_each_share_of_a_distribution_is_counted(values: list[float]) -> None:
    known = [value for value in values if np.isfinite(value)]
    steps = list(zip(*(column.tolist() for column in distribution(np.array(values, dtype=float))), strict=True))
    assert steps == [(at, sum(value <= at for value in known) / len(known)) for at in sorted(set(known))]


def test_the_page_of_a_grid() -> None:
    result = simulate("tiers-30", "tiers-30-day", "least-loaded", until=20_000)
    page = page_of(result)
    check_rows(page, result.jobs)
    heat = page.panel("used share of the cores of each site")
    values = page.numbers(heat["values"]).reshape(len(heat["names"]), heat["bins"])
    for row in (0, 7, 29):
        mean = result.utilisation(heat["names"][row]).mean()
        assert values[row].mean() / 255 == pytest.approx(mean, abs=0.003)
    assert [each["name"] for each in page.panel("executions by node")["places"]] == heat["names"]


def test_the_map_of_a_grid_has_the_load_of_each_link_and_each_job_its_files_and_host() -> None:
    simulation = start("tiers-30", "tiers-30-day", "least-loaded", until=20_000)
    record = NetworkRecorder(simulation.system.data.network)
    simulation.env.observe(record)
    result = simulation.run().result()
    page = page_of(result, links=record)
    shown = page.panel("links by load, and sites by the used share of their cores")
    names = [place[0] for place in shown["places"]]
    assert names == result.places["place"].tolist()
    values = page.numbers(shown["values"]).reshape(len(shown["links"]), shown["bins"])
    table = {str(row["link"]): row for row in record.links().rows()}
    assert {link[0] for link in shown["links"]} == set(table)
    for (link, a, b, _, mean, peak), own in zip(shown["links"], values, strict=True):
        assert link == f"{names[a]}--{names[b]}" or link == f"{names[b]}--{names[a]}"
        assert mean == pytest.approx(table[link]["utilisation"])
        assert own.mean() / 255 == pytest.approx(mean, abs=0.003)
        assert peak >= mean
    at = {place[0]: np.array(place[1:3]) for place in shown["places"]}
    apart = {link[0]: np.linalg.norm(at[names[link[1]]] - at[names[link[2]]]) for link in shown["links"]}
    assert max(length for link, length in apart.items() if "--T2" in link) < 1.0  # near the site above, on any side
    details = page.head["details"]
    job, file, way = page.numbers(details["row"]), *(column["words"] for column in details["columns"][:2])
    assert set(way) >= {"written", "already there or on its way"}
    moved = page.numbers(details["columns"][4]["data"])
    came = np.array([each.startswith("from ") for each in way])[page.numbers(details["columns"][1]["data"])]
    for row in (5, 50, 500):
        assert moved[(job == row) & came].sum() == result.jobs["bytes_in"][row]
    assert f"o{result.jobs['job'][5]}" in file
    hosts = page.column("host")
    site = result.jobs["site"].tolist()
    assert all(host.startswith(place) for host, place in zip(hosts, site, strict=True) if host)
    assert sum(map(bool, hosts)) == np.isfinite(result.jobs["start"]).sum()


def test_links_of_a_routing_table_stand_on_the_map() -> None:
    links = [LinkSpec(name=f"l-{name}", bandwidth="1GBps") for name in "abc"]
    ways = [
        RouteSpec(source=a, destination=b, links=(f"l-{a}", f"l-{b}"), symmetrical=True) for a, b in ("ab", "ac", "bc")
    ]
    sites = [SiteSpec(name=name, hosts=[NodeSpec(count=1, cores=4)]) for name in "abc"]
    files = [FileSpec(name="f", size="1GB", sites=["a"])]
    spec = GridSpec(sites=sites, network=NetworkSpec(links=links, routes=ways), files=files)
    simulation = start(
        spec, [Job(id=1, run=10, inputs=("f",)), Job(id=2, submit=1, run=10, processors=4)], "round-robin"
    )
    record = NetworkRecorder(simulation.system.data.network)
    simulation.env.observe(record)
    result = simulation.run().result()
    shown = page_of(result, links=record).panel("links by load, and sites by the used share of their cores")
    assert [place[0] for place in shown["places"]] == ["a", "b", "c", ""]
    assert sorted((link[0], link[1], link[2]) for link in shown["links"]) == [
        ("l-a", 0, 3),
        ("l-b", 1, 3),
        ("l-c", 2, 3),
    ]
    assert page_of(result).panel("bytes between sites")["bins"] == 0


def test_the_page_of_a_comparison() -> None:
    found = compare(None, "probe-4", ["fcfs", "easy", "sjf+easy"])
    from simmodel.view.page.results import comparison_page

    page = read_page(comparison_page(found.results, "three").html())
    for result in found:
        assert same(page.column(f"wait under {result.name}"), result.jobs["wait"])
        rows = dict(metric_rows(result.metrics()))
        grid = page.panel("metrics")
        at = grid["columns"].index(result.name)
        assert {row[0]: row[at] for row in grid["rows"] if not row[0].startswith("difference")} == rows
    first, *others = found
    apart = grid["rows"][grid["first"] - 1]
    assert apart[:2] == ["difference, mean wait", "baseline"]
    for result, shown in zip(others, apart[2:], strict=True):
        more = float((result.jobs["wait"] - first.jobs["wait"]).mean())  # four jobs: too few for an interval
        sign = "" if more == 0 else "+" if more > 0 else "−"
        why = "all 4 observations are equal" if more == 0 else "worth 4 independent observations, 250 needed"
        assert shown == f"{sign}{duration(abs(more))} (no interval: {why})"
    measured = compare(None, "probe-4", ["fcfs", "easy"]).results[0].metrics()
    with pytest.raises(InputError, match="results=True"):
        comparison_page([measured], "measured")


def test_a_comparison_of_many_jobs_has_an_interval_of_the_difference() -> None:
    from simmodel.view.page.results import comparison_page

    jobs = Workload({"submit": np.arange(6000) * 100.0, "run": np.full(6000, 90.0), "processors": np.full(6000, 4)})
    rng = np.random.default_rng(1)
    first = simulate(4, jobs, "fcfs")

    def with_waits(wait: Any) -> Result:
        return Result(jobs=first.jobs.with_columns(wait=wait), name="other")

    def shown(some: Result, other: Result) -> str:
        grid = read_page(comparison_page([some, other], "two").html()).panel("metrics")
        return str(grid["rows"][grid["first"] - 1][2])

    late = with_waits(rng.exponential(60, 6000))
    assert re.fullmatch(r"\+(59|1 min).* ± [1-3](\.\d+)? s", shown(first, late))
    assert re.fullmatch(r"−(59|1 min).* ± [1-3](\.\d+)? s", shown(late, first))
    noise = with_waits(late.jobs["wait"] + rng.normal(0, 50, 6000) + 0.1)
    assert re.fullmatch(r"[+−]\S+ s ± [1-3](\.\d+)? s \(not decided\)", shown(late, noise))


def test_times_of_a_log_that_starts_late_are_explained() -> None:
    def origin(submit: float) -> str:
        found: str = page_of(simulate(4, [Job(id=1, submit=submit, run=5)], "fcfs")).head["origin"]
        return found

    assert origin(599_850).startswith("The page begins at 599,850 s of the log.")
    assert origin(0) == ""


def test_columns_without_a_value_are_left_out_and_bytes_are_named() -> None:
    missing = np.full(2, np.nan)
    columns: dict[str, Any] = {"submit": [0, 1], "run": [5, 5], "processors": [1, 1]}
    columns |= {"used_memory": [2048.0, np.nan], "requested_memory": missing}
    page = page_of(simulate(4, Workload(columns), "fcfs"))
    kinds = {column["name"]: column.get("kind") for column in page.head["table"]["columns"]}
    assert kinds["used_memory"] == "bytes"
    assert "requested_memory" not in kinds


def test_waits_that_are_asked_for_are_explained(tmp_path: Path) -> None:
    result = simulate(None, "probe-4", "fcfs")
    waited = int(result.jobs["job"][result.jobs["wait"] > 0][0])
    result.to_html(tmp_path / "run.html", explain=[waited, 1])
    page = read_page((tmp_path / "run.html").read_text("utf-8"))
    row = result.jobs["job"].tolist().index(waited)
    assert page.head["explained"][str(row)] == result.explain(waited).report()
    assert "does not wait" in page.head["explained"]["0"]
    with pytest.raises(InputError, match="99"):
        result.to_html(tmp_path / "none.html", explain=[99])
    assert not (tmp_path / "none.html").exists()


HOSTILE = [
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "\u202egnp.exe",
    "a\x00b\x1b[31m",
    "x" * 10_000,
    "\ud800",
    "&lt;b&gt;",
    "'; drop",
]


def test_hostile_names_are_data() -> None:
    jobs = [Job(id=name, run=5, user=name) for name in HOSTILE]
    result = simulate(4, jobs, "fcfs", name="</title><script>alert(2)</script>")
    text = result.page().html()
    assert "alert(" not in text.split("<style>")[0].replace("&lt;script&gt;alert(2)", "")
    assert text.count("<script") == 2
    assert text.count("</script>") == 2
    page = read_page(text)
    expected = [name.encode("utf-8", "replace").decode() for name in HOSTILE]
    assert page.column("job") == expected
    assert page.head["title"] == "</title><script>alert(2)</script>"


def test_nothing_is_loaded_from_anywhere() -> None:
    text = simulate(None, "probe-4", "fcfs").page().html()
    assert "default-src 'none'" in text
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text


numbers = st.floats(allow_infinity=True, allow_nan=True) | st.integers(-(2**40), 2**40)


@given(st.lists(numbers, max_size=20) | st.lists(st.integers(-(2**40), 2**40), max_size=20))
def test_numbers_come_back_exactly(values: list[float]) -> None:
    array = np.array(values, dtype=None if values else float)
    page = Page("numbers", "", 0, 1)
    page.table("rows", "row", [("row", "number", array)])
    read = np.array(read_page(page.html()).column("row"), dtype=np.float64)
    assert np.array_equal(read, array.astype(np.float64), equal_nan=True)


def test_long_quantities_are_averaged_and_say_so() -> None:
    steps = Steps(np.arange(50_000.0), np.arange(50_000) % 7, 50_000)
    page = Page("long", "", 0, 50_000)
    page.lines("many", ("steps", steps))
    read = read_page(page.html())
    line = read.panel("many")["lines"][0]
    assert "averages over 4,000 intervals" in line["label"]
    shown = Steps(read.numbers(line["times"]), read.numbers(line["values"]), line["until"])
    assert shown.mean() == pytest.approx(steps.mean(), rel=1e-6)


def test_notebooks_show_the_page_in_a_frame() -> None:
    import html

    page = simulate(None, "probe-4", "fcfs").page()
    shown = page._repr_html_()
    start, _, rest = shown.partition('srcdoc="')
    assert start.startswith("<iframe")
    assert html.unescape(rest.partition('"')[0]) == page.html()


def test_runs_without_jobs_have_a_page() -> None:
    page = page_of(simulate(4, [], "fcfs"))
    assert page.head["table"]["columns"][0]["data"]["count"] == 0


def test_streamed_results_say_where_their_page_is(tmp_path: Path) -> None:
    result = simulate(None, "probe-4", "fcfs", stream=tmp_path / "jobs.sqlite")
    with pytest.raises(InputError, match="load"):
        result.to_html(tmp_path / "run.html")
