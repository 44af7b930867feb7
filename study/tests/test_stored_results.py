"""Compact results: fewer bytes, the same tables, and runs can be added; settings that are renamed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image

from scaml import SavedFileError, SettingError
from scaml.bench.contestants import Contestant
from scaml.bench.palette import write
from scaml.bench.results import OPTIONAL, Results, read
from scaml.bench.runner import run_study
from scaml.bench.summary import csv, summarize
from study.contestants import contestant
from study.stored_results import Renamed, compact, compact_figures, rename_settings
from tests.bench.study_cases import SMALL, rows

RESULTS = Path(__file__).parents[2] / "results"


def filled(root: Path, runs: int = 40) -> Results:
    """Results whose seconds are measured, not invented."""
    results = Results(root, SMALL)
    generator = np.random.default_rng(0)
    for run in range(runs):
        seconds = generator.lognormal(size=SMALL.evaluations).astype(np.float32).tolist()
        found = rows(SMALL, "scaml", run, settings=contestant("scaml").settings)
        results.add([row | {"seconds": value} for row, value in zip(found, seconds, strict=True)])
    results.pack()
    return results


def table(root: Path) -> str:
    return csv(summarize(read(root)[0], timings=True))


def test_nothing_that_a_table_shows_is_lost(tmp_path: Path) -> None:
    results = filled(tmp_path)
    before, shown, size = read(tmp_path)[0], table(tmp_path), results.packed.stat().st_size
    compact(tmp_path)
    after, _ = read(tmp_path)
    kept = [name for name in before if name not in OPTIONAL]
    pd.testing.assert_frame_equal(after[kept], before[kept])
    assert after[list(OPTIONAL)].isna().all(axis=None)
    assert table(tmp_path) == shown
    assert results.packed.stat().st_size < 0.7 * size
    again = results.packed.read_bytes()
    compact(tmp_path)
    assert results.packed.read_bytes() == again


def test_seconds_to_two_digits(tmp_path: Path) -> None:
    results = filled(tmp_path)
    before, _ = read(tmp_path)
    compact(tmp_path, digits=2)
    after, _ = read(tmp_path)
    assert after["seconds"].tolist() == [
        pytest.approx(float(f"{second:.1e}"), rel=1e-6) for second in before["seconds"]
    ]
    assert after["regret"].tolist() == before["regret"].tolist()
    once = results.packed.read_bytes()
    compact(tmp_path, digits=2)
    assert results.packed.read_bytes() == once
    with pytest.raises(SettingError, match="The number of digits is 0"):
        compact(tmp_path, digits=0)


def test_compact_results_are_continued(tmp_path: Path) -> None:
    methods = [contestant("random")]
    run_study(tmp_path / "one", [SMALL], methods, 3)
    run_study(tmp_path / "two", [SMALL], methods, 2)
    compact(tmp_path / "two")
    state = run_study(tmp_path / "two", [SMALL], methods, 3)
    assert (state.finished, len(state.damaged)) == (3, 0)
    one, two = (read(tmp_path / name)[0] for name in ("one", "two"))
    assert one["regret"].tolist() == two["regret"].tolist()
    assert two.loc[two["x"].notna(), "run"].unique().tolist() == [2]


def test_unpacked_and_damaged_files(tmp_path: Path) -> None:
    results = Results(tmp_path, SMALL)
    results.add(rows(SMALL, "scaml", 0))
    compact(tmp_path)
    assert [path.name for path in results.folder.glob("*.parquet")] == ["all.parquet"]
    results.add(rows(SMALL, "scaml", 1))
    (results.folder / "scaml-00002.parquet").write_bytes(b"PAR1")
    with pytest.raises(SavedFileError, match=r"set aside as .*scaml-00002.*before compacting\.$"):
        compact(tmp_path)
    compact(tmp_path)
    assert len(read(tmp_path)[0]) == 2 * SMALL.evaluations


def test_folders_without_results(tmp_path: Path) -> None:
    Results(tmp_path, SMALL)
    compact(tmp_path)
    assert not list(tmp_path.glob("*/*.parquet"))
    with pytest.raises(SettingError, match="has no results; give a folder"):
        compact(tmp_path / "nowhere")


def test_figures_get_a_palette(tmp_path: Path) -> None:
    figure = Figure(figsize=(2.0, 1.0))
    figure.subplots().plot([1, 2, 3], [1, 4, 9], color="#0072B2")
    path, _ = write(figure, tmp_path, "line")
    with Image.open(path) as image:
        before = np.asarray(image.convert("RGB"), dtype=np.int64)
        dpi = image.info["dpi"]
    size = path.stat().st_size
    compact_figures(tmp_path)
    assert path.stat().st_size < size
    with Image.open(path) as image:
        assert image.mode == "P"
        assert image.info["dpi"] == pytest.approx(dpi)
        after = np.asarray(image.convert("RGB"), dtype=np.int64)
    assert np.abs(after - before).max() < 64
    assert np.abs(after - before).mean() < 0.5
    once = path.read_bytes()
    compact_figures(tmp_path)
    assert path.read_bytes() == once


def test_renamed_settings(tmp_path: Path) -> None:
    results = Results(tmp_path, SMALL)
    for method, settings in (("gpbo", "GPBO(old)"), ("scaml", "ScaML(old)"), ("a", "A(old)")):
        results.add(rows(SMALL, method, 0, settings=settings))

    def now(name: str) -> Contestant:
        if name == "a":
            raise SettingError("There is no method 'a'; choose another.")
        return Contestant(name, None, "GPBO(new)" if name == "gpbo" else "ScaML(old)")

    expected = [Renamed("gpbo", "GPBO(old)", "GPBO(new)")]
    assert rename_settings(tmp_path, now, write=False) == expected
    assert rename_settings(tmp_path, now, write=True) == expected
    frame, _ = read(tmp_path)
    assert dict(zip(frame["method"], frame["settings"], strict=True)) == {
        "a": "A(old)",
        "gpbo": "GPBO(new)",
        "scaml": "ScaML(old)",
    }
    assert frame["x"].notna().all()
    assert rename_settings(tmp_path, now, write=True) == []


def test_a_compact_file_stays_compact_when_settings_are_renamed(tmp_path: Path) -> None:
    results = filled(tmp_path)
    compact(tmp_path, digits=2)
    size = results.packed.stat().st_size
    rename_settings(tmp_path, lambda name: Contestant(name, None, "ScaML(new)"), write=True)
    assert results.packed.stat().st_size < 1.1 * size
    assert set(read(tmp_path)[0]["settings"]) == {"ScaML(new)"}


# The committed results.


@pytest.mark.parametrize("root", [RESULTS, RESULTS / "choices"])
def test_committed_results_are_those_of_the_methods_of_today(root: Path) -> None:
    """Else `make study` and `make choices` could not continue them."""
    assert rename_settings(root, contestant, write=False) == []


def test_committed_results_are_small() -> None:
    files = [path for path in RESULTS.rglob("*") if path.is_file() and path.suffix != ".pdf"]
    assert sum(path.stat().st_size for path in files) < 3e6
    for root in (RESULTS, RESULTS / "choices"):
        assert read(root)[0][list(OPTIONAL)].isna().all(axis=None)
        assert (root / "history.jsonl").stat().st_size > 1000
