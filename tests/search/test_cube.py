"""The maximizer of an acquisition function against brute force."""

from __future__ import annotations

import pytest
import torch
from botorch.acquisition import UpperConfidenceBound as BoTorchUCB
from botorch.acquisition import qKnowledgeGradient
from botorch.sampling import SobolQMCNormalSampler
from torch import Tensor

from scaml import ScaMLGP, Task
from scaml.bench.families import FAMILIES
from scaml.common.parallel import one_thread
from scaml.search.cube import evaluate, maximize_on_cube
from scaml.search.ucb import UpperConfidenceBound
from tests.brute_force import climb
from tests.cases import ONE_MODEL, pair


def conditioned(family: str, n_t: int, seed: int) -> ScaMLGP:
    """A model as it comes up in a run: some random points, some near the best of them."""
    problem = FAMILIES[family]
    meta = problem.meta_data(tasks=8, points=32, seed=seed)
    function = problem.draw(seed=1000 + seed)
    generator = torch.Generator().manual_seed(seed)
    X = torch.rand(n_t, problem.d, generator=generator, dtype=torch.float64)
    if n_t > 1:
        best = X[function(X).argmax()]
        noise = torch.randn(n_t // 2, problem.d, generator=generator, dtype=torch.float64)
        X[: n_t // 2] = (best + 0.1 * noise).clamp(0.0, 1.0)
    return ONE_MODEL.meta_fit(meta, seed=seed).condition(Task(X, function(X)), seed=seed)


def brute_force(acquisition: UpperConfidenceBound, d: int) -> tuple[Tensor, Tensor]:
    """The best of 200,000 random points, the top 50 refined; and the range of all values."""
    X = torch.rand(200_000, d, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
    values = evaluate(acquisition, X)
    best = torch.maximum(values.max(), climb(acquisition, X[values.topk(50).indices], rate=0.01))
    return best, values.max() - values.min()


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("family", ["branin", "hartmann3", "hartmann6"])
def test_maximum_is_that_of_brute_force(family: str, seed: int) -> None:
    model = conditioned(family, n_t=(0, 1, 4, 10, 20)[seed % 5], seed=seed)
    acquisition = UpperConfidenceBound(model)
    d = FAMILIES[family].d
    with one_thread():
        x = maximize_on_cube(acquisition, d, seed=seed)
        best, spread = brute_force(acquisition, d)
        found = evaluate(acquisition, x[None])[0]
    assert ((x >= 0) & (x <= 1)).all()
    assert found >= best - 1e-3 * spread


def test_a_flat_acquisition_function_gives_a_seeded_random_point() -> None:
    flat = lambda X: torch.zeros(X.shape[:-2], dtype=torch.float64)  # noqa: E731
    first, again, other = (maximize_on_cube(flat, 3, seed=s) for s in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_points_to_avoid_are_avoided() -> None:
    peak = torch.tensor([0.3, 0.7], dtype=torch.float64)
    bowl = lambda X: -(X - peak).square().sum(-1).squeeze(-1)  # noqa: E731
    first = maximize_on_cube(bowl, 2, seed=0)
    torch.testing.assert_close(first, peak, rtol=0, atol=1e-4)
    second = maximize_on_cube(bowl, 2, seed=0, avoid=first[None])
    assert (second - first).abs().max() >= 1e-4


def test_one_shot_functions_are_maximized_too() -> None:
    model = pair("se", (6, 9), 4, d=2, seed=1).model
    torch.manual_seed(0)
    x = maximize_on_cube(qKnowledgeGradient(model, num_fantasies=2), 2, seed=0)
    assert x.shape == (2,)


@pytest.mark.parametrize("batch", [(1,), (2,), (3, 1), (1, 1)])
@pytest.mark.parametrize("fantasies", [0, 4])
def test_shapes_and_values_are_botorchs_also_for_a_batch_of_one(
    batch: tuple[int, ...], fantasies: int
) -> None:
    model = conditioned("hartmann3", 5, 0)
    X = torch.rand(*batch, 1, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    if fantasies:
        sampler = SobolQMCNormalSampler(torch.Size([fantasies]), seed=0)
        model = model.fantasize(torch.full((2, 3), 0.5, dtype=torch.float64), sampler)
        X = X.unsqueeze(-3)
    ours, theirs = UpperConfidenceBound(model, 3.0)(X), BoTorchUCB(model, 9.0)(X)
    assert ours.shape == theirs.shape
    torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
