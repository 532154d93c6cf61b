"""The site: strictly built, with an entry for every exported name, no dead link, and nothing from the network."""

import os
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.helpers.package_imports import PUBLIC, imports
from tests.helpers.paths import ROOT

LOADED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data"}


class Html(HTMLParser):
    """The anchors of a page, what it links to, and what a browser loads to show it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value is not None}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag in LOADED and LOADED[tag] in values:
            self.loaded.append(values[LOADED[tag]])


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


@pytest.mark.long  # tests/project/test_readme.py checks the links of the sources
def test_the_site_is_built_without_a_warning_and_none_of_its_links_is_dead(tmp_path: Path) -> None:
    for name in ("sphinx", "furo", "myst_nb"):
        pytest.importorskip(name)
    site = built(tmp_path)
    pages = {path: Html(path) for path in site.rglob("*.html")}
    check_links(site, pages)
    check_nothing_is_loaded_from_the_network(site, pages)
    check_entries(site, pages)
    check_links_of_the_reference_and_of_pictures(site, pages)
    sources = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("notebooks/*.ipynb")]
    assert [path.name for path in sources if (site / path.relative_to(ROOT)).with_suffix(".html") not in pages] == []
