"""Sentences with the numbers that the figures show. They are plain text; the page escapes them."""

from __future__ import annotations

from collections.abc import Sequence

from scaml.common.wording import counted
from scaml.explain.leave_one_out import Comparison
from scaml.explain.run import Run
from scaml.explain.suggestions import Suggestion
from scaml.explain.weights import WeightRow
from scaml.report.row_texts import expected_text, reading_text, weight_text
from scaml.report.text import listed, number, percent, quoted

__all__ = [
    "about_left_out",
    "about_map",
    "about_matching",
    "about_shares",
    "about_slices",
    "about_suggestions",
    "about_summary",
    "about_weights",
    "ignored_tasks",
]

_ABOUT_SHARES = (
    "Each past task’s prediction is multiplied by its weight, and the products are added up. The share "
    "of the mean is how far the task moves the expected value from the common level, averaged over the "
    "space, relative to the sum over all tasks. The share of the variance is the part of the variance, "
    "averaged over the space, that comes from the task. "
)
_ABOUT_REST = (
    "The grey bar is the part that no past task explains; only new experiments can reduce it.",
    "The grey bars are the part of a plain GP on the new data alone.",
)
_NAMED = 5  # tasks in a sentence
_FEW = 8  # observations below which a comparison is a hint
_ALL = 0.995  # share of the mean above which one task counts as the only one
_OPEN = 0.5  # share of the variance above which the past explains little


def about_summary(run: Run) -> list[str]:
    """The best value so far, and the data behind the predictions."""
    tasks, n = len(run.past), run.task.n
    past = counted(tasks, "past task") if tasks else "no past task"
    goal = "larger" if run.subject.maximize else "smaller"
    what = f"{run.subject.objective} ({goal} is better)"
    if run.best is None:
        none = "No experiment has been made yet"
        if not tasks:
            return [f"{none} and there is {past}, so nothing is known about {what}."]
        return [f"{none}: this page shows what the model predicts for {what} from {past}."]
    value = number(run.sign * float(run.task.y[run.best]))
    last = n - 1 - run.best
    since = "the latest" if not last else f"{counted(last, 'experiment')} ago"
    many = f"The best of {n} experiments" if n > 1 else "The only experiment"
    reached = f"{many} reached {value} in {what}"
    reached += f"; it was number {run.best + 1}, {since}." if n > 1 else "."
    data = "this experiment" if n == 1 else "these experiments"
    return [reached, f"The predictions use {f'{data} and {past}' if tasks else f'only {data}'}."]


def about_suggestions(found: Sequence[Suggestion], objective: str) -> list[str]:
    """What to try next."""
    if not found:
        return ["No suggestion was asked for."]
    expected = expected_text(found[0])
    if not expected:
        return ["Try the points of this table next."]
    one = len(found) == 1
    reading = reading_text(found[0])
    words = [
        "Try this point next." if one else "Try these points next.",
        f"The expected {objective} {'is' if one else 'of the first is'} {expected}"
        f"{f' ({reading})' if reading else ''}, where ± is two "
        "standard deviations: about 95 of 100 true values should lie inside.",
    ]
    if found[0].moved_by:
        words.append(
            "The last row lists the past tasks that raise or lower the prediction most, each with its "
            "effect. If you know that one of them misleads here, doubt the suggestion."
        )
    return words


def about_weights(rows: Sequence[WeightRow], n: int) -> list[str]:
    """Which past tasks count; n is the number of experiments of the new task."""
    tasks = [row for row in rows if not row.is_rest]
    used = [row for row in tasks if row.weight]
    if not used:
        return [
            f"{'The past task has' if len(tasks) == 1 else f'All {len(tasks)} past tasks have'} weight "
            "0: nothing in the past resembles the new data, so the predictions use only these."
        ]
    if n == 0 and len({round(row.weight or 0.0, 12) for row in tasks}) == 1:
        first = "Before the first experiment, all past tasks have the same weight"
        return [f"{first}, {weight_text(used[0].weight or 0.0)}. The first experiments change that."]
    words = [_most(used)]
    dropped = len(tasks) - len(used)
    if dropped:
        words.append(
            f"{dropped} of {len(tasks)} past tasks {'has' if dropped == 1 else 'have'} weight 0 and "
            f"{'is' if dropped == 1 else 'are'} not used."
        )
    rest = rows[-1].variance if rows[-1].is_rest and rows[-1].mean is None else None
    if rest is not None and rest > _OPEN:
        words.append(
            f"{percent(rest)} of the prior’s variance is not explained by the past tasks: new "
            "experiments teach more than the past."
        )
    elif (used[0].weight or 0.0) < 0:
        words.append("A negative weight means that what worked in the past task may fail here.")
    else:
        words.append("Look at the tasks with large weights first: what worked there may work here.")
    return words


def about_shares(rows: Sequence[WeightRow]) -> str:
    """What the columns of the figure of weights mean."""
    return _ABOUT_SHARES + _ABOUT_REST[rows[-1].mean is not None]


def _most(used: Sequence[WeightRow]) -> str:
    if used[0].mean is None:
        weight = weight_text(used[0].weight or 0.0)
        return f"The past task with the largest weight is {quoted(used[0].name)} ({weight})."
    top = max(used, key=lambda row: row.mean or 0.0)
    share, weight = top.mean or 0.0, weight_text(top.weight or 0.0)
    if share >= _ALL:
        return f"All that the past contributes comes from {quoted(top.name)} (weight {weight})."
    start = "Most" if share > 0.5 else "The largest part"
    return (
        f"{start} of what the past contributes comes from {quoted(top.name)} "
        f"(weight {weight}, {percent(share)} of the mean)."
    )


def about_slices(run: Run, shown: int, with_tasks: bool) -> list[str]:
    """How to read the slices; `shown` is their number, `with_tasks` whether past tasks have lines."""
    words = [
        f"Each chart varies one parameter; all others have their values at {_center(run)}. Bands are "
        "two standard deviations."
    ]
    if run.before_data is not None and run.task.n:
        words.append(
            "Where the blue band is narrower than the grey one, the experiments have reduced the "
            "uncertainty. Where the blue band is still wide and reaches good values, another "
            "experiment may pay off."
        )
    if with_tasks:
        words.append(
            "The thin lines show what past tasks add to the common level; together they make "
            f"{_sum_of_lines(run)}."
        )
    if shown < len(run.parameters):
        words.append(
            f"The charts show the {shown} of {len(run.parameters)} parameters with the largest effect "
            "on the expected value."
        )
    return words


def _center(run: Run) -> str:
    """What the point is through which slices run."""
    if run.best is not None:
        return f"the best experiment so far (number {run.best + 1})"
    if run.subject.suggestions is not None:
        return "the first suggestion"
    return "the point with the best expected value"


def _sum_of_lines(run: Run) -> str:
    if run.before_data is None:
        return "the part of the prediction that comes from the past"
    return "the prior’s mean" if run.task.n else "the expected value"


def about_map(run: Run, names: tuple[str, str], effect: tuple[float, float]) -> list[str]:
    """Why these two parameters, and how to read the map."""
    if max(effect) <= 0:
        why = (
            "The expected value is the same everywhere, so the maps show the first two parameters, "
            f"{quoted(names[0])} and {quoted(names[1])}."
        )
    else:
        why = (
            f"{quoted(names[0])} and {quoted(names[1])} have the largest effects on the expected "
            f"value: they account for {percent(effect[0])} and {percent(effect[1])} of its variance "
            "over the space."
        )
    return [
        why,
        "In the first map, yellow means good and dark blue bad expected values. In the second map, "
        f"darker means more uncertain. All other parameters have their values at {_center(run)}. "
        "Points to try next are yellow in the first map or dark in the second.",
    ]


def about_left_out(comparison: Comparison, objective: str) -> list[str]:
    """Whether the past tasks have improved the predictions so far."""
    ours, plain, n = comparison.ours, comparison.plain, len(comparison.ours.y)
    how = "Each experiment is predicted from all others; on the dotted line, the prediction is exact."
    covered = f"{ours.covered} of {n} experiments lie within their error bars"
    if plain is None:
        return [
            how,
            f"The typical error is {number(ours.error, 3)} in {objective}; {covered}.",
        ]
    errors = f"the typical error is {number(ours.error, 3)} with the past tasks and "
    errors += f"{number(plain.error, 3)} with the new data alone"
    verdict = {
        1: "So far the past helps",
        0: "So far it makes no clear difference whether the past is used",
        -1: "So far the past misleads more than it helps",
    }[comparison.winner]
    words = [how, f"{verdict}: {errors}; {covered} (about 95 of 100 should)."]
    if n < _FEW:
        words.append(f"With {n} experiments this is only a hint.")
    return words


def about_matching(run: Run) -> list[str]:
    """How the parameters of the past tasks were matched to the new space."""
    matching, names = run.subject.matching, run.past
    if matching is None:
        if not names:
            return ["There is no past task, so nothing had to be matched."]
        lacking = _not_whole(run)
        if lacking:
            return [
                f"{len(lacking)} of {counted(len(names), 'past task')} lack parameters of the new "
                f"space, or have others: {_first(lacking)}."
            ]
        return [f"{_all(len(names))} the parameters of the new task."]
    if not matching.matches:
        return ["There is no past task, so nothing had to be matched."]
    if matching.identical:
        return [f"{_all(len(matching.matches))} exactly the parameters of the new space."]
    used = [m for m in matching.matches if not m.ignored]
    words = [f"{len(used)} of {counted(len(matching.matches), 'past task')} could be used."]
    if any(m.lacking for m in used):
        words.append(
            "If a past task lacks a parameter, its prediction does not depend on that parameter."
        )
    if any(m.held for m in used):
        words.append(
            "A parameter that only a past task has is held at one value; if another value suits the "
            "new task better, give that value as fixed."
        )
    return words


def ignored_tasks(run: Run) -> list[str]:
    """Past tasks that could not be used, each with the reason."""
    matching = run.subject.matching
    return [f"{quoted(m.name)}: {m.ignored}" for m in matching.matches if m.ignored] if matching else []


def _first(names: list[str]) -> str:
    """The first names for a sentence, and the number of the others."""
    more = len(names) - _NAMED
    return listed([*names[:_NAMED], f"{more} more"] if more > 0 else names)


def _all(tasks: int) -> str:
    return "The past task has" if tasks == 1 else f"All {tasks} past tasks have"


def _not_whole(run: Run) -> list[str]:
    tasks = zip(run.prior.names, run.prior.meta, strict=True)
    return [quoted(name, 30) for name, task in tasks if not task.whole]
