"""The site: strictly built, with an entry for every exported name, no dead link, and nothing from the network.

Its search finds what newcomers look for, old addresses lead on, and the gallery and the pages of commands are complete.
"""

import os
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from tests.helpers.chromium import opened
from tests.helpers.new_process import printed
from tests.helpers.package_imports import PUBLIC, imports
from tests.helpers.paths import ROOT, SITE

LOADED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data"}


class Html(HTMLParser):
    """The anchors of a page, what it links to, and what a browser loads to show it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.title = ""
        self._in_title = False
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value is not None}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag in LOADED and LOADED[tag] in values:
            self.loaded.append(values[LOADED[tag]])
        self._in_title = tag == "title" and not self.title

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data
            self._in_title = False


def built(folder: Path) -> Path:
    """Build the site strictly, by the command that CONTRIBUTING gives, and return its folder."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", str(folder / "read")]
    done = subprocess.run(
        [*command, "-c", "docs", ".", str(folder / "html")],
        cwd=ROOT,
        env={**os.environ, "PYTHONWARNINGS": "default", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return (folder / "html").resolve()


def inside(pages: dict[Path, Html]) -> Iterator[tuple[Path, str, Path, str]]:
    """Yield page, link, file and anchor of what pages link to or load inside the site."""
    for path, page in pages.items():
        for link in page.links + page.loaded:
            parts = urlsplit(link)
            if not parts.scheme and not parts.netloc:
                target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
                yield path, link, target, unquote(parts.fragment)


def check_links(site: Path, pages: dict[Path, Html]) -> None:
    links = list(inside(pages))
    assert len(links) > 5000
    assert [(path.name, link) for path, link, target, _ in links if not target.is_file()] == []
    assert [link for _, link, target, _ in links if not target.is_relative_to(site)] == []
    to_anchors = [each for each in links if each[3]]
    assert len(to_anchors) > 3000
    assert [(path.name, link) for path, link, target, anchor in to_anchors if anchor not in pages[target].anchors] == []


def check_nothing_is_loaded_from_the_network(site: Path, pages: dict[Path, Html]) -> None:
    loaded = [link for page in pages.values() for link in page.loaded]
    assert loaded
    assert [link for link in loaded if urlsplit(link).netloc] == []
    sheets = "".join(path.read_text("utf-8") for path in site.rglob("*.css")).replace('"', "").replace("'", "")
    assert sheets
    assert [found for found in ("@import", "url(http", "url(//") if found in sheets] == []


def check_entries(site: Path, pages: dict[Path, Html]) -> None:
    """Each name has an entry on the page of its package; those at the top, a link to the entry on another page."""
    for package, stub in PUBLIC.items():
        page = pages[site.joinpath(*package.split("."), "__init__.html")]
        linked = {urlsplit(link).fragment.rpartition(".")[2] for link in page.links if urlsplit(link).path}
        names = {each.rpartition(".")[2] for each in imports(stub)}
        assert names
        without = {name for name in names if f"{package}.{name}" not in page.anchors}
        assert without == set() or package == "simmodel"
        assert without <= linked


def check_links_of_the_reference_and_of_pictures(site: Path, pages: dict[Path, Html]) -> None:
    policies = pages[site / "simmodel/policies/__init__.html"]
    assert "../../docs/reference/policies.html" in policies.links
    planners = "simmodel.policies.planners.list_scheduling"
    assert {f"#{planners}.{name}" for name in ("heft", "cpop", "peft")} <= {*policies.links}
    runs = pages[site / "simmodel/experiments/__init__.html"]
    assert "../runs/__init__.html#simmodel.runs.simulate" in runs.links  # the docstring: simmodel.runs.scenario
    gallery = pages[site / "docs/gallery.html"]
    pictures = [link for link in gallery.loaded if "_images/" in link]
    assert len(pictures) > 10
    assert {*pictures} <= {*gallery.links}  # to the file, at full size


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for name in ("sphinx", "furo", "myst_nb"):
        pytest.importorskip(name)
    return built(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Html]:
    return {path: Html(path) for path in site.rglob("*.html")}


@pytest.mark.long  # tests/project/test_readme.py checks the links of the sources
def test_the_site_is_built_without_a_warning_and_none_of_its_links_is_dead(site: Path, pages: dict[Path, Html]) -> None:
    check_links(site, pages)
    check_nothing_is_loaded_from_the_network(site, pages)
    check_entries(site, pages)
    check_links_of_the_reference_and_of_pictures(site, pages)
    sources = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("notebooks/*.ipynb")]
    assert [path.name for path in sources if (site / path.relative_to(ROOT)).with_suffix(".html") not in pages] == []
    text = [page for path, page in pages.items() if path.with_suffix(".md").name != "index.md" or "docs" in path.parts]
    titles = Counter(page.title for page in text if not page.title.startswith("This page has moved"))
    assert [title for title, times in titles.items() if times > 1] == []


# ---------------------------------------------------------------------- addresses of earlier versions

MOVED = tomllib.loads((ROOT / "docs/moved.toml").read_text("utf-8"))


def leads_to(address: str) -> str:
    """Return where the site leads from an address: to where its section went, or to the same section of a page."""
    page, _, anchor = address.partition("#")
    if address in MOVED or page not in MOVED:
        return str(MOVED.get(address, address))
    return f"{MOVED[page]}#{anchor}" if anchor else str(MOVED[page])


@pytest.mark.long
def test_every_address_of_an_earlier_version_leads_to_a_section(site: Path, pages: dict[Path, Html]) -> None:
    dead = []
    old = (ROOT / "tests/project/anchors_0_2.txt").read_text("utf-8").splitlines()
    for address in [line for line in old if line and line[0] != "#"]:
        page, _, anchor = leads_to(address).partition("#")
        target = pages.get(site / f"{page}.html")
        if (
            target is None
            or target.title.startswith("This page has moved")
            or (anchor and anchor not in target.anchors)
        ):
            dead.append(address)
        if address in MOVED and not (ROOT / f"{address.partition('#')[0]}.md").exists():
            assert (site / f"{address.partition('#')[0]}.html").is_file()
    assert dead == []


@pytest.mark.long
def test_the_page_of_an_old_address_leads_on(site: Path, browser: Any) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    assert len(MOVED) > 20
    for old in [*list(MOVED)[::9], list(MOVED)[-1]]:
        page, sign, anchor = old.partition("#")
        browser.get((site / f"{page}.html").as_uri() + sign + anchor)
        new, sign, anchor = MOVED[old].partition("#")
        there = (site / f"{new}.html").as_uri() + sign + anchor
        WebDriverWait(browser, 20).until(lambda it, there=there: it.current_url == there, f"{old} -> {MOVED[old]}")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, in which pages may read files beside them."""
    yield from opened("--allow-file-access-from-files")


# ---------------------------------------------------------------------- search

QUERIES = tomllib.loads((ROOT / "tests/project/search_queries.toml").read_text("utf-8"))["query"]
SYNONYMS = [
    [term.strip() for term in line.split(",")]
    for line in (ROOT / "docs/synonyms.txt").read_text("utf-8").splitlines()
    if line[:1] not in ("", "#")
]
FOUND = """
const found = query => Search._performSearch(...Search._parseQuery(query)).reverse();
return arguments[0].map(query => found(query).map(result => result[0]));
"""


def found(site: Path, browser: Any, queries: list[str]) -> list[list[str]]:
    """Return the pages that the search shows for each query, best first."""
    browser.get((site / "search.html").as_uri())
    pages: list[list[str]] = browser.execute_script(FOUND, queries)
    return pages


@pytest.mark.long
def test_newcomers_find_the_right_page_among_the_first_three(site: Path, pages: dict[Path, Html], browser: Any) -> None:
    results = found(site, browser, [query["words"] for query in QUERIES])
    assert len(results) == 60
    assert [shown for shown in results if "CHANGELOG" in shown] == []
    missed = []
    for query, shown in zip(QUERIES, results, strict=True):
        named = [leads_to(address).partition("#") for address in query["page"].split()]
        there = {page: pages.get(site / f"{page}.html") for page, _, _ in named}
        wanted = {page for page, _, anchor in named if (to := there[page]) and (not anchor or anchor in to.anchors)}
        assert wanted, query["words"]
        if wanted.isdisjoint(shown[:3]):
            missed.append((query["words"], shown[:3]))
    assert len(missed) <= 5, missed


@pytest.mark.long
def test_every_synonym_finds_a_page_and_results_are_shown(site: Path, browser: Any) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    terms = [term for line in SYNONYMS for term in line]
    assert [term for term, pages in zip(terms, found(site, browser, terms), strict=True) if not pages] == []
    browser.get((site / "search.html").as_uri() + "?q=renege")
    shown = "return [...document.querySelectorAll('#search-results li a')].map(a => a.textContent)"
    assert any("patience" in title for title in WebDriverWait(browser, 20).until(lambda it: it.execute_script(shown)))


def test_synonyms_are_a_small_list_of_terms() -> None:
    assert len(SYNONYMS) <= 60
    assert [line for line in SYNONYMS if len({*line}) < max(len(line), 2)] == []
    assert [term for line in SYNONYMS for term in line if not 0 < len(term.split()) < 5] == []


# ---------------------------------------------------------------------- gallery, commands, copies


@pytest.mark.long
def test_each_example_of_the_gallery_is_a_file_that_stands_alone(site: Path, pages: dict[Path, Html]) -> None:
    gallery, folder = pages[site / "docs/gallery.html"], site / "docs/gallery"
    files = {unquote(link) for link in gallery.links if link.startswith("gallery/")}
    assert files == {f"gallery/{path.name}" for path in folder.iterdir()}
    assert len([file for file in files if file.endswith(".py")]) > 10
    assert {"gallery/week.html", "gallery/policies.html", "gallery/grid.html", "gallery/machine.html"} <= files
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select", "F821,F401", str(folder)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", ["commands", "commands_site"])
def test_the_page_of_commands_is_what_the_parsers_say(name: str) -> None:
    if name == "commands_site" and not SITE.exists():
        pytest.skip("needs simmodel_site")
    program = f"import sys\nsys.path[:0] = [{str(ROOT)!r}, {str(ROOT / 'docs')!r}]\nimport write_commands\n"
    text = printed(f"{program}print(write_commands.page({name!r}), end='')")
    assert (ROOT / f"docs/reference/{name}.md").read_text("utf-8") == text, "run python docs/write_commands.py"


@pytest.mark.long
def test_a_button_copies_the_commands_of_a_block_without_prompt_and_output(site: Path, browser: Any) -> None:
    browser.get((site / "docs/how_to/containers.html").as_uri())
    copied = """
    const done = arguments[0], texts = [];
    Object.defineProperty(navigator, "clipboard", { value: { writeText: async text => texts.push(text) } });
    document.querySelectorAll("button.copy").forEach(button => button.click());
    setTimeout(() => done(texts));
    """
    texts = browser.execute_async_script(copied)
    assert len(texts) > 2
    assert [text for text in texts if text.startswith("$ ")] == []
    browser.get((site / "simmodel/runs/__init__.html").as_uri())
    texts = browser.execute_async_script(copied)
    assert len(texts) > 2
    for text in texts:
        compile(text, "a copy", "exec")
