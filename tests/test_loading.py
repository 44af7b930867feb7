"""prior.save, load, add and in_space: a prior from a file is the prior, to the last bit."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from botorch.models.model import Model
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from torch import Tensor

from scaml import MetaData, ScaML, Task, TaskGPs, suggest
from scaml.errors import SettingError, SpaceError, StoreError, TaskDataError
from scaml.loading import load
from scaml.methods.base import MetaPrior, Method
from scaml.methods.gpbo import GPBO
from scaml.methods.scaml import ScaMLPrior
from scaml.space import Space
from scaml.store import read, write
from tests.cases import meta_data, smooth, task_of

METHODS = [ScaML(), ScaML("matern52", "union", "signed", 2.5), GPBO(), GPBO("matern52", 1)]
SPACE = Space({"n": IntDistribution(1, 20), "k": CategoricalDistribution(["x", "y"])})  # d = 3
NEW = task_of(3, 3)


def mixed_tasks() -> list[Task]:
    """Whole, lacking and with columns of their own."""
    rng = np.random.default_rng(0)
    A, B, C, D = (rng.random((n, 5)) for n in (9, 12, 9, 8))
    return [
        Task(A[:, :3], smooth(A, 0.1), name="whole"),
        Task(B[:, :3], smooth(B, 0.2), name="lacks", known=[True, False, True]),
        Task(C[:, :3], smooth(C, 0.3), name="more", extra=C[:, 3:] - 0.5),
        Task(D[:, :3], smooth(D, 0.4), name="both", known=[False, True, True], extra=D[:, 3:4] - 0.5),
    ]


META = MetaData(mixed_tasks())


def assert_same_gps(a: MetaPrior, b: MetaPrior) -> None:
    assert isinstance(a, ScaMLPrior)
    assert isinstance(b, ScaMLPrior)
    for field in fields(TaskGPs):
        mine, other = getattr(a.task_gps, field.name), getattr(b.task_gps, field.name)
        same = torch.equal(mine, other) if isinstance(mine, Tensor) else mine == other
        assert same, field.name
    for mine, other in zip(a.levels, b.levels, strict=True):
        assert torch.equal(mine, other)


def points(prior: MetaPrior, q: int = 2) -> Tensor:
    """Suggestions with and without data, from a short table where the cube would take long."""
    table = torch.rand(200, prior.d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    tasks = [Task.empty(prior.d), task_of(3, prior.d)]
    return torch.cat([suggest(prior, task, q=q, candidates=table, seed=4) for task in tasks])


@pytest.mark.parametrize("method", METHODS, ids=str)
@pytest.mark.parametrize("space", [None, SPACE], ids=["no space", "space"])
def test_a_loaded_prior_is_the_saved_one(tmp_path: Path, method: Method, space: Space | None) -> None:
    prior = method.meta_fit(META, seed=1)
    if space is not None:
        prior = prior.in_space(space)
    prior.save(tmp_path / "p")
    loaded = load(tmp_path / "p")
    assert type(loaded) is type(prior)
    assert loaded.method == method
    assert loaded.space == space
    assert loaded.names == prior.names
    assert loaded.d == prior.d
    for mine, other in zip(loaded.meta, META, strict=True):
        assert mine.name == other.name
        for part in ("X", "y", "known", "extra"):
            assert torch.equal(getattr(mine, part), getattr(other, part))
    if isinstance(method, ScaML):
        assert_same_gps(prior, loaded)
    assert torch.equal(points(loaded), points(prior))


@pytest.mark.parametrize("method", [ScaML(), GPBO()], ids=str)
def test_a_loaded_prior_suggests_the_same_points_of_its_space(tmp_path: Path, method: Method) -> None:
    prior = method.meta_fit(META).in_space(SPACE)
    prior.save(tmp_path / "p")
    a, b = suggest(prior, NEW, q=3), suggest(load(tmp_path / "p"), NEW, q=3)
    assert torch.equal(a, b)
    for x in a:
        assert torch.allclose(SPACE.encode(SPACE.decode(x)), x)


def test_saving_what_was_loaded_gives_the_same_file(tmp_path: Path) -> None:
    ScaML().meta_fit(META).in_space(SPACE).save(tmp_path / "a")
    load(tmp_path / "a").save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_another_process_makes_the_same_suggestions(tmp_path: Path) -> None:
    program = (
        "import sys, torch\nfrom scaml.loading import load\nfrom scaml.store import write\n"
        "from tests.test_loading import points\n"
        "for name in ('scaml', 'gpbo'):\n"
        "    prior = load(f'{sys.argv[1]}/{name}')\n"
        "    write(f'{sys.argv[1]}/{name}.points', {}, {'x': points(prior)})\n"
    )
    priors = {"scaml": ScaML().meta_fit(META).in_space(SPACE), "gpbo": GPBO().meta_fit(META)}
    for name, prior in priors.items():
        prior.save(tmp_path / name)
    root = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], cwd=root, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    for name, prior in priors.items():
        assert torch.equal(read(tmp_path / f"{name}.points")[1]["x"], points(prior))


def test_fifty_tasks_come_back(tmp_path: Path) -> None:
    prior = ScaML().meta_fit(meta_data(tuple(4 + m % 7 for m in range(50)), 2))
    prior.save(tmp_path / "p")
    loaded = load(tmp_path / "p")
    assert len(loaded.names) == 50
    assert_same_gps(prior, loaded)


def test_names_of_any_letters_come_back(tmp_path: Path) -> None:
    names = ["Größe", "日本", "a/b", 'q"uote', "new\nline", "\x00", "0/X", "state/noise"]
    tasks = [task.called(name) for task, name in zip(meta_data((4,) * 8, 2), names, strict=True)]
    GPBO().meta_fit(MetaData(tasks)).save(tmp_path / "p")
    assert load(tmp_path / "p").names == tuple(names)


# add


@pytest.mark.parametrize("last", range(4))
def test_adding_a_task_is_a_fit_with_it_included(last: int) -> None:
    tasks = mixed_tasks()
    new = tasks.pop(last)
    added = ScaML().meta_fit(MetaData(tasks), seed=2).add(new, seed=2)
    fitted = ScaML().meta_fit(MetaData([*tasks, new]), seed=2)
    assert added.names == fitted.names
    assert_same_gps(added, fitted)
    assert torch.equal(points(added), points(fitted))


def test_adding_to_a_loaded_prior_is_a_fit_too(tmp_path: Path) -> None:
    tasks = mixed_tasks()
    ScaML().meta_fit(MetaData(tasks[:2])).in_space(SPACE).save(tmp_path / "p")
    added = load(tmp_path / "p").add(tasks[2]).add(tasks[3])
    assert added.space == SPACE
    assert_same_gps(added, ScaML().meta_fit(MetaData(tasks)))
    added.save(tmp_path / "q")
    assert_same_gps(load(tmp_path / "q"), added)


def test_adding_leaves_the_old_prior_as_it_was() -> None:
    prior = ScaML().meta_fit(MetaData(mixed_tasks()[:2]))
    before = {name: tensor.clone() for name, tensor in prior.state().items()}
    prior.add(mixed_tasks()[2])
    assert len(prior.names) == len(prior.meta) == 2
    for name, tensor in prior.state().items():
        assert torch.equal(tensor, before[name])


def test_tasks_without_names_keep_theirs_when_one_is_added() -> None:
    tasks = [task.called("") for task in meta_data((5, 6, 7), 2)]
    added = ScaML().meta_fit(MetaData(tasks[:2])).add(tasks[2])
    assert added.names == ("task-0", "task-1", "task-2")
    assert_same_gps(added, ScaML().meta_fit(MetaData(tasks)))


@pytest.mark.parametrize("method", [ScaML(), GPBO()], ids=str)
def test_a_name_that_is_taken_is_refused(method: Method) -> None:
    prior = method.meta_fit(META)
    with pytest.raises(TaskDataError, match="More than one past task is called 'more'"):
        prior.add(task_of(5, 3).called("more"))


@pytest.mark.parametrize("method", [ScaML(), GPBO()], ids=str)
@pytest.mark.parametrize(
    ("task", "message"),
    [
        (task_of(5, 2).called("new"), "one space"),
        (task_of(1, 3).called("new"), "at least 2"),
        ("a task", "give a scaml.Task"),
    ],
)
def test_what_cannot_be_added_is_refused(method: Method, task: Any, message: str) -> None:
    with pytest.raises(TaskDataError, match=message):
        method.meta_fit(META).add(task)


def test_a_plain_gp_takes_tasks_along() -> None:
    added = GPBO().meta_fit(MetaData(mixed_tasks()[:3])).in_space(SPACE).add(mixed_tasks()[3])
    assert added.names == META.names
    assert added.space == SPACE
    assert torch.equal(points(added), points(GPBO().meta_fit(META).in_space(SPACE)))


def test_in_space_is_a_new_prior_and_refuses_another_size() -> None:
    prior = ScaML().meta_fit(META)
    assert prior.in_space(SPACE).space is SPACE
    assert prior.space is None
    with pytest.raises(SpaceError, match="1 column but the past tasks have 3"):
        prior.in_space(Space({"a": FloatDistribution(0.0, 1.0)}))


# Bad files


@contextmanager
def refused(path: Path, words: str | None = None) -> Iterator[None]:
    """A StoreError inside, of one sentence that names the file, and nothing else in its folder."""
    before = sorted(path.parent.iterdir())
    with pytest.raises(StoreError, match=words) as info:
        yield
    assert str(path) in str(info.value)
    assert "\n" not in str(info.value)
    assert str(info.value).endswith(".")
    assert sorted(path.parent.iterdir()) == before


Change = Callable[[dict[str, Any], dict[str, Tensor]], object]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Tensor]]:
    path = tmp_path_factory.mktemp("good") / "p"
    ScaML().meta_fit(META).in_space(SPACE).save(path)
    return read(path)


def changed(path: Path, good: tuple[dict[str, Any], dict[str, Tensor]], change: Change) -> Path:
    """The good file with a change that its writer would not have made."""
    header, tensors = json.loads(json.dumps(good[0])), {k: v.clone() for k, v in good[1].items()}
    change(header, tensors)
    write(path, header, tensors)
    return path


def test_a_file_without_a_change_is_good(tmp_path: Path, good: Any) -> None:
    assert load(changed(tmp_path / "p", good, lambda header, tensors: None)).names == META.names


def called(name: str, change: Change) -> Any:
    return pytest.param(change, id=name)


def put(place: str, value: Any) -> Any:
    return called(
        f"{place} {str(value)[:20]}", lambda header, tensors: header.__setitem__(place, value)
    )


def setting(place: str, value: Any) -> Any:
    def change(header: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        header["settings"][place] = value

    return called(f"{place} {str(value)[:20]}", change)


def without(place: str) -> Any:
    return called(f"no {place}", lambda header, tensors: tensors.pop(place))


def more_of(place: str) -> Any:
    return called(f"also {place}", lambda header, tensors: tensors.update({place: torch.zeros(4)}))


def entry(place: str, value: float) -> Any:
    def change(header: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        tensors[place].view(-1)[0] = value

    return called(f"{value} in {place}", change)


FORMS: dict[str, Callable[[Tensor], Tensor]] = {
    "first row": lambda t: t[:1],
    "first row alone": lambda t: t[0],
    "two rows": lambda t: t[:2],
    "three rows": lambda t: t[:3],
    "no row": lambda t: t[:0],
    "twice": lambda t: torch.cat([t, t]),
    "one column": lambda t: t[:, :1],
    "two columns": lambda t: t[:, :2],
    "no column": lambda t: t[:, :0],
    "one more dimension": lambda t: t.unsqueeze(-1),
    "a batch": lambda t: t[None],
    "one number": lambda t: t.view(-1)[0],
    "float": lambda t: t.float(),
    "half": lambda t: t.half(),
    "double": lambda t: t.double(),
    "long": lambda t: t.long(),
    "bool": lambda t: t > 0,
    "complex": lambda t: t.to(torch.complex64),
    "far away": lambda t: t + 100.0,
    "false": lambda t: t & False,
}


def tensor(place: str, form: str) -> Any:
    def change(header: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        tensors[place] = FORMS[form](tensors[place])

    return called(f"{place} as {form}", change)


@pytest.mark.parametrize("key", ["method", "settings", "names", "space"])
def test_a_header_without_a_field_is_refused(tmp_path: Path, good: Any, key: str) -> None:
    path = changed(tmp_path / "p", good, lambda header, tensors: header.pop(key))
    with refused(path, key):
        load(path)


@pytest.mark.parametrize(
    "change",
    [
        put("method", "Magic"),
        put("method", "Method"),
        put("method", "MetaPrior"),
        put("method", "__name__"),
        put("method", "base"),
        put("method", None),
        put("method", ["ScaML"]),
        put("method", {}),
        put("settings", None),
        put("settings", []),
        put("settings", {"wings": 2}),
        put("settings", {"self": 1}),
        setting("kernel", "cosine"),
        setting("kernel", None),
        setting("kernel", {"a": 1}),
        setting("normalization", ["pooled"]),
        setting("weights", 1.0),
        setting("sqrt_beta", -1.0),
        setting("sqrt_beta", float("nan")),
        setting("sqrt_beta", float("inf")),
        setting("sqrt_beta", 10**400),
        setting("sqrt_beta", "three"),
        put("names", None),
        put("names", 7),
        put("names", []),
        put("names", ["a", "b", "c", "c"]),
        put("names", ["a", "b", "c", 4]),
        put("names", ["a", "b", "c", None]),
        put("names", ["a", "b", "c"]),
        put("names", ["a", "b", "c", "d", "e"]),
        put("space", 5),
        put("space", "no json"),
        put("space", {}),
        put("space", "[" * 100_000),
        put("space", Space({"a": FloatDistribution(0.0, 1.0)}).to_json()),
        put(
            "space",
            json.dumps(
                {
                    "n": '{"name": "IntDistribution", "attributes": {"low": 1, "high": Infinity}}',
                }
            ),
        ),
    ],
)
def test_a_header_that_lies_is_refused(tmp_path: Path, good: Any, change: Change) -> None:
    path = changed(tmp_path / "p", good, change)
    with refused(path):
        load(path)


@pytest.mark.parametrize(
    "change",
    [
        *map(without, ["0/X", "0/y", "1/known", "2/extra", "state/lengthscale", "state/noise"]),
        more_of("state/wings"),
        more_of("state/kernel"),
        entry("state/lengthscale", torch.nan),
        entry("state/lengthscale", 0.0),
        entry("state/lengthscale", -0.5),
        entry("state/outputscale", torch.nan),
        entry("state/outputscale", torch.inf),
        entry("state/outputscale", -1.0),
        entry("state/outputscale", 0.0),
        entry("state/noise", torch.nan),
        entry("state/noise", torch.inf),
        entry("state/noise", -1e-3),
        entry("state/noise", -100.0),
        tensor("state/lengthscale", "first row"),
        tensor("state/lengthscale", "one column"),
        tensor("state/lengthscale", "first row alone"),
        tensor("state/lengthscale", "two columns"),
        tensor("state/lengthscale", "three rows"),
        tensor("state/lengthscale", "a batch"),
        tensor("state/lengthscale", "float"),
        tensor("state/lengthscale", "long"),
        tensor("state/lengthscale", "complex"),
        tensor("state/outputscale", "first row"),
        tensor("state/outputscale", "twice"),
        tensor("state/outputscale", "one more dimension"),
        tensor("state/outputscale", "first row alone"),
        tensor("state/outputscale", "bool"),
        tensor("state/noise", "twice"),
        tensor("state/noise", "no row"),
        tensor("state/noise", "float"),
        tensor("0/X", "two columns"),
        tensor("0/X", "three rows"),
        tensor("0/X", "first row alone"),
        tensor("0/X", "no column"),
        tensor("0/X", "float"),
        tensor("0/X", "far away"),
        entry("0/X", torch.nan),
        entry("0/y", torch.nan),
        entry("0/y", 1e200),
        tensor("0/y", "first row alone"),
        tensor("0/y", "half"),
        tensor("0/known", "double"),
        tensor("0/known", "false"),
        tensor("0/known", "two rows"),
        tensor("2/extra", "three rows"),
        tensor("2/extra", "one number"),
        entry("2/extra", torch.inf),
    ],
)
def test_tensors_that_lie_are_refused(tmp_path: Path, good: Any, change: Change) -> None:
    path = changed(tmp_path / "p", good, change)
    with refused(path):
        load(path)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("small") / "p"
    ScaML().meta_fit(meta_data((3, 4), 2)).save(path)
    return path.read_bytes()


def test_a_prior_cut_anywhere_is_refused(tmp_path: Path, small: bytes) -> None:
    path = tmp_path / "p"
    for length in [*range(0, len(small), 41), len(small) - 1]:
        path.write_bytes(small[:length])
        with refused(path):
            load(path)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    changes=st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=3
    )
)
def test_a_prior_with_wrong_bytes_is_refused_or_a_prior(
    tmp_path: Path, small: bytes, changes: list[tuple[float, int]]
) -> None:
    data = bytearray(small)
    for place, value in changes:
        data[int(place * len(data))] = value
    path = tmp_path / "p"
    path.write_bytes(data)
    try:
        prior = load(path)
    except StoreError as error:
        sentence = str(error)
        assert str(path) in sentence
    else:
        assert isinstance(prior, ScaMLPrior)
        assert len(prior.names) == 2
        assert all(t.isfinite().all() for t in (prior.task_gps.whitener, prior.task_gps.targets))


@pytest.mark.parametrize("content", [b"", b"\x00" * 64, pickle.dumps({"a": 1}), b"PK\x03\x04" * 9])
def test_a_file_of_something_else_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "p"
    path.write_bytes(content)
    with refused(path):
        load(path)
    with refused(tmp_path / "missing"):
        load(tmp_path / "missing")
    (tmp_path / "folder").mkdir()
    with refused(tmp_path / "folder"):
        load(tmp_path / "folder")


def test_a_file_of_a_newer_scaml_is_refused(tmp_path: Path, good: Any) -> None:
    path = changed(tmp_path / "p", good, lambda header, tensors: header.update(format=99))
    with refused(path, "format 99"):
        load(path)


def test_an_older_file_survives_a_save_that_fails(tmp_path: Path) -> None:
    prior = GPBO().meta_fit(META)
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "folder", tmp_path / "no" / "p"):
        with refused_somewhere(path):
            prior.save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


@contextmanager
def refused_somewhere(path: Path) -> Iterator[None]:
    with pytest.raises(StoreError) as info:
        yield
    assert str(path) in str(info.value)


# Methods of others


@dataclass(frozen=True)
class Foreign(Method):
    """Learns one number of all tasks together."""

    power: float = 2.0

    def meta_fit(self, meta: MetaData, *, seed: int = 0, n_jobs: int = 1) -> ForeignPrior:
        total = torch.stack([task.y.abs().pow(self.power).sum() for task in meta]).sum()
        return ForeignPrior(self, meta, total + seed)

    def restore(self, meta: MetaData, state: dict[str, Tensor]) -> ForeignPrior:
        return ForeignPrior(self, meta, state["total"])


@dataclass(frozen=True, eq=False)
class ForeignPrior(MetaPrior):
    method: Foreign
    meta: MetaData
    total: Tensor

    @property
    def names(self) -> tuple[str, ...]:
        return self.meta.names

    @property
    def d(self) -> int:
        return self.meta.d

    def state(self) -> dict[str, Tensor]:
        return {"total": self.total}

    def condition(self, task: Task, *, seed: int = 0) -> Model:
        return GPBO().meta_fit(self.meta).condition(task, seed=seed)


def test_a_method_of_somebody_else_is_given_to_load(tmp_path: Path) -> None:
    prior = Foreign(3.0).meta_fit(META)
    prior.save(tmp_path / "p")
    loaded = load(tmp_path / "p", method=Foreign(3.0))
    assert isinstance(loaded, ForeignPrior)
    assert torch.equal(loaded.total, prior.total)
    with refused(tmp_path / "p", "'Foreign' is none of scaml's"):
        load(tmp_path / "p")
    with refused(tmp_path / "p", "made by Foreign, not by ScaML"):
        load(tmp_path / "p", method=ScaML())
    assert torch.equal(added_total(prior), Foreign(3.0).meta_fit(META.and_task(more())).total)


def more() -> Task:
    return task_of(5, 3).called("new")


def added_total(prior: ForeignPrior) -> Tensor:
    added = prior.add(more())
    assert isinstance(added, ForeignPrior)
    return added.total


def test_a_method_that_cannot_be_saved_says_so(tmp_path: Path) -> None:
    class Mute(ForeignPrior):
        def state(self) -> dict[str, Tensor]:
            return MetaPrior.state(self)

    prior = Mute(Foreign(), META, torch.zeros(()))
    with pytest.raises(SettingError, match="A prior of Foreign cannot be saved"):
        prior.save(tmp_path / "p")
    with pytest.raises(SettingError, match="cannot be restored"):
        Method.restore(Foreign(), META, {})
    with pytest.raises(SettingError, match="nothing to save"):
        replace(GPBO().meta_fit(META), past=None).save(tmp_path / "p")
    assert list(tmp_path.iterdir()) == []
