"""Passwords: from a file or the environment, in no text that anybody sees; one sentence for each refusal."""

import os
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from simmodel.cli import main
from simmodel.foundation.errors import InputError
from simmodel_site.twin.events import Passed
from simmodel_site.twin.logs import Log
from simmodel_site.twin.serving import StatusServer
from simmodel_site.twin.sources.stream import StreamSource
from simmodel_site.twin.status import Status
from simmodel_site.twin.streams import RedisSettings, StreamWriter
from tests.site.helpers.redis_server import KINDS, RedisServer, program_of
from tests.site.helpers.twin_records import recorded

SECRET = "correct-horse-7f3a"
WRONG = "wrong-horse-99c1"
KEY = "simmodel:alps"
USERS = [
    *("--user", "default", "off"),
    *("--user", "hook", "on", f">{SECRET}", f"~{KEY}", "+xadd"),
    *("--user", "twin", "on", f">{SECRET}", f"~{KEY}", "+xread", "+xinfo|stream"),
]
EVENT = Passed(cluster="alps", time=1.0)


@pytest.fixture(params=KINDS)
def guarded(request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    """A server with a user for the hooks, who may only append, and one for the twin, who may only read."""
    server = RedisServer(program_of(request.param))
    (server.folder / "users").write_text(
        "".join(f"{line.strip()}\n" for line in " ".join(USERS).replace("--user", "\nuser").split("\n") if line.strip())
    )
    server.arguments += ["--aclfile", str(server.folder / "users")]
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture
def records(tmp_path: Path) -> Iterator[Path]:
    """The file of what is logged, at every level."""
    with recorded(tmp_path / "records") as path:
        yield path


def settings(server: RedisServer, user: str | None, tmp_path: Path, secret: str = SECRET) -> RedisSettings:
    path = tmp_path / "password"
    path.write_text(f"{secret}\n")
    path.chmod(0o600)
    return attrs.evolve(server.settings, user=user, password_file=str(path))


def everything_about(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)) + repr(error) + str(error)


def test_each_role_does_its_part(guarded: RedisServer, tmp_path: Path) -> None:
    writer = StreamWriter(KEY, settings(guarded, "hook", tmp_path))
    source = StreamSource("alps", settings(guarded, "twin", tmp_path))
    writer.write(EVENT)
    assert source.events(0) == [EVENT]
    assert source.check()[0].endswith("of 1 entries may be read")
    writer.close()
    source.close()


@pytest.mark.parametrize(
    ("user", "secret", "sentence"),
    [
        ("twin", WRONG, "user 'twin': wrong user or password, or none given"),
        ("nobody", SECRET, "user 'nobody': wrong user or password, or none given"),
        ("hook", SECRET, f"user 'hook': must have the rights +xread +xinfo|stream on the key '{KEY}'"),
    ],
    ids=["wrong password", "unknown user", "refused command"],
)
def test_a_refusal_is_one_sentence_without_the_password(
    guarded: RedisServer, tmp_path: Path, user: str, secret: str, sentence: str, records: Path
) -> None:
    source = StreamSource("alps", settings(guarded, user, tmp_path, secret))
    for ask in (lambda: source.events(0), source.check):
        with pytest.raises(InputError) as caught:
            ask()
        assert str(caught.value).startswith(f"{guarded.settings.url}, {sentence}; the server: ")
        assert "\n" not in str(caught.value)
        said = everything_about(caught.value) + repr(source) + repr(source.server) + records.read_text("utf-8")
        assert secret not in said
    source.close()


def test_the_command_check_says_what_the_twin_may_do(
    guarded: RedisServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "twin.toml"
    source = f'kind = "redis"\nurl = "{guarded.settings.url}"\nuser = "twin"\npassword_file = "password"\n'
    config.write_text(f'cluster = "alps"\nplatform = "theta"\n[source]\n{source}')
    settings(guarded, "twin", tmp_path)
    assert main(["twin", "check", str(config)]) == 0
    said = capsys.readouterr()
    assert f"{guarded.settings.url}: no stream '{KEY}' yet; it may be read\n" in said.out
    settings(guarded, "twin", tmp_path, WRONG)
    assert main(["twin", "check", str(config)]) == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert "user 'twin': wrong user or password, or none given" in said.err
    assert WRONG not in said.out + said.err


def test_who_reads_cannot_write_and_who_writes_no_other_key(guarded: RedisServer, tmp_path: Path) -> None:
    reader = StreamWriter(KEY, settings(guarded, "twin", tmp_path))
    with pytest.raises(InputError, match=r"user 'twin': must have the rights \+xadd on the key 'simmodel:alps'"):
        reader.write(EVENT)
    hook = StreamWriter("simmodel:other", settings(guarded, "hook", tmp_path))
    with pytest.raises(InputError, match=r"user 'hook': must have the rights \+xadd on the key 'simmodel:other'"):
        hook.write(EVENT)
    client: Any = settings(guarded, "twin", tmp_path).client()
    for command in (["XADD", KEY, "*", "a", "b"], ["DEL", KEY], ["XTRIM", KEY, "MAXLEN", "0"], ["FLUSHALL"]):
        with pytest.raises(Exception, match="permission"):
            client.execute_command(*command)
    for each in (reader, hook, client):
        each.close()


def test_a_refusal_later_is_trouble_and_the_source_recovers(
    guarded: RedisServer, tmp_path: Path, records: Path
) -> None:
    asked = settings(guarded, "twin", tmp_path)
    source = StreamSource("alps", asked, check=0)
    assert source.events(0) == []
    guarded.kill()
    settings(guarded, "twin", tmp_path, WRONG)  # the file changes while the server restarts
    guarded.start()
    assert source.events(0) == []
    assert source.trouble is not None
    assert "wrong user or password" in source.trouble
    with StatusServer(Status(cluster="alps", troubles=(source.trouble,))) as served:
        assert WRONG not in str(served.document())
    settings(guarded, "twin", tmp_path)
    assert source.events(0) == []
    assert source.trouble is None
    assert SECRET not in records.read_text("utf-8")
    assert WRONG not in records.read_text("utf-8")
    assert "wrong user or password" in records.read_text("utf-8")
    source.close()


def test_a_password_from_the_environment(guarded: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = attrs.evolve(guarded.settings, user="twin", password_variable="TWIN_PASSWORD")
    with pytest.raises(InputError, match=r"password of user 'twin': must be in password_file or .* as TWIN_PASSWORD"):
        StreamSource("alps", asked).events(0)
    monkeypatch.setenv("TWIN_PASSWORD", SECRET)
    source = StreamSource("alps", asked)
    assert source.events(0) == []
    for each in (asked, source, source._client, source._client.connection_pool):  # type: ignore[union-attr]
        assert SECRET not in repr(each)
        assert SECRET not in str(vars(each) if hasattr(each, "__dict__") else each)
    source.close()


def test_a_missing_password_is_one_sentence(guarded: RedisServer) -> None:
    source = StreamSource("alps", guarded.settings)
    with pytest.raises(InputError, match="the default user: wrong user or password, or none given"):
        source.events(0)
    source.close()


@pytest.mark.parametrize(
    ("text", "mode", "sentence"),
    [
        (SECRET, 0o644, r"must be closed to others \(chmod o-rwx\), got mode 644"),
        ("", 0o600, "must have the password as its first line, found none"),
        (None, 0o600, r"must be a readable file \(No such file or directory\)"),
    ],
    ids=["open", "empty", "missing"],
)
def test_a_password_file_that_is_none(tmp_path: Path, text: str | None, mode: int, sentence: str) -> None:
    path = tmp_path / "password"
    if text is not None:
        path.write_text(text)
        path.chmod(mode)
    with pytest.raises(InputError, match=sentence) as caught:
        StreamSource("alps", RedisSettings(user="twin", password_file=str(path))).events(0)
    assert SECRET not in everything_about(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        f"redis://twin:{SECRET}@localhost",
        f"redis://:{SECRET}@localhost",
        f"redis://twin:{SECRET}@localhost:99999999",
        f"{SECRET}",
        f"redis://[{SECRET}",
        f"http://{SECRET}@localhost",
    ],
    ids=["password", "no user", "port", "none", "bracket", "scheme"],
)
def test_an_address_with_a_password_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(InputError, match=r"^url: must ") as caught:
        RedisSettings(url=url)
    assert SECRET not in everything_about(caught.value)


def write_records() -> None:
    log = Log("mirror", cluster="alps").bound(job='7"\n\x1b[2J')
    log.debug("a detail")
    log.info("job came", submit=4.0, known=True, name="n" * 1_000_000, time="yesterday")
    log.error("two\nlines", reason=InputError("must be > 0", "f", "line 3"))


def test_records_are_lines_of_json_with_their_context(tmp_path: Path) -> None:
    import json

    path = tmp_path / "twin.log"
    with recorded(path):
        write_records()
    _, first, second = (json.loads(line) for line in path.read_text("utf-8").splitlines())
    assert (first["level"], first["part"], first["message"]) == ("info", "mirror", "job came")
    assert (first["cluster"], first["job"], first["submit"], first["known"]) == ("alps", '7"\n\x1b[2J', 4.0, True)
    assert len(first["name"]) == 1000
    assert first["time"].endswith("+00:00")
    assert (second["message"], second["reason"]) == ("two\nlines", "f, line 3: must be > 0")
    assert os.path.getsize(path) < 5000
