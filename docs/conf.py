"""Builds the site: ``sphinx-build -W -c docs . build/site``, with the repository as the folder of sources.

So links between pages, notebooks and pictures are those of the checkout. The reference has no files of its own: the
stub of each package, ``simmodel/*/__init__.pyi``, is a page, which :func:`reference` writes from the docstrings. Beside
this file, ``site_search.py`` has the search, ``site_gallery.py`` the gallery, and ``site_moved.py`` the addresses of
earlier versions.

Sphinx with MyST reads the pages as they stand, with their relative links and the anchors of git hosts, and its autodoc
imports the names through the lazy stubs, as users do. mkdocstrings reads source files, which do not have the exported
names, and mkdocs wants all pages, README and notebooks in one folder.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from importlib import import_module
from pathlib import Path
from textwrap import indent

from docutils import nodes
from pygments.lexers.special import TextLexer
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.osutil import relative_uri

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

import site_gallery  # noqa: E402
import site_moved  # noqa: E402
import site_search  # noqa: E402

import simmodel  # noqa: E402

project, author, copyright = "simmodel", "", ""
release = simmodel.__version__
html_title = "simmodel"

root_doc = "docs/index"
include_patterns = ["*.md", "docs/**.md", "notebooks/**.ipynb", "simmodel/__init__.pyi", "simmodel/*/__init__.pyi"]
include_patterns += ["simmodel_site/*/__init__.pyi"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb", ".pyi": "restructuredtext"}
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 4
nb_execution_mode = "off"

html_theme = "furo"
html_extra_path, html_static_path, templates_path = ["site"], ["static"], ["templates"]
html_css_files, html_js_files = ["site.css"], [("copy.js", {"defer": "defer"})]
html_sidebars = {
    "**": [
        *("sidebar/brand.html", "version.html", "sidebar/search.html", "sidebar/scroll-start.html"),
        *("sidebar/navigation.html", "sidebar/scroll-end.html"),
    ]
}
html_copy_source = False
html_show_sphinx = html_show_copyright = False

autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_typehints = "none"
python_maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"
napoleon_google_docstring = False
napoleon_use_param = napoleon_use_rtype = False  # they would take "user, group" for a type and a name
napoleon_custom_sections = [("Attributes", "params_style"), ("Columns", "params_style")]

BESIDE = {"simmodel.policies": "The names of all policies, by kind: :doc:`/docs/reference/policies`.\n"}
"""A line of the page of a package about another page."""
TITLES = {"README": "simmodel on one screen", "simmodel/__init__": "simmodel: the names at its top"}
"""Pages that have another title here than in the checkout: the landing page is called simmodel."""

_UNDERLINE = re.compile(r"-{3,}")
_FIELDS = re.compile(r"\*{0,2}[\w.]+(, \*{0,2}[\w.]+)*")


def homes(stub: Path) -> dict[str, str]:
    """Return the names that a package exports, with the module that each comes from."""
    package = ".".join(stub.parent.relative_to(ROOT).parts)
    return {
        alias.name: f"{package}.{statement.module}"
        for statement in ast.parse(stub.read_text("utf-8")).body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }


HOMES = {
    ".".join(stub.parent.relative_to(ROOT).parts): homes(stub)
    for stub in sorted(ROOT.glob("simmodel*/**/__init__.pyi"))
}
"""The exported names of each package, with the module that each comes from."""
WHOLE_NAMES = {f"{home}.{name}" for names in HOMES.values() for name, home in names.items()}
VALUES = [getattr(import_module(package), name) for package, names in HOMES.items() for name in names]
CLASSES = {value for value in VALUES if inspect.isclass(value)}


def end_sections(app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
    """End a section of a docstring where text goes on at the margin, by the two empty lines that napoleon knows."""
    in_section = False
    for number, line in enumerate(list(lines)):
        at_margin = number > 0 and not lines[number - 1] and line[:1].strip()
        if at_margin and in_section and not _FIELDS.fullmatch(line):
            lines[number] = "\n" + line
        in_section = in_section or bool(_UNDERLINE.fullmatch(line))
    lines[:] = "\n".join(lines).split("\n")
    if what in ("attribute", "property"):
        lines[:0] = ["..", ""]  # an empty comment: napoleon takes the first words before a colon for a type


def without_text(app: Sphinx, what: str, name: str, value: object, skip: bool, options: object) -> bool | None:
    """Leave out the fields of named tuples that have the docstring of Python alone."""
    return True if str(value.__doc__).startswith("Alias for field number") else None


def default_values(
    app: Sphinx, what: str, name: str, value: object, options: object, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """Write a default that attrs makes anew for each object, and one whose text has an address, as dots."""
    return signature and re.sub(r"=(NOTHING|<[^>]*>)", "=...", signature), returns


def summary(package: str, name: str) -> str:
    """Return the first sentence of what the docstring of an exported name says."""
    return " ".join(docstring(package, name).partition("\n\n")[0].split())


def docstring(package: str, name: str) -> str:
    """Return the docstring of an exported name; that of a value stands below it in its module."""
    value = getattr(import_module(package), name)
    if inspect.isclass(value) or inspect.isroutine(value):
        return inspect.getdoc(value) or ""
    return "\n".join(ModuleAnalyzer.for_module(HOMES[package][name]).find_attr_docs()["", name])


def entry(package: str, name: str) -> str:
    """Return the entry of an exported name: a class has the members of those ancestors that have no entry."""
    value = getattr(import_module(package), name)
    if inspect.isroutine(value):
        return f".. autofunction:: {name}\n"
    if not inspect.isclass(value):
        return f".. py:data:: {name}\n\n" + indent(docstring(package, name), "   ")
    bases = "   :show-inheritance:\n" if any(base in CLASSES for base in value.__bases__) else ""
    elsewhere = {each.__name__ for each in value.__mro__[1:] if each in CLASSES or not is_own(each)}
    return f".. autoclass:: {name}\n{bases}   :inherited-members: {', '.join(sorted(elsewhere))}\n"


def explained_elsewhere(package: str) -> list[str]:
    """Return the functions to which the first sentences of exported names refer, and that are not exported."""
    sentences = " ".join(summary(package, name) for name in HOMES[package])
    return [found for found in re.findall(r"see :func:`~([\w.]+)`", sentences) if found not in WHOLE_NAMES]


def is_own(cls: type) -> bool:
    """Whether a class is one of simmodel's."""
    return cls.__module__.startswith("simmodel")


def reference(app: Sphinx, docname: str, content: list[str]) -> None:
    """Write the page of a package: its docstring, a table of its names, and their entries."""
    if not docname.startswith(("simmodel/", "simmodel_site/")):
        return
    package = docname.removesuffix("/__init__").replace("/", ".")
    title = TITLES.get(docname, package)
    rows, entries = [], []
    for name in sorted(HOMES[package], key=str.lower):
        home = HOMES[package][name]
        if name not in HOMES.get(home, ()):
            entries.append(entry(package, name))
            home = package
        rows.append(f"   * - :py:obj:`{name} <{home}.{name}>`\n     - {summary(package, name)}")
    content[0] = "\n".join(
        [
            f"{title}\n{'=' * len(title)}\n\n.. automodule:: {package}\n   :no-members:\n",
            BESIDE.get(package, ""),
            ".. list-table::\n   :class: summary\n",
            *rows,
            "",
            *entries,
            *(f".. autofunction:: {function}\n" for function in explained_elsewhere(package)),
        ]
    )


def retitle(app: Sphinx, doctree: nodes.document) -> None:
    """Give the pages of :data:`TITLES` their titles; anchors remain."""
    if app.env.docname in TITLES:
        title = next(iter(doctree.findall(nodes.title)))
        title[:] = [nodes.Text(TITLES[app.env.docname])]


def folders(app: Sphinx, doctree: nodes.document) -> None:
    """Make a link to a folder of the checkout one to the page of that package, or plain text."""
    here = app.env.doc2path(app.env.docname).parent
    for link in list(doctree.findall(addnodes.pending_xref)):
        folder = (here / link["reftarget"]).resolve()
        if link["reftype"] != "myst" or not folder.is_dir():
            continue
        docname = app.env.path2doc(folder / "__init__.pyi")
        if docname in app.env.found_docs:
            link["refdomain"], link["reftarget"], link["reftargetid"] = "doc", docname, None
        else:
            link.replace_self(link.children)


def full_size(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Make each picture a link to its file, which a browser shows at full size."""
    here = app.builder.get_target_uri(docname)
    for picture in list(doctree.findall(nodes.image)):
        if picture["uri"] in app.env.images and not isinstance(picture.parent, nodes.reference):
            file = app.env.images[picture["uri"]][1]
            link = nodes.reference(refuri=relative_uri(here, f"{app.builder.imagedir}/{file}"), internal=True)
            picture.replace_self(link)
            link += picture


def exported(app: Sphinx, env: BuildEnvironment, link: addnodes.pending_xref, text: nodes.Element) -> nodes.Node | None:
    """Resolve a reference to an exported name by its module, or by its name alone: its entry is that of its package."""
    domain, sought = env.get_domain("py"), link["reftarget"] + "."
    for package, names in HOMES.items():
        for name, home in names.items():
            for start in (f"{name}.", f"{home}.{name}."):
                if sought.startswith(start):
                    where = f"{package}.{name}.{sought.removeprefix(start)}".rstrip(".")
                    found = domain.resolve_xref(env, link["refdoc"], app.builder, link["reftype"], where, link, text)
                    if found is not None:
                        return found
    return None


def no_values_in_contents(app: Sphinx, domain: str, kind: str, content: nodes.Element) -> None:
    """Leave attributes out of the contents in the margin, which then are the exported names and their methods."""
    if kind in ("attribute", "property"):
        content.parent["no-contents-entry"] = True


def setup(app: Sphinx) -> None:
    """Connect the functions of this file and of those beside it."""
    app.connect("autodoc-process-docstring", end_sections, priority=100)
    app.connect("autodoc-skip-member", without_text)
    app.connect("autodoc-process-signature", default_values)
    app.connect("source-read", reference)
    app.connect("doctree-read", retitle, priority=100)  # before the environment takes the title
    app.connect("doctree-read", site_gallery.draw_gallery, priority=100)  # before it takes the pictures
    app.connect("doctree-read", folders)
    app.connect("doctree-resolved", full_size)
    app.connect("missing-reference", exported)
    app.connect("object-description-transform", no_values_in_contents)
    app.connect("html-page-context", site_search.for_search)
    app.connect("html-page-context", site_moved.lead_on)
    for write in (site_search.write_index, site_gallery.write_files, site_moved.write_old_pages):
        app.connect("build-finished", write)
    for name in ("csv", "swf"):
        app.add_lexer(name, TextLexer)
