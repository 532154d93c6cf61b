"""The public interface as lines of text: names with parameters, commands with options, names of ready things.

Run as a program, it writes the list of the present minor version, and files as it writes them, beside the tests of the
project.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import simmodel
from simmodel.commands.list import _LISTS
from simmodel.commands.parser import command_parser
from simmodel.metrics.batch import JOB_METRICS, MACHINE_METRICS
from simmodel.moved import MOVED
from tests.helpers.commands_there import ACTIONS, ALL
from tests.helpers.doc_pages import PAGES, Page
from tests.helpers.package_imports import PUBLIC, STUBS
from tests.helpers.paths import ROOT, TESTS
from tests.helpers.written_files_of_a_version import write_all

FOLDER = TESTS / "project"


class Parameter(NamedTuple):
    """A parameter as it is written in a line: ``name``, ``name=`` if it is optional, ``*name``, ``**name``."""

    name: str
    by_position: bool
    by_name: bool
    optional: bool


@cache
def documented() -> frozenset[str]:
    """Return the words in the code of all pages and notebooks: methods and attributes outside it are not public.

    A page does not document what its examples define, such as a reader or a type of decisions that a reader is to add.
    """
    words = set().union(*map(_documented_by, PAGES.values()))
    for path in (ROOT / "notebooks").rglob("*.ipynb"):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        words.update(*(re.findall(r"\w+", "".join(cell["source"])) for cell in cells if cell["cell_type"] == "code"))
    return frozenset(words)


def _documented_by(page: Page) -> set[str]:
    code = "\n".join([block.text for block in page.blocks] + re.findall(r"`([^`\n]+)`", page.without_code))
    return {*re.findall(r"\w+", code)} - {*re.findall(r"^\+?(?:class|def) (\w+)", code, re.MULTILINE)}


GROUPS = {"simmodel.evictions", "simmodel.placements", "simmodel.sources"}
GROUPS |= {f"simmodel.{each}" for each in ("commands", "formats", "workflow_formats", "platforms")}
"""Groups of entry points that pages name."""
MAPS = ("docs/explanation/architecture.md",)
"""Pages that are a map of the code: they name modules."""


def named_in_pages() -> dict[str, set[str]]:
    """Return the names of simmodel that each page and notebook imports or writes as ``simmodel.package.name``."""
    packages = {*STUBS, *MOVED, "simmodel.learn"}
    found: dict[str, set[str]] = {}
    for name, page in PAGES.items():
        written = re.findall(r"`(simmodel(?:\.\w+)+)", page.without_code) if name not in MAPS else []
        scripts = [block.text for block in page.blocks if block.kind == "python"]
        found[name] = ({*written} - packages - GROUPS).union(*map(_imported, scripts))
    for path in (ROOT / "notebooks").rglob("*.ipynb"):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        scripts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        found[path.name] = set().union(*map(_imported, scripts))
    return found


def _imported(code: str) -> set[str]:
    """Return what code imports from simmodel.

    >>> sorted(_imported("from simmodel.work import Job as J, Task"))
    ['simmodel.work.Job', 'simmodel.work.Task']
    """
    found = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ImportFrom)]
    return {
        f"{each.module}.{name.name}"
        for each in found
        if str(each.module).split(".")[0] == "simmodel"
        for name in each.names
    }


def list_of(version: str) -> Path:
    """Return the file that lists the public interface of the minor version to which a version belongs."""
    major, minor = version.split(".")[:2]
    return FOLDER / f"public_{major}_{minor}.txt"


def files_of(version: str) -> Path:
    """Return the folder with files that the minor version of a version wrote."""
    return FOLDER / list_of(version).stem.replace("public", "written")


def public_interface() -> dict[str, str]:
    """Return each public thing by its name, with its parameters in brackets where it is called.

    Among the methods and attributes are those that no page names.
    """
    return dict(sorted([*_python(), *_commands(), *_ready()]))


def _python() -> Iterator[tuple[str, str]]:
    for package in PUBLIC:
        module = import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            yield f"{package}.{name}", _called(value)
            if inspect.isclass(value) and package != "simmodel":
                yield from ((f"{package}.{name}.{member}", text) for member, text in _members(value))


def _members(owner: type) -> Iterator[tuple[str, str]]:
    """Yield the methods and attributes of a class that simmodel itself defines."""
    own = [cls for cls in owner.__mro__ if cls.__module__.startswith("simmodel")]
    for name in sorted({name for cls in own for name in vars(cls) if not name.startswith("_")}):
        found = inspect.getattr_static(owner, name)
        is_bound = isinstance(found, (classmethod, staticmethod))
        is_method = is_bound or inspect.isfunction(found)
        yield name, _called(getattr(owner, name), skip=0 if is_bound else 1) if is_method else ""


def _called(value: object, skip: int = 0) -> str:
    """Return the parameters in brackets, without the first ones to skip; nothing for what is not called."""
    if not callable(value):
        return ""
    try:
        parameters = list(inspect.signature(value).parameters.values())[skip:]
    except ValueError:  # a type alias
        return ""
    return f"({', '.join(_written(parameters))})"


def _written(parameters: list[inspect.Parameter]) -> Iterator[str]:
    star = True  # none before the first parameter that has a name alone
    for position, each in enumerate(parameters):
        optional = "=" if each.default is not each.empty else ""
        if each.kind is each.KEYWORD_ONLY and star:
            yield "*"
        star = star and each.kind not in (each.KEYWORD_ONLY, each.VAR_POSITIONAL)
        yield {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "") + each.name + optional
        later = parameters[position + 1 :]
        if each.kind is each.POSITIONAL_ONLY and not any(other.kind is each.kind for other in later):
            yield "/"


def _commands() -> Iterator[tuple[str, str]]:
    for name in [*ALL, *(f"{name} {action}" for name, actions in ACTIONS.items() for action in actions)]:
        actions = command_parser(name)[1]._actions
        given = [each for each in actions if not each.option_strings]
        taken = [f"{each.metavar or each.dest}{'' if each.required else '='}" for each in given]
        yield f"$ simmodel {name}", f"({', '.join(taken)})"
        for option in (option for each in actions for option in each.option_strings):
            yield f"$ simmodel {name} {option}", ""


def _ready() -> Iterator[tuple[str, str]]:
    for kind, rows in _LISTS.items():
        names = [row[0] for row in rows()]
        yield from ((f"simmodel list {kind}: {name}", "") for name in names if name == name.lower())  # NAME is any
    for system, metrics in (("jobs", JOB_METRICS), ("tasks", MACHINE_METRICS)):
        yield from ((f"metric of {system}: {name}", "") for name in metrics)


def parameters(text: str) -> list[Parameter]:
    """Return the parameters in brackets, read from a line.

    >>> [each.name for each in parameters("(env, /, size=, *, seed)") if each.by_name]
    ['size', 'seed']
    """
    found: list[Parameter] = []
    named_alone = False
    for word in filter(None, text.strip("()").split(", ")):
        if word == "/":
            found = [each._replace(by_name=False) for each in found]
        elif word == "*":
            named_alone = True
        elif word.startswith("**"):
            found.append(Parameter("**", False, False, True))
        elif word.startswith("*"):
            found.append(Parameter("*", False, False, True))
            named_alone = True
        else:
            found.append(Parameter(word.rstrip("="), not named_alone, True, word.endswith("=")))
    return found


def broken(recorded: str, present: str) -> str | None:
    """Return why a call that the recorded parameters allow is refused by the present ones; ``None`` if none is.

    >>> broken("(size, seed=)", "(size, seed=, *, name=)")
    >>> broken("(size, seed=)", "(size, *, seed=)")
    'seed is no longer taken by position'
    """
    before, now = parameters(recorded), parameters(present)
    if not recorded:
        return None
    if not present:
        return "it is no longer called"
    known = {each.name: each for each in now}
    places = [each.name for each in now if each.by_position]
    for place, each in enumerate(each for each in before if each.by_position):
        if each.by_name and places[place : place + 1] != [each.name]:
            return f"{each.name} is no longer taken by position"
        if place >= len(places) and "*" not in known:
            return f"{each.name} is no longer taken by position"
    for each in before:
        if each.by_name and not (each.name in known and known[each.name].by_name) and "**" not in known:
            return f"{each.name} is no longer taken"
        if each.name in ("*", "**") and each.name not in known:
            return f"{each.name} is no longer taken"
        if each.optional and each.name in known and not known[each.name].optional:
            return f"{each.name} is no longer optional"
    unnamed = {places[place] for place, each in enumerate(before) if not each.by_name and place < len(places)}
    for each in now:
        if not each.optional and each.name not in unnamed | {old.name for old in before}:
            return f"{each.name} is new and not optional"
    return None


def read_list(path: Path) -> dict[str, str]:
    """Return a recorded interface, as :func:`public_interface` returns the present one."""
    lines = [line for line in path.read_text("utf-8").splitlines() if not line.startswith("#")]
    return {line.partition("(")[0]: "".join(line.partition("(")[1:]) for line in lines}


def write_list(path: Path) -> None:
    """Write the present interface as a list."""
    version = path.stem.removeprefix("public_").replace("_", ".")
    head = f"# What is public in {version}: see docs/reference/stability.md."
    member = re.compile(r"simmodel\.\w+\.\w+\.(\w+)")
    public = {
        name: called
        for name, called in public_interface().items()
        if not (found := member.fullmatch(name)) or found[1] in documented()
    }
    lines = [name + called for name, called in public.items()]
    path.write_text("\n".join([head, *lines, ""]), "utf-8")


if __name__ == "__main__":
    target = list_of(simmodel.__version__)
    write_list(target)
    print(f"{target}: {len(read_list(target))} names")
    write_all(files_of(simmodel.__version__))
