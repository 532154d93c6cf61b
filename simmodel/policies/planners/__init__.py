"""Planners of tasks: list scheduling, in phases too, its ranks, and the timetable of a plan."""
