"""Results in Parquet files, whole or not at all: one row an evaluation.

A folder of results has one folder a setting. A finished unit is one small file,
`<method>-<run>.parquet`; when a command has finished, the files of a setting are packed into
`all.parquet`. A unit is there if either has it, so that a process may be killed at any moment.
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

__all__ = ["Results", "check_same", "done", "in_use", "read"]

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
_SETTING, _PACKED, _DAMAGED = "setting.json", "all.parquet", ".damaged"
_ORDER = [("method", "ascending"), ("run", "ascending"), ("step", "ascending")]

Key = tuple[str, int]
"""A method's name and the number of a run."""


class Results:
    """The results of one setting in their folder.

    Args:
        root: The folder of all settings.
        setting: Which of them; its folder is made if it is not there.

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

    def load(self) -> tuple[pa.Table, list[Path]]:
        """All finished units, sorted, and the damaged files, which are set aside under another name."""
        damaged, tables, seen = [], [], set[Key]()
        packed = self.folder / _PACKED
        parts = sorted(path for path in self.folder.glob("*.parquet") if path.name[0] != ".")
        for path in sorted(parts, key=lambda path: path != packed):
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
        """Keep a finished unit."""
        path = self.folder / f"{_slug(rows[0]['method'])}-{rows[0]['run']:05d}.parquet"
        _write(path, pa.Table.from_pylist(rows, schema=_SCHEMA))

    def log(self, method: str, run: int, text: str) -> Path:
        """Keep what is to be said about a unit that failed."""
        path = self.folder / f"{_slug(method)}-{run:05d}.log"
        _write_text(path, text)
        return path

    def pack(self) -> None:
        """Put all units into one file."""
        parts = [path for path in self.folder.glob("*.parquet") if path.name[0] != "."]
        parts = [path for path in parts if path.name != _PACKED]
        if parts:
            table, _ = self.load()
            _write(self.folder / _PACKED, table)
            for path in parts:
                path.unlink(missing_ok=True)

    def clean(self) -> None:
        """Remove what a killed process left half-written."""
        for path in self.folder.glob(DRAFTS):
            path.unlink(missing_ok=True)


def done(table: pa.Table, settings: Mapping[str, str], evaluations: int, where: Path) -> set[Key]:
    """The finished units among those of the methods in question.

    Args:
        table: What `Results.load` gave.
        settings: The hyperparameters of every method, by its name.
        evaluations: Rows of a whole unit.
        where: For the message.

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
    existing = list(_settings(root))
    for setting in asked:
        for there in existing:
            if there.problem == setting.problem and there != setting:
                raise _other(root, setting, there)


def read(root: Path) -> tuple[pd.DataFrame, list[Path]]:
    """All results below a folder, and the damaged files, which were set aside.

    Raises:
        SettingError: If there are none.
    """
    tables, damaged = [], []
    for setting in sorted(_settings(root)):
        table, bad = Results(root, setting).load()
        tables.append(table)
        damaged += bad
    if not sum(table.num_rows for table in tables):
        raise SettingError(
            f"{str(root)!r} has no results; give a folder that scaml bench run or scaml bench paper "
            "wrote."
        )
    return pa.concat_tables(tables).to_pandas(), damaged


def _settings(root: Path) -> Iterator[Setting]:
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
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise SavedFileError(f"{str(path)!r} is damaged ({error}); compute it again.") from error
    if not table.schema.equals(_SCHEMA):
        raise SavedFileError(f"{str(path)!r} has other columns than results; compute it again.")
    return table


def _free(path: Path) -> Path:
    """A name under which a damaged file is out of the way."""
    number = 0
    while (aside := path.with_name(f"{path.name}{_DAMAGED}{number or ''}")).exists():
        number += 1
    return aside


def _slug(method: str) -> str:
    plain = re.sub("[^A-Za-z0-9-]+", "_", method)
    # Two names of foreign methods may differ in what file names cannot have.
    return plain if plain == method else f"{plain}-{hashlib.sha256(method.encode()).hexdigest()[:8]}"


def _write(path: Path, table: pa.Table) -> None:
    with replacing(path) as draft:
        pq.write_table(table, draft, compression="zstd")


def _write_text(path: Path, text: str) -> None:
    with replacing(path) as draft:
        draft.write_text(text, encoding="utf-8")
