"""The check of models of resources: one entry, and a check for each kind of resource."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from itertools import product
from math import inf, isclose
from random import Random
from typing import Any

import attrs
import numpy as np
from simpy.core import EmptySchedule

from simmodel.environment import Environment
from simmodel.foundation.entries import Entries
from simmodel.foundation.errors import InputError, SnapshotError, Stalled
from simmodel.platform.cluster import ClusterSpec, NodeSpec, PartitionSpec, placement_text
from simmodel.platform.grid import FileSpec, GridSpec, SiteSpec
from simmodel.platform.machine import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.platform.models import MODELS, PLACEMENTS
from simmodel.platform.network import LinkSpec, NetworkSpec, SharingModel
from simmodel.platform.storage import StorageSpec
from simmodel.platform.topology import Topology
from simmodel.resources.data.storage import make_storage
from simmodel.resources.models import BASES, kind_of_model
from simmodel.resources.network.links import Link
from simmodel.resources.network.network import Network
from simmodel.resources.network.shared_channel import Access
from simmodel.resources.network.transfer import Transfer
from simmodel.resources.pools.allocation import Allocation, NodeTable, Request
from simmodel.resources.pools.node_network import NodeNetwork
from simmodel.resources.pools.nodes import NodePool
from simmodel.resources.pools.placements import placement_named
from simmodel.resources.processors.serving import SharedProcessor
from simmodel.runs import simulate, start
from simmodel.runs.ticking import ticking
from simmodel.scheduling.observer import Observer
from simmodel.snapshots.snapshot import Snapshot
from simmodel.systems.machine.system import Machine
from simmodel.testing.machines import Arrivals, check_machine
from simmodel.work import File
from simmodel.work.job import Job
from simmodel.work.task import Task
from simmodel.work.workflow import Workflow

__all__ = [
    "CHECKS",
    "CLOCK",
    "check_jobs",
    "check_link",
    "check_placement",
    "check_processor",
    "check_resource",
    "check_rule",
    "check_storage",
]


def check_link(model: type[Any], options: Mapping[str, Any]) -> None:
    """Check a model of links: transfers from places ``a`` and ``b`` over it, and a grid of these two sites.

    All transfers end with all their bytes, also when they are paused or the link is down for a while; no link has more
    than its capacity; the answers of the model are the same when it is asked twice, limits hold, and a grid continues
    from a snapshot as if it had not been cut.

    Raises
    ------
    AssertionError
        a check fails; the message describes the fault of the model
    """
    own = LinkSpec(name="own", bandwidth=100.0, latency=0.25, between=("a", "b"), model=model, options=options)
    _check_questions(own)
    spec = NetworkSpec(links=[own, LinkSpec(name="lan", bandwidth=60.0)])
    _check_network(spec, model)


def check_rule(model: type[Any], options: Mapping[str, Any]) -> None:
    """Check a rule of sharing, as :func:`check_link` checks a model of links.

    Raises
    ------
    AssertionError
        a check fails; the message describes the fault of the rule
    """
    links = [
        LinkSpec(name="own", bandwidth=100.0, latency=0.25, between=("a", "b")),
        LinkSpec(name="lan", bandwidth=60.0),
    ]
    sharing = SharingModel(name=model.__name__, rule=model, options=options)
    _check_network(NetworkSpec(links=links, model=sharing), model)


class _Watch(Observer):
    """Looks at each link whose load changes, and asks models twice."""

    def __init__(self, name: str) -> None:
        self.name = name

    def link_load_changed(self, link: Link) -> None:
        assert link.load <= link.capacity * (1 + 1e-9), (
            f"{self.name}: link {link.name} carries {link.load:g} bytes/s, more than its capacity of {link.capacity:g}"
        )

    def transfer_started(self, transfer: Transfer) -> None:
        for link in transfer.way.links:
            first, second = _answers(link, transfer), _answers(link, transfer)
            assert first == second, f"{self.name}: an answer changes when it is asked twice: {first}, then {second}"


def _answers(link: Link, transfer: Transfer) -> list[float]:
    now = transfer.env.now
    return [link.carries(2), link.limit(transfer, now), link.until(now), link.expected(transfer, now), link.delay()]


def _check_questions(spec: LinkSpec) -> None:
    """Check that the answers of a link follow neither the clock nor the past unless it says so."""
    network = Network(Environment(), [spec])
    link = network.links[spec.name]
    name = type(link).__name__
    transfer = network.transfer(1e9, source="a", destination="b")
    before: tuple[float, float] | None = None
    for now in CLOCK:
        kept = deepcopy(vars(link))
        limit = link.limit(transfer, now)
        link.carries(1), link.expected(transfer, now), link.delay(), link.until(now)
        changed = [each for each, value in vars(link).items() if each not in kept or kept[each] != value]
        assert not changed, (
            f"{name}: a question changes {', '.join(changed)}: what a link remembers of the past changes in "
            "turns(now, load), which is called whenever its load changes"
        )
        assert link.varies or before is None or before[1] == limit, (
            f"{name}: limit is {before[1]:g} bytes/s at {before[0]:g} s and {limit:g} at {now:g} s, but is asked only "
            "when a transfer begins: until(now) returns the next instant at which limits change"
        )
        before = now, limit


def _check_network(spec: NetworkSpec, model: type[Any]) -> None:
    name = model.__name__
    found = [_transfers(spec, name) for _ in range(2)]
    assert found[0] == found[1], f"{name}: the same run gives another result (does it share state between objects?)"
    files = [FileSpec(name=f"f{i}", size=40.0 + 35 * i, sites=["a" if i % 3 else "b"]) for i in range(12)]
    sites = [SiteSpec(name=place, cores=3) for place in "ab"]
    grid = GridSpec(sites=sites, network=spec, files=files)
    both = [(f"f{i}", f"f{(i * 5 + 1) % 12}") for i in range(12)]
    jobs = [Job(id=i, submit=0.7 * i, run=1.0 + i % 3, requested=50, inputs=files) for i, files in enumerate(both)]
    check_jobs(grid, jobs, "round-robin", name, snapshots=model.snapshots)


def _transfers(spec: NetworkSpec, name: str) -> list[float]:
    """Run transfers, among them one that is paused and one that is cancelled, and return their ends (s)."""
    env = Environment(seed=1)
    network = Network(env, spec)
    env.observe(_Watch(name))
    moving: list[Transfer] = []

    def begin(i: int) -> None:
        cap = 20.0 if i % 4 == 3 else None
        route = ["own", "lan"] if i % 3 == 1 else ["own"]
        weight = 1.0 + i % 2
        moving.append(network.transfer(50.0 + 41 * i, route=route, source="ab"[i % 2], rate_cap=cap, weight=weight))

    for i in range(10):
        env.call_at(0.6 * i, partial(begin, i))
    env.call_at(3.3, lambda: moving[2].pause())
    env.call_at(4.1, lambda: network.fail("own"))
    env.call_at(5.9, lambda: moving[2].resume())
    env.call_at(7.7, lambda: network.restore("own"))
    env.call_at(8.0, lambda: moving[-1].cancel())
    env.call_at(9.0, lambda: network.set_bandwidth("own", 150.0))
    try:
        env.run()
    except Stalled as error:
        raise AssertionError(f"{name}: transfers never end: {error}") from None
    except InputError as error:
        raise AssertionError(f"{name}: {error}") from error
    for each in moving[:-1]:
        assert each.status == "done", f"{name}: {each.describe()}, all bytes should be"
    for link in network.links.values():
        assert not link.users, f"{name}: transfers still use link {link.name} at the end"
    return [float(each.end or 0.0) for each in moving]


def check_processor(model: type[Any], options: Mapping[str, Any]) -> None:
    """Check a model of processors on machines with one and with two of them (see :func:`check_machine`).

    If its rates follow the clock, it says so, and a run over the instant at which they may differ first is checked too.

    Raises
    ------
    AssertionError
        a check fails; the message describes the fault of the model
    """
    for cores in (1, 4):
        try:
            spec = _machine(model, options, cores)
            change = _first_change(spec, model) if issubclass(model, SharedProcessor) else inf
            check_machine(spec, _work(model, 1), model)
        except InputError as error:
            if cores == 1 and "cores" not in str(error):
                raise
            continue  # a model may refuse a number of cores
        check_machine(spec, _work(model, cores), model)
        if 10 < change < inf:
            check_machine(spec, [(at + change - 10, work) for at, work in _work(model, cores)], model)


def _first_change(spec: MachineSpec, model: type[SharedProcessor]) -> float:
    """Return the first instant (s) at which rates may differ; check that they stay if the model says that they do."""
    kinds = [attrs.evolve(each, setup=0.0) for each in spec.processors]
    machine = Machine(Environment(seed=1), attrs.evolve(spec, processors=kinds), "hrr")
    place = machine.processors["own0"]
    assert isinstance(place, SharedProcessor)
    if model.until is not SharedProcessor.until:
        return place.until(0.0)
    amounts = dict.fromkeys(model.amounts, 1e9)
    endless = [Task(id=f"t{i}", run=1e12, implementations=("OWN",), priority=i % 3, amounts=amounts) for i in range(6)]
    machine.submit(Workflow(endless))
    before: tuple[float, float, list[float]] | None = None
    for now in CLOCK:
        machine.env.run(until=now)
        running = place.executing
        if not running or ticking(machine.env)[0]:
            break
        first, again = list(place.rates(running)), list(place.rates(running))
        if first != again:
            break  # it changes when it is asked: the runs will tell
        if before is not None and before[0] == place.rated:
            assert first == before[2], (
                f"{model.__name__}: rates are {before[2]} at {before[1]:g} s and {first} at {now:g} s for the same "
                "tasks, but are asked at starts and ends only: until(now) returns the next instant from which they may "
                "differ (or the model calls rates_changed() then)"
            )
        before = place.rated, now, first
    return inf


def _machine(model: type[Any], options: Mapping[str, Any], cores: int) -> MachineSpec:
    """Return a machine with a CPU core and two processors of the model, on a small pool."""
    return MachineSpec(
        pools=[MemoryPoolSpec(name="ram"), MemoryPoolSpec(name="hbm", size=100.0)],
        architectures=[ArchitectureSpec(name="x86"), ArchitectureSpec(name="own")],
        processors=[
            ProcessorSpec(name="cpu", type="CPU", architecture="x86", pool="ram"),
            ProcessorSpec(
                name="own", count=2, type="OWN", architecture="own", pool="hbm", cores=cores, setup=0.25,
                model=model, options=options,
            ),
        ],
        links=[LinkSpec(name="bus", bandwidth=20, between=("ram", "hbm"))],
    )  # fmt: skip


def _work(model: type[Any], cores: int) -> Arrivals:
    """Return tasks of different lengths, with and without data and dependencies, that arrive in two groups."""
    groups: list[tuple[float, Workflow]] = []
    for group, at in enumerate((0.0, 9.5)):
        tasks = [
            Task(
                id=f"{'ab'[group]}{i}",
                amounts={name: 1 + (i * 7 + k * 5) % 23 for k, name in enumerate(model.amounts)},
                run=2.0 + (i * i) % 7 + i / 64,
                family=(None, "f", "g")[i % 3],
                implementations=("OWN",) if i % 5 else ("CPU",),
                cores=1 + i % cores if i % 5 else 1,
                memory=3.0 * (i % 2),
            )
            for i in range(12)
        ]
        names = [task.id for task in tasks]
        edges = [(names[i], names[i + 5], 6.0 * (i % 3)) for i in range(0, 7, 2)]
        groups.append((at, Workflow(tasks, edges)))
    return groups


def check_placement(given: str | Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Check a placement: its choices on random tables of nodes, and clusters with it.

    It chooses among the candidates, changes nothing, chooses the same again, and always finds something where it says
    that there is enough; there is still enough when more nodes come free. On clusters all jobs end, on as many nodes as
    they ask for, and runs continue from a snapshot as if they had not been cut.

    Raises
    ------
    AssertionError
        a check fails; the message describes the fault of the placement
    """
    name = placement_text(given)
    refuses = placement_named(name).refuses
    assert not options, f"{name}: placements have no options, got {dict(options)}"
    parts = [PartitionSpec(nodes=[NodeSpec(count=8, cores=4)], network=each, placement=name) for each in _NETWORKS]
    parts = [part for part in parts if refuses is None or refuses(part) is None]
    assert parts, f"{name}: it refuses nodes without a network, on a torus and on a dragonfly"
    for part in parts:
        for seed in range(60):
            _check_choice(name, Random(seed), part.network)
    jobs = [
        Job(id=i, submit=2 * i, nodes=1 + i % 3, cores_per_node=1 + i % 4, run=3 + 7 * i % 11, requested=20)
        if i % 3
        else Job(id=i, submit=2 * i, processors=1 + i % 6, run=2 + i % 9, requested=15)
        for i in range(24)
    ]
    for part, exclusive in product(parts, (False, True)):
        spec = ClusterSpec(partitions=[attrs.evolve(part, exclusive=exclusive)])
        for policy in ("fcfs", "easy", "conservative"):
            result = check_jobs(spec, jobs, policy, str(name))
            for job, held in zip(result.runs["job"].tolist(), result.runs["nodes"], strict=True):
                asked = jobs[job].nodes
                assert asked is None or len(held) == asked, f"{name}: job {job} has nodes {held}, asked for {asked}"


_NETWORKS = (None, "torus:4,2 bandwidth=1GBps", "dragonfly:2;1;2;2 bandwidth=1GBps")


def _check_choice(name: str, rng: Random, topology: Topology | None) -> None:
    count = rng.randint(1, 9) if topology is None else len(topology.hosts)
    choice = placement_named(name).choice
    scores = choice is not None and choice.tells_devices
    kind = NodeSpec(count=count, cores=4, gpus=2, memory=8.0)
    table = (
        NodePool(Environment(), "nodes", PartitionSpec(nodes=[kind], placement=name)).table
        if scores
        else NodeTable(np.array([[4.0] * count, [0] * count, [8] * count]), name)
    )
    table.settle(None if topology is None else NodeNetwork(topology), rng.randrange(9))
    table.take(Allocation.of([(i, rng.choice([0, 0, 0, 1, 3, 4]), 0, 0) for i in range(count)]))
    each = rng.randint(1, 4)
    exclusive = rng.random() < 0.4
    nodes = 2 if rng.random() < 0.5 else None
    gpus = rng.choice([0, 0.5, 1, 2]) if scores else 0
    request = Request(each * 2, nodes, each if nodes else 1, gpus, exclusive=exclusive)
    before = table.free.copy()
    fits = table.fits(request)
    try:
        found = table.allocate(request)
    except Exception as error:
        raise AssertionError(f"{name}: it raises {type(error).__name__}: {error}; free cores {before[0]}") from error
    assert (table.free == before).all(), f"{name}: a question changes the free capacity"
    assert fits == (found is not None), f"{name}: there is {'' if fits else 'not '}enough, but it chooses {found}"
    assert found == table.allocate(request), f"{name}: it chooses something else when it is asked again"
    if found is None:
        return
    right = found.meets(request) and table.allows(found, request)
    assert right, f"{name}: {found} does not meet the request for {request}"
    table.free[0, [rng.random() < 0.5 for _ in range(count)]] = 4.0
    assert table.fits(request), f"{name}: there is enough on nodes {found.numbers}, but not with more free nodes"


def check_storage(model: type[Any], options: Mapping[str, Any]) -> None:
    """Check a model of storages: files, reads and writes of one, and a grid whose jobs read and write there.

    All accesses end, also when others are cancelled; the files and the room reserved never exceed the capacity; the
    same run gives the same result; all jobs of the grid end, and it continues from a snapshot as if it had not been
    cut.

    Raises
    ------
    AssertionError
        a check fails; the message describes the fault of the model
    """
    spec = StorageSpec(
        name="own", capacity=2000, read_bandwidth=20.0, write_bandwidth=10.0, model=model, options=options
    )
    name = model.__name__
    _check_clock(spec)
    assert _accesses(spec, name) == _accesses(spec, name), (
        f"{name}: the same run gives another result (does it share state between objects?)"
    )
    files = [FileSpec(name=f"f{i}", size=40.0 + 11 * i, sites=["a"]) for i in range(8)]
    jobs = [
        Job(
            id=i,
            submit=1.5 * i,
            run=1.0 + i % 3,
            requested=10_000,
            inputs=[f"f{i % 8}"],
            outputs=[File(name=f"o{i}", size=25.0 + 9 * i)] if i % 3 else (),
        )
        for i in range(12)
    ]
    grid = GridSpec(sites=[SiteSpec(name="a", cores=3, storage=spec)], files=files)
    check_jobs(grid, jobs, "round-robin", name, snapshots=model.snapshots)


def _check_clock(spec: StorageSpec) -> None:
    """Check that accesses have the bandwidth of the present at any time, also if it follows the clock."""
    env = Environment(seed=1)
    storage = make_storage(env, spec)
    storage.add("long", 1000.0)
    storage.read(1e15, file="long"), storage.write(1e15, file="long")
    sides = (storage.reading, storage.read_bandwidth), (storage.writing, storage.write_bandwidth)
    before: list[float] = []
    for now in CLOCK:
        env.run(until=now)
        if ticking(env)[0]:
            break
        answers = [bandwidth(max(1, len(channel))) for channel, bandwidth in sides]
        for (channel, bandwidth), answer, former in zip(sides, answers, before or answers, strict=True):
            assert answer == former or not len(channel) or isclose(channel.bandwidth, answer, rel_tol=1e-9), (
                f"{type(storage).__name__}: at {now:g} s {bandwidth.__name__} is {answer:g} bytes/s, but accesses have "
                f"{channel.bandwidth:g}: it is asked when accesses begin and end only; a model that follows the clock "
                "sets an Alarm for the next change, which calls ask_again() of the channel"
            )
        before = answers


def _accesses(spec: StorageSpec, name: str) -> list[float]:
    """Read and write files, some of which are cancelled, and return the ends of the accesses (s)."""
    env = Environment(seed=1)
    storage = make_storage(env, spec)
    for i in range(8):
        storage.add(f"f{i}", 50.0 + 40 * i)
    found: list[Access] = []

    def begin(i: int) -> None:
        file = f"f{i * 3 % 8}"
        if i % 3 == 2:
            found.append(storage.write(30.0 + 17 * i, file=file))
        else:
            found.append(storage.read(storage.files[file], file=file))
        assert storage.used <= spec.capacity, f"{name}: {storage.used:g} of {spec.capacity:g} bytes are used"

    for i in range(14):
        env.call_at(0.7 * i, partial(begin, i))
    env.call_at(4.5, lambda: found[1].cancel())
    env.call_at(6.5, lambda: storage.reserve("big", 600.0, lambda: storage.add("big", 600.0)))
    _run_out(env, found, f"{name}: accesses never end")
    for i, each in enumerate(found):
        if i != 1:
            assert each.status == "done", f"{name}: {each.describe()}, all bytes should be"
    assert not storage.waiting, f"{name}: files still wait for room at the end"
    assert len(storage.reading) + len(storage.writing) == 0, f"{name}: accesses are left at the end"
    return [float(each.end or 0.0) for each in found]


def _run_out(env: Environment, found: Sequence[Access], never: str) -> None:
    """Run until no access is left, and nothing is planned but processes of the model."""
    for _ in range(_MANY):
        if all(each.end is not None for each in found) and not ticking(env)[1]:
            return
        try:
            env.step()
        except EmptySchedule:
            waits = "; ".join(env.waiting_report())
            raise AssertionError(f"{never}: {waits}") from None
    raise AssertionError(f"{never}, while {', '.join(ticking(env)[0])} goes on")


_MANY = 100_000
"""Events within which all accesses of a check end."""
CLOCK = sorted((i + 0.37) / 97 * period for period in (1, 60, 3600, 86400, 7 * 86400) for i in range(97))
"""Instants (s) in all parts of a second, a minute, an hour, a day and a week, for models that follow the clock."""

CHECKS = Entries[Callable[[Any, Mapping[str, Any]], None]](
    {
        "processor": "simmodel.testing.resources:check_processor",
        "memory pool": "simmodel.testing.machines:check_pool",
        "placement": "simmodel.testing.resources:check_placement",
        "storage": "simmodel.testing.resources:check_storage",
        "link": "simmodel.testing.resources:check_link",
        "sharing rule": "simmodel.testing.resources:check_rule",
    }
)
"""The check of each kind of resource (see :data:`~simmodel.resources.models.BASES`), called with a model, options."""


def check_resource(model: str | Callable[..., Any], **options: Any) -> None:
    """Check a custom model of a resource: small platforms with it run, and the guarantees of every resource hold.

    All work ends and nothing is lost, capacities are respected, records are complete, the same run gives the same
    result, and a run cut by a snapshot ends as one that was not cut (unless the model has ``snapshots = False``).

    Parameters
    ----------
    model
        the class, or its registered name; of a placement also the function
    options
        for the spec's ``options``

    Raises
    ------
    AssertionError
        a check fails; the message describes the fault of the model
    InputError
        an option is invalid

    >>> from simmodel.resources import ManyCores
    >>> check_resource(ManyCores)
    """
    found = MODELS[model] if isinstance(model, str) and model in MODELS else model
    named = isinstance(model, str) and model in PLACEMENTS
    function = callable(model) and not isinstance(model, type)
    kind = "placement" if named or function else kind_of_model(found)
    bases = ", ".join(BASES[each].__name__ for each in BASES)
    assert kind is not None, f"a model must derive from one of {bases}, got {model!r}"
    CHECKS[kind](found, options)


# ---------------------------------------------------------------------- runs of jobs


_CUTS = (0.06, 0.2, 0.35, 0.5, 0.65, 0.8)  # shares of the duration of the run
_HINT = "own_state() and restore_own() keep what a model remembers; snapshots = False says that it cannot be copied"


def check_jobs(spec: Any, jobs: Sequence[Job], policy: str, name: str, *, snapshots: bool = True) -> Any:
    """Run jobs on a system with a custom part and check it; return the result.

    The checks: all jobs are completed; the same run gives the same result; a run cut by a snapshot ends as the whole
    one, or its snapshot is refused.

    Parameters
    ----------
    name
        of the model that is checked, for the messages
    snapshots
        whether the model says that it can be copied

    Raises
    ------
    AssertionError
        a check fails; the message describes the fault of the model
    """
    result = _run(spec, jobs, policy, name)
    whole = _rows(result)
    lost = [job for job, (status, *_) in whole.items() if status != "completed"]
    assert not lost, f"{name}: job {lost[0]} is {whole[lost[0]][0]}, it should be completed"
    again = _rows(_run(spec, jobs, policy, name))
    assert again == whole, f"{name}: the same run gives another result (does it share state between objects?)"
    length = max(end for _, _, end in whole.values())
    for share in _CUTS:
        _check_cut(spec, jobs, policy, name, share * length, whole, snapshots)
    return result


def _run(spec: Any, jobs: Sequence[Job], policy: str, name: str) -> Any:
    try:
        return simulate(spec, jobs, policy, seed=1)
    except Stalled as error:
        raise AssertionError(f"{name}: jobs never end: {error}") from None


def _rows(result: Any) -> dict[Any, tuple[str, float, float]]:
    table = result.jobs
    return {
        job: (status, start_, end)
        for job, status, start_, end in zip(
            *(table[column].tolist() for column in ("job", "status", "start", "end")), strict=True
        )
    }


def _check_cut(
    spec: Any, jobs: Sequence[Job], policy: str, name: str, cut: float, whole: dict[Any, Any], snapshots: bool
) -> None:
    begun = start(spec, jobs, policy, seed=1)
    begun.run(until=cut)
    try:
        document = begun.snapshot().to_json()
    except SnapshotError as error:
        if snapshots:
            raise AssertionError(f"{name} cannot be copied at {cut:g} s: {error} (snapshots = False says so)") from None
        return
    assert snapshots, f"{name} has snapshots = False, but its snapshot is not refused"
    assert begun.snapshot().to_json() == document, f"{name}: a snapshot at {cut:g} s changes the system"
    rest = _rows(simulate(Snapshot.from_json(document, trust=True)))
    for job, (status, begin, end) in rest.items():
        expected = whole[job]
        same = status == expected[0] and all(
            isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) for a, b in zip((begin, end), expected[1:], strict=True)
        )
        assert same, (
            f"{name}, continued from its snapshot at {cut:g} s: job {job} is {status} at {end:g} s, "
            f"it should be {expected[0]} at {expected[2]:g} s ({_HINT})"
        )
