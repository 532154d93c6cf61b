"""The options of sbatch: those that are read from a submit line, those that change no start, and all others.

Source: sbatch(1) of Slurm 22.05.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import attrs

from simmodel.extending import Fields

__all__ = ["IDLE", "OPTIONS", "READ", "OptionWords", "SubmitLine", "job_list", "read_words"]

_FLAG, _OPTIONAL, _VALUE = range(3)


def _words(text: str) -> list[str]:
    return text.split()


_SHORT = dict(
    each.split("=")
    for each in _words("""
        A=account B=extra-node-info C=constraint D=chdir F=nodefile G=gpus H=hold J=job-name L=licenses
        M=clusters N=nodes O=overcommit Q=quiet S=core-spec V=version W=wait a=array b=begin c=cpus-per-task
        d=dependency e=error h=help i=input k=no-kill m=distribution n=ntasks o=output p=partition q=qos
        s=oversubscribe t=time v=verbose w=nodelist x=exclude
    """)
)
_FLAGS = _words("""
    contiguous help hold ignore-pbs no-requeue overcommit oversubscribe parsable quiet reboot requeue spread-job
    test-only usage use-min-nodes verbose version wait
""")
_OPTIONALS = _words("exclusive get-user-env nice no-kill propagate")
_VALUES = _words("""
    account acctg-freq array batch bb bbf begin chdir cluster-constraint clusters comment constraint container
    core-spec cores-per-socket cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot dependency distribution error
    exclude export export-file extra-node-info gid gpu-bind gpu-freq gpus gpus-per-node gpus-per-socket
    gpus-per-task gres gres-flags hint input job-name kill-on-invalid-dep licenses mail-type mail-user mcs-label mem
    mem-bind mem-per-cpu mem-per-gpu mincpus network nodefile nodelist nodes ntasks ntasks-per-core ntasks-per-gpu
    ntasks-per-node ntasks-per-socket open-mode output partition power prefer priority profile qos reservation
    signal sockets-per-node switches thread-spec threads-per-core time time-min tmp uid wait-all-nodes wckey wrap
""")
OPTIONS: Mapping[str, int] = MappingProxyType(
    dict.fromkeys(_FLAGS, _FLAG) | dict.fromkeys(_OPTIONALS, _OPTIONAL) | dict.fromkeys(_VALUES, _VALUE)
)
"""The options by name, and whether they have no value (0), may have one after ``=`` (1), or have one (2)."""

IDLE = frozenset(
    _words("""
    acctg-freq chdir comment container cpu-freq error export export-file get-user-env gid gpu-bind gpu-freq help
    ignore-pbs input job-name kill-on-invalid-dep mail-type mail-user mem-bind no-kill open-mode output parsable power
    profile propagate quiet requeue test-only uid usage verbose version wait wait-all-nodes wckey wrap
    """)
)
"""The options that change no start."""

READ = frozenset(
    _words("account array cpus-per-task dependency licenses nice nodes ntasks partition qos reservation time")
)
"""The options that are read, from the submit line or from the fields of sacct."""

_TEXTS = frozenset(_words("chdir comment container error export input job-name output wckey wrap"))
"""The options whose values may contain spaces, which a submit line does not show."""


@attrs.frozen(kw_only=True, repr=False)
class SubmitLine(Fields):
    """The options of a submit line, as sacct's ``SubmitLine`` has it.

    Parameters
    ----------
    values
        the values of options by their long names; ``""``: none
    unknown
        words in front of the script that are no options of sbatch 22.05
    program
        that of the line: ``srun`` and ``salloc`` start a job at once
    unclear
        options among the words that follow the script, if these may be a part of an earlier value that contains spaces

    >>> line = SubmitLine.of("sbatch -N2 -t 1:00:00 --exclusive --switches=1@60 run.sh -n 5")
    >>> dict(line.values)
    {'nodes': '2', 'time': '1:00:00', 'exclusive': '', 'switches': '1@60'}
    """

    values: Mapping[str, str] = attrs.field(factory=dict)
    unknown: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()
    program: str = "sbatch"

    @classmethod
    def of(cls, text: str, component: int | None = None) -> SubmitLine:
        """Return the options of a submit line; the name of the program in front of them may be missing.

        Parameters
        ----------
        component
            of a heterogeneous job: which of the parts between colons

        >>> SubmitLine.of("sbatch -N1 : -N2 --exclusive run.sh", 1).values["nodes"]
        '2'
        """
        words = text.split()
        program = words.pop(0).rpartition("/")[2] if words and not words[0].startswith("-") else "sbatch"
        if component is not None:
            parts: list[list[str]] = [[]]
            for word in words:
                if word == ":" and len(parts) <= component:
                    parts.append([])
                else:
                    parts[-1].append(word)
            words = parts[component] if component < len(parts) else []
            words = words[: words.index(":")] if ":" in words else words
        values: dict[str, str] = {}
        unknown: list[str] = []
        rest = _script(_take(words, values, unknown))
        if rest[:1] == [":"]:
            unknown.append("a job of several components (:)")
        unclear: dict[str, str] = {}
        while rest and (unknown or _TEXTS & values.keys()):
            del rest[0]
            rest = _script(_take(rest, unclear, []))
        if "wrap" in values:  # there is no script
            values, unclear = {**unclear, **values}, {}
        told = (f"--{name}{'=' if value else ''}{value}" for name, value in unclear.items() if name not in IDLE)
        return cls(values=values, unknown=tuple(unknown), unclear=tuple(told), program=program)

    def unread(self, read: Iterable[str] = ()) -> Iterator[tuple[str, str]]:
        """Yield the options that may change a start and are not read, each with its value.

        Parameters
        ----------
        read
            further options that whoever asks reads

        >>> list(SubmitLine.of("sbatch -C big -w n1 -J name").unread(["nodelist"]))
        [('--constraint', 'big')]
        """
        known = READ | IDLE | frozenset(read)
        if self.program in ("srun", "salloc"):
            yield self.program, ""
        for name, value in self.values.items():
            idle = name == "signal" and "R" not in value.rpartition(":")[0]
            if name not in known and not idle:
                yield f"--{name}", value
        for word in self.unknown:
            yield word, ""
        for word in self.unclear:
            yield f"{word} (or an argument of the script)", ""


class OptionWords(NamedTuple):
    """Options of ``sbatch``: their values by long names, unknown ones, and how many words all of them are."""

    values: Mapping[str, str]
    unknown: tuple[str, ...]
    taken: int


def read_words(words: Sequence[str]) -> OptionWords:
    """Return the options in front of the script; an unknown one without a sign takes the next word, if it is no option.

    >>> read_words(["-Hn4", "--constr=big", "--later", "x", "run.sh", "-n5"])
    OptionWords(values={'hold': '', 'ntasks': '4', 'constraint': 'big'}, unknown=('--later=x',), taken=4)
    """
    values: dict[str, str] = {}
    unknown: list[str] = []
    rest = _take(words, values, unknown, greedy=True)
    return OptionWords(values, tuple(unknown), len(words) - len(rest))


def _script(words: list[str]) -> list[str]:
    """Return the script and its arguments without a sign in front of them that ends the options."""
    return words[1:] if words[:1] == ["--"] else words


def _take(words: Sequence[str], values: dict[str, str], unknown: list[str], *, greedy: bool = False) -> list[str]:
    """Take the options in front of the first other word; return that word and those after it."""
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] not in ("-", "--"):
        word = rest.pop(0)
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            _take_long(name, value if equals else None, rest, values, unknown, greedy)
        else:
            _take_short(word[1:], rest, values, unknown)
    return rest


def _take_long(
    name: str, value: str | None, rest: list[str], values: dict[str, str], unknown: list[str], greedy: bool
) -> None:
    matches = [name] if name in OPTIONS else [each for each in OPTIONS if each.startswith(name)]
    if len(matches) != 1:
        if value is None and greedy and rest and not rest[0].startswith("-"):
            value = rest.pop(0)
        unknown.append(f"--{name}" if value is None else f"--{name}={value}")
        return
    if value is None and OPTIONS[matches[0]] == _VALUE and rest:
        value = rest.pop(0)
    values[matches[0]] = value or ""


def _take_short(letters: str, rest: list[str], values: dict[str, str], unknown: list[str]) -> None:
    """Take short options in one word: flags, and at the end one with its value, in this word or the next."""
    while letters:
        letter, letters = letters[0], letters[1:]
        name = _SHORT.get(letter)
        if name is None:
            unknown.append(f"-{letter}{letters}")
            return
        if OPTIONS[name] == _FLAG:
            values[name] = ""
            continue
        if OPTIONS[name] == _VALUE and not letters and rest:
            letters = rest.pop(0)
        values[name] = letters.removeprefix("=")
        return


def job_list(jobs: Iterable[int | str]) -> str:
    """Return the ids of jobs as a text, those that follow each other as a span.

    >>> job_list([3, 4, 5, 9, "12_1", "12_2", "7+0"])
    '3-5, 9, 12_1, 12_2, 7+0'
    """
    spans: list[tuple[int | str, int | str]] = []
    for job in jobs:
        if spans and isinstance(job, int) and isinstance(last := spans[-1][1], int) and job == last + 1:
            spans[-1] = spans[-1][0], job
        else:
            spans.append((job, job))
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
