"""A plain GP with expected improvement: with what `acquisition=logei` is compared fairly.

Run with `--methods benchmarks/gpbo_logei.py:LogEI`; `make choices` does.
"""

from __future__ import annotations

from dataclasses import dataclass

from botorch.acquisition import AcquisitionFunction, LogExpectedImprovement
from botorch.models.model import Model

from scaml.bench.choices.acquisitions import Standardized
from scaml.data import MetaData
from scaml.methods.gpbo import GPBO, GPBOPrior
from scaml.scaml_gp import ScaMLGP

__all__ = ["LogEI", "LogEIPrior"]


@dataclass(frozen=True)
class LogEI(GPBO):
    """GPBO whose acquisition function, once there are data, is expected improvement."""

    def meta_fit(self, meta: MetaData, *, seed: int = 0, n_jobs: int = 1) -> LogEIPrior:
        return LogEIPrior(**vars(super().meta_fit(meta, seed=seed, n_jobs=n_jobs)))


@dataclass(frozen=True)
class LogEIPrior(GPBOPrior):
    """The prior of `LogEI`."""

    def acquisition(self, model: Model) -> AcquisitionFunction:
        """Improvement on the best posterior mean of the data, as of `acquisition=logei`."""
        assert isinstance(model, ScaMLGP)
        (X,) = model.train_inputs
        if not len(X):
            return super().acquisition(model)
        return LogExpectedImprovement(Standardized(model), best_f=model.moments(X)[0].max())
