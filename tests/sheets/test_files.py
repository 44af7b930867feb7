"""Files: separators, encodings, workbooks, Parquet, and what is no table at all."""

from __future__ import annotations

import csv
import io
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scaml.errors import SavedFileError, SettingError, TaskDataError
from scaml.sheets import files, read
from scaml.sheets.files import read_table
from tests.sheets.cases import RUNS, Reader, Refuser, noted

# What spreadsheets hold: no control characters, and no formulas.
CELLS = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), max_size=8).map(
    lambda text: text.strip().lstrip("=").strip()
)
NAMES = CELLS.filter(bool)


@given(
    st.lists(NAMES, min_size=2, max_size=4, unique=True).flatmap(
        lambda names: st.tuples(
            st.just(names),
            st.lists(
                st.lists(CELLS, min_size=len(names), max_size=len(names)).filter(any),
                min_size=1,
                max_size=5,
            ),
        )
    ),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    st.sampled_from(["\n", "\r\n", "\r"]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_a_spreadsheet_quotes_is_read_back(
    tmp_path: Path, table: tuple[list[str], list[list[str]]], encoding: str, end: str
) -> None:
    names, rows = table
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator=end)
    writer.writerows([names, *rows])
    path = tmp_path / "t.csv"
    path.write_bytes(text.getvalue().encode(encoding))
    got = read_table(path)
    assert got.columns == {name: tuple(row[i] for row in rows) for i, name in enumerate(names)}


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_separators_and_encodings_are_found(sheet: Reader, separator: str, encoding: str) -> None:
    text = RUNS.replace("alloy", "Härte °C").replace(",", separator)
    read = sheet(text.encode(encoding))
    assert read.columns == ("task", "temperature", "Härte °C", "yield")
    assert read.past == sheet(RUNS.replace("alloy", "Härte °C")).past


def test_a_separator_inside_names_does_not_confuse(sheet: Reader) -> None:
    text = RUNS.replace(",", ";").replace("alloy", "alloy, hardened, cut").replace("30.5", "30,5")
    assert sheet(text).columns == ("task", "temperature", "alloy, hardened, cut", "yield")


def test_latin_1_is_read_with_a_note(sheet: Reader) -> None:
    read = sheet(RUNS.replace("alloy", "Härte").encode("latin-1"))
    assert read.columns[2] == "Härte"
    assert noted(read, "Latin-1")
    assert not noted(sheet(RUNS), "Latin-1")


def test_one_column_is_no_table(refused: Refuser) -> None:
    assert "one column, 'task|x|y'" in refused(TaskDataError, "task|x|y\na|1|2\n")


def test_quotation_marks_that_are_not_closed_are_refused_by_row(refused: Refuser) -> None:
    assert refused(TaskDataError, RUNS + 'b,1,"x,2\nb,2,y,3\n').startswith("Row 6 of ")
    assert "Row 3" in refused(TaskDataError, RUNS.replace("a,30.5,y", f'a,30.5,"{"y" * 200_000}"'))


def test_long_cells_are_read(sheet: Reader) -> None:
    read = sheet(RUNS.replace("x", "x" * 100_000))
    assert read.past[0].params[0]["alloy"] == "x" * 100_000
    assert all(len(note) < 300 for note in read.notes)


@pytest.mark.parametrize(
    "data",
    [b"PK\x03\x04\x14\x00\x06\x00", b"\x89PNG\r\n\x1a\n\x00", b"\x00" * 100, b"task,x,y\na,\x07,1\n"],
)
def test_binary_files_are_refused(refused: Refuser, data: bytes) -> None:
    assert "is not a text file" in refused(SavedFileError, data)


def test_files_that_cannot_be_opened_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SavedFileError, match="No such file"):
        read(tmp_path / "runs.csv")
    with pytest.raises(SavedFileError, match="directory"):
        read(tmp_path)
    with pytest.raises(SavedFileError, match="null"):
        read("a\0b")

    def forbidden(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", forbidden)
    with pytest.raises(SavedFileError, match=r"runs.csv cannot be read: Permission denied; give"):
        read(tmp_path / "runs.csv")


def test_a_hundred_thousand_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.random((100_000, 2)).round(6).tolist()
    lines = [f"t{i % 9},{','.join(map(str, x))},{'abc'[i // 9 % 3]},{x[0]}" for i, x in enumerate(X)]
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(["task,a,b,kind,y", *lines]))
    monkeypatch.setitem(sys.modules, "pandas", None)  # the standard library is enough
    before = time.process_time()
    sheet = read(path)
    assert time.process_time() - before < 10.0  # it takes one or two; a quadratic step would take hours
    assert [len(task.y) for task in sheet.past] == [300] * 9
    assert sheet.space.d == 5
    assert not any("logarithmic" in note for note in sheet.notes)


# Workbooks and Parquet.

ROWS: list[list[Any]] = [
    ["task", "temperature", "fan", "alloy", "yield"],
    ["001", 20, True, "x", 1.5],
    ["001", 30.5, False, "y", 2],
    [None] * 5,
    [7, 40, True, "x", 3],
    [7, 90, False, "y", None],
    [7, 50, False, "y", 1e-7],
]
WORKBOOKS = {".xlsx": "openpyxl", ".ods": "odf"}


def workbook(path: Path, *sheets: list[list[Any]]) -> Path:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip(WORKBOOKS[path.suffix])
    with pandas.ExcelWriter(path) as writer:
        for i, rows in enumerate(sheets):
            frame = pandas.DataFrame(rows, dtype=object)
            frame.to_excel(writer, sheet_name=f"S{i}", header=False, index=False)
    return path


@pytest.mark.parametrize("suffix", WORKBOOKS)
def test_a_workbook_reads_as_its_csv(tmp_path: Path, sheet: Reader, suffix: str) -> None:
    book = read(workbook(tmp_path / f"runs{suffix}", ROWS))
    (tmp_path / f"runs{suffix}").unlink()
    text = "\n".join(",".join("" if cell is None else str(cell) for cell in row) for row in ROWS)
    assert book == sheet(text)
    assert [task.name for task in book.past] == ["001", "7"]
    assert noted(book, "'yield'", "left out: 6")


def test_other_worksheets_are_noted(tmp_path: Path) -> None:
    book = read(workbook(tmp_path / "runs.xlsx", ROWS, [["other"]]))
    assert noted(book, "first of 2 worksheets", "'S0'")


def test_dates_of_a_workbook_are_dates(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    rows = [[*row, None if row[0] is None else pandas.Timestamp(2024, 1, 1)] for row in ROWS]
    rows[0][-1] = "day"
    book = read(workbook(tmp_path / "runs.xlsx", rows), objective="yield")
    assert noted(book, "'day' holds dates")


def test_a_formula_that_nobody_computed_is_refused(tmp_path: Path) -> None:
    rows = [list(row) for row in ROWS]
    rows[4][4] = "=B5*2"
    with pytest.raises(TaskDataError, match=r"Row 5, column 'yield' holds the formula '=B5\*2'"):
        read(workbook(tmp_path / "runs.xlsx", rows))


def test_parquet_reads_as_its_csv(tmp_path: Path, sheet: Reader) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "task": ["a", "a", "b", "b", "b"],
            "temperature": [20.0, 30.5, 40.0, 90.0, 50.0],
            "fan": [True, False, True, False, True],
            "alloy": pandas.Categorical(["x", "y", "x", "y", None]),
            "yield": [1.0, 2.0, 3.0, None, 5.0],
        }
    )
    path = tmp_path / "runs.parquet"
    frame.to_parquet(path)
    table = read(path)
    frame.set_index("task").to_parquet(path)
    assert read(path) == table
    path.unlink()
    assert table == sheet(frame.to_csv(index=False))


@pytest.mark.parametrize("suffix", [".xlsx", ".xls", ".ods", ".parquet"])
def test_a_missing_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    path = tmp_path / f"runs{suffix}"
    path.write_bytes(b"PK\x03\x04")

    def missing(name: str) -> Any:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(files, "import_module", missing)
    with pytest.raises(
        SettingError, match=r"pandas and .*; run pip install 'scaml\[sheets\]', or save"
    ):
        read(path)


@pytest.mark.parametrize("name", ["runs.xlsx", "runs.XLSX", "runs.parquet"])
def test_damaged_files_are_refused(tmp_path: Path, name: str) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("openpyxl")
    path = tmp_path / name
    path.write_bytes(b"PK\x03\x04 but no more")
    with pytest.raises(
        SavedFileError, match=r"cannot be read as \.(xlsx|parquet) \(.*save it as CSV\.$"
    ):
        read(path)
