"""The mirror: the state of a cluster run by an external scheduler, as far as it is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import attrs

from simmodel import InputError
from simmodel.extending import Cells, Past, Plain, Shown, shown
from simmodel.platform import ClusterOptions, ClusterSpec
from simmodel.scheduling import policy as policy_of
from simmodel_site.twin.described import awake_first
from simmodel_site.twin.events import Ended, Event, JobEvent, NodesChanged, Noticed, Passed, StateReport, Submitted
from simmodel_site.twin.mirror.job_history import Entry
from simmodel_site.twin.mirror.ledger import Ledger
from simmodel_site.twin.mirror.mirrored_cluster import MirroredCluster
from simmodel_site.twin.mirror.node_states import NodeLedger
from simmodel_site.twin.mirror.places import Places
from simmodel_site.twin.mirror.reconcile import SLACK, missing
from simmodel_site.twin.sources import Refused

if TYPE_CHECKING:
    from simmodel.extending import PolicyLike, RunningWork, WorkState
    from simmodel.scheduling import Policy
    from simmodel.snapshots import ClusterSnapshot
    from simmodel.systems import Cluster

__all__ = ["Mirror"]

FORMAT = "simmodel mirror"
_LONGEST = 1000  # characters of an id


class Mirror(Shown):
    """The state of a cluster that a scheduler outside runs, from its events and full reports.

    The state follows from the set of events, in whatever order they came and however often. Events of another cluster,
    and impossible ones, are counted by reason and change nothing.

    Parameters
    ----------
    platform
        the cluster, or its number of processors. Its outages and failures come as events; maintenance and reservations
        are known in advance
    cluster
        its name in events; default: that of the platform
    policy
        the policy of its scheduler, for what-ifs; it is not asked
    remembered
        how many jobs that are over are remembered, so that repeated events of them do nothing
    unlimited
        seconds that a job without a limit is expected to run
    clock
        returns the time (s); default: none. With a clock, an event of an instant more than ``ahead`` seconds later is
        refused
    options
        ``decide_on``, ``estimates`` and so on, as for :class:`~simmodel.systems.cluster.system.Cluster`

    Attributes
    ----------
    ledger, nodes
        the known events of each job, and of each node
    now
        the latest instant (s) of an event, or to which the mirror was advanced
    reported
        the instant (s) of the last full report
    sequence
        the number of the last event that has one
    refused
        the numbers of refusals, by reason

    >>> from simmodel_site.twin import Ended, Demand, Started, Submitted
    >>> mirror = Mirror(4, "alps")
    >>> def about(job, time): return {"cluster": "alps", "job": job, "submit": 0.0, "time": time}
    >>> for job in (1, 2):
    ...     _ = mirror.apply(Submitted(**about(job, 0.0), request=Demand(processors=3, requested=60.0)))
    >>> mirror.apply(Started(**about(1, 5.0))), mirror.apply(Started(**about(1, 5.0)))
    (True, False)
    >>> mirror.snapshot()
    <ClusterSnapshot of alps at 5 s: 1 running, 1 waiting, 0 to arrive>
    """

    def __init__(
        self,
        platform: ClusterSpec | int,
        cluster: str | None = None,
        policy: PolicyLike = "fcfs",
        *,
        remembered: int = 10_000,
        unlimited: float = 365 * 86400.0,
        clock: Callable[[], float] | None = None,
        ahead: float = 3600.0,
        **options: Any,
    ) -> None:
        spec = ClusterSpec.simple(platform) if isinstance(platform, int | Integral) else platform
        announced = tuple(outage for outage in spec.outages if outage.kind == "maintenance")
        self.spec = awake_first(attrs.evolve(spec, outages=announced, failures=()))
        self.cluster = spec.name if cluster is None else cluster
        self.policy = policy
        self.options = ClusterOptions(**options)
        self.ledger = Ledger(remembered)
        self.nodes = NodeLedger(self.spec)
        self._places = Places(self.spec)
        self.now = float("-inf")
        self.reported = float("-inf")
        self.sequence: int | None = None
        self.refused = Refused()
        self.over: Counter[str] = Counter()
        self._unlimited = unlimited
        self._clock = clock
        self._ahead = ahead
        self._live: MirroredCluster | None = None
        self._advising: list[Policy] = []
        self._learned: dict[str, Any] = {}  # by the cluster that was live before: usage and predictions
        self._taken: ClusterSnapshot | None = None  # the snapshot, while nothing changes

    # ------------------------------------------------------------------ events

    def apply(self, event: Event) -> bool:
        """Take an event or a full report; return whether it changed anything but the time."""
        why = self._why_not(event)
        if why is not None:
            self.refused.count(why)
            return False
        if event.sequence is not None:
            self.sequence = event.sequence
        self.advance(event.time)
        if isinstance(event, StateReport):
            self.reported = event.time
            return self._reconcile(event)
        missed = isinstance(event, Submitted) and self._was_over(event)
        changed = self._take(event)
        if missed and isinstance(event, Submitted):
            cluster, job, submit = event.key
            self._take(Ended(cluster=cluster, job=job, submit=submit, time=self.reported, status="cancelled"))
        return changed

    def _reconcile(self, report: StateReport) -> bool:
        """Apply the events that a full report shows to be missing."""
        if any(job.optional for job in report.jobs) and policy_of(self.policy).reads_options:
            jobs = [attrs.evolve(job, state="waiting") if job.optional else job for job in report.jobs]
            report = attrs.evolve(report, jobs=tuple(jobs))
        events = missing(report, self.ledger, self.nodes)
        again = any(isinstance(each, Submitted) and each.key in self.ledger.entries for each in events)
        changes = [self._take_reported(each, report) for each in events]
        if again:
            changes += [self._take_reported(each, report) for each in missing(report, self.ledger, self.nodes)]
        return any(changes)

    def _take_reported(self, event: Event, report: StateReport) -> bool:
        why = self._why_not(event)
        if why is None and _latest(event) > report.time + self._ahead:
            why = f"report: instants must be at most {self._ahead:g} s after its own"
        if why is not None:
            self.refused.count(why)
            return False
        self.advance(event.time)
        return self._take(event)

    def _take(self, event: Event) -> bool:
        if isinstance(event, JobEvent):
            return self._apply_to_job(event)
        if isinstance(event, NodesChanged):
            return self._apply_to_nodes(event)
        if not isinstance(event, (Passed, Noticed)):
            self.refused.count(f"unknown event {type(event).__name__}")
        return False

    def _why_not(self, event: Event) -> str | None:
        if event.cluster != self.cluster:
            return f"must be of cluster {self.cluster!r}, got {shown(event.cluster)}"
        if self._clock is not None and _latest(event) > self._clock() + self._ahead:
            return f"time: must be at most {self._ahead:g} s ahead of the clock"
        if isinstance(event, JobEvent) and isinstance(event.job, str) and len(event.job) > _LONGEST:
            return f"job: must be an id of at most {_LONGEST} characters"
        if isinstance(event, StateReport) and event.time < self.reported:
            return "report older than the last one"
        return None

    def _was_over(self, event: Submitted) -> bool:
        """Whether a submission comes so late that an earlier full report already lacks the job: it is over."""
        entry = self.ledger.entries.get(event.key)
        if entry is not None and entry.state.request is not None:
            return False  # told before, perhaps by that report
        return event.submit < self.reported - SLACK and (entry is None or entry.last_told < self.reported - SLACK)

    def _apply_to_job(self, event: JobEvent) -> bool:
        if isinstance(event, Submitted):
            self.advance(event.submit)
        changed, moved = self.ledger.tell(event)
        if moved:
            self._forget_live()
        live = self._live
        if changed:
            self._taken = None
        if live is not None and changed:
            live.advance(self.now)
            followed = True
            for entry in changed:
                followed &= live.follow(entry)
            if not followed:
                self._forget_live()
        return bool(changed)

    def _apply_to_nodes(self, event: NodesChanged) -> bool:
        changed, unknown = self.nodes.tell(event)
        for sentence in unknown:
            self.refused.count(sentence)
        if changed:
            self._taken = None
            if self._live is not None:
                self._live.advance(self.now)
                self._live.take_down(self.nodes.down())
        return changed

    def advance(self, time: float) -> None:
        """Note that it is at least so late (s)."""
        if time > self.now:
            self.now = float(time)
            self._taken = None

    # ------------------------------------------------------------------ the state

    @property
    def system(self) -> Cluster:
        """The cluster, as live as one that is simulated: its places, queues and load."""
        return self._follow().system

    @property
    def digest(self) -> str:
        """The digest of the snapshot."""
        return self.snapshot().digest

    @property
    def jobs(self) -> dict[str, int]:
        """The numbers of jobs that run, wait and are held, and of all submissions so far."""
        count = Counter(
            "held" if each.state.held and each.state.phase == "waiting" else each.state.phase
            for each in self.ledger.alive()
        )
        return {state: count[state] for state in ("running", "waiting", "held")} | {"told": self.ledger.count}

    def snapshot(self) -> ClusterSnapshot:
        """Return the state as a snapshot, which what-ifs and simulations continue.

        It holds the knowledge of the scheduler: limits instead of run times. Held jobs are not in it.
        """
        if self._taken is None:
            live = self._follow()
            live.advance(self.now)
            self._taken = self._in_order(live.system.snapshot(actual=False))
        return self._taken

    def _follow(self) -> MirroredCluster:
        """Return the live cluster, built from scratch if need be."""
        if self._live is None:
            if self.now == float("-inf"):
                self.now = 0.0
            live = MirroredCluster(
                self.ledger,
                self.spec,
                self.cluster,
                self.policy,
                self.options,
                self.now,
                self.refused,
                self._unlimited,
            )
            for advising in self._advising:
                advising.attach(live.system)
            live.take_down(self.nodes.down())
            live.take_over(self._learned, self.ledger.alive())
            self._live = live
        return self._live

    def learn_for(self, policy: Policy) -> None:
        """Keep the history that another policy needs, such as the consumption of users, from now on."""
        if not any(each is policy for each in self._advising):
            self._forget_live()
            self._advising.append(policy)

    def _forget_live(self) -> None:
        """Build the live cluster from scratch when it is needed next."""
        if self._live is not None:
            self._learned = self._live.learned()
        self._live = None

    def _in_order(self, found: ClusterSnapshot) -> ClusterSnapshot:
        """Return a snapshot in an order that does not depend on how it came about, ready to be decided on."""
        places = {place.name: number for number, place in enumerate(found.places)}
        running = sorted(found.running, key=lambda run: (places[run.work.place], run.started, run.work.number))
        return attrs.evolve(
            found,
            running=tuple([self._with_past(run) for run in running]),
            waiting=self._with_pasts(found.waiting),
            held=self._with_pasts(sorted(found.held, key=_number)),
            blocked=self._with_pasts(sorted(found.blocked, key=_number)),
            new=tuple([work.number for work in found.waiting]),
            choices=tuple(sorted(found.choices)),
            policy=attrs.evolve(found.policy, due=True),
        )

    def _with_pasts(self, works: Iterable[WorkState]) -> tuple[WorkState, ...]:
        every = self.ledger.has_dependencies
        return tuple([work._replace(past=self._past(work.id)) if every or work.past else work for work in works])

    def _with_past(self, run: RunningWork) -> RunningWork:
        work = run.work
        if work.past is None and not self.ledger.has_dependencies:
            return run
        entry = self.ledger.entry(work.id)
        attempts = 1 if entry is None else entry.state.attempts
        return run._replace(work=work._replace(past=self._past(work.id)), attempt=attempts)

    def _past(self, id: int | str) -> Past | None:
        """Return the history of a job from its set of events, whatever their order."""
        entry = self.ledger.entry(id)
        if entry is None:
            return None
        state, eligible = entry.state, self.ledger.eligible(entry)
        attempts = state.attempts - (state.phase == "running")
        if not attempts and eligible is None:
            return None
        first = state.first_start if attempts else None
        return Past(attempts, eligible, first, None, state.last_start)

    def entry(self, job: int | str) -> Entry | None:
        """Return the entry of the last job of an id; ``None`` if it is unknown."""
        return self.ledger.entry(job)

    def start_of(self, job: int | str, submit: float) -> float | None:
        """Return the instant (s) at which a submission of a job started; ``None``: it has not, or it is not known."""
        entry = self.entry(job)
        if entry is None or entry.submit != submit:
            return None
        return entry.state.first_start if entry.state.started is None else entry.state.started

    def unmodelled(self, job: int | str) -> tuple[str, ...]:
        """Return the properties of a job that this mirror does not model: its actual start may differ."""
        entry = self.ledger.entry(job)
        if entry is None:
            return ()
        asked = entry.request
        known = asked.expressed if policy_of(self.policy).reads_options else ()
        return (*(each for each in asked.unmodelled if each not in known), *self._places.unmodelled(asked))

    # ------------------------------------------------------------------ documents

    def state_document(self) -> dict[str, Plain]:
        """Return all that is known, as plain values."""
        return {
            "format": FORMAT,
            "schema": 1,
            "cluster": self.cluster,
            "now": None if self.now == float("-inf") else self.now,
            "reported": None if self.reported == float("-inf") else self.reported,
            "sequence": self.sequence,
            "ledger": self.ledger.document(),
            "nodes": self.nodes.document(),
            "learned": self._learned if self._live is None else self._live.learned(),
            "refused": dict(self.refused),
        }

    @classmethod
    def from_document(
        cls, document: Mapping[str, Any], platform: ClusterSpec | int, policy: PolicyLike = "fcfs", **options: Any
    ) -> Self:
        """Return the mirror of a document, with the parameters that it was made with.

        Raises
        ------
        InputError
            it is not such a document
        """
        if document.get("format") != FORMAT or document.get("schema") != 1:
            raise InputError(f"must be {FORMAT!r} of schema 1, got {shown(document.get('format'))}", place="format")
        try:
            mirror = cls(platform, document["cluster"], policy, **options)
            mirror.now = float("-inf") if document["now"] is None else float(document["now"])
            mirror.reported = float("-inf") if document["reported"] is None else float(document["reported"])
            mirror.sequence = document["sequence"]
            mirror.ledger.restore(document["ledger"], mirror.cluster)
            mirror.nodes.restore(document["nodes"])
            mirror._learned = document["learned"]
            mirror.refused.update(document["refused"])
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError(f"must be the document of a mirror: {type(error).__name__} {error}") from None
        return mirror

    def copy(self) -> Mirror:
        """Return a mirror of the same state, which goes its own way."""
        options = self.options.values() | {"unlimited": self._unlimited, "clock": self._clock, "ahead": self._ahead}
        remembered = self.ledger.remembered
        return Mirror.from_document(self.state_document(), self.spec, self.policy, remembered=remembered, **options)

    # ------------------------------------------------------------------ display

    def _cells(self) -> Cells:
        return [["jobs", "number"], *([state, f"{count:,}"] for state, count in self.jobs.items())]

    def __repr__(self) -> str:
        jobs = self.jobs
        return f"<Mirror of {self.cluster} at {self.now:g} s: {jobs['running']} running, {jobs['waiting']} waiting>"


def _latest(event: Event) -> float:
    """Return the latest instant (s) that an event names."""
    return max(event.time, event.submit) if isinstance(event, JobEvent) else event.time


def _number(work: WorkState) -> int:
    return work.number
