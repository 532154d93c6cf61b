"""The output of ``scontrol show config``, ``node``, ``partition``, ``reservation``, ``license`` and ``topology``.

Source: scontrol(1). Each record begins with its name at the beginning of a line, and is on one line (``--oneliner``) or
on several. Free texts, such as the reason why a node is down, end a record: of a key that occurs twice, the first one
counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import tzinfo
from typing import TypeVar

from simmodel import InputError
from simmodel.extending import clipped
from simmodel_site.policy.keys import (
    LICENCE,
    RESERVATION,
    SHOW_CONFIG,
    SHOW_NODE,
    SHOW_PARTITION,
    SHOW_TOPOLOGY,
    Keys,
    is_unset,
)
from simmodel_site.twin.described import Unsupported
from simmodel_site.twin.slurm.conf import partition_settings
from simmodel_site.twin.slurm.records import (
    LicenceRecord,
    NodeRecord,
    PartitionRecord,
    ReservationRecord,
    Site,
    SwitchRecord,
)
from simmodel_site.twin.slurm.values import (
    amounts,
    count_of,
    cpus_of,
    gres,
    instant,
    is_none,
    memory,
    seconds,
    split_list,
    whole,
)

__all__ = ["read_scontrol"]

_T = TypeVar("_T")
_KEY = re.compile(r"(?:^|(?<=\s))([A-Z][A-Za-z/:&]*)=")
_SETTING = re.compile(r"^([A-Za-z_]+(?:\[\d+\])?)[ \t]*= ?(.*)$", re.MULTILINE)
_STAMP = re.compile(r"\s*\[[^\[\]]*@[^\[\]]*\].*", re.DOTALL)

_FREE = frozenset(("Reason", "Comment", "Extra"))
"""The keys of free texts, which may look like other keys."""


def read_scontrol(text: str, source: str = "scontrol", local: tzinfo | None = None) -> Site:
    """Return the site in a text of scontrol, of any of its reports or several one after another.

    Parameters
    ----------
    source
        where the text is from, for errors
    local
        the zone of times; default: that of this computer

    Raises
    ------
    InputError
        a record lacks a value, or has a wrong one; or nothing is recognised

    >>> site = read_scontrol("NodeName=n1 CPUEfctv=4 CPUTot=4 RealMemory=2000 State=IDLE ThreadsPerCore=1 Partitions=b")
    >>> site.nodes
    (NodeRecord(name='n1', cpus=4, memory=2097152000.0, states=frozenset({'IDLE'}), partitions=('b',)),)
    """
    text = text.replace("\r\n", "\n")
    found = {
        "nodes": tuple(_records(text, SHOW_NODE, "NodeName", _node, source)),
        "partitions": tuple(_records(text, SHOW_PARTITION, "PartitionName", _partition, source)),
        "reservations": tuple(
            _records(text, RESERVATION, "ReservationName", lambda each: _reservation(each, local), source)
        ),
        "licences": tuple(_records(text, LICENCE, "LicenseName", _licence, source)),
        "switches": tuple(_records(text, SHOW_TOPOLOGY, "SwitchName", _switch, source)),
    }
    settings = _settings(text)
    others = (LICENCE, "LicenseName"), (SHOW_TOPOLOGY, "SwitchName"), (SHOW_TOPOLOGY, "BlockName")
    unread = [
        Unsupported(f"{kind} {record.word(kind)}", f"{key}={value}", known.why(key, value) or "")
        for known, kind in others
        for record in _parts(text, known, kind)
        for key, value in record.unread().items()
    ]
    nothing = "No reservations in the system", "No licenses configured"
    if not settings and not any(found.values()) and not unread and text.strip() and not text.startswith(nothing):
        raise InputError(f"must be what 'scontrol show ...' prints, got {clipped(repr(text.lstrip()[:60]))}", source)
    return Site(
        cluster=settings.get("ClusterName"),
        version=settings.get("SLURM_VERSION"),
        settings=settings or None,
        **{name: each or None for name, each in found.items()},  # type: ignore[arg-type]
        unread=tuple(unread),
        source=source,
    )


def _settings(text: str) -> dict[str, str]:
    if "Configuration data as of" not in text:
        return {}
    first = text.partition("Configuration data as of")[2].partition("\n\n")[0]  # others are about steps and daemons
    return {SHOW_CONFIG.proper(name): value.strip() for name, value in _SETTING.findall(first)}


class _Record:
    """The keys of one record and their texts; a required value that is missing, and any that is wrong, is an error."""

    def __init__(self, text: str, known: Keys) -> None:
        self.text = text
        self.known = known
        self.texts: dict[str, str] = {}
        keys = list(_KEY.finditer(text))
        for match, following in zip(keys, [*keys[1:], None], strict=True):
            end = len(text) if following is None else following.start()
            self.texts.setdefault(match[1], text[match.end() : end].strip())

    def word(self, key: str) -> str:
        """Return a value without spaces."""
        return self.texts.get(key, "").split(maxsplit=1)[0] if self.texts.get(key) else ""

    def read(self, key: str, read: Callable[[str], _T]) -> _T:
        """Return a value that must be there."""
        if key not in self.texts:
            raise InputError("missing value", place=key)
        return self.get(key, read)

    def get(self, key: str, read: Callable[[str], _T]) -> _T:
        """Return a value that may be missing."""
        try:
            return read(self.word(key))
        except InputError as error:
            raise InputError(error.message, place=key) from None

    def unread(self) -> dict[str, str]:
        """Return the keys in front of free texts that may change a start and are not modelled."""
        free = [key in _FREE for key in self.texts]
        told = list(self.texts.items())[: free.index(True) if True in free else None]
        return {key: text for key, text in told if self.known.why(key, text) is not None}

    def listed(self, key: str) -> tuple[str, ...]:
        word = self.word(key)
        return () if is_none(word) else tuple(dict.fromkeys(split_list(word)))


def _records(text: str, known: Keys, kind: str, read: Callable[[_Record], _T], source: str) -> Iterator[_T]:
    """Yield what the records of a kind tell."""
    for record in _parts(text, known, kind):
        try:
            yield read(record)
        except InputError as error:
            where = ", ".join(filter(None, (f"{kind}={clipped(record.word(kind))}", error.place)))
            raise InputError(error.message, source, where) from None


def _parts(text: str, known: Keys, kind: str) -> Iterator[_Record]:
    """Yield the records of a kind: from a line that begins with it to the next line that begins with a name."""
    for match in re.finditer(rf"^{kind}=.*(?:\n(?![A-Za-z]+=).*)*", text, re.MULTILINE):
        yield _Record(match[0], known)


def _int(text: str) -> int:
    return whole(text) or 0


def _float(text: str) -> float:
    return memory(text) or 0.0


def _node(record: _Record) -> NodeRecord:
    total = record.read("CPUTot", _int)
    told = {key: record.word(key) for key in _CPUS if key in record.texts}
    cpus = cpus_of({**told, "CPUs": str(total)})
    usable = record.get("CPUEfctv", whole) if "CPUEfctv" in record.texts else total - cpus.kept
    return NodeRecord(
        name=record.word("NodeName"),
        cpus=total if usable is None else usable,
        threads=cpus.threads,
        socket=cpus.socket,
        memory=record.read("RealMemory", _float),
        kept_cpus=0 if usable is None else total - usable,
        kept_memory=record.get("MemSpecLimit", _float),
        gres=record.get("Gres", gres),
        states=frozenset(record.read("State", str).upper().replace("*", "").split("+")),
        partitions=record.listed("Partitions"),
        features=record.listed("AvailableFeatures"),
        weight=record.get("Weight", _int) if "Weight" in record.texts else 1,
        reason=_STAMP.sub("", record.text.partition("Reason=")[2]).strip(),
        others=record.unread(),
    )


_CPUS = ("Sockets", "CoresPerSocket", "ThreadsPerCore", "CoreSpecCount", "CPUSpecList")


def _partition(record: _Record) -> PartitionRecord:
    return PartitionRecord(
        name=record.word("PartitionName"),
        nodes="" if is_none(record.word("Nodes")) else record.read("Nodes", str),
        resources=record.get("TRES", amounts),
        default=record.word("Default") == "YES",
        state=record.word("State") or "UP",
        max_time=record.read("MaxTime", seconds),
        max_nodes=record.get("MaxNodes", whole),
        tier=record.get("PriorityTier", _int),
        job_factor=record.get("PriorityJobFactor", _int),
        sharing=record.word("OverSubscribe") or "NO",
        least_loaded=record.word("LLN") == "YES",
        preempt_mode=record.word("PreemptMode") or None,
        grace_time=float(record.get("GraceTime", _int)) if "GraceTime" in record.texts else 0.0,
        billing=record.word("TRESBillingWeights"),
        others=partition_settings(record.texts, SHOW_PARTITION),
    )


def _reservation(record: _Record, local: tzinfo | None) -> ReservationRecord:
    start = record.read("StartTime", lambda text: instant(text, local))
    end = record.read("EndTime", lambda text: instant(text, local))
    if start is None or end is None:
        raise InputError("must be an instant, got none", place="StartTime" if start is None else "EndTime")
    cpus: Mapping[str, float] = record.get("TRES", amounts)
    return ReservationRecord(
        name=record.word("ReservationName"),
        start=start,
        end=end,
        nodes="" if is_none(record.word("Nodes")) else record.word("Nodes"),
        users=record.listed("Users"),
        cpus=count_of(cpus, "cpu"),
        flags=record.listed("Flags"),
        others={key: record.texts[key] for key in ("Accounts", "PartitionName") if not is_unset(record.word(key))}
        | record.unread(),
    )


def _licence(record: _Record) -> LicenceRecord:
    return LicenceRecord(
        name=record.word("LicenseName"), total=record.read("Total", _int), reserved=record.get("Reserved", _int)
    )


def _switch(record: _Record) -> SwitchRecord:
    return SwitchRecord(
        name=record.word("SwitchName"), level=record.get("Level", _int), nodes=record.read("Nodes", str)
    )
