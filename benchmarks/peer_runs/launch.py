"""Run a command within a limit of CPU seconds: ``python launch.py REPORT LIMIT COMMAND ...``.

The report has the exit status, CPU seconds and peak memory in KiB. A small process of its own starts the command, since
the peak memory of a process counts that of the one that forked it.
"""

import os
import resource
import signal
import sys


def main(report: str, limit: str, *command: str) -> None:
    process = os.fork()
    if process == 0:
        seconds = int(float(limit))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        signal.alarm(5 * seconds)  # a process that waits for ever takes no CPU
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else only installed simulators start from compiled modules
        try:
            os.execvp(command[0], command)
        except OSError as error:
            print(f"cannot run {command[0]}: {error.strerror}", file=sys.stderr, flush=True)
            os._exit(127)
    _, status, used = os.wait4(process, 0)
    with open(report, "w") as file:
        file.write(f"{os.waitstatus_to_exitcode(status)} {used.ru_utime + used.ru_stime} {used.ru_maxrss}")


if __name__ == "__main__":
    main(*sys.argv[1:])
