"""What a submission asks for, from the arguments of sbatch and the lines of its script."""

from __future__ import annotations

import pytest

from simmodel_site.twin.submitting import read_submission, script_file


@pytest.mark.parametrize(
    ("words", "request_"),
    [
        ([], {"processors": 1}),
        (["-n", "8"], {"processors": 8}),
        (["-n8", "-c2", "-t30"], {"processors": 16, "requested": 1800.0}),
        (["--ntasks=8", "--time=1-00:00:00", "job.sh"], {"processors": 8, "requested": 86400.0}),
        (["-N", "2-4", "--ntasks-per-node", "4"], {"processors": 8, "nodes": 2, "cores_per_node": 4}),
        (["-N2", "-n", "3"], {"processors": 4, "nodes": 2, "cores_per_node": 2}),
        (["-Hp", "debug", "-n", "x"], {"processors": 1, "partition": "debug"}),
        (["-N1", "--mem=2G"], {"processors": 1, "nodes": 1, "cores_per_node": 1, "memory_per_node": 2.0**31}),
        (["--exclusive", "-n", "2", "--time", "soon"], {"processors": 2}),
        (["--hold", "--", "job.sh", "-n", "5"], {"processors": 1}),
    ],
)
def test_arguments(words: list[str], request_: dict[str, object]) -> None:
    assert read_submission(words).request() == request_


def test_lines_of_the_script_stand_behind_the_arguments() -> None:
    script = "#!/bin/sh\n#SBATCH -n 4 -t 10 # four\n#SBATCH --comment='two words'\necho\n#SBATCH -n 9\n"
    found = read_submission(["-t", "20"], script)
    assert found.request() == {"processors": 4, "requested": 1200.0}
    assert found.comment == "two words"
    assert read_submission([], "#SBATCH -n '4\n#SBATCH -t 1").request() == {"processors": 1, "requested": 60.0}


@pytest.mark.parametrize(
    ("words", "whole"),
    [
        (["job.sh"], ["--comment=x", "job.sh"]),
        (["-n4", "--comment", "y", "a", "--comment=z"], ["-n4", "--comment", "y", "--comment=x", "a", "--comment=z"]),
        (["--comm=y", "--", "job.sh"], ["--comm=y", "--comment=x", "--", "job.sh"]),
        (["--wrap", "a b"], ["--wrap", "a b", "--comment=x"]),
    ],
)  # fmt: skip
def test_the_comment_with_the_token_comes_after_any_other(words: list[str], whole: list[str]) -> None:
    assert read_submission(words).with_comment("x") == whole


def test_options_of_a_later_slurm_are_named_and_take_their_value() -> None:
    found = read_submission(["--later", "x", "-C", "big", "job.sh"], "#SBATCH --new=3")
    assert found.unmodelled == ("--constraint big", "--later=x", "--new=3")
    assert script_file(found) == "job.sh"


def test_a_comment_by_any_name_is_kept_in_the_new_one() -> None:
    for words in (["--comment", "y"], ["--comment=y"], ["--comm=y"], ["--comm", "y"]):
        assert read_submission(words).comment == "y"
    assert script_file(read_submission(["-n", "4", "--", "job.sh"])) == "job.sh"
    assert script_file(read_submission(["-n", "4"])) is None
