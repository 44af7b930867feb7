"""The past of the demonstration: how similar its tasks are, and in which order they come."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from scaml import SettingError
from scaml.bench import FAMILIES
from scaml.bench.demo_past import MovedFunction, draw_past, functions_of_past, role_of
from scaml.bench.families import Family

each_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda family: family.name)
each_seed = pytest.mark.parametrize("seed", range(10))


@each_family
@each_seed
def test_correlations_with_the_new_task(family: Family, seed: int) -> None:
    """At points that the choice of the past has not seen."""
    X = np.random.default_rng(1000 + seed).random((2000, family.d))
    new = family.draw(seed)
    found: dict[str, list[float]] = {"twin": [], "relative": [], "stranger": []}
    for name, past in functions_of_past(new, 8, seed).items():
        found[role_of(name)].append(np.corrcoef(new(X), past(X))[0, 1])
    assert [len(values) for values in found.values()] == [1, 3, 4]
    assert found["twin"][0] > 0.98
    assert all(0.35 < value < 0.9 for value in found["relative"])
    assert all(abs(value) < 0.3 for value in found["stranger"])


@pytest.mark.parametrize(
    ("tasks", "relatives", "strangers"), [(1, 0, 0), (2, 0, 1), (3, 1, 1), (4, 1, 2), (8, 3, 4)]
)
def test_number_of_relatives_and_strangers(tasks: int, relatives: int, strangers: int) -> None:
    past = draw_past(FAMILIES["branin"].draw(0), tasks, 0)
    expected = ["twin"]
    expected += [f"relative {m + 1}" for m in range(relatives)]
    expected += [f"stranger {m + 1}" for m in range(strangers)]
    assert sorted(past.names) == sorted(expected)


@each_family
def test_tasks_are_noisy_values_of_their_functions(family: Family) -> None:
    new = family.draw(3)
    past, functions = draw_past(new, 8, 3), functions_of_past(new, 8, 3)
    assert past.names == tuple(functions)
    assert {task.n for task in past} == {max(64, family.points)}
    errors = torch.cat([task.y - functions[task.name](task.X) for task in past])
    assert errors.std().item() == pytest.approx(family.noise, rel=0.15)
    # Points that are spread out: each half of every axis has half of them.
    for task in past:
        assert ((task.X < 0.5).double().mean(0) == 0.5).all()


def test_seed_decides_the_past_and_the_place_of_the_twin() -> None:
    new = FAMILIES["branin"].draw(0)
    one, again, other = (draw_past(new, 8, seed) for seed in (0, 0, 1))
    assert one.names == again.names
    assert all(torch.equal(a.y, b.y) for a, b in zip(one, again, strict=True))
    assert not torch.equal(one[0].y, other[0].y)
    places = {draw_past(new, 8, seed).names.index("twin") for seed in range(10)}
    assert len(places) > 3


def test_a_function_is_moved_as_told() -> None:
    """A rotation by 90 degrees about the centre takes (1, 0.5) to (0.5, 1); the shift is added."""
    family = FAMILIES["branin"]
    new = family.draw(0)
    rotation = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
    shift = torch.tensor([0.1, -0.2], dtype=torch.float64)
    moved = MovedFunction(family, new.parameters, rotation, shift)
    torch.testing.assert_close(moved([[1.0, 0.5]]), new([[0.6, 0.8]]))


def test_bad_settings_are_refused() -> None:
    new = FAMILIES["branin"].draw(0)
    with pytest.raises(SettingError, match="meta-tasks is 0; give an integer of at least 1"):
        draw_past(new, 0, 0)
    with pytest.raises(SettingError, match="seed is -1"):
        draw_past(new, 8, -1)
