"""``simmodel generate``: draw a workload from a model."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simmodel.commands.shared import check_outputs, seed
from simmodel.errors import InputError, unknown

if TYPE_CHECKING:
    from simmodel.commands.shared import Commands

__all__ = ["add", "run"]


def add(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser("generate", help="draw a workload from a model", description=run.__doc__)
    parser.add_argument("model", metavar="MODEL", help="lublin, poisson, or a TOML file of settings")
    parser.add_argument("--jobs", type=int, metavar="N", help="default: 5000")
    parser.add_argument("--processors", type=int, metavar="N", help="of the machine (default: 256)")
    parser.add_argument("--seed", type=seed, metavar="S", help="default: 0")
    parser.add_argument("--load", type=float, metavar="RHO", help="scale the gaps to this offered load, such as 0.9")
    parser.add_argument("--estimates", action="store_true", help="draw requested times as users give them")
    parser.add_argument("--classes", metavar="A,B", help="lublin: batch,interactive (default) or typeless")
    parser.add_argument("--gap", type=float, metavar="S", help="poisson: mean gap, s (default: 60)")
    parser.add_argument("--run", type=float, metavar="S", help="poisson: mean run, s (default: 3600)")
    parser.add_argument("--size", type=int, metavar="N", help="poisson: processors a job (default: 1)")
    parser.add_argument("-o", "--output", type=Path, metavar="OUT.swf", help="default: the terminal")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """Draw a workload from a model, and write it in the Standard Workload Format."""
    from simmodel.formats.swf import write_swf

    check_outputs(options, "output")
    log = _generated(options)
    if options.output is not None:
        write_swf(log, options.output)
        size = "" if log.processors is None else f" for {log.processors:,} processors"
        print(f"{len(log):,} jobs{size} written to {options.output}")
        return
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        write_swf(log, Path(folder, "log.swf"))
        sys.stdout.write(Path(folder, "log.swf").read_text(encoding="utf-8"))


_OF_ALL = ("jobs", "processors", "load", "estimates")
_OF_MODEL = {"lublin": ("classes",), "poisson": ("gap", "run", "size")}


def _refuse(options: argparse.Namespace, *names: str) -> None:
    """Refuse options that would change nothing: a file of settings says all, and a model knows its own."""
    for name in names:
        if getattr(options, name) not in (None, False):
            raise InputError(f"no --{name} expected: {options.model} does not read it")


def _generated(options: argparse.Namespace) -> Any:
    from simmodel.generators.settings import generate, read_settings

    if options.model.endswith(".toml"):
        _refuse(options, *_OF_ALL, *(name for names in _OF_MODEL.values() for name in names))
        return read_settings(options.model, seed=options.seed)
    if options.model not in _OF_MODEL:
        raise unknown("model", options.model, _OF_MODEL)
    _refuse(options, *(name for model, names in _OF_MODEL.items() if model != options.model for name in names))
    common = {
        "jobs": 5000 if options.jobs is None else options.jobs,
        "processors": 256 if options.processors is None else options.processors,
    }
    if options.model == "lublin":
        generator, parameters = "lublin", {} if options.classes is None else {"classes": options.classes.split(",")}
    else:
        size = 1 if options.size is None else options.size
        if not 1 <= size <= common["processors"]:
            raise InputError(
                f"--size: from 1 to {common['processors']} processors, those of the machine, expected, found {size}"
            )
        means = {
            "gap": 60.0 if options.gap is None else options.gap,
            "run": 3600.0 if options.run is None else options.run,
        }
        drawn = {name: {"distribution": "exponential", "mean": mean} for name, mean in means.items()}
        generator, parameters = "synthetic", {**drawn, "size": size}
    settings: dict[str, Any] = {"generator": generator, "parameters": {**common, **parameters}}
    if options.load is not None:
        settings["load"] = {"to": options.load}
    if options.estimates:
        settings["estimates"] = {}
    return generate(settings, seed=options.seed)
