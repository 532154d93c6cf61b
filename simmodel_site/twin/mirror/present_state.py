"""The state of a cluster outside as it is now, and why a job waits in it."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs

from simmodel import InputError
from simmodel.extending import PROMISES, Change, instant_text, span_table, waiting_parts
from simmodel.referee import why_waits
from simmodel_site.twin.audit_replay import continued
from simmodel_site.twin.events import Released, job_id
from simmodel_site.twin.mirror.mirror import Mirror
from simmodel_site.twin.mirror.reconcile import SLACK
from simmodel_site.twin.sources import ActingSource, RemoteSource

if TYPE_CHECKING:
    from simmodel.extending import Explanation, PolicyLike
    from simmodel_site.twin.config import TwinConfig
    from simmodel_site.twin.events import JobReport, StateReport
    from simmodel_site.twin.mirror.job_history import Entry
    from simmodel_site.twin.sources import Source

__all__ = ["Present", "explain_in_mirror", "present"]

_QUIET = 1.0  # seconds without events after which all is told


class Present(NamedTuple):
    """The state of a cluster, and the full report of its scheduler that it is from, if there was one."""

    mirror: Mirror
    report: StateReport | None


def present(config: TwinConfig, *, trust: bool = False) -> Present:
    """Return the present state of a configured cluster, from the report of its scheduler and from its audit log.

    A source without full reports is read only if there is no audit log. Nothing is changed.

    Parameters
    ----------
    config
        the configuration
    trust
        whether the platform may name processors as ``module:Class``, which imports code

    Raises
    ------
    SimmodelError
        no event comes, the audit log was changed, or the source cannot be read
    """
    spec = config.spec(trust=trust)

    def remake(document: Any) -> Mirror:
        return Mirror.from_document(document, spec, config.policy)

    past = None if config.audit is None else continued(config.path(config.audit), spec, config.cluster, remake)
    if past is not None and not isinstance(config.settings(), ActingSource):
        return Present(past.mirror, None)
    mirror = Mirror(spec, config.cluster, config.policy) if past is None else past.mirror
    with closing(config.open_source()) as source:
        report = source.report()
        if isinstance(source, RemoteSource) and source.trouble is not None:
            raise InputError(source.trouble, place="source")
        if report is not None:
            mirror.apply(report)
        elif past is None:
            _read_all(source, mirror)
    if mirror.now == float("-inf"):
        reasons = "; ".join(source.refused)
        raise InputError(f"must tell something, got no event{reasons and f': {reasons}'}", place="source")
    return Present(mirror, report)


def _read_all(source: Source, mirror: Mirror) -> None:
    """Apply the events of a source until none has come for 1 s, or the source is over."""
    told = True
    while told and not source.over:
        told = False
        for event in source.events(_QUIET):
            told = True
            mirror.apply(event)


def explain_in_mirror(
    mirror: Mirror,
    job: int | str,
    report: StateReport | None = None,
    policy: PolicyLike | None = None,
    *,
    dated: bool = False,
) -> Explanation:
    """Explain why a job waits in a cluster outside, as its mirror has it.

    Of a job that the scheduler holds, the explanation gives the other obstacles: it is asked for as if released.

    Parameters
    ----------
    mirror
        the state of the cluster
    job
        the id of a job that waits or is held
    report
        the full report of the scheduler, from which its own reason is taken
    policy
        default: that of the mirror
    dated
        whether instants are seconds since 1970, shown as dates

    Raises
    ------
    InputError
        the job does not wait, or does not fit the platform

    >>> from simmodel_site.twin import OnHold, Demand, Submitted
    >>> mirror = Mirror(4, "alps")
    >>> about = {"cluster": "alps", "job": 7, "submit": 0.0, "time": 0.0}
    >>> mirror.apply(Submitted(**about, request=Demand(processors=3, requested=60.0))), mirror.apply(OnHold(**about))
    (True, True)
    >>> print(explain_in_mirror(mirror, 7))
    job 7 at 0 s: is held by the scheduler; once released, the policy starts it now
      it would start now if it were released
    """
    entry = mirror.entry(job_id(job))
    if entry is None or not entry.alive:
        raise InputError(f"must be one of the {_waiting(mirror):,} jobs that wait, got {job!r}", place="job")
    if entry.state.phase == "running":
        since = "" if entry.state.started is None else f" since {instant_text(entry.state.started, dated=dated)}"
        raise InputError(f"job {job} does not wait: it runs{since}", place="job")
    held = entry.state.held
    snapshot = (_released(mirror, entry) if held else mirror).snapshot()
    if str(entry.id) not in waiting_parts(snapshot):
        raise InputError(f"job {job} waits, but does not fit the platform {mirror.spec.name}", place="job")
    found = why_waits(snapshot, entry.id, policy, dated=dated)
    told = _told(report, entry)
    cautions = [f"not modelled: {each}" for each in mirror.unmodelled(entry.id)]
    now = found.reason == "due" or (found.expected is not None and found.expected <= found.at)
    if now and told is not None and told.foretold is not None and told.foretold > found.at + SLACK:
        cautions.append("the scheduler expects a later start: a rule of its may be missing here")
    return attrs.evolve(_as_held(found) if held else found, said=_said(told, dated), cautions=tuple(cautions))


def _waiting(mirror: Mirror) -> int:
    return mirror.jobs["waiting"] + mirror.jobs["held"]


def _released(mirror: Mirror, entry: Entry) -> Mirror:
    copy = mirror.copy()
    copy.apply(Released(cluster=mirror.cluster, job=entry.id, submit=entry.submit, time=mirror.now))
    return copy


def _as_held(released: Explanation) -> Explanation:
    """Return the explanation of a held job from that of the job as if it were released."""
    due = released.reason == "due"
    return attrs.evolve(
        released,
        reason="held",
        detail=f"is held by the scheduler; once released, {released.detail if due else f'it {released.detail}'}",
        changes=(Change("held", "released", "if it were released"),) if due else (),
        expected=None,
        promises=span_table([], PROMISES),
    )


def _told(report: StateReport | None, entry: Entry) -> JobReport | None:
    """Return the part of a report on a job; ``None`` if it is not there."""
    jobs = () if report is None else report.jobs
    return next((each for each in jobs if (each.job, each.submit) == (entry.id, entry.submit)), None)


def _said(told: JobReport | None, dated: bool) -> str:
    """Return the scheduler's own statement on a job: why it waits, and when it expects to start it."""
    if told is None:
        return ""
    expects = "" if told.foretold is None else f"it expects to start it at {instant_text(told.foretold, dated=dated)}"
    return ", ".join(filter(None, (told.reason, expects)))
