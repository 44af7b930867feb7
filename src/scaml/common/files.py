"""Files that are written whole or not at all."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["DRAFTS", "replacing", "replacing_all"]

DRAFTS = ".*.tmp"
"""A pattern of what a killed process may leave behind."""


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Where to write a file that takes the place of the target once the block has ended well.

    It lies in the same folder, so that the last step is a rename: readers see the old file or the new.
    """
    with replacing_all([target]) as (draft,):
        yield draft


@contextmanager
def replacing_all(targets: Sequence[Path]) -> Iterator[list[Path]]:
    """`replacing` for files that belong together: all of them are there at the end, or none."""
    # Not by mkstemp, whose files nobody else may read.
    drafts = [path.parent / f".{path.name}.{secrets.token_hex(8)}.tmp" for path in targets]
    try:
        yield drafts
        _rename(drafts, targets)
    finally:
        for draft in drafts:
            with suppress(OSError, ValueError):  # a path that cannot be written cannot be removed
                draft.unlink()


def _rename(drafts: Sequence[Path], targets: Sequence[Path]) -> None:
    """Rename all; where one fails, put back what was there."""
    before: list[tuple[Path, bytes | None]] = []
    try:
        for draft, target in zip(drafts, targets, strict=True):
            if len(targets) > 1:
                before.append((target, target.read_bytes() if target.is_file() else None))
            draft.replace(target)
    except BaseException:
        for draft, (target, old) in zip(drafts, before, strict=False):
            if draft.exists():  # it was not renamed
                continue
            if old is None:
                target.unlink()
            else:
                target.write_bytes(old)
        raise
