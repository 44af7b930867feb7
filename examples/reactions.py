"""A lab with a spreadsheet: coupling reactions of six substrates are known, a seventh is new.

`reactions.csv` has one row per experiment: the substrate, temperature in °C, time in h, equivalents of
the partner, the catalyst, and the yield in %. The script plays the weeks that follow: it asks
`scaml suggest` for three experiments, "runs" them in a simulated flask, adds them to a copy of the
table, and asks again. Run it as `python examples/reactions.py`; `--write` makes `reactions.csv` anew.
"""

from __future__ import annotations

import argparse
import csv
import io
import math
import tempfile
from collections.abc import Sequence
from contextlib import redirect_stdout
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from scaml.cli import main as scaml

TABLE = Path(__file__).with_name("reactions.csv")
COLUMNS = ("task", "temperature", "time", "equivalents", "catalyst", "yield")
NEW = "2-chlorotoluene"
Row = dict[str, Any]


def play(rounds: int, seed: int) -> None:
    """Rounds of three experiments: with the past, by a plain GP, and by 99 labs at random."""
    rng = np.random.default_rng(seed)
    past = read(TABLE)
    ours: list[Row] = []
    plain: list[Row] = []
    labs = [[measured(at_random(NEW, rng), rng) for _ in range(3 * rounds)] for _ in range(99)]
    print(f"{len(past)} experiments on {len({row['task'] for row in past})} substrates; new: {NEW}.")
    print("Best yield after every round of three experiments (at random: median of 99 labs):")
    print("  round  scaml suggest  --method gpbo  at random  conditions of the best")
    for n in range(1, rounds + 1):
        for new, method in ((ours, []), (plain, ["--method", "gpbo"])):
            rows = suggested(past + new, "--seed", str(seed), *method)
            new += [measured(row, rng) for row in rows]
        best = max(ours, key=itemgetter("yield"))
        other = max(row["yield"] for row in plain)
        chance = np.median([max(row["yield"] for row in lab[: 3 * n]) for lab in labs])
        how = "{temperature} °C, {time} h, {equivalents} eq., {catalyst}".format(**best)
        print(f"  {n:5}{best['yield']:13} %{other:13} %{chance:9.0f} %  {how}", flush=True)


def suggested(rows: Sequence[Row], *options: str) -> list[Row]:
    """Three experiments from the command line, in steps that a lab can set."""
    with tempfile.TemporaryDirectory() as folder:
        runs, out = Path(folder, "runs.csv"), Path(folder, "next.csv")
        write(runs, rows)
        words = [
            "suggest",
            str(runs),
            "--task",
            NEW,
            "--objective",
            "yield",
            "-n",
            "3",
            "--out",
            str(out),
        ]
        with redirect_stdout(io.StringIO()):  # the file has it all
            if code := scaml([*words, "--quiet", *options]):
                raise SystemExit(code)
        found = read(out)
    return [
        row | {name: f"{float(row[name]):.1f}" for name in ("time", "equivalents")} for row in found
    ]


def read(path: Path) -> list[Row]:
    """The rows of a table."""
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def write(path: Path, rows: Sequence[Row]) -> None:
    """A table of rows."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


# The simulated lab. Barriers in kJ/mol: of the coupling, and of the decay of its product.

SUBSTRATES = {
    "bromobenzene": (84.0, 110.0),
    "4-bromoanisole": (87.0, 111.0),
    "4-iodoanisole": (81.5, 109.0),
    "2-bromotoluene": (88.5, 112.0),
    "3-bromopyridine": (85.0, 107.5),
    "4-chloroanisole": (90.0, 111.5),
    NEW: (91.5, 112.5),
}
CATALYSTS = {  # what they add to both
    "Pd(OAc)2": (2.5, 1.0),
    "Pd(PPh3)4": (1.5, 1.5),
    "Pd(dppf)Cl2": (0.0, 0.5),
    "XPhos Pd G3": (-3.0, -3.0),
}


def measured(row: Row, rng: np.random.Generator) -> Row:
    """The row with its yield: substrate becomes product, product decays, and the catalyst dies."""
    barriers = np.add(SUBSTRATES[row["task"]], CATALYSTS[row["catalyst"]])
    rates = [4e11, 3e13] * np.exp(
        -barriers / (8.314e-3 * (float(row["temperature"]) + 273.15))
    )  # per h
    excess, dt = float(row["equivalents"]) - 1.0, float(row["time"]) / 100
    left, product = 1.0, 0.0
    for i in range(100):
        made = left * (1.0 - math.exp(-rates[0] * (0.5 + excess) * math.exp(-i * dt / 8.0) * dt))
        left -= made
        product = product * math.exp(-rates[1] * dt) + made
    product /= 1.0 + 0.08 * excess**2  # some of it couples twice
    return {**row, "yield": round(float(np.clip(100 * product + rng.normal(0.0, 1.5), 0, 100)))}


def at_random(task: str, rng: np.random.Generator) -> Row:
    """An experiment without a plan."""
    return {
        "task": task,
        "temperature": 5 * int(rng.integers(8, 25)),
        "time": (0.5, 1, 2, 4, 6, 8, 12, 16, 24)[rng.integers(9)],
        "equivalents": int(rng.integers(10, 31)) / 10,
        "catalyst": list(CATALYSTS)[rng.integers(4)],
    }


def campaign(task: str, rng: np.random.Generator) -> list[Row]:
    """What is known of an old substrate: a screening, then one factor at a time around the best."""
    rows = [measured(at_random(task, rng), rng) for _ in range(8)]
    for factor in rng.choice(COLUMNS[1:-1], size=rng.integers(7, 13)).tolist():
        best = max(rows, key=itemgetter("yield"))
        rows.append(measured({**best, factor: at_random(task, rng)[factor]}, rng))
    return rows


def main(argv: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=4, help="of three experiments each")
    parser.add_argument("--seed", type=int, default=0, help="decides everything random")
    parser.add_argument("--write", action="store_true", help="make reactions.csv anew, and stop")
    options = parser.parse_args(argv)
    if options.write:
        rng = np.random.default_rng(0)
        write(TABLE, [row for task in SUBSTRATES if task != NEW for row in campaign(task, rng)])
    else:
        play(options.rounds, options.seed)


if __name__ == "__main__":
    main()
