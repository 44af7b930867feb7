"""Speed of the meta-fit, of steps and of imports, beside the same work in BoTorch, in one process.

Run by `make speed`: one BLAS thread, all sides taking turns, medians of CPU time, ratios printed and
written to `benchmarks/speed.json`. `--quick` takes about two minutes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from benchmarks.report import provenance, write
from benchmarks.speed_rows.imports import imports, suggest_from_the_shell
from benchmarks.speed_rows.many_tasks import many_tasks
from benchmarks.speed_rows.maximizations import growth, maximization
from benchmarks.speed_rows.meta_fits import meta_fit
from benchmarks.speed_rows.steps import on_table, step

console = Console(width=120)

Stage = Callable[[], dict[str, Any]]


def stages(repeats: int) -> dict[str, Stage]:
    """All measurements."""
    return {
        "imports": lambda: imports(repeats),
        "scaml suggest": lambda: suggest_from_the_shell(repeats),
        "meta-fit, small": lambda: meta_fit("branin", 8, 32, repeats),
        "step, small": lambda: step("branin", 8, 32, 20, repeats),
        "step, large": lambda: step("hartmann6", 32, 128, 40, repeats),
        "step, table": lambda: on_table("hartmann6", 7, 64, 40, 8000, repeats),
        "step, many tasks": lambda: many_tasks(1000, min(repeats, 2)),
        "acquisition, cube": lambda: maximization("hartmann6", 32, 128, 40, 0, repeats),
        "acquisition, table": lambda: maximization("hartmann6", 8, 64, 40, 8000, repeats),
        "growth": lambda: growth((8, 32, 128, 512), repeats),
        "meta-fit, large": lambda: meta_fit("hartmann6", 32, 128, repeats),
    }


def quick_stages() -> dict[str, Stage]:
    """The same kinds of work, fewer turns, fewer tasks, and no meta-fit of large tasks."""
    return {
        "imports": lambda: imports(3),
        "scaml suggest": lambda: suggest_from_the_shell(2),
        "meta-fit, small": lambda: meta_fit("branin", 8, 32, 1),
        "step, small": lambda: step("branin", 8, 32, 20, 3),
        "step, large": lambda: step("hartmann6", 32, 128, 40, 3),
        "step, table": lambda: on_table("hartmann6", 7, 64, 40, 8000, 5),
        "step, many tasks": lambda: many_tasks(250, 1),
    }


def show(result: dict[str, Any]) -> None:
    """One small table per measurement."""
    table = Table(title=result["what"], show_header=False)
    for key, value in result.items():
        if key != "what":
            shown = value if isinstance(value, list) else [value]
            table.add_row(key, ", ".join(f"{v:.4g}" for v in shown))
    console.print(table)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="fewer turns, fewer and smaller tasks")
    parser.add_argument("--only", nargs="+", metavar="STAGE", help="some of the measurements, by name")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("speed.json"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    source = provenance("python -m benchmarks.speed --quick" if arguments.quick else "make speed")
    chosen = quick_stages() if arguments.quick else stages(arguments.repeats)
    unknown = sorted(set(arguments.only or chosen) - set(chosen))
    if unknown:
        parser.error(f"no measurement {unknown[0]!r}; choose from {', '.join(map(repr, chosen))}")
    results = []
    for name in arguments.only or chosen:
        console.print(f"[dim]measuring {name} ...[/dim]")
        results.append(chosen[name]())
        show(results[-1])
    write(
        arguments.out,
        source,
        threads=torch.get_num_threads(),
        repeats=arguments.repeats,
        results=results,
    )
    console.print(f"Written: {arguments.out}")


if __name__ == "__main__":
    main()
