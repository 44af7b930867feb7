"""From a table of experiments to suggestions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from optuna.distributions import FloatDistribution

from scaml import MetaData, ScaML, SettingError, Space, Task, suggest
from scaml.explain.run import Run
from scaml.methods import RGPE
from scaml.methods.scaml import ScaMLPrior
from scaml.model.scaml_gp import ScaMLGP
from scaml.sheets import NewTask, Sheet
from scaml.sheets.subject import of_sheet
from scaml.tasks.past_task import PastTask

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
    return Sheet(SPACE, past, task, (), "height", True, ("task", "x", "y", "height"), ())


def test_a_table_is_learned_from_as_by_hand() -> None:
    subject = of_sheet(sheet(4), q=2, method=ScaML(), seed=3)
    tasks = [Task(SPACE.encode_all(past.params), past.y, name=past.name) for past in sheet().past]
    prior = ScaML().meta_fit(MetaData(tasks), seed=3).in_space(SPACE)
    own = Task(SPACE.encode_all(sheet(4).task.params), sheet(4).task.y)
    assert subject.suggestions is not None
    assert torch.equal(subject.suggestions, suggest(prior, own, q=2, seed=3))
    assert (subject.objective, subject.title, subject.maximize) == ("height", "new", True)


def test_what_is_minimized_is_shown_as_it_was() -> None:
    """y is negated when the file is read; what is shown has the sign of the file again."""
    higher, lower = of_sheet(sheet(4)), of_sheet(replace(sheet(4), maximize=False))
    assert not lower.maximize
    assert higher.suggestions is not None
    assert lower.suggestions is not None
    assert torch.equal(higher.suggestions, lower.suggestions)
    (best,), (least,) = Run.of(higher).suggestions, Run.of(lower).suggestions
    assert best.params == least.params
    assert best.expected == pytest.approx(-(least.expected or 0.0), rel=1e-12)
    assert best.moved_by == pytest.approx({name: -move for name, move in least.moved_by.items()})


def test_pending_experiments_are_not_suggested_again() -> None:
    first = of_sheet(sheet(3))
    assert first.suggestions is not None
    pending = (SPACE.decode(first.suggestions[0]),)
    second = of_sheet(replace(sheet(3), pending=pending))
    assert second.suggestions is not None
    assert (first.suggestions - second.suggestions).abs().max() > 1e-3


def test_the_new_task_is_learned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    condition, times = ScaMLPrior.condition, []

    def counting(self: ScaMLPrior, task: Task, *, seed: int = 0) -> ScaMLGP:
        times.append(task.n)
        return condition(self, task, seed=seed)

    monkeypatch.setattr(ScaMLPrior, "condition", counting)
    assert len(Run.of(of_sheet(sheet(4), q=2)).suggestions) == 2
    assert times == [4]


def test_every_stage_is_told_from_its_beginning() -> None:
    calls: list[tuple[str, int, int | None]] = []
    of_sheet(sheet(4), progress=lambda *step: calls.append(step))
    learning, choosing = "Learning from the past tasks", "Choosing what to try next"
    assert calls == [(learning, 0, None), (learning, 0, 3), (learning, 3, 3), (choosing, 0, None)]


def test_bad_settings_are_refused() -> None:
    with pytest.raises(SettingError, match="q is 0"):
        of_sheet(sheet(4), q=0)
    with pytest.raises(SettingError, match="The seed is -1"):
        of_sheet(sheet(4), seed=-1)


def test_other_methods() -> None:
    subject = of_sheet(sheet(4), method=RGPE(samples=16))
    assert type(subject.prior.method) is RGPE
    assert subject.suggestions is not None


def test_no_past_is_a_plain_gp() -> None:
    subject = of_sheet(replace(sheet(4), past=()))
    assert subject.prior.names == ()
    assert Run.of(subject).suggestions[0].moved_by == {}
