"""Modes of acting on a scheduler, each a list of permitted commands; settings with limits; actions and outcomes.

Every command can be undone, and none keeps a job from starting for ever: jobs are held by a begin time, which the
scheduler itself ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, get_args

import attrs

from simmodel import InputError, SimmodelError
from simmodel.extending import Fields, Plain, shown
from simmodel_site.twin.events import plain_fields, read_fields

__all__ = [
    "HELD",
    "HOUR",
    "MODES",
    "PREFERRED",
    "RELEASED",
    "RESTORING",
    "ActSettings",
    "Action",
    "Command",
    "Hands",
    "HandsError",
    "JobNow",
    "Mode",
    "Outcome",
    "PastActions",
    "mark_parts",
]


Mode: TypeAlias = Literal["observe", "advise", "priority", "hold-and-release"]
"""How far a twin goes: it writes decisions down; shows them; moves waiting jobs forward; decides when jobs start."""

Command: TypeAlias = Literal["release", "prefer", "unprefer"]
"""``release``: end the begin time of a job; ``prefer``: move a waiting job forward; ``unprefer``: undo that."""

MODES: Mapping[Mode, tuple[Command, ...]] = MappingProxyType(
    {"observe": (), "advise": (), "priority": ("prefer", "unprefer"), "hold-and-release": ("release",)}
)
"""The commands that a twin may send in each mode."""

RESTORING: tuple[Command, ...] = ("release", "unprefer")
"""The commands that give everything back to the scheduler."""

HELD = "simmodel-held"
"""The mark of a job that was given a begin time at its submission, since a twin was there to decide on its start."""

PREFERRED = "simmodel-preferred"
"""The mark of a job that a twin has moved forward."""

RELEASED = "simmodel-released"
"""The mark of a job whose begin time a twin has ended."""

HOUR = 3600.0  # seconds in which the budget of actions counts


def mark_parts(mark: str) -> tuple[str, int | None]:
    """Return the word of a mark and the value that was set with it: the begin time (s), or how far a job was moved.

    >>> mark_parts("simmodel-held@1700000000"), mark_parts("simmodel-preferred@5"), mark_parts("see ticket 5")
    (('simmodel-held', 1700000000), ('simmodel-preferred', 5), ('see ticket 5', None))
    """
    word, _, value = mark.partition("@")
    known = word in (HELD, PREFERRED, RELEASED) and value.isascii() and value.isdecimal() and len(value) < 19
    return (word, int(value)) if known else (mark, None)


class HandsError(SimmodelError):
    """The scheduler does not take a command, or does not answer."""


class JobNow(NamedTuple):
    """A job as the scheduler has it now.

    Attributes
    ----------
    job, submit
        its id, and its submission (s)
    waiting
        whether it has not started yet
    held
        whether the begin time that was set for a twin is still to come
    preference
        how far it is moved forward; 0: not at all
    mark
        ``HELD``, ``PREFERRED``, or another note of an administrator
    recorded
        the value that its mark records: the begin time (s), or how far it was moved forward
    changed
        the value that its user or an administrator has changed since, or set from the beginning; ``""``: none
    """

    job: int | str
    submit: float
    waiting: bool
    held: bool = False
    preference: int = 0
    mark: str = ""
    recorded: int = 0
    changed: str = ""


class Hands(Protocol):
    """The interface through which a twin acts on one kind of scheduler; its methods raise :class:`HandsError`."""

    commands: tuple[Command, ...]

    def words(self, command: Command) -> str:
        """Return a command as it is sent, with ``{job}`` and ``{value}`` in it."""
        ...

    def look(self, job: int | str) -> JobNow | None:
        """Return a job as it is now, ``None`` if it is not known any more."""
        ...

    def marked(self) -> tuple[JobNow, ...]:
        """Return the waiting jobs with a mark of the twin."""
        ...

    def send(self, command: Command, job: int | str, value: int = 0) -> None:
        """Send one of its ``commands``, with the begin time to end or how far to move the job; others are refused."""
        ...


@attrs.frozen(kw_only=True, repr=False)
class Action(Fields):
    """A command for one job.

    Parameters
    ----------
    number
        its number in the audit log
    advice
        the number of the decision that it follows from; 0: of none
    command, job, submit
        the command, and the job by id and submission (s)
    value
        how far to move it forward
    time
        the instant (s) at which it was planned

    >>> action = Action(number=1, advice=4, command="release", job=12, submit=60.0, time=90.0)
    >>> action.document()
    {'number': 1, 'advice': 4, 'command': 'release', 'job': 12, 'submit': 60.0, 'time': 90.0}
    >>> Action.of(action.document()) == action
    True
    """

    number: int
    advice: int
    command: Command
    job: int | str
    submit: float
    time: float
    value: int = 0

    def document(self) -> dict[str, Plain]:
        return plain_fields(self)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Action:
        """Return the action of a document; raises :class:`~simmodel.foundation.errors.InputError` if it is none."""
        return read_fields(document, cls)


@attrs.frozen(kw_only=True, repr=False)
class Outcome(Fields):
    """The result of an action: how it ended, and why.

    Parameters
    ----------
    number
        that of the action; 0: of giving everything back
    what
        ``"done"``, as read back; ``"already"``: it was so before; ``"refused"``: the job is another one, has started,
        or is not the twin's to change; ``"late"``: it was not sent in time; ``"failed"``
    sentence
        why
    """

    number: int
    what: Literal["done", "already", "refused", "late", "failed"]
    sentence: str = ""

    def document(self) -> dict[str, Plain]:
        """Return it as plain values."""
        return plain_fields(self)


class PastActions:
    """The actions of an audit log, line by line: those without an outcome, and those that count towards the budget.

    Attributes
    ----------
    number
        the number of the last action
    spent
        the instants (s) of the actions of the last hour
    preferred
        the jobs that are moved forward, and how far
    """

    def __init__(self) -> None:
        self.number = 0
        self.spent: list[float] = []
        self.preferred: dict[tuple[int | str, float], int] = {}
        self._open: dict[int, Action] = {}

    @property
    def open(self) -> list[Action]:
        """The actions for which the log has no outcome."""
        return list(self._open.values())

    def take(self, kind: str, values: Mapping[str, Any]) -> None:
        """Go on by a line of kind ``"action"`` or ``"outcome"``."""
        if kind == "action":
            action = Action.of(values["action"])
            self.number = action.number
            self._open[action.number] = action
            self.spent = [at for at in self.spent if at > action.time - HOUR] if len(self.spent) > 1000 else self.spent
            self.spent.append(action.time)
        elif kind == "outcome":
            outcome = read_fields(values["outcome"], Outcome)
            done = self._open.pop(outcome.number, None)
            if done is not None and outcome.what in ("done", "already"):
                if done.command == "prefer":
                    self.preferred[done.job, done.submit] = done.value
                elif done.command == "unprefer":
                    self.preferred.pop((done.job, done.submit), None)


_NAME = re.compile(r"[\w.+-]{1,200}", re.ASCII)  # names of partitions that need quotes nowhere


def _between(low: float, high: float, unit: str = "") -> Callable[[Any, attrs.Attribute[Any], float], None]:
    def check(_instance: Any, attribute: attrs.Attribute[Any], value: float) -> None:
        if not low <= value <= high:
            raise InputError(f"must be a number from {low:g} to {high:g}{unit}, got {value!r}", place=attribute.name)

    return check


def _mode(_instance: Any, _attribute: attrs.Attribute[Any], value: str) -> None:
    known = get_args(Mode)
    if value not in known:
        names = ", ".join(map(repr, known[:-1]))
        raise InputError(f"must be {names} or {known[-1]!r}, got {shown(value)}", place="mode")


def _names(_instance: Any, attribute: attrs.Attribute[Any], value: tuple[str, ...]) -> None:
    for name in value:
        if not _NAME.fullmatch(name):
            raise InputError(f"must be names of letters, digits and ._+-, got {shown(name)}", place=attribute.name)


@attrs.frozen(kw_only=True, repr=False)
class ActSettings(Fields):
    """The mode of an acting twin, and the limits on its actions.

    Parameters
    ----------
    mode
        ``"observe"``: decisions are written down; ``"advise"``: and shown; ``"priority"``: jobs that should start are
        moved forward; ``"hold-and-release"``: jobs start when the twin says so
    maximum_delay
        the longest that a job may wait for the twin's sake (s)
    budget
        the most actions in any hour; giving jobs back is not counted
    rate
        the most actions in a second
    partitions
        the partitions whose jobs it may touch; default: all
    preference
        how far jobs are moved forward in mode ``"priority"`` (Slurm: the negative of their nice value)
    heartbeat, stop_file
        the file that shows that the twin is alive, and the file that stops it while it exists
    stale_after
        seconds without a sign of life after which the twin counts as dead

    Raises
    ------
    InputError
        a value is out of its range

    >>> ActSettings(mode="obey")
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: mode: must be 'observe', 'advise', 'priority' or 'hold-and-release', got ...
    """

    mode: Mode = attrs.field(default="observe", validator=_mode)
    maximum_delay: float = attrs.field(default=600.0, validator=_between(1, 7 * 86400, " s"))
    budget: int = attrs.field(default=3600, validator=_between(1, 1_000_000))
    rate: float = attrs.field(default=10.0, validator=_between(0.01, 1000, " a second"))
    partitions: tuple[str, ...] = attrs.field(default=(), validator=_names)
    preference: int = attrs.field(default=1000, validator=_between(1, 100_000))
    heartbeat: str = "heartbeat"
    stop_file: str = "stop"
    stale_after: float = attrs.field(default=30.0, validator=_between(2, 3600, " s"))

    def touches(self, partition: str) -> bool:
        """Whether the twin may change jobs of a partition."""
        return not self.partitions or partition in self.partitions
