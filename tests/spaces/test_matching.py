"""match: past tasks of other spaces, with lacking, extra and held parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from scaml import MetaData, Task, TaskGPs
from scaml.errors import SpaceError
from scaml.spaces.matching import Matching, match
from scaml.spaces.space import CHOSEN, Space
from scaml.tasks.past_task import PastTask
from tests.cases import query
from tests.oracles import kernel_matrix

UNIT = FloatDistribution(0.0, 1.0)


def past(
    distributions: Mapping[str, BaseDistribution],
    rows: Sequence[Mapping[str, Any]],
    y: Sequence[float] | None = None,
    name: str = "old",
) -> PastTask:
    return PastTask(name, distributions, rows, [float(i) for i in range(len(rows))] if y is None else y)


def only(tasks: list[Task], matching: Matching) -> tuple[Task, Any]:
    assert len(tasks) == len(matching.matches) == 1
    return tasks[0], matching.matches[0]


def test_the_same_parameters_give_whole_tasks() -> None:
    space = Space({"a": UNIT, "k": CategoricalDistribution(["x", "y"])})
    rows = [{"a": 0.1, "k": "x"}, {"a": 0.7, "k": "y"}]
    tasks, matching = match([past(space.distributions, rows, [3.0, 4.0])], space)
    task, what = only(tasks, matching)
    assert task.whole
    assert torch.equal(task.X, space.encode_all(rows))
    assert task.y.tolist() == [3.0, 4.0]
    assert what.matched == ("a", "k")
    assert matching.identical
    assert str(matching) == "the past task has the parameters of the new space"


def test_a_parameter_that_the_past_lacks_is_not_known() -> None:
    space = Space({"k": CategoricalDistribution(["x", "y"]), "a": UNIT})
    task, what = only(*match([past({"a": UNIT}, [{"a": 0.1}, {"a": 0.2}])], space))
    assert task.known.tolist() == [False, False, True]
    assert task.X.tolist() == [[0.0, 0.0, 0.1], [0.0, 0.0, 0.2]]
    assert (what.matched, what.lacking, what.held) == (("a",), ("k",), {})


def test_a_parameter_of_the_past_alone_is_held_at_its_best() -> None:
    own = {"a": UNIT, "b": FloatDistribution(1.0, 100.0, log=True), "n": IntDistribution(0, 10)}
    rows = [
        {"a": 0.1, "b": 1.0, "n": 0},
        {"a": 0.2, "b": 10.0, "n": 5},
        {"a": 0.3, "b": 100.0, "n": 10},
    ]
    task, what = only(*match([past(own, rows, [0.0, 9.0, 1.0])], Space({"a": UNIT})))
    assert what.held == {"b": 10.0, "n": 5}
    expected = torch.tensor([[-0.5, -0.5], [0.0, 0.0], [0.5, 0.5]], dtype=torch.float64)
    torch.testing.assert_close(task.extra, expected, rtol=0, atol=1e-12)
    assert task.known.tolist() == [True]


@given(values=st.lists(st.floats(0.0, 1.0), min_size=2, max_size=5), log=st.booleans())
@settings(max_examples=30)
def test_the_row_that_a_parameter_is_held_at_is_at_0_exactly(values: list[float], log: bool) -> None:
    own = FloatDistribution(1.0, 3.0, log=log)
    rows = [{"a": 0.5, "b": 1.0 + 2.0 * value} for value in values]
    task, what = only(*match([past({"a": UNIT, "b": own}, rows)], Space({"a": UNIT})))
    assert what.held == {"b": rows[-1]["b"]}
    assert task.extra[-1].item() == 0.0
    b = np.array([row["b"] for row in rows])
    encoded = np.log(b) / np.log(3.0) if log else (b - 1.0) / 2.0
    np.testing.assert_allclose(task.extra[:, 0], encoded - encoded[-1], rtol=0, atol=1e-14)


def test_a_categorical_parameter_of_the_past_alone_is_held() -> None:
    own = {"a": UNIT, "k": CategoricalDistribution(["x", "y", "z"])}
    rows = [{"a": 0.1, "k": "x"}, {"a": 0.2, "k": "z"}]
    task, what = only(*match([past(own, rows)], Space({"a": UNIT})))
    assert what.held == {"k": "z"}
    assert task.extra.tolist() == [[CHOSEN, 0.0, -CHOSEN], [0.0, 0.0, 0.0]]


def test_a_parameter_of_the_past_alone_that_never_varied_is_no_column() -> None:
    own = {"a": UNIT, "b": FloatDistribution(2.0, 2.0)}
    rows = [{"a": 0.1, "b": 2.0}, {"a": 0.2, "b": 2.0}]
    task, what = only(*match([past(own, rows)], Space({"a": UNIT})))
    assert task.whole
    assert what.held == {}


def test_fixed_says_where_a_parameter_is_held() -> None:
    own = {"a": UNIT, "b": FloatDistribution(0.0, 10.0)}
    rows = [{"a": 0.1, "b": 2.0}, {"a": 0.2, "b": 8.0}]
    task, what = only(*match([past(own, rows)], Space({"a": UNIT}), fixed={"b": 5.0}))
    assert what.held == {"b": 5.0}
    torch.testing.assert_close(task.extra, torch.tensor([[-0.3], [0.3]], dtype=torch.float64))


@pytest.mark.parametrize(
    ("fixed", "message"),
    [
        ({"c": 1.0}, "fixed names 'c', which no past task has"),
        ({"a": 0.5}, "fixed names 'a', which no past task has beyond the new space"),
        ({"k": "w"}, "'k' is 'w'; give one of its choices"),
        ({"b": "much"}, "'b' is 'much'; give a finite number"),
        ({"b": float("nan")}, "'b' is nan"),
    ],
)
def test_fixed_refuses_a_wrong_name_and_a_wrong_value(fixed: dict[str, Any], message: str) -> None:
    own = {"a": UNIT, "b": UNIT, "k": CategoricalDistribution(["x", "y"])}
    rows = [{"a": 0.1, "b": 0.2, "k": "x"}, {"a": 0.2, "b": 0.8, "k": "y"}]
    with pytest.raises(SpaceError, match=message):
        match([past(own, rows)], Space({"a": UNIT}), fixed=fixed)


@given(low=st.floats(-5.0, 5.0), width=st.floats(0.5, 20.0), rows=st.lists(st.floats(0, 1), min_size=2))
@settings(max_examples=30)
def test_other_ranges_are_mapped_by_the_new_one(low: float, width: float, rows: list[float]) -> None:
    own, new = FloatDistribution(low, low + width), FloatDistribution(-1.0, 3.0)
    values = [min(low + width * x, low + width) for x in rows]
    tasks, matching = match([past({"a": own}, [{"a": v} for v in values])], Space({"a": new}))
    expected = [(v + 1.0) / 4.0 for v in values]
    near = [x for x in expected if -1.0 <= x <= 2.0]
    if len(near) < 2:
        assert tasks == []
        assert matching.matches[0].ignored
        return
    np.testing.assert_allclose(tasks[0].X[:, 0].numpy(), near, rtol=0, atol=1e-12)
    assert matching.matches[0].left_out == len(values) - len(near)
    assert matching.matches[0].lacking == ()


@pytest.mark.parametrize("own", [UNIT, FloatDistribution(1e-3, 10.0, log=True), IntDistribution(1, 10)])
def test_the_scale_of_the_new_space_counts(own: BaseDistribution) -> None:
    space = Space({"a": FloatDistribution(0.01, 1.0, log=True)})
    task, _ = only(*match([past({"a": own}, [{"a": 1}, {"a": 10}, {"a": 0.1}])], space))
    np.testing.assert_allclose(task.X[:, 0].numpy(), [1.0, 1.5, 0.5], atol=1e-12)


def test_rows_that_a_logarithm_cannot_take_are_left_out() -> None:
    space = Space({"a": FloatDistribution(0.01, 1.0, log=True)})
    rows = [{"a": v} for v in (0.0, -1.0, 0.1, 1.0)]
    task, what = only(*match([past({"a": FloatDistribution(-1.0, 1.0)}, rows)], space))
    assert (task.n, what.left_out) == (2, 2)
    assert task.y.tolist() == [2.0, 3.0]


def test_the_held_value_is_that_of_the_best_row_which_is_used() -> None:
    own = {"a": FloatDistribution(0.0, 100.0), "b": UNIT}
    rows = [{"a": 0.2, "b": 0.1}, {"a": 0.3, "b": 0.4}, {"a": 90.0, "b": 1.0}]
    task, what = only(*match([past(own, rows)], Space({"a": UNIT})))
    assert (task.n, what.left_out, what.held) == (2, 1, {"b": 0.4})
    assert "left out 1 row far outside the new ranges" in str(what)


def test_choices_of_the_past_alone_have_columns_of_their_own_like_the_others() -> None:
    own = {"a": UNIT, "k": CategoricalDistribution(["x", "old", "older", "never"])}
    space = Space({"a": UNIT, "k": CategoricalDistribution(["new", "x"])})
    rows = [{"a": 0.1 * i, "k": k} for i, k in enumerate(["x", "older", "old", "x"])]
    task, what = only(*match([past(own, rows)], space))
    assert task.known.all()
    assert task.X[:, 1:].tolist() == [[0.0, CHOSEN], [0.0, 0.0], [0.0, 0.0], [0.0, CHOSEN]]
    assert sorted(task.extra.T.tolist()) == [[0.0, 0.0, CHOSEN, 0.0], [0.0, CHOSEN, 0.0, 0.0]]
    assert (what.matched, what.lacking, what.held) == (("a", "k"), (), {})


@pytest.mark.filterwarnings("ignore:Choices for a categorical distribution")
def test_choices_that_have_no_hash_are_choices_too() -> None:
    """A storage gives tuples back as lists."""
    choices = CategoricalDistribution([[1], [2]])  # type: ignore[list-item]
    rows = [{"a": 0.1, "k": [1]}, {"a": 0.2, "k": [2]}]
    space = Space({"a": UNIT, "k": CategoricalDistribution([[1], [3]])})  # type: ignore[list-item]
    task, _ = only(*match([past({"a": UNIT, "k": choices}, rows)], space))
    assert task.extra.tolist() == [[0.0], [CHOSEN]]


@pytest.mark.parametrize("kept", [FloatDistribution(0.25, 0.25), FloatDistribution(0.75, 0.75)])
def test_a_parameter_that_the_new_space_does_not_vary_is_held_there(kept: FloatDistribution) -> None:
    space = Space({"a": UNIT, "b": kept})
    rows = [{"a": 0.1, "b": 0.0}, {"a": 0.2, "b": 1.0}]
    task, what = only(*match([past({"a": UNIT, "b": UNIT}, rows)], space))
    assert what.held == {"b": kept.low}
    assert what.lacking == ()
    expected = torch.tensor([[-kept.low], [1.0 - kept.low]], dtype=torch.float64)
    torch.testing.assert_close(task.extra, expected)


@pytest.mark.parametrize("kept", [1.8, -0.8])
def test_a_parameter_may_be_held_as_far_outside_its_range_as_a_row_may_lie(kept: float) -> None:
    space = Space({"a": UNIT, "b": FloatDistribution(kept, kept)})
    rows = [{"a": 0.1, "b": 0.0}, {"a": 0.2, "b": 1.0}]
    task, _ = only(*match([past({"a": UNIT, "b": UNIT}, rows)], space))
    torch.testing.assert_close(task.extra, torch.tensor([[-kept], [1.0 - kept]], dtype=torch.float64))


@pytest.mark.parametrize(
    ("own", "values", "kept"),
    [
        (CategoricalDistribution(["x", "y"]), ("x", "y"), CategoricalDistribution(["z"])),
        (CategoricalDistribution(["x", "y"]), ("x", "y"), FloatDistribution(1.0, 1.0)),
        (UNIT, (0.1, 0.9), CategoricalDistribution(["z"])),
        (FloatDistribution(0.1, 1.0, log=True), (0.1, 0.9), FloatDistribution(0.0, 0.0)),
    ],
    ids=["another choice", "a number", "a choice", "no logarithm"],
)
def test_a_kept_value_that_the_past_could_not_take_does_not_stop_the_others(
    own: BaseDistribution, values: tuple[Any, Any], kept: BaseDistribution
) -> None:
    space = Space({"a": UNIT, "b": kept})
    rows = [{"a": 0.1, "b": values[0]}, {"a": 0.2, "b": values[1]}]
    good = past({"a": UNIT}, [{"a": 0.1}, {"a": 0.2}], name="good")
    tasks, matching = match([past({"a": UNIT, "b": own}, rows), good], space)
    assert "good" in [task.name for task in tasks]
    assert len(matching.matches) == 2


@pytest.mark.parametrize("number_is_new", [True, False])
def test_a_number_and_a_choice_of_one_name_are_two_parameters(number_is_new: bool) -> None:
    number, choice = FloatDistribution(0.0, 2.0), CategoricalDistribution(["x", "y"])
    new, own = (number, choice) if number_is_new else (choice, number)
    values: tuple[Any, Any] = ("x", "y") if number_is_new else (0.5, 1.5)
    rows = [{"a": 0.1, "b": values[0]}, {"a": 0.2, "b": values[1]}]
    space = Space({"a": UNIT, "b": new})
    task, what = only(*match([past({"a": UNIT, "b": own}, rows)], space))
    assert (what.matched, what.lacking, what.held) == (("a",), ("b",), {"b": values[1]})
    assert task.known.tolist() == [True] + [False] * (space.d - 1)
    assert torch.equal(task.extra[1], torch.zeros_like(task.extra[1]))


def test_a_task_without_a_shared_parameter_is_ignored() -> None:
    rows = [{"b": 0.1}, {"b": 0.2}]
    tasks, matching = match([past({"b": UNIT}, rows)], Space({"a": UNIT}))
    assert tasks == []
    assert str(matching) == "'old' ignored: it shares no parameter with the new space"
    assert not matching.identical


def test_a_task_that_shares_only_what_is_kept_is_ignored() -> None:
    space = Space({"a": UNIT, "b": FloatDistribution(0.5, 0.5)})
    tasks, matching = match([past({"b": UNIT}, [{"b": 0.1}, {"b": 0.2}])], space)
    assert tasks == []
    assert "shares no parameter" in str(matching)


@pytest.mark.parametrize(
    ("values", "words"), [([], "0 rows"), ([0.5], "1 row"), ([0.5, 99.0], "1 row")]
)
def test_a_task_of_fewer_than_two_rows_is_ignored(values: list[float], words: str) -> None:
    own = {"a": FloatDistribution(0.0, 100.0)}
    tasks, matching = match([past(own, [{"a": v} for v in values])], Space({"a": UNIT}))
    assert tasks == []
    assert str(matching) == f"'old' ignored: it has {words} in the new ranges"


def test_the_text_tells_of_every_task() -> None:
    space = Space({"a": UNIT, "c": UNIT})
    whole = past({"a": UNIT, "c": UNIT}, [{"a": 0.1, "c": 0.2}] * 2, name="one")
    other = past(
        {"a": FloatDistribution(0.0, 9.0), "b": UNIT},
        [{"a": v, "b": 0.5} for v in (0, 1, 9)],
        name="two",
    )
    none = past({"z": UNIT}, [{"z": 0.1}] * 2, name="three")
    tasks, matching = match([whole, other, none], space)
    assert [task.name for task in tasks] == ["one", "two"]
    assert str(matching) == (
        "'one' matched a, c; "
        "'two' matched a; lacks c; held b=0.5; left out 1 row far outside the new ranges; "
        "'three' ignored: it shares no parameter with the new space"
    )


def test_no_past_at_all_is_no_task() -> None:
    tasks, matching = match([], Space({"a": UNIT}))
    assert tasks == []
    assert matching.matches == ()


def test_matched_tasks_predict_as_gps_in_their_own_parameters() -> None:
    """A past space of other range, scale and parameters against NumPy on its own columns."""
    rng = np.random.default_rng(0)
    own = {
        "a": FloatDistribution(0.0, 2.0),
        "b": FloatDistribution(1.0, 100.0, log=True),
        "k": CategoricalDistribution(["x", "y"]),
    }
    rows = [
        {"a": 2.0 * u, "b": 100.0**v, "k": "xy"[int(w > 0.5)]}
        for u, v, w in rng.random((15, 3)).tolist()
    ]
    y = [np.sin(3.0 * r["a"]) + np.log(r["b"]) * (0.1 if r["k"] == "x" else 0.3) for r in rows]
    space = Space({"c": UNIT, "a": UNIT})
    task, _ = only(*match([past(own, rows, y)], space, fixed={"b": 10.0, "k": "x"}))
    gps = TaskGPs.fit(MetaData([task]), kernel="se", seed=0, n_jobs=1)
    ell, o, noise = gps.lengthscale[0].numpy(), gps.outputscale.item(), gps.noise.item()
    A = np.array([[r["a"], np.log(r["b"]) / np.log(100.0), r["k"] == "x", r["k"] == "y"] for r in rows])
    A[:, 2:] *= CHOSEN
    X = query(6, 2)
    Q = np.column_stack([X[:, 1].numpy(), np.full(6, 0.5), np.full(6, CHOSEN), np.zeros(6)])
    z = (np.array(y) - np.mean(y)) / np.std(y, ddof=1)
    K = kernel_matrix("se", A, A, ell[1:], o) + noise * np.eye(15)
    cross = kernel_matrix("se", A, Q, ell[1:], o)
    np.testing.assert_allclose(
        gps.mean(X)[0].numpy(), cross.T @ np.linalg.solve(K, z), rtol=0, atol=1e-6
    )
    assert np.isinf(ell[0])
