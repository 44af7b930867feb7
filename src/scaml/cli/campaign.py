"""`scaml suggest` and `scaml report`: from a table of experiments, or a storage, to what to do next."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from scaml.cli.terminal import Seed, integer
from scaml.errors import SettingError

if TYPE_CHECKING:
    from scaml.campaign import Suggestion
    from scaml.report import Subject
    from scaml.sheets import Sheet

__all__ = ["report", "suggest"]

_DIGITS = 6  # significant ones of a number to set
_SHOWN_BEHIND = 3

TablePath = Annotated[
    Path | None,
    typer.Argument(metavar="[TABLE]", help="CSV, Excel or Parquet file: one row an experiment."),
]
TaskName = Annotated[
    str | None,
    typer.Option("--task", metavar="NAME", help="The new task; it need not have a row yet."),
]
Objective = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="What was measured; the last column by default.")
]
Maximize = Annotated[bool, typer.Option("--maximize/--minimize", help="Whether large values are good.")]
Number = Annotated[
    int, typer.Option("-n", metavar="INT", parser=integer, help="Experiments to run at once.")
]
TaskColumn = Annotated[str, typer.Option(metavar="COLUMN", help="The column that names the task.")]
SpacePath = Annotated[
    Path | None, typer.Option("--space", metavar="FILE", help="Parameters and ranges, as TOML.")
]
MethodName = Annotated[
    str | None,
    typer.Option("--method", metavar="NAME", help="One of scaml methods; ScaML-GP by default."),
]
Storage = Annotated[
    str | None, typer.Option(metavar="URL", help="An Optuna storage, in place of a table.")
]
StudyName = Annotated[
    str | None, typer.Option("--study", metavar="NAME", help="The new study in the storage.")
]
Past = Annotated[
    str, typer.Option(metavar="PATTERN", help="Names of the past studies, such as 'xgb-*'.")
]
Jobs = Annotated[
    int, typer.Option(metavar="INT", parser=integer, help="Processes to use, -1 for one a core.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that are there.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Nothing but the result.")]


def suggest(
    table: TablePath = None,
    task: TaskName = None,
    objective: Objective = None,
    maximize: Maximize = True,
    n: Number = 1,
    space: SpacePath = None,
    write_space: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Save the parameters and ranges as TOML, for editing."),
    ] = None,
    task_column: TaskColumn = "task",
    method: MethodName = None,
    storage: Storage = None,
    study: StudyName = None,
    past: Past = "*",
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the suggestions as CSV, with the table's columns."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    seed: Seed = 0,
    jobs: Jobs = 1,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Suggest the next experiments of a task, learning from past ones.

    TABLE has one row an experiment: a column `task`, the parameters, and what was measured. Rows of the
    new task without a measured value count as running.
    """
    _check_free(out, force)
    _check_free(write_space, force)
    source = _Source(table, task, objective, maximize, space, task_column, storage, study, past)
    subject, sheet = source.learn(n, method, seed, jobs, quiet=quiet or as_json)
    from scaml import space_file
    from scaml.campaign import suggestions

    found = suggestions(subject, seed=seed)
    if write_space is not None and subject.space is not None:
        space_file.write(subject.space, write_space)
    if out is not None:
        _write(out, _as_csv(found, subject, sheet, task_column))
    if as_json:
        typer.echo(_as_json(found, subject))
        return
    _show(found, subject)
    for what, path in (("Suggestions", out), ("Space", write_space)):
        if path is not None:
            typer.echo(f"{what}: {path}")


def report(
    table: TablePath = None,
    task: TaskName = None,
    objective: Objective = None,
    maximize: Maximize = True,
    n: Number = 3,
    space: SpacePath = None,
    task_column: TaskColumn = "task",
    method: MethodName = None,
    storage: Storage = None,
    study: StudyName = None,
    past: Past = "*",
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page.")] = Path("report.html"),
    seed: Seed = 0,
    jobs: Jobs = 1,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Explain on one HTML page what was learned from which past task, and what to try next.

    The page works without a network. Arguments are those of scaml suggest.
    """
    _check_free(out, force)
    source = _Source(table, task, objective, maximize, space, task_column, storage, study, past)
    subject, _ = source.learn(n, method, seed, jobs, quiet=quiet)
    from scaml.report import page

    try:
        page(subject, out, seed=seed)
    except OSError as error:
        raise _unwritable(out, error) from error
    typer.echo(f"Report: {out}")


@dataclass(frozen=True)
class _Source:
    """Where the experiments are."""

    table: Path | None
    task: str | None
    objective: str | None
    maximize: bool
    space: Path | None
    task_column: str
    storage: str | None
    study: str | None
    past: str

    def learn(
        self, n: int, method: str | None, seed: int, jobs: int, *, quiet: bool
    ) -> tuple[Subject, Sheet | None]:
        """Read, learn and suggest; tell what was read and what was made of it."""
        if (self.table is None) == (self.storage is None):
            raise SettingError(
                "Give a table of experiments, or --storage with --study, as in scaml suggest runs.csv "
                "--task new."
            )
        with _told(quiet) as say:
            say("Reading")
            import optuna

            from scaml import campaign, space_file
            from scaml.bench.contestants import contestant

            optuna.logging.set_verbosity(optuna.logging.WARNING)
            chosen = None if method is None else contestant(method).method
            if method is not None and chosen is None:  # of a study's contestants one has no model
                raise SettingError(f"--method is {method!r}, which learns nothing; see scaml methods.")
            if self.storage is not None:
                if not self.study:
                    raise SettingError("--storage needs the name of the new study; add --study NAME.")
                say("Learning from the past studies")
                return campaign.of_storage(
                    self.storage, self.study, self.past, q=n, method=chosen, seed=seed, n_jobs=jobs
                ), None
            from scaml import sheets

            assert self.table is not None
            if not self.task:
                raise SettingError(
                    "--task is missing; name the new task, which need not have a row yet."
                )
            sheet = sheets.read(
                self.table,
                task_column=self.task_column,
                objective=self.objective,
                space=None if self.space is None else space_file.read(self.space),
                new_task=self.task,
                minimize=not self.maximize,
            )
            for note in sheet.notes:
                say(note)
            say("Learning from the past tasks")
            subject = campaign.of_sheet(
                sheet, maximize=self.maximize, q=n, method=chosen, seed=seed, n_jobs=jobs
            )
        return subject, sheet


@contextmanager
def _told(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Say what is read and done, on the standard error: the standard output is for the result."""
    if quiet:
        yield lambda text: None
    else:
        console = Console(stderr=True, highlight=False)
        with console.status("") if console.is_terminal else nullcontext():
            yield lambda text: console.print(Text(text), soft_wrap=True)


def _check_free(path: Path | None, force: bool) -> None:
    """Refuse a file that is there, or cannot be, before any work is done."""
    if path is None:
        return
    if path.is_dir():
        raise SettingError(f"{str(path)!r} is a folder; give the name of a file.")
    if path.exists() and not force:
        raise SettingError(f"{str(path)!r} is there already; give another name, or --force.")
    if not path.absolute().parent.is_dir():
        raise SettingError(f"There is no folder {str(path.parent)!r}; make it, or give another.")


def _write(path: Path, text: str) -> None:
    """A file, whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8", newline="")
        temporary.replace(path)
    except OSError as error:
        raise _unwritable(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def _unwritable(path: Path, error: OSError) -> SettingError:
    reason = error.strerror or type(error).__name__
    return SettingError(f"{str(path)!r} cannot be written ({reason}); give another file.")


def _rounded(value: Any) -> Any:
    """A number to as many digits as somebody sets; anything else as it is."""
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


def _as_csv(
    found: Sequence[Suggestion], subject: Subject, sheet: Sheet | None, task_column: str
) -> str:
    """Rows that can be pasted below the table: its columns, the measured one empty."""
    assert subject.space is not None
    columns = (*subject.space.names, subject.objective) if sheet is None else sheet.columns
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([_cell(column) for column in columns])
    for one in found:
        known: Mapping[str, Any] = (
            one.params if sheet is None else {**one.params, task_column: subject.title}
        )
        writer.writerow([_cell(_rounded(known.get(column, ""))) for column in columns])
    return file.getvalue()


def _cell(value: Any) -> Any:
    """A value for a spreadsheet, which takes text that begins with one of these for a formula."""
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return f"'{value}"
    return value


def _as_json(found: Sequence[Suggestion], subject: Subject) -> str:
    return json.dumps(
        {
            "task": subject.title,
            "objective": subject.objective,
            "maximize": subject.maximize,
            "observations": subject.task.n,
            "suggestions": [
                {
                    "params": {name: _rounded(value) for name, value in one.params.items()},
                    "expected": one.expected,
                    "deviation": one.deviation,
                    "past_tasks": one.behind,
                }
                for one in found
            ],
        },
        indent=1,
    )


def _show(found: Sequence[Suggestion], subject: Subject) -> None:
    table = Table()
    table.add_column(Text(f"next of {subject.title}"))
    for i in range(len(found)):
        table.add_column(str(i + 1), justify="right")
    assert subject.space is not None
    for name in subject.space.names:
        table.add_row(Text(name), *(Text(str(_rounded(one.params[name]))) for one in found))
    table.add_section()
    expected = [
        "–" if one.expected is None else f"{one.expected:.4g} ± {2 * (one.deviation or 0.0):.2g}"
        for one in found
    ]
    table.add_row(Text(f"expected {subject.objective}"), *expected)
    behind = [
        "\n".join(f"{name} {move:+.3g}" for name, move in list(one.behind.items())[:_SHOWN_BEHIND])
        for one in found
    ]
    if any(behind):
        table.add_row(Text("past tasks behind it"), *map(Text, behind))
    Console().print(table)
    typer.echo(
        "± is two standard deviations; a past task moves the expectation by the number after it."
    )
