"""Old names of modules forward to the package beside the core for one version, with a warning."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from simmodel.moved import MOVED
from simmodel.scheduling import registry
from tests.helpers.package_imports import CORE, MODULES

OLD = {
    new.replace(MOVED[old], old, 1): new
    for old in MOVED
    for new in MODULES.keys() - CORE.keys()
    if new == MOVED[old] or new.startswith(f"{MOVED[old]}.")
}


@pytest.mark.parametrize("old", sorted(OLD))
def test_an_old_name_is_the_same_module(old: str) -> None:
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match=f"{old} is now {OLD[old]}; the old name goes in the next version"):
        found = import_module(old)
    assert found is import_module(OLD[old])
    assert (found.__name__, found.__spec__ and found.__spec__.name) == (OLD[old], OLD[old])


def test_the_warning_points_at_who_imports(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import sys\nimport simmodel\nfrom simmodel.twin import Twin\nprint(Twin.__module__)\n")
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert ran.stdout == "simmodel_site.twin.twin\n"
    assert f"{script}:3: DeprecationWarning: simmodel.twin is now simmodel_site.twin" in ran.stderr


def test_class_paths_of_before_are_read() -> None:
    """As snapshots and studies have them that were written before the move."""
    sys.modules.pop("simmodel.policies.slurm.policy", None)
    with pytest.warns(DeprecationWarning, match="simmodel_site.policy"):
        made = registry.policy("simmodel.policies.slurm.policy:Slurm(bf_interval=60)")
    assert type(made) is type(registry.policy("slurm"))


def test_other_names_are_unknown_as_ever() -> None:
    for name in ("simmodel.twins", "simmodel.policies.slurmx", "simmodel.commands.slurms"):
        with pytest.raises(ModuleNotFoundError, match=name):
            import_module(name)
