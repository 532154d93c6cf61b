"""Commands in a pseudo-terminal."""

import os
import subprocess
import sys
from pathlib import Path

from tests.helpers.new_process import environment

__all__ = ["lines_in_terminal"]

_PROGRAM = """
import sys
from simmodel.cli import main
for line in sys.argv[1:]:
    print("\\0", line, flush=True)
    print("\\0", main(line.split()), flush=True)
"""


def lines_in_terminal(commands: list[str], folder: Path, columns: int = 80) -> dict[str, tuple[int, list[str]]]:
    """Run commands one after another in a terminal that is so wide; return the status and the lines of each.

    Of a line that was written over, such as a progress bar, each state is a line.
    """
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    given = {name: value for name, value in environment().items() if name != "COLUMNS"}
    words = [sys.executable, "-c", _PROGRAM, *commands]
    with subprocess.Popen(words, cwd=folder, env=given, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs):
        os.close(theirs)
        parts = []
        while True:
            try:
                parts.append(os.read(ours, 1 << 16))
            except OSError:  # the other side has been closed
                break
            if not parts[-1]:
                break
    os.close(ours)
    said = b"".join(parts).decode().replace("\r\n", "\n").split("\0 ")[1:]
    found = {}
    for begun, ended in zip(said[::2], said[1::2], strict=True):
        line, _, text = begun.partition("\n")
        found[line] = int(ended.partition("\n")[0]), text.replace("\r", "\n").split("\n")
    return found
