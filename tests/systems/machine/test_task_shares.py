"""Shares of links that tasks hold while they run: by hand, against a plain queue, with transfers, cut and refused."""

from heapq import heappop, heappush
from random import Random

import pytest

from simmodel import Machine, Start, Task, TaskSet, Workflow, simulate, start
from simmodel.environment import Environment
from simmodel.foundation.errors import ImpossibleWork, InputError
from simmodel.platform import ArchitectureSpec, LinkSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.snapshots.snapshot import Snapshot
from simmodel.work.task import DataObject

BUS = LinkSpec(name="bus", bandwidth=10.0, between=("a", "b"))


def machine(count=3, **processor):
    here = {"architecture": "any", **processor}
    return MachineSpec(
        pools=[MemoryPoolSpec(name="a"), MemoryPoolSpec(name="b")],
        architectures=[ArchitectureSpec(name="any")],
        processors=[
            ProcessorSpec(name="cpu", type="CPU", pool="a", count=count, **here),
            ProcessorSpec(name="gpu", type="GPU", architecture="any", pool="b"),
        ],
        links=[BUS],
        home="a",
    )


def sharing(i, rate, run=5, **options):
    return Task(id=i, run=run, bandwidth={"bus": rate}, implementations=["CPU"], **options)


READER = Task(id="reader", run=1, inputs=["data"], implementations=["GPU"])
FLOW = Workflow([*(sharing(i, 4.0) for i in range(3)), READER], files=[DataObject("data", 30.0)])


def ends(result):
    return dict(zip(result.tasks["task"].tolist(), result.tasks["end"].tolist(), strict=True))


def test_a_task_starts_when_its_share_is_free_and_transfers_have_the_rest():
    result = simulate(machine(), FLOW, "hrr")
    # 2 bytes/s for 5 s, then 6: the last of 30 bytes comes at 5 + 20 / 6 s.
    assert result.tasks["start"].tolist() == pytest.approx([0, 0, 5, 5 + 20 / 6], rel=1e-12)
    assert str(result.tasks["bandwidth_bus"].tolist()) == "[4.0, 4.0, 4.0, nan]"


@pytest.mark.few(9)
@pytest.mark.parametrize("seed", range(25))
def test_random_tasks_start_as_in_a_plain_queue(seed):
    rng = Random(seed)
    n = rng.randint(2, 9)
    plan = sorted((rng.randint(0, 6), rng.randint(1, 7), rng.choice([0, 1, 2, 4, 7, 10])) for _ in range(n))
    work = TaskSet(
        [float(run) for _, run, _ in plan],
        submit=[float(at) for at, _, _ in plan],
        amounts=[{"bandwidth_bus": float(rate)} if rate else None for _, _, rate in plan],
        implementations=[("CPU",)] * n,
    )
    found = simulate(machine(count=n), work, "round-robin").tasks["start"].tolist()
    queue, running, expected, free = list(enumerate(plan)), [], {}, 10.0
    now = 0.0
    while len(expected) < n:
        while running and running[0][0] <= now:
            free += heappop(running)[1]
        for i, (at, run, rate) in list(queue):
            if at > now:
                break
            if rate > free:
                others = [each for each in queue if each[1][0] <= now and not each[1][2]]
                for j, (_, _, _) in others:  # tasks without shares wait for nobody
                    expected[j] = now
                queue = [each for each in queue if each[0] not in expected]
                break
            expected[i] = now
            queue.remove((i, (at, run, rate)))
            free -= rate
            if rate:
                heappush(running, (now + run, rate))
        coming = [at for _, (at, _, _) in queue if at > now]
        now = min([*coming, *(end for end, _ in running)], default=now)
    assert found == [expected[i] for i in range(n)]


@pytest.mark.parametrize(
    "cut", [5.0, *(pytest.param(each, marks=pytest.mark.long) for each in (0.5, 4.9, 5.1, 8.0, 9.0))]
)
def test_a_cut_run_ends_as_the_whole_one(cut):
    whole = ends(simulate(machine(), FLOW, "hrr"))
    begun = start(machine(), FLOW, "hrr")
    begun.run(until=cut)
    rest = ends(simulate(Snapshot.from_json(begun.snapshot().to_json())))
    assert rest
    assert rest == pytest.approx({task: whole[task] for task in rest}, rel=1e-12)


def test_processors_of_several_tasks_hold_shares_too():
    for spec in (
        machine(count=1, cores=3),
        machine(count=1, cores=3, model="multi-stream-gpu", options={"share": 0.1}),
    ):
        assert [ends(simulate(spec, FLOW, "hrr"))[i] for i in ("0", "1", "2")] == [5.0, 5.0, 10.0]


def test_policies_see_whether_a_task_would_start():
    seen = []

    def those_that_fit(view):
        for task in list(view.waiting):
            fitting = [place for place in view.places if place.fits(task)]
            seen.append((task.id, len(fitting)))
            yield Start(task, fitting[0] if fitting else view.places[2])

    result = simulate(machine(), Workflow([sharing(0, 6.0), sharing(1, 6.0), sharing(2, 3.0)]), those_that_fit)
    assert seen == [(0, 3), (1, 0), (2, 0)]  # the second is on a processor, and asks first for what is left
    assert ends(result) == {0: 5.0, 1: 10.0, 2: 15.0}


def test_a_task_that_fetches_its_data_asks_for_its_share_first():
    """The reader fetches 30 bytes until 3 s; at 1 s, 4 of the 10 bytes/s are left beside the 6 that it will ask for."""
    reader = Task(id="reader", run=5, inputs=["data"], bandwidth={"bus": 6.0}, implementations=["GPU"])
    seen = []

    def noting(view):
        places = {task: next(each for each in view.places if each.can_run(task)) for task in view.waiting}
        seen.extend((view.now, task.id, place.fits(task)) for task, place in places.items())
        yield from (Start(task, place) for task, place in places.items())

    made = Machine(Environment(), machine(), noting)
    made.submit(Workflow([reader], files=[DataObject("data", 30.0)]))
    made.submit(Workflow([sharing("wide", 5.0), sharing("narrow", 4.0)]), at=1.0)
    made.env.run()
    assert seen == [(0.0, "reader", True), (1.0, "wide", False), (1.0, "narrow", True)]


def test_a_task_that_is_stopped_gives_its_share_back():
    spec = machine(queue="priority", preemption="requeue")
    env = Environment()
    made = Machine(env, spec, "round-robin")
    made.submit(Workflow([sharing("low", 8.0, run=20), sharing("other", 1.0, run=30), sharing("next", 8.0)]))
    env.run(until=2)
    made.preempt(made.tasks[0])
    env.run()
    assert ends(made.result()) == {"low": 27.0, "other": 30.0, "next": 7.0}
    assert made.shares.amounts.free["bus"] == 10.0
    assert made.network.links["bus"].withheld == 0.0


def test_shares_are_part_of_tasks_and_sets():
    task = Task(id=1, run=2, bandwidth={"bus": "2GB/s"}, amounts={"prompt": 3})
    again = TaskSet.of(Workflow([task])).task(0)
    assert (again.bandwidth, again.amounts) == ({"bus": 2e9}, {"prompt": 3})


def test_wrong_shares_are_refused():
    with pytest.raises(InputError, match=r"bandwidth\['bus'\]: must be a quantity in B/s such as"):
        sharing(0, "2GB")
    with pytest.raises(ImpossibleWork, match="task 0: 11Bps of bus requested, there are 10Bps"):
        simulate(machine(), Workflow([sharing(0, 11.0)]), "hrr")
    with pytest.raises(ImpossibleWork, match="task 'x': consumable 'wan' requested, there are bus"):
        simulate(machine(), Workflow([Task(id="x", run=1, bandwidth={"wan": 1.0})]), "hrr")
