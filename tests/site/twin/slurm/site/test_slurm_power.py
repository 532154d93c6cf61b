"""Power saving of Slurm: which nodes sleep, how long they boot, and what a replay makes of it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import attrs
import pytest

from simmodel import InputError, Job, simulate
from simmodel.cli import main
from simmodel.extending import node_names
from simmodel.generators import uniform
from simmodel.platform import ClusterSpec, NodePower
from simmodel.platform.toml import read_toml
from simmodel.runs import start
from simmodel_site.twin.described import Described
from simmodel_site.twin.mirror.mirror import Mirror
from simmodel_site.twin.slurm.answers import read_answer
from simmodel_site.twin.slurm.conf import read_conf
from simmodel_site.twin.slurm.describe import described
from simmodel_site.twin.slurm.scontrol import read_scontrol
from simmodel_site.twin.slurm.site.folder import SlurmFolder, read_folder
from simmodel_site.twin.slurm.site.replayed import change, replay
from tests.helpers.data_files import data_file
from tests.site.helpers.slurm_sacct import HEAD, sacct_line

SLEEP = "SuspendProgram=/bin/off\nResumeProgram=/bin/on\nSuspendTime=300\nSuspendTimeout=60\nResumeTimeout=600\n"
CONF = f"ClusterName=c\nSelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n{SLEEP}"
NODES = "NodeName=n[1-4] CPUs=4\nPartitionName=batch Nodes=ALL Default=YES\n"
CLOUD = NODES.replace("CPUs=4", "CPUs=4 State=CLOUD")
LOG = """\
[2024-05-01T12:00:04.000] sched: Allocate JobId=1 NodeList=n1 #CPUs=4 Partition=batch
[2024-05-01T12:00:04.000] POWER: power_save: pid 77 waking nodes n1
[2024-05-01T12:04:00.000] Node n1 now responding
"""


def of_conf(lines: str, **options: object) -> Described:
    return described(read_conf(f"{CONF}{lines}"), own_loops=True, **options)  # type: ignore[arg-type]


def told(found: Described) -> list[str]:
    return [str(each) for each in found.unsupported]


def powers(spec: ClusterSpec) -> dict[str, NodePower | None]:
    return {name: kind.power for part in spec.partitions for kind in part.nodes for name in node_names(str(kind.names))}


def site(folder: Path, lines: str, *jobs: str, boot: object = None, log: str = "") -> SlurmFolder:
    (folder / "slurm.conf").write_text(f"{CONF}{lines}")
    (folder / "sacct.txt").write_text("\n".join([HEAD, *jobs]) + "\n")
    if log:
        (folder / "slurmctld.log").write_text(log)
    return read_folder(folder, boot=boot)


def wide(line: str) -> str:
    """Return a line of sacct with all 16 cores."""
    return line.replace("|1|COMPLETED", "|16|COMPLETED")


# ---------------------------------------------------------------------- the replay


@pytest.mark.parametrize(("boot", "log"), [(236, ""), (None, LOG)])
def test_a_job_that_waits_for_a_boot_starts_when_it_did(boot: object, log: str, tmp_path: Path) -> None:
    found = site(tmp_path, CLOUD, sacct_line(1, "-N1", start=240, run=1800), boot=boot, log=log)
    done = replay(found)
    assert done.jobs["recorded"].tolist() == [240]
    assert abs(done.errors[0]) <= 1
    assert done.booted == 1
    source = "as given" if boot else "as 1 boot of slurmctld.log took"
    assert f"4 nodes sleep, 4 at the beginning; a boot takes 236 s, {source}; starts that wait for boots in" in str(
        done.report()
    )
    assert not done.departures
    assert not [each for each in found.unsupported if "boot" in each.what]


def test_without_a_boot_time_resume_timeout_is_an_upper_bound(tmp_path: Path) -> None:
    found = site(tmp_path, CLOUD, sacct_line(1, "-N1", start=240, run=1800))
    assert [str(each) for each in found.unsupported] == [
        "nodes n[1-4]: boot time (taken as ResumeTimeout, 600 s, an upper bound: slurm read takes --boot, "
        "or slurmctld.log (DebugFlags=Power))"
    ]
    done = replay(found)
    assert 360 <= done.errors[0] <= 364
    assert done.report().endswith("the loops run at other instants, or boots take another time")


def test_nodes_sleep_and_wake_between_jobs(tmp_path: Path) -> None:
    """Nodes that are up at the beginning, idle for 300 s, off after 60 s, up again after 100 s."""
    jobs = [sacct_line(i, "-N4", submit=at, start=at, run=60) for i, at in enumerate((0, 100, 1000), 1)]
    done = replay(site(tmp_path, NODES, *jobs, boot="100s"))
    waits = done.jobs["simulated"] - done.jobs["submit"]
    assert max(waits[:2]) < 40
    assert waits[2] == pytest.approx(103, abs=4)
    assert done.booted == 1


def test_the_command_takes_the_boot_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site(tmp_path, CLOUD, sacct_line(1, "-N1", start=240, run=1800))
    assert main(["slurm", "replay", str(tmp_path), "--boot", "236"]) == 0
    assert "differ by more than a cycle of 30 s: 0 of 1" in capsys.readouterr().out
    assert main(["slurm", "read", str(tmp_path), "--boot", "75s"]) == 0
    assert "a boot takes 75 s, as given" in capsys.readouterr().out
    for wrong, sentence in (("700", "at most ResumeTimeout, 600 s"), ("?", "--boot")):
        assert main(["slurm", "read", str(tmp_path), "--boot", wrong]) == 2
        assert sentence in capsys.readouterr().err


def test_other_sleep_times_are_changes(tmp_path: Path) -> None:
    found = site(tmp_path, CLOUD, sacct_line(1, "-N1", start=240, run=1800), boot=236)
    never = change(found, ["SuspendTime=-1"], phases=2)
    assert never.after == never.before.removeprefix("sleep-after(300, ").removesuffix(")")
    mean = never.effects[0]
    assert (mean.before, mean.value) == (pytest.approx(239, abs=3), pytest.approx(3, abs=3))
    spare = change(found, ["SuspendExcNodes=n[1-2]:1"], phases=2)
    assert spare.effects[0].value == pytest.approx(3, abs=3)


def test_a_part_of_a_log_begins_with_running_jobs_on_nodes_that_are_awake(tmp_path: Path) -> None:
    """Job 1 runs until 7200 on all nodes, and job 2 starts then; job 3 comes when they sleep again."""
    jobs = [
        wide(sacct_line(1, start=0, run=7200)),
        wide(sacct_line(2, submit=5000, start=7201, run=60)),
        sacct_line(3, submit=9000, start=9100, run=60),
    ]
    found = change(site(tmp_path, NODES, *jobs, boot=100), ["bf_interval=31"], phases=2, window="4000s")
    waits = {each.metric: each.before for each in found.effects if not each.workload}
    assert waits["wait_max"] == pytest.approx(2202, abs=5)
    assert waits["wait_mean"] == pytest.approx((2202 + 102) / 2, abs=5)


@pytest.mark.parametrize("cores", [1, 4])
def test_jobs_get_awake_nodes_of_any_weight_before_those_that_sleep(cores: int) -> None:
    """Nodes n1 and n4 sleep, n2 has the highest weight: jobs get n3, then n2, and the third one boots n1."""
    conf = f"NodeName=n[1,4] CPUs={cores} State=CLOUD\nNodeName=n2 CPUs={cores} Weight=9\nNodeName=n3 CPUs={cores}\n"
    found = of_conf(f"{conf}PartitionName=batch Nodes=ALL\n", boot=100)
    names = found.spec.partitions[0].node_names
    jobs = [Job(id=i, submit=10 * i, run=50, nodes=1, exclusive=True) for i in range(1, 4)]
    result = simulate(found.spec, jobs, found.policy)
    assert [names[node] for (node,) in result.runs["nodes"]] == ["n3", "n2", "n1"]
    assert result.jobs["wait"] == pytest.approx([3, 3, 103], abs=3)


# ---------------------------------------------------------------------- boots that are learnt


def test_boots_are_learnt_and_those_that_fail_count(tmp_path: Path) -> None:
    log = LOG + (
        "[2024-05-01T13:00:00.000] POWER: power_save: pid 78 waking nodes n[2-3]\n"
        "[2024-05-01T13:01:30.000] Node n2 now responding\n"
        "[2024-05-01T13:10:05.000] node n3 not resumed by ResumeTimeout(600) - marking down and power_save\n"
        "[2024-05-01T13:20:00.000] Node n4 now responding\n"
    )
    found = site(tmp_path, CLOUD, sacct_line(1, "-N1", start=240), log=log)
    power = powers(found.described.spec)["n1"]
    assert power == NodePower(
        boot=({"distribution": "choice", "values": [90.0, 236.0, 601.0]}, 0), stop=(60, 0), boot_limit=600, asleep=True
    )
    assert "as 3 boots of slurmctld.log took" in found.report()
    notes = [str(each) for each in found.unsupported]
    assert notes == [
        "nodes n[1-4]: boots beyond ResumeTimeout=600 (the node is down for an hour, as no file tells how long)"
    ]


def test_a_boot_beyond_resume_timeout_takes_the_node_down_and_requeues_the_job() -> None:
    boot = {"distribution": "choice", "values": [700.0]}
    found = of_conf(CLOUD.replace("n[1-4]", "n[1-2]"), boot=boot)
    awake = attrs.evolve(powers(found.spec)["n1"] or NodePower(), asleep=False)
    spec = found.spec
    kind = attrs.evolve(spec.partitions[0].nodes[0], power=awake)
    mixed = attrs.evolve(spec, partitions=[attrs.evolve(spec.partitions[0], nodes=[kind])])
    result = simulate(
        mixed, [Job(id=1, run=60, nodes=2), Job(id=2, run=60, submit=1000, nodes=1)], found.policy, until=2000
    )
    times = {cause: result.changes["time"][result.changes["cause"] == cause].tolist() for cause in ("wake", "failure")}
    assert times["failure"][0] == times["wake"][0] + 600
    assert result.jobs["start"][0] < 5


# ---------------------------------------------------------------------- the settings


def test_times_of_partitions_the_longest_of_each_node() -> None:
    lines = "NodeName=n[1-4] CPUs=4\nPartitionName=a Nodes=n[1-3] SuspendTime=900 ResumeTimeout=100\n"
    found = of_conf(f"{lines}PartitionName=b Nodes=n[3-4] SuspendTimeout=5 ResumeTimeout=200\n", boot=50)
    assert found.policy.startswith("sleep-after(900, slurm(")
    assert told(found) == ["nodes n4: SuspendTime=300 (sleep after 900 s here, as most nodes that sleep do)"]
    limits = {name: (power.boot_limit, power.stop) for name, power in powers(found.spec).items() if power}
    assert limits == {
        "n1": (100, (60, 0)), "n2": (100, (60, 0)), "n3": (200, (5, 0)), "n4": (200, (5, 0))
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "sleeping", "after", "notes"),
    [
        ("SuspendExcNodes=n[1-3]", "4", "", ()),
        ("SuspendExcNodes=n[1-4]:2", "1234", ", spare=2", ()),
        ("SuspendExcNodes=n[1-3]:2", "34", "", ("nodes n[1-2]: SuspendExcNodes with :2 (these never sleep here, "
                                                "rather than any 2 idle ones)",)),
        ("SuspendExcNodes=n[1-3]:1,n4", "123", ", spare=1", ()),
        ("SuspendExcParts=batch", "", "", ()),
        ("SuspendTime=-1", "", "", ()),
        ("SuspendTime=INFINITE", "", "", ()),
        ("SuspendProgram=", "", "", ("scheduler: SuspendTime (no node sleeps: SuspendProgram not told)",)),
        ("ResumeRate=3", "1234", "", ("scheduler: ResumeRate=3 (any number of the 4 nodes boot at once here)",)),
        ("SuspendRate=2", "1234", "", ("scheduler: SuspendRate=2 (any number of the 4 nodes sleep at once here)",)),
        ("SuspendExcStates=DOWN", "1234", "", ("scheduler: SuspendExcStates=DOWN (nodes in these states sleep, too)",)),
    ],
)  # fmt: skip
def test_which_nodes_sleep(line: str, sleeping: str, after: str, notes: tuple[str, ...]) -> None:
    name = line.partition("=")[0]
    conf = "".join(f"{each}\n" for each in CONF.splitlines() if not each.startswith(f"{name}="))
    found = described(read_conf(f"{conf}{line}\n{NODES}"), own_loops=True, boot=60 if sleeping else None)
    assert "".join(name[1] for name, power in powers(found.spec).items() if power) == sleeping
    inner = "slurm(partitions=(batch:nodes=n[1-4]:default))"
    assert found.policy == (f"sleep-after(300, {inner}{after})" if sleeping else inner)
    assert told(found) == [*notes]


def test_the_nearest_policy_sleeps_too_and_the_platform_is_written_as_toml(tmp_path: Path) -> None:
    found = described(read_conf(f"{CONF}{CLOUD}"), own_loops=False, boot=uniform(60, 90))
    assert found.policy == "sleep-after(300, conservative)"
    (tmp_path / "machine.toml").write_text(found.toml())
    assert read_toml(tmp_path / "machine.toml").partitions == found.spec.partitions
    assert "given, but no node sleeps" in "".join(
        told(of_conf(f"SuspendTime=-1\n{NODES}".replace("Susp", "susp"), boot=9))
    )


def test_a_boot_time_is_checked() -> None:
    with pytest.raises(InputError, match="boot: must be at most ResumeTimeout, 600 s"):
        of_conf(NODES, boot=601)


# ---------------------------------------------------------------------- the state of now

SHOWN = """\
NodeName=n1 CPUTot=4 RealMemory=1 State=IDLE+CLOUD
NodeName=n2 CPUTot=4 RealMemory=1 State=IDLE+CLOUD+POWERED_DOWN

PartitionName=batch Nodes=n[1-2] Default=YES MaxTime=UNLIMITED State=UP SuspendTime=300 ResumeTimeout=GLOBAL
"""


def test_nodes_that_are_powered_down_sleep_at_the_beginning_but_in_a_twin() -> None:
    found = described(read_scontrol(SHOWN), boot=40)
    assert [power and power.asleep for power in powers(found.spec).values()] == [False, True]
    assert (
        "nodes n2: State=CLOUD+IDLE+POWERED_DOWN (asleep at the beginning of a simulation; a twin takes it as awake)"
        in told(found)
    )
    result = simulate(found.spec, [Job(id=1, run=60, nodes=2)], found.policy)
    assert result.jobs["start"].tolist() == [40]
    mirror = Mirror(found.spec, "alps", found.policy)
    mirror.advance(5.0)
    assert not any(place.asleep for place in mirror.system.places)
    assert start(found.spec, [], found.policy).system.places[0].asleep == (1,)


# ---------------------------------------------------------------------- explained starts


def test_recorded_starts_are_explained_by_the_policy_inside(tmp_path: Path) -> None:
    wide = "|16|COMPLETED"
    lines = [
        sacct_line(i, "-n16", submit=60 * i, start=240 + 100 * i, run=90).replace("|1|COMPLETED", wide)
        for i in range(25)
    ]
    found = site(tmp_path, CLOUD, *lines, boot=236)
    again = found.described.explained_by(tmp_path / "sacct.txt")
    assert again.policy == found.described.policy
    assert again.explained[again.policy] > 0.9
    assert all(name.startswith("sleep-after(300, ") for name in again.explained)


# ---------------------------------------------------------------------- answers in JSON


def test_partitions_in_json_tell_their_times() -> None:
    data = gzip.decompress(data_file("slurm/slurmrestd_24.05_0.0.41_partitions.json.gz").read_bytes())
    document = json.loads(data)
    for part, endless in zip(document["partitions"], (False, True), strict=False):
        part["suspend_time"] = {"set": True, "infinite": endless, "number": 300}
        seconds = {"resume": 90, "suspend": 0}
        part["timeouts"] = {name: {"set": True, "infinite": False, "number": n} for name, n in seconds.items()}
    first, second, *_ = read_answer(json.dumps(document).encode(), "partitions").partitions or ()
    names = ("SuspendTime", "SuspendTimeout", "ResumeTimeout")
    assert [first.others.get(name) for name in names] == ["300", "0", "90"]
    assert second.others["SuspendTime"] == "INFINITE"
