"""Whose the energy is: jobs and idle add up to the whole, which equals sums by hand."""

from itertools import pairwise

import attrs
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from simmodel import Cluster, Environment, Job, Workload, load_result, simulate, start
from simmodel.catalogue import load_platform
from simmodel.cli import main
from simmodel.metrics import energy, energy_by, footprint, node_energy, power, power_by_state
from simmodel.platform import (
    ClusterSpec,
    Conversion,
    DeviceSpec,
    GridSpec,
    NodePower,
    NodeSpec,
    OutageSpec,
    PartitionSpec,
    PowerSupply,
    QueueSpec,
    Signal,
    SiteSpec,
    read_toml,
    write_toml,
)
from simmodel.work import Elastic
from tests.helpers.powered_nodes import on_nodes

SIVOC = Conversion(loss=13, efficiency=0.98)
RECTIFIER = Conversion(loss=17, efficiency=0.96, nodes=4)


def frontier(nodes: int) -> ClusterSpec:
    """Return nodes of Frontier, with the numbers of RAPS (config/frontier.yaml): CPU, memory, NICs and NVMe; GPUs."""
    rest = 74.26 + 4 * 20 + 30
    kind = NodeSpec(count=nodes, cores=64, gpus={"MI250X": 4}, idle_power=90 + rest, load_power=280 + rest)
    gpu = DeviceSpec(name="MI250X", idle_power=88, load_power=560)
    return ClusterSpec(partitions=[PartitionSpec(name="batch", nodes=[kind], devices=[gpu], exclusive=True)])


def busy(nodes: int, run: float, submit: float = 0.0, user: str = "eve") -> Job:
    return Job(nodes=nodes, cores_per_node=64, gpus_per_node=4, run=run, submit=submit, user=user)


def test_frontier_as_raps_has_it():
    spec = load_platform("frontier")
    node, gpu = spec.partitions[0].nodes[0], spec.partitions[0].devices[0]
    in_node, rectifier = spec.supply.conversions
    watts = [node.idle_power + 4 * gpu.idle_power, node.load_power + 4 * gpu.load_power]
    assert in_node.taken(watts).round(2).tolist() == [652.31, 2772.71]
    assert (rectifier.nodes, spec.supply.fixed) == (4, 74 * 8 * 4 * 250 + 25 * 8473.47)  # switches and CDUs
    result = simulate(spec, [busy(9472, 3600.0, 60.0), Job(run=60.0)], "easy")
    assert (power(result).at([1000.0])[0] / 1e6).round(2) == 28.20
    almost_idle = simulate("frontier", [Job(processors=1, run=10.0, submit=50.0), busy(1, 1.0)], "easy")
    assert (power(almost_idle).at([20.0])[0] / 1e6).round(2) == 7.28


def test_a_day_of_frontier_is_a_plain_sum():
    """Losses are linear here, so that each node-second in use adds the same."""
    rng, nodes = np.random.default_rng(5), 9472
    spec = load_platform("frontier")
    sizes = np.minimum(rng.lognormal(3.0, 2.0, 96).astype(int) + 1, nodes).tolist()
    jobs = [busy(size, float(rng.uniform(60, 20000)), 900.0 * i, "ab"[i % 2]) for i, size in enumerate(sizes)]
    result = simulate(spec, jobs, "easy")
    span = result.ended - result.started
    assert span > 86400
    used = sum(job.nodes * job.run for job in jobs)
    at_node = [(90 + 352 + 184.26 + 13) / 0.98, (280 + 2240 + 184.26 + 13) / 0.98]
    idle, load = [(each + 17 / 4) / 0.96 for each in at_node]
    by_hand = span * spec.supply.fixed + nodes * span * idle + used * (load - idle)
    assert energy(result).total == pytest.approx(by_hand, rel=1e-12)
    assert power(result).integral() == pytest.approx(by_hand, rel=1e-12)
    table = energy_by(result, "user")
    assert table["energy"].sum() == pytest.approx(by_hand, rel=1e-12)
    assert table["user"].tolist() == ["a", "b", "idle"]
    in_nodes = used * 4 * 560 + (nodes * span - used) * 4 * 88  # the GPUs alone
    in_nodes += used * 464.26 + (nodes * span - used) * 274.26
    assert energy(result, supply=PowerSupply()).total == pytest.approx(in_nodes, rel=1e-12)


def test_the_losses_of_a_cluster_are_in_its_files_and_in_stored_results(tmp_path):
    spec = attrs.evolve(frontier(4), supply=PowerSupply(conversions=[SIVOC, RECTIFIER], fixed=70, pue=1.25))
    write_toml(spec, tmp_path / "machine.toml")
    assert read_toml(tmp_path / "machine.toml") == spec
    jobs = [busy(2, 50.0), Job(run=9)]
    result = simulate(spec, jobs, "easy")
    assert energy(result) == energy(simulate(frontier(4), jobs, "easy"), supply=spec.supply)
    assert node_energy(result)["energy"].sum() == energy(result, supply=PowerSupply()).total
    kwh = result.metrics(signals={})
    assert kwh["energy_nodes"] == pytest.approx(energy(result, supply=PowerSupply()).total / 3.6e6)
    assert f"{kwh['energy_nodes']:.3g} kWh in the nodes" in result.summary(signals={})
    result.to_sqlite(tmp_path / "run.sqlite")
    assert energy(load_result(tmp_path / "run.sqlite")) == energy(result)


def test_each_cluster_of_a_broker_has_its_own_losses():
    lossy = attrs.evolve(frontier(4), supply=PowerSupply(conversions=[SIVOC, RECTIFIER], fixed=70, pue=1.25))
    warm = attrs.evolve(frontier(2), supply=PowerSupply(pue=1.5))
    jobs = [busy(1, 40.0), busy(2, 50.0), busy(1, 30.0)]
    both = simulate({"lossy": lossy, "warm": {"a": warm, "b": frontier(3)}}, jobs, "round-robin")
    span = both.ended - both.started
    idle, load = 90 + 352 + 184.26, 280 + 2240 + 184.26
    used = {place: both.busy(place).integral() / 64 for place in both.places["place"].tolist()}
    sizes = {"lossy": 4, "warm/a": 2, "warm/b": 3}
    assert sum(used.values()) == 40 + 2 * 50 + 30
    ideal = {place: sizes[place] * span * idle + used[place] * (load - idle) for place in sizes}
    at_rectifier = (ideal["lossy"] + 4 * 13 * span) / 0.98
    table = energy_by(both, "place")
    expected = [1.25 * (at_rectifier + 17 * span) / 0.96, 1.5 * ideal["warm/a"], ideal["warm/b"], 1.25 * 70 * span]
    assert table["place"].tolist() == [*sizes, "other"]
    assert table["energy"].tolist() == pytest.approx(expected, rel=1e-12)
    assert sums_up(both) == pytest.approx(sum(expected), rel=1e-12)
    assert sums_up(both, supply=PowerSupply()) == pytest.approx(sum(ideal.values()), rel=1e-12)
    assert "kWh in the nodes" in both.summary(signals={})


def test_nodes_of_a_broker_draw_what_they_draw_in_their_clusters(tmp_path):
    sleepers = PartitionSpec(nodes=[NodeSpec(count=3, cores=4, power=SLEEPER)])
    down = OutageSpec(kind="failure", at=100, until=200, nodes=[0])
    unlike = [NodeSpec(name="x", cores=4, idle_power=20, load_power=70), NodeSpec(name="y", cores=2, idle_power=9)]
    platform = {
        "asleep": ClusterSpec(partitions=[sleepers], outages=[down]),
        "gpus": frontier(2),
        "unlike": ClusterSpec(partitions=[PartitionSpec(nodes=unlike)]),
        "counted": ClusterSpec(partitions=[PartitionSpec(processors=8, idle_power=3, load_power=8)]),
    }
    jobs = [Job(nodes=1, cores_per_node=2, gpus_per_node=i % 2, run=20 + i, submit=30 * i) for i in range(20)]
    jobs += [Job(processors=5, run=40, submit=100)] * 2
    policies = {"asleep": "sleep-after(5, easy)", **dict.fromkeys(["gpus", "unlike", "counted"], "easy")}
    result = simulate(platform, jobs, "round-robin", policies=policies)
    table = energy_by(result, "state")
    whole = dict(zip(table["state"].tolist(), table["energy"].tolist(), strict=True))
    apart = dict.fromkeys(("load", "gpus", "boot"), 0.0)
    for cluster in result.clusters.values():
        for row in energy_by(cluster, "state").rows():
            apart[row["state"]] = apart.get(row["state"], 0.0) + row["energy"]
    assert {name: whole[name] for name in ("load", "gpus", "boot")} == pytest.approx(
        {name: apart[name] for name in ("load", "gpus", "boot")}, rel=1e-12
    )
    assert whole["boot"] > 0 < whole["gpus"]
    result.to_sqlite(tmp_path / "run.sqlite")
    assert sums_up(load_result(tmp_path / "run.sqlite")) == sums_up(result)


def test_three_jobs_on_one_host_share_its_watts():
    host = PartitionSpec(nodes=[NodeSpec(cores=8, idle_power=100, load_power=300)])
    jobs = [Job(processors=2, run=10), Job(processors=2, run=10), Job(processors=4, run=20)]
    result = simulate(ClusterSpec(partitions=[host]), jobs, "easy")
    assert energy_by(result)["energy"].tolist() == [750, 750, 1500 + 2000, 0]
    assert energy_by(result, model="node")["energy"].tolist() == [750, 750, 1500 + 3000, 0]


def sums_up(result, **how):
    total = energy(result, **how).total
    for by in ("job", "state", "place"):
        assert energy_by(result, by, **how)["energy"].sum() == pytest.approx(total, rel=1e-12)
    assert power(result, **how).integral() == pytest.approx(total, rel=1e-12)
    return total


def test_nodes_say_themselves_whether_their_load_is_switched(tmp_path):
    switched, linear = (
        NodeSpec(cores=4, power=NodePower(idle=100, load=300, model=model)) for model in ("node", "linear")
    )
    jobs = [Job(processors=1, run=10), Job(nodes=1, cores_per_node=4, run=10)]
    cluster = ClusterSpec(partitions=[PartitionSpec(nodes=[switched, linear], placement="first-fit")])
    result = simulate(cluster, jobs, "easy")
    assert result.runs["nodes"].tolist() == [(0,), (1,)]
    assert energy_by(result)["energy"].tolist() == [3000, 3000, 0]
    assert energy_by(result, model="linear")["energy"].tolist() == [1500, 3000, 0]
    result.to_sqlite(tmp_path / "run.sqlite")
    assert energy_by(load_result(tmp_path / "run.sqlite"))["energy"].tolist() == [3000, 3000, 0]
    only = simulate(ClusterSpec(partitions=[PartitionSpec(nodes=[switched])]), jobs[:1], "easy")
    assert energy(only).total == sums_up(only) == node_energy(only)["energy"].sum() == 3000


def test_joules_are_of_seconds_whatever_the_unit_of_time():
    """2 of 4 cores for 10 min draw 20 W, and 10 W stand by for 10 min more."""
    env = Environment(unit="min")
    node = NodeSpec(cores=4, idle_power=10, load_power=30)
    cluster = Cluster(env, ClusterSpec(partitions=[PartitionSpec(nodes=[node])]), "easy")
    cluster.submit(Job(processors=2, run=10))
    cluster.submit(Job(processors=4, run=10, submit=0))
    env.run()
    result = cluster.result()
    assert result.time_unit == "min"
    assert energy(result).total == sums_up(result) == 600 * (20 + 30)
    assert node_energy(result)["energy"].tolist() == [600 * 50]
    assert result.metrics(signals={"price": Signal([0, 600], [1, 2], end=1e4)})["costs"]["price"] == pytest.approx(
        footprint(result, Signal([0, 600], [1, 2], end=1e4))
    )
    assert energy_by(result, "job", model="node", load_power=10)["energy"].tolist() == [6000, 6000, 0]


ROWS = st.lists(
    st.tuples(st.integers(0, 15), st.integers(0, 10), st.sets(st.integers(0, 3), min_size=1)), min_size=1, max_size=12
)


@settings(max_examples=40)
@given(ROWS, st.sampled_from(["node", "linear"]))
def test_jobs_have_what_they_draw_second_by_second(rows, model):
    result = on_nodes([(s, s + r, len(n), tuple(sorted(n))) for s, r, n in rows], cores=4, ended=30.0)
    expected = np.zeros(len(rows) + 1)
    for second in range(30):
        for node in range(4):
            here = [i for i, (s, r, nodes) in enumerate(rows) if node in nodes and s <= second < s + r]
            load = 200 * (1 if model == "node" else len(here) / 4)
            for i in here or [-1]:
                expected[i] += (100 + load) / len(here) if here else 100
    assert energy_by(result, model=model)["energy"] == pytest.approx(expected, rel=1e-12, abs=1e-9)
    sums_up(result, model=model)


QUEUES = [
    QueueSpec(name="urgent", priority=9, preempts=["suspended", "stopped"]),
    QueueSpec(name="suspended", preemptible="suspend"),
    QueueSpec(name="stopped", preemptible="requeue"),
]
SLEEPER = NodePower(idle=90, load=190, off=9.5, boot=(11, 120), stop=(2, 105), model="node")
SUPPLY = PowerSupply(
    conversions=[Conversion(efficiency=[(0, 0.5), (200, 0.9), (900, 0.8)], nodes=2), SIVOC],
    fixed=70,
    pue=lambda watts, degrees: 1.1 + 0.001 * degrees + 10 / (watts + 100),
    temperature=Signal([0, 40, 90, 500], [10, 25, 18, 20], end=1e5),
)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_energies_add_up_whatever_happens_to_jobs(data):
    gpus = DeviceSpec(name="T4", idle_power=10, load_power=70)
    kinds = [
        NodeSpec(name="thin", count=2, cores=4, gpus={"T4": 2}, idle_power=90, load_power=190),
        NodeSpec(name="fat", count=1, cores=8, idle_power=120.5, load_power=333),
    ]
    if data.draw(st.booleans()):
        kinds[0] = NodeSpec(name="thin", count=2, cores=4, gpus={"T4": 2}, power=SLEEPER)
    part = PartitionSpec(nodes=kinds, devices=[gpus], exclusive=data.draw(st.booleans()))
    outage = OutageSpec(at=30, until=60, nodes=[1], kind=data.draw(st.sampled_from(["failure", "maintenance"])))
    jobs = []
    for i in range(data.draw(st.integers(1, 12))):
        run, submit = data.draw(st.integers(1, 80)), data.draw(st.integers(0, 60))
        kind = data.draw(st.sampled_from(["plain", "gpu", "suspend", "requeue", "urgent", "elastic", "measured"]))
        more = {
            "plain": {"processors": data.draw(st.integers(1, 9)), "requested": max(1, run - 5)},
            "gpu": {"nodes": 1, "gpus_per_node": data.draw(st.sampled_from([0.3, 1, 2]))},
            "suspend": {"processors": 3, "queue": "suspended"},
            "requeue": {"processors": 5, "queue": "stopped"},
            "urgent": {"processors": 7, "queue": "urgent"},
            "elastic": {"elastic": Elastic(1, 2, 6)},
            "measured": {"processors": 2, "power": [(0, 130), (7, 260)]},
        }[kind]
        jobs.append(Job(id=i, run=run, submit=submit, **more))
    policy = data.draw(st.sampled_from(["easy", "preemptive", "shrink-to-start", "equal-shares"]))
    policy = data.draw(st.sampled_from([policy, f"sleep-after(3, {policy})"])) if kinds[0].power is SLEEPER else policy
    platform = ClusterSpec(partitions=[part], outages=[outage], queues=QUEUES)
    result = simulate(platform, jobs, policy)
    sums_up(result)
    sums_up(result, supply=SUPPLY)
    total, parts = power(result, supply=SUPPLY), power_by_state(result, supply=SUPPLY)
    instants = total.times + 1e-9
    assert sum(each.at(instants) for each in parts.values()) == pytest.approx(total.at(instants))
    carbon = Signal([0, 20, 50], [1.5, 7, 2], end=1e6)
    table = energy_by(result, signals={"carbon": carbon}, supply=SUPPLY)
    assert table["carbon"].sum() == pytest.approx(footprint(result, carbon, supply=SUPPLY), rel=1e-12)


def by_hand(result, cores, idle, load):
    """Return the joules of each job, and of idle, interval by interval and node by node."""
    runs = [*result.runs.rows()]
    instants = sorted({result.started, result.ended, *(float(run[name]) for run in runs for name in ("start", "end"))})
    rows = {job: row for row, job in enumerate(result.jobs["job"].tolist())}
    joules = [0.0] * (len(rows) + 1)
    for low, high in pairwise(instants):
        for node in range(int(result.places["nodes"][0])):
            held = {}
            for run in runs:
                if run["start"] <= low and high <= run["end"] and node in run["nodes"]:
                    held[rows[run["job"]]] = run["cores"][run["nodes"].index(node)]
            for row, amount in held.items() or [(-1, 0)]:
                share = amount / sum(held.values()) if held else 1
                joules[row] += (high - low) * (idle * share + (load - idle) * amount / cores)
    return joules


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_jobs_that_are_killed_preempted_and_resized_have_what_they_draw(data):
    part = PartitionSpec(nodes=[NodeSpec(count=3, cores=4, idle_power=95, load_power=190.7)])
    kinds = [
        {"processors": 3},
        {"processors": 5, "requested": 9},
        {"processors": 4, "queue": "suspended"},
        {"processors": 6, "queue": "stopped"},
        {"processors": 9, "queue": "urgent"},
        {"elastic": Elastic(1, 2, 9)},
    ]
    jobs = [
        Job(id=i, run=data.draw(st.integers(1, 60)), submit=data.draw(st.integers(0, 50)), **kind)
        for i, kind in enumerate(data.draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=10)))
    ]
    policy = data.draw(st.sampled_from(["easy", "preemptive", "shrink-to-start", "equal-shares"]))
    result = simulate(ClusterSpec(partitions=[part], queues=QUEUES), jobs, policy)
    assert energy_by(result)["energy"] == pytest.approx(by_hand(result, 4, 95, 190.7), rel=1e-12, abs=1e-9)
    sums_up(result)


def test_gpus_draw_the_watts_of_their_type_and_shares_in_proportion():
    gpu = DeviceSpec(name="A100", memory="40GB", idle_power=80, load_power=480, slices="mig")
    node = NodeSpec(cores=4, gpus={"A100": 2}, idle_power=40, load_power=100)
    platform = ClusterSpec(partitions=[PartitionSpec(nodes=[node], devices=[gpu])])
    jobs = [Job(nodes=1, gpu="A100:3g.20gb", run=10), Job(nodes=1, gpus_per_node=1, run=20)]
    result = simulate(platform, jobs, "easy")
    states = {name: steps.at([5, 15]).tolist() for name, steps in power_by_state(result).items()}
    assert states == {"idle": [200, 200], "load": [30, 15], "gpus": [600, 400]}
    # Half of a GPU stands by, whose 40 W both jobs share with the node's 40 W.
    assert energy_by(result)["energy"].tolist() == [10 * (40 + 40 + 15 + 200), 20 * 495 + 10 * 40 + 10 * 120, 0]


def test_a_measured_power_replaces_that_of_the_nodes():
    nodes = PartitionSpec(nodes=[NodeSpec(count=2, cores=4, idle_power=100, load_power=300)])
    jobs = [Job(id=1, processors=4, run=100, power=[(0, 200), (60, 350)]), Job(id=2, processors=4, run=50, power="60W")]
    jobs += [Job(id=3, processors=4, run=20, power={"cpu": [(0, 1), (15, 0.5)]}, submit=50)]
    platform = ClusterSpec(partitions=[nodes])
    result = simulate(platform, jobs, "easy")
    expected = [200 * 60 + 350 * 40, 60 * 50, 300 * 15 + 200 * 5, 30 * 100]
    assert energy_by(result)["energy"].tolist() == expected
    log = Workload.from_jobs(jobs)
    again = simulate(platform, Workload({name: log[name] for name in log.table.names}), "easy")
    assert energy_by(again)["energy"].tolist() == expected
    cut = simulate(start(platform, jobs, "easy").run(until=30).snapshot())
    assert energy(cut).total == energy(result).total - 30 * (200 + 60)


def test_policies_do_not_see_the_measured_power():
    view = start(4, [Job(run=5, power=77)], "fcfs").next_decision()
    (job,) = view.waiting
    assert not hasattr(job, "power")
    assert not hasattr(job.spec, "power")


def test_stored_results_have_the_same_energies(tmp_path):
    result = simulate(frontier(4), [busy(2, 50.0), Job(run=9, power="0:90;4:100"), Job(run=2)], "easy")
    result.to_sqlite(tmp_path / "run.sqlite")
    again = load_result(tmp_path / "run.sqlite")
    assert energy_by(again)["energy"].tolist() == energy_by(result)["energy"].tolist()


def test_the_pue_follows_load_and_weather():
    result = simulate(4, [Job(processors=4, run=10), Job(run=10, submit=10)], "easy")
    how = {"idle_power": 10, "load_power": 30}
    weather = Signal([0, 5], [10, 20], end=20)
    supply = PowerSupply(pue=lambda watts, degrees: 1 + degrees / 100 + (watts < 100) / 2, temperature=weather)
    assert energy(result, **how, supply=PowerSupply(pue=1.5)).total == pytest.approx(1.5 * energy(result, **how).total)
    assert power(result, **how, supply=supply).at([2, 7, 15]) == pytest.approx([120 * 1.1, 120 * 1.2, 60 * 1.7])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: PowerSupply(fixed=-1), "fixed: must be watts >= 0, got -1"),
        (lambda: PowerSupply(pue=0.9), "pue: must be a number >= 1 or a function, got 0.9"),
        (lambda: PowerSupply(conversions=[0.9]), r"conversions: must be a list of Conversion, got \[0.9\]"),
        (lambda: Conversion(efficiency=1.2), "efficiency: must be above 0 and at most 1, got 1.2"),
        (lambda: Conversion(efficiency=[(5, 0.9), (2, 0.8)]), "efficiency: must have increasing watts"),
        (lambda: Conversion(loss=-3), "loss: must be watts >= 0, got -3"),
        (lambda: attrs.evolve(frontier(4), supply=PowerSupply(pue=lambda watts: 1.1)), "supply.pue: must be a number"),
        (lambda: Job(run=1, power=-5), "power: must be watts >= 0, got -5"),
        (lambda: Job(run=1, power="-5"), "power: must be watts >= 0, got '-5'"),
        (lambda: NodePower(idle=-1), "idle: must be a finite number of watts >= 0, got -1"),
        (lambda: DeviceSpec(name="T4", load_power=-1), "load_power: must be a number >= 0, got -1"),
        (lambda: Signal([0, 5, 3], [1, 2, 1]), r"times\[2\]: must increase, got 3 after 5"),
        (lambda: Job(run=1, power=[(0, 5), (0, 9)]), "power: must be a number, or pairs of increasing seconds from 0"),
        (lambda: Job(run=1, power={"cpu": 1.5}), "power.cpu: must be shares from 0 to 1, got 1.5"),
        (lambda: Job(run=1, power={"gpus": 1}), "power: must have parts cpu and gpu"),
    ],
)
def test_wrong_watts_are_refused_in_a_sentence(wrong, said):
    with pytest.raises(ValueError, match=said):
        wrong()


def test_wrong_questions_are_refused_in_a_sentence():
    result = simulate(4, [Job(run=10)], "easy")
    with pytest.raises(ValueError, match="the signal lasts from 0 to 5 s, and is asked for at 10 s"):
        energy_by(result, signals={"carbon": Signal([0], [1], end=5)}, load_power=5)
    with pytest.raises(ValueError, match=r"signals\.price: the signal lasts from 3 to 13 s, and is asked for at 0 s"):
        result.metrics(signals={"price": Signal([3], [1], end=13)})
    with pytest.raises(ValueError, match="signal: the signal lasts from 0 to 5 s"):
        footprint(result, Signal([0], [1], end=5))
    with pytest.raises(ValueError, match="unknown column of jobs 'usr'"):
        energy_by(result, "usr")
    with pytest.raises(ValueError, match=r"supply\.conversions: must be none: the nodes of batch are not"):
        energy(result, supply=PowerSupply(conversions=[SIVOC]))


def test_the_command_says_whose_energy_carbon_and_cost_are(tmp_path, capsys):
    (tmp_path / "jobs.csv").write_text("submit,run,processors,user,power\n0,3600,8,eve,\n600,1800,4,bob,0:40;600:90\n")
    (tmp_path / "grid.csv").write_text("time,gCO2/kWh\n0,420\n1800,250\n3600,120\n")
    machine = "kind = 'cluster'\n[[partitions]]\nname='b'\nprocessors=16\nidle_power=50\nload_power=200\n"
    (tmp_path / "machine.toml").write_text(machine)
    paths = [str(tmp_path / name) for name in ("jobs.csv", "machine.toml", "grid.csv")]
    signal = ["--signal", f"carbon={paths[2]}", "--metrics", "energy"]
    main(["batch", paths[0], "--platform", paths[1], *signal])
    out = capsys.readouterr().out
    assert "energy                               2.05 kWh, 0.3 kWh of it idle" in out
    assert out.splitlines()[-4].split() == ["user", "kWh", "carbon"]
    both = machine + "[[partitions]]\nname='c'\nprocessors=4\nidle_power=10\n"
    (tmp_path / "machine.toml").write_text(both)
    main(["batch", paths[0], "--platform", paths[1], *signal])
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[-7:]]
    assert [row[0] for row in rows] == ["user", "bob", "eve", "idle", "place", "b", "c"]
    assert sum(float(row[1]) for row in rows[1:4]) == pytest.approx(sum(float(row[1]) for row in rows[5:]))
    assert out.splitlines()[-2].split() == ["eve", "1.6", "536"]


def test_hosts_of_the_sites_of_a_grid_have_watts():
    """Hosts of a site are counted: where they are alike, the watts are theirs."""
    alike = SiteSpec(name="alike", hosts=[NodeSpec(count=3, cores=4, idle_power=10, load_power=50)])
    unlike = [
        NodeSpec(cores=4, idle_power=20, load_power=80),
        NodeSpec(count=3, cores=4, idle_power=40, load_power=120),
    ]
    grid = GridSpec(sites=[alike, SiteSpec(name="unlike", hosts=unlike)])
    result = simulate(grid, [Job(processors=2, run=10), Job(processors=4, run=20)], "round-robin")
    table = energy_by(result, "place")
    assert table["place"].tolist() == ["alike", "unlike"]
    used = [result.busy(name).integral() for name in ("alike", "unlike")]
    assert sum(used) == 100
    assert table["energy"].tolist() == [20 * 30 + used[0] * 10, 20 * 140 + used[1] * (110 - 35) / 4]
    assert sums_up(result) == table["energy"].sum()
