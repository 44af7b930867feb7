"""`scaml suggest` at the command line."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from scaml.cli import main
from tests.cli.cases import COLUMNS, experiments, write

pytestmark = pytest.mark.usefixtures("in_a_folder")


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_three_experiments_for_a_task_without_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "suggest",
        "runs.csv",
        "--task",
        "C",
        "--objective",
        "yield",
        "-n",
        "3",
        "--out",
        "next.csv",
    ]
    assert main(words) == 0
    shown = capsys.readouterr()
    assert "Column 'temperature' is a number from" in shown.err
    assert "expected yield" in shown.out
    assert shown.out.endswith("Suggestions: next.csv\n")
    found = rows_of(tmp_path / "next.csv")
    assert [list(row) for row in found] == [COLUMNS] * 3
    assert {(row["task"], row["yield"]) for row in found} == {("C", "")}
    assert all(150 <= float(row["temperature"]) <= 300 for row in found)
    assert {row["solvent"] for row in found} <= {"ethanol", "water"}


def test_no_number_is_cut_on_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    words = ["suggest", "runs.csv", "--task", "A", "-n", "7"]
    assert main([*words, "-q"]) == 0
    shown = capsys.readouterr().out
    assert "…" not in shown
    table, _, _ = shown.partition("± is two")
    assert max(map(len, table.splitlines())) <= 60
    assert main([*words, "--json"]) == 0
    numbers = [
        one["params"]["temperature"] for one in json.loads(capsys.readouterr().out)["suggestions"]
    ]
    assert len(numbers) == 7
    assert all(f" {number} " in table for number in numbers)


@pytest.mark.parametrize("method", ["scaml", "rgpe"])
def test_json_is_all_that_is_printed(method: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suggest", "runs.csv", "--task", "A", "--json", "--method", method]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    found = json.loads(shown.out)
    assert (found["task"], found["objective"], found["observations"]) == ("A", "yield", 8)
    (one,) = found["suggestions"]
    assert set(one["params"]) == {"temperature", "solvent"}
    assert one["deviation"] > 0


def test_the_past_is_told_in_words_and_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["suggest", "runs.csv", "--task", "A", "--method", "scaml-explained"]
    assert main([*words, "-q"]) == 0
    shown = capsys.readouterr().out
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    best, errors = found["explanations"][0], found["leave_one_out"]
    likely = f"{best['like']} {best['probability']:.0%}"
    assert f"After 8 observations, the new task is like: {likely}" in shown
    assert f"{errors['error']:.3g} with the past, {errors['error_without_past']:.3g} with" in shown
    assert set(found["matters"]) == {"B"}
    keys = ["task", "objective", "maximize", "observations", "suggestions"]
    assert list(found)[: len(keys)] == keys
    assert main(["suggest", "runs.csv", "--task", "A", "--method", "rgpe", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["explanations"] is None


def test_an_error_rate_below_all_values_is_remarked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Errors that fall in a straight line to 0.02 at x = 0.7: the model goes on below 0."""
    rows: list[list[object]] = [["old", x / 10, 0.5 + x / 20] for x in range(11)]
    rows += [["new", x / 10, round(0.72 - x / 10, 2)] for x in range(8)]
    write(tmp_path / "errors.csv", [["task", "x", "error"], *rows])
    words = ["suggest", "errors.csv", "--task", "new", "--minimize", "--method", "gpbo"]
    assert main([*words, "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["suggestions"]
    assert one["expected"] < 0
    assert one["beyond"] == 0.02
    assert main([*words, "-q"]) == 0
    assert "none below 0.02" in capsys.readouterr().out


def test_suggestions_pasted_below_the_table_are_pending(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["suggest", "runs.csv", "--task", "C", "--out", "next.csv", "-q"]) == 0
    (first,) = rows_of(tmp_path / "next.csv")
    write(tmp_path / "runs.csv", [*experiments(), list(first.values())])
    assert main(["suggest", "runs.csv", "--task", "C", "--out", "next.csv", "--force", "-q"]) == 0
    (second,) = rows_of(tmp_path / "next.csv")
    assert first != second


def test_a_space_is_written_edited_and_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suggest", "runs.csv", "--task", "C", "--write-space", "space.toml", "-q"]) == 0
    text = (tmp_path / "space.toml").read_text()
    (tmp_path / "space.toml").write_text(text.replace("high = ", "high = 200.0  # "))
    capsys.readouterr()
    assert main(["suggest", "runs.csv", "--task", "C", "--space", "space.toml", "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["suggestions"]
    assert one["params"]["temperature"] <= 200


def test_minimize_turns_the_search_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header, *rows = experiments()
    write(tmp_path / "cost.csv", [header, *([*row[:3], -float(str(row[3]))] for row in rows)])
    answers = []
    for words in (["runs.csv"], ["cost.csv", "--minimize"]):
        assert main(["suggest", *words, "--task", "C", "--json"]) == 0
        answers.append(json.loads(capsys.readouterr().out)["suggestions"][0])
    assert answers[0]["params"] == answers[1]["params"]
    assert answers[0]["expected"] == pytest.approx(-answers[1]["expected"])


def test_a_method_by_the_name_that_is_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "plain.csv", [[*row[:2], row[3]] for row in experiments()])
    answers = []
    for words in (["--method", "RGPE"], ["--method", "rgpe"], ["--method", "ScaML"], []):
        assert main(["suggest", "plain.csv", "--task", "A", "--json", *words]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert answers[0] == answers[1]
    assert answers[2] == answers[3]
    assert answers[0] != answers[2]


def test_names_that_a_spreadsheet_would_compute_stay_text(tmp_path: Path) -> None:
    assert main(["suggest", "runs.csv", "--task", "=1+1", "--out", "next.csv", "-q"]) == 0
    assert rows_of(tmp_path / "next.csv")[0]["task"] == "'=1+1"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("suggest", "Give a table of experiments, or --storage with --study"),
        ("suggest runs.csv --storage sqlite:///a.db", "Give a table of experiments, or --storage"),
        ("suggest runs.csv", "--task is missing; name the new task"),
        ("suggest --storage sqlite:///none.db", "--storage needs the name of the new study"),
        ("suggest --storage sqlite:///none.db --study a", "There is no database 'none.db'"),
        ("suggest none.csv --task C", "none.csv cannot be read: No such file or directory"),
        ("suggest . --task C", "cannot be read: Is a directory"),
        ("suggest runs.csv --task C --objective yeld", "perhaps 'yield'"),
        ("suggest runs.csv --task C --task-column job", "perhaps --task-column"),
        (
            "suggest runs.csv --task C --method scmal",
            "There is no method 'scmal'; did you mean 'scaml'",
        ),
        ("suggest runs.csv --task C --method random", "--method is 'random', which learns nothing"),
        ("suggest runs.csv --task C -n 0", "-n is 0; give an integer of at least 1."),
        ("suggest runs.csv --task C --out runs.csv", "'runs.csv' is there already"),
        ("suggest runs.csv --task C --out no/next.csv", "There is no folder 'no'; make it"),
        ("suggest runs.csv --task \udcff", "--task is '\\udcff', which is not in UTF-8"),
        (f"suggest runs.csv --task C --out {'x' * 300}", "cannot be written (File name too long)"),
        ("suggest runs.csv --task C --write-space next --out next", "are both 'next'; give two files"),
        ("suggest runs.csv --task C --jobs 0", "--jobs is 0; give a positive integer"),
        ("suggest runs.csv --task C --out .", "'.' is a folder; give the name of a file."),
        ("suggest runs.csv --task C --space none.toml", "none.toml"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, message: str
) -> None:
    assert main([*words.split(), "-q"]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("scaml: ")
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["runs.csv"]
    with (tmp_path / "runs.csv").open() as file:
        assert file.readline() == "task,temperature,solvent,yield\n"


@pytest.mark.parametrize("words", [(), ("--method", "rgpe")], ids=["default", "rgpe"])
def test_suggest_on_a_table_loads_only_what_it_needs(words: tuple[str, ...]) -> None:
    code = (
        "import json, sys\nfrom scaml.cli import main\n"
        "assert main(['suggest', 'runs.csv', '--task', 'A', *sys.argv[1:]]) == 0\n"
        "print(json.dumps(list(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
    )
    loaded = json.loads(done.stdout.splitlines()[-1])
    needless = ("scaml.bench", "scaml.report", "scaml.integrations", "study", "plotly", "matplotlib")
    slow = ("alembic", "pandas", "scipy.stats", "sklearn", "sqlalchemy", "sympy")
    networks = tuple(f"scaml.methods.{name}" for name in ("ablr", "fsbo", "gc3p", "mtgp"))
    others = ("scaml.cli.report", "scaml.cli.bench", "scaml.cli.demo", "scaml.methods.shared.networks")
    assert "scaml.explain.suggestions" in loaded
    for name in loaded:
        for package in (*needless, *slow, *networks, *others):
            assert name != package
            assert not name.startswith(f"{package}.")
    assert ("scaml.methods.rgpe" in loaded) == bool(words)
