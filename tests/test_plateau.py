"""No suggestion fails on plateaus: past scales differ by decades, and new values are all equal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import optuna
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from torch import Tensor

import scaml.methods
from scaml import MetaData, ScaML, ScaMLSampler, Space, Task, suggest
from scaml.gp.kernels import KernelName
from scaml.methods import ABLR, FSBO, GC3P, GPBO, MTGP, RGPE, RMGPUCB, SGPT, Method, StackGP
from scaml.methods.base import MetaPrior
from scaml.model.average_gp import AverageGP
from tests.oracles import Array

D = 4
MIXED = Space(  # two columns for the categories
    {
        "depth": IntDistribution(1, 4),
        "kind": CategoricalDistribution(["a", "b"]),
        "rate": FloatDistribution(1e-3, 1.0, log=True),
    }
)
TABLE = np.random.default_rng(7).random((40, D))
KINDS = ("default", "explained", "paper")
# Methods that train are given small budgets.
METHODS: tuple[Method, ...] = (
    ABLR(widths=(8, 8), iterations=20),
    FSBO(widths=(8, 8), iterations=20, epochs=5),
    GC3P(widths=(8, 8), updates=50),
    GPBO(),
    GPBO(acquisition="lognei"),
    MTGP(max_iterations=20, warm_iterations=10),
    RGPE(),
    RMGPUCB(),
    SGPT(),
    ScaML(),
    StackGP(),
)


def bump(X: Array, shift: float) -> Array:
    return np.asarray(np.exp(-20.0 * ((X - 0.5 - shift) ** 2).sum(-1)))


@cache
def past(seed: int) -> MetaData:
    """y = level + 10^u bump with u in [-3.5, -0.3]: most values of a task are nearly its level."""
    rng = np.random.default_rng(seed)
    tasks = []
    for m, u in enumerate(np.linspace(-3.5, -0.3, 6)):
        X = rng.random((12, D))
        tasks.append(
            Task(X, rng.normal() + 10.0**u * bump(X, rng.uniform(-0.2, 0.2)), name=f"past {m}")
        )
    return MetaData(tasks)


@cache
def prior_of(kind: str, kernel: KernelName, seed: int) -> MetaPrior:
    method = {
        "default": ScaML(kernel=kernel),
        "explained": ScaML(kernel=kernel, weights="explained"),
        "paper": ScaML.paper(),
    }[kind]
    return method.meta_fit(past(seed), seed=0)


@dataclass(frozen=True)
class Plateau:
    """Values of a new task.

    Args:
        n: The number of observations.
        distinct: The number of distinct values.
        scale: Their distance, as a power of ten.
        level: The lowest of them.
        rare: Whether all but the last observations have the lowest value.
        seed: Decides the points and their order.
    """

    n: int
    distinct: int
    scale: float
    level: float
    rare: bool
    seed: int

    def task(self, *, allowed: Space | None = None) -> Task:
        rng = np.random.default_rng(self.seed)
        X = rng.random((self.n, D))
        if allowed is not None:
            X = allowed.encode_all([allowed.decode(row.tolist()) for row in X]).numpy()
        steps = rng.integers(0, self.distinct, self.n)
        if self.rare:
            steps[:-1] = 0
        return Task(X, self.level + 10.0**self.scale * steps)


PLATEAUS = st.builds(
    Plateau,
    n=st.integers(1, 25),
    distinct=st.integers(1, 3),
    scale=st.floats(-9.0, 3.0),
    level=st.sampled_from([0.0, 0.97, -3.0, 1e4]),
    rare=st.booleans(),
    seed=st.integers(0, 100),
)
PRIORS = st.builds(
    prior_of, st.sampled_from(KINDS), st.sampled_from(["se", "matern52"]), st.integers(0, 1)
)


def test_the_scale_of_equal_values_is_not_0() -> None:
    """Each equal value favours a smaller scale, so that 25 of them outweigh its prior."""
    plateau = Plateau(n=25, distinct=1, scale=0.0, level=0.97, rare=False, seed=0)
    prior = prior_of("explained", "se", 1)
    model = prior.condition(plateau.task())
    assert isinstance(model, AverageGP)
    assert all(member.y_scale > 1e-12 for member in model.members)
    check(suggest(prior, plateau.task()), 1)


def check(x: Tensor, q: int) -> None:
    assert x.shape == (q, D)
    assert ((x >= 0) & (x <= 1)).all()


@settings(max_examples=25)
@given(PRIORS, PLATEAUS)
def test_models_predict(prior: MetaPrior, plateau: Plateau) -> None:
    task, X = plateau.task(), torch.tensor(TABLE).unsqueeze(-2)
    model = prior.condition(task)
    with torch.no_grad():
        posterior, values = model.posterior(X), prior.acquisition(model)(X)
    assert posterior.mean.isfinite().all()
    assert posterior.variance.isfinite().all()
    assert (posterior.variance > 0).all()
    assert values.shape == (len(TABLE),)
    assert not values.isnan().any()
    assert values.max() > -torch.inf


@settings(max_examples=15)
@given(PRIORS, PLATEAUS, st.integers(1, 2))
def test_the_cube(prior: MetaPrior, plateau: Plateau, q: int) -> None:
    check(suggest(prior, plateau.task(), q=q), q)


@settings(max_examples=25)
@given(PRIORS, PLATEAUS, st.integers(1, 3))
def test_a_table(prior: MetaPrior, plateau: Plateau, q: int) -> None:
    x = suggest(prior, plateau.task(), q=q, candidates=TABLE)
    check(x, q)
    assert len(x.unique(dim=0)) == q
    assert all((torch.tensor(TABLE) == row).all(-1).any() for row in x)


@settings(max_examples=12)
@given(PRIORS, PLATEAUS)
def test_a_mixed_space(prior: MetaPrior, plateau: Plateau) -> None:
    x = suggest(prior.in_space(MIXED), plateau.task(allowed=MIXED))
    check(x, 1)
    torch.testing.assert_close(x, MIXED.encode_all([MIXED.decode(x[0])]), rtol=0, atol=1e-9)


@cache
def other_prior(number: int) -> MetaPrior:
    return METHODS[number].meta_fit(past(0), seed=0)


def test_no_method_is_left_out() -> None:
    found: dict[str, Any] = {name: getattr(scaml.methods, name) for name in scaml.methods.__all__}
    known = {value for value in found.values() if issubclass(value, Method)} - {Method}
    assert {type(method) for method in METHODS} == known


@pytest.mark.parametrize(
    "plateau",
    [
        Plateau(n=1, distinct=1, scale=0.0, level=0.97, rare=False, seed=0),
        Plateau(n=9, distinct=1, scale=0.0, level=1e4, rare=False, seed=1),
        Plateau(n=14, distinct=2, scale=-6.0, level=0.97, rare=True, seed=2),
        Plateau(n=10, distinct=3, scale=2.0, level=-3.0, rare=False, seed=3),
    ],
    ids=["one", "equal", "one better", "three values"],
)
@pytest.mark.parametrize(
    "number", range(len(METHODS)), ids=lambda i: f"{i} {type(METHODS[i]).__name__}"
)
def test_every_method(number: int, plateau: Plateau) -> None:
    prior, task = other_prior(number), plateau.task()
    check(suggest(prior, task, candidates=TABLE), 1)
    with torch.no_grad():
        posterior = prior.condition(task).posterior(torch.tensor(TABLE))
    assert posterior.mean.isfinite().all()
    assert posterior.variance.isfinite().all()


def values_of(plateau: Plateau) -> Iterator[float]:
    yield from plateau.task().y.tolist()


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("distinct", [1, 2])
def test_optuna(kind: str, distinct: int) -> None:
    """A study whose values are those of a plateau, whatever is suggested."""
    prior = prior_of(kind, "se", 0).in_space(MIXED)
    study = optuna.create_study(
        sampler=ScaMLSampler(prior=prior, seed=0), direction="maximize", study_name=f"plateau {kind}"
    )
    values = values_of(Plateau(n=5, distinct=distinct, scale=-4.0, level=0.97, rare=True, seed=0))

    def objective(trial: optuna.Trial) -> float:
        for name, distribution in MIXED.distributions.items():
            trial._suggest(name, distribution)
        return next(values)

    study.optimize(objective, n_trials=5)
    points = {tuple(sorted(trial.params.items())) for trial in study.trials}
    assert len(points) == 5, "a point was repeated"
