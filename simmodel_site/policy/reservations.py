"""Slurm's advance reservations as its loops keep them: by flags, by users and accounts, whole nodes or some cores.

Source: scontrol(1) of Slurm 22.05, and ``job_test_resv`` of its slurmctld, by its behaviour.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any

import attrs

from simmodel import InputError
from simmodel.extending import Fields, node_names, shown
from simmodel_site.policy.settings import parts_of

__all__ = ["Calendar", "SlurmReservation", "reservations_of"]


def _names(value: Iterable[str]) -> tuple[str, ...]:
    return tuple(value)


def _numbers(value: Iterable[int]) -> tuple[int, ...]:
    return tuple(value)


@attrs.frozen(kw_only=True, repr=False)
class SlurmReservation(Fields):
    """A reservation that both loops keep for the jobs that name it (``--reservation``).

    Jobs that run on its nodes when it begins go on: it has each node once that is free.

    Parameters
    ----------
    name, nodes
        its name, and the list of its nodes
    start, end
        from when and until when it is kept (s)
    users, accounts
        who may use it; with a ``-`` before each: who may not. Empty: everybody. A job must match both
    flex
        whether its jobs may start before it, end after it, and have other nodes (``FLEX``)
    stays
        whether its waiting jobs are ordinary ones once it is over (``NO_HOLD_JOBS_AFTER``); else they are cancelled
    cores
        how many cores it has on each of its nodes, in their order, or on all; empty: the whole nodes (``CoreCnt``)

    >>> SlurmReservation(name="course", nodes="n[1-2]", start=60, end=120, accounts=["-physics"], flex=True).text
    'course:nodes=n[1-2]:start=60:end=120:accounts=-physics:flex'
    """

    name: str
    nodes: str
    start: float = 0.0
    end: float = inf
    users: tuple[str, ...] = attrs.field(default=(), converter=_names)
    accounts: tuple[str, ...] = attrs.field(default=(), converter=_names)
    flex: bool = False
    stays: bool = False
    cores: tuple[int, ...] = attrs.field(default=(), converter=_numbers)

    def __attrs_post_init__(self) -> None:
        if not self.end > self.start:
            raise InputError(f"must be > start ({self.start:g} s), got {self.end:g}", place=f"{self.name}.end")
        for name, given in (("users", self.users), ("accounts", self.accounts)):
            if len({each.startswith("-") for each in given}) > 1:
                message = f"must be those who may use it, or those who may not, got {shown(','.join(given))}"
                raise InputError(message, place=f"{self.name}.{name}")
        if len(self.cores) not in (0, 1, len(list(node_names(self.nodes)))):
            raise InputError("must be a number, or one for each node", place=f"{self.name}.cores")

    @property
    def text(self) -> str:
        """Its text, as :func:`reservations_of` reads it."""
        parts = [f"{self.name}:nodes={self.nodes}:start={self.start:g}"]
        parts += [f"end={self.end:g}"] if self.end < inf else []
        for name in ("users", "accounts", "cores"):
            if value := getattr(self, name):
                parts.append(f"{name}={'+'.join(map(str, value))}")
        return ":".join([*parts, *(name for name in ("flex", "stays") if getattr(self, name))])

    def refusal(self, user: str, account: str) -> str | None:
        """Return why the jobs of a user and an account may not use it; ``None``: they may."""
        for who, given in ((user, self.users), (account, self.accounts)):
            denied = any(each.startswith("-") for each in given)
            if given and denied == (who in {each.removeprefix("-") for each in given}):
                return f"Access denied to requested reservation {self.name}"
        return None


def reservations_of(text: str) -> tuple[SlurmReservation, ...]:
    """Return the reservations of a text, ``NAME:nodes=LIST:start=S:end=S[:users=A+B][:flex]...``, between semicolons.

    Raises
    ------
    InputError
        a key is unknown, or a value is not what it must be

    >>> reservations_of("course:nodes=n[1-2]:start=60:end=120:users=ada+bob:cores=2")[0].users
    ('ada', 'bob')
    """
    parts = parts_of(text, _READ, "reservation")
    return tuple(SlurmReservation(name=name, **{"nodes": "", **values}) for name, values in parts)


_READ: Mapping[str, Any] = {
    "nodes": str,
    "start": float,
    "end": float,
    "users": lambda text: text.split("+"),
    "accounts": lambda text: text.split("+"),
    "cores": lambda text: [int(each) for each in text.split("+")],
    "flex": lambda text: True,
    "stays": lambda text: True,
}


class Calendar:
    """When reservations begin and end.

    Parameters
    ----------
    reservations
        those of the policy

    >>> calendar = Calendar(reservations_of("a:nodes=n1:start=60:end=120"))
    >>> calendar.next(0.0), calendar.pass_to(60.0), calendar.pass_to(100.0), calendar.next(60.0)
    (60.0, True, False, 120.0)
    """

    def __init__(self, reservations: Sequence[SlurmReservation]) -> None:
        self._turns = sorted({at for each in reservations for at in (each.start, each.end) if at < inf})
        self._passed = 0

    def next(self, now: float) -> float:
        """Return the next instant (s) at which one begins or ends."""
        at = bisect_right(self._turns, now)
        return self._turns[at] if at < len(self._turns) else inf

    def pass_to(self, now: float) -> bool:
        """Return whether one has begun or ended since this was last asked."""
        before, self._passed = self._passed, bisect_right(self._turns, now)
        return self._passed != before
