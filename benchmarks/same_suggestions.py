"""Do two revisions of scaml suggest the same points? For changes that must change no number.

    python -m benchmarks.same_suggestions OLD_CHECKOUT NEW_CHECKOUT

Each checkout runs the same cases in a process of its own: every method on the cube, in a mixed space
and on the rows of a table, with no, few and more observations; the settings of ScaML-GP; problems of
`scaml bench run`; the Optuna sampler; `scaml suggest`. Suggestions are compared bit for bit. The exit
code is 1 if one differs.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

Points = list[list[float]]
Case = tuple[str, Callable[[], Points]]
_METHODS = ("ScaML", "GPBO", "RGPE", "SGPT", "StackGP", "ABLR", "RMGPUCB", "FSBO", "GC3P", "MTGP")
_SETTINGS: tuple[Any, Any] = (
    ("clipped", "learned", "level", "pooled", "union"),
    ("shared", "positive", "signed"),
)


def main() -> int:
    """Compare two checkouts and print what differs."""
    old, new = (Path(folder).resolve() for folder in sys.argv[1:3])
    before, after = _suggestions(old), _suggestions(new)
    same = [name for name in before if before[name] == after.get(name)]
    count = sum(len(points) for points in before.values())
    for name in before:
        if name not in same:
            print(f"{name}: {_difference(before[name], after.get(name))}")
    equal = sum(len(before[name]) for name in same)
    print(f"{equal} of {count} suggestions in {len(before)} cases are equal bit for bit.")
    return int(equal < count)


def _difference(before: Points, after: Points | None) -> str:
    if after is None or np.shape(before) != np.shape(after):
        return "no such suggestions"
    return f"differs by {np.abs(np.array(before) - np.array(after)).max():.1e}"


def _suggestions(checkout: Path) -> dict[str, Points]:
    """All cases in one checkout, in a process that imports scaml from there."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = os.environ | threads | {"PYTHONPATH": str(checkout / "src")}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "suggestions.json"
        command = [sys.executable, str(Path(__file__).resolve()), "--worker", str(checkout), str(out)]
        subprocess.run(command, env=environment, cwd=folder, check=True)
        found: dict[str, Points] = json.loads(out.read_text())
    return found


def _worker(checkout: Path, out: Path) -> None:
    import scaml

    assert Path(scaml.__file__).is_relative_to(checkout), scaml.__file__
    found = {}
    for name, case in itertools.chain(
        _on_spaces(), _settings(), _problems(), _sampler(), _command(checkout)
    ):
        found[name] = case()
        print(name, end="\r", flush=True, file=sys.stderr)
    out.write_text(json.dumps(found))


def _bowl(X: np.ndarray, m: float) -> np.ndarray:
    values: np.ndarray = -((X - 0.3 - 0.05 * m) ** 2).sum(-1) + 0.1 * np.sin(8.0 * X[:, 0] + m)
    return values


def _data(d: int, sizes: tuple[int, ...], n: int) -> tuple[Any, Any]:
    from scaml import MetaData, Task

    rng = np.random.default_rng(d)
    tasks = []
    for m, size in enumerate(sizes):
        X = rng.random((size, d))
        y = 3.0 * m + (1.0 + 0.5 * m) * _bowl(X, m) + 0.01 * rng.standard_normal(size)
        tasks.append(Task(X, y, name=f"past {m}"))
    X = rng.random((n, d))
    return MetaData(tasks), Task(X, 1.0 + 2.0 * _bowl(X, 1.5)) if n else Task.empty(d=d)


def _suggested(prior: Any, task: Any, **arguments: Any) -> Points:
    from scaml import suggest

    points: Points = suggest(prior, task, **arguments).tolist()
    return points


def _on_spaces() -> Iterator[Case]:
    """Every method on the cube, on a table and in a mixed space."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    from scaml import ScaML, Space, methods

    chosen = {name: getattr(methods, name)() for name in _METHODS}
    chosen |= {"paper": ScaML.paper(), "matern": ScaML(kernel="matern52")}
    table = np.random.default_rng(5).random((60, 2))
    mixed = Space(
        {
            "rate": FloatDistribution(1e-3, 1.0, log=True),
            "depth": IntDistribution(1, 40),
            "kind": CategoricalDistribution(["a", "b", "c"]),
        }
    )
    for name, method in chosen.items():
        prior = method.meta_fit(_data(2, (9, 14, 11), 0)[0], seed=0)
        for n, q in ((0, 1), (1, 1), (4, 2), (9, 1)):
            task = _data(2, (9, 14, 11), n)[1]
            yield f"{name} cube n={n}", partial(_suggested, prior, task, q=q, seed=n)
        for n in (0, 6):
            task = _data(2, (9, 14, 11), n)[1]
            yield (
                f"{name} table n={n}",
                partial(_suggested, prior, task, q=2, seed=1, candidates=table),
            )
        if name not in ("MTGP", "FSBO", "ABLR"):  # slow, and the space is not theirs to see
            meta, task = _data(mixed.d, (8, 9), 5)
            prior = method.meta_fit(meta, seed=0).in_space(mixed)
            yield f"{name} mixed", partial(_suggested, prior, task, seed=2)


def _settings() -> Iterator[Case]:
    """What ScaML-GP can be set to."""
    from scaml import ScaML

    meta, task = _data(3, (12, 20, 16, 9), 7)
    for normalization, weights in itertools.product(*_SETTINGS):
        for residual in ("past", "paper"):
            prior = ScaML(normalization=normalization, weights=weights, residual=residual).meta_fit(
                meta, seed=1
            )
            name = f"ScaML {normalization} {weights} {residual}"
            yield name, partial(_suggested, prior, task, seed=3)


def _problems() -> Iterator[Case]:
    """`scaml bench run` on a function and on a table."""

    def run(problem: str, method: str) -> Points:
        import pyarrow.parquet as pq

        from scaml.cli import main

        with tempfile.TemporaryDirectory() as folder:
            words = [
                "bench",
                "run",
                problem,
                "--methods",
                method,
                "--runs",
                "1",
                "--out",
                folder,
                "--quiet",
            ]
            assert main([*words, "--evaluations", "6", "--meta-tasks", "4"]) == 0
            (file,) = Path(folder).rglob("all.parquet")
            points: Points = pq.read_table(file).column("x").to_pylist()
        return points

    for problem, method in itertools.product(
        ("branin", "hartmann3", "svm"), ("scaml", "scaml-paper", "rgpe")
    ):
        yield f"bench {problem} {method}", partial(run, problem, method)


def _sampler() -> Iterator[Case]:
    """Trials of an Optuna study, in a space of floats and in a mixed one."""

    def run(mixed: bool, paper: bool) -> Points:
        import optuna

        from scaml import ScaML, ScaMLSampler

        optuna.logging.set_verbosity(optuna.logging.ERROR)

        def objective(trial: optuna.Trial, shift: float) -> float:
            x, y = trial.suggest_float("x", 0, 9), trial.suggest_float("y", 1e-3, 1.0, log=True)
            kind = trial.suggest_categorical("kind", ["a", "b"]) if mixed else "a"
            return float((x - 3 - shift) ** 2 + (np.log10(y) + 1.5) ** 2 + (kind == "b"))

        past = [optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=s)) for s in range(3)]
        for shift, study in enumerate(past):
            study.optimize(partial(objective, shift=0.3 * shift), n_trials=15)
        sampler = ScaMLSampler(past, method=ScaML.paper() if paper else None, seed=3)
        study = optuna.create_study(sampler=sampler)
        study.optimize(lambda trial: objective(trial, 0.4), n_trials=8)
        return [
            [t.params["x"], t.params["y"], float(t.params.get("kind") == "b")] for t in study.trials
        ]

    for mixed, paper in itertools.product((False, True), (False, True)):
        name = f"sampler {'mixed' if mixed else 'floats'} {'paper' if paper else 'default'}"
        yield name, partial(run, mixed, paper)


def _command(checkout: Path) -> Iterator[Case]:
    """`scaml suggest` on a table of reactions."""

    def run(method: str, task: str) -> Points:
        words = [
            "suggest",
            str(checkout / "examples/reactions.csv"),
            "--task",
            task,
            "-n",
            "2",
            "--json",
        ]
        command = [sys.executable, "-c", "import sys; from scaml.cli import main; sys.exit(main())"]
        answer = subprocess.run(
            [*command, *words, "--method", method], capture_output=True, text=True, check=True
        )
        found = json.loads(answer.stdout)["suggestions"]
        return [
            [number(value) for value in one["params"].values()] + [one["expected"] or 0.0]
            for one in found
        ]

    def number(value: Any) -> float:
        return float(value) if isinstance(value, int | float) else float(sum(map(ord, str(value))))

    for method, task in itertools.product(
        ("scaml", "rgpe", "gpbo", "scaml-paper"), ("new", "3-bromopyridine")
    ):
        yield f"scaml suggest {method} {task}", partial(run, method, task)


if __name__ == "__main__":
    if sys.argv[1] == "--worker":
        _worker(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        sys.exit(main())
