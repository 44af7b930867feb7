r"""`ScaMLGP`: the test-task's Gaussian process as a BoTorch model.

Theorem 1 says that the test-task, given the meta-data, is a GP with

$$m(x) = \sum_m w_m \mu_m(x), \qquad k(x, x') = k_t(x, x') + \sum_m w_m^2 \Sigma_m(x, x').$$

(`theorem1` has this form.) With the features $\phi(x) = (w_m L_m^{-1} k_m(X_m, x))_m$ and b, the
stacked $L_m^{-1} y_m$, the same prior is

$$m(x) = \phi(x)^T b, \qquad k(x, x') = k_t(x, x') + \sum_m w_m^2 k_m(x, x') - \phi(x)^T \phi(x'),$$

a sum of stationary kernels minus an inner product. Conditioning on D_t (equation 1) appends the
features $\psi(x) = L_t^{-1} k(X_t, x)$ and changes nothing else. Tasks of weight 0 are left out, which
is exact. An unknown level stays outside (`unknown_level`).
"""

from __future__ import annotations

from copy import copy
from typing import Any

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.gpytorch import GPyTorchModel
from botorch.models.model import FantasizeMixin
from botorch.posteriors import Posterior
from gpytorch.distributions import MultivariateNormal
from gpytorch.likelihoods import GaussianLikelihood
from torch import Tensor

from scaml.gp.kernels import correlation, squared_distance
from scaml.gp.linalg import appended, cholesky, inverse_of_lower, square_root
from scaml.gp.posterior import LEAST_VARIANCE, check_outputs, likelihood_of, posterior_of
from scaml.gp.task_gps import TaskGPs
from scaml.gp.units import Units
from scaml.model.hyperparameters import Hyperparameters
from scaml.model.past_at_data import PastAtData
from scaml.model.past_parts import PastParts
from scaml.model.point_moments import Observed, PointMoments
from scaml.model.table_cache import TableCache
from scaml.model.unknown_level import level_given
from scaml.tasks.task import Task

__all__ = ["ScaMLGP"]

_KNOWN_NOISE = 1e-8  # variance of f at points where it is known
# Added to the covariance of draws, as a share of the noise: at repeated points it has no inverse.
_DRAW_JITTER = 1e-4


class ScaMLGP(GPyTorchModel, FantasizeMixin):
    """The test-task given meta-data and test data; the test data may be empty.

    y = y_offset + y_scale (Σ w_m f_m + f_t + noise). Inputs and outputs are in the units of y.
    `lengthscale`, `outputscale` and `level` (the variance of a constant) belong to the residual kernel
    k_t; they and `noise` are standardized. The model stays in float64 on the CPU, despite `.to()`.

    Args:
        task_gps: The meta-tasks' posteriors.
        task: The test data.
        units: Offset and scale of y.
        hyperparameters: θ_t.
        past: The meta-tasks at X_t, if they are known already.
    """

    weights: Tensor
    lengthscale: Tensor
    outputscale: Tensor
    noise: Tensor
    level: Tensor
    y_offset: Tensor
    y_scale: Tensor
    _num_outputs = 1

    def __init__(
        self,
        task_gps: TaskGPs,
        task: Task,
        units: Units,
        hyperparameters: Hyperparameters,
        past: PastAtData | None = None,
    ) -> None:
        super().__init__()
        for name, value in vars(hyperparameters).items():
            self.register_buffer(name, value)
        self.register_buffer("y_offset", units.offset)
        self.register_buffer("y_scale", units.scale)
        self.task_gps = task_gps
        self._X = task.X
        self._y = task.y
        self._extra_noise = torch.zeros_like(task.y)
        self.eval()
        self._condition(past)

    def _condition(self, given: PastAtData | None = None) -> None:
        """Line 5 of Algorithm 1: everything about D_t that does not depend on the query.

        Args:
            given: The meta-tasks at X_t, if they are known already.
        """
        active = self.weights.nonzero().flatten().tolist()
        self._active_weights = w = self.weights[active]
        if given is None:
            self._past = PastAtData.of(self.task_gps.subset(active), self._X)
        else:
            self._past = given.subset(active)
        tasks = self._past.tasks
        # Of the stationary kernels, the residual's last.
        own = tasks.lengthscale[:, : tasks.d].reciprocal()
        self._inverse = torch.cat([own, self.lengthscale.reciprocal()[None]])
        self._scales = torch.cat([w.square() * tasks.outputscale, self.outputscale.reshape(1)])
        self._phi = (w.unsqueeze(-1) * self._past.u).flatten(-2)
        a = self._X / self.lengthscale
        residual = self.outputscale * correlation(self.task_gps.kernel, squared_distance(a, a))
        self._prior_mean = torch.tensordot(w, self._past.mean, dims=1)
        self._covariance = residual + torch.tensordot(w.square(), self._past.covariance, dims=1)
        self._observe()

    def _observe(self) -> None:
        """The part of the conditioning that depends on y_t and its noise."""
        K = self._covariance + torch.diag_embed(self.noise + self._extra_noise)
        L = cholesky(K, "the test-task")
        self._root = inverse_of_lower(L)
        residual = (self._y - self.y_offset) / self.y_scale - self._prior_mean
        self._level, residual = level_given(self._root, residual, self.level)
        whitened = (self._root @ residual.unsqueeze(-1)).squeeze(-1)
        self._gamma = (self._root.mT @ whitened.unsqueeze(-1)).squeeze(-1)  # α
        self._points: PointMoments | None = None

    def _features(self, X: Tensor) -> Tensor:
        """φ(x), `batch x q x (active tasks x N)`."""
        return (self._active_weights.unsqueeze(-1) * self._past.tasks.whiten(X)).flatten(-2)

    def _stationary(self, X: Tensor, Z: Tensor) -> Tensor:
        """k_t(x, z) + Σ w_m² k_m(x, z), `batch x q x k`."""
        if Z.ndim == 2:  # one set of columns for all rows: a single large batch of products
            inverse = self._inverse.unsqueeze(1)
            flat = X.flatten(0, -2)
            R = correlation(self.task_gps.kernel, squared_distance(flat * inverse, Z * inverse))
            return (self._scales @ R.flatten(1)).view(*X.shape[:-1], Z.shape[0])
        inverse = self._inverse.view(-1, *[1] * (max(X.ndim, Z.ndim) - 1), X.shape[-1])
        R = correlation(self.task_gps.kernel, squared_distance(X * inverse, Z * inverse))
        summed: Tensor = torch.tensordot(self._scales, R, dims=1)
        return summed

    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Posterior mean, `batch x q`, and covariance, `batch x q x q`, before units."""
        if X.ndim == 3 and X.shape[-2] == 1 and not self.batch_shape:
            mean, variance = self.point_moments().standardized(X.squeeze(-2))
            return mean.squeeze(-1), variance.unsqueeze(-1)
        phi, further, cross = self._all_features(X)
        b = self._past.tasks.targets.flatten()
        mean = phi @ b + (cross @ self._gamma.unsqueeze(-1)).squeeze(-1)
        mean, level = mean + self._level.mean.unsqueeze(-1), self._level.covariance(further, further)
        if X.shape[-2] == 1:  # the usual request of an acquisition function needs no q x q product
            gained = phi.square().sum(-1, keepdim=True) + further.square().sum(-1, keepdim=True)
            return mean, (self._scales.sum() - gained).clamp_min(self._floor) + level
        covariance = self._stationary(X, X) - phi @ phi.mT - further @ further.mT
        variance = covariance.diagonal(dim1=-2, dim2=-1)
        covariance = covariance + torch.diag_embed(variance.clamp_min(self._floor) - variance)
        return mean, covariance + level

    def cross(self, X: Tensor, Z: Tensor) -> Tensor:
        """Posterior covariances, `batch x q x k`, of q and k points, before units."""
        (phi, further, _), (other, more, _) = self._all_features(X), self._all_features(Z)
        level = self._level.covariance(further, more)
        return self._stationary(X, Z) - phi @ other.mT - further @ more.mT + level

    def _all_features(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """φ(x), ψ(x), and the covariance with X_t by Theorem 1."""
        phi = self._features(X)
        cross = self._stationary(X, self._X) - phi @ self._phi.mT
        return phi, cross @ self._root.mT, cross

    @property
    def _floor(self) -> float:
        """The least variance: rounding can give a negative one at a point that is known exactly."""
        return LEAST_VARIANCE * float(self._scales.sum())

    def point_moments(self) -> PointMoments:
        """Mean and variance at single points, with slopes; for one X_t."""
        if self._points is None:
            with torch.inference_mode(False):  # the tensors outlive the caller's inference mode
                w = self._active_weights.unsqueeze(0)
                self._points = PointMoments.of(self._past.points, w, [self])
        return self._points

    def marginal(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Posterior mean and variance, each `batch x 1`, at `batch x 1 x d`, in the units of y."""
        mean, variance = self.moments(X.to(self._X))
        return self.y_offset + self.y_scale * mean, self.y_scale.square() * variance.squeeze(-1)

    def of_fantasies(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Means of all s fantasies, `n x s`, and their variance, n, at `n x d`, in the units of y."""
        mean, variance = self.point_moments()(X.to(self._X))
        return mean[:, 0], variance[:, 0]

    def draws(self, nodes: Tensor) -> Tensor:
        r"""Values of f at X_t, `S x n`, in the units of y, from standard normal nodes, `S x n`.

        With D the noise variances, f(X_t) has mean $z - D \alpha$ and covariance $D - D K^{-1} D$,
        where K has the level in it. This form keeps its digits where the noise is small, and the
        difference of covariances does not.
        """
        noise = self.noise + self._extra_noise
        inverse = self._precision()
        covariance = torch.diag((1.0 + _DRAW_JITTER) * noise) - noise.unsqueeze(-1) * inverse * noise
        return self._y + self.y_scale * (nodes @ square_root(covariance).mT - noise * self._gamma)

    def _precision(self) -> Tensor:
        """K^-1, `n x n`, of the observations with the level in K."""
        u = self._root.mT @ self._level.one
        return self._root.mT @ self._root - self._level.variance * u.unsqueeze(-1) * u

    def revealed(self, values: Tensor, noise: float = _KNOWN_NOISE) -> ScaMLGP:
        """The model that knows f at X_t, `S x n` in the units of y: one fantasy per row."""
        new = self._copy()
        new._y = values
        new._extra_noise = noise - self.noise.expand(self._X.shape[:-1])
        new._observe()
        return new

    def exact(self) -> ScaMLGP:
        """The model that takes its observations for exact, up to rounding errors."""
        return self.revealed(self._y, self._floor)

    def on_table(self, cache: TableCache, table: Tensor) -> tuple[Tensor, Tensor] | None:
        """Mean and variance, n each, at the rows of a table, in the units of y; None if not kept.

        Theorem 1 and equation 1 as they stand, from the meta-tasks' posteriors at the rows, which do
        not change between the steps of a search. Of S fantasies the mean is `n x S`.
        """
        if self._X.ndim > 2:  # fantasies at designs of their own have no K in common
            return None
        past = cache.past(self.task_gps, table, self.weights.unsqueeze(0), self._X)
        if past is None:
            return None
        mean, variance = self.point_moments().given(past, table)
        return mean[:, 0] if self.batch_shape else mean[:, 0, 0], variance[:, 0]

    def past_parts(self) -> PastParts | None:
        """The terms of Theorem 1, in the units of y; None without a past task."""
        if not len(self.weights):
            return None

        def rest(X: Tensor) -> tuple[Tensor, Tensor]:
            return X.new_zeros(len(X)), (self.outputscale + self.level).expand(len(X))

        units = Units(self.y_offset, self.y_scale)
        return PastParts(self.task_gps, self.weights, units, rest, of_prior=True)

    def before_data(self) -> ScaMLGP:
        """The prior of Theorem 1 at the learned weights: the same model without the test data."""
        units = Units(self.y_offset, self.y_scale)
        nothing = Task.empty(d=self.lengthscale.shape[-1])
        return ScaMLGP(self.task_gps, nothing, units, self.hyperparameters)

    def leave_one_out(self) -> tuple[Tensor, Tensor]:
        r"""Mean and standard deviation, n each, of every observation given the others, in units of y.

        At the hyperparameters of all n observations, with the level in K and α as ever: mean
        $z_j - \alpha_j / [K^{-1}]_{jj}$, variance $1 / [K^{-1}]_{jj}$.
        """
        precision = self._precision().diagonal()
        mean = self._y - self.y_scale * self._gamma / precision
        return mean, self.y_scale * precision.rsqrt()

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
            observation_noise: True adds the fitted noise; a tensor, `batch x q x 1`, is added as
                noise variance in the units of y².
            posterior_transform: Applied last.

        Returns:
            A posterior over `batch x q x 1`.
        """
        check_outputs(output_indices)
        return posterior_of(
            self.moments(X.to(self._X)),
            Units(self.y_offset, self.y_scale),
            self.noise,
            X=X,
            observation_noise=observation_noise,
            posterior_transform=posterior_transform,
        )

    def forward(self, X: Tensor) -> MultivariateNormal:
        """The posterior's distribution, as GPyTorch's models give it."""
        return self.posterior(X).distribution

    def condition_on_observations(
        self, X: Tensor, Y: Tensor, noise: Tensor | None = None, **kwargs: Any
    ) -> ScaMLGP:
        """This model with further observations at unchanged hyperparameters and units.

        Args:
            X: `batch x n' x d`.
            Y: `batch' x n' x 1`, batch' ending in batch.
            noise: Noise variances of Y, in the units of y²; None for the fitted noise.
            **kwargs: Ignored, for BoTorch's signature.

        Returns:
            A new model of batch shape batch'.
        """
        X, y = X.to(self._X), Y.to(self._y).squeeze(-1)
        if noise is None:
            extra = X.new_zeros(X.shape[:-1])
        else:
            extra = noise.to(self._y).squeeze(-1) / self.y_scale.square() - self.noise
        new = self._copy()
        # y alone carries the fantasies' batch: they share K, which is factorized once.
        new._X = appended(self._X, X, dim=-2)
        new._extra_noise = appended(self._extra_noise, extra, dim=-1)
        new._y = appended(self._y, y, dim=-1)
        new._condition()
        return new

    def _copy(self) -> ScaMLGP:
        new = copy(self)
        new._buffers = dict(self._buffers)
        return new

    def get_fantasy_model(self, inputs: Tensor, targets: Tensor, **kwargs: Any) -> ScaMLGP:
        """`condition_on_observations` as GPyTorch's model lists call it."""
        return self.condition_on_observations(inputs, targets.unsqueeze(-1), **kwargs)

    def subset_output(self, idcs: list[int]) -> ScaMLGP:
        """The model itself: there is one output."""
        check_outputs(idcs)
        return self

    @property
    def past(self) -> PastAtData:
        """The meta-tasks with a weight, at X_t."""
        return self._past

    @property
    def observed(self) -> Observed:
        """What D_t adds to the prior of Theorem 1."""
        return Observed(self._X, self._gamma, self._root, self._level, self._floor)

    @property
    def hyperparameters(self) -> Hyperparameters:
        """θ_t."""
        return Hyperparameters(self.weights, self.lengthscale, self.outputscale, self.noise, self.level)

    @property
    def batch_shape(self) -> torch.Size:
        """The fantasies' batch; empty for a fitted model."""
        return self._y.shape[:-1]

    @property
    def train_inputs(self) -> tuple[Tensor]:
        """(X_t,), `batch x n x d`."""
        return (self._X.expand(*self.batch_shape, *self._X.shape[-2:]),)

    @property
    def train_targets(self) -> Tensor:
        """y_t, `batch x n`, in its own units."""
        return self._y

    @property
    def likelihood(self) -> GaussianLikelihood:
        """The observation noise in the units of y, for GPyTorch's sake."""
        return likelihood_of(self.noise * self.y_scale.square())

    def load_state_dict(
        self,
        state_dict: Any,
        strict: bool = True,
        keep_transforms: bool = True,
        assign: bool = False,
    ) -> None:
        """Take over hyperparameters and units, and condition anew on this model's own data."""
        # Assigned, not copied in place: fantasies of this model share its tensors.
        torch.nn.Module.load_state_dict(self, state_dict, strict=strict, assign=True)
        self._condition()

    def _apply(self, fn: Any, recurse: bool = True) -> ScaMLGP:
        # BoTorch calls model.to(X); in float32 the factorizations of a GP are worth nothing.
        return self
