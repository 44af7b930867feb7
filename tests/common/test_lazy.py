"""Names that are imported when they are first asked for."""

from __future__ import annotations

import json
import subprocess
import sys
from types import ModuleType

import pytest

import scaml
from scaml import methods, report
from scaml.common.lazy import lazy_names
from scaml.tasks.task import Task

# Each costs 0.02 to 0.4 s, and none is needed until something is asked of it.
HEAVY = (
    "alembic",
    "botorch.fit",
    "botorch.generation",
    "botorch.optim",
    "matplotlib",
    "pandas",
    "plotly",
    "pyarrow",
    "rich",
    "scipy.cluster",
    "scipy.optimize",
    "scipy.stats",
    "sklearn",
    "sqlalchemy",
    "sympy",
    "typer",
)


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


@pytest.mark.parametrize("name", ["ScaMLSampler", "suggest", "ScaML"])
def test_a_public_name_imports_nothing_heavy(name: str) -> None:
    code = (
        "import json, sys\nimport torch\nbefore = set(sys.modules)\nimport scaml\n"
        f"scaml.{name}\nprint(json.dumps(sorted(set(sys.modules) - before)))"
    )
    loaded = json.loads(subprocess.check_output([sys.executable, "-c", code], text=True))
    assert any(module.startswith("scaml.gp.") for module in loaded)
    assert [m for m in loaded if any(m == heavy or m.startswith(f"{heavy}.") for heavy in HEAVY)] == []
