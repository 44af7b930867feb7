r"""`AverageGP`: the average of several explanations of the new task, as one BoTorch model.

Each member is a `ScaMLGP` with the weights of one explanation, and has that explanation's posterior
probability. BoTorch treats the model as an ensemble: its posteriors have the members in dimension -3,
and its acquisition functions average over them with equal weights. So a posterior shows `REPLICAS`
members, each explanation as often as its probability says. Its mixture mean and variance, and our own
acquisition functions, use the probabilities themselves.

A new observation y at x changes the probabilities by Bayes' rule, $p_e \propto p_e\, p_e(y \mid x)$.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from botorch.posteriors import Posterior
from botorch.sampling import MCSampler
from gpytorch.likelihoods import GaussianLikelihood
from torch import Tensor
from torch.distributions import MultivariateNormal

from scaml.errors import SettingError
from scaml.gp.mixture_posterior import REPLICAS, mixture_of
from scaml.gp.posterior import check_outputs, likelihood_of
from scaml.model.average_parts import AverageParts
from scaml.model.past_at_data import PastAtData
from scaml.model.past_parts import PastParts
from scaml.model.point_moments import PointMoments
from scaml.model.scaml_gp import ScaMLGP
from scaml.model.table_cache import TableCache
from scaml.model.verdict import Verdict

__all__ = ["AverageGP"]


class AverageGP(Model):
    """An average of `ScaMLGP`s over explanations. It computes in float64 on the CPU.

    Args:
        members: The models of the explanations that are probable enough to matter.
        log_probability: Log posterior probabilities of the members, E; they add up to 1.
        verdict: What is known of all explanations; None for fantasies.
    """

    _is_ensemble = True

    def __init__(
        self, members: Sequence[ScaMLGP], log_probability: Tensor, verdict: Verdict | None = None
    ) -> None:
        super().__init__()
        self.members = tuple(members)
        self.log_probability = log_probability
        self._verdict = verdict
        self._points: PointMoments | None = None
        self.eval()

    @property
    def probability(self) -> Tensor:
        """Posterior probabilities of the members, `batch x E`."""
        return self.log_probability.exp()

    @property
    def weights(self) -> Tensor:
        """The mean weights of the past tasks, M."""
        return self.probability @ self._all_weights()

    def explain(self) -> Verdict:
        """Which past tasks the new one is like, with probabilities."""
        if self._verdict is None:
            raise SettingError(
                "This model has further observations at fixed hyperparameters; explain the model that "
                "`condition` returned."
            )
        return self._verdict

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
    ) -> Posterior:
        """The joint posterior of f_t at X, in the units of y.

        Args:
            X: `batch x q x d`.
            output_indices: None or [0]: there is one output.
            observation_noise: True adds each member's noise; a tensor, `batch x q x 1`, is added as
                noise variance in the units of y².
            posterior_transform: Applied last.

        Returns:
            A posterior over `batch x REPLICAS x q x 1`, whose `mixture_mean` and `mixture_variance`
            are `batch x q x 1`.
        """
        check_outputs(output_indices)
        found = [member.posterior(X, None, observation_noise) for member in self.members]
        mean = torch.stack([one.distribution.mean for one in found], dim=-2)
        dense = [one.distribution.lazy_covariance_matrix.to_dense() for one in found]
        posterior = mixture_of(mean, torch.stack(dense, dim=-3), self.probability)
        if posterior_transform is None:
            return posterior
        return posterior_transform(posterior=posterior, X=X.unsqueeze(-3))

    def condition_on_observations(
        self, X: Tensor, Y: Tensor, noise: Tensor | None = None, **kwargs: Any
    ) -> AverageGP:
        """This model with further observations; probabilities change, hyperparameters do not.

        Args:
            X: `batch x n' x d`.
            Y: `batch' x n' x 1`, batch' ending in batch.
            noise: Noise variances of Y, in the units of y²; None for each member's noise.
            **kwargs: Ignored, for BoTorch's signature.
        """
        X, Y = X.double(), Y.double()
        gained = [_log_density(member, X, Y, noise) for member in self.members]
        log_probability = torch.log_softmax(self.log_probability + torch.stack(gained, dim=-1), -1)
        members = [member.condition_on_observations(X, Y, noise) for member in self.members]
        return AverageGP(members, log_probability)

    def believing(self, X: Tensor) -> AverageGP:
        """The model each of whose members has observed its own mean at X; the probabilities stay.

        The mean of the mixture would be news to all members, and most to the confident ones.
        """
        with torch.no_grad():
            members = [
                member.condition_on_observations(X, member.posterior(X).mean) for member in self.members
            ]
        return AverageGP(members, self.log_probability)

    def fantasize(
        self, X: Tensor, sampler: MCSampler, observation_noise: Tensor | None = None, **kwargs: Any
    ) -> AverageGP:
        """The model given draws of its own observations at X: fantasies of a mixture.

        Args:
            X: `batch x n' x d`.
            sampler: Draws S samples; sample i is of replica i modulo `REPLICAS`.
            observation_noise: Noise variances; None for each member's noise.
            **kwargs: Ignored, for BoTorch's signature.

        Returns:
            A model of batch shape `S x batch`.
        """
        noise: bool | Tensor = True if observation_noise is None else observation_noise
        drawn = sampler(self.posterior(X, observation_noise=noise))  # S x batch x REPLICAS x n' x 1
        which = torch.arange(len(drawn)) % REPLICAS
        Y = torch.stack([sample.select(-3, int(r)) for sample, r in zip(drawn, which, strict=True)])
        return self.condition_on_observations(X, Y, observation_noise)

    def marginal(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Means and variances, each `batch x E`, of the members at `batch x 1 x d`, in units of y."""
        if not self.members[0].batch_shape:
            mean, variance = self.point_moments()(X.double().reshape(-1, X.shape[-1]))
            shape = *X.shape[:-2], len(self.members)
            return mean.reshape(shape), variance.reshape(shape)
        found = [member.marginal(X) for member in self.members]
        return torch.cat([mean for mean, _ in found], -1), torch.cat([var for _, var in found], -1)

    def draws(self, nodes: Tensor) -> Tensor:
        """Values of f at X_t, `E x S x n`, in the units of y, from standard normal nodes, `S x n`."""
        return torch.stack([member.draws(nodes) for member in self.members])

    def revealed(self, values: Tensor) -> AverageGP:
        """The model that knows values of f at X_t, `E x S x n`; the probabilities stay."""
        known = [member.revealed(own) for member, own in zip(self.members, values, strict=True)]
        return self._observing(known)

    def exact(self) -> AverageGP:
        """The model whose members take the observations for exact; the probabilities stay."""
        return self._observing([member.exact() for member in self.members])

    def _observing(self, members: Sequence[ScaMLGP]) -> AverageGP:
        """The average of the same members with other values at X_t."""
        new = AverageGP(members, self.log_probability)
        new._points = self.point_moments().observing(members)
        return new

    def of_fantasies(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Means, `n x E x S`, and variances, `n x E`, at `n x d`, in units of y."""
        return self.point_moments()(X.double())

    def point_moments(self) -> PointMoments:
        """Means and variances of the members at single points, with slopes; for one X_t."""
        if self._points is None:
            weights = self._all_weights()
            active = weights.any(0).nonzero().flatten().tolist()
            # Often one member has a weight for every task.
            widest = max(self.members, key=lambda member: len(member.past.tasks)).past
            if len(widest.tasks) < len(active):
                tasks = self.members[0].task_gps.subset(active)
                widest = PastAtData.of(tasks, self.members[0].observed.X)
            with torch.inference_mode(False):  # the tensors outlive the caller's inference mode
                self._points = PointMoments.of(widest.points, weights[:, active], self.members)
        return self._points

    def _all_weights(self) -> Tensor:
        return torch.stack([member.weights for member in self.members])

    def on_table(self, cache: TableCache, table: Tensor) -> tuple[Tensor, Tensor] | None:
        """Means and variances, `n x E`, at the rows of a table; None if not kept.

        Of S fantasies the means are `n x E x S`.
        """
        first = self.members[0]
        X = first.observed.X
        past = None if X.ndim > 2 else cache.past(first.task_gps, table, self._all_weights(), X)
        if past is None:
            return None
        mean, variance = self.point_moments().given(past, table)
        return mean if first.batch_shape else mean.squeeze(-1), variance

    def past_parts(self) -> PastParts | None:
        """The members' parts, averaged; None without a past task."""
        parts = [member.past_parts() for member in self.members]
        kept = [part for part in parts if part is not None]
        return AverageParts.of(kept, self.probability, self.weights) if kept else None

    def before_data(self) -> AverageGP:
        """The same members and probabilities without the test data."""
        return AverageGP([member.before_data() for member in self.members], self.log_probability)

    def leave_one_out(self) -> tuple[Tensor, Tensor]:
        r"""Mean and standard deviation, n each, of every observation given all others, in units of y.

        Without observation j, member e has the probability $p_e / p_e(y_j \mid y_{-j})$, normalized.
        """
        found = [member.leave_one_out() for member in self.members]
        mean, deviation = (torch.stack(part) for part in zip(*found, strict=True))  # E x n
        u = (self.train_targets - mean) / deviation
        log_density = -0.5 * u.square() - deviation.log()
        p = torch.softmax(self.log_probability.unsqueeze(-1) - log_density, 0)
        average = (p * mean).sum(0)
        variance = (p * (deviation.square() + (mean - average).square())).sum(0)
        return average, variance.sqrt()

    @property
    def train_inputs(self) -> tuple[Tensor]:
        """(X_t,), `batch x n x d`."""
        return self.members[0].train_inputs

    @property
    def train_targets(self) -> Tensor:
        """y_t, `batch x n`."""
        return self.members[0].train_targets

    @property
    def num_outputs(self) -> int:
        """One."""
        return 1

    @property
    def batch_shape(self) -> torch.Size:
        """The fantasies' batch, and the members that posteriors show."""
        return torch.Size([*self.members[0].batch_shape, REPLICAS])

    @property
    def likelihood(self) -> GaussianLikelihood:
        """The mean observation noise in the units of y², for BoTorch's sake."""
        noise = torch.stack([member.noise * member.y_scale.square() for member in self.members])
        return likelihood_of((self.probability * noise).sum(-1).mean())

    def subset_output(self, idcs: list[int]) -> AverageGP:
        """The model itself: there is one output."""
        check_outputs(idcs)
        return self

    def _apply(self, fn: Any, recurse: bool = True) -> AverageGP:
        # BoTorch calls model.to(X); in float32 the factorizations of a GP are worth nothing.
        return self


def _log_density(member: ScaMLGP, X: Tensor, Y: Tensor, noise: Tensor | None) -> Tensor:
    """log p(Y | X) of a member, `batch'`."""
    with torch.no_grad():
        normal = member.posterior(X, observation_noise=True if noise is None else noise).distribution
        covariance = normal.lazy_covariance_matrix.to_dense()
        density: Tensor = MultivariateNormal(normal.mean, covariance).log_prob(Y.squeeze(-1))
    return density
