"""Builds the compiled form of the package, if SIMMODEL_COMPILE is set: the modules of tool.simmodel.compiled."""

import contextlib
import io
import os
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ASKED = bool(os.environ.get("SIMMODEL_COMPILE"))


class CompiledForm(BuildHookInterface):
    """Puts the compiled modules into the wheel, each beside its .py file; nothing is written into the checkout."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        return ["mypy[mypyc]>=2.4"] if ASKED else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if not ASKED:
            return
        if version == "editable":
            self.app.abort("SIMMODEL_COMPILE is set: an editable install is not compiled, edits would have no effect")
        self.folder = tempfile.TemporaryDirectory(prefix="simmodel-")
        built = compiled(Path(self.root), Path(self.folder.name))
        build_data["force_include"] |= {str(file): name for name, file in built.items()}
        build_data["pure_python"] = False
        build_data["infer_tag"] = True


def compiled(root: Path, folder: Path) -> dict[str, Path]:
    """Compile the modules of the table into a folder; return the files by their places in the wheel."""
    from mypyc.build import mypycify
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext
    from setuptools.errors import BaseError, CCompilerError

    modules = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["simmodel"]["compiled"]
    os.chdir(root)
    # Modules beside those of the table count as unknown to mypyc: it trusts no type of theirs, and reads none of them.
    options = ["--config-file=", "--follow-imports=skip", f"--cache-dir={os.devnull}", "simmodel/form.py"]
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            extensions = mypycify(
                [*options, *modules],
                only_compile_paths=modules,
                group_name="simmodel",
                target_dir=str(folder / "c"),
                opt_level="3",
                debug_level="0",
            )
    finally:
        print(said.getvalue(), end="", file=sys.stderr)
    if "warning:" in said.getvalue():  # such as a generator that becomes a list: another behaviour
        raise SystemExit("mypyc warns: the compiled form would behave in another way")
    command = build_ext(Distribution({"name": "simmodel", "ext_modules": extensions}))
    command.build_lib, command.build_temp = str(folder / "built"), str(folder / "objects")
    command.ensure_finalized()
    try:
        command.run()
    except (BaseError, CCompilerError) as error:
        raise SystemExit(
            f"SIMMODEL_COMPILE is set, but the C compiler fails ({error}); without it none is needed"
        ) from None
    files = (Path(file) for file in command.get_outputs())
    return {file.relative_to(command.build_lib).as_posix(): file for file in files}
