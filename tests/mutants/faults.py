"""The faults: one line of the source each, and what it says instead."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FAULTS", "Fault"]


@dataclass(frozen=True)
class Fault:
    """A deliberate fault.

    Args:
        file: Below src/scaml.
        what: In a few words.
        before: Text that stands in the file exactly once.
        after: What takes its place.
    """

    file: str
    what: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}: {self.what}"

    def applied(self, source: str) -> str:
        """The source with the fault."""
        times = source.count(self.before)
        if times != 1:
            raise ValueError(
                f"{self}: its text stands {times} times in the file, not once; write it anew."
            )
        return source.replace(self.before, self.after)


FAULTS: tuple[Fault, ...] = (
    # common
    Fault(
        "common/files.py",
        "a failed write leaves its draft",
        "                draft.unlink()\n",
        "                pass\n",
    ),
    Fault(
        "common/files.py",
        "a file is copied, not renamed",
        "            draft.replace(target)\n",
        "            target.write_bytes(draft.read_bytes()[:-1])\n",
    ),
    Fault(
        "common/parallel.py",
        "the number of threads is not restored",
        "        torch.set_num_threads(before)\n",
        "        torch.set_num_threads(1)\n",
    ),
    Fault(
        "common/tensor_file.py",
        "a file of a later format is read",
        "    if version > FORMAT:",
        "    if version > FORMAT + 1:",
    ),
    Fault(
        "common/checks.py",
        "a seed of -1 passes",
        'check_integer(seed, "The seed", least=0)',
        'check_integer(seed, "The seed", least=-1)',
    ),
    # tasks
    Fault("tasks/arrays.py", "NaN passes", "    bad = ~values.isfinite()", "    bad = values.isinf()"),
    Fault(
        "tasks/task.py",
        "an appended observation is dropped",
        "torch.cat([self.y, values])",
        "torch.cat([self.y, values])[: len(self.y) + len(values)] * 1.0 if len(self.y) else values * 0.0",
    ),
    Fault("tasks/task.py", "an unknown column is not zeroed", '"X", points * mask)', '"X", points)'),
    Fault(
        "tasks/meta_data.py",
        "two tasks may have one name",
        "names.count(name) > 1",
        "names.count(name) > 2",
    ),
    Fault(
        "tasks/past_task.py",
        "the worst half of a long task is kept",
        "best, others = order[: most // 2], order[most // 2 :]",
        "best, others = order[-(most // 2) :], order[: -(most // 2)]",
    ),
    # spaces
    Fault(
        "spaces/space.py",
        "a log scale is forgotten",
        "    return math.log(value) if distribution.log else value",
        "    return value",
    ),
    Fault(
        "spaces/space.py",
        "the last step of a grid is missing",
        "        _steps(distribution) + 1, dtype=torch.float64",
        "        _steps(distribution), dtype=torch.float64",
    ),
    Fault(
        "spaces/space.py",
        "choices are decoded upside down",
        "max(range(len(point)), key=point.__getitem__)",
        "min(range(len(point)), key=point.__getitem__)",
    ),
    Fault(
        "spaces/matching.py",
        "a lacking column counts as known",
        "    known = [name in shared for name",
        "    known = [True for name",
    ),
    Fault(
        "spaces/space_file.py",
        "a logarithmic scale is not read",
        "return FloatDistribution(low, high, log=log, step=step)",
        "return FloatDistribution(low, high, step=step)",
    ),
    Fault(
        "gp/likelihood.py",
        "the slope by the noise is off by 1 %",
        "    by_noise = 0.5 * noise",
        "    by_noise = 0.505 * noise",
    ),
    Fault(
        "gp/likelihood.py",
        "noise is forgotten",
        "    diagonal.add_(_noise_of_rows(noise, mask))",
        "    diagonal.add_(0.0 * _noise_of_rows(noise, mask) + 1e-9)",
    ),
    Fault(
        "gp/likelihood.py",
        "padded rows count",
        "    count = residual.shape[-1] if mask is None else mask.sum(-1)",
        "    count = residual.shape[-1]",
    ),
    Fault(
        "gp/packed_likelihood.py",
        "the slope by the noise is off by 1 %",
        "        slope[:, -1] = 0.5 * noise",
        "        slope[:, -1] = 0.505 * noise",
    ),
    Fault(
        "gp/packed_likelihood.py",
        "the level does not pay for itself",
        "0.5 * np.log1p(level * t)",
        "0.0 * np.log1p(level * t)",
    ),
    Fault(
        "gp/linalg.py",
        "half the log determinant is the whole",
        "    return L.diagonal(dim1=-2, dim2=-1).log().sum(-1)",
        "    return 2.0 * L.diagonal(dim1=-2, dim2=-1).log().sum(-1)",
    ),
    Fault(
        "gp/minimize.py",
        "the upper bound is not respected",
        "np.minimum(np.maximum(x, self.lower), self.upper)",
        "np.maximum(x, self.lower)",
    ),
    Fault(
        "gp/hyperpriors.py",
        "the prior of the noise is wider",
        "noise=LogNormal(-8.0, 2.0)\n)\nTEST_TASK",
        "noise=LogNormal(-8.0, 2.5)\n)\nTEST_TASK",
    ),
    Fault(
        "gp/map_fit.py",
        "the priors are forgotten",
        "            values.append((evaluation.value - priors.log_prob(rows)) / count)",
        "            values.append(evaluation.value / count)",
    ),
    Fault(
        "gp/column_selection.py",
        "a free column costs nothing",
        "        worth = (0.5 * sizes.log()).tolist()",
        "        worth = (0.0 * sizes.log()).tolist()",
    ),
    Fault(
        "gp/task_gps.py",
        "the posterior covariance is the prior's",
        "        return k - u.movedim(-2, 0) @ v.movedim(-2, 0).mT",
        "        return k + 0.0 * u.movedim(-2, 0) @ v.movedim(-2, 0).mT",
    ),
    Fault(
        "gp/units.py",
        "constant values get a tiny scale",
        "first_positive(deviation_of(y), y.abs().max())",
        "first_positive(y.std() if len(y) > 1 else y.abs().max())",
    ),
    Fault(
        "gp/moments_model.py",
        "further observations do not move the mean",
        "        mean = mean + gained\n",
        "        mean = mean + 0.0 * gained\n",
    ),
    Fault(
        "gp/posterior.py",
        "observation noise is not scaled",
        "torch.diag_embed((noise * variance).expand(mean.shape))",
        "torch.diag_embed(noise.expand(mean.shape))",
    ),
    Fault(
        "gp/gaussian_copula.py",
        "ranks are turned over",
        "z: Tensor = torch.special.ndtri(",
        "z: Tensor = -torch.special.ndtri(",
    ),
    # model
    Fault(
        "model/theorem1.py",
        "weights are not squared",
        "torch.tensordot(theta.weights.square(), tasks.covariance",
        "torch.tensordot(theta.weights, tasks.covariance",
    ),
    Fault(
        "model/lemma1.py",
        "meta-tasks do not correlate with the test-task",
        "float(task == m) for task in (nu, mu)]",
        "float(task == m) for task in (nu, nu)]",
    ),
    Fault(
        "model/likelihood.py",
        "noise is forgotten",
        "    noise = theta.noise * torch.eye",
        "    noise = 1e-6 * torch.eye",
    ),
    Fault(
        "model/algorithm1.py",
        "the learned scale is ignored",
        "Units(scaling.offset, factor * scaling.scale)",
        "Units(scaling.offset, scaling.scale)",
    ),
    Fault(
        "model/scaml_gp.py",
        "all weights times 0",
        "        self._active_weights = w = self.weights[active]\n",
        "        self._active_weights = w = 0.0 * self.weights[active]\n",
    ),
    Fault(
        "model/scaml_gp.py",
        "noise is forgotten",
        "torch.diag_embed(self.noise + self._extra_noise)",
        "torch.diag_embed(1e-6 + 0.0 * self.noise + self._extra_noise)",
    ),
    Fault(
        "model/scaml_gp.py",
        "fantasies keep the observation noise",
        "        new._extra_noise = noise - self.noise.expand(self._X.shape[:-1])",
        "        new._extra_noise = 0.0 * self.noise.expand(self._X.shape[:-1])",
    ),
    Fault(
        "model/evidence.py",
        "what had to be tuned costs nothing",
        "    occam = -0.5 * curvature.log().sum(-1) + tail.where(held, 0.0).sum(-1)\n",
        "    occam = tail.where(held, 0.0).sum(-1)\n",
    ),
    Fault(
        "model/fit_explanations.py",
        "the prior of explanations does not count",
        "        found = torch.log_softmax(evidences + prior, 0)\n",
        "        found = torch.log_softmax(evidences, 0)\n",
    ),
    Fault(
        "model/unknown_level.py",
        "the level keeps its prior variance",
        "    tau = level * kept\n",
        "    tau = level + 0.0 * kept\n",
    ),
    Fault(
        "model/average_gp.py",
        "new observations leave the probabilities as they are",
        "torch.log_softmax(self.log_probability + torch.stack(gained, dim=-1), -1)",
        "(self.log_probability + 0.0 * torch.stack(gained, dim=-1))",
    ),
    Fault(
        "model/task_groups.py",
        "mirrored members are not told",
        "torch.where(rho[centre, members] < 0, -1, 1)",
        "torch.where(rho[centre, members] < -2, -1, 1)",
    ),
    Fault(
        "model/point_moments.py",
        "the variance does not shrink at the data",
        "        variance = self.residual + past.variance - psi.square().sum(-1)",
        "        variance = self.residual + past.variance",
    ),
    Fault(
        "model/point_moments.py",
        "the slope forgets the level",
        "        by_level = -2.0 * self.tau * by_variance",
        "        by_level = -0.0 * self.tau * by_variance",
    ),
    Fault(
        "model/past_at_points.py",
        "the slope forgets the past tasks at X_t",
        "            total += sums.baddbmm_(by_R, backward[:, N:]).sum(0)",
        "            total += sums.sum(0)",
    ),
    Fault(
        "model/table_cache.py",
        "the cache is not extended by new points",
        "        self._rows[slot] = self._row(x)\n",
        "        self._rows[slot] = (slot == 0) * self._row(x)\n",
    ),
    Fault(
        "model/fit_theta.py",
        "the slope by the weights is off by 1 %",
        "    by_mean = evaluation.alpha @ mean.mT",
        "    by_mean = 1.01 * evaluation.alpha @ mean.mT",
    ),
    Fault(
        "model/fit_theta.py",
        "the scale does not pay for itself",
        "        value = value + n * s\n",
        "        value = value + 0.0 * s\n",
    ),
    Fault(
        "model/fit_theta.py",
        "a mirrored past is not searched for",
        "    may_be = priors.weights.mirrored > 0 and priors.level > 0",
        "    may_be = False",
    ),
    Fault(
        "model/packed_posterior.py",
        "a mirrored past has the slope of the past as it is",
        "            by_mean *= sign[:, None]",
        "            by_mean *= 1.0",
    ),
    Fault(
        "model/past_at_rows.py",
        "a row is taken from what another task left",
        "        same = (kept.X[:both] == X[:both]).all(-1)",
        "        same = (kept.X[:both] == kept.X[:both]).all(-1)",
    ),
    Fault(
        "model/weight_priors.py",
        "Γ(1, 1) has another rate",
        "        return -w.sum(-1)",
        "        return -1.1 * w.sum(-1)",
    ),
    Fault(
        "model/normalization.py",
        "bad values are not clipped",
        "torch.where(z < _Z_BEST_THIRD, torch.maximum(z, ranked), z)",
        "z + 0.0 * ranked",
    ),
    Fault(
        "model/past_similarity.py",
        "chance counts as similarity",
        "        mean = mean * (1.0 - error / (n * mean.square())).clamp_min(0.0)",
        "        mean = mean * 1.0",
    ),
    Fault(
        "model/past_parts.py",
        "parts ignore the sign of the weights",
        "self.weights[self._active].unsqueeze(-1) * self._active_gps.mean(X)",
        "self.weights[self._active].abs().unsqueeze(-1) * self._active_gps.mean(X)",
    ),
    Fault(
        "model/hyperparameters.py",
        "c and s are exchanged",
        "        c = ours[..., 0] if self.common else None\n        s = ours[..., -1] if self.scale else None",
        "        c = ours[..., -1] if self.common else None\n        s = ours[..., 0] if self.scale else None",
    ),
    # search
    Fault(
        "search/ucb.py",
        "the acquisition function is negated",
        "        value: Tensor = mean + self.beta.sqrt() * variance.sqrt()",
        "        value: Tensor = -(mean + self.beta.sqrt() * variance.sqrt())",
    ),
    Fault(
        "search/ucb.py",
        "√β is used as β",
        "torch.tensor(sqrt_beta**2,",
        "torch.tensor(float(sqrt_beta),",
    ),
    Fault(
        "search/log_nei.py",
        "the worst value is improved on",
        'self.register_buffer("best", values.amax(-1))',
        'self.register_buffer("best", values.amin(-1))',
    ),
    Fault(
        "search/log_nei.py",
        "the far tail is cut off",
        "torch.log1p(-3.0 / far.square()) - 2.0 * torch.log(-far)",
        "torch.log1p(-3.0 / far.square()) - 1.9 * torch.log(-far)",
    ),
    Fault(
        "search/log_nei.py",
        "the slope takes the deviation for fixed",
        "        by_variance = 0.5 * share * (1.0 - (t * u).sum(-1)) / variance",
        "        by_variance = 0.5 * share / variance",
    ),
    Fault(
        "search/cube.py",
        "local searches are skipped",
        "        points, values = torch.cat([refined, points]), torch.cat([found, values])\n",
        "        values = values + 0.0 * found.max()\n",
    ),
    Fault(
        "search/valid_points.py",
        "points of a grid are not snapped",
        "            parts.append(block.values[nearest_places(at, block.values)])",
        "            parts.append(at.clamp(0.0, 1.0))",
    ),
    Fault(
        "search/local_search.py",
        "numbers do not ascend after a change",
        "            left.moved[rows] |= gained",
        "            left.moved[rows] &= gained",
    ),
    Fault(
        "search/mixed_space.py",
        "where all neighbours are taken, nothing else is looked for",
        "        free = _free(first_points(blocks, len(avoid) + 1), avoid)\n    if",
        "        free = free[:0]\n    if",
    ),
    Fault(
        "ask.py",
        "evaluated rows are chosen again",
        "    rows = (times == times.min()).nonzero().flatten()",
        "    rows = (times >= 0).nonzero().flatten()",
    ),
    Fault(
        "ask.py",
        "pending points are forgotten",
        "            model = _believed(make(model), model, pending)\n",
        "            model = model\n",
    ),
    # methods
    Fault(
        "methods/base.py",
        "the named acquisition function is ignored",
        'if self.method.acquisition == "lognei" and',
        'if self.method.acquisition == "none" and',
    ),
    Fault(
        "methods/scaml.py",
        "the past is not clipped",
        'SeenPast.clipped(meta) if self.normalization == "clipped" else SeenPast.of(meta)',
        "SeenPast.of(meta)",
    ),
    Fault(
        "methods/rgpe.py",
        "past tasks get no weight",
        "    return share.mean(-1), float(",
        "    return 0.0 * share.mean(-1), float(",
    ),
    Fault(
        "methods/sgpt.py",
        "agreement counts as discordance",
        "ours * (y.unsqueeze(-1) - y).sign() < 0",
        "ours * (y.unsqueeze(-1) - y).sign() > 0",
    ),
    Fault(
        "methods/by_name.py",
        "scaml-paper is the default",
        "lambda module: module.ScaML.paper()",
        "lambda module: module.ScaML()",
    ),
    Fault(
        "methods/gpbo.py",
        "the plain GP is not standardized",
        "fit_plain_gp(task, standardize(task.y), kernel",
        "fit_plain_gp(task, standardize(task.y[:0]), kernel",
    ),
    Fault(
        "methods/shared/modular.py",
        "a past task is dropped",
        "        meta = self.meta.and_task(task)\n",
        "        meta = MetaData([*list(self.meta)[1:], self.meta[0], task][: len(self.meta)] + [task])\n",
    ),
    Fault(
        "methods/shared/ensemble.py",
        "the past adds no variance",
        "            covariance = covariance + past_covariance\n",
        "            covariance = covariance + 0.0 * past_covariance\n",
    ),
    # priors
    Fault(
        "priors/meta_fit.py",
        "the first task of a part is kept for all",
        "yield {i: _row(state, row, tasks[i])",
        "yield {i: _row(state, 0, tasks[i])",
    ),
    Fault(
        "priors/fit_cache.py",
        "the seed is not part of the name",
        'f"{_VERSIONS} {method!r} {seed}"',
        'f"{_VERSIONS} {method!r}"',
    ),
    Fault(
        "priors/load.py",
        "columns of its own are forgotten",
        "extra=extra if extra.shape[-1] else None",
        "extra=None",
    ),
    Fault(
        "priors/learn.py",
        "values that are held are ignored",
        "match(past, space, fixed=fixed)",
        "match(past, space)",
    ),
    # explain
    Fault(
        "explain/shares.py",
        "terms of the mean cancel",
        "_shares(parts.means(X).abs())",
        "_shares(parts.means(X))",
    ),
    Fault(
        "explain/suggestions.py",
        "a minimized prediction keeps its sign",
        "        mean, deviation = (sign * predicted).tolist(), spread.tolist()",
        "        mean, deviation = predicted.tolist(), spread.tolist()",
    ),
    Fault(
        "explain/suggestions.py",
        "a prediction below all values is not remarked",
        "    if expected < low - rounding:",
        "    if expected < low - high:",
    ),
    Fault(
        "explain/run.py",
        "the range of a minimized objective has the wrong sign",
        "        values = [self.sign * task.y for task in tasks if task.n]",
        "        values = [task.y for task in tasks if task.n]",
    ),
    Fault(
        "explain/explanations.py",
        "improbable explanations are lost",
        "sum(e.probability for e in others)",
        "0.0",
    ),
    Fault(
        "explain/weights.py",
        "the smallest weight comes first",
        "weights.abs().argsort(descending=True, stable=True)",
        "weights.abs().argsort(descending=False, stable=True)",
    ),
    Fault(
        "explain/leave_one_out.py",
        "the plain GP wins where the past does",
        "        gain = errors[0] - errors[1]",
        "        gain = errors[1] - errors[0]",
    ),
    Fault(
        "explain/sensitivity.py",
        "effects are not compared with the whole",
        "    return (variances / total).clamp_max(1.0)",
        "    return variances.clamp_max(1.0)",
    ),
    # integrations
    Fault(
        "integrations/optuna/past_studies.py",
        "a minimized value is not flipped",
        "    sign = 1.0 if direction == StudyDirection.MAXIMIZE else -1.0",
        "    sign = 1.0",
    ),
    Fault(
        "integrations/optuna/past_studies.py",
        "a study is its own past",
        "if print_ != mine]",
        "if print_ is not None]",
    ),
    Fault(
        "integrations/optuna/past_studies.py",
        "a negated study keeps the signs of its intermediate values",
        "{step: -v for step, v in",
        "{step: v for step, v in",
    ),
    Fault(
        "integrations/optuna/past_studies.py",
        "the last report of a pruned trial is its value",
        "    if trial.state != TrialState.COMPLETE:  # the value",
        "    if not trial.state.is_finished():  # the value",
    ),
    Fault(
        "integrations/optuna/pruned_trials.py",
        "a pruned trial is better than the median",
        "    median = len(final) - 1",
        "    median = 2 * len(final) - 2",
    ),
    Fault(
        "integrations/optuna/pruned_trials.py",
        "intermediate values of a minimized study are not flipped",
        "    value = sign * float(",
        "    value = float(",
    ),
    Fault(
        "integrations/optuna/pruned_trials.py",
        "a pruned trial is compared at its first step",
        "pruned_at[max(steps)]",
        "pruned_at[min(steps)]",
    ),
    Fault(
        "integrations/optuna/pruned_trials.py",
        "ties count as worse",
        "bisect_left(intermediate, value) + bisect_right(intermediate, value) - 1",
        "2 * bisect_left(intermediate, value) - 1",
    ),
    Fault(
        "integrations/optuna/observed_study.py",
        "pruned trials of the study at hand are forgotten",
        "states=(TrialState.COMPLETE, TrialState.PRUNED)",
        "states=(TrialState.COMPLETE,)",
    ),
    Fault(
        "integrations/optuna/sampler.py",
        "the trial's number does not enter the seed",
        "np.random.SeedSequence([self._seed, trial.number])",
        "np.random.SeedSequence([self._seed, 0])",
    ),
    Fault(
        "integrations/optuna/reservation.py",
        "points of others are not seen",
        "        if params is not None and params not in points:",
        "        if params is None and params not in points:",
    ),
    # sheets
    Fault(
        "sheets/cells.py",
        "a decimal comma is not read",
        'cell.replace(",", ".") if comma',
        'cell.replace(",", "") if comma',
    ),
    Fault(
        "sheets/rows.py",
        "past rows without a value are kept as 0",
        "            if math.isnan(objective.values[i]):\n                unmeasured.append(i)",
        "            if objective.values[i] is None:\n                unmeasured.append(i)",
    ),
    Fault(
        "sheets/rows.py",
        "a minimized objective is maximized",
        "        sign = -1.0 if minimize else 1.0",
        "        sign = 1.0",
    ),
    Fault(
        "sheets/subject.py",
        "pending rows are forgotten",
        "    pending = sheet.space.encode_all(sheet.pending)",
        "    pending = sheet.space.encode_all([])",
    ),
    # report
    Fault(
        "report/tables.py",
        "explanations are read as HTML",
        "escaped(explanation_text(row))",
        "explanation_text(row)",
    ),
    Fault(
        "report/escape.py",
        "names are read as HTML",
        "    return html.escape(plain(text))",
        "    return plain(text)",
    ),
    Fault(
        "report/text.py",
        "a share of one half is shown as 5 %",
        'f"{100 * share:.0f} %"',
        'f"{10 * share:.0f} %"',
    ),
    Fault(
        "report/document.py",
        "scripts of others may run",
        "script-src {allowed};",
        "script-src 'unsafe-inline';",
    ),
    # bench
    Fault(
        "bench/families.py",
        "Branin lost its square",
        "a * (x2 - b * x1.square() + c * x1 - r).square()",
        "a * (x2 - b * x1.square() + c * x1 - r)",
    ),
    Fault(
        "bench/safety.py",
        "the tasks that are not good come from the same world",
        "return Wave.draw(np.random.default_rng([_OTHER_WORLD, seed])), _ALIKE",
        "return world, _ALIKE",
    ),
    Fault(
        "bench/safety.py",
        "a task that is left out is kept",
        'sorted(good) if self.others == "left out"',
        'list(range(drawn)) if self.others == "left out"',
    ),
    Fault(
        "bench/single_run.py",
        "regret is of the last point, not of the best",
        "        best = max(best, value)",
        "        best = value",
    ),
    Fault(
        "bench/summary/rows.py",
        "ranks are turned over",
        "(others < own).sum(-1)",
        "(others > own).sum(-1)",
    ),
    # cli
    Fault(
        "cli/terminal.py",
        "a file that is there is replaced",
        "        if path.exists() and not force:",
        "        if path.exists() and force:",
    ),
    Fault(
        "cli/__init__.py",
        "an error ends with 0",
        '    typer.echo(f"scaml: {message}", err=True)\n    return 2',
        '    typer.echo(f"scaml: {message}", err=True)\n    return 0',
    ),
    Fault(
        "cli/show_suggestions.py",
        "± shows one standard deviation",
        "{2 * (one.deviation or 0.0):.2g}",
        "{(one.deviation or 0.0):.2g}",
    ),
)
