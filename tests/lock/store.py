"""Recorded figures and texts: read, compared, renewed."""

from __future__ import annotations

import json
import tempfile
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tests.lock import cases
from tests.lock.api import inside

HERE = Path(__file__).parent
FIGURES = HERE / "figures"
RECORDED_TEXTS = HERE / "texts"


def compute(area: str, names: list[str] | None = None) -> dict[str, Any]:
    """Return the figures of an area, in an empty folder."""
    made = {}
    for name, make in cases.AREAS[area].items():
        if names is None or name in names:
            with tempfile.TemporaryDirectory() as folder, inside(folder):
                try:
                    made[name] = json.loads(json.dumps(make()))
                except Exception as error:  # said beside the cases that differ
                    made[name] = {"error": _error(error)}
    return made


def compute_texts(area: str, names: list[str] | None = None) -> dict[str, str]:
    """Return the texts of an area, in an empty folder."""
    made = {}
    for name, make in cases.TEXTS[area].items():
        if names is None or name in names:
            with tempfile.TemporaryDirectory() as folder, inside(folder):
                try:
                    made[name] = make().rstrip("\n") + "\n"
                except Exception as error:
                    made[name] = f"ERROR {_error(error)}\n"
    return made


def _error(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def recorded(area: str) -> dict[str, Any]:
    """Return the figures on file."""
    path = FIGURES / f"{area}.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def recorded_texts(area: str) -> dict[str, str]:
    """Return the texts on file."""
    paths = sorted(RECORDED_TEXTS.glob(f"{area}.*.txt"))
    return {path.name.removeprefix(f"{area}.").removesuffix(".txt"): path.read_text("utf-8") for path in paths}


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Say which cases differ, with their old and new values."""
    said = []
    for name in [*old, *(name for name in new if name not in old)]:
        if old.get(name) == new.get(name):
            continue
        if name not in new:
            said.append(f"{name}: no longer a case")
        elif name not in old:
            said.append(f"{name}: not recorded; now {json.dumps(new[name])}")
        else:
            was, now = old[name], new[name]
            keys = [key for key in {**was, **now} if was.get(key) != now.get(key)]
            said += [f"{name}: {key} was {json.dumps(was.get(key))}, is {json.dumps(now.get(key))}" for key in keys]
            same = {key: value for key, value in was.items() if key not in keys}
            said.append(f"    as before: {json.dumps(same)}")
    return said


def write_figures(area: str, figures: dict[str, Any]) -> None:
    """Write the figures of an area, one line a case."""
    FIGURES.mkdir(exist_ok=True)
    lines = [f"  {json.dumps(name)}: {json.dumps(figure)}" for name, figure in figures.items()]
    (FIGURES / f"{area}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def renew(pattern: str = "*") -> list[str]:
    """Rewrite the figures and texts whose area, or ``AREA/CASE``, matches a pattern; say which changed."""
    changed = []
    for area, made in cases.AREAS.items():
        names = [name for name in made if _matches(area, name, pattern)]
        old = recorded(area)
        if not names and (set(old) <= set(made) or not fnmatchcase(area, pattern)):
            continue
        new = compute(area, names)
        failed = [name for name, figure in new.items() if "error" in figure]
        if failed:
            raise RuntimeError(f"{area}/{failed[0]}: {new[failed[0]]['error']}")
        kept = {name: new.get(name, old.get(name)) for name in made}
        kept = {name: figure for name, figure in kept.items() if figure is not None}
        changed += [f"{area}/{line}" for line in differences({k: v for k, v in old.items() if k in names}, new)]
        write_figures(area, kept)
    for area, made in cases.TEXTS.items():
        names = [name for name in made if _matches(area, name, pattern)]
        RECORDED_TEXTS.mkdir(exist_ok=True)
        before = recorded_texts(area)
        for name in before:
            if name not in made:
                (RECORDED_TEXTS / f"{area}.{name}.txt").unlink()
        for name, text in compute_texts(area, names).items():
            if text.startswith("ERROR "):
                raise RuntimeError(f"{area}/{name}: {text}")
            if before.get(name) != text:
                changed.append(f"text {area}/{name}")
                (RECORDED_TEXTS / f"{area}.{name}.txt").write_text(text, "utf-8")
    return changed


def _matches(area: str, name: str, pattern: str) -> bool:
    return fnmatchcase(area, pattern) or fnmatchcase(f"{area}/{name}", pattern)
