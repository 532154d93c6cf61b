"""What the code of an experiment names of the user's own modules is part of it, however it is named."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from simmodel.experiments.ensembles import digest_of

FILES = {
    "mymod.py": """
import functools, operator, types, datetime
from dataclasses import dataclass, field
from enum import Enum
from decimal import Decimal
K = 1
UNUSED = 1
TABLE = {"a": 1}
LIST = [1, 2]
CALLS = []
COUNTS = {}
cfg = types.SimpleNamespace(K=1, deep=types.SimpleNamespace(K=1))
since = datetime.date(2024, 1, 1)
exact = Decimal("1.5")
by = operator.attrgetter("submit")
builtin = min
class Params:
    K = 1
    class Deep:
        K = 1
    @property
    def prop(self): return 1
    @functools.cached_property
    def cached(self): return 2
    @staticmethod
    def static(): return 3
class Colour(Enum):
    RED = 1
@dataclass
class Data:
    k: int = 1
    many: list = field(default_factory=lambda: [1])
data = Data(5)
params = Params()
def helper(x): return x * K
def key(job): return helper(job) + 1
@functools.lru_cache
def cached(job): return job + 1
@functools.wraps(key)
def wrapped(job): return key(job) + 2
partially = functools.partial(key, 3)
def note(x):
    CALLS.append(x)
    COUNTS[x] = 1
    COUNTS[x] += 1
    return x
def update(x): return x + 1
""",
    "pkg/__init__.py": "from . import mod\nfrom .other import shared\n",
    "pkg/mod.py": "import pkg\nK = 1\ndef key(job): return pkg.other.FACTOR * job\n",
    "pkg/other.py": "FACTOR = 1\ndef shared(x): return x + FACTOR\n",
    "pkg/sub/__init__.py": "",
    "pkg/sub/leaf.py": "K = 1\nfrom ..other import FACTOR\n",
}
K, TABLE = ("mymod.py", "\nK = 1", "\nK = 2"), ("mymod.py", '"a": 1', '"a": 2')
# the body of a module that names them, an edit of a file, what it was and is: the digest must change
EDITS = [
    ("import mymod\ndef f(x): return mymod.K", *K),
    ("import mymod as m\ndef f(x): return m.key(x)", "mymod.py", "helper(job) + 1", "helper(job) + 2"),
    ("import mymod\ndef f(x): return mymod.key(x)", "mymod.py", "return x * K", "return x + K"),
    ("import mymod\ndef f(x): return mymod.key(x)", *K),
    ("import mymod\ndef f(x): return [mymod.K for _ in x]", *K),
    ("import mymod\ndef f(x): return sorted(x, key=lambda y: mymod.K * y)", *K),
    ("import mymod\ndef f(x):\n K = mymod.K\n return [K for _ in x if (lambda: K)()]", *K),
    ("import mymod\ndef f(x, k=mymod): return k.K", *K),
    ("import mymod\ndef f(x): return getattr(mymod, 'K')", *K),
    ("import mymod\ndef f(x): return vars(mymod)['K']", *K),
    ("def f(x):\n import mymod\n return mymod.K", *K),
    ("def f(x):\n import mymod as m\n return m.key(x)", "mymod.py", "helper(job) + 1", "helper(job) + 2"),
    ("def f(x):\n from mymod import key as k\n return k(x)", "mymod.py", "helper(job) + 1", "helper(job) + 2"),
    ("from mymod import *\ndef f(x): return K", *K),
    ("from mymod import key\ndef f(x): return key(x)", "mymod.py", "helper(job) + 1", "helper(job) + 2"),
    ("import mymod\ndef f(x): return mymod.Params.K", "mymod.py", "Params:\n    K = 1", "Params:\n    K = 2"),
    ("import mymod\ndef f(x): return mymod.Params.Deep.K", "mymod.py", "Deep:\n        K = 1", "Deep:\n        K = 2"),
    ("import mymod\ndef f(x): return mymod.params.prop", "mymod.py", "return 1", "return 7"),
    ("import mymod\ndef f(x): return mymod.params.cached", "mymod.py", "return 2", "return 7"),
    ("import mymod\ndef f(x): return mymod.Params.static()", "mymod.py", "return 3", "return 7"),
    ("import mymod\ndef f(x): return mymod.Colour.RED", "mymod.py", "RED = 1", "RED = 2"),
    ("import mymod\ndef f(x): return mymod.data.k", "mymod.py", "Data(5)", "Data(6)"),
    ("import mymod\ndef f(x): return mymod.Data().many", "mymod.py", "lambda: [1]", "lambda: [2]"),
    ("import mymod\ndef f(x): return mymod.cfg.K", "mymod.py", "Namespace(K=1, deep", "Namespace(K=2, deep"),
    ("import mymod\ndef f(x): return mymod.cfg.deep.K", "mymod.py", "Namespace(K=1))", "Namespace(K=2))"),
    ("import mymod\ndef f(x): return mymod.since", "mymod.py", "2024, 1, 1", "2024, 1, 2"),
    ("import mymod\ndef f(x): return mymod.exact", "mymod.py", '"1.5"', '"1.6"'),
    ("import mymod\ndef f(x): return mymod.by(x)", "mymod.py", '"submit"', '"start"'),
    ("import mymod\ndef f(x): return mymod.builtin(x)", "mymod.py", "builtin = min", "builtin = max"),
    ("import mymod\ndef f(x): return mymod.cached(x)", "mymod.py", "job): return job + 1", "job): return job + 9"),
    ("import mymod\ndef f(x): return mymod.wrapped(x)", "mymod.py", "key(job) + 2", "key(job) + 9"),
    ("import mymod\ndef f(x): return mymod.partially()", "mymod.py", "partial(key, 3)", "partial(key, 4)"),
    ("import mymod\ndef f(x): return mymod.partially()", "mymod.py", "helper(job) + 1", "helper(job) + 2"),
    ("import mymod\ndef f(x): return mymod.TABLE['a']", *TABLE),
    ("import mymod\ndef f(x):\n r = []\n r.append(1)\n d = {}\n d[1] = 2\n return mymod.TABLE", *TABLE),
    ("from mymod import LIST\ndef f(x):\n r = []\n r.append(LIST[0])\n return r", "mymod.py", "[1, 2]", "[1, 3]"),
    ("import mymod\ndef f(x): return mymod.update(x)", "mymod.py", "return x + 1", "return x + 2"),
    ("import mymod\nclass P:\n def __init__(self): self.K = mymod.K\nf = P", *K),
    ("import mymod\nclass P:\n def decide(self, x): return mymod.K\nf = P()", *K),
    ("import mymod\nclass P:\n def __init__(self, m): self.m = m\n def do(self, x): return self.m.K\nf = P(mymod)", *K),
    ("import mymod\ndef make(m):\n return lambda x: m.K\nf = make(mymod)", *K),
    ("import mymod, functools\ndef g(m, x): return m.K\nf = functools.partial(g, mymod)", *K),
    ("import mymod\ndef g(): return mymod\ndef f(x): return g().K", *K),
    ("import pkg\ndef f(x): return pkg.mod.K", "pkg/mod.py", "K = 1", "K = 2"),
    ("import pkg.mod\ndef f(x): return pkg.mod.key(x)", "pkg/other.py", "FACTOR = 1", "FACTOR = 2"),
    ("from pkg import mod\ndef f(x): return mod.key(x)", "pkg/other.py", "FACTOR = 1", "FACTOR = 2"),
    ("from pkg import mod as m\ndef f(x): return m.K", "pkg/mod.py", "K = 1", "K = 2"),
    ("import pkg\ndef f(x): return pkg.shared(x)", "pkg/other.py", "x + FACTOR", "x - FACTOR"),
    ("import pkg.sub.leaf\ndef f(x): return pkg.sub.leaf.K", "pkg/sub/leaf.py", "K = 1", "K = 2"),
    ("def f(x):\n from pkg.sub import leaf\n return leaf.K", "pkg/sub/leaf.py", "K = 1", "K = 2"),
    ("def f(x):\n import pkg.sub.leaf as leaf\n return leaf.K", "pkg/sub/leaf.py", "K = 1", "K = 2"),
    ("def f(x):\n from pkg.sub.leaf import FACTOR\n return FACTOR", "pkg/other.py", "FACTOR = 1", "FACTOR = 2"),
]  # fmt: skip
# edits of what is not named, and what changes by itself: the digest must stay
SAME = [
    ("import mymod\ndef f(x): return mymod.K", "mymod.py", "UNUSED = 1", "UNUSED = 2"),
    ("import mymod\ndef f(x): return mymod.K", "mymod.py", "\nK = 1", "\n# a comment\nK = 1"),
    ("import mymod\ndef f(x): return mymod.K", "mymod.py", "return x + 1", "return x + 2"),
    ("import mymod\ndef f(x): return mymod.note(x)", "mymod.py", "CALLS = []", "CALLS = [5]"),
    ("import mymod\ndef f(x): return mymod.note(x)", "mymod.py", "COUNTS = {}", "COUNTS = {5: 1}"),
    ("import mymod\ndef f(x):\n mymod.CALLS.append(x)\n return 1", "mymod.py", "CALLS = []", "CALLS = [5]"),
    ("import mymod\ndef f(x):\n mymod.COUNTS[x] += 1\n return 1", "mymod.py", "COUNTS = {}", "COUNTS = {5: 1}"),
    ("import mymod\ndef f(x):\n mymod.UNUSED += 1\n return 1", "mymod.py", "UNUSED = 1", "UNUSED = 2"),
    ("import pkg\ndef f(x): return pkg.mod.K", "pkg/other.py", "FACTOR = 1", "FACTOR = 2"),
    ("def f(x): return x in {'a', 'b', 'c', 'd'}", *K),
]


@pytest.fixture
def digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[dict[str, str]], str]]:
    """Return a function that writes modules, imports them anew, and returns the digest of what ``script.f`` is."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def forget() -> None:
        for name in [name for name in sys.modules if name.partition(".")[0] in ("mymod", "pkg", "script")]:
            del sys.modules[name]
        importlib.invalidate_caches()

    def found(files: dict[str, str]) -> str:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        forget()
        function = importlib.import_module("script").f
        first = digest_of(function)
        assert digest_of(function) == first  # the second time all imports are made
        return first

    yield found
    forget()


@pytest.mark.parametrize(
    ("script", "file", "before", "after", "changes"),
    [*((*each, True) for each in EDITS), *((*each, False) for each in SAME)],
)
def test_an_edit_of_an_own_module_is_another_experiment(
    digest: Callable[[dict[str, str]], str], script: str, file: str, before: str, after: str, changes: bool
) -> None:
    assert before in FILES[file]
    here = digest({**FILES, "script.py": script})
    there = digest({file: FILES[file].replace(before, after)})
    assert (here != there) == changes
    assert digest(FILES) == here


def test_values_set_from_outside_and_versions_of_libraries_count(
    digest: Callable[[dict[str, str]], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    digest({**FILES, "script.py": "import mymod, numpy as np\ndef f(x): return np.sort(x) * mymod.K"})
    import script  # type: ignore[import-not-found]

    before = digest_of(script.f)
    script.mymod.K = 3
    other = digest_of(script.f)
    script.mymod.K = 1
    assert digest_of(script.f) == before != other
    monkeypatch.setattr("simmodel.experiments.ensembles._release", lambda library: "9.9" if library == "numpy" else "")
    assert digest_of(script.f) not in (before, other)


def test_a_large_package_of_functions_that_call_each_other_is_described_once(
    digest: Callable[[dict[str, str]], str],
) -> None:
    lines = [f"def f{i}(x): return {' + '.join(f'f{j}(x)' for j in range(40) if j != i)}" for i in range(40)]
    text = "\n".join(lines)
    script = {"mymod.py": text, "script.py": "import mymod\ndef f(x): return mymod.f0(x)"}
    assert digest(script) != digest({"mymod.py": text + "\ndef f39(x): return 0"})
