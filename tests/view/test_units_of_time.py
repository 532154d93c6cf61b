"""A model in minutes: numbers stay those of the model, what people read counts hours and minutes."""

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import pytest

from simmodel import Cluster, Environment, Job
from simmodel.foundation.errors import InputError
from simmodel.results import load_result


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def run(unit, scale):
    env = Environment(unit=unit)
    cluster = Cluster(env, 16, policy="easy")
    for number in range(9):
        cluster.submit(Job(processors=10, run=60 * scale, requested=(90 + number) * scale))
    with_claim = env.process(claims(env, cluster.places[0], scale))
    env.run()
    assert with_claim.processed
    return cluster.result()


def claims(env, place, scale):
    yield env.timeout(30 * scale)
    with place.claim(processors=2) as claim:
        yield claim
        yield env.timeout(45 * scale)


MINUTES, SECONDS = run("min", 1), run("s", 60)


def lines(text):
    """Return the lines of a summary without that of wall-clock times."""
    return [line for line in text.splitlines() if "microseconds" not in line]


def test_numbers_are_those_of_the_model():
    assert MINUTES.time_unit == "min"
    assert (MINUTES.metrics()["wait_mean"], SECONDS.metrics()["wait_mean"]) == (240.0, 14400.0)
    assert MINUTES.jobs["wait"].tolist() == [60.0 * i for i in range(9)]


def test_summaries_say_hours_and_minutes():
    assert lines(MINUTES.summary()) == lines(SECONDS.summary())
    assert "mean wait                            4 h" in MINUTES.summary()
    assert "over 9 h" in MINUTES._repr_html_()


@pytest.mark.parametrize("plot", ["queue", "gantt", "utilisation", "cdf", "wait_by_bin"])
def test_plots_label_times_by_the_unit(plot):
    one, other = (getattr(result.plot, plot)() for result in (MINUTES, SECONDS))
    for axis in ("xaxis", "yaxis"):
        labels = [
            (getattr(ax, axis).get_label().get_text(), [text.get_text() for text in getattr(ax, axis).get_ticklabels()])
            for ax in (one, other)
        ]
        assert labels[0] == labels[1]


def test_pages_count_in_the_unit():
    assert MINUTES.page().html() == SECONDS.page().html()


def test_files_keep_the_unit(tmp_path):
    MINUTES.to_csv(tmp_path / "run")
    assert load_result(tmp_path / "run").time_unit == "min"


def test_unknown_units_are_refused():
    with pytest.raises(InputError, match="unit: must be a unit of time such as 'min', got 'parsec'"):
        Environment(unit="parsec")
