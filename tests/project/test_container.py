"""The container file: what it copies is there and enough for a wheel; where a builder is, it is built and run."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.helpers.paths import ROOT, is_absent

TEXT = (ROOT / "Containerfile").read_text("utf-8").replace("\\\n", " ")
STEPS = [
    (word, rest.strip()) for word, _, rest in (line.partition(" ") for line in TEXT.splitlines()) if word.isupper()
]
COPIED = [
    source for word, rest in STEPS if word == "COPY" and not rest.startswith("--from=") for source in rest.split()[:-1]
]
BASE = next(rest.split()[0] for word, rest in STEPS if word == "FROM")


def ran(*command: str | Path, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=timeout)


def test_what_is_copied_is_there_and_not_ignored() -> None:
    assert len(COPIED) > 5
    assert [name for name in COPIED if not (ROOT / name).exists() and not is_absent(name)] == []
    ignored = (ROOT / ".dockerignore").read_text("utf-8").split()
    assert ignored[0] == "*"
    assert {line[1:] for line in ignored if line.startswith("!")} == {*COPIED}


def test_it_runs_the_command_line_and_not_as_root() -> None:
    last = dict(STEPS)  # of each kind of step the last one
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    assert json.loads(last["ENTRYPOINT"]) == [*scripts] == ["simmodel"]
    assert last["USER"] == "simmodel"
    assert re.search(r"useradd .*\bsimmodel\b", TEXT)


@pytest.mark.long  # the wheel itself: tests/project/test_wheel.py
def test_what_is_copied_is_enough_for_a_wheel(tmp_path: Path) -> None:
    pytest.importorskip("build")
    pytest.importorskip("hatchling")
    source = tmp_path / "source"
    source.mkdir()
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source)
    done = ran(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, source, timeout=600)
    assert done.returncode == 0, done.stderr
    assert len([*tmp_path.glob("simmodel-*.whl")]) == 1


def builder() -> str:
    """Return the program that builds images here, or skip the test."""
    for name in ("podman", "docker"):
        if shutil.which(name) and ran(name, "info").returncode == 0:
            if ran(name, "pull", BASE, timeout=600).returncode:
                pytest.skip(f"{name} cannot get {BASE}")
            return name
    pytest.skip("no podman and no docker that runs")


@pytest.mark.long
def test_the_image_replays_a_ready_workload_into_a_mounted_folder(tmp_path: Path) -> None:
    name = builder()
    built = ran(name, "build", "-f", ROOT / "Containerfile", "-t", "simmodel-test", ROOT, timeout=1200)
    assert built.returncode == 0, built.stderr
    try:
        assert "simmodel batch" in ran(name, "run", "--rm", "simmodel-test").stdout
        tmp_path.chmod(0o777)  # the user of the container is another
        mounted = ("-v", f"{tmp_path}:/data", "simmodel-test")
        done = ran(
            *(name, "run", "--rm", *mounted, "batch", "lublin-128-week", "--html", "run.html", "--plot", "run.png"),
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "run.html").exists()
        assert (tmp_path / "run.png").exists()
    finally:
        ran(name, "rmi", "-f", "simmodel-test")
