"""``simmodel twin install-hooks``."""

from pathlib import Path

import pytest

from simmodel.cli import main


def test_it_writes_scripts_and_prints_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "hooks"
    words = ["--cluster", "alps", "--stream", "rediss://redis.example:6380", "--key", "events", "--user", "hook"]
    words += ["--password-file", str(tmp_path / "password"), "--spool", str(tmp_path / "spool")]
    assert main(["twin", "install-hooks", str(folder), *words]) == 0
    assert f"\nPrologSlurmctld={folder}/prolog-slurmctld\n" in capsys.readouterr().out
    settings = (folder / "tell.py").read_text().partition('SETTINGS: "dict[str, str]" = ')[2].partition("\n")[0]
    assert eval(settings) == {
        "cluster": "alps",
        "stream": "events",
        "host": "redis.example",
        "port": "6380",
        "tls": "yes",
        "user": "hook",
        "password_file": str(tmp_path / "password"),
        "spool": str(tmp_path / "spool"),
    }


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["hooks"], "missing --cluster"),
        (["hooks", "--cluster", "a", "--stream", "http://x"], "url: must be redis://HOST:PORT"),
        (["hooks", "--cluster", "a", "--stream", "redis://u:p@x"], "url: must not hold a password"),
        (["a b", "--cluster", "a"], "folder: must be a path of letters"),
    ],
)
def test_wrong_input_is_one_sentence(
    words: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["twin", "install-hooks", *words]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
    assert not list(tmp_path.iterdir())
