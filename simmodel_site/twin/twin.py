"""The twin: it reads events from a source, keeps the mirror, decides, and writes down all of it."""

from __future__ import annotations

import time as wall
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal

import attrs

from simmodel import SimmodelError
from simmodel.extending import quiet_garbage_collector
from simmodel.platform import to_dict
from simmodel_site.twin.audit import AuditError, AuditLog
from simmodel_site.twin.audit_replay import lets_start
from simmodel_site.twin.events import Event, Noticed, Passed
from simmodel_site.twin.logs import Log
from simmodel_site.twin.sources import AnsweringSource, RemoteSource
from simmodel_site.twin.status import LastDecision, Status

if TYPE_CHECKING:
    from simmodel_site.twin.acting.acting import Acting
    from simmodel_site.twin.acting.actions import Outcome
    from simmodel_site.twin.advisor import Advice, Advisor
    from simmodel_site.twin.audit_replay import AuditState
    from simmodel_site.twin.mirror.mirror import Mirror
    from simmodel_site.twin.sources import Source

__all__ = ["Twin"]

_PATIENCE = 20  # settle times after which a decision is made even if events keep coming
_AGAIN = 1.0  # seconds between attempts to write after an error, or to read


class Twin:
    """Follows a cluster: reads events, keeps the mirror, decides when something may start, and writes all down.

    Parameters
    ----------
    source, mirror
        the source of the events, and the known state of the cluster
    advisor
        decides; default: nothing is advised
    audit
        the audit log; advice that cannot be written there is not given. Default: nothing is written
    when
        ``"quiet"``: a decision is made once no event has come for ``settle`` seconds; ``"passed"``: when the source
        says that an instant is over
    settle, every
        as above; the least seconds between two decisions
    report_every, state_every
        seconds between full reports; the least seconds between states in the audit log, of which they are at most a
        quarter
    told
        functions that are called with each advice
    past
        the state at the end of an audit log (see :func:`~simmodel_site.twin.audit_replay.continued`), for the same
        mirror and advisor
    acting
        carries decisions out; default: nothing is changed on the cluster. Needs an audit log
    clock
        returns the time (s) of the cluster's clock

    Attributes
    ----------
    last
        the last advice, or ``None``
    due
        whether something has happened since the last decision that may let a job start
    advised, fallbacks
        the number of decisions, and of those by the fallback policy
    troubles
        the present problems, by part
    """

    def __init__(
        self,
        source: Source,
        mirror: Mirror,
        advisor: Advisor | None = None,
        audit: AuditLog | None = None,
        *,
        when: Literal["quiet", "passed"] = "quiet",
        settle: float = 0.05,
        every: float = 0.0,
        report_every: float = 60.0,
        state_every: float = 600.0,
        told: Iterable[Callable[[Advice], object]] = (),
        past: AuditState | None = None,
        acting: Acting | None = None,
        clock: Callable[[], float] = wall.time,
    ) -> None:
        if advisor is not None:
            mirror.learn_for(advisor.policy)
        self.source = source
        self.mirror = mirror
        self.advisor = advisor
        self.audit = audit
        self.when = when
        self.settle = settle
        self.every = every
        self.report_every = report_every
        self.state_every = state_every
        self.told = tuple(told)
        self.acting = acting
        self.clock = clock
        self.last: Advice | None = None if past is None else past.last
        self.due = past is not None and past.due
        self.troubles: dict[str, str] = {}
        self.log = Log("twin", cluster=source.cluster)
        self._due_since = wall.monotonic()
        self._decided_at = -self.every
        self._stated_at = wall.monotonic()
        self._next_state = 0  # the size of the audit log from which on another state may be written
        self._unplaced = False  # whether there are events in the audit log after the last position
        self._gap = False  # whether events are missing at the end of the audit log
        self._tried_at = -_AGAIN
        self._reported_at: float | None = None
        self._wants_report = False
        self._over: float | None = None  # the last instant that is over, while its decision could not be made
        self._lag: float | None = None
        self._events: Counter[str] = Counter()
        self.fallbacks = 0
        self.advised = 0
        self._seconds = 0.0
        self._own_state = past is None  # whether the audit log does not have it
        if past is not None and advisor is not None:
            same = past.known_as == advisor.known_as
            advisor.restore(
                past.memory if same and past.memory else {"number": (past.memory or {"number": 0})["number"]}
            )
            self._own_state = not same
        self._position = None if past is None else past.position  # all events before it have been applied
        source.resume(self._position)
        self._begin(continued=past is not None)

    def __repr__(self) -> str:
        return f"<Twin of {self.source.cluster} at {self.mirror.now:g} s>"

    # ------------------------------------------------------------------ the loop

    def run(self, until: Callable[[], bool] | None = None) -> None:
        """Follow the source until it is over, or until a function says so."""
        while not self.source.over and not (until is not None and until()):
            self.step()

    def step(self, timeout: float = 1.0) -> None:
        """Read the events since the last step, waiting up to ``timeout`` seconds for the first, and decide if due."""
        self._report_if_due()
        if self.acting is not None:
            self._note_outcomes(self.acting.step(self.troubles))
        if self.due and self.when == "quiet":
            timeout = min(timeout, self.settle)
        taken = 0
        try:
            for event in self.source.events(timeout):
                taken += 1
                self.take(event)
                if self._long_due():
                    self.decide()
        except (SimmodelError, OSError) as error:
            self._trouble("source", str(error))
            wall.sleep(min(timeout, _AGAIN))
        else:
            self.troubles.pop("source", None)
            self._position = self.source.position()
        self._flush(read=True)
        if not self.due:
            self._over = None
        elif self.when == "passed":
            if self._over is not None:
                self.decide(self._over)
        elif not taken or self.source.over:
            self.decide()

    def take(self, event: Event) -> None:
        """Apply an event; decide if it says that an instant is over."""
        if isinstance(event, Noticed):
            self._wants_report = True
            return
        try:
            changed = self.mirror.apply(event)
        except Exception as error:  # or the same event would stop the twin again after each restart
            sentence = f"{event.kind} cannot be applied: {type(error).__name__}: {error}"
            self.mirror.refused.count(sentence)
            self.log.error(sentence)
            return
        if changed:
            self._events[event.kind] += 1
            self._lag = max(0.0, self.clock() - event.time)
            self._write("event", event=event.document())
            if lets_start(event):
                if not self.due:
                    self._due_since = wall.monotonic()
                self.due = True
        if isinstance(event, Passed) and self.when == "passed" and self.due:
            self._over = event.time
            self.decide(event.time)

    def _long_due(self) -> bool:
        """Whether a decision is due although events keep coming."""
        patience = max(_PATIENCE * self.settle, self.settle + 0.5)
        return self.due and self.when == "quiet" and wall.monotonic() - self._due_since > patience

    def _report_if_due(self) -> None:
        """Apply a full report at the beginning, then at intervals, and when the source asks for one."""
        now = wall.monotonic()
        first = self._reported_at is None
        if not (first or self._wants_report or now - (self._reported_at or 0.0) >= self.report_every):
            return
        try:
            report = self.source.report()
        except (SimmodelError, OSError) as error:
            self._trouble("report", str(error))
            self._reported_at = now - self.report_every + min(self.report_every, _AGAIN)
            return
        self.troubles.pop("report", None)
        self._reported_at, self._wants_report = now, False
        if report is not None:
            self.take(report)

    # ------------------------------------------------------------------ deciding

    @quiet_garbage_collector()
    def decide(self, time: float | None = None) -> Advice | None:
        """Decide now, or at an instant (s); return the advice, or ``None`` if there is none.

        There is none without an advisor, while nothing waits, sooner than ``every`` seconds after the last one, or if
        it cannot be written into the audit log.
        """
        advisor = self.advisor
        now = wall.monotonic()
        if advisor is None:
            self.due = False
            return None
        if now - self._decided_at < self.every or not self._flush():
            return None
        if self.acting is not None and not self.acting.ready(self.mirror):
            return None
        self.mirror.advance(self.clock() if time is None else time)
        snapshot = self.mirror.snapshot()
        if not snapshot.waiting:
            self.due = False
            return None
        before = advisor.state()
        try:
            advice = advisor.advise(snapshot, sequence=self.mirror.sequence)
        except Exception as error:  # whatever happens in a policy, the mirror goes on
            self.due = False
            self._trouble("advisor", f"no decision at {snapshot.now:g} s: {type(error).__name__}: {error}")
            return None
        marks = {str(each.job): self.mirror.unmodelled(each.job) for each in advice.starts}
        advice = attrs.evolve(advice, unmodelled={job: told for job, told in marks.items() if told})
        self.troubles.pop("advisor", None)
        self._write("advice", advice=advice.document(), memory=advisor.state())
        if not self._flush(sync=True):
            advisor.restore(before)
            return None
        self.last, self.due, self._decided_at = advice, False, now
        self.advised += 1
        self._seconds += advice.seconds
        self.fallbacks += advice.fallback
        if self.acting is not None:
            self._act(self.acting, advice)
        for call in self.told:
            call(advice)
        return advice

    def _act(self, acting: Acting, advice: Advice) -> None:
        """Carry advice out, once its actions are written into the audit log."""
        actions = acting.plan(advice, self.mirror)
        for action in actions:
            self._write("action", action=action.document())
        if actions and self._flush(sync=True):
            acting.send(actions)

    def _note_outcomes(self, outcomes: Iterable[Outcome]) -> None:
        for outcome in outcomes:
            self._write("outcome", outcome=outcome.document())
            if outcome.what == "failed" or (outcome.what == "refused" and not outcome.number):
                self.log.warning(outcome.sentence, about="action")

    # ------------------------------------------------------------------ writing down

    def _begin(self, *, continued: bool) -> None:
        if self.audit is None:
            return
        from simmodel import __version__

        self._write(
            "head",
            version=__version__,
            cluster=self.mirror.cluster,
            platform=to_dict(self.mirror.spec),
            policy=self.mirror.policy if isinstance(self.mirror.policy, str) else None,
            options=self.mirror.options.values(),
            advisor=None if self.advisor is None else self.advisor.known_as,
            continued=continued,
            mode=None if self.acting is None else self.acting.mode,
        )
        if self._own_state:
            self._write_state(whole=True)
        self._flush(sync=True)

    def _write_state(self, *, whole: bool = False) -> None:
        self._stated_at, size = wall.monotonic(), 0 if self.audit is None else self.audit.size
        advisor = None if self.advisor is None else self.advisor.state()
        self._write(
            "state",
            mirror=self.mirror.state_document(),
            advisor=advisor,
            due=self.due,
            position=self._position,
            whole=whole,
        )
        if self.audit is not None:
            self._next_state = self.audit.size + 3 * (self.audit.size - size)

    def _write(self, kind: str, **values: Any) -> None:
        if self.audit is not None and not self._gap:
            self.audit.add(kind, **values)
            self._unplaced = self._unplaced or kind == "event"

    def _flush(self, *, read: bool = False, sync: bool = False) -> bool:
        """Write the pending lines, now and then with the state; return whether the audit log is complete."""
        audit = self.audit
        if audit is None:
            return True
        now = wall.monotonic()
        if self._gap and (now - self._tried_at < _AGAIN):
            return False
        try:
            if self._gap:
                self._tried_at, self._gap = now, False
                self._write_state(whole=True)
                sync = True
            elif read and self._unplaced:
                self._write("position", position=self._position)
                self._unplaced = False
                if now - self._stated_at >= self.state_every and audit.size >= self._next_state:
                    self._write_state()
            audit.flush(sync=sync)
        except AuditError as error:
            self._gap, self._tried_at = True, now
            self._trouble("audit", str(error))
            return False
        self.troubles.pop("audit", None)
        return True

    def _trouble(self, part: str, sentence: str) -> None:
        if self.troubles.get(part) != sentence:
            self.log.warning(sentence, about=part)
        self.troubles[part] = sentence

    # ------------------------------------------------------------------ status

    @property
    def status(self) -> Status:
        """The state that its status page and its metrics show."""
        jobs: Mapping[str, int] = self.mirror.jobs
        last = self.last
        remote = self.source if isinstance(self.source, RemoteSource) else None
        troubles = (*self.troubles.values(), None if remote is None else remote.trouble, self.late())
        return Status(
            cluster=self.source.cluster,
            time=self.mirror.now if isfinite(self.mirror.now) else None,
            lag=self._lag,
            waiting=jobs["waiting"],
            running=jobs["running"],
            held=jobs["held"],
            unmodelled=sum(
                each.state.phase == "waiting" and bool(self.mirror.unmodelled(each.id))
                for each in self.mirror.ledger.alive()
            ),
            nodes=Counter(self.mirror.nodes.out.values()),
            remembered=jobs["told"],
            events=dict(self._events),
            refused=dict(self.source.refused + self.mirror.refused),
            position=self.source.position(),
            decisions=self.advised,
            fallbacks=self.fallbacks,
            decision_seconds=self._seconds,
            last=None if last is None else _brief(last),
            gaps=remote.gaps if remote is not None else 0,
            mode="observe" if self.acting is None else self.acting.mode,
            paused="" if self.acting is None else self.acting.paused,
            actions={} if self.acting is None else dict(self.acting.outcomes),
            troubles=tuple(filter(None, troubles)),
        )

    def late(self) -> str | None:
        """Return that the source has been silent for two of its intervals, in one sentence; ``None``: it has not.

        Any thread may ask, also while the twin waits for an answer.
        """
        source = self.source
        if not isinstance(source, AnsweringSource):
            return None
        answered, within = source.last_answer()
        age = wall.monotonic() - answered
        if age <= 2 * within:
            return None
        return f"no answer from the source for {age:.1f} s: one is due every {within:.3g} s"

    def close(self) -> None:
        """Give back the held jobs, write the state down, and let go of source and audit log."""
        if self.acting is not None:
            self._note_outcomes(self.acting.close())
        if self.audit is not None:
            if not self._gap:
                self._write_state()
            self._flush(sync=True)
            self.audit.close()
        self.source.close()


def _brief(advice: Advice) -> LastDecision:
    return LastDecision(
        number=advice.number,
        time=advice.time,
        policy=advice.policy,
        reason=advice.reason,
        starts=len(advice.starts),
        seconds=advice.seconds,
        fallback=advice.fallback,
    )
