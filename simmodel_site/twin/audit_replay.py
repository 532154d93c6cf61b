"""The course of a twin, read from its audit log: to continue it, and to make each decision again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from simmodel import InputError
from simmodel.extending import Fields, check_models, check_policy_name
from simmodel.platform import from_dict
from simmodel_site.twin.acting.actions import PastActions
from simmodel_site.twin.advisor import Advice, Advisor
from simmodel_site.twin.audit import AuditRecord, read_audit
from simmodel_site.twin.events import (
    Changed,
    Ended,
    Event,
    NodesChanged,
    OnHold,
    Released,
    Requeued,
    StateReport,
    Submitted,
    event_of,
)
from simmodel_site.twin.mirror.mirror import Mirror

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from simmodel.extending import PolicyLike
    from simmodel.platform import ClusterSpec

__all__ = ["AuditReplay", "AuditState", "continued", "lets_start", "replay_audit"]


_TRIGGERS = (Submitted, Ended, Requeued, OnHold, Released, Changed, StateReport)


def lets_start(event: Event) -> bool:
    """Whether an event may let a job start, so that a decision is due.

    >>> from simmodel_site.twin.events import Passed
    >>> lets_start(Ended(cluster="alps", time=9.0, job=3, submit=2.0)), lets_start(Passed(cluster="alps", time=9.0))
    (True, False)
    """
    return isinstance(event, _TRIGGERS) or (isinstance(event, NodesChanged) and event.state == "up")


class AuditState:
    """The knowledge of a twin, rebuilt line by line from its audit log.

    Attributes
    ----------
    mirror, memory
        the mirror, and the state of the advisor
    last
        the last advice
    due
        whether a decision was due
    position
        the place in the source
    actions
        the past actions on the cluster, and those still open
    known_as
        the names of the advisor's policies, ``None`` for one given as an object
    """

    def __init__(self, mirror: Mirror, memory: Mapping[str, Any] | None, known_as: Any = None) -> None:
        self.mirror = mirror
        self.memory = memory
        self.known_as = None if known_as is None else tuple(known_as)
        self.last: Advice | None = None
        self.due = False
        self.position: str | None = None
        self.actions = PastActions()

    @classmethod
    def of(cls, head: Mapping[str, Any], state: Mapping[str, Any], mirror: Mirror) -> AuditState:
        course = cls(mirror, state["advisor"], head["advisor"])
        course.due, course.position = state["due"], state["position"]
        return course

    def take(self, record: AuditRecord) -> None:
        """Go on by a line."""
        values = record.values
        if record.kind == "event":
            event = event_of(values["event"])
            self.mirror.apply(event)
            self.due = self.due or lets_start(event)
        elif record.kind == "advice":
            self.last = Advice.of(values["advice"])
            self.mirror.advance(self.last.time)
            self.memory, self.due = values["memory"], False
        elif record.kind == "position":
            self.position = values["position"]


Remake: TypeAlias = "Callable[[Mapping[str, Any]], Mirror]"
"""Makes a mirror from its document."""


def continued(path: str | Path, spec: ClusterSpec, cluster: str, remake: Remake) -> AuditState | None:
    """Return the state at the end of an audit log, for a twin that continues; ``None`` if there is nothing to continue.

    Parameters
    ----------
    path
        the audit log; need not exist
    spec, cluster
        the platform and the name of the cluster: there is nothing to continue if those of the log are others
    remake
        makes the mirror from its document

    Raises
    ------
    InputError
        the file is not an audit log, or was changed
    """
    if not Path(path).exists():
        return None
    head: AuditRecord | None = None
    state: AuditRecord | None = None
    after: list[AuditRecord] = []
    actions = PastActions()
    for record in read_audit(path):
        if record.kind == "head":
            head = record
        elif record.kind in ("action", "outcome"):
            actions.take(record.kind, record.values)
        elif record.kind == "state":
            state, after = record, []
        elif state is not None:
            after.append(record)
    if head is None or state is None or head.values["cluster"] != cluster:
        return None
    if from_dict(head.values["platform"]) != Mirror(spec).spec:
        return None
    course = AuditState.of(head.values, state.values, remake(state.values["mirror"]))
    for record in after:
        course.take(record)
    course.actions = actions
    return course


@attrs.frozen(kw_only=True, repr=False)
class AuditReplay(Fields):
    """The decisions of an audit log, made again.

    Attributes
    ----------
    decisions, reproduced
        how many there are, and how many came out the same
    fallbacks
        how many the fallback policy made
    first
        the first difference, with its line and the number of the advice; ``""``: none
    """

    decisions: int
    reproduced: int
    fallbacks: int = 0
    first: str = ""


def replay_audit(
    path: str | Path,
    *,
    policy: PolicyLike | None = None,
    fallback: PolicyLike | None = None,
    executor: Executor | None = None,
    trust: bool = False,
) -> AuditReplay:
    """Make each decision of an audit log again, from the events before it.

    Parameters
    ----------
    path
        the audit log
    policy, fallback
        those of the advisor, if they were given as objects; default: by the names in the log
    executor
        runs the futures; default: this process
    trust
        whether the log may name policies and processors as ``module:name``, which imports code

    Raises
    ------
    InputError
        the file is not an audit log, was changed, or a policy is unknown
    """
    advisor: Advisor | None = None
    course: AuditState | None = None
    head: Mapping[str, Any] = {}
    decisions = reproduced = fallbacks = 0
    first = ""
    for record in read_audit(path):
        values = record.values
        if record.kind == "head":
            head = values
            course = course if values["continued"] else None
            if values["advisor"] is not None:
                known = values["advisor"]
                advisor = _advisor((policy or known[0], fallback or known[1]), executor, trust)
        elif record.kind == "state" and (course is None or values["whole"]):
            course = AuditState.of(head, values, _remade(head, values["mirror"], str(path), trust))
            if advisor is not None:
                course.mirror.learn_for(advisor.policy)
        elif course is not None:
            if record.kind == "advice" and advisor is not None:
                said = Advice.of(values["advice"])
                different = _again(course, advisor, said)
                decisions += 1
                reproduced += not different
                fallbacks += said.fallback
                if different and not first:
                    first = f"line {record.line}, advice {said.number}: {different}"
            course.take(record)
    return AuditReplay(decisions=decisions, reproduced=reproduced, fallbacks=fallbacks, first=first)


def _remade(head: Mapping[str, Any], document: Mapping[str, Any], source: str, trust: bool) -> Mirror:
    """Return the mirror of a document in a log."""
    spec = from_dict(head["platform"], source=source)
    if not trust:
        check_models(spec, source)
    return Mirror.from_document(document, spec, head["policy"] or "fcfs", **head["options"])


def _advisor(policies: Sequence[PolicyLike | None], executor: Executor | None, trust: bool) -> Advisor:
    for place, each in zip(("policy", "fallback"), policies, strict=True):
        if each is None:
            raise InputError("was given as an object: pass it again to make its decisions again", place=place)
        if isinstance(each, str):
            check_policy_name(each, place, trust=trust)
    policy, fallback = policies
    return Advisor(policy, fallback=fallback, executor=executor)  # type: ignore[arg-type]


def _again(course: AuditState, advisor: Advisor, said: Advice) -> str:
    """Make a decision again; return the first field that differs, with both values, or ``""``."""
    if course.memory is None:
        raise InputError("has advice, but no state of an advisor before it")
    course.mirror.advance(said.time)
    advisor.restore(course.memory)
    found = advisor.advise(course.mirror.snapshot(), late=said.fallback)
    for name in ("digest", "number", "starts", "policy"):
        if getattr(found, name) != getattr(said, name):
            return f"{name} {getattr(found, name)!r} instead of {getattr(said, name)!r}"
    return ""
