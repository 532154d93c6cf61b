"""Which site sends a file: the nearest as its links are now, not as they were when it was first asked."""

from __future__ import annotations

import pytest

from simmodel import Environment, Grid
from simmodel.platform import FileSpec, GridSpec, LinkSpec, NetworkSpec, SiteSpec


def three_sites() -> Grid:
    """Return a grid in which a file is at b and at c, of which b is nearer to a; d has no link."""
    links = [
        LinkSpec(name="ab", bandwidth=100, latency=1, between=("a", "b")),
        LinkSpec(name="ac", bandwidth=50, latency=1, between=("a", "c")),
    ]
    sites = [SiteSpec(name=name, cores=4) for name in "abcd"]
    files = [FileSpec(name="f", size=1000, sites=["b", "c", "d"]), FileSpec(name="empty", size=0, sites=["b"])]
    return Grid(Environment(), GridSpec(sites=sites, network=NetworkSpec(links=links), files=files))


def nearest(grid: Grid) -> str:
    data, a = grid.data, grid.sites["a"]
    return data.nearest("f", 1000, data._sources("f", a), a).name


def test_the_time_of_a_file_follows_its_links() -> None:
    grid = three_sites()
    network, a = grid.data.network, grid.sites["a"]
    assert (nearest(grid), grid.data.seconds("f", a)) == ("b", 1 + 10)
    network.set_bandwidth("ab", 20)
    assert (nearest(grid), grid.data.seconds("f", a)) == ("c", 1 + 20)
    network.set_latency("ac", 10)
    assert (nearest(grid), grid.data.seconds("f", a)) == ("c", 10 + 20)
    network.fail("ac")
    assert (nearest(grid), grid.data.seconds("f", a)) == ("b", 1 + 50)
    network.restore("ac")
    network.fail("ab")
    assert nearest(grid) == "c"
    assert grid.data.seconds("empty", a) == 1


def test_sites_without_a_route_and_sites_that_are_down_send_nothing() -> None:
    grid = three_sites()
    data = grid.data
    assert [site.name for site in data._sources("f", grid.sites["a"])] == ["b", "c"]
    assert data._sources("f", grid.sites["d"]) == []
    assert data.seconds("f", grid.sites["d"]) == 0  # it is there
    assert data.seconds("empty", grid.sites["d"]) == float("inf")
    grid.take_down("b")
    assert [site.name for site in data._sources("f", grid.sites["a"])] == ["c"]
    assert data.seconds("empty", grid.sites["a"]) == float("inf")
    grid.bring_up("b")
    assert data.seconds("f", grid.sites["a"]) == pytest.approx(11)


def test_the_nearest_replica_follows_profiles_of_links_that_nothing_uses() -> None:
    links = [
        LinkSpec(name="ab", bandwidth=100, between=("a", "b"), profile=[(10, 20), (20, 0)], repeat=30),
        LinkSpec(name="ac", bandwidth=50, between=("a", "c")),
    ]
    sites = [SiteSpec(name=name, cores=4) for name in "abc"]
    files = [FileSpec(name="f", size=1000, sites=["b", "c"])]
    env = Environment()
    grid = Grid(env, GridSpec(sites=sites, network=NetworkSpec(links=links), files=files))
    a = grid.sites["a"]
    found = []
    for at in (5, 15, 25, 35, 41, 51):  # from 20 on b cannot send, until 40
        env.run(until=at)
        found.append(
            (nearest(grid), grid.data.seconds("f", a), a.seconds_to("f", a), grid.data.way(grid.sites["b"], a))
        )
    down = ("c", 20, 20, (1e12, 0.0))
    slow = ("c", 20, 20, (0.0, 0.05))
    assert found == [("b", 10, 10, (0.0, 0.01)), slow, down, down, slow, down]
