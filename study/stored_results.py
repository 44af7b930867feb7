"""Keeps committed results small, and rewrites the stored text of a method's hyperparameters.

`compact` drops the columns that neither tables nor figures need, and stores figures with a palette of
256 colours. `rename_settings` is for a change that renames hyperparameters and changes no number:
stored results are continued only if their text of the hyperparameters equals that of the method.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from PIL import Image

from scaml.bench.contestants import Contestant
from scaml.bench.results import OPTIONAL, Results, in_use, stored_settings
from scaml.common.checks import check_integer
from scaml.common.files import replacing
from scaml.errors import SavedFileError, SettingError

__all__ = ["Renamed", "compact", "compact_figures", "rename_settings"]

_COLOURS = 256
_SECONDS, _SETTINGS = "seconds", "settings"


def compact(root: Path, *, digits: int | None = None) -> None:
    """Rewrite all results of a folder in as few bytes as tables and figures allow.

    The columns of `scaml.bench.results.OPTIONAL` are dropped. All others keep their values, but for
    seconds if `digits` is given. `scaml bench run` continues compact results as it does others.

    Args:
        root: The folder of the results.
        digits: Significant digits of the seconds per suggestion; None for all. They take most of the
            space, and only `scaml bench table --timings` shows them.

    Raises:
        SettingError: If there are no results.
        SavedFileError: If a file is damaged; compute its runs again first.
    """
    if digits is not None:
        check_integer(digits, "The number of digits", least=1)
    with in_use(root):
        for results in _folders(root):
            results.clean()
            table, damaged = results.load()
            if damaged:
                raise SavedFileError(
                    f"A damaged file was set aside as {str(damaged[0])!r}; compute its runs again "
                    "before compacting."
                )
            if not table.num_rows:
                continue
            results.pack()
            table = table.drop_columns(list(OPTIONAL))
            if digits is not None:
                place = table.schema.get_field_index(_SECONDS)
                rounded = _rounded(table[_SECONDS].to_numpy(), digits)
                table = table.set_column(place, _SECONDS, pa.array(rounded))
            _write(table, results.packed)


def compact_figures(folder: Path) -> None:
    """Rewrite the PNG files of a folder with a palette; files that have one stay as they are."""
    for path in sorted(folder.glob("*.png")):
        with Image.open(path) as image:
            if image.mode == "P":
                continue
            small = image.convert("RGB").quantize(
                _COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE
            )
            dpi = image.info.get("dpi")
        with replacing(path) as draft:
            small.save(draft, format="PNG", optimize=True, **({"dpi": dpi} if dpi else {}))


@dataclass(frozen=True, order=True)
class Renamed:
    """A method whose stored hyperparameters are written in another way now.

    Args:
        method: The name of the method.
        before: The stored text.
        after: The text of the method as it is now.
    """

    method: str
    before: str
    after: str


def rename_settings(
    root: Path, contestant: Callable[[str], Contestant], *, write: bool
) -> list[Renamed]:
    """Find methods whose stored hyperparameters differ from those of today, and store the new text.

    Only for a change that renames hyperparameters: nobody checks that the numbers are still the same.

    Args:
        root: The folder of the results.
        contestant: Finds a method by its name. Results of names that it does not know stay as they are.
        write: Whether to rewrite the files.
    """
    found: set[Renamed] = set()
    with in_use(root):
        for results in _folders(root):
            pairs = results.load()[0].group_by(["method", _SETTINGS]).aggregate([]).to_pylist()
            changes = [change for pair in pairs if (change := _change(pair, contestant)) is not None]
            found |= set(changes)
            if changes and write:
                results.pack()
                # Read as it is: a compact file stays compact.
                _write(_with_changes(pq.read_table(results.packed), changes), results.packed)
    return sorted(found)


def _change(pair: dict[str, str], contestant: Callable[[str], Contestant]) -> Renamed | None:
    try:
        after = contestant(pair["method"]).settings
    except SettingError:
        return None
    before = pair[_SETTINGS]
    return None if after == before else Renamed(pair["method"], before, after)


def _with_changes(table: pa.Table, changes: list[Renamed]) -> pa.Table:
    column = table[_SETTINGS].cast(pa.string())
    for change in changes:
        concerned = pc.and_(pc.equal(table["method"], change.method), pc.equal(column, change.before))
        column = pc.if_else(concerned, change.after, column)
    return table.set_column(table.schema.get_field_index(_SETTINGS), _SETTINGS, column)


def _folders(root: Path) -> Iterator[Results]:
    settings = sorted(stored_settings(root))
    if not settings:
        raise SettingError(f"{str(root)!r} has no results; give a folder that has some.")
    for setting in settings:
        yield Results(root, setting)


def _rounded(values: NDArray[np.float32], digits: int) -> NDArray[np.float32]:
    """The values with so many significant digits."""
    exact = values.astype(np.float64)
    size = np.floor(np.log10(np.maximum(np.abs(exact), np.finfo(np.float32).tiny)))
    unit = 10.0 ** (size - digits + 1)
    return (np.round(exact / unit) * unit).astype(np.float32)


def _write(table: pa.Table, path: Path) -> None:
    # Measured seconds hardly repeat: their bytes compress better stream by stream than in a dictionary.
    distinct = pc.count_distinct(table[_SECONDS]).as_py()
    split = distinct > table.num_rows // 2
    names = [name for name in table.column_names if not (split and name == _SECONDS)]
    with replacing(path) as draft:
        pq.write_table(
            table,
            draft,
            compression="zstd",
            compression_level=19,
            use_dictionary=names,
            column_encoding={_SECONDS: "BYTE_STREAM_SPLIT"} if split else None,
            write_statistics=False,
        )
