"""Live work as SimPy events: processes wait for it, alone or with other events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simpy.events import PENDING, AllOf, AnyOf, Event

__all__ = ["LiveWork"]

if TYPE_CHECKING:
    from simpy.events import Event as _Base

    from simmodel.environment import Environment
else:
    _Base = object  # not an Event at run time: that would cost 0.3 us and 40 bytes for every job


class LiveWork(_Base):
    """Submitted work, which can be yielded like any SimPy event: it succeeds when the work ends.

    The event always succeeds, with the work as its value; ``state`` is the final state. Work that ended before any
    process waited for it is an event already processed.

    A subclass defines ``env`` and ``over``. The code that ends the work triggers its event, if there is one:
    ``if work.event is not None: work.event.succeed(work)``.

    Attributes
    ----------
    event
        the underlying event; ``None`` until a process waits for the work

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
        """The environment of the work."""
        raise NotImplementedError

    @property
    def over(self) -> bool:
        """Whether the work has ended."""
        raise NotImplementedError

    if not TYPE_CHECKING:
        _ok = True

        @property
        def callbacks(self) -> list[Any] | None:
            """The functions called when the work ends; ``None`` after they were called."""
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
            """Whether the work has ended."""
            return self.over if self.event is None else self.event.triggered

        @property
        def processed(self) -> bool:
            """Whether the work has ended and the callbacks were called."""
            return self.over if self.event is None else self.event.processed

        @property
        def ok(self) -> bool:
            """Always true once the work has ended."""
            return self.value is self

        @property
        def value(self) -> Any:
            """The work, once it has ended."""
            if not self.triggered:
                raise AttributeError(f"{self!r} has not ended")
            return self

        @property
        def defused(self) -> bool:
            """Always false: the event does not fail."""
            return False

        def _desc(self) -> str:
            return repr(self)

        def __and__(self, other: Event) -> AllOf:
            return AllOf(self.env, (self, other))

        def __or__(self, other: Event) -> AnyOf:
            return AnyOf(self.env, (self, other))
