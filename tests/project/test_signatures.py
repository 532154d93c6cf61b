"""Every option of a plot, a metric, a summary or an export stands in its signature."""

import importlib
import inspect
from collections.abc import Callable, Iterator

import pytest

from simmodel.view import plots
from tests.helpers.package_imports import MODULES
from tests.helpers.public_classes import public_classes

FACES = ("metrics", "metric_text", "numbers", "summary", "plot", "document", "schedule_csv", "from_stored")


def is_face(owner: str, name: str) -> bool:
    return name in FACES or name.startswith("to_") or (owner.endswith("Plots") and not name.startswith("_"))


def faces() -> Iterator[tuple[str, Callable[..., object]]]:
    """Yield the methods of public classes that show or export what they hold, and the plots."""
    for owner, value in public_classes().items():
        for name, member in inspect.getmembers(value):
            if is_face(owner, name) and callable(member) and not isinstance(member, type):
                yield f"{owner}.{name}", member
    for name in plots.__all__:
        if inspect.isfunction(function := getattr(plots, name)):
            yield name, function
    for name in MODULES:
        if name.startswith(("simmodel.view.", "simmodel.metrics.")) and name != "simmodel.view.style":
            module = importlib.import_module(name)
            for each in getattr(module, "__all__", ()):
                if inspect.isfunction(function := getattr(module, each)):
                    yield f"{name}.{each}", function


FOUND = dict(faces())


def test_faces_are_found() -> None:
    assert {"Result.metrics", "Result.to_json", "ResultPlots.gantt", "Comparison.plot", "overview"} <= FOUND.keys()


@pytest.mark.parametrize("name", sorted(FOUND))
def test_every_option_stands_in_the_signature(name: str) -> None:
    parameters = inspect.signature(FOUND[name]).parameters.values()
    catch_all = [each.name for each in parameters if each.kind is inspect.Parameter.VAR_KEYWORD]
    assert not catch_all, f"{name} takes **{', '.join(catch_all)}"
    untyped = [each.name for each in parameters if each.name not in ("self", "cls") and each.annotation is each.empty]
    assert not untyped


@pytest.mark.parametrize(
    "name", sorted(name for name in FOUND if name.startswith("ResultPlots.") or name in plots.__all__)
)
def test_plots_share_their_common_options(name: str) -> None:
    parameters = inspect.signature(FOUND[name]).parameters
    assert {"title", "figsize"} <= parameters.keys()
    returns = inspect.signature(FOUND[name]).return_annotation
    assert ("ax" in parameters) == (returns == "Axes"), "plots on axes take axes, pages do not"
    for option in ("title", "figsize", "ax"):
        assert option not in parameters or parameters[option].default is None
