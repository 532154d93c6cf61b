"""The health of a twin whose slurmctld hangs or has died."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from simmodel_site.twin import Mirror, StatusServer, Twin
from simmodel_site.twin.running import follow
from simmodel_site.twin.slurm.describe import describe_slurm
from simmodel_site.twin.slurm.source import SlurmSettings, SlurmSource
from tests.site.helpers.slurm_cluster import PROGRAMS, SlurmCluster, require, running, wait_until

pytestmark = pytest.mark.live

INTERVAL = 3.0


@contextmanager
def followed() -> Iterator[StatusServer]:
    """Serve the status of a twin that follows the scheduler in a thread of its own."""
    described = describe_slurm()
    source = SlurmSource("virtual", SlurmSettings(interval=INTERVAL))
    twin = Twin(source, Mirror(described.spec, "virtual", described.policy))
    stopped = threading.Event()
    with StatusServer(twin.status, late=twin.late) as server:
        thread = threading.Thread(target=follow, args=(twin, stopped.is_set, server))
        thread.start()
        try:
            yield server
        finally:
            stopped.set()
            thread.join()


@pytest.mark.parametrize("fault", ["stopped", "killed"])
def test_the_health_falls_within_three_intervals(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    require(*PROGRAMS)
    with running(SlurmCluster(2, 2)) as cluster:
        monkeypatch.setenv("SLURM_CONF", str(cluster.conf))
        monkeypatch.setenv("PATH", cluster.environment["PATH"])
        cluster.submit("-t1", seconds=600)
        controller = cluster.controller
        assert controller is not None
        with followed() as server:
            wait_until(lambda: server.seen()[1] == "ok", 30, "a twin that is well")
            time.sleep(2 * INTERVAL)
            assert server.seen()[1] == "ok"
            if fault == "stopped":
                controller.send_signal(signal.SIGSTOP)
            else:
                cluster.kill_controller()
            began = time.monotonic()
            try:
                wait_until(lambda: server.seen()[1] == "degraded", 30, "a twin that is not well")
                taken = time.monotonic() - began
            finally:
                if fault == "stopped":
                    controller.send_signal(signal.SIGCONT)
                else:
                    cluster.start_controller()
            assert taken <= 3 * INTERVAL
            wait_until(lambda: server.seen()[1] == "ok", 60, "a twin that is well again")
