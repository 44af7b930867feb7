"""The choices of an ablation study: one thing at a time is done otherwise than by `BASE`.

`BASE` is the default with the acquisition function of the paper and of all compared methods: the study
began with it, and noisy expected improvement, `acquisition=nei`, is the choice that it ended with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, get_args

from scaml.bench.choices.acquisitions import Acquiring, AcquisitionName
from scaml.bench.choices.laplace import Integrated, Searching
from scaml.bench.choices.warps import Warped, WarpName
from scaml.bench.choices.weights import PriorName, Weighted
from scaml.common.wording import nearest
from scaml.errors import SettingError
from scaml.methods.scaml import ScaML

__all__ = ["BASE", "Choice", "choices", "together"]

BASE = ScaML(acquisition="ucb")


@dataclass(frozen=True)
class Choice:
    """A method that differs from `BASE` in one thing.

    Args:
        factor: What is done otherwise.
        value: How.
        method: Who does it.
    """

    factor: str
    value: str
    method: ScaML

    @property
    def name(self) -> str:
        """The name that its results go by."""
        return f"{self.factor}={self.value}"


def choices() -> dict[str, Choice]:
    """All of them by name, in a fixed order; `BASE` and the default have names of their own."""
    return {name: choice for name, choice in _known().items() if choice.method != ScaML()}


def together(name: str) -> ScaML:
    """The method that makes one or several choices, as in "kernel=matern52+sqrt-beta=2".

    Raises:
        SettingError: If there is no such choice, or two of them do not go together.
    """
    known, usual = _known(), vars(BASE)
    kind, settings, changed = ScaML, dict[str, Any](usual), set[str]()
    for part in name.split("+"):
        if part not in known:
            raise SettingError(
                f"There is no choice {part!r}; did you mean {nearest(part, known)!r}? What all choices "
                "are compared with is called scaml-ucb."
            )
        method = known[part].method
        own = {key: value for key, value in vars(method).items() if usual.get(key) != value}
        if changed & set(own) or (kind is not ScaML and type(method) is not ScaML):
            raise SettingError(
                f"The choice {part!r} does not go together with another of {name!r}; leave one out."
            )
        kind = kind if type(method) is ScaML else type(method)
        changed |= set(own)
        settings |= own
    return kind(**settings)


def _known() -> dict[str, Choice]:
    return {choice.name: choice for choice in _all() if choice.method != BASE}


def _all() -> Iterator[Choice]:
    settings: dict[str, Any] = vars(BASE)
    for normalization in ("union", "pooled", "level", "learned", "clipped"):
        yield Choice("normalization", normalization, replace(BASE, normalization=normalization))
    for warp in get_args(WarpName):
        yield Choice("warping", warp, Warped(**settings | {"normalization": "learned"}, warp=warp))
    for weights in ("positive", "signed", "shared"):
        yield Choice("weights", weights, replace(BASE, weights=weights))
    for name in get_args(PriorName):
        yield Choice("weights", name, Weighted(**settings, prior_name=name))
    for residual in ("past", "paper"):
        yield Choice("residual", residual, replace(BASE, residual=residual))
    yield Choice("kernel", "matern52", replace(BASE, kernel="matern52"))
    for sqrt_beta in (1, 2, 3, 5):
        yield Choice("sqrt-beta", f"{sqrt_beta}", replace(BASE, sqrt_beta=float(sqrt_beta)))
    for acquisition in get_args(AcquisitionName):
        if acquisition != "ucb":
            yield Choice("acquisition", acquisition, Acquiring(**settings, acquisition=acquisition))
    yield Choice("acquisition", "nei", replace(BASE, sqrt_beta=None))
    yield Choice("first", "mean", Acquiring(**settings, first="mean"))
    for starts in (1, 20):
        yield Choice("starts", f"{starts}", Searching(**settings, starts=starts))
    yield Choice("hyperparameters", "laplace", Integrated(**settings))
