"""The nodes of PBS, and the resources that its server counts, as its commands report them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from simmodel import InputError
from simmodel.extending import Fields, inside, shown
from simmodel_site.twin.mirror.node_states import Service
from simmodel_site.twin.pbs.commands import Document, table_of, text_of
from simmodel_site.twin.pbs.values import memory, number
from simmodel_site.twin.sources import Refused

__all__ = ["NodeRecord", "Size", "largest", "licences_in", "nodes_in"]

_DOWN = frozenset(("down", "state-unknown", "stale", "unresolvable", "initializing", "provisioning", "wait-provision"))
_DRAINING = frozenset(("offline", "maintenance", "sleep", "busy", "resv-exclusive"))


@attrs.frozen(kw_only=True, repr=False)
class Size(Fields):
    """The cores, the memory (bytes, 0: unknown) and the GPUs of a node."""

    cores: int = 1
    memory: float = 0.0
    gpus: int = 0

    def holds(self, cpus: int, memory: float, gpus: int) -> int:
        """Return how many chunks of this size fit on such a node, at least one.

        >>> Size(cores=16, gpus=4).holds(4, 0.0, 2), Size(cores=2).holds(4, 0.0, 0)
        (2, 1)
        """
        fits = [self.cores // cpus] if cpus else []
        fits += [int(self.memory // memory)] if memory and self.memory else []
        fits += [self.gpus // gpus] if gpus and self.gpus else []
        return max(min(fits, default=1), 1)


@attrs.frozen(kw_only=True, repr=False)
class NodeRecord(Fields):
    """A node, or a virtual node.

    Parameters
    ----------
    states
        the words of its state, such as ``free`` and ``offline``
    queue
        the queue whose jobs alone it runs
    sharing
        its attribute ``sharing``
    others
        its further resources, by name
    """

    name: str
    size: Size
    states: frozenset[str] = frozenset()
    queue: str | None = None
    sharing: str = "default_shared"
    comment: str = ""
    others: tuple[tuple[str, str], ...] = ()

    @property
    def service(self) -> Service:
        """Whether jobs run and start there: not at all if it is down, only run if it is draining."""
        return "down" if self.states & _DOWN else "draining" if self.states & _DRAINING else "up"


_KNOWN = frozenset(("arch", "host", "vnode", "ncpus", "mem", "ngpus"))


def nodes_in(document: Document, refused: Refused | None = None) -> Iterator[NodeRecord]:
    """Yield the nodes of an answer of ``pbsnodes``.

    Parameters
    ----------
    refused
        counts the nodes that make no sense; default: they raise an error

    Raises
    ------
    InputError
        a node makes no sense, and none are counted

    >>> answer = {"nodes": {"n1": {"state": "free", "resources_available": {"ncpus": "8", "mem": "16gb"}}}}
    >>> next(nodes_in(answer)).size
    Size(cores=8, memory=17179869184.0)
    """
    for name, given in table_of(document, "nodes").items():
        try:
            if not isinstance(given, dict):
                raise InputError(f"must be an object, got {shown(given)}")
            record = _node(name, given)
        except InputError as error:
            wrong = inside(f"node {shown(name)}", error)
            if refused is None:
                raise wrong from None
            refused.count(wrong)
        else:
            if record is not None:
                yield record


def _node(name: str, given: Document) -> NodeRecord | None:
    """Return a node; ``None``: it has no cores, as the natural node of a host whose virtual nodes have them."""
    told = table_of(given, "resources_available")
    cores = number(text_of(told, "ncpus"))
    cores = number(text_of(given, "pcpus")) if cores is None else cores
    if not cores:
        return None
    others = tuple((each, text_of(told, each)) for each in told if each not in _KNOWN)
    return NodeRecord(
        name=name,
        size=Size(
            cores=int(cores),
            memory=memory(text_of(told, "mem")) or 0.0,
            gpus=int(number(text_of(told, "ngpus")) or 0),
        ),
        states=frozenset(text_of(given, "state").replace(" ", "").split(",")),
        queue=text_of(given, "queue") or None,
        sharing=text_of(given, "sharing") or "default_shared",
        comment=text_of(given, "comment"),
        others=others,
    )


def largest(nodes: Iterable[NodeRecord]) -> Size:
    """Return the most cores, memory and GPUs that a node has."""
    sizes = [node.size for node in nodes]
    return Size(
        cores=max((size.cores for size in sizes), default=1),
        memory=max((size.memory for size in sizes), default=0.0),
        gpus=max((size.gpus for size in sizes), default=0),
    )


_OF_NODES = frozenset(("ncpus", "mem", "ngpus", "nodect", "walltime", "mpiprocs", "vmem"))


def licences_in(document: Document) -> dict[str, float]:
    """Return the resources that the server counts, such as licences, with their amounts.

    >>> licences_in({"Server": {"pbs": {"resources_available": {"matlab": "10", "site": "north"}}}})
    {'matlab': 10.0}
    """
    found: dict[str, float] = {}
    for values in table_of(document, "Server").values():
        told = table_of(values, "resources_available") if isinstance(values, dict) else {}
        for name in told:
            text = text_of(told, name)
            if name not in _OF_NODES and text.replace(".", "", 1).isdecimal() and len(text) < 16:
                found[name] = float(text)
    return found
