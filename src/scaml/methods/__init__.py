"""The meta-learning methods, one file each, behind the interface of `scaml.methods.base`."""

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
