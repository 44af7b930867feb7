"""Methods of others: saved and loaded like scaml's own, if they can be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from scaml import ScaML, Task
from scaml.errors import SettingError
from scaml.methods.base import MetaPrior, Method
from scaml.methods.gpbo import GPBO
from scaml.priors.load import load
from tests.cases import task_of
from tests.foreign import Foreign, ForeignPrior
from tests.loading_cases import META, refused


def test_a_method_of_somebody_else_is_given_to_load(tmp_path: Path) -> None:
    prior = Foreign(3.0).meta_fit(META)
    prior.save(tmp_path / "p")
    loaded = load(tmp_path / "p", method=Foreign(3.0))
    assert isinstance(loaded, ForeignPrior)
    assert torch.equal(loaded.mean, prior.mean)
    with refused(tmp_path / "p", "'Foreign' is none of scaml's"):
        load(tmp_path / "p")
    with refused(tmp_path / "p", "made by Foreign, not by ScaML"):
        load(tmp_path / "p", method=ScaML())
    assert torch.equal(added_mean(prior), Foreign(3.0).meta_fit(META.and_task(more())).mean)


def more() -> Task:
    return task_of(5, 3).called("new")


def added_mean(prior: ForeignPrior) -> Tensor:
    added = prior.add(more())
    assert isinstance(added, ForeignPrior)
    return added.mean


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
