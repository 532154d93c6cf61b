"""What the network costs: transfers a CPU second on a star, on one link, on a full mesh, with a yardstick beside them.

Run ``python benchmarks/network.py`` for all cases, or name some of them. Machines are noisy: compare figures of one
run, against the yardstick. For comparison, SimGrid 3.32 on the star, on the machine where the targets were set: 90,000
transfers/s in C++, 6,700/s through its Python bindings.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

from simmodel.environment import Environment, quiet_garbage_collector
from simmodel.platform.network import LinkSpec
from simmodel.records.network_recorder import NetworkRecorder
from simmodel.resources.network.network import Network
from simmodel.resources.processors.host import Host

Plan = list[tuple[float, float, tuple[str, ...]]]


def yardstick() -> float:
    """CPU seconds of a fixed piece of plain Python."""
    begin = time.process_time()
    sum(i * i for i in range(10_000_000))
    return time.process_time() - begin


def show(name: str, figure: float, unit: str, target: str = "") -> None:
    print(f"{name:62} {figure:9.2f} {unit:16} {target}", flush=True)


def drive(network: Network, plan: Plan) -> tuple[float, float]:
    """Start the transfers of a plan (gap in s, bytes, route); return CPU seconds and the mean time of a transfer."""
    env = network.env
    transfers = []

    def source(env):
        for gap, size, route in plan:
            if gap:
                yield env.timeout(gap)
            transfers.append(network.transfer(size, route=route))
        yield env.timeout(0)

    env.process(source(env))
    with quiet_garbage_collector():
        begin = time.process_time()
        env.run()
        spent = time.process_time() - begin
    assert all(transfer.status == "done" for transfer in transfers)
    return spent, float(np.mean([transfer.end - transfer.start for transfer in transfers]))


def star(gap: float, count: int, least: int = 0, recorded: bool = False) -> None:
    """Random pairs of 50 links of 1.25 GB/s and 1 ms; sizes exponential with mean 0.5 GB, Poisson arrivals."""
    network = Network(Environment(), [LinkSpec(name=f"link{i}", bandwidth=1.25e9, latency=1e-3) for i in range(50)])
    if recorded:
        network.env.observe(NetworkRecorder(network))
    rng = np.random.default_rng(1)
    one = rng.integers(50, size=count)
    other = (one + rng.integers(1, 50, size=count)) % 50
    routes = [(f"link{a}", f"link{b}") for a, b in zip(one, other, strict=True)]
    gaps, sizes = rng.exponential(gap, count).tolist(), rng.exponential(0.5e9, count).tolist()
    spent, mean = drive(network, list(zip(gaps, sizes, routes, strict=True)))
    load = 2 * 0.5e9 / gap / (50 * 1.25e9)
    kept = ", recorded" if recorded else ""
    per_unit = count / spent * yardstick()
    limit = f" (at least {least})" if least else ""
    name = f"star, {count} transfers, load {load:.2f}{kept} (mean time {mean:.3f} s)"
    show(name, count / spent, "transfers/s", f"{per_unit:.0f} transfers/y{limit}")


def at_once(count: int, weights: bool = False) -> float:
    """Start transfers on one link at one instant; return CPU microseconds a transfer."""
    network = Network(Environment(), [LinkSpec(name="link", bandwidth=1.25e9)])
    rng = np.random.default_rng(2)
    sizes = rng.exponential(0.5e9, count).tolist()
    shares = rng.uniform(1, 2, count).tolist() if weights else [1.0] * count
    with quiet_garbage_collector():
        begin = time.process_time()
        for size, share in zip(sizes, shares, strict=True):
            network.transfer(size, route=("link",), weight=share)
        network.env.run()
        return (time.process_time() - begin) / count * 1e6


def alone(latency: float, hops: int, model: str = "maxmin", count: int = 60_000) -> None:
    """Eight chains of transfers, each alone on links of its own: what a transfer costs that shares nothing."""
    env = Environment()
    links = [
        LinkSpec(name=f"l{chain}-{hop}", bandwidth=1e6, latency=latency) for chain in range(8) for hop in range(hops)
    ]
    network = Network(env, links, model=model)
    left = iter(range(count))

    def again(chain: int, route: tuple[str, ...]) -> None:
        if next(left, None) is not None:
            transfer = network.transfer(1000.0 + chain, route=route)
            transfer.callbacks.append(lambda _: again(chain, route))

    with quiet_garbage_collector():
        begin = time.process_time()
        for chain in range(8):
            again(chain, tuple(f"l{chain}-{hop}" for hop in range(hops)))
        env.run()
        each = (time.process_time() - begin) / count * 1e6
    name = f"alone on {hops} links of {latency:g} s, {model}"
    show(name, each, "us a transfer", f"{each / yardstick():.1f} us/y")


def one_link() -> None:
    """Transfers that share one link: the cost of each must not grow with how many there are."""
    few = np.median([at_once(100) for _ in range(200)])
    many = np.median([at_once(10_000) for _ in range(5)])
    show("one link, 100 transfers at once", few, "us a transfer")
    show("one link, 10000 transfers at once", many, "us a transfer", f"{many / few:.2f} times (at most 3)")
    show("one link, 10000 transfers of unlike weights", at_once(10_000, weights=True), "us a transfer")


def steady() -> None:
    """A link that always has about n transfers under way: each that ends is replaced."""
    for under_way in (100, 10_000):
        env = Environment()
        network = Network(env, [LinkSpec(name="link", bandwidth=1.25e9)])
        sizes = iter(np.random.default_rng(3).exponential(0.5e9, 60_000).tolist())

        def again(_, network=network, sizes=sizes):
            size = next(sizes, None)
            if size is not None:
                network.transfer(size, route=("link",)).callbacks.append(again)

        for _ in range(under_way):
            again(None)
        with quiet_garbage_collector():
            begin = time.process_time()
            env.run()
            show(f"one link, {under_way} always under way", 60_000 / (time.process_time() - begin), "transfers/s")


def mesh() -> None:
    """All-to-all over a star of 40 hosts with an up and a down link each, all 1560 at one instant, of random sizes."""
    names = [f"{way}{i}" for i in range(40) for way in ("up", "down")]
    network = Network(Environment(), [LinkSpec(name=name, bandwidth=1.25e9, latency=1e-3) for name in names])
    pairs = [(f"up{a}", f"down{b}") for a in range(40) for b in range(40) if a != b]
    sizes = np.random.default_rng(4).exponential(1e8, len(pairs)).tolist()
    spent, _ = drive(network, [(0.0, size, route) for size, route in zip(sizes, pairs, strict=True)])
    show("all to all, 1560 transfers of random sizes at once", len(pairs) / spent, "transfers/s")


def crowd(flows: int = 10_000, links: int = 200, hops: int = 2) -> None:
    """Random routes of two of 200 links, 10,000 transfers under way: one is cancelled, another starts, each settled."""
    rng = np.random.default_rng(5)
    bandwidths = rng.uniform(1e8, 1e9, links).tolist()
    network = Network(Environment(), [LinkSpec(name=f"l{i}", bandwidth=x) for i, x in enumerate(bandwidths)])
    routes = [tuple(f"l{k}" for k in rng.choice(links, hops, replace=False)) for _ in range(flows + 120)]
    sizes = rng.exponential(1e9, len(routes)).tolist()
    transfers = [network.transfer(size, route=route) for size, route in zip(sizes, routes[:flows], strict=False)]
    network.settle()
    with quiet_garbage_collector():
        for k in range(120):
            if k == 20:
                begin = time.process_time()
            transfers[k].cancel()
            network.settle()
            network.transfer(sizes[flows + k], route=routes[flows + k])
            network.settle()
        spent = (time.process_time() - begin) / 200 * 1e3
    unit = yardstick()
    show(f"a change with {flows} transfers over {links} links", spent, "ms", f"{spent / unit:.2f} ms/y (at most 5)")


def host() -> None:
    """100,000 tasks on a host of 16 cores at load 0.8."""
    env = Environment()
    cores = Host(env, 1.0, 16)
    rng = np.random.default_rng(5)
    gaps, sizes = rng.exponential(1 / 16 / 0.8, 100_000).tolist(), rng.exponential(1.0, 100_000).tolist()

    def source(env):
        for gap, size in zip(gaps, sizes, strict=True):
            yield env.timeout(gap)
            cores.execute(size)

    env.process(source(env))
    with quiet_garbage_collector():
        begin = time.process_time()
        env.run()
        show("host of 16 cores, 100000 tasks", 100_000 / (time.process_time() - begin), "tasks/s")


CASES: dict[str, Callable[[], None]] = {
    "star": lambda: star(0.04, 100_000, 10_000),
    "recorded": lambda: star(0.04, 100_000, recorded=True),
    "busy": lambda: star(0.02, 30_000),
    "alone": lambda: [alone(0.0, 1), alone(1e-3, 1), alone(1e-3, 3, "lv08")],
    "link": one_link,
    "steady": steady,
    "mesh": mesh,
    "crowd": crowd,
    "host": host,
}


def main(names: list[str]) -> None:
    show("yardstick: sum of 10 million squares, before", yardstick(), "CPU s")
    for name in names or CASES:
        CASES[name]()
    show("yardstick: after", yardstick(), "CPU s")


if __name__ == "__main__":
    main(sys.argv[1:])
