"""The checks of custom links and of rules of sharing."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from functools import partial
from typing import Any

from simmodel.environment import Environment
from simmodel.foundation.errors import InputError, Stalled
from simmodel.platform.grid import FileSpec, GridSpec, SiteSpec
from simmodel.platform.network import LinkSpec, NetworkSpec, SharingModel
from simmodel.resources.network.links import Link
from simmodel.resources.network.network import Network
from simmodel.resources.network.transfer import Transfer
from simmodel.scheduling.observer import Observer
from simmodel.testing.resources import CLOCK, check_jobs
from simmodel.work.job import Job

__all__ = ["check_link", "check_rule"]


def check_link(model: type[Any], options: Mapping[str, Any]) -> None:
    """Check a model of links: transfers from places ``a`` and ``b`` over it, and a grid of these two sites.

    All transfers end with all their bytes, also when they are paused or the link is down for a while; no link has more
    than its capacity; the answers of the model are the same when it is asked twice, limits hold, and a grid continues
    from a snapshot as if it had not been cut.

    Raises
    ------
    AssertionError
        a check fails; the message describes the fault of the model
    """
    own = LinkSpec(name="own", bandwidth=100.0, latency=0.25, between=("a", "b"), model=model, options=options)
    _check_questions(own)
    spec = NetworkSpec(links=[own, LinkSpec(name="lan", bandwidth=60.0)])
    _check_network(spec, model)


def check_rule(model: type[Any], options: Mapping[str, Any]) -> None:
    """Check a rule of sharing, as :func:`check_link` checks a model of links.

    Raises
    ------
    AssertionError
        a check fails; the message describes the fault of the rule
    """
    links = [
        LinkSpec(name="own", bandwidth=100.0, latency=0.25, between=("a", "b")),
        LinkSpec(name="lan", bandwidth=60.0),
    ]
    sharing = SharingModel(name=model.__name__, rule=model, options=options)
    _check_network(NetworkSpec(links=links, model=sharing), model)


class _Watch(Observer):
    """Looks at each link whose load changes, and asks models twice."""

    def __init__(self, name: str) -> None:
        self.name = name

    def link_load_changed(self, link: Link) -> None:
        assert link.load <= link.capacity * (1 + 1e-9), (
            f"{self.name}: link {link.name} carries {link.load:g} bytes/s, more than its capacity of {link.capacity:g}"
        )

    def transfer_started(self, transfer: Transfer) -> None:
        for link in transfer.way.links:
            first, second = _answers(link, transfer), _answers(link, transfer)
            assert first == second, f"{self.name}: an answer changes when it is asked twice: {first}, then {second}"


def _answers(link: Link, transfer: Transfer) -> list[float]:
    now = transfer.env.now
    return [link.carries(2), link.limit(transfer, now), link.until(now), link.expected(transfer, now), link.delay()]


def _check_questions(spec: LinkSpec) -> None:
    """Check that the answers of a link follow neither the clock nor the past unless it says so."""
    network = Network(Environment(), [spec])
    link = network.links[spec.name]
    name = type(link).__name__
    transfer = network.transfer(1e9, source="a", destination="b")
    before: tuple[float, float] | None = None
    for now in CLOCK:
        kept = deepcopy(vars(link))
        limit = link.limit(transfer, now)
        link.carries(1), link.expected(transfer, now), link.delay(), link.until(now)
        changed = [each for each, value in vars(link).items() if each not in kept or kept[each] != value]
        assert not changed, (
            f"{name}: a question changes {', '.join(changed)}: what a link remembers of the past changes in "
            "turns(now, load), which is called whenever its load changes"
        )
        assert link.varies or before is None or before[1] == limit, (
            f"{name}: limit is {before[1]:g} bytes/s at {before[0]:g} s and {limit:g} at {now:g} s, but is asked only "
            "when a transfer begins: until(now) returns the next instant at which limits change"
        )
        before = now, limit


def _check_network(spec: NetworkSpec, model: type[Any]) -> None:
    name = model.__name__
    found = [_transfers(spec, name) for _ in range(2)]
    assert found[0] == found[1], f"{name}: the same run gives another result (does it share state between objects?)"
    files = [FileSpec(name=f"f{i}", size=40.0 + 35 * i, sites=["a" if i % 3 else "b"]) for i in range(12)]
    sites = [SiteSpec(name=place, cores=3) for place in "ab"]
    grid = GridSpec(sites=sites, network=spec, files=files)
    both = [(f"f{i}", f"f{(i * 5 + 1) % 12}") for i in range(12)]
    jobs = [Job(id=i, submit=0.7 * i, run=1.0 + i % 3, requested=50, inputs=files) for i, files in enumerate(both)]
    check_jobs(grid, jobs, "round-robin", name, snapshots=model.snapshots)


def _transfers(spec: NetworkSpec, name: str) -> list[float]:
    """Run transfers, among them one that is paused and one that is cancelled, and return their ends (s)."""
    env = Environment(seed=1)
    network = Network(env, spec)
    env.observe(_Watch(name))
    moving: list[Transfer] = []

    def begin(i: int) -> None:
        cap = 20.0 if i % 4 == 3 else None
        route = ["own", "lan"] if i % 3 == 1 else ["own"]
        weight = 1.0 + i % 2
        moving.append(network.transfer(50.0 + 41 * i, route=route, source="ab"[i % 2], rate_cap=cap, weight=weight))

    for i in range(10):
        env.call_at(0.6 * i, partial(begin, i))
    env.call_at(3.3, lambda: moving[2].pause())
    env.call_at(4.1, lambda: network.fail("own"))
    env.call_at(5.9, lambda: moving[2].resume())
    env.call_at(7.7, lambda: network.restore("own"))
    env.call_at(8.0, lambda: moving[-1].cancel())
    env.call_at(9.0, lambda: network.set_bandwidth("own", 150.0))
    try:
        env.run()
    except Stalled as error:
        raise AssertionError(f"{name}: transfers never end: {error}") from None
    except InputError as error:
        raise AssertionError(f"{name}: {error}") from error
    for each in moving[:-1]:
        assert each.status == "done", f"{name}: {each.describe()}, all bytes should be"
    for link in network.links.values():
        assert not link.users, f"{name}: transfers still use link {link.name} at the end"
    return [float(each.end or 0.0) for each in moving]
