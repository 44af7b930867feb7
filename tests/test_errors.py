from __future__ import annotations

import inspect
import pickle

import pytest

import scaml
from scaml import errors
from scaml.errors import (
    BenchRunError,
    DatabaseError,
    FitError,
    SavedFileError,
    ScaMLError,
    SettingError,
    SpaceError,
    TaskDataError,
)

TREE: list[tuple[type[ScaMLError], type[Exception]]] = [
    (TaskDataError, ValueError),
    (SpaceError, ValueError),
    (SettingError, ValueError),
    (FitError, RuntimeError),
    (SavedFileError, ValueError),
    (DatabaseError, ConnectionError),
    (BenchRunError, RuntimeError),
]


@pytest.mark.parametrize(("error", "builtin"), TREE)
def test_an_error_is_caught_as_ours_and_as_the_builtin(
    error: type[ScaMLError], builtin: type[Exception]
) -> None:
    assert error.__bases__ == (ScaMLError, builtin)
    with pytest.raises(ScaMLError, match=r"^why$"):
        raise error("why")
    with pytest.raises(builtin, match=r"^why$"):
        raise error("why")


@pytest.mark.parametrize("error", [error for error, _ in TREE])
def test_siblings_do_not_catch_each_other(error: type[ScaMLError]) -> None:
    siblings = {other for other, _ in TREE} - {error}
    assert not any(issubclass(error, other) for other in siblings)


def test_the_base_catches_no_builtin() -> None:
    assert ScaMLError.__bases__ == (Exception,)


def test_every_class_of_the_module_is_in_the_tree_and_public() -> None:
    defined = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and value.__module__ == errors.__name__
    }
    assert defined == {error.__name__ for error, _ in TREE} | {"ScaMLError"}
    assert set(errors.__all__) == defined
    assert all(getattr(scaml, name) is getattr(errors, name) for name in defined)


@pytest.mark.parametrize("error", [error for error, _ in TREE])
def test_an_error_survives_the_way_back_from_another_process(error: type[ScaMLError]) -> None:
    back = pickle.loads(pickle.dumps(error("what; do.")))
    assert type(back) is error
    assert str(back) == "what; do."
