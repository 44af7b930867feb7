"""The package `scaml.report`: all public names, imported when they are asked for."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import scaml.report


def test_every_public_name_is_there() -> None:
    for name in scaml.report.__all__:
        assert getattr(scaml.report, name).__name__ == name
    assert dir(scaml.report) == sorted(scaml.report.__all__)
    with pytest.raises(AttributeError, match=r"module 'scaml\.report' has no attribute 'pages'"):
        _ = scaml.report.pages


def test_a_page_needs_no_sampler_and_plotly_only_when_it_is_drawn() -> None:
    code = (
        "import json, sys\nfrom scaml.report import Subject, page\nprint(json.dumps(list(sys.modules)))"
    )
    loaded = json.loads(subprocess.check_output([sys.executable, "-c", code]))
    assert "scaml.report.document" in loaded
    assert "scaml.integrations.optuna.sampler" not in loaded
    assert "plotly" not in loaded
