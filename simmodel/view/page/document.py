"""A page as one file: a header in JSON and columns of numbers, deflated, with the script that draws them.

The page is HTML, its script and style stand in it, and nothing is loaded from anywhere. Texts of a run reach the page
only through the header, which the script shows as text, so that names of jobs, users and files are never markup.
"""

from __future__ import annotations

import html
import json
import zlib
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from simmodel.metrics.bins import distribution
from simmodel.work.table import Words

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from simmodel.foundation.errors import Plain
    from simmodel.records.steps import Steps

__all__ = ["Column", "Page", "live_document"]

_MISSING = -(2**31)  # for nan among whole numbers
_TILES = 5
_POINTS = 20_000  # of a line; longer ones are averaged
_AVERAGES = 4_000
_ORIGIN = (
    "The page begins at {at:,.12g} {unit} of the log. Options that name an instant count from 0 {unit} of the log."
)
_LONG = 200_000  # characters of a scenario that is not indented
Column = tuple[str, str, Any]
"""A column of a table: its name, its kind (number, bytes, seconds, instant or text) and its values."""


class Page:
    """The parts of a page, in order.

    Parameters
    ----------
    title, subtitle
        the headings
    started, ended
        the span of time that the page shows
    unit
        the unit of time, ``"s"`` if times are seconds
    facts, notes
        pairs of label and text; sentences
    tiles
        the labels of the facts that matter most: five are shown at once, the others when asked for
    since, now
        what second 0 of the page is; an instant that is marked
    scenario
        the document from which the run can be repeated, or an empty one; ``None``: the page is not that of a log

    >>> page = Page("two jobs", "on 4 processors", 0.0, 30.0, facts=[("utilisation", "66.7 %")])
    >>> page.table("jobs", "job", [("job", "number", [1, 2]), ("wait", "seconds", [0.0, 10.0])])
    >>> page.html().startswith("<!doctype html>"), "two jobs" in page.html()
    (True, True)
    """

    def __init__(
        self,
        title: str,
        subtitle: str,
        started: float,
        ended: float,
        *,
        unit: str = "s",
        facts: Iterable[tuple[str, str]] = (),
        tiles: Iterable[str] = (),
        since: str = "the start",
        now: float | None = None,
        notes: Iterable[str] = (),
        scenario: Mapping[str, Plain] | None = None,
    ) -> None:
        from simmodel.records.tables import versions

        self._arrays: list[bytes] = []
        self._size = 0
        self._span = float(started), float(ended)
        self._head: dict[str, Any] = {
            "title": title,
            "subtitle": subtitle,
            "span": self._span,
            "unit": unit,
            "facts": [list(each) for each in facts],
            "tiles": [],
            "since": since,
            **({} if now is None else {"now": float(now)}),
            "notes": list(notes),
            "scenario": _written(scenario) if scenario else "",
            "origin": "" if scenario is None or not started else _ORIGIN.format(unit=unit, at=float(started)),
            "panels": [],
            "explained": {},
            "footer": f"made by simmodel {versions()['simmodel']}",
        }
        known = [label for label, _ in self._head["facts"]]
        self._head["tiles"] = [label for label in dict.fromkeys([*tiles, *known]) if label in known][:_TILES]

    # ------------------------------------------------------------------ parts

    def table(
        self, title: str, one: str, columns: Iterable[Column], explained: Mapping[int, str] | None = None
    ) -> None:
        """Add the table of all rows, whose first column names them.

        Parameters
        ----------
        title, one
            the name of the table, and of one row
        columns
            name, kind and values of each; texts are ``text``
        explained
            for the numbers of some rows, why the work waited
        """
        shown = [self._column(*each) for each in columns]
        shown[0]["search"] = True
        self._head["table"] = {"title": title, "one": one, "many": title, "columns": shown}
        self._head["explained"] = {str(row): text for row, text in (explained or {}).items()}

    def details(self, title: str, rows: ArrayLike, columns: Iterable[Column]) -> None:
        """Add a table that is shown with each row of the page's table: ``rows`` are those that its rows belong to."""
        order = np.argsort(np.asarray(rows), kind="stable")
        sorted_columns = [(name, kind, np.asarray(values)[order]) for name, kind, values in columns]
        self._head["details"] = {
            "title": title,
            "row": self._numbers(np.asarray(rows)[order]),
            "columns": [self._column(*each) for each in sorted_columns],
        }

    def boxes(
        self,
        title: str,
        row: ArrayLike,
        low: ArrayLike,
        high: ArrayLike,
        rows: int,
        *,
        span: tuple[NDArray[np.float64], NDArray[np.float64]],
        in_table: bool = False,
        labels: Sequence[tuple[int, int, str]] | None = None,
        places: Sequence[tuple[str, int, str, int]] | None = None,
        place: ArrayLike | None = None,
        choice: str = "place",
        beside: int = 1,
        kinds: Sequence[tuple[str, str]] | None = None,
        kind: ArrayLike | None = None,
        others: str = "",
        axis: str = "",
        empty: str = "",
    ) -> None:
        """Add a schedule: rectangles over time on rows such as processors or nodes.

        Parameters
        ----------
        title
            the heading
        row
            for each rectangle, the row of the table, or -1
        low, high
            the first of the rows that it covers, and the one behind the last
        rows
            how many there are
        span
            from when to when each lasts
        in_table
            whether these are ``start`` and ``end`` of its row of the table
        labels
            names of rows: the first, the one behind the last, the name
        places, place
            name, number of rows, column of the waits ("": ``wait``) and number of the run of each place to choose from,
            and for each rectangle the number of its place
        choice, beside
            what is chosen from them, and how many stand beside each other on one axis
        kinds, kind
            label and colour (``c0`` to ``c6`` of the theme, "": hollow) of each kind of rectangle, and for each its
            kind; default: coloured by the table
        others
            what rectangles without a row of the table are
        axis, empty
            the title of the axis of rows; a sentence for a schedule without a rectangle
        """
        order = np.lexsort((span[0], *(() if place is None else (np.asarray(place),))))

        def sorted_by_start(values: ArrayLike | None) -> dict[str, Any] | None:
            return None if values is None else self._numbers(np.asarray(values)[order])

        self._head["panels"].append(
            {
                "type": "boxes",
                "title": title,
                "row": sorted_by_start(row),
                "low": sorted_by_start(low),
                "high": sorted_by_start(high),
                "rows": int(rows),
                "start": None if in_table else sorted_by_start(span[0]),
                "end": None if in_table else sorted_by_start(span[1]),
                "labels": None if labels is None else [list(each) for each in labels],
                "places": None
                if places is None
                else [
                    {"name": name, "rows": int(size), "colour": colour, "run": run}
                    for name, size, colour, run in places
                ],
                "place": sorted_by_start(place),
                "choice": choice,
                "shown": beside,
                "kinds": None if kinds is None else [{"label": name, "colour": colour} for name, colour in kinds],
                "kind": sorted_by_start(kind),
                "others": others,
                "axis": axis,
                "empty": empty,
            }
        )

    def lines(
        self, title: str, *lines: tuple[str, Steps], axis: str = "", empty: str = "", limit: Steps | None = None
    ) -> None:
        """Add quantities over time.

        Of more than 20,000 steps exact averages over 4,000 equal intervals are shown, which the label says.

        Parameters
        ----------
        title
            the heading
        lines
            label and values of each
        axis
            the unit of the quantity
        empty
            a sentence for quantities that are 0 all the time
        limit
            drawn dashed, as the capacity
        """
        self._add_lines(
            title, [self._line(label, steps, area=len(lines) == 1) for label, steps in lines], axis, empty, limit
        )

    def layers(self, title: str, layers: Mapping[str, Steps], axis: str = "") -> None:
        """Add quantities over time that lie on top of each other: each with those before, the last one is their sum."""
        shown = [self._line(label, steps, area=True) for label, steps in layers.items()]
        self._add_lines(title, shown[::-1], axis)

    def _add_lines(
        self, title: str, shown: list[dict[str, Any]], axis: str, empty: str = "", limit: Steps | None = None
    ) -> None:
        before = 0 if len(shown) > 1 else sum(panel["type"] == "lines" for panel in self._head["panels"])
        if limit is not None:
            shown.append({**self._line("in service", limit), "grey": True})
        self._head["panels"].append(
            {"type": "lines", "title": title, "lines": shown, "shift": before, "axis": axis, "empty": empty}
        )

    def heat(self, title: str, rows: str, parts: Sequence[tuple[str, Steps]], bins: int = 480) -> None:
        """Add shares (0 to 1) of many rows over time as shades: exact averages over equal intervals.

        Parameters
        ----------
        title, rows
            the heading, and what a row is
        parts
            name and share of each row
        bins
            how many intervals
        """
        start, end = self._span
        if not parts or not end > start:
            return
        edges = np.linspace(start, end, bins + 1)
        values = np.clip(np.nan_to_num([steps.averages(edges) for _, steps in parts]), 0, 1)
        self._head["panels"].append(
            {
                "type": "heat",
                "title": title,
                "rows": rows,
                "names": [name for name, _ in parts],
                "bins": bins,
                "values": self._numbers(np.rint(255 * values).astype(np.uint8).ravel()),
            }
        )

    def map(
        self,
        title: str,
        places: Sequence[tuple[str, float, float, int, int]],
        links: Sequence[tuple[str, int, int, str, float, float]],
        loads: Sequence[Steps] = (),
        bins: int = 96,
    ) -> None:
        """Add a map of places and the links between them; each place shows its share of the heat of the page.

        Parameters
        ----------
        title
            the heading
        places
            name, position (-1 to 1), cores and hosts of each; without cores it is a joint of links
        links
            name, the numbers of the two places, amount, and mean and peak share (0 to 1; without loads, of the most)
        loads
            share of each link over time, shown for the time in view; default: none is known
        bins
            into how many equal intervals the time is divided
        """
        start, end = self._span
        known = bool(loads) and end > start
        edges = np.linspace(start, end, bins + 1)
        values = np.clip(np.nan_to_num([each.averages(edges) for each in loads]), 0, 1) if known else np.zeros(0)
        self._head["panels"].append(
            {
                "type": "map",
                "title": title,
                "places": [list(each) for each in places],
                "links": [list(each) for each in links],
                "bins": bins if known else 0,
                "values": self._numbers(np.rint(255 * values).astype(np.uint8).ravel()),
            }
        )

    def curve(self, title: str, kind: str, *curves: tuple[str, ArrayLike], axis: str, empty: str) -> None:
        """Add cumulative distributions.

        Parameters
        ----------
        title
            the heading
        kind
            of the values: "seconds" or "number"
        curves
            label and values of each
        axis, empty
            the title of the axis of values; a sentence if there is no value
        """
        found = []
        for label, values in curves:
            at, share = distribution(np.asarray(values, dtype=np.float64))
            if len(at):
                found.append({"label": label, "values": at.tolist(), "shares": share.tolist()})
        self._head["panels"].append(
            {"type": "curve", "title": title, "kind": kind, "curves": found, "axis": axis, "empty": empty}
        )

    def grid(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], first: int = 0) -> None:
        """Add a short table of texts; the rows after the ``first`` are shown when asked for (0: all at once)."""
        self._head["panels"].append(
            {
                "type": "grid",
                "title": title,
                "columns": list(columns),
                "rows": [list(row) for row in rows],
                "first": first,
            }
        )

    # ------------------------------------------------------------------ the file

    def data(self, level: int = 6) -> bytes:
        """Return the header and the arrays, deflated: from 1, which is quick, to 9, which is small."""
        head = json.dumps(self._head, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        packed = head.encode("utf-8", "replace")
        start = len(packed).to_bytes(8, "little") + packed + bytes(-len(packed) % 8)
        return zlib.compress(start + b"".join(self._arrays), level)

    def html(self) -> str:
        script = 'simmodelUnpack(document.getElementById("data").textContent).then((bytes) => simmodelShow(bytes));'
        return _document(self._head["title"], b64encode(self.data()).decode("ascii"), script, "'none'")

    def _repr_html_(self) -> str:
        """Return the page in a frame, as notebooks show it."""
        style = "width:100%;height:760px;border:0"
        return f'<iframe title="page of the run" srcdoc="{html.escape(self.html())}" style="{style}"></iframe>'

    # ------------------------------------------------------------------ numbers

    def _numbers(self, values: ArrayLike) -> dict[str, Any]:
        """Add an array in the smallest type that holds it exactly; return where it stands."""
        array = np.asarray(values)
        kind, packed, missing = _packed(array)
        data = packed.tobytes()
        found = {"at": self._size, "count": len(array), "type": kind, **({"missing": True} if missing else {})}
        data += bytes(-len(data) % 8)
        self._arrays.append(data)
        self._size += len(data)
        return found

    def _column(self, name: str, kind: str, values: Any) -> dict[str, Any]:
        if kind != "text":
            return {"name": name, "kind": kind, "data": self._numbers(values)}
        words = Words.of(values)
        return {"name": name, "words": list(words.words), "data": self._numbers(words.codes)}

    def _line(self, label: str, steps: Steps, *, area: bool = False) -> dict[str, Any]:
        if len(steps.times) > _POINTS:
            label = f"{label} (averages over {_AVERAGES:,} intervals)"
            edges = np.linspace(steps.start, steps.end, _AVERAGES + 1)
            times, values = edges[:-1], steps.averages(edges).astype(np.float32).astype(np.float64)
        else:
            times, values = steps.times, np.nan_to_num(steps.values)
        most = float(np.max(values, initial=0.0, where=np.isfinite(values)))
        until = float(steps.end)
        return {
            "label": label,
            "times": self._numbers(times),
            "values": self._numbers(values),
            "until": until,
            "most": most,
            "area": area,
        }


def _written(scenario: Mapping[str, Plain]) -> str:
    """Return a document as JSON, indented if it is not long."""
    text = json.dumps(dict(scenario), default=str)
    return text if len(text) > _LONG else json.dumps(dict(scenario), indent=1, default=str)


def _packed(array: NDArray[Any]) -> tuple[str, NDArray[Any], bool]:
    """Return the type, the values, and whether nan is among whole numbers."""
    if array.dtype.kind in "iub":
        low, high = (int(array.min()), int(array.max())) if len(array) else (0, 0)
        for kind, bottom, top in (("u1", 0, 2**8), ("u2", 0, 2**16), ("i4", -(2**31) + 1, 2**31)):
            if bottom <= low and high < top:
                return kind, array.astype(f"<{kind}"), False
        return "f8", array.astype("<f8"), False
    known = np.isfinite(array)
    whole = known & (np.abs(array) < 2**31) if len(array) else known
    if not np.isinf(array).any() and (array[known] == np.rint(array[known])).all() and (whole == known).all():
        if known.all():
            return _packed(array.astype(np.int64))
        return "i4", np.where(known, array, _MISSING).astype("<i4"), True
    return "f8", array.astype("<f8"), False


def live_document(title: str) -> str:
    """Return the page of a run that lasts: it asks its server for its data."""
    return _document(title, "", _part("live.js"), "'self'")


def _document(title: str, data: str, script: str, sources: str) -> str:
    """Return a page with its data and the script that shows them, which may ask these sources for more."""
    allowed = f"default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src {sources}"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{allowed}">\n'
        f"<title>{html.escape(title.encode('utf-8', 'replace').decode()[:200])}</title>\n"
        f'<style>\n{_part("page.css")}</style>\n</head>\n<body>\n<div id="live"></div>\n'
        '<main id="page"><noscript>This page draws itself with a script; it needs a browser with scripts.</noscript>'
        "</main>\n"
        f'<script type="text/plain" id="data">{data}</script>\n'
        f"<script>\n{_part('page.js')}\n{script}\n</script>\n</body>\n</html>\n"
    )


@cache
def _part(name: str) -> str:
    """Return the text of a file beside this module."""
    return files("simmodel.view.page").joinpath(name).read_text("utf-8")
