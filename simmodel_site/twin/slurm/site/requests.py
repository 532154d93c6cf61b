"""What a job of Slurm's accounting asks of nodes: cores, GPUs and memory, as slurmctld takes its options.

Sources: sbatch(1) and sacct(1) of Slurm 22.05; select/cons_tres by its behaviour.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import suppress
from math import ceil
from typing import Any

from simmodel import InputError
from simmodel.platform import NodeSpec
from simmodel_site.policy.wishes import MIB, Wishes
from simmodel_site.twin.slurm.values import amounts, nodes_of

__all__ = ["RESOURCES", "Asking", "gpus_in", "tres_in"]

_COUNTS = frozenset(("ntasks", "ntasks-per-gpu"))
_READ = ("cpus-per-task", "gpus", "gpus-per-node", "gpus-per-task", "gres", "mem", "mem-per-cpu", "mem-per-gpu")
RESOURCES = frozenset((*_COUNTS, *_READ, "nodes", "ntasks-per-node"))
"""The options of sbatch by which a job asks for cores, GPUs and memory."""


def tres_in(text: str) -> Mapping[str, float]:
    """Return the amounts of TRES that sacct tells, by name, memory in bytes; none of a text that is none.

    >>> dict(tres_in("cpu=4,mem=100M")), dict(tres_in("cpu=x"))
    ({'cpu': 4.0, 'mem': 104857600.0}, {})
    """
    with suppress(InputError):
        return amounts(text)
    return {}


def gpus_in(tres: Mapping[str, float]) -> int:
    """Return the GPUs of TRES: the untyped count, which includes all types, or else the sum of the typed ones.

    >>> gpus_in({"gres/gpu": 2.0, "gres/gpu:a100": 2.0}), gpus_in({"gres/gpu:a100": 1.0}), gpus_in({"cpu": 4.0})
    (2, 1, 0)
    """
    return int(tres.get("gres/gpu", sum([count for name, count in tres.items() if name.startswith("gres/gpu:")])))


class Asking:
    """What a job of the accounting asks of nodes.

    What the record tells comes before the submit line: a script, a default or an update may have asked for more.

    Parameters
    ----------
    row
        its row, as :func:`~simmodel.formats.sacct.read_sacct` reads it
    values
        the options of its submit line
    nodes
        the kinds of the nodes of the site by name
    memory
        whether this Slurm allocates memory
    exclusive
        whether the job gets whole nodes

    Attributes
    ----------
    known
        the options of its submit line that are expressed
    options
        what :meth:`shape` does not say, as options of policy slurm
    doubts
        in which respects the record differs from the request
    got
        the TRES that it has got; none: that is not told
    gpu_type
        the type of GPUs in its submit line

    >>> row = {"processors": 6, "requested_processors": 6, "node_list": "n[1-2]",
    ...     "requested_tres": "cpu=6,mem=800M,node=1", "allocated_tres": "cpu=6,mem=1600M,node=2"}
    >>> Asking(row, {"ntasks": "6", "mem": "800"}, {}).shape()
    {'processors': 6, 'gpus_per_node': 0, 'memory_per_node': 838860800.0}
    """

    def __init__(
        self,
        row: Mapping[str, Any],
        values: Mapping[str, str],
        nodes: Mapping[str, NodeSpec],
        *,
        memory: bool = True,
        exclusive: bool = False,
    ) -> None:
        self._row, self._values, self._memory, self._exclusive = row, values, memory, exclusive
        self._placed = nodes_of(row.get("node_list", ""))
        self._whole = sum([nodes[name].memory for name in self._placed if name in nodes])
        self._want = tres_in(row.get("requested_tres", ""))
        self.got = tres_in(row.get("allocated_tres", "")) if self._placed else {}
        self._cpus_got = max(int(row.get("processors", 0)), 0) if self._placed else 0
        self.known = set(_COUNTS)
        words = []
        for name in RESOURCES.difference(_COUNTS).intersection(values):
            with suppress(InputError):
                Wishes.of(word := f"--{name}={shlex.quote(values[name])}")
                words.append(word)
                self.known.add(name)
        self._told = Wishes.of(" ".join(words))
        self.gpu_type = self._told.gpu_type
        self.options: dict[str, str] = {}
        self.doubts: list[str] = []

    def shape(self) -> dict[str, Any]:
        """Return the fields of its :class:`~simmodel.work.job.Job`."""
        told = self._told
        per_node, in_all, per_task = self._gpus()
        tasks = self._number("ntasks") or in_all * self._number("ntasks-per-gpu")
        if per_task:
            tasks, in_all = tasks or in_all // per_task, 0
        count, unit = self._count(tasks), told.cores_per_task
        if told.nodes is not None and count is None:
            self.options["nodes"] = f"{told.nodes[0]}-{told.nodes[1]}"
        cpus = count * told.tasks_per_node * unit if count and told.tasks_per_node else self._cpus(tasks, count, in_all)
        if (
            count is None
            and not (in_all or per_task or self.options)
            and (cpus <= 1 or ("cpus-per-task" in self._values and not tasks))
        ):
            count = 1
        if count is not None and (told.tasks_per_node or count == 1 or cpus == count * unit):
            shape = {"nodes": count, "cores_per_node": ceil(cpus / count)}
        else:
            shape = {"processors": cpus}
            self._say("nodes", count)
            self._say("cpus-per-task", unit if unit > 1 else None)
        self._say("ntasks-per-node", told.tasks_per_node)
        if count == 1:
            per_node, in_all, per_task = per_node or in_all or per_task * max(tasks, 1), 0, 0
        self._say("gpus", in_all)
        self._say("gpus-per-task", per_task)
        if told.gpu_type:
            self.options["gres"] = f"gpu:{told.gpu_type}:0"
        memory = self._memory_per_node(count, cpus, gpus_in(self.got) or in_all or per_node * len(self._placed))
        return {**shape, "gpus_per_node": per_node or per_task or min(in_all, 1), "memory_per_node": memory}

    def _say(self, option: str, number: float | None) -> None:
        if number:
            self.options[option] = f"{number:.0f}"

    def _number(self, option: str) -> int:
        text = self._values.get(option, "")
        return int(text) if text.isdecimal() else 0

    def _count(self, tasks: int) -> int | None:
        """Return the number of its nodes, if it is for a certain number."""
        told, wanted = self._told, int(self._row.get("requested_nodes", -1))
        if told.nodes is not None:
            return told.nodes[0] if told.nodes[0] == told.nodes[1] else None
        if told.tasks_per_node and tasks:
            return ceil(tasks / told.tasks_per_node)
        return None if wanted <= 1 else len(self._placed) or wanted

    def _cpus(self, tasks: int, count: int | None, gpus: int) -> int:
        """Return the cores that it asks for: those that it got, unless it asks for others to get these."""
        told, got = self._told, self._cpus_got
        guess = (tasks or count or 1) * told.cores_per_task if tasks or count else self._row.get("processors", 1)
        found = (self._want.get("cpu", 0), self._row.get("requested_processors", -1), guess, told.cores_per_task)
        cpus = max(next(int(each) for each in found if each > 0), count or 1)
        if self._exclusive or not got or (gpus and got == len(self._placed)) or "nodes" in self.options:
            return cpus
        return cpus if got < cpus and told.cores_per_task > 1 else got  # some tasks may have got fewer cores

    def _gpus(self) -> tuple[int, int, int]:
        """Return the GPUs of each node, in all and of each task: it asks for one of them."""
        told, nodes, got = self._told, len(self._placed), gpus_in(self.got)
        per_node, in_all, per_task = told.gpus_per_node, told.gpus, told.gpus_per_task
        tasks = self._number("ntasks") or self._cpus_got // told.cores_per_task
        if got and not self._exclusive and got not in (per_node * nodes, in_all, per_task * tasks):
            if per_node or in_all or per_task:
                self.doubts.append("other GPUs than in the submit line")
            return (0, got, 0) if got % nodes else (got // nodes, 0, 0)
        if not (per_node or in_all or per_task):
            wanted = gpus_in(self._want) / max(self._want.get("node", 1.0), 1.0)
            per_node = ceil(wanted) or max(int(self._row.get("gpus_per_node", 0)), 0)
        return per_node, in_all, per_task

    # ------------------------------------------------------------------ memory

    def _memory_per_node(self, count: int | None, cpus: int, gpus: int) -> float:
        """Return the memory of each node that it asks for; that of cores, GPUs or whole nodes becomes an option."""
        told, nodes, got = self._told, len(self._placed), self.got.get("mem")
        if not self._memory:
            return 0.0
        per_cpu, per_gpu = told.memory_per_cpu or 0.0, told.memory_per_gpu or 0.0
        held = told.memory_per_node * nodes, per_cpu * self._cpus_got, per_gpu * gpus, told.whole_memory * self._whole
        if got is None or any(each and abs(each - got) <= nodes * MIB for each in held):
            self._say("mem-per-cpu", per_cpu / MIB)
            self._say("mem-per-gpu", per_gpu / MIB)
            self.options |= {"mem": "0"} if told.whole_memory else {}
            if told.memory_per_node or per_cpu or per_gpu or told.whole_memory:
                return told.memory_per_node
            asked = self._want.get("mem", self._row.get("requested_memory", 0.0) * cpus)
            return self._split(asked, count, self._want.get("node", count or 1), cpus) if asked > 0 else 0.0
        if any(held):
            self.doubts.append("other memory than in the submit line")
        if abs(got - self._whole) <= nodes * MIB:
            self.options["mem"] = "0"
            return 0.0
        wanted, least = self._want.get("mem", 0.0), self._want.get("node", nodes)
        by_node = nodes != least and abs(wanted / least - got / nodes) <= MIB
        return self._split(got, nodes if by_node else count, nodes, self._cpus_got)

    def _split(self, amount: float, count: int | None, nodes: float, cpus: int) -> float:
        """Return an amount of memory by node if the number of these is certain; else it becomes an option, by core."""
        if count:
            return amount / max(nodes, 1)
        self._say("mem-per-cpu", amount / cpus / MIB)
        return 0.0
