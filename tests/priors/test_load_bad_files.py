"""Files that are no prior: refused in one sentence that names the file."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from optuna.distributions import FloatDistribution
from torch import Tensor

from scaml.common.tensor_file import read, write
from scaml.errors import SavedFileError
from scaml.methods.gpbo import GPBO
from scaml.methods.scaml import ScaMLPrior
from scaml.priors.load import load
from scaml.spaces.space import Space
from tests.cases import ONE_MODEL, meta_data
from tests.loading_cases import META, SPACE, refused

Change = Callable[[dict[str, Any], dict[str, Tensor]], object]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Tensor]]:
    path = tmp_path_factory.mktemp("good") / "p"
    ONE_MODEL.meta_fit(META).in_space(SPACE).save(path)
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
    ONE_MODEL.meta_fit(meta_data((3, 4), 2)).save(path)
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
    except SavedFileError as error:
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
    with pytest.raises(SavedFileError) as info:
        yield
    assert str(path) in str(info.value)
