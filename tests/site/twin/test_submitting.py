"""A job is submitted once, to the cluster where it should end first, whatever the commands say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest

from simmodel import Cluster, Environment, Job
from simmodel.cli import main
from simmodel.foundation.errors import InputError
from simmodel.platform import ClusterSpec, PartitionSpec, QueueSpec
from simmodel_site.twin.serving import StatusServer
from simmodel_site.twin.status import Status
from simmodel_site.twin.submitting import (
    MARK,
    RoutedCluster,
    RouteSettings,
    Unclear,
    choose,
    read_route,
    read_submission,
    submit,
)
from simmodel_site.twin.turnaround import Turnarounds
from tests.helpers.new_process import printed

TOKEN = "0123456789abcdef"

SBATCH = """#!/bin/sh
printf "%s\n" "$*" >> {folder}/asked
{then}
"""


class Commands:
    """The commands of a cluster: sbatch does what a test says, squeue prints the jobs of a file."""

    def __init__(self, folder: Path, then: str) -> None:
        folder.mkdir()
        self.folder = folder
        (folder / "sbatch").write_text(SBATCH.format(folder=folder, then=then))
        text = f"""#!/bin/sh
echo squeue >> {folder}/asked
[ -e {folder}/silent ] && exit 1
exec python3 {folder}/rows.py "$@"
"""
        (folder / "squeue").write_text(text)
        (folder / "rows.py").write_text(ROWS.replace("FOLDER", str(folder)))
        for name in ("sbatch", "squeue"):
            (folder / name).chmod(0o755)

    @property
    def cluster(self) -> RoutedCluster:
        return RoutedCluster(name=self.folder.name, conf="slurm.conf", commands=str(self.folder))

    def asked(self) -> list[str]:
        file = self.folder / "asked"
        return file.read_text().splitlines() if file.exists() else []


ROWS = r"""
import os, re, sys
format = next(word for word in sys.argv if word.startswith("--format="))[9:]
print(re.sub("%([A-Za-z])", "HEADING", format))
if os.path.exists("FOLDER/taken"):
    for line in open("FOLDER/taken"):
        job, comment = line.rstrip("\n").split(" ", 1)
        values = {"A": job, "k": comment}
        print(re.sub("%([A-Za-z])", lambda found: values.get(found[1], ""), format))
"""
ACCEPTS = 'echo "Submitted batch job 7"'
REFUSES = 'echo "sbatch: error: Batch job submission failed: Invalid partition name" >&2; exit 1'
DEAD = 'echo "sbatch: error: Unable to contact slurm controller (connect failure)" >&2; exit 1'
LATE = 'echo "sbatch: error: Socket timed out on send/recv operation" >&2; exit 1'


def settings_of(*commands: Commands) -> RouteSettings:
    return RouteSettings(default=commands[0].folder.name, clusters=tuple(each.cluster for each in commands), timeout=10)


def test_the_first_cluster_that_takes_it_has_the_job(tmp_path: Path) -> None:
    first, second = Commands(tmp_path / "a", DEAD), Commands(tmp_path / "b", ACCEPTS)
    settings, submission = settings_of(first, second), read_submission(["-n", "4", "job.sh"])
    found = submit(settings, submission, choose(settings, submission), TOKEN)
    assert (found.cluster, found.job, found.status) == ("b", 7, 0)
    assert second.asked() == [f"-n 4 --comment={MARK}{TOKEN} job.sh"]
    assert len(first.asked()) == 1  # never connected: nothing is looked up


def test_what_slurm_refuses_is_not_tried_elsewhere(tmp_path: Path) -> None:
    first, second = Commands(tmp_path / "a", REFUSES), Commands(tmp_path / "b", ACCEPTS)
    settings, submission = settings_of(first, second), read_submission(["-p", "no"])
    found = submit(settings, submission, choose(settings, submission), TOKEN)
    assert (found.cluster, found.status) == ("a", 1)
    assert b"Invalid partition" in found.errors
    assert not second.asked()


def test_after_a_lost_answer_the_token_is_looked_up(tmp_path: Path) -> None:
    first, second = Commands(tmp_path / "a", LATE), Commands(tmp_path / "b", ACCEPTS)
    settings, submission = settings_of(first, second), read_submission(["--comment=mine"])
    (first.folder / "taken").write_text(f"12 mine {MARK}{TOKEN}\n")
    found = submit(settings, submission, choose(settings, submission), TOKEN)
    assert (found.cluster, found.job, found.found) == ("a", 12, True)
    assert not second.asked()
    (first.folder / "taken").write_text(f"12 mine {MARK}ffffffffff\n")  # another's: surely not taken
    assert submit(settings, submission, choose(settings, submission), TOKEN).cluster == "b"


def test_while_a_cluster_may_have_the_job_it_is_not_submitted_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simmodel_site.twin.submitting.sleep", lambda _: None)
    first, second = Commands(tmp_path / "a", LATE), Commands(tmp_path / "b", ACCEPTS)
    (first.folder / "silent").touch()
    settings, submission = settings_of(first, second), read_submission([])
    choices = choose(settings, submission)
    for again in (False, True):
        with pytest.raises(Unclear, match=f"cluster a may have taken the job .* with the token {TOKEN}"):
            submit(settings, submission, choices, TOKEN, again=again)
    assert not second.asked()
    (first.folder / "silent").unlink()
    assert submit(settings, submission, choices, TOKEN, again=True).cluster == "b"


def test_a_token_used_before_is_found_wherever_the_job_is(tmp_path: Path) -> None:
    first, second = Commands(tmp_path / "a", ACCEPTS), Commands(tmp_path / "b", ACCEPTS)
    (second.folder / "taken").write_text(f"5 {MARK}{TOKEN}\n")
    settings, submission = settings_of(first, second), read_submission([])
    found = submit(settings, submission, choose(settings, submission), TOKEN, again=True)
    assert (found.cluster, found.job) == ("b", 5)
    assert first.asked() == ["squeue"]


@pytest.mark.parametrize("token", ["", "xyz", "a" * 7, "$(id)aaaaa", "A" * 12])
def test_what_is_no_token_is_refused(tmp_path: Path, token: str) -> None:
    settings, submission = settings_of(Commands(tmp_path / "a", ACCEPTS)), read_submission([])
    with pytest.raises(InputError, match="token: must be 8 to 64"):
        submit(settings, submission, choose(settings, submission), token)


# ---------------------------------------------------------------------- the choice


@pytest.fixture
def twins() -> Iterator[list[tuple[Turnarounds, int]]]:
    """Yield two twins that serve, and their ports."""
    with ExitStack() as stack:
        found = []
        for name in "ab":
            turnarounds = Turnarounds()
            server = stack.enter_context(StatusServer(Status(cluster=name), answers=turnarounds.answer))
            found.append((turnarounds, server.port))
        yield found


def busy(processors: int, seconds: float) -> Cluster:
    cluster = Cluster(Environment(), processors)
    cluster.submit(Job(processors=processors, run=seconds))
    return cluster


def ports(*given: int | None) -> RouteSettings:
    clusters = tuple(RoutedCluster(name=name, conf="x", port=port) for name, port in zip("ab", given, strict=True))
    return RouteSettings(default="a", clusters=clusters, patience=5.0)


def test_the_cluster_where_the_job_ends_first_is_chosen(twins: list[tuple[Turnarounds, int]]) -> None:
    (first, one), (second, other) = twins
    settings = ports(one, other)
    four, sixteen = read_submission(["-n4", "-t2"]), read_submission(["-n16", "-t2"])
    first.show(busy(8, 100.0).snapshot())
    second.show(busy(32, 60.0).snapshot())
    assert [(each.cluster.name, each.turnaround) for each in choose(settings, four)] == [("b", 180.0), ("a", 220.0)]
    second.speed = 0.5
    assert [(each.cluster.name, each.turnaround) for each in choose(settings, four)] == [("a", 220.0), ("b", 300.0)]
    found = choose(settings, sixteen)
    assert found[0].cluster.name == "b"
    assert "has 8" in found[1].why


def test_what_a_twin_does_not_model_of_a_job_is_said(
    twins: list[tuple[Turnarounds, int]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (first, one), (_, other) = twins
    debug = ClusterSpec(partitions=[PartitionSpec(processors=8)], queues=[QueueSpec(name="debug", partition="batch")])
    first.show(Cluster(Environment(), debug).snapshot())
    path = tmp_path / "route.toml"
    clusters = (
        f'[[clusters]]\nname = "{name}"\nconf = "x"\nport = {port}\n' for name, port in (("a", one), ("b", other))
    )
    path.write_text('default = "a"\npatience = 5\n' + "".join(clusters))
    words = ["-n2", "-t2", "-p", "debug,gpu", "-w", "n1", "--licenses=matlab", "job.sh"]
    assert main(["twin", "submit", str(path), "--dry-run", "--", "sbatch", *words]) == 0
    marks = "--licenses matlab, --nodelist n1, partition gpu, which the platform lacks"
    assert capsys.readouterr().out.splitlines() == [
        f"a: ends after 120 s; not modelled: {marks}",
        "b: nothing is known of the cluster yet",
    ]


def test_without_answers_the_default_is_first(twins: list[tuple[Turnarounds, int]]) -> None:
    (_, one), (second, other) = twins
    settings = ports(one, other)
    assert choose(settings, read_submission([]))[0].cluster.name == "a"
    second.show(busy(4, 9.0).snapshot())
    assert choose(settings, read_submission([]))[0].cluster.name == "b"
    assert choose(ports(None, None), read_submission([]))[0].why == "no answer"
    assert "error" in second.answer({"processors": "many"})
    assert "error" in second.answer({"nonsense": 1})


def test_twins_that_hang_are_not_waited_for() -> None:
    answered = Event()

    class Slow(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answered.wait(60)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    server.daemon_threads = True
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    clusters = tuple(RoutedCluster(name=name, conf="x", port=server.server_address[1]) for name in "ab")
    found = choose(RouteSettings(default="b", clusters=clusters, patience=0.05), read_submission([]))
    assert [each.cluster.name for each in found] == ["b", "a"]
    assert not answered.is_set()
    answered.set()
    server.shutdown()
    server.server_close()


def test_a_configuration_is_read_and_refused_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "route.toml"
    path.write_text('default = "a"\n[[clusters]]\nname = "a"\nconf = "a.conf"\nport = 8811\n')
    found = read_route(path)
    assert (found.clusters[0].conf, found.clusters[0].port) == (str(tmp_path / "a.conf"), 8811)
    path.write_text('default = "b"\n[[clusters]]\nname = "a"\nconf = "a.conf"\nprot = 8811\n')
    with pytest.raises(InputError, match=r"route.toml, clusters\[0\].prot: unknown key 'prot'; did you mean 'port'"):
        read_route(path)


def test_a_submission_loads_little() -> None:
    program = """
import sys
import simmodel_site.commands.submit
from simmodel_site.twin import submitting
slow = {"numpy", "simpy", "networkx", "pandas", "http", "email", "secrets", "concurrent"}
print(sorted(slow & {name.partition(".")[0] for name in sys.modules}))
"""
    assert printed(program) == "[]\n"


def test_what_a_user_writes_reaches_sbatch_as_it_is(tmp_path: Path) -> None:
    commands = Commands(tmp_path / "a", f"cat > {tmp_path}/script; echo Submitted batch job 7")
    settings = RouteSettings(default="a", clusters=(commands.cluster,))
    words = ["--job-name=\"; $(id) `id` '", "--comment=\x1b[31m\nx", "--wrap=true"]
    script = b"#!/bin/sh\n" + b"# $(id) \x00\xff\x1b\n" * 60_000
    submission = read_submission(words, script.decode("utf-8", "replace"))
    found = submit(settings, submission, choose(settings, submission), TOKEN, script)
    assert (found.job, (tmp_path / "script").read_bytes()) == (7, script)
    asked = "\n".join(commands.asked())
    assert [word for word in ("\"; $(id) `id` '", f"\x1b[31m\nx {MARK}{TOKEN}") if word not in asked] == []
