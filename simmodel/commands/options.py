"""The options of each kind of system on the command line, and the platforms that commands take.

The spelling, values and help of an option follow from the typed options of its kind
(:mod:`simmodel.platform.options`).
"""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

import attrs

from simmodel.commands.arguments import Declared, TakesArguments
from simmodel.commands.values import number, one_of, whole
from simmodel.foundation.errors import InputError
from simmodel.platform.options import ClusterOptions, MachineOptions, Options

if TYPE_CHECKING:
    from simmodel.systems.kinds import Kind

__all__ = ["ELSEWHERE", "kind_arguments", "kind_options", "options_of", "platform_for"]


Runs = Literal["jobs", "tasks"]
_EXPECTED = {"jobs": "a platform that runs jobs", "tasks": "a platform that runs tasks"}
ELSEWHERE = {"jobs": "'simmodel batch' replays logs on it", "tasks": "'simmodel machine' runs tasks on it"}
"""Where a platform is of use, by what runs on it."""
_READ_AS = {int: (whole, "N"), float: (number("a number", lambda value: True), "X"), str: (str, "TEXT")}


def options_of(runs: Runs) -> list[type[Options]]:
    """Return the options of the kinds of system that run jobs, or tasks.

    >>> [each.__name__ for each in options_of("tasks")][:1]
    ['MachineOptions']
    """
    usual = ClusterOptions if runs == "jobs" else MachineOptions
    if "simmodel.systems.kinds" not in sys.modules:  # so no kind was registered; importing it costs more than the help
        return [usual]
    from simmodel.systems.kinds import added_kinds

    return [usual, *(kind.options for kind in added_kinds() if kind.work == runs)]


def kind_arguments(*of: Runs | type[Options]) -> Declared:
    """Declare every option that a text can give of these classes, or of the kinds that run such work.

    :func:`kind_options` reads those that were given. An option that the command already has is not added again; one
    that is on by default is turned off by ``--no-NAME``.

    >>> from simmodel.systems.kinds import kind_named
    >>> parser = argparse.ArgumentParser()
    >>> kind_arguments("tasks")(parser)
    >>> kind_options(parser.parse_args(["--no-contention", "--decide", "ready"]), kind_named("machine"))
    {'contention': False, 'decide': 'ready'}
    """

    def add(parser: TakesArguments) -> None:
        for cls in (cls for each in of for cls in (options_of(each) if isinstance(each, str) else [each])):
            hints = get_type_hints(cls)
            for field in attrs.fields(cls):
                how = _argument(cls, field, hints[field.name])
                flag = f"--{'no-' if field.default is True else ''}{field.name.replace('_', '-')}"
                if how is not None:
                    with suppress(argparse.ArgumentError):  # the command, or another kind, has this option
                        parser.add_argument(flag, dest=f"{flag} {field.name}", default=argparse.SUPPRESS, **how)

    return add


def _argument(cls: type[Options], field: attrs.Attribute[Any], hint: Any) -> dict[str, Any] | None:
    """Return how ``argparse`` reads an option; ``None`` if no text can give it."""
    text = field.metadata.get("help")
    if hint is bool:
        return {"action": "store_false" if field.default is True else "store_true", "help": text}
    if "text" in field.metadata:
        return {"metavar": field.metadata["text"], "help": text}
    choices = [value for value in cls.choices(field.name) if value is not None]
    if choices:
        return {"type": one_of(choices), "metavar": f"{{{','.join(choices)}}}", "help": text}
    arms = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    for kind, (read, metavar) in _READ_AS.items():
        if kind in arms:
            return {"type": read, "metavar": metavar, "help": text}
    return None


def kind_options(options: argparse.Namespace, kind: Kind | None = None) -> dict[str, Any]:
    """Return the options that were given, for a system of a kind; default: a cluster.

    Raises
    ------
    InputError
        if the kind does not have one of them
    """
    from simmodel.systems.kinds import kind_named

    own = kind_named("cluster") if kind is None else kind
    found = {}
    for given, value in vars(options).items():
        flag, _, name = given.partition(" ")
        if name:
            if not own.options.takes(name):
                raise InputError(f"a {own.name} has no option {flag}")
            found[name] = value
    return found


def platform_for(runs: Runs, name: str, *, trust: bool = False) -> tuple[Any, Kind]:
    """Return the platform of a name or a file, and its kind; ``trust`` is that of :func:`load_platform`.

    Raises
    ------
    InputError
        if the platform is unknown, or does not run jobs, or tasks, as the command does

    >>> platform_for("jobs", "kth-sp2")[1].name
    'cluster'
    """
    from simmodel.catalogue import load_platform
    from simmodel.systems.kinds import kind_of_platform, work_of

    spec = load_platform(name, trust=trust, machine=runs == "tasks")
    kind, found = kind_of_platform(spec), work_of(spec)
    if found != runs:
        raise InputError(f"must be {_EXPECTED[runs]}, got a {kind.name}: {ELSEWHERE[found]}", name)
    return spec, kind
