"""Slurm's power saving: which nodes sleep once they were idle for long enough, and how long they boot and stop.

Source: slurm.conf(5) and the power saving of slurmctld 22.05 by its messages: off unless SuspendProgram, ResumeProgram
and SuspendTime are set; a node that is not up by ResumeTimeout goes down, and its job is requeued.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import Any

import attrs

from simmodel import InputError
from simmodel.extending import Fields
from simmodel.platform import NodePower
from simmodel_site.twin.described import Notes
from simmodel_site.twin.slurm.records import NodeRecord, PartitionRecord, Site
from simmodel_site.twin.slurm.values import is_none, nodes_of, seconds, split_list

__all__ = ["PowerSaving", "boot_of", "is_asleep"]

_USUAL = {
    "SuspendTime": "INFINITE",
    "SuspendTimeout": "30",
    "ResumeTimeout": "60",
    "SuspendRate": "60",
    "ResumeRate": "300",
}
_OFF = frozenset(("POWER", "POWERED_DOWN", "POWER_DOWN", "POWERING_DOWN"))
_WHERE = "scheduler"


def boot_of(given: Any) -> Any:
    """Return how long a boot takes: seconds, a quantity, or a distribution, also as a text or a mapping.

    Raises
    ------
    InputError
        it is none of these

    >>> boot_of("4min"), boot_of("uniform(low=60, high=90)")
    (240.0, {'distribution': 'uniform', 'low': 60.0, 'high': 90.0})
    """
    if isinstance(given, str) and (found := re.fullmatch(r"(\w+)\((.*)\)", given.strip())):
        pairs = [each.partition("=") for each in split_list(found[2])]
        try:
            given = {"distribution": found[1], **{name.strip(): float(value) for name, _, value in pairs}}
        except ValueError:
            raise InputError(f"must be as in uniform(low=60, high=90), got {given!r}", place="boot") from None
    elif isinstance(given, str) and given.strip().isdecimal():
        given = float(given)
    boot = NodePower(boot=(given, 0)).boot
    return None if boot is None else boot[0]


def is_asleep(node: NodeRecord) -> bool:
    """Whether a node is powered down, or about to be; a line of slurm.conf with ``State=CLOUD`` says that it is.

    >>> [is_asleep(NodeRecord(name="n", cpus=1, states=frozenset(each.split("+")))) for each in ("CLOUD", "IDLE+CLOUD")]
    [True, False]
    """
    return bool(node.states & _OFF) or node.states == {"CLOUD"}


@attrs.frozen(kw_only=True, repr=False)
class PowerSaving(Fields):
    """The nodes of a site that sleep, and when they do.

    Parameters
    ----------
    time, spare
        after how many idle seconds they sleep, and how many of them stay awake all the same
    powers
        how each of them sleeps, by name
    """

    time: float = inf
    spare: int = 0
    powers: Mapping[str, NodePower] = attrs.field(factory=dict)

    def over(self, policy: str) -> str:
        """Return the name of a policy that lets nodes sleep.

        >>> PowerSaving(time=600, spare=2, powers={"n1": NodePower(boot=(60, 0))}).over("easy")
        'sleep-after(600, easy, spare=2)'
        """
        more = f", spare={self.spare}" if self.spare else ""
        return f"sleep-after({self.time:g}, {policy}{more})" if self.powers else policy

    @classmethod
    def of(cls, site: Site, place_of: Mapping[str, str], notes: Notes, boot: Any = None, *, ran: bool) -> PowerSaving:
        """Return the power saving of a site; note what it leaves out.

        Parameters
        ----------
        place_of
            the partition of the platform by node
        boot
            how long a boot takes (s, or the mapping of a distribution); default: ResumeTimeout, an upper bound
        ran
            whether it is read with its accounting: then the nodes of ``State=CLOUD`` sleep at the beginning, otherwise
            those that sleep now

        Raises
        ------
        InputError
            a setting is malformed, or no boot ends by ResumeTimeout
        """
        settings = site.settings or {}
        parts: dict[str, list[PartitionRecord]] = {}
        for part in site.partitions or ():
            for name in nodes_of(part.nodes):
                parts.setdefault(name, []).append(part)
        nodes = [node for node in site.nodes or () if node.name in place_of]
        times = {node.name: _time("SuspendTime", parts.get(node.name, ()), settings) for node in nodes}
        if site.settings is not None and (lacks := [each for each in _PROGRAMS if is_none(settings.get(each, ""))]):
            if min(times.values(), default=inf) < inf:
                notes.add(_WHERE, "SuspendTime", f"no node sleeps: {' and '.join(lacks)} not told")
            times = {}
        spared = {*split_list(settings.get("SuspendExcParts", ""))}
        kept = {name for name, several in parts.items() if any(part.name in spared for part in several)}
        whole, sets = _excluded(settings.get("SuspendExcNodes", ""))
        may = {name: time for name, time in times.items() if time < inf and name not in kept | whole}
        spare = 0
        for names, count in sets:
            if names >= may.keys() and len(sets) == len({place_of[name] for name in may}) == 1:
                spare = count
                continue
            stay = [name for name in may if name in names][:count]
            may = {name: time for name, time in may.items() if name not in stay}
            why = f"these never sleep here, rather than any {count} idle ones"
            notes.add_of_nodes((name, f"SuspendExcNodes with :{count}", why) for name in stay)
        if not may:
            if boot is not None:
                notes.add(_WHERE, "boot time", "given, but no node sleeps")
            return cls()
        counts = Counter(may.values())
        time = max(counts, key=lambda each: (counts[each], each))
        why = f"sleep after {time:g} s here, as most nodes that sleep do"
        notes.add_of_nodes((name, f"SuspendTime={own:g}", why) for name, own in may.items() if own != time)
        for name in ("SuspendRate", "ResumeRate"):
            rate = re.match(r"\d+", settings.get(name, _USUAL[name]))
            if rate and 0 < int(rate[0]) < len(may):
                what = "sleep" if name == "SuspendRate" else "boot"
                notes.add(_WHERE, f"{name}={rate[0]}", f"any number of the {len(may)} nodes {what} at once here")
        powers = {
            node.name: _power(
                _time("ResumeTimeout", parts.get(node.name, ()), settings),
                _time("SuspendTimeout", parts.get(node.name, ()), settings),
                boot,
                asleep="CLOUD" in node.states if ran else is_asleep(node),
            )
            for node in nodes
            if node.name in may
        }
        notes.add_of_nodes(_told(powers, boot))
        return cls(time=time, spare=spare, powers=powers)


_BETTER = "slurm read takes --boot, or slurmctld.log (DebugFlags=Power)"
_PROGRAMS = ("SuspendProgram", "ResumeProgram")


def _time(name: str, parts: Iterable[PartitionRecord], settings: Mapping[str, str]) -> float:
    """Return a time (s) of a node: the longest that its partitions say, or else that of the cluster."""
    own = [text for part in parts if (text := part.others.get(name, "GLOBAL")) != "GLOBAL"]
    try:
        found = [seconds(text) for text in own or [settings.get(name, _USUAL[name])] if not text.startswith("-")]
    except InputError as error:
        raise InputError(error.message, place=name) from None
    return max([inf if each is None else each for each in found or [None]])


def _excluded(text: str) -> tuple[set[str], list[tuple[set[str], int]]]:
    """Return the nodes of ``SuspendExcNodes``, and its sets of nodes of which so many stay awake.

    A count is that of the nodes before it.

    >>> _excluded("n[1-2]:1,n[7-8]") == ({"n7", "n8"}, [({"n1", "n2"}, 1)])
    True
    """
    names: set[str] = set()
    sets = []
    for item in () if is_none(text) else split_list(text):
        listed, _, count = item.partition(":")
        names |= {*nodes_of(listed)}
        if count.isdecimal():
            sets.append((names, int(count)))
            names = set()
    return names, sets


def _power(limit: float, stop: float, boot: Any, *, asleep: bool) -> NodePower:
    """Return how a node sleeps; ``limit``: its ResumeTimeout, ``stop``: its SuspendTimeout (s)."""
    if isinstance(boot, float | int) and boot > limit:
        raise InputError(f"must be at most ResumeTimeout, {limit:g} s, else no node boots; got {boot:g}", place="boot")
    time = limit if boot is None else boot
    return NodePower(boot=(time, 0), stop=(stop, 0), boot_limit=limit, asleep=asleep)


def _told(powers: Mapping[str, NodePower], boot: Any) -> Iterator[tuple[str, str, str]]:
    """Yield what is assumed of the boots of nodes."""
    for name, power in powers.items():
        limit = power.boot_limit or 0.0
        if boot is None:
            yield name, "boot time", f"taken as ResumeTimeout, {limit:g} s, an upper bound: {_BETTER}"
        elif isinstance(boot, Mapping) and max(boot.get("values", [boot.get("high", inf)])) > limit:
            why = "the node is down for an hour, as no file tells how long"
            yield name, f"boots beyond ResumeTimeout={limit:g}", why
