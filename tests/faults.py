"""Methods with one deliberate fault each, for the conformance suite to find."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import torch
from botorch.acquisition import AcquisitionFunction
from botorch.acquisition.analytic import AnalyticAcquisitionFunction
from botorch.models.model import Model
from torch import Tensor

from scaml import MetaData, Task
from scaml.gp.units import Units
from scaml.methods import ABLR, FSBO, GC3P, GPBO, MTGP, RGPE, RMGPUCB, SGPT, Method, ScaML, StackGP
from scaml.methods.base import MetaPrior
from scaml.methods.rm_gp_ucb import RMGP
from scaml.methods.shared.ensemble import Ensemble
from scaml.model.hyperparameters import Hyperparameters
from scaml.model.scaml_gp import ScaMLGP
from scaml.spaces.space import Space


@dataclass(frozen=True)
class Intact(Method):
    """SGPT behind hooks. It has no fault itself; a fault replaces the inner method or a hook."""

    inner: ClassVar[Method] = SGPT()

    def meta_fit(self, meta: MetaData, *, seed: int = 0, n_jobs: int = 1) -> Hooked:
        seen = self.past(meta, n_jobs) if isinstance(meta, MetaData) else meta
        return Hooked(self, meta, self.inner.meta_fit(seen, seed=self.seed(seed), n_jobs=n_jobs))

    def restore(self, meta: MetaData, state: dict[str, Tensor]) -> Hooked:
        return Hooked(self, meta, self.inner.restore(self.past(meta, 1), state))

    def past(self, meta: MetaData, n_jobs: int) -> MetaData:
        """The past tasks as the method sees them."""
        return meta

    def seed(self, seed: int) -> int:
        """The seed of the meta-fit."""
        return seed

    def new(self, task: Task) -> Task:
        """The new task as the method sees it."""
        return task

    def model(self, model: Model, task: Task) -> Model:
        """What becomes of the inner method's model."""
        return model

    def altered(self, function: AcquisitionFunction) -> AcquisitionFunction:
        """What becomes of the inner method's acquisition function."""
        return function


@dataclass(frozen=True, eq=False)
class Hooked(MetaPrior):
    method: Intact
    meta: MetaData
    inner: MetaPrior

    def state(self) -> dict[str, Tensor]:
        return self.inner.state()

    def condition(self, task: Task, *, seed: int = 0) -> Model:
        self.check_task(task)
        task = self.method.new(task)
        return self.method.model(self.inner.condition(task, seed=seed), task)

    def acquisition(self, model: Model) -> AcquisitionFunction:
        return self.method.altered(self.inner.acquisition(model))


# Faults: the past.


class PastIgnored(Intact):
    inner = GPBO()


class PastReplaced(Intact):
    """The tasks from which it learns have nothing to do with the past."""

    inner: ClassVar[Method] = FSBO(iterations=5, epochs=2)

    def past(self, meta: MetaData, n_jobs: int) -> MetaData:
        rng = np.random.default_rng(0)
        return MetaData([Task(rng.random((9, meta.d)), rng.random(9), name=n) for n in meta.names])


class PastReplacedOfABLR(PastReplaced):
    inner = ABLR(iterations=5)


class WeightsTimesZero(Intact):
    def model(self, model: Model, task: Task) -> Model:
        return weighted(model, torch.zeros_like(model.weights), task)


class WeightsTimesZeroOfRGPE(WeightsTimesZero):
    inner = RGPE()


class WeightsTimesZeroOfRMGPUCB(WeightsTimesZero):
    inner = RMGPUCB()


class WeightsTimesZeroOfScaML(WeightsTimesZero):
    inner = ScaML()


class WeightsTimesZeroOfThePaper(WeightsTimesZero):
    inner = ScaML.paper()


class WeightsTimesZeroOnceObserved(WeightsTimesZeroOfScaML):
    def model(self, model: Model, task: Task) -> Model:
        return super().model(model, task) if task.n else model


class WeightsTimesZeroOnceRanked(WeightsTimesZeroOfRGPE):
    """RGPE weighs by ranks from three observations on."""

    def model(self, model: Model, task: Task) -> Model:
        return super().model(model, task) if task.n >= 3 else model


def weighted(model: Model, factors: Tensor, task: Task) -> Model:
    """The model with all its weights multiplied."""
    weights = factors * model.weights
    if isinstance(model, RMGP):
        return RMGP(model.own, model.task_gps, weights, model.nu)
    if isinstance(model, Ensemble):
        spread, alone = model.own_spread, model.means_alone
        own = model.own_weight
        return Ensemble(model.task_gps, model.own, weights, own, own_spread=spread, means_alone=alone)
    assert isinstance(model, ScaMLGP)
    theta = Hyperparameters(weights, model.lengthscale, model.outputscale, model.noise)
    return ScaMLGP(model.task_gps, task, Units(model.y_offset, model.y_scale), theta)


class PastReversed(Intact):
    """Every past task with the sign of its y flipped."""

    def past(self, meta: MetaData, n_jobs: int) -> MetaData:
        return scaled(meta, -1.0)


class PastReversedOfScaML(PastReversed):
    inner = ScaML()


class PastReversedOfStackGP(PastReversed):
    inner = StackGP()


class PastReversedOfRMGPUCB(PastReversed):
    inner = RMGPUCB()


class PastReversedOfMTGP(PastReversed):
    inner = MTGP(max_iterations=20, warm_iterations=10)


def scaled(meta: MetaData, factor: float) -> MetaData:
    return MetaData([Task(task.X, factor * task.y, name=task.name) for task in meta])


class FirstTaskDropped(Intact):
    """The second task stands in for the first."""

    inner = StackGP()
    ordered = True

    def past(self, meta: MetaData, n_jobs: int) -> MetaData:
        first = Task(meta[1].X, meta[1].y, name=meta.names[0])
        return MetaData([first, *list(meta)[1:]])


class LastTaskDropped(Intact):
    def past(self, meta: MetaData, n_jobs: int) -> MetaData:
        last = Task(meta[0].X, meta[0].y, name=meta.names[-1])
        return MetaData([*list(meta)[:-1], last])


class LastTaskDroppedOfABLR(LastTaskDropped):
    inner = ABLR(iterations=10)


class OrderNotDeclared(Intact):
    """StackGP without its `ordered = True`."""

    inner = StackGP()


class LaterTasksCountLess(Intact):
    def model(self, model: Model, task: Task) -> Model:
        return weighted(model, 0.9 ** torch.arange(len(model.weights)), task)


class LaterTasksCountLessToRMGPUCB(LaterTasksCountLess):
    inner = RMGPUCB()


# Faults: the new task and the acquisition function.


class ObservationsIgnored(Intact):
    def new(self, task: Task) -> Task:
        return Task.empty(d=task.d)


class OnlyLevelAndScaleSeen(Intact):
    """Values of the observations assigned to the wrong points."""

    def new(self, task: Task) -> Task:
        return Task(task.X, task.y.flip(0)) if task.n else task


class ObservationsReversed(Intact):
    def new(self, task: Task) -> Task:
        return Task(task.X, -task.y) if task.n else task


class Minimizes(ObservationsReversed):
    """Takes smaller values for better ones throughout."""

    def past(self, meta: MetaData, n_jobs: int) -> MetaData:
        return scaled(meta, -1.0)


class Negated(AnalyticAcquisitionFunction):
    def __init__(self, function: AcquisitionFunction) -> None:
        super().__init__(function.model)
        self.function = function

    def forward(self, X: Tensor) -> Tensor:
        value: Tensor = -self.function(X)
        return value


class AcquisitionNegated(Intact):
    def altered(self, function: AcquisitionFunction) -> AcquisitionFunction:
        return Negated(function)


class AcquisitionNegatedOfScaML(AcquisitionNegated):
    inner = ScaML()


class AcquisitionNegatedOfGPBO(AcquisitionNegated):
    inner = GPBO()


class AtTheCentre(AnalyticAcquisitionFunction):
    def forward(self, X: Tensor) -> Tensor:
        value: Tensor = -(X - 0.5).square().sum((-2, -1))
        return value


class AlwaysTheCentre(Intact):
    def altered(self, function: AcquisitionFunction) -> AcquisitionFunction:
        return AtTheCentre(function.model)


class BeginsAtTheCentre(Intact):
    """Without observations, GPBO knows nothing: its first point is the seed's to decide."""

    inner = GPBO()

    def altered(self, function: AcquisitionFunction) -> AcquisitionFunction:
        return function if len(function.model.train_targets) else AtTheCentre(function.model)


# Faults: hidden random numbers, processes, spaces.


class DrawsFromTorch(Intact):
    inner = GC3P(updates=5)

    def seed(self, seed: int) -> int:
        return int(torch.randint(2**31, ()))


class DrawsFromTorchAndHidesIt(DrawsFromTorch):
    """The generator is left as it was, but its state decides."""

    def seed(self, seed: int) -> int:
        with torch.random.fork_rng(devices=[]):
            return super().seed(seed)


class DrawsFromNumPy(DrawsFromTorch):
    def seed(self, seed: int) -> int:
        return int(np.random.randint(2**31))  # noqa: NPY002 - that is the fault


class DrawsFromPython(DrawsFromTorch):
    def seed(self, seed: int) -> int:
        return random.randrange(2**31)


class SeedsTorch(DrawsFromTorch):
    """Results are reproducible, but the caller's random numbers are not."""

    def seed(self, seed: int) -> int:
        torch.manual_seed(seed)
        return seed


class CountsItsFits(DrawsFromTorch):
    fits: ClassVar[Iterator[int]] = itertools.count()

    def seed(self, seed: int) -> int:
        return next(self.fits)


class CountsItsModels(Intact):
    """Every model is a little different from the one before."""

    models: ClassVar[Iterator[int]] = itertools.count(1)

    def model(self, model: Model, task: Task) -> Model:
        factor = torch.tensor(1.0 / next(self.models))
        return weighted(model, factor, task)


class RoundsByProcesses(Intact):
    """With more processes, the last bits are different."""

    def past(self, meta: MetaData, n_jobs: int) -> MetaData:
        return meta if n_jobs == 1 else scaled(meta, 1.0 + 1e-12)


class SpaceIgnored(Intact):
    def meta_fit(self, meta: MetaData, *, seed: int = 0, n_jobs: int = 1) -> Hooked:
        return Spaceless(**vars(super().meta_fit(meta, seed=seed, n_jobs=n_jobs)))


class Spaceless(Hooked):
    def in_space(self, space: Space) -> Self:
        return self


class SpaceLost(Intact):
    """A further past task, and the space is forgotten."""

    def meta_fit(self, meta: MetaData, *, seed: int = 0, n_jobs: int = 1) -> Hooked:
        return Forgetful(**vars(super().meta_fit(meta, seed=seed, n_jobs=n_jobs)))


class Forgetful(Hooked):
    def add(self, task: Task, *, seed: int = 0, n_jobs: int = 1) -> MetaPrior:
        return self.method.meta_fit(self.meta.and_task(task), seed=seed, n_jobs=n_jobs)
