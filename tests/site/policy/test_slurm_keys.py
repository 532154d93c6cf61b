"""Every key of Slurm's files is modelled, harmless or named: a file is changed by each of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from simmodel_site.policy.keys import (
    DOWN_NODES,
    DUMP,
    FRONTEND,
    GRES,
    NODE,
    NODE_SET,
    PARTITION,
    QOS,
    RESERVATION,
    SHOW_CONFIG,
    SHOW_NODE,
    SHOW_PARTITION,
    SLURM_CONF,
    TABLES,
    TOPOLOGY,
    Keys,
)
from simmodel_site.policy.settings import SlurmConf
from simmodel_site.twin.described import Described, Notes
from simmodel_site.twin.slurm.conf import read_conf, read_gres
from simmodel_site.twin.slurm.describe import described
from simmodel_site.twin.slurm.records import Site
from simmodel_site.twin.slurm.scontrol import read_scontrol
from simmodel_site.twin.slurm.site.accounts import read_dump, read_qos
from tests.site.helpers.slurm_keys import PAGE, written

ODD = "odd-1"
"""A value that no key has usually."""

NODES = "NodeName=n[1-4] CPUs=8 Sockets=2 CoresPerSocket=2 ThreadsPerCore=2 RealMemory=4000"
PARTS = "PartitionName=a Nodes=n[1-4] Default=YES"
BASE = ["ClusterName=base", "SelectType=select/cons_tres", "SelectTypeParameters=CR_Core_Memory"]


def words(text: str) -> list[str]:
    """Return the words of a text."""
    return text.split()


# ---------------------------------------------------------------------- what the releases read

OF_22 = words("""
    AccountingStorageBackupHost AccountingStorageEnforce AccountingStorageExternalHost AccountingStorageHost
    AccountingStorageParameters AccountingStoragePass AccountingStoragePort AccountingStorageTRES AccountingStorageType
    AccountingStorageUser AccountingStoreFlags AcctGatherNodeFreq AcctGatherEnergyType AcctGatherInterconnectType
    AcctGatherFilesystemType AcctGatherProfileType AllowSpecResourcesUsage AuthAltTypes AuthAltParameters AuthInfo
    AuthType BackupAddr BackupController BatchStartTimeout BcastExclude BcastParameters BurstBufferType CliFilterPlugins
    ClusterName CommunicationParameters CompleteWait ControlAddr ControlMachine CoreSpecPlugin CpuFreqDef
    CpuFreqGovernors CredType DebugFlags DefCpuPerGPU DefMemPerCPU DefMemPerGPU DefMemPerNode DependencyParameters
    DisableRootJobs EioTimeout EnforcePartLimits Epilog EpilogMsgTime EpilogSlurmctld ExtSensorsFreq ExtSensorsType
    FairShareDampeningFactor FederationParameters FirstJobId GetEnvTimeout GresTypes GroupUpdateForce GroupUpdateTime
    GpuFreqDef HealthCheckInterval HealthCheckNodeState HealthCheckProgram InactiveLimit InteractiveStepOptions
    JobAcctGatherType JobAcctGatherFrequency JobAcctGatherParams JobCompHost JobCompLoc JobCompParams JobCompPass
    JobCompPort JobCompType JobCompUser JobContainerType JobFileAppend JobRequeue JobSubmitPlugins KillOnBadExit
    KillWait LaunchParameters LaunchType Licenses LogTimeFormat MailDomain MailProg MaxArraySize MaxDBDMsgs MaxJobCount
    MaxJobId MaxMemPerCPU MaxMemPerNode MaxNodeCount MaxStepCount MaxTasksPerNode MCSParameters MCSPlugin MessageTimeout
    MinJobAge MpiDefault MpiParams NodeFeaturesPlugins OverTimeLimit PluginDir PlugStackConfig PowerParameters
    PowerPlugin PreemptExemptTime PreemptMode PreemptType PrEpParameters PrEpPlugins PriorityCalcPeriod
    PriorityDecayHalfLife PriorityFavorSmall PriorityFlags PriorityMaxAge PriorityParameters
    PrioritySiteFactorParameters PrioritySiteFactorPlugin PriorityType PriorityUsageResetPeriod PriorityWeightAge
    PriorityWeightAssoc PriorityWeightFairshare PriorityWeightJobSize PriorityWeightPartition PriorityWeightQOS
    PriorityWeightTRES PrivateData ProctrackType Prolog PrologEpilogTimeout PrologFlags PrologSlurmctld
    PropagatePrioProcess PropagateResourceLimits PropagateResourceLimitsExcept RebootProgram ReconfigFlags RequeueExit
    RequeueExitHold ResumeFailProgram ResumeProgram ResumeRate ResumeTimeout ResvEpilog ResvOverRun ResvProlog
    ReturnToService RoutePlugin SchedulerParameters SchedulerTimeSlice SchedulerType ScronParameters SelectType
    SelectTypeParameters SlurmctldAddr SlurmctldDebug SlurmctldHost SlurmctldLogFile SlurmctldParameters
    SlurmctldPidFile SlurmctldPlugstack SlurmctldPort SlurmctldPrimaryOffProg SlurmctldPrimaryOnProg
    SlurmctldSyslogDebug SlurmctldTimeout SlurmdDebug SlurmdLogFile SlurmdParameters SlurmdPidFile SlurmdPort
    SlurmdSpoolDir SlurmdSyslogDebug SlurmdTimeout SlurmdUser SlurmSchedLogFile SlurmSchedLogLevel SlurmUser SrunEpilog
    SrunPortRange SrunProlog StateSaveLocation SuspendExcNodes SuspendExcParts SuspendProgram SuspendRate SuspendTime
    SuspendTimeout SwitchParameters SwitchType TaskEpilog TaskPlugin TaskPluginParam TaskProlog TCPTimeout TmpFS
    TopologyParam TopologyPlugin TrackWCKey TreeWidth UnkillableStepProgram UnkillableStepTimeout UsePAM VSizeFactor
    WaitTime X11Parameters
""")
"""The keys of slurm.conf(5) of 22.05.8 but those of nodes, partitions and the like."""
OF_OTHERS = words("""
    AccountingStorageLoc AccountingStoreJobComment AcctGatherInfinibandType BurstBufferParameters CacheGroups
    CertgenParameters CertgenType CertmgrParameters CertmgrType CheckpointType CliFilterParameters CryptoType
    DataParserParameters DefRuntimePlugin DefaultStorageHost DefaultStorageLoc DefaultStoragePass DefaultStoragePort
    DefaultStorageType DefaultStorageUser EpilogTimeout FastSchedule HashPlugin HealthCheckTimeout HttpParserType
    JobCheckpointDir JobCompPassScript JobCredentialPrivateKey JobCredentialPublicCertificate KeepAliveTime
    LicenseParameters MaxBatchRequeue MetricsAuthUsers MetricsParameters MetricsType NamespaceType PreemptParameters
    PrologTimeout SallocDefaultCommand SbcastParameters SchedulerAuth SchedulerPort SchedulerRootFilter
    SerializerParameters SerializerPlugins SlurmctldHttpAuthParameters SlurmdHttpAuthParameters
    SlurmrestdHttpAuthParameters SlurmrestdParameters SlurmstepdParameters SuspendExcStates TLSParameters TLSType
    UrlParserType
""")
"""Those that other releases read, from 2.6 to 25.11."""
LINES = {
    "NodeName": """
        NodeName NodeHostname NodeAddr BcastAddr Boards CoreSpecCount CoresPerSocket CpuBind CPUs CpuSpecList Feature
        Features Gres MemSpecLimit Port Procs RealMemory Reason Sockets SocketsPerBoard State ThreadsPerCore TmpDisk
        Weight TRESWeights RestrictedCoresPerGPU Topology SuspendTime Parameters GresConf""",
    "PartitionName": """
        AllocNodes AllowAccounts AllowGroups AllowQos Alternate CpuBind Default DefaultTime DefCpuPerGPU DefMemPerCPU
        DefMemPerGPU DefMemPerNode DenyAccounts DenyQos DisableRootJobs Exclusive ExclusiveTopo ExclusiveUser GraceTime
        Hidden LLN MaxCPUsPerNode MaxCPUsPerSocket MaxMemPerCPU MaxMemPerNode MaxNodes MaxTime MinNodes Nodes
        OverSubscribe OverTimeLimit PartitionName PowerDownOnIdle PreemptMode Priority PriorityJobFactor PriorityTier
        QOS ReqResv ResumeTimeout RootOnly SelectTypeParameters Shared State SuspendTime SuspendTimeout Topology
        TRESBillingWeights""",
    "DownNodes": "DownNodes Reason State",
    "FrontendName": "AllowGroups AllowUsers DenyGroups DenyUsers FrontendName FrontendAddr Port Reason State",
    "NodeSet": "Feature Nodes NodeSet",
    "gres.conf": "AutoDetect Count Cores File Flags Links MultipleFiles Name NodeName Type",
    "topology.conf": "SwitchName Switches Nodes LinkSpeed BlockName BlockSizes",
}


def listed(table: Keys) -> dict[str, str]:
    """Return the list of each key of a table: an error if it is in two."""
    found: dict[str, str] = dict.fromkeys(table.flags, "by words")
    for kind, lists in (("modelled", table.modelled.values()), ("harmless", table.harmless.values())):
        for name in (name for names in lists for name in words(names)):
            assert name not in found, f"{table.title}: {name} is in two lists"
            found[name] = kind
    for name in (name for names in table.changes for name in words(names)):
        assert found.get(name) in (None, "modelled"), f"{table.title}: {name} is in two lists"
        found.setdefault(name, "named")
    return found


def test_all_keys_of_slurm_conf_are_known() -> None:
    assert len(OF_22) == len({*OF_22}) == 209
    assert [name for name in OF_22 + OF_OTHERS if name not in SLURM_CONF] == []
    by_title = {table.title: table for table in TABLES}
    assert {
        title: [name for name in words(names) if name not in by_title[title]] for title, names in LINES.items()
    } == {title: [] for title in LINES}


def test_each_key_is_in_one_list() -> None:
    assert all(listed(table) for table in TABLES)


def test_the_page_has_the_tables() -> None:
    assert PAGE.read_text("utf-8") == written(), "python -m tests.site.helpers.slurm_keys writes it"


# ---------------------------------------------------------------------- slurm.conf


def of_conf(*lines: str) -> Described:
    return described(read_conf("\n".join(lines)), own_loops=True)


def named(found: Described) -> set[str]:
    return {each.what for each in found.unsupported}


def same(one: Described, other: Described) -> bool:
    """Whether two are alike but for their notes."""
    return (one.spec, one.policy, one.options) == (other.spec, other.policy, other.options)


SETTINGS = {
    "SchedulerType": "sched/builtin",
    "CompleteWait": "8",
    "Epilog": "/bin/true",
    "PriorityType": "priority/multifactor",
    **dict.fromkeys(words("PriorityWeightAge PriorityWeightAssoc PriorityWeightFairShare PriorityWeightJobSize"), "10"),
    **dict.fromkeys(words("PriorityWeightPartition PriorityWeightQOS"), "10"),
    "PriorityWeightTRES": "CPU=10",
    "PriorityMaxAge": "1-0",
    "PriorityCalcPeriod": "1",
    "PriorityDecayHalfLife": "1-0",
    "PriorityFavorSmall": "YES",
    "FairShareDampeningFactor": "5",
    "AccountingStorageType": "accounting_storage/none",
    "AccountingStorageEnforce": "limits",
    "OverTimeLimit": "5",
    "KillWait": "5",
    "SelectType": "select/cons_tres",
    "TopologyPlugin": "topology/tree",
    **dict.fromkeys(words("DefMemPerCPU DefMemPerNode MaxMemPerCPU MaxMemPerNode"), "100"),
    "PreemptType": "preempt/partition_prio",
    "PreemptMode": "CANCEL",
    "PreemptExemptTime": "60",
    "JobRequeue": "0",
    "ClusterName": "other",
    "Licenses": "matlab:2",
    "SuspendTime": "300",
    "SuspendTimeout": "90",
    "SuspendExcNodes": "n1",
    "SuspendExcParts": "a",
    "SuspendProgram": "/bin/false",
    "ResumeProgram": "/bin/true",
    "ResumeTimeout": "90",
}
"""A value of each modelled key that changes something."""
SLEEP = ["SuspendTime=600", "SuspendProgram=/bin/false", "ResumeProgram=/bin/true"]
BESIDE = {
    "AccountingStorageType": ["PriorityWeightAge=10"],
    "TopologyPlugin": ["SwitchName=s1 Nodes=n[1-2]"],
    **{
        name: [line for line in SLEEP if not line.startswith(f"{name}=")]
        for name in SETTINGS
        if name[:2] in ("Su", "Re")
    },
}
"""Lines without which a value would change nothing."""


def settings_with(name: str, value: str) -> tuple[Described, Described]:
    """Return what is read without a setting and with it."""
    others = [line for line in BASE if not line.startswith(f"{name}=")]
    if name == "SelectType":  # it decides on memory where nothing else does
        others = [line for line in others if "SelectTypeParameters" not in line]
    lines = [*others, NODES, PARTS, *BESIDE.get(name, [])]
    return of_conf(*lines), of_conf(*lines, f"{name}={value}")


def test_each_setting_is_modelled_harmless_or_named() -> None:
    lists = listed(SLURM_CONF)
    assert {name for name, kind in lists.items() if kind == "modelled"} == SETTINGS.keys()
    for name, kind in lists.items():
        before, after = settings_with(name, SETTINGS.get(name, ODD))
        if kind == "modelled":
            assert not same(before, after), name
            assert not {what for what in named(after) if what.startswith(f"{name}=")} or name == "OverTimeLimit", name
        elif kind == "harmless":
            assert same(before, after), name
            assert named(before) == named(after), name
        else:
            assert [what for what in named(after) if what.startswith((f"{name}={ODD}", f"{name} {ODD}"))], name


def test_values_that_change_nothing_are_not_named() -> None:
    usual = """
        SuspendTime=-1 SuspendTime=INFINITE ResvOverRun=0 PreemptMode=OFF PreemptMode=SUSPEND,GANG MCSPlugin=mcs/none
        EpilogMsgTime=2000 FastSchedule=1 SwitchType=switch/none PriorityUsageResetPeriod=NONE BurstBufferType=(null)
        JobSubmitPlugins=logging,require_timelimit AccountingStorageEnforce=associations,qos
        TopologyPlugin=topology/none SelectTypeParameters=CR_Core_Memory,CR_CORE_DEFAULT_DIST_BLOCK
        PriorityFlags=CALCULATE_RUNNING SlurmctldParameters=enable_configless,idle_on_node_suspend max_rpc_cnt=0
    """
    base = named(of_conf(*BASE, NODES, PARTS))
    for line in words(usual):
        name = line.partition("=")[0]
        line = f"SchedulerParameters={line}" if name.islower() else line
        assert named(of_conf(*BASE, NODES, PARTS, line)) <= base | {"limits of associations"}, line


@pytest.mark.parametrize(
    "line",
    words(
        """
        SelectTypeParameters=CR_Core_Memory,CR_Pack_Nodes SelectTypeParameters=CR_Core,CR_ONE_TASK_PER_CORE
        SelectTypeParameters=CR_Core,CR_New PreemptMode=GANG TopologyParam=Dragonfly TopologyParam=TopoOptional
        PrioritySiteFactorPlugin=priority_site_factor/own BurstBufferType=burst_buffer/lua SelectType=select/cray_aries
        SchedulerParameters=bf_new=3 SlurmctldParameters=max_powered_nodes=9 PriorityFlags=NO_NORMAL_TRES NewKey=5
        SelectTypeParameters=CR_Socket_Memory PreemptParameters=reclaim_licenses SchedulerType=sched/wiki2
        """
    ),
)
def test_values_and_words_that_change_starts_are_named(line: str) -> None:
    name, _, value = line.partition("=")
    last = value.rpartition(",")[2]
    sign = " " if name == "SchedulerParameters" else "="
    others = [each for each in BASE if not each.startswith(f"{name}=")]
    found = named(of_conf(*others, NODES, PARTS, line))
    assert {f"{name}{sign}{last}"} <= found


def test_one_task_per_core_is_harmless_where_cores_have_one_thread() -> None:
    lines = ["SelectType=select/cons_tres", "SelectTypeParameters=CR_Core,CR_ONE_TASK_PER_CORE", PARTS]
    assert named(of_conf(*lines, "NodeName=n[1-4] CPUs=8")) == set()


def test_keys_are_known_in_any_case() -> None:
    lines = ["selecttype=select/linear", "selecttypeparameters=cr_memory", "nodename=n[1-4] cpus=8 corespeccount=2"]
    found = of_conf(*lines, "partitionname=a nodes=n[1-4] oversubscribe=exclusive")
    assert found.spec.processors == 24
    assert found.spec.partitions[0].exclusive
    assert named(found) == {"SelectType=select/linear"}


# ---------------------------------------------------------------------- lines of slurm.conf

OF_NODES = {
    "NodeName": "n[1-3]",
    "CPUs": "4",
    "Procs": "4",
    "Boards": "2",
    "SocketsPerBoard": "4",
    "Sockets": "4",
    "CoresPerSocket": "4",
    "ThreadsPerCore": "1",
    "CoreSpecCount": "1",
    "CPUSpecList": "0-3",
    "RealMemory": "5000",
    "MemSpecLimit": "100",
    "Gres": "gpu:2",
    "Feature": "big",
    "Features": "big",
    "Weight": "5",
    "State": "FUTURE",
}
"""A value of each modelled key of nodes that changes something."""
OF_PARTITIONS = {
    "PartitionName": "c",
    "Nodes": "n1",
    "Default": "NO",
    "LLN": "YES",
    "OverSubscribe": "EXCLUSIVE",
    "Shared": "EXCLUSIVE",
    "Exclusive": "NODE",
    "MaxTime": "60",
    "DefaultTime": "60",
    "MaxNodes": "1",
    "MinNodes": "2",
    "QoS": "special",
    **dict.fromkeys(words("DefMemPerCPU DefMemPerNode MaxMemPerCPU MaxMemPerNode"), "100"),
    **dict.fromkeys(words("Priority PriorityJobFactor PriorityTier"), "5"),
    "TRESBillingWeights": "CPU=2",
    "PreemptMode": "CANCEL",
    "GraceTime": "30",
    **dict.fromkeys(words("SuspendTime SuspendTimeout ResumeTimeout"), "900"),
}
"""A value of each modelled key of partitions that changes something, but of ``State``."""


def line_with(line: str, name: str, value: str) -> str:
    """Return a line with a key of this value."""
    found = [each for each in words(line) if not each.startswith(f"{name}=")]
    return " ".join([f"{name}={value}", *found] if name == "PartitionName" else [*found, f"{name}={value}"])


def node_lines(name: str, value: str) -> tuple[str, str]:
    """Return a line of nodes without a key and with it."""
    if name == "NodeName":
        return NODES, NODES.replace("n[1-4]", value)
    if name in ("Boards", "SocketsPerBoard"):
        start = "NodeName=n[1-4] CoresPerSocket=2 SocketsPerBoard=1 RealMemory=4000"
    elif name == "Procs":
        start = NODES.replace("CPUs=8 ", "")
    else:
        start = NODES if name == "CPUs" or "Spec" in name else NODES.replace("CPUs=8 ", "")
    return start, line_with(start, name, value)


def test_each_key_of_nodes_is_modelled_harmless_or_named() -> None:
    lists = listed(NODE)
    assert {name for name, kind in lists.items() if kind == "modelled"} == OF_NODES.keys()
    part = "PartitionName=a Nodes=ALL Default=YES"
    second = "NodeName=m1 CPUs=2"
    for name, kind in lists.items():
        one, other = node_lines(name, OF_NODES.get(name, ODD))
        before, after = (of_conf(*BASE, line, second, part) for line in (one, other))
        if kind == "named":
            notes = [each for each in after.unsupported if each.what == f"{name}={ODD}"]
            assert [each.where for each in notes] == ["nodes n[1-4]"], name
        else:
            assert same(before, after) == (kind == "harmless"), name
            assert named(after) == named(before), name
    unknown = of_conf(*BASE, f"{NODES} NewKey=3", part)
    assert [str(each) for each in unknown.unsupported] == ["nodes n[1-4]: NewKey=3 (unknown key: may change starts)"]


def test_each_key_of_partitions_is_modelled_harmless_or_named() -> None:
    lists = listed(PARTITION)
    assert {name for name, kind in lists.items() if kind == "modelled"} == {*OF_PARTITIONS, "State"}
    others = ["PreemptType=preempt/partition_prio", "PreemptMode=REQUEUE", "AccountingStorageEnforce=limits"]
    part = "PartitionName=b Nodes=n[1-2] Default=YES"
    for name, kind in lists.items():
        value = OF_PARTITIONS.get(name, ODD)
        before, after = (
            of_conf(*BASE, *others, *SLEEP, NODES, line, "PartitionName=z Nodes=n[1-4]")
            for line in (part, line_with(part, name, value))
        )
        if kind == "named" or name == "State":
            notes = [each for each in after.unsupported if each.what.lower() == f"{name}={value}".lower()]
            assert [each.where for each in notes] == ["partition b"], name
        else:
            assert same(before, after) == (kind == "harmless"), name
            assert named(after) - named(before) <= {"QoS=special", "SuspendTime=600"}, name
    unknown = of_conf(*BASE, NODES, f"{PARTS} NewKey=3")
    assert [str(each) for each in unknown.unsupported] == ["partition a: NewKey=3 (unknown key: may change starts)"]


@pytest.mark.parametrize(
    ("table", "line"),
    [
        (DOWN_NODES, "DownNodes=n1 State=DOWN"),
        (NODE_SET, "NodeSet=few Nodes=n1"),
        (FRONTEND, "FrontendName=login"),
        (TOPOLOGY, "SwitchName=s1 Nodes=n1"),
    ],
)
def test_each_key_of_other_lines_is_modelled_harmless_or_named(table: Keys, line: str) -> None:
    first = line.partition("=")[0]
    before = named(of_conf(*BASE, NODES, PARTS, line))
    for name, kind in [*listed(table).items(), ("NewKey", "named")]:
        if name in line or (first == "SwitchName" and name in ("BlockName", "BlockSizes")):
            continue
        after = of_conf(*BASE, NODES, PARTS, f"{line} {name}={ODD}")
        new = named(after) - before - {f"State=DOWN: {ODD}"}  # the reason stands beside the state
        assert new == ({f"{name}={ODD}"} if kind == "named" else set()), name
        where = [each.where for each in after.unsupported if each.what == f"{name}={ODD}"]
        assert where == [line.partition(" ")[0].replace("=", " ")] * (kind == "named"), name


def test_blocks_of_nodes_are_named() -> None:
    found = of_conf(*BASE, NODES, PARTS, "BlockName=b1 Nodes=n[1-2]", "BlockSizes=2")
    assert named(found) == {"BlockName=b1", "BlockSizes=2"}


def test_each_key_of_gres_conf_is_modelled_harmless_or_named() -> None:
    for name, kind in [*listed(GRES).items(), ("NewKey", "named")]:
        value = "4" if name == "Count" else ODD
        found = read_gres(f"NodeName=n1 Name=gpu {name}={value}".replace("Name=gpu Name", "Name"))
        assert [each.what for each in found.unread] == ([f"{name}={ODD}"] if kind == "named" else []), name


# ---------------------------------------------------------------------- reports

SHOWN = {
    "NodeName": (SHOW_NODE, "NodeName=n1 CPUTot=4 RealMemory=2000 State=IDLE"),
    "PartitionName": (SHOW_PARTITION, "PartitionName=a Nodes=n1 MaxTime=UNLIMITED State=UP"),
    "ReservationName": (
        RESERVATION,
        "ReservationName=r StartTime=2026-01-01T00:00:00 EndTime=2026-01-02T00:00:00 Nodes=n1",
    ),
}


def others_of(site: Site) -> Iterator[str]:
    """Yield the keys that the records of a site keep."""
    for records in (site.nodes, site.partitions, site.reservations):
        for record in records or ():
            yield from record.others


@pytest.mark.parametrize("kind", SHOWN)
def test_each_key_of_reports_is_modelled_harmless_or_kept_for_a_note(kind: str) -> None:
    table, text = SHOWN[kind]
    for name, of in [*listed(table).items(), ("NewKey", "named")]:
        if of == "modelled" or name in text:
            continue
        found = {*others_of(read_scontrol(f"{text} {name}={ODD}"))}
        assert found == ({name} if of == "named" else set()), name


def test_free_texts_are_no_keys() -> None:
    text = "NodeName=n1 CPUTot=4 RealMemory=2000 State=IDLE Reason=a disk NewKey=3 [root@2026-01-01T00:00:00]\n"
    assert not [*others_of(read_scontrol(text))]


def test_what_a_report_of_settings_tells_of_daemons_is_known() -> None:
    """All lines of the report of slurmctld 22.05.8 with its defaults, but those of ``OF_22``."""
    more = words("BOOT_TIME HASH_VAL JobDefaults MULTIPLE_SLURMD NEXT_JOB_ID SLURM_CONF SLURM_VERSION UsePam")
    assert [name for name in more if name not in SHOW_CONFIG] == []
    text = "Configuration data as of 2026-01-01T00:00:00\n" + "".join(f"{name} = (null)\n" for name in OF_22 + more)
    site = read_scontrol(f"{text}SlurmctldHost[0] = head(127.0.0.1)\n\nCgroup Support Configuration:\nNewKey = 3\n")
    assert SlurmConf.of(site.settings or {}).unread == ()
    odd = read_scontrol(text.replace("ResvOverRun = (null)", "ResvOverRun = 5 min\nNewKey = 3"))
    assert SlurmConf.of(odd.settings or {}).unread == ("ResvOverRun=5 min", "NewKey=3")


def test_each_key_of_dumps_and_qos_is_modelled_harmless_or_named() -> None:
    for name, kind in [*listed(DUMP).items(), ("NewKey", "named")]:
        notes = Notes()
        read_dump(f"Cluster - 'c'\nParent - 'root'\nAccount - 'a':{name}='1'", "dump", notes)
        assert [(each.where, each.what) for each in notes] == [("account a", f"{name}=1")] * (kind == "named"), name
    for name, kind in [*listed(QOS).items(), ("NewKey", "named")]:
        if name != "Name" and kind != "by words":
            notes = Notes()
            read_qos(f"Name|{name}\nq|9", "qos", notes)
            assert [(each.where, each.what) for each in notes] == [("QOS q", f"{name}=9")] * (kind == "named"), name
    notes = Notes()
    read_qos("Name|Flags|LimitFactor\nq|DenyOnLimit,PartitionMaxNodes,NewFlag|1.000000", "qos", notes)
    assert [each.what for each in notes] == ["Flags=PartitionMaxNodes", "Flags=NewFlag"]
