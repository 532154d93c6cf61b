"""Windows: announced absences of a part of a pool."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from simmodel.environment import END

if TYPE_CHECKING:
    from simmodel.environment import Call, Environment, ToCome

__all__ = ["CALENDAR", "CapacityWindow", "Purpose"]

CALENDAR = END + 0.5  # within an instant: after its ends, before its submissions


class Purpose(NamedTuple):
    """The purpose of a window.

    ``why``: its name, by which a snapshot finds it again; ``begins`` and ``ends``: the causes in the record; ``tell``:
    called with ``True`` once the part is away, and with ``False`` once the window has ended; ``may_return``: whether
    the part comes back at the end of the window; if not, whoever said so extends the window and ends it later.
    """

    why: str = ""
    begins: str = "drain"
    ends: str = "resume"
    tell: Callable[[bool], object] | None = None
    may_return: Callable[[], bool] | None = None


class _Owner(Protocol):
    env: Environment
    name: str
    windows: list[CapacityWindow]
    calendar_priority: float
    tell: Callable[..., object]

    def go_down(self, what: Any, cause: str) -> None: ...

    def come_up(self, what: Any, cause: str) -> None: ...

    def altered(self) -> None: ...

    def came_free(self) -> None: ...


class CapacityWindow:
    """An absence of a part of a pool from ``start`` to ``end`` (s): ``what`` is processors, or a tuple of nodes.

    ``begun``: whether the part is already away; ``purpose``: see
    :meth:`Pool.announce <simmodel.resources.pools.pool.Pool.announce>`.
    """

    __slots__ = ("_calls", "_pool", "begun", "end", "purpose", "start", "what")

    def __init__(self, pool: _Owner, start: float, end: float, what: Any, purpose: Purpose) -> None:
        self._pool = pool
        self.start = start
        self.end = end
        self.what = what
        self.purpose = purpose
        self.begun = False
        self._calls: dict[str, Call] = {}  # its planned calls, by kind

    @property
    def why(self) -> str:
        """The name of its purpose."""
        return self.purpose.why

    def __lt__(self, other: CapacityWindow) -> bool:
        return (self.start, self.end) < (other.start, other.end)

    def __repr__(self) -> str:
        return f"<window {self.start:g} to {self.end:g} s: {self.what}>"

    def close(self) -> None:
        """End the window: its part comes back."""
        self._pool.windows.remove(self)
        self._pool.come_up(self.what, self.purpose.ends)

    def extend(self, end: float) -> None:
        """Expect the part of a window that has begun back at another instant (s)."""
        if end != self.end:
            self.end = end
            self._pool.altered()

    def plan(self, what: str, at: float) -> None:
        """Plan its ``begin``, ``over`` or ``told`` call at an instant (s)."""
        pool = self._pool
        call = {"begin": self._begin, "over": self._over, "told": self._told}[what]
        self._calls[what] = pool.env.call_at(at, call, pool.calendar_priority)

    def to_come(self, number: int) -> list[ToCome]:
        """List its planned calls, each with its number among the windows of the pool."""
        return [call.to_come(what, self._pool.name, number) for what, call in self._calls.items() if call.pending]

    def _begin(self) -> None:
        self.begun = True
        self._pool.go_down(self.what, self.purpose.begins)
        self._tell(True)
        self._pool.came_free()

    def _over(self) -> None:
        may_return = self.purpose.may_return
        if may_return is None or may_return():
            self.close()
        self._tell(False)

    def _told(self) -> None:
        self._pool.tell("place_changed", self._pool, self.purpose.begins)
        self._tell(True)

    def _tell(self, away: bool) -> None:
        if self.purpose.tell is not None:
            self.purpose.tell(away)
