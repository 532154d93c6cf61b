"""The gallery on the site: thumbnails, the code of each picture as a file, and live pages made with the site.

An example is a section of ``gallery.md`` with a picture. Its Python is a file to download; Python that writes a page
(``to_html("week.html")``) is run, and the page stands beside it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from os import environ
from pathlib import Path

import attrs
from docutils import nodes
from sphinx.application import Sphinx

GALLERY = "docs/gallery"
_PAGE = re.compile(r"""to_html\(\s*["']([\w.-]+)["']""")


@attrs.frozen
class Example:
    """A section of the gallery that has a picture."""

    section: nodes.section
    picture: nodes.image

    @property
    def name(self) -> str:
        return str(self.section["ids"][0])

    @property
    def title(self) -> str:
        return str(self.section[0].astext())

    @property
    def code(self) -> str:
        """Its Python, as a file."""
        blocks = [
            each.astext()
            for each in self.section.findall(nodes.literal_block)
            if each.get("language") in ("python", "py")
        ]
        return "\n\n".join([f'"""{self.title}."""', *blocks]) + "\n" if blocks else ""

    @property
    def pages(self) -> list[str]:
        """The pages that its Python writes."""
        return _PAGE.findall(self.code)

    @property
    def links(self) -> dict[str, str]:
        """What can be opened or downloaded, with the words that say so."""
        pages = dict.fromkeys(self.pages, "Open the live page")
        return pages | ({f"{self.name}.py": "Download as a file"} if self.code else {})


def examples(doctree: nodes.document) -> Iterator[Example]:
    """Yield the examples of the gallery."""
    for section in doctree.findall(nodes.section):
        picture = next((found for child in section.children for found in child.findall(nodes.image)), None)
        if picture is not None and not isinstance(section.parent, nodes.document):
            yield Example(section, picture)


def draw_gallery(app: Sphinx, doctree: nodes.document) -> None:
    """Begin the gallery with thumbnails that lead to the examples, and end each example with its files."""
    if app.env.docname != GALLERY:
        return
    grid = nodes.container(classes=["thumbnails"])
    found = list(examples(doctree))
    for example in found:
        picture = example.picture.deepcopy()
        picture["loading"] = "lazy"
        picture["alt"] = ""
        link = nodes.reference("", "", picture, nodes.inline("", example.title), refid=example.name, internal=True)
        grid += nodes.paragraph("", "", link)
        files = nodes.paragraph(classes=["files"])
        for file, words in example.links.items():
            files += [nodes.reference("", words, refuri=f"gallery/{file}", internal=True), nodes.Text(" ")]
        example.section.append(files)
    top = found[0].section.parent
    top.insert(top.index(next(iter(top.findall(nodes.paragraph)))) + 1, grid)


def write_files(app: Sphinx, error: Exception | None) -> None:
    """Write the files of the examples, and run those that write pages."""
    if error is not None or app.builder.name != "html":
        return
    folder = Path(app.outdir, GALLERY)
    folder.mkdir(parents=True, exist_ok=True)
    for example in examples(app.env.get_doctree(GALLERY)):
        if example.code:
            file = folder / f"{example.name}.py"
            file.write_text(example.code, "utf-8")
            if example.pages:
                here = environ | {"PYTHONPATH": str(Path(app.confdir).parent)}
                subprocess.run([sys.executable, file.name], cwd=folder, env=here, check=True, stdout=subprocess.DEVNULL)
