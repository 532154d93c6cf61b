"""What other packages add by entry points, as Python's own library finds it."""

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from simmodel.foundation.packages import offered
from tests.helpers.paths import PACKAGE

GROUPS = sorted(entry_points().groups)


@pytest.mark.parametrize("group", GROUPS)
def test_entry_points_are_those_of_importlib(group: str) -> None:
    theirs = {each.name: each.value.partition("[")[0].strip() for each in reversed(list(entry_points(group=group)))}
    assert offered(group) == theirs


def test_a_folder_that_nobody_installed_says_so(tmp_path: Path) -> None:
    """As with ``git clone`` and ``python -m simmodel``: names of packages beside it are not found."""
    (tmp_path / "simmodel").symlink_to(PACKAGE, target_is_directory=True)
    libraries = [each for each in sys.path if each.endswith("site-packages")]
    (tmp_path / "libraries").mkdir()
    for each in Path(libraries[0]).iterdir():
        if not each.name.startswith(("simmodel", "_editable", "_simmodel")):
            (tmp_path / "libraries" / each.name).symlink_to(each)
    program = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(tmp_path / 'libraries')!r}]\n"
    program += f"sys.path[2:] = [each for each in sys.path[2:] if each not in {libraries!r}]\n"
    program += "from simmodel.cli import main; main(['plough']); main(['batch', 'probe-4', '--policy', 'plough'])"
    found = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert found.stdout == ""
    first, second = found.stderr.splitlines()
    assert first.startswith("simmodel: unknown command 'plough'; known commands: batch, ")
    assert second.startswith("simmodel: unknown policy 'plough'; known policies: fcfs, ")
    end = "; simmodel runs from a folder and is not installed, so that names of other packages are not found"
    assert first.endswith(end)
    assert second.endswith(end)
