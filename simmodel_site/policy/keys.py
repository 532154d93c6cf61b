"""What is known of each setting of Slurm: modelled, harmless, or such that it may change starts.

Sources: slurm.conf(5), gres.conf(5), topology.conf(5), scontrol(1) and sacctmgr(1) of Slurm 22.05, the names that other
releases from 2.6 to 25.11 read, and what slurmctld 22.05.8 does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import attrs

from simmodel.extending import Fields

__all__ = [
    "DOWN_NODES",
    "DUMP",
    "FRONTEND",
    "GRES",
    "LICENCE",
    "NODE",
    "NODE_SET",
    "PARTITION",
    "QOS",
    "RESERVATION",
    "SHOW_CONFIG",
    "SHOW_NODE",
    "SHOW_PARTITION",
    "SHOW_TOPOLOGY",
    "SLURM_CONF",
    "TABLES",
    "TOPOLOGY",
    "Keys",
    "is_unset",
]

_OUT = "may change starts: policy slurm leaves it out"
_ANY = ".*"


def is_unset(text: str) -> bool:
    """Whether a value stands for none.

    >>> is_unset("(null)"), is_unset("N/A"), is_unset("0")
    (True, True, False)
    """
    return text.strip().lower() in ("", "(null)", "(null type)", "n/a", "none", "not_set", "unknown")


@attrs.frozen(repr=False)
class Keys(Fields):
    """The keys of a file, or of a kind of line; each is in one of three lists. Case does not matter.

    Parameters
    ----------
    title
        the file, or the kind of line
    modelled
        keys that are modelled, by what they decide, separated by spaces
    harmless
        keys that change no start, by the reason
    changes
        by keys: a pattern of the values that change no start or are modelled, and what any other value does. Keys that
        are modelled as well are so for the values of the pattern alone
    flags
        by key: what is known of each word in its value
    sign
        between the title and such a word

    >>> keys = Keys("x.conf", {"size": "Nodes"}, {"of logs": "LogFile Debug"}, {"Weights": ("0|no", "no weights here")})
    >>> keys.why("logfile", "a.log"), keys.why("Weights", "NO"), keys.why("Weights", "5"), keys.why("Nodez", "1")
    (None, None, 'no weights here', 'unknown key: may change starts')
    >>> list(keys.named({"Nodes": "n1", "Weights": "5"}))
    [('Weights=5', 'no weights here')]
    """

    title: str
    modelled: Mapping[str, str]
    harmless: Mapping[str, str]
    changes: Mapping[str, tuple[str, str]] = attrs.field(factory=dict)
    flags: Mapping[str, Keys] = attrs.field(factory=dict)
    sign: str = "="
    _known: Mapping[str, tuple[str, str, str]] = attrs.field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        listed = [*self.modelled.values(), *self.harmless.values()]
        known = {name.lower(): (name, _ANY, "") for names in listed for name in names.split()}
        known |= {name.lower(): (name, _ANY, "") for name in self.flags}
        known |= {name.lower(): (name, *usual) for names, usual in self.changes.items() for name in names.split()}
        object.__setattr__(self, "_known", known)

    def more(self, title: str, harmless: Mapping[str, str], modelled: Mapping[str, str] | None = None) -> Keys:
        """Return these keys with more harmless and modelled ones: of a report that has those of a file and others."""
        more = {**self.modelled, **(modelled or {})}
        return attrs.evolve(self, title=title, harmless={**self.harmless, **harmless}, modelled=more)

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._known

    def proper(self, name: str) -> str:
        """Return a key as it is written here; one that is unknown as it is.

        >>> NODE.proper("cpuspeclist"), NODE.proper("cpuz")
        ('CPUSpecList', 'cpuz')
        """
        return self._known.get(name.lower(), (name, "", ""))[0]

    def why(self, name: str, value: str) -> str | None:
        """Return what a value changes that is not modelled, or that the key is unknown; ``None``: nothing."""
        _, pattern, why = self._known.get(name.lower().partition("[")[0], ("", "", "unknown key: may change starts"))
        bare = re.sub(r" (usec|sec|min)$", "", value.strip())
        return None if pattern == _ANY or is_unset(bare) or re.fullmatch(pattern, bare, re.IGNORECASE) else why

    def named(self, pairs: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Yield the keys and flags that may change a start, each with its value, and what that does."""
        flags = {name.lower(): keys for name, keys in self.flags.items()}
        for name, value in pairs.items():
            inner = flags.get(name.lower())
            if inner is None and (why := self.why(name, value)) is not None:
                yield f"{name}={value}", why
            for word in value.split(",") if inner is not None and not is_unset(value) else ():
                flag, _, given = (each.strip() for each in word.partition("="))
                if inner is not None and flag and (why := inner.why(flag, given or "set")) is not None:
                    yield f"{inner.title}{inner.sign}{word.strip()}", why


_GPU_DEFAULT = "defaults of jobs with GPUs are not applied"
_WHO = "who may run there is not checked"
_NOT_MODELLED = ("", "not modelled")

SCHEDULER = Keys(
    "SchedulerParameters",
    modelled={
        "main loop": """
            batch_sched_delay default_queue_depth partition_job_depth sched_interval sched_max_job_start
            assoc_limit_stop defer max_switch_wait""",
        "backfill loop": """
            bf_interval bf_max_job_array_resv bf_max_job_assoc bf_max_job_part bf_max_job_start bf_max_job_test
            bf_max_job_user bf_max_job_user_part bf_max_time bf_min_age_reserve bf_min_prio_reserve
            bf_node_space_size bf_resolution bf_window bf_window_linear""",
        "preemption": "preempt_reorder_count preempt_strict_order preempt_youngest_first",
    },
    harmless={
        "of submissions": """
            allow_zero_lic correspond_after_task_cnt enable_user_top ignore_constraint_validation
            ignore_prefer_validation kill_invalid_depend max_array_tasks max_depend_depth max_script_size
            max_submit_line_size""",
        "of steps and of sizes that users change": """
            disable_hetjob_steps disable_job_shrink enable_hetjob_steps step_retry_count step_retry_time""",
        "of failures and backups": """
            no_backup_scheduling no_env_cache nohold_on_prolog_fail requeue_setup_env_fail""",
        "of the launch of jobs that have started": "salloc_wait_nodes sbatch_wait_nodes",
        "which cores of a node": "spec_cores_first",
        "of commands": "enable_job_state_cache",
        "the default": "whole_hetjob whole_pack",
    },
    changes={
        """
            bb_array_stage_cnt bf_allow_magnetic_slot bf_busy_nodes bf_hetjob_immediate bf_hetjob_prio bf_licenses
            bf_one_resv_per_job bf_running_job_reserve bf_topopt_enable bf_topopt_iterations defer_batch
            extra_constraints Ignore_NUMA pack_serial_at_end reduce_completing_frag
            time_min_as_soft_limit""": ("", _OUT),
        "bf_job_part_count_reserve delay_boot": ("0", _OUT),
        "bf_continue bf_yield_interval bf_yield_sleep": ("", "cycles are not interrupted here, however long they take"),
        "build_queue_timeout": ("", "queues are built at once here"),
        "default_gbytes": ("", "memory without a unit is taken as MB"),
        "max_rpc_cnt": ("0", "no other requests are served here"),
        "max_sched_time": ("", "the main loop takes no time here"),
        "sched_interval": ("\\d+", "the main loop runs every 60 s here"),
        "sched_min_interval": ("", "the main loop runs at turns of a second here"),
    },
    sign=" ",
)
"""The words of SchedulerParameters."""

_SELECT = Keys(
    "SelectTypeParameters",
    modelled={
        "what jobs get whole": "CR_CPU CR_CPU_Memory CR_Core CR_Core_Memory CR_Memory",
        "which nodes": "CR_LLN",
        "which sockets": "CR_CORE_DEFAULT_DIST_BLOCK",
    },
    harmless={
        "of Cray's plug-in, which adds to the others": "OTHER_CONS_RES OTHER_CONS_TRES",
        "of checks of nodes by Cray's plug-in": "NHC_NO NHC_NO_STEPS NHC_ABSOLUTELY_NO",
    },
    changes={
        "CR_ONE_TASK_PER_CORE": ("", "tasks get threads, not cores"),
        "CR_Socket CR_Socket_Memory": (
            "",
            "where a number of nodes is asked for, tasks of several CPUs count as tasks of one CPU",
        ),
        "CR_Pack_Nodes": ("", "the CPUs of a job are not packed on its first nodes"),
        "ENFORCE_BINDING_GRES": ("", "GPUs and cores of a node are chosen separately"),
        "LL_SHARED_GRES MULTIPLE_SHARING_GRES_PJ ONE_TASK_PER_SHARING_GRES": ("", "shares of GPUs are not modelled"),
    },
)

_PRIORITY_FLAGS = Keys(
    "PriorityFlags",
    modelled={"fair share": "FAIR_TREE NO_FAIR_TREE"},
    harmless={"of jobs that run, whose priority decides nothing": "CALCULATE_RUNNING"},
    changes={
        """
            ACCRUE_ALWAYS DEPTH_OBLIVIOUS INCR_ONLY MAX_TRES MAX_TRES_GRES NO_NORMAL_ALL NO_NORMAL_ASSOC NO_NORMAL_PART
            NO_NORMAL_QOS NO_NORMAL_TRES SMALL_RELATIVE_TO_TIME TICKET_BASED""": ("", _OUT),
    },
)

_PREEMPT_PARAMETERS = Keys(
    "PreemptParameters",
    modelled={"which jobs make way": "reorder_count strict_order youngest_first"},
    harmless={"of signals": "send_user_signal"},
    changes={"min_exempt_priority reclaim_licenses suspend_grace": ("", _OUT)},
)

_TOPOLOGY_PARAM = Keys(
    "TopologyParam",
    modelled={},
    harmless={"of messages between daemons": "RoutePart RouteTree"},
    changes={
        "BlockAsNodeRank SwitchAsNodeRank": ("", "nodes are in the order of their lines"),
        "Dragonfly": ("", "nodes are chosen as in a tree"),
        "TopoMaxSizeUnroll": ("", _OUT),
        "TopoOptional": ("", "the nodes of all jobs are chosen by their switches"),
    },
)

_CONTROLLER = Keys(
    "SlurmctldParameters",
    modelled={},
    harmless={
        "of messages, commands and files": """
            allow_user_triggers cloud_dns cloud_reg_addrs conmgr_connect_timeout conmgr_max_connections
            conmgr_quiesce_timeout conmgr_read_timeout conmgr_threads conmgr_use_poll conmgr_wait_write_delay
            conmgr_write_timeout disable_triggers enable_async_reply enable_configless enable_job_state_cache
            enable_rpc_queue enable_stepmgr max_dbd_msg_action no_quick_restart rl_bucket_size rl_enable rl_log_freq
            rl_refill_period rl_refill_rate rl_table_size user_resv_delete validate_nodeaddr_threads""",
        "of failures and signals": "node_reg_mem_percent preempt_send_user_signal reboot_from_controller",
        "of power saving, which SuspendTime switches on": """
            idle_on_node_suspend power_save_interval power_save_min_interval""",
    },
    changes={"max_powered_nodes": ("", "all nodes may be in use at once")},
)

SLURM_CONF = Keys(
    "slurm.conf",
    modelled={
        "the loops": "SchedulerType CompleteWait Epilog",
        "priorities": """
            PriorityType PriorityWeightAge PriorityWeightAssoc PriorityWeightFairShare
            PriorityWeightJobSize PriorityWeightPartition PriorityWeightQOS PriorityWeightTRES PriorityMaxAge
            PriorityCalcPeriod PriorityDecayHalfLife PriorityFavorSmall FairShareDampeningFactor
            AccountingStorageType""",
        "limits": "AccountingStorageEnforce OverTimeLimit KillWait",
        "nodes of jobs": "SelectType TopologyPlugin DefMemPerCPU DefMemPerNode MaxMemPerCPU MaxMemPerNode",
        "preemption": "PreemptType PreemptMode PreemptExemptTime JobRequeue",
        "which nodes sleep, and how long they boot": """
            SuspendTime SuspendProgram SuspendTimeout SuspendExcNodes SuspendExcParts ResumeProgram ResumeTimeout""",
        "the platform": "ClusterName Licenses",
    },
    harmless={
        "addresses, ports and messages of daemons": """
            BackupAddr BackupController CommunicationParameters ControlAddr ControlMachine EioTimeout KeepAliveTime
            MessageTimeout MsgAggregationParams RoutePlugin SlurmctldAddr SlurmctldHost SlurmctldPort SlurmdPort
            SlurmUser SlurmdUser SrunPortRange TCPTimeout TreeWidth HttpParserType UrlParserType""",
        "files, plug-ins and logs": """
            DebugFlags LogTimeFormat PlugStackConfig PluginDir SlurmSchedLogFile SlurmSchedLogLevel SlurmctldDebug
            SlurmctldLogFile SlurmctldPidFile SlurmctldPlugstack SlurmctldSyslogDebug SlurmdDebug SlurmdLogFile
            SlurmdPidFile SlurmdSpoolDir SlurmdSyslogDebug StateSaveLocation TmpFS""",
        "authentication": """
            AuthAltParameters AuthAltTypes AuthInfo AuthType CertgenParameters CertgenType CertmgrParameters CertmgrType
            CredType CryptoType HashPlugin JobCredentialPrivateKey JobCredentialPublicCertificate MetricsAuthUsers
            SchedulerAuth SlurmctldHttpAuthParameters SlurmdHttpAuthParameters SlurmrestdHttpAuthParameters
            TLSParameters TLSType""",
        "what is recorded": """
            AccountingStorageBackupHost AccountingStorageExternalHost AccountingStorageHost AccountingStorageLoc
            AccountingStorageParameters AccountingStoragePass AccountingStoragePort AccountingStorageTRES
            AccountingStorageUser AccountingStoreFlags AccountingStoreJobComment AcctGatherEnergyType
            AcctGatherFilesystemType AcctGatherInfinibandType AcctGatherInterconnectType AcctGatherNodeFreq
            AcctGatherProfileType DefaultStorageHost DefaultStorageLoc DefaultStoragePass DefaultStoragePort
            DefaultStorageType DefaultStorageUser ExtSensorsFreq ExtSensorsType FirstJobId JobAcctGatherFrequency
            JobAcctGatherParams JobAcctGatherType JobCompHost JobCompLoc JobCompParams JobCompPass JobCompPassScript
            JobCompPort JobCompType JobCompUser MaxDBDMsgs MaxJobId MetricsParameters MetricsType MinJobAge
            TrackWCKey""",
        "what commands show and send": """
            DataParserParameters FederationParameters MailDomain MailProg PrivateData SerializerParameters
            SerializerPlugins SlurmrestdParameters""",
        "of submissions: the accounting has those that were accepted": """
            CliFilterParameters CliFilterPlugins DependencyParameters DisableRootJobs EnforcePartLimits GroupUpdateForce
            GroupUpdateTime MaxArraySize MaxJobCount ScronParameters SallocDefaultCommand""",
        "of steps and tasks of jobs that have started": """
            BcastExclude BcastParameters CacheGroups CoreSpecPlugin CpuFreqDef CpuFreqGovernors DefRuntimePlugin
            GetEnvTimeout GpuFreqDef InteractiveStepOptions JobCheckpointDir JobContainerType JobFileAppend
            KillOnBadExit LaunchParameters LaunchType MaxStepCount MaxTasksPerNode MpiDefault MpiParams NamespaceType
            ProctrackType PropagatePrioProcess PropagateResourceLimits PropagateResourceLimitsExcept SbcastParameters
            SlurmstepdParameters SrunEpilog SrunProlog TaskEpilog TaskPlugin TaskPluginParam TaskProlog UsePAM
            VSizeFactor WaitTime X11Parameters""",
        "in the run times, which are given": """
            CheckpointType InactiveLimit MemLimitEnforce Prolog PrologEpilogTimeout PrologFlags PrologSlurmctld
            PrologTimeout EpilogTimeout PrEpParameters PrEpPlugins ChosLoc""",
        "of failures and repairs: requeued runs are in the accounting": """
            BatchStartTimeout HealthCheckInterval HealthCheckNodeState HealthCheckProgram HealthCheckTimeout
            MaxBatchRequeue RebootProgram ReconfigFlags RequeueExit RequeueExitHold ReturnToService
            SlurmctldPrimaryOffProg SlurmctldPrimaryOnProg SlurmctldTimeout SlurmdTimeout UnkillableStepProgram
            UnkillableStepTimeout""",
        "told by the lines of nodes": "GresTypes MaxNodeCount SlurmdParameters",
        "for jobs with --core-spec, which are named": "AllowSpecResourcesUsage",
        "power of nodes in use": "PowerParameters PowerPlugin",
        "of power saving": "PowerAction ResumeFailProgram",
        "of power saving, named where more nodes sleep": "ResumeRate SuspendRate",
        "programs at the borders of reservations": "ResvEpilog ResvProlog",
        "read by no plug-in of Slurm, or by the one of PrioritySiteFactorPlugin": """
            PriorityParameters PrioritySiteFactorParameters""",
        "of other schedulers, which older releases could ask": "SchedulerPort SchedulerRootFilter",
    },
    changes={
        "AccountingStorageEnforce": (
            "(associations|limits|nojobs|nosteps|qos|safe|wckeys|all|0|1|,| )*",
            _OUT,
        ),
        "BurstBufferParameters BurstBufferType": ("", "burst buffers are not modelled"),
        "DefCPUPerGPU DefMemPerGPU": ("0|UNLIMITED", _GPU_DEFAULT),
        "EpilogMsgTime": ("1?\\d{1,3}|2000", "messages of ended nodes are not delayed"),
        "EpilogSlurmctld": ("", "the nodes of an ended job are free before this program ends"),
        "FastSchedule": ("1|2", "nodes are as in their lines, not as slurmd finds them"),
        "JobDefaults": ("", _GPU_DEFAULT),
        "JobSubmitPlugins": (
            "(all_partitions|logging|partition|pbs|require_timelimit|throttle|job_submit/|,)*",
            "what it changes in jobs is known from the accounting alone",
        ),
        "Layouts LicenseParameters": ("", _OUT),
        "MCSParameters": ("ondemand.*", "labels of jobs and nodes are not modelled"),
        "MCSPlugin": ("mcs/none", "labels of jobs and nodes are not modelled"),
        "NodeFeaturesPlugins": ("", "nodes are not rebooted for features"),
        "PreemptMode": (
            "off|cancel|requeue|suspend|suspend,gang|gang,suspend",
            "time slices and preemption within a partition are not modelled",
        ),
        "PreemptType": ("preempt/(none|partition_prio|qos)", _OUT),
        "PrioritySiteFactorPlugin": ("priority_site_factor/none|site_factor/none", _OUT),
        "PriorityType": ("priority/(basic|multifactor)", _OUT),
        "PriorityUsageResetPeriod": ("none", _OUT),
        "ResvOverRun": ("0", "jobs end with their reservation"),
        "SchedulerTimeSlice": ("30", _OUT),
        "SchedulerType": ("(sched/)?(backfill|builtin)", _OUT),
        "SelectType": ("select/(cons_tres|cons_res)", _OUT),
        "SuspendExcStates": ("", "nodes in these states sleep, too"),
        "SwitchParameters": ("", "resources of the network are not modelled"),
        "SwitchType": (
            "switch/(none|cray|cray_aries|generic|hpe_slingshot)",
            "resources of the network are not modelled",
        ),
        "TopologyPlugin": ("topology/(none|default|flat|tree|3d_torus)", _OUT),
    },
    flags={
        "PreemptParameters": _PREEMPT_PARAMETERS,
        "PriorityFlags": _PRIORITY_FLAGS,
        "SchedulerParameters": SCHEDULER,
        "SelectTypeParameters": _SELECT,
        "SlurmctldParameters": _CONTROLLER,
        "TopologyParam": _TOPOLOGY_PARAM,
    },
)
"""The keys of slurm.conf but those of nodes, partitions and the like."""

SHOW_CONFIG = SLURM_CONF.more(
    "scontrol show config",
    {
        "the state of slurmctld": "BOOT_TIME HASH_VAL MULTIPLE_SLURMD NEXT_JOB_ID SLURM_CONF SLURM_VERSION",
    },
)
"""The keys of the output of ``scontrol show config``."""

NODE = Keys(
    "NodeName",
    modelled={
        "CPUs": """
            NodeName CPUs Procs Boards Sockets SocketsPerBoard CoresPerSocket ThreadsPerCore CoreSpecCount
            CPUSpecList""",
        "memory and devices": "RealMemory MemSpecLimit Gres",
        "which nodes jobs get": "Feature Features Weight",
        "whether they are there": "State",
    },
    harmless={
        "addresses": "BcastAddr NodeAddr NodeHostname Port",
        "of steps": "CpuBind",
        "words for people": "Reason",
        "for jobs with --tmp, which are named": "TmpDisk",
    },
    changes={
        "GresConf": ("", "generic resources are those of Gres and gres.conf"),
        "Parameters TRESWeights": ("", _OUT),
        "RestrictedCoresPerGPU": ("0", "all cores are for all jobs"),
        "SuspendTime": ("-1|INFINITE", "that of the partition or the cluster is taken"),
        "Topology": ("", "switches are those of topology.conf"),
    },
)
"""The keys of the NodeName lines of slurm.conf."""

SHOW_NODE = NODE.more(
    "scontrol show node",
    {
        "the state of the moment": """
            ActiveFeatures AllocMem AllocTRES AveWatts BootTime CapWatts CfgTRES Comment ConsumedJoules CPUAlloc CPUErr
            CPULoad CurrentWatts Extra ExtSensorsJoules ExtSensorsTemp ExtSensorsWatts FreeMem GresDrain GresUsed
            InstanceId InstanceType LastBusyTime LowestJoules MCS_label NextState Owner ReservationName ResumeAfterTime
            SlurmdStartTime""",
        "software": "Arch OS Version",
    },
    {"what jobs can have": "CPUEfctv CPUTot AvailableFeatures Partitions"},
)
"""The keys of the output of ``scontrol show node``."""

PARTITION = Keys(
    "PartitionName",
    modelled={
        "which nodes": "PartitionName Nodes Default State LLN OverSubscribe Shared Exclusive",
        "limits": "MaxTime DefaultTime MaxNodes MinNodes QoS",
        "memory of jobs": "DefMemPerCPU DefMemPerNode MaxMemPerCPU MaxMemPerNode",
        "order": "Priority PriorityJobFactor PriorityTier TRESBillingWeights",
        "preemption": "PreemptMode GraceTime",
        "when nodes sleep, and how long they boot": "SuspendTime SuspendTimeout ResumeTimeout",
    },
    harmless={
        "where jobs are submitted": "AllocNodes DisableRootJobs",
        "what commands show": "Hidden",
        "of steps": "CpuBind",
        "in use only when State is not UP, which is named": "Alternate",
    },
    changes={
        "AllowAccounts AllowGroups AllowQos": ("ALL", _WHO),
        "DefCPUPerGPU DefMemPerGPU": ("0|UNLIMITED", _GPU_DEFAULT),
        "DenyAccounts DenyQos": ("", _WHO),
        "Exclusive": ("NO|NODE", "users share nodes"),
        "ExclusiveTopo ExclusiveUser": ("NO", "users, and jobs of a block, share nodes"),
        "JobDefaults": ("", _GPU_DEFAULT),
        "MaxCPUsPerNode": ("UNLIMITED|INFINITE|0", "its jobs may have all CPUs of a node"),
        "MaxCPUsPerSocket": ("UNLIMITED|INFINITE|0", "its jobs may have all CPUs of a socket"),
        "OverSubscribe Shared": ("NO|EXCLUSIVE", "jobs do not share CPUs"),
        "OverTimeLimit": ("0", "that of the cluster is taken"),
        "PowerDownOnIdle": ("NO", "nodes sleep after SuspendTime, not at once"),
        "PreemptMode": (
            "off|cancel|requeue|suspend|suspend,gang|gang,suspend",
            "time slices and preemption within a partition are not modelled",
        ),
        "ReqResv RootOnly": ("NO", _WHO),
        "SelectTypeParameters": ("", "that of the cluster is taken"),
        "State": ("UP", "jobs start there"),
        "Topology": ("", "that of the cluster is taken"),
    },
)
"""The keys of the PartitionName lines of slurm.conf."""

SHOW_PARTITION = PARTITION.more(
    "scontrol show partition",
    {"told by the nodes": "NodeSets TotalCPUs TotalNodes Midplanes"},
    {"nodes that are not told": "TRES"},
)
"""The keys of the output of ``scontrol show partition``."""

DOWN_NODES = Keys(
    "DownNodes",
    modelled={"whether nodes are there": "DownNodes State"},
    harmless={"words for people": "Reason"},
)
"""The keys of the DownNodes lines of slurm.conf."""

NODE_SET = Keys("NodeSet", modelled={"nodes of partitions": "NodeSet Nodes Feature"}, harmless={})
"""The keys of the NodeSet lines of slurm.conf."""

FRONTEND = Keys(
    "FrontendName",
    modelled={},
    harmless={
        "where batch scripts run": "FrontendName FrontendAddr Port Reason AllowGroups AllowUsers DenyGroups DenyUsers",
    },
    changes={"State": ("UNKNOWN|UP|IDLE", "jobs start all the same")},
)
"""The keys of the FrontendName lines of slurm.conf."""

GRES = Keys(
    "gres.conf",
    modelled={"devices of nodes": "NodeName Name Type Count File MultipleFiles"},
    harmless={
        "which devices and cores of a node": "Cores CPUs Links Flags",
        "how slurmd finds the devices, whose number slurm.conf has": "AutoDetect",
    },
)
"""The keys of gres.conf."""

TOPOLOGY = Keys(
    "topology.conf",
    modelled={"the tree": "SwitchName Nodes Switches"},
    harmless={"read by no plug-in": "LinkSpeed"},
    changes={"BlockName BlockSizes": ("", "blocks of nodes are not modelled")},
)
"""The keys of topology.conf."""

SHOW_TOPOLOGY = TOPOLOGY.more("scontrol show topology", {"told by the tree": "Level BlockIndex"})
"""The keys of the output of ``scontrol show topology``."""

RESERVATION = Keys(
    "scontrol show reservation",
    modelled={
        "which nodes, when, for whom": """
            ReservationName StartTime EndTime Nodes Flags TRES Users Accounts PartitionName""",
    },
    harmless={
        "told by the others": "Duration NodeCnt CoreCnt CoreIDs NodeName State",
        "words for people": "Comment",
    },
    changes={
        "Groups Licenses Features BurstBuffer MaxStartDelay AllowedPartitions QOS PurgeCompletedTime": _NOT_MODELLED,
        "Watts": ("0", "not modelled"),
    },
)
"""The keys of the output of ``scontrol show reservation``."""

LICENCE = Keys(
    "scontrol show license",
    modelled={"licences": "LicenseName Total"},
    harmless={
        "the state of the moment": "Used Free LastConsumed LastDeficit LastUpdate",
        "told by the total": "Remote",
    },
    changes={"Reserved": ("0", "all are for everybody")},
)
"""The keys of the output of ``scontrol show license``."""

_LIMITS = """
    GrpTRES GrpTRESMins GrpTRESRunMins GrpJobs GrpSubmitJobs GrpSubmit GrpWall MaxTRESPerJob MaxTRES MaxTRESPerNode
    MaxTRESMinsPerJob MaxTRESMins MinTRES MaxJobs MaxSubmitJobs MaxWallDurationPerJob MaxWall MaxTRESPU MaxJobsPU
    MaxSubmitPU MaxTRESPA MaxJobsPA MaxSubmitPA"""

DUMP = Keys(
    "sacctmgr dump",
    modelled={
        "limits": _LIMITS,
        "order": "FairShare Priority",
        "who is where": "Partition QOS DefaultQOS DefaultAccount",
    },
    harmless={
        "words for people": "Description Organization",
        "what people may do": "AdminLevel Coordinator Coordinators",
        "of reports": "Classification DefaultWCKey WCKeys Flags Comment",
    },
    changes={"GrpJobsAccrue MaxJobsAccrue MinPrioThresh MaxTRESRunMins MaxTRESRunMinsPerUser": _NOT_MODELLED},
)
"""The keys of the lines of ``sacctmgr dump``."""

QOS = Keys(
    "sacctmgr show qos",
    modelled={
        "limits": _LIMITS,
        "order": "Name Priority UsageFactor",
        "preemption": "Preempt PreemptMode PreemptExemptTime GraceTime",
    },
    harmless={"words for people": "Description ID"},
    changes={
        """
            GrpJobsAccrue MaxJobsAccruePA MaxJobsAccruePU MinPrioThresh MaxTRESRunMins MaxTRESRunMinsPA MaxTRESRunMinsPU
            UsageThres""": _NOT_MODELLED,
        "LimitFactor": ("0(\\.0*)?|1(\\.0*)?", "not modelled"),
    },
    flags={
        "Flags": Keys(
            "Flags",
            modelled={"limits and usage": "NoReserve NoDecay OverPartQOS"},
            harmless={"of submissions": "DenyOnLimit DenyLimit RequiresReservation"},
            changes={
                """
                    EnforceUsageThreshold PartitionMaxNodes PartitionMinNodes PartitionTimeLimit PartitionQOS
                    UsageFactorSafe Relative""": _NOT_MODELLED,
            },
        )
    },
)
"""The columns of ``sacctmgr show qos``."""

TABLES = (
    *(SLURM_CONF, *SLURM_CONF.flags.values(), NODE, PARTITION, DOWN_NODES, NODE_SET, FRONTEND, GRES, TOPOLOGY),
    *(SHOW_CONFIG, SHOW_NODE, SHOW_PARTITION, SHOW_TOPOLOGY, RESERVATION, LICENCE, DUMP, QOS, *QOS.flags.values()),
)
"""All tables."""
