"""Follow a scheduler, forecast its decisions, and advise; act within limits if the configuration says so."""

__all__ = ["ACTIONS", "EXAMPLES"]

EXAMPLES = ("simmodel twin replay schedtwin --plot replay.png",)
_HERE = "simmodel_site.commands."
ACTIONS = {
    "check": ("try the parts of a configuration, and say what it may do", _HERE + "operating"),
    "describe": ("describe the cluster of a scheduler as a platform", _HERE + "scheduler"),
    "shadow": ("compare what a scheduler does with what a policy would do", _HERE + "replay"),
    "install-hooks": ("write the scripts that tell a stream what a scheduler does", _HERE + "scheduler"),
    "predict": ("predict when waiting jobs start", _HERE + "waiting"),
    "explain": ("say why a job waits in the cluster", _HERE + "waiting"),
    "replay": ("replay a log on a simulated cluster that takes the advice", _HERE + "replay"),
    "release": ("give everything back to the scheduler by hand", _HERE + "operating"),
    "replay-audit": ("make each decision of an audit log again", _HERE + "replay"),
    "run": ("follow a cluster as a configuration says", _HERE + "operating"),
    "status": ("print what a running twin says of itself", _HERE + "operating"),
    "submit": ("submit a job to the cluster where it should end first", _HERE + "submit"),
    "watchdog": ("give everything back to the scheduler when the twin is gone", _HERE + "operating"),
}
"""What the actions of ``simmodel twin`` do, in the order of the help, and the modules that declare them."""
