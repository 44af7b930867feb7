"""The meta-learning methods, one file each, behind the interface of `scaml.methods.base`."""

from typing import TYPE_CHECKING

from scaml.common.lazy import lazy_names

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
    "ABLR": "methods.ablr",
    "FSBO": "methods.fsbo",
    "GC3P": "methods.gc3p",
    "GPBO": "methods.gpbo",
    "MTGP": "methods.mtgp",
    "RGPE": "methods.rgpe",
    "RMGPUCB": "methods.rm_gp_ucb",
    "SGPT": "methods.sgpt",
    "MetaPrior": "methods.base",
    "Method": "methods.base",
    "ScaML": "methods.scaml",
    "StackGP": "methods.stackgp",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
