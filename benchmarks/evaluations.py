"""How often a sampler evaluates its likelihood and its acquisition function, counted from outside.

On our side, points are counted that searches give to the objective of `gp.minimize` (`scaml.search`
searches for acquisition functions, any other package for likelihoods), and points at which acquisition
functions of `scaml.search` are evaluated. On the side of Optuna's `GPSampler`, likelihoods of
`GPRegressor` are counted, and points at which its acquisition functions are evaluated. A call inside a
counted call does not count again. If a figure is 0, look whether the counted function has moved.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from types import ModuleType
from typing import Any
from unittest.mock import patch

import scaml.methods.scaml  # what conditions and searches is imported before anything is replaced
import scaml.search.log_nei
import scaml.search.mixed_space
import scaml.search.ucb  # noqa: F401
from scaml.gp import minimize as solver

__all__ = ["Counts", "counting", "replaced"]

_SEARCH = "scaml.search"


class Counts:
    """Running totals; `inside` is the number of counted calls on the stack."""

    def __init__(self) -> None:
        self.likelihood = 0
        self.acquisition = 0
        self.inside = 0

    def calling(self, kind: str, points: int, function: Callable[[], Any]) -> Any:
        """Call, and count so many points unless a counted call is on the stack already."""
        if not self.inside:
            setattr(self, kind, getattr(self, kind) + points)
        self.inside += 1
        try:
            return function()
        finally:
            self.inside -= 1


@contextmanager
def counting() -> Iterator[Counts]:
    """Count what happens inside the block, of all samplers together."""
    counts = Counts()
    with ExitStack() as stack:
        for module in _users_of(solver.minimize):
            kind = "acquisition" if module.__name__.startswith(_SEARCH) else "likelihood"
            counted = _minimize_counted(counts, kind)
            stack.enter_context(patch.object(module, "minimize", counted))
        for owner, name, kind, points in (*_ours(), *_theirs()):
            counted = _method_counted(counts, getattr(owner, name), kind, points)
            stack.enter_context(patch.object(owner, name, counted))
        yield counts


@contextmanager
def replaced(minimize: Callable[..., Any]) -> Iterator[None]:
    """Let all of scaml use another minimizer inside the block."""
    with ExitStack() as stack:
        for module in _users_of(solver.minimize):
            stack.enter_context(patch.object(module, "minimize", minimize))
        yield


def _users_of(function: Callable[..., Any]) -> list[ModuleType]:
    """The modules of scaml that call a function by its own name."""
    ours = [module for name, module in sorted(sys.modules.items()) if name.startswith("scaml.")]
    return [module for module in ours if getattr(module, function.__name__, None) is function]


def _minimize_counted(counts: Counts, kind: str) -> Callable[..., Any]:
    minimize = solver.minimize

    @wraps(minimize)
    def counted(objective: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
        def once(x: Any, *rest: Any) -> Any:
            return counts.calling(kind, len(x), lambda: objective(x, *rest))

        return minimize(once, *arguments, **settings)

    return counted


def _method_counted(
    counts: Counts, method: Callable[..., Any], kind: str, points: Callable[[Any], int]
) -> Callable[..., Any]:
    @wraps(method)
    def counted(self: Any, *arguments: Any) -> Any:
        number = points(arguments[0] if arguments else None)
        return counts.calling(kind, number, lambda: method(self, *arguments))

    return counted


_Method = tuple[type, str, str, Callable[[Any], int]]


def _ours() -> Iterator[_Method]:
    """`forward` of all modules of torch that `scaml.search` defines, acquisition functions all."""
    for module in [m for name, m in sorted(sys.modules.items()) if name.startswith(_SEARCH + ".")]:
        for owner in vars(module).values():
            own = inspect.isclass(owner) and owner.__module__ == module.__name__
            if own and "forward" in vars(owner):
                yield owner, "forward", "acquisition", lambda X: X.shape[:-2].numel()


def _theirs() -> Iterator[_Method]:
    from optuna._gp import acqf, gp

    yield gp.GPRegressor, "marginal_log_likelihood", "likelihood", lambda _: 1
    for owner in vars(acqf).values():
        theirs = inspect.isclass(owner) and issubclass(owner, acqf.BaseAcquisitionFunc)
        if theirs and "eval_acqf" in vars(owner):
            yield owner, "eval_acqf", "acquisition", lambda x: x.shape[:-1].numel()
