"""A wheel or a source distribution, installed into an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path


def environment(**more: str) -> dict[str, str]:
    """Return the environment of this process without the paths of Python and the settings of pip."""
    return {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PIP_", "COV"))} | more


def run(*command: str | Path, cwd: Path, **more: str) -> str:
    """Run a command with no path of this process and no settings of pip, and return what it prints."""
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=environment(**more), capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def install(distribution: Path, folder: Path) -> Path:
    """Return the Python of a new environment that holds the distribution, and sees the libraries of this one.

    Nothing is downloaded. A folder named in a .pth file is searched, but .pth files in it are not followed: a checkout
    that is installed in this environment stays out of sight.
    """
    venv.create(folder / "env", with_pip=False, symlinks=os.name != "nt")
    python = folder / "env" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    libraries = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip())
    (site / "libraries.pth").write_text("\n".join(sorted(libraries)) + "\n")
    pip = (
        sys.executable,
        "-m",
        "pip",
        "--isolated",
        "--python",
        python,
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        "--no-build-isolation",
        "--force-reinstall",
    )
    run(*pip, distribution, cwd=folder)
    return python
