"""Nothing that was recorded of results and texts changes unseen: see ``tests/lock``."""

from __future__ import annotations

import difflib

import pytest

from tests.lock import cases, store

cases.load()
RENEW = "python -m tests.lock renew '{}' records intended changes"


LONG = {
    *("batch-orders", "batch-policies", "batch-ready", "brokers", "clusters-dependencies", "clusters-failures"),
    *("clusters-hosts", "clusters-nodes", "formats"),
    *("experiments", "machines-policies", "machines-ready", "machines-rules", "machines-work", "portfolios", "whatifs"),
    *("batch-modes", "snapshots-brokers", "snapshots-clusters", "snapshots-machines"),
}
"""Areas of which every fifth case is computed by default."""
ALL_CASES = [pytest.param(area, 1, marks=[pytest.mark.long] if area in LONG else []) for area in sorted(cases.AREAS)]


@pytest.mark.parametrize(("area", "every"), [*ALL_CASES, *((area, 5) for area in sorted(LONG))])
def test_figures_are_as_recorded(area: str, every: int) -> None:
    recorded = store.recorded(area)
    names = list(recorded)[::every] if every > 1 else None
    before = recorded if names is None else {name: recorded[name] for name in names}
    if said := store.differences(before, store.compute(area, names)):
        more = [f"... and {len(said) - 60} more lines"] if len(said) > 60 else []
        pytest.fail("\n".join([f"figures of {area} changed", *said[:60], *more, RENEW.format(area)]), pytrace=False)


@pytest.mark.parametrize("area", sorted(cases.TEXTS))
def test_texts_are_as_recorded(area: str) -> None:
    old, new = store.recorded_texts(area), store.compute_texts(area)
    said = []
    for name in sorted({**old, **new}):
        was, now = old.get(name, "").splitlines(), new.get(name, "").splitlines()
        said += difflib.unified_diff(was, now, f"{name} (recorded)", f"{name} (now)", lineterm="", n=1)
    if said:
        more = [f"... and {len(said) - 200} more lines"] if len(said) > 200 else []
        pytest.fail("\n".join([f"texts of {area} changed", *said[:200], *more, RENEW.format(area)]), pytrace=False)


def test_every_record_has_its_cases() -> None:
    assert {path.stem for path in store.FIGURES.glob("*.json")} == set(cases.AREAS)
    assert {path.name.split(".")[0] for path in store.RECORDED_TEXTS.glob("*.txt")} == set(cases.TEXTS)
