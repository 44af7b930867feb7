r"""The paper's figure 1 in one dimension: how ScaML-GP turns meta-tasks into a prior of the test-task.

The meta-tasks are waves of one family, and the test-task is a mixture of them. By Theorem 1, the prior
at the learned weights has, in standardized units, the mean and variance

$$m(x) = \sum_m w_m \mu_m(x), \qquad v(x) = k_t(x, x) + \sum_m w_m^2 \Sigma_m(x, x),$$

so every meta-task and the residual kernel add a share of the variance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import pi
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from scaml.bench.palette import PAGE, look, style, tidy, write
from scaml.common.checks import check_seed
from scaml.gp.units import Units
from scaml.methods import ScaML
from scaml.model.scaml_gp import ScaMLGP
from scaml.tasks.meta_data import MetaData
from scaml.tasks.task import Task

__all__ = ["Illustration", "build", "compute", "draw"]

Array = NDArray[np.float64]

_GRID = 201
_NOISE = 0.02
_PHASES = (-0.2, 0.0, 0.2)  # of the meta-tasks
# The intervals in which each meta-task was observed: one lacks the middle, the others lack one end.
_INTERVALS = (((0.0, 0.4), (0.75, 1.0)), ((0.0, 0.6),), ((0.4, 1.0),))
_POINTS = 6  # per meta-task
_TEST_POINTS = (0.06, 0.22, 0.4, 0.56, 0.74, 0.93)
# The test-task: its share of every meta-task, and a smaller and faster wave that no meta-task has.
_MIX, _SIZE, _FREQUENCY = (0.0, 0.6, 0.6), 0.2, 2.3

_BAND = 2.0  # standard deviations on either side
_OURS = look("scaml")
_COLOURS, _MARKERS = ("#E69F00", "#009E73", "#CC79A7"), ("^", "s", "D")
_RESIDUAL, _SHADE = "#888888", 0.55
_DOT: dict[str, Any] = {"markersize": 3.5, "markeredgecolor": "white", "markeredgewidth": 0.4}
_NOTE = "bands of two standard deviations; the prior's is divided into shares of its variance"


@dataclass(frozen=True, eq=False)
class Illustration:
    """The numbers of the figure, in the units of y, on a grid of n points.

    Args:
        meta: The meta-data.
        task: The test data.
        x: n, the points of the grid.
        truth: n, the values of the test-task's function.
        task_mean: `M x n`, the means of the meta-tasks' posteriors.
        task_deviation: `M x n`, the standard deviations of the meta-tasks' posteriors.
        weights: M, as learned from the test data.
        prior_mean: n, the mean of the test-task's prior at these weights.
        variances: `(M + 1) x n`, what each meta-task, and last the residual kernel, adds to the
            variance of the prior.
        mean: n, the mean of the posterior.
        deviation: n, the standard deviation of the posterior.
    """

    meta: MetaData
    task: Task
    x: Array
    truth: Array
    task_mean: Array
    task_deviation: Array
    weights: Array
    prior_mean: Array
    variances: Array
    mean: Array
    deviation: Array


def compute(seed: int = 0) -> Illustration:
    """Draw the tasks, learn from the meta-data and condition on the test data.

    Args:
        seed: Decides functions, points and noise.
    """
    generator = np.random.default_rng(check_seed(seed))
    waves = [_Wave.near(phase, generator) for phase in _PHASES]
    residual = _Wave(_SIZE, _FREQUENCY, generator.random())

    def truth(x: Array) -> Array:
        return residual(x) + sum(share * wave(x) for share, wave in zip(_MIX, waves, strict=True))

    meta = MetaData(
        [
            _observe(wave, _spread(intervals, generator), generator, f"m = {m}")
            for m, (wave, intervals) in enumerate(zip(waves, _INTERVALS, strict=True), start=1)
        ]
    )
    task = _observe(truth, np.array(_TEST_POINTS), generator, "")
    prior = ScaML.paper().meta_fit(meta, seed=seed)
    model = prior.condition(task, seed=seed)
    # The prior at the learned weights is the same model without the test data.
    units = Units(model.y_offset, model.y_scale)
    without = ScaMLGP(prior.task_gps, Task.empty(d=1), units, model.hyperparameters)
    x = np.linspace(0.0, 1.0, _GRID)
    X = torch.from_numpy(x).unsqueeze(-1)
    gps, scale = prior.task_gps, model.y_scale.square()
    with torch.no_grad():
        standardized = gps.variance(X)
        parts = model.weights.square().unsqueeze(-1) * standardized
        parts = torch.cat([parts, (model.outputscale + model.level).expand(1, _GRID)])
        posterior = model.posterior(X)
        return Illustration(
            meta=meta,
            task=task,
            x=x,
            truth=truth(x),
            task_mean=(gps.y_mean.unsqueeze(-1) + gps.y_std.unsqueeze(-1) * gps.mean(X)).numpy(),
            task_deviation=(gps.y_std.unsqueeze(-1) * standardized.sqrt()).numpy(),
            weights=model.weights.numpy(),
            prior_mean=without.posterior(X).mean.squeeze(-1).numpy(),
            variances=(scale * parts).numpy(),
            mean=posterior.mean.squeeze(-1).numpy(),
            deviation=posterior.variance.sqrt().squeeze(-1).numpy(),
        )


@dataclass(frozen=True)
class _Wave:
    """A sine on a slope."""

    size: float
    frequency: float
    phase: float
    slope: float = 0.0

    @classmethod
    def near(cls, phase: float, generator: np.random.Generator) -> _Wave:
        """Draw a wave of the family with about this phase."""
        size, phase, slope = generator.normal((1.0, phase, 0.5), (0.1, 0.01, 0.1)).tolist()
        return cls(size, 1.0, phase, slope)

    def __call__(self, x: Array) -> Array:
        angle = 2.0 * pi * (self.frequency * x + self.phase)
        return np.asarray(self.size * np.sin(angle) + self.slope * x)


def _spread(intervals: tuple[tuple[float, float], ...], generator: np.random.Generator) -> Array:
    """Random points in the intervals, one per stratum of equal length."""
    ends = np.array(intervals)
    lengths = ends[:, 1] - ends[:, 0]
    along = lengths.sum() * (np.arange(_POINTS) + generator.random(_POINTS)) / _POINTS
    starts = np.cumsum(lengths) - lengths
    which = np.searchsorted(starts, along, side="right") - 1
    return np.asarray(ends[which, 0] + along - starts[which])


def _observe(
    function: Callable[[Array], Array], x: Array, generator: np.random.Generator, name: str
) -> Task:
    return Task(x[:, None], function(x) + _NOISE * generator.standard_normal(len(x)), name=name)


def draw(folder: Path, seed: int = 0) -> list[Path]:
    """Draw the figure as illustration.png and illustration.pdf.

    Args:
        folder: Where the files go; made if it does not exist.
        seed: As of `compute`.

    Returns:
        The paths of the PNG and of the PDF.
    """
    return write(build(compute(seed)), folder, "illustration")


def build(numbers: Illustration) -> Figure:
    """The figure at its printed size."""
    with style():
        figure = Figure(figsize=(PAGE["text"], 2.4), layout="constrained")
        FigureCanvasAgg(figure)
        left, middle, right = figure.subplots(1, 3, sharex=True, sharey=True)
        _draw_meta_tasks(left, numbers)
        _draw_prior(middle, numbers)
        _draw_posterior(right, numbers)
        for axes in (left, middle, right):
            axes.set_xlabel("$x$")
            tidy(axes)
        left.set_ylabel("$y$")
        _legend(figure, numbers)
    return figure


def _draw_meta_tasks(axes: Axes, numbers: Illustration) -> None:
    for m, task in enumerate(numbers.meta):
        mean, half = numbers.task_mean[m], _BAND * numbers.task_deviation[m]
        axes.fill_between(
            numbers.x, mean - half, mean + half, color=_COLOURS[m], alpha=0.2, linewidth=0.0
        )
        axes.plot(numbers.x, mean, color=_COLOURS[m], linewidth=1.1)
        axes.plot(task.X[:, 0], task.y, _MARKERS[m], color=_COLOURS[m], **_DOT)
    axes.set_title("meta-tasks' posteriors", loc="left")


def _draw_prior(axes: Axes, numbers: Illustration) -> None:
    """Draw the prior. Its band is divided like its variance, with the residual kernel inside."""
    total = numbers.variances.sum(axis=0)
    inner = np.zeros_like(total)
    for m in (-1, *range(len(numbers.meta))):
        outer = inner + _BAND * numbers.variances[m] / np.sqrt(total)
        for side in (-1.0, 1.0):
            axes.fill_between(
                numbers.x,
                numbers.prior_mean + side * inner,
                numbers.prior_mean + side * outer,
                color=_RESIDUAL if m < 0 else _COLOURS[m],
                alpha=_SHADE,
                linewidth=0.0,
            )
        inner = outer
    axes.plot(numbers.x, numbers.prior_mean, color=_OURS.colour, linewidth=_OURS.width)
    axes.set_title("test-task prior", loc="left")


def _draw_posterior(axes: Axes, numbers: Illustration) -> None:
    half = _BAND * numbers.deviation
    axes.fill_between(
        numbers.x,
        numbers.mean - half,
        numbers.mean + half,
        color=_OURS.colour,
        alpha=0.2,
        linewidth=0.0,
    )
    axes.plot(numbers.x, numbers.mean, color=_OURS.colour, linewidth=_OURS.width)
    axes.plot(numbers.x, numbers.truth, color="black", linewidth=0.9, linestyle="--")
    axes.plot(numbers.task.X[:, 0], numbers.task.y, "o", color="black", **_DOT)
    axes.set_title("test-task posterior", loc="left")


def _legend(figure: Figure, numbers: Illustration) -> None:
    tasks: list[Line2D | Patch] = [
        Line2D(
            [],
            [],
            color=_COLOURS[m],
            marker=_MARKERS[m],
            linewidth=1.1,
            label=f"${task.name}$, $w_{m + 1} = {f'{weight:.2f}' if weight else 0}$",
            **_DOT,
        )
        for m, (task, weight) in enumerate(zip(numbers.meta, numbers.weights, strict=True))
    ]
    others = [
        Patch(color=_RESIDUAL, alpha=_SHADE, linewidth=0.0, label="residual kernel $k_t$"),
        Line2D([], [], color=_OURS.colour, linewidth=_OURS.width, label="ScaML-GP, mean"),
        Line2D([], [], color="black", linewidth=0.9, linestyle="--", label="test function"),
        Line2D([], [], color="black", linestyle="", marker="o", label="test data", **_DOT),
    ]
    figure.legend(
        handles=tasks + others,
        loc="outside lower center",
        ncols=4,
        frameon=False,
        title=_NOTE,
        columnspacing=1.5,
        labelspacing=0.3,
        borderpad=0.1,
    )
