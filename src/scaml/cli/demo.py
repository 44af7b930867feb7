"""`scaml demo` and `scaml methods`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from scaml.cli.terminal import AsJson, Quiet, Seed, folder, print_json, progress, unwritable
from scaml.errors import SettingError

if TYPE_CHECKING:
    from scaml.bench.demo import DemoResult

__all__ = ["FAMILY_NAMES", "demo", "methods"]

# The keys of `scaml.bench.FAMILIES`, repeated here because torch and BoTorch take seconds to import:
# only commands that compute import them.
FAMILY_NAMES = ("branin", "hartmann3", "hartmann6")

_SHOWN = (1, 5, 10, 15, 20)  # evaluations in the tables


def _check_family(name: str) -> str:
    if name not in FAMILY_NAMES:
        raise SettingError(f"--family is {name!r}; choose one of {', '.join(FAMILY_NAMES)}.")
    return name


def demo(
    family: Annotated[
        str,
        typer.Option(metavar="|".join(FAMILY_NAMES), callback=_check_family, help="Kind of function."),
    ] = "branin",
    seed: Seed = 0,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of the figure; made if it does not exist.")
    ] = Path("scaml-demo"),
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Optimize a function with and without past tasks, and compare.

    ScaML-GP has 8 past tasks: a twin of the new function, 3 relatives and 4 strangers. It is not told
    which is which. A plain GP has no past. Both evaluate the new function 20 times. Takes less than a
    minute.
    """
    path = out / f"{family}-seed-{seed}.png"
    with folder(out):
        with progress(quiet or as_json) as report:
            from scaml.bench import FAMILIES
            from scaml.bench.demo import run_demo
            from scaml.bench.demo_figure import draw

            result = run_demo(FAMILIES[family], seed, progress=report)
        try:
            draw(result, path)
        except OSError as error:
            raise unwritable(path, error) from error
    if as_json:
        facts = {"family": family, "seed": seed, "figure": str(path)}
        learned = {"matters": result.matters, "none": result.none}
        print_json({**facts, "regrets": result.regrets, **learned})
        return
    _show(result)
    typer.echo(f"Figure: {path}")


def methods(as_json: AsJson = False) -> None:
    """List the meta-learning methods: name, publication, cost, and one line on each."""
    with progress(as_json):
        from scaml import methods as known

    classes = [getattr(known, name) for name in known.__all__]
    found = {
        cls.__name__: (cls.publication, cls.summary, cls.cost)
        for cls in classes
        if issubclass(cls, known.Method) and cls is not known.Method
    }
    if as_json:
        keys = ("method", "publication", "summary", "cost")
        print_json([dict(zip(keys, (name, *words), strict=True)) for name, words in found.items()])
        return
    table = Table("method", "publication", "what it does", "cost", show_lines=True)
    for name, words in found.items():
        table.add_row(name, *words)
    Console().print(table)


def _show(result: DemoResult) -> None:
    from scaml.bench.demo import in_words

    regrets = Table(title=f"Simple regret on {result.family.title}")
    regrets.add_column("evaluations", justify="right")
    for name in result.regrets:
        regrets.add_column(name, justify="right")
    for n in _SHOWN:
        regrets.add_row(str(n), *(f"{values[n - 1]:.3g}" for values in result.regrets.values()))
    matters = Table(title="Probability that a past task matters")
    matters.add_column("past task")
    for n in (0, *_SHOWN):
        matters.add_column(f"after {n}", justify="right")
    for name, values in [*sorted(result.matters.items(), key=_by_role), ("none", result.none)]:
        matters.add_row(name, *(f"{values[n]:.2f}" for n in (0, *_SHOWN)))
    Console().print(regrets, matters, sep="\n")
    typer.echo(in_words(result))


def _by_role(task: tuple[str, tuple[float, ...]]) -> tuple[int, str]:
    """The twin first, strangers last."""
    from scaml.bench.demo_past import ROLES, role_of

    return ROLES.index(role_of(task[0])), task[0]
