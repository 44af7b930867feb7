"""The README's examples run, in the order in which a reader meets them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scaml.bench.problems import PROBLEMS, TableProblem

ROOT = Path(__file__).parents[1]


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


def test_examples_of_the_readme(capsys: pytest.CaptureFixture[str]) -> None:
    examples = blocks("README.md")
    assert len(examples) >= 2
    names: dict[str, object] = {}
    for example in examples:
        exec(compile(example, "README.md", "exec"), names)
    assert "past-0.4" in capsys.readouterr().out


def test_examples_of_the_methods_page(tmp_path: Path) -> None:
    """The method of the page's reader passes the suite, as the page says."""
    first, mine = blocks("docs/methods.md")
    exec(compile(first, "methods.md", "exec"), {})
    page = tmp_path / "average.py"
    page.write_text(mine, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(page)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert result.returncode == 0, result.stdout[-2000:]
    assert "passed" in result.stdout
    assert "failed" not in result.stdout


def test_example_and_numbers_of_the_tables_page(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = blocks("docs/tables.md")
    exec(compile(example, "tables.md", "exec"), {})
    assert "(34, 441)" in capsys.readouterr().out
    page = (ROOT / "docs/tables.md").read_text(encoding="utf-8")
    lines = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if "|" in line
    ]
    told = {line[0].strip("`"): (line[3].split()[0], line[4]) for line in lines[2:]}
    told |= {name: told["fcnet-*"] for name in PROBLEMS if name.startswith("fcnet-")}
    del told["fcnet-*"]
    tables = {name: problem for name, problem in PROBLEMS.items() if isinstance(problem, TableProblem)}
    assert told == {name: (str(table.rows), str(table.tasks)) for name, table in tables.items()}


def test_links_of_the_readme_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert links
    assert not [link for link in links if not (ROOT / link).exists()]
