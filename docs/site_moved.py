"""Leads from the addresses of earlier versions on: a small page where a page was, a script where only sections moved.

``moved.toml`` has the old addresses and the new ones, with or without an anchor.
"""

from __future__ import annotations

import json
import tomllib
from collections import defaultdict
from html import escape
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util.osutil import relative_uri

SCRIPT = """\
const moved = {moved};
const lead = () => {{
  const to = moved[location.hash] ?? (moved[""] && moved[""] + location.hash);
  if (to && !document.getElementById(location.hash.slice(1))) location.replace(to);
}};
addEventListener("DOMContentLoaded", lead);
addEventListener("hashchange", lead);
"""
PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="robots" content="noindex">
<title>This page has moved - simmodel</title>
<style>
:root {{ color-scheme: light dark; font-family: sans-serif; }}
body {{ margin: 2rem auto; max-width: 40rem; padding: 0 1rem; }}
</style>
<script>{script}</script>
</head>
<body>
<h1>This page has moved</h1>
<ul>
{links}
</ul>
</body>
</html>
"""


def moved(folder: Path) -> dict[str, dict[str, str]]:
    """Return where each old page and its anchors went: by page, by anchor ("" is the page itself)."""
    found: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for old, new in tomllib.loads((folder / "moved.toml").read_text("utf-8")).items():
        page, _, anchor = old.partition("#")
        found[page][anchor and f"#{anchor}"] = new
    return dict(found)


def addresses(page: str, anchors: dict[str, str]) -> dict[str, str]:
    """Return the links to new places from an old page."""
    found = {}
    for anchor, new in anchors.items():
        target, sign, place = new.partition("#")
        found[anchor] = relative_uri(f"{page}.html", f"{target}.html") + sign + place
    return found


def script(page: str, anchors: dict[str, str]) -> str:
    """Return the script that leads on from an old page."""
    return SCRIPT.format(moved=json.dumps(addresses(page, anchors)))


def write_old_pages(app: Sphinx, error: Exception | None) -> None:
    """Write a page for each old one that is none of the site any more."""
    if error is not None or app.builder.name != "html":
        return
    for page, anchors in moved(Path(app.confdir)).items():
        if page in app.env.found_docs:
            continue
        links = [
            f'<li><a href="{escape(to)}">{escape(title(app, anchors[anchor]))}</a>'
            f"{f' (was {escape(anchor)})' if anchor else ''}</li>"
            for anchor, to in addresses(page, anchors).items()
        ]
        file = Path(app.outdir, f"{page}.html")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(PAGE.format(script=script(page, anchors), links="\n".join(links)), "utf-8")


def title(app: Sphinx, address: str) -> str:
    """Return the title of the page of an address, as far as it is one of the site."""
    page = address.partition("#")[0]
    return app.env.titles[page].astext() if page in app.env.titles else page


def lead_on(app: Sphinx, pagename: str, template: str, context: dict[str, object], doctree: object) -> None:
    """Add the script to a page some of whose sections are on other pages now."""
    anchors = moved(Path(app.confdir)).get(pagename)
    if anchors and doctree is not None:
        app.add_js_file(None, body=script(pagename, anchors))
