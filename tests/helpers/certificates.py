"""Certificates for tests of TLS, made by the openssl command."""

from __future__ import annotations

import subprocess
from pathlib import Path

SETTINGS = """
[ca]
default_ca = authority
[authority]
dir = {folder}
database = {folder}/index
new_certs_dir = {folder}
serial = {folder}/serial
default_md = sha256
unique_subject = no
policy = any
copy_extensions = copy
[any]
commonName = supplied
[req]
distinguished_name = name
[name]
[authority_of_all]
basicConstraints = critical,CA:true
"""


class Authority:
    """An authority that signs certificates for ``localhost`` and 127.0.0.1, kept in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.settings = folder / "settings"
        self.settings.write_text(SETTINGS.format(folder=folder))
        (folder / "index").touch()
        (folder / "serial").write_text("01\n")
        self.certificate = folder / "authority.crt"
        self._key = folder / "authority.key"
        request = ["-x509", "-extensions", "authority_of_all", "-subj", "/CN=authority of a test", "-days", "2"]
        self._run("req", *request, "-keyout", str(self._key), "-out", str(self.certificate), *_NEW_KEY)

    def sign(self, name: str, host: str = "localhost", *, expired: bool = False) -> tuple[Path, Path]:
        """Return the files of a new certificate and its key; ``expired``: it was valid in 2020."""
        certificate, key, request = (self.folder / f"{name}.{end}" for end in ("crt", "key", "csr"))
        names = f"subjectAltName=DNS:{host}" + (",IP:127.0.0.1" if host == "localhost" else "")
        self._run("req", "-subj", f"/CN={host}", "-addext", names, "-keyout", str(key), "-out", str(request), *_NEW_KEY)
        valid = ["-startdate", "20200101000000Z", "-enddate", "20200201000000Z"] if expired else ["-days", "2"]
        signer = ["-cert", str(self.certificate), "-keyfile", str(self._key), "-notext", "-batch"]
        self._run("ca", *signer, *valid, "-in", str(request), "-out", str(certificate))
        return certificate, key

    def _run(self, command: str, *arguments: str) -> None:
        found = subprocess.run(
            ["openssl", command, "-config", str(self.settings), *arguments], capture_output=True, text=True, check=False
        )
        assert found.returncode == 0, found.stderr


_NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
