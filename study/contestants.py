"""The methods of the study by name: those of `scaml bench`, and the choices around ScaML-GP."""

from __future__ import annotations

from scaml.bench.contestants import Contestant
from scaml.bench.contestants import contestant as by_name
from study.choices import together

__all__ = ["contestant"]


def contestant(name: str) -> Contestant:
    """Find a method by its name in `scaml bench run`, or by the choices that it makes.

    Args:
        name: A name such as "gpbo" or "./mine.py:Mine"; or one or several choices, such as
            "kernel=matern52" or "kernel=matern52+sqrt-beta=2".

    Raises:
        SettingError: If there is no such method. The message names the most similar one.
    """
    if "=" in name and not name.partition(":")[0].endswith(".py"):
        method = together(name)
        return Contestant(name, method, repr(method))
    return by_name(name)
