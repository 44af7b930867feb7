"""What acquisition functions and explanations ask of a model, beyond BoTorch's `Model`.

`ScaMLGP` has all of it. A model of another method, or a foreign one, has what it can: callers check
each protocol by itself and do without where it is missing. No caller asks for a class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

from botorch.models.model import Model
from torch import Tensor

if TYPE_CHECKING:
    from scaml.model.past_parts import PastParts
    from scaml.model.point_moments import PointMoments
    from scaml.model.table_cache import TableCache
    from scaml.model.verdict import Verdict

__all__ = [
    "AverageModel",
    "ExactModel",
    "ExplainedModel",
    "FantasyModel",
    "LeaveOneOutModel",
    "MarginalModel",
    "PointModel",
    "SumOverPast",
    "TableModel",
]


@runtime_checkable
class MarginalModel(Protocol):
    """Mean and variance at single points, without the joint posterior around them."""

    def marginal(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance, `batch x 1` each, at `batch x 1 x d`, in the units of y.

        Both are differentiable in X.
        """


@runtime_checkable
class PointModel(Protocol):
    """Knows the slopes of its mean and variance at single points in closed form."""

    def point_moments(self) -> PointMoments:
        """Mean and variance of all members and fantasies; for models of one X_t."""


@runtime_checkable
class AverageModel(Protocol):
    """An average of E models, whose `marginal` and `on_table` give one column per member."""

    log_probability: Tensor  # E

    @property
    def probability(self) -> Tensor:
        """Probabilities of the members, E."""

    def marginal(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Means and variances of the members, `batch x E` each, at `batch x 1 x d`, in units of y."""

    def believing(self, X: Tensor) -> Self:
        """The model each of whose members has observed its own mean at `k x d`."""


@runtime_checkable
class ExactModel(Protocol):
    """Can be asked what it would predict if its observations had no noise."""

    @property
    def train_inputs(self) -> tuple[Tensor]:
        """(X_t,), `n x d`."""

    @property
    def train_targets(self) -> Tensor:
        """y_t, n."""

    def exact(self) -> Model:
        """The model that takes its observations for exact."""


@runtime_checkable
class ExplainedModel(Protocol):
    """Knows which past tasks the new one is like."""

    def explain(self) -> Verdict:
        """With probabilities."""


@runtime_checkable
class FantasyModel(Protocol):
    """Can be told values of f at the points of its own data: fantasies that share one design."""

    @property
    def train_inputs(self) -> tuple[Tensor]:
        """(X_t,), `n x d`."""

    def draws(self, nodes: Tensor) -> Tensor:
        """Values of f at X_t, `S x n`, in the units of y, from standard normal nodes, `S x n`."""

    def revealed(self, values: Tensor) -> FantasyModel:
        """The model that knows these values of f, `S x n`, at X_t: one fantasy per row."""

    def of_fantasies(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Means of all fantasies, `n x S`, and their one variance, n, at `n x d`, in units of y."""


@runtime_checkable
class TableModel(Protocol):
    """Mean and variance at all rows of a table, from what a prior keeps of the meta-tasks there."""

    def on_table(self, cache: TableCache, table: Tensor) -> tuple[Tensor, Tensor] | None:
        """Mean and variance, n each, at `n x d`; None if the cache does not keep this table."""


@runtime_checkable
class SumOverPast(Protocol):
    """A weighted sum of past tasks' GPs and of a rest, which explanations show part by part."""

    def past_parts(self) -> PastParts | None:
        """The parts; None if the model has no past task."""


@runtime_checkable
class LeaveOneOutModel(Protocol):
    """A GP on the test data whose prior and leave-one-out predictions are known in closed form."""

    def before_data(self) -> Self:
        """The same model without the test data."""

    def leave_one_out(self) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation, n each, of every observation given all others, in units of y."""
