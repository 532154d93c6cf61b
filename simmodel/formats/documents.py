"""XML and JSON documents whose errors name the place: the line of an element, the path of a value."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree
from xml.parsers import expat

from simmodel.foundation.errors import InputError, Plain, clipped, shown, unknown
from simmodel.foundation.loading import Source, current_limits, decode, parse_json, read_bytes

__all__ = ["Element", "Value", "read_json", "read_xml"]


class Element(ElementTree.Element):
    """An XML element with its line number, counted from 1; the namespace is removed from its tag."""

    line = 0


def read_xml(source: Source, *, root: str | None = None) -> tuple[Element, str]:
    """Return the root element of an XML document, and the name of the source.

    A document that declares entities is rejected; external entities are never loaded.

    Parameters
    ----------
    source
        a path (also of a gzip file) or an open file
    root
        the tag of a root element to add if the document has several top-level elements

    Raises
    ------
    InputError
        the source cannot be read or is not valid XML

    >>> import io
    >>> found, name = read_xml(io.StringIO("<a>\\n  <b x='1'/>\\n</a>"))
    >>> found[0].tag, found[0].get("x"), found[0].line
    ('b', '1', 2)
    >>> read_xml(io.StringIO("<b/><b/>"), root="a")[0].tag
    'a'
    """
    data, name = read_bytes(source)
    try:
        return _parse(data, name), name
    except expat.ExpatError as error:
        problem = error
    if root is not None and problem.code == expat.errors.codes[expat.errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT]:
        body = re.sub(r"<\?xml[^>]*\?>", "", decode(data), count=1)
        try:
            return _parse(f"<{root}>{body}</{root}>".encode(), name), name
        except expat.ExpatError as error:
            problem = error
    found = expat.ErrorString(problem.code)
    raise InputError(f"invalid XML: {found}", source=name, place=f"line {problem.lineno}")


def _parse(data: bytes, name: str) -> Element:
    builder = ElementTree.TreeBuilder(element_factory=Element)
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True
    most = current_limits().depth
    depth = 0

    def start(tag: str, fields: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > most + 1:
            message = f"must not be nested deeper than {most:g} levels (limit depth)"
            raise InputError(message, source=name, place=f"line {parser.CurrentLineNumber}")
        element = builder.start(tag.rpartition("}")[2], fields)
        element.line = parser.CurrentLineNumber  # type: ignore[attr-defined]

    def entity(entity: str, *_rest: Any) -> None:
        message = f"entity declarations are not accepted, got {shown(entity)}"
        raise InputError(message, source=name, place=f"line {parser.CurrentLineNumber}")

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(tag.rpartition("}")[2])

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = builder.data
    parser.EntityDeclHandler = entity
    try:
        parser.Parse(data, True)
    except (LookupError, ValueError) as error:  # an encoding unknown to Python, or a multi-byte one
        if isinstance(error, InputError):
            raise
        raise InputError(f"cannot decode the XML: {error}", source=name) from None
    root = builder.close()
    assert isinstance(root, Element)
    return root


class Value:
    """A value inside a JSON document, with its path; each accessor raises an error with that path for a wrong type."""

    __slots__ = ("_key", "_parent", "data", "source")

    def __init__(self, data: Plain, source: str, parent: Value | None = None, key: str | int = "") -> None:
        self.data = data
        self.source = source
        self._parent = parent
        self._key = key

    @property
    def place(self) -> str:
        """The path from the top of the document: ``workflow.tasks[3].name``."""
        if self._parent is None:
            return ""
        before = self._parent.place
        if isinstance(self._key, int):
            return f"{before}[{self._key}]"
        return f"{before}.{self._key}" if before else self._key

    def wrong(self, message: str) -> InputError:
        return InputError(message, source=self.source, place=self.place or None)

    def _must_be(self, accepted: str) -> InputError:
        try:
            found = json.dumps(self.data)
        except ValueError:  # a whole number of very many digits
            found = shown(self.data)
        return self.wrong(f"must be {accepted}, got {clipped(found)}")

    def __contains__(self, key: str) -> bool:
        return self.table().get(key) is not None

    def __getitem__(self, key: str) -> Value:
        found = self.table()
        if key not in found:
            raise self.wrong(f"missing key {shown(key)}")
        return Value(found[key], self.source, self, key)

    def get(self, key: str) -> Value | None:
        """Return the value of a key, or ``None`` if it is missing or null."""
        found = self.table().get(key)
        return None if found is None else Value(found, self.source, self, key)

    def table(self) -> dict[str, Any]:
        """Return the value as a table (a JSON object)."""
        if not isinstance(self.data, dict):
            raise self._must_be("a table")
        return self.data

    def list(self) -> Iterator[Value]:
        if not isinstance(self.data, list):
            raise self._must_be("a list")
        return (Value(each, self.source, self, i) for i, each in enumerate(self.data))

    def texts(self) -> tuple[str, ...]:
        return tuple(each.text() for each in self.list())

    def text(self) -> str:
        if not isinstance(self.data, str) or not self.data:
            raise self._must_be("text")
        return self.data

    def key(self) -> int | str:
        """Return the value as an id: a whole number or text."""
        if isinstance(self.data, int) and not isinstance(self.data, bool):
            return self.data
        if not isinstance(self.data, str) or not self.data:
            raise self._must_be("an id (text or a whole number)")
        return self.data

    def number(self, *, least: float | None = 0, scale: float = 1) -> float:
        """Return the value times ``scale`` as a finite number; the value must be at least ``least``."""
        found = self.data
        if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found):
            found = None
        if found is None or (least is not None and found < least):
            raise self._must_be("a number" if least is None else f"a number >= {least}")
        if not math.isfinite(found * scale):
            raise self._must_be(f"a number that is finite times {scale:g}")
        return found * scale

    def only(self, *keys: str) -> None:
        """Reject keys other than these."""
        for key in self.table():
            if key not in keys:
                raise self[key].wrong(unknown("key", key, keys).message)


def read_json(source: Source) -> Value:
    """Return the JSON document in a source.

    Raises
    ------
    InputError
        the source cannot be read, is not valid JSON, has a duplicate key, or exceeds a limit

    >>> import io
    >>> document = read_json(io.StringIO('{"tasks": [{"id": 1}, {"id": 2.5}]}'))
    >>> [*document["tasks"].list()][1]["id"].key()
    Traceback (most recent call last):
    ...
    simmodel.foundation.errors.InputError: an open file, tasks[1].id: must be an id (text or a whole number), got 2.5
    """
    data, name = read_bytes(source)
    return Value(parse_json(data, name), name)
