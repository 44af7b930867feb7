"""Parts of an average: averages of the members' parts, and all of the mixture's variance."""

from __future__ import annotations

import torch

from scaml.model.average_parts import AverageParts
from scaml.model.past_parts import PastParts
from tests.cases import pair


def members() -> list[PastParts]:
    found = [pair("se", (6, 9), n, d=2, seed=3).model.past_parts() for n in (2, 4)]
    return [part for part in found if part is not None]


def test_means_and_variances_are_those_of_the_mixture() -> None:
    one, other = members()
    p = torch.tensor([0.3, 0.7], dtype=torch.float64)
    average = AverageParts.of([one, other], p, 0.3 * one.weights + 0.7 * other.weights)
    X = torch.rand(5, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(average.means(X), 0.3 * one.means(X) + 0.7 * other.means(X))
    mean, other_mean = one.means(X).sum(0), other.means(X).sum(0)
    inside = 0.3 * one.variances(X).sum(0) + 0.7 * other.variances(X).sum(0)
    between = 0.3 * 0.7 * (mean - other_mean).square()
    torch.testing.assert_close(average.variances(X).sum(0), inside + between)
    torch.testing.assert_close(average.weights, 0.3 * one.weights + 0.7 * other.weights)
