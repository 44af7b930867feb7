"""The package `scaml.methods`: all methods by name, imported one by one."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import is_dataclass

import pytest

from scaml import methods


def test_every_public_name_is_a_class_of_its_own_module() -> None:
    for name in methods.__all__:
        found = getattr(methods, name)
        assert found.__name__ == name
        assert found.__module__.startswith("scaml.methods.")
        if name not in ("Method", "MetaPrior"):
            assert issubclass(found, methods.Method)
            assert is_dataclass(found)
    assert dir(methods) == sorted(methods.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'scaml\.methods' has no attribute 'TPE'"):
        _ = methods.TPE


@pytest.mark.parametrize(
    "code", ["from scaml.methods import ScaML", "from scaml.methods.scaml import ScaML"]
)
def test_one_method_does_not_import_the_others(code: str) -> None:
    code += "\nimport json, sys\nprint(json.dumps([name for name in sys.modules if 'scaml' in name]))"
    loaded = json.loads(subprocess.check_output([sys.executable, "-c", code]))
    assert "scaml.methods.scaml" in loaded
    others = ("ablr", "fsbo", "gc3p", "mtgp", "rgpe", "rm_gp_ucb", "sgpt", "stackgp")
    assert not {f"scaml.methods.{name}" for name in others} & set(loaded)
