"""`MetaLearnerTestCase`: the conformance suite that every meta-learning method must pass.

To check a method of your own, write a pytest class of one line::

    class TestMine(MetaLearnerTestCase):
        method = Mine()

The suite fails for a method that ignores the past, one of the past tasks, or the observations; that
depends on hidden random numbers, on the order of the past tasks or on `n_jobs`; or that cannot answer
on the cube, on tables and in mixed spaces.
"""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from botorch.models.model import Model
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from torch import Tensor

from scaml.ask import suggest
from scaml.errors import SpaceError, TaskDataError
from scaml.gp.posterior import mean_and_variance
from scaml.methods.base import MetaPrior, Method
from scaml.priors.load import load
from scaml.spaces.space import Space
from scaml.tasks.meta_data import MetaData
from scaml.tasks.task import Task

__all__ = ["MetaLearnerTestCase"]

# Limits, and what the methods of scaml have.
_SAME_DIRECTION = 0.3  # a rank correlation; 0.6 or more
_SAME_ORDER = 0.95  # a rank correlation; 0.7 or less
_CHANGED = 1e-3  # of the range or the deviation of the values; 0.1 or more
_MIXED = Space(
    {
        "depth": IntDistribution(1, 4),
        "share": FloatDistribution(0.0, 1.0, step=0.25),
        "solver": CategoricalDistribution(["adam", "lbfgs", "sgd"]),
        "rate": FloatDistribution(1e-3, 1.0, log=True),
    }
)
_FINITE = Space({**_MIXED.distributions, "rate": IntDistribution(1, 9)})


class MetaLearnerTestCase:
    """Subclass it and set `method`; pytest does the rest.

    Class attributes:
        method: The method to check.
        uses_past: Whether the past tells the method where good points are; None for what the method
            itself declares. If False, where the past was good must not make a difference.
        tolerance: The largest difference that the order of the past tasks may make, as a share of the
            range of the values.
        d: Number of parameters of the test problem.
    """

    method: ClassVar[Method]
    uses_past: ClassVar[bool | None] = None
    tolerance: ClassVar[float] = 1e-3
    d: ClassVar[int] = 2
    _fitted: ClassVar[MetaPrior]

    # The problem: a bowl that moves a little from task to task. Each task has its own level and units.

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

    def truth(self, X: Tensor) -> Tensor:
        """The new task's function at points, `n x 1 x d`: n values."""
        return torch.as_tensor(self.bowl(X.squeeze(-2).numpy(), 1.5))

    def points(self, *shape: int) -> Tensor:
        """Query points, `shape x d`."""
        generator = torch.Generator().manual_seed(2)
        return torch.rand(*shape, self.d, generator=generator, dtype=torch.float64)

    def fitted(self) -> MetaPrior:
        """The method's prior on the usual past, fitted once per class."""
        cls = type(self)
        if "_fitted" not in vars(cls):
            cls._fitted = self.method.meta_fit(self.past(), seed=0)
        return cls._fitted

    @pytest.fixture
    def prior(self) -> MetaPrior:
        """The method's prior on the usual past."""
        return self.fitted()

    @property
    def learns(self) -> bool:
        """Whether the past must make a difference."""
        return self.method.uses_past if self.uses_past is None else self.uses_past

    # What the tests look at.

    def check(self, model: Model) -> None:
        """Means are finite, variances finite and positive, and both have the right shape and type."""
        for batch, q in (((), 1), ((), 3), ((4,), 1), ((4,), 2), ((2, 3), 2)):
            X = self.points(*batch, q)
            with torch.no_grad():
                mean, variance = mean_and_variance(model.posterior(X))
            assert mean.shape == variance.shape == (*batch, q, 1)
            assert mean.dtype == variance.dtype == torch.float64
            assert torch.stack([mean, variance]).isfinite().all()
            assert (variance > 0).all()

    def usable(self, prior: MetaPrior, task: Task) -> None:
        """The model predicts, and the suggestion maximizes the acquisition function on the cube."""
        model = prior.condition(task, seed=0)
        self.check(model)
        x, acquisition = suggest(prior, task, seed=0), prior.acquisition(model)
        assert x.shape == (1, prior.d)
        assert ((x >= 0) & (x <= 1)).all()
        with torch.no_grad():
            best, values = acquisition(x.unsqueeze(-2)), acquisition(self.points(5, 1))
        assert values.shape == (5,)
        assert values.isfinite().all()
        assert best >= values.max() - 1e-6 * (values.max() - values.min()), (
            "the suggestion is no maximum"
        )

    def results(self, prior: MetaPrior, task: Task) -> Tensor:
        """Posterior mean, variance and acquisition function at 64 points, `3 x 64`."""
        model, X = prior.condition(task, seed=0), self.points(64, 1)
        with torch.no_grad():
            moments, values = mean_and_variance(model.posterior(X)), prior.acquisition(model)(X)
        return torch.stack([*(part.flatten() for part in moments), values])

    def check_same(self, ours: Tensor, theirs: Tensor) -> None:
        """Two `results` are the same up to the tolerance."""
        for a, b in zip(ours, theirs, strict=True):
            spread = max(float(a.max() - a.min()), 1e-9 * float(a.abs().max()))
            torch.testing.assert_close(a, b, rtol=0, atol=self.tolerance * spread)

    def check_slope(self, prior: MetaPrior, model: Model) -> None:
        """The acquisition function can be differentiated, as its maximization needs."""
        X = self.points(3, 1).requires_grad_()
        (slope,) = torch.autograd.grad(prior.acquisition(model)(X).sum(), X)
        assert slope.isfinite().all()

    def indifferent(self, prior: MetaPrior) -> bool:
        """Whether all points are equally good before the first observation."""
        return len(self.results(prior, self.task(0))[2].unique()) == 1

    def mirrored(self, *places: int) -> MetaPrior:
        """The prior after x became 1 - x in some of the past tasks.

        Their good points are then elsewhere; their kernels, levels and units are the same as before.
        """
        tasks = list(self.past())
        for m in places:
            tasks[m] = Task(1.0 - tasks[m].X, tasks[m].y, name=tasks[m].name)
        return self.method.meta_fit(MetaData(tasks), seed=0)

    # The past.

    def test_the_past_is_used(self, prior: MetaPrior) -> None:
        """The acquisition function is larger where the past tasks have their good points."""
        other, X = self.mirrored(0, 1, 2), self.points(64, 1)
        pairs = [[self.results(p, self.task(n)) for p in (prior, other)] for n in (0, 1, 3)]
        if not self.learns:
            for pair in pairs:
                self.check_same(*pair)
            return
        none, one, three = [(ours[2], theirs[2]) for ours, theirs in pairs]
        if not self.indifferent(prior):
            agree = _rank_correlation(none[0] - none[1], self.truth(X) - self.truth(1.0 - X))
            assert agree > _SAME_DIRECTION, "the past is ignored or reversed"
        assert _rank_correlation(*one) < _SAME_ORDER, "the past is ignored"
        ours, theirs = ((values - values.mean()) / values.std() for values in three)
        assert (ours - theirs).abs().max() > _CHANGED, "the past is ignored after three observations"

    @pytest.mark.parametrize("m", [0, 2])
    def test_every_past_task_is_used(self, prior: MetaPrior, m: int) -> None:
        if not self.learns:
            return
        task = self.task(1 if self.indifferent(prior) else 0)
        ours, theirs = (self.results(p, task)[2] for p in (prior, self.mirrored(m)))
        change, spread = (ours - theirs).abs().max(), ours.max() - ours.min()
        assert change > _CHANGED * spread, f"past task {m} is ignored"

    def test_order_of_tasks(self, prior: MetaPrior) -> None:
        if self.method.ordered:
            pytest.skip("the order of the past tasks means something to this method")
        meta, order = self.past(), [2, 0, 1]
        turned = self.method.meta_fit(MetaData([meta[i] for i in order]), seed=0)
        assert turned.names == tuple(meta.names[i] for i in order)
        for task in (self.task(0), self.task(6)):
            self.check_same(self.results(prior, task), self.results(turned, task))

    def test_one_more_task(self, prior: MetaPrior) -> None:
        longer = prior.add(self.past((10,))[0].called("one more"))
        assert longer.names == (*prior.names, "one more")
        self.usable(longer, self.task(3))

    # Any amount of data of the new task.

    @pytest.mark.parametrize("n", [0, 1, 2, 3, 8])
    def test_observations(self, prior: MetaPrior, n: int) -> None:
        self.usable(prior, self.task(n))

    def test_it_learns_from_observations(self, prior: MetaPrior) -> None:
        """Mean and acquisition function follow many observations, and turn with the sign of y."""
        task, X, means, values = self.task(25), self.points(64, 1), [], []
        for sign in (1.0, -1.0):
            model = prior.condition(task.with_values(sign * task.y), seed=0)
            with torch.no_grad():
                mean, _ = mean_and_variance(model.posterior(task.X.unsqueeze(-2)))
                means.append(mean.flatten())
                values.append(prior.acquisition(model)(X))
        for mean in (means[0], means[0] - means[1]):
            assert _rank_correlation(mean, task.y) > 0.7, "the mean does not follow y"
        agree = _rank_correlation(values[0] - values[1], self.truth(X))
        assert agree > _SAME_DIRECTION, "the acquisition function does not follow y"

    @pytest.mark.parametrize("n", [0, 4])
    def test_batches_agree_with_single_points(self, prior: MetaPrior, n: int) -> None:
        model = prior.condition(self.task(n), seed=0)
        X = self.points(6)
        with torch.no_grad():
            joint = mean_and_variance(model.posterior(X))
            single = mean_and_variance(model.posterior(X.unsqueeze(-2)))
        spread = joint[1].max().sqrt().item()
        for ours, theirs in zip(joint, single, strict=True):
            close = 1e-6 * max(spread, 1e-6)
            torch.testing.assert_close(ours, theirs.squeeze(-2), rtol=1e-6, atol=close)

    # Where points are suggested: on the cube, in a table, in a mixed space.

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

    def test_mixed_spaces(self, tmp_path: Path) -> None:
        """Integers, steps and categories get values that they can take, also from a saved prior."""
        rng, tasks, empty = np.random.default_rng(3), [], Task.empty(d=_MIXED.d)
        for m, n in enumerate((7, 6, 3)):
            X = _MIXED.encode_all([_MIXED.decode(rng.random(_MIXED.d).tolist()) for _ in range(n)])
            tasks.append(Task(X, m - (X - 0.3).square().sum(-1), name=f"past {m}"))
        prior = self.method.meta_fit(MetaData(tasks[:2]), seed=0).in_space(_MIXED)
        for space, task, q in ((_MIXED, tasks[2], 1), (_FINITE, tasks[2], 2), (_FINITE, empty, 1)):
            x = suggest(prior.in_space(space), task, q=q, seed=0)
            allowed = space.encode_all([space.decode(row) for row in x])
            torch.testing.assert_close(x, allowed, rtol=0, atol=1e-9)
            assert len(x.unique(dim=0)) == q
        prior.save(tmp_path / "prior.safetensors")
        assert load(tmp_path / "prior.safetensors", method=self.method).space == _MIXED
        assert prior.add(tasks[2]).space == _MIXED

    def test_suggestions_follow_gradients(self, prior: MetaPrior) -> None:
        self.check_slope(prior, prior.condition(self.task(4), seed=0))

    def test_a_caller_without_gradients(self) -> None:
        """A model that was fitted while gradients were off can be differentiated afterwards."""
        with torch.no_grad():
            prior = self.method.meta_fit(self.past((6, 7)), seed=0)
            model = prior.condition(self.task(3), seed=0)
        self.check_slope(prior, model)

    # Seeds, processes, files.

    def test_the_seed_alone_decides(self, prior: MetaPrior) -> None:
        """Same seed, same numbers: no global random numbers, and no memory of earlier calls."""
        tasks = [self.task(0), self.task(4)]
        before = _new_global_state()
        again = self.method.meta_fit(self.past(), seed=0)
        theirs = [(self.results(again, task), suggest(again, task, seed=5)) for task in tasks]
        assert _global_state() == before, "a global random number generator was used"
        for task, (results, x) in zip(tasks, theirs, strict=True):
            assert torch.equal(suggest(prior, task, seed=5), x)
            for p in (prior, again):
                assert torch.equal(self.results(p, task), results)

    def test_the_seed_decides_where_nothing_is_known(self, prior: MetaPrior) -> None:
        if self.learns and not self.indifferent(prior):
            return  # the past already prefers some points
        x = torch.cat([suggest(prior, self.task(0), seed=seed) for seed in range(3)])
        assert len(x.unique(dim=0)) == 3, "the first point does not depend on the seed"

    def test_the_number_of_processes_changes_nothing(self, prior: MetaPrior) -> None:
        other = self.method.meta_fit(self.past(), seed=0, n_jobs=2)
        for task in (self.task(0), self.task(4)):
            assert torch.equal(self.results(prior, task), self.results(other, task))

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

    # Unusual data.

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
        once, task = self.past((6,))[0], self.task(3)
        X, y = torch.cat([once.X, once.X]), torch.cat([once.y, once.y + 0.01])
        twice = MetaData([Task(X, y, name="twice"), self.past((7, 7))[1]])
        prior = self.method.meta_fit(twice, seed=0)
        self.usable(prior, Task(torch.cat([task.X, task.X]), torch.cat([task.y, task.y])))

    def test_units_of_y_do_not_matter(self, prior: MetaPrior) -> None:
        """All y multiplied by a thousand and shifted: points are preferred in the same order."""
        meta = self.past().with_values([1e3 * task.y - 50.0 for task in self.past()])
        scaled = self.method.meta_fit(meta, seed=0)
        task = self.task(5)
        theirs = self.results(scaled, task.with_values(1e3 * task.y - 50.0))[2]
        assert _rank_correlation(self.results(prior, task)[2], theirs) > 0.999

    # What every method refuses, in the same words.

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


def _rank_correlation(a: Tensor, b: Tensor) -> float:
    """Spearman's; NaN if all values of one are equal, so that no comparison holds."""
    ranks = [values.unique(return_inverse=True)[1].double() for values in (a, b)]
    return float(torch.stack(ranks).corrcoef()[0, 1])


def _new_global_state() -> tuple[object, ...]:
    """Seed the global generators of torch, Python and NumPy, otherwise than before."""
    seed = (torch.initial_seed() + 1) % 2**32
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - a method may use it, which is what the suite looks for
    return _global_state()


def _global_state() -> tuple[object, ...]:
    numpy = pickle.dumps(np.random.get_state())  # noqa: NPY002 - see above
    return torch.get_rng_state().tolist(), random.getstate(), numpy
