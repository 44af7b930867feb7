"""The meta-learning methods, one file each, behind the interface of `scaml.methods.base`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scaml.methods.ablr import ABLR
    from scaml.methods.base import MetaPrior, Method
    from scaml.methods.fsbo import FSBO
    from scaml.methods.gc3p import GC3P
    from scaml.methods.gpbo import GPBO
    from scaml.methods.mtgp import MTGP
    from scaml.methods.rgpe import RGPE
    from scaml.methods.rm_gp_ucb import RMGPUCB
    from scaml.methods.scaml import ScaML
    from scaml.methods.sgpt import SGPT
    from scaml.methods.stackgp import StackGP

__all__ = [
    "ABLR",
    "FSBO",
    "GC3P",
    "GPBO",
    "MTGP",
    "RGPE",
    "RMGPUCB",
    "SGPT",
    "MetaPrior",
    "Method",
    "ScaML",
    "StackGP",
]

# Each module is imported when its method is first asked for: one method does not load the other nine.
_HOMES = {
    "ABLR": "ablr",
    "FSBO": "fsbo",
    "GC3P": "gc3p",
    "GPBO": "gpbo",
    "MTGP": "mtgp",
    "RGPE": "rgpe",
    "RMGPUCB": "rm_gp_ucb",
    "SGPT": "sgpt",
    "MetaPrior": "base",
    "Method": "base",
    "ScaML": "scaml",
    "StackGP": "stackgp",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'scaml.methods' has no attribute {name!r}")
    value = getattr(import_module(f"scaml.methods.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
