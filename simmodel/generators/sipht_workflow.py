"""The Sipht workflow, a search for genes of small untranslated RNAs in bacteria, often used in scheduling studies.

Shape: G. Juve, A. Chervenak, E. Deelman, S. Bharathi, G. Mehta, K. Vahi, "Characterizing and profiling scientific
workflows", FGCS 29(3), 2013.
"""

from __future__ import annotations

from simmodel.foundation.errors import InputError
from simmodel.work.task import Task
from simmodel.work.workflow import Workflow

__all__ = ["sipht"]

_SEARCHES = ("Findterm", "RNAMotif", "Transterm", "Blast")
_BLASTS = ("Blast_candidate", "Blast_QRNA", "Blast_synteny", "Blast_paralogues")


def sipht(patsers: int = 17) -> Workflow:
    """Return the task graph of one search, without run times and data.

    :func:`~simmodel.generators.costs.with_costs` adds them.

    Parameters
    ----------
    patsers
        number of scans for binding sites; 17 gives the 29 tasks and 33 edges of Pegasus's Sipht_30

    Raises
    ------
    InputError
        the number is below 1

    >>> sipht()
    <Workflow sipht-29: 29 tasks, 33 edges, 0 data objects>
    """
    if patsers < 1:
        raise InputError(f"must be >= 1, got {patsers!r}", place="patsers")
    scans = [f"Patser_{i}" for i in range(1, patsers + 1)]
    edges = [(scan, "Patser_concate") for scan in scans]
    edges += [(search, "SRNA") for search in _SEARCHES]
    edges += [("SRNA", "FFN_Parse"), *(("SRNA", blast) for blast in _BLASTS), ("FFN_Parse", "Blast_synteny")]
    edges += [(each, "SRNA_annotate") for each in ("SRNA", "Patser_concate", *_BLASTS)]
    names = [*scans, "Patser_concate", *_SEARCHES, "SRNA", "FFN_Parse", *_BLASTS, "SRNA_annotate"]
    tasks = [Task(id=name, family="Patser" if name in scans else name) for name in names]
    return Workflow(tasks, edges, name=f"sipht-{len(tasks)}")
