"""prior.save and load: a prior from a file is the prior, to the last bit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from scaml import MetaData, ScaML, suggest
from scaml.common.tensor_file import read
from scaml.methods.base import Method
from scaml.methods.gpbo import GPBO
from scaml.priors.load import load
from scaml.spaces.space import Space
from tests.cases import meta_data, task_of
from tests.loading_cases import META, SPACE, assert_same_gps, points

METHODS = [
    ScaML(),
    ScaML("matern52", "union", "signed", "ucb", 2.5),
    GPBO(),
    GPBO("matern52", sqrt_beta=1),
]
NEW = task_of(3, 3)


@pytest.mark.parametrize("method", METHODS, ids=str)
@pytest.mark.parametrize("space", [None, SPACE], ids=["no space", "space"])
def test_a_loaded_prior_is_the_saved_one(tmp_path: Path, method: Method, space: Space | None) -> None:
    prior = method.meta_fit(META, seed=1)
    if space is not None:
        prior = prior.in_space(space)
    prior.save(tmp_path / "p")
    loaded = load(tmp_path / "p")
    assert type(loaded) is type(prior)
    assert loaded.method == method
    assert loaded.space == space
    assert loaded.names == prior.names
    assert loaded.d == prior.d
    for mine, other in zip(loaded.meta, META, strict=True):
        assert mine.name == other.name
        for part in ("X", "y", "known", "extra"):
            assert torch.equal(getattr(mine, part), getattr(other, part))
    if isinstance(method, ScaML):
        assert_same_gps(prior, loaded)
    assert torch.equal(points(loaded), points(prior))


@pytest.mark.parametrize("method", [ScaML(), GPBO()], ids=str)
def test_a_loaded_prior_suggests_the_same_points_of_its_space(tmp_path: Path, method: Method) -> None:
    prior = method.meta_fit(META).in_space(SPACE)
    prior.save(tmp_path / "p")
    a, b = suggest(prior, NEW, q=3), suggest(load(tmp_path / "p"), NEW, q=3)
    assert torch.equal(a, b)
    for x in a:
        assert torch.allclose(SPACE.encode(SPACE.decode(x)), x)


def test_saving_what_was_loaded_gives_the_same_file(tmp_path: Path) -> None:
    ScaML().meta_fit(META).in_space(SPACE).save(tmp_path / "a")
    load(tmp_path / "a").save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_another_process_makes_the_same_suggestions(tmp_path: Path) -> None:
    program = (
        "import sys, torch\nfrom scaml.priors.load import load\n"
        "from scaml.common.tensor_file import write\n"
        "from tests.loading_cases import points\n"
        "for name in ('scaml', 'gpbo'):\n"
        "    prior = load(f'{sys.argv[1]}/{name}')\n"
        "    write(f'{sys.argv[1]}/{name}.points', {}, {'x': points(prior)})\n"
    )
    priors = {"scaml": ScaML().meta_fit(META).in_space(SPACE), "gpbo": GPBO().meta_fit(META)}
    for name, prior in priors.items():
        prior.save(tmp_path / name)
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], cwd=root, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    for name, prior in priors.items():
        assert torch.equal(read(tmp_path / f"{name}.points")[1]["x"], points(prior))


def test_fifty_tasks_come_back(tmp_path: Path) -> None:
    prior = ScaML().meta_fit(meta_data(tuple(4 + m % 7 for m in range(50)), 2))
    prior.save(tmp_path / "p")
    loaded = load(tmp_path / "p")
    assert len(loaded.names) == 50
    assert_same_gps(prior, loaded)


def test_names_of_any_letters_come_back(tmp_path: Path) -> None:
    names = ["Größe", "日本", "a/b", 'q"uote', "new\nline", "\x00", "0/X", "state/noise"]
    tasks = [task.called(name) for task, name in zip(meta_data((4,) * 8, 2), names, strict=True)]
    GPBO().meta_fit(MetaData(tasks)).save(tmp_path / "p")
    assert load(tmp_path / "p").names == tuple(names)
