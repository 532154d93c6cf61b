"""What the twin may see of a Slurm, tried out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import perf_counter

from simmodel.display import counted
from simmodel.loading import parse_json
from simmodel.twin.slurm.commands import READS, SlurmCommands
from simmodel.twin.slurm.rest import SlurmRest
from simmodel.twin.slurm.scontrol import read_scontrol

__all__ = ["check_rest", "check_slurm"]


def check_slurm(commands: SlurmCommands, *, memory: bool = False) -> Iterator[str]:
    """Yield sentences on what Slurm's commands tell: its version, jobs, nodes, and what the twin may not see.

    Parameters
    ----------
    memory
        whether the source takes memory as allocated

    Raises
    ------
    InputError
        what a command prints is not understood
    SlurmError
        a command is missing, fails, or does not answer
    """
    commands.read("ping")
    site = read_scontrol(commands.read("config"), "scontrol show config")
    yield f"Slurm {site.version or 'of unknown version'} answers; its cluster is {site.cluster or 'not named'}"
    for name, what in (("jobs", "job"), ("nodes", "node")):
        began = perf_counter()
        count = len({row.get("name") for row in commands.rows(name)} if name == "nodes" else list(commands.rows(name)))
        yield f"{READS[name][0]}: {counted(count, what)} in {1000 * (perf_counter() - began):.0f} ms"
    yield from _on_settings(site.settings or {}, memory)
    yield f"it runs {', '.join(sorted({words[0] for words in READS.values()}))}, with arguments that only read"


def _on_settings(settings: Mapping[str, str], memory: bool) -> Iterator[str]:
    hidden = [each for each in settings.get("PrivateData", "").lower().split(",") if each in ("jobs", "nodes")]
    if hidden:
        yield f"PrivateData hides the {' and '.join(hidden)} of others from users who are no operators"
    allocated = "MEMORY" in settings.get("SelectTypeParameters", "").upper()
    if settings and allocated != memory:
        told = "allocates memory" if allocated else "does not allocate memory"
        yield f"Slurm {told}: the source should have memory = {str(allocated).lower()}"


def check_rest(rest: SlurmRest) -> Iterator[str]:
    """Yield sentences on what slurmrestd tells.

    Raises
    ------
    InputError
        an answer is not understood
    SlurmError
        there is no answer, or one that says no
    """
    for path, what in (("jobs", "job"), ("nodes", "node")):
        began = perf_counter()
        answer = parse_json(rest.read(path), path)
        found = answer.get(path) if isinstance(answer, Mapping) else None
        count = counted(len(found) if isinstance(found, list) else 0, what)
        yield f"slurmrestd at {rest.path}: {count} in {1000 * (perf_counter() - began):.0f} ms"
    yield "it asks slurmrestd with GET alone"
