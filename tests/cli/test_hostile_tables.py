"""Tables as people have them, by `scaml suggest`: each works, or one sentence says what to mend."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from scaml.cli import main

HEADER = "task,temperature,solvent,yield"
WRITTEN = ["next.csv", "space.toml"]

Capture = pytest.CaptureFixture[str]


def rows(seed: int = 0) -> list[str]:
    """Two past tasks of six experiments, in rows 2 to 13 of a spreadsheet."""
    generator = np.random.default_rng(seed)
    lines = []
    for task, best in (("A", 230.0), ("B", 215.0)):
        for i in range(6):
            T = float(generator.uniform(150, 300))
            value = 70 - ((T - best) / 30) ** 2 + 5 * (i % 2)
            lines.append(f"{task},{T:.1f},{('water', 'ethanol')[i % 2]},{value:.3f}")
    return lines


def cells(row: int) -> list[str]:
    """The cells of a row, which is counted as a spreadsheet does."""
    return rows()[row - 2].split(",")


def table(*more: str, header: str = HEADER, change: Callable[[list[str]], None] | None = None) -> str:
    """The whole table, with some rows more, or with its rows changed."""
    lines = rows()
    if change is not None:
        change(lines)
    return "\n".join([header, *lines, *more]) + "\n"


def with_cell(row: int, column: str, value: str) -> str:
    """The table with another value in one cell; rows are counted as a spreadsheet does."""

    def change(lines: list[str]) -> None:
        parts = cells(row)
        parts[HEADER.split(",").index(column)] = value
        lines[row - 2] = ",".join(parts)

    return table(change=change)


def translated(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        text = text.replace(old, new)
    return text


@pytest.fixture(autouse=True)
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where relative paths lead; and no terminal, though some CI services pretend to be one."""
    monkeypatch.chdir(tmp_path)
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


def suggest(data: str | bytes, *words: str, name: str = "runs.csv", task: str = "C") -> int:
    Path(name).write_bytes(data.encode() if isinstance(data, str) else data)
    files = ["--out", "next.csv", "--write-space", "space.toml"]
    return main(["suggest", name, "--task", task, *files, *words])


def suggested() -> dict[str, str]:
    """The row of the new experiment."""
    assert sorted(path.name for path in Path().iterdir() if path.name in WRITTEN) == WRITTEN
    with Path("next.csv").open(newline="", encoding="utf-8") as file:
        (found,) = csv.DictReader(file)
    return found


def check_refused(code: int, capsys: Capture, before: set[str], *parts: str) -> None:
    """One sentence for the user to act on, and nothing written."""
    printed = capsys.readouterr()
    assert code == 2
    assert printed.out == ""
    (sentence,) = printed.err.splitlines()
    assert sentence.startswith("scaml: ")
    assert sentence.endswith(".")
    assert ". " not in sentence
    for part in parts:
        assert part in sentence
    assert {path.name for path in Path().iterdir()} == before


SEMICOLONS = (",", ";"), (".", ",")

WORKING: dict[str, tuple[str | bytes, str]] = {
    "as it should be": (table(), "Column 'temperature' is a number from"),
    "missing cells": (
        with_cell(3, "temperature", ""),
        "Rows of past tasks without all parameters are left out: 3.",
    ),
    "a missing value": (
        with_cell(4, "yield", ""),
        "Rows of past tasks without a number in 'yield' are left out: 4.",
    ),
    "a task without a parameter": (
        table(*(f"D,{T},,50" for T in (160, 200, 240))),
        "Column 'solvent' is empty in past tasks, which lack it: 'D'.",
    ),
    "a column of one value": (
        translated(
            table(), ("solvent", "solvent,pressure"), (",water", ",water,1"), (",ethanol", ",ethanol,1")
        ),
        "Column 'pressure' has one value, 1.0; it is left out.",
    ),
    "decimal commas": (translated(table(), *SEMICOLONS), "Commas in numbers are decimal commas"),
    "semicolons": (table().replace(",", ";"), "Column 'temperature' is a number from"),
    "a byte order mark": (table().encode("utf-8-sig"), "Column 'temperature' is a number from"),
    "UTF-16": (table().replace(",", "\t").encode("utf-16"), "Column 'temperature' is a number from"),
    "Latin-1": (table().replace("water", "Äther").encode("latin-1"), "it was read as Latin-1"),
    "line ends of Windows": (table().replace("\n", "\r\n"), "Column 'temperature' is a number from"),
    "trailing spaces in names of tasks": (
        table(change=lambda lines: lines.__setitem__(0, lines[0].replace("A,", "A  ,"))),
        "Spaces around names of tasks were removed.",
    ),
    "NaN in a past task": (
        with_cell(9, "yield", "NaN"),
        "Rows of past tasks without a number in 'yield' are left out: 9.",
    ),
    "infinity in a past task": (
        with_cell(9, "yield", "inf"),
        "Rows of past tasks without a number in 'yield' are left out: 9.",
    ),
    "a number that dwarfs the others": (
        with_cell(9, "yield", "1e300"),
        "Rows of past tasks without a number in 'yield' are left out: 9.",
    ),
    "a task of one row": (
        table("D,200,water,50"),
        "Past tasks of fewer than two rows that can be used are left out: 'D'.",
    ),
    "one past task": ("\n".join([HEADER, *rows()[:6]]), "Task 'C' has no rows yet."),
    "all rows of the new task": (
        translated(table(), ("\nA,", "\nC,"), ("\nB,", "\nC,")),
        "All rows that can be used belong to the new task 'C': there is no past.",
    ),
    "rows that repeat": (table(*rows(), *rows()), "Column 'temperature' is a number from"),
    "markup in names": (
        translated(table(), ("A,", "[bold]A[/],"), ("solvent", "[red]"), ("water", "[/]")),
        "Column '[red]' is a choice of '[/]', 'ethanol'.",
    ),
}


@pytest.mark.parametrize("name", WORKING)
def test_a_table_that_can_be_used(name: str, capsys: Capture) -> None:
    data, note = WORKING[name]
    assert suggest(data) == 0
    assert note in capsys.readouterr().err
    found = suggested()
    assert found["task"] == "C"
    assert found["yield"] == ""
    assert 150 <= float(found["temperature"]) <= 300


EMPTY = "give a table with a header and one row per experiment."

REFUSED: dict[str, tuple[str | bytes, tuple[str, ...]]] = {
    "text in a column of numbers": (
        with_cell(5, "temperature", "about 200"),
        ("Row 5, column 'temperature' is 'about 200' where a number belongs",),
    ),
    "a unit in the objective": (
        with_cell(8, "yield", "64 %"),
        ("Row 8, column 'yield' is '64 %' where a number belongs",),
    ),
    "a thousands separator": (
        with_cell(5, "temperature", '"1,200.5"'),
        ("Row 5, column 'temperature' is '1,200.5' where a number belongs",),
    ),
    "a decimal comma among points": (
        with_cell(5, "temperature", '"200,5"'),
        ("Row 5, column 'temperature' is '200,5' where a number belongs",),
    ),
    "a missing cell in the new task": (
        table("C,210,water,62", "C,200,,61"),
        ("Row 15, column 'solvent' is empty in the new task",),
    ),
    "a missing name of a task": (table(",200,water,61"), ("Row 14, column 'task' is empty",)),
    "a row that is too short": (table("A,200"), ("Row 14 has 2 cells, but the header has 4",)),
    "a header twice": (
        table(header="task,temperature,temperature,yield"),
        ("Columns B and C are both called 'temperature'", "rename one of them"),
    ),
    "NaN in the new task": (
        table("C,200,water,NaN"),
        ("Row 14, column 'yield' is 'NaN'", "leave it empty while the experiment runs"),
    ),
    "an objective without a number": (
        "\n".join([HEADER, *(line.rsplit(",", 1)[0] + ",NaN" for line in rows())]),
        ("The last column, 'yield', does not hold numbers",),
    ),
    "nothing to choose": (
        "task,yield\nA,1\nA,2\nB,3\nB,4\n",
        ("nothing to choose",),
    ),
    "no column of tasks": (
        table(header="campaign,temperature,solvent,yield"),
        ("runs.csv has no column 'task' but 'campaign', 'temperature'", "--task-column"),
    ),
    "a formula": (
        with_cell(6, "temperature", "=cmd|' /C calc'!A0"),
        ("Row 6, column 'temperature' holds the formula", "save values, not formulas"),
    ),
    "a formula as the name of a task": (table("=1+1,200,water,61"), ("Row 14, column 'task' holds",)),
    "a quotation mark that stays open": (table('A,200,"water,61'), ("Row 14 of runs.csv", "quotation")),
    "an empty file": (b"", ("runs.csv is empty", EMPTY)),
    "a file of line ends": (b"\n\r\n \n", ("runs.csv is empty", EMPTY)),
    "a header alone": (HEADER + "\n", ("runs.csv has a header but no rows",)),
    "a binary file": (bytes(range(256)) * 20, ("runs.csv is not a text file", ".xlsx")),
    "zeros": (b"\0" * 1000, ("runs.csv is not a text file",)),
    "one column": ("\n".join(rows()).replace(",", " "), ("runs.csv has one column",)),
    "a plan instead of experiments": (
        table(*(f"C,{200 + i / 100},water," for i in range(1200))),
        ("Row 14, column 'yield' is the first of 1200 empty cells", "keep at most 1000"),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_table_that_cannot_be_used(name: str, capsys: Capture) -> None:
    data, parts = REFUSED[name]
    check_refused(suggest(data, "-q"), capsys, {"runs.csv"}, *parts)


@pytest.mark.parametrize("name", ["runs.xlsx", "runs.xls", "runs.ods", "runs.parquet"])
def test_a_binary_file_by_another_name(name: str, capsys: Capture) -> None:
    code = suggest(b"PK\x03\x04" + bytes(200), "-q", name=name)
    check_refused(code, capsys, {name}, name, "save")


def test_a_folder(capsys: Capture) -> None:
    Path("folder").mkdir()
    words = ["suggest", "folder", "--task", "C", "--out", "next.csv", "-q"]
    check_refused(main(words), capsys, {"folder"}, "folder cannot be read: Is a directory")


@pytest.mark.parametrize("new", ["C", "B"])
def test_100_000_rows(new: str, capsys: Capture) -> None:
    generator = np.random.default_rng(0)
    n = 50_000
    T, P = generator.uniform(150, 300, 2 * n), generator.uniform(1, 9, 2 * n)
    y = 70 - ((T - 220) / 30) ** 2 - (P - 4) ** 2 + generator.normal(0, 0.1, 2 * n)
    file = io.StringIO()
    tasks = np.repeat(["A", "B"], n) if new == "C" else np.repeat(["A", "B"], [2 * n - 20, 20])
    lines = zip(tasks, T.round(3), P.round(3), y.round(3), strict=True)
    csv.writer(file).writerows([["task", "temperature", "pressure", "yield"], *lines])
    assert suggest(file.getvalue(), task=new) == 0
    kept = "'A', 'B'" if new == "C" else "'A'"
    assert (
        "Of past tasks of more than 300 rows the best 150 and a random choice of 150 others are kept: "
        f"{kept}." in capsys.readouterr().err
    )
    found = suggested()
    assert abs(float(found["temperature"]) - 220) < 30
    assert abs(float(found["pressure"]) - 4) < 1.5


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "=1+1", "+1", "-1", "@SUM(A1)", "'quoted"]
)
def test_names_stay_text_in_every_file(name: str) -> None:
    """Also when the suggestion is pasted below the table: it is then an experiment that runs."""
    choice = "@home"
    text = translated(table(), ("water", choice), ("ethanol", choice + " too"))
    assert suggest(text, "-q", task=name) == 0
    with Path("next.csv").open(newline="") as file:
        header, row = csv.reader(file)
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in (*header, *row))
    first = suggested()
    pasted = text + Path("next.csv").read_text().splitlines()[1] + "\n"
    assert suggest(pasted, "-q", "--force", task=name) == 0
    assert suggested()["solvent"] in (f"'{choice}", f"'{choice} too")
    assert suggested() != first
    assert main(["report", "runs.csv", "--task", name, "-n", "1", "-q"]) == 0
    page = Path("report.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page


def test_out_is_not_overwritten_without_force(capsys: Capture) -> None:
    for name in WRITTEN:
        Path(name).write_text("mine")
        check_refused(suggest(table(), "-q"), capsys, {"runs.csv", name}, f"'{name}' is there already")
        assert Path(name).read_text() == "mine"
        Path(name).unlink()
    Path("next.csv").write_text("mine")
    assert suggest(table(), "-q", "--force") == 0
    assert suggested()["task"] == "C"


def test_both_files_are_written_or_none(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    write_text = Path.write_text

    def full(self: Path, *args: str, **settings: str) -> int:
        if "space.toml" in self.name:
            raise OSError(28, "No space left on device", str(self))
        return write_text(self, *args, **settings)

    Path("runs.csv").write_text(table())
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        words = ["suggest", "runs.csv", "--task", "C", "-q", "--out", "next.csv"]
        code = main([*words, "--write-space", "space.toml"])
    sentence = "'space.toml' cannot be written (No space left on device)"
    check_refused(code, capsys, {"runs.csv"}, sentence)
    code = main([*words, "--write-space", "next.csv"])
    check_refused(code, capsys, {"runs.csv"}, "--out and --write-space are both 'next.csv'")


def test_json_of_a_hostile_table_is_json(capsys: Capture) -> None:
    text = translated(table(), ("A,", '"A ""é"" [/]",'))
    assert suggest(text, "--json", task="<C>") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["task"] == "<C>"
    assert set(found["suggestions"][0]["past_tasks"]) <= {'A "é" [/]', "B"}
