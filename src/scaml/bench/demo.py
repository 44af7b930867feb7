"""The demonstration: ScaML-GP and a plain GP on the same synthetic test-task, and its figure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from scaml.ask import suggest
from scaml.bench.families import Family, Function
from scaml.common.checks import check_integer, check_seed
from scaml.common.files import replacing
from scaml.methods import GPBO, MetaPrior, ScaML
from scaml.tasks.task import Task

__all__ = ["PLAIN", "SCAML", "DemoResult", "Progress", "draw", "in_words", "run_demo"]

SCAML, PLAIN = "ScaML-GP", "plain GP"

Progress = Callable[[str, int, int], None]
"""Called with what is done next, the number of finished steps, and the number of all steps."""

# Colours of Okabe and Ito, which colour-blind readers can tell apart; markers do so in black and white.
_COLOURS = {SCAML: "#0072B2", PLAIN: "#D55E00"}
_MARKS = {SCAML: "o", PLAIN: "s"}
_WEIGHTS_COLOUR = "#009E73"
_LEAST_DRAWN = 1e-6  # a logarithmic axis has no 0
_MOST_LABELLED = 16  # more bars leave no room for numbers


@dataclass(frozen=True)
class DemoResult:
    """What the demonstration found.

    Args:
        family: The family of all tasks.
        seed: The seed of the run.
        regrets: Simple regret after every evaluation, by method, in the units of the function.
        weights: The weights of ScaML-GP after the last evaluation, by meta-task.
    """

    family: Family
    seed: int
    regrets: dict[str, tuple[float, ...]]
    weights: dict[str, float]


def run_demo(
    family: Family,
    seed: int,
    *,
    evaluations: int = 20,
    tasks: int = 8,
    progress: Progress | None = None,
) -> DemoResult:
    """Maximize one function twice: with the meta-data, and without them.

    The i-th evaluations of both methods get the same noise and the same seed.

    Args:
        family: The family from which meta-tasks and test-task are drawn.
        seed: Decides everything random.
        evaluations: The number of evaluations of the test-task per method.
        tasks: M, the number of meta-tasks.
        progress: Called before every step and once at the end.
    """
    check_seed(seed)
    check_integer(evaluations, "The number of evaluations", least=1)
    total = 1 + 2 * evaluations
    report: Progress = progress or (lambda what, done, total: None)
    meta = family.meta_data(tasks, family.points, seed)
    function = family.draw(seed)
    generator = np.random.default_rng(seed)
    noise = (family.noise * generator.standard_normal(evaluations)).tolist()
    seeds = generator.integers(2**31, size=evaluations).tolist()

    report("Learning from the past tasks", 0, total)
    prior = ScaML().meta_fit(meta, seed=seed)

    def optimize(name: str, prior: MetaPrior, done: int) -> Task:
        task = Task.empty(d=family.d)
        for i in range(evaluations):
            report(f"Optimizing with {name}", done + i, total)
            x = suggest(prior, task, seed=seeds[i])
            task = task.append(x, function(x) + noise[i])
        return task

    ours = optimize(SCAML, prior, 1)
    # With the same acquisition function, so that only the past differs.
    without = GPBO(sqrt_beta=prior.method.sqrt_beta).meta_fit(meta, seed=seed)
    plain = optimize(PLAIN, without, 1 + evaluations)
    weights = prior.condition(ours, seed=seeds[-1]).weights.tolist()
    report("Done", total, total)
    return DemoResult(
        family=family,
        seed=seed,
        regrets={SCAML: _regret(function, ours), PLAIN: _regret(function, plain)},
        weights=dict(zip(prior.names, weights, strict=True)),
    )


def in_words(weight: float) -> str:
    """A weight with two digits; exactly 0, which drops the task, is shown differently from almost 0."""
    return "0" if weight == 0 else f"{weight:.2f}" if abs(weight) >= 0.005 else "≈ 0"


def _regret(function: Function, task: Task) -> tuple[float, ...]:
    """r_n = max f - max_{i <= n} f(x_i), of values without noise."""
    best = function(task.X).cummax(0).values
    # The maximum is known up to rounding only, so the best value may lie above it.
    regret: tuple[float, ...] = tuple((function.maximum - best).clamp_min(0.0).tolist())
    return regret


def draw(result: DemoResult, path: Path) -> None:
    """Draw both regret curves and the weights into a PNG file, which is written whole or not at all."""
    figure = Figure(figsize=(10.0, 4.2), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    _draw_regrets(left, result)
    _draw_weights(right, result)
    with replacing(path) as draft:
        figure.savefig(draft, format="png")


def _draw_regrets(axes: Axes, result: DemoResult) -> None:
    for name, regrets in result.regrets.items():
        numbers = range(1, len(regrets) + 1)
        drawn = np.maximum(regrets, _LEAST_DRAWN)
        axes.plot(
            numbers,
            drawn,
            drawstyle="steps-post",
            marker=_MARKS[name],
            markersize=4.5,
            linewidth=1.8,
            color=_COLOURS[name],
            label=name,
        )
    axes.set_yscale("log")
    axes.set_xlabel("evaluations")
    axes.set_ylabel("simple regret")
    axes.set_title(f"{result.family.title}, seed {result.seed}", loc="left")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 5, 10]))
    axes.grid(which="major", color="0.88")
    axes.spines[["top", "right"]].set_visible(False)
    # Above the axes: the curves may be anywhere inside.
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.1, ncols=2, frameon=False)


def _draw_weights(axes: Axes, result: DemoResult) -> None:
    bars = axes.barh(list(result.weights), list(result.weights.values()), color=_WEIGHTS_COLOUR)
    if len(result.weights) <= _MOST_LABELLED:
        axes.bar_label(bars, fmt=in_words, padding=3)
    # Leave room for the numbers behind the bars.
    axes.set_xlim(0.0, 1.15 * max(*result.weights.values(), 1e-3))
    axes.invert_yaxis()
    axes.set_xlabel("learned weight")
    axes.set_title("What was learned from past tasks", loc="left")
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="0.88")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
