"""`scaml suggest`: the next experiments, from a table of experiments or from an Optuna storage."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from scaml.cli.options import takes
from scaml.cli.show_past import past_json, past_lines
from scaml.cli.show_suggestions import as_csv, as_json, show
from scaml.cli.source import SourceOptions
from scaml.cli.terminal import check_free, print_json, progress, write_all
from scaml.errors import SettingError

__all__ = ["SuggestOptions", "suggest"]


@dataclass(frozen=True)
class SuggestOptions(SourceOptions):
    """The options of `scaml suggest`."""

    write_space: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Save the parameters and ranges as TOML, for editing."),
    ] = field(default=None, metadata={"after": "space"})
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the suggestions as CSV, with the table's columns."),
    ] = None


@takes(SuggestOptions)
def suggest(options: SuggestOptions) -> None:
    """Suggest the next experiments of a task, learning from past ones.

    TABLE has one row per experiment: a column `task`, the parameters, and what was measured. Rows of
    the new task without a measured value count as running.
    """
    out, write_space = options.out, options.write_space
    check_free(out, options.force)
    check_free(write_space, options.force)
    if out is not None and write_space is not None and out.resolve() == write_space.resolve():
        raise SettingError(f"--out and --write-space are both {str(out)!r}; give two files.")
    with progress(options.silent) as tell:
        subject, sheet = options.learn(tell)
        from scaml.explain.run import Run

        run = Run.of(subject, seed=options.seed)
        found = run.suggestions
        texts = {}
        if out is not None:
            texts[out] = as_csv(found, subject, sheet, options.task_column)
        if write_space is not None and subject.space is not None:
            from scaml.spaces import space_file

            texts[write_space] = space_file.as_toml(subject.space)
        past: Any = past_json(run) if options.as_json else past_lines(run)
        write_all(texts)
    if options.as_json:
        print_json({**as_json(found, subject), **past})
        return
    show(found, subject)
    for line in past:
        typer.echo(line)
    for what, path in (("Suggestions", out), ("Space", write_space)):
        if path is not None:
            typer.echo(f"{what}: {path}")
