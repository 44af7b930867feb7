"""ScaML with explanations, end to end: a twin among strangers, invariances, files, purity."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import scaml
from scaml import MetaData, ScaML, Task
from scaml.methods import GPBO
from scaml.methods.scaml import ScaMLPrior
from scaml.model.average_gp import AverageGP
from tests.cases import meta_data, query, task_of
from tests.oracles import Array

METHOD = ScaML(weights="explained")
STRANGERS, TWIN = 12, "twin"


class Wave:
    """A draw from a GP by random Fourier features, as in the families of the benchmarks."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.frequency = rng.standard_normal((64, 2)) / 0.35
        self.phase = rng.uniform(0.0, 2.0 * np.pi, 64)
        self.amplitude = rng.standard_normal(64) * np.sqrt(2.0 / 64)

    def __call__(self, X: Array) -> Array:
        return np.asarray(np.cos(X @ self.frequency.T + self.phase) @ self.amplitude)


@cache
def among_strangers(seed: int) -> tuple[MetaData, Task, Task]:
    """A past of strangers and one twin, a new task of 12 evaluations, and 50 more of its values."""
    rng = np.random.default_rng(seed)
    functions = [Wave(rng) for _ in range(STRANGERS + 1)]
    names = [f"stranger {m}" for m in range(STRANGERS)]
    names.insert(5, TWIN)
    tasks = []
    for name, f in zip(names, functions, strict=True):
        X = rng.random((32, 2))
        tasks.append(Task(X, f(X) + 0.01 * rng.standard_normal(32), name=name))
    X, own = rng.random((62, 2)), Wave(rng)
    y = 0.99 * functions[5](X) + np.sqrt(1.0 - 0.99**2) * own(X)
    return MetaData(tasks), Task(X[:12], y[:12]), Task(X[12:], y[12:])


def model_of(meta: MetaData, task: Task) -> AverageGP:
    model = METHOD.meta_fit(meta, seed=0).condition(task)
    assert isinstance(model, AverageGP)
    return model


def told(model: AverageGP) -> dict[tuple[str, frozenset[str], bool], float]:
    """Probabilities by kind, names and sign."""
    return {
        (e.kind, frozenset(e.tasks), e.mirrored): e.probability for e in model.explain().explanations
    }


def check_told(
    ours: dict[tuple[str, frozenset[str], bool], float],
    theirs: dict[tuple[str, frozenset[str], bool], float],
) -> None:
    assert ours.keys() == theirs.keys()
    for key, p in ours.items():
        assert theirs[key] == pytest.approx(p, abs=2e-3), key


@pytest.mark.parametrize("seed", range(4))
def test_the_twin_is_found_among_strangers(seed: int) -> None:
    meta, task, _ = among_strangers(seed)
    verdict = model_of(meta, task).explain()
    single = [e for e in verdict.explanations if e.kind == "task"]
    assert single[0].tasks == (TWIN,)
    assert not single[0].mirrored
    assert verdict.matters[TWIN] == max(verdict.matters.values())
    others = [e.probability for e in single if e.tasks != (TWIN,)]
    assert single[0].probability > 5.0 * max(others)


def test_without_the_twin_strangers_are_not_trusted() -> None:
    meta, task, _ = among_strangers(0)
    strangers = MetaData([t.called(n) for n, t in zip(meta.names, meta, strict=True) if n != TWIN])
    verdict = model_of(strangers, task).explain()
    assert max(verdict.matters.values()) < 0.5


def test_the_twin_predicts_far_from_the_data() -> None:
    """Better than a model without a past, at points of the whole square."""
    meta, task, more = among_strangers(1)
    ours = model_of(meta, task).posterior(more.X.unsqueeze(-2)).mixture_mean.flatten()
    alone = GPBO().meta_fit(meta).condition(task).posterior(more.X.unsqueeze(-2)).mean.flatten()
    assert (ours - more.y).square().mean() < 0.5 * (alone - more.y).square().mean()


@settings(max_examples=5)
@given(st.permutations(range(4)), st.integers(0, 6))
def test_the_order_of_past_tasks_does_not_matter(order: list[int], n: int) -> None:
    meta = meta_data((10, 14, 8, 9), 2)
    turned = MetaData([meta[i] for i in order])
    ours, theirs = model_of(meta, task_of(n, 2)), model_of(turned, task_of(n, 2))
    check_told(told(ours), told(theirs))
    X = query(20, 1, 2)
    a, b = ours.posterior(X).mixture_mean, theirs.posterior(X).mixture_mean
    torch.testing.assert_close(a, b, rtol=0, atol=1e-2 * float(a.max() - a.min()))


@settings(max_examples=6)
@given(st.floats(-3.0, 3.0), st.floats(-100.0, 100.0), st.integers(0, 6))
def test_units_of_y_do_not_matter(power: float, shift: float, n: int) -> None:
    meta, task, a = meta_data((10, 14, 8), 2), task_of(n, 2), 10.0**power
    moved = meta.with_values([a * (t.y + shift) for t in meta])
    ours, theirs = model_of(meta, task), model_of(moved, task.with_values(a * (task.y + shift)))
    check_told(told(ours), told(theirs))
    X = query(20, 1, 2)
    mean, found = ours.posterior(X).mixture_mean, theirs.posterior(X).mixture_mean / a - shift
    torch.testing.assert_close(found, mean, rtol=0, atol=1e-2 * float(mean.max() - mean.min()))


def test_no_observation_is_a_normal_state() -> None:
    meta, _, _ = among_strangers(0)
    prior = METHOD.meta_fit(meta)
    assert isinstance(prior, ScaMLPrior)
    assert prior.explanations is not None
    model = prior.condition(Task.empty(d=2))
    assert isinstance(model, AverageGP)
    assert float(model.probability.sum()) == pytest.approx(1.0)
    beforehand = sorted(prior.explanations.log_prior.exp().tolist(), reverse=True)
    assert [e.probability for e in model.explain().explanations] == pytest.approx(beforehand)
    posterior = model.posterior(query(5, 2))
    assert posterior.mixture_mean.isfinite().all()
    assert (posterior.mixture_variance > 0).all()
    assert scaml.suggest(prior, Task.empty(d=2)).shape == (1, 2)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_a_loaded_prior_gives_the_same_model(n: int, tmp_path: Path) -> None:
    prior, task, X = METHOD.meta_fit(meta_data((10, 14, 8), 2)), task_of(n, 2), query(5, 2)
    prior.save(tmp_path / "prior.safetensors")
    twin = scaml.load(tmp_path / "prior.safetensors")
    assert twin.method == METHOD
    ours, theirs = prior.condition(task), twin.condition(task)
    assert isinstance(ours, AverageGP)
    assert isinstance(theirs, AverageGP)
    assert theirs.explain() == ours.explain()
    assert torch.equal(theirs.posterior(X).mixture_mean, ours.posterior(X).mixture_mean)


def test_the_same_question_has_the_same_answer() -> None:
    """Whatever was asked in between, and whatever the seed: nothing is drawn."""
    prior, X = METHOD.meta_fit(meta_data((10, 14, 8), 2)), query(5, 2)
    first = prior.condition(task_of(6, 2), seed=0)
    prior.condition(task_of(3, 2, seed=8))
    scaml.suggest(prior, task_of(4, 2), candidates=query(30, 2))
    again = prior.condition(task_of(6, 2), seed=1)
    assert isinstance(first, AverageGP)
    assert isinstance(again, AverageGP)
    assert first.explain() == again.explain()
    assert torch.equal(first.log_probability, again.log_probability)
    assert torch.equal(first.posterior(X).mixture_mean, again.posterior(X).mixture_mean)
