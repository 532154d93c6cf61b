"""What a stream's reader does when its server dies, hangs or repeats itself: it loses nothing and goes on."""

import os
import signal
from pathlib import Path
from threading import Event as Flag, Thread
from time import monotonic

import pytest

from simmodel.foundation.errors import InputError, SimmodelError
from simmodel_site.twin import Demand, Mirror, NodesChanged, Submitted, Twin
from simmodel_site.twin.events import Event
from simmodel_site.twin.sources import source_settings
from simmodel_site.twin.sources.stream import EmbeddedServer, StreamSource
from simmodel_site.twin.streams import StreamWriter
from tests.site.helpers.redis_server import RedisServer, program_of


def job(number: int) -> Submitted:
    return Submitted(cluster="alps", time=number, job=number, submit=number, request=Demand(processors=4))


def read(source: StreamSource, count: int, last: Event | None = None) -> list[Event]:
    """Read until so many events have come and the last is this one, however slow the machine is."""
    found: list[Event] = []
    until = monotonic() + 60
    while (len(found) < count or last not in (None, *found[-1:])) and monotonic() < until:
        found += source.events(0.1)
    return found


def test_a_killed_server_loses_nothing_that_it_took(own_redis: RedisServer) -> None:
    source = StreamSource("alps", own_redis.settings, check=0)
    writer = StreamWriter("simmodel:alps", own_redis.settings)
    told: list[Event] = [job(number) for number in range(500)]
    found: list[Event] = []
    for begin in range(0, 500, 100):
        writer.write(*told[begin : begin + 50])
        found += source.events(0)
        writer.write(*told[begin + 50 : begin + 100])
        own_redis.kill()
        assert source.events(0) == []
        assert source.trouble is not None
        assert source.trouble.startswith(f"{own_redis.settings.url}: not reachable: ")
        with pytest.raises(InputError, match="not reachable"):
            writer.write(job(-1))
        own_redis.start()
        found += source.events(0)
        assert source.trouble is None
    assert found == told
    assert source.gaps == 0
    source.close()
    writer.close()


def test_a_reader_waits_for_a_server_that_is_not_there_yet(own_redis: RedisServer) -> None:
    own_redis.kill()
    source = StreamSource("alps", own_redis.settings)
    assert source.events(0) == []
    with pytest.raises(InputError, match="not reachable"):
        source.check()
    found: list[Event] = []
    reader = Thread(target=lambda: found.extend(source.events(60)))
    reader.start()
    own_redis.start()
    writer = StreamWriter("simmodel:alps", own_redis.settings)
    writer.write(job(1))
    reader.join()
    assert found == [job(1)]
    source.close()
    writer.close()


def test_the_status_of_a_twin_says_that_its_server_is_away(own_redis: RedisServer) -> None:
    twin = Twin(StreamSource("alps", own_redis.settings, check=0), Mirror(4, "alps"))
    writer = StreamWriter("simmodel:alps", own_redis.settings)
    writer.write(job(1), job(2))
    twin.step(0.0)
    assert (twin.status.health, twin.status.waiting, twin.status.gaps) == ("ok", 2, 0)
    own_redis.kill()
    twin.step(0.0)
    assert twin.status.health == "degraded"
    assert twin.status.troubles[0].startswith(f"{own_redis.settings.url}: not reachable")
    assert twin.status.waiting == 2
    own_redis.start()
    writer.write(job(3))
    twin.step(0.0)
    assert (twin.status.health, twin.status.waiting) == ("ok", 3)
    writer.write(NodesChanged(cluster="alps", time=4.0, state="down", processors=2))
    twin.step(0.0)
    assert twin.status.nodes == {}  # they are only counted
    client = own_redis.settings.client()
    writer.write(job(4), job(5))
    client.xtrim("simmodel:alps", maxlen=1, approximate=False)
    twin.step(0.0)
    assert (twin.status.waiting, twin.status.gaps) == (4, 1)
    client.close()
    twin.close()
    writer.close()


def test_a_server_that_hangs_is_left_and_found_again(own_redis: RedisServer) -> None:
    from attrs import evolve

    source = StreamSource("alps", evolve(own_redis.settings, timeout=0.2), check=0)
    writer = StreamWriter("simmodel:alps", own_redis.settings)
    writer.write(job(1))
    assert read(source, 1) == [job(1)]
    assert own_redis.process is not None
    os.kill(own_redis.process.pid, signal.SIGSTOP)
    assert source.events(0) == []
    assert source.trouble == f"{own_redis.settings.url}: no answer within 0.2 s"
    os.kill(own_redis.process.pid, signal.SIGCONT)
    writer.write(job(2))
    assert read(source, 1) == [job(2)]
    assert source.gaps == 0
    source.close()
    writer.close()


def test_a_server_that_lost_its_data_asks_for_a_report(own_redis: RedisServer) -> None:
    source = StreamSource("alps", own_redis.settings, check=0)
    writer = StreamWriter("simmodel:alps", own_redis.settings)
    writer.write(job(1), job(2))
    assert len(source.events(0)) == 2
    own_redis.kill()
    for path in own_redis.folder.glob("appendonly*/*"):
        path.unlink()
    own_redis.start()
    assert source.events(0) == []
    assert source.gaps == 1
    writer.write(job(3))
    assert source.events(0) == [job(3)]
    assert source.gaps == 1
    source.close()
    writer.close()


def test_a_reader_meets_many_restarts(own_redis: RedisServer) -> None:
    """A writer that tries until each event is taken, while the server dies again and again."""
    source = StreamSource("alps", own_redis.settings)
    told = [job(number) for number in range(300)]
    done = Flag()

    def write() -> None:
        writer = StreamWriter("simmodel:alps", own_redis.settings)
        for event in told:
            while True:
                try:
                    writer.write(event)
                    break
                except InputError:
                    continue
        writer.close()
        done.set()

    thread = Thread(target=write)
    thread.start()
    found: list[Event] = []
    for _ in range(4):
        found += source.events(0.05)
        own_redis.kill()
        found += source.events(0.05)
        own_redis.start()
    thread.join()
    assert done.is_set()
    found += read(source, 1, told[-1]) if found[-1:] != told[-1:] else []
    assert list(dict.fromkeys(each.job for each in found if isinstance(each, Submitted))) == list(range(300))
    assert source.gaps == 0
    source.close()


def test_the_embedded_server_keeps_its_data_and_is_taken_over(tmp_path: Path) -> None:
    program_of("valkey")
    folder = Path(os.path.relpath(tmp_path / "d")) if len(str(tmp_path)) > 80 else tmp_path / "d"
    with EmbeddedServer(folder) as server:
        StreamWriter("simmodel:alps", server.settings).write(job(1))
        assert server.running
        second = EmbeddedServer(folder)
        second.start()  # as a twin that was killed and started again finds it
        second.stop()
        assert not server.running
        server._server = None
    settings = source_settings({"kind": "redis", "embedded": "d"})
    source = settings.open("alps", folder.parent)
    assert source.events(0) == [job(1)]
    source.close()
    assert not server.running


def test_an_embedded_server_in_a_temporary_folder_leaves_nothing() -> None:
    program_of("valkey")
    with EmbeddedServer() as server:
        assert server.folder.exists()
        assert repr(server) == f"<EmbeddedServer in {server.folder}>"
    assert not server.folder.exists()


@pytest.mark.parametrize("folder", ["a b", "x" * 120, 'a"b'], ids=["space", "long", "quote"])
def test_a_folder_that_no_socket_can_be_in_is_refused(folder: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="folder: must be a path of at most 93 bytes without spaces"):
        EmbeddedServer(Path("/tmp") / folder)
    assert issubclass(InputError, SimmodelError)
