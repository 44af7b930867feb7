"""The choices of the ablation: each changes one thing of `BASE`.

`BASE` has weights near a common value, and the acquisition function of the paper and of all compared
methods, UCB. The study began with it. It ended with noisy expected improvement, `acquisition=nei`. This
method, the former default, is called `scaml-shared`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, get_args

from scaml.common.wording import nearest
from scaml.errors import SettingError
from scaml.methods.by_name import method_named
from scaml.methods.scaml import ScaML
from study.choices.acquisitions import Acquiring, RuleName
from study.choices.laplace import Integrated, Searching
from study.choices.warps import Warped, WarpName
from study.choices.weights import PriorName, Weighted

__all__ = ["BASE", "Choice", "choices", "together"]

# Spelled out, so that stored results keep their meaning if a default changes.
BASE = ScaML(
    kernel="se",
    normalization="clipped",
    weights="shared",
    acquisition="ucb",
    sqrt_beta=3.0,
    residual="past",
)
# Settings of one factor: noisy expected improvement has no √β.
_ALIKE = {"sqrt_beta": "acquisition"}


@dataclass(frozen=True)
class Choice:
    """A method that differs from `BASE` in one thing.

    Args:
        factor: What is changed, such as "kernel".
        value: The new value, such as "matern52".
        method: The method with this value.
    """

    factor: str
    value: str
    method: ScaML

    @property
    def name(self) -> str:
        """The name of the method in results."""
        return f"{self.factor}={self.value}"


def choices() -> dict[str, Choice]:
    """All choices by name, in a fixed order, without those that have another name as well."""
    named = [method_named(name) for name in ("scaml", "scaml-shared")]
    return {name: choice for name, choice in _known().items() if choice.method not in named}


def together(name: str) -> ScaML:
    """The method that makes one or several choices, as in "kernel=matern52+sqrt-beta=2".

    Raises:
        SettingError: If there is no such choice, or two of them cannot be combined.
    """
    known, usual = _known(), vars(BASE)
    kind, settings, changed = ScaML, dict[str, Any](usual), set[str]()
    for part in name.split("+"):
        if part not in known:
            raise SettingError(
                f"There is no choice {part!r}; did you mean {nearest(part, known)!r}? The method that "
                "all choices are compared with is called scaml-ucb."
            )
        method = known[part].method
        own = {key: value for key, value in vars(method).items() if usual.get(key) != value}
        factors = {_ALIKE.get(key, key) for key in own}
        if changed & factors or (kind is not ScaML and type(method) is not ScaML):
            raise SettingError(
                f"The choice {part!r} cannot be combined with another of {name!r}; leave one out."
            )
        kind = kind if type(method) is ScaML else type(method)
        changed |= factors
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
    for rule in get_args(RuleName):
        if rule != "ucb":
            yield Choice("acquisition", rule, Acquiring(**settings, rule=rule))
    yield Choice("acquisition", "nei", replace(BASE, acquisition="lognei"))
    yield Choice("first", "mean", Acquiring(**settings, first="mean"))
    for starts in (1, 20):
        yield Choice("starts", f"{starts}", Searching(**settings, starts=starts))
    yield Choice("hyperparameters", "laplace", Integrated(**settings))
