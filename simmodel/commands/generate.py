"""``simmodel generate``: draw a workload from a model."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from simmodel.commands.shared import add_seed
from simmodel.commands.values import at_least_one, output, positive, seconds, source
from simmodel.errors import InputError, unknown
from simmodel.writing import STDOUT

if TYPE_CHECKING:
    from simmodel.work.workload import Workload

__all__ = ["EXAMPLES", "add", "run"]

EXAMPLES = (
    "simmodel generate lublin --jobs 1000 --processors 512 --load 0.9 --estimates -o drawn.swf",
    "simmodel generate poisson --jobs 100 --processors 64 --gap 5min --run 1h --size 8 -o steady.swf",
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("model", type=source, metavar="MODEL", help="lublin, poisson, or a TOML file of settings")
    parser.add_argument("--jobs", type=at_least_one, metavar="N", help="number of jobs (default: 5000)")
    parser.add_argument("--processors", type=at_least_one, metavar="N", help="of the machine (default: 256)")
    add_seed(parser)
    parser.add_argument("--load", type=positive, metavar="RHO", help="scale the gaps to this offered load, such as 0.9")
    parser.add_argument("--estimates", action="store_true", help="draw requested times as users estimate them")
    parser.add_argument("-o", "--output", type=output, metavar="OUT.swf", help="default: standard output")
    lublin = parser.add_argument_group("lublin")
    lublin.add_argument("--classes", metavar="A,B", help="batch,interactive (default) or typeless")
    poisson = parser.add_argument_group("poisson")
    poisson.add_argument("--gap", type=seconds, metavar="TIME", help="mean time between submissions (default: 60)")
    poisson.add_argument("--run", type=seconds, metavar="TIME", help="mean run time (default: 3600)")
    poisson.add_argument("--size", type=at_least_one, metavar="N", help="processors per job (default: 1)")


def run(options: argparse.Namespace) -> None:
    """Draw a workload from a model and write it in the Standard Workload Format."""
    from simmodel.formats.swf import write_swf

    log = _generated(options)
    write_swf(log, options.output or STDOUT)
    if options.output is not None and options.output is not STDOUT:
        size = "" if log.processors is None else f" for {log.processors:,} processors"
        print(f"{len(log):,} jobs{size} written to {options.output}")


_OF_ALL = ("jobs", "processors", "load", "estimates")
_OF_MODEL = {"lublin": ("classes",), "poisson": ("gap", "run", "size")}


def _refuse(options: argparse.Namespace, *names: str) -> None:
    """Refuse options that the model, or a file of settings, would ignore."""
    for name in names:
        if getattr(options, name) not in (None, False):
            raise InputError(f"{options.model} has no option --{name}")


def _generated(options: argparse.Namespace) -> Workload:
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
        if size > common["processors"]:
            raise InputError(f"--size: must be <= {common['processors']}, the processors of the machine, got {size}")
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
