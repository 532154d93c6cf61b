"""Executable Python programs that stand in for commands of schedulers, wherever the interpreter is."""

from __future__ import annotations

import sys

_START = "#!/bin/sh\n''''exec \"{python}\" {options} \"$0\" \"$@\" # '''\n"


def python_program(text: str, options: str = "") -> str:
    """Return a program of Python that the kernel can start: a shebang cannot name an interpreter whose path has spaces.

    The shell reads the second line as a command, Python as a text.
    """
    return _START.format(python=sys.executable, options=options) + text
