"""The meta-fit beside BoTorch's loop, beside L-BFGS-B on our likelihood, and beside bare arithmetic."""

from __future__ import annotations

from functools import partial
from typing import Any

from torch import Tensor

from benchmarks.evaluations import replaced
from benchmarks.speed_rows import floor
from benchmarks.speed_rows.other_minimizers import batched_l_bfgs_b, l_bfgs_b_per_start
from benchmarks.timing import medians
from scaml import MetaData, ScaML
from scaml.bench import FAMILIES
from scaml.gp.map_fit import STARTS, FitInput, fit_gps
from scaml.gp.units import standardize
from tests import botorch_baseline

__all__ = ["meta_fit"]

SEED = 0


def _inputs(meta: MetaData) -> list[FitInput]:
    """Standardized tasks, as all sides fit them."""
    units = [standardize(task.y) for task in meta]
    return [
        FitInput(name, task.X, (task.y - unit.offset) / unit.scale)
        for name, task, unit in zip(meta.names, meta, units, strict=True)
    ]


def meta_fit(
    family: str, tasks: int, points: int, repeats: int, *, warm: bool = True
) -> dict[str, Any]:
    """`ScaML.meta_fit` beside a loop of SingleTaskGP + fit_gpytorch_mll with the same starts.

    `task_gps` is the part of it that BoTorch's loop does, too. The two L-BFGS-B minimize the same
    likelihood from the same starts in place of our own minimizer.
    """
    meta = FAMILIES[family].meta_data(tasks, points, SEED)
    inputs = _inputs(meta)
    fit_all = partial(fit_gps, inputs, kernel="se", seed=SEED)
    fit = fit_all()
    values: dict[str, Tensor | list[float]] = {}
    evaluations = {"ours": fit.evaluations}

    def botorch() -> None:
        values["botorch"] = [
            botorch_baseline.fit("se", item.X, item.z, starts)[1]
            for item, starts in zip(inputs, fit.starts, strict=True)
        ]

    def other(name: str, minimize: Any) -> None:
        with replaced(minimize):
            found = fit_all()
        values[name], evaluations[name] = found.value, found.evaluations

    ours, task_gps, theirs, batched, single = medians(
        lambda: ScaML().meta_fit(meta, seed=SEED, n_jobs=1),
        fit_all,
        botorch,
        lambda: other("batched", batched_l_bfgs_b),
        lambda: other("single", l_bfgs_b_per_start),
        repeats=repeats,
        warm=warm,
    )
    bare = floor.likelihoods(points, meta.d, fit.evaluations)
    own = fit.value.tolist()
    behind = {
        name: max(a - float(b) for a, b in zip(own, values[name], strict=True)) for name in values
    }
    return {
        "what": f"meta-fit, {tasks} x {points} x {meta.d}D, {STARTS} starts",
        "scaml_cpu_seconds": ours.cpu,
        "scaml_wall_seconds": ours.wall,
        "task_gps_cpu_seconds": task_gps.cpu,
        "botorch_cpu_seconds": theirs.cpu,
        "botorch_wall_seconds": theirs.wall,
        "times_faster_than_botorch": theirs.cpu / ours.cpu,
        "task_gps_times_faster_than_botorch": theirs.cpu / task_gps.cpu,
        "batched_l_bfgs_b_cpu_seconds": batched.cpu,
        "batched_l_bfgs_b_over_ours": batched.cpu / task_gps.cpu,
        "l_bfgs_b_per_start_cpu_seconds": single.cpu,
        "l_bfgs_b_per_start_over_ours": single.cpu / task_gps.cpu,
        "evaluations": evaluations["ours"],
        "evaluations_batched_l_bfgs_b": evaluations["batched"],
        "evaluations_l_bfgs_b_per_start": evaluations["single"],
        "arithmetic_cpu_seconds": bare.cpu,
        "task_gps_over_arithmetic": task_gps.cpu / bare.cpu,
        **{f"worst_nats_per_point_behind_{name}": value for name, value in sorted(behind.items())},
    }
