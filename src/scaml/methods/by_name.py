"""`method_named`: one of our methods by its name, with its default settings."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from scaml.common.wording import nearest
from scaml.errors import SettingError
from scaml.methods.base import Method

__all__ = ["METHOD_NAMES", "method_named"]

# Spelled out, so that the method stays the same if a default changes.
_SHARED = {
    "kernel": "se",
    "normalization": "clipped",
    "weights": "shared",
    "acquisition": "lognei",
    "sqrt_beta": 3.0,
    "residual": "past",
}
# The module of each method, and how to make the method from this module: no other module is imported.
_MAKERS: dict[str, tuple[str, Callable[[Any], Method]]] = {
    "scaml": ("scaml", lambda module: module.ScaML()),
    "scaml-ucb": ("scaml", lambda module: module.ScaML(**_SHARED | {"acquisition": "ucb"})),
    "scaml-paper": ("scaml", lambda module: module.ScaML.paper()),
    "scaml-shared": ("scaml", lambda module: module.ScaML(**_SHARED)),
    "scaml-explained": ("scaml", lambda module: module.ScaML(weights="explained")),
    "gpbo": ("gpbo", lambda module: module.GPBO()),
    "rgpe": ("rgpe", lambda module: module.RGPE()),
    "sgpt": ("sgpt", lambda module: module.SGPT()),
    "stackgp": ("stackgp", lambda module: module.StackGP()),
    "ablr": ("ablr", lambda module: module.ABLR()),
    "rmgpucb": ("rm_gp_ucb", lambda module: module.RMGPUCB()),
    "fsbo": ("fsbo", lambda module: module.FSBO()),
    "gc3p": ("gc3p", lambda module: module.GC3P()),
    "mtgp": ("mtgp", lambda module: module.MTGP()),
    "gpbo-nei": ("gpbo", lambda module: module.GPBO(acquisition="lognei")),
    "gpbo-nei-matern52": (
        "gpbo",
        lambda module: module.GPBO(kernel="matern52", acquisition="lognei"),
    ),
}

METHOD_NAMES = tuple(_MAKERS)
"""The ten methods by their class names in lower case, and two of them with other settings:
`scaml-shared` is the former default, one model with the squared-exponential kernel, `scaml-ucb` the
same with the acquisition function UCB, `scaml-explained` always averages over explanations,
`scaml-paper` has the paper's settings, `gpbo-nei` noisy expected improvement, and `gpbo-nei-matern52` a
Matérn kernel as well."""


def method_named(name: str) -> Method:
    """The method with this name.

    Args:
        name: One of `METHOD_NAMES`.

    Raises:
        SettingError: If there is no such method; the message names the nearest one.
    """
    if name not in _MAKERS:
        raise SettingError(
            f"There is no method {name!r}; did you mean {nearest(name, METHOD_NAMES)!r}? A method of "
            "your own is named by its file and class, as in ./mine.py:Mine."
        )
    module, make = _MAKERS[name]
    return make(import_module(f"scaml.methods.{module}"))
