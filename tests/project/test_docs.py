"""The pages in docs/ agree with the code: attributes that policies can read, files, packages, classes."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from simmodel import Broker, Cluster, Environment, Grid, Job, Machine, TaskSet, formats, load_platform
from simmodel.catalogue.formats import FORMATS, WORKFLOW_FORMATS
from simmodel.cli import main
from simmodel.metrics.batch import JOB_METRICS, MACHINE_METRICS
from simmodel.moved import MOVED
from simmodel.platform import GridSpec, SiteSpec
from simmodel.scheduling import Estimate, Load, Place, View
from simmodel.scheduling.protocol import Decides
from simmodel.scheduling.registry import BUILT_IN, policy_names
from simmodel.work.taskset import LiveData
from tests.helpers.doc_pages import PAGES
from tests.helpers.package_imports import MODULES, ROWS
from tests.helpers.paths import PACKAGE, ROOT, is_absent
from tests.helpers.public_interface import GROUPS

INTERFACE, GLOSSARY = PAGES["docs/reference/policy_interface.md"], PAGES["docs/reference/glossary.md"]
SECTIONS = ("View", "Place", "Sites", "Job", "Task", "Run", "Estimate", "Load")
_NAME = re.compile(r"`(\w+)(?:\(.*\))?`")


def tables() -> dict[str, list[str]]:
    """Return the names in the tables of the interface of a policy, by the class in their header."""
    found: dict[str, list[str]] = {}
    for section in SECTIONS:
        header = ""
        for line in INTERFACE.section(section).splitlines():
            first = line.strip("|").split(" | ")[0].strip()
            if match := re.match(r"\| `(\w+)` \| \|$", line):
                header = match[1]
                found[header] = []
            elif line.startswith("| `") and (match := _NAME.fullmatch(first)):
                found[header].append(match[1])
            else:
                assert not line.startswith("| "), f"{section}: {line}"
    return found


TABLES = tables()


def live() -> Iterator[Any]:
    """Yield an object of each class that a policy meets."""
    env = Environment()
    cluster, other = Cluster(env, 4), Cluster(env, 4, name="other")
    machine = Machine(env, load_platform("hetsim-slow"))
    broker = Broker(env, [cluster, other], "round-robin")
    tasks = machine.submit(TaskSet([3.0])).tasks
    job = cluster.submit(Job(processors=2, run=10))
    yield from (cluster.view, machine.view, broker.view, cluster.places[0], machine.places[0], broker.places[0])
    yield from (job, tasks[0], cluster.load)
    grid = Grid(env, GridSpec(name="grid", sites=[SiteSpec(name="site", cores=2)]))
    yield from (grid.places[0], grid.data_scheduler.view)
    env.run(until=1)
    yield from (job.run, machine.view.running[0], cluster.estimate(Job(run=5)))


LIVE = list(live())


def ancestors(each: object) -> set[str]:
    """Return the names of the classes of an object; runs of tasks count as ``Run``."""
    names = {cls.__name__ for cls in type(each).__mro__}
    return names | ({"Run"} if "RunningTask" in names else set()) | ({"Place"} if isinstance(each, Place) else set())


def public(cls: type) -> set[str]:
    return {name for name in (*vars(cls), *getattr(cls, "__slots__", ())) if not name.startswith("_")}


@pytest.mark.parametrize("name", TABLES)
def test_every_attribute_in_a_table_exists(name: str) -> None:
    objects = [each for each in LIVE if name in ancestors(each)]
    assert objects
    for each in objects:
        assert [attribute for attribute in TABLES[name] if not hasattr(each, attribute)] == [], each
    assert len(set(TABLES[name])) == len(TABLES[name])


@pytest.mark.parametrize("cls", [View, Place, Estimate, Load])
def test_a_table_lists_all_attributes(cls: type) -> None:
    listed = public(cls) - {"count", "index"}  # of tuples
    assert set(TABLES[cls.__name__]) == listed


def test_the_table_of_the_view_of_data_policies_lists_all_attributes() -> None:
    view = next(each for each in LIVE if type(each).__name__ == "DataView")
    own = {name for name in vars(view) if not name.startswith("_")}
    assert set(TABLES["DataView"]) == (own | public(type(view))) - {"forget", "site"}


def test_jobs_and_tasks_have_no_other_attributes_but_those_of_systems() -> None:
    job = next(each for each in LIVE if type(each).__name__ == "LiveJob")
    task = next(each for each in LIVE if type(each).__name__ == "LiveTask")
    of_systems = {"adopt", "earlier", "env", "index", "later", "over", "plan", "remember", "requeue", "rules", "seq"}
    of_systems |= {
        "altered",
        "changed",
        "course",
        "end_as",
        "history",
        "hold",
        "leave_level",
        "limit_to",
        "own_times",
        "predicted",
        "resume_at",
        "run_at",
        "suspend",
        "trying",
        "undo_level",
        "watched",
        "widen",
        "width",
    }
    assert public(type(job)) - of_systems == set(TABLES["LiveJob"])
    of_machines = {"assigned", "attempts", "core", "core_since", "done_share", "index", "row", "set", "share", "stamps"}
    of_machines |= {"altered", "fix", "submission"}
    assert public(type(task)) - of_machines == set(TABLES["LiveTask"])
    assert {"size", "copies", "coming"} <= public(LiveData)


# ---------------------------------------------------------------------- architecture and glossary

WRITTEN = ("docs/explanation/architecture.md", "CONTRIBUTING.md")  # all files in them are files of the project
_FILE = re.compile(r"`([\w./-]+\.(?:py|pyi|md|toml|svg|png|ipynb|json))`")


@pytest.mark.parametrize("name", PAGES)
def test_every_file_that_a_page_names_exists(name: str) -> None:
    named = set(_FILE.findall(PAGES[name].without_code)) - PAGES[name].files.keys()
    if name not in WRITTEN:  # others name files of users as well
        named = {path for path in named if "/" in path}
    folders = (ROOT, PACKAGE, PACKAGE / "systems/cluster")
    missing = {path for path in named if not any((folder / path).exists() for folder in folders)}
    assert sorted(path for path in missing if not is_absent(path)) == []


@pytest.mark.parametrize("name", PAGES)
def test_every_module_package_and_name_that_a_page_names_exists(name: str) -> None:
    text = PAGES[name].without_code
    named = set(re.findall(r"`(simmodel(?:\.\w+)+)", text)) - GROUPS
    assert sorted(each for each in named if not exists(each)) == []
    packages = re.findall(r"`((?:simmodel|systems|resources|twin|tests|policies)(?:/\w+)*/)`", text)
    assert sorted(each for each in packages if not (ROOT / each).is_dir() and not (PACKAGE / each).is_dir()) == []


_MEMBER = re.compile(r"^class (\w+)|^    (?:async )?def (\w+)|^    (\w+)\s*[:=]|^(?=\w)", re.MULTILINE)


def members() -> dict[str, set[str]]:
    """Return the members of each class of the package, by the name of the class."""
    found: dict[str, set[str]] = {}
    for path in MODULES.values():
        of: set[str] = set()
        for match in _MEMBER.finditer(path.read_text("utf-8")):
            if match[1]:
                of = found.setdefault(match[1], set())
            elif match[2] or match[3]:
                of.add(match[2] or match[3])
            else:
                of = set()
    return found


def test_every_function_and_method_that_the_architecture_names_exists() -> None:
    text, known = PAGES["docs/explanation/architecture.md"].without_code, members()
    methods = set(re.findall(r"`([A-Z]\w+)\.(\w+)[`(]", text))
    assert len(methods) > 10
    assert [f"{cls}.{name}" for cls, name in methods if name not in known.get(cls, ())] == []
    functions = re.findall(r"`([\w/]+\.py)`\s+\((`\w+`(?:,\s+`\w+`)*)", text)
    assert len(functions) > 5
    for file, names in functions:
        folder = ROOT if file.startswith("simmodel_site") else PACKAGE
        if is_absent(file):
            continue
        source = (folder / file).read_text("utf-8")
        missing = [
            each for each in names_in(names) if not re.search(rf"^\s*(def|class) {each}\b", source, re.MULTILINE)
        ]
        assert missing == [], file


def test_the_drawing_shows_the_packages_in_their_order() -> None:
    texts = re.findall(r"<text[^>]*>([^<]+)</text>", (ROOT / "docs/layers.svg").read_text("utf-8"))
    rows = [row for row in ROWS if row not in ("__main__", "moved", "form")]
    assert [text for text in texts if text in rows] == rows


def exists(name: str) -> bool:
    """Whether a dotted name is that of a module, or of an attribute of one."""
    module, _, attribute = name.rpartition(".")
    return name in MODULES or name in MOVED or is_absent(name) or hasattr(import_module(module), attribute)


TERMS = [row for section in re.findall(r"^## (.+)$", GLOSSARY.text, re.MULTILINE) for row in GLOSSARY.table(section)]


@pytest.mark.parametrize("term", TERMS, ids=lambda row: row[0])
def test_every_class_of_the_glossary_exists(term: list[str]) -> None:
    assert exists(term[2].strip("`"))


def test_the_glossary_has_one_entry_for_each_term() -> None:
    names = [row[0] for row in TERMS]
    assert len(names) > 80
    assert len(set(names)) == len(names)


# ---------------------------------------------------------------------- policies

POLICIES = PAGES["docs/reference/policies.md"]
KINDS_OF_POLICIES: dict[str, Decides] = {
    "Jobs of a cluster": "jobs",
    "Tasks of a machine": "tasks",
    "Jobs of a broker or a grid": "systems",
    "Files of a grid": "data",
}


@pytest.mark.parametrize("heading", KINDS_OF_POLICIES)
def test_the_tables_of_policies_have_all_built_in_ones_of_their_kind(heading: str) -> None:
    known = {name: line for name, line in policy_names(KINDS_OF_POLICIES[heading]).items() if name in BUILT_IN}
    expected = [[f"`{name}`", line.replace("|", r"\|")] for name, line in known.items()]
    found = [[cell.strip("| ") for cell in row] for row in POLICIES.table(heading)]
    assert found == expected


@pytest.mark.parametrize("kind", ["policies", "brokers"])
def test_every_policy_that_a_command_lists_is_on_the_page_of_policies(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["list", kind]) == 0
    listed = [re.split(" {2,}", line)[0] for line in capsys.readouterr().out.splitlines() if line[0] != " "]
    assert len(listed) > 15
    assert [name for name in listed if f"`{name}`" not in POLICIES.text] == []


def test_every_built_in_policy_is_in_a_table() -> None:
    in_tables = {row[0].strip("`") for heading in KINDS_OF_POLICIES for row in POLICIES.table(heading)}
    assert in_tables == BUILT_IN.keys()


# ---------------------------------------------------------------------- kinds of pages


KINDS_OF_PAGES = ("tutorial", "how_to", "reference", "explanation")
OF_A_KIND = [name for name in PAGES if name.startswith("docs/") and name.count("/") > 1]


def test_each_page_is_of_one_of_four_kinds() -> None:
    assert {name.split("/")[1] for name in OF_A_KIND} == set(KINDS_OF_PAGES)
    assert [name for name in PAGES if name not in OF_A_KIND] == [
        "README.md",
        "CONTRIBUTING.md",
        "docs/gallery.md",
        "docs/index.md",
    ]


@pytest.mark.parametrize("name", OF_A_KIND)
def test_a_page_begins_with_what_the_reader_will_have_at_its_end(name: str) -> None:
    begin = "Here (is|are)" if name.startswith("docs/reference/") else "At the end"
    first = PAGES[name].text.split("\n\n")[1]
    assert re.match(begin, first), first


def test_each_part_of_the_tutorial_ends_with_a_picture_made_by_its_last_lines() -> None:
    parts = [page for name, page in PAGES.items() if name.startswith("docs/tutorial/")]
    assert len(parts) == 5
    for page in parts:
        made = re.findall(r'save="([\w.]+)"', page.examples[-1][1])
        shown = re.findall(r"^!\[.+\]\(../../images/tutorial/([\w.]+)\)$", page.text, re.MULTILINE)
        assert made == shown, page.name
        assert 1000 < (ROOT / "images/tutorial" / made[0]).stat().st_size < 130_000


def test_the_table_of_formats_has_each_format_and_each_reader_and_writer() -> None:
    rows = PAGES["docs/reference/formats.md"].table("File formats")
    platforms = {"hetsim", "simgrid"}
    assert [row[0].strip("`") for row in rows] == [*FORMATS, *WORKFLOW_FORMATS, *sorted(platforms)]
    named = {name for row in rows for name in names_in(row[2])}
    functions = {name for name in formats.__all__ if name.startswith(("read_", "write_"))}
    assert functions - named == {"read_schedule"}
    assert all(cell for row in rows for cell in row[1:4])


# ---------------------------------------------------------------------- changelog

CHANGELOG = re.split(r"^## (.+)\n", (ROOT / "CHANGELOG.md").read_text("utf-8"), flags=re.MULTILINE)
VERSIONS = dict(zip(CHANGELOG[1::2], CHANGELOG[2::2], strict=True))
KINDS_OF_CHANGES = ["New", "Changed", "Fixed", "Faster"]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_changelog_has_at_most_12_lines_a_version_sorted_by_kind(version: str) -> None:
    lines = [line for line in VERSIONS[version].splitlines() if line]
    kinds = [line.removeprefix("- ").partition(": ")[0] for line in lines]
    assert len(lines) <= 12, "merge lines: the history of versions has the details"
    assert sorted(kinds, key=KINDS_OF_CHANGES.index) == kinds
    assert [line for line in lines if len(re.sub(r"\]\([^)]*\)", "]", line)) > 160] == []


def names_in(cell: str) -> list[str]:
    return re.findall(r"`([\w.]+)`", cell)


def test_the_source_distribution_has_the_pages_and_their_pictures() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    carried = settings["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert {"docs", "images", "README.md", "CHANGELOG.md", "CONTRIBUTING.md"} <= {*carried}


def test_every_metric_is_defined() -> None:
    page = PAGES["docs/reference/metrics.md"]
    for title, known in (("Batch systems", JOB_METRICS), ("Machines", MACHINE_METRICS)):
        cells = " ".join(line.split("|")[1] for line in page.section(title).splitlines() if line.startswith("| `"))
        assert sorted(known.keys() - set(re.findall(r"`(\w+)`", cells))) == []


def test_no_line_of_text_is_a_comment_on_the_site() -> None:
    begun = [f"{name}: {line}" for name, page in PAGES.items() for line in re.findall("^%.*", page.without_code, re.M)]
    assert begun == [], "MyST leaves out lines that begin with a percent sign"


def test_every_how_to_page_is_in_the_list_of_questions_and_in_the_margin() -> None:
    there = {Path(name).stem for name in PAGES if name.startswith("docs/how_to/")} - {"index"}
    listed = re.findall(r"\]\((\w+)\.md\)", PAGES["docs/how_to/index.md"].text)
    shown = PAGES["docs/how_to/index.md"].text.split(":maxdepth: 1\n\n")[1].split("\n```")[0].split("\n")
    assert sorted(listed) == sorted(there)
    assert shown == listed
