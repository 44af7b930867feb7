"""From past tasks in their own parameters to a prior."""

from __future__ import annotations

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution

from scaml import Space, SpaceError
from scaml.methods import GPBO, RGPE, ScaML
from scaml.priors.learn import learn
from scaml.tasks.past_task import PastTask
from tests.sampler_cases import BOX


def past_tasks(*sizes: int) -> list[PastTask]:
    """Tasks of which the second has a parameter of its own."""
    own = {**BOX, "z": FloatDistribution(0.0, 1.0)}
    tasks = []
    for m, n in enumerate(sizes):
        generator = np.random.default_rng(m)
        distributions = own if m == 1 else BOX
        rows = [{name: float(generator.random()) for name in distributions} for _ in range(n)]
        tasks.append(PastTask(f"past-{m}", distributions, rows, [sum(row.values()) for row in rows]))
    return tasks


def test_learning_is_matching_and_fitting() -> None:
    rows = [{"x": 0.1 * i, "y": 0.9 - 0.1 * i} for i in range(6)]
    past = [PastTask("a", BOX, rows, [float(i) for i in range(6)])]
    prior, matching = learn(past, Space(BOX), RGPE())
    assert isinstance(prior.method, RGPE)
    assert prior.names == ("a",)
    assert prior.space is matching.space
    assert prior.meta[0].y.tolist() == [float(i) for i in range(6)]


def test_progress_is_told() -> None:
    calls: list[tuple[int, int]] = []
    learn(past_tasks(6, 8), Space(BOX), ScaML(), progress=lambda *step: calls.append(step))
    assert calls[0] == (0, 2)
    assert calls[-1] == (2, 2)


def test_without_a_usable_past_a_plain_gp_takes_its_place() -> None:
    other = {"z": CategoricalDistribution(["a", "b"])}
    past = [PastTask("a", other, [{"z": "a"}, {"z": "b"}], [1.0, 2.0])]
    prior, matching = learn(past, Space(BOX), ScaML(kernel="matern52"))
    assert prior.names == ()
    assert prior.method == GPBO(kernel="matern52", acquisition="lognei")
    assert learn(past, Space(BOX), RGPE(sqrt_beta=1.5))[0].method == GPBO(sqrt_beta=1.5)
    assert matching.matches[0].ignored
    with pytest.raises(SpaceError, match="fixed names 'q'"):
        learn(past, Space(BOX), ScaML(), fixed={"q": 1})
