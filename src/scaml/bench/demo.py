"""The demonstration: ScaML-GP finds the twin of a new task in its past, and a plain GP has no past."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from botorch.models.model import Model

from scaml.ask import choose
from scaml.bench.demo_past import Role, draw_past, role_of
from scaml.bench.families import Family, Function
from scaml.common.checks import check_integer, check_seed
from scaml.methods import GPBO, MetaPrior, ScaML
from scaml.model.protocols import ExplainedModel
from scaml.model.verdict import Verdict
from scaml.tasks.task import Task

__all__ = ["METHOD", "PLAIN", "SCAML", "DemoResult", "Progress", "in_words", "run_demo"]

SCAML, PLAIN = "ScaML-GP", "plain GP"
METHOD = ScaML()
"""What has a past in the demonstration."""
_PROBABLE = 0.5  # a twin that matters with a larger probability, and no stranger does, is found

Progress = Callable[[str, int, int], None]
"""Called with what is done next, the number of finished steps, and the number of all steps."""


@dataclass(frozen=True)
class DemoResult:
    """What the demonstration found.

    Args:
        family: The family of the new task.
        seed: The seed of the run.
        regrets: Simple regret after 1, 2, ... evaluations, by method, in the units of the function.
        matters: The probability that a past task matters after 0, 1, ... evaluations, by past task.
        none: The probability that no past task is like the new one after 0, 1, ... evaluations.
    """

    family: Family
    seed: int
    regrets: dict[str, tuple[float, ...]]
    matters: dict[str, tuple[float, ...]]
    none: tuple[float, ...]

    def best(self, role: Role) -> tuple[float, ...] | None:
        """The largest probability of a past task with this role, after 0, 1, ... evaluations.

        None if the past has no such task.
        """
        found = [values for name, values in self.matters.items() if role_of(name) == role]
        return tuple(map(max, zip(*found, strict=True))) if found else None

    @property
    def found_after(self) -> int | None:
        """The evaluations after which the twin matters more probably than not, and no stranger does.

        That must hold after all later evaluations, too; None if it never does.
        """
        twin, stranger = self.matters["twin"], self.best("stranger")
        found = [probability > _PROBABLE for probability in twin]
        if stranger is not None:  # the past as a whole explains the new task by strangers, too
            found = [so and s <= _PROBABLE for so, s in zip(found, stranger, strict=True)]
        first = max((n + 1 for n, so in enumerate(found) if not so), default=0)
        return first if first < len(twin) else None


def run_demo(
    family: Family,
    seed: int,
    *,
    evaluations: int = 20,
    tasks: int = 8,
    progress: Progress | None = None,
) -> DemoResult:
    """Maximize one function twice: with its past, and without.

    Both methods have the same kernel and acquisition function, and their i-th evaluations get the same
    noise and the same seed: only the past differs.

    Args:
        family: The family from which the new task is drawn, and whose formula all past tasks have.
        seed: Decides everything random.
        evaluations: The number of evaluations of the new task per method.
        tasks: M, the number of past tasks. One is the twin; of the others, one half, rounded down, are
            relatives, and the rest are strangers.
        progress: Called before every step and once at the end.
    """
    check_seed(seed)
    check_integer(evaluations, "The number of evaluations", least=1)
    total = 1 + 2 * evaluations
    report: Progress = progress or (lambda what, done, total: None)
    function = family.draw(seed)
    past = draw_past(function, tasks, seed)
    generator = np.random.default_rng(seed)
    noise = (family.noise * generator.standard_normal(evaluations)).tolist()
    seeds = generator.integers(2**31, size=evaluations).tolist()

    def optimize(name: str, prior: MetaPrior, done: int) -> tuple[Task, list[Model]]:
        """The task at the end, and the models after 0, 1, ... evaluations."""
        task, models = Task.empty(d=family.d), []
        nothing = torch.empty(0, family.d, dtype=torch.float64)
        for i in range(evaluations):
            report(f"Optimizing with {name}", done + i, total)
            models.append(prior.condition(task, seed=seeds[i]))
            x = choose(prior, models[-1], task, 1, nothing, seeds[i])
            task = task.append(x, function(x) + noise[i])
        return task, [*models, prior.condition(task, seed=seeds[-1])]

    report("Learning from the past tasks", 0, total)
    prior = METHOD.meta_fit(past, seed=seed)
    ours, models = optimize(SCAML, prior, 1)
    without = GPBO(prior.task_gps.kernel, METHOD.acquisition, METHOD.sqrt_beta)
    plain, _ = optimize(PLAIN, without.meta_fit(past, seed=seed), 1 + evaluations)
    report("Done", total, total)
    verdicts = [_verdict(model) for model in models]
    return DemoResult(
        family=family,
        seed=seed,
        regrets={SCAML: _regret(function, ours), PLAIN: _regret(function, plain)},
        matters={name: tuple(told.matters[name] for told in verdicts) for name in past.names},
        none=tuple(told.none for told in verdicts),
    )


def in_words(result: DemoResult) -> str:
    """What was learned of the past, in a few sentences."""
    evaluations = len(result.none) - 1
    count = "1 evaluation" if evaluations == 1 else f"{evaluations} evaluations"
    relative, stranger = result.best("relative"), result.best("stranger")
    parts = [f"the twin matters with probability {result.matters['twin'][-1]:.2f}"]
    if relative is not None:
        parts.append(f"the best relative with {relative[-1]:.2f}")
    if stranger is not None:
        parts.append(f"the best stranger with {stranger[-1]:.2f}")
    parts.append(f"none of them with {result.none[-1]:.2f}")
    after = result.found_after
    since = "the start" if after == 0 else f"evaluation {after} on"
    found = (
        f"The twin was found: from {since}, its probability is above {_PROBABLE}, and no stranger's is."
    )
    if after is None:
        apart = result.matters["twin"][-1] > _PROBABLE
        found = f"The twin was not {'told apart from the strangers' if apart else 'found'}."
    return f"After {count}, {', '.join(parts)}. {found}"


def _verdict(model: Model) -> Verdict:
    assert isinstance(model, ExplainedModel)
    return model.explain()


def _regret(function: Function, task: Task) -> tuple[float, ...]:
    """r_n = max f - max_{i <= n} f(x_i), of values without noise."""
    best = function(task.X).cummax(0).values
    # The maximum is known up to rounding only, so the best value may lie above it.
    regret: tuple[float, ...] = tuple((function.maximum - best).clamp_min(0.0).tolist())
    return regret
