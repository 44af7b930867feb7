"""The grids against the numbers that the paper's appendix prints, and the order of their rows."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from scaml.bench.grids import GRIDS, kept_rows, ranks

_POWERS_OF_TWO = (
    "0.0009 0.0019 0.0039 0.0078 0.0156 0.0312 0.0625 0.125 0.25 0.5 1.0 2.0 4.0 8.0 16.0 32.0 64.0 "
    "128.0 256.0 512.0 1024.0"
)
_POWERS_OF_TEN = (
    "0.000009 0.000016 0.000026 0.000042 0.000068 0.000110 0.000177 0.000287 0.000464 0.000749 "
    "0.001211 0.001957 0.003162 0.005108 0.008254 0.013335 0.021544 0.034807 0.056234 0.090851 "
    "0.146779 0.237137 0.383118 0.618965 1.0"
)
_DEPTHS = "1.0 2.0 3.0 5.0 8.0 13.0 20.0 32.0 50.0"
# Model: the number of decimal places after which the appendix truncates, and what it prints.
PRINTED = {
    "svm": (4, {"C": _POWERS_OF_TWO, "gamma": _POWERS_OF_TWO}),
    "lr": (6, {"alpha": _POWERS_OF_TEN, "eta0": _POWERS_OF_TEN}),
    "rf": (
        3,
        {
            "max_depth": _DEPTHS,
            "max_features": "0.0 0.111 0.222 0.333 0.444 0.555 0.666 0.777 0.888 1.0",
            "min_samples_leaf": "1.0 3.0 5.0 7.0 9.0 11.0 13.0 15.0 17.0 20.0",
            "min_samples_split": "2.0 3.0 5.0 8.0 12.0 20.0 32.0 50.0 80.0 128.0",
        },
    ),
    "xgb": (
        4,
        {
            "colsample_bytree": "0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1.0",
            "eta": "0.0009 0.0021 0.0045 0.0098 0.0212 0.0459 0.0992 0.2143 0.4629 1.0",
            "max_depth": _DEPTHS,
            "reg_lambda": "0.0009 0.0045 0.0212 0.0992 0.4629 2.1601 10.0793 47.0315 219.4544 1024.0",
        },
    ),
}
every_model = pytest.mark.parametrize("model", list(PRINTED))


@every_model
def test_values_are_those_that_the_paper_prints(model: str) -> None:
    places, printed = PRINTED[model]
    assert list(GRIDS[model]) == list(printed)
    for name, numbers in printed.items():
        values = GRIDS[model][name]
        assert len(values) == len(numbers.split())
        for value, number in zip(values, map(float, numbers.split()), strict=True):
            # Truncated, not rounded; 0.000009 is a 0.00001 that came out low.
            assert number <= value * (1 + 1e-9)
            assert value * (1 - 1e-9) < number + 10.0**-places


@pytest.mark.parametrize(
    ("model", "name", "scale", "ends"),
    [
        ("svm", "C", np.log2, (-10, 10)),
        ("svm", "gamma", np.log2, (-10, 10)),
        ("lr", "alpha", np.log10, (-5, 0)),
        ("lr", "eta0", np.log10, (-5, 0)),
        ("rf", "max_features", np.positive, (0, 1)),
        ("xgb", "colsample_bytree", np.positive, (0.1, 1)),
        ("xgb", "eta", np.log2, (-10, 0)),
        ("xgb", "reg_lambda", np.log2, (-10, 10)),
    ],
)
def test_the_digits_that_are_not_printed_make_steps_even(
    model: str, name: str, scale: np.ufunc, ends: tuple[float, float]
) -> None:
    values = scale(GRIDS[model][name])
    assert (values[0], values[-1]) == pytest.approx(ends, rel=1e-12)
    assert np.diff(values) == pytest.approx((ends[1] - ends[0]) / (len(values) - 1), rel=1e-12)


def test_small_grids_are_kept_whole_and_large_ones_in_part() -> None:
    assert {model: math.prod(map(len, grid.values())) for model, grid in GRIDS.items()} == {
        "svm": 441,
        "lr": 625,
        "rf": 9000,
        "xgb": 9000,
    }
    assert np.array_equal(kept_rows(GRIDS["svm"]), np.arange(441))
    assert np.array_equal(kept_rows(GRIDS["lr"]), np.arange(625))
    for model in ("rf", "xgb"):
        rows = kept_rows(GRIDS[model])
        assert rows.shape == (1000,)
        assert (np.diff(rows) > 0).all()
        assert 0 <= rows[0] < 100
        assert 8900 < rows[-1] < 9000
        assert np.array_equal(rows, kept_rows(GRIDS[model]))
    # A table that was built before must go on matching.
    assert kept_rows(GRIDS["rf"])[:5].tolist() == [2, 21, 30, 43, 45]


def test_every_value_is_among_the_kept_rows() -> None:
    for model, grid in GRIDS.items():
        rank = ranks(grid, kept_rows(grid))
        for i, values in enumerate(grid.values()):
            assert np.unique(rank[:, i]).tolist() == list(range(len(values))), model


def test_ranks_count_the_rows_through_with_the_last_parameter_fastest() -> None:
    grid = {"a": (0.0, 1.0), "b": (3.0,), "c": (1.0, 2.0, 4.0)}
    product = list(itertools.product(range(2), range(1), range(3)))
    assert ranks(grid, np.arange(6)).tolist() == [list(row) for row in product]
    assert ranks(grid, np.array([4, 0])).tolist() == [[1, 0, 1], [0, 0, 0]]
    assert ranks(grid, np.array([], dtype=np.int64)).shape == (0, 3)
