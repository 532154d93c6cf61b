"""The check of policies, as scikit-learn's ``check_estimator`` for estimators."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.environment import Environment
from simmodel.foundation.errors import Stalled
from simmodel.platform.grid import FileSpec, GridSpec, SiteSpec
from simmodel.platform.machine import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.platform.network import LinkSpec, NetworkSpec
from simmodel.scheduling.protocol import Decision, FunctionPolicy, Policy, View
from simmodel.scheduling.registry import PolicyLike, policy as policy_of
from simmodel.systems.broker.system import Broker
from simmodel.systems.cluster.system import Cluster
from simmodel.systems.grid.system import Grid
from simmodel.systems.kinds import kind_of_snapshot
from simmodel.systems.machine.system import Machine
from simmodel.systems.system import Live, System
from simmodel.testing.systems import rows_of
from simmodel.work.job import Job
from simmodel.work.task import Task
from simmodel.work.workflow import Workflow
from simmodel.work.workload import Workload

if TYPE_CHECKING:
    from simmodel.scheduling.protocol import At, View
    from simmodel.work.job import LiveJob
    from simmodel.work.taskset import LiveTask

__all__ = ["check_policy", "leaks", "reachable"]

_MOST = 10_000  # decisions at one instant
_RUNS = [20.125 + 7.0 * (i * i % 11) + i / 64 for i in range(30)]
_LONGEST = [run + 10 + i % 3 * 50 for i, run in enumerate(_RUNS)]  # requested times
_OTHER_RUNS = [20.25 - i / 256 for i in range(30)]  # no end before the first cut
_CUTS = (16.0, 50.0, 90.0)


def check_policy(given: PolicyLike) -> None:
    """Check that a policy can be rerun, copied, sent to other processes and trusted.

    The policy runs on a small cluster, machine, broker or grid, as it decides for. The checks: ``fresh()`` returns an
    unused policy of the same name and parameters; the policy can be pickled (except functions); its state is plain
    values, with which another copy continues from a snapshot to the same end (not those of files); the same seed gives
    the same decisions, and using one copy does not change another; the policy changes no work; its decisions at one
    instant end; its view does not hold actual run times, and its decisions before the first end do not depend on them.

    Parameters
    ----------
    given
        any argument of :func:`~simmodel.scheduling.registry.policy`

    Raises
    ------
    AssertionError
        a check fails; the message names it

    >>> check_policy("sjf+easy")
    """
    policy = policy_of(given)
    fresh = policy.fresh()
    assert type(fresh) is type(policy), f"fresh() must return a {type(policy).__name__}, got a {type(fresh).__name__}"
    assert fresh.name == policy.name, f"the name of fresh() must be {policy.name!r}, got {fresh.name!r}"
    first = _run(fresh)
    if not isinstance(policy, FunctionPolicy):
        copied = pickle.loads(pickle.dumps(policy.fresh()))
        assert copied.name == policy.name, (
            f"the name of the unpickled policy must be {policy.name!r}, got {copied.name!r}"
        )
        assert _run(copied) == first, "the unpickled policy decides differently"
    remembered = json.dumps(fresh.state())
    assert json.dumps(fresh.state()) == remembered, "state() changes when called again"
    assert _run(policy.fresh()) == first, "a fresh copy with the same seed decides differently"
    assert _run(fresh.fresh()) == first, "fresh() of a used policy keeps its state"
    for cut in () if policy.decides == "data" else _CUTS:  # grids are copied without the memory of data policies
        found = _cut(policy.fresh(), cut)
        assert found <= first, (
            f"continued from a snapshot at {cut:g} s with its state(), the policy decides differently"
        )
    _check_what_it_knows(policy)


class _Watched(Policy):
    """A wrapper that counts the decisions of a policy and compares the work before and after."""

    def __init__(self, inner: Policy) -> None:
        self.inner = inner
        self.name, self.plans, self.preempts = inner.name, inner.plans, inner.preempts
        self.tries_every_submission = inner.tries_every_submission

    def decide(self, view: View, /) -> Iterator[Decision]:
        """Pass decisions on; raises ``AssertionError`` if they do not end or change work."""
        waiting = list(view.waiting)
        before = [_asked(work) for work in waiting]
        for count, decision in enumerate(self.inner.decide(view) or ()):
            assert count < _MOST, f"{self.name} makes more than {_MOST} decisions at {view.now:g} s"
            yield decision
        assert [_asked(work) for work in waiting] == before, f"{self.name} changes waiting work"

    def destinations(self, home: At | None, places: Sequence[At], /) -> Sequence[At]:
        return self.inner.destinations(home, places)

    def state(self) -> Any:
        return self.inner.state()

    def restore(self, values: Any) -> None:
        """Restore the state of the wrapped policy."""
        self.inner.restore(values)


def _asked(work: LiveJob | LiveTask) -> tuple[Any, ...]:
    """Return the attributes of work that a decision must not change."""
    return tuple(getattr(work, name, None) for name in ("id", "processors", "requested", "priority", "user"))


def _run(policy: Policy) -> Counter[tuple[str, ...]]:
    """Run a small system under a policy, until it ends or stalls; return the outcomes."""
    return _go_on(_system(policy, _RUNS))


def _go_on(system: System[Live], until: float = 2000.0) -> Counter[tuple[str, ...]]:
    with suppress(Stalled):  # a policy may leave work waiting
        system.env.run(until=until)
    return rows_of(system)


def _cut(policy: Policy, at: float) -> Counter[tuple[str, ...]]:
    """Run the system to an instant (s) and continue from its snapshot; return the outcomes of the latter."""
    system = _system(policy, _RUNS)
    _go_on(system, at)
    snapshot = system.snapshot()
    again = kind_of_snapshot(snapshot).restore(Environment(at, seed=1), snapshot, _Watched(policy.fresh()))
    return _go_on(again)


def _check_what_it_knows(policy: Policy) -> None:
    """Check that a policy of jobs does not see actual run times, nor decides by them."""
    systems = [_system(policy.fresh(), runs, gap=0) for runs in (_RUNS, _OTHER_RUNS)]
    if systems[0].work != "jobs":
        return
    for system in systems:
        _go_on(system, _CUTS[0])
    found = leaks(systems[0].view, _RUNS)
    assert not found, f"actual run times are reachable from the view: {', '.join(found[:3])}"
    started = [{(each.id, each.started) for each in system.present()} for system in systems]
    assert started[0] == started[1], f"{policy.name} decides by actual run times, which a policy must not know"


def _system(policy: Policy, runs: Sequence[float], gap: float = 3) -> System[Any]:
    """Return a small system of the kind that a policy decides for, with work: two jobs per instant."""
    env, watched = Environment(seed=1), _Watched(policy)
    if policy.plans or policy.decides in ("tasks", "places"):
        machine = Machine(env, _machine(), watched)
        machine.submit(Workflow([Task(id=i, run=run) for i, run in enumerate(runs)], [(i, i + 9) for i in range(20)]))
        return machine
    if policy.decides == "systems":
        broker = Broker(env, [Cluster(env, 8, "easy", name="a"), Cluster(env, 4, name="b")], watched)
        broker.replay(_jobs(runs, 4, gap), "a")
        return broker
    if policy.decides == "data":
        grid = Grid(env, _grid(), "round-robin", data=policy)
        grid.replay(_jobs(runs, 4, gap, ("one", "two")))
        return grid
    cluster = Cluster(env, 8, watched)
    cluster.replay(_jobs(runs, 8, gap))
    return cluster


def _jobs(runs: Sequence[float], widest: int, gap: float, files: tuple[str, ...] = ()) -> Workload:
    return Workload.from_jobs(
        Job(
            id=i,
            submit=i // 2 * gap,
            processors=1 + i * 5 % widest,
            run=run,
            requested=_LONGEST[i],
            inputs=files[: i % (len(files) + 1)],
        )
        for i, run in enumerate(runs)
    )


def _grid() -> GridSpec:
    return GridSpec(
        sites=[SiteSpec(name=name, cores=8) for name in ("a", "b", "c")],
        network=NetworkSpec(
            links=[LinkSpec(name=f"{x}{y}", bandwidth=10, between=(x, y)) for x, y in ("ab", "bc", "ac")]
        ),
        files=[FileSpec(name="one", size=50, sites=["a"]), FileSpec(name="two", size=80, sites=["b"])],
    )


def _machine() -> MachineSpec:
    return MachineSpec(
        pools=[MemoryPoolSpec(name="ram")],
        architectures=[ArchitectureSpec(name="x"), ArchitectureSpec(name="fast", performance=(1, 2))],
        processors=[
            ProcessorSpec(name="core", count=2, type="CPUCore", architecture="x", pool="ram"),
            ProcessorSpec(name="gpu", type="GPU", architecture="fast", pool="ram"),
        ],
    )


# ---------------------------------------------------------------------- what a view leads to


def reachable(view: View) -> Iterator[tuple[str, Any]]:
    """Yield each number and text that is reachable from a view through public attributes, with its path.

    The search follows objects of this package, sequences, mappings, sets and arrays; it calls only properties.

    >>> from simmodel import Cluster, Environment
    >>> dict(reachable(Cluster(Environment(), 4).view))["view.places[0].capacity"]
    4
    """
    seen: set[int] = set()
    kept: list[object] = []  # keeps objects alive, so that ids stay unique
    line: list[tuple[str, Any]] = [("view", view)]
    while line:
        path, value = line.pop()
        if isinstance(value, (bool, int, float, str, np.generic)):
            yield path, value
            continue
        if value is None or callable(value) or id(value) in seen:
            continue
        seen.add(id(value))
        kept.append(value)
        line.extend(_parts(path, value))


def _parts(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, np.ndarray):
        yield from ((f"{path}[{i}]", each) for i, each in enumerate(value.ravel().tolist()))
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield f"{path}[{key!r}]", each
            yield f"{path}.keys()", key
    elif isinstance(value, (list, tuple, Set)):
        yield from ((f"{path}[{i}]", each) for i, each in enumerate(value))
    elif type(value).__module__.partition(".")[0] == "simmodel":
        for name in dir(value):
            if not name.startswith("_"):
                try:
                    yield f"{path}.{name}", getattr(value, name)
                except Exception:
                    continue
        if getattr(type(value), "__iter__", None) is not None:
            yield from ((f"{path}[{i}]", each) for i, each in enumerate(value))


def leaks(view: View, secrets: Iterable[float]) -> list[str]:
    """Return the paths from a view to numbers that a policy must not see, such as actual run times."""
    wanted = {float(each) for each in secrets}
    return sorted(
        path
        for path, value in reachable(view)
        if isinstance(value, (int, float, np.integer, np.floating)) and float(value) in wanted
    )
