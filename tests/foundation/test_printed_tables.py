"""Tables in LaTeX and Markdown: whole, escaped, with intervals as papers write them."""

import re
import shutil
import subprocess

import pytest

from simmodel import explore, replicate, simulate
from simmodel.foundation.display import latex_table, markdown_table, plus_minus
from simmodel.work import Table

NASTY = [
    "a_b % of #1 & {2} ~ ^ \\ $x$ <y> |z| 3 ± 1 μs → … * ` [",
    "-5.9",
    "34.2 ± 1.3",
    "15,100 ± 1,200",
    "line\nbreak",
]
SPECIAL = re.compile(r"(?<!\\)[%#~^]")


def cells_of(latex):
    """Return the cells of a tabular; asserts that it is whole, and that no text of it means anything to LaTeX."""
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 1
    inside = latex.partition(r"\begin{tabular}{")[2].partition(r"\end{tabular}")[0]
    form, _, body = inside.partition("}")
    rows = [line.removesuffix(r"\\").strip() for line in body.split("\n") if line.endswith(r"\\")]
    assert [line for line in body.split("\n") if line and not line.endswith(r"\\")] == [r"\hline"] * 3
    cells = [re.split(r"(?<!\\)&", row) for row in rows]
    for cell in (each for row in cells for each in row):
        bare = re.sub(r"\\[&%$#_{}]", "", cell)
        assert SPECIAL.search(bare) is None
        assert bare.count("$") % 2 == 0
        assert bare.count("{") == bare.count("}")
        assert re.search(r"_", re.sub(r"\$[^$]*\$", "", bare)) is None
        assert bare.isascii()
        assert set(re.findall(r"\\[A-Za-z]+", bare)) <= set(re.findall(r"\\[A-Za-z]+", KNOWN))
    assert {len(row) for row in cells} == {len(form)}
    return [[cell.strip() for cell in row] for row in cells]


KNOWN = r"\textbackslash \textasciitilde \textasciicircum \dots \pm \times \mu \sigma \to \cdot \leq \geq"


def compiled(latex, folder):
    """Compile a table where LaTeX is."""
    if shutil.which("pdflatex") is None:
        return
    text = rf"\documentclass{{article}}\begin{{document}}{latex}\end{{document}}"
    (folder / "a.tex").write_text(text, "utf-8")
    subprocess.run(["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "a.tex"], cwd=folder, check=True)


def test_cells_of_any_text_stay_whole(tmp_path):
    latex = latex_table([["case", "text"], *([text, text] for text in NASTY)], caption="50 % & more", label="tab:one")
    compiled(latex, tmp_path)
    found = cells_of(latex)
    assert [row[1] for row in found[2:]] == ["$-5.9$", r"$34.2 \pm 1.3$", r"$15{,}100 \pm 1{,}200$", "line break"]
    assert latex.startswith(
        "\\begin{table}\n\\centering\n\\caption{50 \\% \\& more}\n\\label{tab:one}\n\\begin{tabular}{lr}"
    )
    lines = markdown_table([["case", "text"], *([text, text] for text in NASTY)]).split("\n")
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {3}


@pytest.mark.parametrize(
    ("mean", "half", "text"),
    [
        (34.234, 1.26, "34.2 ± 1.3"),
        (34.234, 0.996, "34.2 ± 1.0"),
        (-0.0012, 0.0344, "-0.001 ± 0.034"),
        (-0.0001, 0.34, "0.00 ± 0.34"),
        (15_145.2, 1240, "15,100 ± 1,200"),
        (5.0, 0.0, "5"),
        (5.0, float("inf"), "5"),
        (float("nan"), 1.0, "-"),
        (1e300, 1e299, f"{10**300:,} ± {10**299:,}"),
        (1e-300, 1e-301, "1e-300 ± 1e-301"),
    ],
)
def test_the_half_width_has_two_figures_and_the_mean_as_many_decimals(mean, half, text):
    if mean < 1e299:
        assert plus_minus(mean, half) == text
    else:
        assert len(plus_minus(mean, half)) < 1000


def test_tables_print_intervals_beside_their_mean(tmp_path):
    table = Table(
        {
            "case": ["easy", "sjf_x"],
            "jobs": [12000, 3],
            "wait": [34.234, 5.0],
            "wait_low": [32.97, float("nan")],
            "wait_high": [35.49, float("nan")],
            "difference": [-5.9, 1.0],
            "low": [-7.8, -1.0],
            "high": [-1.0, 3.0],
        }
    )
    assert cells_of(table.to_latex(tmp_path / "a.tex")) == [
        ["case", "jobs", "wait", "difference"],
        ["easy", "12000", r"$34.2 \pm 1.3$", "-5.9 (-7.8 to -1.0)"],
        [r"sjf\_x", "3", "5", r"$1.0 \pm 2.0$"],
    ]
    assert (tmp_path / "a.tex").read_text("utf-8") == table.to_latex() + "\n"
    assert r"{lrrr}" in table.to_latex()
    compiled(table.to_latex(), tmp_path)
    assert Table({"a": []}).to_markdown() == "| a |\n|:---|"
    many = Table({"a": range(100)})
    assert many.to_markdown().count("\n") == 101, "no row is left out"


def test_results_print_their_tables(tmp_path):
    run = simulate(128, "lublin-128-week", "easy")
    found = replicate(lambda seed: {"wait_mean": float(seed % 7)}, 5)
    both = explore(64, "lublin-128-week", ["fcfs", "easy"], seeds=1)
    for each in (run, found, both, run.jobs.where(slice(3))):
        rows = cells_of(each.to_latex(caption="x"))
        compiled(each.to_latex(), tmp_path)
        assert each.to_markdown().count("\n") == len(rows)
