"""Hypothesis strategies for machine specs."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from simmodel.platform.machine import ArchitectureSpec, MachineSpec, MemoryPoolSpec, ProcessorSpec
from simmodel.platform.network import LinkSpec

__all__ = ["NAMES", "machine_specs"]

NAMES = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), min_size=1, max_size=6
)
_AMOUNTS = st.one_of(st.floats(0, 1e290), st.integers(0, 10**6))
_ABOVE = st.one_of(st.floats(1e-290, 1e290), st.integers(1, 10**12))


@st.composite
def machine_specs(draw: st.DrawFn, *, plain: bool = False) -> MachineSpec:
    """Draw a machine whose pools are connected at least in a one-way ring.

    ``plain``: only with features that HetSim's XML has.
    """
    pools = draw(st.lists(NAMES, unique=True, min_size=1, max_size=4))
    architectures = draw(st.lists(NAMES, unique=True, min_size=1, max_size=3))
    names = draw(st.lists(NAMES, unique=True, min_size=1, max_size=5))
    processors = [_processor(draw, name, pools, architectures, plain) for name in names]
    cpu: dict[str, Any] = {"name": "CPU core 0", "type": "CPUCore", "pool": pools[0], "architecture": architectures[0]}
    pairs = [(a, b) for a in pools for b in pools if a != b]
    circle = [(a, b) for a, b in zip(pools, pools[1:] + pools[:1], strict=True) if a != b]
    ways = dict.fromkeys([*circle, *draw(st.lists(st.sampled_from(pairs), max_size=4) if pairs else st.just([]))])
    links = [
        LinkSpec(
            name=f"{a}->{b}" if plain else f"link {i}",
            bandwidth=draw(_ABOVE),
            latency=0 if plain else draw(_AMOUNTS),
            between=(a, b),
            one_way=plain or draw(st.booleans()),
        )
        for i, (a, b) in enumerate(ways)
    ]
    if plain and len({link.name for link in links}) < len(links):  # a pool whose name contains an arrow
        links = [LinkSpec(name=f"link{i}", bandwidth=link.bandwidth, between=link.between, one_way=True)
                 for i, link in enumerate(links)]  # fmt: skip
    return MachineSpec(
        name=draw(NAMES),
        description=draw(st.text("ab \n<&>\"'é", max_size=8)),
        time_unit=draw(st.sampled_from(["s", "a unit of time"])),
        pools=[
            MemoryPoolSpec(
                name=name,
                size=draw(_ABOVE),
                spill=None if plain or i == 0 else pools[0],
                evict="lru" if plain else draw(st.sampled_from(["lru", "lfu"])),
            )
            for i, name in enumerate(pools)
        ],
        architectures=[
            ArchitectureSpec(
                name=name,
                performance=sorted([draw(_ABOVE), draw(_ABOVE)]),
                speed=None if plain else draw(st.none() | _ABOVE),
            )
            for name in architectures
        ],
        processors=[ProcessorSpec(**cpu), *processors],
        links=links,
        home=draw(st.none() | st.sampled_from(pools)),
    )


def _processor(draw: st.DrawFn, name: str, pools: list[str], architectures: list[str], plain: bool) -> ProcessorSpec:
    rest: dict[str, Any] = {}
    if not plain:
        rest = {
            "count": draw(st.integers(1, 3)),
            "cores": draw(st.integers(1, 3)),
            "reconfiguration": sorted([draw(_AMOUNTS), draw(_AMOUNTS)]),
            "overlap": draw(st.none() | st.booleans()),
            "queue": draw(st.sampled_from(["fifo", "priority"])),
            "preemption": draw(st.sampled_from(["no", "requeue", "suspend"])),
            "options": draw(st.dictionaries(st.sampled_from(["a", "b"]), st.integers(0, 9))),
        }
    return ProcessorSpec(
        name=f"processor {name}" if plain else f"{name}:",  # so that no name equals that of one of a group
        type=draw(st.sampled_from(["CPUCore", "GPU", "FPGA", "UPMEM"])),
        architecture=draw(st.sampled_from(architectures)),
        pool=draw(st.sampled_from(pools)),
        setup=draw(_AMOUNTS),
        dma=draw(st.booleans()),
        model_error=draw(st.floats(0, 1)),
        idle_power=draw(_AMOUNTS),
        load_power=draw(_AMOUNTS),
        **rest,
    )
