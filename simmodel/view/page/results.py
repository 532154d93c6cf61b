"""The pages of results: of jobs on clusters and grids, of tasks on machines, and of runs side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence, Set
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.foundation.display import counted
from simmodel.foundation.errors import InputError
from simmodel.metrics.batch import MACHINE_METRICS, METRICS, summary
from simmodel.metrics.comparison import wait_difference
from simmodel.metrics.devices import GpuUse
from simmodel.metrics.report import duration, metric_rows, metric_text
from simmodel.metrics.workflow import machine_rows
from simmodel.records.job_record import JobRecord, has_gpus
from simmodel.records.steps import Steps
from simmodel.records.task_record import MOMENTS, PHASES
from simmodel.view.gantt import pieces, processor_rows
from simmodel.view.grid_plots import busiest_links, site_positions
from simmodel.view.page.document import Column, Page
from simmodel.work.table import Words, rows_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from simmodel.metrics.statistics import Interval
    from simmodel.records.broker_record import GridRecord
    from simmodel.records.network_recorder import NetworkRecorder
    from simmodel.records.task_record import TaskRecord
    from simmodel.work.table import Table

__all__ = ["comparison_page", "expected_page", "grid_page", "job_page", "machine_page"]

_INSTANTS = ("submit", "start", "end", "eligible", "assigned", "queued", "executing", "finished")
_SECONDS = ("wait", "run", "requested", "turnaround", "lost", "checkpointing")
_BYTES = ("used_memory", "requested_memory", "bytes_in", "bytes_out")
_SUBMITTED = "the first submission"
_TILES = (
    *("jobs", "jobs never started"),
    *(METRICS[name][1] for name in ("wait_mean", "wait_p95", "bounded_slowdown_mean", "utilisation", "makespan")),
)
_MACHINE_TILES = (
    "tasks",
    *(MACHINE_METRICS[name][1] for name in ("makespan", "slr", "utilisation", "energy", "speedup")),
)
_PHASES = {"execution": "c0", "setup": "c1", "transfer": "c2", "reconfiguration": "c3"}
"""The colours of phases in the theme of a page; waits are hollow."""
_BESIDE = 3  # schedules of a comparison
_FLOWS = 40  # rows of the table of flows
_LINKS, _PAIRS = 2_000, 300  # lines of a map: links, or pairs of sites


_SINCE_NOW = "from now on"


def _kind(name: str, values: Any) -> str:
    """Return how a column is shown: text, instant, seconds, bytes or number."""
    if isinstance(values, Words) or np.asarray(values).dtype.kind not in "iufb":
        return "text"
    if name in _BYTES:
        return "bytes"
    return "instant" if name in _INSTANTS else "seconds" if name in _SECONDS else "number"


def _columns(table: Table, key: str) -> list[Column]:
    """Return the columns of a table, the key first, without those that repeat another or have no value."""
    said = [other for name, other in _SAID if name in table and other in table and _equal(table[name], table[other])]
    names = [key, *(name for name in table.names if name != key and name not in said)]
    columns = [(name, _kind(name, table[name]), table[name]) for name in names]
    return [each for each in columns if each[1] not in ("number", "bytes") or _has_values(each[2])]


def _has_values(values: Any) -> bool:
    array = np.asarray(values)
    return not len(array) or array.dtype.kind != "f" or not bool(np.isnan(array).all())


_SAID = (("processors", "requested_processors"), ("run", "recorded_run"))  # columns, and those that may repeat them


def _equal(some: Any, others: Any) -> bool:
    return np.array_equal(some, others, equal_nan=np.asarray(some).dtype.kind == "f")


def job_page(result: JobRecord, explained: Mapping[int, str] | None = None) -> Page:
    """Return the page of a run of jobs."""
    page = _begun(result)
    _schedule(page, result, result.held())
    if has_gpus(result):
        _gpus(page, GpuUse(result), result)
    _over_time(page, result)
    _distributions(page, ("wait", result))
    page.table("jobs", "job", _columns(result.jobs, "job"), explained)
    return page


def _gpus(page: Page, use: GpuUse, result: JobRecord) -> None:
    """Add who held the GPUs, a row each, if the record tells them apart, and how many were allocated by type."""
    for partition in filter(use.apart, use.tables):
        names, row, edges = use.strips(partition)
        job = np.append(rows_of(result.jobs["job"], result.runs["job"]), np.full(len(use.held), -1))  # claims follow
        end = np.where(np.isnan(use.held["end"]), result.ended, use.held["end"])
        page.boxes(
            "executions by GPU" + (f" of {partition}" if len(use.tables) > 1 else ""),
            job[row],
            edges[:, 0],
            edges[:, 1],
            len(names),
            span=(use.held["start"][row], end[row]),
            labels=[(number, number + 1, name) for number, name in enumerate(names)],
            others="a claim of a process",
            axis="GPU",
            empty="no GPU was ever held",
        )
    lines = [(kind or "allocated", use.allocated(kind)) for kind in use.types]
    page.lines("allocated GPUs", *lines, axis="GPUs", empty="no GPU was ever held", limit=use.in_service())


def expected_page(result: JobRecord, now: float, running_jobs: Set[int | str]) -> Page:
    """Return the page of a cluster at an instant: the simulated future of the jobs that run or wait then.

    Parameters
    ----------
    result
        the future
    now
        the instant (s)
    running_jobs
        the ids of the jobs that run then
    """
    start, end = result.jobs["start"], result.jobs["end"]
    running = np.array([job in running_jobs for job in result.jobs["job"].tolist()], dtype=bool)
    used = int(result.jobs["processors"][running].sum())
    busy = f"{used:,} of {result.processors:,}"
    facts = [
        ("running", f"{int(running.sum()):,}"),
        ("waiting", f"{int((~running).sum()):,}"),
        ("processors in use", busy),
    ]
    about = f"{int(running.sum()):,} running, {int((~running).sum()):,} waiting"
    head = f"{about}; waiting jobs are shown where a simulation starts them"
    begin = min(now, float(np.nanmin(start, initial=now)))
    facts += [(f"all end by, {_SINCE_NOW}", duration(float(np.nanmax(end, initial=now)) - now))]
    waits = start[~running] - now
    if np.isfinite(waits).any():
        facts.append((f"last start, {_SINCE_NOW}", duration(float(np.nanmax(waits)))))
    last = max(result.ended, float(np.nanmax(end, initial=now)))
    page = Page(result.name, head, begin, last, facts=facts, since="the first start of a job that runs", now=now)
    _schedule(page, result, result.held())
    page.lines("processors in use", ("expected", result.busy()), axis="processors", empty="no job runs or will")
    status = np.where(running, "running", "waiting")
    page.table("jobs", "job", _columns(result.jobs.with_columns(status=status), "job"))
    return page


def grid_page(
    result: GridRecord, explained: Mapping[int, str] | None = None, links: NetworkRecorder | None = None
) -> Page:
    """Return the page of a grid: all sites at once, each with its schedule, the load of links, and flows."""
    page = _begun(result)
    names = result.places["place"].tolist()
    held = result.held()
    rows_of_place = _by_place(held)
    page.heat("used share of the cores of each site", "site", _shares(result, names, held, rows_of_place))
    if links is not None:
        busiest = [(name, links.load(name).share_of(links.capacity(name))) for name in busiest_links(links, _FLOWS)]
        page.heat(f"load of the {counted(len(busiest), 'link')} with most bytes, of their bandwidth", "link", busiest)
    if len(names) > 1:
        _map(page, result, links)
    _schedule(page, result, held)
    _over_time(page, result)
    _distributions(page, ("wait", result))
    flows = result.flows
    if len(flows):
        order = np.argsort(-flows["bytes"], kind="stable")[:_FLOWS]
        rows = [
            [
                str(row["source"]),
                str(row["destination"]),
                f"{row['files']:,}",
                f"{row['bytes'] / 1e9:,.3f}",
                f"{row['failed']:,}",
            ]
            for row in flows.where(order).rows()
        ]
        title = f"transfers between sites: the {len(order)} pairs with most bytes of {len(flows)}"
        page.grid(title, ("from", "to", "files", "GB", "failed"), rows)
    columns = _columns(result.jobs, "job")
    if links is not None:
        hosts = [links.host(job) for job in result.jobs["job"].tolist()]
        columns += [("host", "text", hosts)] if any(hosts) else []
    page.table("jobs", "job", columns, explained)
    if links is not None and len(files := links.files()):
        kinds = ("text", "text", "instant", "instant", "number")
        shown = [(name, kind, files[name]) for name, kind in zip(files.names[1:], kinds, strict=True)]
        page.details("files", rows_of(result.jobs["job"], files["job"]), shown)
    return page


def _map(page: Page, result: GridRecord, record: NetworkRecorder | None) -> None:
    """Add the map of the sites: with the load of links if that was recorded, else with the bytes between sites."""
    names = result.places["place"].tolist()
    number = {str(name): at for at, name in enumerate(names)}
    parts: list[tuple[str, int, int, str, float, float]] = []
    loads: list[Steps] = []
    if record is not None:
        joined, table = record.joined(), record.links()
        order = np.argsort(-table["bytes"], kind="stable")
        for row in (row for row in table.where(order).rows() if row["link"] in joined and len(parts) < _LINKS):
            name = str(row["link"])
            a, b = (number.setdefault(end, len(number)) for end in joined[name])
            loads.append(record.load(name).share_of(record.capacity(name)))
            most = float(np.nan_to_num(loads[-1].max()))
            share = float(np.nan_to_num(row["utilisation"]))
            parts.append((name, a, b, f"{row['bytes'] / 1e9:,.3f} GB", share, most))
    else:
        flows = result.flows
        size = np.zeros((len(names), len(names)))
        for row in flows.rows():
            size[tuple(sorted((number[str(row["source"])], number[str(row["destination"])])))] += row["bytes"]
        pairs = [(a, b) for a, b in zip(*np.nonzero(size), strict=True) if a != b]
        for a, b in sorted(pairs, key=lambda pair: -size[pair])[:_PAIRS]:
            share = float(size[a, b] / size.max())
            parts.append((f"{names[a]} – {names[b]}", int(a), int(b), f"{size[a, b] / 1e9:,.3f} GB", share, share))
    both = np.zeros((len(number), len(number)))
    for _, a, b, _, share, _ in parts:
        both[a, b] = both[b, a] = max(both[a, b], 1e-9 + share)
    sites = range(len(names))
    at = np.zeros((len(number), 2))
    at[: len(names)] = site_positions(result, both[: len(names), : len(names)])
    for joint in range(len(names), len(number)):  # in the middle of its neighbours
        near = [place for place in sites if both[joint, place]]
        at[joint] = at[near].mean(axis=0) if near else 0.0
    at /= max(1.0, float(np.abs(at).max()))
    cores = [*result.places["processors"].tolist(), *([0] * (len(number) - len(names)))]
    hosts = [*result.places["nodes"].tolist(), *([0] * (len(number) - len(names)))]
    places = [(name, *at[i].round(4).tolist(), int(cores[i]), int(hosts[i])) for name, i in number.items()]
    title = "links by load, and sites by the used share of their cores" if loads else "bytes between sites"
    page.map(title, places, parts, loads)


def machine_page(result: TaskRecord, explained: Mapping[int, str] | None = None) -> Page:
    """Return the page of a run of tasks on a machine: phases by processor, transfers, memory."""
    unit = result.time_unit
    head = f"{counted(len(result.tasks), 'task')} on {result.spec.name}, {counted(len(result.processors), 'processor')}"
    page = Page(
        result.name,
        head,
        result.started,
        result.ended,
        unit=unit,
        facts=machine_rows(result),
        tiles=_MACHINE_TILES,
        notes=result.report.lines(),
        scenario=result.scenario,
    )
    names, edges, (boxes, phase, task), left_out = processor_rows(result)
    kinds = [(name, _PHASES.get(name, "")) for name in PHASES]
    page.boxes(
        f"tasks by processor ({left_out})" if left_out else "tasks by processor",
        task,
        np.rint(boxes.low).astype(np.int64),
        np.rint(boxes.high).astype(np.int64),
        int(edges[-1]),
        span=(boxes.start, boxes.end),
        labels=list(zip(edges[:-1].tolist(), edges[1:].tolist(), names, strict=True)),
        kinds=[*kinds, ("core works for others", "c4")],
        kind=phase,
        others="work for others, or a stopped execution",
        axis="processor",
        empty=_none_ran(result.tasks, "task"),
    )
    _transfers(page, result)
    busy = result.busy()
    page.lines("busy processors", ("busy", busy), axis="processors", empty="no processor was ever busy")
    for pool, steps in result.memory.items():
        if len(steps.times):
            used = ("used", steps.scaled(1e-9))
            page.lines(f"memory used in {pool}", used, axis="GB", empty=f"{pool} was never used")
    columns = [
        (name, "instant" if kind == "number" and name in (*MOMENTS, "assigned") else kind, values)
        for name, kind, values in _columns(result.tasks, "task")
    ]
    page.table("tasks", "task", columns, explained)
    return page


def _transfers(page: Page, result: TaskRecord) -> None:
    """Add the transfers between pools: a row a pair of pools, packed where they overlap."""
    moved = result.transfers
    if not len(moved):
        return
    from simmodel.metrics.packing import pack

    pairs = [f"{a} → {b}" for a, b in zip(moved["source"].tolist(), moved["destination"].tolist(), strict=True)]
    start = moved["start"].astype(np.float64)
    end = np.where(np.isnan(moved["end"].astype(np.float64)), result.ended, moved["end"].astype(np.float64))
    labels, parts, below = [], [], 0
    for pair in dict.fromkeys(pairs):
        rows = np.flatnonzero(np.array(pairs) == pair)
        packed = pack(start[rows], end[rows], np.ones(len(rows)))
        tall = int(packed["high"].max(initial=1))
        labels.append((below, below + tall, pair))
        parts.append(np.column_stack([rows[packed["index"]], packed["low"] + below, packed["high"] + below]))
        below += tall
    which, low, high = np.concatenate(parts).T
    known = {str(name): row for row, name in enumerate(result.tasks["task"].tolist())}
    task = np.array([known.get(str(name), -1) for name in moved["task"].tolist()])[which]
    page.boxes(
        "transfers between memories",
        task,
        low,
        high,
        below,
        span=(start[which], end[which]),
        labels=labels,
        kinds=[("transfer", _PHASES["transfer"])],
        kind=np.zeros(len(which), dtype=np.uint8),
        others="a transfer of no task",
        axis="from → to",
    )


def _begun(result: JobRecord) -> Page:
    """Return a page with the headings, metrics and notes of a run of jobs."""
    head = f"{counted(len(result.jobs), 'job')} on {counted(result.processors, 'processor')}"
    facts = metric_rows(summary(result))
    return Page(
        result.name,
        head,
        result.started,
        result.ended,
        facts=facts,
        tiles=_TILES,
        since=_SUBMITTED,
        notes=result.report.lines(),
        scenario=result.scenario,
    )


def _none_ran(table: Table, one: str) -> str:
    """Return why there is no execution: what became of the work, and the reasons."""
    if not len(table):
        return f"there is no {one}"
    states = Counter(table["status"].tolist())
    count = len(table)
    if len(states) > 1:
        text = f"no {one} ran: {', '.join(f'{n:,} {state}' for state, n in states.items())}"
    else:
        text = f"all {count:,} {one}s were {next(iter(states))}" if count > 1 else f"the {one} was {next(iter(states))}"
    reasons = Counter(each for each in table["reason"].tolist() if each) if "reason" in table else Counter()
    told = (reason if n == count else f"{reason} ({n:,})" for reason, n in reasons.items())
    return text + (f": {', '.join(told)}" if reasons else "")


def _schedules(
    page: Page,
    title: str,
    results: Sequence[JobRecord],
    holders: Sequence[Table],
    rows: Sequence[NDArray[np.int64]],
    waits: Sequence[str],
    choice: str = "place",
) -> None:
    """Add the executions and claims of each place of each run, to choose from.

    Parameters
    ----------
    results, holders
        the runs, and what held capacity in each
    rows, waits
        for each run, the rows of its jobs in the table of the page, and the column of their waits ("": ``wait``)
    choice
        what the runs, or the places of one run, are called
    """
    parts, spans = [], []
    places: list[tuple[str, int, str, int]] = []
    for run, (result, held, row_of, wait) in enumerate(zip(results, holders, rows, waits, strict=True)):
        by_place = _by_place(held)
        for place in result.places["place"].tolist():
            row, span, height = _held(result, place, held, by_place)
            row[:, 0] = np.where(row[:, 0] < 0, -1, row_of[row[:, 0]])
            parts.append(np.column_stack([row, np.full(len(row), len(places))]))
            spans.append(span)
            of_run = [] if len(results) == 1 else [result.name]
            names = [*of_run, *([] if of_run and len(result.places) == 1 else [place])]
            places.append((": ".join(names), height, wait, run))
    row, low, high, place = np.concatenate(parts).T if parts else np.zeros((4, 0), dtype=np.int64)
    start, end = np.concatenate(spans).T if spans else np.zeros((2, 0))
    several = len(places) > 1
    nodes = any(result.places["nodes"].any() for result in results)
    page.boxes(
        title,
        row,
        low,
        high,
        max((each[1] for each in places), default=1),
        span=(start, end),
        in_table=len(results) == 1 and _as_in_table(results[0], row, start, end),
        places=places if several else None,
        choice=choice,
        beside=min(len(results), _BESIDE),
        place=place if several else None,
        others="a claim of a process",
        axis="node" if nodes else "processor",
        empty=_none_ran(results[0].jobs, "job"),
    )


def _schedule(page: Page, result: JobRecord, held: Table) -> None:
    """Add the executions and claims of a run."""
    title = "executions by node" if result.places["nodes"].any() else "executions by processor"
    _schedules(page, title, [result], [held], [np.arange(len(result.jobs))], [""])


def _by_place(held: Table) -> dict[str, NDArray[np.int64]]:
    """Return the rows of what held capacity, by place: executions, then claims."""
    place = Words.of(held["place"])
    order = np.argsort(place.codes, kind="stable")
    bounds = np.searchsorted(place.codes[order], np.arange(len(place.words) + 1))
    return {name: order[bounds[i] : bounds[i + 1]] for i, name in enumerate(place.words)}


def _shares(
    result: JobRecord, names: Sequence[str], held: Table, rows_of_place: Mapping[str, NDArray[np.int64]]
) -> list[tuple[str, Steps]]:
    """Return the used share of the cores of each place over time, in one pass over the executions."""
    start, end = held["start"], np.where(np.isnan(held["end"]), result.ended, held["end"])
    amount = held["processors"].astype(np.float64)
    found = []
    for name in names:
        rows = rows_of_place.get(name, np.array([], dtype=np.int64))
        times, changes = np.append(start[rows], end[rows]), np.append(amount[rows], -amount[rows])
        busy = Steps.from_changes(times, changes, result.started, result.ended)
        found.append((name, busy.share_of(result.capacity(name))))
    return found


def _held(
    result: JobRecord, place: str, everything: Table, rows_of_place: Mapping[str, NDArray[np.int64]]
) -> tuple[NDArray[np.int64], NDArray[np.float64], int]:
    """Return the rectangles of a place: (row of the job or -1, lowest, highest) and (start, end) of each; the rows."""
    here = rows_of_place.get(place, np.array([], dtype=np.int64))
    held, which, rows = pieces(result, place, everything.where(here))
    jobs = int((here < len(result.runs)).sum())  # the claims follow
    job = np.full(len(held), -1)
    job[:jobs] = rows_of(result.jobs["job"], held["holder"][:jobs])
    end = np.where(np.isnan(held["end"]), result.ended, held["end"])
    number = result.places["place"].tolist().index(place)
    size = max(int(result.places["nodes"][number]) or int(result.places["processors"][number]), 1)
    spans = np.column_stack([held["start"], end])[which]
    return np.column_stack([job[which], rows]), spans, max(size, int(rows[:, 1].max(initial=1)))


def _as_in_table(result: JobRecord, row: NDArray[np.int64], start: Any, end: Any) -> bool:
    """Whether each rectangle lasts from the start to the end of its job."""
    if not len(row) or int(row.min()) < 0:
        return False
    ends = np.where(np.isnan(result.jobs["end"]), result.ended, result.jobs["end"])
    return np.array_equal(result.jobs["start"][row], start) and np.array_equal(ends[row], end)


def _over_time(page: Page, result: JobRecord) -> None:
    _quantities(page, [("busy", result.busy())], [("waiting", result.queue_length())], result.capacity())
    if "idle_power" in result.places and float(result.places["load_power"].max()) > 0:
        from simmodel.view.result_plots import power_layers

        page.layers("power", power_layers(result), axis="kW")


def _quantities(
    page: Page, busy: Sequence[tuple[str, Steps]], waiting: Sequence[tuple[str, Steps]], limit: Steps | None = None
) -> None:
    page.lines("busy processors", *busy, axis="processors", empty="no processor was ever busy", limit=limit)
    page.lines("waiting jobs", *waiting, axis="jobs", empty="no job ever waited")


def _distributions(page: Page, *labelled: tuple[str, JobRecord]) -> None:
    title = "waits of the jobs that ended: share that waited at most so long"
    waits = [(label, result.jobs.where(result.counted)["wait"]) for label, result in labelled]
    page.curve(title, "seconds", *waits, axis="wait", empty="no job ended, so that there is no wait to show")


def comparison_page(
    results: Sequence[Any],
    name: str,
    *,
    choice: str = "run",
    differences: Callable[[], Sequence[tuple[str, Sequence[Interval | None]]]] | None = None,
    notes: Sequence[str] = (),
) -> Page:
    """Return the page of several runs: metrics beside each other, quantities and waits on one axis, a schedule each.

    Parameters
    ----------
    results, name
        the runs; the heading
    choice
        what tells the runs apart, such as the policy
    differences
        returns metrics, each with its difference for each run; default: of the mean waits, from the first run
    notes
        sentences

    Raises
    ------
    InputError
        only the metrics of the runs are here, or they are no runs of jobs
    """
    if not results or not all(isinstance(each, JobRecord) for each in results):
        raise InputError("needs the records of runs of jobs: compare them with results=True", place="to_html")
    told = dict.fromkeys([*notes, *(line for each in results for line in each.report.lines())])
    begin, end = min(each.started for each in results), max(each.ended for each in results)
    page = Page(name, counted(len(results), "run"), begin, end, since=_SUBMITTED, notes=told, scenario={})
    rows = [dict(metric_rows(summary(each))) for each in results]
    labels = dict.fromkeys(label for row in rows for label in row)
    apart: Sequence[tuple[str, Sequence[Interval | None]]]
    if differences is None:
        apart = [("wait_mean", [None, *(wait_difference(each, results[0]) for each in results[1:])])]
    else:
        apart = differences()
    first = [label for label in _TILES if label in labels][:_FIRST]
    cells = [[label, *(row.get(label, "") for row in rows)] for label in first]
    cells += [
        [f"difference, {METRICS[metric][1]}", *(_more(metric, each) for each in found)] for metric, found in apart
    ]
    shown = len(cells)
    cells += [[label, *(row.get(label, "") for row in rows)] for label in labels if label not in first]
    page.grid("metrics", ("metric", *(each.name for each in results)), cells, shown)
    jobs = list(dict.fromkeys(job for each in results for job in each.jobs["job"].tolist()))
    row_of = {job: row for row, job in enumerate(jobs)}
    rows_of_run = [np.array([row_of[job] for job in each.jobs["job"].tolist()], dtype=np.int64) for each in results]
    waits: list[Column] = []
    for each, own in zip(results, rows_of_run, strict=True):
        wait = np.full(len(jobs), np.nan)
        wait[own] = each.jobs["wait"]
        waits.append((f"wait under {each.name}", "seconds", wait))
    _schedules(
        page,
        "schedules of the runs",
        results,
        [each.held() for each in results],
        rows_of_run,
        [name for name, *_ in waits],
        choice,
    )
    _quantities(
        page, [(each.name, each.busy()) for each in results], [(each.name, each.queue_length()) for each in results]
    )
    _distributions(page, *((each.name, each) for each in results))
    about: list[Column] = [("job", "text", [str(job) for job in jobs])]
    if len(results[0].jobs) == len(jobs):
        about = [each for each in _columns(results[0].jobs, "job") if each[0] in _ABOUT]
    page.table("jobs", "job", [*about, *waits])
    return page


def _more(metric: str, more: Interval | None) -> str:
    """Return a difference with its sign, and its interval or why there is none; "": it is the baseline."""
    if more is None:
        return "baseline"
    if not more.count:
        return ""
    text = ("+" if more.mean > 0 else "−" if more.mean < 0 else "") + metric_text(metric, abs(more.mean))
    if more.why:
        return f"{text} (no interval: {more.why})"
    return f"{text} ± {metric_text(metric, more.half_width)}{' (not decided)' if 0 in more else ''}"


_FIRST = 5  # metrics of a comparison that are shown at once
_ABOUT = ("job", "submit", "processors", "requested", "user")
