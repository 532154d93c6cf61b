"""slurm.conf and topology.conf: read as what scontrol prints of them, and refused if malformed."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from simmodel import InputError, Job, load_platform, load_workload, simulate
from simmodel.scheduling.registry import policy
from simmodel_site.policy.policy import Slurm
from simmodel_site.policy.settings import SlurmConf
from simmodel_site.twin.slurm.conf import is_conf, read_conf
from simmodel_site.twin.slurm.describe import describe_slurm
from simmodel_site.twin.slurm.site.folder import read_folder
from tests.helpers.data_files import data_file

RUNS = ("defaults", "fast", "tiers", "factors", "shapes", "preempt", "tree")

CONF = """
# a small cluster
ClusterName=small
SlurmctldHost=head
SchedulerParameters=bf_interval=10,bf_window=60,\\
defer_batch
NodeName=DEFAULT Sockets=2 CoresPerSocket=4 RealMemory=16000
NodeName=n[1-3]   # three alike
NodeName=big CPUs=32 RealMemory=64000 Weight=5 Gres=gpu:2 Feature=fat,ssd
PartitionName=DEFAULT MaxTime=120
PartitionName=low Nodes=ALL Default=YES
PartitionName=high Nodes=n[1-2] PriorityTier=3 MaxTime=1-0
"""


def folder_of(name: str) -> Path:
    return data_file(f"slurm/runs/{name}/slurm.conf").parent


@pytest.mark.parametrize("name", RUNS)
def test_files_and_reports_describe_the_same_cluster(name: str) -> None:
    folder = folder_of(name)
    files = [path for path in (folder / "slurm.conf", folder / "topology.conf") if path.exists()]
    reports = [folder / f"scontrol_{part}.txt" for part in ("config", "nodes", "partitions")]
    reports += files[1:]  # the reports lack the topology
    of_files, of_reports = describe_slurm(files, own_loops=True), describe_slurm(reports, own_loops=True)
    assert of_files.policy == of_reports.policy
    assert of_files.spec.queues == of_reports.spec.queues
    assert of_files.spec.partitions == of_reports.spec.partitions
    assert isinstance(policy(of_files.policy), Slurm)


@pytest.mark.parametrize("line", ["SelectType=select/linear", "PriorityFlags=MAX_TRES", "SchedulerTimeSlice=60"])
def test_settings_that_may_change_starts_are_named(line: str, tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(f"{CONF}\n{line}\n")
    found = [str(each) for each in describe_slurm([tmp_path]).unsupported]
    for what in ("SchedulerParameters defer_batch", line):
        assert f"scheduler: {what} (may change starts: policy slurm leaves it out)" in found


def words(text: str) -> list[str]:
    """Return the words of a text."""
    return text.split()


MODELLED = words(
    """
    assoc_limit_stop batch_sched_delay=9 bf_interval=9 bf_max_job_array_resv=9 bf_max_job_assoc=9
    bf_max_job_part=9 bf_max_job_start=9 bf_max_job_test=9 bf_max_job_user=9 bf_max_job_user_part=9
    bf_max_time=9 bf_min_age_reserve=9 bf_min_prio_reserve=9 bf_node_space_size=9 bf_resolution=9 bf_window=9
    bf_window_linear=9 default_queue_depth=9 defer max_switch_wait=9 partition_job_depth=9
    preempt_reorder_count=9 preempt_strict_order preempt_youngest_first sched_interval=9 sched_max_job_start=9
    """
)
NAMED = words(
    """
    bb_array_stage_cnt=9 bf_busy_nodes bf_continue bf_hetjob_immediate bf_hetjob_prio=min
    bf_job_part_count_reserve=9 bf_licenses bf_one_resv_per_job bf_running_job_reserve bf_yield_interval=9
    bf_yield_sleep=9 build_queue_timeout=9 delay_boot=9 Ignore_NUMA max_rpc_cnt=9 max_sched_time=9
    pack_serial_at_end reduce_completing_frag sched_min_interval=9
    """
)
IDLE = words(
    """
    allow_zero_lic correspond_after_task_cnt=9 disable_job_shrink disable_hetjob_steps enable_hetjob_steps
    enable_user_top ignore_prefer_validation max_array_tasks=9 max_script_size=9 no_backup_scheduling
    no_env_cache nohold_on_prolog_fail requeue_setup_env_fail salloc_wait_nodes sbatch_wait_nodes
    spec_cores_first step_retry_count=9 step_retry_time=9 whole_hetjob
    """
)


def test_every_scheduler_parameter_of_slurm_22_is_modelled_or_named_or_changes_no_start() -> None:
    """The lists have all 64 of slurm.conf(5) of 22.05.8."""
    assert len({*MODELLED, *NAMED, *IDLE}) == len(MODELLED) + len(NAMED) + len(IDLE) == 64
    usual = SlurmConf()
    for each in (*MODELLED, *NAMED, *IDLE):
        found = SlurmConf.of({"SchedulerParameters": each})
        assert found.unread == ((f"SchedulerParameters {each}",) if each in NAMED else ()), each
        name = each.partition("=")[0]
        assert {*found.changed()} == ({name} if each in MODELLED else set()), each
        assert name in found.changed() or found == attrs.evolve(usual, unread=found.unread)


def test_loops_that_are_switched_off() -> None:
    found = SlurmConf.of({"SchedulerParameters": "bf_interval=-1,sched_interval=-1"})
    assert not found.backfill
    assert found.unread == ("SchedulerParameters sched_interval=-1",)
    assert policy("slurm(bf_interval=-1)").settings.changed() == {"backfill": False}


def test_a_slurm_conf_of_nodes_and_partitions_alone(tmp_path: Path) -> None:
    path = tmp_path / "slurm.conf"
    path.write_text("NodeName=n[1-4] CPUs=4 State=UNKNOWN\nPartitionName=a Nodes=n[1-4] Default=YES State=UP\n")
    found = describe_slurm([tmp_path], own_loops=True)
    assert [(node.count, node.cores) for node in found.spec.partitions[0].nodes] == [(4, 4)]
    assert [str(each) for each in found.unsupported if "not told" in str(each)]


def test_wrong_settings_are_told_with_their_file(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(CONF.replace("SchedulerParameters=", "SchedulerParameters=bf_interval=abc,"))
    with pytest.raises(InputError, match=r"slurm\.conf, bf_interval: must be seconds or .*, got 'abc'"):
        describe_slurm([tmp_path], own_loops=True)


@pytest.mark.parametrize("name", ["bf_continue", "bf_yield_interval=100000", "max_sched_time=1"])
def test_what_matters_in_long_cycles_alone_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(CONF.replace("SchedulerParameters=", f"SchedulerParameters={name},"))
    found = [str(each) for each in describe_slurm([tmp_path], own_loops=True).unsupported]
    assert [each for each in found if f"SchedulerParameters {name} (" in each and "here" in each]


def test_lines_with_defaults_comments_and_continuations() -> None:
    site = read_conf(CONF)
    assert [(node.name, node.cpus, node.weight) for node in site.nodes or ()] == [
        ("n1", 8, 1),
        ("n2", 8, 1),
        ("n3", 8, 1),
        ("big", 32, 5),
    ]
    low, high = site.partitions or ()
    assert (low.default, low.max_time, low.tier) == (True, 7200.0, 1)
    assert (high.nodes, high.max_time, high.tier) == ("n[1-2]", 86400.0, 3)
    settings = SlurmConf.of(site.settings or {})
    assert (settings.bf_interval, settings.bf_window) == (10.0, 60.0)
    assert settings.unread == ("SchedulerParameters defer_batch",)


def test_a_described_cluster_runs(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(CONF)
    found = describe_slurm([tmp_path], own_loops=True)
    assert found.policy.startswith("slurm(bf_interval=10, bf_window=60, partitions=(low:nodes=")
    assert "nodes=(big:weight=5:features=fat+ssd)" in found.policy
    jobs = [Job(id=i, submit=i, run=30, requested=60, nodes=2, queue="high") for i in range(4)]
    result = simulate(found.spec, jobs, found.policy)
    assert {nodes for row in result.runs["nodes"].tolist() for nodes in row} == {0, 1}


def test_times_without_a_unit_are_minutes_where_slurm_says_so() -> None:
    """PriorityMaxAge and PriorityCalcPeriod are in minutes; scontrol prints days and hours."""
    plain = SlurmConf.of({"PriorityMaxAge": "300", "PriorityCalcPeriod": "1", "OverTimeLimit": "2"})
    printed = SlurmConf.of({"PriorityMaxAge": "05:00:00", "PriorityCalcPeriod": "00:01:00", "OverTimeLimit": "2 min"})
    assert plain == printed
    assert (plain.max_age, plain.calc_period, plain.over_time_limit) == (18000.0, 60.0, 120.0)
    assert SlurmConf.of({"PriorityMaxAge": "7-0"}).max_age == 7 * 86400


def test_age_counts_nothing_without_the_database() -> None:
    given = {"PriorityType": "priority/multifactor", "PriorityWeightAge": "1000"}
    assert SlurmConf.of({**given, "AccountingStorageType": "accounting_storage/none"}).weight_age == 0
    assert SlurmConf.of({**given, "AccountingStorageType": "accounting_storage/slurmdbd"}).weight_age == 1000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ClusterName=c\nNodeName n1", "slurm.conf, line 2: must consist of Name=Value"),
        ("ClusterName=c\nInclude other.conf", "line 2: the file other.conf is not read: give the folder"),
        ("ClusterName=c\nNodeName=n1 CPUs=many", "NodeName=n1: must be a number"),
        ("ClusterName=c\nNodeName=n1 CPUs=-4", "NodeName=n1: CPUs must be >= 1, got '-4'"),
        ("ClusterName=c\nNodeName=n1\nPartitionName=a Nodes=n1 MaxTime=soon", "PartitionName=a: must be a duration"),
        ("NodeName=n[1-3] CPUs=4\nNodeName=n[3-4] CPUs=8", r"NodeName: must be of one line each, got n3 in several"),
    ],
)
def test_malformed_lines_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        read_conf(text)
    assert message in str(error.value)


def test_a_report_is_no_file_of_settings() -> None:
    assert not is_conf("Configuration data as of 2026-01-01T00:00:00\nClusterName = c\n")
    assert is_conf("SwitchName=s1 Nodes=n[1-4]\n")


def test_switches_have_all_nodes_below_them() -> None:
    site = read_conf("SwitchName=s1 Nodes=n[1-2]\nSwitchName=s2 Nodes=n3\nSwitchName=top Switches=s[1-2]\n")
    found = {each.name: (each.level, each.nodes) for each in site.switches or ()}
    assert found == {"s1": (0, "n[1-2]"), "s2": (0, "n3"), "top": (1, "n[1-3]")}


def test_files_that_are_included_are_read_from_the_folder(tmp_path: Path) -> None:
    """Also one that the site has elsewhere, and one inside another; none of them is read a second time."""
    (tmp_path / "slurm.conf").write_text("ClusterName=c\nInclude /etc/slurm/nodes.conf\nPartitionName=b Nodes=ALL\n")
    (tmp_path / "nodes.conf").write_text("include sub/big.conf\nNodeName=n[1-2] CPUs=4\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "big.conf").write_text("NodeName=big CPUs=32\n")
    found = describe_slurm([tmp_path], own_loops=True)
    assert found.spec.processors == 40
    (tmp_path / "nodes.conf").write_text("NodeName=n1 CPUs=x\n")
    with pytest.raises(InputError, match=r"NodeName=n1: must be a number"):
        describe_slurm([tmp_path])
    (tmp_path / "nodes.conf").write_text("Include slurm.conf\n")
    with pytest.raises(InputError, match="must not include 100 files in each other"):
        describe_slurm([tmp_path])
    (tmp_path / "nodes.conf").unlink()
    with pytest.raises(InputError, match=r"nodes\.conf: no such file"):
        describe_slurm([tmp_path])


def test_gres_conf_tells_the_types_of_gpus(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(
        "ClusterName=c\nNodeName=n[1-3] CPUs=4 Gres=gpu:4\nPartitionName=b Nodes=ALL DefaultTime=30\n"
    )
    (tmp_path / "gres.conf").write_text(
        "AutoDetect=off\nNodeName=n[1-2] Name=gpu Type=a100 File=/dev/nvidia[0-3]\nNodeName=n3 Name=gpu Count=2\n"
    )
    found = describe_slurm([tmp_path], own_loops=True)
    assert found.spec.partitions[0].nodes[0].gpus == 4
    assert "default_time=1800" in found.policy
    listed = [str(each) for each in found.unsupported]
    assert "nodes=(n[1-2]:gpus=a100)" in found.policy
    assert "nodes n3: gres.conf: gpu:2 (slurm.conf has another number, which is taken)" in listed
    assert not any("DefaultTime" in each for each in listed)


SHARED = """ClusterName=c
GresTypes=gpu,shard,mps
NodeName=a[1-2] CPUs=16 Gres=gpu:a100:4(S:0-1),shard:32
NodeName=m1 CPUs=16 Gres=gpu:a100_1g.5gb:7,gpu:3g.20gb:2
NodeName=p1 CPUs=8 Gres=gpu:2,mps:200
NodeName=x1 CPUs=8 Gres=gpu:v100:1,gpu:2,shard:6
PartitionName=b Nodes=ALL
"""


def test_types_slices_and_shares_of_gpus_are_on_the_platform(tmp_path: Path) -> None:
    """Types and MIG instances are devices with the memory in their name; gres.conf has types and one device a line."""
    (tmp_path / "slurm.conf").write_text(SHARED)
    (tmp_path / "gres.conf").write_text(
        "AutoDetect=nvml\n"
        + "NodeName=m1 Name=gpu Type=a100_1g.5gb MultipleFiles=/dev/nvidia0,/dev/nvidia-caps/nvidia-cap3\n" * 7
        + "NodeName=m1 Name=gpu Type=3g.20gb MultipleFiles=/dev/nvidia1,/dev/nvidia-caps/nvidia-cap4 Cores=0-7\n" * 2
        + "NodeName=p1 Name=gpu Type=t4 File=/dev/nvidia0,/dev/nvidia1\nNodeName=p1 Name=mps Count=200\n"
    )
    found = describe_slurm([tmp_path], own_loops=True)
    part = found.spec.partitions[0]
    assert [(kind.names, kind.gpus, kind.gpu_types) for kind in part.nodes] == [
        ("a[1-2]", 4, {"a100": 4}),
        ("m1", 9, {"a100_1g.5gb": 7, "3g.20gb": 2}),
        ("p1", 2, {"t4": 2}),
        ("x1", 3, {"v100": 1, "gpu": 2}),
    ]
    assert [(each.name, each.memory) for each in part.devices] == [("a100_1g.5gb", 5e9), ("3g.20gb", 20e9)]
    assert not any("another number" in each.why for each in found.unsupported)
    assert {each.what for each in found.unsupported} >= {"Gres=shard:32", "Gres=mps:200", "Gres=shard:6"}


def test_jobs_of_a_site_have_shares_types_and_slices(tmp_path: Path) -> None:
    """They are columns of the workload that is written, and run on the platform that is written."""
    (tmp_path / "slurm.conf").write_text(SHARED)
    asked = ["gpu:a100=2,gres/gpu=2", "shard=3", "gpu:3g.20gb=1,gres/gpu=1", "mps=50", "gpu=1"]
    rows = [
        f"{i}|2024-05-01T12:00:00|2024-05-01T12:00:01|2024-05-01T13:00:01|02:00:00|1|1|COMPLETED|b|"
        f"cpu=1,gres/{tres},node=1|cpu=1,gres/{tres},node=1|{node}"
        for i, (tres, node) in enumerate(zip(asked, ["a1", "a1", "m1", "p1", "x1"], strict=True))
    ]
    head = "JobID|Submit|Start|End|Timelimit|ReqCPUS|NNodes|State|Partition|ReqTRES|AllocTRES|NodeList"
    (tmp_path / "sacct.txt").write_text("\n".join([head, *rows]))
    found = read_folder(tmp_path)
    said = [str(each) for each in found.unsupported]
    assert any("with shares of GPUs: 2" in each for each in said)
    assert any("nodes x1: Gres=shard:6 on 3 GPUs (not as on the first nodes" in each for each in said)
    found.workload_to_csv(tmp_path / "jobs.csv")
    found.platform_to_toml(tmp_path / "site.toml")
    log = load_workload(tmp_path / "jobs.csv")
    assert log["gpus_per_node"].tolist() == [2, 0.375, 1, 0.5, 1]
    assert log["gpu"].tolist() == ["a100", "", "3g.20gb", "", ""]
    result = simulate(load_platform(tmp_path / "site.toml"), log, "easy")
    assert result.jobs["start"].tolist() == [0] * 5
    assert result.runs["nodes"][2] == (2,)


def test_preemption_and_billing_of_partitions(tmp_path: Path) -> None:
    """A partition has its own PreemptMode, GraceTime and TRESBillingWeights; what equals the cluster's is left out."""
    file = tmp_path / "slurm.conf"
    file.write_text(
        "ClusterName=x\nPreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\nPriorityType=priority/multifactor\n"
        "AccountingStorageType=accounting_storage/slurmdbd\nPriorityWeightFairshare=1000\nNodeName=n[1-4] CPUs=4\n"
        "PartitionName=a Nodes=ALL PreemptMode=OFF TRESBillingWeights=CPU=2.0,Mem=1.0G Default=YES\n"
        "PartitionName=b Nodes=ALL PreemptMode=REQUEUE GraceTime=30\n"
    )
    text = describe_slurm([file], own_loops=True).policy
    found = policy(text)
    assert isinstance(found, Slurm)
    assert found.text == text
    assert [(each.preempt_mode, each.grace_time) for each in found.partitions] == [("off", 0.0), (None, 30.0)]
    assert [each.billing for each in found.partitions] == ["CPU=2.0,Mem=1.0G", ""]
    assert (found.settings.preempt, found.settings.weight_fair_share) == ("partition_prio", 1000.0)
