"""What the figures show, in sentences that carry the numbers. Plain text: the page escapes it."""

from __future__ import annotations

from scaml.common.text import listed, number, percent, quoted
from scaml.common.wording import counted
from scaml.explain.leave_one_out import Comparison
from scaml.explain.run import Run
from scaml.report.rows import Suggested, WeightRow, weight_in_words

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
    "The weight is what a past task’s prediction is multiplied by before all are added up. The share "
    "of the mean is how far, on average over the space, the task alone moves the expected value from "
    "the common level, compared with how far all of them do. The share of the variance is the average "
    "over the space of the uncertainty (variance) that the task brings along, compared with all of it. "
)
_ABOUT_REST = (
    "The grey bar is the part that no past task accounts for, which only new experiments can settle.",
    "The grey bars are the part of a plain GP that knows the new data alone.",
)
_NAMED = 5  # tasks in a sentence
_FEW = 8  # observations below which a comparison is a hint
_ALL = 0.995  # share above which there is nothing else to speak of
_OPEN = 0.5  # share of the variance above which the past leaves most of it open


def about_summary(run: Run) -> list[str]:
    """The best value so far, or that there is none."""
    tasks, n = len(run.past), run.task.n
    past = counted(tasks, "past task") if tasks else "no past task"
    goal = "larger" if run.subject.maximize else "smaller"
    what = f"{run.subject.objective} ({goal} is better)"
    if run.best is None:
        source = f"what {past} lead{'s' if tasks == 1 else ''} to expect" if tasks else "a guess"
        return [f"No experiment has been made yet, so this page shows {source} of {what}."]
    value = number(run.sign * float(run.task.y[run.best]))
    last = n - 1 - run.best
    since = "the latest" if not last else f"{counted(last, 'experiment')} ago"
    many = f"The best of {n} experiments" if n > 1 else "The only experiment"
    reached = f"{many} reached {value} in {what}"
    reached += f"; it was number {run.best + 1}, {since}." if n > 1 else "."
    basis = f"Expectations rest on {'it' if n == 1 else 'them'} and on {past}."
    return [reached, basis]


def about_suggestions(rows: list[Suggested], objective: str) -> list[str]:
    """What to try next."""
    if not rows:
        return ["No suggestion was asked for."]
    first = rows[0]
    if not first.expected:
        return ["Try the points of this table next."]
    start = "Try this point next; it is" if len(rows) == 1 else "Try these points next; the first is"
    words = [
        f"{start} expected to reach {first.expected} in {objective}, where ± is two standard "
        "deviations: about 95 of 100 true values should lie inside."
    ]
    if first.behind:
        words.append(
            "Behind a point stand the past tasks that move its expected value most, each with how far "
            "it moves it from the common level; if you know that such a task misleads there, doubt the "
            "suggestion."
        )
    return words


def about_weights(rows: list[WeightRow], n: int) -> list[str]:
    """Which past tasks count."""
    tasks = [row for row in rows if row.weight is not None]
    used = [row for row in tasks if row.weight]
    if not used:
        return [
            f"{'The past task has' if len(tasks) == 1 else f'All {len(tasks)} past tasks have'} weight "
            "0: nothing in the past resembles the new data, so expectations rest on these alone."
        ]
    if n == 0 and len({round(row.weight or 0.0, 12) for row in tasks}) == 1:
        first = "Without an experiment, nothing tells the past tasks apart: all have the same weight"
        return [
            f"{first}, {weight_in_words(used[0].weight or 0.0)}. The first experiments change that."
        ]
    words = [_most(used)]
    dropped = len(tasks) - len(used)
    if dropped:
        words.append(
            f"{dropped} of {len(tasks)} past tasks {'has' if dropped == 1 else 'have'} weight 0 and "
            f"play{'s' if dropped == 1 else ''} no part."
        )
    rest = rows[-1].variance if rows[-1].weight is None and rows[-1].mean is None else None
    if rest is not None and rest > _OPEN:
        words.append(
            f"{percent(rest)} of the prior’s uncertainty is beyond the past tasks: new experiments "
            "teach more than they do."
        )
    else:
        words.append("Look at the tasks with large weights first: what worked there may work here.")
    return words


def about_shares(rows: list[WeightRow]) -> str:
    """What the columns of the weights' figure mean."""
    return _ABOUT_SHARES + _ABOUT_REST[rows[-1].mean is not None]


def _most(used: list[WeightRow]) -> str:
    if used[0].mean is None:
        weight = weight_in_words(used[0].weight or 0.0)
        return f"The past task with the largest weight is {quoted(used[0].name)} ({weight})."
    top = max(used, key=lambda row: row.mean or 0.0)
    share, weight = top.mean or 0.0, weight_in_words(top.weight or 0.0)
    if share >= _ALL:
        return f"What is expected comes from {quoted(top.name)} alone (weight {weight})."
    start = "Most" if share > 0.5 else "The largest part"
    return (
        f"{start} of what is expected comes from {quoted(top.name)} "
        f"(weight {weight}, {percent(share)} of the mean)."
    )


def about_slices(run: Run, shown: int, drawn: bool) -> list[str]:
    """How to read the slices."""
    _, where = run.center
    words = [
        f"Each chart changes one parameter and leaves all others as they are at {where}; bands are two "
        "standard deviations."
    ]
    if run.before is not None and run.task.n:
        words.append(
            "Where the blue band is narrower than the grey one, the experiments have taught something; "
            "where it is still wide and reaches good values, an experiment is worth its cost."
        )
    if drawn:
        words.append(
            "The thin lines are what single past tasks add to the common level; added up, they make "
            f"{_sum_of_lines(run)}."
        )
    if shown < len(run.parameters):
        words.append(
            f"Shown are the {shown} of {len(run.parameters)} parameters that move the expected value "
            "most."
        )
    return words


def _sum_of_lines(run: Run) -> str:
    if run.before is None:
        return "the past’s part of the expectation"
    return "the prior’s mean" if run.task.n else "the expected value"


def about_map(run: Run, names: tuple[str, str], effect: tuple[float, float]) -> list[str]:
    """Why these two parameters, and how to read the map."""
    if max(effect) <= 0:
        why = (
            f"The expected value is the same everywhere, so {quoted(names[0])} and {quoted(names[1])} "
        )
        why += "are only the first two parameters."
    else:
        why = (
            f"{quoted(names[0])} and {quoted(names[1])} move the expected value most: alone they make "
            f"{percent(effect[0])} and {percent(effect[1])} of its variation over the space."
        )
    return [
        why,
        "Yellow is expected to be good, dark blue to be bad; in the other map, the darker, the less is "
        f"known. All other parameters are as at {run.center[1]}. Points worth an experiment are yellow "
        "in the one map or dark in the other.",
    ]


def about_left_out(comparison: Comparison, objective: str) -> list[str]:
    """Who predicts better so far."""
    ours, plain, n = comparison.ours, comparison.plain, len(comparison.ours.y)
    how = "Each experiment is predicted from all others; on the dotted line a prediction is right."
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
        words.append(f"With {n} experiments this is a hint, no more.")
    return words


def about_matching(run: Run) -> list[str]:
    """What became of the past tasks' own spaces."""
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
        return [f"{_all(len(names))} given in the parameters of the new task."]
    if not matching.matches:
        return ["There is no past task, so nothing had to be matched."]
    if matching.identical:
        return [f"{_all(len(matching.matches))} in exactly the parameters of the new space."]
    used = [m for m in matching.matches if not m.ignored]
    words = [f"{len(used)} of {counted(len(matching.matches), 'past task')} could be used."]
    if any(m.lacking for m in used):
        words.append(
            "A task that lacks a parameter says nothing about it: its prediction is flat there."
        )
    if any(m.held for m in used):
        words.append(
            "A parameter that only a past task has is held at one value; if another suits the new task "
            "better, give that as fixed."
        )
    return words


def ignored_tasks(run: Run) -> list[str]:
    """Past tasks that could not be used, each with the reason."""
    matching = run.subject.matching
    return [f"{quoted(m.name)}: {m.ignored}" for m in matching.matches if m.ignored] if matching else []


def _first(names: list[str]) -> str:
    """Names in a sentence, which has room for a few."""
    more = len(names) - _NAMED
    return listed([*names[:_NAMED], f"{more} more"] if more > 0 else names)


def _all(tasks: int) -> str:
    return "The past task is" if tasks == 1 else f"All {tasks} past tasks are"


def _not_whole(run: Run) -> list[str]:
    tasks = zip(run.prior.names, run.prior.meta, strict=True)
    return [quoted(name, 30) for name, task in tasks if not task.whole]
