"""The decaying usage of users, the basis of fair share."""

from __future__ import annotations

from collections.abc import Iterable

from simmodel.foundation.errors import InputError

__all__ = ["Usage"]

LN2 = 0.6931471805599453


class Usage:
    """The processor seconds of each user, halved every ``half_life`` seconds; integrated exactly at events.

    While a user holds ``p`` processors, the usage u follows du/dt = p - u ln 2 / half_life.

    Parameters
    ----------
    half_life
        seconds; infinite: no decay

    Raises
    ------
    InputError
        the half-life is not > 0

    >>> usage = Usage(half_life=10)
    >>> usage.change("ada", 4, now=0); usage.change("ada", -4, now=10)
    >>> round(usage.of("ada", now=10), 6), round(usage.of("ada", now=20) / usage.of("ada", now=10), 6)
    (28.853901, 0.5)
    """

    __slots__ = ("by_user", "half_life")

    def __init__(self, half_life: float = float("inf")) -> None:
        if not half_life > 0:
            raise InputError(f"half_life: must be > 0 s, got {half_life!r}")
        self.half_life = half_life
        self.by_user: dict[int | str | None, tuple[float, float, float]] = {}  # usage, processors held, instant

    def change(self, user: int | str | None, processors: float, now: float) -> None:
        """Note that the user holds ``processors`` more from now on (fewer if negative)."""
        held = self.by_user.get(user, (0.0, 0.0, now))[1]
        self.by_user[user] = (self.of(user, now), held + processors, now)

    def of(self, user: int | str | None, now: float) -> float:
        """Return the user's decayed processor seconds."""
        usage, held, since = self.by_user.get(user, (0.0, 0.0, now))
        elapsed = now - since
        if elapsed == 0:
            return usage
        if self.half_life == float("inf"):
            return usage + held * elapsed
        kept: float = 2.0 ** (-elapsed / self.half_life)
        return usage * kept + held * self.half_life / LN2 * (1 - kept)

    def total(self, now: float) -> float:
        """Return the decayed processor seconds of all users."""
        return sum(self.of(user, now) for user in self.by_user)

    def share(self, user: int | str | None, now: float) -> float:
        """Return the user's share of the total usage, 0 to 1."""
        total = self.total(now)
        return self.of(user, now) / total if total > 0 else 0.0

    def users(self) -> list[int | str | None]:
        """Return the users with any usage, in order of appearance."""
        return list(self.by_user)

    def state(self) -> tuple[float, tuple[tuple[int | str | None, float, float, float], ...]]:
        """Return the half-life (s) and, of each user, usage, processors held and since when (s)."""
        users = self.by_user.items()
        return float(self.half_life), tuple((user, float(a), float(b), float(at)) for user, (a, b, at) in users)

    def restore(self, users: Iterable[tuple[int | str | None, float, float, float]]) -> None:
        """Restore the usage of users from the rows of :meth:`state`."""
        self.by_user.update({user: (used, held, since) for user, used, held, since in users})

    def __repr__(self) -> str:
        return f"<Usage of {len(self.by_user):,} users, half-life {self.half_life:g} s>"
