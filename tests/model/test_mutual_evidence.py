"""What past tasks say about explanations: the kinds that they support, and residual variances."""

from __future__ import annotations

import math

import pytest
import torch

from scaml.bench.safety import SAFETY
from scaml.gp.task_gps import TaskGPs
from scaml.model.mutual_evidence import KINDS, MutualEvidence, Structure, _em, _evidence, _structure
from scaml.model.past_similarity import PastSimilarity
from scaml.model.task_groups import Group, groups_of
from scaml.tasks.meta_data import MetaData


def mutual(family: str, seed: int = 0, tasks: int = 8) -> MutualEvidence:
    meta: MetaData = SAFETY[family].meta_data(tasks, 3 if family == "three-points" else 32, seed)
    gps = TaskGPs.fit(meta, kernel="se", seed=0, n_jobs=1)
    groups = [g for g in groups_of(meta, gps) if len(g.tasks) < tasks or min(g.signs) < 0]
    return MutualEvidence.of(meta, gps, groups, PastSimilarity.of(meta, gps))


def test_probabilities_add_up_to_one() -> None:
    found = mutual("one-flipped").probability
    assert tuple(found) == KINDS
    assert sum(found.values()) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(
    ("family", "kind"),
    [("related", "all"), ("unrelated", "none"), ("one-flipped", "group"), ("two-groups", "group")],
)
def test_the_past_supports_the_kind_that_made_it(family: str, kind: str) -> None:
    tasks = 16 if family == "two-groups" else 8
    # The two worlds of seed 1 are alike by chance, and so are the unrelated tasks of seed 0.
    for seed in (2, 3):
        found = mutual(family, seed, tasks).probability
        assert max(found, key=lambda name: found[name]) == kind


def test_a_past_is_a_whole_if_the_others_make_its_tasks_more_probable() -> None:
    for seed in (2, 3):
        assert mutual("related", seed).structure == "whole"
        assert mutual("unrelated", seed).structure == "strangers"


def test_nothing_is_known_of_one_task_or_of_three_rows_each() -> None:
    assert mutual("related", tasks=1).structure == mutual("three-points").structure == "unknown"


def test_the_past_is_grouped_if_groups_hold_almost_all_and_none_holds_most() -> None:
    def structure(tasks: int, *sizes: int) -> Structure:
        return _structure(1.0, [Group(tuple(range(n)), (1,) * n) for n in sizes], tasks)

    assert structure(16, 8, 8) == structure(16, 8, 7) == structure(20, 8, 6, 4) == "grouped"
    assert structure(28, 23, 3) == "whole"  # one of them is most of the past
    assert structure(28, 10, 7, 5) == "whole"  # six tasks are in none
    assert structure(8) == "whole"


def test_the_more_strangers_the_more_probable_is_a_twin() -> None:
    few, many = mutual("one-good", tasks=8), mutual("one-good", tasks=31)
    assert few.structure == many.structure == "strangers"
    assert few.probability["task"] < many.probability["task"] < many.probability["none"] * 2
    assert many.probability["all"] < min(few.probability["all"], 0.1)


def test_one_task_is_the_whole() -> None:
    found = mutual("related", tasks=1)
    assert found.probability["task"] == found.probability["group"] == 0.0
    assert found.probability["all"] > found.probability["none"] > 0


def test_tasks_that_explain_each_other_well_leave_a_small_residual() -> None:
    close, far = mutual("two-groups", tasks=16).residual["group"], mutual("unrelated").residual["task"]
    assert close[0] < far[0]


def test_the_evidence_is_a_brute_force_average_of_normal_densities() -> None:
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(9, generator=generator, dtype=torch.float64)
    a = torch.randn(2, 9, generator=generator, dtype=torch.float64)
    variance = torch.tensor([0.1, 0.4], dtype=torch.float64)
    shares = torch.tensor([0.5, 1.0], dtype=torch.float64)
    residuals = torch.tensor([-2.0, 0.0, 1.0], dtype=torch.float64)
    found = _evidence(z, a, variance, float(len(z)), shares, residuals)
    for e in range(2):
        densities = []
        for c in shares.tolist():
            for log_v in residuals.tolist():
                total = math.exp(log_v) + c**2 * variance[e].item()
                normal = torch.distributions.Normal(c * a[e], math.sqrt(total))
                densities.append(normal.log_prob(z).sum() + 0.5 * len(z) * math.log(2.0 * math.pi))
        expected = torch.stack(densities).logsumexp(0) - math.log(len(densities))
        torch.testing.assert_close(found[e], expected)


def test_em_finds_the_shares_that_maximize_the_likelihood() -> None:
    """With many tasks, the one pseudo-task does not count: compare with a fine grid."""
    generator = torch.Generator().manual_seed(3)
    evidence = torch.randn(400, 2, generator=generator, dtype=torch.float64) * 3.0
    _, share = _em(evidence, torch.full((2,), 0.5, dtype=torch.float64))
    grid = torch.linspace(0.001, 0.999, 999, dtype=torch.float64)
    both = torch.stack([grid, 1.0 - grid]).log()
    likelihood = (evidence.unsqueeze(-1) + both).logsumexp(1).sum(0)
    assert share[0].item() == pytest.approx(grid[likelihood.argmax()].item(), abs=0.01)


def test_without_evidence_the_kinds_keep_their_usual_probabilities() -> None:
    usual = torch.tensor([0.6, 0.4], dtype=torch.float64)
    _, share = _em(torch.zeros(5, 2, dtype=torch.float64), usual)
    torch.testing.assert_close(share, usual)
    _, share = _em(torch.empty(0, 2, dtype=torch.float64), usual)
    torch.testing.assert_close(share, usual)


def test_a_twin_among_strangers_stays_possible_and_related_tasks_leave_little_to_none() -> None:
    strangers, related = mutual("unrelated", 2).probability, mutual("related").probability
    assert strangers["task"] > 0.2 * strangers["none"]
    assert related["none"] < 0.05
