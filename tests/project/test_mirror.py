"""The folders of the tests are those of the package; what tests share lies in folders of its own."""

import re
import sys
from collections import Counter
from pathlib import Path

from tests.helpers.package_imports import CORE, MODULES
from tests.helpers.paths import PACKAGE, SITE, TESTS

SHARED = {"helpers", "oracles", "lock"}  # what tests import
OTHERS = {"project"}  # tests of what is no code: the order of packages, texts, the wheel
FILES = {path.relative_to(TESTS): path for path in sorted(TESTS.rglob("*.py"))}
TEST_FILES = {path for path in FILES if path.name.startswith("test_")}


def test_each_folder_of_code_has_a_folder_of_tests_and_no_other_has() -> None:
    code = {str(path.parent.relative_to(PACKAGE)) for path in CORE.values()}
    code |= {str(Path("site", path.parent.relative_to(SITE))) for name, path in MODULES.items() if name not in CORE}
    tested = {str(path.parent) for path in TEST_FILES}
    assert sorted(code - tested) == [], "without tests"
    assert sorted(tested - code - OTHERS) == [], "no folder of the package"


def test_tests_stand_apart_from_what_they_share() -> None:
    shared = {path for path in FILES if {*SHARED, "__init__.py", "conftest.py"} & {path.name, *path.parts[:2]}}
    assert sorted(map(str, FILES.keys() - shared - TEST_FILES)) == []
    assert sorted(map(str, TEST_FILES & shared)) == []


def test_names_are_unique_and_not_those_of_pythons_library() -> None:
    names = [path.stem for path in FILES if path in TEST_FILES or "helpers" in path.parts]
    assert [name for name, count in Counter(names).items() if count > 1] == []
    assert [name for name in names if name in sys.stdlib_module_names] == []


def test_only_what_is_shared_is_imported() -> None:
    imported = re.compile(r"^\s*(?:from|import) (tests(?:\.site)?\.\w+|tests import \w+)", re.MULTILINE)
    found = [(path, name) for path, file in FILES.items() for name in imported.findall(file.read_text("utf-8"))]
    assert [
        f"{path} imports {name}" for path, name in found if re.split(r"\W+(?:import )?", name)[-1] not in SHARED
    ] == []
