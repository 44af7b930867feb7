"""ScaMLSampler in many processes on one PostgreSQL server, one of them killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from itertools import combinations
from pathlib import Path

import optuna
import pytest
from optuna.samplers import RandomSampler
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial, TrialState

from scaml import ScaMLSampler
from scaml.errors import DatabaseError
from tests.postgres import PASSWORD, Server, postgres
from tests.worker import PARAMETERS, PAST, objective

ROOT = Path(__file__).parents[3]
WORKERS, FINISHED, KILL_AFTER = 4, 80, 30
SECONDS = 240.0
SHIFTS = (-0.2, -0.1, 0.1, 0.2)


@pytest.fixture(scope="module", autouse=True)
def _quiet() -> Iterator[None]:
    """A failure shows what the workers said, not hundreds of lines about trials."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    yield
    optuna.logging.set_verbosity(before)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server with the past studies in it."""
    with postgres() as running:
        with storage_of(running) as storage:
            create_past(storage, 30)
        yield running


@pytest.fixture
def storage(server: Server) -> Iterator[RDBStorage]:
    with storage_of(server) as opened:
        yield opened


@contextmanager
def storage_of(server: Server) -> Iterator[RDBStorage]:
    """The database as Optuna sees it, with no connection left open."""
    opened = RDBStorage(server.url)
    try:
        yield opened
    finally:
        opened.remove_session()
        opened.engine.dispose()


def create_past(storage: RDBStorage, trials: int) -> None:
    for i, shift in enumerate(SHIFTS):
        scratch = optuna.create_study(sampler=RandomSampler(seed=i))
        scratch.optimize(partial(objective, shift=shift), n_trials=trials)
        past = optuna.create_study(study_name=f"{PAST}{i}", storage=storage)
        past.add_trials(scratch.trials)


class Team:
    """Worker processes on one study, and what they wrote."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, server: Server, study: str, trials: int) -> None:
        """Add a worker, which waits for `go`; every one has the same seed."""
        command = [sys.executable, "-m", "tests.worker", server.url, study]
        command += ["--trials", str(trials), "--seed", "0"]
        path = self.folder / f"worker-{len(self.processes)}"
        with path.with_suffix(".out").open("wb") as out, path.with_suffix(".err").open("wb") as err:
            self.processes.append(
                subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=out,
                    stderr=err,
                    cwd=ROOT,
                    env={**os.environ, "OMP_NUM_THREADS": "1"},
                )
            )

    def go(self) -> None:
        """Let all begin at once, when the slowest has imported and fitted what it needs."""
        outputs = [self.folder / f"worker-{i}.out" for i in range(len(self.processes))]
        self.wait_until(lambda: all(path.read_text() for path in outputs), "every worker is ready")
        for process in self.processes:
            assert process.stdin is not None
            process.stdin.write(b"go\n")
            process.stdin.close()

    def wait_until(self, happened: Callable[[], bool], what: str) -> None:
        """Look again and again; fail, with what the workers said, if it takes too long."""
        deadline = time.monotonic() + SECONDS
        while not happened():
            codes = [process.poll() for process in self.processes]
            failed = any(code not in (None, 0, -signal.SIGKILL) for code in codes)
            if failed or time.monotonic() > deadline:
                pytest.fail(f"Waited in vain until {what}; exit codes {codes}.\n{self.said()}")
            time.sleep(0.03)

    def ended(self) -> bool:
        return all(process.poll() is not None for process in self.processes)

    def said(self) -> str:
        paths = sorted(self.folder.glob("worker-*.err"))
        return "\n".join(f"--- {path.name}\n{path.read_text()}" for path in paths)

    def kill(self) -> None:
        for process in self.processes:
            if process.stdin is not None:
                process.stdin.close()
            process.kill()
            process.wait()


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    workers = Team(tmp_path)
    try:
        yield workers
    finally:
        workers.kill()


def point(trial: FrozenTrial) -> str | None:
    """The complete parameters; None while some are missing."""
    return json.dumps(trial.params, sort_keys=True) if trial.params.keys() == PARAMETERS else None


def twins(trials: Sequence[FrozenTrial]) -> list[tuple[int, int]]:
    """Numbers of trials that were under way at the same time and had equal parameters."""
    never = datetime.max
    placed = [(t, point(t), t.datetime_start or never, t.datetime_complete or never) for t in trials]
    return [
        (a.number, b.number)
        for (a, at, a_start, a_end), (b, bt, b_start, b_end) in combinations(placed, 2)
        if at is not None and at == bt and a_start < b_end and b_start < a_end
    ]


def overlaps(trials: Sequence[FrozenTrial]) -> int:
    """How many pairs of finished trials were under way at the same time."""
    spans = [(t.datetime_start, t.datetime_complete) for t in trials]
    return sum(
        a[0] < b[1] and b[0] < a[1]
        for a, b in combinations(spans, 2)
        if a[0] and a[1] and b[0] and b[1]
    )


def dead_trial_of(study: optuna.Study, victim: subprocess.Popen[bytes]) -> FrozenTrial | None:
    """Kill the victim in the middle of a trial; None if it was between two of them."""
    victim.send_signal(signal.SIGSTOP)
    time.sleep(0.1)  # what it had sent arrives
    for trial in study.get_trials(deepcopy=False, states=[TrialState.RUNNING]):
        if trial.user_attrs.get("worker") == victim.pid and point(trial):
            victim.kill()
            victim.wait()
            return trial
    victim.send_signal(signal.SIGCONT)
    return None


def trial_at(number: int, x: float, start: int, end: int | None) -> FrozenTrial:
    seconds = [None if at is None else datetime(2026, 1, 1, second=at) for at in (start, end)]
    state = TrialState.RUNNING if end is None else TrialState.COMPLETE
    params = dict.fromkeys(PARAMETERS, x)
    return FrozenTrial(number, state, x, seconds[0], seconds[1], params, {}, {}, {}, {}, number)


def test_equal_trials_count_only_if_they_ran_at_the_same_time() -> None:
    trials = [trial_at(0, 0.5, 0, 4), trial_at(1, 0.5, 3, 6), trial_at(2, 0.7, 3, 6)]
    trials += [trial_at(3, 0.5, 7, 9), trial_at(4, 0.7, 5, None), trial_at(5, 0.7, 20, 21)]
    assert twins(trials) == [(0, 1), (2, 4), (4, 5)]


def test_four_processes_share_a_study_and_one_is_killed(
    server: Server, storage: RDBStorage, team: Team
) -> None:
    study = optuna.create_study(study_name="shared", storage=storage)
    for _ in range(WORKERS):
        team.start(server, study.study_name, FINISHED)
    team.go()
    dead: list[FrozenTrial] = []

    def all_done_and_one_killed() -> bool:
        trials = study.get_trials(deepcopy=False)
        running = [point(trial) for trial in trials if trial.state == TrialState.RUNNING]
        complete = [parameters for parameters in running if parameters is not None]
        assert len(set(complete)) == len(complete), f"equal trials run: {complete}"
        if not dead and sum(t.state.is_finished() for t in trials) >= KILL_AFTER:
            dead.extend(filter(None, [dead_trial_of(study, team.processes[0])]))
        return team.ended()

    team.wait_until(all_done_and_one_killed, f"{FINISHED} trials are finished")
    assert [process.returncode for process in team.processes] == [-signal.SIGKILL, 0, 0, 0]
    assert "Traceback" not in team.said(), team.said()
    trials = study.get_trials()
    assert [trial.number for trial in trials] == list(range(len(trials)))
    assert [t.number for t in trials if t.state != TrialState.COMPLETE] == [dead[0].number]
    assert FINISHED <= len(trials) - 1 < FINISHED + WORKERS
    assert twins(trials) == []
    # It was no queue: most trials ran beside others, and every survivor did its part.
    assert overlaps(trials) > FINISHED
    assert {t.user_attrs["worker"] for t in trials} == {p.pid for p in team.processes}


def test_dead_running_trials_do_not_stop_the_others(
    server: Server, storage: RDBStorage, team: Team
) -> None:
    """As SIGKILL leaves them: before the first parameter, amid the parameters and after them."""
    study = optuna.create_study(study_name="dead", storage=storage, sampler=RandomSampler(seed=0))
    study.ask()
    amid = study.ask()
    amid.suggest_float("x", 0.0, 1.0)
    amid.suggest_float("y", 0.0, 1.0)
    objective(study.ask())
    team.start(server, study.study_name, 10)
    team.start(server, study.study_name, 10)
    team.go()
    team.wait_until(team.ended, "10 trials are finished beside the dead ones")
    assert [process.returncode for process in team.processes] == [0, 0], team.said()
    assert "Traceback" not in team.said(), team.said()
    trials = study.get_trials()
    assert [t.number for t in trials if t.state != TrialState.COMPLETE] == [0, 1, 2]
    assert len(trials) >= 13
    assert twins(trials) == []


def test_a_storage_that_went_away_is_named_without_its_password() -> None:
    with postgres() as own, storage_of(own) as storage:
        create_past(storage, 3)
        past = optuna.load_study(study_name=f"{PAST}0", storage=storage)
        own.stop()
        with pytest.raises(DatabaseError, match=rf"127\.0\.0\.1:{own.port}") as caught:
            ScaMLSampler(meta_studies=[past], seed=0)
        everything = "".join(traceback.format_exception(caught.value))
        quoted = own.url.split("@")[0].rsplit(":", 1)[1]
        assert PASSWORD not in everything
        assert quoted not in everything
