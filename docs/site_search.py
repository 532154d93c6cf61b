"""The index of the site's search: the words of each section, which ``static/search.js`` ranks.

Sphinx's own index knows which pages have a word, not how often, nor in which section, and its search wants all words on
one page. The changelog has every word once, and is left out.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.search import SearchLanguage
from sphinx.search.en import SearchEnglish

LEFT_OUT = ("CHANGELOG",)
PARTS = (nodes.section, addnodes.desc)
SILENT = (*PARTS, nodes.title, nodes.comment, nodes.raw)


def synonyms(path: Path) -> list[list[str]]:
    """Return the terms of each line of a file that mean the same; lines that begin with ``#`` are remarks."""
    lines = path.read_text("utf-8").splitlines()
    return [[term.strip() for term in line.split(",")] for line in lines if line.strip() and line[0] != "#"]


def parts(node: nodes.Element) -> Iterator[tuple[str, str, str]]:
    """Yield anchor, title and text of each section, and of each entry of the reference with its members."""
    for child in node.children:
        if isinstance(child, addnodes.desc):
            named = next(iter(child.findall(addnodes.desc_signature)), None)
            if named is not None and named["ids"]:
                yield named["ids"][0], named.get("fullname", named["ids"][0]), child.astext()
        elif isinstance(child, nodes.section):
            yield child["ids"][0], child[0].astext(), text(child)
            yield from parts(child)
        elif isinstance(child, nodes.Element):
            yield from parts(child)


def text(node: nodes.Node) -> str:
    """Return the text of a node without what :func:`parts` yields by itself."""
    if not isinstance(node, nodes.Element) or not any(node.findall(lambda each: isinstance(each, SILENT))):
        return node.astext()
    return "\n".join(text(child) for child in node.children if not isinstance(child, SILENT))


def stems(words: str, language: SearchLanguage) -> Iterator[str]:
    """Yield the stems of the words of a text, and of the parts of names; common words and numbers are left out."""
    for word in language.split(words):
        for each in {word, *word.split("_")}:
            if each and not each.isdigit() and each.lower() not in language.stopwords:
                yield language.stem(each.lower())


def write_index(app: Sphinx, error: Exception | None) -> None:
    """Write ``sections.js``: pages, sections, for each stem the sections that have it and how often, and synonyms."""
    if error is not None or app.builder.name != "html":
        return
    language = SearchEnglish({})
    pages, sections = [], []
    where: defaultdict[str, list[int]] = defaultdict(list)
    for docname in sorted(app.env.found_docs.difference(LEFT_OUT)):
        for anchor, title, body in parts(app.env.get_doctree(docname)):
            counts = Counter(stems(body, language))
            for stem, count in counts.items():
                where[stem] += [len(sections), count]
            sections.append([len(pages), anchor, title, counts.total()])
        pages.append([docname, app.env.titles[docname].astext()])
    same = synonyms(Path(app.confdir, "synonyms.txt"))
    index = {"pages": pages, "sections": sections, "words": where, "synonyms": same}
    line = json.dumps(index, ensure_ascii=False, separators=(",", ":"))
    Path(app.outdir, "_static", "sections.js").write_text(f"const SECTIONS = {line};\n", "utf-8")


def add_scripts(app: Sphinx, pagename: str, template: str, context: dict[str, object], doctree: object) -> None:
    """Add the scripts of the search to the page of the search."""
    if pagename == "search":
        for name in ("sections.js", "search.js"):
            app.add_js_file(name, loading_method="defer", priority=900)
