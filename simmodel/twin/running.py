"""A twin as a configuration says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from simmodel.foundation.workers import worker_pool
from simmodel.futures.executors import stop_workers
from simmodel.twin.acting.acting import Acting
from simmodel.twin.acting.actions import MODES
from simmodel.twin.advisor import Advisor
from simmodel.twin.audit import AuditLog
from simmodel.twin.audit_replay import continued
from simmodel.twin.mirror.mirror import Mirror
from simmodel.twin.twin import Twin

if TYPE_CHECKING:
    from simmodel.twin.advisor import Advice
    from simmodel.twin.config import TwinConfig
    from simmodel.twin.routing.turnaround import Turnarounds
    from simmodel.twin.serving import StatusServer

__all__ = ["follow", "opened"]

_SHOWN_EVERY = 1.0  # seconds


@contextmanager
def opened(config: TwinConfig, *, trust: bool = False) -> Iterator[Twin]:
    """Yield the twin of a configuration, which continues from its audit log; it is closed afterwards.

    Parameters
    ----------
    config
        the configuration
    trust
        whether the platform may name processors as ``module:Class``, which imports code

    Raises
    ------
    InputError
        a part of it cannot be opened
    """
    spec, advise = config.spec(trust=trust), config.advise
    clock = config.now
    advisor: Advisor | None = None
    if advise is not None:
        advisor = Advisor(advise.policy, fallback=advise.fallback or config.policy, deadline=advise.deadline)

    def remake(document: Mapping[str, Any]) -> Mirror:
        mirror = Mirror.from_document(document, spec, config.policy, clock=clock)
        if advisor is not None:
            mirror.learn_for(advisor.policy)
        return mirror

    with ExitStack() as stack:
        source = config.open_source()
        stack.callback(source.close)
        audit = None if config.audit is None else stack.enter_context(AuditLog(config.path(config.audit)))
        past = None if audit is None else continued(audit.path, spec, config.cluster, remake)
        mirror = Mirror(spec, config.cluster, config.policy, clock=clock) if past is None else past.mirror
        how: dict[str, Any] = {}
        if advise is not None and advisor is not None:
            how = {"when": advise.when, "settle": advise.settle, "every": advise.every}
            if advise.workers > 1 or advise.deadline is not None:  # what hangs can be left in another process alone
                pool = _Pool(advisor, advise.workers)
                stack.callback(pool.close)
                how["told"] = (pool.renew_after,)
        acting = None
        if config.act is not None and MODES[config.act.mode]:
            acts = None if past is None else past.actions
            acting = Acting(config.hands(), config.act, Path(config.folder), acts)
        twin = Twin(
            source,
            mirror,
            advisor,
            audit,
            report_every=config.report_every,
            past=past,
            acting=acting,
            clock=clock or (lambda: mirror.now),
            **how,
        )
        yield twin
        twin.close()


class _Pool:
    """The processes that simulate for an advisor; those that were late are replaced."""

    def __init__(self, advisor: Advisor, workers: int) -> None:
        self.advisor = advisor
        self.workers = workers
        advisor.executor = worker_pool(workers)

    def renew_after(self, advice: Advice) -> None:
        """Replace all processes after advice of the fallback: one may hang."""
        if advice.fallback:
            self.close()
            self.advisor.executor = worker_pool(self.workers)

    def close(self) -> None:
        """End all processes."""
        if self.advisor.executor is not None:
            stop_workers(self.advisor.executor)


def follow(
    twin: Twin,
    until: Callable[[], bool],
    server: StatusServer | None = None,
    turnarounds: Turnarounds | None = None,
) -> None:
    """Run a twin until its source is over or a function says so; a server shows its status every second."""
    shown = monotonic()
    while not (twin.source.over or until()):
        twin.step()
        if server is not None and monotonic() - shown >= _SHOWN_EVERY:
            shown = monotonic()
            server.show(twin.status, twin.mirror)
            if turnarounds is not None:
                turnarounds.show(twin.mirror.snapshot())
