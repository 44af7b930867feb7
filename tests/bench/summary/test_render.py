"""Text, Markdown and CSV of a summary, read back from each."""

from __future__ import annotations

import csv as standard_csv
import io
from dataclasses import fields, replace

import pandas as pd
import pytest
from markdown_it import MarkdownIt
from rich.console import Console
from rich.segment import Segment

from scaml.bench import FAMILIES, summary
from scaml.bench.summary import Row
from tests.bench.summary.cases import BRANIN, one_step, records, shuffled, study

FORMULAS = ["=1+1", "+a", "-b", "@c", "'d"]
MARKUP = ["a|b", r"a\|b", "[red]x[/red]", "[/]", "**a** _b_ `c`", "<b>&amp;", "~~a~~", "a  \\"]
NASTY = [*FORMULAS, *MARKUP, "a,b", 'a"b', "a\nb", "a\r\nb", "\tb", "\x1b[31mx"]


def printed(rows: list[Row], width: int = 120) -> str:
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(summary.text(rows), end="")
    found = console.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in found.splitlines())


def bold(rows: list[Row]) -> list[str]:
    """What stands out in the cells, the header aside."""
    console = Console(width=120, color_system="standard", force_terminal=True, file=io.StringIO())
    segments: list[Segment] = list(console.render(summary.text(rows)))
    found = [(s.text.strip(), s.style.bold) for s in segments if s.style is not None]
    return [words for words, strong in found if strong and "±" in words]


def tables(source: str) -> list[list[list[tuple[str, bool]]]]:
    """Tables of a Markdown text as a Markdown reader sees them: cells with their text, and if bold."""
    found: list[list[list[tuple[str, bool]]]] = []
    for token in (tokens := MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(source)):
        if token.type == "table_open":
            found.append([])
        elif token.type == "tr_open":
            found[-1].append([])
        elif token.type == "inline" and tokens[tokens.index(token) - 1].type in ("th_open", "td_open"):
            inside = token.children or []
            assert {child.type for child in inside} <= {
                "text",
                "text_special",
                "strong_open",
                "strong_close",
            }
            strong = any(child.type == "strong_open" for child in inside)
            found[-1][-1].append(("".join(child.content for child in inside), strong))
    return found


CLOSE = {"scaml": [1.0, 3.0], "gpbo": [2.25, 3.5], "random": [30.0, 40.0]}


def test_text_has_titles_errors_marks_and_a_caption() -> None:
    text = printed(one_step(CLOSE))
    assert text.startswith("Branin: M = 8, N_m = 32, 1 evaluation, 2 runs\n")
    assert " 2.0 ± 1.0 " in text
    assert " * 2.88 ± 0.62 " in text
    assert " 35.0 ± 5.0 " in text
    assert "+33.00 ± 4.00" not in text  # two digits of the error are enough
    assert "+33.0 ± 4.0" in text
    assert text.count("*") == 2
    assert "*: above the lowest by at most its standard error" in text
    assert bold(one_step(CLOSE)) == ["2.0 ± 1.0"]
    assert "Overview" not in text


def test_titles_are_those_of_the_families() -> None:
    for family in FAMILIES.values():
        rows = summary.summarize(pd.DataFrame(records((family.name, 2, 3), "a", [0], 2)))
        assert printed(rows).startswith(f"{family.title}: M = 2, N_m = 3, 2 evaluations, 1 run\n")


def test_columns_of_unequal_runs_are_shown_where_needed() -> None:
    rows = summary.summarize(shuffled(study()))
    branin, svm, whole = tables(summary.markdown(rows))
    header = ["method", "cumulative regret", "final regret", "rank", "mean rank", "difference to scaml"]
    assert [name for name, _ in branin[0]] == [*header, "pairs", "runs"]
    assert [name for name, _ in svm[0]] == header
    assert [(line[0][0], line[-2][0], line[-1][0]) for line in branin[1:]] == [
        ("scaml", "–", "4"),
        ("gpbo", "3", "4"),
        ("./mine.py:Mine", "2", "3"),
        ("another", "1", "1"),
    ]
    assert "Branin: M = 8, N_m = 32, 5 evaluations, 1 to 4 runs" in printed(rows)
    assert [line[1][0] for line in whole[1:]] == ["2", "1", "1", "1", "1"]
    without = tables(summary.markdown(summary.summarize(shuffled(study()), reference="none")))
    assert [name for name, _ in without[0][0]] == [*header[:-1], "runs"]


def test_text_and_markdown_say_the_same() -> None:
    rows = summary.summarize(shuffled(study()), timings=True)
    text = [line.split() for line in printed(rows, 160).splitlines()]
    found = tables(summary.markdown(rows))
    assert len(found) == 3
    for line in (line for table in found for line in table[1:]):
        assert " ".join(cell for cell, _ in line).split() in text
    assert [table[0][-3:] for table in found[:2]] == [
        [("step [s]", False), ("meta-fit [s]", False), ("core [s]", False)]
    ] * 2
    assert [cell for table in found for line in table[1:] for cell, strong in line if strong] == bold(
        rows
    )


def test_a_narrow_terminal_loses_no_digit() -> None:
    rows = summary.summarize(shuffled(study()), timings=True)
    wide, narrow = printed(rows, 200), printed(rows, 60)
    assert "…" not in narrow
    assert all(len(line) <= 60 for line in narrow.splitlines())
    digits = [sorted(filter(str.isdigit, text)) for text in (wide, narrow)]
    assert digits[0] == digits[1]


@pytest.mark.parametrize(
    ("mean", "error", "shown"),
    [
        (12.345, 0.678, "12.35 ± 0.68"),
        (12345.6, 678.9, "12346 ± 679"),
        (0.012345, 0.00678, "0.0123 ± 0.0068"),
        (1.5, 0.0, "1.5 ± 0"),
        (12.3456, None, "12.35"),
        (1.23456e-8, 6.78e-9, "1.235e-08 ± 6.8e-09"),
        (0.0, 0.0, "0 ± 0"),
    ],
)
def test_numbers_have_the_digits_they_deserve(mean: float, error: float | None, shown: str) -> None:
    row = replace(one_step({"a": [1.0, 2.0]})[0], cumulative=mean, cumulative_se=error)
    assert tables(summary.markdown([row]))[0][1][1] == (shown, True)


def visible(name: str) -> str:
    for plain, code in (("\n", r"\n"), ("\r", r"\r"), ("\t", r"\t"), ("\x1b", r"\x1b")):
        name = name.replace(plain, code)
    return name


@pytest.mark.parametrize("name", NASTY)
def test_names_of_methods_break_no_format(name: str) -> None:
    rows = summary.summarize(pd.DataFrame(records(BRANIN, name, [0, 1])), reference=name)
    shown = visible(name)
    assert sum(line.startswith(f"{shown} ") for line in printed(rows).splitlines()) == 1
    header, body = tables(summary.markdown(rows))[0]
    assert len(header) == len(body) == 5
    assert body[0] == (shown, False)
    lines = summary.csv(rows).split("\n")
    assert len(lines) == 3
    (found,) = standard_csv.DictReader(lines)
    assert found["method"][0] not in "=+-@\t\r"
    assert found["method"].removeprefix("'") == shown
    assert found["reference"] == found["method"]


def test_csv_has_every_digit_in_a_fixed_order() -> None:
    for timings in (False, True):
        rows = summary.summarize(shuffled(study()), timings=timings)
        names = [field.name for field in fields(Row)]
        found = summary.csv(rows)
        header, *lines = standard_csv.reader(io.StringIO(found, newline=""))
        assert header == (names if timings else names[:-3])
        assert "\r" not in found
        assert found.endswith("\n")
        for row, line in zip(rows, lines, strict=True):
            for name, cell in zip(header, line, strict=True):
                value = getattr(row, name)
                kind = type(value)
                assert (kind(cell) if value is not None else cell or None) == value


def test_no_rows_give_no_tables() -> None:
    assert (summary.markdown([]), printed([])) == ("", "")
    assert summary.csv([]).count("\n") == 1
