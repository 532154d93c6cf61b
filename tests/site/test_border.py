"""The site takes of the core what is exported alone, and the core names it nowhere."""

import re
from itertools import chain

import pytest

from tests.helpers.doc_pages import PAGES
from tests.helpers.package_imports import CORE, MODULES, STUBS, imports

EXPORTED = {f"{package}.{name.rpartition('.')[2]}" for package, stub in STUBS.items() for name in imports(stub)}
OURS = {name: path for name, path in MODULES.items() if name not in CORE}


@pytest.mark.parametrize("name", OURS)
def test_the_site_takes_exported_names_alone(name: str) -> None:
    taken = {each for each in imports(OURS[name]) if re.match(r"simmodel(\.|$)", each)}
    assert taken - EXPORTED - {"simmodel.__version__"} == set()


def test_what_is_open_to_packages_beside_is_taken_by_one() -> None:
    taken = set(chain.from_iterable(imports(path) for path in OURS.values()))
    written = re.findall(r"\w+", PAGES["docs/how_to/beside.md"].files["simmodel_lab.py"])
    taken |= {f"simmodel.extending.{name}" for name in written}
    offered = {name for name in EXPORTED if name.startswith("simmodel.extending.")}
    assert sorted(offered - taken) == []


def test_no_file_of_the_core_names_the_site() -> None:
    files = [*CORE.values(), *STUBS.values()]
    assert [path for path in files if path.name != "moved.py" and "simmodel_site" in path.read_text("utf-8")] == []


SHARED = {
    *("Alarm", "Choice", "Described", "Ended", "Group", "JobRecord", "Ledger", "Log", "Outcome", "Restored", "Site"),
    "Source",
}
"""Names that classes of the twin share with classes elsewhere: to be fewer, never more."""


def test_classes_of_the_twin_have_names_of_their_own() -> None:
    names: dict[bool, set[str]] = {True: set(), False: set()}
    for name, path in MODULES.items():
        names[name.startswith("simmodel_site.twin")] |= set(re.findall(r"^class (\w+)", path.read_text(), re.MULTILINE))
    assert {name for name in names[True] & names[False] if name[0] != "_"} == SHARED
