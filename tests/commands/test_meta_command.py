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


@pytest.fixture
def by_hand(folder):
    """The logs and clusters of the hand-worked case in tests/studies/test_metascheduling.py."""
    (folder / "at-polaris.csv").write_text("submit,run,processors,gpus_per_node\n0,100,4,4\n3,10,4,0\n")
    (folder / "at-theta.csv").write_text("submit,run,processors\n0,40,8\n2,400,4\n")
    (folder / "polaris.toml").write_text(
        'kind = "cluster"\nname = "polaris"\n[[partitions]]\n[[partitions.nodes]]\ncount = 4\ngpus = 4\n'
    )
    (folder / "theta.toml").write_text('kind = "cluster"\nname = "theta"\n[[partitions]]\nprocessors = 8\n')
    return ["meta", "at-polaris.csv", "at-theta.csv", "--clusters", "polaris.toml,theta.toml", "--broker", "sgs-t"]


def test_slowdowns_by_origin(by_hand, folder) -> None:
    ends = {}
    for given in (["polaris:1,4", "theta:0.25,1"], ["1,4", "theta:0.25,1"], ["theta: 0.25, 1", "1,4"]):
        slowdowns = [word for each in given for word in ("--slowdowns", each)]
        assert main([*by_hand, *slowdowns, "--schedule", "out.csv"]) == 0
        rows = [line.split(",") for line in (folder / "out.csv").read_text().splitlines()]
        end, where = rows[0].index("end"), rows[0].index("destination")
        ends[tuple(given)] = [(row[0], float(row[end]), row[where]) for row in rows[1:]]
    first = [("polaris:1", 100, "polaris"), ("polaris:2", 80, "theta"), ("theta:1", 40, "theta")]
    assert [sorted(each) for each in ends.values()] == [[*first, ("theta:2", 200, "polaris")]] * 3


@pytest.mark.parametrize(
    ("slowdowns", "sentence"),
    [
        (["mira:1,4"], "--slowdowns: origin 'mira': must be one of polaris, theta"),
        (["polaris:1"], "--slowdowns polaris: must have 2 numbers, one per cluster, got 1"),
        (["polaris:1,x"], "--slowdowns: must be numbers > 0, got 'x'"),
        (["polaris:"], "--slowdowns polaris: must be a list separated by commas, got ''"),
        (["polaris:1,4", "polaris:1,2"], "--slowdowns polaris: must be given once, got 'polaris:1,2' too"),
        (["1,4", "1,2"], "--slowdowns: must be given once, got '1,2' too"),
        (["polaris:1,0"], "must be a finite number > 0, got 0.0"),
    ],
)
def test_wrong_slowdowns_by_origin_are_one_sentence(by_hand, capsys, slowdowns, sentence) -> None:
    assert main([*by_hand, *[word for each in slowdowns for word in ("--slowdowns", each)]]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert len(error.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["one.swf", "--clusters", "4,x"], "unknown platform 'x'"),
        (["one.swf", "--clusters", "4,hetsim-slow"], "places: must all run jobs or all run tasks"),
        (["one.swf", "--clusters", ","], "--clusters: must be a list separated by commas, got ','"),
        (["one.swf", "--clusters", "4,4", "--slowdowns", "1"], "slowdowns: must have 2 numbers, one per place, got 1"),
        (["one.swf", "--clusters", "4,4", "--slowdowns", "1,y"], "--slowdowns: must be numbers > 0, got 'y'"),
        (["one.swf", "--clusters", "4,4", "--slowdowns", "c1:1,2"], "one log for all clusters has no origins"),
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
