"""Live work is a SimPy event: processes wait for it, alone or with other events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simpy.events import PENDING, AllOf, AnyOf, Event

__all__ = ["LiveWork"]

if TYPE_CHECKING:
    from simpy.events import Event as _Base

    from simmodel.environment import Environment
else:
    _Base = object  # at run time it is no event: that would cost every job 0.3 us and 40 bytes


class LiveWork(_Base):
    """Submitted work, to be waited for like any event of SimPy: it happens when the work is over.

    The event always succeeds, with the work as its value; ``state`` tells how the work ended. Work that is over and
    that nobody has waited for is an event that has happened already.

    A subclass says what its ``env`` is and whether it is ``over``. Whoever ends the work makes its
    ``event`` succeed where somebody waits: ``if work.event is not None: work.event.succeed(work)``.

    Attributes
    ----------
    event
        what those wait for who wait for the work; ``None`` until somebody does

    >>> from simmodel import Cluster, Environment, Job
    >>> env = Environment()
    >>> cluster = Cluster(env, 4)
    >>> def user(env):
    ...     job = cluster.submit(Job(run=100))
    ...     yield job | env.timeout(60)
    ...     print(env.now, job.state)
    ...     yield job
    ...     print(env.now, job.state)
    >>> _ = env.process(user(env)); env.run()
    60 running
    100.0 completed
    """

    __slots__ = ("event",)

    event: Event | None

    @property
    def env(self) -> Environment:  # type: ignore[override]
        """The environment in which it happens."""
        raise NotImplementedError

    @property
    def over(self) -> bool:
        """Whether nothing more will happen to the work."""
        raise NotImplementedError

    if not TYPE_CHECKING:
        _ok = True

        @property
        def callbacks(self) -> list[Any] | None:
            """What is called when the work is over; ``None`` once that has been."""
            event = self.event
            if event is None:
                if self.over:
                    return None
                event = self.event = Event(self.env)
            return event.callbacks

        @property
        def _value(self) -> Any:
            return self if self.triggered else PENDING

        @property
        def triggered(self) -> bool:
            """Whether the work is over."""
            return self.over if self.event is None else self.event.triggered

        @property
        def processed(self) -> bool:
            """Whether the work is over and whoever waited for it knows."""
            return self.over if self.event is None else self.event.processed

        @property
        def ok(self) -> bool:
            """Always true once the work is over."""
            return self.value is self

        @property
        def value(self) -> Any:
            """The work, once it is over."""
            if not self.triggered:
                raise AttributeError(f"{self!r} is not over")
            return self

        @property
        def defused(self) -> bool:
            """Never: the event does not fail."""
            return False

        def _desc(self) -> str:
            return repr(self)

        def __and__(self, other: Event) -> AllOf:
            return AllOf(self.env, (self, other))

        def __or__(self, other: Event) -> AnyOf:
            return AnyOf(self.env, (self, other))
