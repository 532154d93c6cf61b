"""Slurm's power saving: which nodes sleep once they were idle for long enough, and how long they boot and stop.

Source: slurm.conf(5) and the power saving of slurmctld 22.05 by its messages: off unless SuspendProgram, ResumeProgram
and SuspendTime are set; a node that is not up by ResumeTimeout goes down, and its job is requeued.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from simmodel import InputError
from simmodel.extending import Fields
from simmodel.platform import NodePower
from simmodel_site.twin.described import Notes
from simmodel_site.twin.slurm.records import NodeRecord, PartitionRecord, Site
from simmodel_site.twin.slurm.values import is_none, nodes_of, seconds, split_list

if TYPE_CHECKING:
    from simmodel.generators import Distribution

__all__ = ["Boot", "PowerSaving", "is_asleep"]

Boot: TypeAlias = "float | str | Mapping[str, Any] | Distribution"
"""How long a boot takes: seconds, a quantity, or a distribution, also as its mapping."""

_USUAL = {
    "SuspendTime": "INFINITE",
    "SuspendTimeout": "30",
    "ResumeTimeout": "60",
    "SuspendRate": "60",
    "ResumeRate": "300",
}
_OFF = frozenset(("POWER", "POWERED_DOWN", "POWER_DOWN", "POWERING_DOWN"))
_WHERE = "scheduler"


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
    def of(
        cls, site: Site, place_of: Mapping[str, str], notes: Notes, boot: Boot | None = None, *, ran: bool
    ) -> PowerSaving:
        """Return the power saving of a site; note what it leaves out.

        Parameters
        ----------
        place_of
            the partition of the platform by node
        boot
            how long a boot takes: a number, a quantity, or a distribution; default: ResumeTimeout, an upper bound
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

        def time(key: str, name: str) -> float:
            return _longest(key, [part.others.get(key, "GLOBAL") for part in parts.get(name, ())], settings)

        spared = {*split_list(settings.get("SuspendExcParts", ""))}
        kept, sets = _excluded(settings.get("SuspendExcNodes", ""))
        kept |= {name for name, several in parts.items() if any(part.name in spared for part in several)}
        times = {name: at for name in place_of if name not in kept and (at := time("SuspendTime", name)) < inf}
        lacks = [each for each in ("SuspendProgram", "ResumeProgram") if is_none(settings.get(each, ""))]
        if times and lacks and site.settings is not None:
            notes.add(_WHERE, "SuspendTime", f"no node sleeps: {' and '.join(lacks)} not told")
            times = {}
        spare = 0
        for names, count in sets:
            if names >= times.keys() and len(sets) == len({place_of[name] for name in times}) == 1:
                spare = count
                continue
            stay = [name for name in times if name in names][:count]
            times = {name: at for name, at in times.items() if name not in stay}
            why = f"these never sleep here, rather than any {count} idle ones"
            notes.add_of_nodes((name, f"SuspendExcNodes with :{count}", why) for name in stay)
        if not times:
            if boot is not None:
                notes.add(_WHERE, "boot time", "given, but no node sleeps")
            return cls()
        counts = Counter(times.values())
        most = max(counts, key=lambda each: (counts[each], each))
        why = f"sleep after {most:g} s here, as most nodes that sleep do"
        notes.add_of_nodes((name, f"SuspendTime={at:g}", why) for name, at in times.items() if at != most)
        for key, does in (("SuspendRate", "sleep"), ("ResumeRate", "boot")):
            rate = re.match(r"\d+", settings.get(key, _USUAL[key]))
            if rate and 0 < int(rate[0]) < len(times):
                notes.add(_WHERE, f"{key}={rate[0]}", f"any number of the {len(times)} nodes {does} at once here")
        first = {node.name for node in site.nodes or () if ("CLOUD" in node.states if ran else is_asleep(node))}
        limits = {name: time("ResumeTimeout", name) for name in times}
        powers = {
            name: NodePower(
                boot=(limit if boot is None else boot, 0),
                stop=(time("SuspendTimeout", name), 0),
                boot_limit=limit,
                asleep=name in first,
            )
            for name, limit in limits.items()
        }
        if boot is None:
            why = "s, an upper bound: slurm read takes --boot, or slurmctld.log (DebugFlags=Power)"
            notes.add_of_nodes(
                (name, "boot time", f"taken as ResumeTimeout, {limit:g} {why}") for name, limit in limits.items()
            )
        why = "the node is down for an hour, as no file tells how long"
        late = [name for name, power in powers.items() if _may_fail(power)]
        notes.add_of_nodes((name, f"boots beyond ResumeTimeout={limits[name]:g}", why) for name in late)
        return cls(time=most, spare=spare, powers=powers)


def _may_fail(power: NodePower) -> bool:
    """Whether a boot may take longer than its limit; an error if each one does."""
    (boot, _), limit = power.boot or (0.0, 0.0), power.boot_limit or 0.0
    if isinstance(boot, Mapping):
        return bool(max(boot.get("values", [boot.get("high", inf)])) > limit)
    if boot > limit:
        raise InputError(f"must be at most ResumeTimeout, {limit:g} s, else no node boots; got {boot:g}", place="boot")
    return False


def _longest(key: str, own: Iterable[str], settings: Mapping[str, str]) -> float:
    """Return a time (s): the longest that partitions have of their own, or else that of the cluster; ``inf``: none."""
    texts = [text for text in own if text != "GLOBAL"] or [settings.get(key, _USUAL[key])]
    try:
        found = [None if text.startswith("-") else seconds(text) for text in texts]
    except InputError as error:
        raise InputError(error.message, place=key) from None
    return max([inf if each is None else each for each in found])


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
