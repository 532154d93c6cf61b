"""Sends the events of a scheduler to a stream (written by simmodel twin install-hooks).

Scripts of the scheduler call it with the kind of event as its argument.

Standard library of Python 3.6 or later, and nothing else. It never fails and never keeps the scheduler: a child process
talks to the stream for at most 50 ms; if that does not succeed, the entry goes to a spool file, whose entries the next
call that reaches the stream sends along. An entry may then arrive twice.
"""

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable
    from typing import Any

SETTINGS: "dict[str, str]" = {}
BUDGET = 0.05  # seconds for the stream
LARGEST = 64 * 2**20  # bytes of the spool; beyond them entries are dropped, full reports of the scheduler have them
NO_TASK = ("", "4294967294", "0xfffffffe")
NAMES = (("SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID"), ("PBS_JOB", "PBS_ARRAY", "PBS_TASK"))
STATUS = {
    "COMPLETED": "completed",
    "TIMEOUT": "timeout",
    "DEADLINE": "timeout",
    "FAILED": "failed",
    "OUT_OF_MEMORY": "failed",
    "NODE_FAIL": "lost",
    "BOOT_FAIL": "lost",
}


def main() -> None:
    """Send an entry of the kind in the argument; spool it if it does not arrive in time."""
    entry = entry_of(sys.argv[1], dict(os.environ), time.time())
    if not told_in_time(entry):
        spool(entry)


def entry_of(what: str, told: "dict[str, str]", now: float) -> "list[str]":
    """Return the fields of an entry from the variables that Slurm, or the hook of PBS, sets.

    Names that users give stay out of it.
    """
    entry = ["cluster", SETTINGS["cluster"]]
    if what == "completed":  # of jobcomp/script, which alone is told when a job was submitted
        job = job_id(told.get("JOBID", ""), told.get("ARRAYJOBID", ""), told.get("ARRAYTASKID", ""))
        submit, end = told.get("SUBMIT", ""), told.get("END", "")
        if job and number(submit) and number(end):
            status = STATUS.get(told.get("JOBSTATE", ""), "cancelled")
            return [*entry, "kind", "ended", "job", job, "submit", submit, "time", end, "status", status]
        what = "ended"
    entry += ["kind", "noticed", "what", what, "time", f"{now:.6f}"]
    job = ""
    for names in NAMES:
        job = job or job_id(*(told.get(name, "") for name in names))
    return [*entry, "job", job] if job else entry


def number(text: str) -> bool:
    """Whether a text is a whole number > 0."""
    return text.strip("0123456789") == "" and text.strip("0") != "" and len(text) < 19


def job_id(job: str, array: str, task: str) -> str:
    """Return the id of a job, for a task of an array such as 7_1; empty if there is none."""
    if number(array) and task not in NO_TASK and (task == "0" or number(task)):
        return array + "_" + task
    return job if number(job) else ""


def told_in_time(entry: "list[str]") -> bool:
    """Let a child process send the entry and the spooled ones; return whether the entry arrived within the budget."""
    import select

    connect = connected
    if SETTINGS.get("tls"):
        import ssl  # noqa: F401 (takes its time, which is none of the stream)

        connect = connected_by_tls
    until = time.monotonic() + BUDGET
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(out)
            send(entry, connect(until), into, until)
        finally:
            os._exit(0)
    os.close(into)
    arrived = done = False
    while not done:
        left = until - time.monotonic()
        if left <= 0 or not select.select([out], [], [], left)[0]:
            break
        word = os.read(out, 1)
        arrived, done = arrived or word == b"+", word == b""
    if not done:
        os.kill(child, 9)  # looking up a name, for instance, cannot be stopped otherwise
    os.waitpid(child, 0)
    return arrived


def send(entry: "list[str]", stream: "_socket.socket", into: int, until: float) -> None:
    """Log in, send the entry, report that to the parent process, and then send the spooled entries."""
    read = answers_of(stream)
    if SETTINGS.get("password_file"):
        with open(SETTINGS["password_file"]) as file:
            password = file.readline().rstrip("\r\n")
        login = [SETTINGS["user"], password] if SETTINGS.get("user") else [password]
        if exchange(stream, read, [command(["AUTH", *login])], until) != 1:
            return
    if exchange(stream, read, [xadd(entry)], until) == 1:
        os.write(into, b"+")
        unspool(stream, read, until)


def connected(until: float) -> "_socket.socket":
    """Return a connection: of the module below ``socket``, which takes longer to import than all the rest takes."""
    import _socket

    places: list[tuple[int, Any]]
    if SETTINGS.get("socket"):
        places = [(_socket.AF_UNIX, SETTINGS["socket"])]
    else:
        found = _socket.getaddrinfo(SETTINGS["host"], int(SETTINGS["port"]), 0, _socket.SOCK_STREAM)
        places = [(each[0], each[4]) for each in found]
    for number, (family, address) in enumerate(places, 1):
        stream = _socket.socket(family, _socket.SOCK_STREAM)
        stream.settimeout(remaining(until))
        try:
            stream.connect(address)
            return stream
        except OSError:
            stream.close()
            if number == len(places):
                raise
    raise OSError("no address")


def connected_by_tls(until: float) -> "_socket.socket":
    """Return a connection with TLS."""
    import socket
    import ssl

    context = ssl.create_default_context(cafile=SETTINGS.get("ca_file"))
    if SETTINGS.get("certificate_file"):
        context.load_cert_chain(SETTINGS["certificate_file"], SETTINGS.get("key_file"))
    stream = socket.create_connection((SETTINGS["host"], int(SETTINGS["port"])), remaining(until))
    return context.wrap_socket(stream, server_hostname=SETTINGS["host"])


def answers_of(stream: "_socket.socket") -> "Callable[[], bytes]":
    """Return a function that reads the next line of the server's answers."""
    held = [b""]

    def read() -> bytes:
        while b"\n" not in held[0]:
            some = stream.recv(65536)
            if not some:
                raise OSError("connection closed")
            held[0] += some
        line, _, held[0] = held[0].partition(b"\n")
        return line

    return read


def remaining(until: float) -> float:
    """Return the seconds that are left, at least one millisecond."""
    return max(until - time.monotonic(), 0.001)


def command(words: "list[str]") -> bytes:
    """Return a command in the protocol of Redis."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        text = word.encode("utf-8", "replace")
        parts.append(b"$%d\r\n%s\r\n" % (len(text), text))
    return b"".join(parts)


def xadd(entry: "list[str]") -> bytes:
    """Return the command that adds an entry to the stream."""
    return command(["XADD", SETTINGS["stream"], "*", *entry])


def exchange(stream: "_socket.socket", read: "Callable[[], bytes]", commands: "list[bytes]", until: float) -> int:
    """Send commands, and return how many of them were carried out before one was refused."""
    stream.settimeout(remaining(until))
    stream.sendall(b"".join(commands))
    for count in range(len(commands)):
        stream.settimeout(remaining(until))
        line = read()
        if line[:1] == b"$":
            read()  # the id of the entry, which has no line breaks
        elif line[:1] != b"+":
            return count
    return len(commands)


def spool(entry: "list[str]") -> None:
    """Append an entry to the spool, unless another process has just taken it to be sent: then to the next one."""
    import fcntl

    path = SETTINGS["spool"]
    for _ in range(1000):
        with open(path, "ab", 0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if os.path.exists(path) and os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                if file.tell() < LARGEST:
                    file.write(("\t".join(entry) + "\n").encode("utf-8", "replace"))
                return


def unspool(stream: "_socket.socket", read: "Callable[[], bytes]", until: float) -> None:
    """Send the spooled entries, one process at a time; those not acknowledged stay for the next call."""
    path = SETTINGS["spool"]
    sending = path + ".sending"
    if not (os.path.exists(path) or os.path.exists(sending)):
        return
    import fcntl

    with open(path + ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return  # another process is at it
        while until - time.monotonic() > 0.01:
            if not os.path.exists(sending):
                if not os.path.exists(path):
                    return
                os.rename(path, sending)
            with open(sending, "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX)  # whoever had it open has written
                lines = file.read().decode("utf-8", "replace").splitlines()
            some = lines[:500]
            sent = exchange(stream, read, [xadd(line.split("\t")) for line in some], until)
            left = lines[sent:]
            if left:
                with open(sending + ".new", "w") as file:
                    file.write("\n".join(left) + "\n")
                os.rename(sending + ".new", sending)
            else:
                os.unlink(sending)
            if sent < len(some):
                return


if __name__ == "__main__":
    try:
        main()
    except Exception as error:  # the scheduler goes on, whatever happens here
        print("simmodel:", error, file=sys.stderr)
