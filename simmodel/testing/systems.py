"""The check of kinds of systems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from simmodel.environment import Environment
from simmodel.foundation.errors import ImpossibleWork, InputError
from simmodel.policies.ordering import FCFS
from simmodel.resources.pools.nodes import NodePool
from simmodel.resources.pools.pool import Pool
from simmodel.runs.scenario import start
from simmodel.runs.simulation import Simulation
from simmodel.scheduling.registry import unused
from simmodel.scheduling.waiting import WaitingQueue
from simmodel.snapshots.snapshot import Snapshot
from simmodel.systems.broker.system import Broker
from simmodel.systems.kinds import Kind, kind_named, kind_of
from simmodel.systems.system import Live
from simmodel.work.job import Job
from simmodel.work.task import Task
from simmodel.work.workflow import Workflow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simmodel.scheduling.protocol import Place
    from simmodel.systems.submissions import GivenWork
    from simmodel.systems.system import System
    from simmodel.work.job import LiveJob
    from simmodel.work.taskset import LiveTask

__all__ = ["check_place", "check_system", "rows_of"]


def check_place(place: Place, work: Iterable[LiveJob | LiveTask] = ()) -> None:
    """Check that a place has the attributes that schedulers need, and that its questions change nothing.

    Parameters
    ----------
    place
        the place
    work
        live work for the questions; if it is the queue of a pool, its promises are asked for, too

    Raises
    ------
    AssertionError
        an attribute is missing, a question changes the place, or two answers contradict each other

    >>> from simmodel import Environment
    >>> from simmodel.resources import CountPool
    >>> check_place(CountPool(Environment(), "slots", 4))
    """
    for name in ("name", "capacity", "free", "queues", "version", "backlog", "can_run", "why_not", "fits"):
        assert hasattr(place, name), f"a place must have {name!r}"
    assert isinstance(place.name, str), f"the name of a place must be a text, got {place.name!r}"
    assert place.name, "the name of a place must not be empty"
    assert isinstance(place.queues, bool), f"queues must be True or False, got {place.queues!r}"
    for each in work:
        before = place.free, place.version
        able, fits = place.can_run(each), place.fits(each)
        assert able == (place.why_not(each) is None), (
            f"{place.name}: can_run and why_not contradict each other on {each}"
        )
        assert (able, fits) == (place.can_run(each), place.fits(each)), (
            f"{place.name} answers differently when asked again about {each}"
        )
        assert (place.free, place.version) == before, f"a question about {each} changes {place.name}"
        assert able or not fits, f"{each} fits in {place.name}, which can never run it"
    if isinstance(place, Pool):
        _check_pool(place, work)


def _check_pool(pool: Pool, work: Iterable[LiveJob | LiveTask]) -> None:
    """Check the requirement of backfilling on a pool: the promise of a start to a job that does not fit."""
    for name in () if isinstance(pool, NodePool) else ("counts_hosts", "offer", "states"):
        assert not hasattr(pool, name), (
            f"{type(pool).__name__} has {name!r}, which no policy asks of a pool: override 'promise' instead"
        )
    if not isinstance(work, WaitingQueue):
        return
    for head in work:
        if pool.fits(head) or not pool.can_run(head):
            continue
        before = pool.free, pool.version
        promise = pool.promise(head, work, FCFS)
        if promise is None:
            continue  # it is planned in the profile
        assert promise.at >= pool.env.now, f"{pool.name} promises {head} a start in the past, at {promise.at:g} s"
        found = promise.next()
        assert (pool.free, pool.version) == before, f"the promise to {head} changes {pool.name}"
        assert found is None or (found[0] is not head and pool.fits(found[0])), (
            f"{pool.name} starts {found and found[0]} beside {head}, though it does not fit"
        )


_COLUMNS = {"jobs": ("job", "start", "end", "status"), "tasks": ("task", "start", "end", "processor")}


def rows_of(system: System[Live]) -> Counter[tuple[str, ...]]:
    """Return the outcome of each piece of work; equal outcomes are counted.

    >>> from simmodel import Cluster, Environment, Job
    >>> cluster = Cluster(Environment(), 4)
    >>> job = cluster.submit(Job(run=5)); cluster.env.run()
    >>> rows_of(cluster)
    Counter({('1', '0.0', '5.0', 'completed'): 1})
    """
    table = getattr(system.result(), system.work)
    columns = [map(str, table[name].tolist()) for name in _COLUMNS[system.work]]
    return Counter(zip(*columns, strict=True))


_CUTS = (0.1, 0.35, 0.5, 0.8)  # shares of the duration of the run


def check_system(kind: str | Kind, spec: Any, work: GivenWork) -> None:
    """Check a kind of system on an example: runs, questions, snapshots, withdrawal and brokering.

    The checks: a simulation ends, ``idle()`` succeeds and nothing waits; at several instants ``why_not``, ``estimate``,
    ``load`` and ``waiting_report`` change nothing and agree with ``submit``; a snapshot (if the kind has them) survives
    JSON and continues to the same result; only work that has not started can be withdrawn, and is then cancelled; under
    a broker all work is done too, and the system is a place.

    Parameters
    ----------
    kind
        the kind, or its name
    spec
        the spec of a system
    work
        a workload of :func:`~simmodel.runs.scenario.simulate`, long enough that some of it waits

    Raises
    ------
    AssertionError
        a check fails; the message names it

    >>> from simmodel.platform import ClusterSpec
    >>> check_system("cluster", ClusterSpec.simple(4), [Job(submit=i, processors=3, run=9) for i in range(5)])
    """
    kind = kind_named(kind) if isinstance(kind, str) else kind
    assert kind_of(spec) is kind, f"{type(spec).__name__} is not registered as a spec of the kind {kind.name}"
    whole = start(spec, work, kind.policy)
    assert isinstance(whole.system, kind.system), f"the system must be a {kind.system.__name__}, got {whole.system!r}"
    begin = float(whole.env.now)
    idle = whole.system.idle()
    whole.run()
    _check_end(whole.system)
    assert idle.triggered, f"idle() of the {kind.name} does not succeed when all work has ended"
    rows = rows_of(whole.system)
    for part in _CUTS:
        cut = begin + (_last(rows) - begin) * part
        _check_instant(kind, start(spec, work, kind.policy).run(until=cut), rows)
        _check_taking_back(start(spec, work, kind.policy).run(until=cut))
    _check_below(kind, spec, work, rows)


def _last(rows: Counter[tuple[str, ...]]) -> float:
    return max(end for end in (float(row[2]) for row in rows) if end == end)


def _check_end(system: System[Live]) -> None:
    """Check that nothing is left when all work has ended."""
    assert system.unfinished == 0, f"{system.name}: unfinished must be 0 at the end, got {system.unfinished}"
    assert not list(system.present()), f"{system.name}: present() must be empty at the end"
    assert not list(system.waiting_report()), f"{system.name}: waiting_report() must be empty at the end"


# ---------------------------------------------------------------------- questions and copies


def _check_instant(kind: Kind, part: Simulation, rows: Counter[tuple[str, ...]]) -> None:
    """Check that questions and snapshots at an instant change nothing, and a snapshot continues to the same end."""
    system = part.system
    before = _state(kind, system)
    _ask(system)
    assert _state(kind, system) == before, f"a question changes the {kind.name} at {system.env.now:g} s"
    snapshot = system.snapshot() if kind.snapshot_class is not None else None
    part.run()
    assert rows_of(system) == rows, f"a {kind.name} continues differently after questions and a snapshot"
    if snapshot is None:
        return
    where = f"the snapshot of the {kind.name} at {snapshot.now:g} s"
    assert type(snapshot) is kind.snapshot_class, f"{where} is a {type(snapshot).__name__}"
    read = Snapshot.from_json(snapshot.to_json(), trust=True)
    assert read == snapshot, f"{where} changes when written to and read from JSON"
    again = start(read)
    again.run()
    _check_end(again.system)
    found = rows_of(again.system)
    assert found <= rows, f"{where} continues differently: {min(found - rows)} does not happen without it"
    assert found.total() == snapshot.unfinished, (
        f"{where} has {snapshot.unfinished} unfinished, but {found.total()} are recorded"
    )


def _state(kind: Kind, system: System[Live]) -> tuple[Any, ...]:
    copied = system.snapshot().digest if kind.snapshot_class is not None else None
    return system.load, system.free, system.version, system.unfinished, list(system.waiting_report()), copied


def _ask(system: System[Live]) -> None:
    """Ask a system all questions and check that its answers agree."""
    load, now = system.load, system.env.now
    assert min(load.queued, load.queued_work, load.running_work) >= 0, f"{system.name} has a negative load: {load}"
    assert all(isinstance(each, str) for each in system.waiting_report()), "waiting_report() must yield texts"
    for asked in _samples(system):
        reason = system.why_not(asked)
        assert reason == system.why_not(asked), (
            f"{system.name}: why_not answers differently when asked again about {asked!r}"
        )
        assert system.can_run(asked) == (reason is None), f"{system.name}: can_run and why_not differ on {asked!r}"
        if reason is None:
            try:
                found = system.estimate(asked)
            except ImpossibleWork as error:
                raise AssertionError(f"{system.name}: no reason against {asked!r}, but estimate() raises") from error
            assert now <= found.start <= found.finish, f"{system.name}: estimate before {now:g} s: {found}"
            assert system.estimate(asked) == found, f"{system.name}: two estimates of {asked!r} differ"
            continue
        for refuse in (system.estimate, system.submit):
            try:
                refuse(asked)
            except ImpossibleWork:
                continue
            raise AssertionError(f"{system.name} cannot run {asked!r} ({reason}), but {refuse.__name__}() accepts it")


def _samples(system: System[Live]) -> Sequence[Any]:
    """Return work for the questions: some that the system can run, and some that it may not."""
    if system.work == "jobs":
        return [Job(processors=count, run=10.0) for count in (1, system.largest, 1000 * system.largest)]
    return [Workflow([Task(id=0, run=10.0, implementations=(name,))]) for name in ("CPUCore", "GPU", "no such type")]


# ---------------------------------------------------------------------- taking back


def _check_taking_back(part: Simulation) -> None:
    """Check that waiting work can be withdrawn and running work cannot, and that the run then ends."""
    system = part.system
    present: list[Any] = list(system.present())
    begun = next((each for each in present if each.state == "running"), None)
    waits = next((each for each in reversed(present) if each.state in ("waiting", "assigned", "blocked")), None)
    if begun is not None:
        try:
            system.withdraw(begun)
        except InputError:
            assert begun.state == "running", f"{system.name}: a refused withdrawal changes {begun!r}"
        else:
            raise AssertionError(f"{system.name} withdraws running work: {begun!r}")
        if system.work == "jobs":
            system.cancel(begun)
    if waits is not None:
        system.withdraw(waits)
        assert waits.state == "cancelled", f"{system.name}: withdrawn work must be cancelled, got {waits!r}"
    part.run()
    _check_end(system)


# ---------------------------------------------------------------------- under a broker


def _check_below(kind: Kind, spec: Any, work: GivenWork, rows: Counter[tuple[str, ...]]) -> None:
    """Check that a system does all of its work under a broker."""
    env = Environment()
    submissions, spec = kind.read_work(work, spec, env.seed)
    system = kind.build(env, spec, unused(kind.policy), kind.options())
    broker = Broker(env, [system], "round-robin", name="above")
    check_place(broker.places[0])
    submissions.submit_to(broker)
    Simulation(broker).run()
    _check_end(system)
    _check_end(broker)
    done = Counter((row[0], row[3] if system.work == "jobs" else "") for row in rows.elements())
    found = Counter((row[0], row[3] if system.work == "jobs" else "") for row in rows_of(system).elements())
    assert found == done, f"under a broker a {kind.name} does not do the same work"
