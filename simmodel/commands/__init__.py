"""The commands of the command line.

A command is a function that :func:`~simmodel.commands.values.command` declares, with its arguments and examples; its
docstring is the description in the help, and it may return an exit status. Only the module of the chosen command is
imported, and modules imported only to run it are imported in the function: help is shown without numpy.

Other packages add commands by entry points of the group ``simmodel.commands``: the value is a module that declares a
command of the entry point's name. Or the module has ``ACTIONS``, a mapping of the first words of the command to what
they do in one line and to the module that declares each, and ``EXAMPLES``; then its docstring is the description.
"""

from __future__ import annotations

__all__ = ["COMMANDS", "GROUP", "MODULES", "others"]

COMMANDS = {
    "batch": "replay a log under a policy",
    "calibrate": "fit the parameters of a model to a record",
    "compare": "replay a log under several policies",
    "completion": "print a script by which a shell completes commands",
    "demo": "show five things that simmodel does, in a minute",
    "explain": "say why a job waits, and what would start it",
    "explore": "vary platforms, workloads, policies and seeds",
    "generate": "draw a workload from a model",
    "grid": "run jobs on a grid of sites under a broker",
    "identify": "which policy made the starts of a log",
    "list": "list policies, platforms, workloads, formats and the like",
    "machine": "run tasks on a heterogeneous machine",
    "meta": "replay logs on several clusters under a broker",
    "optimise": "search platforms and policies for a Pareto front",
    "portfolio": "choose the policy at each decision by simulation",
    "resume": "continue an experiment that was stopped",
    "sensitivity": "which parameters of a model move its outputs",
    "verify": "hold a schedule against what is possible and a policy",
    "whatif": "compare policies from a snapshot on",
}
"""The commands and their help in one line, in the order of the help; each is declared in a module of this package."""

_SEVERAL = {
    "compare": ("portfolio",),
    "experiments": ("calibrate", "optimise", "resume", "sensitivity"),
    "judging": ("explain", "identify", "verify"),
}
MODULES = {
    **{name: f"simmodel.commands.{name}" for name in COMMANDS},
    **{name: f"simmodel.commands.{module}" for module, names in _SEVERAL.items() for name in names},
}
"""The modules that declare them."""

GROUP = "simmodel.commands"


def others() -> dict[str, str]:
    """Return the modules of the commands that other packages add, by name; a name of the core stays the core's.

    >>> sorted(others().keys() & COMMANDS.keys())
    []
    """
    from simmodel.foundation.packages import offered

    return {name: module for name, module in offered(GROUP).items() if name not in COMMANDS}
