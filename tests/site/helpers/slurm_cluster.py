"""A real Slurm of virtual nodes on this machine: private, unprivileged, on 127.0.0.1 only."""

from __future__ import annotations

import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from simmodel_site.twin.acting.actions import ActSettings
from simmodel_site.twin.hooks import install_hooks
from simmodel_site.twin.streams import RedisSettings

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "squeue", "sinfo", "scontrol", "setpriv")
NEEDED = "SIMMODEL_NEED_SCHEDULERS"
"""With this variable set to 1, a missing scheduler is a failure; without, its tests are skipped."""

SETTINGS = {
    "ClusterName": "virtual",
    "AuthType": "auth/none",
    "CredType": "cred/none",
    "CommunicationParameters": "NoInAddrAny,NoCtldInAddrAny",
    "ProctrackType": "proctrack/linuxproc",
    "TaskPlugin": "task/none",
    "JobAcctGatherType": "jobacct_gather/none",
    "AccountingStorageType": "accounting_storage/none",
    "MpiDefault": "none",
    "SwitchType": "switch/none",
    "ReturnToService": "2",
    "MailProg": "/bin/true",
    "SchedulerType": "sched/builtin",
    "PriorityType": "priority/basic",
    "SelectType": "select/cons_tres",
    "SelectTypeParameters": "CR_Core",
    "SlurmdParameters": "config_overrides",
    "SchedulerParameters": "batch_sched_delay=0,sched_interval=5",
    "SlurmctldTimeout": "300",
    "SlurmdTimeout": "300",
    "MinJobAge": "3600",
    "InactiveLimit": "0",
    "KillWait": "5",
    "LogTimeFormat": "iso8601_ms",
}

LICENCES = "Licenses=matlab:10,fluent:4"


def require(*programs: str) -> None:
    """Skip the test if a program is absent; fail it if the schedulers are needed."""
    path = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin"))
    missing = [each for each in programs if not shutil.which(each, path=path)]
    if missing:
        reason = f"not installed: {', '.join(missing)}; .ci/schedulers installs them as root"
        if os.environ.get(NEEDED) == "1":
            pytest.fail(reason)
        pytest.skip(reason)


def wait_until(true: Callable[[], object], seconds: float = 60, what: str | Callable[[], str] = "") -> None:
    """Ask until the answer is true; fail after some seconds."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not within {seconds:g} s: {what() if callable(what) else what}"
        time.sleep(0.05)


class SlurmCluster:
    """One slurmctld and its virtual nodes, each a slurmd, all of one unprivileged user.

    Parameters
    ----------
    nodes, cpus
        the nodes n1, n2, ..., and the cpus of each, possibly with sockets and cores: ``8 Sockets=2 CoresPerSocket=4``
    settings
        of slurm.conf, over those of the module
    partitions, extra
        the partitions, and further lines of slurm.conf
    files
        texts of files beside slurm.conf, by name; those that begin with ``#!`` are executable
    """

    def __init__(
        self,
        nodes: int = 32,
        cpus: int | str = 4,
        settings: Mapping[str, str] | None = None,
        partitions: str = "PartitionName=batch Nodes=ALL Default=YES MaxTime=INFINITE State=UP",
        extra: str = "",
        files: Mapping[str, str] | None = None,
    ) -> None:
        self.nodes, self.cpus = nodes, cpus
        self.settings = {**SETTINGS, **(settings or {})}
        self.partitions, self.extra, self.files = partitions, extra, dict(files or {})
        self.user = pwd.getpwuid(os.geteuid()) if os.geteuid() else _unprivileged()
        self.folder = Path(tempfile.mkdtemp(prefix="simmodel-slurm-"))
        self.conf = self.folder / "slurm.conf"
        self.controller: subprocess.Popen[bytes] | None = None
        self.daemons: list[subprocess.Popen[bytes]] = []

    @property
    def environment(self) -> dict[str, str]:
        """Of every command of this cluster."""
        path = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin"))
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "SBATCH_"))}
        return {**kept, "PATH": path, "SLURM_CONF": str(self.conf), "SLURM_TIME_FORMAT": "%s"}

    def start(self) -> None:
        """Write slurm.conf, start the daemons, and wait until every node is idle."""
        self._write()
        self.start_controller()
        for index in range(1, self.nodes + 1):
            self.daemons.append(self._daemon("slurmd", "-D", "-N", f"n{index}"))
        try:
            wait_until(lambda: self.states() == {"idle": self.nodes}, 30, "idle nodes")
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.states()}\n{self.log()}") from None

    def start_alone(self) -> None:
        """Write slurm.conf and start slurmctld only: its nodes never answer."""
        self._write()
        self.start_controller()

    def start_controller(self) -> None:
        """Start slurmctld; it recovers the state that it saved, if any."""
        self.controller = self._daemon("slurmctld", "-D", "-i")
        wait_until(self._answers, 30, "an answer of slurmctld")

    def kill_controller(self) -> None:
        """End slurmctld as a crash does."""
        assert self.controller is not None
        self.controller.kill()
        self.controller.wait()

    def keep_state(self) -> Path:
        """End slurmctld properly, which saves its state; return a copy of the state, and start slurmctld again."""
        assert self.controller is not None
        self.controller.terminate()
        self.controller.wait(30)
        kept = Path(tempfile.mkdtemp(dir=self.folder)) / "state"
        shutil.copytree(self.folder / "state", kept)
        self.start_controller()
        return kept

    def lose_state(self, kept: Path) -> None:
        """End slurmctld as a crash does, and put back a state of before: what was saved since is lost."""
        self.kill_controller()
        state = self.folder / "state"
        for file in [*state.iterdir()]:
            if file.is_file() and not (kept / file.name).exists():
                file.unlink()
        for file in kept.iterdir():
            if file.is_file():
                shutil.copyfile(file, state / file.name)

    def run(self, *command: str, text: str | None = None) -> str:
        """Run a command as the cluster's user and return what it prints."""
        done = subprocess.run(
            [*self._as_user(), *command],
            input=text,
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=60,
        )
        assert done.returncode == 0, f"{' '.join(command)[:200]}: {done.stderr[:1000]}"
        return done.stdout

    def submit(self, *options: str, seconds: float = 1.0) -> int:
        """Submit a batch job that sleeps, and return its id."""
        script = f"#!/bin/sh\nexec sleep {seconds:g}\n"
        return int(self.run("sbatch", "--parsable", "-o", "/dev/null", *options, text=script).split(";")[0])

    def states(self) -> dict[str, int]:
        """Return how many nodes are in each state."""
        return Counter(
            dict(line.split() for line in self.run("sinfo", "-h", "-N", "-o", "%N %t").splitlines()).values()
        )

    def log(self) -> str:
        """Return the last lines of what the daemons say."""
        return (self.folder / "out").read_text(errors="replace")[-4000:]

    def unfinished(self) -> int:
        """Return how many jobs wait, run or are completing."""
        return len(self.run("squeue", "-h", "-o", "%i").split())

    def clear(self) -> None:
        """Cancel every job, and wait until none is left and every node is idle."""
        self.run("scancel", f"--user={self.user.pw_name}")
        wait_until(lambda: not self.unfinished(), 60, "the end of the cancelled jobs")
        # Slurm drains a node on which a launch has failed, as on a very busy machine: that is not for the next test.
        for node in self.run("sinfo", "-h", "-N", "-t", "drain", "-o", "%N").split():
            self.run("scontrol", "update", f"NodeName={node}", "State=RESUME")
        wait_until(lambda: self.states() == {"idle": self.nodes}, 30, lambda: f"idle nodes: {self.states()}")

    def stop(self) -> None:
        """End the daemons and whatever runs in this cluster, by process id, and remove its folder."""
        with suppress(AssertionError, OSError, subprocess.SubprocessError):
            self.run("scancel", f"--user={self.user.pw_name}")
        daemons = [*self.daemons, *([self.controller] if self.controller else [])]
        for each in daemons:
            each.terminate()
        end = time.monotonic() + 2
        for each in daemons:
            try:
                each.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                each.kill()
                each.wait()
        for process in self._left():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _left(self) -> Iterator[int]:
        """Yield the processes whose environment names this cluster's slurm.conf: steps of jobs, and jobs."""
        mark = f"SLURM_CONF={self.conf}".encode()
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if mark in (folder / "environ").read_bytes().split(b"\0") and int(folder.name) != os.getpid():
                    yield int(folder.name)

    def _as_user(self, death: str = "clear") -> list[str]:
        user = [] if os.geteuid() else [f"--reuid={self.user.pw_uid}", f"--regid={self.user.pw_gid}", "--clear-groups"]
        return ["setpriv", *user, f"--pdeathsig={death}"]

    def _daemon(self, *command: str) -> subprocess.Popen[bytes]:
        """Start a daemon in the foreground; the kernel ends it if this process dies."""
        with (self.folder / "out").open("ab") as out:
            return subprocess.Popen(
                [*self._as_user("KILL"), *command],
                env=self.environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )

    def _answers(self) -> bool:
        assert self.controller is not None
        assert self.controller.poll() is None, self.log()
        with suppress(AssertionError):
            self.run("scontrol", "ping")
            self.run("sinfo", "-h")
            return True
        return False

    def _write(self) -> None:
        """Write slurm.conf and the files beside it, and give the folder to the user."""
        folder, host = self.folder, socket.gethostname()
        first = _free_ports(self.nodes + 1)
        values = {
            "SlurmctldHost": f"{host}(127.0.0.1)",
            "SlurmUser": self.user.pw_name,
            "SlurmdUser": self.user.pw_name,
            "SlurmctldPort": str(first),
            "StateSaveLocation": str(folder / "state"),
            "SlurmctldPidFile": str(folder / "slurmctld.pid"),
            "SlurmdPidFile": str(folder / "slurmd.%n.pid"),
            "SlurmdSpoolDir": str(folder / "spool.%n"),
            "SlurmctldLogFile": str(folder / "slurmctld.log"),
            "SlurmdLogFile": str(folder / "slurmd.%n.log"),
            **self.settings,
        }
        lines = [f"{name}={value}" for name, value in values.items()]
        lines.append(
            f"NodeName=n[1-{self.nodes}] NodeHostname={host} NodeAddr=127.0.0.1 "
            f"Port=[{first + 1}-{first + self.nodes}] CPUs={self.cpus} RealMemory=2000 State=UNKNOWN"
        )
        self.conf.write_text("\n".join([*lines, self.extra, self.partitions, ""]).replace("{folder}", str(folder)))
        for name, text in self.files.items():
            (folder / name).write_text(text.replace("{folder}", str(folder)))
            (folder / name).chmod(0o755 if text.startswith("#!") else 0o644)
        (folder / "state").mkdir()
        folder.chmod(0o755)
        if not os.geteuid():
            for path in (folder, *folder.rglob("*")):
                os.chown(path, self.user.pw_uid, self.user.pw_gid)


def _unprivileged() -> pwd.struct_passwd:
    """Return a user that owns nothing: of Slurm's package, or nobody."""
    for name in ("slurm", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise AssertionError("no unprivileged user: slurm or nobody")


def _free_ports(count: int) -> int:
    """Return the first of consecutive ports that are free, below those that the system gives out itself."""
    drawn = random.SystemRandom()
    for _ in range(100):
        first = drawn.randrange(20_000, 32_000 - count)
        with ExitStack() as held, suppress(OSError):
            for port in range(first, first + count):
                held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first
    raise AssertionError(f"no {count} consecutive free ports")


@contextmanager
def running(cluster: SlurmCluster) -> Iterator[SlurmCluster]:
    """Start a cluster, and stop it whatever happens, also when the process is asked to end."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        signal.signal(signal.SIGTERM, before)


def hooked(cluster: SlurmCluster, maximum_delay: float = 20.0) -> SlurmCluster:
    """Let a cluster, before its start, call the scripts that tell the stream at ``redis.sock`` in its folder.

    They hold jobs while there is a heartbeat (see :func:`hold_for`).
    """
    hold = hold_for(cluster, maximum_delay)
    server = RedisSettings(url=f"unix://{cluster.folder}/redis.sock", password_variable=None)
    lines = install_hooks(cluster.folder / "hooks", cluster.settings["ClusterName"], server, hold=hold)
    cluster.settings |= dict(line.split("=", 1) for line in lines.splitlines() if not line.startswith("#"))
    cluster.files["job_submit.lua"] = (cluster.folder / "hooks" / "job_submit.lua").read_text()
    return cluster


def hold_for(cluster: SlurmCluster, maximum_delay: float = 20.0) -> ActSettings:
    """Return the settings of a twin for which the cluster holds jobs while its heartbeat is there."""
    return ActSettings(
        mode="hold-and-release",
        heartbeat=f"{cluster.folder}/heartbeat",
        stop_file=f"{cluster.folder}/stop",
        maximum_delay=maximum_delay,
        stale_after=4.0,
        rate=50.0,
    )


@pytest.fixture(scope="session")
def shared_slurm() -> Iterator[SlurmCluster]:
    """Start the cluster that all tests of a process share; the fixture ``slurm`` gives it to one test."""
    require(*PROGRAMS)
    with running(hooked(SlurmCluster(extra=LICENCES))) as cluster:
        yield cluster


@pytest.fixture
def slurm(shared_slurm: SlurmCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmCluster]:
    """Return the shared cluster, empty, and let this process and those that it starts use it."""
    for name in [name for name in os.environ if name.startswith(("SLURM_", "SBATCH_", "SQUEUE_", "SINFO_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SLURM_CONF", str(shared_slurm.conf))
    monkeypatch.setenv("PATH", shared_slurm.environment["PATH"])
    yield shared_slurm
    shared_slurm.clear()
