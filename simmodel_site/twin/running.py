"""A twin as a configuration says: checked, opened, and followed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from simmodel import InputError, SimmodelError
from simmodel.extending import check_output, counted, stop_workers, unknown, worker_pool
from simmodel_site.twin.acting.acting import Acting
from simmodel_site.twin.acting.actions import MODES
from simmodel_site.twin.advisor import Advisor
from simmodel_site.twin.audit import AuditLog
from simmodel_site.twin.audit_replay import continued
from simmodel_site.twin.mirror.mirror import Mirror
from simmodel_site.twin.serving import StatusServer, asked
from simmodel_site.twin.sources import RemoteSource
from simmodel_site.twin.status import Status
from simmodel_site.twin.twin import Twin

if TYPE_CHECKING:
    from simmodel.platform import ClusterSpec
    from simmodel_site.twin.advisor import Advice
    from simmodel_site.twin.config import TwinConfig
    from simmodel_site.twin.sources import Source
    from simmodel_site.twin.turnaround import Turnarounds

__all__ = ["check_act", "check_config", "check_source", "follow", "opened"]


def check_config(config: TwinConfig, *, trust: bool = False) -> Iterator[str]:
    """Yield sentences on the parts of a configuration, each after it was tried.

    Parameters
    ----------
    config
        the configuration
    trust
        whether the platform may name processors as ``module:Class``, which imports code

    Raises
    ------
    SimmodelError
        a part does not work
    """
    spec = config.spec(trust=trust)
    parts = counted(len(spec.partitions), "partition")
    yield f"platform {config.platform}: {counted(spec.processors, 'processor')} in {parts}"
    if config.advise is None:
        yield f"policy {config.policy}; nothing is advised"
    else:
        fallback = config.advise.fallback or config.policy
        yield f"policy {config.policy}; advice by {config.advise.policy}, if late by {fallback}"
    kind = config.source["kind"]
    with closing(config.open_source()) as source:
        for line in check_source(source, spec, config.policy):
            yield f"source {kind} of {config.cluster}: {line}"
    if config.audit is not None:
        check_output(config.path(config.audit))
        yield f"audit log {config.audit}: can be written"
    if config.serve is not None:
        yield _check_port(config.cluster, config.serve.port)
    yield from check_act(config, spec)


def _check_port(cluster: str, port: int) -> str:
    """Return that a status can be served on a port, or that a twin of the cluster does so already."""
    try:
        with closing(StatusServer(Status(cluster=cluster), port)) as server:
            return f"status: can be served at http://127.0.0.1:{server.port}"
    except InputError:
        try:
            there = asked(port).get("cluster")
        except SimmodelError:
            there = None
        if there != cluster:
            raise
        return f"status: a twin of {cluster} runs and serves it at http://127.0.0.1:{port}"


def check_act(config: TwinConfig, spec: ClusterSpec) -> Iterator[str]:
    """Yield sentences on the changes that a twin may make, after its heartbeat and its stop file were tried.

    Raises
    ------
    SimmodelError
        the heartbeat cannot be written, a partition is unknown, or the scheduler does not answer
    """
    act = config.act
    if act is None or not MODES[act.mode]:
        yield "it may change nothing but its own files"
        return
    known = [partition.name for partition in spec.partitions]
    for name in act.partitions:
        if name not in known:
            raise InputError(unknown("partition", name, known).message, place="act.partitions")
    hands = config.hands()
    check_output(config.path(act.heartbeat))
    where = f" in {', '.join(act.partitions)}" if act.partitions else ""
    yield f"mode {act.mode}{where}: at most {act.budget:,} actions an hour and {act.rate:g} a second"
    for command in hands.commands:
        yield f"it may {command} jobs: {hands.words(command)}"
    if act.mode == "hold-and-release":
        yield f"no job waits longer than {act.maximum_delay:g} s for it"
    yield f"{counted(len(hands.marked()), 'waiting job')} marked by a twin now"
    stop = config.path(act.stop_file)
    yield f"stop file {stop}: {'is there, so that nothing is done' if stop.exists() else 'is not there'}"


def check_source(source: Source, spec: ClusterSpec, policy: str) -> Iterator[str]:
    """Yield sentences on a source, and on the parts of its full report that do not fit a platform.

    Raises
    ------
    SimmodelError
        it cannot be read
    """
    if isinstance(source, RemoteSource):
        yield from source.check()
    report = source.report()
    if report is None:
        yield "events alone, no full reports"
    else:
        yield f"a full report of {counted(len(report.jobs), 'job')} at {report.time:g} s"
        mirror = Mirror(spec, source.cluster, policy)
        mirror.apply(report)
        mirror.snapshot()
        for sentence, count in mirror.refused.items():
            yield f"does not fit the platform: {sentence} ({count} times)"
    for sentence, count in source.refused.items():
        yield f"refused: {sentence} ({count} times)"


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
        if self.advisor.executor is not None:
            stop_workers(self.advisor.executor)


def follow(
    twin: Twin, until: Callable[[], bool], server: StatusServer | None = None, turnarounds: Turnarounds | None = None
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
