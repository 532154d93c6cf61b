"""The platform that PBS's own description of its cluster amounts to, and a list of the properties left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from simmodel import InputError
from simmodel.extending import inside
from simmodel.platform import ClusterSpec, ConsumableSpec, PartitionSpec, QueueSpec
from simmodel_site.twin.described import STATE_OF_NOW, Described, NodeKind, Notes, node_specs, saved_answers
from simmodel_site.twin.mirror.node_states import nodes_out
from simmodel_site.twin.pbs.commands import Document, PbsCommands, Value, read_document, table_of, text_of
from simmodel_site.twin.pbs.nodes import NodeRecord, licences_in, nodes_in
from simmodel_site.twin.pbs.values import number, seconds

__all__ = ["describe_pbs", "described"]

TIER = 2.0**32
"""The factor on the priority of a queue: above any priority of jobs, so that queues come first."""

_KINDS = ("Server", "Queue", "nodes")
_LIMIT = re.compile(r"\[([ou]):PBS_(?:ALL|GENERIC)=(\d{1,9})\]", re.ASCII)
_OF_SERVER = frozenset(
    (
        *("server_state", "server_host", "scheduling", "total_jobs", "state_count", "default_queue", "log_events"),
        *("mailer", "mail_from", "query_other_jobs", "resources_default", "default_chunk", "resources_assigned"),
        *("scheduler_iteration", "resv_enable", "node_fail_requeue", "max_array_size", "pbs_license_min", "FLicenses"),
        *(
            "pbs_license_max",
            "pbs_license_linger_time",
            "license_count",
            "pbs_version",
            "job_history_enable",
            "managers",
        ),
        *("job_history_duration", "max_concurrent_provision", "power_provisioning", "max_job_sequence_id", "flatuid"),
        *("resources_available", "backfill_depth", "operators", "eligible_time_enable", "acl_roots"),
    )
)
_OF_QUEUES = frozenset(
    (
        *("queue_type", "enabled", "started", "total_jobs", "state_count", "resources_assigned", "hasnodes"),
        *("resources_default", "default_chunk", "Priority", "resources_max", "max_run", "resources_available"),
    )
)


def describe_pbs(paths: Iterable[str | Path] = (), *, commands: PbsCommands | None = None) -> Described:
    """Return the platform of a PBS cluster from saved files, or else from the present output of its commands.

    Parameters
    ----------
    paths
        files and folders with answers in JSON of ``qstat -Bf``, ``qstat -Qf`` and ``pbsnodes -a``
    commands
        PBS's commands; default: those on the path

    Raises
    ------
    InputError
        a file is malformed, or the answers are incomplete
    PbsError
        a command is missing, fails or does not answer
    """
    given = list(paths)
    if given:
        return described(_together(given))
    commands = commands or PbsCommands()
    found: dict[str, Value] = {}
    for name in ("server", "queues", "nodes"):
        found |= commands.document(name)
    return described(found)


def _together(paths: Iterable[str | Path]) -> Document:
    found: dict[str, Value] = {}
    for data, name in saved_answers(paths):
        told = read_document(data.decode("utf-8", "replace"), name)
        kinds = [kind for kind in (*_KINDS, "Jobs") if kind in told]
        if not kinds:
            raise InputError("must be an answer of qstat or pbsnodes in JSON: has no Server, Queue or nodes", name)
        for kind in kinds:
            if kind in found:
                raise InputError(f"{kind} is told twice", name)
        found |= told
    return found


def described(document: Document) -> Described:
    """Return the platform of a document with PBS's answers: its ``Server``, ``Queue`` and ``nodes``.

    Nodes that run the jobs of one queue alone are a partition, all others together another one; a queue has its limits.

    Raises
    ------
    InputError
        there are no nodes, or a value makes no sense

    >>> nodes = {f"n{i}": {"state": "free", "resources_available": {"ncpus": "8"}} for i in (1, 2)}
    >>> described({"nodes": nodes}).spec.partitions
    (PartitionSpec(nodes=(NodeSpec(names='n[1-2]', count=2, cores=8),)),)
    """
    nodes = list(nodes_in(document))
    if not nodes:
        raise InputError("no nodes: give the answer of pbsnodes -a -F json")
    notes = Notes()
    server = next((each for each in table_of(document, "Server").values() if isinstance(each, dict)), {})
    own = {node.queue for node in nodes if node.queue}
    queues = {name: each for name, each in table_of(document, "Queue").items() if isinstance(each, dict)}
    default = text_of(server, "default_queue")
    groups = {queue: [node for node in nodes if node.queue == queue] for queue in sorted(own)}
    rest = [node for node in nodes if not node.queue]
    main = "batch"
    if rest:
        groups = {main: rest, **groups}
    notes.add_of_nodes(_left_out(nodes))
    _note(server, "server", _OF_SERVER, notes)
    if not queues:
        notes.add("queues", "not told", "give the answer of qstat -Q -f -F json")
    specs = tuple(_queues(queues, groups, main, notes))
    default_partition = next((spec.partition for spec in specs if spec.name == default), None)
    if "Server" not in document:
        notes.add("server", "not told", "give the answer of qstat -B -f -F json")
    spec = ClusterSpec(
        name=text_of(document, "pbs_server") or "pbs",
        partitions=tuple(_partition(name, each, notes) for name, each in groups.items()),
        queues=specs,
        consumables=tuple(
            ConsumableSpec(name=name, amount=each) for name, each in licences_in(document).items() if each
        ),
        default_partition=default_partition if len(groups) > 1 else None,
        source=f"PBS {text_of(document, 'pbs_version')}".rstrip(),
    )
    return Described(
        spec=spec,
        policy=_policy(server, notes),
        unsupported=tuple(notes),
        **nodes_out((node.name, node.service) for node in nodes)._asdict(),
    )


# ---------------------------------------------------------------------- nodes


def _partition(name: str, nodes: Sequence[NodeRecord], notes: Notes) -> PartitionSpec:
    alone = [node.name for node in nodes if "excl" in node.sharing]
    if len(alone) < len(nodes):
        notes.add_of_nodes(
            (each, "sharing: exclusive", "shared here, as others of the partition are") for each in alone
        )
    kinds = ((node.name, NodeKind(node.size.cores, node.size.gpus, node.size.memory)) for node in nodes)
    return PartitionSpec(name=name, nodes=node_specs(kinds, notes), exclusive=len(alone) == len(nodes))


def _left_out(nodes: Iterable[NodeRecord]) -> Iterator[tuple[str, str, str]]:
    """Yield the properties that node specs leave out: the node, the property, and the consequence."""
    for node in nodes:
        if node.service != "up":
            yield node.name, f"state={','.join(sorted(node.states))} {node.comment}".strip(), STATE_OF_NOW
        for name, text in node.others:
            yield node.name, f"{name}={text}", "not modelled"


# ---------------------------------------------------------------------- queues and server


def _queues(
    queues: Mapping[str, Document], groups: Mapping[str, object], main: str, notes: Notes
) -> Iterator[QueueSpec]:
    told = {name: each for name, each in queues.items() if text_of(each, "queue_type") in ("", "Execution")}
    for name in queues.keys() - told.keys():
        notes.add(f"queue {name}", "queue_type=Route", "left out: jobs have the queue to which they are routed")
    priorities = {name: _read(each, name, "Priority") or 0.0 for name, each in told.items()}
    for name, each in told.items():
        place = name if name in groups else main
        if place not in groups:
            notes.add(f"queue {name}", "no nodes", "left out: all nodes belong to other queues")
            continue
        most, per_user = _limits(each, name, notes)
        maxima = table_of(each, "resources_max")
        for other in maxima.keys() - {"walltime", "ncpus"}:
            notes.add(f"queue {name}", f"resources_max.{other}={text_of(maxima, other)}", "not modelled")
        for switch in ("enabled", "started"):
            if text_of(each, switch) == "False":
                notes.add(f"queue {name}", f"{switch}=False", "jobs start there")
        _note(each, f"queue {name}", _OF_QUEUES, notes)
        cpus = _read(maxima, f"{name}.resources_max", "ncpus")
        yield QueueSpec(
            name=name,
            partition=place,
            priority=(priorities[name] - min(priorities.values())) * TIER,
            max_requested=_duration(maxima, name),
            max_processors=None if not cpus else int(cpus),
            max_running=most,
            max_running_per_user=per_user,
        )


def _read(values: Document, where: str, name: str) -> float | None:
    try:
        return number(text_of(values, name))
    except InputError as error:
        raise inside(f"{where}.{name}", error) from None


def _duration(values: Document, where: str) -> float | None:
    try:
        return seconds(text_of(values, "walltime")) or None
    except InputError as error:
        raise inside(f"{where}.resources_max.walltime", error) from None


def _limits(queue: Document, name: str, notes: Notes) -> tuple[int | None, int | None]:
    """Return the most running jobs of a queue, in all and of a user."""
    text = text_of(queue, "max_run")
    found = dict(_LIMIT.findall(text))
    if _LIMIT.sub("", text).strip(" ,+"):
        notes.add(f"queue {name}", f"max_run={text}", "limits of single users and groups are not modelled")
    return int(found.get("o", 0)) or None, int(found.get("u", 0)) or None


def _note(values: Document, where: str, known: frozenset[str], notes: Notes) -> None:
    for name, value in values.items():
        if name not in known:
            text = ", ".join(f"{key}={each}" for key, each in value.items()) if isinstance(value, dict) else str(value)
            notes.add(where, f"{name}={text}"[:200], "not modelled")


def _policy(server: Document, notes: Notes) -> str:
    """Return the name of the policy: by its documentation, PBS backfills around the first jobs that do not fit."""
    notes.add("scheduler", "sched_config is not told", "taken as in order, with backfilling")
    depth = _read(server, "server", "backfill_depth")
    if depth == 0:
        return "fcfs"
    if depth is not None and depth > 1:
        notes.add("scheduler", f"backfill_depth={depth:g}", "taken as a plan for all waiting jobs")
        return "conservative"
    return "easy"
