"""`Task`: what is accepted, empty tasks, appending, digests, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scaml.errors import ScaMLError, SettingError, TaskDataError
from scaml.tasks.task import Task
from tests.tasks.cases import INF, NAN, X, Y, assert_one_sentence, assert_says, equal

# What is accepted.


@pytest.mark.parametrize(
    ("points", "values"),
    [
        pytest.param(X, Y, id="lists"),
        pytest.param(tuple(map(tuple, X)), tuple(Y), id="tuples"),
        pytest.param(np.array(X), np.array(Y), id="float64"),
        pytest.param(np.asfortranarray(X), np.array(Y)[::-1].copy()[::-1], id="strides"),
        pytest.param(
            torch.tensor(X, dtype=torch.float64), torch.tensor(Y, dtype=torch.float64), id="tensors"
        ),
        pytest.param([np.array(row) for row in X], [np.float64(y) for y in Y], id="list-of-arrays"),
        pytest.param(np.array(X), np.array(Y)[:, None], id="y-is-a-column"),
        pytest.param(np.array(X), [[y] for y in Y], id="y-is-a-column-list"),
    ],
)
def test_array_likes_become_float64_tensors(points: Any, values: Any) -> None:
    task = Task(points, values, name="adult")
    assert equal(task.X, X)
    assert equal(task.y, Y)
    assert (task.n, task.d, task.name) == (3, 2, "adult")


@pytest.mark.parametrize("source", [np.array, lambda v: torch.tensor(v, dtype=torch.float64)])
def test_later_changes_of_the_callers_arrays_do_not_reach_the_task(
    source: Callable[[Any], Any],
) -> None:
    points, values = source(X), source(Y)
    task = Task(points, values)
    points[0, 0], values[0] = 0.77, 77.0
    assert equal(task.X, X)
    assert equal(task.y, Y)


def test_a_task_is_frozen() -> None:
    task = Task(X, Y)
    for name in ("X", "y", "name"):
        with pytest.raises(FrozenInstanceError):
            setattr(task, name, getattr(task, name))


def test_constant_values_and_duplicate_rows_are_data() -> None:
    task = Task([[0.5, 0.5]] * 4, [3.0] * 4)
    assert task.n == 4
    assert equal(task.y, [3.0] * 4)


def test_points_a_little_outside_the_cube_are_data() -> None:
    assert equal(Task([[-0.3, 1.4]], [0.0]).X, [[-0.3, 1.4]])


@pytest.mark.parametrize("unit", [1e-90, 1e90])
def test_units_that_float64_can_square_are_data(unit: float) -> None:
    assert equal(Task([[0.0], [1.0]], [unit, 2 * unit]).y, [unit, 2 * unit])


def test_repr_says_what_it_is() -> None:
    assert repr(Task(X, Y, name="adult")) == "Task(n=3, d=2, name='adult')"


# Empty tasks and appending.


def test_an_empty_task_has_dimensions_and_no_rows() -> None:
    task = Task.empty(d=3, name="new")
    assert (task.n, task.d, task.name) == (0, 3, "new")
    assert task.X.shape == (0, 3)
    assert task.y.shape == (0,)
    assert task.X.dtype == task.y.dtype == torch.float64


@pytest.mark.parametrize("d", [0, -1, 2.0, True, "2", None])
def test_an_empty_task_needs_a_whole_number_of_parameters(d: Any) -> None:
    with pytest.raises(SettingError, match=re.escape(repr(d))) as caught:
        Task.empty(d)
    assert_one_sentence(str(caught.value))


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([0.3, 0.7], 4.0),
        ([0.3, 0.7], [4.0]),
        ([[0.3, 0.7]], [4.0]),
        ([[0.3, 0.7]], [[4.0]]),
        (np.array([0.3, 0.7]), np.float32(4.0)),
        (torch.tensor([[0.3, 0.7]], dtype=torch.float64), torch.tensor([[4.0]])),
    ],
)
def test_append_takes_a_vector_or_a_batch_and_returns_a_new_task(x: Any, y: Any) -> None:
    before = Task(X, Y, name="adult")
    after = before.append(x, y)
    assert equal(after.X, [*X, [0.3, 0.7]])
    assert equal(after.y, [*Y, 4.0])
    assert after.name == "adult"
    assert equal(before.X, X)
    assert equal(before.y, Y)


def test_append_to_an_empty_task() -> None:
    task = Task.empty(2).append([0.3, 0.7], 4.0)
    assert equal(task.X, [[0.3, 0.7]])
    assert equal(task.y, [4.0])


def test_append_of_nothing_changes_nothing() -> None:
    task = Task(X, Y).append(np.empty((0, 2)), [])
    assert equal(task.X, X)
    assert equal(task.y, Y)


def test_append_does_not_share_memory_with_its_argument() -> None:
    x, y = np.array([0.3, 0.7]), np.array([4.0])
    task = Task.empty(2).append(x, y)
    x[0], y[0] = 0.9, 9.0
    assert equal(task.X, [[0.3, 0.7]])
    assert equal(task.y, [4.0])


def test_append_judges_the_spread_of_the_whole_task() -> None:
    """Two new values that lie close together are no reason to refuse a task that varies."""
    points, values = [[0.0], [0.3], [0.6], [0.9]], [1.0, 2.0, 0.0, 1e-150]
    grown = Task(points[:2], values[:2]).append(points[2:], values[2:])
    assert equal(grown.y, Task(points, values).y)


cells = st.floats(0.0, 1.0)
# Rounded: values that differ by less than float64 can square are another test's matter.
outcomes = st.floats(-1e6, 1e6).map(lambda value: round(value, 6))


@st.composite
def rows(draw: st.DrawFn) -> tuple[list[list[float]], list[float], list[int]]:
    d, n = draw(st.integers(1, 4)), draw(st.integers(0, 8))
    points = draw(st.lists(st.lists(cells, min_size=d, max_size=d), min_size=n, max_size=n))
    values = draw(st.lists(outcomes, min_size=n, max_size=n))
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=8)))
    return points or [[0.5] * d], values or [0.0], cuts


@settings(deadline=None, max_examples=100)
@given(rows())
def test_appending_in_any_portions_gives_the_whole_in_order(
    data: tuple[list[list[float]], list[float], list[int]],
) -> None:
    points, values, cuts = data
    task = Task.empty(len(points[0]))
    for start, stop in zip([0, *cuts], [*cuts, len(points)], strict=True):
        if stop - start == 1:
            task = task.append(points[start], values[start])
        else:
            batch = np.array(points[start:stop]).reshape(stop - start, len(points[0]))
            task = task.append(batch, values[start:stop])
    assert equal(task.X, points)
    assert equal(task.y, values)


# Columns that the task lacks, or that only it has.


def test_by_default_a_task_has_exactly_the_parameters_of_its_space() -> None:
    task = Task([[0.1, 0.2]], [1.0])
    assert task.whole
    assert task.known.tolist() == [True, True]
    assert task.extra.shape == (1, 0)
    assert torch.equal(task.inputs, task.X)


def test_columns_that_a_task_does_not_have_are_ignored() -> None:
    a = Task([[0.1, 0.2], [0.3, 0.4]], [1.0, 2.0], known=[True, False], extra=[[0.5], [-0.5]])
    b = Task([[0.1, 0.9], [0.3, 0.7]], [1.0, 2.0], known=[True, False], extra=[[0.5], [-0.5]])
    assert not a.whole
    assert torch.equal(a.X, b.X)
    assert a.inputs.tolist() == [[0.1, 0.5], [0.3, -0.5]]
    renamed = a.called("b")
    assert renamed.name == "b"
    for part in ("X", "y", "known", "extra"):
        assert torch.equal(getattr(renamed, part), getattr(a, part))
    with pytest.raises(
        TaskDataError, match="The task has other parameters than its space; make a new task"
    ):
        a.append([0.1, 0.2], 1.0)


@pytest.mark.parametrize(
    ("known", "extra", "message"),
    [
        ([True], None, "give 2 booleans"),
        ([True, True, True], None, "give 2 booleans"),
        ([1, 0], None, "give 2 booleans"),
        ([False, False], None, "at least one of them True"),
        (None, [[0.5]], "has 1 row but X has 2"),
        (None, [0.5, 0.5], "give an n x e array"),
        (None, [[np.nan], [0.5]], "NaN or infinite"),
        (None, [["a"], ["b"]], "give real numbers"),
    ],
)
def test_a_task_refuses_a_mask_or_columns_that_do_not_fit(known: Any, extra: Any, message: str) -> None:
    with pytest.raises(TaskDataError, match=message):
        Task([[0.1, 0.2], [0.3, 0.4]], [1.0, 2.0], known=known, extra=extra)


# Digests.


def test_equal_data_have_equal_digests_under_any_name() -> None:
    task = Task(X, Y, name="a")
    assert len(task.digest()) == 32
    assert Task(X, Y).digest() == task.called("b").digest() == task.digest()


@pytest.mark.parametrize(
    "other",
    [
        Task([[0.1, 0.9], [0.5, 0.5], [1.0, 1e-300]], Y),
        Task(X, [1.0, -2.0, np.nextafter(3.5, 4.0)]),
        Task(X[:2], Y[:2]),
        Task(X[::-1], Y[::-1]),
        Task([[0.1], [0.9], [0.5]], Y),
        Task(X, Y, known=[True, False]),
        Task(X, Y, extra=[[0.0], [0.0], [0.0]]),
        Task.empty(2),
        Task.empty(3),
    ],
    ids=["X", "y", "fewer", "order", "shape", "known", "extra", "empty", "empty and wider"],
)
def test_other_data_have_another_digest(other: Task) -> None:
    assert other.digest() != Task(X, Y).digest()


def test_the_shapes_count() -> None:
    assert Task.empty(2).digest() != Task.empty(3).digest()
    flat = Task([[0.5], [0.5]], [1.0, 2.0], extra=[[0.5, 0.25], [0.5, 0.25]])
    assert flat.digest() != Task([[0.5], [0.5]], [1.0, 2.0], extra=[[0.5], [0.25]]).digest()


# What is refused, and how.


def task(points: Any, values: Any) -> Callable[[], object]:
    return lambda: Task(points, values, name="adult")


REFUSED: dict[str, tuple[Callable[[], object], list[str]]] = {
    "nan-x": (task([[0.1], [NAN], [0.3], [NAN]], [1, 2, 3, 4]), ["X", "'adult'", "NaN", "rows 1, 3;"]),
    "inf-x": (task([[0.1, 0.2], [0.1, INF]], [1, 2]), ["X", "'adult'", "infinite", "row 1;"]),
    "nan-y": (task(X, [1, NAN, 3]), ["y", "'adult'", "NaN", "row 1;"]),
    "inf-y": (task(X, [-INF, 2, INF]), ["y", "'adult'", "infinite", "rows 0, 2;"]),
    "many-nan": (task([[NAN]] * 9, [1] * 9), ["rows 0, 1, 2, 3, 4 and 4 more"]),
    "x-is-a-vector": (task([0.1, 0.2], [1, 2]), ["X", "'adult'", "(2,)", "n x d"]),
    "x-is-a-number": (task(0.1, [1]), ["X", "'adult'", "()", "n x d"]),
    "x-is-a-cube": (task(np.zeros((2, 3, 4)), [1, 2]), ["(2, 3, 4)", "n x d"]),
    "x-has-no-column": (task(np.zeros((2, 0)), [1, 2]), ["(2, 0)", "n x d"]),
    "lengths": (task(X, [1, 2]), ["'adult'", "(3, 2)", "(2,)"]),
    "y-is-a-matrix": (task(X, np.zeros((3, 2))), ["'adult'", "(3, 2) but y has shape (3, 2)"]),
    "y-is-a-row": (task(X, np.zeros((1, 3))), ["'adult'", "(3, 2)", "(1, 3)"]),
    "y-is-a-number": (task(X, 1.0), ["'adult'", "(3, 2)", "()"]),
    "outside": (task([[0.5, 0.5], [0.2, 37.5]], [1, 2]), ["X", "'adult'", "row 1", "37.5", "[0, 1]"]),
    "outside-below": (task([[-40.0], [0.5]], [1, 2]), ["row 0", "-40", "[0, 1]"]),
    "x-at-1e300": (task([[1e300], [0.5]], [1, 2]), ["row 0", "1e+300"]),
    "y-at-1e300": (task(X, [1.0, 1e300, -1e300]), ["y", "'adult'", "rows 1, 2", "rescale"]),
    "y-constant-at-1e300": (task(X, [1e300] * 3), ["'adult'", "rows 0, 1, 2", "rescale"]),
    "y-at-1e-300": (task(X, [1e-300, 3e-300, 2e-300]), ["y", "'adult'", "2e-300", "rescale"]),
    "object-x": (task(np.array([[0.1], [0.2]], dtype=object), [1, 2]), ["X", "'adult'", "object"]),
    "object-y": (task(X, [1.0, None, 2.0]), ["y", "'adult'", "object"]),
    "huge-integers": (task(X, [10**400, 1, 2]), ["'adult'", "object"]),
    "dictionary": (task({"x": [0.1]}, [1]), ["X", "'adult'", "object"]),
    "ragged-x": (task([[0.1, 0.2], [0.3]], [1, 2]), ["X", "'adult'", "rectangular"]),
    "ragged-y": (task(X, [[1.0], [2.0, 3.0], [4.0]]), ["y", "'adult'", "rectangular"]),
    "strings-x": (task([["0.1"], ["0.2"]], [1, 2]), ["X", "'adult'", "real numbers"]),
    "strings-y": (task(X, ["a", "b", "c"]), ["y", "'adult'", "real numbers"]),
    "bytes": (task(X, np.array([b"1", b"2", b"3"])), ["y", "'adult'", "real numbers"]),
    "dates": (task(X, np.array(["2024-01-01"] * 3, dtype="M8[D]")), ["'adult'", "datetime64"]),
    "complex-x": (task([[0.1 + 0j], [0.2]], [1, 2]), ["X", "'adult'", "complex128"]),
    "complex-tensor": (task(X, torch.zeros(3, dtype=torch.complex64)), ["'adult'", "complex64"]),
    "name": (lambda: Task(X, Y, name=3), ["3", "string"]),  # type: ignore[arg-type]
    "unnamed": (lambda: Task([[NAN]], [1]), ["X of the task", "row 0"]),
    "append-too-wide": (lambda: Task(X, Y).append([0.1] * 3, 1), ["(1, 3)", "2 parameters"]),
    "append-number": (lambda: Task(X, Y).append(0.1, 1), ["()", "2 parameters"]),
    "append-cube": (lambda: Task(X, Y).append(np.zeros((1, 1, 2)), 1), ["(1, 1, 2)", "2 parameters"]),
    "append-lengths": (lambda: Task(X, Y).append([0.1, 0.2], [1, 2]), ["1 row", "2 values"]),
    "append-nan-x": (
        lambda: Task(X, Y, name="adult").append([[0.1, 0.2], [0.1, NAN]], [1, 2]),
        ["'adult'", "NaN", "row 1"],
    ),
    "append-nan-y": (lambda: Task(X, Y, name="adult").append([0.1, 0.2], NAN), ["'adult'", "NaN"]),
    "append-outside": (lambda: Task(X, Y).append([0.1, 20.0], 1), ["20", "[0, 1]"]),
    "append-object": (lambda: Task(X, Y).append([0.1, None], 1), ["object"]),
    "append-none": (lambda: Task(X, Y).append([0.1, 0.2], None), ["object"]),
    "append-1e300": (lambda: Task(X, Y).append([0.1, 0.2], 1e300), ["1e+100", "rescale"]),
    "append-1e-300": (
        lambda: Task.empty(1).append([0.1], 1e-300).append([0.2], 3e-300),
        ["2e-300", "rescale"],
    ),
}


@pytest.mark.parametrize(("build", "fragments"), REFUSED.values(), ids=REFUSED.keys())
def test_bad_input_is_refused_in_one_sentence(
    build: Callable[[], object], fragments: list[str]
) -> None:
    with pytest.raises(TaskDataError) as caught:
        build()
    assert_says(str(caught.value), fragments)


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=6),
    st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=6),
)
def test_any_floats_are_taken_whole_or_refused(points: list[float], values: list[float]) -> None:
    """Whatever comes: a task that holds exactly these numbers, or one sentence of ours."""
    try:
        made = Task([[x] for x in points], values)
    except ScaMLError as error:
        assert_one_sentence(str(error))
    else:
        assert equal(made.X, [[x] for x in points])
        assert equal(made.y, values)
        assert made.X.isfinite().all()
        assert made.y.isfinite().all()
