"""Methods of one GP per task: each is learned from its own data alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from scaml import MetaData, ScaML, Task
from scaml.errors import SavedFileError
from scaml.gp.kernels import KernelName
from scaml.methods import RGPE, MetaPrior
from scaml.methods.shared.modular import ModularPrior, check_hyperparameters, hyperparameters_of
from tests.cases import meta_data, task_of

META = meta_data((6, 9, 7), 2)


def test_the_state_of_a_part_is_part_of_the_state() -> None:
    whole = RGPE().fit_state(META, seed=2)
    part = RGPE().fit_state(MetaData([META[1]]), seed=2)
    assert whole.keys() == part.keys() == {"lengthscale", "outputscale", "noise"}
    for name, value in whole.items():
        assert torch.equal(value[1:2], part[name])


def test_restoring_the_state_is_the_fit() -> None:
    fitted = RGPE().meta_fit(META, seed=2)
    restored = RGPE().restore(META, fitted.state())
    for name in ("X", "whitener", "targets", "lengthscale"):
        assert torch.equal(getattr(restored.task_gps, name), getattr(fitted.task_gps, name))


def test_one_more_task_leaves_the_others_as_they_are() -> None:
    prior = ScaML().meta_fit(META, seed=2)
    more = prior.add(task_of(5, 2).called("new"), seed=2)
    again = ScaML().meta_fit(META.and_task(task_of(5, 2).called("new")), seed=2)
    for name, value in more.state().items():
        assert torch.equal(value[:3], prior.state()[name])
        assert torch.equal(value, again.state()[name])


@pytest.mark.parametrize("name", ["lengthscale", "outputscale", "noise"])
def test_a_state_that_does_not_belong_to_the_tasks_is_refused(name: str) -> None:
    state = hyperparameters_of(ScaML().meta_fit(META).task_gps)
    check_hyperparameters(META, state)
    for wrong in (state[name][:-1], -state[name], state[name].float()):
        with pytest.raises(SavedFileError, match=f"its {name} is not of shape"):
            check_hyperparameters(META, state | {name: wrong})


def rough(n: int, seed: int) -> Task:
    """A task with kinks, which a Matérn kernel fits better."""
    X = torch.rand(n, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return Task(X, (8.0 * X[:, 0]).sin().abs() + (X[:, 1] - 0.4).abs())


def smooth(n: int, seed: int) -> Task:
    X = torch.rand(n, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return Task(X, (3.0 * X[:, 0]).sin() + (2.0 * X[:, 1]).cos())


@pytest.mark.parametrize(("made", "kernel"), [(rough, "matern52"), (smooth, "se")])
def test_the_past_tasks_choose_the_kernel(made: Callable[[int, int], Task], kernel: KernelName) -> None:
    meta = MetaData([made(40, seed).called(f"{seed}") for seed in range(3)])
    prior = ScaML(kernel="past").meta_fit(meta)
    assert prior.task_gps.kernel == kernel
    fixed = {name: ScaML(kernel=name).meta_fit(meta).task_gps for name in ("se", "matern52")}
    assert torch.equal(prior.task_gps.whitener, fixed[kernel].whitener)
    likely = {name: float(gps.log_likelihood().sum()) for name, gps in fixed.items()}
    assert max(likely, key=lambda name: likely[name]) == kernel


def test_further_tasks_can_change_the_kernel() -> None:
    """The fits of both kernels are kept and saved: adding tasks is the same as fitting all."""
    meta = MetaData([smooth(8, 0).called("0"), *(rough(60, i).called(f"{i}") for i in range(1, 7))])
    prior: MetaPrior = ScaML(kernel="past").meta_fit(MetaData([meta[0].called("0")]))
    assert isinstance(prior, ModularPrior)
    assert prior.task_gps.kernel == "se"
    for i in range(1, 7):
        prior = prior.add(meta[i].called(meta.names[i]))
    whole = ScaML(kernel="past").meta_fit(meta)
    assert isinstance(prior, ModularPrior)
    assert prior.task_gps.kernel == whole.task_gps.kernel == "matern52"
    assert torch.equal(prior.task_gps.whitener, whole.task_gps.whitener)
