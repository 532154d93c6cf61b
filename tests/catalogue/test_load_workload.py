"""Workloads by name and by file: all bundled ones load, all formats are detected from ending or content."""

import ast
import gzip
from pathlib import Path

import numpy as np
import pytest

from simmodel import formats
from simmodel.catalogue import bundled_names, load_workload
from simmodel.catalogue.bundled import bundled_file, bundled_folder
from simmodel.catalogue.formats import FORMATS, WORKFLOW_FORMATS
from simmodel.catalogue.tasks import task_names
from simmodel.formats.swf import read_swf, write_swf
from simmodel.foundation.errors import InputError
from simmodel.generators.settings import GENERATORS, generate
from simmodel.work.transformations import offered_load
from tests.helpers.data_files import data_file
from tests.helpers.package_imports import MODULES, parsed

# name: jobs, processors, offered load
READY = {
    "lublin-1024": (50_000, 1024, 0.85),
    "lublin-128-week": (600, 128, 0.8),
    "lublin-256": (5000, 256, 0.9),
    "poisson-mm4": (20_000, 4, 0.8),
    "polaris-like": (26_266, 552, 0.824),
    "probe-4": (4, 12, 0.78),
    "schedtwin": (150, 32, 19.76),
}

SWF = "1 0 -1 100 5 -1 -1 5 120 -1 1 7 -1 -1 -1 -1 -1 -1\n"
GWF = "\t".join(["1", "0", "-1", "100", "5", *["-1"] * 24]) + "\n"
SACCT = "JobID|Submit|Elapsed|NCPUS\n1|0|100|5\n"
PBS = "05/01/2024 12:00:00;E;1.s;ctime=0 start=0 end=100 Resource_List.ncpus=5 Exit_status=0\n"
CSV = "submit,run,processors\n0,100,5\n"
TOML = 'generator = "listed"\n[parameters]\njobs = { submit = [0], run = [100], processors = [5] }\n'
CGSIM = "pandaid,creationtime,cpuconsumptiontime,computingsite,corecount\n1,0,100,BNL,5\n"
OPENB = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\np,5,0,0,0,0,100,0\n"
BATSIM = """{"nb_res": 8,
    "jobs": [{"id": 0, "subtime": 0, "res": 5, "profile": "d", "walltime": 200}],
    "profiles": {"d": {"type": "delay", "delay": 100}}}"""
HELIOS = (
    "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
    "1,u,v,0,5,1,COMPLETED,0,0,100,100,0\n"
)
TIRESIAS = "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n0,5,0,606,vgg19,100,30\n"
PHILLY = """[{"status": "Pass", "vc": "v", "jobid": "a", "user": "u", "submitted_time": "1970-01-01 00:00:00",
    "attempts": [{"start_time": "1970-01-01 00:00:00", "end_time": "1970-01-01 00:01:40",
    "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1", "gpu2", "gpu3", "gpu4"]}]}]}]"""
GAVEL = "LM\tpython3 main.py\t--steps\t1\t500\t0.0\t5\n"
CONTENT = {
    "swf": SWF,
    "gwf": GWF,
    "sacct": SACCT,
    "cgsim": CGSIM,
    "pbs": PBS,
    "openb": OPENB,
    "helios": HELIOS,
    "tiresias": TIRESIAS,
    "gavel": GAVEL,
    "philly": PHILLY,
    "batsim": BATSIM,
    "csv": CSV,
    "toml": TOML,
}
"""An example of each format: one job at 0, which runs for 100 s on 5 processors."""


def readers() -> dict[str, str]:
    """Return the readers of workloads and workflows in simmodel/formats, and the module of each."""
    return {
        node.name: name.removeprefix("simmodel.formats")
        for name, path in MODULES.items()
        if name.startswith("simmodel.formats.")
        for node in parsed(path).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("read_") and node.returns is not None
        if ast.unparse(node.returns) in ("Workload", "Workflow")
    }


def test_every_reader_of_work_is_registered():
    registered = {each.read.__name__ for each in (*FORMATS.values(), *WORKFLOW_FORMATS.values())}
    lacking = [
        f"{name}: add a Format to FORMATS, or to WORKFLOW_FORMATS, in simmodel/catalogue/formats.py"
        for name in readers().keys() - registered
    ]
    lacking += [
        f"{name}: add `from {module} import {name} as {name}` to simmodel/formats/__init__.pyi"
        for name, module in readers().items()
        if name not in formats.__all__
    ]
    lacking += [f"{name}: add an example of it to CONTENT in this file" for name in FORMATS.keys() - CONTENT.keys()]
    assert lacking == [], "\n".join(lacking)


@pytest.mark.few(4)
@pytest.mark.parametrize("name", sorted(READY))
def test_every_ready_workload_loads(name, tmp_path):
    workload = load_workload(name)
    jobs, processors, load = READY[name]
    assert (len(workload), workload.processors, workload.name) == (jobs, processors, name)
    assert offered_load(workload) == pytest.approx(load, abs=0.005)
    assert (np.diff(workload["submit"]) >= 0).all()
    assert (workload["run"] >= 0).all()
    assert (workload["requested"] >= workload["run"]).all()
    assert workload["processors"].max() <= processors
    assert {"Note", "Description", "Source"} <= set(workload.header)
    assert (load_workload(name)["submit"] == workload["submit"]).all()
    write_swf(workload, tmp_path / "copy.swf")
    copy = read_swf(tmp_path / "copy.swf")
    assert (copy["submit"] == workload["submit"]).all()
    assert (copy["requested"] == workload["requested"]).all()


def test_the_ready_names_are_those_tested_here():
    assert bundled_names("workloads") == sorted([*READY, *task_names(), "tiers-30-day"])
    assert bundled_names("no such kind") == []
    assert bundled_file("workloads", "probe-4").name == "probe-4.toml"
    assert sum(path.stat().st_size for path in bundled_folder("workloads").iterdir()) < 150_000


def test_another_seed_gives_another_workload():
    assert (load_workload("lublin-256", seed=9)["run"] != load_workload("lublin-256")["run"]).any()


@pytest.mark.parametrize("name", sorted(CONTENT.keys() & FORMATS.keys()))
@pytest.mark.parametrize("seen_by", ["ending", "content", "gzip content", "format"])
def test_formats_are_seen(name, seen_by, tmp_path):
    own = (FORMATS[name].endings or (".json",))[0]  # the ending of several formats says nothing of one
    ending = own if seen_by == "ending" else ".txt" if seen_by == "content" else ""
    path = tmp_path / f"log{ending}"
    data = CONTENT[name].encode()
    if seen_by == "gzip content" and name != "toml":  # settings are not compressed
        data = gzip.compress(data, mtime=0)
    path.write_bytes(data)
    speeds = {"throughputs": {"LM": 5.0}} if name == "gavel" else {}
    workload = load_workload(path, format=name if seen_by == "format" else None, **speeds)
    assert (workload["submit"][0], workload["run"][0], workload["processors"][0]) == (0, 100, 5)


@pytest.mark.long  # formats by path: tests/formats
def test_real_logs_by_path():
    path = data_file("swf/theta_1000.swf.gz")
    assert load_workload(str(path)).processors == 4360
    assert len(load_workload(data_file("gwf/LCG-2005-1-first40000.converted.gwf.gz"))) == 40000


def test_a_folder_holds_the_logs_of_days(tmp_path):
    (tmp_path / "20240501").write_text(PBS)
    assert len(load_workload(tmp_path)) == 1


def test_another_folder_is_not_read_as_logs(tmp_path):
    for folder in (tmp_path, tmp_path / "log.swf", tmp_path / "two"):
        folder.mkdir(exist_ok=True)
    (tmp_path / "two" / "readme.txt").write_text("two logs\n")
    (tmp_path / "two" / "picture.png").write_bytes(b"\x89PNG\0")
    for folder in (tmp_path, tmp_path / "log.swf", tmp_path / "two"):
        with pytest.raises(InputError, match=r"must be a file or a folder of PBS accounting logs, got another folder"):
            load_workload(folder)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("lublin-265", "unknown workload 'lublin-265'; did you mean 'lublin-256'? Known workloads: lublin-1024,"),
        ("zzz", "unknown workload 'zzz'; known workloads: "),
        ("none.swf", "none.swf: no such file"),
        ("some/where", "where: no such file"),
        (Path("zzz"), "zzz: no such file"),
    ],
)
def test_unknown_names_and_missing_files_are_named(given, sentence):
    with pytest.raises(InputError) as caught:
        load_workload(given)
    assert sentence in str(caught.value)


PARSABLE = "; of Slurm's commands the output of sacct --parsable2 with its header is read"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", f"in one of the formats {', '.join(FORMATS)}, or a workflow in one of dax, "),
        (b"", ", got an empty file"),
        (
            b'{"meta": {}, "jobs": [{"job_id": 7}]}',
            PARSABLE,
        ),
        (
            b"JobID      Submit    Elapsed\n---------- --------- ----------\n1          2024-01-01T08:00:00 00:10:00\n",
            PARSABLE,
        ),
        (b"7_[1-4]|2024-01-01T08:00:00|00:10:00|\n", PARSABLE),
        (b"# Read me\n\ntext\n", "got '# Read me'"),
        (b"\x7fELF\0", "must be text, got binary data"),
        (b"\x1f\x8b\x08garbage", "corrupt gzip file"),
    ],
    ids=[
        "empty",
        "still empty",
        "squeue --json",
        "columns of a fixed width",
        "no header",
        "markdown",
        "binary",
        "false gzip",
    ],
)
def test_content_of_no_format(content, sentence, tmp_path):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_workload(tmp_path / "file")
    assert sentence in str(caught.value)


def test_options_go_to_the_reader(tmp_path):
    (tmp_path / "log.swf").write_text(SWF + "1 2 3\n" + SWF)
    assert len(load_workload(tmp_path / "log.swf", strict=False)) == 2
    with pytest.raises(InputError, match=r"unknown option of the reader: .*zone"):
        load_workload(tmp_path / "log.swf", zone="x")
    with pytest.raises(InputError, match="unknown format 'sfw'; did you mean 'swf'"):
        load_workload(tmp_path / "log.swf", format="sfw")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({}, "missing key 'generator'"),
        ({"generator": "tasks"}, "generator: 'tasks' generates tasks for a machine, not jobs"),
        ({"generator": "lublin", "sede": 1}, "sede: unknown key 'sede'; did you mean 'seed'"),
        ({"generator": "lublin", "parameters": {"job": 1}}, "parameters.job: unknown key"),
        ({"generator": "lublin", "parameters": {"jobs": 0}}, "parameters: jobs: must be >= 1, got 0"),
        ({"generator": "lublin", "parameters": {"jobs": 5, "classes": ["x"]}}, "classes: must be one of batch"),
        ({"generator": "lublin", "parameters": {}}, "parameters: "),
        ({"generator": "lublin", "parameters": {"jobs": 5}, "load": {"too": 1}}, "load.too: unknown key"),
        ({"generator": "lublin", "parameters": {"jobs": 5}, "load": {"to": -1}}, "load: to: must be a finite number"),
        ({"generator": "lublin", "parameters": {"jobs": 50}, "estimates": {"maximum": 1}}, "maximum: must be at least"),
        ({"generator": "synthetic", "parameters": {"jobs": 5, "gap": {"distribution": "x"}, "run": 1}}, "parameters: "),
        ({"generator": "listed", "parameters": {"jobs": {"submit": [1], "when": [1]}}}, "parameters.jobs.when: "),
        ({"generator": "lublin", "parameters": {"jobs": 5}, "gpus": {"shares": 1}}, "gpus.shares: unknown key"),
        ({"generator": "lublin", "parameters": {"jobs": 5}, "gpus": {}}, "gpus: "),
        ({"generator": "lublin", "parameters": {"jobs": 5}, "gpus": {"share": 2}}, "gpus.share: must be a share from"),
        (
            {"generator": "lublin", "parameters": {"jobs": 5}, "gpus": {"share": 1, "per_node": 0}},
            "gpus.per_node: must be a whole number >= 1, got 0",
        ),
    ],
)  # fmt: skip
def test_wrong_settings_get_one_sentence(settings, sentence):
    with pytest.raises(InputError) as caught:
        generate(settings, source="my.toml")
    assert str(caught.value).startswith("my.toml")
    assert sentence in str(caught.value)


def test_settings_that_change_a_class():
    few = {"base": "batch", "serial": 0.9, "power_of_two": 0.1}
    workload = generate({"generator": "lublin", "parameters": {"jobs": 2000, "classes": [few]}})
    assert (workload["processors"] == 1).mean() == pytest.approx(0.9, abs=0.03)
    assert list(GENERATORS) == ["lublin", "synthetic", "schedtwin", "tiered-grid", "listed"]


def test_a_share_of_the_jobs_requests_gpus():
    settings = {"generator": "lublin", "parameters": {"jobs": 2000}, "estimates": {}}
    plain, some = generate(settings), generate(settings | {"gpus": {"share": 0.3, "per_node": 2}})
    assert all((plain[name] == some[name]).all() for name in plain.table.names)
    assert set(some["gpus_per_node"].tolist()) == {0, 2}
    assert (some["gpus_per_node"] > 0).mean() == pytest.approx(0.3, abs=0.03)


def test_a_settings_file_that_is_no_toml(tmp_path):
    (tmp_path / "x.toml").write_text("generator = \n")
    with pytest.raises(InputError, match=r"x\.toml, line 1: invalid TOML"):
        load_workload(tmp_path / "x.toml")
