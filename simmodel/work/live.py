"""Live work as SimPy events: processes wait for it, alone or with other events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simpy.events import PENDING, AllOf, AnyOf, Event

from simmodel.foundation.errors import JobFailed, StateError

__all__ = ["JobFailed", "LiveWork"]

if TYPE_CHECKING:
    from collections.abc import Callable

    from simpy.events import Event as _Base

    from simmodel.environment import Environment
else:
    _Base = object  # not an Event at run time: that would cost 0.3 us and 40 bytes for every job


class _End(Event):
    """The state of live work as an event: what is planned, and what callbacks get, is the work itself."""

    def __init__(self, work: LiveWork) -> None:
        super().__init__(work.env)
        self.work = work
        self.returned: Any = None  # by its body; None: the work is the value
        self.error: Exception | None = None

    def succeed(self, value: LiveWork | None = None) -> _End:
        """Trigger it: with what the body returned, if anything; it fails if the body raised an error."""
        if self._value is not PENDING:
            raise StateError(f"{self.work!r} has already been triggered")
        self._ok = self.error is None or isinstance(self.error, JobFailed)
        self._value = self.error if not self._ok else value if self.returned is None else self.returned
        self.env.schedule(self.work)
        return self


class LiveWork(_Base):
    """Submitted work, which can be yielded like any SimPy event: it succeeds when the work ends.

    The event succeeds however the work ends, with the work as its value; ``state`` is the final state. Work that ended
    before any process waited for it is an event already processed. The value of a job whose body returns something is
    what it returns. If the body raises an error, but :class:`~simmodel.work.JobFailed`, the event fails with it: who
    waits gets the error, and ``env.run()`` raises it if nobody waits.

    A subclass defines ``env`` and ``over``. The code that ends the work triggers its event, if there is one:
    ``if work.event is not None: work.event.succeed(work)``.

    Attributes
    ----------
    event
        the state of the event; ``None`` until a process waits for the work, or its body returned or raised something
    error
        the error that its body raised, :class:`~simmodel.work.JobFailed` included; else ``None``

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

    event: _End | None

    @property
    def env(self) -> Environment:  # type: ignore[override]
        """The environment of the work."""
        raise NotImplementedError

    @property
    def over(self) -> bool:
        """Whether the work has ended."""
        raise NotImplementedError

    @property
    def error(self) -> Exception | None:
        """The error that its body raised; else ``None``."""
        return None if self.event is None else self.event.error

    def answer(self, returned: Any, error: Exception | None) -> None:
        """Keep what its body returned, and the error that it raised, for its end."""
        if returned is error is None and self.event is None:
            return
        if self.event is None:
            self.event = _End(self)
        self.event.returned, self.event.error = returned, error

    def answer_as(self, below: _End) -> None:
        """Keep the answer of the work that ran for it in a system below: who waits for this one gets the error."""
        self.answer(below.returned, below.error)
        below._defused = True

    if not TYPE_CHECKING:

        @property
        def callbacks(self) -> list[Any] | None:
            """The functions called when the work ends; ``None`` after they were called."""
            event = self.event
            if event is None:
                if self.over:
                    return None
                event = self.event = _End(self)
            return event.callbacks

        @callbacks.setter
        def callbacks(self, callbacks: list[Callable[[Event], object]] | None) -> None:
            self.event.callbacks = callbacks

        @property
        def _ok(self) -> bool:
            return self.event is None or self.event._ok

        @property
        def _value(self) -> Any:
            if self.event is not None:
                return self.event._value
            return self if self.over else PENDING

        @property
        def _defused(self) -> bool:
            return self.event._defused  # which lacks it until somebody has got the error, as that of any event

        @_defused.setter
        def _defused(self, value: bool) -> None:
            self.event._defused = value

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
            """Whether the event succeeded: whether no error ended the body of the work, once it has ended."""
            self.value  # noqa: B018 (raises an error before the end)
            return self._ok

        @property
        def value(self) -> Any:
            """The work, or what its body returned or raised, once it has ended."""
            value = self._value
            if value is PENDING:
                raise AttributeError(f"{self!r} has not ended")
            return value

        @property
        def defused(self) -> bool:
            """Whether somebody got the error with which it failed."""
            return hasattr(self.event, "_defused")

        @defused.setter
        def defused(self, value: bool) -> None:
            self.event._defused = True

        def _desc(self) -> str:
            return repr(self)

        def __and__(self, other: Event) -> AllOf:
            return AllOf(self.env, (self, other))

        def __or__(self, other: Event) -> AnyOf:
            return AnyOf(self.env, (self, other))
