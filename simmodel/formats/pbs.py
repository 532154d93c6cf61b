"""Accounting logs of PBS Professional, OpenPBS and Torque.

Source: the accounting log chapter of the PBS Professional Administrator's Guide (Altair), and of the Torque guide.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from simmodel.formats.tables import columns_of, duration, memory, passed_over, repeated, taken, whole, zone
from simmodel.foundation.errors import InputError, shown
from simmodel.foundation.loading import Source, current_reading, read_lines, reader, source_name, title_of
from simmodel.work.node_chunks import MOST_CHUNKS, Chunk, chunk_text, spread
from simmodel.work.outcomes import STATUS_OF
from simmodel.work.workload import Report, Workload

__all__ = ["read_pbs"]

_LINE = re.compile(r"(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d);(\w+);([^;]*);?(.*)")
_WORD = re.compile(r'([\w.\-@]+)=("[^"]*"|\S*)|(\S+)')
_KINDS = frozenset("QSEDAR")
_OVERHEAD = 60.0
"""Seconds that a job may be on its nodes beside its run time, for prologue and epilogue."""
_RESOURCES: Mapping[str, str] = {
    "read": """
        ncpus select nodes nodect walltime mem ngpus gpus mppwidth mppnppn mppdepth size procs place naccesspolicy""",
    "harmless": """
        accelerator cput file max_walltime min_walltime mpiprocs neednodes nice ompthreads pcput preempt_targets
        soft_walltime""",
}
"""The resources of ``Resource_List``: those that are read, and those that limit a job while it runs, or say what others
say, too."""
_KNOWN = frozenset(" ".join(_RESOURCES.values()).split())
_CHANGES = {
    **dict.fromkeys(("vmem", "pmem", "pvmem", "mppmem"), "limits of memory other than mem are not simulated"),
    **dict.fromkeys(("arch", "opsys", "vntype", "mpparch", "mpplabels"), "any nodes of the platform will do"),
    **dict.fromkeys(("host", "vnode", "hostlist", "mppnodes", "mpphost"), "any nodes of the platform will do"),
    "software": "licences that jobs hold are not simulated",
}
"""Other resources, and why a simulation without them may differ."""
_ALWAYS = ("job", "submit", "wait", "run", "processors", "requested", "status")


@attrs.define
class _Life:
    """The records of one job, merged; later records override earlier ones.

    ``stamps``: by kind of record, the number of its line and its instant, as :class:`_Clock` has it.
    """

    words: dict[str, str] = attrs.field(factory=dict)
    stamps: dict[str, tuple[int, float]] = attrs.field(factory=dict)


class _Clock:
    """The clock times at the beginning of lines, in a zone or, without one, by records that also have Unix seconds.

    A clock that is set back shows an hour twice: lines are in the order of their instants.
    """

    def __init__(self, local: tzinfo | None) -> None:
        self.local = local
        self._lines = 0
        self._last = -math.inf
        self._at: list[int] = []  # lines with both, what the clock shows there, and how far it is ahead
        self._known: list[tuple[float, float]] = []

    def stamp(self, when: datetime, unix: str) -> tuple[int, float]:
        """Return the number of the next line, and its instant; ``unix``: the same instant in Unix seconds, if known."""
        self._lines += 1
        if self.local is None:
            shown_as = when.replace(tzinfo=UTC).timestamp()
            if unix.isdigit():
                self._at.append(self._lines)
                self._known.append((shown_as, round((shown_as - int(unix)) / 900) * 900.0))
            return self._lines, shown_as
        meant = repeated(when, self.local)
        if unix.isdigit():
            self._last = min(meant, key=lambda at: abs(at - int(unix)))
        else:
            self._last = next((at for at in meant if at >= self._last), meant[-1])
        return self._lines, self._last

    def instant(self, line: int, stamp: float) -> float:
        """Return the instant of a stamp, once all lines are read."""
        if not self._at:
            return stamp
        after = bisect_left(self._at, line)
        _, ahead = min(self._known[max(after - 1, 0) : after + 1], key=lambda known: abs(known[0] - stamp))
        return stamp - ahead


@reader
def read_pbs(source: Source, *, strict: bool | None = None, timezone: str | None = None) -> Workload:
    """Read the jobs of PBS accounting logs: ``05/01/2024 12:00:00;E;17.server;user=ann group=physics ...``.

    Each job is assembled from its records: Q queued, S started, R run again, E ended, D deleted, A aborted; other kinds
    are skipped and counted in the report. ``submit`` is ``ctime`` (else ``qtime``, else the instant of Q); ``run`` is
    from ``start`` to ``end``, or ``resources_used.walltime`` if that is shorter by more than a minute, or alone within
    the limit: the job was suspended. ``requested`` is ``Resource_List.walltime``; a job that started without one may
    run for ever, so that it is infinite. A job without an E record has no run time; a job deleted while it waited has a
    ``cancel`` time. ``outcome`` follows from ``Exit_status``: 0 is completed, 271 (killed by a signal) a timeout after
    the requested time, else cancelled, as is a deleted job; -29 and -28 are a timeout, -27 and -26 out of memory, other
    numbers below 0 a node failure, the rest is failed. ``status`` is 1, 5 or 0 for completed, cancelled and all others.

    The processors are those of ``Resource_List.ncpus``, ``select``, ``nodes`` or ``procs``, else those of
    ``exec_host``, else ``nodect``; on a Cray, those of ``mppwidth``, ``mppnppn`` and ``mppdepth``, or ``size``, since
    its ``exec_host`` is the login node. If ``exec_host`` has as many, its hosts are the nodes of the job. Nodes that do
    not have the same are in the column ``chunks``; ``exclusive`` is 1 with ``place=excl`` or ``exclhost``, and on a
    Cray. The report names other resources that may change the result.

    Parameters
    ----------
    source
        a path (also of a gzip file), an open file, or a folder of daily logs, read in the order of their names
    strict
        reject a bad line; ``False``: skip it and count it in ``report.skipped``; ``None``: as
        :func:`~simmodel.foundation.loading.reading` says
    timezone
        the zone of the clock times at the beginning of lines, such as ``"Europe/Paris"``; by default derived from
        records that have both a clock time and Unix seconds

    Raises
    ------
    InputError
        the file cannot be read, has no jobs, or has a bad line (the message has its number)

    >>> import io
    >>> log = read_pbs(io.StringIO(
    ...     "05/01/2024 13:00:30;E;17.server;user=ann group=physics queue=work ctime=1714564800 start=1714564830 "
    ...     "end=1714568430 Resource_List.ncpus=64 Resource_List.walltime=24:00:00 Exit_status=0"))
    >>> log["job"], log["wait"], log["run"], log["requested"], log["processors"]
    (array([17]), array([30.]), array([3600.]), array([86400.]), array([64]))
    """
    report = Report()
    lives: dict[str, _Life] = {}
    local = zone(timezone) if timezone or current_reading().timezone else None
    clock = _Clock(local)
    sources, title = _sources(source)
    for part in sources:
        lines, name = read_lines(part)
        for _ in taken(lines, partial(_take, lives, clock, report), name, report, strict=strict):
            pass
    parents = {re.sub(r"\[\d+\]", "[]", job) for job in lives if re.search(r"\[\d+\]", job)}

    def take(job: str) -> dict[str, Any] | None:
        row = None if job in parents else _job(job, lives[job], clock, report)
        if row is not None and not math.isnan(row["submit"]):
            ignored.update(name for name in map(_resource, lives[job].words) if name)
            return row
        report.skipped["jobs without an instant of submission" if row else "arrays, read as their jobs"] += 1
        return None

    ignored = Counter[str]()
    jobs = ((job, job) for job in lives)
    rows = list(taken(jobs, take, title, report, strict=strict, place="job", skipped="jobs with a bad value"))
    if not rows:
        raise InputError("no jobs: must have records such as '05/01/2024 12:00:00;E;17.server;user=...'", source=title)
    passed_over(report, ignored, _CHANGES, "resource")
    return Workload(columns_of(_in_order(rows), _ALWAYS), name=title_of(title), report=report)


def _sources(source: Source) -> tuple[list[Source], str]:
    if isinstance(source, str | Path) and Path(source).is_dir():
        return [path for path in sorted(Path(source).iterdir()) if path.is_file()], str(source)
    return [source], source_name(source)


def _take(lives: dict[str, _Life], clock: _Clock, report: Report, line: str) -> None:
    """Merge the record in one line into its job."""
    line = line.strip()
    if not line:
        return
    found = _LINE.fullmatch(line)
    if not found:
        raise InputError(f"must be 'MM/DD/YYYY HH:MM:SS;kind;job;key=value ...', got {shown(line[:60])}")
    began, kind, job, text = found.groups()
    if kind not in _KINDS:
        report.skipped[f"records {kind}"] += 1
        return
    try:
        month, day, year, hour, minute, second = map(int, re.split("[/ :]", began))
        when = datetime(year, month, day, hour, minute, second)
    except ValueError:
        raise InputError(f"must start with an instant, got {shown(began)}") from None
    words = _words(text)
    life = lives.setdefault(job, _Life())
    if kind == "R":  # back in the queue: its earlier execution is discarded
        for key in ("start", "end", "Exit_status"):
            life.words.pop(key, None)
        life.stamps.pop("S", None)
        report.repaired["started again: its last run counts"] += 1
        words = {key: value for key, value in words.items() if key not in ("start", "end", "Exit_status")}
    life.words.update(words)
    life.stamps[kind] = clock.stamp(when, words.get({"S": "start", "E": "end"}.get(kind, ""), ""))


def _resource(key: str) -> str:
    """Return the name of a requested resource that is not read and may change the result, else an empty text."""
    of, _, name = key.partition("Resource_List.")
    return "" if of or name in _KNOWN else name


def _words(text: str) -> dict[str, str]:
    """Split ``key=value key=value``; a word without ``=`` belongs to the value before it (names with spaces)."""
    words: dict[str, str] = {}
    key = ""
    for found in _WORD.finditer(text):
        if found[1]:
            key = found[1]
            words[key] = found[2].strip('"')
        elif key:
            words[key] += " " + found[3]
    return words


def _job(job: str, life: _Life, clock: _Clock, report: Report) -> dict[str, Any]:
    words, stamps = life.words, {kind: clock.instant(*stamp) for kind, stamp in life.stamps.items()}

    def read(convert: Callable[[str], float], *keys: str) -> float:
        for key in keys:
            text = words.get(key, "")
            if text:
                try:
                    value = float(convert(text))
                except ValueError:
                    value = math.inf
                if math.isinf(value):
                    raise InputError(f"{key}: cannot read {shown(text)}")
                return value
        return math.nan

    submit = read(float, "ctime", "qtime", "etime")
    submit = stamps.get("Q", math.nan) if math.isnan(submit) else submit
    start = read(float, "start")
    start = stamps.get("S", math.nan) if math.isnan(start) else start
    ended = "E" in stamps
    end = read(float, "end") if ended else math.nan
    end = stamps["E"] if ended and math.isnan(end) else end
    submit = start if math.isnan(submit) else submit
    asked, used = read(duration, "Resource_List.walltime"), read(duration, "resources_used.walltime")
    run = used if math.isnan(end - start) else end - start
    if 0 < used < run and (run - used > _OVERHEAD or used <= asked < run):
        run = used
        report.repaired["suspended: resources_used.walltime is the run time"] += 1
    never_started = math.isnan(start) and ("exec_host" not in words if ended else bool({"D", "A"} & stamps.keys()))
    code = words.get("Exit_status", "")
    outcome = "cancelled" if never_started else _outcome(code, run >= asked) if ended else ""
    amount = read(memory, "Resource_List.mem")
    size = _size(words, amount)
    nodes, processors, uneven = size.nodes, size.processors, len(size.chunks) > 1
    return {
        "job": job,
        "submit": submit,
        "wait": start - submit,
        "run": run if ended and not never_started else math.nan,
        "processors": processors,
        "requested": asked if asked > 0 or not {"S", "E"} & stamps.keys() else math.inf,
        "cpu_time": read(duration, "resources_used.cput") / max(processors, 1),
        "used_memory": read(memory, "resources_used.mem") / max(processors, 1),
        "requested_memory": amount / max(processors, 1),
        "status": STATUS_OF.get(outcome, 0),
        "outcome": outcome,
        "exit_code": int(code) if re.fullmatch(r"\d{1,9}", code) else -1,
        "user": words.get("user", ""),
        "group": words.get("group") or words.get("account", ""),
        "queue": words.get("queue", ""),
        "nodes": nodes,
        "cores_per_node": -(-processors // nodes) if nodes > 0 else -1,
        "gpus_per_node": -(-size.gpus // max(nodes, 1)),
        "memory_per_node": next((each.memory or math.nan for each in size.chunks), math.nan),
        "chunks": chunk_text(size.chunks) if uneven else "",
        "exclusive": int(size.exclusive) or -1,
        "cancel": stamps.get("D", stamps.get("A", end)) if never_started else math.nan,
    }


_OUTCOMES = {0: "completed", -29: "timeout", -28: "timeout", -27: "out-of-memory", -26: "out-of-memory"}
_KILLED = (128 + 15, 256 + 15)


def _outcome(status: str, used_up: bool) -> str:
    """Return how a run ended by its exit status, given whether it used up its requested time.

    >>> [_outcome(status, False) for status in ("0", "1", "271", "-29", "-1", "")]
    ['completed', 'failed', 'cancelled', 'timeout', 'node-failure', '']
    """
    if not re.fullmatch(r"-?\d{1,9}", status):
        return ""
    number = int(status)
    if number in _KILLED:
        return "timeout" if used_up else "cancelled"
    return _OUTCOMES.get(number, "failed" if number > 0 else "node-failure")


@attrs.frozen
class _Size:
    """What a job had: nodes (-1: unknown) and processors, GPUs, its chunks by kind, and whether it had whole nodes."""

    nodes: int
    processors: int
    gpus: int = 0
    chunks: Counter[Chunk] = attrs.field(factory=Counter)
    exclusive: bool = False


def _size(words: dict[str, str], bytes_asked: float) -> _Size:
    """Return what a job had, as ``exec_host`` tells it or else as it was requested."""

    def number(name: str) -> int:
        key = f"Resource_List.{name}"
        try:
            return whole(words.get(key, ""))
        except ValueError:
            raise InputError(f"{key}: must be a whole number below 2^63, got {shown(words[key])}") from None

    def chunks(parse: Callable[[str], Counter[Chunk]], *keys: str) -> Counter[Chunk]:
        key = next((key for key in keys if words.get(key)), keys[0])
        text = words.get(key, "")
        with suppress(ValueError):  # more digits than Python reads
            found = parse(text)
            if max(found.total(), *(_sum(found, name) for name in ("cores", "gpus", "memory"))) < 2**63:
                return found
        raise InputError(f"{key}: must be less than 2^63 of everything, got {shown(text)}")

    asked = chunks(_asked, "Resource_List.select", "Resource_List.nodes")
    if number("mppwidth") > 0:
        return _on_cray(number("mppwidth"), number("mppnppn"), max(number("mppdepth"), 1))
    if number("size") > 0:  # older Crays
        return _Size(-1, number("size"), exclusive=True)
    held = chunks(_hosts, "exec_host")
    cores, places, hosts = _sum(asked, "cores"), _sum(held, "cores"), held.total()
    listed = max(number("ncpus"), number("procs"))
    processors = next((n for n in (listed if listed > cores else -1, cores, listed, places) if n > 0), -1)
    if places != processors:
        held.clear()
    nodes = next((n for n in (held.total(), number("nodect"), asked.total(), hosts) if n > 0), -1)
    processors = processors if processors > 0 else max(nodes, 1)
    gpus = max(_sum(asked, "gpus"), number("ngpus"), number("gpus"), 0)
    ways = [words.get(f"Resource_List.{name}", "") for name in ("place", "naccesspolicy", "nodes")]
    exclusive = not {"excl", "exclhost", "singlejob"}.isdisjoint(re.split("[:#]", ":".join(ways).lower()))
    found = _Size(nodes, processors, gpus, exclusive=exclusive)
    return attrs.evolve(found, chunks=_chunks(found, bytes_asked, asked, held)) if 0 < nodes <= processors else found


def _on_cray(width: int, per_node: int, depth: int) -> _Size:
    """Return what ``mppwidth`` processing elements had; ``exec_host`` names the login node there."""
    parts = Counter[Chunk]()
    if per_node > 0:
        full, rest = divmod(width, per_node)
        parts = Counter({Chunk(per_node * depth): full}) + Counter([Chunk(rest * depth)] if rest else ())
    return _Size(parts.total() or -1, width * depth, chunks=parts, exclusive=True)


def _chunks(size: _Size, bytes_asked: float, asked: Counter[Chunk], held: Counter[Chunk]) -> Counter[Chunk]:
    """Return the chunks of a job: those that it held, else those that it asked for, else as even ones as possible."""
    nodes = size.nodes
    like = held or (asked if (_sum(asked, "cores"), asked.total()) == (size.processors, nodes) else Counter())
    each = bytes_asked / nodes if bytes_asked > 0 else 0.0
    if like and _by_cores(like) == _by_cores(asked) and _sum(asked, "gpus") == size.gpus:
        if any(chunk.memory for chunk in asked):
            return asked
        return Counter({attrs.evolve(chunk, memory=each): count for chunk, count in asked.items()})
    cores = [chunk.cores for chunk in like.elements()] if like and nodes <= MOST_CHUNKS else size.processors
    return spread(cores, nodes, size.gpus, each)


def _sum(chunks: Counter[Chunk], name: str) -> int:
    return sum(int(getattr(chunk, name)) * count for chunk, count in chunks.items())


def _by_cores(chunks: Counter[Chunk]) -> Counter[int]:
    found = Counter[int]()
    for chunk, count in chunks.items():
        found[chunk.cores] += count
    return found


def _asked(spec: str) -> Counter[Chunk]:
    """Return the chunks of ``2:ncpus=8:ngpus=1:mem=4gb+1:ncpus=4`` (PBS) or ``2:ppn=8+node7:ppn=4#excl`` (Torque)."""
    found = Counter[Chunk]()
    for part in spec.partition("#")[0].split("+") if spec else ():
        first, *parts = part.split(":")
        values = dict(each.partition("=")[::2] for each in ([first] if "=" in first else []) + parts)

        def value(*names: str, values: Mapping[str, str] = values) -> int:
            return next((int(values[name]) for name in names if values.get(name, "").isdigit()), 0)

        size = memory(values.get("mem") or "0")
        found[Chunk(max(value("ncpus", "ppn"), 1), value("ngpus", "gpus"), size)] += (
            int(first) if first.isdigit() else 1
        )
    return found


def _hosts(text: str) -> Counter[Chunk]:
    """Return the processors of each node of ``n1/0*8+n2/0*8`` (PBS) or ``n1/0+n1/1`` or ``n1/0-7`` (Torque)."""
    nodes = Counter[str]()
    for part in text.split("+") if text else ():
        node, _, slot = part.partition("/")
        _, star, times = slot.partition("*")
        if star and times.isdigit():
            nodes[node] += int(times)
            continue
        for piece in slot.split(","):
            first, dash, last = piece.partition("-")
            nodes[node] += int(last) - int(first) + 1 if dash and first.isdigit() and last.isdigit() else 1
    return Counter(Chunk(max(cores, 1)) for cores in nodes.values())


def _in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the jobs in the order of submission; if all are of one server, remove its name from their ids."""
    rows = sorted(rows, key=lambda row: row["submit"])
    if len({row["job"].partition(".")[2] for row in rows}) > 1:
        return rows
    return [{**row, "job": row["job"].partition(".")[0]} for row in rows]
