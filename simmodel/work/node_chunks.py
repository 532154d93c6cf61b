"""Chunks: the parts of a request that is not the same on all of its nodes, each on a node of its own.

Source: the term is that of the option ``select`` of PBS; Torque writes ``nodes=1:ppn=8+1:ppn=2``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from math import ceil
from typing import Any

import attrs

from simmodel.foundation.display import Fields
from simmodel.foundation.errors import InputError
from simmodel.foundation.units import in_bytes

__all__ = ["MOST_CHUNKS", "Chunk", "chunk_text", "chunks_of", "packed", "spread"]

MOST_CHUNKS = 1 << 20
"""Chunks of one job."""
_TEXT = re.compile(r"(?:(\d{1,9})[*x])?(\d{1,18})(?::gpus=(\d{1,18}))?(?::memory=([^:+]+))?")


def _whole_bytes(value: float | str) -> Any:
    amount = in_bytes(value)
    known = isinstance(amount, (int, float)) and 0 <= amount < 2**62
    return float(ceil(amount)) if known else amount


def _bytes(_instance: Chunk, attribute: attrs.Attribute[float], value: object) -> None:
    if not isinstance(value, float) or not 0 <= value < 2**62:
        raise InputError(f"{attribute.name}: must be a number >= 0 or a quantity such as '16GB', got {value!r}")


def _count(instance: Chunk, attribute: attrs.Attribute[int], value: object) -> None:
    least = 1 if attribute.name == "cores" else 0
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{attribute.name}: must be a whole number >= {least}, got {value!r}")


@attrs.frozen(repr=False, order=True, cache_hash=True)
class Chunk(Fields):
    """What a job requests of one of its nodes, which it shares with none of its other chunks.

    Parameters
    ----------
    cores, gpus
        how many of them
    memory
        bytes, rounded up to whole ones, or a text such as ``"16GB"``

    Raises
    ------
    InputError
        a number is negative or not whole, or there are no cores

    >>> Chunk(8, memory="2GB")
    Chunk(cores=8, memory=2000000000.0)
    """

    cores: int = attrs.field(default=1, validator=_count)
    gpus: int = attrs.field(default=0, validator=_count)
    memory: float = attrs.field(default=0.0, converter=_whole_bytes, validator=_bytes)


def chunks_of(given: str | Iterable[Chunk | int]) -> tuple[Chunk, ...]:
    """Return chunks given as a text, as chunks or as numbers of cores, the largest first.

    Raises
    ------
    InputError
        it is neither

    >>> chunks_of("2*2:gpus=1+32") == chunks_of([Chunk(2, 1), 32, Chunk(2, 1)])
    True
    """
    if isinstance(given, str):
        return _parsed(given)
    if not isinstance(given, Iterable):
        raise InputError(f"chunks: must be a list of Chunk or of numbers of cores, got {given!r}")
    found = [each if isinstance(each, Chunk) else Chunk(each) for each in given]
    return tuple(sorted(found, reverse=True))


@lru_cache(maxsize=4096)
def _parsed(text: str) -> tuple[Chunk, ...]:
    found: list[Chunk] = []
    for part in text.split("+") if text else ():
        match = _TEXT.fullmatch(part.strip())
        if match is None:
            raise InputError(f"chunks: must be cores such as '8+2' or '2*8:gpus=1:memory=16GB+4', got {text!r}")
        count, cores, gpus, memory = match.groups()
        if len(found) + int(count or 1) > MOST_CHUNKS:
            raise InputError(f"chunks: must be at most {MOST_CHUNKS:,}, got {text!r}")
        found += [Chunk(int(cores), int(gpus or 0), memory or 0.0)] * int(count or 1)
    return tuple(sorted(found, reverse=True))


def chunk_text(chunks: Iterable[Chunk] | Mapping[Chunk, int]) -> str:
    """Return chunks, or how many there are of each, as the text that :func:`chunks_of` reads, the largest first.

    >>> chunk_text(chunks_of([3, 4, 3])), chunk_text({Chunk(4, 1, 2e9): 2})
    ('4+2*3', '2*4:gpus=1:memory=2000000000')
    """
    parts = []
    for chunk, count in sorted(Counter(chunks).items(), reverse=True):
        text = f"{count}*{chunk.cores}" if count > 1 else f"{chunk.cores}"
        text += f":gpus={chunk.gpus}" if chunk.gpus else ""
        parts.append(text + (f":memory={chunk.memory:.0f}" if chunk.memory else ""))
    return "+".join(parts)


def packed(cores: int, nodes: int, most: int) -> list[int]:
    """Return the cores of each node if the first have as many as they can, at most ``most``, and each at least one.

    >>> packed(10, 3, 4), packed(10, 3, 8), packed(10, 3, 32)
    ([4, 4, 2], [8, 1, 1], [8, 1, 1])
    """
    found = []
    for others in reversed(range(nodes)):
        found.append(min(most, cores - others))
        cores -= found[-1]
    return found


def spread(
    cores: int | Sequence[int], nodes: int, gpus: int = 0, memory: float = 0.0, *, per_core: bool = False
) -> Counter[Chunk]:
    """Return how many chunks of each kind there are if cores and GPUs are spread over nodes as evenly as possible.

    Parameters
    ----------
    cores
        in total, or of each node
    nodes, gpus
        the number of nodes, of which there are at most as many as cores, and of GPUs in total
    memory, per_core
        bytes of each node, or of each core

    >>> chunk_text(spread(10, 3)), chunk_text(spread([8, 2], 2, gpus=3)), chunk_text(spread(12, 3))
    ('4+2*3', '8:gpus=2+2:gpus=1', '3*4')
    """
    few, more = divmod(gpus, nodes)
    if isinstance(cores, int):
        least, larger = divmod(cores, nodes)
        steps = sorted({0, larger, more, nodes})
        parts = [(least + (at < larger), few + (at < more), stop - at) for at, stop in pairwise(steps)]
    else:
        parts = [(each, few + (node < more), 1) for node, each in enumerate(cores)]
    found = Counter[Chunk]()
    for each, cards, count in parts:
        found[Chunk(each, cards, memory * each if per_core else memory)] += count
    return found
