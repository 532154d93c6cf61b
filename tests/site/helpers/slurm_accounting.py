"""A real Slurm of virtual nodes with slurmdbd, so that sacct and sacctmgr tell what they tell at a site.

Needs Debian's slurmdbd and mariadb-server (``apt-get install --no-install-recommends slurmdbd mariadb-server``).
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from tests.site.helpers.slurm_cluster import SlurmCluster, _free_ports, wait_until

PROGRAMS = ("slurmdbd", "mariadbd", "mysql_install_db", "sacct", "sacctmgr")

Kind = tuple[str, int, str]
"""Nodes of slurm.conf: their list, their number, and what else their line says."""


class AccountedCluster(SlurmCluster):
    """A cluster with a database of its own, on 127.0.0.1 only.

    Parameters
    ----------
    kinds
        its nodes
    others
        as of :class:`~tests.site.helpers.slurm_cluster.SlurmCluster`
    """

    def __init__(self, kinds: Sequence[Kind], **others: Any) -> None:
        super().__init__(nodes=sum(count for _, count, _ in kinds), **others)
        self.kinds = kinds
        self.servers: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start the database, slurmdbd and the cluster; GPUs are empty files."""
        self.folder.chmod(0o755)
        for number in range(8):
            (self.folder / f"gpu{number}").touch()
        self._start_database()
        super().start()

    def stop(self) -> None:
        """Stop the cluster, then slurmdbd and the database, and remove the folder."""
        try:
            super().stop()
        finally:
            for each in reversed(self.servers):
                each.terminate()
                try:
                    each.wait(20)
                except subprocess.TimeoutExpired:
                    each.kill()
                    each.wait()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _write(self) -> None:
        """Write slurm.conf with a line for each kind of nodes in place of one for all."""
        super()._write()
        lines = []
        for line in self.conf.read_text().splitlines():
            if not line.startswith("NodeName="):
                lines.append(line)
                continue
            first = int(line.partition("Port=[")[2].partition("-")[0])
            for names, count, rest in self.kinds:
                ports = f"[{first}-{first + count - 1}]" if count > 1 else f"{first}"
                where = f"NodeHostname={socket.gethostname()} NodeAddr=127.0.0.1 Port={ports}"
                lines.append(f"NodeName={names} {where} {rest} State=UNKNOWN")
                first += count
        self.conf.write_text("\n".join([*lines, ""]))

    def _start_database(self) -> None:
        folder, user = self.folder, self.user
        data, conf = folder / "database", folder / "slurmdbd.conf"
        data.mkdir()
        port = _free_ports(2)
        settings = {
            "AuthType": "auth/none",
            "DbdHost": "localhost",
            "DbdAddr": "127.0.0.1",
            "DbdPort": port + 1,
            "SlurmUser": user.pw_name,
            "StorageType": "accounting_storage/mysql",
            "StorageHost": "127.0.0.1",
            "StoragePort": port,
            "StorageUser": "root",
            "StoragePass": "none",
            "LogFile": folder / "slurmdbd.log",
            "PidFile": folder / "slurmdbd.pid",
        }
        conf.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        conf.chmod(0o600)
        if not os.geteuid():
            for path in (folder, data, conf):
                os.chown(path, user.pw_uid, user.pw_gid)
        self.run("mysql_install_db", f"--datadir={data}", "--auth-root-authentication-method=normal", "--skip-test-db")
        self._serve(
            port,
            *("mariadbd", "--no-defaults", f"--datadir={data}", f"--socket={folder}/mysql.sock", f"--port={port}"),
            *("--bind-address=127.0.0.1", "--skip-grant-tables", "--innodb-lock-wait-timeout=900"),
        )
        self._serve(port + 1, "slurmdbd", "-D")
        self.settings |= {
            "AccountingStorageType": "accounting_storage/slurmdbd",
            "AccountingStorageHost": "127.0.0.1",
            "AccountingStoragePort": str(port + 1),
        }

    def _serve(self, port: int, *command: str) -> None:
        """Start a server, and wait until it listens."""
        with (self.folder / "servers").open("ab") as out:
            words = [*self._as_user(), *command]
            self.servers.append(subprocess.Popen(words, env=self.environment, stdout=out, stderr=out, cwd=self.folder))

        def listens() -> bool:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return True
            return False

        wait_until(listens, 90, command[0])
