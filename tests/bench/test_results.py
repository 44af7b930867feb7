"""Files of results: whole or not at all, packed or not, damaged or of something else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from scaml import SavedFileError, SettingError
from scaml.bench.results import OPTIONAL, Results, check_same, done, in_use, read
from tests.bench.study_cases import SMALL, rows

NAMES = {"scaml": "M()", "gpbo": "M()"}


def filled(root: Path) -> Results:
    results = Results(root, SMALL)
    for run in range(3):
        results.add(rows(SMALL, "scaml", run))
    results.add(rows(SMALL, "gpbo", 0))
    return results


def frames_equal(left: pd.DataFrame, right: pd.DataFrame) -> bool:
    pd.testing.assert_frame_equal(left, right)
    return True


def test_what_is_written_is_read(tmp_path: Path) -> None:
    filled(tmp_path)
    frame, damaged = read(tmp_path)
    expected = [
        *rows(SMALL, "gpbo", 0),
        *(row for run in range(3) for row in rows(SMALL, "scaml", run)),
    ]
    assert damaged == []
    assert frame["regret"].tolist() == [row["regret"] for row in expected]
    assert frame["x"].map(list).tolist() == [row["x"] for row in expected]
    assert frame["method"].tolist() == [row["method"] for row in expected]
    assert frame["weights"].iloc[-1].tolist() == [0.0, 0.5]
    assert frame["weights"].iloc[0] is None
    assert frame["span"].isna().all()


def test_packing_changes_nothing_but_the_files(tmp_path: Path) -> None:
    results = filled(tmp_path)
    before, _ = read(tmp_path)
    results.pack()
    assert [path.name for path in results.folder.glob("*.parquet")] == ["all.parquet"]
    assert frames_equal(read(tmp_path)[0], before)
    results.add(rows(SMALL, "gpbo", 1))
    assert len(read(tmp_path)[0]) == len(before) + 3
    results.pack()
    assert len(read(tmp_path)[0]) == len(before) + 3


def test_a_run_in_both_places_counts_once(tmp_path: Path) -> None:
    """As if killed between packing and removing."""
    results = filled(tmp_path)
    before, _ = read(tmp_path)
    results.pack()
    results.add(rows(SMALL, "scaml", 1))
    assert frames_equal(read(tmp_path)[0], before)


def test_what_a_killed_process_left_is_ignored_and_removed(tmp_path: Path) -> None:
    results = filled(tmp_path)
    left = results.folder / ".scaml-00000.parquet.123.tmp"
    left.write_bytes(b"PAR1 half")
    assert len(read(tmp_path)[0]) == 12
    results.clean()
    assert not left.exists()


@pytest.mark.parametrize("content", [b"", b"no parquet", None])
def test_a_damaged_file_is_set_aside(tmp_path: Path, content: bytes | None) -> None:
    results = filled(tmp_path)
    path = results.folder / "scaml-00001.parquet"
    path.write_bytes(path.read_bytes()[:-100] if content is None else content)
    table, damaged = results.load()
    assert damaged == [results.folder / "scaml-00001.parquet.damaged"]
    assert damaged[0].exists()
    assert not path.exists()
    assert done(table, NAMES, 3, tmp_path) == {("gpbo", 0), ("scaml", 0), ("scaml", 2)}
    path.write_bytes(b"")
    assert results.load()[1] == [results.folder / "scaml-00001.parquet.damaged1"]


def test_a_file_of_other_columns_is_set_aside(tmp_path: Path) -> None:
    results = filled(tmp_path)
    pd.DataFrame({"a": [1]}).to_parquet(results.folder / "scaml-00009.parquet")
    assert [path.name for path in results.load()[1]] == ["scaml-00009.parquet.damaged"]


def test_columns_that_no_table_needs_may_be_missing(tmp_path: Path) -> None:
    results = filled(tmp_path)
    results.pack()
    before, _ = read(tmp_path)
    before.drop(columns=list(OPTIONAL)).to_parquet(results.packed)
    frame, damaged = read(tmp_path)
    assert damaged == []
    assert frame[list(OPTIONAL)].isna().all(axis=None)
    kept = [name for name in before if name not in OPTIONAL]
    assert frames_equal(frame[kept], before[kept])
    assert list(frame) == list(before)


def test_encoded_strings_are_read_as_strings(tmp_path: Path) -> None:
    results = filled(tmp_path)
    results.pack()
    before, _ = read(tmp_path)
    table = pq.read_table(results.packed)
    for name in ("problem", "method", "settings"):
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, table[name].dictionary_encode())
    pq.write_table(table, results.packed)
    assert frames_equal(read(tmp_path)[0], before)


def test_runs_are_added_to_results_with_missing_columns(tmp_path: Path) -> None:
    results = filled(tmp_path)
    results.pack()
    read(tmp_path)[0].drop(columns=list(OPTIONAL)).to_parquet(results.packed)
    results.add(rows(SMALL, "gpbo", 1))
    results.pack()
    frame, _ = read(tmp_path)
    assert len(frame) == 15
    assert frame.loc[frame["x"].notna(), ["method", "run"]].drop_duplicates().to_numpy().tolist() == [
        ["gpbo", 1]
    ]


def test_a_file_of_other_types_is_set_aside(tmp_path: Path) -> None:
    results = filled(tmp_path)
    frame = read(tmp_path)[0].assign(regret="much")
    frame.to_parquet(results.folder / "scaml-00009.parquet")
    assert [path.name for path in results.load()[1]] == ["scaml-00009.parquet.damaged"]


def test_results_of_other_hyperparameters_are_refused(tmp_path: Path) -> None:
    table, _ = filled(tmp_path).load()
    with pytest.raises(
        SettingError, match=r"has results of 'scaml' made by M\(\), which is now N\(\); "
    ):
        done(table, NAMES | {"scaml": "N()"}, 3, tmp_path)


def test_another_setting_is_refused_with_the_difference(tmp_path: Path) -> None:
    filled(tmp_path)
    other = replace(SMALL, meta_tasks=3, evaluations=9)
    message = (
        r"of 'branin' with other settings; asked are meta-tasks 3 instead of 2, evaluations 9 .* 3\."
    )
    with pytest.raises(SettingError, match=message):
        check_same(tmp_path, [other])
    with pytest.raises(SettingError, match="evaluations 9 instead of 3"):
        Results(tmp_path, replace(SMALL, evaluations=9))
    check_same(tmp_path, [SMALL, replace(other, problem="hartmann3")])


def test_a_folder_has_one_writer(tmp_path: Path) -> None:
    with (
        in_use(tmp_path),
        pytest.raises(SettingError, match="Another command is writing"),
        in_use(tmp_path),
    ):
        pass
    with in_use(tmp_path):
        pass


def test_a_folder_without_results(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="has no results; give a folder that scaml bench run"):
        read(tmp_path)
    with pytest.raises(SettingError, match="has no results"):
        read(tmp_path / "nowhere")


@pytest.mark.parametrize("content", ["", "[1]", '{"problem": 1}'])
def test_a_folder_that_does_not_say_what_it_is(tmp_path: Path, content: str) -> None:
    (filled(tmp_path).folder / "setting.json").write_text(content)
    with pytest.raises(SavedFileError, match="does not say which setting"):
        read(tmp_path)


def test_foreign_names_become_file_names(tmp_path: Path) -> None:
    results = Results(tmp_path, SMALL)
    for method in ("./mine.py:Mine", "/mine.py:Mine", "a/b.py:<M>"):
        results.add(rows(SMALL, method, 0))
    assert len(list(results.folder.glob("*.parquet"))) == 3
    assert set(read(tmp_path)[0]["method"]) == {"./mine.py:Mine", "/mine.py:Mine", "a/b.py:<M>"}
