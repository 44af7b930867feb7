"""The set of explanations: every task, group and the whole with both signs, and none."""

from __future__ import annotations

import torch

from scaml.bench.safety import SAFETY
from scaml.gp.task_gps import TaskGPs
from scaml.model.explanations import MIRRORED, Explanations


def explanations(family: str, tasks: int = 8) -> Explanations:
    meta = SAFETY[family].meta_data(tasks, 32, 0)
    return Explanations.of(meta, TaskGPs.fit(meta, kernel="se", seed=0, n_jobs=1))


def test_none_comes_first_and_the_others_stand_beside_their_mirrored_selves() -> None:
    found = explanations("one-flipped")
    assert found.items[0].kind == "none"
    assert not found.directions[0].any()
    for i in range(1, len(found), 2):
        plain, mirrored = found.items[i], found.items[i + 1]
        assert (plain.kind, plain.tasks, False, True) == (
            mirrored.kind,
            mirrored.tasks,
            plain.mirrored,
            mirrored.mirrored,
        )
        assert torch.equal(found.directions[i], -found.directions[i + 1])
        ratio = (found.log_prior[i + 1] - found.log_prior[i]).exp()
        torch.testing.assert_close(ratio, torch.tensor(MIRRORED / (1.0 - MIRRORED)).double())


def test_prior_probabilities_add_up_to_one_and_tasks_share_theirs() -> None:
    found = explanations("unrelated")
    torch.testing.assert_close(found.log_prior.exp().sum(), torch.ones((), dtype=torch.float64))
    single = [i for i, item in enumerate(found.items) if item.kind == "task" and not item.mirrored]
    assert len(single) == 8
    assert found.log_prior[single].unique().numel() == 1


def test_directions_average_the_tasks_that_they_use() -> None:
    found = explanations("one-flipped")
    for item, v in zip(found.items[1:], found.directions[1:], strict=True):
        assert v.nonzero().flatten().tolist() == list(item.tasks)
        torch.testing.assert_close(v.abs().sum(), torch.ones((), dtype=torch.float64))


def test_a_past_without_anything_in_common_has_a_whole_of_weight_0() -> None:
    meta = SAFETY["unrelated"].meta_data(8, 32, 1)
    found = Explanations.of(meta, TaskGPs.fit(meta, kernel="se", seed=0, n_jobs=1))
    (whole,) = [i for i, e in enumerate(found.items) if e.kind == "all" and not e.mirrored]
    assert abs(found.share[whole]) < found.share_spread[whole] < 0.2


def test_one_past_task_is_the_past_as_a_whole() -> None:
    found = explanations("related", tasks=1)
    assert [(e.kind, e.mirrored) for e in found.items] == [
        ("none", False),
        ("all", False),
        ("all", True),
    ]
    assert found.log_prior[1] > found.log_prior[0]


def test_a_group_that_is_the_whole_past_is_not_told_twice() -> None:
    found = explanations("related")
    groups = [item for item in found.items if item.kind == "group"]
    assert all(len(item.tasks) < 8 for item in groups)
