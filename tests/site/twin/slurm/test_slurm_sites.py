"""Files as sites have them: a cloud, a cluster with front ends, GPU pods, sockets, Cray."""

from __future__ import annotations

from pathlib import Path

import pytest

from simmodel import InputError
from simmodel.cli import main
from simmodel_site.twin.slurm.conf import read_conf
from simmodel_site.twin.slurm.describe import described
from simmodel_site.twin.slurm.site.folder import SlurmFolder, read_folder

USUAL = "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core_Memory\n"


def site(folder: Path, conf: str, **files: str) -> SlurmFolder:
    """Return a site by its slurm.conf and other files, named without their endings."""
    (folder / "slurm.conf").write_text(conf)
    for name, text in files.items():
        ending = "txt" if name in ("sacct", "dump", "qos") else "conf"
        (folder / f"{name}.{ending}").write_text(text)
    return read_folder(folder)


def notes(found: SlurmFolder) -> list[str]:
    return [str(each) for each in found.unsupported]


# ---------------------------------------------------------------------- sites

CLOUD = """
ClusterName=cloud
SlurmctldHost=head(10.0.0.1)
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SuspendProgram=/opt/suspend
ResumeProgram=/opt/resume
SuspendTime=600
ResumeTimeout=1600
SlurmctldParameters=idle_on_node_suspend,power_save_min_interval=30,cloud_dns
CommunicationParameters=NoAddrCache
GresTypes=gpu
SuspendExcNodes=q1-st-big-[1-1]
include /opt/slurm/etc/parts.conf
"""
CLOUD_PARTS = """
NodeName=q1-st-big-[1-1] CPUs=16 RealMemory=100000 State=CLOUD Feature=static,big Gres=gpu:m60:2
NodeName=q1-dy-big-[1-4] CPUs=16 RealMemory=100000 State=CLOUD Feature=dynamic,big Gres=gpu:m60:2
NodeName=q1-dy-huge-[1-2] CPUs=48 RealMemory=300000 State=CLOUD Feature=dynamic,huge
NodeSet=q1_nodes Nodes=q1-st-big-[1-1],q1-dy-big-[1-4]
NodeSet=huge_nodes Feature=huge
PartitionName=q1 Nodes=q1_nodes MaxTime=INFINITE State=UP Default=YES
PartitionName=q2 Nodes=huge_nodes,q1-st-big-1 MaxTime=INFINITE
"""
CLOUD_GRES = "NodeName=q1-st-big-[1-1] Name=gpu Type=m60 File=/dev/nvidia[0-1]\n" + (
    "NodeName=q1-dy-big-[1-4] Name=gpu Type=m60 File=/dev/nvidia[0-1] Cores=0-7\n"
)
ASLEEP = "as if awake: it never sleeps, by the settings that are told"
BOOT = "taken as ResumeTimeout, 1600 s, an upper bound: slurm read takes --boot, or slurmctld.log (DebugFlags=Power)"


def test_a_cloud_with_node_sets_and_nodes_that_are_switched_off(tmp_path: Path) -> None:
    (tmp_path / "parts.conf").write_text(CLOUD_PARTS)
    found = site(tmp_path, CLOUD, gres=CLOUD_GRES)
    assert "platform: 7 nodes with 176 CPUs; partitions q1, q2" in found.report()
    q1, q2 = found.site.partitions or ()
    assert (q1.nodes, q2.nodes) == ("q1-st-big-1,q1-dy-big-[1-4]", "q1-dy-huge-[1-2],q1-st-big-1")
    assert notes(found) == [
        f"nodes q1-dy-big-[1-4],q1-dy-huge-[1-2]: boot time ({BOOT})",
        f"nodes q1-st-big-1: State=CLOUD ({ASLEEP})",
    ]
    assert "6 nodes sleep, 6 at the beginning; a boot takes 1600 s, as ResumeTimeout allows" in found.report()
    assert found.described.policy.startswith("sleep-after(600, slurm(")


SIMULATED = """
ClusterName=hpc
ControlMachine=localhost
JobRequeue=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
TopologyPlugin=topology/tree
SchedulerType=sched/backfill
SchedulerParameters=bf_max_job_user=100,bf_window=4320,bf_interval=120,bf_continue,max_script_size=1048576
FairShareDampeningFactor=5
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory,CR_CORE_DEFAULT_DIST_BLOCK
PriorityType=priority/multifactor
PriorityWeightFairshare=120000
PriorityFlags=NO_NORMAL_TRES
EnforcePartLimits=YES
JobCompType=jobcomp/filetxt
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageEnforce=associations,limits,qos
Waittime=0
NodeName=DEFAULT RealMemory=187000 Sockets=2 CoresPerSocket=16 Weight=60
NodeName=n[001-087] Feature=CPU-A,OPA
NodeName=DEFAULT CPUs=40 RealMemory=187000 Sockets=2 CoresPerSocket=20 ThreadsPerCore=1
NodeName=g[001-008] Gres=gpu:v100:2 Feature=CPU-B,IB,V100 Weight=190
PartitionName=DEFAULT State=UP DefaultTime=24:00:00 MaxTime=72:00:00
PartitionName=general Nodes=n[001-087],g[001-008] Default=YES DefMemPerCPU=2800 Priority=100 QOS=general
PartitionName=debug Nodes=g[001-002] MaxTime=01:00:00 DefMemPerCPU=1400 Priority=700 AllowQOS=debug
FrontendName=localhost
"""


def test_a_cluster_with_front_ends(tmp_path: Path) -> None:
    found = site(tmp_path, SIMULATED, topology="SwitchName=s1 Nodes=n[001-087]\nSwitchName=s2 Nodes=g[001-008]\n")
    assert f"platform: 95 nodes with {87 * 32 + 8 * 40:,} CPUs; partitions general, debug" in found.report()
    assert ":def_mem_per_cpu=2936012800" in found.described.policy
    assert "requeue=false" in found.described.policy
    assert notes(found) == [
        "partition debug: AllowQos=debug (who may run there is not checked)",
        "jobs: limits of associations (not told: give 'sacctmgr dump')",
        "partition general: QoS=general (its limits are not told: give 'sacctmgr --parsable2 show qos')",
        "scheduler: SchedulerParameters bf_continue (cycles are not interrupted here, however long they take)",
        "scheduler: PriorityFlags=NO_NORMAL_TRES (may change starts: policy slurm leaves it out)",
    ]


def test_limits_that_are_given_are_not_called_untold(tmp_path: Path) -> None:
    dump = "Cluster - 'hpc':Fairshare=1\nParent - 'root'\nAccount - 'physics':GrpTRES=cpu=64\n"
    qos = "Name|Priority|Preempt|Flags|MaxTRESPU|MaxJobsAccruePU\nnormal|0||||\ngeneral|0||DenyOnLimit|cpu=8|3\n"
    found = site(tmp_path, SIMULATED, dump=dump, qos=qos)
    told = [each for each in notes(found) if "limits" in each or "QoS" in each or "QOS" in each]
    assert told == ["QOS general: MaxJobsAccruePU=3 (not modelled)"]
    (tmp_path / "dump.txt").unlink()
    assert "jobs: limits of associations (not told: give 'sacctmgr dump')" in notes(read_folder(tmp_path))


PODS = """
ClusterName=pods
ControlMachine=login
PrologFlags=Alloc,Serial
Epilog=/etc/slurm/epilog.sh
EpilogSlurmctld=/etc/slurm/net.sh
ResumeTimeout=1200
TaskPluginParam=Sched,None
SchedulerParameters=kill_invalid_depend,nohold_on_prolog_fail,enable_user_top,default_queue_depth=5000
SelectType=select/linear
SelectTypeParameters=CR_Memory
TopologyPlugin=topology/tree
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
NodeName=pod-n[001-004] CPUs=96 Sockets=2 CoresPerSocket=24 ThreadsPerCore=2 Procs=48 RealMemory=1400000 Gres=gpu:8
PartitionName=batch OverSubscribe=EXCLUSIVE Default=YES PriorityTier=2 MaxTime=8:00:00 PreemptMode=OFF \\
  nodes=pod-n[001-004]
PartitionName=backfill OverSubscribe=EXCLUSIVE PriorityTier=1 GraceTime=600 DenyAccounts=none,ci Hidden=YES \\
  nodes=pod-n[001-003]
"""


def test_pods_of_gpus_with_switches(tmp_path: Path) -> None:
    topology = "SwitchName=s0 Nodes=pod-n[001-002],n[019-020] LinkSpeed=200\nSwitchName=s1 Nodes=pod-n[003-004]\n"
    found = site(tmp_path, PODS, topology=topology, gres="AutoDetect=nvml\nName=gpu File=/dev/nvidia[0-7] Links=0,-1\n")
    assert "platform: 4 nodes with 384 CPUs; partitions batch, backfill" in found.report()
    assert found.described.spec.partitions[0].exclusive
    assert "preempt_mode=off" in found.described.policy
    assert "grace_time=600" in found.described.policy
    assert notes(found) == [
        "partition backfill: DenyAccounts=none,ci (who may run there is not checked)",
        "scheduler: EpilogSlurmctld=/etc/slurm/net.sh (the nodes of an ended job are free before this program ends)",
        "scheduler: SelectType=select/linear (may change starts: policy slurm leaves it out)",
    ]


def test_sockets_and_memory(tmp_path: Path) -> None:
    conf = """
ClusterName=sockets
SelectType=select/cons_res
SelectTypeParameters=CR_Socket_Memory
NodeName=s-c-[1-4] CPUs=40 Sockets=2 CoresPerSocket=20 RealMemory=190000
NodeName=s-g-1 CPUs=40 Sockets=2 CoresPerSocket=20 RealMemory=380000 Gres=gpu:2 MemSpecLimit=8000 CoreSpecCount=2
PartitionName=compute Nodes=s-c-[1-4] Default=YES MaxTime=5-00:00:00 DefMemPerCPU=4500 LLN=YES
PartitionName=gpu Nodes=s-g-1 MinNodes=1 DefMemPerCPU=9000
"""
    found = site(tmp_path, conf)
    assert "platform: 5 nodes with 198 CPUs; partitions compute, gpu" in found.report()
    assert "allocates=socket" in found.described.policy
    assert "socket=20" in found.described.policy
    assert notes(found) == [
        "scheduler: SelectTypeParameters=CR_Socket_Memory (where a number of nodes is asked for, tasks of several "
        "CPUs count as tasks of one CPU)"
    ]


def test_cray_and_old_names(tmp_path: Path) -> None:
    conf = """
ControlMachine=sdb
ClusterName=cray
CryptoType=crypto/munge
CoreSpecPlugin=cray_aries
EnforcePartLimits=any
JobSubmitPlugins=cray_aries
SwitchType=switch/cray_aries
FastSchedule=0
SelectType=select/cray_aries
SelectTypeParameters=CR_CORE_Memory,other_cons_res
DefMemPerCPU=1000
MaxMemPerCPU=2000
Waittime=0
NodeName=nid0000[1-4] Sockets=2 CoresPerSocket=8 ThreadsPerCore=2 RealMemory=32000 # as found
PartitionName=workq Nodes=nid0000[1-4] Shared=EXCLUSIVE Priority=1 Default=YES DefaultTime=60 MaxTime=24:00:00 State=UP
"""
    found = site(tmp_path, conf)
    assert "platform: 4 nodes with 128 CPUs; partitions workq" in found.report()
    assert found.described.spec.partitions[0].exclusive
    assert [each.partition(" (")[0] for each in notes(found)] == [
        "scheduler: JobSubmitPlugins=cray_aries",
        "scheduler: FastSchedule=0",
        "scheduler: SelectType=select/cray_aries",
    ]


# ---------------------------------------------------------------------- nodes


def test_nodes_for_future_use_do_not_count(tmp_path: Path) -> None:
    conf = f"{USUAL}NodeName=n[1-2] CPUs=8\nNodeName=n[3-100] CPUs=8 State=FUTURE\nPartitionName=a Nodes=ALL\n"
    found = site(tmp_path, conf)
    assert "platform: 2 nodes with 16 CPUs" in found.report()
    assert notes(found) == []
    assert found.described.policy.endswith("partitions=(a:nodes=n[1-2]))")


@pytest.mark.parametrize("down", ["NodeName=n[3-4] CPUs=8 State=DOWN Reason=fans", "DownNodes=n[3-4] State=DRAIN"])
def test_nodes_out_of_service_are_left_out_where_no_job_ran(down: str, tmp_path: Path) -> None:
    nodes = "NodeName=n[1-2] CPUs=8\n" if down.startswith("NodeName") else "NodeName=n[1-4] CPUs=8\n"
    sacct = (
        "JobID|Submit|Start|End|ReqCPUS|State|Partition|NodeList|SubmitLine\n"
        "1|2024-05-01T12:00:00|2024-05-01T12:00:04|2024-05-01T12:05:00|8|COMPLETED|a|n4|sbatch -N1 -n8 run.sh\n"
    )
    found = site(tmp_path, f"{USUAL}{nodes}{down}\nPartitionName=a Nodes=ALL\n", sacct=sacct)
    assert "platform: 3 nodes with 24 CPUs" in found.report()
    assert [each.partition(": ")[0] for each in notes(found)] == ["nodes n3", "nodes n4"]
    assert "left out: no job of the accounting ran there" in notes(found)[0]
    assert "in use here" in notes(found)[1]


def test_a_partition_of_nodes_that_no_line_tells_of(tmp_path: Path) -> None:
    conf = f"{USUAL}NodeName=n[1-2] CPUs=8\nPartitionName=a Nodes=n1,x[1-3]\nPartitionName=b Nodes=none_such\n"
    assert notes(site(tmp_path, conf)) == [
        "nodes x[1-3]: in partition a (left out: no NodeName or NodeSet line tells of them)",
        "nodes none_such: in partition b (left out: no NodeName or NodeSet line tells of them)",
        "partition b: Nodes=none_such (left out: no known nodes)",
        "nodes n2: in no partition (left out)",
    ]
    with pytest.raises(InputError, match=r"no partition has known nodes: nodes x\[1-3\] in partition a; partition a "):
        described(read_conf("NodeName=n[1-2] CPUs=8\nPartitionName=a Nodes=x[1-3]\n"), own_loops=True)


@pytest.mark.parametrize(
    ("line", "cpus"),
    [
        ("CPUs=16 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 CoreSpecCount=2", 12),
        ("CPUs=8 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 CoreSpecCount=2", 6),
        ("CPUs=16 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 CpuSpecList=0,1,3", 12),
        ("CPUs=8 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 CpuSpecList=0,1,3", 5),
        ("CPUs=8 Sockets=2 CoresPerSocket=4 CoreSpecCount=9", 7),
        ("Boards=2 SocketsPerBoard=2 CoresPerSocket=4 ThreadsPerCore=2", 32),
        ("Boards=2 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2", 16),
        ("CPUs=8 CoreSpecCount=4", 4),
    ],
)
def test_cpus_for_jobs_are_those_that_slurmctld_counts(line: str, cpus: int) -> None:
    """The numbers are CPUEfctv of slurmctld 22.05.8."""
    assert [node.cpus for node in read_conf(f"NodeName=n1 {line}").nodes or ()] == [cpus]


def test_cpus_that_match_no_sockets_cores_or_threads_are_named() -> None:
    conf = "NodeName=n1 CPUs=6 Sockets=2 CoresPerSocket=4\nPartitionName=a Nodes=n1"
    found = described(read_conf(USUAL + conf), own_loops=True)
    assert [str(each) for each in found.unsupported] == ["nodes n1: CPUs=6 (slurmctld takes the number of its threads)"]


def test_the_report_says_what_it_takes_where_slurm_conf_says_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "slurm.conf").write_text("ClusterName=c\nNodeName=n[1-2] CPUs=4\nPartitionName=a Nodes=ALL\n")
    assert main(["slurm", "read", str(tmp_path)]) == 0
    assert "taken: SelectType=select/cons_tres, which is not told" in capsys.readouterr().out
    (tmp_path / "slurm.conf").write_text(f"{USUAL}NodeName=n[1-2] CPUs=4\nPartitionName=a Nodes=ALL\n")
    assert main(["slurm", "read", str(tmp_path)]) == 0
    assert "taken:" not in capsys.readouterr().out
    assert "memory=true" in read_folder(tmp_path).described.policy


def test_memory_is_allocated_where_nothing_else_is_said(tmp_path: Path) -> None:
    conf = "SelectType=select/cons_tres\nNodeName=n[1-2] CPUs=4\nPartitionName=a Nodes=ALL\n"
    assert "memory=true" in site(tmp_path, conf).described.policy


@pytest.mark.parametrize("name", ["MaxTime=240", "Nodes=n[1-60]", "CPUs=8"])
def test_changes_of_partitions_and_nodes_are_no_settings(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sacct = (
        "JobID|Submit|Start|End|ReqCPUS|State|Partition|SubmitLine\n"
        "1|2024-05-01T12:00:00|2024-05-01T12:00:04|2024-05-01T12:05:00|4|COMPLETED|a|sbatch -N1 -n4 run.sh\n"
    )
    site(tmp_path, f"{USUAL}NodeName=n[1-2] CPUs=4 RealMemory=10\nPartitionName=a Nodes=ALL\n", sacct=sacct)
    assert main(["slurm", "replay", str(tmp_path), "--set", name]) == 2
    kind = "NodeName" if name.startswith("CPUs") else "PartitionName"
    what = "nodes" if kind == "NodeName" else "partitions"
    sentence = f'--set: {name}: it is a setting of {what}: --set "{kind}='
    assert sentence in capsys.readouterr().err


def test_unknown_keys_of_several_files_are_all_named(tmp_path: Path) -> None:
    conf = f"{USUAL}OddKey=1\nNodeName=n[1-2] CPUs=4 Gres=gpu:1 OddOfNode=2\nPartitionName=p Nodes=ALL OddOfPart=3\n"
    gres = "NodeName=n[1-2] Name=gpu File=/dev/nvidia0 OddOfGres=4\n"
    found = site(tmp_path, conf, gres=gres, topology="SwitchName=s Nodes=n[1-2] OddOfSwitch=5\n")
    (tmp_path / "partitions.txt").write_text(
        "PartitionName=p Default=NO MaxTime=UNLIMITED State=UP Nodes=n[1-2] TotalCPUs=8 TotalNodes=2 OddOfReport=6\n"
    )
    for each in (found, read_folder(tmp_path)):
        assert [note for note in notes(each) if "unknown key" in note] == [
            "SwitchName s: OddOfSwitch=5 (unknown key: may change starts)",
            "gres.conf: OddOfGres=4 (unknown key: may change starts)",
            "partition p: OddOfPart=3 (unknown key: may change starts)",
            "nodes n[1-2]: OddOfNode=2 (unknown key: may change starts)",
            "scheduler: OddKey=1 (unknown key: may change starts)",
        ]


def test_a_conf_is_known_without_the_name_of_its_cluster(tmp_path: Path) -> None:
    conf = "slurmuser=root\nNodeName=DEFAULT State=UNKNOWN\nNodeName=login NodeAddr=10.1.1.1\nInclude /etc/nodes.conf\n"
    found = site(tmp_path, conf, nodes="NodeName=c-[1-2] CPUs=4\nPartitionName=w Nodes=c-[1-2]\n")
    assert "platform: 2 nodes with 8 CPUs; partitions w" in found.report()
    assert notes(found) == ["nodes login: in no partition (left out)"]


def test_jobs_of_partitions_that_the_site_lacks_are_left_out_and_named(tmp_path: Path) -> None:
    """Also where no partitions share nodes, and where there is one partition alone."""
    head = "JobID|Submit|Start|End|Elapsed|State|NCPUS|NNodes|Partition|Timelimit\n"
    row = "2024-01-01T08:00:00|2024-01-01T08:00:05|2024-01-01T08:10:05|00:10:00|COMPLETED|2|1"
    conf = f"{USUAL}NodeName=n[1-2] CPUs=4\nPartitionName=p Nodes=n1\n"
    for more in ("", "PartitionName=q Nodes=n2\n"):
        found = site(tmp_path, conf + more, sacct=f"{head}1|{row}|p|00:30:00\n2|{row}|old|00:30:00\n")
        assert [each.job.id for each in found.recorded] == [1]
        assert "job 2: partition=old (left out: the site has no such partition)" in notes(found)
