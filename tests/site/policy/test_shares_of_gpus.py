"""What the site's side does not know of GPUs, it refuses in one sentence: shares and types of one."""

import pytest

from simmodel import Cluster, Environment, InputError, Job, simulate
from simmodel.platform import ClusterSpec, NodeSpec, PartitionSpec
from simmodel_site.twin.sources.log import request_of


def cluster(gpus):
    return ClusterSpec(partitions=[PartitionSpec(nodes=[NodeSpec(cores=8, gpus=gpus)])])


SHARED = [
    (cluster(2), Job(nodes=1, gpus_per_node=0.6, run=100)),
    (cluster({"A100": 2}), Job(nodes=1, gpus_per_node=1, gpu="A100", run=100)),
]


@pytest.mark.parametrize(("spec", "job"), SHARED, ids=["share", "type"])
def test_policy_slurm_and_twins_know_whole_gpus_alone(spec, job):
    with pytest.raises(InputError, match="policy slurm knows whole GPUs alone"):
        simulate(spec, [job], "slurm")
    with pytest.raises(InputError, match="a twin knows whole GPUs alone"):
        request_of(Cluster(Environment(), spec).submit(job))


def test_whole_gpus_are_known():
    job = Job(nodes=1, gpus_per_node=2, run=100)
    assert simulate(cluster(2), [job] * 2, "slurm").jobs["start"].max() >= 100
    assert request_of(Cluster(Environment(), cluster(2)).submit(job)).gpus_per_node == 2
