"""Results in Parquet files, one row per evaluation; a file is written whole or not at all.

A folder of results has one folder per setting. A finished run is one small file,
`<method>-<run>.parquet`. At the end of a command the files of a setting are packed into
`all.parquet`. A run counts as stored if either file has it, so a process may be killed at any moment.

Files may lack the columns of `OPTIONAL`: tables and figures do not need them, and results that are kept
for long are much smaller without them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock, Timeout

from scaml.bench.settings import Setting
from scaml.bench.single_run import Row
from scaml.common.files import DRAFTS, replacing
from scaml.errors import SavedFileError, SettingError

__all__ = ["OPTIONAL", "Results", "check_same", "done", "in_use", "read", "stored_settings"]

_SCHEMA = pa.schema(
    [
        ("problem", pa.string()),
        ("meta_tasks", pa.int32()),
        ("points", pa.int32()),
        ("method", pa.string()),
        ("settings", pa.string()),
        ("run", pa.int32()),
        ("step", pa.int32()),
        ("x", pa.list_(pa.float64())),
        ("y", pa.float64()),
        ("value", pa.float64()),
        ("regret", pa.float64()),
        ("span", pa.float64()),
        ("seconds", pa.float32()),
        ("meta_fit_seconds", pa.float32()),
        ("weights", pa.list_(pa.float32())),
    ]
)
OPTIONAL = ("x", "y", "value", "weights")
"""Columns that a file may lack; they are read as null."""

_SETTING, _PACKED, _DAMAGED = "setting.json", "all.parquet", ".damaged"
_ORDER = [("method", "ascending"), ("run", "ascending"), ("step", "ascending")]

Key = tuple[str, int]
"""The name of a method, and the number of a run."""


class Results:
    """The results of one setting in their folder.

    Args:
        root: The folder of all settings.
        setting: The setting; its folder is made if it does not exist.

    Raises:
        SettingError: If the folder has results of another number of evaluations.
    """

    def __init__(self, root: Path, setting: Setting) -> None:
        self.setting = setting
        self.folder = root / setting.folder
        about = self.folder / _SETTING
        if about.exists():
            there = _setting(about)
            if there != setting:
                raise _other(root, setting, there)
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        _write_text(about, json.dumps(setting.to_json(), indent=1) + "\n")

    @property
    def packed(self) -> Path:
        """The file that holds all runs once a command has finished."""
        return self.folder / _PACKED

    def load(self) -> tuple[pa.Table, list[Path]]:
        """All finished runs, sorted, and the damaged files, which get another name."""
        damaged, tables, seen = [], [], set[Key]()
        # The packed file first: a run that is in both places is taken from there.
        for path in sorted(self._files(), key=lambda path: (path != self.packed, path)):
            try:
                table = _read_file(path)
            except SavedFileError:
                damaged.append(path.replace(_free(path)))
                continue
            fresh = [key not in seen for key in _keys(table)]
            seen |= set(_keys(table))
            tables.append(table.filter(pa.array(fresh, pa.bool_())))
        return pa.concat_tables([_SCHEMA.empty_table(), *tables]).sort_by(_ORDER), damaged

    def add(self, rows: list[Row]) -> None:
        """Store a finished run."""
        path = self.folder / f"{_slug(rows[0]['method'])}-{rows[0]['run']:05d}.parquet"
        _write(path, pa.Table.from_pylist(rows, schema=_SCHEMA))

    def log(self, method: str, run: int, text: str) -> Path:
        """Store the traceback of a run that failed."""
        path = self.folder / f"{_slug(method)}-{run:05d}.log"
        _write_text(path, text)
        return path

    def pack(self) -> None:
        """Put all runs into one file."""
        parts = [path for path in self._files() if path != self.packed]
        if parts:
            table, _ = self.load()
            _write(self.packed, table)
            for path in parts:
                path.unlink(missing_ok=True)

    def clean(self) -> None:
        """Remove half-written files of killed processes."""
        for path in self.folder.glob(DRAFTS):
            path.unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        return [path for path in self.folder.glob("*.parquet") if path.name[0] != "."]


def done(table: pa.Table, settings: Mapping[str, str], evaluations: int, where: Path) -> set[Key]:
    """The finished runs of the methods in question.

    Args:
        table: The table of `Results.load`.
        settings: The hyperparameters of every method as text, by the method's name.
        evaluations: The number of rows of a whole run.
        where: The folder, for the message.

    Raises:
        SettingError: If the results of a method were made with other hyperparameters.
    """
    columns = table.select(["method", "settings", "run", "step"]).to_pydict()
    rows = zip(*columns.values(), strict=True)
    finished = set()
    for method, made_with, run, step in rows:
        if made_with != settings.get(method, made_with):
            raise SettingError(
                f"{str(where)!r} has results of {method!r} made by {made_with}, which is now "
                f"{settings[method]}; give another --out."
            )
        if step == evaluations:
            finished.add((method, run))
    return finished


@contextmanager
def in_use(root: Path) -> Iterator[None]:
    """Keep other commands from writing to the folder; the lock ends with the process."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(root / ".lock", timeout=0):
            yield
    except Timeout as error:
        raise SettingError(
            f"Another command is writing to {str(root)!r}; wait for it, or give another --out."
        ) from error


def check_same(root: Path, asked: Iterable[Setting]) -> None:
    """Refuse a folder that has other settings of the same problems."""
    existing = list(stored_settings(root))
    for setting in asked:
        for there in existing:
            if there.problem == setting.problem and there != setting:
                raise _other(root, setting, there)


def read(root: Path) -> tuple[pd.DataFrame, list[Path]]:
    """All results in a folder, and the damaged files, which get another name.

    Raises:
        SettingError: If there are none.
    """
    tables, damaged = [], []
    for setting in sorted(stored_settings(root)):
        table, bad = Results(root, setting).load()
        tables.append(table)
        damaged += bad
    if not sum(table.num_rows for table in tables):
        raise SettingError(
            f"{str(root)!r} has no results; give a folder that scaml bench run has written."
        )
    return pa.concat_tables(tables).to_pandas(), damaged


def stored_settings(root: Path) -> Iterator[Setting]:
    """The settings that have a folder of results."""
    for path in sorted(root.glob(f"*/{_SETTING}")):
        yield _setting(path)


def _setting(path: Path) -> Setting:
    try:
        return Setting(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise SavedFileError(
            f"{str(path)!r} does not say which setting the results are of ({error}); remove the "
            "folder, or give another."
        ) from error


def _other(root: Path, asked: Setting, there: Setting) -> SettingError:
    return SettingError(
        f"{str(root)!r} has results of {asked.problem!r} with other settings; asked are "
        f"{asked.differences(there)}. Give another --out."
    )


def _keys(table: pa.Table) -> Iterator[Key]:
    columns = table.select(["method", "run"]).to_pydict()
    return zip(columns["method"], columns["run"], strict=True)


def _read_file(path: Path) -> pa.Table:
    """The rows of a file with all columns of the results."""
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise SavedFileError(f"{str(path)!r} is damaged ({error}); compute it again.") from error
    found = set(table.column_names)
    if not set(_SCHEMA.names) - set(OPTIONAL) <= found <= set(_SCHEMA.names):
        raise SavedFileError(f"{str(path)!r} has other columns than results; compute it again.")
    columns = [
        table[field.name] if field.name in found else pa.nulls(table.num_rows, field.type)
        for field in _SCHEMA
    ]
    try:
        return pa.table(columns, names=_SCHEMA.names).cast(_SCHEMA)
    except pa.ArrowException as error:
        raise SavedFileError(
            f"{str(path)!r} has columns of other types than results; compute it again."
        ) from error


def _free(path: Path) -> Path:
    """A new name for a damaged file, under which nobody reads it."""
    number = 0
    while (aside := path.with_name(f"{path.name}{_DAMAGED}{number or ''}")).exists():
        number += 1
    return aside


def _slug(method: str) -> str:
    plain = re.sub("[^A-Za-z0-9-]+", "_", method)
    # Two names of foreign methods may differ only in characters that file names cannot have.
    return plain if plain == method else f"{plain}-{hashlib.sha256(method.encode()).hexdigest()[:8]}"


def _write(path: Path, table: pa.Table) -> None:
    with replacing(path) as draft:
        pq.write_table(table, draft, compression="zstd")


def _write_text(path: Path, text: str) -> None:
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")
