"""The commands of the command line.

A command is a function that :func:`~simmodel.commands.values.command` declares, with its arguments and examples; its
docstring is the description in the help, and it may return an exit status. Only the module of the chosen command is
imported, and modules imported only to run it are imported in the function: help is shown without numpy.
"""

from __future__ import annotations

__all__ = ["ACTIONS", "COMMANDS", "MODULES"]

COMMANDS = {
    "batch": "replay a log under a policy",
    "calibrate": "fit the parameters of a model to a record",
    "compare": "replay a log under several policies",
    "explain": "say why a job waits, and what would start it",
    "explore": "vary platforms, workloads, policies and seeds",
    "generate": "draw a workload from a model",
    "grid": "run jobs on a grid of sites under a broker",
    "identify": "which policy made the starts of a log",
    "list": "list policies, brokers, platforms, workloads, formats or generators",
    "machine": "run tasks on a heterogeneous machine",
    "meta": "replay logs on several clusters under a broker",
    "optimise": "search platforms and policies for a Pareto front",
    "portfolio": "choose the policy at each decision by simulation",
    "resume": "continue an experiment that was stopped",
    "sensitivity": "which parameters of a model move its outputs",
    "slurm": "schedule as a site's Slurm does, from its own files",
    "twin": "follow a scheduler, foretell and advise",
    "verify": "hold a schedule against what is possible and a policy",
    "whatif": "compare policies from a snapshot on",
}
"""The commands and their help in one line, in the order of the help; each is declared in a module of this package."""

ACTIONS = {
    "slurm": {
        "read": "read a site's Slurm as platform, policy and workload",
        "replay": "compare the simulated schedule with the recorded one, or change settings",
    },
    "twin": {
        "check": "try the parts of a configuration, and say what it may do",
        "describe": "describe the cluster of a scheduler as a platform",
        "shadow": "compare what a scheduler does with what a policy would do",
        "install-hooks": "write the scripts that tell a stream what a scheduler does",
        "predict": "predict when waiting jobs start",
        "explain": "say why a job waits in the cluster",
        "replay": "replay a log on a simulated cluster that takes the advice",
        "release": "give everything back to the scheduler by hand",
        "replay-audit": "make each decision of an audit log again",
        "run": "follow a cluster as a configuration says",
        "status": "print what a running twin says of itself",
        "submit": "submit a job to the cluster where it should end first",
        "watchdog": "give everything back to the scheduler when the twin is gone",
    },
}
"""The actions of the commands that have some, as above; each is declared in a module of the command's package."""

_SEVERAL = {
    "compare": ("portfolio",),
    "experiments": ("calibrate", "optimise", "resume", "sensitivity"),
    "judging": ("explain", "identify", "verify"),
    "slurm": ("slurm read", "slurm replay"),
    "twin operating": ("twin check", "twin release", "twin run", "twin status", "twin watchdog"),
    "twin replay": ("twin replay-audit", "twin shadow"),
    "twin scheduler": ("twin describe", "twin install-hooks"),
    "twin waiting": ("twin explain", "twin predict"),
}
MODULES = {name: module for module, names in _SEVERAL.items() for name in names}
"""The modules of commands that have not one of their own name."""
