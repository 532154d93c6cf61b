"""Random layered task graphs, with the parameters of DAGGEN.

Source: Suter, Hunold, DAGGEN, a synthetic task graph generator; the parameters as in Hunold, Rauber, Suter,
"Redistribution aware two-step scheduling for mixed-parallel applications", IEEE Cluster 2008.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from simmodel.work.task import Task
from simmodel.work.workflow import Workflow

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["layered"]

_BLOCK = 1024  # the rows of a matrix are a multiple of this
_ELEMENT = 8  # bytes of a matrix element


def layered(
    n: int = 100,
    *,
    fat: float = 0.5,
    regular: float = 0.9,
    density: float = 0.5,
    jump: int = 1,
    ccr: int = 0,
    mindata: float = 2048,
    maxdata: float = 11264,
    minalpha: float = 0.0,
    maxalpha: float = 0.2,
    rng: np.random.Generator,
) -> Workflow:
    """Return a random layered task graph; each task below the first layer has at least one parent above.

    A task works on a square matrix of m x m doubles, m drawn from ``mindata`` to ``maxdata`` in steps of 1024 (at least
    1024), and sends all 8 m^2 bytes to each of its children. Tasks are numbered from 1, layer by layer.

    Parameters
    ----------
    n
        number of tasks
    fat
        a layer has about ``n ** fat`` tasks: 0 is a chain, 1 is one layer
    regular
        uniformity of the layers: a width differs from ``n ** fat`` by a share of up to 1 - ``regular``
    density
        a task has up to 1 + ``density`` * (width of the layer above) parents, but at most that width
    jump
        a parent is up to ``jump`` layers above
    ccr
        complexity of the tasks: 1 is a m^2 flop with a from 64 to 512, 2 is 2 a m^2 log2(m) flop, 3 is m^3 flop (the
        least data for their work), 0 draws one of the three for each task
    mindata, maxdata
        rows of the matrices
    minalpha, maxalpha
        bounds of ``serial``, the share of the work that does not run in parallel (Amdahl's law)
    rng
        the random stream

    Raises
    ------
    ValueError
        a parameter is outside its limits

    >>> import numpy as np
    >>> flow = layered(50, fat=0.5, density=0.3, rng=np.random.default_rng(1))
    >>> len(flow), len(flow.levels), all(edge.size % 8 == 0 for edge in flow.edges)
    (50, 8, True)
    """
    for name, value in (("fat", fat), ("regular", regular), ("density", density)):
        if isinstance(value, (bool, str)) or not 0 <= value <= 1:
            raise ValueError(f"{name}: must be a number from 0 to 1, got {value!r}")
    for name, whole, least in (("n", n, 1), ("jump", jump, 0), ("ccr", ccr, 0)):
        if isinstance(whole, (bool, str)) or not math.isfinite(whole) or whole != int(whole) or whole < least:
            raise ValueError(f"{name}: must be a whole number >= {least}, got {whole!r}")
    if ccr > 3:
        raise ValueError(f"ccr: must be 0, 1, 2 or 3, got {ccr!r}")
    if not 0 < mindata <= maxdata < math.inf:
        raise ValueError(f"mindata: must be > 0 and <= maxdata, got {mindata!r} and {maxdata!r}")
    if not 0 <= minalpha <= maxalpha <= 1:
        raise ValueError(f"minalpha: must be >= 0 and <= maxalpha <= 1, got {minalpha!r} and {maxalpha!r}")
    widths = _widths(n, fat, regular, rng)
    rows = np.maximum(rng.uniform(mindata, maxdata, n) // _BLOCK, 1) * _BLOCK
    flop = _flop(rows, ccr, rng)
    alpha = rng.uniform(minalpha, maxalpha, n)
    tasks = [
        Task(id=i, flop=work, serial=share)
        for i, (work, share) in enumerate(zip(flop.tolist(), alpha.tolist(), strict=True), 1)
    ]
    bytes_out = (_ELEMENT * rows**2).tolist()
    edges = [(parent + 1, child + 1, bytes_out[parent]) for parent, child in _edges(widths, density, jump, rng)]
    return Workflow(tasks, edges, name=f"layered-{n}")


def _widths(n: int, fat: float, regular: float, rng: np.random.Generator) -> list[int]:
    """Return the number of tasks of each layer, around the mean width; the last layer takes the rest."""
    mean = int(n**fat * (1 + 1e-12))  # so that 100 ** 0.5 is 10 despite rounding
    widths: list[int] = []
    left = n
    while left:
        width = max(1, int(mean * (1 + rng.uniform(-1, 1) * (1 - regular))))
        widths.append(min(width, left))
        left -= widths[-1]
    return widths


def _flop(rows: NDArray[np.float64], ccr: int, rng: np.random.Generator) -> NDArray[np.float64]:
    factor = rng.uniform(64, 512, len(rows))
    kind = rng.integers(1, 4, len(rows)) if ccr == 0 else np.full(len(rows), ccr)
    return np.select([kind == 1, kind == 2], [factor * rows**2, 2 * factor * rows**2 * np.log2(rows)], rows**3)


def _edges(widths: list[int], density: float, jump: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Return distinct pairs of parent and child, sorted."""
    first = np.concatenate([[0], np.cumsum(widths)]).tolist()
    edges = []
    for layer in range(1, len(widths)):
        above = widths[layer - 1]
        for child in range(first[layer], first[layer + 1]):
            count = min(1 + int(rng.uniform(0, density * above)), above)
            layers = np.maximum(layer - rng.integers(1, max(jump, 1) + 1, count), 0).tolist()
            taken: dict[int, None] = {}
            for parent_layer, share in zip(layers, rng.random(count).tolist(), strict=True):
                width = widths[parent_layer]
                place = int(share * width)
                for step in range(width):  # the next unused task of the layer, if any
                    parent = first[parent_layer] + (place + step) % width
                    if parent not in taken:
                        taken[parent] = None
                        break
            edges += [(parent, child) for parent in taken]
    return sorted(edges)
