#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes up records of the experiment `regime` and judges them: regime.json.

    python3 regime_oracle.py --out regime.json    (numpy, scipy; seconds)

Nothing is shared with the C++ judge but the definition: the prose of ../FORMAT.md ("The
regime experiment"), and ../paper/regime.toml, which both read. Student's t, the search for
p and the fits are scipy's and numpy's. The runs are not meant to look like training:
effects are large, small and reversed, so that every verdict occurs, and some records lack
runs, miss their aims, or break a rule.

Numbers are rounded before they are judged: the file holds what was judged. numpy's random
numbers with a fixed seed draw the runs; the same versions give the same file, on another
CPU but for last digits.
"""
import argparse
import collections
import itertools
import json
import math
import pathlib
import platform
import sys
import tomllib

import numpy as np
import scipy
from scipy import optimize, stats

DEFINITIONS = pathlib.Path(__file__).parent.parent / "paper" / "regime.toml"
KINDS = ["complete", "incomplete", "off_aim", "broken", "drifting"]
# Kinds of one record each: the run that has no number at all.
DIVERGED = {"diverged_sparse": ("sparse-2", 1235), "diverged_pilot": ("regime-2", 7001),
            "diverged_primary": ("regime-1.5", 1236)}
DIGITS = 13  # of what is computed


class World:
    """The truth behind one record, and its runs, which show it with noise."""

    def __init__(self, rng, kind, definitions):
        self.rng, self.kind, self.rows = rng, kind, definitions["rows"]
        self.pilot_seeds = definitions["rule"]["pilot_seeds"]
        self.corpus = definitions["rule"]["corpus"]
        self.noise = 10 ** rng.uniform(-3.2, -1.8)
        self.height = rng.choice([0.12, 0.4, 0.01])
        self.p = rng.uniform(0.5, 3)
        self.effect = rng.choice([-0.03, -0.01, 0, 0.002, 0.005, 0.03])
        self.of_learning = rng.choice([-0.02, 0, 0.02])
        self.more = rng.choice([0.0, 0.2])
        self.off = collections.defaultdict(float)
        self.train = {row["id"]: rng.choice([0.1, 0.2, 0.6]) for row in self.rows}
        soft = [row["id"] for row in self.rows if row["role"] != "sparse"]
        if kind == "off_aim":
            for row in rng.choice(soft, 2, replace=False):
                self.off[row] = rng.choice([-0.3, -0.19, 0.19, 0.3])
        self.drift = rng.choice([0.0, 0.02]) if kind == "drifting" else 0.0
        self.of_seed = collections.defaultdict(lambda: rng.normal(0, 0.05))

    def run(self, row, seed):
        rng, sparse = self.rng, row["role"] == "sparse"
        active = row.get("infer_ae", 1.77)
        train = active
        if not sparse:
            active += self.off[row["id"]] + self.more * (row["role"] == "learned")
            active = min(3.95, active + rng.normal(0, 0.01))
            train = max(1.02, active - self.train[row["id"]] + rng.normal(0, 0.02))
        loss = 3.5 + self.height * active ** -self.p + self.of_seed[seed]
        loss += rng.normal(0, self.noise)
        if not sparse:
            loss += self.effect + self.of_learning * (row["role"] == "learned")
            loss += self.drift * (seed % 100 > 39)
        cap = active if sparse else rng.uniform(3, 4)
        return {"row": row["id"], "corpus": self.corpus, "seed": seed,
                "loss": round(float(loss), 6), "infer_ae": round(float(active), 6),
                "train_ae": round(float(train), 6), "mean_cap": round(float(cap), 6)}

    def runs(self):
        runs = []
        for row in self.rows:
            seeds = list(row["seeds"])
            if row["role"] != "sparse" and "infer_ae" in row:
                seeds += self.pilot_seeds
            runs += [self.run(row, seed) for seed in seeds]
        if self.kind == "incomplete":
            lost = self.rng.choice(len(runs), self.rng.integers(1, 60), replace=False)
            whole = self.rng.choice(["none", "learned-2", "quiet", "sparse-4"])
            runs = [run for i, run in enumerate(runs)
                    if i not in lost and whole not in run["row"]]
        elif self.kind == "broken":
            for run in self.rng.choice(runs, 2, replace=False):
                way = self.rng.integers(4)
                twins = [r for r in runs if r["row"] == run["row"] and r is not run]
                if way == 0:
                    run["loss"] = None
                elif way == 1:
                    run["loss"] = twins[0]["loss"]
                elif way == 2 and not run["row"].startswith("sparse"):
                    run["infer_ae"] = float(self.rng.choice([0.98, 4.02]))
                elif way == 3 and not run["row"].startswith("sparse"):
                    run["train_ae"] = 0.97
        for run in runs:
            if (run["row"], run["seed"]) == DIVERGED.get(self.kind):
                run.update(loss=None, infer_ae=None, train_ae=None, mean_cap=None)
        return runs


class Problem(Exception):
    """Why an estimate cannot be tested."""


def smooth_p(k, losses, ends):
    """The exponent of a + b k^-p that is nearest to the losses."""
    k, losses = np.asarray(k), np.asarray(losses) - np.mean(losses)

    def residuals(log_p):
        basis = np.stack([np.ones_like(k), k ** -math.exp(log_p)], axis=1)
        solution, *_ = np.linalg.lstsq(basis, losses, rcond=None)
        return losses - basis @ solution, solution[1]

    def slope(log_p):
        """Of the sum of squares, by p: the envelope theorem."""
        rest, b = residuals(log_p)
        return 2 * b * float(np.sum(rest * np.log(k) * k ** -math.exp(log_p)))

    grid = np.linspace(math.log(ends[0]), math.log(ends[1]), 1001)
    squares = [float(np.sum(residuals(x)[0] ** 2)) for x in grid]
    i = int(np.argmin(squares))
    if (i == 0 and slope(grid[0]) >= 0) or (i == len(grid) - 1 and slope(grid[-1]) <= 0):
        return math.exp(grid[i])
    low, high = grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)]
    return math.exp(optimize.brentq(slope, low, high, xtol=1e-15, rtol=1e-14))


def read_smooth(k, losses, p, active):
    b, a = np.polyfit(np.asarray(k) ** -p, losses, 1)
    return a + b * active ** -p


class Judge:
    def __init__(self, record, definitions):
        self.rule, self.controls = definitions["rule"], definitions["controls"]
        self.rows = {row["id"]: row for row in definitions["rows"]}
        self.sparse = self.of_role("sparse")
        self.k = [self.rows[row]["infer_ae"] for row in self.sparse]
        self.runs, self.pilots = collections.defaultdict(dict), collections.defaultdict(dict)
        for run in record["runs"]:
            pilot = run["seed"] in self.rule["pilot_seeds"]
            (self.pilots if pilot else self.runs)[run["row"]][run["seed"]] = run
        self.found_controls = self.put_controls()

    def of_role(self, role):
        return [row for row, each in self.rows.items() if each["role"] == role]

    def aims(self, row):
        return self.rows[row]["role"] != "sparse" and "infer_ae" in self.rows[row]

    def is_interim(self):
        return any(seed not in self.runs[row] for row, each in self.rows.items()
                   for seed in each["seeds"]) or any(
            seed not in self.pilots[row] for row in self.rows if self.aims(row)
            for seed in self.rule["pilot_seeds"])

    def has_twins(self, row):
        losses = [run["loss"] for runs in (self.runs[row], self.pilots[row])
                  for run in runs.values() if run["loss"] is not None]
        return len(set(losses)) < len(losses)

    def is_infer_ae_only(self, row):
        if "paper_train_ae" not in self.rows[row] or not self.runs[row]:
            return False
        low, high = self.rows[row]["paper_train_ae"]
        mean = np.mean([run["train_ae"] for run in self.runs[row].values()
                        if run["train_ae"] is not None])
        within = self.rule["train_ae_within"]
        return bool(mean < low - within or mean > high + within)

    def require_aims(self, rows):
        for row in filter(self.aims, rows):
            active = [run["infer_ae"] for run in self.pilots[row].values()]
            if not active:
                raise Problem("no pilot")
            if None in active:
                raise Problem("a pilot without its number")
            if abs(np.mean(active) - self.rows[row]["infer_ae"]) > self.rule["infer_ae_within"]:
                raise Problem("pilots off their aim")

    def require_numbers(self, rows, seeds, names):
        for row in rows:
            for seed in seeds:
                for name in names:
                    if seed in self.runs[row] and self.runs[row][seed][name] is None:
                        raise Problem("no number")

    def require_on_curve(self, rows, seeds, active):
        for row in rows:
            for seed in seeds:
                if seed in self.runs[row] and not (
                        self.k[0] <= self.runs[row][seed][active] <= self.k[-1]):
                    raise Problem("beyond the curve")

    def require_controls(self):
        """An answer of those that can fail, whatever it is."""
        if any("problem" in control for control in self.found_controls
               if control["id"] != "left_out"):
            raise Problem("a control without an answer")

    def common(self, rows, seeds):
        found = [seed for seed in seeds if all(seed in self.runs[row] for row in rows)]
        if len(found) < 2:
            raise Problem("too few seeds")
        return found

    def planned(self, rows):
        return [seed for seed in self.rows[rows[0]]["seeds"]
                if all(seed in self.rows[row]["seeds"] for row in rows)]

    def distances(self, points, seeds):
        """points: by row, (loss, active) of each seed. Both readings, and p."""
        sparse = np.array([[self.runs[row][seed]["loss"] for row in self.sparse]
                           for seed in seeds])
        p = smooth_p(self.k, sparse.mean(axis=0), self.rule["exponents"])
        linear = np.mean([[loss - np.interp(active, self.k, sparse[s])
                           for s, (loss, active) in enumerate(of_row)]
                          for of_row in points], axis=0)
        smooth = np.mean([[loss - read_smooth(self.k, sparse[s], p, active)
                           for s, (loss, active) in enumerate(of_row)]
                          for of_row in points], axis=0)
        return linear, smooth, p

    def points(self, row, seeds, active):
        return [(self.runs[row][seed]["loss"], self.runs[row][seed][active])
                for seed in seeds]

    def reading(self, numbers, confidence=None):
        numbers = np.asarray(numbers, dtype=float)
        error = stats.sem(numbers)
        half = error * stats.t.ppf((1 + (confidence or self.rule["confidence"])) / 2,
                                   len(numbers) - 1)
        return {"estimate": numbers.mean(), "error": error, "low": numbers.mean() - half,
                "high": numbers.mean() + half}

    def verdict(self, readings):
        if all(reading["high"] < 0 for reading in readings):
            return "SUPERIOR"
        if all(reading["high"] < self.rule["margin"] for reading in readings):
            return "MATCHES"
        if all(reading["low"] > 0 for reading in readings):
            return "INFERIOR"
        return "UNDECIDED"

    def finish(self, name, rows, among, compute):
        estimate = {"id": name, "infer_ae_only": [row for row in rows
                                                  if self.is_infer_ae_only(row)]}
        try:
            estimate |= compute()
        except Problem as problem:
            return estimate | {"leaning": "NOT_TESTABLE", "problem": str(problem)}
        estimate["worse"] = all(reading["low"] > 0 for reading in estimate["readings"])
        estimate["leaning"] = self.verdict(estimate["readings"])
        failed = any(control.get("failed") for control in self.found_controls)
        if any(map(self.has_twins, among)) or (name.startswith("primary") and failed):
            estimate["leaning"] = "MISTRUSTED"
        return estimate

    def against_curve(self, name, rows, seeds, active="infer_ae"):
        def compute():
            self.require_aims(rows)
            self.require_numbers(rows, seeds, ["loss", active])
            self.require_numbers(self.sparse, seeds, ["loss"])
            self.require_on_curve(rows, seeds, active)
            common = self.common(rows + self.sparse, seeds)
            if name.startswith("primary") and not self.is_interim():
                self.require_controls()
            linear, smooth, p = self.distances(
                [self.points(row, common, active) for row in rows], common)
            return {"seeds": common, "exponent": p,
                    "readings": [self.reading(linear), self.reading(smooth)]}
        return self.finish(name, rows, rows + self.sparse, compute)

    def rise(self, learned, seeds, name):
        return np.mean([[self.runs[row][seed][name] -
                         self.runs[self.rows[row]["fixed"]][seed][name] for seed in seeds]
                        for row in learned], axis=0)

    def against_fixed(self, name, learned):
        both = learned + [self.rows[row]["fixed"] for row in learned]

        def compute():
            seeds = self.planned(learned)
            self.require_aims(both)
            self.require_numbers(both, seeds, ["loss"])
            common = self.common(both, seeds)
            return {"seeds": common,
                    "readings": [self.reading(self.rise(learned, common, "loss"))]}
        return self.finish(name, learned, both, compute)

    def experts(self, learned):
        both = learned + [self.rows[row]["fixed"] for row in learned]
        try:
            self.require_aims(both)
            self.require_numbers(both, self.planned(learned), ["infer_ae", "mean_cap"])
            common = self.common(both, self.planned(learned))
        except Problem as problem:
            return {"problem": str(problem)}
        return {"seeds": common, "rise": self.reading(self.rise(learned, common, "infer_ae")),
                "caps": self.reading(self.rise(learned, common, "mean_cap"))}

    def put_controls(self):
        found = []
        for put in (self.relabelled, self.halves, self.left_out):
            try:
                found.append({"id": put.__name__} | put())
            except Problem as problem:
                found.append({"id": put.__name__, "problem": str(problem)})
        return found

    def sparse_seeds(self):
        seeds = self.planned(self.sparse)
        self.require_numbers(self.sparse, seeds, ["loss"])
        return self.common(self.sparse, seeds)

    def relabelled(self):
        seeds = self.sparse_seeds()
        row, at = self.controls["relabelled"], self.controls["relabelled_at"]
        linear, smooth, _ = self.distances(
            [[(self.runs[row][seed]["loss"], at) for seed in seeds]], seeds)
        readings = [self.reading(linear), self.reading(smooth)]
        return {"readings": readings, "failed": self.verdict(readings) != "SUPERIOR"}

    def halves(self):
        row = self.controls["halved"]
        seeds = self.rows[row]["seeds"]
        self.require_numbers([row] + self.sparse, seeds, ["loss"])
        self.require_numbers([row], seeds, ["infer_ae"])
        self.require_on_curve([row], seeds, "infer_ae")
        halves = [self.common([row] + self.sparse, self.controls[half])
                  for half in ("first_half", "second_half")]
        first, second = (
            [loss - np.interp(active, self.k, [self.runs[each][seed]["loss"]
                                               for each in self.sparse])
             for seed, (loss, active) in zip(half, self.points(row, half, "infer_ae"))]
            for half in halves)
        test = stats.ttest_ind(first, second)
        interval = test.confidence_interval(1 - self.controls["halves_level"])
        difference = float(np.mean(first) - np.mean(second))
        return {"readings": [{"estimate": difference,
                              "error": difference / float(test.statistic),
                              "low": float(interval.low), "high": float(interval.high)}],
                "failed": bool(test.pvalue < self.controls["halves_level"])}

    def left_out(self):
        seeds = self.sparse_seeds()
        row = self.controls["left_out"]
        others = [each for each in self.sparse if each != row]
        k = [self.rows[each]["infer_ae"] for each in others]
        losses = [[self.runs[each][seed]["loss"] for each in others] for seed in seeds]
        p = smooth_p(k, np.mean(losses, axis=0), self.rule["exponents"])
        return {"failed": False, "exponent": p, "readings": [self.reading(
            [read_smooth(k, of_seed, p, self.rows[row]["infer_ae"]) -
             self.runs[row][seed]["loss"] for of_seed, seed in zip(losses, seeds)])]}

    def judge(self):
        primary, learned = self.of_role("primary"), self.of_role("learned")
        soft = [row for row in self.rows if row not in self.sparse]
        seeds = self.planned(primary)
        new = [seed for seed in seeds if seed not in self.rule["known_seeds"]]
        estimates = [self.against_curve("primary", primary, seeds),
                     self.against_curve("primary.new_seeds", primary, new),
                     self.against_curve("primary.train_ae", primary, seeds, "train_ae")]
        for active, end in [("infer_ae", ""), ("train_ae", ".train_ae")]:
            estimates += [self.against_curve(f"row.{row}{end}", [row],
                                             self.rows[row]["seeds"], active)
                          for row in soft]
        estimates += [self.against_curve("C1b", learned, self.planned(learned)),
                      self.against_fixed("C5.loss", learned)]
        estimates += [self.against_fixed(f"C5.loss.{row}", [row]) for row in learned]
        return {"interim": self.is_interim(), "estimates": estimates,
                "controls": self.found_controls, "experts": self.experts(learned)}


def rounded(value):
    """For JSON: Python's numbers, fractions to DIGITS digits."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def readings_of(estimate):
    """The numbers of one of our judge's estimates or controls."""
    found = estimate.get("readings") or [
        estimate[name] for name in ("linear", "smooth", "difference") if name in estimate]
    return [[each["estimate"], each["standard_error"], *each["interval"]] for each in found]


def check(record, verdicts, definitions):
    """Judges a record and compares with `golden compare RECORD --json VERDICTS`."""
    import h5py  # for this alone
    with h5py.File(record) as file:
        runs = json.loads(bytes(file["miniature/json"][()]))["runs"]
    for run in runs:  # a number that is not finite is a text there
        for name in ("loss", "infer_ae", "train_ae", "mean_cap"):
            run[name] = None if isinstance(run[name], str) else run[name]
    ours = json.loads(pathlib.Path(verdicts).read_text())["regime"]
    judged = Judge({"runs": runs}, definitions).judge()
    theirs = {each["id"]: each for each in judged["estimates"] + judged["controls"]}
    largest, numbers, differ = 0.0, 0, []
    for each in ours["estimates"] + ours["controls"]:
        name = each.get("estimate") or each["control"]
        other = theirs.pop(name)
        for field, default in (("leaning", None), ("infer_ae_only", []), ("failed", False)):
            if other.get(field, default) != each.get(field, default):
                differ.append(f"{name}: {field}")
        pairs = list(itertools.zip_longest(other.get("readings", []), readings_of(each)))
        if any(None in pair for pair in pairs):
            differ.append(f"{name}: readings")
            continue
        for mine, its in pairs:
            wanted = [mine[key] for key in ("estimate", "error", "low", "high")]
            numbers += len(its)
            largest = max([largest, *(abs(a - b) for a, b in zip(wanted, its))])
    if theirs or judged["interim"] != any(
            each.get("status") == "INTERIM" for each in ours["estimates"]):
        differ.append("what was judged")
    print(f"{len(runs)} runs, {numbers} numbers, largest difference {largest:.1e}",
          *differ, sep="\n")
    return 1 if differ or largest > 1e-11 else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="regime.json")
    parser.add_argument("--check", nargs=2, metavar=("RECORD", "VERDICTS"),
                        help="judge a record (h5py) and compare with the JSON of "
                        "`golden compare RECORD --json VERDICTS`")
    parser.add_argument("--seed", type=int, default=20261124)
    parser.add_argument("--records", type=int, default=5, help="of each kind of several")
    arguments = parser.parse_args()
    definitions = tomllib.loads(DEFINITIONS.read_text())
    if arguments.check:
        return check(*arguments.check, definitions)
    rng = np.random.default_rng(arguments.seed)
    records, counts = [], collections.Counter()
    names = [f"{kind} {i + 1}" for kind in KINDS for i in range(arguments.records)]
    for name in names + [f"{kind} 1" for kind in DIVERGED]:
        record = {"name": name, "runs": World(rng, name.split()[0], definitions).runs()}
        verdicts = rounded(Judge(record, definitions).judge())
        counts.update((each["id"].startswith("primary"), each["leaning"])
                      for each in verdicts["estimates"])
        records.append(record | verdicts)
    source = (f"Python {platform.python_version()}, numpy {np.__version__}, "
              f"scipy {scipy.__version__}")
    lines = ",\n".join(json.dumps(record, separators=(",", ":")) for record in records)
    pathlib.Path(arguments.out).write_text(
        f'{{"source": {json.dumps(source)},\n"records": [\n{lines}\n]}}\n')
    for (primary, leaning), count in sorted(counts.items()):
        print(f"{'primary' if primary else 'secondary':10} {leaning:14} {count}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
