"""`scaml suggest` and `scaml report`: from a table of experiments, or a storage, to what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scaml.cli.show_suggestions import as_csv, facts, show
from scaml.cli.terminal import (
    AsJson,
    Jobs,
    Progress,
    Quiet,
    Seed,
    integer,
    method_name,
    print_json,
    progress,
    unwritable,
)
from scaml.common.files import replacing_all
from scaml.errors import SettingError

if TYPE_CHECKING:
    from scaml.methods import Method
    from scaml.report import Subject
    from scaml.sheets import Sheet

__all__ = ["report", "suggest"]

_ELSEWHERE = "give another file"


def _check_number(n: int) -> int:
    if n < 1:
        raise SettingError(f"-n is {n}; give an integer of at least 1.")
    return n


TablePath = Annotated[
    Path | None,
    typer.Argument(metavar="TABLE", help="CSV, Excel or Parquet file: one row an experiment."),
]
TaskName = Annotated[
    str | None,
    typer.Option("--task", metavar="NAME", help="The new task; it need not have a row yet."),
]
Objective = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="What was measured; the last column by default.")
]
Maximize = Annotated[
    bool, typer.Option("--maximize/--minimize", metavar="", help="Whether large values are good.")
]
Number = Annotated[
    int,
    typer.Option(
        "-n",
        metavar="INT",
        parser=integer,
        callback=_check_number,
        help="Experiments to run at once.",
    ),
]
TaskColumn = Annotated[str, typer.Option(metavar="COLUMN", help="The column that names the task.")]
SpacePath = Annotated[
    Path | None, typer.Option("--space", metavar="FILE", help="Parameters and ranges, as TOML.")
]
MethodName = Annotated[
    str | None,
    typer.Option(
        "--method",
        metavar="NAME",
        parser=method_name,
        help="One of scaml methods; ScaML-GP by default.",
    ),
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
Force = Annotated[bool, typer.Option("--force", metavar="", help="Overwrite files that are there.")]


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
    seed: Seed = 0,
    jobs: Jobs = 1,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Suggest the next experiments of a task, learning from past ones.

    TABLE has one row an experiment: a column `task`, the parameters, and what was measured. Rows of the
    new task without a measured value count as running.
    """
    _check_free(out, force)
    _check_free(write_space, force)
    if out is not None and write_space is not None and out.resolve() == write_space.resolve():
        raise SettingError(f"--out and --write-space are both {str(out)!r}; give two files.")
    source = _Source(table, task, objective, maximize, space, task_column, storage, study, past)
    with progress(quiet or as_json) as tell:
        subject, sheet = source.learn(n, method, seed, jobs, tell, quiet=quiet or as_json)
        from scaml.explain.suggestions import suggestions
        from scaml.spaces import space_file

        found = suggestions(subject, seed=seed)
        texts = {}
        if out is not None:
            texts[out] = as_csv(found, subject, sheet, task_column)
        if write_space is not None and subject.space is not None:
            texts[write_space] = space_file.as_toml(subject.space)
        _write(texts)
    if as_json:
        print_json(facts(found, subject))
        return
    show(found, subject)
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
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Explain on one HTML page what was learned from which past task, and what to try next.

    The page works without a network. Arguments are those of scaml suggest.
    """
    _check_free(out, force)
    source = _Source(table, task, objective, maximize, space, task_column, storage, study, past)
    with progress(quiet or as_json) as tell:
        subject, _ = source.learn(n, method, seed, jobs, tell, quiet=quiet or as_json)
        from scaml.explain.suggestions import suggestions
        from scaml.report import page

        explaining = "Explaining what was learned"
        tell(explaining, 0, None)
        found = suggestions(subject, seed=seed)
        page(subject, out, seed=seed, progress=lambda done, total: tell(explaining, done, total))
    if as_json:
        print_json({"report": str(out), **facts(found, subject)})
    else:
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
        self, n: int, method: str | None, seed: int, jobs: int, tell: Progress, *, quiet: bool
    ) -> tuple[Subject, Sheet | None]:
        """Read, learn and suggest; tell what was read and what was made of it."""
        self._check()
        import optuna

        from scaml.integrations.optuna.subject import of_storage
        from scaml.sheets.subject import of_sheet

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        chosen = _method(method)
        if self.storage is not None and self.study is not None:
            tell("Reading the storage", 0, None)
            return of_storage(
                self.storage,
                self.study,
                self.past,
                q=n,
                method=chosen,
                seed=seed,
                n_jobs=jobs,
                progress=tell,
            ), None
        tell(f"Reading {self.table}", 0, None)
        sheet = self._sheet()
        if not quiet:  # on the standard error: the standard output is for the result
            for note in sheet.notes:
                typer.echo(note, err=True)
        return of_sheet(
            sheet,
            maximize=self.maximize,
            q=n,
            method=chosen,
            seed=seed,
            n_jobs=jobs,
            progress=tell,
        ), sheet

    def _check(self) -> None:
        if (self.table is None) == (self.storage is None):
            raise SettingError(
                "Give a table of experiments, or --storage with --study, as in scaml suggest runs.csv "
                "--task new."
            )
        if self.storage is not None and not self.study:
            raise SettingError("--storage needs the name of the new study; add --study NAME.")
        if self.table is not None and not self.task:
            raise SettingError("--task is missing; name the new task, which need not have a row yet.")
        for option, name in (("--task", self.task), ("--study", self.study)):
            if name and name != name.encode(errors="replace").decode():
                raise SettingError(f"{option} is {name!a}, which is not in UTF-8; give another name.")

    def _sheet(self) -> Sheet:
        from scaml import sheets
        from scaml.spaces import space_file

        assert self.table is not None
        return sheets.read(
            self.table,
            task_column=self.task_column,
            objective=self.objective,
            space=None if self.space is None else space_file.read(self.space),
            new_task=self.task,
            minimize=not self.maximize,
        )


def _method(name: str | None) -> Method | None:
    """The method of a name; None for the default."""
    from scaml.bench.contestants import contestant

    if name is None or name == "scaml":  # whose settings in a study are the paper's
        return None
    method = contestant(name).method
    if method is None:  # one of a study's contestants has no model
        raise SettingError(f"--method is {name!r}, which learns nothing; see scaml methods.")
    return method


def _check_free(path: Path | None, force: bool) -> None:
    """Refuse a file that is there, or cannot be, before any work is done."""
    if path is None:
        return
    try:
        if path.is_dir():
            raise SettingError(f"{str(path)!r} is a folder; give the name of a file.")
        if path.exists() and not force:
            raise SettingError(f"{str(path)!r} is there already; give another name, or --force.")
        if not path.absolute().parent.is_dir():
            raise SettingError(f"There is no folder {str(path.parent)!r}; make it, or give another.")
    except OSError as error:  # a name that is too long, or a folder that is closed
        raise unwritable(path, error, _ELSEWHERE) from error


def _write(texts: Mapping[Path, str]) -> None:
    """All files, or none."""
    try:
        with replacing_all(list(texts)) as drafts:
            for draft, path in zip(drafts, texts, strict=True):
                draft.write_text(texts[path], encoding="utf-8", newline="")
    except OSError as error:
        raise unwritable(error.filename2 or path, error, _ELSEWHERE) from error
