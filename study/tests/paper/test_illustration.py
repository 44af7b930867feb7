"""Figure 1: its numbers against the dense joint GP of all tasks, and what is drawn of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scaml import SettingError
from scaml.methods import ScaML
from scaml.methods.scaml import ScaMLPrior
from scaml.model.scaml_gp import ScaMLGP
from study.paper.illustration import Illustration, build, compute, draw
from tests.oracles import GP, Array, JointGP, kernel_matrix


@pytest.fixture(scope="module")
def numbers() -> Illustration:
    return compute(0)


@pytest.fixture(scope="module")
def fitted(numbers: Illustration) -> tuple[ScaMLPrior, ScaMLGP]:
    prior = ScaML.paper().meta_fit(numbers.meta, seed=0)
    return prior, prior.condition(numbers.task, seed=0)


def standardized(y: Array) -> Array:
    return np.asarray((y - y.mean()) / y.std(ddof=1))


def joint(numbers: Illustration, prior: ScaMLPrior, model: ScaMLGP, *, data: bool) -> JointGP:
    """All tasks in one dense GP, with the test data or without."""
    gps = prior.task_gps
    n = numbers.task.n if data else 0
    z = (numbers.task.y.numpy() - float(model.y_offset)) / float(model.y_scale)
    return JointGP(
        kernel="se",
        meta=[
            GP(gps.lengthscale[m].numpy(), float(gps.outputscale[m]), float(gps.noise[m]))
            for m in range(len(gps))
        ],
        residual=GP(model.lengthscale.numpy(), float(model.outputscale), float(model.noise)),
        weights=model.weights.numpy(),
        X_meta=[task.X.numpy() for task in numbers.meta],
        z_meta=[standardized(task.y.numpy()) for task in numbers.meta],
        X_test=numbers.task.X.numpy()[:n],
        z_test=z[:n],
    )


def test_prior_is_the_joint_gp_given_the_meta_data(
    numbers: Illustration, fitted: tuple[ScaMLPrior, ScaMLGP]
) -> None:
    model = fitted[1]
    mean, covariance = joint(numbers, *fitted, data=False).posterior(numbers.x[:, None])
    offset, scale = float(model.y_offset), float(model.y_scale)
    np.testing.assert_allclose(numbers.prior_mean, offset + scale * mean, atol=1e-7)
    np.testing.assert_allclose(numbers.variances.sum(0), scale**2 * covariance.diagonal(), atol=1e-7)


def test_posterior_is_the_joint_gp_given_all_data(
    numbers: Illustration, fitted: tuple[ScaMLPrior, ScaMLGP]
) -> None:
    model = fitted[1]
    mean, covariance = joint(numbers, *fitted, data=True).posterior(numbers.x[:, None])
    offset, scale = float(model.y_offset), float(model.y_scale)
    np.testing.assert_allclose(numbers.mean, offset + scale * mean, atol=1e-6)
    np.testing.assert_allclose(numbers.deviation**2, scale**2 * covariance.diagonal(), atol=1e-7)


def test_meta_tasks_and_their_shares(numbers: Illustration, fitted: tuple[ScaMLPrior, ScaMLGP]) -> None:
    prior, model = fitted
    gps, Q = prior.task_gps, numbers.x[:, None]
    np.testing.assert_array_equal(numbers.weights, model.weights.numpy())
    for m, task in enumerate(numbers.meta):
        X, y = task.X.numpy(), task.y.numpy()
        scales = gps.lengthscale[m].numpy(), float(gps.outputscale[m])
        K = kernel_matrix("se", X, X, *scales) + float(gps.noise[m]) * np.eye(len(X))
        k = kernel_matrix("se", X, Q, *scales)
        mean = k.T @ np.linalg.solve(K, standardized(y))
        variance = scales[1] - (k * np.linalg.solve(K, k)).sum(0)
        np.testing.assert_allclose(numbers.task_mean[m], y.mean() + y.std(ddof=1) * mean, atol=1e-7)
        np.testing.assert_allclose(numbers.task_deviation[m] ** 2, y.var(ddof=1) * variance, atol=1e-7)
        share = (float(model.y_scale) * numbers.weights[m]) ** 2 * variance
        np.testing.assert_allclose(numbers.variances[m], share, atol=1e-7)
    residual = float(model.y_scale) ** 2 * float(model.outputscale)
    np.testing.assert_allclose(numbers.variances[-1], residual)


def test_the_figure_shows_what_the_paper_says(numbers: Illustration) -> None:
    assert (numbers.weights > 0.1).sum() >= 2
    # The prior is wide where tasks that weigh have no data, and narrow between them.
    total = numbers.variances.sum(0)
    begin, middle, end = (np.abs(numbers.x - x).argmin() for x in (0.0, 0.5, 1.0))
    assert min(total[begin], total[end]) > 4.0 * total[middle]
    # Both the tasks and the residual kernel can be seen.
    largest = (numbers.variances / total).max(1)
    assert (largest[:-1] > 0.5).sum() >= 2
    assert largest[-1] > 0.5
    # Data narrow the posterior, and the truth lies in it.
    off = np.abs(numbers.mean - numbers.truth)
    assert (numbers.deviation < np.sqrt(total)).all()
    assert off.mean() < 0.5 * np.abs(numbers.prior_mean - numbers.truth).mean()
    assert (off < 2.0 * numbers.deviation).mean() > 0.8


def test_seed_decides_everything() -> None:
    one, two, other = compute(3), compute(3), compute(4)
    for name in ("truth", "weights", "prior_mean", "variances", "mean", "deviation"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert not np.array_equal(one.truth, other.truth)
    with pytest.raises(SettingError, match="seed is -1"):
        compute(-1)


def test_panels(numbers: Illustration) -> None:
    figure = build(numbers)
    left, middle, right = figure.axes
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "meta-tasks' posteriors",
        "test-task prior",
        "test-task posterior",
    ]
    # Mean and data of every task.
    assert len(left.lines) == 6
    assert left.lines[1].get_ydata() == pytest.approx(numbers.meta[0].y.numpy())
    assert middle.lines[0].get_ydata() == pytest.approx(numbers.prior_mean)
    assert [line.get_ydata() for line in right.lines] == [
        pytest.approx(numbers.mean),
        pytest.approx(numbers.truth),
        pytest.approx(numbers.task.y.numpy()),
    ]


def test_shades_fill_the_band_of_the_prior(numbers: Illustration) -> None:
    """From the mean outwards, each as high as its share of the variance: together two deviations."""
    middle = build(numbers).axes[1]
    i = 0
    heights = []
    for shade in middle.collections:
        vertices = np.concatenate([np.asarray(path.vertices) for path in shade.get_paths()])
        at = vertices[vertices[:, 0] == numbers.x[i], 1]
        heights.append(at.max() - at.min())
    total = numbers.variances[:, i].sum()
    shares = numbers.variances[[-1, 0, 1, 2], i] / total
    assert heights[::2] == pytest.approx(heights[1::2])  # below the mean, and above
    assert heights[1::2] == pytest.approx(2.0 * np.sqrt(total) * shares)


def test_files(tmp_path: Path) -> None:
    paths = draw(tmp_path / "new", seed=1)
    assert [path.name for path in paths] == ["illustration.png", "illustration.pdf"]
    assert paths[0].read_bytes().startswith(b"\x89PNG")
    assert paths[1].read_bytes().startswith(b"%PDF")


def test_nothing_is_cut_off(numbers: Illustration) -> None:
    figure = build(numbers)
    figure.draw_without_rendering()
    width, height = figure.canvas.get_width_height()
    legend = figure.legends[0].get_window_extent()
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    for box in (*boxes, legend):
        assert box is not None
        assert min(box.x0, box.y0) >= 0.0
        assert box.x1 <= width
        assert box.y1 <= height
        assert box is legend or not box.overlaps(legend)
