"""Training of small networks: seeds, early stopping, progress, and what ends it."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from scaml import FitError, MetaData, SavedFileError
from scaml.methods.shared.networks import (
    EarlyStopping,
    descend,
    perceptron,
    seeded,
    settled_order,
    with_state,
)
from tests.cases import meta_data

X = torch.linspace(-1.0, 1.0, 40, dtype=torch.float64)[:, None]
Y = torch.sin(3.0 * X)


def network(seed: int = 0) -> nn.Sequential:
    with seeded(seed):
        body = perceptron(1, (16, 16), nn.Tanh)
        return nn.Sequential(body, nn.Linear(16, 1, dtype=torch.float64))


def error(net: nn.Module) -> Tensor:
    loss: Tensor = (net(X) - Y).square().mean()
    return loss


def test_a_perceptron_is_its_layers_by_hand() -> None:
    net = perceptron(1, (3, 2), nn.ReLU, dropout=0.5).eval()
    weights = list(net.parameters())
    assert [tuple(w.shape) for w in weights] == [(3, 1), (3,), (2, 3), (2,)]
    hidden = (X @ weights[0].T + weights[1]).clamp_min(0.0)
    expected = (hidden @ weights[2].T + weights[3]).clamp_min(0.0)
    torch.testing.assert_close(net(X), expected)
    assert any(isinstance(layer, nn.Dropout) for layer in net)


def test_it_descends_and_tells_of_it() -> None:
    net, told = network(), []
    before = error(net).item()
    steps = descend(
        lambda step: (error(net), "sine"),
        net,
        steps=250,
        rate=0.01,
        what="a net",
        progress=lambda done, total: told.append((done, total)),
    )
    assert steps == 250
    assert error(net).item() < 0.01 * before
    assert told[-1] == (250, 250)
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert not net.training


def test_it_ends_where_the_held_out_loss_was_lowest() -> None:
    net = network()
    looks: list[tuple[float, dict[str, Tensor]]] = []

    def held_out() -> float:
        looks.append((abs(len(looks) - 3.0), {k: v.clone() for k, v in net.state_dict().items()}))
        return looks[-1][0]

    steps = descend(
        lambda step: (error(net), "sine"),
        net,
        steps=1000,
        rate=0.01,
        what="a net",
        stopping=EarlyStopping(held_out, every=10, patience=4),
    )
    assert steps == 80  # the lowest at look 3, the fourth look after it is number 8
    for name, tensor in net.state_dict().items():
        assert torch.equal(tensor, looks[3][1][name])


def test_the_rate_may_change_with_the_step() -> None:
    net, seen = network(), []

    def rate(step: int) -> float:
        seen.append(step)
        return 0.0

    before = error(net).item()
    descend(lambda step: (error(net), "sine"), net, steps=5, rate=rate, what="a net")
    assert error(net).item() == before
    assert set(seen) == set(range(5))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_loss_that_is_no_number_names_task_and_step(bad: float) -> None:
    net = network()

    def loss(step: int) -> tuple[Tensor, str]:
        return error(net) * (bad if step == 3 else 1.0), "adult"

    with pytest.raises(FitError, match=r"a net became (nan|inf) on task 'adult' at step 3"):
        descend(loss, net, steps=10, rate=0.01, what="a net")


def test_seeds_decide_and_leave_the_global_generator_alone() -> None:
    before = torch.get_rng_state()
    first, again, other = network(1), network(1), network(2)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first(X), again(X))
    assert not torch.equal(first(X), other(X))


def test_the_settled_order_is_the_same_however_tasks_come() -> None:
    meta = meta_data((5, 6, 7, 8), 2)
    turned = MetaData([meta[i] for i in (3, 1, 0, 2)])
    names = [[data.names[m] for m in settled_order(data)] for data in (meta, turned)]
    assert names[0] == names[1]
    assert sorted(names[0]) == sorted(meta.names)


def test_a_state_is_taken_over_or_refused() -> None:
    net, other = network(1), network(2)
    torch.testing.assert_close(with_state(other, net.state_dict())(X), net(X))
    name = next(iter(net.state_dict()))
    for wrong in (None, torch.zeros(2, 2), torch.full((16, 1), math.nan, dtype=torch.float64)):
        state = dict(net.state_dict())
        if wrong is None:
            del state[name]
        else:
            state[name] = wrong
        with pytest.raises(SavedFileError, match=r"0\.weight"):
            with_state(network(3), state)
