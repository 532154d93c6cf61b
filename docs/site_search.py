"""The index of the site's search: the words of each section, which ``static/search.js`` ranks.

Sphinx's own index knows which pages have a word, not how often, nor in which section, and its search wants all words on
one page. The changelog has every word once, and is left out.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.search import SearchLanguage
from sphinx.search.en import SearchEnglish

LEFT_OUT = ("CHANGELOG",)
PARTS = (nodes.section, addnodes.desc)
DEFINED = 5
SILENT = (*PARTS, nodes.title, nodes.comment, nodes.raw)


def synonyms(path: Path) -> list[list[str]]:
    """Return the terms of each line of a file that mean the same; lines that begin with ``#`` are remarks."""
    lines = path.read_text("utf-8").splitlines()
    return [[term.strip() for term in line.split(",")] for line in lines if line.strip() and line[0] != "#"]


def parts(node: nodes.Element) -> Iterator[tuple[str, str, str]]:
    """Yield anchor, title and text of each section, and of each entry of the reference with its members.

    What the rows of tables are about counts :data:`DEFINED` times.
    """
    for child in node.children:
        if isinstance(child, addnodes.desc):
            named = next(iter(child.findall(addnodes.desc_signature)), None)
            if named is not None and named["ids"]:
                yield named["ids"][0], named.get("fullname", named["ids"][0]), child.astext()
        elif isinstance(child, nodes.section):
            yield child["ids"][0], child[0].astext(), text(child) + "\n" + defined(child) * DEFINED
            yield from parts(child)
        elif isinstance(child, nodes.Element):
            yield from parts(child)


def defined(node: nodes.Node) -> str:
    """Return the first cells of the rows of a section's tables: what each row is about."""
    if isinstance(node, nodes.row) and isinstance(node.parent, nodes.tbody):
        return node[0].astext() + "\n"
    return "".join(defined(child) for child in node.children if not isinstance(child, PARTS))


def text(node: nodes.Node) -> str:
    """Return the text of a node without what :func:`parts` yields by itself."""
    if not isinstance(node, nodes.Element) or not any(node.findall(lambda each: isinstance(each, SILENT))):
        return node.astext()
    return "\n".join(text(child) for child in node.children if not isinstance(child, SILENT))


def stems(words: str, language: SearchLanguage) -> list[str]:
    """Return the stems of the words of a text; common words and numbers are left out."""
    known = [word.lower() for word in language.split(words)]
    return [language.stem(word) for word in known if not word.isdigit() and word not in language.stopwords]


def counted(words: str, language: SearchLanguage, phrases: Collection[tuple[str, ...]]) -> Counter[str]:
    """Return how often a text has each stem, each part of a name, and each phrase."""
    found = stems(words, language)
    counts = Counter(found)
    counts.update(stem for word in found if "_" in word for stem in stems(word.replace("_", " "), language))
    for length in {len(phrase) for phrase in phrases}:
        runs = zip(*(found[start:] for start in range(length)), strict=False)
        counts.update(" ".join(run) for run in runs if run in phrases)
    return counts


def page_title(app: Sphinx, docname: str) -> str:
    """Return the title of a page; that of a notebook says what it is, since pages have such titles, too."""
    return ("Notebook: " if docname.startswith("notebooks/") else "") + app.env.titles[docname].astext()


def write_index(app: Sphinx, error: Exception | None) -> None:
    """Write ``sections.js``: pages, sections, the sections that have each stem or phrase, how often, and synonyms."""
    if error is not None or app.builder.name != "html":
        return
    language = SearchEnglish({})
    pages, sections = [], []
    where: defaultdict[str, list[int]] = defaultdict(list)
    same = synonyms(Path(app.confdir, "synonyms.txt"))
    phrases = {tuple(words) for line in same for term in line if len(words := stems(term, language)) > 1}
    for docname in sorted(app.env.found_docs.difference(LEFT_OUT)):
        of_page = page_title(app, docname)
        for number, (anchor, title, body) in enumerate(parts(app.env.get_doctree(docname))):
            counts = counted(body, language, phrases)
            for stem, count in counts.items():
                where[stem] += [len(sections), count]
            sections.append([len(pages), anchor, title if number else of_page, counts.total()])
        pages.append([docname, of_page])
    index = {"pages": pages, "sections": sections, "words": where, "synonyms": same}
    line = json.dumps(index, ensure_ascii=False, separators=(",", ":"))
    Path(app.outdir, "_static", "sections.js").write_text(f"const SECTIONS = {line};\n", "utf-8")


def for_search(app: Sphinx, pagename: str, template: str, context: dict[str, object], doctree: object) -> None:
    """Add the scripts of the search to its page; give the other pages the titles that it shows."""
    if doctree is not None:
        context["title"] = escape(page_title(app, pagename))
    if pagename == "search":
        for name in ("sections.js", "search.js"):
            app.add_js_file(name, loading_method="defer", priority=900)
