"""Every code block of the README and of the documentation runs, in the order of the page."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import optuna
import pytest

from scaml.bench.problems import PROBLEMS, TableProblem
from scaml.cli import main

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)(?P<options>[^\n]*)\n(?P<code>.*?)^(?P=indent)```$",
    re.M | re.S,
)
BY_HAND = {"cd", "git", "pip", "source"}


@dataclass(frozen=True)
class Block:
    language: str
    options: str
    code: str

    @property
    def title(self) -> str:
        found = re.search(r'title="([^"]+)"', self.options)
        return found[1] if found else ""

    @property
    def commands(self) -> list[list[str]]:
        """Of a shell: the words of every line, without prompts and comments."""
        lines = self.code.replace("\\\n", " ").splitlines()
        if self.language == "console":
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        return [words for line in lines if (words := shlex.split(line, comments=True))]


def blocks(text: str) -> Iterator[Block]:
    for found in FENCE.finditer(text):
        code = re.sub(f"^{found['indent']}", "", found["code"], flags=re.M)
        yield Block(found["language"], found["options"], code)


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def past_of_a_reader() -> dict[str, object]:
    """What the README takes for granted: an objective, its old studies, and old campaigns."""

    def objective(trial: optuna.Trial) -> float:
        return (trial.suggest_float("x", 0.0, 1.0) - 0.4) ** 2

    for name in ("adult", "bank"):
        study = optuna.create_study(study_name=name, storage="sqlite:///hpo.db")
        study.optimize(objective, n_trials=5)
    rng = np.random.default_rng(0)
    campaigns = [(rng.random((6, 2)), rng.random(6)) for _ in range(2)]
    return {
        "objective": objective,
        "campaigns": campaigns,
        "X_new": rng.random((3, 2)),
        "y_new": rng.random(3),
    }


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Somebody in a folder with the examples and the results, as the site's build has them."""
    shutil.copytree(
        ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__")
    )
    (tmp_path / "results").symlink_to(ROOT / "results")
    monkeypatch.chdir(tmp_path)
    before = optuna.logging.get_verbosity()
    yield tmp_path
    optuna.logging.set_verbosity(before)


def run(words: list[str]) -> None:
    program, *arguments = words
    if program == "scaml":
        assert main(arguments) == 0
    elif program == "make":
        assert re.search(f"^{arguments[0]}:", page("Makefile"), re.M)
    elif program == "python":  # tests/test_examples.py runs it, in a small setting
        assert (ROOT / arguments[0]).is_file()
    elif program == "cat":
        assert Path(arguments[0]).read_text(encoding="utf-8")
    else:
        assert program in BY_HAND, words


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_blocks_of_a_page_run(
    path: Path, reader: Path, capsys: pytest.CaptureFixture[str], quiet: None
) -> None:
    names = past_of_a_reader() if path.name == "README.md" else {}
    for block in blocks(path.read_text(encoding="utf-8")):
        if "--8<--" in block.code:
            continue
        if block.language == "python":
            if block.title:
                (reader / block.title).write_text(block.code, encoding="utf-8")
            exec(compile(block.code, path.name, "exec"), names)
        elif block.language in ("sh", "console"):
            for command in block.commands:
                run(command)
        else:
            assert block.language in ("toml", "text", "csv"), (
                f"{path.name}: a block of {block.language!r}"
            )
    capsys.readouterr()


def test_blocks_are_found() -> None:
    found = list(
        blocks(
            "a\n```sh\nscaml methods  # all\n```\n"
            "    ```python title=\"m.py\"\n    x = '#'\n    ```\n"
            "```console\n$ a 'b # c'\nno\n```\n"
        )
    )
    assert [block.language for block in found] == ["sh", "python", "console"]
    assert found[0].commands == [["scaml", "methods"]]
    assert (found[1].title, found[1].code) == ("m.py", "x = '#'\n")
    assert found[2].commands == [["a", "b # c"]]


def test_no_page_is_without_a_check_for_lack_of_blocks() -> None:
    with_blocks = [path for path in PAGES if any(blocks(path.read_text(encoding="utf-8")))]
    assert {"README.md", "quickstart.md", "optuna.md", "botorch.md", "spreadsheet.md"} <= {
        path.name for path in with_blocks
    }


def test_the_method_of_the_guide_passes_the_suite(tmp_path: Path) -> None:
    """As the page says."""
    (mine,) = [block for block in blocks(page("docs/guides/new-method.md")) if block.title]
    file = tmp_path / mine.title
    file.write_text(mine.code, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert result.returncode == 0, result.stdout[-2000:]
    assert "passed" in result.stdout
    assert "failed" not in result.stdout


def test_numbers_of_the_tables_page() -> None:
    lines = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in page("docs/tables.md").splitlines()
        if "|" in line
    ]
    told = {line[0].strip("`"): (line[3].split()[0], line[4]) for line in lines[2:]}
    told |= {name: told["fcnet-*"] for name in PROBLEMS if name.startswith("fcnet-")}
    del told["fcnet-*"]
    tables = {name: problem for name, problem in PROBLEMS.items() if isinstance(problem, TableProblem)}
    assert told == {name: (str(table.rows), str(table.tasks)) for name, table in tables.items()}


def test_links_of_the_readme_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", page("README.md"))
    assert links
    assert not [link for link in links if not (ROOT / link).exists()]
