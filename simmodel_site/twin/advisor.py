"""The advisor: which jobs a policy would start now; a second policy decides if the first one is late or fails.

The decision is made on a copy of the mirrored cluster, by the code that decides in simulations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from math import isfinite
from time import perf_counter
from typing import TYPE_CHECKING, Any

import attrs

from simmodel import InputError
from simmodel.extending import (
    Fields,
    FutureMissed,
    LightFutures,
    PolicyLike,
    Question,
    label,
    policy_state,
    quiet_garbage_collector,
    stream_states,
)
from simmodel.policies import Portfolio
from simmodel.resources import NodePool, Pool
from simmodel.scheduling import Policy, policy as policy_of
from simmodel.snapshots import ClusterSnapshot, PolicyState
from simmodel.systems import Cluster
from simmodel.work import Run
from simmodel_site.twin.events import plain_fields, read_fields

if TYPE_CHECKING:
    from simmodel.scheduling import Decision, View

__all__ = ["Advice", "AdvisedStart", "Advisor"]


@attrs.frozen(repr=False)
class AdvisedStart(Fields):
    """A job that should start now: its id and submission (s), the partition, and the cores on each node."""

    job: int | str
    submit: float
    partition: str
    nodes: tuple[tuple[str, int], ...] = ()


@attrs.frozen(kw_only=True, repr=False)
class Advice(Fields):
    """A decision.

    Parameters
    ----------
    number
        its number, from 1
    time
        the instant (s)
    sequence
        the number of the last event before it in the source, if the source numbers them
    digest
        that of the mirror's snapshot
    policy
        the policy that decided; of a portfolio the chosen candidate
    scores
        those of the candidates, if they were compared; ``None``: not a number
    starts
        the jobs that should start, in order
    reason
        why this policy decided, in a sentence
    seconds
        wall-clock time of the decision
    fallback
        whether the fallback policy decided
    unmodelled
        by the ids of jobs that should start, their properties that the mirror does not model: the scheduler may refuse
    """

    number: int
    time: float
    digest: str
    policy: str
    reason: str
    sequence: int | None = None
    scores: Mapping[str, float | None] = attrs.field(factory=dict)
    starts: tuple[AdvisedStart, ...] = ()
    seconds: float = 0.0
    fallback: bool = False
    unmodelled: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)

    def document(self) -> dict[str, Any]:
        """Return the advice as plain values.

        >>> starts = (AdvisedStart(7, 2.0, "a"),)
        >>> advice = Advice(number=1, time=5.0, digest="", policy="easy", reason="", starts=starts)
        >>> advice.document()["starts"], Advice.of(advice.document()) == advice
        ([{'job': 7, 'submit': 2.0, 'partition': 'a'}], True)
        """
        return plain_fields(self)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Advice:
        """Return the advice of a document.

        Raises
        ------
        InputError
            a key is unknown or missing, or a value is of the wrong type
        """
        return read_fields(document, cls)


class _Guarded(Policy):
    """A policy and its fallback, so that both are attached, copied and remembered together."""

    def __init__(self, policy: Policy, fallback: Policy) -> None:
        self.name = policy.name
        self.policy = policy
        self.fallback = fallback

    def decide(self, view: View, /) -> Iterator[Decision]:
        yield from self.policy.decide(view) or ()

    def state(self) -> dict[str, Any]:
        return {"policy": self.policy.state(), "fallback": self.fallback.state()}

    def restore(self, values: Mapping[str, Any]) -> None:
        for part, state in ((self.policy, values["policy"]), (self.fallback, values["fallback"])):
            if state is not None:
                part.restore(state)


class Advisor:
    """Says which jobs a policy would start, given the snapshot of a cluster.

    Parameters
    ----------
    policy
        the policy; the futures of a portfolio are simulated on the executor
    fallback
        decides if the policy fails, or its futures miss the deadline
    deadline
        wall-clock seconds of the futures of a decision; default: none
    executor
        runs the futures; default: this process, which checks the deadline after each simulated decision

    Attributes
    ----------
    number
        the number of decisions so far
    names, known_as
        the names of both policies; the same, but ``None`` for one given as an object

    Raises
    ------
    InputError
        a policy is unknown, does not decide on jobs, or preempts

    >>> from simmodel import Cluster, Environment, Job
    >>> cluster = Cluster(Environment(), 4)
    >>> for size in (3, 3, 1): _ = cluster.submit(Job(processors=size, run=5, requested=10))
    >>> cluster.env.run(until=1)
    >>> advisor = Advisor("portfolio(fcfs, easy)")
    >>> advice = advisor.advise(cluster.snapshot())
    >>> advice.policy, advice.starts
    ('easy', (AdvisedStart(job=3, submit=0.0, partition='batch'),))
    """

    def __init__(
        self,
        policy: PolicyLike = "portfolio",
        *,
        fallback: PolicyLike = "easy",
        deadline: float | None = None,
        executor: Executor | None = None,
    ) -> None:
        for place, given in (("policy", policy), ("fallback", fallback)):
            chosen = policy_of(given)
            if chosen.decides not in ("jobs", "anything"):
                raise InputError(f"must decide when jobs start, got {label(given)!r}", place=place)
            if chosen.preempts:
                raise InputError(f"must not preempt jobs, got {label(given)!r}", place=place)
        if deadline is not None and not (deadline > 0 and isfinite(deadline)):
            raise InputError(f"must be a finite number > 0 (s), got {deadline!r}", place="deadline")
        self.names = label(policy), label(fallback)
        self.known_as = tuple(each if isinstance(each, str) else None for each in (policy, fallback))
        self.policy = _Guarded(policy_of(policy).fresh(), policy_of(fallback).fresh())
        self.deadline = deadline
        self.executor = executor
        self.number = 0
        self._memory = PolicyState(self.policy.name, None, None)
        self._streams: tuple[tuple[str, dict[str, Any]], ...] = ()

    def __repr__(self) -> str:
        return f"<Advisor {self.names[0]}, {self.names[1]} as fallback: {self.number} decisions>"

    # ------------------------------------------------------------------ what it remembers

    def state(self) -> dict[str, Any]:
        """Return the number of decisions, the state of the policies and of the random streams, as plain values."""
        return {"number": self.number, "policy": self._memory.state, "streams": dict(self._streams)}

    def restore(self, values: Mapping[str, Any]) -> None:
        """Continue from the :meth:`state` of another advisor; of other policies, only ``number`` is known."""
        self.number = int(values["number"])
        self._memory = PolicyState(self.policy.name, None, values.get("policy"))
        self._streams = tuple((name, dict(state)) for name, state in values.get("streams", {}).items())

    # ------------------------------------------------------------------ deciding

    def advise(self, snapshot: ClusterSnapshot, *, sequence: int | None = None, late: bool = False) -> Advice:
        """Return the jobs to start now, and remember the states of policies and random streams for the next one.

        Parameters
        ----------
        snapshot
            the cluster as it is
        sequence
            the number of the last event
        late
            whether the fallback decides at once
        """
        begin = perf_counter()
        if not snapshot.waiting:
            self.number += 1
            return Advice(
                number=self.number,
                time=snapshot.now,
                sequence=sequence,
                digest=snapshot.digest,
                policy=self.names[0],
                reason="nothing waits",
            )
        with quiet_garbage_collector():
            digest = snapshot.digest  # now, since nothing else should take time after a missed deadline
            copy, reason = self._first_copy(snapshot)
            reason = reason or ("asked for" if late else self._ask(copy))
            if reason:
                if copy.runs:
                    copy = self._copy(snapshot)
                copy.simulation.decide(copy.policy.fallback.decide(copy.view))
        self._remember(copy.system)
        self.number += 1
        own = copy.policy.policy
        by, scores, why = (self.names[1], {}, reason) if reason else _choice(own, self.names[0])
        return Advice(
            number=self.number,
            time=snapshot.now,
            sequence=sequence,
            digest=digest,
            policy=by,
            scores=scores,
            starts=tuple(_advised(copy.runs)),
            reason=why,
            seconds=perf_counter() - begin,
            fallback=bool(reason),
        )

    def _first_copy(self, snapshot: ClusterSnapshot) -> tuple[_Copy, str]:
        """Return a copy, without the policies' memory if it does not fit the snapshot, and why the fallback decides."""
        try:
            return self._copy(snapshot), ""
        except InputError as error:
            self._memory = PolicyState(self.policy.name, None, None)
            return self._copy(snapshot), f"the memory was lost: {error}"

    def _copy(self, snapshot: ClusterSnapshot) -> _Copy:
        return _Copy(self, snapshot, self._memory, self._streams)

    def _ask(self, copy: _Copy) -> str:
        """Let the policy decide; return why it did not, or ``""``."""
        try:
            copy.simulation.decide()
        except FutureMissed as missed:
            return str(missed)
        except Exception as error:  # of a policy: any
            return f"{type(error).__name__}: {error}"
        return ""

    def _remember(self, system: Cluster) -> None:
        self._memory = policy_state(system.scheduler)
        self._streams = stream_states(system.env, f"{system.name}.")


class _Copy(Question):
    """A copy of the cluster at the question which jobs start now, for both policies."""

    def __init__(
        self,
        advisor: Advisor,
        snapshot: ClusterSnapshot,
        memory: PolicyState,
        streams: tuple[tuple[str, dict[str, Any]], ...],
    ) -> None:
        seen = attrs.evolve(snapshot.expected(), streams=streams)
        super().__init__(seen, advisor.policy, memory=memory)
        policy = self.system.scheduler.policy
        assert isinstance(policy, _Guarded)
        self.policy = policy
        self.view = self.system.view
        self.view.simulate_all = LightFutures(self.seen, advisor.executor, advisor.deadline).of


def _choice(policy: Policy, name: str) -> tuple[str, dict[str, float | None], str]:
    """Return which policy decided, the scores of the candidates, and why."""
    if not isinstance(policy, Portfolio):
        return name, {}, "the policy of the advisor"
    assert policy.current is not None
    table = policy.scores
    if not len(table):
        return policy.current, {}, "no waiting job fits"
    scores = dict(zip(table["policy"].tolist(), table["score"].tolist(), strict=True))
    best = {each: value if isfinite(value) else None for each, value in scores.items()}
    return policy.current, best, f"the best of {len(scores)}"


def _advised(runs: Iterable[Run]) -> Iterator[AdvisedStart]:
    names: dict[Pool, Sequence[str]] = {}
    for run in runs:
        place, held = run.place, run.grant.allocation
        nodes: tuple[tuple[str, int], ...] = ()
        if held is not None:
            if place not in names:
                assert isinstance(place, NodePool)
                names[place] = place.nodes
            nodes = tuple([(names[place][int(row[0])], int(row[1])) for row in held.rows])
        yield AdvisedStart(run.job.id, float(run.job.submit), place.name, nodes)
