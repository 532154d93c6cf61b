"""The guard against test names that differ from one process to the next refuses those, and only those."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAD = "import gzip, pytest\n@pytest.mark.parametrize('value', "
BODY = ")\ndef test_value(value):\n    pass\n"
UNSTABLE = {
    "bytes": ("[gzip.compress(b'x')]", "value: bytes must have ids=... or pytest.param(..., id=...)"),
    "bytes in a tuple": ("[pytest.param(b'x')]", "bytes must have ids=... or pytest.param(..., id=...), got b'x'"),
    "a set": ("{'a', 'b'}", "test_value: parameters must have a fixed order, got a set"),
    "an address": ("[object()], ids=repr", "the id must be the same in every process, got an address"),
}


def collected(folder: Path, parameters: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(HEAD + parameters + BODY)
    (folder / "pytest.ini").write_text("[pytest]\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTEST_ADDOPTS": ""}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.helpers.stable_ids",
        "-p",
        "no:cacheprovider",
        "--collect-only",
        "-q",
    ]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        pytest.param(*each, id=name, marks=[pytest.mark.long] if name == "bytes in a tuple" else [])
        for name, each in UNSTABLE.items()
    ],
)
def test_an_unstable_id_is_refused(parameters: str, sentence: str, tmp_path: Path) -> None:
    done = collected(tmp_path, parameters)
    assert done.returncode != 0
    assert sentence in done.stdout + done.stderr


@pytest.mark.long  # the ids of all tests pass
def test_stable_ids_pass(tmp_path: Path) -> None:
    done = collected(tmp_path, "[1, 'a', None, pytest.param(gzip.compress(b'x'), id='packed'), len, object()]")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("test_value[") == 6
    assert "test_value[packed]" in done.stdout


def test_the_tests_are_guarded(request: pytest.FixtureRequest) -> None:
    with pytest.raises(pytest.UsageError, match="bytes must have ids"):
        request.node.ihook.pytest_make_parametrize_id(config=request.config, val=b"x", argname="value")
