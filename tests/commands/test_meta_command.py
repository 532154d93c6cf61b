"""The command meta: its tables and files, and one sentence for each invalid input."""

import json

import pytest

from simmodel.cli import main

LINE = "{} {} -1 {} {} -1 -1 {} {} -1 1 1 -1 -1 -1 -1 -1 -1"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, begin in (("one", 0), ("two", 1000)):
        jobs = [(begin + 5 * i, 100 + i, 1 + i % 4) for i in range(40)]
        lines = [LINE.format(i, submit, run, n, n, 2 * run) for i, (submit, run, n) in enumerate(jobs, 1)]
        (tmp_path / f"{name}.swf").write_text("\n".join(["; MaxProcs: 4", *lines]) + "\n")
    return tmp_path


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
    assert "sgs-t: jobs by home and destination (min)" in out
    assert "sgs-t: turnaround of moved jobs (min)" in out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["one.swf", "--clusters", "4,x"], "unknown platform 'x'"),
        (["one.swf", "--clusters", "4,hetsim-slow"], "places: must all run jobs or all run tasks"),
        (["one.swf", "--clusters", ","], "--clusters: must be a list separated by commas, got ','"),
        (["one.swf", "--clusters", "4,4", "--slowdowns", "1"], "slowdowns: must have 2 numbers, one per place, got 1"),
        (["one.swf", "--clusters", "4,4", "--slowdowns", "1,y"], "--slowdowns: must be numbers > 0, got 'y'"),
        (["one.swf", "--clusters", "4,4", "--broker", "best"], "unknown policy 'best'"),
        (["one.swf", "--clusters", "4,4", "--broker", "siloed"], "home: must be given for each job"),
        (["one.swf", "--clusters", "4,4", "--edges", "20"], "edges: must be less than half the number of jobs"),
        (["one.swf", "two.swf", "--clusters", "4"], "workloads: must be at most 1, one per place, got 2"),
        (["no.swf", "--clusters", "4,4"], "no.swf"),
        (["one.swf", "--clusters", "4,4", "--broker", "random,random"], "duplicate broker 'random'"),
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
    assert "repaired 2 (queue not on the platform: ignored 2)" in out
    assert "rejected" not in out
