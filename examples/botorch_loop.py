"""A BoTorch loop whose model knows the past: batches of two by qLogNoisyExpectedImprovement.

Eight functions of the Branin family were observed at 32 noisy points each; new ones are to be
maximized. `prior.condition(task)` takes the place of a fitted `SingleTaskGP`, and all else is plain
BoTorch. The same loop with BoTorch's own GP runs beside it. Run it as
`python examples/botorch_loop.py`.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Sequence

import torch
from botorch.acquisition import qLogNoisyExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.model import Model
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from scaml import MetaData, ScaML, Task, suggest
from scaml.bench.families import FAMILIES, Function

BRANIN = FAMILIES["branin"]
CUBE = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)


def draw() -> Function:
    """A function of the family, to be maximized over the unit cube."""
    return BRANIN.draw(int(torch.randint(2**31, ())))


def observe(function: Function, X: Tensor) -> Tensor:
    """Noisy values; larger is better."""
    return function(X) + BRANIN.noise * torch.randn(len(X), dtype=torch.float64)


def past_task(name: str) -> Task:
    """A function of the past, observed at random."""
    X = torch.rand(32, 2, dtype=torch.float64)
    return Task(X, observe(draw(), X), name=name)


def plain_gp(task: Task) -> Model:
    """BoTorch's own GP, which knows the new function alone."""
    model = SingleTaskGP(task.X, task.y[:, None])
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model


def maximize(model: Callable[[Task], Model], first: Tensor, new: Function, rounds: int) -> Task:
    """The loop: a batch is observed, the model learns, and the next batch is chosen."""
    task = Task(first, observe(new, first))
    for _ in range(rounds - 1):
        acquisition = qLogNoisyExpectedImprovement(model(task), X_baseline=task.X)
        X, _ = optimize_acqf(acquisition, CUBE, q=2, num_restarts=4, raw_samples=64)
        task = task.append(X, observe(new, X))
    return task


def main(argv: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--past", type=int, default=8, help="number of past functions")
    parser.add_argument("--new", type=int, default=4, help="number of new functions")
    parser.add_argument("--rounds", type=int, default=8, help="of two evaluations each")
    parser.add_argument("--seed", type=int, default=0, help="decides everything random")
    options = parser.parse_args(argv)
    torch.set_num_threads(1)  # small matrices: more threads are slower
    warnings.filterwarnings("ignore", module="botorch|linear_operator")  # both mend it and go on
    torch.manual_seed(options.seed)

    meta = MetaData([past_task(f"past-{m}") for m in range(options.past)])
    prior = ScaML().meta_fit(meta, seed=options.seed)  # once, for any number of new functions
    # Before any observation the past has a first batch to offer; a plain GP starts anywhere.
    first = suggest(prior, Task.empty(d=2), q=2, seed=options.seed)

    shown = [n for n in (2, 4, 8, 16) if n <= 2 * options.rounds]
    counts = ", ".join(map(str, shown))
    print(f"{options.past} past functions; simple regret of new ones after {counts} evaluations:")
    regrets = []
    for i in range(options.new):
        new = draw()
        ours = maximize(prior.condition, first, new, options.rounds)
        plain = maximize(plain_gp, torch.rand_like(first), new, options.rounds)
        regrets.append(
            [[new.maximum - float(new(t.X[:n]).max()) for n in shown] for t in (ours, plain)]
        )
        show(f"new-{i}", regrets[-1])
    show("mean", torch.tensor(regrets).mean(0).tolist())
    weights = prior.condition(ours).weights.tolist()  # most of them exactly 0
    used = [f"{name} {w:.2f}" for name, w in zip(prior.names, weights, strict=True) if w > 0.005]
    print(f"Weights behind new-{i}:", ", ".join(used) or "all 0")


def show(name: str, regrets: list[list[float]]) -> None:
    """A line of the table."""
    ours, plain = ("".join(f"{regret:7.2f}" for regret in row) for row in regrets)
    print(f"  {name:7} ScaML-GP {ours}     SingleTaskGP {plain}", flush=True)


if __name__ == "__main__":
    main()
