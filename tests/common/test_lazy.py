"""Names that are imported when they are first asked for."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

import scaml
from scaml import methods, report
from scaml.common.lazy import lazy_names
from scaml.tasks.task import Task


def test_a_name_is_imported_once_and_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    package = ModuleType("somewhere")
    monkeypatch.setitem(sys.modules, "somewhere", package)
    get, names = lazy_names("somewhere", {"Task": "tasks.task", "MetaData": "tasks.meta_data"})
    assert names() == ["MetaData", "Task"]
    assert not hasattr(package, "Task")
    assert get("Task") is Task
    assert vars(package)["Task"] is Task
    with pytest.raises(AttributeError, match="module 'somewhere' has no attribute 'Tusk'"):
        get("Tusk")


@pytest.mark.parametrize("package", [scaml, methods, report], ids=lambda package: package.__name__)
def test_every_public_name_of_a_package_is_there(package: ModuleType) -> None:
    for name in package.__all__:
        assert getattr(package, name) is not None
    assert set(dir(package)) <= set(package.__all__)
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'none'"):
        package.none  # noqa: B018
