"""Checks of a twin's configuration: each connection is tried, nothing is started or changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from simmodel.foundation.display import counted
from simmodel.foundation.errors import InputError, SimmodelError, unknown
from simmodel.foundation.writing import check_output
from simmodel.twin.acting.actions import MODES
from simmodel.twin.mirror.mirror import Mirror
from simmodel.twin.serving import StatusServer, asked
from simmodel.twin.sources import RemoteSource
from simmodel.twin.status import Status

if TYPE_CHECKING:
    from simmodel.platform.cluster import ClusterSpec
    from simmodel.twin.config import TwinConfig
    from simmodel.twin.sources import Source

__all__ = ["check_act", "check_config", "check_source"]


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
