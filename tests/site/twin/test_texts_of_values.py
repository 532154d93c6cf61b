"""Every class that users of the twin hold values of has a short repr and a small table."""

import pytest

from simmodel.foundation.errors import SimmodelError
from tests.helpers.repr_checks import one_line_and_a_small_table
from tests.site.helpers.site_values import site_classes, site_values

LIVE = {"Advisor", "AuditLog", "Shadow", "StatusServer", "StreamWriter", "Twin"}
"""Parts of a running twin: a repr, no table."""
VALUES = site_values()


def test_values_of_all_classes_are_made() -> None:
    kinds = {name: each for name, each in site_classes().items() if not getattr(each, "_is_protocol", False)}
    values = {name for name, each in kinds.items() if not issubclass(each, (SimmodelError, tuple))}
    assert values - VALUES.keys() == LIVE
    assert [name for name, each in kinds.items() if each.__repr__ is object.__repr__] == []


@pytest.mark.parametrize("name", sorted(VALUES))
def test_values_have_one_line_and_a_small_table(name: str) -> None:
    one_line_and_a_small_table(name, VALUES[name])
