"""The folder of meta-fits: the same prior as a fit, to the last bit, from as few fits as possible."""

from __future__ import annotations

import logging
import multiprocessing
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import scaml.gp.task_gps
from scaml import MetaData, ScaML, Task, TaskGPs
from scaml.errors import SavedFileError
from scaml.gp.column_selection import fit_selecting_columns
from scaml.gp.map_fit import FitInput
from scaml.methods.base import MetaPrior, Method
from scaml.methods.gpbo import GPBO
from scaml.methods.scaml import ScaMLPrior
from scaml.priors.fit_cache import FolderCache
from scaml.priors.meta_fit import meta_fit
from tests.cases import ONE_MODEL, meta_data, smooth, task_of
from tests.foreign import FITS, Foreign, ForeignPrior


def mixed_meta(seed: int = 0) -> MetaData:
    rng = np.random.default_rng(seed)
    A, B, C = (rng.random((n, 4)) for n in (7, 9, 7))
    return MetaData(
        [
            Task(A[:, :2], smooth(A, 0.1), name="whole"),
            Task(B[:, :2], smooth(B, 0.2), name="lacks", known=[False, True]),
            Task(C[:, :2], smooth(C, 0.3), name="more", extra=C[:, 2:] - 0.5),
        ]
    )


def cached(folder: Path, meta: MetaData, method: Method | None = None, seed: int = 0) -> MetaPrior:
    return meta_fit(method or ONE_MODEL, meta, seed=seed, cache=FolderCache(folder))


def assert_same(a: MetaPrior, b: MetaPrior) -> None:
    assert isinstance(a, ScaMLPrior)
    assert isinstance(b, ScaMLPrior)
    assert a.method == b.method
    assert a.meta.names == b.meta.names
    for field in fields(TaskGPs):
        mine, other = getattr(a.task_gps, field.name), getattr(b.task_gps, field.name)
        same = torch.equal(mine, other) if isinstance(mine, Tensor) else mine == other
        assert same, field.name
    for mine, other in zip(a.levels, b.levels, strict=True):
        assert torch.equal(mine, other)


@pytest.fixture
def fitted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of all tasks that were fitted since."""
    names: list[str] = []

    def counting(inputs: list[FitInput], extra: int, **settings: Any) -> Tensor:
        names.extend(item.name for item in inputs)
        return fit_selecting_columns(inputs, extra, **settings)

    monkeypatch.setattr(scaml.gp.task_gps, "fit_selecting_columns", counting)
    return names


@pytest.fixture
def warned() -> Iterator[list[str]]:
    """Messages of the logger, which Optuna's logger keeps to itself."""
    messages: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            assert record.levelno == logging.WARNING
            messages.append(record.getMessage())

    logger, handler = logging.getLogger("optuna.scaml"), Handler()
    logger.addHandler(handler)
    yield messages
    logger.removeHandler(handler)


@pytest.mark.parametrize("method", [ONE_MODEL, ScaML("matern52", "union", "signed")], ids=str)
@pytest.mark.parametrize("kind", ["equal", "unequal", "mixed"])
def test_the_first_and_the_second_call_equal_a_fit(
    tmp_path: Path, fitted: list[str], kind: str, method: ScaML
) -> None:
    meta = {
        "equal": meta_data((6, 6, 6), 2),
        "unequal": meta_data((4, 9, 6), 2),
        "mixed": mixed_meta(),
    }[kind]
    whole = method.meta_fit(meta, seed=3)
    fitted.clear()
    assert_same(cached(tmp_path, meta, method, seed=3), whole)
    assert sorted(fitted) == sorted(meta.names)
    fitted.clear()
    assert_same(cached(tmp_path, meta, method, seed=3), whole)
    assert fitted == []


def test_there_is_one_file_a_task_and_no_other(tmp_path: Path) -> None:
    cached(tmp_path / "a" / "b", mixed_meta())
    files = sorted((tmp_path / "a" / "b").iterdir())
    assert len(files) == 3
    assert {f.suffix for f in files} == {".safetensors"}
    before = [(f.name, f.stat().st_mtime_ns) for f in files]
    cached(tmp_path / "a" / "b", mixed_meta())
    assert [(f.name, f.stat().st_mtime_ns) for f in sorted((tmp_path / "a" / "b").iterdir())] == before


@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_new_task_is_one_fit(tmp_path: Path, fitted: list[str], place: int) -> None:
    tasks = list(mixed_meta())
    cached(tmp_path, MetaData([task for i, task in enumerate(tasks) if i != place]))
    fitted.clear()
    prior = cached(tmp_path, MetaData(tasks))
    assert fitted == [tasks[place].name]
    assert_same(prior, ONE_MODEL.meta_fit(MetaData(tasks)))


def test_fewer_tasks_in_another_order_are_no_fit(tmp_path: Path, fitted: list[str]) -> None:
    tasks = list(mixed_meta())
    cached(tmp_path, MetaData(tasks))
    fitted.clear()
    chosen = MetaData([tasks[1], tasks[0]])
    prior = cached(tmp_path, chosen)
    assert fitted == []
    assert_same(prior, ONE_MODEL.meta_fit(chosen))


def test_the_name_of_a_task_does_not_matter(tmp_path: Path, fitted: list[str]) -> None:
    meta = meta_data((6, 7), 2)
    cached(tmp_path, meta)
    fitted.clear()
    renamed = MetaData([meta[0].called("t1"), meta[1].called("")])
    prior = cached(tmp_path, renamed)
    assert fitted == []
    assert prior.names == ("t1", "task-1")
    assert_same(prior, ONE_MODEL.meta_fit(renamed))


def test_two_tasks_of_the_same_data_are_two_tasks(tmp_path: Path) -> None:
    task = meta_data((6,), 2)[0]
    twins = MetaData([task.called("a"), task.called("b")])
    assert_same(cached(tmp_path, twins), ONE_MODEL.meta_fit(twins))
    assert_same(cached(tmp_path, twins), ONE_MODEL.meta_fit(twins))
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("part", ["X", "y", "known", "extra", "one row less"])
def test_a_changed_task_is_fitted_again(tmp_path: Path, fitted: list[str], part: str) -> None:
    tasks = list(mixed_meta())
    cached(tmp_path, MetaData(tasks))
    old = tasks[2]
    parts: dict[str, Any] = {"X": old.X, "y": old.y, "known": old.known, "extra": old.extra}
    if part == "one row less":
        parts |= {name: parts[name][:-1] for name in ("X", "y", "extra")}
    elif part == "known":
        parts["known"] = torch.tensor([True, False])
    else:
        parts[part] = parts[part].clone()
        parts[part].view(-1)[0] += 1e-15 + 1e-15 * parts[part].view(-1)[0].abs()
    X, y = parts.pop("X"), parts.pop("y")
    tasks[2] = Task(X, y, name="more", **parts)
    fitted.clear()
    prior = cached(tmp_path, MetaData(tasks))
    assert fitted == ["more"]
    assert_same(prior, ONE_MODEL.meta_fit(MetaData(tasks)))


@pytest.mark.parametrize("what", ["seed", "kernel"])
def test_another_setting_is_another_fit(tmp_path: Path, fitted: list[str], what: str) -> None:
    meta = meta_data((6,), 2)
    cached(tmp_path, meta)
    fitted.clear()
    method, seed = (ONE_MODEL, 7) if what == "seed" else (ScaML("matern52"), 0)
    assert_same(cached(tmp_path, meta, method, seed), method.meta_fit(meta, seed=seed))
    assert len(list(tmp_path.iterdir())) == 2


def damaged(path: Path, damage: str) -> None:
    data = path.read_bytes()
    if damage == "cut":
        path.write_bytes(data[:-5])
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        path.write_bytes(b"\xff" * len(data))


@pytest.mark.parametrize("damage", ["cut", "empty", "noise"])
def test_a_damaged_file_is_fitted_again_with_a_warning(
    tmp_path: Path, fitted: list[str], warned: list[str], damage: str
) -> None:
    meta = meta_data((5, 6), 2)
    cached(tmp_path, MetaData([meta[0]]))
    (path,) = tmp_path.iterdir()
    cached(tmp_path, meta)
    damaged(path, damage)
    fitted.clear()
    prior = cached(tmp_path, meta)
    assert fitted == ["t0"]
    assert len(warned) == 1
    assert "Fitted again" in warned[0]
    assert str(path) in warned[0]
    assert_same(prior, ONE_MODEL.meta_fit(meta))
    fitted.clear()
    assert_same(cached(tmp_path, meta), prior)
    assert fitted == []
    assert len(warned) == 1


def test_a_file_of_another_task_under_the_name_of_one_is_not_believed(tmp_path: Path) -> None:
    """Somebody copied files about: the shapes do not fit, and the answer is still right."""
    a, b = meta_data((5,), 2), meta_data((6,), 3, seed=1)
    cached(tmp_path / "a", a)
    cached(tmp_path / "b", b)
    (path_a,), (path_b,) = (tmp_path / "a").iterdir(), (tmp_path / "b").iterdir()
    path_a.write_bytes(path_b.read_bytes())
    assert_same(cached(tmp_path / "a", a), ONE_MODEL.meta_fit(a))


def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(SavedFileError) as info:
            cached(folder, meta_data((4,), 2))
        assert str(folder) in str(info.value)
    assert (tmp_path / "file").read_text() == "mine"


SHARED = meta_data((6, 7, 8, 9, 6, 7, 8, 9), 2)


def in_process(folder: str, pipe: Any) -> None:
    torch.set_num_threads(1)
    pipe.send("ready")
    pipe.recv()
    state = cached(Path(folder), SHARED).state()
    pipe.send({name: tensor.numpy() for name, tensor in state.items()})


def test_two_processes_that_share_the_folder_end_well(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    worker = context.Process(target=in_process, args=(str(tmp_path), there))
    worker.start()
    expected = ONE_MODEL.meta_fit(SHARED).state()
    assert here.poll(120)
    assert here.recv() == "ready"
    here.send("go")
    mine = cached(tmp_path, SHARED).state()
    assert here.poll(120)
    other = here.recv()
    worker.join(60)
    assert worker.exitcode == 0
    for name, value in expected.items():
        assert torch.equal(mine[name], value)
        np.testing.assert_array_equal(other[name], value.numpy())
    files = list(tmp_path.iterdir())
    assert len(files) == len(SHARED)
    assert {file.suffix for file in files} == {".safetensors"}


def test_a_method_that_learns_from_all_tasks_together_is_kept_as_a_whole(
    tmp_path: Path, warned: list[str]
) -> None:
    def mean(meta: MetaData, seed: int = 0, shift: float = 0.0) -> float:
        prior = cached(tmp_path, meta, Foreign(shift), seed)
        assert isinstance(prior, ForeignPrior)
        assert prior.names == meta.names
        expected = torch.cat([task.y for task in meta]).mean() + seed + shift
        assert torch.equal(prior.mean, expected)
        return float(prior.mean)

    FITS.clear()
    meta = mixed_meta()
    first = mean(meta)
    assert (FITS, len(list(tmp_path.iterdir()))) == ([3], 1)
    assert mean(meta) == first
    assert mean(MetaData([task.called(f"other {task.name}") for task in meta])) == first
    assert FITS == [3]
    mean(meta.and_task(task_of(5, 2).called("new")))
    assert FITS == [3, 4]
    mean(meta, seed=1)
    mean(meta, shift=2.0)
    assert FITS == [3, 4, 3, 3]
    assert len(list(tmp_path.iterdir())) == 4
    assert warned == []
    for path in tmp_path.iterdir():
        damaged(path, "cut")
    assert mean(meta) == first
    assert FITS == [3, 4, 3, 3, 3]
    assert len(warned) == 1


def test_a_plain_gp_is_kept_too(tmp_path: Path) -> None:
    prior = cached(tmp_path, mixed_meta(), GPBO())
    again = cached(tmp_path, mixed_meta(), GPBO())
    assert prior.names == again.names == mixed_meta().names
