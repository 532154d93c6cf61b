"""DAX, the abstract workflows of Pegasus in XML, versions 2.1 and 3.x: read.

Source: Deelman et al., "Pegasus, a workflow management system for science automation", Future Generation Computer
Systems 46, 2015; Juve et al., "Characterizing and profiling scientific workflows", FGCS 29(3), 2013.
"""

from __future__ import annotations

import math
import re

from simmodel.formats.documents import Element, read_xml
from simmodel.foundation.errors import InputError, shown
from simmodel.foundation.loading import Source, current_reading, reader, title_of
from simmodel.work.task import DataObject, Task
from simmodel.work.workflow import Workflow
from simmodel.work.workload import Report

__all__ = ["read_dax"]

_HEADER = ("name", "version", "jobCount", "fileCount", "childCount")


@reader
def read_dax(source: Source, *, repair: bool | None = None) -> Workflow:
    """Read a Pegasus workflow.

    The edges are those of ``child`` and ``parent`` elements; the data of an edge are the files that the parent writes
    and the child reads. As in Pegasus since version 4.4, files imply order: a job that reads a file which no job before
    it writes also waits for those that write it, and ``report.repaired`` counts these edges. A job's ``name`` is the
    family of its task. Run times are those of ``runtime`` (or of the profile with that key), in seconds; a job without
    one has no run time and is counted in the report. If the uses of a file differ in its size, that of its writer is
    taken, else the first.

    Parameters
    ----------
    source
        a path (also of a gzip file) or an open file
    repair
        add 2**32 bytes to a negative size (a 32-bit overflow) and set a negative run time to 0 s; both are counted in
        ``report.repaired``. Default: as :func:`~simmodel.foundation.loading.reading` says, which repairs nothing

    Raises
    ------
    InputError
        the file cannot be read, is not DAX, refers to an unknown job, has a negative size or run time, or its jobs form
        a cycle, also through files

    >>> import io
    >>> text = '''<adag name="two"><job id="a" name="make" runtime="3"><uses file="f" link="output" size="100"/></job>
    ... <job id="b" name="use" runtime="4"><uses file="f" link="input" size="100"/></job>
    ... <child ref="b"><parent ref="a"/></child></adag>'''
    >>> flow = read_dax(io.StringIO(text))
    >>> flow.edges, flow.critical_path_length()
    ((Edge(parent='a', child='b', data=('f',), size=100),), 7.0)
    """
    root, name = read_xml(source)
    if root.tag != "adag":
        raise InputError(
            f"must be a Pegasus workflow (<adag>), got <{root.tag}>", source=name, place=f"line {root.line}"
        )
    return _Reader(name, current_reading().repair if repair is None else repair).workflow(root)


class _Reader:
    def __init__(self, name: str, repair: bool) -> None:
        self.name = name
        self.repair = repair
        self.report = Report()
        self.sizes: dict[str, float | None] = {}
        self.written: set[str] = set()
        self.several: set[str] = set()
        self.negative: dict[str, tuple[Element, float]] = {}
        self.before_zero: list[tuple[Element, float]] = []

    def wrong(self, element: Element, message: str) -> InputError:
        return InputError(message, source=self.name, place=f"line {element.line}")

    def workflow(self, root: Element) -> Workflow:
        tasks: dict[str, Task] = {}
        pairs: dict[tuple[str, str], None] = {}
        relations = []
        for each in root:
            assert isinstance(each, Element)
            if each.tag == "job":
                task = self.job(each)
                if task.id in tasks:
                    raise self.wrong(each, f"duplicate job id {shown(task.id)}")
                tasks[str(task.id)] = task
            elif each.tag == "child":
                relations.append(each)
            elif each.tag in ("dag", "dax"):
                raise self.wrong(each, f"nested workflows (<{each.tag}>) are not supported")
            elif each.tag in ("file", "filename"):
                self.size_of(each, written=False)
        for relation in relations:
            child = self.known(relation, tasks)
            for each in relation.iter("parent"):
                assert isinstance(each, Element)
                parent = self.known(each, tasks)
                if (parent, child) in pairs:
                    self.report.repaired["edge given twice"] += 1
                pairs[parent, child] = None
        if not tasks:
            raise self.wrong(root, "no jobs")
        self.refuse_negative()
        self.count(root, tasks)
        files = [DataObject(file, 0.0 if size is None else size) for file, size in self.sizes.items()]
        try:
            return Workflow(
                tasks.values(),
                pairs,
                files,
                name=title_of(self.name, ".xml", ".dax"),
                header={key: root.attrib[key] for key in _HEADER if key in root.attrib},
                report=self.report,
                cpu_only=True,
                complete=True,
            )
        except InputError as error:
            raise InputError(error.message, source=self.name) from None

    def count(self, root: Element, tasks: dict[str, Task]) -> None:
        promised = root.get("jobCount", "")
        if re.fullmatch(r"\d{1,9}", promised) and int(promised) > len(tasks):
            self.report.skipped["jobs promised by the header, not in the file"] = int(promised) - len(tasks)
        unknown = sum(task.run is None for task in tasks.values())
        if unknown:
            self.report.skipped["run time of a job, not in the file"] = unknown
        if self.several:
            self.report.repaired["file with several sizes: that of its writer taken, else the first"] = len(
                self.several
            )
        unsized = sum(size is None for size in self.sizes.values())
        if unsized:
            self.report.repaired["size of a file missing: 0 bytes taken"] = unsized

    def known(self, element: Element, tasks: dict[str, Task]) -> str:
        ref = element.get("ref", "")
        if ref not in tasks:
            raise self.wrong(element, f"ref of <{element.tag}>: unknown job {shown(ref)}")
        return ref

    def job(self, job: Element) -> Task:
        id_ = job.get("id", "")
        if not id_:
            raise self.wrong(job, "<job>: missing 'id'")
        given: dict[str, str] = dict(job.attrib)
        for profile in job.iter("profile"):
            if profile.get("namespace", "").lower() == "pegasus":
                given.setdefault(str(profile.get("key")), (profile.text or "").strip())
        inputs: dict[str, None] = {}
        outputs: dict[str, None] = {}
        for uses in job.iter("uses"):
            assert isinstance(uses, Element)
            link = uses.get("link", "input").lower()
            if link not in ("input", "output", "inout"):
                self.report.skipped[f"file of a job with link {link!r}"] += 1
                continue
            file = self.size_of(uses, written=link != "input")
            if link != "output":
                inputs[file] = None
            if link != "input":
                outputs[file] = None
        cores = self.number(job, given, "cores")
        if cores is not None and cores <= 0:
            raise self.wrong(job, f"cores of job {shown(id_)}: must be a number > 0, got {shown(given['cores'])}")
        return Task(
            id=id_,
            name=given.get("node-label") or given.get("name"),
            family=given.get("name"),
            run=self.run_time(job, given),
            cores=1 if cores is None else cores,
            memory=(self.number(job, given, "memory") or 0) * 1e6,
            inputs=tuple(inputs),
            outputs=tuple(outputs),
        )

    def run_time(self, job: Element, given: dict[str, str]) -> float | None:
        found = _number(given.get("runtime", ""))
        if found is None or found >= 0:
            return self.number(job, given, "runtime")
        self.before_zero.append((job, found))
        return 0.0

    def number(self, job: Element, given: dict[str, str], key: str) -> float | None:
        if key not in given:
            return None
        found = _number(given[key])
        if found is None or found < 0:
            raise self.wrong(job, f"{key} of job {shown(given['id'])}: must be a number >= 0, got {shown(given[key])}")
        return int(found) if key == "cores" and found == int(found) else found

    def size_of(self, uses: Element, written: bool) -> str:
        """Record the size of a file in bytes, if the element has one; return the name of the file."""
        file = uses.get("file") or uses.get("name") or ""
        if not file:
            raise self.wrong(uses, f"<{uses.tag}>: missing file name")
        text = uses.get("size")
        if text is None:
            text = next((each.text for each in uses.iter("metadata") if each.get("key") == "size"), None)
        known = self.sizes.setdefault(file, None)
        if text is None:
            return file
        size = _number(text)
        if size is None:
            raise self.wrong(uses, f"size of file {shown(file)}: must be a number of bytes, got {shown(text)}")
        if size < 0:
            self.negative.setdefault(file, (uses, size))
            size += 2.0**32
        size = int(size) if size == int(size) else size
        if known is not None and known != size:
            self.several.add(file)
        if known is None or (written and file not in self.written):
            self.sizes[file] = size
        if written:
            self.written.add(file)
        return file

    def refuse_negative(self) -> None:
        """Reject negative sizes and run times, or count their repairs."""
        beyond = [(uses, size) for uses, size in self.negative.values() if size < -(2**31)]
        if beyond or (self.negative and not self.repair):
            uses, size = beyond[0] if beyond else next(iter(self.negative.values()))
            file = uses.get("file") or uses.get("name")
            others = _others(len(self.negative), "file", "size")
            hint = "" if beyond else "; repair=True adds 2**32, for an overflow of 32 bits"
            raise self.wrong(uses, f"size of file {shown(file)}: must be >= 0, got {size:.0f}{others}{hint}")
        if self.before_zero and not self.repair:
            job, run = self.before_zero[0]
            others = _others(len(self.before_zero), "job", "run time")
            message = f"runtime of job {shown(job.get('id'))}: must be a number >= 0, got {run:g}{others}"
            raise self.wrong(job, f"{message}; repair=True sets it to 0")
        if self.negative:
            self.report.repaired["negative size of a file: 2**32 bytes added"] = len(self.negative)
        if self.before_zero:
            self.report.repaired["negative run time of a job: 0 s taken"] = len(self.before_zero)


def _others(count: int, kind: str, what: str) -> str:
    return f" (and {count - 1} more {kind}{'s' * (count > 2)} with a negative {what})" if count > 1 else ""


def _number(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) else None
