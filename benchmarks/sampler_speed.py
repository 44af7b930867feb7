"""Time to suggest of `ScaMLSampler` beside Optuna's `GPSampler` and `TPESampler`, in real loops.

Run by `make sampler-speed`: one BLAS thread, the samplers taking turns in one process, medians of CPU
and wall time, and how often each evaluated likelihood and acquisition function. `--quick` takes about
two minutes.
"""

from __future__ import annotations

import argparse
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.loops import LAST, RANGES, Ask, ask_and_tell, summary
from benchmarks.report import provenance, write
from benchmarks.sampler_spaces import PAST, PAST_TRIALS, SPACES, past_studies
from benchmarks.timing import Seconds, seconds_of
from scaml import MetaData, ScaML, ScaMLSampler, Task, suggest

GP = "GPSampler"
_SMALL, _LARGE = 50, 299  # observations of the new task
_ASKS = 5  # suggestions at each
_PAST, _POINTS, _D = 10, 60, 5

console = Console(width=120)


def loops(name: str, seeds: int, last: int) -> dict[str, Any]:
    """Every sampler's loop on one space."""
    space = SPACES[name]
    asks: list[Ask] = []
    best: dict[str, list[float]] = {}
    for seed in range(seeds):
        shift = 0.1 * float(np.random.default_rng(100 + seed).standard_normal())
        samplers: dict[str, optuna.samplers.BaseSampler] = {
            "ScaMLSampler": ScaMLSampler(meta_studies=past_studies(space, seed), seed=seed),
            GP: optuna.samplers.GPSampler(seed=seed, n_startup_trials=1),
            "TPESampler": optuna.samplers.TPESampler(seed=seed, n_startup_trials=1),
        }
        found, values = ask_and_tell(samplers, space, shift, seed=seed, last=last)
        asks += found
        for sampler, value in values.items():
            best.setdefault(sampler, []).append(value)
    return {
        "what": f"{name}, {PAST} past studies of {PAST_TRIALS} trials, {seeds} loops, n = 5 to {last}",
        "samplers": [
            {**summary(asks, sampler, GP), "best_values": values} for sampler, values in best.items()
        ],
    }


def _bowl(shift: float, n: int, seed: int) -> Task:
    """Observations of a bowl with waves, half of them near its best point, as in a study."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, _D))
    X[n // 2 :] = np.clip(0.5 + shift + 0.1 * rng.standard_normal((n - n // 2, _D)), 0.0, 1.0)
    X = rng.permutation(X)
    z = X - 0.5 - shift
    return Task(X, -(z**2).sum(-1) - 0.1 * np.sin(8.0 * z).sum(-1) + 0.01 * rng.standard_normal(n))


def growth() -> dict[str, Any]:
    """`suggest` late in a study over `suggest` early in it, each after the steps before."""
    rng = np.random.default_rng(0)
    meta = MetaData([_bowl(0.1 * rng.standard_normal(), _POINTS, 1 + m) for m in range(_PAST)])
    task = _bowl(0.05, _LARGE + _ASKS, 0)
    priors = {n: ScaML().meta_fit(meta, seed=0) for n in (_SMALL, _LARGE)}
    taken: dict[int, list[Seconds]] = {n: [] for n in priors}
    for k in range(-1, _ASKS):
        for n, prior in priors.items():
            known = Task(task.X[: n + k], task.y[: n + k])
            seconds = seconds_of(partial(suggest, prior, known, seed=k + 1))
            if k >= 0:  # the step before pays for what the prior keeps
                taken[n].append(seconds)
    small, large = (np.median(taken[n], axis=0).tolist() for n in priors)
    return {
        "what": f"suggest, n = {_LARGE} over n = {_SMALL}, {_PAST} x {_POINTS} x {_D}D past tasks",
        "small_cpu_seconds": small[0],
        "small_wall_seconds": small[1],
        "large_cpu_seconds": large[0],
        "large_wall_seconds": large[1],
        "cpu_ratio": large[0] / small[0],
        "wall_ratio": large[1] / small[1],
    }


def show(result: dict[str, Any]) -> None:
    """One table per space, one row per sampler and range."""
    table = Table("sampler", "n", "CPU ms", "wall ms", f"/ {GP}", "of totals", title=result["what"])
    table.add_column("likelihoods")
    table.add_column("acquisitions")
    for one in result["samplers"]:
        for name in RANGES:
            if name in one:
                of = one[name]
                table.add_row(
                    one["sampler"],
                    name,
                    f"{1e3 * of['cpu_seconds']:.1f}",
                    f"{1e3 * of['wall_seconds']:.1f}",
                    f"{of['cpu_share']:.2f}",
                    f"{of['total_cpu_share']:.2f}",
                    f"{of['likelihoods']:.0f}",
                    f"{of['acquisitions']:.0f}",
                )
        table.add_row(one["sampler"], "first", f"{1e3 * one['first']['cpu_seconds']:.1f}")
    console.print(table)


def check_greenlet() -> None:
    """Refuse to compare with a GPSampler that is two to three times slower than it need be."""
    if find_spec("greenlet") is None:
        raise SystemExit(
            "greenlet is not installed, and without it GPSampler is two to three times slower: "
            "pip install --group dev"
        )


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--quick", action="store_true", help="one loop per space, up to n = 40")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("sampler_speed.json"))
    arguments = parser.parse_args()
    check_greenlet()
    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    command = "python -m benchmarks.sampler_speed --quick" if arguments.quick else "make sampler-speed"
    source = provenance(command, "greenlet")
    seeds, last = (1, 40) if arguments.quick else (arguments.seeds, LAST)
    results = []
    for name in SPACES:
        console.print(f"[dim]measuring {name} ...[/dim]")
        results.append(loops(name, seeds, last))
        show(results[-1])
    console.print("[dim]measuring growth ...[/dim]")
    late = growth()
    for key, value in late.items():
        console.print(f"{key}: {value if isinstance(value, str) else f'{value:.4g}'}")
    write(arguments.out, source, loops=results, growth=late)
    console.print(f"Written: {arguments.out}")


if __name__ == "__main__":
    main()
