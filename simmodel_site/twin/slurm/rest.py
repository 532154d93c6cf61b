"""Slurm's REST interface on a unix socket of this computer: answers to GET, the one method that is ever used."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException, HTTPResponse

from simmodel import InputError
from simmodel.extending import parse_json, shown, unknown
from simmodel_site.twin.slurm.answers import PARSERS
from simmodel_site.twin.slurm.commands import SlurmError
from simmodel_site.twin.sources.polling import checked_answers

__all__ = ["PATHS", "SlurmRest"]

PATHS = ("jobs", "nodes", "partitions", "reservations", "licenses")
"""All that is asked, below ``/slurm/VERSION/``."""

_VERSIONS = tuple(f"v0.0.{number}" for number in reversed(PARSERS))


class _OnSocket(HTTPConnection):
    """A connection to a unix socket."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class SlurmRest:
    """Asks slurmrestd on a unix socket.

    A token for it, if it wants one, stands in the environment as ``SLURM_JWT``.

    Parameters
    ----------
    path
        the socket
    timeout
        the longest time of an answer (s)

    >>> SlurmRest("/nowhere/socket").read("jobs")
    Traceback (most recent call last):
    ...
    simmodel_site.twin.slurm.commands.SlurmError: slurmrestd at /nowhere/socket: No such file or directory
    """

    def __init__(self, path: str, timeout: float = 30.0) -> None:
        if not timeout > 0:
            raise InputError(f"must be a number > 0 (s), got {timeout!r}", place="timeout")
        self.path = path
        self.timeout = timeout
        self._version: str | None = None

    def __repr__(self) -> str:
        return f"<SlurmRest {self.path}>"

    def read(self, what: str) -> bytes:
        """Return an answer in JSON, of the newest version that both sides know.

        Raises
        ------
        SlurmError
            no answer comes, or one with an error status
        """
        if what not in PATHS:
            raise unknown("path", what, PATHS)
        for version in _VERSIONS if self._version is None else (self._version,):
            status, data = self._get(f"/slurm/{version}/{what}")
            if status == 200:
                self._version = version
                return data
            if status != 404:
                break
        self._version = None
        said = " ".join(data[:1000].decode("utf-8", "replace").split())
        raise SlurmError(f"slurmrestd at {self.path}: status {status}, saying {shown(said, 200)}")

    def check(self) -> Iterator[str]:
        """Yield sentences on the answers of slurmrestd; raises ``SimmodelError``."""
        yield from checked_answers(dict.fromkeys(("jobs", "nodes"), f"slurmrestd at {self.path}"), self._count)
        yield "it asks slurmrestd with GET alone"

    def _count(self, what: str) -> int:
        answer = parse_json(self.read(what), what)
        found = answer.get(what) if isinstance(answer, dict) else None
        return len(found) if isinstance(found, list) else 0

    def _get(self, path: str) -> tuple[int, bytes]:
        connection = _OnSocket(self.path, self.timeout)
        token = os.environ.get("SLURM_JWT")
        try:
            connection.request("GET", path, headers={} if token is None else {"X-SLURM-USER-TOKEN": token})
            answer: HTTPResponse = connection.getresponse()
            return answer.status, answer.read()
        except TimeoutError:
            raise SlurmError(f"slurmrestd at {self.path}: no answer within {self.timeout:g} s") from None
        except (OSError, HTTPException) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise SlurmError(f"slurmrestd at {self.path}: {why}") from None
        finally:
            connection.close()
