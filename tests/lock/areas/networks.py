"""Transfers over links that are shared max-min fair, or as CM02 and LV08 say."""

from __future__ import annotations

from typing import Any

from simmodel.platform import LinkSpec
from tests.lock import api, work
from tests.lock.cases import case
from tests.lock.digests import digest, exact

SHARING = ("shared", "fatpipe")


def links(seed: int, **options: Any) -> list[LinkSpec]:
    draw = work.Draw(seed)
    return [
        LinkSpec(
            name=name,
            bandwidth=float(draw.of((10, 25, 100))),
            latency=draw.of((0.0, 0.0, 0.25, 1.5)),
            sharing=draw.of(("shared", "shared", "fatpipe")),
            **options,
        )
        for name in "abcdef"
    ]


def flows(seed: int, count: int = 40) -> list[dict[str, Any]]:
    draw = work.Draw(seed)
    made = []
    for number in range(count):
        names = list("abcdef")
        route = tuple(names.pop(draw.whole(0, len(names) - 1)) for _ in range(draw.whole(1, 4)))
        flow = {"id": f"f{number}", "start": draw.whole(0, 30), "size": float(draw.whole(0, 500)), "route": route}
        if draw.chance(0.2):
            flow["rate_cap"] = float(draw.whole(1, 20))
        if draw.chance(0.2):
            flow["weight"] = float(draw.whole(1, 4))
        if draw.chance(0.1):
            flow["lag"] = float(draw.whole(0, 3))
        made.append(flow)
    return made


def _run(given: Any, moved: Any, **options: Any) -> dict[str, Any]:
    ends, loads = api.run_network(given, moved, **options)
    last = max(ends.values())
    return {"ends": digest(map(exact, ends.items())), "loads": digest(map(exact, loads)), "last": last}


def add() -> None:
    """Add the cases."""
    for model in ("maxmin", "cm02", "lv08", "simgrid", "simgrid-cm02"):
        for seed in range(1, 7):
            case(
                "networks",
                f"{model}, links and flows {seed}",
                lambda model=model, seed=seed: _run(links(seed), flows(seed), model=model),
            )
        case(
            "networks",
            f"{model}, profiles",
            lambda model=model: _run(links(8, profile=[(5, 4.0), (9, 30.0)], repeat=20.0), flows(8), model=model),
        )
        case(
            "networks",
            f"{model}, between places",
            lambda model=model: _run(_joined(), _between(), model=model),
        )


def _joined() -> list[LinkSpec]:
    ends = (("x", "y"), ("y", "z"), ("z", "x"), ("z", "w"))
    return [LinkSpec(name="-".join(pair), bandwidth=20.0, latency=0.1 * i, between=pair) for i, pair in enumerate(ends)]


def _between() -> list[dict[str, Any]]:
    draw = work.Draw(9)
    return [
        {
            "id": f"f{i}",
            "start": draw.whole(0, 10),
            "size": float(draw.whole(1, 200)),
            "source": draw.of("xyzw"),
            "destination": draw.of("xyzw"),
        }
        for i in range(25)
    ]
