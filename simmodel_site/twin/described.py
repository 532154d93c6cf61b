"""The platform that a scheduler's own description of its cluster amounts to, and notes of what it cannot express."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import numpy as np

from simmodel import InputError
from simmodel.extending import Fields, node_list, read_bytes, read_workload, to_toml
from simmodel.platform import ClusterOptions, ClusterSpec, NodePower, NodeSpec
from simmodel.scheduling import policy as policy_of

if TYPE_CHECKING:
    from simmodel.extending import GivenWork, PolicyLike

__all__ = [
    "STATE_OF_NOW",
    "Described",
    "NodeKind",
    "Notes",
    "Unsupported",
    "around_sleep",
    "awake_first",
    "node_specs",
    "saved_answers",
    "with_power",
]

STATE_OF_NOW = "the state of now is no part of the platform: a source tells it"
"""Why a node that is out of service is noted."""

_CYCLE = 5.0  # seconds: Slurm looks at the queue at most so long after something has happened, but for backfilling
_SAMPLE = 2000  # starts that are judged
_FEWEST = 20  # starts that say something about a policy
_ARBITRARY = ("sjf", "ljf", "smallest", "largest")  # orders of the queue: what they explain, they explain by chance


@attrs.frozen(order=False, repr=False)
class Unsupported(Fields):
    """Something that a platform does not express.

    >>> print(Unsupported("partition debug", "DefaultTime=01:00:00", "requests have their own limits"))
    partition debug: DefaultTime=01:00:00 (requests have their own limits)
    """

    where: str
    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what} ({self.why})"


def around_sleep(policy: str) -> tuple[str, str, str]:
    """Return the name of the policy inside of one that lets nodes sleep, with the text before and after it.

    >>> around_sleep("sleep-after(600, slurm(bf_interval=10), spare=2)"), around_sleep("easy")
    (('sleep-after(600, ', 'slurm(bf_interval=10)', ', spare=2)'), ('', 'easy', ''))
    """
    found = re.fullmatch(r"(sleep-after\([^,]*, )(.*?)((?:, spare=\d+)?\))", policy)
    return ("", policy, "") if found is None else (found[1], found[2], found[3])


def with_power(spec: ClusterSpec, change: Callable[[NodePower | None], NodePower | None]) -> ClusterSpec:
    """Return a platform whose nodes sleep otherwise, or not at all.

    >>> from simmodel.platform import PartitionSpec
    >>> spec = ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(power=NodePower(boot=(60, 0)))])])
    >>> with_power(spec, lambda _: None).partitions[0].nodes
    (NodeSpec(),)
    """
    parts = [
        attrs.evolve(part, nodes=[attrs.evolve(node, power=change(node.power)) for node in part.nodes])
        for part in spec.partitions
    ]
    return attrs.evolve(spec, partitions=parts)


def awake_first(spec: ClusterSpec) -> ClusterSpec:
    """Return a platform none of whose nodes sleeps at the beginning."""
    return with_power(spec, lambda power: power and attrs.evolve(power, asleep=False))


class Notes:
    """A list of the properties that are not expressed, each entry once."""

    def __init__(self) -> None:
        self._found: dict[Unsupported, None] = {}

    def add(self, where: str, what: str, why: str) -> None:
        self._found[Unsupported(where, what, why)] = None

    def add_of_nodes(self, told: Iterable[tuple[str, str, str]]) -> None:
        """Add entries of nodes, each as name, property and consequence; those that are alike as one.

        >>> notes = Notes()
        >>> notes.add_of_nodes((f"n{i}", "Features=big", "not modelled") for i in (1, 2))
        >>> [str(each) for each in notes]
        ['nodes n[1-2]: Features=big (not modelled)']
        """
        found: dict[tuple[str, str], list[str]] = {}
        for name, what, why in told:
            found.setdefault((what, why), []).append(name)
        for (what, why), names in found.items():
            brackets = any("[" in name for name in names)
            self.add(f"nodes {', '.join(names[:3]) if brackets else node_list(names)}", what, why)

    def __iter__(self) -> Iterator[Unsupported]:
        return iter(self._found)


@attrs.frozen(kw_only=True, repr=False)
class Described(Fields):
    """The cluster of a scheduler as a platform.

    Parameters
    ----------
    spec, policy, options
        the platform; the policy and the options that its scheduler amounts to
    unsupported
        the properties of the cluster that they do not express
    down, draining
        the nodes that were out of service when the scheduler was asked
    explained
        the shares of recorded starts that policies explain, the highest first; none: no log was asked
    chance, starts
        the share that an arbitrary order explains, and the number of starts that were judged
    nearest
        if the policy is one with loops of its own, the nearest one that decides at each event
    within
        the seconds by which a start may come later than a policy wanted it, to be explained
    """

    spec: ClusterSpec
    policy: str
    options: ClusterOptions = attrs.field(factory=ClusterOptions)
    unsupported: tuple[Unsupported, ...] = ()
    down: tuple[str, ...] = ()
    draining: tuple[str, ...] = ()
    explained: Mapping[str, float] = attrs.field(factory=dict)
    chance: float = 0.0
    starts: int = 0
    nearest: str = ""
    within: float = _CYCLE

    @property
    def known(self) -> bool:
        """Whether the policy is that of the settings alone, or explains most of the starts that chance does not.

        That is more than half of the recorded starts that an arbitrary order leaves unexplained, of at least 20 starts.

        >>> spec = ClusterSpec.simple(4)
        >>> found = [Described(spec=spec, policy="easy", explained={"easy": share}, chance=0.4, starts=80)
        ...     for share in (0.6, 0.9)]
        >>> [each.known for each in found]
        [False, True]
        """
        if not self.explained:
            return True
        return self.starts >= _FEWEST and self.explained[self.policy] - self.chance > (1 - self.chance) / 2

    def explained_by(self, log: GivenWork) -> Described:
        """Return this with the policy that explains the recorded starts of a log best: in order, or with backfilling.

        Policies that sort the queue arbitrarily are judged beside it: see :attr:`known`. When the loops of Slurm ran, a
        log does not tell: its policy is asked at each recorded start, a start may come a backfill cycle later, and
        a boot where nodes sleep, and another policy must explain more than half of the starts that it does not.

        Raises
        ------
        InputError
            the log has no starts, or cannot be read
        """
        from simmodel.referee import identify
        from simmodel_site.policy.policy import Slurm

        before, inner, after = around_sleep(self.policy)
        nearest = self.nearest or inner
        order = nearest.removesuffix("conservative").removesuffix("+") or "fcfs"
        prefix = "" if order == "fcfs" else f"{order}+"
        names = list(dict.fromkeys([nearest, order, f"{prefix}easy", f"{prefix}conservative"]))
        candidates: dict[str, PolicyLike] = {f"{before}{name}{after}": name for name in names}
        within = _CYCLE
        if isinstance(own := policy_of(inner), Slurm):
            starts = read_workload(log).recorded_starts()
            candidates = {self.policy: own.asked_at(np.unique(starts[np.isfinite(starts)]).tolist())} | candidates
            within = max(within, own.settings.bf_interval)
        within += max(kind.watts.expected_boot for part in self.spec.partitions for kind in [*part.nodes, NodeSpec()])
        known = set(candidates)
        candidates |= {name: name for name in _ARBITRARY if name not in candidates}
        found = identify(log, None, with_power(self.spec, lambda _: None), candidates, tolerance=within, sample=_SAMPLE)
        shares = {name: share for name, share in found.shares.items() if name in known}
        best, told = next(iter(shares)), shares[self.policy]
        if self.nearest and shares[best] <= told + (1 - told) / 2:
            best = self.policy  # that of the settings, unless another one explains much more
        chance = max(share for name, share in found.shares.items() if name not in known)
        return attrs.evolve(self, policy=best, explained=shares, chance=chance, starts=found.judged, within=within)

    def toml(self) -> str:
        """Return the platform as TOML, with comments on the policy and on the properties that are not expressed."""
        comments = [f"policy: {self.policy}" if self.known else self._not_known()]
        if self.explained:
            shares = ", ".join(f"{name} {share:.0%}" for name, share in self.explained.items())
            comments.append(
                f"recorded starts explained within {self.within:g} s: {shares}; "
                f"by an arbitrary order: {self.chance:.0%}"
            )
        if self.options.overrun == "continue":
            comments.append("option: overrun = continue")
        if self.unsupported:
            comments += ["not expressed:", *(f"  {each}" for each in self.unsupported)]
        return to_toml(self.spec, comments)

    def _not_known(self) -> str:
        said = f"policy: not known; {self.policy} explains {self.explained[self.policy]:.0%} of the recorded starts"
        return said if self.starts >= _FEWEST else f"{said}, of which there are only {self.starts}"


def saved_answers(paths: Iterable[str | Path], passed: list[str] | None = None) -> Iterator[tuple[bytes, str]]:
    """Yield the content and the name of each of these files; of folders, all their files in order.

    Parameters
    ----------
    passed
        takes the names of the files of folders that are no text or cannot be read; default: such a file is an error

    Raises
    ------
    InputError
        a file cannot be read
    """
    for path in map(Path, paths):
        for each in sorted(each for each in path.iterdir() if each.is_file()) if path.is_dir() else [path]:
            try:
                found = read_bytes(each)
            except InputError:
                if passed is None or each == path:
                    raise
                passed.append(each.name)
                continue
            yield found


class NodeKind(NamedTuple):
    """The resources of a node that jobs can have (memory in bytes), its switch, its GPUs by type, and how it sleeps."""

    cores: int
    gpus: int = 0
    memory: float = 0.0
    switch: str | None = None
    gpu_types: tuple[tuple[str, int], ...] = ()
    power: NodePower | None = None


def node_specs(nodes: Iterable[tuple[str, NodeKind]], notes: Notes) -> tuple[NodeSpec, ...]:
    """Return the specs of nodes, one for all of a kind.

    >>> node_specs([(f"n{i}", NodeKind(4 + i % 2)) for i in range(1, 5)], Notes())
    (NodeSpec(names='n[1,3]', count=2, cores=5), NodeSpec(names='n[2,4]', count=2, cores=4))
    """
    kinds: dict[NodeKind, list[str]] = {}
    for name, kind in nodes:
        kinds.setdefault(kind, []).append(name)
    specs = []
    for kind, names in kinds.items():
        fields: dict[str, Any] = {**kind._asdict(), "gpu_types": dict(kind.gpu_types)}
        if any("[" in each or "," in each for each in names):
            notes.add(f"nodes {', '.join(names[:3])}", "names with brackets", "renamed: a twin needs names of hosts")
            specs.append(NodeSpec(name="vnode", count=len(names), **fields))
        else:
            specs.append(NodeSpec(names=node_list(names), **fields))
    return tuple(specs)
