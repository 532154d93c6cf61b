"""Events through a real stream: in order, from where one stopped, and none that is missing goes unnoticed."""

from collections.abc import Iterator
from itertools import count
from threading import Timer
from typing import Any

import pytest

from simmodel.foundation.errors import InputError, SimmodelError
from simmodel_site.twin import Demand, Source, StateReport, Submitted
from simmodel_site.twin.events import Event, Passed
from simmodel_site.twin.sources import source_settings, stream as module
from simmodel_site.twin.sources.stream import StreamSettings, StreamSource
from simmodel_site.twin.streams import StreamWriter
from tests.site.helpers.redis_server import RedisServer

numbers = count()


class Stream:
    """A stream of its own on a shared server, with a writer, a reader and a plain client."""

    def __init__(self, server: RedisServer) -> None:
        self.key = f"simmodel:{next(numbers)}"
        self.server = server
        self.writer = StreamWriter(self.key, server.settings)
        self.client: Any = server.settings.client()
        self.sources: list[StreamSource] = []

    def source(self, **options: Any) -> StreamSource:
        self.sources.append(StreamSource("alps", self.server.settings, self.key, **options))
        return self.sources[-1]

    def close(self) -> None:
        self.writer.close()
        self.client.close()
        for each in self.sources:
            each.close()


@pytest.fixture
def stream(shared_redis: RedisServer) -> Iterator[Stream]:
    made = Stream(shared_redis)
    yield made
    made.close()


def job(number: int, name: str | None = None) -> Submitted:
    return Submitted(cluster="alps", time=number, job=number, submit=number, request=Demand(processors=4, name=name))


REPORT = StateReport(cluster="alps", time=50.0)


def test_events_come_in_their_order_and_once(stream: Stream) -> None:
    source = stream.source(most=7)
    assert isinstance(source, Source)
    assert source.events(0) == []
    assert source.position() is None
    told = [job(number) for number in range(20)]
    written = stream.writer.write(*told)
    found: list[Event] = []
    while some := source.events(0):
        found += some
    assert found == told
    assert source.position() == written[-1]
    assert source.report() is None
    assert not source.over
    assert source.gaps == 0


def test_a_source_continues_after_a_position(stream: Stream) -> None:
    written = stream.writer.write(*(job(number) for number in range(6)))
    source = stream.source()
    source.resume(written[3])
    assert source.events(0) == [job(4), job(5)]
    source.resume(None)
    assert len(source.events(0)) == 6
    assert source.gaps == 0
    with pytest.raises(InputError, match="must be the id of an entry, such as 1700000000000-0, got 'x'"):
        source.resume("x")


def test_a_reader_that_waits_is_woken(stream: Stream) -> None:
    source = stream.source()
    assert source.events(0) == []
    timer = Timer(0.1, lambda: stream.writer.write(job(1)))
    timer.start()
    assert source.events(60) == [job(1)]
    timer.join()


def test_malformed_entries_are_counted_and_the_others_read(stream: Stream) -> None:
    source = stream.source()
    stream.client.xadd(stream.key, {"kind": "start", "cluster": "alps", "time": 1})
    stream.writer.write(job(1, 'x"\n;$(reboot)\x1b[2J'))
    for time in ("soon", "later"):
        stream.client.xadd(stream.key, {"kind": "passed", "cluster": "alps", "time": time})
    stream.client.xadd(stream.key, {b"\xff": b"\xfe"})
    stream.writer.write(job(2, "n" * 1_000_000))
    found = source.events(0)
    assert found == [job(1, 'x"\n;$(reboot)\x1b[2J'), job(2, "n" * 1_000_000)]
    assert source.refused["time: must be a number"] == 2
    assert source.refused.total() == 4


def trimmed(stream: Stream) -> None:
    stream.writer.write(job(3), job(4))
    stream.client.xtrim(stream.key, maxlen=1, approximate=False)


def deleted_inside(stream: Stream) -> None:
    first, _ = stream.writer.write(job(3), job(4))
    stream.client.xdel(stream.key, first)


def deleted(stream: Stream) -> None:
    stream.client.delete(stream.key)
    stream.writer.write(job(4))


def begun_anew(stream: Stream) -> None:
    stream.client.delete(stream.key)
    stream.client.xadd(stream.key, {"kind": "passed", "cluster": "alps", "time": "4"}, id="1-1")


def emptied(stream: Stream) -> None:
    stream.writer.write(job(3))
    stream.client.xtrim(stream.key, maxlen=0, approximate=False)


def gone(stream: Stream) -> None:
    stream.client.delete(stream.key)


LOSSES = [trimmed, deleted_inside, deleted, begun_anew, emptied, gone]


@pytest.mark.parametrize("lose", LOSSES, ids=lambda each: each.__name__)
@pytest.mark.parametrize("restarted", [False, True], ids=["reading", "restarted"])
def test_entries_that_are_gone_ask_for_a_report(stream: Stream, lose: Any, restarted: bool) -> None:
    source = stream.source(report=lambda: REPORT, check=0)
    stream.writer.write(job(1), job(2))
    assert source.events(0) == [job(1), job(2)]
    position = source.position()
    lose(stream)
    if restarted:
        source = stream.source(report=lambda: REPORT, check=0)
        source.resume(position)
    found: list[Event] = []
    for _ in range(3):
        found += source.events(0)
    assert found[0] == REPORT
    assert found[1:] == {trimmed: [job(4)], deleted_inside: [job(4)], deleted: [job(4)]}.get(
        lose, [Passed(cluster="alps", time=4.0)] if lose is begun_anew else []
    )
    assert source.gaps == 1
    if lose is not begun_anew:  # the server gives ids of its own again
        stream.writer.write(job(5))
        assert source.events(0) == [job(5)]
        assert source.gaps == 1


def test_a_gap_between_two_looks_is_seen_by_the_number_of_entries(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1e6]
    monkeypatch.setattr(module, "monotonic", lambda: now[0])
    source = stream.source(report=lambda: REPORT, check=10.0)
    stream.writer.write(job(1))
    assert source.events(0) == [job(1)]
    stream.writer.write(*(job(number) for number in range(2, 9)))
    stream.client.xtrim(stream.key, maxlen=2, approximate=False)
    assert source.events(0) == [job(7), job(8)]  # no look yet
    assert source.gaps == 0
    now[0] += 10
    assert source.events(0) == [REPORT]
    stream.writer.write(job(9))
    now[0] += 10
    assert source.events(0) == [job(9)]
    assert source.gaps == 1


def test_a_report_is_owed_until_the_scheduler_answers(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1e6]
    monkeypatch.setattr(module, "monotonic", lambda: now[0])
    answers: list[Any] = [SimmodelError("squeue: no answer within 5 s"), None, REPORT]

    def report() -> StateReport | None:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    source = stream.source(report=report, check=0)
    stream.writer.write(job(1))
    assert source.events(0) == [job(1)]
    before = source.position()
    trimmed(stream)
    assert source.events(0) == [job(4)]
    assert source.events(0) == []  # it does not ask again at once
    assert len(answers) == 2
    assert source.position() == before  # a twin that restarts now must see the gap again
    now[0] += 1
    assert source.events(0) == []
    now[0] += 1
    assert source.events(0) == [REPORT]
    assert source.position() != before
    assert source.gaps == 1


def test_a_stream_that_was_empty_from_the_beginning_has_no_gap(stream: Stream) -> None:
    stream.writer.write(job(1), job(2))
    stream.client.xtrim(stream.key, maxlen=0, approximate=False)
    source = stream.source(report=lambda: REPORT, check=0)
    assert source.events(0) == source.events(0) == []
    stream.writer.write(job(3))
    assert source.events(0) == [job(3)]
    assert source.gaps == 0
    emptied(stream)
    assert source.events(0) == [REPORT]
    assert source.gaps == 1


def test_what_was_read_may_be_trimmed(stream: Stream) -> None:
    source = stream.source(report=lambda: REPORT, check=0)
    found: list[Event] = []
    for number in range(50):
        stream.writer.write(job(number))
        stream.client.xtrim(stream.key, maxlen=3, approximate=False)
        found += source.events(0)
    assert found == [job(number) for number in range(50)]
    assert source.gaps == 0


def test_a_writer_keeps_the_stream_short(stream: Stream) -> None:
    writer = StreamWriter(stream.key, stream.server.settings, longest=100)
    for _ in range(10):
        writer.write(*(job(number) for number in range(100)))
    assert 100 <= stream.client.xlen(stream.key) <= 300
    writer.close()


def test_a_check_says_what_may_be_read(stream: Stream) -> None:
    source = stream.source()
    assert source.check()[0].endswith(f"no stream '{stream.key}' yet; it may be read")
    stream.writer.write(job(1), job(2))
    assert source.check()[0].endswith(f"stream '{stream.key}' of 2 entries may be read")
    assert source.events(0) == [job(1), job(2)]
    stream.client.delete(stream.key)
    stream.client.set(stream.key, "no stream")
    with pytest.raises(InputError, match=r"cannot use the stream .* WRONGTYPE"):
        stream.source().events(0)
    with pytest.raises(InputError, match=r"cannot use the stream .* WRONGTYPE"):
        stream.writer.write(job(1))


def test_an_embedded_server_has_no_other_address() -> None:
    with pytest.raises(InputError, match="embedded: must stand without url, user and the like"):
        source_settings({"kind": "redis", "embedded": "d", "url": "redis://x"})
    assert isinstance(source_settings({"kind": "redis", "embedded": "d", "stream": "k"}), StreamSettings)


def test_settings_open_a_source(stream: Stream, tmp_path: Any) -> None:
    settings = source_settings({"kind": "redis", "url": stream.server.settings.url, "stream": stream.key})
    assert isinstance(settings, StreamSettings)
    source = settings.open("alps", tmp_path)
    stream.writer.write(job(1))
    assert source.events(0) == [job(1)]
    source.close()
    assert repr(source).startswith(f"<StreamSource {stream.key} at unix://")
