"""Flows over links with profiles and over fatpipes end as in SimGrid 3.32, but for what the page of networks names."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import simgrid_referee as referee

HERE = Path(__file__).parent
PROFILES = json.loads((HERE / "simgrid-profiles.json").read_text("utf-8"))
FATPIPES = json.loads((HERE / "simgrid-fatpipes.json").read_text("utf-8"))
"""Drawn platforms and flows, and their ends in SimGrid (CM02, network/optim:Full, no cross traffic, no window): each
with whether it arrived."""

live = [pytest.mark.live, pytest.mark.skipif(not referee.present(), reason="no python3-simgrid")]


def unlike(ours: list[Any], theirs: list[Any]) -> list[Any]:
    """Return the ends that differ by more than 1e-9."""
    pairs = zip(ours, theirs, strict=True)
    return [(a, b) for a, b in pairs if a[1] != b[1] or a[0] != pytest.approx(b[0], rel=1e-9, abs=1e-12)]


def weighs_unequally(case: dict[str, Any], folder: Path) -> bool:
    """Whether flows of unequal latencies, and so of unequal weights, go over one fatpipe."""
    found: dict[str, set[float]] = {}
    for ((_, links),) in referee.routes(case, folder):
        for link in links:
            if link.sharing == "fatpipe":
                found.setdefault(link.name, set()).add(round(sum(each.latency for each in links), 12))
    return any(len(latencies) > 1 for latencies in found.values())


def check_profiles(cases: list[dict[str, Any]], folder: Path) -> tuple[int, int]:
    """Check that all flows end as in SimGrid with the bound of their start; count them, and those that fail."""
    for case in cases:
        assert unlike(referee.flows_here(case, folder), case["ends"]) == [], case["xml"]
    ends = [end for case in cases for end in case["ends"]]
    return len(ends), sum(not arrived for _, arrived in ends)


def check_fatpipes(cases: list[dict[str, Any]], folder: Path) -> int:
    """Check that flows end as in SimGrid where those over a fatpipe are of one weight; count them."""
    alike = [case for case in cases if not weighs_unequally(case, folder)]
    for case in alike:
        assert unlike(referee.flows_here(case, folder), case["ends"]) == [], case["xml"]
    return sum(len(case["ends"]) for case in alike)


def test_flows_over_links_with_profiles_end_as_in_simgrid(tmp_path: Path) -> None:
    assert check_profiles(PROFILES, tmp_path) == (506, 155)


def test_flows_use_what_a_link_gains_while_they_move(tmp_path: Path) -> None:
    """SimGrid keeps the bandwidth of the start as the bound of a flow."""
    differ = [each for case in PROFILES for each in unlike(referee.flows_here(case, tmp_path, False), case["ends"])]
    assert 0 < len(differ) < 60
    xml = '<platform version="4.1"><zone id="z" routing="Full"><host id="a" speed="1Gf"/><host id="b" speed="1Gf"/>'
    xml += '<link id="l" bandwidth="1MBps" bandwidth_file="l"/><route src="a" dst="b"><link_ctn id="l"/></route>'
    case = {"xml": xml + "</zone></platform>", "files": {"l": "1 2e6\n"}, "flows": [["a", "b", 10_000_000, 0.0]]}
    assert referee.flows_here(case, tmp_path) == [(10.0, True)]  # as SimGrid
    assert referee.flows_here(case, tmp_path, bound=False) == [(5.5, True)]


def test_flows_over_fatpipes_end_as_in_simgrid(tmp_path: Path) -> None:
    assert check_fatpipes(FATPIPES, tmp_path) >= 500


@pytest.mark.parametrize("kind", ["profiles", "fatpipes"], ids=str)
class TestFreshFlows:
    """Flows that no one has recorded."""

    pytestmark = live

    def test_fresh_flows_end_as_in_simgrid(self, kind: str, tmp_path: Path) -> None:
        cases, count = [], 0
        for seed in range(10_000, 10_200):
            case = referee.flows(seed, kind == "profiles", 0.0 if kind == "profiles" else 0.5)
            case["ends"] = referee.by_simgrid(case)
            if case["ends"] is not None:
                cases.append(case)
                count += len(case["ends"])
            if count >= 500:
                break
        check = check_profiles if kind == "profiles" else check_fatpipes
        assert check(cases, tmp_path)
        assert count >= 500
