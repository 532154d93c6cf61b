"""``simmodel generate``: draw a workload from a model."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from simmodel.commands.outputs import QUIET
from simmodel.commands.shared import SEED
from simmodel.commands.values import argument, at_least_one, command, group, output, positive, seconds, source
from simmodel.foundation.errors import InputError, unknown
from simmodel.foundation.writing import STDOUT

if TYPE_CHECKING:
    from simmodel.work.workload import Workload


@command(
    "generate",
    argument("model MODEL", "lublin, poisson, or a TOML file of settings", source),
    argument("--jobs N", "number of jobs (default: 5000)", at_least_one),
    argument("--processors N", "of the machine (default: 256)", at_least_one),
    SEED,
    argument("--load RHO", "scale the gaps to this offered load, such as 0.9", positive),
    argument("--estimates", "draw requested times as users estimate them"),
    argument("-o --output OUT.swf", "default: standard output", output),
    group("display", QUIET),
    group("lublin", argument("--classes A,B", "batch,interactive (default) or typeless")),
    group(
        "poisson",
        argument("--gap TIME", "mean time between submissions (default: 60)", seconds),
        argument("--run TIME", "mean run time (default: 3600)", seconds),
        argument("--size N", "processors per job (default: 1)", at_least_one),
    ),
    examples=(
        "simmodel generate lublin --jobs 1000 --processors 512 --load 0.9 --estimates -o drawn.swf",
        "simmodel generate poisson --jobs 100 --processors 64 --gap 5min --run 1h --size 8 -o steady.swf",
    ),
)
def run(options: argparse.Namespace) -> None:
    """Draw a workload from a model and write it in the Standard Workload Format."""
    from simmodel.formats.swf import write_swf

    log = _generated(options)
    write_swf(log, options.output or STDOUT)
    if options.output not in (None, STDOUT) and not options.quiet:
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
    common = {"jobs": options.jobs or 5000, "processors": options.processors or 256}
    if options.model == "lublin":
        generator, parameters = "lublin", {} if options.classes is None else {"classes": options.classes.split(",")}
    else:
        size = options.size or 1
        if size > common["processors"]:
            raise InputError(f"--size: must be <= {common['processors']}, the processors of the machine, got {size}")
        means = {"gap": options.gap or 60.0, "run": options.run or 3600.0}
        drawn = {name: {"distribution": "exponential", "mean": mean} for name, mean in means.items()}
        generator, parameters = "synthetic", {**drawn, "size": size}
    settings: dict[str, Any] = {"generator": generator, "parameters": {**common, **parameters}}
    if options.load is not None:
        settings["load"] = {"to": options.load}
    if options.estimates:
        settings["estimates"] = {}
    return generate(settings, seed=options.seed)
