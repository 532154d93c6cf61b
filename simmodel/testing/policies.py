"""What systems rely on in a policy, as scikit-learn's ``check_estimator`` asks of an estimator."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from simmodel.environment import Environment
from simmodel.errors import Stalled
from simmodel.platform.machine import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.scheduling.policy import FunctionPolicy, Policy
from simmodel.scheduling.protocol import Decision, View
from simmodel.scheduling.registry import PolicyLike
from simmodel.scheduling.registry import policy as policy_of
from simmodel.systems.broker.system import Broker
from simmodel.systems.cluster.system import Cluster
from simmodel.systems.machine.system import Machine
from simmodel.work.job import Job
from simmodel.work.task import Task
from simmodel.work.workflow import Workflow

if TYPE_CHECKING:
    from simmodel.systems.system import System

__all__ = ["check_policy"]

_MOST = 10_000  # decisions at one instant
_RUNS = [10.0 + 7.0 * (i * i % 11) for i in range(30)]


def check_policy(given: PolicyLike) -> None:
    """Check that a policy can be used everywhere: run again, copied, sent to other processes, trusted.

    It is run on a small cluster, machine or broker, whichever it decides for. Checked are: ``fresh()`` gives an unused
    policy of the same name and parameters; it can be pickled (functions excepted); what it remembers is plain
    values; the same seed gives the same decisions, and using
    one copy does not change another; it changes no work; it does not decide for ever at one instant.

    Parameters
    ----------
    given
        what :func:`~simmodel.scheduling.registry.policy` takes

    Raises
    ------
    AssertionError
        a check fails; the message says which

    >>> check_policy("sjf+easy")
    """
    policy = policy_of(given)
    fresh = policy.fresh()
    assert type(fresh) is type(policy), f"fresh() gives a {type(fresh).__name__}, not a {type(policy).__name__}"
    assert fresh.name == policy.name, f"fresh() is called {fresh.name!r}, not {policy.name!r}"
    first = _run(fresh)
    if not isinstance(policy, FunctionPolicy):
        copied = pickle.loads(pickle.dumps(policy.fresh()))
        assert copied.name == policy.name, f"unpickled, it is called {copied.name!r}, not {policy.name!r}"
        assert _run(copied) == first, "unpickled, it decides otherwise"
    remembered = json.dumps(fresh.state())
    assert json.dumps(fresh.state()) == remembered, "state() gives something else when asked again"
    assert _run(policy.fresh()) == first, "a fresh copy decides otherwise with the same seed"
    assert _run(fresh.fresh()) == first, "fresh() of a used policy is not unused"


class _Watched(Policy):
    """Another policy whose decisions are counted, and whose view is looked through."""

    def __init__(self, inner: Policy) -> None:
        self.inner = inner
        self.name, self.plans, self.preempts = inner.name, inner.plans, inner.preempts
        self.tries_every_submission = inner.tries_every_submission

    def decide(self, view: View, /) -> Iterator[Decision]:
        """Pass decisions on; raises ``AssertionError`` where they do not end, or work is changed."""
        waiting = list(view.waiting)
        before = [_asked(work) for work in waiting]
        for count, decision in enumerate(self.inner.decide(view) or ()):
            assert count < _MOST, f"{self.name} makes more than {_MOST} decisions at {view.now:g} s"
            yield decision
        assert [_asked(work) for work in waiting] == before, f"{self.name} changes the work that it is shown"

    def destinations(self, home: Any, places: Any, /) -> Any:
        """Return what the other policy says."""
        return self.inner.destinations(home, places)


def _asked(work: Any) -> tuple[Any, ...]:
    """Return what a decision leaves as it is."""
    return tuple(getattr(work, name, None) for name in ("id", "processors", "requested", "priority", "user"))


def _run(policy: Policy) -> list[tuple[Any, ...]]:
    """Run a small system under a policy, as far as the policy lets it; return when its work started, and where."""
    env = Environment(seed=1)
    watched = _Watched(policy)
    system: System[Any]
    if policy.plans or policy.decides in ("tasks", "places"):
        system = Machine(env, _machine(), watched)
        flow = Workflow([Task(id=i, run=run) for i, run in enumerate(_RUNS)], [(i, i + 9) for i in range(20)])
        system.submit(flow)
    elif policy.decides == "systems":
        system = Broker(env, [Cluster(env, 8, "easy", name="a"), Cluster(env, 4, name="b")], watched)
        _submit(env, system, 4)
    else:
        system = Cluster(env, 8, watched)
        _submit(env, system, 8)
    with suppress(Stalled):  # a policy may leave work waiting
        env.run(until=2000.0)
    return _starts(system)


def _submit(env: Environment, system: Any, widest: int) -> None:
    homes = isinstance(system, Broker)
    for i, run in enumerate(_RUNS):
        job = Job(id=i, processors=1 + i * 5 % widest, run=run, requested=run + i % 3 * 50)
        give = (lambda job=job: system.submit(job, "a")) if homes else (lambda job=job: system.submit(job))
        env.call_at(float(i // 2 * 3), give)


def _starts(system: Any) -> list[tuple[Any, ...]]:
    if isinstance(system, Machine):
        tasks = system.result().tasks
        return list(zip(tasks["task"].tolist(), tasks["start"].tolist(), tasks["processor"].tolist(), strict=True))
    jobs = system.result().jobs
    return [tuple(row) for row in zip(jobs["job"].tolist(), map(str, jobs["start"].tolist()), strict=True)]


def _machine() -> MachineSpec:
    return MachineSpec(
        pools=[MemoryPoolSpec(name="ram")],
        architectures=[ArchitectureSpec(name="x"), ArchitectureSpec(name="fast", performance=(1, 2))],
        processors=[
            ProcessorSpec(name="core", count=2, type="CPUCore", architecture="x", pool="ram"),
            ProcessorSpec(name="gpu", type="GPU", architecture="fast", pool="ram"),
        ],
    )
