"""`python -m study rename-settings`: rewrite the stored text of hyperparameters."""

from __future__ import annotations

from typing import Annotated

import typer

from scaml.cli.terminal import progress
from study.commands.shared import COMMAND, Folders, needs_group

__all__ = ["rename_settings"]


def rename_settings(
    folders: Folders,
    write: Annotated[
        bool, typer.Option("--write", metavar="", help="Rewrite the files; else only show changes.")
    ] = False,
) -> None:
    """Rewrite stored hyperparameters after a change that renamed some and changed no number.

    Stored results are continued only if their hyperparameters, as text, equal those of the method of
    the same name. This command shows every method whose text differs, and with --write stores the new
    text.
    """
    with needs_group(), progress():
        from study.contestants import contestant
        from study.stored_results import rename_settings as rename

        found = {root: rename(root, contestant, write=write) for root in folders}
    for root, changes in found.items():
        for change in changes:
            typer.echo(f"{root}: {change.method}\n  was {change.before}\n  is  {change.after}")
    count = sum(map(len, found.values()))
    texts = f"{count} {'text' if count == 1 else 'texts'}"
    if not count:
        typer.echo("All stored texts are those of the methods.")
    elif write:
        typer.echo(f"{texts} rewritten.")
    else:
        typer.echo(f"{texts} to rewrite; run {COMMAND} rename-settings --write.")
