"""The command line: replay a log, compare policies, generate a workload, list what there is.

It only reads arguments, calls what the package offers in Python as well, and prints. Wrong input ends it with status 2
and one sentence.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from simmodel import __version__
from simmodel.errors import InputError, SimmodelError

if TYPE_CHECKING:
    from simmodel.records.result import Result

__all__ = ["main"]

BAD_INPUT = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, and return its exit status: 0, or 2 where the input is wrong.

    Parameters
    ----------
    arguments
        of the command line; default: those of this process

    >>> main(["batch", "probe-4", "--policy", "fifo"])
    2
    """
    try:
        options = _parser().parse_args(arguments)
        options.command(options)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except SimmodelError as error:
        return _complain(str(error))
    except OSError as error:
        said = error.strerror or str(error)
        return _complain(f"{error.filename}: {said}" if error.filename else said)
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130
    return 0


def _complain(sentence: str) -> int:
    print(f"simmodel: {sentence}", file=sys.stderr)
    return BAD_INPUT


# ---------------------------------------------------------------------- arguments


class _Parser(argparse.ArgumentParser):
    """Says in one sentence what is wrong with the arguments."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="simmodel", description="Simulate computing systems: replay logs of batch systems, and more.")
    parser.add_argument("--version", action="version", version=f"simmodel {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    batch = commands.add_parser("batch", help="replay a log under a policy", description=_batch.__doc__)
    _add_log(batch)
    batch.add_argument("--policy", metavar="NAME", help="default: easy; see 'simmodel list policies'")
    batch.add_argument("--order", metavar="NAME", help="instead of --policy: the order of the queue (default: fcfs)")
    batch.add_argument(
        "--backfill",
        choices=("none", "easy", "conservative", "conservative-keep"),
        help="with --order: the backfilling (default: none)",
    )
    batch.add_argument("--backfill-order", metavar="NAME", help="the order in which easy backfilling tries jobs")
    _add_run(batch)
    batch.add_argument("--events", action="store_true", help="keep each state change as well, for --db")
    files = batch.add_argument_group("files to write")
    files.add_argument("--schedule", type=Path, metavar="OUT.csv", help="one line a job, times as in the log")
    files.add_argument("--json", type=Path, metavar="OUT.json", help="metrics, counts, and what repeats the run")
    files.add_argument("--db", type=Path, metavar="OUT.sqlite", help="all tables, as an SQLite database")
    files.add_argument("--trace", type=Path, metavar="OUT.json", help="a trace for ui.perfetto.dev")
    files.add_argument("--plot", type=Path, metavar="OUT.png", help="the run on one page (.png, .pdf, .svg)")
    batch.set_defaults(command=_batch)

    compare = commands.add_parser("compare", help="run a log under several policies", description=_compare.__doc__)
    _add_log(compare)
    compare.add_argument("--policies", required=True, metavar="A,B,C", help="names, with commas between them")
    _add_run(compare)
    compare.add_argument("--workers", type=_at_least_one, default=1, metavar="N", help="processes (default: 1)")
    files = compare.add_argument_group("files to write")
    files.add_argument("--table", type=Path, metavar="OUT.csv", help="all metrics, one line a policy")
    files.add_argument(
        "--plot",
        type=Path,
        nargs="?",
        const=Path("comparison.png"),
        metavar="OUT.png",
        help="the metrics as bars (default: comparison.png)",
    )
    compare.set_defaults(command=_compare)

    generate = commands.add_parser("generate", help="draw a workload from a model", description=_generate.__doc__)
    generate.add_argument("model", metavar="MODEL", help="lublin, poisson, or a TOML file of settings")
    generate.add_argument("--jobs", type=int, default=5000, metavar="N", help="default: 5000")
    generate.add_argument("--processors", type=int, default=256, metavar="N", help="of the machine (default: 256)")
    generate.add_argument("--seed", type=_seed, metavar="S", help="default: 0")
    generate.add_argument("--load", type=float, metavar="RHO", help="scale the gaps to this offered load, such as 0.9")
    generate.add_argument("--estimates", action="store_true", help="draw requested times as users give them")
    generate.add_argument("--classes", metavar="A,B", help="lublin: batch,interactive (default) or typeless")
    generate.add_argument("--gap", type=float, default=60.0, metavar="S", help="poisson: mean gap, s (default: 60)")
    generate.add_argument("--run", type=float, default=3600.0, metavar="S", help="poisson: mean run, s (default: 3600)")
    generate.add_argument("--size", type=int, default=1, metavar="N", help="poisson: processors a job (default: 1)")
    generate.add_argument("-o", "--output", type=Path, metavar="OUT.swf", help="default: the terminal")
    generate.set_defaults(command=_generate)

    show = commands.add_parser("list", help="say what there is", description=_list.__doc__)
    show.add_argument("kind", choices=tuple(_LISTS))
    show.set_defaults(command=_list)
    return parser


def _add_log(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("log", metavar="LOG", help="a file, or a name of 'simmodel list workloads'")


def _add_run(parser: argparse.ArgumentParser) -> None:
    """Add what simulate() takes."""
    machine = parser.add_argument_group("the machine")
    machine.add_argument("--platform", metavar="NAME|FILE", help="default: as many processors as the log says")
    machine.add_argument("--processors", type=int, metavar="N", help="default: what the header of the log says")
    rules = parser.add_argument_group("the rules")
    rules.add_argument(
        "--decide-on",
        choices=("instant", "event"),
        default="instant",
        help="decide once an instant (default), or after each event",
    )
    rules.add_argument(
        "--event-order",
        choices=("submits-first", "ends-first"),
        default="submits-first",
        help="inside an instant, with --decide-on event",
    )
    rules.add_argument(
        "--estimates",
        choices=("requested", "exact", "cqsim"),
        default="requested",
        help="what policies plan with: requested times (default), run times, or CQSim's mixture",
    )
    rules.add_argument(
        "--overrun",
        choices=("stop", "continue"),
        default="stop",
        help="what a job does at its requested time (default: stop)",
    )
    rules.add_argument("--until", type=_seconds, metavar="S", help="stop at this instant")
    rules.add_argument("--seed", type=_seed, default=0, metavar="S", help="of all random numbers (default: 0)")
    rules.add_argument("--progress", action="store_true", help="show a bar")


def _seconds(text: str) -> float:
    value = float(text)
    if not (value > 0 and isfinite(value)):
        raise argparse.ArgumentTypeError(f"seconds > 0 expected, found {text}")
    return value


def _whole_from(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"a whole number from {least} on expected, found {text!r}")
        return int(text)

    return read


_seed = _whole_from(0)
_at_least_one = _whole_from(1)


def _run_options(options: argparse.Namespace) -> dict[str, Any]:
    names = ("processors", "decide_on", "event_order", "estimates", "overrun", "until", "seed", "progress")
    return {name: getattr(options, name) for name in names}


# ---------------------------------------------------------------------- commands


def _batch(options: argparse.Namespace) -> None:
    """Replay a log of a batch system under a policy, and say what happened."""
    from simmodel.simulate import simulate

    _check_outputs(options, "schedule", "json", "db", "trace", "plot")
    policy, name = _policy(options)
    result = simulate(
        options.platform,
        options.log,
        policy,
        events=options.events,
        name=f"{_label(options.log)} under {name}",
        **_run_options(options),
    )
    writers: dict[str, Callable[[Path], object]] = {
        "schedule": result.schedule_csv,
        "json": result.to_json,
        "db": result.to_sqlite,
        "trace": result.to_perfetto,
        "plot": lambda path: result.plot.overview().savefig(path, dpi=120),
    }
    said = [result.summary()]
    try:
        for kind, write in writers.items():
            path = getattr(options, kind)
            if path is not None:
                write(path)
                said.append(f"  {kind} written to {path}")
    finally:  # a run may have taken long: show what came of it, even where a file cannot be written
        print("\n".join(said))


def _policy(options: argparse.Namespace) -> tuple[Any, str]:
    """Return the policy, as a name where one says it all, and what it is called."""
    from simmodel.policies.backfilling import Backfill
    from simmodel.scheduling.registry import policy

    given = [option for option in ("order", "backfill", "backfill_order") if getattr(options, option) is not None]
    if not given:
        name = options.policy or "easy"
        _see_working_folder(name)
        policy(name)
        return name, name
    if options.policy is not None:
        raise InputError(f"--policy or --{given[0].replace('_', '-')} expected, found both")
    order, candidates = options.order or "fcfs", options.backfill_order
    backfill = options.backfill or ("none" if candidates is None else "easy")
    built = Backfill(order, backfill, candidates=candidates)
    if candidates is None:
        return (order if backfill == "none" else f"{order}+{backfill}"), built.name
    return built, built.name


def _see_working_folder(policy: str) -> None:
    """Let ``module:name`` name a policy in a file of the folder the command is given in."""
    if ":" in policy and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())


def _label(log: str) -> str:
    name = Path(log).name.removesuffix(".gz")
    return name.rpartition(".")[0] or name


def _compare(options: argparse.Namespace) -> None:
    """Run a log under several policies, and put their metrics side by side."""
    from contextlib import ExitStack

    from simmodel.experiments.compare import compare

    _check_outputs(options, "table", "plot")
    policies = [name.strip() for name in options.policies.split(",") if name.strip()]
    for name in policies:
        _see_working_folder(name)
    run = _run_options(options)
    bar = run.pop("progress")
    with ExitStack() as stack:
        executor = None
        if options.workers > 1:
            from concurrent.futures import ProcessPoolExecutor

            executor = stack.enter_context(ProcessPoolExecutor(options.workers))
        found = compare(options.platform, options.log, policies, executor=executor, progress=bar, **run)
    first: Result = found.results[0]
    head = f"{_label(options.log)}: {len(first.jobs):,} jobs on {first.processors:,} processors"
    said = [head, "", found.summary(), *first.report.lines()]
    try:
        if options.table is not None:
            found.table.to_csv(options.table)
            said.append(f"table written to {options.table}")
        if options.plot is not None:
            found.plot().savefig(options.plot, dpi=120)
            said.append(f"plot written to {options.plot}")
    finally:
        print("\n".join(said))


def _generate(options: argparse.Namespace) -> None:
    """Draw a workload from a model, and write it in the Standard Workload Format."""
    from simmodel.formats.swf import write_swf

    _check_outputs(options, "output")
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


def _list(options: argparse.Namespace) -> None:
    """Say which policies, platforms, workloads or formats there are."""
    rows = _LISTS[options.kind]()
    width = max((len(name) for name in rows), default=0)
    for name, description in rows.items():
        print(f"{name:<{width}}  {description}".rstrip())


def _list_policies() -> dict[str, str]:
    from simmodel.policies.backfilling import BACKFILLS
    from simmodel.scheduling.registry import policies

    kinds = " | ".join(kind for kind in BACKFILLS if kind != "none")
    return {**policies(), "ORDER+BACKFILL": f"any order with {kinds}", "MODULE:NAME": "a policy of one's own"}


def _list_ready(kind: str) -> dict[str, str]:
    """Return the names of ready platforms or workloads with their descriptions."""
    import tomllib

    from simmodel.work.ready import ready_file, ready_names

    described = {}
    for name in ready_names(kind):
        path = ready_file(kind, name)
        document = tomllib.loads(path.read_text("utf-8")) if path is not None and path.suffix == ".toml" else {}
        described[name] = str(document.get("description", "")).partition(". ")[0].rstrip(".")
    return described


def _list_formats() -> dict[str, str]:
    from simmodel.formats.library import FORMATS

    return {name: each.description for name, each in FORMATS.items()}


_LISTS: dict[str, Callable[[], dict[str, str]]] = {
    "policies": _list_policies,
    "platforms": lambda: _list_ready("platforms"),
    "workloads": lambda: _list_ready("workloads"),
    "formats": _list_formats,
}


# ---------------------------------------------------------------------- what is checked before a long run


def _check_outputs(options: argparse.Namespace, *names: str) -> None:
    """Refuse what cannot be written, before anything is simulated."""
    for name in names:
        path: Path | None = getattr(options, name)
        if path is None:
            continue
        if path.is_dir() or (name == "db" and path.exists() and not path.is_file()):  # a database replaces the file
            raise InputError("a file to write expected, found a folder or a device", source=str(path))
        if not path.absolute().parent.is_dir():
            raise InputError(f"cannot be written: there is no folder {path.absolute().parent}", source=str(path))
        if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
            raise InputError("cannot be written: permission denied", source=str(path))
        if name == "plot":
            _check_picture(path)
    if getattr(options, "progress", False):
        _needs("tqdm", "--progress")


def _check_picture(path: Path) -> None:
    _needs("matplotlib", "--plot")
    from matplotlib.backend_bases import FigureCanvasBase

    kinds = sorted(FigureCanvasBase.get_supported_filetypes())
    if path.suffix.lower().removeprefix(".") not in kinds:
        raise InputError(f"a picture (.{', .'.join(kinds)}) expected, found {path.suffix!r}", source=str(path))


def _needs(module: str, option: str) -> None:
    from importlib.util import find_spec

    if find_spec(module) is None:
        raise InputError(f"{option} needs {module}: pip install 'simmodel[notebook]'")
