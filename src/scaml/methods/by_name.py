"""`method_named`: one of our methods by its name, with its default settings."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from scaml.common.wording import nearest
from scaml.errors import SettingError
from scaml.methods.base import Method

__all__ = ["METHOD_NAMES", "method_named"]

# The module of each method, and how to make the method from this module: no other module is imported.
_MAKERS: dict[str, tuple[str, Callable[[Any], Method]]] = {
    "scaml": ("scaml", lambda module: module.ScaML()),
    "scaml-ucb": ("scaml", lambda module: module.ScaML(acquisition="ucb")),
    "scaml-paper": ("scaml", lambda module: module.ScaML.paper()),
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
}

METHOD_NAMES = tuple(_MAKERS)
"""The ten methods by their class names in lower case, and three of them with other settings:
`scaml-ucb` with the acquisition function UCB, `scaml-paper` with the paper's settings, `gpbo-nei` with
noisy expected improvement."""


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
