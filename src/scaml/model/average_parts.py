"""The parts of an average over explanations: the averages of its members' parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from scaml.model.past_parts import PastParts

__all__ = ["AverageParts"]


@dataclass(frozen=True, eq=False)
class AverageParts(PastParts):
    """Parts of several members with their probabilities.

    The rest of the variance has the differences between the members' means in it.
    """

    members: tuple[PastParts, ...] = ()
    probability: Tensor | None = None

    @classmethod
    def of(cls, members: Sequence[PastParts], probability: Tensor, weights: Tensor) -> AverageParts:
        """The average of members that share their past tasks and the offset of y."""
        first = replace(members[0], weights=weights)
        return cls(**vars(first), members=tuple(members), probability=probability)

    def means(self, X: Tensor) -> Tensor:
        return self._average([member.means(X) for member in self.members])

    def variances(self, X: Tensor) -> Tensor:
        variances = self._average([member.variances(X) for member in self.members])
        whole = [member.means(X).sum(0) for member in self.members]
        mean = self._average(whole)
        variances[-1] += self._average([(one - mean).square() for one in whole])
        return variances

    def _average(self, parts: Sequence[Tensor]) -> Tensor:
        assert self.probability is not None
        average: Tensor = torch.tensordot(self.probability, torch.stack(list(parts)), dims=1)
        return average
