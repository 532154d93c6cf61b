"""The end of processes by force."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simpy.events import Event, Process

if TYPE_CHECKING:
    from simmodel.environment import Environment

__all__ = ["kill"]

_CLOSES = 100  # attempts to close a generator that yields while it is closed


def kill(process: Process) -> Event | None:
    """End a process now: its generator is closed, and the event that it waits for, which is returned, resumes nothing.

    An exception that the generator raises while it is closed fails the process. No effect on a process that has ended.

    >>> from simmodel import Environment
    >>> env = Environment()
    >>> def work(env):
    ...     try:
    ...         yield env.timeout(5)
    ...     finally:
    ...         print("closed at", env.now)
    >>> process = env.process(work(env)); env.run(until=2)
    >>> kill(process)
    closed at 2
    <Timeout(5) object at ...>
    """
    if not process.is_alive:
        return None
    target = process.target
    if target is not None and target.callbacks is not None and process._resume in target.callbacks:
        target.callbacks.remove(process._resume)
    env: Environment = process.env  # type: ignore[assignment]
    before, env._active_proc = env._active_proc, process
    process._ok, process._value = True, None
    try:
        _close(process._generator)
    except Exception as error:
        process._ok, process._value = False, error
    finally:
        env._active_proc = before
    env.schedule(process)
    return target


def _close(generator: Any) -> None:
    for _ in range(_CLOSES):
        try:
            generator.close()
            break
        except RuntimeError as error:
            if error.args != ("generator ignored GeneratorExit",):
                raise
