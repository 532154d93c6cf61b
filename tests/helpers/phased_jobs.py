"""A small workload in phases, like that of the SchedTwin experiment."""

from functools import partial

from simmodel.generators.phased import JobClass, schedtwin

SMALL = (JobClass(6, (2, 4), (60, 180)), JobClass(8, (16, 20), (500, 700)), JobClass(12, (2, 4), (60, 180)))
draw_small = partial(schedtwin, classes=SMALL)
