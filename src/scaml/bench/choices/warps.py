r"""Past values that are bent before their GPs are fitted.

A GP takes values for normal; losses of real tasks are not. "power" is the transformation of Yeo and
Johnson (2000) with its most likely exponent, "copula" goes by ranks alone. Every task is bent by
itself, and in a way that does not depend on its units. The test-task's few values do not say how to
bend them: $y_t$ stays linear in z, in units that the past gives by the line
$y_m \approx a_m + b_m z_m$ of least squares.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import torch
from scipy import stats
from torch import Tensor

from scaml.errors import SettingError
from scaml.gp.gaussian_copula import gaussian_copula
from scaml.gp.task_gps import TaskGPs
from scaml.gp.units import standardize
from scaml.methods.scaml import ScaML, ScaMLPrior
from scaml.model.normalization import Levels, NormalizationName
from scaml.tasks.meta_data import MetaData

__all__ = ["WarpName", "Warped", "power"]

WarpName = Literal["power", "copula"]
_CONSTANT = 0.5  # standardized values have deviation 1, unless they are constant


@dataclass(frozen=True)
class Warped(ScaML):
    """ScaML-GP that sees bent values of the past.

    Args:
        normalization: "learned" and no other: how y_t scales with the bent values has to be found out.
        warp: "power" or "copula".
    """

    normalization: NormalizationName = "learned"
    warp: WarpName = "power"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.warp not in get_args(WarpName):
            raise SettingError(f"warp is {self.warp!r}; choose 'power' or 'copula'.")
        if self.normalization != "learned":
            raise SettingError(
                f"normalization is {self.normalization!r}, which bent values cannot have; choose "
                "'learned'."
            )

    def seen(self, meta: MetaData) -> MetaData:
        """With bent values."""
        bend = power if self.warp == "power" else gaussian_copula
        return meta.with_values([bend(task.y) for task in meta])

    def prior(self, meta: MetaData, task_gps: TaskGPs) -> ScaMLPrior:
        """Its levels are those of the bent values, put back into the units of y."""
        pairs = zip(meta, self.seen(meta), strict=True)
        levels = Levels.of([_along_the_line(task.y, bent.y) for task, bent in pairs])
        return replace(super().prior(meta, task_gps), levels=levels)


def power(y: Tensor) -> Tensor:
    """Yeo and Johnson's transformation of standardized y; of values constant up to rounding, 0."""
    units = standardize(y)
    z = (y - units.offset) / units.scale
    if z.std() < _CONSTANT:
        return torch.zeros_like(y)
    bent, _ = stats.yeojohnson(z.numpy())
    return torch.from_numpy(bent)


def _along_the_line(y: Tensor, z: Tensor) -> Tensor:
    """y as the line of least squares over z has it."""
    apart = z - z.mean()
    if not apart.any():
        return y.mean().expand_as(y)
    return y.mean() + (apart * (y - y.mean())).sum() / apart.square().sum() * apart
