"""Programs run in a separate Python process."""

import os
import subprocess
import sys

from tests.helpers.paths import ROOT


def environment() -> dict[str, str]:
    """Return the environment of a new process with the import path of this one."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONIOENCODING": "utf-8"}


def printed(program: str, hash_seed: str = "random") -> str:
    """Run a program in a new process with the import path of this one, and return its output."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**environment(), "PYTHONHASHSEED": hash_seed},
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
