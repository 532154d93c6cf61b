"""The identity of an experiment, as plain values: only the same experiment continues a file of its runs.

Identity is content: the code of functions and of methods, with the values that they see; the bytes of files; the
numbers of tables; the fields of platforms and policies; and the version of simmodel, which stands for all code in it.
"""

from __future__ import annotations

import dis
import json
import platform
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from hashlib import file_digest, sha256
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from simmodel.foundation.errors import shown

__all__ = ["digest_of", "digests_of", "named"]

_CHANGES = frozenset(("add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "remove", "update"))
"""Methods by which a function changes a list, a dictionary or a set."""


def named(value: Any, within: tuple[int, ...] = ()) -> Any:
    """Return plain values that distinguish a value from others by its content.

    ``within`` are the ids of the values that contain it. Of a function count its code, its defaults, its closure, and
    the plain values, functions and classes of its module that it names, but not a list, dictionary or set that it
    changes itself; of a class all its methods. Of code in libraries counts the name.

    >>> named([1, "easy", {"a": 0.5}]), named(named)
    ([1, 'easy', {'a': 0.5}], ['simmodel.experiments.study_identity.named', {}])
    """
    if isinstance(value, str | Path):
        return _file(Path(value)) or str(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, np.generic):
        return str(value)
    if isinstance(value, bytes):
        return sha256(value).hexdigest()
    if isinstance(value, np.ndarray):
        content = repr(value.tolist()).encode() if value.dtype.hasobject else np.ascontiguousarray(value).tobytes()
        return [str(value.dtype), list(value.shape), sha256(content).hexdigest()]
    if id(value) in within:
        return "..."
    inside = (*within, id(value))
    if isinstance(value, Mapping):
        return {str(key): named(each, inside) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [named(each, inside) for each in value]
    if isinstance(value, set | frozenset):
        return sorted(json.dumps(named(each, inside)) for each in value)
    if isinstance(value, partial):
        return [named(part, inside) for part in (value.func, value.args, value.keywords)]
    if isinstance(value, MethodType):
        return [named(value.__func__, inside), named(value.__self__, inside)]
    if isinstance(value, FunctionType):
        return _function(value, inside)
    if isinstance(value, type):
        return _class(value, inside) if _is_own(value.__module__) else _name(value)
    if isinstance(value, BuiltinFunctionType | ModuleType):
        return _name(value)
    if isinstance(value, property | classmethod | staticmethod):
        parts = (value.fget, value.fset) if isinstance(value, property) else (value.__func__,)
        return [named(part, inside) for part in parts]
    state = value.__getstate__()
    if not state and repr(value) == object.__repr__(value):  # which tells an address
        return [named(type(value), inside)]
    return [named(type(value), inside), named(state, inside) if state else shown(value)]


def digest_of(value: Any) -> str:
    """Return a short digest of :func:`named` values.

    >>> digest_of({"a": 1}) == digest_of({"a": 1}), len(digest_of(2))
    (True, 16)
    """
    return sha256(json.dumps(named(value), sort_keys=True).encode()).hexdigest()[:16]


def digests_of(parts: Mapping[str, Any]) -> dict[str, str]:
    """Return a digest of each part of an experiment by its name, of mappings one of each entry, and of the versions.

    >>> sorted(digests_of({"seed": 1, "policies": {"easy": "easy", "mine": len}}))
    ['policies easy', 'policies mine', 'seed', 'version of Python', 'version of simmodel']
    """
    from simmodel import __version__

    found = {"version of simmodel": __version__, "version of Python": ".".join(platform.python_version_tuple()[:2])}
    for name, part in parts.items():
        if isinstance(part, Mapping) and part:
            found |= {
                f"{name} {shown(key) if not isinstance(key, str) else key}": digest_of(each)
                for key, each in part.items()
            }
        else:
            found[name] = digest_of(part)
    return found


# ---------------------------------------------------------------------- files and code


def _file(path: Path) -> list[Any] | None:
    """Return digests of the content of a file, wherever it is, and of the files that a document names."""
    from simmodel.foundation.loading import files_named_in

    try:
        with path.open("rb") as file:
            found = [file_digest(file, "sha256").hexdigest()]
    except (OSError, ValueError):  # a text that names no file
        return None
    return ["file", *found, *(file_digest(each.open("rb"), "sha256").hexdigest() for each in files_named_in(path))]


def _name(value: Any) -> str:
    return f"{getattr(value, '__module__', None)}.{getattr(value, '__qualname__', getattr(value, '__name__', ''))}"


def _is_own(module: str | None) -> bool:
    """Whether the code of a module is that of the user, and not of simmodel, of Python or of another library."""
    top = (module or "").partition(".")[0]
    if top == "simmodel" or top in sys.stdlib_module_names:
        return top == "__main__"
    file = getattr(sys.modules.get(module or ""), "__file__", None) or ""
    return "site-packages" not in file and "dist-packages" not in file


def _function(function: FunctionType, inside: tuple[int, ...]) -> list[Any]:
    """Return plain values that identify the code of a function; of one of a library its name and closure."""
    code, seen = function.__code__, {}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            seen[name] = cell.cell_contents
        except ValueError:  # not bound yet
            continue
    if not _is_own(function.__module__):
        return [_name(function), {name: named(each, inside) for name, each in seen.items() if _counts(each, True)}]
    names, steps = set(_names(code)), list(_steps(code))
    seen |= {name: function.__globals__[name] for name in sorted(names) if name in function.__globals__}
    assigned = {step.argval for step in steps if step.opname in ("STORE_GLOBAL", "STORE_DEREF")}
    changes = not names.isdisjoint(_CHANGES) or any(step.opname.endswith("E_SUBSCR") for step in steps)
    counting = {name: each for name, each in seen.items() if name not in assigned and _counts(each, changes)}
    own = [function.__defaults__, function.__kwdefaults__, counting]
    return [_name(function), _code(code), named(own, inside)]


def _counts(value: Any, changes: bool) -> bool:
    """Whether a value that a function sees is part of its identity: not a container it changes, or a live object."""
    if isinstance(value, list | dict | set):
        return not changes
    plain = isinstance(value, str | bytes | bool | int | float | tuple | frozenset | Path | np.ndarray | np.generic)
    code = isinstance(value, FunctionType | MethodType | type | partial)
    return value is None or plain or code or hasattr(type(value), "__attrs_attrs__") or _is_own(type(value).__module__)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names(each)


def _steps(code: CodeType) -> Iterator[dis.Instruction]:
    yield from dis.get_instructions(code)
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _steps(each)


def _code(code: CodeType) -> list[Any]:
    constants = [_code(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts]
    return [code.co_code.hex(), [*code.co_names], [*code.co_varnames], constants]


def _class(cls: type, inside: tuple[int, ...]) -> list[Any]:
    made = ("__dict__", "__weakref__", "__module__", "__firstlineno__", "__static_attributes__", "__annotations__")
    accessors = (property, classmethod, staticmethod)
    own = {name: each for name, each in sorted(vars(cls).items()) if name not in made}
    counting = {name: each for name, each in own.items() if isinstance(each, accessors) or _counts(each, False)}
    return [_name(cls), [named(base, inside) for base in cls.__bases__], named(counting, inside)]
