"""Small neural networks in float64, trained with a seed, with progress and early stopping.

A network must depend on the seed and on the data, not on the order of the past tasks. Code that draws
tasks or points at random therefore sorts the tasks by `settled_order`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from scaml.common.progress import StepProgress
from scaml.errors import FitError, SavedFileError
from scaml.tasks.meta_data import MetaData

__all__ = ["EarlyStopping", "descend", "perceptron", "seeded", "settled_order", "with_state"]

_RATE_OF_NEWS = 100  # how often progress is called in all


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch's global generator inside the block, and restore its state afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def perceptron(
    d: int, widths: Sequence[int], activation: Callable[[], nn.Module], *, dropout: float = 0.0
) -> nn.Sequential:
    """A multilayer perceptron: linear layers of the given widths, each followed by the activation."""
    layers: list[nn.Module] = []
    for inputs, outputs in zip([d, *widths], widths, strict=False):
        layers += [nn.Linear(inputs, outputs, dtype=torch.float64), activation()]
        if dropout:
            layers.append(nn.Dropout(dropout))
    return nn.Sequential(*layers)


def settled_order(meta: MetaData) -> list[int]:
    """The places of the tasks, in an order that depends on their data alone."""

    def digest(m: int) -> str:
        parts = (meta[m].X, meta[m].y)
        return hashlib.sha256(b"".join(part.numpy().tobytes() for part in parts)).hexdigest()

    return sorted(range(len(meta)), key=digest)


@dataclass(frozen=True)
class EarlyStopping:
    """When a training ends before its last step.

    Args:
        held_out: Loss on points that the training does not see.
        every: Steps between two evaluations of it.
        patience: Evaluations without improvement after which the training ends.
    """

    held_out: Callable[[], float]
    every: int = 50
    patience: int = 10


def descend(
    loss: Callable[[int], tuple[Tensor, str]],
    module: nn.Module,
    *,
    steps: int,
    rate: float | Callable[[int], float],
    what: str,
    stopping: EarlyStopping | None = None,
    progress: StepProgress | None = None,
) -> int:
    """Train a module by Adam, and keep the parameters with the lowest held-out loss.

    Args:
        loss: Returns the loss of a step, and the name of the task that it belongs to.
        module: The module to train; its parameters change in place.
        steps: Largest number of steps.
        rate: Learning rate, or a function of the step.
        what: The name of what is trained, for error messages.
        stopping: When to stop early; None for all steps.
        progress: Called with the number of steps done and of all.

    Returns:
        The number of steps taken.

    Raises:
        FitError: A loss was not finite.
    """
    speed = rate if callable(rate) else lambda _step: rate
    optimizer = torch.optim.Adam(module.parameters(), lr=speed(0))
    best, step = _Best(module, stopping), 0
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = speed(step)
        module.train()
        optimizer.zero_grad()
        value, task = loss(step)
        if not value.isfinite():
            raise FitError(
                f"The loss of {what} became {value.item()} on task {task!r} at step {step}; look for "
                "values of y that are far larger than the others, or lower the learning rate."
            )
        value.backward()
        optimizer.step()
        if progress and ((step + 1) % max(1, steps // _RATE_OF_NEWS) == 0 or step + 1 == steps):
            progress(step + 1, steps)
        if best.due(step + 1, steps) and best.look():
            break
    best.take()
    if progress and step + 1 < steps:
        progress(steps, steps)
    return step + 1


class _Best:
    """The parameters at the lowest held-out loss so far."""

    def __init__(self, module: nn.Module, stopping: EarlyStopping | None) -> None:
        self._module, self._stopping = module, stopping
        self._lowest, self._kept, self._waited = math.inf, _copy(module), 0

    def due(self, step: int, steps: int) -> bool:
        """Whether the held-out loss is to be evaluated after this step."""
        return self._stopping is not None and (step % self._stopping.every == 0 or step == steps)

    def look(self) -> bool:
        """Evaluate the held-out loss; returns whether it has not improved for too long."""
        if self._stopping is None:
            return False
        self._module.eval()
        with torch.no_grad():
            now = self._stopping.held_out()
        if now < self._lowest:
            self._lowest, self._kept, self._waited = now, _copy(self._module), 0
        else:
            self._waited += 1
        return self._waited >= self._stopping.patience

    def take(self) -> None:
        """Restore the best parameters."""
        if math.isfinite(self._lowest):
            self._module.load_state_dict(self._kept)
        self._module.eval()


def _copy(module: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}


def with_state(module: nn.Module, state: dict[str, Tensor]) -> nn.Module:
    """The module with parameters from a file, ready to predict."""
    _check_state(module, state)
    module.load_state_dict(state)
    return module.eval()


def _check_state(module: nn.Module, state: dict[str, Tensor]) -> None:
    """Refuse tensors that do not fit the module."""
    for name, own in module.state_dict().items():
        given = state.get(name)
        if given is None or given.shape != own.shape or given.dtype != own.dtype:
            raise SavedFileError(f"its {name} is not of shape {tuple(own.shape)} in {own.dtype}")
        if not given.isfinite().all():
            raise SavedFileError(f"its {name} is not finite")
