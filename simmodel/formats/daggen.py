"""DAGGEN's random task graphs, as text and as DOT: read and write.

Source: Suter, Hunold, DAGGEN, a synthetic task graph generator; used in Hunold, Rauber, Suter, "Redistribution aware
two-step scheduling for mixed-parallel applications", IEEE Cluster 2008. Work is in flop, data in bytes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from simmodel.foundation.errors import InputError, shown
from simmodel.foundation.loading import Source, decode, read_bytes, reader
from simmodel.foundation.writing import write_text
from simmodel.work.task import Task
from simmodel.work.workflow import Workflow
from simmodel.work.workload import Report

__all__ = ["read_daggen", "write_daggen"]

_TYPES = ("ROOT", "COMPUTATION", "TRANSFER", "END")


@reader
def read_daggen(source: Source) -> Workflow:
    """Read a DAGGEN task graph, in its text form or in DOT (also as SimGrid and DSLab write it).

    A task has ``flop`` and, as ``serial``, DAGGEN's alpha. Each edge with at least one byte has its own data object,
    named ``parent->child``. The nodes ROOT and END of the text form have no work and are not tasks.

    Raises
    ------
    InputError
        the file cannot be read, is in neither form, or has a bad line (the message has its number)

    >>> import io
    >>> text = '''NODE_COUNT 5
    ... NODE 0 1 ROOT 0.0 0.0
    ... NODE 1 3 COMPUTATION 2000 0.1
    ... NODE 3 2 TRANSFER 800 0.0
    ... NODE 2 4 COMPUTATION 3000 0.2
    ... NODE 4 - END 0.0 0.0'''
    >>> read_daggen(io.StringIO(text)).edges
    (Edge(parent=1, child=2, data=('1->2',), size=800),)
    >>> dot = 'digraph G { 1 [size="2000"] 2 [size="3000"] 1 -> 2 [size="800"] }'
    >>> read_daggen(io.StringIO(dot)).edges
    (Edge(parent=1, child=2, data=('1->2',), size=800),)
    """
    data, name = read_bytes(source)
    text = decode(data)
    report = Report()
    if re.match(r"(\s|//.*|#.*|/\*(.|\n)*?\*/)*(strict\s+)?digraph\b", text, re.IGNORECASE):
        tasks, edges = _from_dot(text, name, report)
    else:
        tasks, edges = _from_text(text, name)
    little = sum(0 < size < 1 for size in edges.values())
    if little:
        report.repaired["edge with less than a byte: no data"] = little
    notes = [line.strip()[2:].strip() for line in text.splitlines() if line.strip().startswith("//")]
    try:
        return Workflow(
            tasks.values(),
            [(*pair, size) if size >= 1 else pair for pair, size in edges.items()],
            name=re.sub(r"\.(gz|dot|daggen|txt)\b", "", Path(name).name),
            header={"Note": "\n".join(notes)} if notes else {},
            report=report,
        )
    except InputError as error:
        raise InputError(error.message, source=name) from None


_Key = int | str
_Edges = dict[tuple[_Key, _Key], float]


class _Node(NamedTuple):
    line: int
    children: list[str]
    type: str
    cost: float
    alpha: float


def _number(text: str, name: str, line: int, what: str, most: float = math.inf) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found <= most or math.isinf(found):
        limits = f"a number >= 0 and <= {most:g}" if most < math.inf else "a number >= 0"
        raise InputError(f"{what}: must be {limits}, got {shown(text)}", source=name, place=f"line {line}")
    return int(found) if found == int(found) and abs(found) < 2**53 else found


def _key(text: str) -> _Key:
    return int(text) if re.fullmatch(r"0|[1-9][0-9]{0,17}", text) else text


def _from_text(text: str, name: str) -> tuple[dict[_Key, Task], _Edges]:
    nodes: dict[str, _Node] = {}
    promised = None
    for line, content in enumerate(text.splitlines(), 1):
        fields = content.split()
        if not fields or fields[0].startswith(("//", "#")):
            continue
        place = f"line {line}"
        if promised is None and len(fields) == 2 and fields[0] == "NODE_COUNT" and re.fullmatch(r"\d{1,9}", fields[1]):
            promised = int(fields[1])
        elif fields[0] == "NODE" and len(fields) == 6 and fields[3] in _TYPES:
            if fields[1] in nodes:
                raise InputError(f"duplicate node {fields[1]}", source=name, place=place)
            children = [] if fields[2] == "-" else fields[2].split(",")
            cost = _number(fields[4], name, line, f"cost of node {fields[1]}")
            alpha = _number(fields[5], name, line, f"alpha of node {fields[1]}", 1)
            if fields[3] == "TRANSFER" and len(children) != 1:
                raise InputError(f"a TRANSFER must have one child, got {fields[2]}", source=name, place=place)
            nodes[fields[1]] = _Node(line, children, fields[3], cost, alpha)
        else:
            excerpt = content.strip() if len(content) <= 60 else content.strip()[:57] + "..."
            accepted = f"'NODE id children TYPE cost alpha' with a TYPE of {', '.join(_TYPES)} (or NODE_COUNT)"
            kind = "" if nodes or promised else "not a DAGGEN task graph: "
            raise InputError(f"{kind}must be {accepted}, got {excerpt!r}", source=name, place=place)
    if promised is not None and promised != len(nodes):
        raise InputError(f"NODE_COUNT: must be the number of nodes ({len(nodes)}), got {promised}", source=name)
    work = {id_: node for id_, node in nodes.items() if node.type == "COMPUTATION"}
    if not work:
        raise InputError("no nodes of type COMPUTATION", source=name)
    edges: _Edges = {}
    for id_, node in work.items():
        for child in node.children:
            found = _child(nodes, node, child, name)
            size = 0.0
            if found.type == "TRANSFER":
                child, size = found.children[0], found.cost
                if _child(nodes, found, child, name).type != "COMPUTATION":
                    raise InputError(
                        f"the child of a TRANSFER must be a COMPUTATION, got node {child}",
                        source=name,
                        place=f"line {found.line}",
                    )
            if nodes[child].type == "COMPUTATION":
                edges[_key(id_), _key(child)] = edges.get((_key(id_), _key(child)), 0) + size
    return {_key(id_): Task(id=_key(id_), flop=node.cost, serial=node.alpha) for id_, node in work.items()}, edges


def _child(nodes: dict[str, _Node], parent: _Node, child: str, name: str) -> _Node:
    if child not in nodes:
        raise InputError(f"unknown node {shown(child)} as child", source=name, place=f"line {parent.line}")
    return nodes[child]


_TOKEN = re.compile(
    r'(?P<skip>\s+|//[^\n]*|\#[^\n]*|/\*.*?\*/)|(?P<quoted>"(?:[^"\\]|\\.)*")|(?P<arrow>->)|(?P<mark>[\[\]{};,=])'
    r"|(?P<word>[\w.+]+|-[\d.]+)",
    re.DOTALL,
)


class _Dot:
    """A cursor over the tokens of a DOT file, each with its line."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self.tokens = list(self._tokens(text))
        self.at = 0

    def _tokens(self, text: str) -> Iterator[tuple[str, str, int]]:
        at, line = 0, 1
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise InputError(f"invalid DOT: {shown(text[at : at + 20])}", source=self.name, place=f"line {line}")
            kind, word = str(found.lastgroup), found[0]
            if kind != "skip":
                yield kind, re.sub(r"\\(.)", r"\1", word[1:-1]) if kind == "quoted" else word, line
            line += word.count("\n")
            at = found.end()

    @property
    def line(self) -> int:
        return self.tokens[min(self.at, len(self.tokens) - 1)][2]

    def wrong(self, accepted: str) -> InputError:
        found = repr(self.tokens[self.at][1]) if self.at < len(self.tokens) else "the end of the file"
        return InputError(f"must be {accepted}, got {found}", source=self.name, place=f"line {self.line}")

    def peek(self, word: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at][0] != "quoted" and self.tokens[self.at][1] == word

    def take(self, word: str) -> bool:
        self.at += (found := self.peek(word))
        return found

    def need(self, word: str) -> None:
        if not self.take(word):
            raise self.wrong(repr(word))

    def word(self, accepted: str) -> str:
        if self.at >= len(self.tokens) or self.tokens[self.at][0] not in ("word", "quoted"):
            raise self.wrong(accepted)
        self.at += 1
        return self.tokens[self.at - 1][1]

    def attributes(self) -> dict[str, str]:
        found: dict[str, str] = {}
        while self.take("["):
            while not self.take("]"):
                key = self.word("an attribute")
                self.need("=")
                found[key] = self.word("a value")
                self.take(",") or self.take(";")
        return found


def _from_dot(text: str, name: str, report: Report) -> tuple[dict[_Key, Task], _Edges]:
    dot = _Dot(text, name)
    dot.take("strict")
    dot.word("digraph")
    if not dot.peek("{"):
        dot.word("a name")
    dot.need("{")
    tasks: dict[_Key, Task] = {}
    edges: _Edges = {}
    named: dict[_Key, int] = {}
    while not dot.take("}"):
        if dot.take(";"):
            continue
        line = dot.line
        if dot.peek("{") or dot.peek("subgraph"):
            raise dot.wrong("a node or an edge")
        words = [dot.word("a node, an edge or '}'")]
        if dot.take("="):
            dot.word("a value")
            continue
        while dot.take("->"):
            words.append(dot.word("a node"))
        given = dot.attributes()
        if words[0] in ("graph", "node", "edge") and len(words) == 1:
            continue
        keys = [_key(word) for word in words]
        known = ("size", "alpha", "label") if len(keys) == 1 else ("size", "label")
        for key in given:
            if key not in known:
                report.skipped[f"attribute {key!r} of {'nodes' if len(keys) == 1 else 'edges'}"] += 1
        if len(keys) == 1:
            what = f"size of node {words[0]}"
            if "size" not in given:
                raise InputError(f"missing {what}", source=name, place=f"line {line}")
            if keys[0] in tasks:
                raise InputError(f"duplicate node {words[0]}", source=name, place=f"line {line}")
            flop = _number(given["size"], name, line, what)
            alpha = _number(given["alpha"], name, line, f"alpha of node {words[0]}", 1) if "alpha" in given else None
            tasks[keys[0]] = Task(id=keys[0], name=given.get("label"), flop=flop, serial=alpha)
            continue
        size = _number(given.get("size", "0"), name, line, f"size of edge {' -> '.join(words)}")
        for pair in pairwise(keys):
            if pair in edges:
                raise InputError(f"duplicate edge {pair[0]} -> {pair[1]}", source=name, place=f"line {line}")
            edges[pair] = size
            named.setdefault(pair[0], line)
            named.setdefault(pair[1], line)
    for end, first in named.items():
        if end not in tasks:
            raise InputError(f"unknown node {shown(end)} in an edge", source=name, place=f"line {first}")
    if dot.at < len(dot.tokens):
        raise dot.wrong("the end of the file after '}'")
    if not tasks:
        raise InputError("no nodes", source=name)
    return tasks, edges


def write_daggen(
    workflow: Workflow, path: str | Path, *, form: str | None = None, speed: float | None = None
) -> Report:
    """Write a workflow in DAGGEN's format; a path that ends in ``.gz`` is compressed.

    Reading the file gives the same tasks, flop, alphas, edges and bytes. In the text form, tasks are renumbered unless
    all ids are positive numbers. The report lists the properties that the format lacks.

    Parameters
    ----------
    workflow
        the tasks, each with ``flop``, or with ``run`` if ``speed`` is given
    path
        the file to write
    form
        ``"text"`` or ``"dot"``; default: DOT if the path ends in ``.dot`` or ``.dot.gz``, else text
    speed
        flop/s, which converts the run time of a task to flop

    Raises
    ------
    InputError
        a task has no known flop, or the form is unknown

    >>> import tempfile, pathlib
    >>> flow = Workflow([Task(id=1, flop=2e9, serial=0.1), Task(id=2, flop=3e9, serial=0)], [(1, 2, 800)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = write_daggen(flow, pathlib.Path(folder, "two.dot"))
    ...     print(pathlib.Path(folder, "two.dot").read_text().strip())
    digraph G {
      1 [size="2000000000", alpha="0.1"]
      1 -> 2 [size ="800"]
      2 [size="3000000000", alpha="0"]
    }
    """
    form = form or ("dot" if str(path).removesuffix(".gz").endswith(".dot") else "text")
    if form not in ("text", "dot"):
        raise InputError(f"form: must be 'text' or 'dot', got {shown(form)}")
    flop: dict[_Key, float] = {}
    for task in workflow:
        known = task.flop if task.flop is not None or task.run is None or speed is None else task.run * speed
        if known is None:
            raise InputError(f"task {shown(task.id)}: cannot derive its flop: pass a speed in flop/s")
        flop[task.id] = known
    write_text(path, (_to_dot if form == "dot" else _to_text)(workflow, flop))
    return _left_out(workflow)


def _left_out(workflow: Workflow) -> Report:
    report = Report()
    single = {name for edge in workflow.edges for name in edge.data}
    lost = {
        "data object that no edge carries: no place for it in DAGGEN": len(workflow.files.keys() - single),
        "data object of several edges: written once for each": sum(
            len(workflow.readers(name)) * len(workflow.writers(name)) > 1 for name in workflow.files
        ),
        "task with cores, memory, priority, types or run times: no place for them in DAGGEN": sum(
            task.cores != 1
            or bool(task.memory or task.priority or task.implementations or task.run_on)
            or task.run is not None
            for task in workflow
        ),
    }
    report.skipped.update({reason: count for reason, count in lost.items() if count})
    return report


def _short(value: float | None) -> str:
    value = value or 0
    return f"{value:.0f}" if value == int(value) else repr(float(value))


def _to_dot(workflow: Workflow, flop: dict[_Key, float]) -> str:
    def quoted(key: _Key) -> str:
        text = str(key)
        return text if re.fullmatch(r"\w+", text) else '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'

    sizes = {edge[:2]: edge.size for edge in workflow.edges}
    lines = []
    for task in workflow:
        alpha = "" if task.serial is None else f', alpha="{_short(task.serial)}"'
        lines.append(f'  {quoted(task.id)} [size="{_short(flop[task.id])}"{alpha}]')
        lines += [
            f'  {quoted(task.id)} -> {quoted(child)} [size ="{_short(sizes[task.id, child])}"]'
            for child in workflow.children(task.id)
        ]
    return "\n".join(["digraph G {", *lines, "}", ""])


def _to_text(workflow: Workflow, flop: dict[_Key, float]) -> str:
    numbered = all(isinstance(task.id, int) and task.id > 0 for task in workflow)
    tags = {task.id: task.id if numbered else i for i, task in enumerate(workflow, 1)}
    free = 1 + max(map(int, tags.values()), default=0)
    end = free + len(workflow.edges)
    sizes = {edge[:2]: edge.size for edge in workflow.edges}
    roots = ",".join(str(tags[task]) for task in workflow.roots) or str(end)
    lines = [f"NODE_COUNT {len(workflow) + len(workflow.edges) + 2}", f"NODE 0 {roots} ROOT 0.0 0.0"]
    for task in workflow:
        children = workflow.children(task.id)
        transfers = range(free, free + len(children))
        free += len(children)
        listed = ",".join(map(str, transfers)) or str(end)
        lines.append(f"NODE {tags[task.id]} {listed} COMPUTATION {_short(flop[task.id])} {_short(task.serial)}")
        for transfer, child in zip(transfers, children, strict=True):
            lines.append(f"NODE {transfer} {tags[child]} TRANSFER {_short(sizes[task.id, child])} 0.0")
    return "\n".join([*lines, f"NODE {end} - END 0.0 0.0", ""])
