"""The page that runs simmodel in a browser tab: its Python needs no more than Pyodide has, and its script runs it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from simmodel import __version__
from tests.helpers.examples import up_to
from tests.helpers.new_process import environment, printed
from tests.helpers.paths import ROOT

PAGE = (ROOT / "docs/browser.html").read_text("utf-8")
PYTHON = re.findall(r'<script type="text/x-python" id="python">\n(.*?)</script>', PAGE, re.DOTALL)[0]
PYODIDE = re.findall(r"/pyodide/v([\d.]+)/full/", PAGE)[0]
WORKLOADS, POLICIES = (re.findall(r"<option>([^<]+)", part) for part in re.findall(r"<select.*?</select>", PAGE))

LIKE_PYODIDE = """
import os, sys, threading, time, _thread
for name in ("resource",):
    sys.modules[name] = None
def refuse(*given, **named):
    raise RuntimeError("can't start new thread")
for module in (_thread, threading):
    for name in ("start_new_thread", "_start_new_thread", "start_joinable_thread", "_start_joinable_thread"):
        if hasattr(module, name):
            setattr(module, name, refuse)
os.fork = os.posix_spawn = refuse
del time.thread_time
"""
"""What sets Pyodide apart from Python elsewhere, and could matter."""


def test_the_page_loads_the_wheel_of_this_version_and_what_it_depends_on() -> None:
    assert f"../dist/simmodel-{__version__}-py3-none-any.whl" in PAGE
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    needed = re.findall(r'^  "(\w+)>=', project.partition("\ndependencies = [")[2].partition("]")[0], re.MULTILINE)
    assert len(needed) > 5
    assert [name for name in needed if f'"{name}"' not in PAGE] == []
    assert f"Pyodide {PYODIDE} " in (ROOT / "docs/how_to/containers.md").read_text("utf-8")


def test_the_python_of_the_page_runs_without_threads_and_processes(tmp_path: Path) -> None:
    assert len(WORKLOADS) > 1
    assert len(POLICIES) > 3
    number = up_to(len(WORKLOADS), 1)
    program = (
        f"{LIKE_PYODIDE}\nos.chdir({str(tmp_path)!r})\n{PYTHON}\n"
        f"for workload, policy in zip({WORKLOADS[:number]}, {POLICIES}):\n"
        "    page = run(workload, policy, 1.1)\n"
        "    print(f'<title>{policy}' in page, page.endswith('</html>\\n'), len(page) > 50_000)\n"
    )
    assert printed(program).splitlines() == ["True True True"] * number


@pytest.mark.long  # a run: the test before
def test_comparisons_replications_and_what_ifs_need_neither_threads_nor_processes() -> None:
    program = f"""{LIKE_PYODIDE}
from simmodel import Cluster, Environment, compare, load_workload, replicate, simulate, what_if
print(len(compare(None, "lublin-128-week", ["easy", "fcfs"]).results))
print(replicate(simulate, 2, platform="hetsim-slow", workload="random:tasks=5", policy="heft")["makespan"].mean > 0)
cluster = Cluster(Environment(), 128)
cluster.replay(load_workload("lublin-128-week"))
cluster.env.run(until=40_000)
print(len(list(what_if(cluster.snapshot(), ["easy", "fcfs"]))) == 2)
"""
    assert printed(program).split() == ["2", "True", "True"]


STAND_IN = """
const post = async (path, value) => {
  const answer = await fetch(path, { method: "POST", body: JSON.stringify(value) });
  return await answer.json();
};
export const loadPyodide = async options => ({
  loadedPackages: { numpy: "", micropip: "" },
  loadPackage: names => post("/packages", names),
  pyimport: name => ({ install: { callKwargs: (names, how) => post("/packages", names) } }),
  runPythonAsync: text => post("/python", text),
  globals: { get: name => (...given) => post("/call", given) },
});
"""
"""A module that stands in for Pyodide: it has the Python of the page run by the server that the page comes from."""


class Server(ThreadingHTTPServer):
    """Serves the page and the stand-in, and runs Python for it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.packages: list[str] = []
        self.names: dict[str, Any] = {}


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        text, kind = (STAND_IN, "text/javascript") if self.path.endswith(".mjs") else (PAGE, "text/html")
        self.answer(text, kind)

    def do_POST(self) -> None:
        value = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        found = None
        if self.path == "/packages":
            self.server.packages += value
        elif self.path == "/python":
            exec(value, self.server.names)
        else:
            found = self.server.names["run"](*value)
        self.answer(json.dumps(found), "application/json")

    def answer(self, text: str, kind: str) -> None:
        data = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.mark.live
def test_the_script_of_the_page_installs_simulates_and_shows_the_page_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = shutil.which("chromium")
    if program is None:
        assert os.environ.get("SIMMODEL_NEED_BROWSER") != "1"
        pytest.skip("needs chromium in the path (.ci/schedulers installs it)")
    monkeypatch.chdir(tmp_path)
    with Server() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/docs/browser.html?pyodide=/stand-in/"
        options = ("--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=60000", "--dump-dom")
        done = run_in(tmp_path, program, *options, f"--user-data-dir={tmp_path / 'profile'}", address)
        server.shutdown()
    assert '<output class="">simulated in ' in done.stdout
    assert re.search(r'<iframe [^>]*src="blob:', done.stdout)
    assert "<title>easy</title>" in (tmp_path / "run.html").read_text("utf-8")
    assert {"numpy", "micropip", "simpy"} <= {*server.packages}
    assert server.packages[-1].endswith(f"/dist/simmodel-{__version__}-py3-none-any.whl")


UNDER_NODE = """
import {{ loadPyodide }} from {pyodide};
import fs from "node:fs";
const pyodide = await loadPyodide();
for (const file of {wheels}) {{
  const options = {{ extractDir: pyodide.runPython("import site; site.getsitepackages()[0]") }};
  pyodide.unpackArchive(new Uint8Array(fs.readFileSync(file)), "wheel", options);
}}
pyodide.globals.set("modules", {modules});
console.log(pyodide.runPython(`
import importlib, json
missing = []
for name in modules:
    try:
        importlib.import_module(name)
    except ImportError as error:
        missing.append(f"{{name}}: {{error}}")
json.dumps(missing)
`));
"""


@pytest.mark.long
def test_pyodide_under_node_lacks_nothing_but_its_numpy(tmp_path: Path) -> None:
    """All modules of Python that a simulation loads are there, and simmodel comes as far as NumPy."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("needs node and npm")
    got = run_in(tmp_path, "npm", "install", "--silent", "--no-save", "--prefix", tmp_path, f"pyodide@{PYODIDE}")
    if got.returncode:
        pytest.skip(f"npm cannot get pyodide {PYODIDE}: {got.stderr[-200:]}")
    pip = (sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", tmp_path / "wheels")
    others = ("simpy", "networkx", "attrs", "cattrs", "lazy_loader", "typing_extensions", "packaging")
    done = run_in(tmp_path, *pip, ROOT, *others)
    assert done.returncode == 0, done.stderr
    wheels = sorted(str(path) for path in (tmp_path / "wheels").glob("*.whl"))
    assert len(wheels) == 8
    loaded = f"{PYTHON}\nrun('lublin-128-week', 'easy', 1)\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))"
    modules = json.loads(printed(f"import os; os.chdir({str(tmp_path)!r})\n{loaded}"))
    own = [name for name in modules if name in sys.stdlib_module_names and name[0] != "_"]
    ours = [name for name in modules if name.partition(".")[0] == "simmodel"]
    script = tmp_path / "script.mjs"
    module = (tmp_path / "node_modules/pyodide/pyodide.mjs").as_uri()
    names = json.dumps([*own, *others, *ours])
    text = UNDER_NODE.format(pyodide=json.dumps(module), wheels=json.dumps(wheels), modules=names)
    script.write_text(text, "utf-8")
    done = run_in(tmp_path, "node", script)
    assert done.returncode == 0, done.stderr[-2000:]
    missing = [each for each in json.loads(done.stdout.splitlines()[-1]) if "No module named 'numpy'" not in each]
    assert len(own) > 60
    assert len(ours) > 60
    assert missing == []


def run_in(folder: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command], cwd=folder, env=environment(), capture_output=True, text=True, timeout=300
    )
