"""The jobs of Slurm as reports of the twin, whether read by its commands or by its REST interface."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from math import inf
from shlex import quote
from typing import Any, Literal, TypeAlias

import attrs

from simmodel import InputError
from simmodel.extending import Fields, check_count, clipped, inside, shown
from simmodel_site.twin.acting.actions import HELD, mark_parts
from simmodel_site.twin.events import ON_HOLD, Demand, JobReport, JobState
from simmodel_site.twin.mirror.job_history import natural_order
from simmodel_site.twin.programs import is_garbled
from simmodel_site.twin.slurm.answers import FREE, Given, parser_of
from simmodel_site.twin.slurm.values import amounts, count_of, gres, is_none, nodes_of
from simmodel_site.twin.sources import Refused

__all__ = [
    "LONGEST_NAME",
    "JobRecord",
    "LimitFrom",
    "Rules",
    "dependencies_of",
    "job_state",
    "jobs_in",
    "options_of",
    "own_mark",
    "queue_of",
    "reports_of",
    "task_numbers",
    "unmodelled_of",
]

LimitFrom: TypeAlias = Literal["limit", "comment"]
"""Where a job's requested time stands: in its limit, or in its comment as seconds (Slurm rounds limits to minutes)."""

LONGEST_NAME = 256
"""Characters of a name that are kept."""

_HOLDS = re.compile(
    r"JobHeld\w*|BeginTime|JobArrayTaskLimit|JobHoldMaxRequeue|DependencyNeverSatisfied|Assoc\w*|QOS\w*|Partition\w+|"
    r"AccountNotAllowed|BadConstraints|InvalidAccount|InvalidQOS|ReqNodeNotAvail.*|SchedDefer|BurstBuffer\w*"
)
"""Reasons to wait that neither the jobs before it nor busy nodes, licences or dependencies explain."""
_ENDED: Mapping[str, JobState] = {
    "COMPLETED": "completed",
    "TIMEOUT": "timeout",
    "DEADLINE": "timeout",
    "FAILED": "failed",
    "OUT_OF_MEMORY": "failed",
    "CANCELLED": "cancelled",
    "REVOKED": "cancelled",
    "PREEMPTED": "cancelled",
    "NODE_FAIL": "lost",
    "BOOT_FAIL": "lost",
    "LAUNCH_FAILED": "lost",
    "RECONFIG_FAIL": "lost",
}
_RUNNING = frozenset(("RUNNING", "CONFIGURING", "SUSPENDED", "STOPPED", "SIGNALING", "RESIZING", "STAGE_OUT"))
_WAITS = {"after": "start", "afterany": "end", "afterok": "success", "aftercorr": "success", "afternotok": "failure"}
_TASKS = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?")


@attrs.frozen(kw_only=True, repr=False)
class JobRecord(Fields):
    """A job, or the tasks of an array that wait together.

    Parameters
    ----------
    job, array, tasks
        its id; the id of its array, and its task numbers as Slurm writes them (``1-3,7``), empty if it has none
    states, reason
        the words of its state, and why it waits
    cpus, least_nodes, most_nodes
        CPUs; the fewest and the most nodes that it may have, 0: no limit
    one_node
        whether all its CPUs must be on one node, for instance those of one task
    whole_nodes
        whether it shares its nodes with no other job
    memory_per_cpu, memory_per_node
        bytes; 0: not given
    limit
        seconds; ``None``: no limit
    dependency
        the jobs that it waits for, as Slurm writes them
    started
        its start (s); of a job that waits, the one that Slurm expects
    nodes
        of a job that has started: their names and its CPUs on each, 0 where these are unknown
    comment, mark
        the comment of its user, and that of an administrator
    required, excluded, features, array_limit, sharing
        the nodes that it must have and may not have, the features of its nodes, how many tasks of its array may run at
        once (0: any), and how it shares nodes, if not as usual
    """

    job: int | str
    submit: float
    states: tuple[str, ...]
    reason: str = ""
    held: bool = False
    cpus: int = 1
    least_nodes: int = 1
    most_nodes: int = 0
    one_node: bool = False
    whole_nodes: bool = False
    gpus_per_node: int = 0
    gpus: int = 0
    memory_per_cpu: float = 0.0
    memory_per_node: float = 0.0
    licences: Mapping[str, float] = attrs.field(factory=dict)
    limit: float | None = None
    user: str | None = None
    account: str | None = None
    partition: str | None = None
    reservation: str | None = None
    qos: str | None = None
    priority: float = 0.0
    name: str | None = None
    dependency: str = ""
    array: int | str | None = None
    tasks: str = ""
    started: float | None = None
    ended: float | None = None
    nodes: tuple[tuple[str, int], ...] = ()
    comment: str = ""
    mark: str = ""
    required: str = ""
    excluded: str = ""
    features: str = ""
    array_limit: int = 0
    sharing: str = ""


@attrs.frozen(kw_only=True, repr=False)
class Rules(Fields):
    """Rules of a Slurm that decide when its jobs start.

    Parameters
    ----------
    memory
        whether memory is allocated: a job that asks for none then takes all of its nodes
    preemption
        the mode of preemption, empty if there is none
    parts
        the partitions that have only a part of the nodes of those that they share nodes with
    node_memory
        bytes of a node by partition, where all its nodes have as much
    """

    memory: bool = False
    preemption: str = ""
    parts: frozenset[str] = frozenset()
    node_memory: Mapping[str, float] = attrs.field(factory=dict)


def unmodelled_of(record: JobRecord, rules: Rules, *, memory: bool = False) -> tuple[str, ...]:
    """Return the conditions of a job that Slurm heeds and the mirror does not model.

    Parameters
    ----------
    memory
        whether the memory of the job is modelled

    >>> record = JobRecord(job=7, submit=5.0, states=("PENDING",), required="n1", array_limit=2)
    >>> unmodelled_of(record, Rules(preemption="REQUEUE"))
    ('nodes n1 (-w)', 'array limit %2', 'preemption (REQUEUE)')
    """
    parts = sorted(rules.parts.intersection((record.partition or "").split(",")))
    found = (
        (record.required, f"nodes {record.required} (-w)"),
        (record.excluded, f"without nodes {record.excluded} (-x)"),
        (record.features, f"constraint {record.features} (-C)"),
        (record.array_limit, f"array limit %{record.array_limit}"),
        (record.sharing, f"sharing of nodes: {record.sharing}"),
        (record.licences, f"licences {', '.join(sorted(record.licences))}"),  # Slurm passes over jobs that lack them
        (rules.memory and not memory, "memory"),
        (rules.preemption, f"preemption ({rules.preemption})"),
        (parts, f"the nodes of partition {', '.join(parts)}"),
    )
    return tuple(clipped(text, 100) for there, text in found if there)


def options_of(record: JobRecord, rules: Rules, *, memory: bool = False) -> tuple[str, tuple[str, ...]]:
    """Return the options of sbatch that policy slurm reads of a job, and the conditions of the job that it then models.

    >>> record = JobRecord(job=7, submit=5.0, states=("PENDING",), required="n1", features="a&b", array_limit=2)
    >>> options_of(record, Rules())
    ("--nodelist=n1 --constraint='a&b' --array=%2", ('nodes n1 (-w)', 'constraint a&b (-C)', 'array limit %2'))
    """
    values = {"nodelist": record.required, "exclude": record.excluded, "constraint": record.features}
    if record.array is not None or record.array_limit:
        values["array"] = f"%{record.array_limit}"  # its tasks are told one by one, or together: see their names
    if rules.memory and not memory and record.memory_per_cpu:
        values["mem-per-cpu"] = f"{record.memory_per_cpu / 2**20:.0f}"
    words = [f"--{name}={quote(value)}" for name, value in values.items() if value]
    if "PENDING" in record.states and (record.held or record.reason.startswith(("JobHeld", "JobHoldMaxRequeue"))):
        words.append(ON_HOLD)
    known = {f"nodes {record.required} (-w)", f"without nodes {record.excluded} (-x)", "memory"}
    known |= {f"constraint {record.features} (-C)", f"array limit %{record.array_limit}"}
    known |= {f"licences {', '.join(sorted(record.licences))}"}
    parts = sorted(rules.parts.intersection((record.partition or "").split(",")))
    known |= {f"the nodes of partition {', '.join(parts)}"}
    told = unmodelled_of(record, rules, memory=memory)
    return " ".join(words), tuple(each for each in told if each in {clipped(text, 100) for text in known})


def own_mark(mark: str, begin: str) -> str:
    """Return the word of a mark, ``""`` if the begin time of its job is not the one that the mark records.

    >>> own_mark("simmodel-held@60", "60"), own_mark("simmodel-held@60", "3660"), own_mark("a note", "60")
    ('simmodel-held', '', 'a note')
    """
    word, value = mark_parts(mark)
    return "" if word.partition("@")[0] == HELD and begin != str(value) else word


def queue_of(
    records: Iterable[JobRecord],
    sizes: Mapping[str, int] | None = None,
    *,
    limit_from: LimitFrom = "limit",
    memory: bool = True,
    priorities: bool = False,
    rules: Rules | None = None,
    refused: Refused | None = None,
) -> tuple[JobReport, ...]:
    """Return the reports of jobs in the order of Slurm's priority, submission and id.

    Parameters
    ----------
    sizes
        the most cpus of a node by partition, which a job that waits for whole nodes takes
    limit_from
        where requested times stand
    memory, priorities, rules
        as of :func:`reports_of`
    refused
        counts the jobs that make no sense; default: they raise an error

    Raises
    ------
    InputError
        a job makes no sense, and none are counted
    """
    found: list[tuple[float, JobReport]] = []
    for record in records:
        given = _with_whole_nodes(record, sizes or {}) if record.whole_nodes and not record.nodes else record
        if limit_from == "comment" and (limit := _positive(record.comment)):
            given = attrs.evolve(given, limit=limit)
        try:
            found += [
                (-record.priority, each) for each in reports_of(given, rules, memory=memory, priorities=priorities)
            ]
        except InputError as error:
            wrong = inside(f"job {shown(str(record.job))}", error)
            if refused is None:
                raise wrong from None
            refused.count(wrong)
    found.sort(key=lambda each: (each[0], each[1].submit, natural_order(each[1].job)))
    return tuple(report for _, report in found)


def _with_whole_nodes(record: JobRecord, sizes: Mapping[str, int]) -> JobRecord:
    """Return a waiting job with all the CPUs that it will have: Slurm reports only those that it asked for."""
    size = max((sizes.get(each, 1) for each in (record.partition or "").split(",")), default=1)
    nodes = max(record.least_nodes, 1)
    return attrs.evolve(record, cpus=max(record.cpus, nodes * size), most_nodes=nodes)


def _positive(text: str) -> float | None:
    """Return a finite number > 0; ``None``: the text is not such a number."""
    with suppress(ValueError):
        found = float(text)
        return found if 0 < found < inf else None
    return None


def reports_of(
    record: JobRecord, rules: Rules | None = None, *, memory: bool = True, priorities: bool = False
) -> Iterator[JobReport]:
    """Yield the reports of a job; of tasks that wait together, one for each, named ``7_1``.

    A job for a reservation has it as its partition. A job that is held for a twin waits. Jobs that wait for something
    that the twin cannot foretell (a begin time, any of several jobs, a whole array) are held.

    Parameters
    ----------
    rules
        those of this Slurm; default: none that the mirror does not model
    memory
        whether memory is allocated to jobs
    priorities
        whether requests have Slurm's priorities, which then come before the order of any policy

    >>> record = JobRecord(job=7, submit=5.0, states=("PENDING",), cpus=8, least_nodes=2, most_nodes=2, limit=60.0)
    >>> next(reports_of(record)).request
    Demand(processors=8, nodes=2, cores_per_node=4, requested=60.0)
    """
    waits, told = dependencies_of(record.dependency)
    reason = "" if record.mark == HELD and record.reason == "BeginTime" else record.reason
    held = record.held or (not told and bool(record.dependency))
    state = job_state(record.states, reason, held)
    request = _request(record, waits, rules or Rules(), memory, priorities)
    started = record.started if state == "running" or (record.nodes and state in _ENDED.values()) else None
    where: dict[str, Any] = {}
    if started is not None and record.nodes:
        where = {"partition": request.partition, "nodes": _spread(record.nodes, record.cpus)}
    numbers = task_numbers(record.tasks) if record.array is not None else (None,)
    for number in numbers:
        yield JobReport(
            job=record.job if number is None else f"{record.array}_{number}",
            submit=record.submit,
            state=state,
            request=request,
            started=started,
            ended=record.ended if state in _ENDED.values() else None,
            foretold=record.started if state == "waiting" else None,
            reason="" if state not in ("waiting", "held") or is_none(reason) else reason,
            optional=not held and state == "held" and reason == "JobArrayTaskLimit" and record.array_limit > 0,
            **where,
        )


def job_state(states: tuple[str, ...], reason: str = "", held: bool = False) -> JobState:
    """Return the state of a job from Slurm's words for it and its reason to wait.

    Raises
    ------
    InputError
        no word is known

    >>> job_state(("PENDING",), "Resources"), job_state(("PENDING",), "JobHeldUser"), job_state(("NODE_FAIL",))
    ('waiting', 'held', 'lost')
    """
    for word in states:
        if word == "PENDING" or word.startswith("REQUEUE"):
            return "held" if held or _HOLDS.fullmatch(reason) or word == "REQUEUE_HOLD" else "waiting"
        if word == "SPECIAL_EXIT":
            return "held"
        if word in _ENDED:
            return _ENDED[word]
        if word in _RUNNING:
            return "running"
    if "COMPLETING" in states:
        return "completed"
    raise InputError(f"must be a state of jobs such as PENDING, got {'+'.join(states) or 'none'}", place="state")


def dependencies_of(text: str) -> tuple[tuple[tuple[int | str, str], ...], bool]:
    """Return the jobs that a job waits for, each with the event awaited, and whether these are all its dependencies.

    >>> dependencies_of("afterok:5:6(unfulfilled),after:7_2")
    (((5, 'success'), (6, 'success'), ('7_2', 'start')), True)
    >>> dependencies_of("afterany:5?afterany:6"), dependencies_of("singleton"), dependencies_of("afterok:5_*")
    (((), False), ((), False), ((), False))
    """
    found: list[tuple[int | str, str]] = []
    text = re.sub(r"\([^()]*\)", "", text)
    if "?" in text:
        return (), False
    told = True
    for item in text.split(",") if text else ():
        kind, *jobs = item.split(":")
        wait = _WAITS.get(kind)
        for job in jobs:
            job = job.partition("+")[0]  # after:5+10: minutes after its start
            if wait is None or not re.fullmatch(r"\d{1,18}(_\d{1,9})?", job):
                told = False
            else:
                found.append((int(job) if job.isdecimal() else job, wait))
        told = told and wait is not None and bool(jobs)
    return tuple(found), told


def task_numbers(text: str) -> tuple[int, ...]:
    """Return the task numbers of an array; those that Slurm leaves out of a long list (``...``) are missing.

    Raises
    ------
    InputError
        it is not such a list, or there are more than the limit ``count``

    >>> task_numbers("1-3,7%2"), task_numbers("0-10:5")
    ((1, 2, 3, 7), (0, 5, 10))
    """
    found: list[int] = []
    for item in text.strip("[]").partition("%")[0].split(","):
        if item.startswith("..."):
            continue
        match = _TASKS.fullmatch(item)
        if match is None:
            raise InputError(f"must be numbers of tasks such as '1-3,7', got {shown(text)}", place="array tasks")
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        numbers = range(first, last + 1, max(step, 1))
        check_count("array tasks", len(found) + len(numbers))
        found += numbers
    return tuple(found)


def _request(
    record: JobRecord, waits: tuple[tuple[int | str, str], ...], rules: Rules, memory: bool, priorities: bool
) -> Demand:
    nodes: int | None = None
    if record.nodes:
        nodes = len(record.nodes)
    elif record.one_node or record.cpus <= 1 or record.gpus_per_node or record.gpus or record.memory_per_node:
        nodes = max(record.least_nodes, 1)
    elif record.most_nodes and record.most_nodes == record.least_nodes:
        nodes = record.most_nodes
    cores = -(-record.cpus // nodes) if nodes else 1
    held = record.memory_per_node or record.memory_per_cpu * cores
    if rules.memory and not held:
        held = rules.node_memory.get(record.partition or "", 0.0)
    allocated = memory and bool(nodes) and held > 0
    options, expressed = options_of(record, rules, memory=allocated)
    return Demand(
        processors=record.cpus,
        nodes=nodes,
        cores_per_node=cores,
        gpus_per_node=record.gpus_per_node or (-(-record.gpus // nodes) if nodes else 0),
        memory_per_node=held if nodes and memory else 0.0,
        consumables=record.licences,
        requested=record.limit,
        user=record.user,
        group=record.account,
        queue=record.qos,
        partition=record.reservation or record.partition,
        priority=record.priority if priorities else 0.0,
        name=record.name,
        dependencies=waits,
        array=record.array,
        unmodelled=unmodelled_of(record, rules, memory=allocated),
        options=options,
        expressed=expressed,
    )


def _spread(nodes: tuple[tuple[str, int], ...], cpus: int) -> tuple[tuple[str, int], ...]:
    """Return the nodes of a job with its CPUs on each: if any are unknown, all are shared out evenly."""
    if all(count for _, count in nodes):
        return nodes
    each, more = divmod(cpus, len(nodes))
    return tuple((name, each + (number < more)) for number, (name, _) in enumerate(nodes))


# ---------------------------------------------------------------------- from answers in JSON


def jobs_in(
    document: Mapping[str, Any], source: str | None = None, *, refused: Refused | None = None, garbled: bool = False
) -> tuple[JobRecord, ...]:
    """Return the jobs of an answer in JSON (see :mod:`simmodel_site.twin.slurm.answers`).

    Parameters
    ----------
    source
        where the answer is from, for errors
    refused
        counts the jobs that lack a value or have a wrong one; default: they raise an error
    garbled
        whether bytes of the answer were replaced: jobs whose own values have such bytes are refused

    Raises
    ------
    InputError
        it names no known data parser or has no jobs, or a job makes no sense and none are counted
    """
    parser = parser_of(document, source)
    jobs = document.get("jobs")
    if not isinstance(jobs, list):
        raise InputError(f"must be a list, got {shown(jobs)}", source, "jobs")
    found = []
    for number, each in enumerate(jobs):
        try:
            if garbled and is_garbled(each, FREE):
                raise InputError("must be readable text", place=f"jobs[{number}]")
            found.append(_job(Given(each, parser, f"jobs[{number}]")))
        except InputError as error:
            wrong = InputError(error.message, source, error.place)
            if refused is None:
                raise wrong from None
            refused.count(wrong)
    return tuple(found)


def _job(given: Given) -> JobRecord:
    job, submit = given.whole("job_id"), given.number("submit_time")
    if job is None:
        raise given.wrong("job_id", "a number")
    if submit is None:
        raise given.wrong("submit_time", "an instant (s)")
    minutes = given.number("time_limit")
    needed = given.read(amounts, "tres_req_str")
    array, task = given.whole("array_job_id"), given.whole("array_task_id")
    tasks = given.text("array_task_string")
    of_array = bool(array) and (task is not None or bool(tasks))
    started, ended = given.number("start_time"), given.number("end_time")
    gpus = [given.read(gres, f"tres_per_{each}") for each in ("node", "job")]
    per_node, per_job = (int(sum(each.count for each in found if each.name == "gpu")) for found in gpus)
    per_task = int(sum(each.count for each in given.read(gres, "tres_per_task") if each.name == "gpu"))
    count = given.whole("tasks") or 1
    return JobRecord(
        job=job,
        submit=float(submit),
        states=given.words("job_state"),
        reason=given.text("state_reason"),
        held=bool(given.get("hold")) or given.number("priority") == 0,
        cpus=max(given.whole("cpus") or 1, 1),
        least_nodes=count_of(needed, "node") or 1,
        most_nodes=given.whole("max_nodes") or 0,
        one_node=count <= 1,
        whole_nodes="NONE" in given.words("shared") or "TRUE" in given.words("exclusive"),
        gpus_per_node=per_node,
        gpus=per_job or per_task * count,
        memory_per_cpu=(given.number("memory_per_cpu") or 0) * 2.0**20,
        memory_per_node=(given.number("memory_per_node") or 0) * 2.0**20,
        licences=given.read(amounts, "licenses"),
        limit=minutes * 60.0 if minutes else None,
        user=given.text("user_name") or None,
        account=given.text("account") or None,
        partition=given.text("partition") or None,
        reservation=given.text("resv_name") or None,
        qos=given.text("qos") or None,
        priority=given.number("priority") or 0.0,
        name=given.text("name")[:LONGEST_NAME] or None,
        comment=given.text("comment"),
        mark=own_mark(given.text("admin_comment"), f"{given.number('eligible_time') or 0:.0f}"),
        dependency=given.text("dependency"),
        required=given.text("required_nodes"),
        excluded=given.text("excluded_nodes"),
        features=given.text("features"),
        array_limit=given.whole("array_max_tasks") or 0 if of_array else 0,
        array=array if of_array else None,
        tasks=(tasks if task is None else str(task)) if of_array else "",
        started=float(started) if started else None,
        ended=float(ended) if ended else None,
        nodes=_allocation(given),
    )


def _allocation(given: Given) -> tuple[tuple[str, int], ...]:
    """Return the nodes of a job with its CPUs on each, 0 where these are unknown."""
    allocated = given.get("job_resources/nodes/allocation")
    if isinstance(allocated, list) and allocated:
        each = [Given(node, 44, f"{given.place}.job_resources.nodes.allocation") for node in allocated]
        return tuple((node.name("name"), node.whole("cpus/count") or 0) for node in each)
    return tuple((name, 0) for name in given.read(nodes_of, "nodes"))
