"""Brokers side by side: the command, its tables, and the experiment of the CQSim+ papers."""

import json

import numpy as np
import pytest

from simmodel.cli import main
from simmodel.errors import InputError
from simmodel.experiments.broker_comparison import compare_brokers, inner_jobs
from simmodel.formats.swf import read_swf
from simmodel.generators.lublin_feitelson import lublin
from simmodel.metrics.tables import text_table
from simmodel.policies.mapping import RoundRobin
from simmodel.studies.metascheduling import CQSIM, PAPER, SETUPS, broker_study, fitting
from simmodel.work.job import Job
from simmodel.work.transformations import scale_load
from simmodel.work.workload import Workload
from tests.helpers.data_files import data_file

LINE = "{} {} -1 {} {} -1 -1 {} {} -1 1 1 -1 -1 -1 -1 -1 -1"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, begin in (("one", 0), ("two", 1000)):
        jobs = [(begin + 5 * i, 100 + i, 1 + i % 4) for i in range(40)]
        lines = [LINE.format(i, submit, run, n, n, 2 * run) for i, (submit, run, n) in enumerate(jobs, 1)]
        (tmp_path / f"{name}.swf").write_text("\n".join(["; MaxProcs: 4", *lines]) + "\n")
    return tmp_path


# ---------------------------------------------------------------------- the command


def test_one_log_on_two_clusters_under_two_brokers(folder, capsys) -> None:
    pytest.importorskip("matplotlib").use("agg")
    files = ["--json", "out.json", "--plot", "out.png", "--schedule", "out.csv"]
    options = ["--clusters", "4,4", "--slowdowns", "1,1.3", "--broker", "share(0.6),sgs-t", "--repeat", "3"]
    assert main(["meta", "one.swf", *options, "--edges", "5", *files]) == 0
    out = capsys.readouterr().out
    assert "one on 2 clusters under share(0.6), sgs-t" in out
    assert "mean wait (min) by processors" in out
    assert "mean wait (min) by time asked for" in out
    document = json.loads((folder / "out.json").read_text())
    assert [len(document["brokers"][name]["mean_wait_min"]) for name in ("share(0.6)", "sgs-t")] == [3, 1]
    assert document["mean_wait_min_by"]["processors"][-1]["jobs"] == 30
    assert document["brokers"]["sgs-t"]["scenario"]["workload"] == [{"source": "one.swf"}]
    assert (folder / "out.png").stat().st_size > 10_000
    head = (folder / "out.csv").read_text().splitlines()[0]
    assert head.startswith("job,submit,start,end,processors,status")
    assert "origin,destination,asked,slowdown" in head


def test_several_logs_have_their_homes(folder, capsys) -> None:
    arguments = ["meta", "one.swf", "two.swf", "--clusters", "4,8", "--broker", "siloed,sgs-t", "--ties", "home"]
    assert main([*arguments, "--align", "--by", "actual", "--backfill", "conservative"]) == 0
    out = capsys.readouterr().out
    assert "sgs-t: who went where (min)" in out
    assert "sgs-t: turnaround of moved jobs (min)" in out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["one.swf", "--clusters", "4,x"], "platform 'x' is not known"),
        (["one.swf", "--clusters", "4,hetsim-slow"], "places that all run jobs, or tasks, expected"),
        (["one.swf", "--clusters", ","], "--clusters: a list with commas expected, found ','"),
        (["one.swf", "--clusters", "4,4", "--slowdowns", "1"], "2 slowdowns expected, one a place, found 1"),
        (["one.swf", "--clusters", "4,4", "--slowdowns", "1,y"], "--slowdowns: a number > 0 expected, found 'y'"),
        (["one.swf", "--clusters", "4,4", "--broker", "best"], "policy 'best' is not known"),
        (["one.swf", "--clusters", "4,4", "--broker", "siloed"], "a home cluster of each job expected"),
        (["one.swf", "--clusters", "4,4", "--edges", "20"], "more than 40 jobs expected, 20 at either end uncounted"),
        (["one.swf", "two.swf", "--clusters", "4"], "at most 1 workloads expected, one a place, found 2"),
        (["no.swf", "--clusters", "4,4"], "no.swf"),
        (["one.swf", "--clusters", "4,4", "--broker", "random,random"], "two brokers are called 'random'"),
    ],
)
def test_wrong_arguments_are_one_sentence(folder, capsys, arguments, sentence) -> None:
    assert main(["meta", *arguments]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert len(error.strip().splitlines()) == 1


def test_clusters_are_ready_platforms_and_files_too(folder, capsys) -> None:
    (folder / "mine.toml").write_text('kind = "cluster"\nname = "mine"\n[[partitions]]\nprocessors = 6\n')
    assert main(["meta", "one.swf", "--clusters", "4,theta,mine.toml"]) == 0
    out = capsys.readouterr().out
    assert " 4,360 " in out or " 4360 " in out
    assert " 6 " in out


def test_queues_of_another_machine_are_left_out_and_counted(folder, capsys) -> None:
    (folder / "q.csv").write_text("submit,run,processors,queue\n0,10,1,old\n0,10,1,fast\n0,10,1,older\n")
    (folder / "mine.toml").write_text(
        'kind = "cluster"\nname = "mine"\n[[partitions]]\nprocessors = 6\n[[queues]]\nname = "fast"\n'
    )
    assert main(["meta", "q.csv", "--clusters", "mine.toml,mine.toml", "--broker", "round-robin"]) == 0
    out = capsys.readouterr().out
    assert "repaired 2 (queue that the platform does not have: left out 2)" in out
    assert "rejected" not in out


# ---------------------------------------------------------------------- side by side


def test_brokers_that_draw_are_repeated_and_the_others_are_not() -> None:
    log = scale_load(lublin(120, 16, seed=2), to=3)
    found = compare_brokers([16, 16], log, {"chance": "random", "turns": RoundRobin(), "best": "sgs-t"}, repeat=4)
    assert [len(found.waits(label)) for label in found.results] == [4, 1, 1]
    assert found.interval("best") is None
    interval = found.interval("chance")
    assert interval is not None
    assert interval.mean == pytest.approx(found.waits("chance").mean())
    table = found.by("processors")
    assert table["chance error"][-1] == pytest.approx(interval.half_width)
    assert table["best error"][-1] == 0
    assert table["change"][-1] == pytest.approx(table["best"][-1] / table["chance"][-1] - 1)
    assert table["jobs"][-1] == 120
    assert found["best"].name == "best"
    tied = compare_brokers([16, 16], log, {"random": "random", "sgs-t": "sgs-t(ties=random)"}, repeat=2)
    assert [len(tied.waits(label)) for label in tied.results] == [2, 2]
    assert tied.by("walltime")["jobs"][-1] == 120
    own = compare_brokers([16, 16], log, ["sgs-t"], bins={"processors": [0, 4, 16]})
    assert own.by("processors")["bin"].tolist()[:2] == ["(0,4]", "(4,16]"]


def test_wrong_comparisons_are_refused() -> None:
    jobs = [Job(run=1)]
    with pytest.raises(InputError, match="a list of brokers expected, found 'random'"):
        compare_brokers([4, 4], jobs, "random")
    with pytest.raises(InputError, match="at least one broker expected"):
        compare_brokers([4, 4], jobs, [])
    with pytest.raises(InputError, match="at least one run expected"):
        compare_brokers([4, 4], jobs, ["random"], repeat=[])


def test_edges_are_taken_off_what_can_run() -> None:
    log = Workload({"submit": [0, 1, 2, 3, 4], "run": [1] * 5, "processors": [1, 9, 1, 1, 1]})
    found = compare_brokers([4, 4], log, ["sgs-t"], edges=1)
    assert found["sgs-t"].jobs["submit"].tolist() == [2, 3]
    assert inner_jobs(found["sgs-t"], 0) is found["sgs-t"]


def test_text_tables_stand_in_columns() -> None:
    assert text_table([["a", "n"], ["longer", "1"]], indent=2) == ["  a       n", "  longer  1"]


# ---------------------------------------------------------------------- the papers


def test_the_contest_has_the_tables_of_the_paper() -> None:
    log = lublin(300, 2180, seed=1)
    found = broker_study(log, "slower", 3, edges=20)
    assert found.comparison.by("processors")["jobs"][-1] == 260
    assert {"paper share(0.6)", "paper sgs-t", "paper change"} <= {*found.sizes.names}
    assert found.sizes["paper sgs-t"][-1] == 681.7
    assert "(928.6" in found.summary()
    assert found.walltimes["jobs"][-1] == 260
    fewer = broker_study(log, SETUPS["equal"], 2, edges=20, simulate_edges=False, policy="conservative")
    assert fewer.comparison.by("processors")["jobs"][-1] == 260
    with pytest.raises(InputError, match="a setup expected \\(equal, slower\\), found 'other'"):
        broker_study(log, "other")


def theta() -> Workload:
    log = fitting(read_swf(data_file("swf/theta_2022.swf.gz")))
    assert len(log) == 23_722
    return log


def test_the_slower_cluster_gives_each_figure_of_the_paper_for_sgs_t() -> None:
    """With EASY, CQSim's rules and estimates by actual run times: to the last digit, in each bin of the table."""
    found = compare_brokers([2180, 2180], theta(), ["sgs-t"], edges=1000, slowdowns=(1, 1.3), **CQSIM)
    table = found.by("processors")
    assert table["jobs"].tolist() == [12_133, 4841, 1881, 2438, 429, 21_722]
    figures = {name: wait[1] for name, wait in PAPER["slower"].items()}
    assert dict(zip(table["bin"].tolist(), np.round(table["sgs-t"], 1).tolist(), strict=True)) == figures
    assert found.by("walltime")["jobs"].tolist() == [2344, 5344, 1662, 7918, 2865, 992, 597, 21_722]


def test_equal_clusters_come_within_a_hundredth_of_the_paper() -> None:
    """Ties between equal clusters go to the first here; what the paper's broker does there is not said."""
    wait = compare_brokers([2180, 2180], theta(), ["sgs-t"], edges=1000, **CQSIM).waits("sgs-t")[0]
    assert wait == pytest.approx(PAPER["equal"]["all"][1], rel=0.01)
