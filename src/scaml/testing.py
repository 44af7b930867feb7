"""`MetaLearnerTestCase`: what any meta-learning method, ours or foreign, must pass.

A method of your own is checked by a pytest class of one line::

    class TestMine(MetaLearnerTestCase):
        method = Mine()
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from botorch.models.model import Model
from torch import Tensor

from scaml.ask import suggest
from scaml.errors import SpaceError, TaskDataError
from scaml.methods.base import MetaPrior, Method
from scaml.priors.load import load
from scaml.tasks.meta_data import MetaData
from scaml.tasks.task import Task

__all__ = ["MetaLearnerTestCase"]


class MetaLearnerTestCase:
    """Subclass it with `method`; pytest does the rest.

    Class attributes:
        method: The method to check.
        tolerance: By how much results may differ, relative to the spread of y, where only the order
            of the past tasks does.
    """

    method: ClassVar[Method]
    tolerance: ClassVar[float] = 1e-3
    d: ClassVar[int] = 2
    _fitted: ClassVar[MetaPrior]

    # The problem: a bowl that moves a little from task to task, on levels and in units of its own.

    def past(self, sizes: tuple[int, ...] = (9, 14, 11)) -> MetaData:
        """Meta-data of related tasks of unequal size."""
        rng = np.random.default_rng(0)
        tasks = []
        for m, n in enumerate(sizes):
            X = rng.random((n, self.d))
            y = 3.0 * m + (1.0 + 0.5 * m) * self.bowl(X, m) + 0.01 * rng.standard_normal(n)
            tasks.append(Task(X, y, name=f"past {m}"))
        return MetaData(tasks)

    def bowl(self, X: np.ndarray, m: float) -> np.ndarray:
        """The m-th function."""
        waves = 0.1 * np.sin(8.0 * X[:, 0] + m)
        values: np.ndarray = -((X - 0.3 - 0.05 * m) ** 2).sum(-1) + waves
        return values

    def task(self, n: int) -> Task:
        """n observations of the new task."""
        X = np.random.default_rng(1).random((n, self.d))
        return Task(X, 1.0 + 2.0 * self.bowl(X, 1.5)) if n else Task.empty(d=self.d)

    def points(self, *shape: int) -> Tensor:
        """Query points, `shape x d`."""
        generator = torch.Generator().manual_seed(2)
        return torch.rand(*shape, self.d, generator=generator, dtype=torch.float64)

    @pytest.fixture
    def prior(self) -> MetaPrior:
        """The method's prior on the usual past, fitted once a class."""
        cls = type(self)
        if "_fitted" not in vars(cls):
            cls._fitted = self.method.meta_fit(self.past(), seed=0)
        return cls._fitted

    def check(self, model: Model) -> None:
        """Finite means and finite, positive variances, of the right shapes, and a usable default."""
        for batch, q in (((), 1), ((), 3), ((4,), 1), ((4,), 2), ((2, 3), 2)):
            X = self.points(*batch, q)
            with torch.no_grad():
                posterior = model.posterior(X)
                mean, variance = posterior.mean, posterior.variance
            assert mean.shape == variance.shape == (*batch, q, 1)
            assert mean.dtype == variance.dtype == torch.float64
            assert mean.isfinite().all()
            assert variance.isfinite().all()
            assert (variance > 0).all()

    def usable(self, prior: MetaPrior, task: Task) -> None:
        """A model that predicts, an acquisition function with values, a suggestion in the cube."""
        model = prior.condition(task, seed=0)
        self.check(model)
        with torch.no_grad():
            values = prior.acquisition(model)(self.points(5, 1))
        assert values.shape == (5,)
        assert values.isfinite().all()
        x = suggest(prior, task, seed=0)
        assert x.shape == (1, prior.d)
        assert ((x >= 0) & (x <= 1)).all()

    # Any amount of data of the new task.

    @pytest.mark.parametrize("n", [0, 1, 2, 3, 8])
    def test_observations(self, prior: MetaPrior, n: int) -> None:
        self.usable(prior, self.task(n))

    def test_it_learns_from_observations(self, prior: MetaPrior) -> None:
        """After many observations the best point stands out by its mean."""
        task = self.task(25)
        model = prior.condition(task, seed=0)
        with torch.no_grad():
            mean = model.posterior(task.X.unsqueeze(-2)).mean.flatten()
        order = torch.stack([mean, task.y]).corrcoef()[0, 1]
        assert order > 0.7

    @pytest.mark.parametrize("n", [0, 4])
    def test_batches_agree_with_single_points(self, prior: MetaPrior, n: int) -> None:
        model = prior.condition(self.task(n), seed=0)
        X = self.points(6)
        with torch.no_grad():
            joint, single = model.posterior(X), model.posterior(X.unsqueeze(-2))
        spread = joint.variance.max().sqrt().item()
        close = {"rtol": 1e-6, "atol": 1e-6 * max(spread, 1e-6)}
        torch.testing.assert_close(joint.mean, single.mean.squeeze(-2), **close)
        torch.testing.assert_close(joint.variance, single.variance.squeeze(-2), **close)

    @pytest.mark.parametrize("n", [0, 4])
    def test_several_points_at_once_differ(self, prior: MetaPrior, n: int) -> None:
        x = suggest(prior, self.task(n), q=3, seed=0)
        assert x.shape == (3, self.d)
        assert len(x.unique(dim=0)) == 3

    @pytest.mark.parametrize("n", [0, 4])
    def test_rows_of_a_table(self, prior: MetaPrior, n: int) -> None:
        table = self.points(20)
        x = suggest(prior, self.task(n), q=3, candidates=table, seed=0)
        rows = [int((table == row).all(-1).nonzero()) for row in x]
        assert len(set(rows)) == 3

    def test_suggestions_follow_gradients(self, prior: MetaPrior) -> None:
        """The acquisition function can be differentiated, as its maximization needs."""
        acquisition = prior.acquisition(prior.condition(self.task(4), seed=0))
        X = self.points(3, 1).requires_grad_()
        (slope,) = torch.autograd.grad(acquisition(X).sum(), X)
        assert slope.isfinite().all()

    def test_a_caller_without_gradients(self) -> None:
        """What was fitted where gradients are off can be differentiated where they are on."""
        with torch.no_grad():
            prior = self.method.meta_fit(self.past((6, 7)), seed=0)
            model = prior.condition(self.task(3), seed=0)
        X = self.points(3, 1).requires_grad_()
        (slope,) = torch.autograd.grad(prior.acquisition(model)(X).sum(), X)
        assert slope.isfinite().all()

    # Seeds, processes, files.

    @pytest.mark.parametrize("n", [0, 4])
    def test_same_seed_same_numbers(self, prior: MetaPrior, n: int) -> None:
        again = self.method.meta_fit(self.past(), seed=0)
        task = self.task(n)
        assert torch.equal(suggest(prior, task, seed=5), suggest(again, task, seed=5))
        assert torch.equal(suggest(prior, task, seed=5), suggest(prior, task, seed=5))

    def test_global_random_numbers_are_left_alone(self) -> None:
        torch.manual_seed(7)
        before = torch.get_rng_state()
        prior = self.method.meta_fit(self.past((6, 7)), seed=0)
        prior.condition(self.task(3), seed=0)
        assert torch.equal(torch.get_rng_state(), before)

    def test_pickle(self, prior: MetaPrior) -> None:
        twin = pickle.loads(pickle.dumps(prior))
        assert torch.equal(suggest(twin, self.task(4), seed=0), suggest(prior, self.task(4), seed=0))
        assert pickle.loads(pickle.dumps(self.method)) == self.method

    def test_save_and_load(self, prior: MetaPrior, tmp_path: Path) -> None:
        path = tmp_path / "prior.safetensors"
        prior.save(path)
        twin = load(path, method=self.method)
        assert twin.names == prior.names
        for task in (self.task(0), self.task(4)):
            assert torch.equal(suggest(twin, task, seed=0), suggest(prior, task, seed=0))

    def test_one_more_task(self, prior: MetaPrior) -> None:
        more = Task(*_data(self.past((10,))[0]), name="one more")
        longer = prior.add(more)
        assert longer.names == (*prior.names, "one more")
        self.usable(longer, self.task(3))

    def test_order_of_tasks(self, prior: MetaPrior) -> None:
        if self.method.ordered:
            pytest.skip("the order of the past tasks means something to this method")
        meta = self.past()
        turned = self.method.meta_fit(MetaData([meta[i] for i in (2, 0, 1)]), seed=0)
        task, X = self.task(6), self.points(5, 1)
        with torch.no_grad():
            means = [p.condition(task, seed=0).posterior(X).mean for p in (prior, turned)]
        spread = max(float(task.y.std()), 1e-12)
        torch.testing.assert_close(means[0], means[1], rtol=0, atol=self.tolerance * spread)

    # Data as they come.

    @pytest.mark.parametrize("sizes", [(12,), (2, 30), (5, 5, 5, 5)])
    def test_any_number_and_size_of_tasks(self, sizes: tuple[int, ...]) -> None:
        self.usable(self.method.meta_fit(self.past(sizes), seed=0), self.task(3))

    def test_constant_values(self) -> None:
        meta = self.past((8, 9))
        flat = Task(meta[0].X, np.full(8, 2.5), name="flat")
        prior = self.method.meta_fit(MetaData([flat, meta[1]]), seed=0)
        self.usable(prior, self.task(3))
        self.usable(prior, Task(self.task(4).X, np.full(4, 1.5)))

    def test_duplicate_rows(self) -> None:
        X, y = _data(self.past((6,))[0])
        twice = Task(torch.cat([X, X]), torch.cat([y, y + 0.01]), name="twice")
        prior = self.method.meta_fit(MetaData([twice, self.past((7, 7))[1]]), seed=0)
        task = self.task(3)
        self.usable(prior, Task(torch.cat([task.X, task.X]), torch.cat([task.y, task.y])))

    def test_units_of_y_do_not_matter(self, prior: MetaPrior) -> None:
        """All y multiplied by a thousand and shifted: the same points are suggested."""
        meta = MetaData([Task(t.X, 1e3 * t.y - 50.0, name=t.name) for t in self.past()])
        scaled = self.method.meta_fit(meta, seed=0)
        task, X = self.task(5), self.points(5, 1)
        other = Task(task.X, 1e3 * task.y - 50.0)
        with torch.no_grad():
            ours = prior.acquisition(prior.condition(task, seed=0))(X)
            theirs = scaled.acquisition(scaled.condition(other, seed=0))(X)
        assert torch.equal(ours.argsort(), theirs.argsort())

    # What no method takes, in the same words.

    def test_what_is_refused(self, prior: MetaPrior) -> None:
        with pytest.raises(TaskDataError, match=r"The meta-data are a list; give a scaml\.MetaData"):
            self.method.meta_fit([], seed=0)  # type: ignore[arg-type]
        with pytest.raises(TaskDataError, match=r"The task is a list; give a scaml\.Task"):
            prior.condition([], seed=0)  # type: ignore[arg-type]
        with pytest.raises(SpaceError, match="all tasks must live in one space"):
            prior.condition(Task.empty(d=self.d + 1), seed=0)
        with pytest.raises(ValueError, match="The seed is -1"):
            self.method.meta_fit(self.past((5,)), seed=-1)
        with pytest.raises(ValueError, match="The seed is -1"):
            prior.condition(self.task(2), seed=-1)


def _data(task: Task) -> tuple[Tensor, Tensor]:
    return task.X, task.y
