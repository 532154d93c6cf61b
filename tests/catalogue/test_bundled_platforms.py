"""Bundled platforms: each loads by its name, and agrees with its log."""

import gzip

import pytest

from simmodel.catalogue import load_platform
from simmodel.catalogue.platforms import platform_names
from simmodel.formats.swf import read_swf
from simmodel.foundation.errors import InputError, unknown
from simmodel.platform import from_dict, to_dict, write_toml
from simmodel.platform.cluster import ClusterSpec
from simmodel.runs.scenario import simulate
from simmodel.work.job import Job
from tests.helpers.data_files import data_file

PROCESSORS = {
    "burst-buffer": 2388 + 9688,
    "frontier": 9472 * 64,
    "gpu-cluster": 8 * 32 + 16 * 64,
    "kth-sp2": 100,
    "polaris": 552,
    "ricc": 8192,
    "sdsc-blue": 1152,
    "sdsc-sp2": 128,
    "small": 16,
    "theta": 4360,
    "unilu-gaia": 2004,
}
LOGS = {
    "kth-sp2": "KTH-SP2-1996-2.1-cln",
    "ricc": "RICC-2010-2",
    "sdsc-blue": "SDSC-BLUE-2000-4-filtered",
    "sdsc-sp2": "SDSC-SP2-1998-4-filtered",
    "theta": "theta_2022",
    "unilu-gaia": "UniLu-Gaia-2014-2",
}


def test_every_ready_platform_is_tested():
    assert set(PROCESSORS) <= set(platform_names())


@pytest.mark.parametrize("name", platform_names())
def test_ready_platforms_say_what_they_are(name):
    spec = load_platform(name)
    assert spec.name == name
    assert spec.description
    assert spec.source
    assert from_dict(to_dict(spec)) == spec


@pytest.mark.parametrize("name", PROCESSORS)
def test_ready_platforms_have_their_processors(name):
    assert load_platform(name).processors == PROCESSORS[name]


@pytest.mark.parametrize("name", LOGS)
def test_ready_platforms_agree_with_their_logs(name, tmp_path):
    # The header suffices; reading the jobs of the largest log would take seconds.
    with gzip.open(data_file(f"swf/{LOGS[name]}.swf.gz"), "rt", encoding="latin-1") as log:
        header = [line for _, line in zip(range(60), log, strict=False) if line.startswith(";")]
    (tmp_path / "header.swf").write_text("".join(header) + "1 0 0 1 1 -1 -1 1 1 -1 1 1 1 -1 1 -1 -1 -1\n")
    assert load_platform(name).processors == read_swf(tmp_path / "header.swf").processors


def test_gaia_has_the_queues_of_its_log():
    queues = {queue.name: queue for queue in load_platform("unilu-gaia").queues}
    assert set(queues) == {"0", "1", "2"}
    assert queues["2"].preemptible == "requeue"
    assert queues["0"].preempts == queues["1"].preempts == ("2",)
    assert queues["2"].priority < queues["1"].priority == queues["0"].priority


def test_jobs_of_gaias_default_queue_preempt_besteffort_ones():
    gaia = load_platform("unilu-gaia").with_processors(4)
    jobs = [
        Job(processors=4, run=100, requested=100, queue="2"),
        Job(submit=10, processors=2, run=20, requested=20, queue="1"),
    ]
    result = simulate(gaia, jobs, "preemptive")
    assert sorted(result.runs["start"]) == [0, 10, 30]
    assert result.jobs["end"].tolist() == [130, 30]
    assert sorted(result.runs["status"]) == ["completed", "completed", "preempted"]


def test_gpu_cluster_says_what_it_has():
    spec = load_platform("gpu-cluster")
    cpu, gpu = spec.partition("cpu").nodes[0], spec.partition("gpu").nodes[0]
    assert (cpu.count, cpu.cores, cpu.gpus, cpu.memory) == (16, 64, 0, 512e9)
    assert (gpu.count, gpu.cores, gpu.gpus, gpu.memory) == (8, 32, 4, 256e9)
    assert not any(partition.exclusive for partition in spec.partitions)
    assert all(0 < node.idle_power < node.load_power for node in (cpu, gpu))
    assert spec.consumables
    for outage in spec.outages:
        assert outage.kind == "maintenance"
        assert len(outage.nodes) == sum(node.count for node in spec.partition(outage.partition).nodes)


def test_platforms_by_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_toml(ClusterSpec.simple(7), "mine.toml")
    write_toml(ClusterSpec.simple(8), "mine")
    assert load_platform("mine.toml").processors == 7
    assert load_platform(tmp_path / "mine.toml").processors == 7
    assert load_platform("mine").processors == 8
    with pytest.raises(InputError, match=r"other\.toml: no such file"):
        load_platform("other.toml")


def test_unknown_platforms():
    with pytest.raises(InputError, match=r"^unknown platform 'ktsp2'; did you mean 'kth-sp2'\? Known .*theta"):
        load_platform("ktsp2")
    assert str(unknown("platform", "zzz", ["a", "b"])) == "unknown platform 'zzz'; known platforms: a, b"
