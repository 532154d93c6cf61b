"""A pytest plugin for ``mutants.py``: which tests run which lines, and mutants judged by those that run their lines.

``MUTANTS_MAP=FILE`` runs the tests once under coverage and writes to FILE, for each line of simmodel, the tests that
run it, and the CPU seconds of each test. Tests that fail or are skipped are left out, and what a test does in other
processes is not seen. With ``MUTANTS_TODO=FILE`` as well, the map is read, and each mutant listed there is tried in a
fork of this process, which has collected all tests but runs none. In the fork the functions of the mutated file get
their mutated code, and the tests that run the mutated line go one after the other, fastest first, until one fails or
the CPU time is used up. Then come the other tests of their files: a result that tests share, in a fixture of the
module or a cache, is made in the first of them alone. Code that ran when its module loaded needs a new process: its
mutants are left to the caller.
"""

from __future__ import annotations

import ast
import gc
import json
import os
import resource
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NoReturn

import pytest

CO_OPTIMIZED = 1  # a function, not the body of a module or class
Map = dict[str, Any]


def cpu() -> float:
    """Return the CPU seconds of this process and of those that it has waited for."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


class Recorder:
    """Runs the tests under coverage, and writes the map."""

    def __init__(self, file: str, root: Path) -> None:
        import coverage

        self.file, self.root = file, root
        self.coverage = coverage.Coverage(data_file=None, config_file=False, source=[str(root / "simmodel")])
        self.seconds: dict[str, float] = {}
        self.other: set[str] = set()

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        before = cpu()
        self.coverage.start()
        self.coverage.switch_context(item.nodeid)
        yield
        self.coverage.stop()
        self.seconds[item.nodeid] = round(cpu() - before, 3)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self.other.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        data = self.coverage.get_data()
        names = [name for name in self.seconds if name not in self.other]
        number = {name: at for at, name in enumerate(names)}
        lines = {}
        for file in sorted(data.measured_files()):
            found = {
                line: sorted(number[name] for name in tests if name in number)
                for line, tests in data.contexts_by_lineno(file).items()
            }
            lines[Path(file).relative_to(self.root).as_posix()] = found
        seconds = [self.seconds[name] for name in names]
        Path(self.file).write_text(json.dumps({"tests": names, "seconds": seconds, "lines": lines}))


def lines_of(source: bytes, line: int) -> range:
    """Return the lines of the statement that a line belongs to: of a loop or an if, those above its body."""
    best = range(line, line + 1)
    size = sys.maxsize
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            end = max(body[0].lineno, node.lineno + 1) if body else (node.end_lineno or node.lineno) + 1
            if node.lineno <= line < end and end - node.lineno < size:
                best, size = range(node.lineno, end), end - node.lineno
    return best


def tests_of(map_: Map, file: str, source: bytes, line: int) -> list[str]:
    """Return the tests that run a line, fastest first, and then the others of their files."""
    lines = map_["lines"].get(file, {})
    found = set(lines.get(str(line), ()))
    if not found:
        found = {test for each in lines_of(source, line) for test in lines.get(str(each), ())}
    files = {map_["tests"][at].partition("::")[0] for at in found}
    beside = {at for at, test in enumerate(map_["tests"]) if test.partition("::")[0] in files} - found
    return ordered(map_, found) + ordered(map_, beside)


def tests_of_file(map_: Map, file: str) -> list[str]:
    """Return the tests that run any line of a file, fastest first."""
    return ordered(map_, {test for tests in map_["lines"].get(file, {}).values() for test in tests})


def ordered(map_: Map, tests: set[int]) -> list[str]:
    return [map_["tests"][at] for at in sorted(tests, key=lambda at: (map_["seconds"][at], at))]


def changed(old: CodeType, new: CodeType, inside: bool = False) -> list[tuple[CodeType, CodeType]] | None:
    """Return the pairs of codes of functions that differ, or None if code differs that ran while the module loaded."""
    if old == new:
        return []
    inside = inside or bool(old.co_flags & CO_OPTIMIZED)
    mine = [[each for each in code.co_consts if isinstance(each, CodeType)] for code in (old, new)]
    own = [
        (code.co_code, code.co_names, [(type(c), c) for c in code.co_consts if not isinstance(c, CodeType)])
        for code in (old, new)
    ]
    if not inside and (own[0] != own[1] or len(mine[0]) != len(mine[1])):
        return None
    pairs = [(old, new)] if inside else []
    for one, other in zip(*mine, strict=False):
        below = changed(one, other, inside)
        if below is None:
            return None
        pairs += below
    return pairs


class Judge:
    """Tries each mutant of a list in a fork of this process, and writes what kills it."""

    def __init__(self, file: str, todo: str, root: Path) -> None:
        self.map: Map = json.loads(Path(file).read_text())
        self.todo: Map = json.loads(Path(todo).read_text())
        self.root = root
        self.seconds = dict(zip(self.map["tests"], self.map["seconds"], strict=True))

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        gc.collect()
        gc.unfreeze()
        live: dict[str, list[FunctionType]] = defaultdict(list)
        for each in gc.get_objects():
            if isinstance(each, FunctionType):
                live[each.__code__.co_filename].append(each)
        with os.fdopen(self.todo["out"], "w", buffering=1) as out:
            for mutant in self.todo["mutants"]:
                out.write(json.dumps(self.judged(mutant, items, live)) + "\n")
        return True

    def judged(self, mutant: Map, items: dict[str, pytest.Item], live: dict[str, list[FunctionType]]) -> Map:
        """Return what became of a mutant: the test that kills it, the tests that ran, and their CPU seconds."""
        path = self.root / mutant["file"]
        source = path.read_bytes()
        new = source[: mutant["begin"]] + mutant["new"].encode() + source[mutant["end"] :]
        tests = tests_of(self.map, mutant["file"], source, mutant["line"])
        answer = {"number": mutant["number"], "tests": len(tests), "run": 0, "cpu": 0.0}
        known: dict[CodeType, CodeType] = {}
        functions: list[FunctionType] = []
        if any(getattr(module, "__file__", None) == str(path) for module in list(sys.modules.values())):
            pairs = changed(*(compile(text, str(path), "exec", dont_inherit=True) for text in (source, new)))
            known = dict(pairs or ())
            functions = [each for each in live[str(path)] if each.__code__ in known]
            if pairs == []:
                return {**answer, "state": "survived", "by": "the same code"}
            if not functions:
                some = [test for test in tests_of_file(self.map, mutant["file"]) if test in items]
                return {**answer, "state": "load", "by": "", "of": some}
        elif not tests:
            tests = tests_of_file(self.map, mutant["file"])
        if not tests:
            return {**answer, "state": "not run", "by": ""}
        path.write_bytes(new)
        try:
            return {**answer, **self.forked([items[test] for test in tests if test in items], functions, known)}
        finally:
            path.write_bytes(source)

    def forked(self, items: list[pytest.Item], functions: list[FunctionType], known: dict[CodeType, CodeType]) -> Map:
        reading, writing = os.pipe()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        child = os.fork()
        if not child:
            os.close(reading)
            self.child(writing, items, functions, known)
        os.close(writing)
        end = time.monotonic() + 12 * self.todo["limit"]
        while os.waitpid(child, os.WNOHANG) == (0, 0):
            time.sleep(0.02)
            if time.monotonic() > end:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                break
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        with os.fdopen(reading) as file:
            told = file.read()
        spent = round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2)
        return {**(json.loads(told) if told else {"state": "killed", "by": "time"}), "cpu": spent}

    def child(
        self,
        writing: int,
        items: list[pytest.Item],
        functions: list[FunctionType],
        known: dict[CodeType, CodeType],
    ) -> NoReturn:
        """Run tests in this fork until one fails, and end it."""
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_DATA, (6 << 30, 6 << 30))
        begin = cpu()
        at = 0

        def tell(state: str, by: str = "") -> NoReturn:
            os.write(writing, json.dumps({"state": state, "by": by, "run": at}).encode())
            os._exit(0)

        def late(*_: object) -> NoReturn:
            tell("killed", f"time: {items[at].nodeid}")

        class Watch:
            def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
                if report.failed:
                    tell("killed", report.nodeid)

        try:
            for function in functions:
                function.__code__ = known[function.__code__]
            signal.signal(signal.SIGVTALRM, late)
            items[0].config.pluginmanager.register(Watch())
            for at, item in enumerate(items):
                if cpu() - begin > self.todo["limit"]:
                    tell("cut")
                signal.setitimer(signal.ITIMER_VIRTUAL, 5 + 10 * self.seconds[item.nodeid])
                following = items[at + 1] if at + 1 < len(items) else None
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            at = len(items)
            tell("survived")
        except BaseException as error:
            tell("load" if isinstance(error, ValueError) and not at else "killed", repr(error)[:200])


def pytest_configure(config: pytest.Config) -> None:
    file, todo = os.environ["MUTANTS_MAP"], os.environ.get("MUTANTS_TODO")
    plugin = Judge(file, todo, config.rootpath) if todo else Recorder(file, config.rootpath)
    config.pluginmanager.register(plugin)
