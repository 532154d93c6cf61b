"""Whether a twin can do what its configuration says: each connection tried, nothing started or changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from simmodel.display import counted
from simmodel.twin.mirror import Mirror
from simmodel.twin.serving import StatusServer
from simmodel.twin.source import RemoteSource
from simmodel.twin.status import Status
from simmodel.writing import check_output

if TYPE_CHECKING:
    from simmodel.platform.cluster import ClusterSpec
    from simmodel.twin.config import TwinConfig
    from simmodel.twin.source import Source

__all__ = ["check_config", "check_source"]


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
        with closing(StatusServer(Status(cluster=config.cluster), config.serve.port)) as server:
            yield f"status: can be served at http://127.0.0.1:{server.port}"
    yield "it may change nothing but its own files"


def check_source(source: Source, spec: ClusterSpec, policy: str) -> Iterator[str]:
    """Yield sentences on a source, and on what of its full report does not fit a platform.

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
