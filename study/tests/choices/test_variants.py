from __future__ import annotations

import pickle
from dataclasses import fields, replace

import pytest
import torch

from scaml import ScaML, SettingError, Task, suggest
from scaml.methods.by_name import method_named
from study.choices import Choice, choices, together, variants
from study.choices.acquisitions import Acquiring
from tests.cases import meta_data, query, task_of

NAMES = {
    "normalization": ["union", "pooled", "level", "learned", "clipped"],
    "warping": ["power", "copula"],
    "weights": ["positive", "signed", "shared", "per-task", "dirichlet", "spike", "normal"],
    "residual": ["past", "paper"],
    "kernel": ["matern52"],
    "sqrt-beta": ["1", "2", "3", "5"],
    "acquisition": ["schedule", "logei", "lognei", "thompson", "nei"],
    "first": ["mean"],
    "starts": ["1", "20"],
    "hyperparameters": ["laplace"],
}
BASES = [
    variants.BASE,
    ScaML.paper(),
    ScaML("matern52", normalization="clipped", weights="shared", acquisition="ucb", sqrt_beta=2.0),
]
NAMED = [ScaML(), method_named("scaml-shared")]
META = meta_data((7, 6), 2)
each_choice = pytest.mark.parametrize("choice", choices().values(), ids=lambda choice: choice.name)


def own(base: ScaML) -> set[str]:
    """The names of what the base does itself, and of what makes it a method with a name."""
    names = {
        f"normalization={base.normalization}",
        f"weights={base.weights}",
        f"residual={base.residual}",
        f"kernel={base.kernel}",
        f"sqrt-beta={base.sqrt_beta:g}",
    }
    return names | {"acquisition=nei"} if replace(base, acquisition="lognei") in NAMED else names


@pytest.mark.parametrize("base", BASES, ids=repr)
def test_all_values_of_all_factors_but_the_base(base: ScaML, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variants, "BASE", base)
    found = choices()
    expected = [f"{factor}={value}" for factor, values in NAMES.items() for value in values]
    assert list(found) == [name for name in expected if name not in own(base)]
    for name, choice in found.items():
        assert choice.name == name
        assert _changed(base, choice) <= 1
    assert len({repr(choice.method) for choice in found.values()} | {repr(base)}) == len(found) + 1


def _changed(base: ScaML, choice: Choice) -> int:
    """How many settings of the base are not carried over; a warped past needs its own units."""
    ours, theirs = vars(base), vars(choice.method)
    changed = {name for name in ours if theirs[name] != ours[name]}
    return len(changed - {"normalization"} if choice.factor == "warping" else changed)


@each_choice
def test_choices_are_values(choice: Choice) -> None:
    assert pickle.loads(pickle.dumps(choice)) == choice
    settings = {field.name: getattr(choice.method, field.name) for field in fields(choice.method)}
    assert repr(choice.method).startswith(f"{type(choice.method).__name__}(kernel=")
    assert all(f"{name}={value!r}" in repr(choice.method) for name, value in settings.items())
    assert replace(choice.method) == choice.method


@each_choice
def test_every_choice_suggests(choice: Choice) -> None:
    prior, table = choice.method.meta_fit(META, seed=0), query(30, 2)
    for task in (Task.empty(2), task_of(3, 2)):
        x = suggest(prior, task, seed=1)
        assert ((x >= 0) & (x <= 1)).all()
        row = suggest(prior, task, seed=1, candidates=table)
        assert (table == row).all(-1).any()
    model = prior.condition(task, seed=1)
    assert model.weights.shape == (2,)
    assert torch.equal(
        suggest(pickle.loads(pickle.dumps(prior)), task, seed=1), suggest(prior, task, seed=1)
    )


@pytest.mark.parametrize("name", ["warping=power", "hyperparameters=laplace", "acquisition=thompson"])
def test_results_do_not_depend_on_n_jobs(name: str) -> None:
    method, task = choices()[name].method, task_of(3, 2)
    one, two = (method.meta_fit(META, seed=0, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert torch.equal(suggest(one, task, seed=1), suggest(two, task, seed=1))


def test_the_base_does_not_follow_the_default() -> None:
    assert variants.BASE == ScaML("se", "clipped", "shared", "ucb", 3.0, "past")


def test_choices_are_combined() -> None:
    base = variants.BASE
    assert together("sqrt-beta=1") == replace(base, sqrt_beta=1.0)
    assert together("sqrt-beta=2+kernel=matern52") == replace(base, kernel="matern52", sqrt_beta=2.0)
    found = together("residual=paper+acquisition=logei")
    assert found == Acquiring(**vars(base) | {"residual": "paper"}, rule="logei")
    assert together("acquisition=logei+residual=paper") == found
    shared = method_named("scaml-shared")
    assert together("acquisition=nei") == shared
    assert together("acquisition=nei+kernel=matern52") == replace(shared, kernel="matern52")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sqrt-beta=1+kernel=matern", r"no choice 'kernel=matern'; did you mean 'kernel=matern52'\?"),
        ("sqrt-beta=1+sqrt-beta=2", r"^The choice 'sqrt-beta=2' cannot be combined with another of"),
        ("acquisition=nei+sqrt-beta=2", r"^The choice 'sqrt-beta=2' cannot be combined with another"),
        ("sqrt-beta=3", r"The method that all choices are compared with is called scaml-ucb\.$"),
        ("acquisition=logei+starts=1", r"^The choice 'starts=1' cannot be combined with another of"),
    ],
)
def test_choices_that_cannot_be_combined(name: str, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        together(name)
