"""`SourceOptions`: where the experiments are, and what is learned from them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scaml.cli.terminal import AsJson, Jobs, Quiet, Seed, integer, method_name
from scaml.common.progress import Progress
from scaml.errors import SettingError

if TYPE_CHECKING:
    from scaml.explain.subject import Subject
    from scaml.methods.base import Method
    from scaml.sheets import Sheet

__all__ = ["Number", "SourceOptions"]


def _check_number(n: int) -> int:
    if n < 1:
        raise SettingError(f"-n is {n}; give an integer of at least 1.")
    return n


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


@dataclass(frozen=True)
class SourceOptions:
    """The options of all commands that suggest experiments."""

    table: Annotated[
        Path | None,
        typer.Argument(metavar="TABLE", help="CSV, Excel or Parquet file: one row per experiment."),
    ] = None
    task: Annotated[
        str | None,
        typer.Option("--task", metavar="NAME", help="The new task; it need not have a row yet."),
    ] = None
    objective: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="What was measured; the last column by default."),
    ] = None
    maximize: Annotated[
        bool, typer.Option("--maximize/--minimize", metavar="", help="Whether large values are good.")
    ] = True
    n: Number = 1
    space: Annotated[
        Path | None, typer.Option("--space", metavar="FILE", help="Parameters and ranges, as TOML.")
    ] = None
    task_column: Annotated[
        str, typer.Option(metavar="COLUMN", help="The column that names the task.")
    ] = "task"
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            metavar="NAME",
            parser=method_name,
            help="One of scaml methods; ScaML-GP by default.",
        ),
    ] = None
    storage: Annotated[
        str | None, typer.Option(metavar="URL", help="An Optuna storage, in place of a table.")
    ] = None
    study: Annotated[
        str | None, typer.Option("--study", metavar="NAME", help="The new study in the storage.")
    ] = None
    past: Annotated[
        str, typer.Option(metavar="PATTERN", help="Names of the past studies, such as 'xgb-*'.")
    ] = "*"
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="The file to write.")] = None
    seed: Seed = 0
    jobs: Jobs = 1
    force: Annotated[
        bool, typer.Option("--force", metavar="", help="Overwrite files that are there.")
    ] = False
    as_json: AsJson = False
    quiet: Quiet = False

    @property
    def silent(self) -> bool:
        """Whether only the result is printed."""
        return self.quiet or self.as_json

    def learn(self, tell: Progress) -> tuple[Subject, Sheet | None]:
        """Learn from the past tasks and suggest for the new one; print the notes about the table.

        Args:
            tell: Called with the progress.

        Returns:
            What was learned and suggested, and the table if the experiments were in one.
        """
        self._check()
        method = _method(self.method)
        if self.storage is not None and self.study is not None:
            return self._learn_from_storage(self.storage, self.study, method, tell), None
        from scaml.sheets.subject import of_sheet

        tell(f"Reading {self.table}", 0, None)
        sheet = self._sheet()
        if not self.silent:  # on the standard error: the standard output is for the result
            for note in sheet.notes:
                typer.echo(note, err=True)
        subject = of_sheet(
            sheet,
            q=self.n,
            method=method,
            seed=self.seed,
            n_jobs=self.jobs,
            progress=tell,
        )
        return subject, sheet

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

    def _learn_from_storage(
        self, storage: str, study: str, method: Method | None, tell: Progress
    ) -> Subject:
        import optuna

        from scaml.integrations.optuna.subject import of_storage

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        tell("Reading the storage", 0, None)
        return of_storage(
            storage,
            study,
            self.past,
            q=self.n,
            method=method,
            seed=self.seed,
            n_jobs=self.jobs,
            progress=tell,
        )

    def _sheet(self) -> Sheet:
        from scaml import sheets

        space = None
        if self.space is not None:
            from scaml.spaces import space_file

            space = space_file.read(self.space)
        assert self.table is not None
        return sheets.read(
            self.table,
            task_column=self.task_column,
            objective=self.objective,
            space=space,
            new_task=self.task,
            minimize=not self.maximize,
        )


def _method(name: str | None) -> Method | None:
    """The method with this name, or in this file; None for the default."""
    if name is None:
        return None
    if name == "random":  # a name in scaml bench, for a search without a model
        raise SettingError(f"--method is {name!r}, which learns nothing; see scaml methods.")
    if name.rpartition(":")[0].endswith(".py"):
        from scaml.bench.contestants import contestant

        return contestant(name).method
    from scaml.methods.by_name import method_named

    return method_named(name)
