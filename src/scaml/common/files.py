"""Files that are written completely or not at all."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["DRAFTS", "replacing", "replacing_all"]

DRAFTS = ".*.tmp"
"""Pattern of the names of temporary files, which a killed process may leave behind."""


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """The path of a temporary file, which replaces the target if the block ends without an error.

    The temporary file lies in the target's folder, so that the last step is a rename: readers see
    either the old file or the new one.
    """
    with replacing_all([target]) as (draft,):
        yield draft


@contextmanager
def replacing_all(targets: Sequence[Path]) -> Iterator[list[Path]]:
    """`replacing` for files that belong together: at the end all of them are replaced, or none."""
    # Not made by mkstemp, because other users could not read its files.
    drafts = [path.parent / f".{path.name}.{secrets.token_hex(8)}.tmp" for path in targets]
    try:
        yield drafts
        _rename(drafts, targets)
    finally:
        for draft in drafts:
            with suppress(OSError, ValueError):  # the path may be invalid, or the file already renamed
                draft.unlink()


def _rename(drafts: Sequence[Path], targets: Sequence[Path]) -> None:
    """Rename all drafts; if one rename fails, restore the old files."""
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
