"""The demonstration: regrets of noise-free values, repeatable, and a figure that is whole or absent."""

from __future__ import annotations

import dataclasses
import struct
from itertools import pairwise
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from scaml import SettingError
from scaml.bench import FAMILIES
from scaml.bench.demo import PLAIN, SCAML, DemoResult, draw, run_demo

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def result() -> DemoResult:
    return run_demo(FAMILIES["hartmann3"], 0, evaluations=4, tasks=3)


def test_regrets_fall_and_never_go_below_zero(result: DemoResult) -> None:
    assert list(result.regrets) == [SCAML, PLAIN]
    for regrets in result.regrets.values():
        assert len(regrets) == 4
        assert all(after <= before for before, after in pairwise(regrets))
        assert min(regrets) >= 0.0


def test_past_tasks_help(result: DemoResult) -> None:
    """Where all functions are alike, the very first point is better than all the plain GP's."""
    assert result.regrets[SCAML][0] < 0.5 * result.regrets[PLAIN][-1]


def test_weights_are_named_and_one_at_least_counts(result: DemoResult) -> None:
    assert list(result.weights) == ["hartmann3-0", "hartmann3-1", "hartmann3-2"]
    assert min(result.weights.values()) >= 0.0
    assert max(result.weights.values()) > 0.1


def test_seed_decides_everything() -> None:
    steps: list[tuple[str, int, int]] = []
    one = run_demo(
        FAMILIES["branin"],
        1,
        evaluations=2,
        tasks=2,
        progress=lambda what, done, total: steps.append((what, done, total)),
    )
    assert one == run_demo(FAMILIES["branin"], 1, evaluations=2, tasks=2)
    assert one != run_demo(FAMILIES["branin"], 2, evaluations=2, tasks=2)
    assert [done for _, done, _ in steps] == [0, 1, 2, 3, 4, 5]
    assert {total for _, _, total in steps} == {5}
    assert steps[0][0] == "Learning from the past tasks"


@pytest.mark.parametrize(
    ("evaluations", "tasks", "seed", "message"),
    [
        (0, 2, 0, "evaluations is 0; give an integer of at least 1"),
        (2, 0, 0, "meta-tasks is 0"),
        (2, 2, -1, "seed is -1"),
    ],
)
def test_bad_settings_are_refused(evaluations: int, tasks: int, seed: int, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        run_demo(FAMILIES["branin"], seed, evaluations=evaluations, tasks=tasks)


def test_figure_is_a_png_and_the_only_file(result: DemoResult, tmp_path: Path) -> None:
    path = tmp_path / "figure.png"
    path.write_bytes(b"an older one")
    draw(result, path)
    data = path.read_bytes()
    width, height = struct.unpack(">II", data[16:24])
    assert data.startswith(PNG)
    assert (width, height) == (1500, 630)
    assert list(tmp_path.iterdir()) == [path]


def test_figure_of_one_useless_task_and_of_no_regret(result: DemoResult, tmp_path: Path) -> None:
    edge = dataclasses.replace(
        result, weights={"only": 0.0}, regrets={SCAML: (0.0, 0.0), PLAIN: (1.0, 0.0)}
    )
    draw(edge, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(PNG)


def test_stopped_figure_leaves_nothing_behind(
    result: DemoResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = tmp_path / "figure.png"
    older.write_bytes(b"an older one")

    def stop(self: Figure, path: Path, **options: object) -> None:
        path.write_bytes(PNG)
        raise KeyboardInterrupt

    monkeypatch.setattr(Figure, "savefig", stop)
    with pytest.raises(KeyboardInterrupt):
        draw(result, older)
    assert older.read_bytes() == b"an older one"
    assert list(tmp_path.iterdir()) == [older]
