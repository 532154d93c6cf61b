"""What simulations, what-ifs, brokers and commands rely on in a kind of system."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from simmodel.environment import Environment
from simmodel.errors import ImpossibleWork, InputError
from simmodel.runs.simulating import start
from simmodel.scheduling.registry import unused
from simmodel.snapshots.snapshot import Snapshot
from simmodel.systems.broker.system import Broker
from simmodel.systems.kinds import Kind, kind_named, kind_of
from simmodel.systems.system import Live
from simmodel.testing.outcomes import rows_of
from simmodel.testing.places import check_place
from simmodel.work.job import Job
from simmodel.work.task import Task
from simmodel.work.workflow import Workflow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from simmodel.runs.simulation import Simulation
    from simmodel.systems.submissions import GivenWork
    from simmodel.systems.system import System

__all__ = ["check_system"]

_CUTS = (0.1, 0.35, 0.5, 0.8)  # of the time that all of it takes


def check_system(kind: str | Kind, spec: Any, work: GivenWork) -> None:
    """Check a kind of system on an example: it ends, answers without changing, is copied, takes back, obeys a broker.

    Checked are: a simulation ends, ``idle()`` happens and nothing waits; at several instants ``why_not``, ``estimate``,
    ``load`` and ``waiting_report`` change nothing and agree with what ``submit`` accepts; where the kind has snapshots,
    one that goes through JSON is equal and goes on to the same result; work is withdrawn before its start only, and
    cancelled; under a broker all of it is done too, and the system is a place.

    Parameters
    ----------
    kind
        the kind, or its name
    spec
        the description of a system
    work
        what it is to run, as :func:`~simmodel.runs.simulating.simulate` takes it: long enough that some of it waits

    Raises
    ------
    AssertionError
        a check fails; the message says which

    >>> from simmodel.platform import ClusterSpec
    >>> check_system("cluster", ClusterSpec.simple(4), [Job(submit=i, processors=3, run=9) for i in range(5)])
    """
    kind = kind_named(kind) if isinstance(kind, str) else kind
    assert kind_of(spec) is kind, f"{type(spec).__name__} is not registered as the description of a {kind.name}"
    whole = start(spec, work)
    assert isinstance(whole.system, kind.system), f"a {kind.system.__name__} expected, built is {whole.system!r}"
    begin = float(whole.env.now)
    idle = whole.system.idle()
    whole.run()
    _check_end(whole.system)
    assert idle.triggered, f"idle() of the {kind.name} does not happen when all work is over"
    rows = rows_of(whole.system)
    for part in _CUTS:
        cut = begin + (_last(rows) - begin) * part
        _check_instant(kind, start(spec, work).run(until=cut), rows)
        _check_taking_back(start(spec, work).run(until=cut))
    _check_below(kind, spec, work, rows)


def _last(rows: Counter[tuple[str, ...]]) -> float:
    """Return the last end, in s."""
    return max(end for end in (float(row[2]) for row in rows) if end == end)


def _check_end(system: System[Live]) -> None:
    """Check that nothing is left once all work is over."""
    assert system.unfinished == 0, f"{system.name} says at the end that {system.unfinished} are not over"
    assert not list(system.present()), f"{system.name} has work at the end that is present()"
    assert not list(system.waiting_report()), f"{system.name} reports at the end that work waits"


# ---------------------------------------------------------------------- questions and copies


def _check_instant(kind: Kind, part: Simulation, rows: Counter[tuple[str, ...]]) -> None:
    """Check that questions and snapshots at an instant change nothing, and that a snapshot goes on to the same end."""
    system = part.system
    before = _state(kind, system)
    _ask(system)
    assert _state(kind, system) == before, f"a question changes the {kind.name} at {system.env.now:g} s"
    snapshot = system.snapshot() if kind.snapshot_class is not None else None
    part.run()
    assert rows_of(system) == rows, f"a {kind.name} that was asked and copied goes on otherwise"
    if snapshot is None:
        return
    where = f"the snapshot of the {kind.name} at {snapshot.now:g} s"
    assert type(snapshot) is kind.snapshot_class, f"{where} is a {type(snapshot).__name__}"
    read = Snapshot.from_json(snapshot.to_json())
    assert read == snapshot, f"{where} is another one when read from JSON"
    again = start(read)
    again.run()
    _check_end(again.system)
    found = rows_of(again.system)
    assert found <= rows, f"{where} goes on otherwise: {min(found - rows)} is none of what happened without it"
    assert found.total() == snapshot.unfinished, f"{where} has {snapshot.unfinished}, {found.total()} are recorded"


def _state(kind: Kind, system: System[Live]) -> tuple[Any, ...]:
    copied = system.snapshot().digest if kind.snapshot_class is not None else None
    return system.load, system.free, system.version, system.unfinished, list(system.waiting_report()), copied


def _ask(system: System[Live]) -> None:
    """Ask a system what can be asked; its answers agree."""
    load, now = system.load, system.env.now
    assert min(load.queued, load.queued_work, load.running_work) >= 0, f"{system.name} has a negative load: {load}"
    assert all(isinstance(each, str) for each in system.waiting_report()), "waiting_report() yields sentences"
    for asked in _samples(system):
        reason = system.why_not(asked)
        assert reason == system.why_not(asked), f"{system.name} gives two reasons about {asked!r}"
        assert system.can_run(asked) == (reason is None), f"{system.name}: can_run and why_not differ on {asked!r}"
        if reason is None:
            try:
                found = system.estimate(asked)
            except ImpossibleWork as error:
                raise AssertionError(f"{system.name} finds no reason against {asked!r}, yet estimate() does") from error
            assert now <= found.start <= found.finish, f"{system.name} estimates the past at {now:g} s: {found}"
            assert system.estimate(asked) == found, f"{system.name} estimates {asked!r} in two ways"
            continue
        for refuse in (system.estimate, system.submit):
            try:
                refuse(asked)
            except ImpossibleWork:
                continue
            raise AssertionError(f"{system.name} cannot run {asked!r} ({reason}), yet {refuse.__name__}() takes it")


def _samples(system: System[Live]) -> Sequence[Any]:
    """Return work to ask a system about: some that it can run, and some that it may not."""
    if system.work == "jobs":
        return [Job(processors=count, run=10.0) for count in (1, system.largest, 1000 * system.largest)]
    return [Workflow([Task(id=0, run=10.0, implementations=(name,))]) for name in ("CPUCore", "GPU", "no such type")]


# ---------------------------------------------------------------------- taking back


def _check_taking_back(part: Simulation) -> None:
    """Check that work is withdrawn where it has not started, and refused where it has; and that both are then over."""
    system = part.system
    present: list[Any] = list(system.present())
    begun = next((each for each in present if each.state == "running"), None)
    waits = next((each for each in reversed(present) if each.state in ("waiting", "assigned", "blocked")), None)
    if begun is not None:
        try:
            system.withdraw(begun)
        except InputError:
            assert begun.state == "running", f"{system.name} changes {begun!r}, which it does not withdraw"
        else:
            raise AssertionError(f"{system.name} withdraws {begun!r}, which runs")
        if system.work == "jobs":
            system.cancel(begun)
    if waits is not None:
        system.withdraw(waits)
        assert waits.state == "cancelled", f"{system.name}: what was withdrawn is cancelled, found {waits!r}"
    part.run()
    _check_end(system)


# ---------------------------------------------------------------------- under a broker


def _check_below(kind: Kind, spec: Any, work: GivenWork, rows: Counter[tuple[str, ...]]) -> None:
    """Check that a system does all of its work under a broker too."""
    env = Environment()
    submissions, spec = kind.read_work(work, spec, env.seed)
    system = kind.build(env, spec, unused(kind.policy), kind.options())
    broker = Broker(env, [system], "round-robin", name="above")
    check_place(broker.places[0])
    submissions.submit_to(broker)
    env.run()
    _check_end(system)
    _check_end(broker)
    done = Counter((row[0], row[3] if system.work == "jobs" else "") for row in rows.elements())
    found = Counter((row[0], row[3] if system.work == "jobs" else "") for row in rows_of(system).elements())
    assert found == done, f"under a broker a {kind.name} does not do the same work"
