"""What slurm.conf and topology.conf tell of nodes beside their amounts: weights, features, types of GPUs, switches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs

from simmodel import InputError
from simmodel.extending import Fields, node_names, shown, unknown
from simmodel_site.policy.settings import parts_of, whole

if TYPE_CHECKING:
    from simmodel_site.policy.wishes import Wishes

__all__ = ["ANYWHERE", "Layout", "SlurmNodes", "SlurmSwitch", "Where", "nodes_of", "switches_of"]

FAR = 2**32
"""The distance of switches between which there is no way."""


@attrs.frozen(kw_only=True, repr=False)
class SlurmNodes(Fields):
    """Nodes of slurm.conf, where they differ from others.

    Parameters
    ----------
    names
        the list of their names, as Slurm writes it
    weight
        ``Weight``: jobs get nodes of low weight first
    features
        their ``Features``
    gpus
        the types of their GPUs
    threads, socket
        how many CPUs a core has, and a socket
    """

    names: str
    weight: int = 1
    threads: int = 1
    socket: int = 1
    features: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    gpus: tuple[str, ...] = attrs.field(default=(), converter=tuple)

    @property
    def text(self) -> str:
        """Its text, as :func:`nodes_of` reads it.

        >>> SlurmNodes(names="n[1-2]", weight=10, features=["big", "ib"]).text
        'n[1-2]:weight=10:features=big+ib'
        """
        counts = {name: getattr(self, name) for name in _COUNTS}
        parts = [self.names] + [f"{name}={count}" for name, count in counts.items() if count != 1]
        parts += [f"{key}={'+'.join(each)}" for key, each in (("features", self.features), ("gpus", self.gpus)) if each]
        return ":".join(parts)


@attrs.frozen(kw_only=True, repr=False)
class SlurmSwitch(Fields):
    """A switch of topology.conf: the lists of its nodes, or of the switches below it."""

    name: str
    nodes: str = ""
    switches: str = ""

    @property
    def text(self) -> str:
        """Its text, as :func:`switches_of` reads it.

        >>> SlurmSwitch(name="top", switches="s[1-2]").text
        'top:switches=s[1-2]'
        """
        return f"{self.name}:switches={self.switches}" if self.switches else f"{self.name}:nodes={self.nodes}"


_COUNTS = ("weight", "threads", "socket")
"""The fields of nodes that are whole numbers, usually 1."""


def _names(text: str) -> list[str]:
    return text.split("+")


def nodes_of(text: str) -> tuple[SlurmNodes, ...]:
    """Return the nodes of a text: ``LIST[:weight=N][:threads=N][:socket=N][:features=A+B][:gpus=A+B]``, and semicolons.

    Raises
    ------
    InputError
        a key is unknown, or a weight, or a number of CPUs, is not a number

    >>> nodes_of("n[1-2]:weight=10; n3:features=big+ib")[1].features
    ('big', 'ib')
    """
    return tuple(SlurmNodes(names=name, **values) for name, values in parts_of(text, _NODES))


def switches_of(text: str) -> tuple[SlurmSwitch, ...]:
    """Return the switches of a text, ``NAME:nodes=LIST`` or ``NAME:switches=LIST``, separated by semicolons.

    Raises
    ------
    InputError
        a key is unknown

    >>> [each.name for each in switches_of("s1:nodes=n[1-4]; s2:nodes=n[5-8]; top:switches=s[1-2]")]
    ['s1', 's2', 'top']
    """
    return tuple(SlurmSwitch(name=name, **values) for name, values in parts_of(text, {"nodes": str, "switches": str}))


_NODES: dict[str, Any] = dict.fromkeys(_COUNTS, whole) | {"features": _names, "gpus": _names}


class Where(NamedTuple):
    """On which nodes a job may run, as bits.

    Parameters
    ----------
    may, must
        the nodes that it may have, and those that it must have
    alike
        sets of nodes of which it gets one alone: the first in which it fits
    counts
        sets of nodes, and how many nodes of each it must have
    """

    may: int = -1
    must: int = 0
    alike: tuple[int, ...] = ()
    counts: tuple[tuple[int, int], ...] = ()


ANYWHERE = Where()


class Switch(NamedTuple):
    """A switch: its nodes as bits, its level (0: a leaf), and the number of the switch above it, or its own."""

    nodes: int
    level: int
    parent: int


class Layout:
    """The nodes of a place as Slurm knows them.

    Parameters
    ----------
    names
        the names of its nodes; empty: they have none
    count
        their number
    nodes, switches
        of slurm.conf and topology.conf

    Attributes
    ----------
    pieces
        the CPUs of a core and of a socket of the nodes where they are more than one, by number
    weights
        the nodes of each weight as bits, the lowest first: those that are awake come before all that sleep
    """

    def __init__(
        self, names: Sequence[str], count: int, nodes: Iterable[SlurmNodes] = (), switches: Sequence[SlurmSwitch] = ()
    ) -> None:
        self._number = {name: i for i, name in enumerate(names)}
        everything = (1 << count) - 1
        weights: dict[int, int] = {}
        self.features: dict[str, int] = {}
        self.gpus: dict[str, int] = {}
        self.pieces: dict[int, tuple[int, int]] = {}
        rest = everything
        for each in nodes:
            mask = self.mask(each.names)
            rest &= ~mask
            if each.threads > 1 or each.socket > 1:
                self.pieces |= {i: (each.threads, each.socket) for i in range(count) if mask >> i & 1}
            weights[each.weight] = weights.get(each.weight, 0) | mask
            for kind, told in ((self.features, each.features), (self.gpus, each.gpus)):
                for name in told:
                    kind[name] = kind.get(name, 0) | mask
        if rest:
            weights[1] = weights.get(1, 0) | rest
        self.weights = self._weights = [mask for _, mask in sorted(weights.items()) if mask]
        self.switches = self._tree(switches)
        self.distances = _distances(self.switches)
        self._where: dict[Wishes, Where] = {}

    def sleep(self, nodes: int) -> None:
        """Note which nodes sleep, as bits.

        >>> layout = Layout([], 4)
        >>> layout.sleep(0b0101)
        >>> layout.weights
        [10, 5]
        """
        both = [mask & ~nodes for mask in self._weights] + [mask & nodes for mask in self._weights]
        self.weights = [mask for mask in both if mask]

    def mask(self, text: str) -> int:
        """Return the nodes of a list as bits; those of other places are left out."""
        number = self._number
        return sum(1 << number[name] for name in dict.fromkeys(node_names(text)) if name in number)

    def _tree(self, switches: Sequence[SlurmSwitch]) -> list[Switch]:
        """Return the switches, each before those above it."""
        numbers = {each.name: i for i, each in enumerate(switches)}
        masks, levels, parents = [0] * len(switches), [0] * len(switches), list(range(len(switches)))

        def visit(i: int, above: tuple[int, ...]) -> None:
            if i in above:
                raise InputError(f"switch {switches[i].name} is below itself", place="switches")
            masks[i] = self.mask(switches[i].nodes)
            for name in node_names(switches[i].switches):
                if name not in numbers:
                    raise unknown("switch", name, numbers)
                child = numbers[name]
                visit(child, (*above, i))
                parents[child] = i
                masks[i] |= masks[child]
                levels[i] = max(levels[i], levels[child] + 1)

        for i in range(len(switches)):
            visit(i, ())
        return [Switch(*each) for each in zip(masks, levels, parents, strict=True)]

    def where(self, wishes: Wishes) -> Where:
        """Return on which nodes a job may run by its wishes.

        Raises
        ------
        InputError
            its features are not written as Slurm accepts them
        """
        found = self._where.get(wishes)
        if found is None:
            found = self._where[wishes] = self._new_where(wishes)
        return found

    def _new_where(self, wishes: Wishes) -> Where:
        may = -1
        alike: tuple[int, ...] = ()
        counts: tuple[tuple[int, int], ...] = ()
        if wishes.exclude:
            may &= ~self.mask(wishes.exclude)
        if wishes.gpu_type:
            may &= self.gpus.get(wishes.gpu_type, 0)
        if wishes.constraint:
            features, alike, counts = _constraint(wishes.constraint, self.features)
            may &= features
        must = self.mask(wishes.nodelist) if wishes.nodelist else 0
        if must.bit_count() < len(dict.fromkeys(node_names(wishes.nodelist))):
            may = 0  # some of them are elsewhere
        found = Where(may, must, tuple(each & may for each in alike), tuple((each & may, n) for each, n in counts))
        return ANYWHERE if found == ANYWHERE else found


def _distances(switches: Sequence[Switch]) -> list[list[int]]:
    """Return the number of links between each two switches."""
    count = len(switches)
    found = [[FAR] * count for _ in range(count)]
    ways: list[dict[int, int]] = []
    for i in range(count):
        way, at, steps = {i: 0}, i, 0
        while switches[at].parent != at:
            at, steps = switches[at].parent, steps + 1
            way[at] = steps
        ways.append(way)
    for i, way in enumerate(ways):
        for j, other in enumerate(ways):
            found[i][j] = min([steps + other[at] for at, steps in way.items() if at in other], default=FAR)
    return found


_TERM = re.compile(r"\s*([^\s&|()\[\]*]+)(?:\*(\d+))?\s*")


def _constraint(text: str, features: Mapping[str, int]) -> tuple[int, tuple[int, ...], tuple[tuple[int, int], ...]]:
    """Return the nodes that have the features, sets of which one alone must do, and sets with numbers of nodes.

    ``&`` and ``|`` have one rank, from left to right, as in Slurm; parentheses come first.

    >>> features = {"a": 0b0011, "b": 0b0110, "c": 0b1000}
    >>> bin(_constraint("a&b|c", features)[0]), _constraint("[a|c]", features)[1], _constraint("a*2&c*1", features)[2]
    ('0b1010', (3, 8), ((3, 2), (8, 1)))
    """
    bare = text.strip()
    counts = tuple((features.get(name, 0), int(number)) for name, number in _TERM.findall(bare) if number)
    if counts:
        plain = re.sub(r"[\[\]]", "", _TERM.sub("", bare))
        if plain.strip("&"):
            raise InputError(f"numbers of nodes go with & only, got {shown(text)}", place="--constraint")
        others = [features.get(name, 0) for name, number in _TERM.findall(bare) if not number]
        may = -1
        for each in others:
            may &= each
        return may, (), counts
    if bare.startswith("[") and bare.endswith("]"):
        sets = tuple(_expression(part, features, text) for part in bare[1:-1].split("|"))
        union = 0
        for each in sets:
            union |= each
        return union, sets, ()
    return _expression(bare, features, text), (), ()


def _expression(text: str, features: Mapping[str, int], whole: str) -> int:
    tokens = re.findall(r"[&|()]|[^\s&|()]+", text)

    def term() -> int:
        if not tokens:
            raise InputError(f"must be features with & and |, got {shown(whole)}", place="--constraint")
        token = tokens.pop(0)
        if token == "(":
            found = chain()
            if not tokens or tokens.pop(0) != ")":
                raise InputError(f"has an open parenthesis, got {shown(whole)}", place="--constraint")
            return found
        if token in "&|)" or set("[]*") & set(token):
            raise InputError(f"must be features with & and |, got {shown(whole)}", place="--constraint")
        return features.get(token, 0)

    def chain() -> int:
        found = term()
        while tokens and tokens[0] in "&|":
            both = tokens.pop(0) == "&"
            other = term()
            found = found & other if both else found | other
        return found

    found = chain()
    if tokens:
        raise InputError(f"must be features with & and |, got {shown(whole)}", place="--constraint")
    return found
