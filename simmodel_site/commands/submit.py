"""``simmodel twin submit``: submit a job to the cluster where it should end first."""

from __future__ import annotations

import argparse

from simmodel.extending import argument, command, source


@command(
    "twin submit",
    argument("config CONFIG", "the clusters and the ports of their twins (TOML)", source),
    argument("command WORD", "sbatch and its arguments, after --", nargs="+"),
    argument("--token HEX", "a token used before: what became of it is looked up first"),
    argument("--dry-run", "say where the job would go, and submit nothing"),
    argument("-v --verbose", "say why, on standard error"),
    examples=(
        "simmodel twin submit route.toml -- sbatch -n 4 -t 1:00:00 job.sh",
        "simmodel twin submit route.toml --token 4b1d9ac3 -- sbatch job.sh",
    ),
)
def run(options: argparse.Namespace) -> None:
    """Submit a job to the cluster where it ends first by simulation, or to the default one if no twin answers.

    The output of sbatch is printed, and its exit status is that of the command. The job carries a token in its comment,
    so that it is never submitted twice: a submission of which nobody knows whether it was taken ends with status 3 and
    names the token, with which it can be tried again.
    """
    import sys
    from pathlib import Path

    from simmodel import InputError
    from simmodel.extending import printable
    from simmodel_site.twin.submitting import (
        Unclear,
        choose,
        new_token,
        read_route,
        read_submission,
        script_file,
        submit,
    )

    if options.command[0] != "sbatch":
        raise InputError(f"must begin with sbatch, got {options.command[0]!r}", place="command")
    settings = read_route(options.config)
    words, file = options.command[1:], script_file(read_submission(options.command[1:]))
    stdin = sys.stdin.buffer.read() if file is None and "--wrap" not in " ".join(words) else b""
    try:
        text = stdin if file is None else Path(file).read_bytes()
    except OSError:
        text = b""  # sbatch says what is wrong
    submission = read_submission(words, text.decode("utf-8", "replace"))
    choices = choose(settings, submission)
    if options.verbose or options.dry_run:
        for each in choices:
            told = each.why if each.turnaround is None else f"ends after {each.turnaround:.10g} s"
            if each.turnaround is not None and (marks := (*submission.unmodelled, *each.unmodelled)):
                told += f"; not modelled: {', '.join(map(printable, marks))}"
            print(f"{each.cluster.name}: {told}", file=sys.stdout if options.dry_run else sys.stderr)
    if options.dry_run:
        return
    token = options.token or new_token()
    try:
        found = submit(settings, submission, choices, token, stdin, again=options.token is not None)
    except Unclear as error:
        print(error, file=sys.stderr)
        sys.exit(3)
    if found.found:
        print(f"Submitted batch job {found.job}")
    sys.stdout.write(found.output.decode("utf-8", "replace"))
    sys.stderr.write(found.errors.decode("utf-8", "replace"))
    if options.verbose:
        print(f"cluster {found.cluster}, token {token}", file=sys.stderr)
    sys.exit(found.status if not found.found else 0)
