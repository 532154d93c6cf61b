"""What ``scontrol show ...`` of Slurm 22.05 prints about a small cluster, as texts and, in flat JSON, as answers."""

from typing import Any

CONFIG = """\
Configuration data as of 2026-11-22T12:29:03
AccountingStorageEnforce = none
ClusterName             = alps
CompleteWait            = 0 sec
EnforcePartLimits       = NO
Licenses                = matlab:10,fluent@server:4
OverTimeLimit           = 2 min
PreemptMode             = OFF
PreemptType             = preempt/none
PriorityParameters      = (null)
PriorityDecayHalfLife   = 14-00:00:00
PriorityFavorSmall      = Yes
PriorityFlags           = 
PriorityMaxAge          = 3-00:00:00
PriorityUsageResetPeriod = NONE
PriorityType            = priority/multifactor
PriorityWeightAge       = 1000
PriorityWeightAssoc     = 0
PriorityWeightFairShare = 0
PriorityWeightJobSize   = 500
PriorityWeightPartition = 2000
PriorityWeightTRES      = (null)
SchedulerParameters     = bf_interval=20,bf_max_job_test=200
SchedulerType           = sched/backfill
SelectType              = select/cons_tres
SelectTypeParameters    = CR_CORE_MEMORY
SlurmctldHost[0]        = head(127.0.0.1)
SLURM_VERSION           = 22.05.8
TopologyPlugin          = topology/tree

Slurmctld(primary) at head is UP
"""  # noqa: W291


def _node(name: str, state: str, part: str, *, cpus: int, threads: int, memory: int, **more: str) -> str:
    given = {"Gres": "(null)", "Features": "(null)", "Weight": "1", "Kept": "", "Reason": "", **more}
    usable = cpus - (4 if given["Kept"] else 0)
    return f"""\
NodeName={name} Arch=x86_64 CoresPerSocket={cpus // threads // 2} 
   CPUAlloc=0 CPUEfctv={usable} CPUTot={cpus} CPULoad=N/A
   AvailableFeatures={given["Features"]}
   ActiveFeatures={given["Features"]}
   Gres={given["Gres"]}
   NodeAddr=127.0.0.1 NodeHostName={name} Version=22.05.8
   OS=Linux 6.1.0-18-amd64 #1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1 (2024-02-01) 
   RealMemory={memory} AllocMem=0 FreeMem=N/A Sockets=2 Boards=1
{given["Kept"]}   State={state} ThreadsPerCore={threads} TmpDisk=0 Weight={given["Weight"]} Owner=N/A MCS_label=N/A
   Partitions={part} 
   BootTime=None SlurmdStartTime=None
   LastBusyTime=Unknown
   CfgTRES=cpu={usable},mem={memory}M,billing={usable}
   AllocTRES=
   CapWatts=n/a
   CurrentWatts=0 AveWatts=0
   ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s
{given["Reason"]}
"""  # noqa: W291


_THIN: dict[str, Any] = {"threads": 2, "cpus": 32, "memory": 64000}
_STAMP = "[root@2026-11-22T12:29:03]"
_KEPT = "   CoreSpecCount=2 MemSpecLimit=1000\n"
NODES = "".join(
    [
        _node("cn01", "IDLE", "batch,debug", **_THIN),
        _node("cn02", "MIXED", "batch,debug", **_THIN),
        _node("cn03", "IDLE+DRAIN", "batch", Reason=f"   Reason=a fan [x] State=IDLE {_STAMP}\n", **_THIN),
        _node("cn04", "DOWN*", "batch", Reason=f"   Reason=two {_STAMP}\n          lines\n", **_THIN),
        _node("gpu1", "IDLE", "gpu", cpus=32, threads=1, memory=256000, Gres="gpu:a100:4(S:0-1),shard:16", Weight="10"),
        _node("gpu2", "IDLE", "gpu", cpus=32, threads=1, memory=256000, Gres="gpu:a100:4(S:0-1),shard:16", Weight="10"),
        _node("cn09", "IDLE", "batch", Features="big", Weight="5", Kept=_KEPT, **_THIN),
        _node("viz", "IDLE", "viz", cpus=4, threads=1, memory=16000, Gres="gpu:k80:1,gpu:a100:1"),
    ]
)

PARTITIONS = """\
PartitionName=batch
   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
   AllocNodes=ALL Default=YES QoS=N/A
   DefaultTime=01:00:00 DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO
   MaxNodes=4 MaxTime=1-00:00:00 MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED
   Nodes=cn[01-04,09]
   PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO
   OverTimeLimit=NONE PreemptMode=OFF
   State=UP TotalCPUs=160 TotalNodes=5 SelectTypeParameters=NONE
   JobDefaults=(null)
   DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED
   TRES=cpu=156,mem=312.50G,node=5,billing=156

PartitionName=debug
   AllowGroups=ALL AllowAccounts=staff,ops AllowQos=ALL
   AllocNodes=ALL Default=NO QoS=N/A
   DefaultTime=NONE DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO
   MaxNodes=UNLIMITED MaxTime=00:30:00 MinNodes=1 LLN=NO MaxCPUsPerNode=UNLIMITED
   Nodes=cn[01-02]
   PriorityJobFactor=10 PriorityTier=3 RootOnly=NO ReqResv=NO OverSubscribe=NO
   OverTimeLimit=NONE PreemptMode=OFF
   State=UP TotalCPUs=64 TotalNodes=2 SelectTypeParameters=NONE
   JobDefaults=(null)
   DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED
   TRES=cpu=64,mem=125G,node=2,billing=64

PartitionName=gpu
   AllowGroups=ALL AllowAccounts=ALL DenyQos=low
   AllocNodes=ALL Default=NO QoS=N/A
   DefaultTime=NONE DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO
   MaxNodes=1 MaxTime=UNLIMITED MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED
   Nodes=gpu[1-2]
   PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=EXCLUSIVE
   OverTimeLimit=NONE PreemptMode=OFF
   State=UP TotalCPUs=64 TotalNodes=2 SelectTypeParameters=NONE
   JobDefaults=(null)
   DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED
   TRES=cpu=64,mem=500G,node=2,billing=64

PartitionName=viz
   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
   AllocNodes=ALL Default=NO QoS=N/A
   DefaultTime=NONE DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO
   MaxNodes=UNLIMITED MaxTime=04:00:00 MinNodes=0 LLN=YES MaxCPUsPerNode=UNLIMITED
   Nodes=viz
   PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO
   OverTimeLimit=NONE PreemptMode=OFF
   State=DOWN TotalCPUs=4 TotalNodes=1 SelectTypeParameters=NONE
   JobDefaults=(null)
   DefMemPerNode=UNLIMITED MaxMemPerCPU=4000
   TRES=cpu=4,mem=16000M,node=1,billing=4
"""

RESERVATIONS = """\
ReservationName=course StartTime=2030-01-01T08:00:00 EndTime=2030-01-01T12:00:00 Duration=04:00:00
   Nodes=cn[03-04] NodeCnt=2 CoreCnt=32 Features=(null) PartitionName=(null) Flags=SPEC_NODES
   TRES=cpu=64
   Users=ada,bob,ada Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a
   MaxStartDelay=(null)

ReservationName=lic StartTime=2030-03-01T00:00:00 EndTime=2030-03-01T01:00:00 Duration=01:00:00
   Nodes=(null) NodeCnt=0 CoreCnt=0 Features=(null) PartitionName=(null) Flags=ANY_NODES
   TRES=(null)
   Users=ada Groups=(null) Accounts=(null) Licenses=matlab:5 State=INACTIVE BurstBuffer=(null) Watts=n/a
   MaxStartDelay=(null)

ReservationName=service StartTime=2030-02-01T00:00:00 EndTime=2030-02-02T00:00:00 Duration=1-00:00:00
   Nodes=gpu[1-2],viz NodeCnt=3 CoreCnt=68 Features=(null) PartitionName=(null) Flags=MAINT,SPEC_NODES
   TRES=cpu=68
   Users=root Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a
   MaxStartDelay=(null)

ReservationName=partly StartTime=2030-02-01T06:00:00 EndTime=2030-02-01T08:00:00 Duration=02:00:00
   Nodes=gpu1 NodeCnt=1 CoreCnt=4 Features=(null) PartitionName=gpu Flags=OVERLAP,SPEC_NODES
     NodeName=gpu1 CoreIDs=0-3
   TRES=cpu=4
   Users=(null) Groups=(null) Accounts=-staff Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a
   MaxStartDelay=(null)
"""

LICENCES = """\
LicenseName=fluent@server
    Total=4 Used=0 Free=4 Reserved=0 Remote=no
LicenseName=matlab
    Total=10 Used=2 Free=3 Reserved=5 Remote=no
"""

TOPOLOGY = """\
SwitchName=leaf0 Level=0 LinkSpeed=1 Nodes=cn[01-03]
SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=cn[04,09]
SwitchName=top Level=1 LinkSpeed=1 Nodes=cn[01-04,09] Switches=leaf[0-1]
"""

TEXTS = {
    "config": CONFIG,
    "node": NODES,
    "partition": PARTITIONS,
    "reservation": RESERVATIONS,
    "license": LICENCES,
    "topology": TOPOLOGY,
}
"""By what ``scontrol show`` shows."""


def one_line(text: str) -> str:
    """Return records as ``--oneliner`` prints them."""
    lines: list[str] = []
    for line in text.splitlines():
        if line and not line.startswith(" "):
            lines.append(line)
        elif line.strip():
            lines[-1] += f" {line.strip()}"
    return "".join(f"{line}\n" for line in lines)


def answer(parser: str, **told: Any) -> dict[str, Any]:
    """Return an answer in JSON of a data parser, or of the flat plug-in v0.0.38."""
    plugin = {"type": f"openapi/{parser}"} if parser == "v0.0.38" else {"data_parser": f"data_parser/{parser}"}
    return {"meta": {"plugin": plugin, "Slurm": {"release": "22.05.8"}}, "errors": [], **told}


FLAT_NODE = {
    "name": "viz",
    "cpus": 4,
    "cores": 4,
    "sockets": 1,
    "threads": 1,
    "real_memory": 16000,
    "gres": "gpu:k80:1,gpu:a100:1",
    "state": "idle",
    "state_flags": ["DRAIN"],
    "features": "",
    "partitions": ["viz"],
    "reason": "a fan",
    "weight": 1,
}
FLAT_PARTITION = {
    "flags": ["default", "least_loaded_nodes"],
    "allowed_accounts": "",
    "allowed_qos": "",
    "default_memory_per_cpu": None,
    "default_time_limit": 30,
    "maximum_cpus_per_node": -1,
    "maximum_memory_per_cpu": 4000,
    "maximum_nodes_per_job": -1,
    "max_time_limit": 240,
    "min nodes per job": 0,
    "name": "viz",
    "nodes": "viz",
    "over_time_limit": None,
    "priority_job_factor": 1,
    "priority_tier": 2,
    "qos": "",
    "state": "DOWN",
    "tres": "cpu=4,mem=16000M,node=1,billing=4",
}
FLAT_RESERVATION = {
    "flags": ["MAINT", "SPEC_NODES"],
    "accounts": "",
    "end_time": 1896138000,
    "start_time": 1896134400,
    "licenses": "",
    "name": "service",
    "node_list": "viz",
    "partition": "",
    "tres": "cpu=4",
    "users": "root",
}
FLAT_LICENCE = {"LicenseName": "matlab", "Total": 10, "Used": 0, "Free": 10, "Reserved": 0, "Remote": False}
FLAT_JOB = {
    "job_id": 2,
    "job_state": "PENDING",
    "state_reason": "JobHeldUser",
    "array_job_id": None,
    "array_task_id": None,
    "array_task_string": "",
    "submit_time": 1795350608,
    "start_time": 0,
    "end_time": 0,
    "time_limit": 20,
    "cpus": 4,
    "tasks": 4,
    "node_count": 1,
    "max_nodes": 1,
    "nodes": "",
    "partition": "gpu",
    "user_name": "ada",
    "account": "",
    "qos": "",
    "priority": 0,
    "name": "wrap",
    "dependency": "",
    "licenses": "matlab:2",
    "memory_per_cpu": None,
    "memory_per_node": 2048,
    "tres_req_str": "cpu=4,mem=250G,node=1,billing=4",
    "tres_per_node": "gres:gpu:a100:2",
}
