"""The final values that pruned trials would probably have reached, from their intermediate values."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from optuna.trial import FrozenTrial, TrialState

__all__ = ["FEWEST_PEERS", "final_values"]

# Complete trials that a pruned trial is compared with; a single one has no ranks.
FEWEST_PEERS = 2


def final_values(
    trials: Sequence[FrozenTrial], complete: Mapping[int, float], sign: float
) -> dict[int, float]:
    """Estimate the final values of the pruned trials of a study, by trial number; larger is better.

    A pruned trial is compared with its peers, the complete trials that reported an intermediate value
    at its last step. Its rank among their intermediate values (ties in the middle) is taken as its rank
    among their final values. The estimate is at most their median, because a pruner does not stop a
    trial for being good. A trial that was worse than all of them, or reported NaN, gets the worst.

    If fewer than `FEWEST_PEERS` complete trials reported at its last step, the latest of its earlier
    steps where enough did is used. Trials without such a step are not in the result.

    Args:
        trials: The trials of one study.
        complete: The final values of its complete trials by number, so that larger is better; complete
            trials without a usable value are not among them.
        sign: 1 if large values of the objective are good, -1 if small values are.
    """
    measured = [trial for trial in trials if trial.number in complete]
    reports = Counter(step for trial in measured for step in trial.intermediate_values)
    comparable = {step for step, number in reports.items() if number >= FEWEST_PEERS}
    pruned_at: defaultdict[int, list[FrozenTrial]] = defaultdict(list)
    for trial in trials:
        if trial.state == TrialState.PRUNED and (
            steps := comparable & trial.intermediate_values.keys()
        ):
            pruned_at[max(steps)].append(trial)
    values = {}
    for step, pruned in pruned_at.items():
        peers = [trial for trial in measured if step in trial.intermediate_values]
        intermediate = sorted(_at(step, trial, sign) for trial in peers)
        final = sorted(complete[trial.number] for trial in peers)
        for trial in pruned:
            # Not by rank: NaN is worse than all peers, also than those that reported NaN and recovered.
            is_nan = math.isnan(trial.intermediate_values[step])
            value = final[0] if is_nan else _same_rank(_at(step, trial, sign), intermediate, final)
            values[trial.number] = value
    return values


def _at(step: int, trial: FrozenTrial, sign: float) -> float:
    """The intermediate value of a trial, so that larger is better; NaN is the worst of all."""
    value = sign * float(trial.intermediate_values[step])
    return -math.inf if math.isnan(value) else value


def _same_rank(value: float, intermediate: Sequence[float], final: Sequence[float]) -> float:
    """The final value whose rank is that of the value among the intermediate ones, or the median.

    Both lists are in ascending order. Two neighbouring final values are averaged if the rank is
    between them.
    """
    # Twice the rank, counted from 0, is an integer.
    twice = bisect_left(intermediate, value) + bisect_right(intermediate, value) - 1
    median = len(final) - 1
    twice = max(0, min(twice, median))
    return (final[twice // 2] + final[(twice + 1) // 2]) / 2
