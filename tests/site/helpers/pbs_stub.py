"""A stand-in for a PBS: executables that answer from a file, in PBS's formats and with its quirks, and a scheduler.

The commands are ``qstat``, ``pbsnodes``, ``qalter``, ``qmove``, ``qrun``, ``qrls``, ``qselect`` and, to be refused,
further ones. Each call is noted with its arguments. Time stands still until a test lets it pass.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simmodel_site.twin.acting.actions import HELD, Mode
from simmodel_site.twin.pbs.commands import PbsCommands
from simmodel_site.twin.pbs.source import PbsHands
from tests.helpers.stand_ins import python_program

READERS = ("qstat", "pbsnodes", "qselect")
WRITERS = ("qalter", "qmove", "qrun", "qrls")
OTHERS = ("qsub", "qdel", "qhold", "qmgr", "qsig", "qrerun", "qorder", "qterm")

START = 1_700_000_000.0
"""The instant at which the clock begins."""

PROGRAM = r"""
import calendar, fcntl, json, os, sys, time
FOLDER = {folder!r}
name, words = os.path.basename(sys.argv[0]), sys.argv[1:]
with open(os.path.join(FOLDER, "calls"), "a") as calls:
    calls.write(json.dumps([name, *words]) + "\n")
with open(os.path.join(FOLDER, "state.json")) as file:
    state = json.load(file)

def fail(text, status=1):
    sys.stderr.write(name + ": " + text + "\n")
    sys.exit(status)

def stamp(seconds):
    assert os.environ.get("TZ") == "UTC", "commands of PBS speak local time"
    return time.strftime("%a %b %d %H:%M:%S %Y", time.gmtime(seconds))

TIMES = ("ctime", "mtime", "qtime", "etime", "stime", "obittime", "Execution_Time", "start_time")

def scalar(key, value):
    if key in TIMES:
        value = stamp(float(value))
    text = str(value)
    try:
        float(text)
        return text  # also 007, inf and 1e5
    except ValueError:
        pass
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("'", "\\'")
    return '"' + text + '"'

def dump(value, key="", depth=1):
    if isinstance(value, dict):
        pad = "    " * depth
        rows = [pad + json.dumps(each) + ":" + dump(inner, each, depth + 1) for each, inner in value.items()]
        return "{{\n" + ",\n".join(rows) + "\n" + pad[4:] + "}}"
    return scalar(key, value)

def answer(**parts):
    head = {{"timestamp": int(state["now"]), "pbs_version": "23.06.06", "pbs_server": state["server"]}}
    sys.stdout.write(dump({{**head, **parts}}) + "\n")

def named(word):
    return word if "." in word else word + "." + state["server"]

def job_named(word):
    found = state["jobs"].get(named(word))
    if found is None:
        fail("Unknown Job Id " + named(word), 153)
    return found

def save():
    with open(os.path.join(FOLDER, "state.json.new"), "w") as file:
        json.dump(state, file)
    os.rename(os.path.join(FOLDER, "state.json.new"), os.path.join(FOLDER, "state.json"))

def qstat():
    flags = {{word for word in words if word.startswith("-")}}
    given = [word for word in words if not word.startswith("-") and word != "json"]
    if "-B" in flags:
        return answer(Server={{state["server"]: state["attributes"]}})
    if "-Q" in flags:
        return answer(Queue=state["queues"])
    found = {{}}
    for word in given:
        job = job_named(word)
        if job["job_state"] == "F" and "-x" not in flags:
            fail("Job " + named(word) + " has finished, use -x or -H to obtain historical job information", 35)
        if job["job_state"] == "F" and not state["history"]:
            fail("Unknown Job Id " + named(word), 153)
        found[named(word)] = job
    if not given:
        found = {{key: job for key, job in state["jobs"].items() if "-x" in flags or job["job_state"] != "F"}}
    if "-t" not in flags and not given:
        found = {{key: job for key, job in found.items() if "[" not in key or "[]" in key}}
    if found:
        answer(Jobs=found)

def qselect():
    at = words[words.index("-a") + 1].rpartition(".eq.")[2] if "-a" in words else None
    for key, job in state["jobs"].items():
        begin = time.strftime("%Y%m%d%H%M.%S", time.gmtime(job.get("Execution_Time", 0)))
        if job["job_state"] == words[words.index("-s") + 1] and at in (None, begin):
            print(key)

def qalter():
    job, rest = job_named(words[-1]), words[:-1]
    if "[" in words[-1]:
        fail("Request invalid for job array " + words[-1])
    if job["job_state"] not in "QHW":
        fail("Cannot modify attribute while job running  " + words[-1], 168)
    while rest:
        flag, value, *rest = rest
        if flag == "-a":
            assert os.environ.get("TZ") == "UTC"
            job["Execution_Time"] = calendar.timegm(time.strptime(value, "%Y%m%d%H%M.%S"))
            if job["Execution_Time"] <= state["now"]:
                del job["Execution_Time"]
                job["job_state"] = "Q"
        elif flag == "-p":
            if not -1024 <= int(value) <= 1023:
                fail("Illegal attribute or resource value")
            job["Priority"] = int(value)
        elif flag == "-l":
            key, _, given = value.partition("=")
            job["Resource_List"][key] = given
        else:
            fail("invalid option " + flag, 2)
    save()

def qmove():
    queue, word = words
    if queue not in state["queues"]:
        fail("Unknown queue", 170)
    job_named(word).update(queue=queue, qtime=state["now"])
    save()

def qrun():
    job = job_named(words[-1])
    if job["job_state"] == "R":
        fail("Request invalid for state of job " + words[-1], 2)
    job["run_now"] = 1
    save()

def qrls():
    job = job_named(words[-1])
    job["Hold_Types"] = "n"
    if job["job_state"] == "H":
        job["job_state"] = "Q"
    save()

with open(os.path.join(FOLDER, "lock"), "w") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    if state.get("away"):
        fail("cannot connect to server " + state["server"] + " (errno=15010)", 255)
    with open(os.path.join(FOLDER, "state.json")) as file:
        state = json.load(file)
    if name == "pbsnodes":
        answer(nodes=state["nodes"])
    elif name in {known!r}:
        globals()[name]()
    else:
        fail("this would change something: " + " ".join(words))
"""


class PbsStub:
    """A server with nodes, its commands in a folder, and a first-come-first-served scheduler.

    Parameters
    ----------
    folder
        where commands and state are
    nodes
        the cores of each node, by name
    """

    def __init__(self, folder: Path, nodes: Mapping[str, int] | None = None) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        known = ("qstat", "qselect", *WRITERS)
        program = python_program(PROGRAM.format(folder=str(folder), known=known), "-ISE")
        for name in (*READERS, *WRITERS, *OTHERS):
            (folder / name).write_text(program)
            (folder / name).chmod(0o755)
        cores = nodes or {"n1": 4, "n2": 4}
        self.now = START
        self.runs: dict[str, float] = {}
        self.last = 0
        self.starts: list[str] = []
        queue = {"queue_type": "Execution", "enabled": "True", "started": "True"}
        self._write(
            {
                "now": START,
                "server": "pbs",
                "history": True,
                "attributes": {
                    "server_state": "Active",
                    "scheduling": "True",
                    "default_queue": "workq",
                    "job_history_enable": "True",
                    "query_other_jobs": "True",
                    "resources_available": {"matlab": 10},
                    "resources_default": {"ncpus": 1},
                },
                "queues": {
                    "workq": {**queue, "Priority": 50, "resources_max": {"walltime": "24:00:00"}},
                    "express": {**queue, "Priority": 150, "resources_max": {"walltime": "01:00:00", "ncpus": 4}},
                },
                "nodes": {
                    name: {
                        "Mom": f"{name}.example",
                        "Port": 15002,
                        "ntype": "PBS",
                        "state": "free",
                        "pcpus": count,
                        "resources_available": {"arch": "linux", "host": name, "mem": "16777216kb", "ncpus": count},
                        "resources_assigned": {},
                        "resv_enable": "True",
                        "sharing": "default_shared",
                    }
                    for name, count in cores.items()
                },
                "jobs": {},
            }
        )

    # ------------------------------------------------------------------ the file

    def _read(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads((self.folder / "state.json").read_text())
        return state

    def _write(self, state: dict[str, Any]) -> None:
        path = self.folder / "state.json.own"
        path.write_text(json.dumps(state))
        path.rename(self.folder / "state.json")

    def change(self, **parts: Any) -> None:
        """Change parts of the state: ``history``, ``away``, ``nodes``, ``attributes``, ..."""
        self._write({**self._read(), **parts})

    def alter(self, job: int | str, **attributes: Any) -> None:
        """Change attributes of a job, as an operator would."""
        state = self._read()
        state["jobs"][f"{job}.pbs"] |= attributes
        self._write(state)

    @property
    def state(self) -> dict[str, Any]:
        """The whole state."""
        return self._read()

    def job(self, job: int | str) -> dict[str, Any]:
        """Return the attributes of a job."""
        found: dict[str, Any] = self._read()["jobs"][f"{job}.pbs"]
        return found

    def calls(self) -> list[list[str]]:
        """Return the commands that were run."""
        path = self.folder / "calls"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def writes(self) -> list[list[str]]:
        """Return those of the commands that may change something."""
        return [words for words in self.calls() if words[0] not in READERS]

    def commands(self, **settings: Any) -> PbsCommands:
        """Return the commands that read."""
        return PbsCommands(folder=str(self.folder), **settings)

    def hands(self, mode: Mode, **settings: Any) -> PbsHands:
        """Return hands for a mode, with the clock of the server."""
        return PbsHands(self.commands(), mode, clock=lambda: self.now, **settings)

    # ------------------------------------------------------------------ jobs and time

    def submit(
        self, cpus: int = 1, run: float = 60.0, *, walltime: str = "00:10:00", hold: float = 0.0, **attributes: Any
    ) -> int:
        """Submit a job; ``hold``: for so many seconds for a twin, as the hook does."""
        self.last += 1
        resources = {"ncpus": cpus, "nodect": 1, "place": "free", "select": f"1:ncpus={cpus}", "walltime": walltime}
        if hold:
            resources["simmodel_mark"] = f"{HELD}@{int(self.now + hold)}"
        job: dict[str, Any] = {
            "Job_Name": "sim",
            "Job_Owner": "ada@login.example",
            "job_state": "W" if hold else "Q",
            "queue": "workq",
            "server": "pbs",
            "Hold_Types": "n",
            "Priority": 0,
            "ctime": self.now,
            "qtime": self.now,
            "mtime": self.now,
            "Rerunable": "True",
            "Resource_List": resources | attributes.pop("resources", {}),
            "substate": 10,
            "Variable_List": {"PBS_O_HOME": "/users/ada", "FOO": "005"},
            **attributes,
        }
        if hold:
            job["Execution_Time"] = self.now + hold
        state = self._read()
        state["jobs"][f"{self.last}.pbs"] = job
        self._write(state)
        self.runs[f"{self.last}.pbs"] = run
        return self.last

    def advance(self, seconds: float = 0.0) -> None:
        """Let time pass: jobs end and start as the server would have it."""
        until = self.now + seconds
        while True:
            self._cycle()
            state = self._read()
            ends = [job["stime"] + self.runs[name] for name, job in state["jobs"].items() if job["job_state"] == "R"]
            waits = [job["Execution_Time"] for job in state["jobs"].values() if job["job_state"] == "W"]
            later = [each for each in (*ends, *waits) if self.now < each <= until]
            if not later:
                break
            self.now = min(later)
        self.now = until
        self.change(now=until)

    def _cycle(self) -> None:
        """End what is over and start what fits, by queue and priority, in order."""
        state = self._read()
        state["now"] = now = self.now
        jobs = state["jobs"]
        for name, job in jobs.items():
            if job["job_state"] == "R" and job["stime"] + self.runs[name] <= now:
                used = {"walltime": f"00:{int(self.runs[name]) // 60:02d}:{int(self.runs[name]) % 60:02d}", "ncpus": 1}
                job |= {"job_state": "F", "Exit_status": 0, "obittime": now, "substate": 92, "resources_used": used}
            elif job["job_state"] == "W" and job["Execution_Time"] <= now:
                del job["Execution_Time"]
                job["job_state"] = "Q"
        free = {name: node["pcpus"] for name, node in state["nodes"].items() if node["state"] == "free"}
        for job in jobs.values():
            if job["job_state"] == "R":
                free[job["exec_vnode"][1:].partition(":")[0]] -= job["Resource_List"]["ncpus"]
        queues = state["queues"]
        waiting = [(name, job) for name, job in jobs.items() if job["job_state"] == "Q" and "[]" not in name]
        waiting.sort(key=lambda each: (-each[1].get("run_now", 0), -queues[each[1]["queue"]]["Priority"]))
        waiting.sort(key=lambda each: -each[1]["Priority"])
        for name, job in waiting:
            cpus = job["Resource_List"]["ncpus"]
            node = next((each for each, count in free.items() if count >= cpus), None)
            if node is None:
                job["comment"] = "Not Running: Insufficient amount of resource: ncpus"
                break
            free[node] -= cpus
            job |= {"job_state": "R", "stime": now, "exec_vnode": f"({node}:ncpus={cpus})", "substate": 42}
            self.starts.append(name)
        self._write(state)
