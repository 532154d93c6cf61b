"""Sends the events of PBS to a stream, and holds jobs for a twin (written by simmodel twin install-hooks).

A hook of PBS for the events queuejob, runjob and jobobit. It accepts every event, whatever happens here. Each message
is sent by a process of its own, so that the server waits for nothing; nothing that users write reaches that process.

While a heartbeat says "hold", batch jobs get an execution time: PBS itself starts them once it has come, whatever dies.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SETTINGS: "dict[str, str]" = {}


def main() -> None:
    """Answer the event."""
    import pbs  # type: ignore[import-not-found]

    event = pbs.event()
    try:
        answer(pbs, event)
    except Exception as error:  # PBS goes on, whatever happens here
        pbs.logmsg(pbs.LOG_WARNING, "simmodel: " + type(error).__name__ + ": " + str(error)[:200])
    event.accept()


def answer(pbs: "Any", event: "Any") -> None:
    """Report the event to the stream, and hold a new job if a twin is there to decide on its start."""
    if event.type == pbs.QUEUEJOB:
        send("submitted", {})
        state = twin()
        if state == "hold" and is_free(event.job) and is_there(pbs, event.job):
            hold(event.job)
        elif state == "dead":
            start([SETTINGS["release"]], {})
    elif event.type == pbs.RUNJOB:
        send("started", named(event.job, "PBS_JOB", "PBS_ARRAY", "PBS_TASK"))
    elif event.type == getattr(pbs, "JOBOBIT", None):
        told = ended(event.job)
        send("completed" if told else "ended", told or named(event.job, "PBS_JOB", "PBS_ARRAY", "PBS_TASK"))


def twin() -> str:
    """Return the mode of a live twin, "hold" or "look"; "dead" if it stopped without a word; else "away"."""
    import time

    if not SETTINGS.get("heartbeat"):
        return "away"
    try:
        with open(SETTINGS["heartbeat"]) as file:
            words = file.readline(200).split()
    except OSError:
        return "away"
    fresh = len(words) == 3 and words[0].isdigit() and len(words[0]) < 12
    if not fresh or abs(time.time() - int(words[0])) > float(SETTINGS["stale_after"]):
        return "dead"
    return words[2]


def is_free(job: "Any") -> bool:
    """Whether a job is a batch job, no array, and nobody else has a say in its start."""
    holds = str(job.Hold_Types or "n").strip("n")
    marked = job.Resource_List["simmodel_mark"]
    return not (job.Execution_Time or holds or marked or job.interactive or job.array_indices_submitted)


def is_there(pbs: "Any", job: "Any") -> bool:
    """Whether the queue of a job is the twin's."""
    chosen = SETTINGS.get("queues", "")
    return not chosen or str(job.queue or pbs.server().default_queue) in chosen.split(",")


def hold(job: "Any") -> None:
    """Give a job its mark, and then an execution time."""
    import time

    until = int(time.time() + float(SETTINGS["maximum_delay"]))
    job.Resource_List["simmodel_mark"] = "simmodel-held@" + str(until)
    job.Execution_Time = until


def named(job: "Any", whole: str, array: str, task: str) -> "dict[str, str]":
    """Return the id of a job as variables: its number, or that of its array and its own in it; none if it has none."""
    name, _, rest = str(job.id or "").partition(".")[0].partition("[")
    number = rest.rstrip("]")
    digits = name.isdigit() and len(name) < 19 and (number == "" or (number.isdigit() and len(number) < 10))
    if not digits or (rest and not number):  # an array as a whole
        return {}
    return {array: name, task: number} if number else {whole: name}


def ended(job: "Any") -> "dict[str, str]":
    """Return the id, submission, end (s) and final state of a job as variables; none if the state is not certain."""
    import time

    status, submit = job.Exit_status, job.ctime
    known = named(job, "JOBID", "ARRAYJOBID", "ARRAYTASKID")
    if not known or status is None or submit is None:
        return {}
    status, word = int(status), ""
    if status == 0:
        word = "COMPLETED"
    elif status == -29:
        word = "TIMEOUT"
    elif 0 < status != 271:  # killed: by its limit, or by somebody
        word = "FAILED"
    return {**known, "SUBMIT": str(int(submit)), "END": str(int(time.time())), "JOBSTATE": word} if word else {}


def send(what: str, variables: "dict[str, str]") -> None:
    """Start the process that sends a message to the stream."""
    start([SETTINGS["python"], "-I", "-S", "-B", SETTINGS["tell"], what], variables)


def start(words: "list[str]", variables: "dict[str, str]") -> None:
    """Start a program that nobody waits for: the shell only puts it into the background."""
    import os
    import subprocess

    script = '"$@" >/dev/null 2>&1 </dev/null &'
    path = os.environ.get("PATH", "/usr/bin:/bin")
    subprocess.call(["/bin/sh", "-c", script, "sh", *words], env={**variables, "PATH": SETTINGS["bin"] + ":" + path})


if __name__ != "simmodel_site.twin.hooks.pbs_hook":  # PBS gives it a name of its own
    main()
