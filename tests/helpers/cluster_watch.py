"""An observer that records the events of a cluster."""


class Watch:
    """Records events as (instant, kind, job or place)."""

    def __init__(self, env):
        self.env = env
        self.heard = []

    def job_started(self, run):
        self.heard.append((self.env.now, "started", run.job.id))

    def job_ended(self, run, status):
        self.heard.append((self.env.now, status, run.job.id))

    def job_cancelled(self, job):
        self.heard.append((self.env.now, "withdrawn", job.id))

    def place_changed(self, place, cause):
        self.heard.append((self.env.now, cause, place.up))
