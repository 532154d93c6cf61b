"""The compiled modules answer as their ``.py`` files: value, type and text, whatever kind of number is given."""

from __future__ import annotations

import pickle
import sys
import tomllib
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from math import inf
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from simmodel.form import form
from tests.helpers.paths import PACKAGE, ROOT

pytestmark = pytest.mark.skipif(
    form() == "interpreted", reason="the interpreted form runs: test_compiled.py builds one"
)

NAMES = [
    path.removesuffix(".py").replace("/", ".")
    for path in tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["simmodel"]["compiled"]
]
CASES = settings(max_examples=400)
KINDS = (int, float, np.int64, np.float64, np.float32)


def interpreted(name: str) -> ModuleType:
    """Return the ``.py`` file of a compiled module as a module of another name."""
    path = PACKAGE.parent / Path(*name.split(".")).with_suffix(".py")
    other = f"{name}_interpreted"
    loader = SourceFileLoader(other, str(path))
    spec = spec_from_loader(other, loader)
    assert spec is not None
    sys.modules[other] = module = module_from_spec(spec)
    loader.exec_module(module)
    return module


@st.composite
def numbers(draw: st.DrawFn, least: int, most: int) -> Any:
    """Draw a number of any kind."""
    number = draw(st.integers(least, most))
    if number in (0, 1) and draw(st.booleans()):
        return draw(st.sampled_from((bool, np.bool_)))(number)
    return draw(st.sampled_from(KINDS))(number)


def said(call: Any, *arguments: Any) -> str:
    """Return what a call answers, or the error that it raises, with all types."""
    try:
        return typed(call(*arguments))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def typed(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}({', '.join(map(typed, value))})"
    return f"{type(value).__name__} {value!r}"


@pytest.mark.parametrize("name", NAMES)
def test_every_module_of_the_table_is_compiled(name: str) -> None:
    module = import_module(name)
    assert not str(module.__file__).endswith(".py")
    missing = vars(interpreted(name)).keys() - vars(module).keys()
    assert not {each for each in missing if not each.startswith("__")}


@CASES
@given(data=st.data(), base=st.sampled_from((0, 0.0, 1e9 + 0.1, 2**53 + 1)), most=st.sampled_from((1, 2.5)))
def test_a_profile(data: st.DataObject, base: Any, most: float) -> None:
    forms = [import_module("simmodel.resources.pools.profile"), interpreted("simmodel.resources.pools.profile")]
    instants = st.lists(numbers(0, 40), max_size=40).map(lambda found: sorted(base + int(each) for each in found))
    ends = [(at, data.draw(numbers(1, 4))) for at in data.draw(instants)]
    free = data.draw(numbers(0, 6)) * most if most > 1 else data.draw(numbers(0, 6))
    a, b = (form.CountProfile(base, free, ends, [(base, base + 5, 1)]) for form in forms)
    assert typed(a.steps()) == typed(b.steps())
    for _ in range(data.draw(st.integers(1, 25))):
        need, duration = data.draw(numbers(1, 5)), data.draw(st.one_of(numbers(0, 40), st.just(inf)))
        later = base + data.draw(numbers(0, 60))
        now = a.steps()[0][0]
        at = a.earliest(need, duration)
        assert typed(at) == typed(b.earliest(need, duration))
        for name, *given_ in (
            ("earliest", need, duration, later),
            ("earliest", need, duration, -inf, later),
            ("opens", need, duration, later),
            ("fits", need, duration),
            ("free_until", need),
            ("room", need, max(now, later), duration, 3),
            ("instant", at),
        ):
            assert said(getattr(a, name), *given_) == said(getattr(b, name), *given_), name
        if at < inf:
            given_ = (need, at, duration)
            name = data.draw(st.sampled_from(("take", "move", "copy")))
            if name == "move":
                given_ = (need, max(at, later), at, duration)
            if name == "copy":
                a, b = pickle.loads(pickle.dumps(a.copy())), b.copy()
            else:
                assert said(getattr(a, name), *given_) == said(getattr(b, name), *given_)
        if data.draw(st.booleans()):
            now = now + data.draw(numbers(0, 3))
            assert said(a.advance, now) == said(b.advance, now)
        for name in ("free", "next_step", "exact"):
            assert typed(getattr(a, name)) == typed(getattr(b, name))
        assert typed(a.steps()) == typed(b.steps())
