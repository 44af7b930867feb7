"""From past tasks in their own parameters to a prior."""

from __future__ import annotations

import pytest
from optuna.distributions import CategoricalDistribution

from scaml import Space, SpaceError
from scaml.learning import learn
from scaml.matching import PastTask
from scaml.methods import RGPE, ScaML
from tests.sampler_cases import BOX


def test_learning_is_matching_and_fitting() -> None:
    rows = [{"x": 0.1 * i, "y": 0.9 - 0.1 * i} for i in range(6)]
    past = [PastTask("a", BOX, rows, [float(i) for i in range(6)])]
    prior, matching = learn(past, Space(BOX), RGPE())
    assert isinstance(prior.method, RGPE)
    assert prior.names == ("a",)
    assert prior.space is matching.space
    assert prior.meta[0].y.tolist() == [float(i) for i in range(6)]


def test_without_a_usable_past_a_plain_gp_takes_its_place() -> None:
    other = {"z": CategoricalDistribution(["a", "b"])}
    past = [PastTask("a", other, [{"z": "a"}, {"z": "b"}], [1.0, 2.0])]
    prior, matching = learn(past, Space(BOX), ScaML(kernel="matern52"))
    assert prior.names == ()
    assert getattr(prior.method, "kernel", None) == "matern52"
    assert matching.matches[0].ignored
    with pytest.raises(SpaceError, match="fixed names 'q'"):
        learn(past, Space(BOX), ScaML(), fixed={"q": 1})
