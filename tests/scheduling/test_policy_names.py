"""Names of policies from data: which of them import code."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings, strategies as st

from simmodel import InputError
from simmodel.scheduling import registry
from tests.helpers.policies_there import there

NAMES = ("easy", "portfolio", "window", "slurm", "share", "sjf", "mine:f", "0.5", "min-max:", "my")
KEYS = ("candidates=", "partitions=", "objective=", "order=")
PIECES = st.sampled_from([*NAMES, *KEYS, *"(),+=: []"])


@settings(max_examples=400)
@given(st.lists(PIECES, max_size=12).map("".join))
def test_no_code_is_imported_by_a_name_that_says_it_imports_none(text: str) -> None:
    loaded = []
    usual = registry._load

    def load(name: str) -> object:
        if not name.startswith("simmodel"):
            loaded.append(name)
            raise InputError("not imported")
        return usual(name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "_load", load)
        says = registry.imports_code(text)
        with suppress(InputError):
            registry.policy(text)
    assert says or not loaded


@pytest.mark.parametrize(
    ("text", "imports"),
    [
        *((text, False) for text in there("slurm(partitions=(work:nodes=n[1-8]:default))")),
        *((f"portfolio(easy, {text})", False) for text in there("slurm(partitions=(work:nodes=n[1-8]))")),
        *((f"portfolio({text}, mine:f)", True) for text in there("slurm(partitions=(work:default))")),
        ("portfolio(objective=min-max:wait_mean)", False),
        ("portfolio(objective=mine:f)", True),
        ("share(0.5)+mine:f", True),
        ("mine:f+easy", True),
    ],
)
def test_parameters_that_are_words_of_their_policy_import_nothing(text: str, imports: bool) -> None:
    assert registry.imports_code(text) == imports
