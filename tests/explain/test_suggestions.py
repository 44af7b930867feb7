"""From a table or a storage to suggestions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import optuna
import pytest
import torch
from optuna.distributions import FloatDistribution

from scaml import DatabaseError, MetaData, ScaML, SettingError, Space, Task, suggest
from scaml.explain.suggestions import suggestions
from scaml.integrations.optuna.subject import of_storage
from scaml.methods import GC3P, RGPE
from scaml.methods.scaml import ScaMLPrior
from scaml.model.scaml_gp import ScaMLGP
from scaml.sheets import NewTask, Sheet
from scaml.sheets.subject import of_sheet
from scaml.tasks.past_task import PastTask
from tests.sampler_cases import bowl

pytestmark = pytest.mark.usefixtures("quiet")

SPACE = Space({"x": FloatDistribution(0.0, 10.0), "y": FloatDistribution(-1.0, 1.0)})


def rows(n: int, seed: int) -> list[dict[str, float]]:
    generator = np.random.default_rng(seed)
    return [
        {"x": float(x), "y": float(y)}
        for x, y in zip(10 * generator.random(n), 2 * generator.random(n) - 1, strict=True)
    ]


def height(row: dict[str, float], shift: float = 0.0) -> float:
    return 50 - (row["x"] - 4 - shift) ** 2 - 3 * row["y"] ** 2


def sheet(observed: int = 0) -> Sheet:
    past = tuple(
        PastTask(
            f"past-{i}", SPACE.distributions, rows(12, i), [height(row, 0.3 * i) for row in rows(12, i)]
        )
        for i in range(3)
    )
    own = rows(observed, 9)
    task = NewTask("new", tuple(own), tuple(height(row, 0.4) for row in own))
    return Sheet(SPACE, past, task, (), "height", ("task", "x", "y", "height"), ())


def test_a_table_is_learned_from_as_by_hand() -> None:
    subject = of_sheet(sheet(4), maximize=True, q=2, method=ScaML(), seed=3)
    tasks = [Task(SPACE.encode_all(past.params), past.y, name=past.name) for past in sheet().past]
    prior = ScaML().meta_fit(MetaData(tasks), seed=3).in_space(SPACE)
    own = Task(SPACE.encode_all(sheet(4).task.params), sheet(4).task.y)
    assert subject.suggestions is not None
    assert torch.equal(subject.suggestions, suggest(prior, own, q=2, seed=3))
    assert (subject.objective, subject.title, subject.maximize) == ("height", "new", True)


def test_what_is_minimized_is_turned_over_and_shown_as_it_was() -> None:
    up = sheet(4)
    down = replace(
        up,
        past=tuple(replace(past, y=[-value for value in past.y]) for past in up.past),
        task=replace(up.task, y=tuple(-value for value in up.task.y)),
    )
    higher, lower = of_sheet(up, maximize=True), of_sheet(down, maximize=False)
    assert higher.suggestions is not None
    assert lower.suggestions is not None
    assert torch.equal(higher.suggestions, lower.suggestions)
    (best,), (least,) = suggestions(higher), suggestions(lower)
    assert best.params == least.params
    assert best.expected == pytest.approx(-(least.expected or 0.0), rel=1e-12)
    assert best.behind == pytest.approx({name: -move for name, move in least.behind.items()})


def test_pending_experiments_are_not_suggested_again() -> None:
    first = of_sheet(sheet(3), maximize=True)
    assert first.suggestions is not None
    pending = (SPACE.decode(first.suggestions[0]),)
    second = of_sheet(replace(sheet(3), pending=pending), maximize=True)
    assert second.suggestions is not None
    assert (first.suggestions - second.suggestions).abs().max() > 1e-3


def test_what_is_expected_and_who_is_behind_it() -> None:
    subject = of_sheet(sheet(5), maximize=True, q=3)
    model = subject.prior.condition(subject.task)
    assert subject.suggestions is not None
    posterior = model.posterior(subject.suggestions.unsqueeze(-2))
    found = suggestions(subject)
    assert [one.expected for one in found] == pytest.approx(posterior.mean.flatten().tolist())
    assert [one.deviation for one in found] == pytest.approx(
        posterior.variance.sqrt().flatten().tolist()
    )
    gps = subject.prior.task_gps  # type: ignore[attr-defined]
    moves = model.y_scale * model.weights[:, None] * gps.mean(subject.suggestions)
    for i, one in enumerate(found):
        by_hand = {
            name: move for name, move in zip(gps.names, moves[:, i].tolist(), strict=True) if move
        }
        assert one.behind == pytest.approx(by_hand)
        assert list(one.behind.values()) == sorted(one.behind.values(), key=lambda move: -abs(move))


def test_the_new_task_is_learned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    condition, times = ScaMLPrior.condition, []

    def counting(self: ScaMLPrior, task: Task, *, seed: int = 0) -> ScaMLGP:
        times.append(task.n)
        return condition(self, task, seed=seed)

    monkeypatch.setattr(ScaMLPrior, "condition", counting)
    suggestions(of_sheet(sheet(4), maximize=True, q=2))
    assert times == [4]


def test_every_stage_is_told_from_its_beginning() -> None:
    calls: list[tuple[str, int, int | None]] = []
    of_sheet(sheet(4), maximize=True, progress=lambda *step: calls.append(step))
    learning, choosing = "Learning from the past tasks", "Choosing what to try next"
    assert calls == [(learning, 0, None), (learning, 0, 3), (learning, 3, 3), (choosing, 0, None)]


def test_other_methods() -> None:
    assert suggestions(of_sheet(sheet(4), maximize=True, method=RGPE()))[0].expected is not None
    copula = suggestions(of_sheet(sheet(4), maximize=True, method=GC3P(updates=20)))[0]
    assert copula.expected is None
    assert copula.behind == {}


def test_no_past_is_a_plain_gp() -> None:
    subject = of_sheet(replace(sheet(4), past=()), maximize=True)
    assert subject.prior.names == ()
    assert suggestions(subject)[0].behind == {}


@pytest.fixture
def storage(tmp_path: Path) -> str:
    address = f"sqlite:///{tmp_path}/hpo.db"
    for i in range(3):
        study = optuna.create_study(study_name=f"bowl-{i}", storage=address)
        study.sampler = optuna.samplers.RandomSampler(seed=i)
        study.optimize(bowl(0.1 * i), n_trials=8)
    return address


def test_a_storage_is_read_and_not_written(storage: str) -> None:
    subject = of_storage(storage, "new", "bowl-*", q=2)
    assert subject.prior.names == ("bowl-0", "bowl-1", "bowl-2")
    assert not subject.maximize
    assert len(suggestions(subject)) == 2
    assert set(optuna.get_all_study_names(storage)) == {"bowl-0", "bowl-1", "bowl-2"}
    own = of_storage(storage, "bowl-1", "bowl-*")
    assert own.prior.names == ("bowl-0", "bowl-2")
    assert own.task.n == 8


def test_storages_that_do_not_do(storage: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"has a name like 'bow'; perhaps 'bowl-\d'\."):
        of_storage(storage, "new", "bow")
    with pytest.raises(SettingError, match=r"There is no database '.*none\.db'; give the address"):
        of_storage(f"sqlite:///{tmp_path}/none.db", "new", "*")
    assert not (tmp_path / "none.db").exists()
    with pytest.raises(DatabaseError, match=r"cannot be opened \(ArgumentError\)"):
        of_storage("no address", "new", "*")
