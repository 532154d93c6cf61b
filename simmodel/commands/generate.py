"""``simmodel generate``: draw a workload from a model."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simmodel.commands.shared import check_outputs, seed

if TYPE_CHECKING:
    from simmodel.commands.shared import Commands

__all__ = ["add", "run"]


def add(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser("generate", help="draw a workload from a model", description=run.__doc__)
    parser.add_argument("model", metavar="MODEL", help="lublin, poisson, or a TOML file of settings")
    parser.add_argument("--jobs", type=int, default=5000, metavar="N", help="default: 5000")
    parser.add_argument("--processors", type=int, default=256, metavar="N", help="of the machine (default: 256)")
    parser.add_argument("--seed", type=seed, metavar="S", help="default: 0")
    parser.add_argument("--load", type=float, metavar="RHO", help="scale the gaps to this offered load, such as 0.9")
    parser.add_argument("--estimates", action="store_true", help="draw requested times as users give them")
    parser.add_argument("--classes", metavar="A,B", help="lublin: batch,interactive (default) or typeless")
    parser.add_argument("--gap", type=float, default=60.0, metavar="S", help="poisson: mean gap, s (default: 60)")
    parser.add_argument("--run", type=float, default=3600.0, metavar="S", help="poisson: mean run, s (default: 3600)")
    parser.add_argument("--size", type=int, default=1, metavar="N", help="poisson: processors a job (default: 1)")
    parser.add_argument("-o", "--output", type=Path, metavar="OUT.swf", help="default: the terminal")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace) -> None:
    """Draw a workload from a model, and write it in the Standard Workload Format."""
    from simmodel.formats.swf import write_swf

    check_outputs(options, "output")
    log = _generated(options)
    if options.output is not None:
        write_swf(log, options.output)
        print(f"{len(log):,} jobs for {log.processors:,} processors written to {options.output}")
        return
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        write_swf(log, Path(folder, "log.swf"))
        sys.stdout.write(Path(folder, "log.swf").read_text(encoding="utf-8"))


def _generated(options: argparse.Namespace) -> Any:
    from simmodel.generators.settings import generate, read_settings

    if options.model.endswith(".toml"):
        return read_settings(options.model, seed=options.seed)
    common = {"jobs": options.jobs, "processors": options.processors}
    models: dict[str, tuple[str, dict[str, Any]]] = {
        "lublin": ("lublin", {"classes": options.classes.split(",")} if options.classes else {}),
        "poisson": (
            "synthetic",
            {
                "gap": {"distribution": "exponential", "mean": options.gap},
                "run": {"distribution": "exponential", "mean": options.run},
                "size": options.size,
            },
        ),
    }
    if options.model not in models:
        from simmodel.scheduling.registry import unknown

        raise unknown("model", options.model, models)
    generator, parameters = models[options.model]
    settings: dict[str, Any] = {"generator": generator, "parameters": {**common, **parameters}}
    if options.load is not None:
        settings["load"] = {"to": options.load}
    if options.estimates:
        settings["estimates"] = {}
    return generate(settings, seed=options.seed)
