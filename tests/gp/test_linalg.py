from __future__ import annotations

import pytest
import torch
from torch import Tensor

from scaml.errors import FitError
from scaml.gp.linalg import (
    cholesky,
    inverse_and_half_log_det,
    inverse_of_lower,
    square_root,
)


def positive_definite(*batch: int, n: int = 6, seed: int = 0) -> Tensor:
    A = torch.randn(*batch, n, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return A @ A.mT + 0.1 * torch.eye(n, dtype=torch.float64)


def singular(n: int = 6, scale: float = 1.0) -> Tensor:
    """A kernel matrix of n equal rows, pushed below definiteness by a rounding error."""
    K = torch.ones(n, n, dtype=torch.float64)
    K.diagonal().sub_(1e-12)
    return scale * K


@pytest.mark.parametrize("batch", [(), (4,), (2, 3)])
def test_a_positive_definite_matrix_gets_torchs_factor(batch: tuple[int, ...]) -> None:
    K = positive_definite(*batch)
    before = K.clone()
    assert torch.equal(cholesky(K, "task 'a'"), torch.linalg.cholesky(K))
    assert torch.equal(K, before)


def test_no_rows_have_an_empty_factor() -> None:
    assert cholesky(torch.empty(0, 0, dtype=torch.float64), "the test-task").shape == (0, 0)
    assert cholesky(torch.empty(3, 0, 0, dtype=torch.float64), "the test-task").shape == (3, 0, 0)


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_a_rounding_error_is_met_with_a_little_jitter_relative_to_the_matrix(scale: float) -> None:
    K = singular(scale=scale)
    assert torch.linalg.cholesky_ex(K)[1] != 0
    L = cholesky(K, "task 'a'")
    assert torch.equal(L, L.tril())
    torch.testing.assert_close(L @ L.mT, K, rtol=0.0, atol=1.01e-10 * scale)


def test_jitter_grows_until_it_is_enough() -> None:
    K = singular()
    K.diagonal().sub_(5e-8)  # more than the first two shares can lift
    L = cholesky(K, "task 'a'")
    error = (L @ L.mT - K).abs().max().item()
    assert 1e-8 < error < 1.01e-6


def test_jitter_reaches_only_the_matrix_that_fails() -> None:
    good = positive_definite(4)
    K = good.clone()
    K[2] = singular()
    L = cholesky(K, "task 'a'")
    others = [0, 1, 3]
    assert torch.equal(L[others], torch.linalg.cholesky(good)[others])
    torch.testing.assert_close(L[2] @ L[2].mT, K[2], rtol=0.0, atol=1.01e-10)


@pytest.mark.parametrize("lift", [5e-9, 5e-8])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_matrices_that_need_different_jitter_each_get_the_least_that_helps(
    lift: float, order: tuple[int, int]
) -> None:
    """One needs the first share, the other the second or the third."""
    worse = singular()
    worse.diagonal().sub_(lift)
    K = torch.stack([singular(), worse])
    together = cholesky(K[list(order)], "task 'a'")
    alone = torch.stack([cholesky(K[i], "task 'a'") for i in order])
    assert torch.equal(together, alone)


@pytest.mark.parametrize("batch", [(), (3,)])
def test_an_indefinite_matrix_is_refused_by_name(batch: tuple[int, ...]) -> None:
    K = positive_definite(*batch)
    K[..., 3, 3] -= 1e3
    with pytest.raises(FitError, match="task 'adult'") as caught:
        cholesky(K, "task 'adult'")
    message = str(caught.value)
    assert message.endswith(".")
    assert "; " in message
    assert "1e-06" in message


def test_one_indefinite_matrix_of_a_batch_is_enough_to_refuse() -> None:
    K = positive_definite(3)
    K[1] = -K[1]
    with pytest.raises(FitError, match="the test-task"):
        cholesky(K, "the test-task")


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("place", [(0, 0), (5, 5), (5, 0), (3, 2)])
@pytest.mark.parametrize("n", [6, 200])
def test_a_matrix_that_is_not_finite_is_refused_by_name(
    bad: float, place: tuple[int, int], n: int
) -> None:
    K = positive_definite(n=n)
    K[place] = K[place[::-1]] = bad
    with pytest.raises(FitError, match="task 'adult'"):
        cholesky(K, "task 'adult'")


@pytest.mark.parametrize("n", [1, 8, 71, 127, 128, 129, 192])
def test_inverse_and_determinant_are_those_of_torch(n: int) -> None:
    K = positive_definite(3, n=n)
    before = K.clone()
    inverse, half_log_det, info = inverse_and_half_log_det(K)
    torch.testing.assert_close(inverse, torch.linalg.inv(K), rtol=1e-8, atol=1e-9)
    torch.testing.assert_close(half_log_det, 0.5 * torch.logdet(K), rtol=1e-12, atol=1e-12)
    assert (info == 0).all()
    assert torch.equal(K, before)


@pytest.mark.parametrize("n", [8, 72, 128, 192])
def test_an_inverse_does_not_feel_its_neighbours(n: int) -> None:
    """Bit for bit, also in a batch of one."""
    K = positive_definite(5, n=n)
    together = inverse_and_half_log_det(K)
    for i in range(5):
        for ours, theirs in zip(inverse_and_half_log_det(K[i : i + 1]), together, strict=True):
            assert torch.equal(ours[0], theirs[i])


@pytest.mark.parametrize("broken", [3, 100])
def test_a_matrix_that_is_not_positive_definite_is_told_from_the_others(broken: int) -> None:
    """Whichever block it breaks in."""
    K = positive_definite(3, n=120)
    K[1, broken, broken] = -1.0
    inverse, _, info = inverse_and_half_log_det(K)
    assert (info != 0).tolist() == [False, True, False]
    torch.testing.assert_close(inverse[2], torch.linalg.inv(K[2]), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("n", [6, 80])
def test_a_zero_pivot_does_not_end_the_batch(n: int) -> None:
    K = positive_definite(2, n=n)
    K[1] = 0.0
    inverse, _, info = inverse_and_half_log_det(K)
    assert (info != 0).tolist() == [False, True]
    torch.testing.assert_close(inverse[0], torch.linalg.inv(K[0]), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("batch", [(), (4,), (2, 3)])
@pytest.mark.parametrize("n", [1, 6, 80])
def test_the_inverse_of_a_lower_factor(batch: tuple[int, ...], n: int) -> None:
    L = torch.linalg.cholesky(positive_definite(*batch, n=n))
    inverse = inverse_of_lower(L)
    assert inverse.shape == L.shape
    assert torch.equal(inverse, inverse.tril())
    identity = torch.eye(n, dtype=torch.float64).expand_as(L)
    torch.testing.assert_close(inverse @ L, identity, rtol=0.0, atol=1e-8)


def test_the_inverse_of_an_empty_factor_is_empty() -> None:
    assert inverse_of_lower(torch.empty(3, 0, 0, dtype=torch.float64)).shape == (3, 0, 0)


def test_a_square_root_is_the_cholesky_factor_where_there_is_one() -> None:
    S = positive_definite()
    assert torch.equal(square_root(S), torch.linalg.cholesky(S))


@pytest.mark.parametrize("error", [1e-12, 1e-3])
def test_a_square_root_takes_negative_eigenvalues_for_0(error: float) -> None:
    S = torch.ones(6, 6, dtype=torch.float64)
    S.diagonal().sub_(error)
    R = square_root(S)
    torch.testing.assert_close(R @ R.mT, torch.ones_like(S), rtol=0.0, atol=2.0 * error)
