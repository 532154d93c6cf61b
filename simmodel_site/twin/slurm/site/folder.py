"""A folder with what a site's Slurm is: its files, the dump of its accounts and its accounting."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from math import floor, inf, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import attrs
import numpy as np

from simmodel import InputError
from simmodel.extending import Fields, clipped, counted, csv_rows, in_memory, write_text, zone
from simmodel.formats import read_sacct
from simmodel.platform import OutageSpec
from simmodel.policies import SleepAfter
from simmodel.scheduling import Policy, policy as policy_of
from simmodel.work import Workload
from simmodel_site.policy.policy import Slurm
from simmodel_site.twin.described import Described, Notes, Unsupported, around_sleep, awake_first, saved_answers
from simmodel_site.twin.slurm.conf import is_conf
from simmodel_site.twin.slurm.describe import OF_ASSOCIATIONS, described, told_by, with_includes
from simmodel_site.twin.slurm.partitions import per_gpu, with_gres
from simmodel_site.twin.slurm.power import Boot
from simmodel_site.twin.slurm.records import Site
from simmodel_site.twin.slurm.site.accounts import (
    is_dump,
    is_events,
    is_qos,
    is_shares,
    read_accounts,
    read_dump,
    read_events,
    read_qos,
    read_shares,
)
from simmodel_site.twin.slurm.site.changed import changed_site
from simmodel_site.twin.slurm.site.managed import is_log, learnt, read_log
from simmodel_site.twin.slurm.site.placed import misplaced
from simmodel_site.twin.slurm.site.recorded import RecordedJob, recorded_jobs
from simmodel_site.twin.slurm.site.sbatch import job_list
from simmodel_site.twin.slurm.values import nodes_of

if TYPE_CHECKING:
    from datetime import tzinfo

    from simmodel.platform import ClusterSpec
    from simmodel.work import Job
    from simmodel_site.policy.accounts import Accounts

__all__ = ["SlurmFolder", "read_folder"]

_SACCT = re.compile(r"(?=.*\bSubmit\b)[\w|]*\bJobID(Raw)?\b[\w|]*\|", re.IGNORECASE)
_SHAPE = ("nodes", "cores_per_node", "gpus_per_node")
_SUBMISSIONS = "job,submitted,seconds,options"
_CHOICES = {"SelectType", "SelectTypeParameters"}
_SELECT = (
    "taken: SelectType=select/cons_tres, which is not told (slurmctld 22.05 takes select/linear, with whole nodes)"
)


@attrs.frozen(kw_only=True, repr=False)
class SlurmFolder(Fields):
    """A site's Slurm, as a platform, the policy ``slurm`` and a workload.

    Parameters
    ----------
    described
        the platform, the policy with its parameters, and what they do not express
    site
        what the files say
    accounts
        the accounts, users and QOS, if files tell them
    recorded
        the jobs, in the order of submission
    origin
        the instant, in seconds since 1970, that is 0 in simulations
    unsupported
        what neither platform, nor policy, nor workload express: each may change starts
    placed, agreeing
        how many runs of jobs have recorded nodes, and how many of them get here what they got, on these nodes
    read, passed_over
        the names of the files that were read, and of the others
    ran, away
        the nodes on which jobs ran; the nodes that were out of service, each with from when and until when (Unix s)
    boot, boots
        how long nodes boot that sleep (s, or the mapping of a distribution), if it is given or learnt, and of how many
        boots
    """

    described: Described
    site: Site
    accounts: Accounts | None = None
    recorded: tuple[RecordedJob, ...] = ()
    origin: float = 0.0
    unsupported: tuple[Unsupported, ...] = ()
    placed: int = 0
    agreeing: int = 0
    read: tuple[str, ...] = ()
    passed_over: tuple[str, ...] = ()
    ran: frozenset[str] = frozenset()
    away: tuple[tuple[str, float, float], ...] = ()
    boot: Boot | None = None
    boots: int = 0

    def changed(self, lines: Iterable[str]) -> SlurmFolder:
        """Return the folder of a site with changed nodes and partitions, and the same jobs.

        Parameters
        ----------
        lines
            as of :func:`~simmodel_site.twin.slurm.site.changed.changed_site`

        Raises
        ------
        InputError
            a line is wrong
        """
        site = changed_site(self.site, lines)
        found = _platform(site, self.origin, self.ran, self.away, self.boot)
        return attrs.evolve(self, site=site, described=found)

    @property
    def jobs(self) -> list[Job]:
        """The workload: the jobs, with the run times that are recorded."""
        return [each.job for each in self.recorded]

    @property
    def started(self) -> list[RecordedJob]:
        return [each for each in self.recorded if each.start < inf]

    @property
    def runs(self) -> list[RecordedJob]:
        """The jobs, of those that were requeued each run."""
        return [run for each in self.recorded for run in each.runs or (each,)]

    @property
    def policy(self) -> Slurm:
        """The policy, with the accounts, which its text lacks."""
        own = policy_of(around_sleep(self.described.policy)[1])
        assert isinstance(own, Slurm)
        return own.evolve(accounts=self.accounts)

    def with_sleep(self, policy: Slurm, begin: float = -inf) -> tuple[ClusterSpec, Policy]:
        """Return the platform, and a policy that starts jobs as another one does, while nodes sleep as on this site.

        Parameters
        ----------
        begin
            of a part of the log, the instant (s) at which it begins: then nodes that run no job sleep
        """
        spec, own = self.described.spec, policy_of(self.described.policy)
        if not isinstance(own, SleepAfter):
            return spec, policy
        if begin > -inf:
            spec = awake_first(spec)
        return spec, SleepAfter(own.seconds, policy, spare=own.spare, begin=begin)

    @property
    def saving(self) -> str:
        """A line of text about nodes that sleep; empty: none does."""
        kinds = [kind for part in self.described.spec.partitions for kind in part.nodes if kind.power is not None]
        count = sum(kind.count for kind in kinds)
        if not count:
            return ""
        mean = sum(kind.watts.expected_boot * kind.count for kind in kinds) / count
        source = f"as {counted(self.boots, 'boot')} of slurmctld.log took" if self.boots else "as given"
        first = sum(kind.count for kind in kinds if kind.watts.asleep)
        return (
            f"power saving: {counted(count, 'node')} sleep, {first} at the beginning; a boot takes {mean:g} s, "
            f"{source if self.boot is not None else 'as ResumeTimeout allows'}"
        )

    def report(self) -> str:
        """Return a text: what was read, what was made of it, and what is not expressed."""
        spec = self.described.spec
        nodes = sum(node.count for part in spec.partitions for node in part.nodes)
        names = ", ".join(each.name for each in self.site.partitions or ())
        passed_over = f"passed over, as not read or told by these already: {', '.join(self.passed_over)}"
        lines = [
            f"read: {', '.join(self.read)}",
            *([passed_over] if self.passed_over else []),
            f"platform: {counted(nodes, 'node')} with {spec.processors:,} CPUs; partitions {names}",
            f"policy: {self.described.policy}",
            *([_SELECT] if self.site.settings and not _CHOICES & self.site.settings.keys() else []),
            *([self.saving] if self.saving else []),
            f"workload: {self._workload()}",
        ]
        if self.placed:
            lines.append(f"recorded placements: {self.agreeing:,} of {self.placed:,} get here what they got there")
        return "\n".join([*lines, *(self.not_expressed() or ["everything is expressed"])])

    def not_expressed(self) -> list[str]:
        """Return lines of text about what is not expressed; none: everything is."""
        listed = [f"  {each}" for each in self.unsupported]
        return ["not expressed; each may change starts:", *listed] if listed else []

    def platform_to_toml(self, path: str | Path) -> None:
        """Write the platform as TOML, with the policy and what is not expressed as comments."""
        write_text(path, attrs.evolve(self.described, unsupported=self.unsupported).toml())

    def workload_to_csv(self, path: str | Path) -> None:
        """Write the jobs as a table that simmodel reads; dependencies and licences are left out, as columns lack them.

        Raises
        ------
        InputError
            there are no jobs
        """
        if not self.recorded:
            raise InputError("no jobs: give the output of sacct --parsable2", place="--workload")
        jobs = self.jobs
        columns: dict[str, Any] = {name: [getattr(job, name) or -1 for job in jobs] for name in _SHAPE}
        columns |= {name: [getattr(job, name) for job in jobs] for name in ("memory_per_node", "priority")}
        if any(each.gpus for each in self.recorded):
            asked = zip(columns["gpus_per_node"], self.recorded, strict=True)
            columns["gpus_per_node"] = [each.gpus or float(gpus) for gpus, each in asked]
        if any(each.gpu for each in self.recorded):
            columns["gpu"] = [each.gpu for each in self.recorded]
        columns["wait"] = [
            max(each.start - each.job.submit, 0.0) if each.start < inf else nan for each in self.recorded
        ]
        table = Workload.from_jobs(jobs).table
        table.with_columns(**{name: np.array(each) for name, each in columns.items()}).to_csv(path)

    def _workload(self) -> str:
        if not self.recorded:
            return "none; give the output of sacct --parsable2"
        first, last = (self.instant(self.recorded[i].job.submit) for i in (0, -1))
        jobs, started = (
            len([each for each in some if each.runs or not each.restarts]) for some in (self.recorded, self.started)
        )
        return f"{counted(jobs, 'job')} submitted from {first} to {last}, {started:,} of which have started"

    def instant(self, at: float) -> str:
        """Return an instant of a simulation (s) as Slurm writes it."""
        return datetime.fromtimestamp(self.origin + at, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def read_folder(
    paths: str | Path | Iterable[str | Path], *, timezone: str | None = None, boot: Boot | None = None
) -> SlurmFolder:
    """Read what a site's Slurm is from a folder, or from several files and folders.

    Files are told by their content: slurm.conf with the files that it includes, topology.conf, gres.conf, the output of
    ``scontrol show ...``, of ``sacctmgr dump``, ``sacctmgr --parsable2 show qos``, ``sacctmgr --parsable2 show event``
    and ``sshare --all --parsable2``, of ``sacct --parsable2``, and the file of ``jobcomp/filetxt``. Without
    ``SubmitLine`` in the accounting, a table ``job,submitted,seconds,options`` has the options of each job. Other files
    are passed over.

    Parameters
    ----------
    timezone
        the time zone of the files, such as ``"Europe/Paris"``; default UTC
    boot
        how long nodes boot that power saving switches off: a number, a quantity such as ``"4min"``, or a distribution
        of :mod:`simmodel.generators`; default: as in slurmctld.log, else ResumeTimeout, an upper bound

    Raises
    ------
    InputError
        a file is malformed, two files tell the same, or nodes and partitions are missing

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "slurm.conf").write_text("ClusterName=c\\nNodeName=n[1-2] CPUs=4\\nPartitionName=b Nodes=ALL\\n")
    >>> _ = (folder / "jobs.txt").write_text('''JobID|Submit|Start|End|Timelimit|ReqCPUS|State|Partition|SubmitLine
    ... 17|2024-05-01T12:00:00|2024-05-01T12:01:00|2024-05-01T13:01:00|02:00:00|4|COMPLETED|b|sbatch --contiguous run
    ... ''')
    >>> print(read_folder(folder).report().splitlines()[-1])
      job 17: --contiguous (not modelled)
    """
    several = [paths] if isinstance(paths, str | Path) else list(paths)
    files = _Files(zone(timezone))
    files.take(several)
    files.check(several)
    return files.folder(timezone, boot)


class _Files:
    """The files of a folder, told by their content."""

    def __init__(self, local: tzinfo) -> None:
        self._local = local
        self._log: tuple[bytes, str] | None = None
        self._completed: tuple[bytes, str] | None = None
        self._submissions: tuple[bytes, str] | None = None
        self._managed: dict[str, tuple[str, str]] = {}  # of sacctmgr and sshare: texts and sources
        self._logs: list[str] = []
        self._site = Site()
        self._read: list[str] = []
        self._passed: list[str] = []

    def take(self, given: Iterable[str | Path]) -> None:
        """Take each file for what its content says that it is."""
        texts: list[tuple[bytes, str]] = []
        for data, name in saved_answers(given, self._passed):
            first = data.lstrip().partition(b"\n")[0].decode("utf-8", "replace").strip()
            if _SACCT.match(first):
                if self._log is not None:
                    raise InputError(f"the accounting is told twice: by {self._log[1]}, and by {name}")
                self._log = data, name
            elif first.startswith("JobId="):
                self._completed = data, name
            elif first == _SUBMISSIONS:
                self._submissions = data, name
            elif is_log(text := data.decode("utf-8", "replace")):
                self._logs.append(text)
                self._read.append(Path(name).name)
            elif kind := _managed(first, data):
                if kind in self._managed:
                    raise InputError(f"{kind} is told twice: by {self._managed[kind][1]}, and by {name}")
                self._managed[kind] = data.decode("utf-8", "replace"), name
                self._read.append(Path(name).name)
            else:
                texts.append((data, name))
        own = [(data, name) for data, name in with_includes(texts) if is_conf(data.decode("utf-8", "replace"))]
        for data, name in own:
            self._with(told_by(data, name, self._local), name)
        for data, name in [each for each in with_includes(texts) if each not in own]:
            self._with_report(data, name)

    def _with(self, told: Site, name: str) -> None:
        self._site = self._site.with_(told)
        self._read.append(Path(name).name)

    def _with_report(self, data: bytes, name: str) -> None:
        """Take what a report of Slurm tells and its own files do not; pass over others."""
        try:
            told = told_by(data, name, self._local)
        except InputError:
            if _SLURMS.match(data.decode("utf-8", "replace")) is None:
                self._passed.append(Path(name).name)
                return
            raise
        parts = [each.name for each in attrs.fields(Site) if each.name not in ("source", "unread")]
        told = attrs.evolve(told, **cast(Any, {part: None for part in parts if getattr(self._site, part)}))
        if any(getattr(told, part) for part in parts):
            self._with(told, name)
        else:
            self._passed.append(Path(name).name)

    def check(self, given: Sequence[str | Path]) -> None:
        """Raise an error that names the folders if no file tells nodes or partitions."""
        where = ", ".join(str(each) for each in given)
        folders = [path for path in map(Path, given) if path.is_dir()]
        inside = sorted(each.name for folder in folders for each in folder.iterdir() if each.is_dir())
        unread = f"; folders inside are not read: {clipped(', '.join(inside))}" if inside else ""
        for part, line in (("nodes", "NodeName"), ("partitions", "PartitionName")):
            if not getattr(self._site, part):
                files = ", ".join(self._read) or "no file of Slurm"
                wanted = f"give 'scontrol show {part[:-1]}' or a slurm.conf with {line} lines"
                raise InputError(f"no {part}: {wanted}; read here: {files}{unread}", where)

    def folder(self, timezone: str | None, boot: Boot | None) -> SlurmFolder:
        """Return what the files make."""
        shared = Notes()
        log, submitted = self._accounting(timezone, per_gpu(with_gres(self._site, Notes()), shared))
        origin = 0.0 if log is None else float(floor(min(log["submit"]) / 3600) * 3600)
        lists = {*log["node_list"].tolist()} if log is not None and "node_list" in log else set()
        ran = {name for text in lists for name in nodes_of(str(text))}
        done = read_log("\n".join(sorted(self._logs)), self._local)
        away = [(node, *span) for node, spans in done.away.items() for span in spans]
        if events := self._managed.pop("sacctmgr show event", None):
            away += [each for each in read_events(*events, self._local) if not done.tells(*each)]
        boots = done.boots if boot is None else []
        boot = learnt(boots) if boots else boot
        found = _platform(self._site, origin, ran, away, boot)
        notes = Notes()
        managed = Notes()
        accounts = self._accounts(log, managed)
        told = (
            {f"QoS={each.name}" for each in accounts.qos if "sacctmgr show qos" in self._managed} if accounts else set()
        )
        told |= {OF_ASSOCIATIONS} if "sacctmgr dump" in self._managed else set()
        told |= {"OverSubscribe=EXCLUSIVE"} if log is not None else set()  # of jobs: they get whole nodes
        for each in (each for each in found.unsupported if each.what not in told):
            notes.add(each.where, each.what, each.why)
        policy = policy_of(around_sleep(found.policy)[1])
        assert isinstance(policy, Slurm)
        jobs: list[RecordedJob] = []
        if log is not None:
            about: Any = {
                "origin": origin,
                "memory": policy.settings.memory,
                "submitted": submitted,
                "local": self._local,
            }
            about["held"] = done.held
            about["preempts"] = policy.preempts
            about["whole"] = {each.name for each in self._site.partitions or () if each.sharing == "EXCLUSIVE"}
            about["kept"] = {each.name for each in self._site.reservations or ()} - {
                each.name for each in found.spec.reservations
            }
            jobs = recorded_jobs(log, found.spec, notes, **about)
        runs = [run for each in jobs for run in each.runs or (each,)]
        placed, wrong = misplaced(runs, found.spec, policy)
        for what, by_job in wrong.items():
            ids, (first, *_) = [*by_job], by_job.values()
            where = f"{'job' if len(ids) == 1 else 'jobs'} {job_list(ids)}"
            notes.add(where, f"{what}: {first}", "what the log tells is impossible in this model, or read wrongly")
        return SlurmFolder(
            described=found,
            site=self._site,
            accounts=accounts,
            recorded=tuple(jobs),
            origin=origin,
            unsupported=(*notes, *managed, *shared),
            placed=placed,
            agreeing=placed - sum(len(by_job) for by_job in wrong.values()),
            read=tuple(self._read),
            passed_over=tuple(self._passed),
            ran=frozenset(ran),
            away=tuple(away),
            boot=boot,
            boots=len(boots),
        )

    def _accounts(self, log: Workload | None, notes: Notes) -> Accounts | None:
        if not self._managed:
            return None
        dump, qos, shares = (self._managed.get(kind) for kind in ("sacctmgr dump", "sacctmgr show qos", "sshare"))
        asked: dict[int | str, str] = {}
        if log is not None and "queue" in log:
            asked = {
                job: str(name) for job, name in zip(log["job"].tolist(), log["queue"].tolist(), strict=True) if name
            }
        return read_accounts(
            read_dump(*dump, notes) if dump else (),
            read_qos(*qos, notes) if qos else None,
            read_shares(*shares) if shares else {},
            asked,
            notes,
        )

    def _accounting(self, timezone: str | None, shares: Mapping[str, float]) -> tuple[Workload | None, dict[str, str]]:
        """Return the log, and the submit lines of jobs beside it."""
        log = self._log or self._completed
        if log is None:
            self._passed += [Path(self._submissions[1]).name] if self._submissions is not None else []
            return None, {}
        if self._log is not None and self._completed is not None:
            self._passed.append(Path(self._completed[1]).name)
        self._read.append(Path(log[1]).name)
        found = read_sacct(in_memory(log[0], log[1]), timezone=timezone, shares=shares)
        submitted: dict[str, str] = {}
        if self._submissions is not None:
            data, name = self._submissions
            if told := "submit_line" not in found:
                rows = csv_rows(data.decode("utf-8", "replace").splitlines(), name)
                submitted = {cells[0]: f"sbatch {cells[3]}" for _, cells in rows if len(cells) > 3}
            (self._read if told else self._passed).append(Path(name).name)
        return found, submitted


def _platform(
    site: Site, origin: float, ran: Collection[str], away: Iterable[tuple[str, float, float]], boot: Any
) -> Described:
    """Return the platform of a site, on which nodes are drained while they were out of service."""
    found = described(site, origin=origin, own_loops=True, ran=ran, boot=boot)
    places = {node: part.name for part in found.spec.partitions for node in part.node_names}
    outages = [
        OutageSpec(at=max(at - origin, 0.0), until=until - origin, partition=places[node], nodes=(node,), kind="drain")
        for node, at, until in away
        if node in places and max(at, origin) < until
    ]
    return attrs.evolve(found, spec=attrs.evolve(found.spec, outages=[*found.spec.outages, *outages]))


def _managed(first: str, data: bytes) -> str | None:
    """Return which output of sacctmgr or sshare a file is; ``None``: none."""
    if is_qos(first):
        return "sacctmgr show qos"
    if is_shares(first):
        return "sshare"
    if is_events(first):
        return "sacctmgr show event"
    return "sacctmgr dump" if is_dump(data.decode("utf-8", "replace")) else None


_SLURMS = re.compile(
    r"(?s:\s*\{.{,5000}slurm)"
    r"|(\s|#.*\n)*((Node|Partition|Switch|Reservation|License)Name=|Configuration data)",
    re.IGNORECASE,
)
"""How the answers and reports of Slurm begin."""
