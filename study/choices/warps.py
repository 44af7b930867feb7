r"""Past values that are transformed before their GPs are fitted.

A GP assumes normal values, but losses of real tasks are not normal. "power" is the transformation of
Yeo and Johnson (2000) with its most likely exponent; "copula" uses ranks alone. Every task is
transformed by itself, in a way that does not depend on its units. The few values of the test-task do
not determine a transformation, so $y_t$ stays linear in z. Its units come from the past, by the line of
least squares $y_m \approx a_m + b_m z_m$.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from scipy import stats
from torch import Tensor

from scaml.errors import SettingError
from scaml.gp.gaussian_copula import gaussian_copula
from scaml.gp.units import standardize
from scaml.model.normalization import NormalizationName, SeenPast
from scaml.tasks.meta_data import MetaData
from study.choices.former_default import FormerDefault

__all__ = ["WarpName", "Warped", "power"]

WarpName = Literal["power", "copula"]
_CONSTANT = 0.5  # standardized values have standard deviation 1, unless they are constant


@dataclass(frozen=True)
class Warped(FormerDefault):
    """ScaML-GP with transformed values of the past.

    Args:
        normalization: Only "learned": the scale of y_t in units of the transformed values is not known.
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
                f"normalization is {self.normalization!r}, which does not work with transformed "
                "values; choose 'learned'."
            )

    def seen(self, meta: MetaData) -> SeenPast:
        """Transformed values; levels are those of the transformed values, in the units of y."""
        bend = power if self.warp == "power" else gaussian_copula
        bent = [bend(task.y) for task in meta]
        lines = [_along_the_line(task.y, z) for task, z in zip(meta, bent, strict=True)]
        return SeenPast(meta, meta.with_values(bent), lines)


def power(y: Tensor) -> Tensor:
    """Yeo and Johnson's transformation of standardized y; 0 if y is constant up to rounding."""
    units = standardize(y)
    z = (y - units.offset) / units.scale
    if z.std() < _CONSTANT:
        return torch.zeros_like(y)
    bent, _ = stats.yeojohnson(z.numpy())
    return torch.from_numpy(bent)


def _along_the_line(y: Tensor, z: Tensor) -> Tensor:
    """The values of the least-squares line of y over z."""
    apart = z - z.mean()
    if not apart.any():
        return y.mean().expand_as(y)
    return y.mean() + (apart * (y - y.mean())).sum() / apart.square().sum() * apart
