"""What came of a what-if, as a text and as HTML."""

from __future__ import annotations

import html
from math import isfinite
from typing import TYPE_CHECKING

from simmodel.metrics.report import duration
from simmodel.metrics.tables import text_table
from simmodel.scheduling.objective import MEASURES

if TYPE_CHECKING:
    from simmodel.futures.outcomes import WhatIf

__all__ = ["outcomes_html", "summary_text"]

_SHOWN = ("wait_mean", "wait_max", "bounded_slowdown_mean", "utilisation")  # tables hold all measures
_NAMED = 10  # jobs that the summary names


def summary_text(found: WhatIf) -> str:
    """Return the outcomes as a table of text, and what the best policy starts now.

    >>> from simmodel.futures.outcomes import WhatIf
    >>> from simmodel.scheduling.objective import objective
    >>> print(summary_text(WhatIf(0.0, (), objective("wait_mean"))).splitlines()[-1])
    no policy is finished: nothing to decide
    """
    return "\n".join([_title(found), "", *text_table(_cells(found)), "", *_notes(found)])


def outcomes_html(found: WhatIf) -> str:
    """Return the same as HTML, the best policy in bold.

    >>> from simmodel.futures.outcomes import WhatIf
    >>> from simmodel.scheduling.objective import objective
    >>> outcomes_html(WhatIf(0.0, (), objective("wait_mean"))).startswith("<div>from 0 s until all is over")
    True
    """
    head, *rows = _cells(found)
    best = found.best
    cells = "".join(f"<th style='text-align:right'>{html.escape(text)}</th>" for text in head)
    body = "".join(
        f"<tr{' style=font-weight:bold' if best is not None and row[0] == best.name else ''}>"
        f"<td style='text-align:left'>{html.escape(row[0])}</td>"
        + "".join(f"<td style='text-align:right'>{html.escape(text)}</td>" for text in row[1:])
        + "</tr>"
        for row in rows
    )
    notes = "".join(f"<div>{html.escape(line)}</div>" for line in _notes(found))
    table = f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div>{html.escape(_title(found))}</div>{table}{notes}"


def _title(found: WhatIf) -> str:
    span = "until all is over" if found.horizon is None else f"for {duration(found.horizon)}"
    samples = max((len(each.counted) for each in found.outcomes), default=0)
    mean = f", means of {samples} samples" if samples > 1 else ""
    return f"from {found.now:g} s {span}{mean}; score: {found.objective}, lower is better"


def _cells(found: WhatIf) -> list[list[str]]:
    """The head and the rows of a table of text."""
    rows = [["", "score", "start now", *(MEASURES[name][1].partition(" (")[0] for name in _SHOWN)]]
    for each in found.outcomes:
        if each.counted:
            measures = each.measures
            rows.append(
                [
                    each.name,
                    f"{each.score:.4g}",
                    str(len(each.now)),
                    *(_text(name, measures[name]) for name in _SHOWN),
                ]
            )
        else:
            rows.append([each.name, each.status, *[""] * (len(_SHOWN) + 1)])
    return rows


def _notes(found: WhatIf) -> list[str]:
    notes = [f"{each.name}: {each.status}: {each.reason}" for each in found.outcomes if each.status != "finished"]
    if found.horizon is None:
        notes += [f"{each.name}: {each.unstarted:g} jobs never start" for each in found.outcomes if each.unstarted > 0]
    best = found.best
    if best is None:
        return [*notes, "no policy is finished: nothing to decide"]
    jobs: dict[str, list[str]] = {}
    for each in best.now[:_NAMED]:
        jobs.setdefault(each.place, []).append(str(each.job))
    more = f" and {len(best.now) - _NAMED} more" if len(best.now) > _NAMED else ""
    named = "; ".join(f"{', '.join(names)} on {place}" for place, names in jobs.items())
    what = f"starts {named}{more}" if jobs else "starts nothing now"
    return [*notes, f"best: {best.name}, which {what}"]


def _text(name: str, value: float) -> str:
    """Return a measure with its unit, for people."""
    if not isfinite(value):
        return "-"
    if name == "utilisation":
        return f"{100 * value:.1f} %"
    return duration(value) if MEASURES[name][0] == "s" else f"{value:,.3g}"
