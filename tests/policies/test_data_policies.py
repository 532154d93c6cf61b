"""Data policies by hand."""

import pytest

from simmodel import Environment, Job
from simmodel.foundation.errors import InputError, PolicyError
from simmodel.platform import FileSpec, GridSpec, LinkSpec, NetworkSpec, SiteSpec, StorageSpec
from simmodel.policies import Transfers
from simmodel.policies.data import Prefetch, Replicate, Subscribe, Timed
from simmodel.scheduling.protocol import Evict, Transfer, WakeAt
from simmodel.systems import Grid
from simmodel.work import File

LINKS = [LinkSpec(name=a + b, bandwidth=10, between=(a, b)) for a, b in ("ab", "bc", "ac")]
FILES = [FileSpec(name="x", size=100, sites=["a"]), FileSpec(name="y", size=50, sites=["a", "b"])]


class Sent:
    """Keeps the transfers that start, with their instants, and the files that go."""

    def __init__(self, env):
        self.env, self.transfers, self.dropped = env, [], []
        env.observe(self)

    def file_transfer_started(self, fetch):
        self.transfers.append((self.env.now, fetch.file, fetch.source.name, fetch.site.name))

    def file_dropped(self, storage, file, size, cause):
        self.dropped.append((self.env.now, file, storage.name, cause))


def three(data="nearest", policy="round-robin", files=FILES, **options):
    sites = [SiteSpec(name=name, cores=4, storage=StorageSpec(), **options) for name in "abc"]
    grid = Grid(Environment(), GridSpec(sites=sites, network=NetworkSpec(links=LINKS), files=files), policy, data=data)
    return grid, Sent(grid.env)


def test_a_list_of_transfers_is_carried_out_one_at_each_instant():
    """As testing.db: a transfer every 10,000 s."""
    grid, sent = three(Timed(Transfers([("x", "a", "b"), ("x", "b", "c"), ("y", None, "c")]), 10_000, 1e6, 10_000))
    grid.env.run(until=100_000)
    assert sent.transfers == [(10_000, "x", "a", "b"), (20_000, "x", "b", "c"), (30_000, "y", "a", "c")]


def test_timed_policies_end():
    grid, sent = three(Timed(Transfers([("x", "a", "b"), ("x", "b", "c")]), 5, 14, 10))
    grid.env.run()
    assert sent.transfers == [(5, "x", "a", "b")]


def test_a_data_policy_is_asked_once_the_broker_has_decided():
    asked = []

    def looks(view):
        asked.append((view.now, len(view.waiting), [site.name for _, site in view.assigned]))
        yield from ()

    grid, _ = three(looks, "siloed", staging="inside")
    for _ in range(2):
        grid.submit(Job(processors=4, run=100), home="b")
    grid.env.run()
    assert asked[0] == (0, 0, ["b", "b"])


def test_prefetching_brings_inputs_while_a_job_waits_for_its_cores():
    done = {}
    for data in ("nearest", "prefetch"):
        grid, _ = three(data, "siloed", staging="inside")
        grid.submit(Job(processors=4, run=100), home="b")
        grid.submit(Job(processors=4, run=10, inputs=["x"]), home="b")
        grid.env.run()
        done[data] = grid.result().jobs["end"].tolist()[1]
    assert done == {"nearest": 120, "prefetch": 110}  # 10 s of transfer, or none after the wait


def test_popular_files_are_replicated_where_they_are_wanted():
    grid, sent = three(Replicate(3, 2), "siloed", staging="inside")
    for _ in range(2):
        grid.submit(Job(processors=4, run=100, inputs=["x"]), home="a")
    grid.submit(Job(processors=4, run=500), home="c")
    grid.env.run(until=1)
    grid.submit(Job(processors=4, run=100, inputs=["x"]), home="c")
    grid.env.run()
    assert sent.transfers == [(1, "x", "a", "c")]
    for _ in range(3):  # it has its two replicas
        grid.submit(Job(run=1, inputs=["x"]), home="a")
    grid.env.run()
    assert len(sent.transfers) == 1


def test_subscribers_get_old_and_new_files():
    grid, sent = three(Subscribe({"x": ["b"], "out*": ["a", "c"]}), "siloed")
    grid.submit(Job(run=20, outputs=[File("out1", 30)]), home="b")
    grid.env.run()
    assert sent.transfers == [(0, "x", "a", "b"), (20, "out1", "b", "a"), (20, "out1", "b", "c")]


def test_the_least_used_link_is_chosen_among_replicas():
    grid, sent = three("least-used-link", "siloed")
    grid.submit(Job(run=1, inputs=["x"]), home="c")
    grid.submit(Job(run=1, inputs=["y"]), home="c")
    grid.env.run()
    assert sent.transfers == [(0, "x", "a", "c"), (0, "y", "b", "c")]


def test_policies_are_switched_during_a_run():
    grid, sent = three()
    grid.env.run(until=5)
    grid.set_data_policy(Subscribe({"*": ["c"]}))
    grid.env.run(until=50)
    grid.set_data_policy("nearest")
    grid.env.run()
    assert sent.transfers == [(5, "x", "a", "c"), (5, "y", "a", "c")]


def test_a_transfer_that_is_asked_for_twice_happens_once_and_a_move_drops_the_source():
    def twice(view):
        if view.now == 0:
            a, b, _ = view.sites
            yield Transfer("x", a, b, "move")
            yield Transfer("x", a, b)

    grid, sent = three(twice)
    grid.env.run()
    assert len(sent.transfers) == 1
    assert grid.data.catalogue.sites_of("x") == ("b",)
    assert sent.dropped == [(10, "x", "a", "moved")]


def test_the_last_replica_stays_unless_the_policy_says_otherwise():
    def evicting(*decisions):
        def evict(view):
            if not view.added:
                return
            for file, place, last in decisions:
                yield Evict(file, view.sites[place], last)

        return evict

    grid, sent = three(evicting(("y", 0, False), ("y", 1, True)))
    grid.env.run()
    assert grid.data.catalogue.sites_of("y") == ()
    assert sent.dropped == [(0, "y", "a", "policy"), (0, "y", "b", "last replica dropped by policy")]
    grid, _ = three(evicting(("x", 0, False)))
    with pytest.raises(
        PolicyError, match=r"policy evict at 0\.0, file x on a: file x has its last replica at storage a"
    ):
        grid.env.run()


@pytest.mark.parametrize(
    ("decision", "message"),
    [
        (lambda view: Transfer("nothing", None, view.sites[1]), "file nothing exists nowhere"),
        (lambda view: Transfer("x", view.sites[2], view.sites[1]), "file x is not at c"),
        (lambda view: Transfer("x", None, "b"), "must name a site of this grid, got 'b'"),
        (lambda view: Transfer("x", None, view.sites[1], "throw"), "mode: must be 'copy' or 'move', got 'throw'"),
        (lambda view: WakeAt(-1.0), "must name an instant >= 0 s"),
        (lambda view: 7, "decisions must be Transfer, Evict, WakeAt, got 7"),
    ],
)
def test_wrong_decisions_are_named(decision, message):
    def wrong(view):
        yield decision(view)

    grid, _ = three(wrong)
    with pytest.raises(PolicyError, match=message):
        grid.env.run()


def test_a_source_without_the_file_is_refused():
    class Wrong(Prefetch):
        def source(self, file, size, sources, site):
            return site

    grid, _ = three(Wrong(), "siloed")
    grid.submit(Job(run=1, inputs=["x"]), home="c")
    with pytest.raises(PolicyError, match=r"source: must be one of the sites with the file \(a\)"):
        grid.env.run()


def test_wrong_parameters():
    with pytest.raises(InputError, match="threshold: must be a whole number >= 1, got 0"):
        Replicate(0)
    with pytest.raises(InputError, match="interval: must be > 0 s, got 0"):
        Timed(Prefetch(), interval=0)
    with pytest.raises(InputError, match="unknown site 'z'"):
        three(Timed(Transfers([("x", None, "z")])))[0].env.run()


def test_policies_remember():
    policy = Timed(Replicate(5), 0, 100, 10)
    policy.restore([3, {"f": {"a": 2}}])
    assert policy.state() == [3, {"f": {"a": 2}}]
    assert policy.fresh().state() == [0, {}]


def test_subscribers_that_are_down_get_their_files_when_they_are_back():
    grid, sent = three(Subscribe({"out*": ["a", "c"]}), "siloed")
    grid.submit(Job(run=20, outputs=[File("out1", 30)]), home="b")
    grid.env.run(until=15)
    grid.take_down("c")
    grid.env.run(until=40)
    assert sent.transfers == [(20, "out1", "b", "a")]
    grid.bring_up("c")
    grid.env.run()
    assert sent.transfers[1:] == [(40, "out1", "a", "c")]


def test_a_listed_transfer_waits_for_a_site_that_is_down():
    grid, sent = three(Timed(Transfers([("x", "a", "b"), ("y", None, "c")]), 10, 100, 10))
    grid.take_down("b")
    grid.env.call_at(35, lambda: grid.bring_up("b"))
    grid.env.run()
    assert sent.transfers == [(40, "x", "a", "b"), (50, "y", "a", "c")]
