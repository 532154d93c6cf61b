"""Windows: announced absences of a part of a pool."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from simmodel.environment import END

if TYPE_CHECKING:
    from simmodel.environment import Call, Environment, ToCome

__all__ = ["CALENDAR", "CapacityWindow", "Purpose", "Windows"]

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


class CapacityWindow:
    """An absence of a part of a pool from ``start`` to ``end`` (s): ``what`` is processors, or a tuple of nodes.

    ``begun``: whether the part is already away; ``purpose``: see :meth:`Windows.announce`.
    """

    __slots__ = ("begun", "calls", "end", "purpose", "start", "what")

    def __init__(self, start: float, end: float, what: Any, purpose: Purpose) -> None:
        self.start = start
        self.end = end
        self.what = what
        self.purpose = purpose
        self.begun = False
        self.calls: dict[str, Call] = {}  # its planned calls, by kind

    @property
    def why(self) -> str:
        """The name of its purpose."""
        return self.purpose.why

    def __lt__(self, other: CapacityWindow) -> bool:
        return (self.start, self.end) < (other.start, other.end)

    def __repr__(self) -> str:
        return f"<window {self.start:g} to {self.end:g} s: {self.what}>"


class _Owner(Protocol):
    env: Environment
    name: str
    windows: list[CapacityWindow]
    calendar_priority: float
    tell: Callable[..., object]

    def go_down(self, what: Any, cause: str) -> None: ...

    def come_up(self, what: Any, cause: str) -> None: ...

    def lower(self, what: Any) -> None: ...

    def altered(self) -> None: ...

    def came_free(self) -> None: ...

    def end_window(self, window: CapacityWindow) -> None: ...

    def plan_window(self, window: CapacityWindow, what: str, at: float) -> None: ...


class Windows:
    """A pool's handling of windows; ``windows`` are the current and future ones, by start."""

    windows: list[CapacityWindow]
    calendar_priority = CALENDAR

    def announce(
        self: _Owner,
        start: float,
        end: float,
        what: Any,
        tell: Callable[[bool], object] | None = None,
        *,
        purpose: Purpose | None = None,
    ) -> CapacityWindow | None:
        """Announce that part of the pool will be away from ``start`` to ``end`` (s).

        No work that would run into the window starts. Work that still runs when it begins, past its expected end,
        continues.

        Parameters
        ----------
        start, end
            seconds; ``end`` may be infinite; a past start means now, a window in the past is ignored
        what
            a number of processors, or a tuple of nodes if nodes are identified (see ``units_of``)
        tell
            called with ``True`` once the part is away, and with ``False`` once the window has ended
        purpose
            its purpose, instead of ``tell``: a snapshot finds it again by its name

        >>> from simmodel import Environment
        >>> from simmodel.resources import CountPool
        >>> env = Environment(); pool = CountPool(env, "pool", 4)
        >>> _ = pool.announce(10, 20, 3)
        >>> env.run(until=15); pool.free, pool.windows
        (1, [<window 10 to 20 s: 3>])
        >>> env.run(); pool.free, pool.windows
        (4, [])
        """
        env = self.env
        if end <= env.now:
            return None
        window = CapacityWindow(start, end, what, Purpose(tell=tell) if purpose is None else purpose)
        insort(self.windows, window)
        self.altered()
        if start > env.now:
            self.plan_window(window, "begin", start)
        else:  # a system is built: its observers are told by the first event
            window.begun = True
            self.lower(what)
            self.plan_window(window, "told", env.now)
        if end < float("inf"):
            self.plan_window(window, "over", end)
        return window

    def end_window(self: _Owner, window: CapacityWindow) -> None:
        """End a window: its part comes back."""
        self.windows.remove(window)
        self.come_up(window.what, window.purpose.ends)

    def extend_window(self: _Owner, window: CapacityWindow, end: float) -> None:
        """Expect the part of a window that has begun back at another instant (s)."""
        if end != window.end:
            window.end = end
            self.altered()

    def plan_window(self: _Owner, window: CapacityWindow, what: str, at: float) -> None:
        """Plan the ``begin``, ``over`` or ``told`` call of a window at an instant (s)."""
        _, begins, _, tell, may_return = window.purpose

        def begin() -> None:
            window.begun = True
            self.go_down(window.what, begins)
            if tell is not None:
                tell(True)
            self.came_free()

        def over() -> None:
            if may_return is None or may_return():
                self.end_window(window)
            if tell is not None:
                tell(False)

        def told() -> None:
            self.tell("place_changed", self, begins)
            if tell is not None:
                tell(True)

        call = {"begin": begin, "over": over, "told": told}[what]
        window.calls[what] = self.env.call_at(at, call, self.calendar_priority)

    def to_come(self: _Owner) -> list[ToCome]:
        """List the planned calls of the windows, each by the index of its window."""
        return [
            call.to_come(what, self.name, number)
            for number, window in enumerate(self.windows)
            for what, call in window.calls.items()
            if call.pending
        ]
