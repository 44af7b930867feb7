"""`of_sheet`: learn from the past tasks of a table, and suggest for its new task."""

from __future__ import annotations

from functools import partial

from scaml.ask import choose_new
from scaml.common.checks import check_integer, check_seed
from scaml.common.progress import Progress
from scaml.explain.subject import Subject
from scaml.methods.base import Method
from scaml.methods.scaml import ScaML
from scaml.priors.learn import learn
from scaml.sheets.reading import Sheet
from scaml.tasks.task import Task

__all__ = ["of_sheet"]

_LEARNING = "Learning from the past tasks"


def of_sheet(
    sheet: Sheet,
    *,
    q: int = 1,
    method: Method | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Subject:
    """Learn from the past tasks of a table, and suggest for its new task.

    Args:
        sheet: The table.
        q: Number of experiments to do at once.
        method: The meta-learning method; ScaML-GP by default.
        seed: Decides every random draw.
        n_jobs: Processes of the meta-fit.
        progress: Called at the beginning of every stage and after its steps.

    Returns:
        The prior, the new task so far and the suggested points.
    """
    q, seed = check_integer(q, "q", least=1), check_seed(seed)
    tell: Progress = progress or (lambda what, done, total: None)
    if sheet.past:
        tell(_LEARNING, 0, None)
    prior, matching = learn(
        sheet.past,
        sheet.space,
        method or ScaML(),
        seed=seed,
        n_jobs=n_jobs,
        progress=partial(tell, _LEARNING),
    )
    tell("Choosing what to try next", 0, None)
    task = Task.empty(sheet.space.d)
    if sheet.task.y:
        X = sheet.space.encode_all(sheet.task.params)
        task = Task(X, sheet.task.y)
    model = prior.condition(task, seed=seed)
    pending = sheet.space.encode_all(sheet.pending)
    return Subject(
        prior=prior,
        task=task,
        space=sheet.space,
        objective=sheet.objective,
        maximize=sheet.maximize,
        matching=matching,
        suggestions=choose_new(prior, model, task, q, pending, seed),
        title=sheet.task.name,
        model=model,
    )
