"""prototype"""
from __future__ import annotations
from collections.abc import Sequence
from typing import Any
import torch
from botorch.models.model import Model
from botorch.posteriors.fully_bayesian import GaussianMixturePosterior
from gpytorch.distributions import MultivariateNormal
from torch import Tensor
from scaml.model.scaml_gp import ScaMLGP


class AverageGP(Model):
    _is_ensemble = True

    def __init__(self, members: Sequence[ScaMLGP], log_probability: Tensor, explained: Any = None, explanations: Any = None) -> None:
        super().__init__()
        self.members = tuple(members)
        self.log_probability = log_probability
        self.explained, self.explanations = explained, explanations

    @property
    def weights(self) -> Tensor:
        return torch.stack([m.weights for m in self.members]).mT @ self.log_probability.exp()

    @property
    def num_outputs(self) -> int:
        return 1

    @property
    def batch_shape(self) -> torch.Size:
        return torch.Size()

    @property
    def train_inputs(self) -> tuple[Tensor]:
        return self.members[0].train_inputs

    def draws(self, nodes: Tensor) -> Tensor:
        return torch.stack([m.draws(nodes) for m in self.members])

    def revealed(self, values: Tensor) -> AverageGP:
        return AverageGP([m.revealed(v) for m, v in zip(self.members, values, strict=True)], self.log_probability)

    def of_fantasies(self, X: Tensor) -> tuple[Tensor, Tensor]:
        found = [m.of_fantasies(X) for m in self.members]
        return torch.stack([a for a, _ in found], 1), torch.stack([b for _, b in found], 1)

    def marginal(self, X: Tensor) -> tuple[Tensor, Tensor]:
        found = [m.marginal(X) for m in self.members]
        p = self.log_probability.exp()
        means = torch.stack([a for a, _ in found], -1); var = torch.stack([b for _, b in found], -1)
        mean = means @ p
        return mean, var @ p + (means - mean.unsqueeze(-1)).square() @ p

    def on_table(self, cache, table):
        found = [m.on_table(cache, table) for m in self.members]
        if any(f is None for f in found):
            return None
        mean = torch.stack([a for a, _ in found], 1); var = torch.stack([b for _, b in found], 1)
        if mean.ndim == 3:
            return mean, var
        p = self.log_probability.exp()
        m = mean @ p
        return m, var @ p + (mean - m.unsqueeze(-1)).square() @ p

    def posterior(self, X, output_indices=None, observation_noise=False, posterior_transform=None):
        raise NotImplementedError
