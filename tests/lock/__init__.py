"""A lock on behaviour: figures and texts of many runs, recorded once, so that a change of the inside is seen to be one.

``figures/AREA.json`` holds a digest and a few readable values of each case, ``texts/AREA.NAME.txt`` what commands and
summaries say. After an intended change ``python -m tests.lock renew [PATTERN]`` in the root of a checkout rewrites what
differs; the diff shows which cases changed.
"""
