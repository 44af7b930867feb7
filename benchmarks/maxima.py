"""Is the maximum that a suggestion finds ever worse than that of a long search by autograd?

    python -m benchmarks.maxima

Both searches maximize the acquisition function of the same models: 2 to 10 parameters, both kernels,
one model and averages, 1 to 60 observations, the cube and tables. The long search is the one this
library had before its slopes were in closed form: 1024 raw points, 512 points near the leaders, 512
beside the best data, and BoTorch's L-BFGS-B by autograd from 20 starts. A difference counts in units
of log-NEI, which is a logarithm, or as a share of the range of UCB. Writes `benchmarks/maxima.json`.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from botorch.acquisition import AcquisitionFunction
from botorch.generation.gen import gen_candidates_scipy
from botorch.models.model import Model
from rich.console import Console
from torch import Tensor

from benchmarks.report import provenance, write
from scaml import MetaData, ScaML, Task
from scaml.ask import choose, choose_new
from scaml.common.parallel import one_thread
from scaml.methods.base import MetaPrior
from scaml.search.cube import without_warnings
from scaml.search.protocols import HasBestPoints

MODELS = 200
TOLERANCE = 1e-6
OWN_STEPS = 10
_WIDTHS = (0.003, 0.01, 0.03, 0.1)

console = Console()


@dataclass(frozen=True)
class Case:
    """One model.

    Args:
        number: Decides everything else.
        d: Number of parameters.
        prior: Of its past tasks.
        task: Its observations.
        table: Candidates; None for the cube.
    """

    number: int
    d: int
    prior: MetaPrior
    task: Task
    table: Tensor | None

    def model(self) -> Model:
        """The model of the new task."""
        return self.prior.condition(self.task, seed=self.number)

    @property
    def what(self) -> str:
        """In a few words."""
        method: Any = self.prior.method
        where = "cube" if self.table is None else "table"
        words = (method.kernel, method.weights, method.acquisition, where)
        return f"{self.number}: {self.d}D, n = {self.task.n}, {', '.join(words)}"


Function = Callable[[Tensor], Tensor]


def rough(rng: np.random.Generator, d: int, waves: float) -> Function:
    """A sum of random cosines, so many waves long across the cube."""
    frequency = torch.from_numpy(rng.standard_normal((24, d))) * 2.0 * math.pi * waves / math.sqrt(d)
    phase = torch.from_numpy(rng.uniform(0.0, 2.0 * math.pi, 24))
    return lambda X: torch.cos(X @ frequency.T + phase).sum(-1) / math.sqrt(12.0)


def bowl(rng: np.random.Generator, d: int, waves: float) -> Function:
    """A bowl with waves, shifted at random."""
    shift, width = 0.5 + 0.1 * torch.from_numpy(rng.standard_normal(d)), 8.0 * waves
    return lambda X: -((X - shift).square() + 0.1 * torch.sin(width * (X - shift))).sum(-1)


def alike(common: Function, own: Function, share: float) -> Function:
    """A task that has a share of what is common to all."""
    return lambda X: share * common(X) + (1.0 - share) * own(X)


def case(number: int) -> Case:
    """The case of that number: past tasks, and observations that a run could have made."""
    rng = np.random.default_rng(number)
    d, tasks, points = 2 + number % 9, int(rng.integers(3, 13)), int(rng.integers(15, 50))
    kind = bowl if number % 4 == 0 else rough
    waves, share = float(rng.choice([0.5, 1.0, 2.0])), float(rng.choice([0.3, 0.7, 0.95]))
    common = kind(rng, d, waves)

    def uniform(n: int) -> Tensor:
        return torch.from_numpy(rng.random((n, d)))

    past = []
    for m in range(tasks):
        X = uniform(points)
        past.append(Task(X, alike(common, kind(rng, d, waves), share)(X), name=f"past {m}"))
    new = alike(common, kind(rng, d, waves), share)
    n = (1, 3, 8, 15, 25, 40, 60)[number % 7]
    X = uniform(n)
    best = X[new(X).argmax()]
    near = n // 2  # as a run that has found a good place
    shifts = float(rng.choice([0.1, 0.03, 0.01])) * torch.from_numpy(rng.standard_normal((near, d)))
    X[:near] = (best + shifts).clamp(0.0, 1.0)
    method = ScaML(
        kernel="se" if number % 2 else "matern52",
        weights="explained" if number % 3 == 0 else "shared",
        acquisition="ucb" if number % 5 == 4 else "lognei",
    )
    if number % 10 == 4:
        method = replace(method, sqrt_beta=float(rng.choice([0.0, 0.5, 12.0])))
    table = uniform(2000) if number % 8 == 7 else None
    y = new(X) + float(rng.choice([0.0, 0.01])) * torch.from_numpy(rng.standard_normal(n))
    prior, task = method.meta_fit(MetaData(past), seed=number), Task(X, y)
    if number % 3 == 1:  # the last of them are a run's own, which leave narrow peaks
        task = Task(X[: max(1, n - OWN_STEPS)], y[: max(1, n - OWN_STEPS)])
        while task.n < n:
            x = choose_new(prior, prior.condition(task), task, 1, X[:0], task.n)
            task = task.append(x, new(x))
    return Case(number, d, prior, task, table)


def long_search(function: AcquisitionFunction, one: Case) -> Tensor:
    """The maximizer, d long."""
    if one.table is not None:
        return one.table[values_of(function, one.table).argmax()]
    generator = torch.Generator().manual_seed(one.number)
    sobol = torch.quasirandom.SobolEngine(one.d, scramble=True, seed=one.number)
    points = sobol.draw(1024, dtype=torch.float64)
    values = values_of(function, points)
    leaders = points[values.topk(32).indices]
    shifts = torch.randn(32, 16, one.d, generator=generator, dtype=torch.float64)
    near = [(leaders[:, None] + 0.05 * shifts).clamp(0.0, 1.0).view(-1, one.d)]
    if isinstance(function, HasBestPoints):
        widths = torch.tensor(_WIDTHS, dtype=torch.float64).repeat_interleave(128)
        shifts = torch.randn(len(widths), one.d, generator=generator, dtype=torch.float64)
        centres = function.best_points[torch.arange(len(widths)) % len(function.best_points)]
        near.append((centres + widths[:, None] * shifts).clamp(0.0, 1.0))
    points = torch.cat([points, *near])
    values = torch.cat([values, *(values_of(function, part) for part in near)])
    points = points[values.argsort(descending=True, stable=True)]
    top, unit = values.max(), unit_of(function, values)
    with without_warnings():
        found, _ = gen_candidates_scipy(
            _starts(points).unsqueeze(-2),
            lambda X: (function(X) - top) / unit,
            lower_bounds=0.0,
            upper_bounds=1.0,
            options={"maxiter": 200},
        )
    points = torch.cat([found.squeeze(-2).detach(), points[:1]])
    return points[values_of(function, points).argmax()]


def _starts(points: Tensor) -> Tensor:
    """Twenty points, sorted best first, that lie apart."""
    left = torch.ones(len(points), dtype=torch.bool)
    chosen: list[int] = []
    while len(chosen) < 20 and left.any():
        chosen.append(int(left.nonzero()[0]))
        left &= (points - points[chosen[-1]]).norm(dim=-1) > 0.05 * points.shape[-1] ** 0.5
    return points[chosen]


def values_of(function: AcquisitionFunction, X: Tensor) -> Tensor:
    """Values at `n x d`."""
    with torch.no_grad():
        return torch.cat([function(part.unsqueeze(-2)) for part in X.split(256)])


def unit_of(function: AcquisitionFunction, values: Tensor) -> float:
    """1 for a logarithm, the range otherwise."""
    if getattr(function, "_log", False):
        return 1.0
    return float(values.max() - values.min()) or 1.0


def compare(numbers: range) -> Iterator[dict[str, Any]]:
    """How much more the library's search finds, case by case."""
    for number in numbers:
        one = case(number)
        model, nobody = one.model(), torch.empty(0, one.d, dtype=torch.float64)
        function = one.prior.acquisition(model)
        with one_thread():
            start = time.process_time()
            theirs = long_search(function, one)
            middle = time.process_time()
            ours = choose(one.prior, model, one.task, 1, nobody, number, table=one.table)[0]
            end = time.process_time()
            sobol = torch.quasirandom.SobolEngine(one.d, scramble=True, seed=0)
            anywhere = values_of(function, sobol.draw(256, dtype=torch.float64))
            a, b = values_of(function, torch.stack([ours, theirs])).tolist()
        more = (a - b) / unit_of(function, anywhere)
        yield {"what": one.what, "more": more, "long": middle - start, "ours": end - middle}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--models", type=int, default=MODELS)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("maxima.json"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    source, results = provenance("python -m benchmarks.maxima"), []
    for found in compare(range(arguments.first, arguments.first + arguments.models)):
        results.append(found)
        if found["more"] < -TOLERANCE:
            console.print(f"{found['what']}: {found['more']:.3g}")
    more = np.array([found["more"] for found in results])
    summary = {
        "models": len(results),
        "worse": [
            {"what": found["what"], "by": -found["more"]}
            for found in results
            if found["more"] < -TOLERANCE
        ],
        "better_by_more_than_1e-6": int((more > TOLERANCE).sum()),
        "better_by_more_than_0.01": int((more > 0.01).sum()),
        "long_search_cpu_seconds": float(np.median([found["long"] for found in results])),
        "cpu_seconds": float(np.median([found["ours"] for found in results])),
    }
    write(arguments.out, source, **summary)
    console.print(summary)


if __name__ == "__main__":
    main()
