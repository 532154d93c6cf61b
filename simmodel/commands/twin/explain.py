"""``simmodel twin explain``: why a job waits in a cluster outside."""

from __future__ import annotations

import argparse

from simmodel.commands.arguments import argument, arguments, group
from simmodel.commands.outputs import files, picture, plot, write_and_say
from simmodel.commands.shared import TRUST, TWIN
from simmodel.commands.values import output

__all__ = ["EXAMPLES", "add", "run"]

EXAMPLES = ("simmodel twin explain twin.toml 4711 --plot",)


add = arguments(
    TWIN,
    argument("job JOB", "the id of a job that waits or is held"),
    argument("--policy NAME", "that of the scheduler (default: of the configuration)"),
    TRUST,
    group("display", argument("-q --quiet", "do not print the explanation")),
    files(
        argument("--json OUT.json", "the explanation", output),
        plot("what stands in the way, and who holds it", "why.png"),
    ),
)


def run(options: argparse.Namespace) -> None:
    """Say why a job waits in the cluster now: who is ahead, who holds what it needs, and the least change that helps.

    The state is that of a full report of the source, of the audit log, or of events. The policy of the configuration is
    asked on a copy, also about each change; what the scheduler itself says is told beside it. Nothing is changed.
    """
    from simmodel.twin.config import read_config
    from simmodel.twin.present import explain_in_mirror, present

    config = read_config(options.config, trust=options.trust)
    mirror, report = present(config, trust=options.trust)
    found = explain_in_mirror(mirror, options.job, report, options.policy, dated=config.clock == "wall")
    said = [f"{config.cluster}, {config.policy if options.policy is None else options.policy}: {found.report()}"]
    write_and_say(options, said, "", json=found.to_json, plot=picture(found.plot))
