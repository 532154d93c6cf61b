"""The site: built without a warning, no dead link or anchor, an entry for every exported name, nothing of it from the network."""

import os
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.helpers.package_imports import STUBS, imports
from tests.helpers.paths import ROOT

pytestmark = pytest.mark.long  # the short form: tests/project/test_readme.py checks the links of the sources
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


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the site."""
    for name in ("sphinx", "furo", "myst_nb"):
        pytest.importorskip(name)
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", str(folder / "read")]
    environment = {**os.environ, "PYTHONWARNINGS": "default", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*command, "-c", "docs", ".", str(folder / "html")], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return folder / "html"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Html]:
    return {path.resolve(): Html(path) for path in site.rglob("*.html")}


def inside(pages: dict[Path, Html]) -> Iterator[tuple[Path, str, Path, str]]:
    """Yield page, link, file and anchor of what pages link to or load inside the site."""
    for path, page in pages.items():
        for link in page.links + page.loaded:
            parts = urlsplit(link)
            if not parts.scheme and not parts.netloc:
                target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
                yield path, link, target, unquote(parts.fragment)


def test_no_link_of_the_site_is_dead(site: Path, pages: dict[Path, Html]) -> None:
    links = list(inside(pages))
    assert len(links) > 5000
    assert [(path.name, link) for path, link, target, _ in links if not target.is_file()] == []
    outside = [link for _, link, target, _ in links if not target.is_relative_to(site.resolve())]
    assert outside == []
    to_anchors = [each for each in links if each[3]]
    assert len(to_anchors) > 3000
    assert [(path.name, link) for path, link, target, anchor in to_anchors if anchor not in pages[target].anchors] == []


def test_nothing_is_loaded_from_the_network(site: Path, pages: dict[Path, Html]) -> None:
    loaded = [link for page in pages.values() for link in page.loaded]
    assert loaded
    assert [link for link in loaded if urlsplit(link).netloc] == []
    sheets = "".join(path.read_text("utf-8") for path in site.rglob("*.css"))
    assert sheets
    assert "@import" not in sheets
    assert "url(http" not in sheets.replace('"', "")
    assert "url(//" not in sheets.replace('"', "")


@pytest.mark.parametrize("package", STUBS)
def test_every_exported_name_has_an_entry(package: str, site: Path, pages: dict[Path, Html]) -> None:
    page = pages[site.joinpath(*package.split("."), "__init__.html").resolve()]
    for name in {each.rpartition(".")[2] for each in imports(STUBS[package])}:
        entry = f"{package}.{name}"
        assert entry in page.anchors or any(link.endswith(f".{name}") for link in page.links if "#simmodel" in link)


def test_pages_and_notebooks_of_the_checkout_are_pages_of_the_site(site: Path) -> None:
    sources = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("notebooks/*.ipynb")]
    assert [path.name for path in sources if not (site / path.relative_to(ROOT)).with_suffix(".html").exists()] == []
