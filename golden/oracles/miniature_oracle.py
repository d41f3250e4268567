#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes up runs of the mini grid and judges them: miniature.json.

    python3 miniature_oracle.py --out miniature.json    (numpy, scipy; seconds)

Nothing is shared with the C++ judge but the definition: the prose of ../FORMAT.md
("Claims in miniature"), and ../paper/miniature.toml, which both read. Student's t is
scipy's. The runs are not meant to look like training: effects are drawn large, small and
reversed, so that every verdict occurs, and some rows are noisy, missing, or at the ends
of what can be tested.

Numbers are rounded before they are judged: the file holds what was judged. numpy's random
numbers with a fixed seed draw the runs; the same versions give the same file.
"""
import argparse
import collections
import json
import math
import pathlib
import platform
import tomllib

import numpy as np
import scipy
from scipy import stats

DEFINITIONS = pathlib.Path(__file__).parent.parent / "paper" / "miniature.toml"
KINDS = ["complete", "incomplete", "noisy", "edges"]
SPLIT = "split"  # one grid, with one reading of the balance loss on each corpus
STATUSES = ["SHOWN", "CONTRADICTED", "UNDECIDED", "NOT_TESTABLE", "REPORTED"]
STEPS = 1000
LAYERS = 10
DIGITS = 13  # relative to what is computed
POWER = 0.8


def expand(names, groups):
    return [row for name in names for row in groups.get(name, [name])]


def k_of(row):
    """Of its name: "softmoe-star-1.5-calibrated" has 1.5."""
    return float(next(part for part in row.split("-") if part[0].isdigit()))


class World:
    """The truth behind one grid, and its runs, which show it with noise."""

    def __init__(self, rng, kind, definitions):
        self.rng, self.kind, self.groups = rng, kind, definitions["groups"]
        self.learned = self.groups["learned"]
        self.plan = [(plan["corpus"], row, seed) for plan in definitions["planned"]
                     for row in plan["rows"] for seed in plan["seeds"]]
        corpora = sorted({corpus for corpus, _, _ in self.plan})
        self.noise = 10 ** rng.uniform(-2.7, -1.7)
        self.scale = collections.defaultdict(lambda: 1.0)
        self.seed_effect = collections.defaultdict(lambda: rng.normal(0, 0.05))
        reach = rng.choice([0.005, 0.3, 0.9, 0.9])
        self.curve = rng.uniform(3, 3.4) + reach * np.array([1, 0.4, 0.15, 0])
        self.gain = rng.choice([-0.3, -0.3, -0.01, 0.25])
        self.gain_of_learning = rng.choice([-0.1, -0.005, 0.08])
        self.balance = rng.choice([0, 0, 0.3, 1.5])
        self.balance_noise = rng.choice([0.02, 0.2])
        self.jitter = rng.choice([0.06, -0.03, -0.12])
        self.drift = rng.choice([1.0, 0.05, -0.7])
        self.drift_noise = rng.choice([0.005, 0.1])
        self.pace = rng.choice([30, 150, 3000])
        self.points = [20, rng.choice([100, 150]), 400, STEPS]
        self.halving = rng.choice([0.02, 0.2, 0.6])
        self.slope = rng.choice([-0.2, -0.01, 0.1])
        self.active = self.draw_active(rng.choice([0.4, 0.01, -0.3]))
        self.still = self.never_half = self.mixed = None
        # Learning rates of all steps; for most grids, enough for C3.
        self.rates = rng.choice([1.0, 6.0, 6.0])
        self.readings = {row: "soft" for row in self.active}
        if rng.random() < 0.7:
            self.readings |= {row: "megatron" for row in self.learned}
        if kind == "edges":
            self.balance = math.log(2) + rng.normal(0, 0.03)
            self.jitter = -0.03 + rng.normal(0, 0.005)
            self.still, self.never_half = rng.choice(corpora, 2)
            soft = [row for row in self.active if "calibrated" in row]
            for row, active in zip(rng.choice(soft, 2, replace=False), [0.9, 4.1]):
                self.active[row] = rng.choice([active, self.active[row]])
            self.mixed = rng.choice([None, *soft])
        elif kind == "noisy":
            corpus = rng.choice(corpora)
            pooled = expand(["sparse", "fixed", "learned"], self.groups)
            for row in rng.choice(pooled, rng.integers(1, 3), replace=False):
                self.scale[corpus, row] = rng.uniform(5, 10)
            if rng.random() < 0.7:  # rows at a cap scatter less
                for row in self.groups["fixed"]:
                    self.scale[corpus, row] *= 0.05

    def draw_active(self, more):
        """Infer-AE of every row; a learned row has `more` than its fixed one."""
        active = {}
        for row in dict.fromkeys(row for _, row, _ in self.plan):
            active[row] = self.rng.uniform(1.2, 3.6)
            if row.startswith("sparse"):
                active[row] = k_of(row)
            elif row in self.learned:
                fixed = active[f"softmoe-star-{k_of(row):g}-calibrated"]
                active[row] = min(3.8, max(1.2, fixed + more))
        return active

    def allocation(self, corpus, row):
        """k_l of ten layers, which sum to 10 k at every point."""
        k = k_of(row)
        weights = np.exp(self.drift * np.linspace(-1, 1, LAYERS) +
                         self.rng.normal(0, self.drift_noise, LAYERS))
        final = k * LAYERS * weights / weights.sum()
        if corpus == self.still and self.rng.random() < 0.9:
            final = k + (final - k) * 0.005 / np.abs(final / k - 1).mean()
        pace = self.pace * math.exp(self.rng.normal(0, 0.1))
        points = []
        for step in self.points:
            share = math.expm1(-step / pace) / math.expm1(-STEPS / pace)
            now = [round(x, 6) for x in k + (final - k) * share]
            now[-1] = round(k * LAYERS - sum(now[:-1]), 6)
            points.append([int(step), now, round(self.rates * step / STEPS, 6)])
        return points

    def at_tau(self, corpus, active, loss):
        left = self.rng.uniform(0.3, 0.45)
        if corpus == self.never_half:
            left = self.rng.uniform(0.45, 0.6)
        points = []
        for factor, share, part in [(0.5, 1.2, -0.02), (1, 1, 0),
                                    (1.5, (1 + left) / 2, 0.3), (2, left, 1)]:
            cost = part * (self.halving + self.rng.normal(0, self.noise / 4))
            points.append([factor, round(active * share, 6), round(loss + cost, 6)])
        return points

    def run(self, corpus, row, seed):
        rng, scale = self.rng, self.scale[corpus, row]
        active, loss, balance = self.active[row], self.seed_effect[corpus, seed], 0
        if row.startswith("sparse"):
            loss += self.jitter * ("jitter" in row)
        else:
            active += rng.normal(0, self.noise * scale)
            balance = self.balance
            loss += self.gain + self.gain_of_learning * (row in self.learned)
        loss += np.interp(active, [1, 2, 3, 4], self.curve)
        loss += rng.normal(0, self.noise * scale)
        variance = 0.01 * math.exp(balance + rng.normal(0, self.balance_noise * scale))
        run = {"row": row, "corpus": corpus, "seed": seed, "loss": round(float(loss), 6),
               "infer_ae": round(active, 6), "load_variance": round(variance, 8),
               "mean_cap": k_of(row), "load_balance": ""}
        if not row.startswith("sparse"):
            run["mean_cap"] = round(2 * k_of(row) + rng.uniform(0, 0.5), 1)
            run["load_balance"] = self.readings[row]
            if self.kind == SPLIT:
                run["load_balance"] = "soft" if corpus == "gcide" else "megatron"
            if row == self.mixed and seed % 2:
                run["load_balance"] = "other"
        if row in self.learned:
            run["allocation"] = self.allocation(corpus, row)
        if row == self.learned[-1]:
            run["at_tau"] = self.at_tau(corpus, run["infer_ae"], run["loss"])
        return run

    def runs(self):
        runs = [self.run(*planned) for planned in self.plan]
        if self.kind != "incomplete":
            return runs
        lost = self.rng.choice(len(runs), self.rng.integers(5, 19), replace=False)
        whole = self.rng.choice(["none", "jitter", "softmoe-2-calibrated"])
        return [run for i, run in enumerate(runs)
                if i not in lost and whole not in run["row"]]

    def throughput(self, measured_at):
        if self.rng.random() < 0.3:
            return []
        loud = self.rng.choice(measured_at) if self.kind == "noisy" else None
        quiet = 0.0005 if self.rng.random() < 0.3 else 0.01
        router = self.rng.choice(["soft", "soft", "soft", "sparse"])
        result = []
        for active in measured_at:
            scale = 0.08 if active == loud else quiet if active > 2 else 0.01
            count = self.rng.integers(2, 6) if self.kind == "incomplete" else 5
            logs = 9.7 + self.slope * active + self.rng.normal(0, scale, count)
            result.append([active, [round(x, 6) for x in np.exp(logs).tolist()],
                           str(router) if active < 3 else "soft"])
        if result and self.kind == "edges":  # measured in addition
            result.append([2.0, [1e4, 1.01e4, 1.02e4], "sparse2"])
        return result


# Quantities of one run; None if it lacks one.


def late_share(run, measure):
    final = run["allocation"][-1][1]
    late = math.ceil(measure["share_of_layers"] * len(final) - 1e-9)
    return sum(final[-late:]) / sum(final) - late / len(final)


def depth_order(run, measure):
    """Kendall's tau."""
    final = run["allocation"][-1][1]
    signs = [np.sign(b - a) for i, a in enumerate(final) for b in final[i + 1:]]
    return float(np.mean(signs))


def distance(a, b):
    return float(np.abs(np.subtract(a, b)).sum())


def first_and_last(run):
    last = run["allocation"][-1][1]
    return [sum(last) / len(last)] * len(last), last  # training begins with equal k_l


def movement(run):
    """What part of the budget changed layers."""
    first, last = first_and_last(run)
    return distance(first, last) / 2 / sum(last)


def early_movement(run, measure):
    first, last = first_and_last(run)
    steps = [0] + [step for step, _, _ in run["allocation"]]
    layers = np.array([first] + [k for _, k, _ in run["allocation"]]).T
    at = measure["share_of_steps"] * steps[-1]
    then = [np.interp(at, steps, layer) for layer in layers]
    return 1 - distance(then, last) / distance(first, last)


def rates_until(run, measure):
    """Sum of learning rates up to the judged step."""
    steps = [0] + [step for step, _, _ in run["allocation"]]
    sums = [0] + [rates for _, _, rates in run["allocation"]]
    return np.interp(measure["share_of_steps"] * steps[-1], steps, sums)


def rates_needed(run, measure):
    """By one side of the logits, for part of the paper's movement."""
    final = run["allocation"][-1][1]
    count, budget = len(final), sum(final)
    late = math.ceil(measure["share_of_layers"] * count - 1e-9)
    if budget <= count:
        return math.inf
    of_late = (measure["final_share"] * budget - late) / (budget - count)
    if not 0 < of_late < 1:
        return math.inf
    ends = np.array([of_late / late, (1 - of_late) / (count - late)])
    there = 1 / count + measure["share_of_movement"] * (ends - 1 / count)
    return math.log(there[0] / there[1]) / 2


def halving_cost(run, measure):
    points = sorted(point[1:] for point in run.get("at_tau", []))
    half = run["infer_ae"] / 2
    if not points or points[0][0] > half:
        return None
    return float(np.interp(half, *zip(*points))) - run["loss"]


QUANTITIES = {
    "loss": lambda run, measure: run["loss"],
    "infer_ae": lambda run, measure: run["infer_ae"],
    "log_load_variance": lambda run, measure: math.log(run["load_variance"]),
    "hellaswag": lambda run, measure: None,
    "late_share": late_share,
    "depth_order": depth_order,
    "early_movement": early_movement,
    "halving_cost": halving_cost,
}


class Noise:
    """The deviation of every row of {row: {seed: value}}: pooled or its own."""

    def __init__(self, table, paired, family, least=0.0):
        self.paired, self.least = paired, least
        rows = sorted(row for row in table if len(table[row]) >= 2)
        seeds = self.common_seeds(table, rows)
        while paired and rows and len(seeds) < 2:
            rows.remove(min(rows, key=lambda row: len(table[row])))
            seeds = self.common_seeds(table, rows)
        self.table = table
        self.values = {row: np.array([table[row][seed] for seed in
                                      (seeds if paired else table[row])]) for row in rows}
        # A number equal for all seeds is a setting.
        rows = [row for row in rows if np.ptp(self.values[row]) > 0] or rows
        self.own = self.find_own(rows, family)
        pooled = [r for r in rows if r not in self.own]
        self.deviation, self.freedom = self.pool(pooled)
        self.bartlett = self.test_equal(pooled)
        self.unequal = self.bartlett < family["equal_deviations"]
        self.left_out = len(self.own) + sum(
            1 for row in table if table[row] and row not in self.values)
        if self.unequal and not paired:
            self.own = {row: (float(np.std(x, ddof=1)), len(x) - 1)
                        for row, x in self.values.items()}

    def test_equal(self, rows):
        """p of Bartlett's test, in scipy's words."""
        samples = [self.values[row] for row in rows if np.ptp(self.values[row]) > 0]
        return float(stats.bartlett(*samples).pvalue) if len(samples) > 1 else 1.0

    def own_estimate(self, coefficients, seeds):
        """Error and degrees of freedom of a sum of rows by its own deviation."""
        sums = np.array([sum(c * self.table[row][seed] for row, c in coefficients.items())
                         for seed in seeds])
        return float(np.std(sums, ddof=1)) / math.sqrt(len(seeds)), len(seeds) - 1

    @staticmethod
    def common_seeds(table, rows):
        return sorted(set.intersection(*(set(table[r]) for r in rows))) if rows else []

    def find_own(self, rows, family):
        """The longest list, from the noisiest row on, of which each is far above all that
        are not in it."""
        most = min(int(family["own_deviation_rows"] * len(rows)), len(rows) - 2)
        noisiest = sorted(rows, key=lambda row: -self.own_deviation(row, rows))
        for size in range(most, 0, -1):
            rest = noisiest[size:]
            own = {row: self.own_deviation(row, rest) for row in noisiest[:size]}
            if min(own.values()) > family["own_deviation"] * self.pool(rest)[0]:
                return {row: (own[row], len(self.values[row]) - 1) for row in own}
        return {}

    def pool(self, rows):
        """Deviation and degrees of freedom of what the means of rows leave."""
        rest = [self.values[row] - self.values[row].mean() for row in rows]
        squares = sum((of_row ** 2).sum() for of_row in rest)
        freedom = sum(len(of_row) - 1 for of_row in rest)
        if self.paired and rows:
            of_seeds = np.mean(rest, axis=0)
            squares = ((np.array(rest) - of_seeds) ** 2).sum()
            freedom -= len(of_seeds) - 1
        return (math.sqrt(squares / freedom), freedom) if freedom else (0.0, 0)

    def own_deviation(self, row, others):
        values = self.values[row]
        if self.paired:
            values = values - np.mean([self.values[other] for other in others], axis=0)
        return float(np.std(values, ddof=1))

    def estimate(self, coefficients, counts, effect, seeds=None):
        """A case, whose effect is the sum of coefficient * mean of so many runs. Errors
        combine as Welch and Satterthwaite do."""
        pooled, parts = 0.0, []
        for row, coefficient in coefficients.items():
            if row in self.own:
                deviation, freedom = self.own[row]
                square = max(deviation, self.least) ** 2 / counts[row]
                parts.append((coefficient ** 2 * square, freedom))
            else:
                pooled += coefficient ** 2 / counts[row]
        if pooled:
            parts.append((pooled * max(self.deviation, self.least) ** 2, self.freedom))
        variance = sum(part for part, _ in parts)
        freedom = variance ** 2 / sum(part ** 2 / f for part, f in parts)
        error = math.sqrt(variance)
        case = {"own_error": 0.0, "own_freedom": 0}
        own = sorted(row for row in coefficients if row in self.own)
        if seeds is not None:
            case["own_error"], case["own_freedom"] = self.own_estimate(coefficients, seeds)
            if self.unequal and self.paired:
                error, freedom = case["own_error"], case["own_freedom"]
                own = []  # the difference's, not a row's
        return case | {
            "seeds": min(counts[row] for row in coefficients),
            "effect": float(effect), "error": error, "freedom": freedom,
            "own": own, "left_out": self.left_out, "bartlett": self.bartlett,
            "not_pooled": self.unequal}


class CorpusJudge:
    """Estimates of one measure on one corpus; None if a row cannot be tested."""

    def __init__(self, measure, runs, definitions):
        self.measure, self.runs = measure, runs  # {row: {seed: run}}
        self.family, self.groups = definitions["family"], definitions["groups"]
        self.sparse = self.groups["sparse"]
        self.k = [k_of(row) for row in self.sparse]
        self.pooled = self.table(measure["pooled"], measure["quantity"])
        # One exchange of two neighbours moves Kendall's tau by this much.
        is_order = measure["quantity"] == "depth_order"
        self.noise = Noise(self.pooled, measure["noise"] == "paired", self.family,
                           2 / math.comb(LAYERS, 2) if is_order else 0.0)

    def table(self, names, quantity):
        result = {}
        for row in expand(names, self.groups):
            values = {seed: QUANTITIES[quantity](run, self.measure)
                      for seed, run in self.runs[row].items()}
            result[row] = {seed: x for seed, x in values.items() if x is not None}
        return result

    def mean(self, row, number):
        return np.mean([number(run) for run in self.runs[row].values()])

    def mean_active(self, row):
        return self.mean(row, lambda run: run["infer_ae"])

    def is_sound(self, row):
        """One run without the number, or with another reading, spoils its row."""
        values = self.table([row], self.measure["quantity"])[row]
        readings = {run["load_balance"] for run in self.runs[row].values()}
        return len(values) >= max(2, len(self.runs[row])) and len(readings) == 1

    def other_row(self, row, index):
        """With what it is compared: "" for zero, None if there is no such row."""
        if self.measure["against"] == "rows":
            return self.measure["against_rows"][index]
        if self.measure["against"] == "budget_group":
            active = self.mean_active(row)
            group = [s for s, k in zip(self.sparse, self.k) if k >= active]
            return group[0] if group else None
        return ""

    def mean_case(self, rows, cases):
        """One sum of rows, if each of them could be tested."""
        if None in cases:
            return None
        coefficients = collections.Counter()
        for index, row in enumerate(rows):
            coefficients[row] += 1 / len(rows)
            other = self.other_row(row, index)
            if other:
                coefficients[other] -= 1 / len(rows)
        return self.sum_of_rows(dict(coefficients))

    def sum_of_rows(self, coefficients):
        tables = {row: self.table([row], self.measure["quantity"])[row]
                  for row in coefficients}
        seeds = sorted(set.intersection(*(set(table) for table in tables.values())))
        if len(seeds) < 2:
            return None

        def total(number):
            return float(sum(c * np.mean([number(row, seed) for seed in seeds])
                             for row, c in coefficients.items()))

        case = self.noise.estimate(
            coefficients, {row: len(seeds) for row in coefficients},
            total(lambda row, seed: tables[row][seed]), seeds)
        if self.measure["quantity"] == "infer_ae":
            case["cap_rise"] = total(lambda row, seed: self.runs[row][seed]["mean_cap"])
        return case

    def case(self, row, index):
        values = self.table([row], self.measure["quantity"])[row]
        if not self.is_sound(row):
            return None
        if "share_of_movement" in self.measure:
            if (self.mean(row, lambda run: rates_until(run, self.measure)) <
                    self.mean(row, lambda run: rates_needed(run, self.measure))):
                return None
        if "least_movement" in self.measure:
            if self.mean(row, movement) < self.measure["least_movement"]:
                return None
        against = self.measure["against"]
        if against in ("zero", "rows", "budget_group"):
            other = self.other_row(row, index)
            if other is None or (other and not self.is_sound(other)):
                return None
            return self.sum_of_rows({row: 1, other: -1} if other else {row: 1})
        if against == "sparse_curve":
            return self.minus_curve(row, values)
        return self.minus_half_of_range(row, values)  # of sparse losses

    def difference(self, noise, coefficients, *tables):
        """Of rows, over the seeds that all tables have: the sum of what they hold."""
        seeds = sorted(set.intersection(*(set(table) for table in tables)))
        if len(seeds) < 2:
            return None
        counts = {row: len(seeds) for row in coefficients}
        return noise.estimate(coefficients, counts, sum(
            sign * np.mean([table[seed] for seed in seeds])
            for sign, table in zip([1, -1], tables)), seeds)

    def minus_curve(self, row, values):
        curves = [self.pooled[sparse] for sparse in self.sparse]
        seeds = sorted(set(values).intersection(*curves))
        if len(seeds) < 2 or not self.k[0] <= self.mean_active(row) <= self.k[-1]:
            return None
        means = [np.mean([curve[seed] for seed in seeds]) for curve in curves]

        def read(name, seed, curve):
            return float(np.interp(self.runs[name][seed]["infer_ae"], self.k, curve))

        numbers = {name: {seed: x - read(name, seed, means) for seed, x in of_row.items()}
                   if name not in self.sparse else of_row
                   for name, of_row in self.pooled.items()}
        coefficients = {row: 1}
        for sparse, unit in zip(self.sparse, np.eye(len(self.k))):
            # The weight of this row's mean in the readings of the curve.
            weight = np.mean([read(row, seed, unit) for seed in seeds])
            coefficients |= {sparse: -weight} if weight > 0 else {}
        return self.difference(Noise(numbers, True, self.family), coefficients,
                               {seed: numbers[row][seed] for seed in seeds})

    def minus_half_of_range(self, row, values):
        losses = self.table(self.measure["against_pooled"], "loss")
        first, last = self.sparse[0], self.sparse[-1]
        tables = values, losses[first], losses[last]
        seeds = sorted(set.intersection(*(set(table) for table in tables)))
        values, *ends = ({seed: table[seed] for seed in seeds} for table in tables)
        noise = Noise(losses, True, self.family)
        gap = self.difference(noise, {first: 1, last: -1}, *ends)
        if gap is None or interval(gap, self.family)[0] <= 0:
            return None
        cost = self.difference(self.noise, {row: 1}, values)
        # How the two parts covary is unknown, so take the largest possible
        # error.
        return {"seeds": len(seeds), "effect": cost["effect"] - gap["effect"] / 2,
                "error": cost["error"] + gap["error"] / 2,
                "freedom": min(cost["freedom"], gap["freedom"]),
                "own_error": cost["own_error"] + gap["own_error"] / 2,
                "own_freedom": min(cost["own_freedom"], gap["own_freedom"]),
                "bartlett": min(cost["bartlett"], gap["bartlett"]),
                "not_pooled": cost["not_pooled"] or gap["not_pooled"],
                "left_out": cost["left_out"] + gap["left_out"],
                "own": sorted(cost["own"] + gap["own"])}


def mean_over_corpora(means):
    """Of independent parts with equal weights."""
    if None in means.values():
        return None
    if len(means) == 1:
        return list(means.values())[0]

    def combined(error, freedom):
        squares = [(case[error] / len(means)) ** 2 for case in means.values()]
        parts = sum(s ** 2 / case[freedom] for s, case in zip(squares, means.values()))
        return math.sqrt(sum(squares)), sum(squares) ** 2 / parts

    cases = list(means.values())
    error, freedom = combined("error", "freedom")
    own_error, own_freedom = combined("own_error", "own_freedom")
    mean = {"seeds": min(case["seeds"] for case in cases),
            "effect": float(np.mean([case["effect"] for case in cases])),
            "error": error, "freedom": freedom,
            "own_error": own_error, "own_freedom": own_freedom,
            "bartlett": min(case["bartlett"] for case in cases),
            "not_pooled": any(case["not_pooled"] for case in cases),
            "left_out": sum(case["left_out"] for case in cases),
            "own": sorted(f"{corpus}/{row}" for corpus, case in means.items()
                          for row in case["own"])}
    if "cap_rise" in cases[0]:
        mean["cap_rise"] = float(np.mean([case["cap_rise"] for case in cases]))
    return mean


def benchmark_cases(measure, throughput, family):
    # A number of active experts with two samples is pooled, even if not tested.
    logs = {f"AE {active:g}": [] for active in measure["active_experts"]}
    logs |= {f"AE {active:g}": np.log(speeds) for active, speeds, router in throughput
             if router == measure["router"]}
    noise = Noise({name: dict(enumerate(x)) for name, x in logs.items()}, False, family)
    counts = {name: len(x) for name, x in logs.items()}
    cases, names = [], list(logs)
    for a, b in zip(names, names[1:]):
        testable = min(counts[a], counts[b]) >= measure["least_samples"]
        cases.append(("", f"{a} - {b}", noise.estimate(
            {a: 1, b: -1}, counts, np.mean(logs[a]) - np.mean(logs[b]))
            if testable else None))
    return cases


def interval(case, family):
    quantile = stats.t.ppf((1 + family["confidence"]) / 2, case["freedom"])
    half = quantile * case["error"]
    return case["effect"] - half, case["effect"] + half


def test_case(case, measure, family):
    def below(limit):
        return stats.t.cdf((case["effect"] - limit) / case["error"], case["freedom"])

    def above(limit):
        return stats.t.sf((case["effect"] - limit) / case["error"], case["freedom"])

    effect, margin = case["effect"], measure["margin"]
    if measure["holds"] == "below":
        holds, reverse, points = below(margin), above(margin), effect < margin
    elif measure["holds"] == "above":
        holds, reverse, points = above(margin), below(margin), effect > margin
    else:
        holds, points = max(below(margin), above(-margin)), abs(effect) < margin
        reverse = min(1.0, 2 * min(above(margin), below(-margin)))
    low, high = interval(case, family)
    return case | {"low": low, "high": high, "holds": holds, "reversed": reverse,
                   "points": points}


def at_least(count, cases, name):
    """p of "at least `count` of them", however they depend on each other."""
    p_values = sorted(case.get(name, 1.0) for case in cases)
    return min(1.0, (len(cases) - count + 1) * p_values[count - 1])


def readings_are_there(measure, runs, definitions):
    """On every corpus."""
    rows = expand(measure.get("rows", []), definitions["groups"])
    return all(set(measure.get("readings", [])) <= {
        run["load_balance"] for row in rows for run in runs[corpus][row].values()}
        for corpus in measure.get("corpora", []))


def test_measure(measure, runs, throughput, definitions):
    family, found, means, parts = definitions["family"], [], {}, []
    if measure["against"] == "next_active_experts":
        found = benchmark_cases(measure, throughput, family)
    rows = expand(measure.get("rows", []), definitions["groups"])
    for corpus in measure.get("corpora", []):
        judge = CorpusJudge(measure, runs[corpus], definitions)
        of_corpus = [judge.case(row, i) for i, row in enumerate(rows)]
        found += [(corpus, row, case) for row, case in zip(rows, of_corpus)]
        if measure["of_cases"] == "mean":
            means[corpus] = judge.mean_case(rows, of_corpus)
    if means:
        corpus = list(means)[0] if len(means) == 1 else ""
        parts, found = found, [(corpus, "mean of", mean_over_corpora(means))]
    if not readings_are_there(measure, runs, definitions):
        found = [(corpus, row, None) for corpus, row, _ in found]
    cases, parts = ([{"corpus": corpus, "row": row, "tested": case is not None} |
                     (test_case(case, measure, family) if case else {})
                     for corpus, row, case in some] for some in (found, parts))
    n = len(cases)
    result = {"id": measure["id"], "cases": cases, "parts": parts}
    if measure["of_cases"] == "none":
        return result | {"status": "REPORTED", "needed": 0, "p": 1.0,
                         "direction": "REPORTED"}
    needed = n // 2 + 1 if measure["of_cases"] == "most" else n
    holds = at_least(needed, cases, "holds")
    reverse = at_least(n - needed + 1, cases, "reversed")
    testable = sum(case["tested"] for case in cases) >= needed
    status = "UNDECIDED" if testable else "NOT_TESTABLE"
    result |= {"status": status, "p": min(1.0, 2 * min(holds, reverse)),
               "needed": needed, "could_be_shown": testable,
               "direction": "SHOWN" if holds <= reverse else "CONTRADICTED"}
    tested = [case for case in cases if case["tested"]]
    if testable and all(case["own_error"] > 0 for case in tested):
        alone = [test_case(case | {"error": case["own_error"],
                                   "freedom": case["own_freedom"]}, measure, family)
                 if case["tested"] else case for case in cases]
        result["p_not_pooled"] = min(1.0, 2 * min(
            at_least(needed, alone, "holds"), at_least(n - needed + 1, alone, "reversed")))
    return result


def decide_measures(measures, family):
    """Holm's procedure, over all measures, testable or not."""
    decided = True
    judged = [measure for measure in measures if measure["status"] != "REPORTED"]
    assert len(judged) == family["measures"]
    for rank, measure in enumerate(sorted(judged, key=lambda each: each["p"])):
        decided &= measure["p"] <= family["level"] / (len(judged) - rank)
        direction = measure.pop("direction")
        measure["status"] = direction if decided else measure["status"]


def leaning(measures):
    statuses = [measure["status"] for measure in measures]
    worst = [s for s in ["CONTRADICTED", "NOT_TESTABLE", "UNDECIDED"] if s in statuses]
    return worst[0] if worst else "SHOWN"


def resolution(measure, runs, definitions):
    family, result = definitions["family"], []
    rows = expand(measure["pooled"], definitions["groups"])
    for corpus in measure["corpora"]:
        losses = {row: {seed: run["loss"] for seed, run in runs[corpus][row].items()}
                  for row in rows if runs[corpus][row]}
        seeds = min(len(of_row) for of_row in losses.values())
        if seeds < 2:
            continue
        plain, paired = (Noise(losses, pair, family) for pair in (False, True))
        if plain.unequal or paired.unequal:
            continue
        levels = [family["level"], family["level"] / family["measures"]]
        one_test, of_all = (
            sum(stats.t.ppf([1 - level / 2, POWER], paired.freedom)) *
            paired.deviation * math.sqrt(2 / seeds) for level in levels)
        result.append({"corpus": corpus, "rows": len(losses), "seeds": seeds,
                       "deviation": plain.deviation, "paired": paired.deviation,
                       "freedom": paired.freedom, "one_test": one_test,
                       "family": of_all})
    return result


def judge(grid, definitions):
    runs = collections.defaultdict(lambda: collections.defaultdict(dict))
    for run in grid["runs"]:
        runs[run["corpus"]][run["row"]][run["seed"]] = run
    claims = {claim["id"]: [test_measure(m, runs, grid["throughput"], definitions)
                            for m in claim["measures"]]
              for claim in definitions["claims"] + definitions["hypotheses"]}
    measures = sum(claims.values(), [])
    decide_measures(measures, definitions["family"])
    return {"measures": measures,
            "claims": [{"id": claim, "leaning": leaning(of_claim)}
                       for claim, of_claim in claims.items()],
            "resolution": resolution(definitions["claims"][0]["measures"][0], runs,
                                     definitions)}


def rounded(value):
    """For JSON: Python's numbers, fractions to DIGITS digits."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def print_counts(grids):
    counts = collections.Counter((measure["id"], measure["status"])
                                 for grid in grids for measure in grid["measures"])
    print(f"{'':14}" + "".join(f"{status:>14}" for status in STATUSES))
    for name in [measure["id"] for measure in grids[0]["measures"]]:
        print(f"{name:14}" + "".join(f"{counts[name, s]:14}" for s in STATUSES))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="miniature.json")
    parser.add_argument("--seed", type=int, default=20261123)
    parser.add_argument("--grids", type=int, default=6, help="of each kind of several")
    arguments = parser.parse_args()
    definitions = tomllib.loads(DEFINITIONS.read_text())
    measured_at = definitions["hypotheses"][-1]["measures"][0]["active_experts"]
    rng = np.random.default_rng(arguments.seed)
    grids = []
    names = [f"{kind} {i + 1}" for kind in KINDS for i in range(arguments.grids)]
    for name in names + [f"{SPLIT} 1"]:
        world = World(rng, name.split()[0], definitions)
        grid = {"name": name, "runs": world.runs(),
                "throughput": world.throughput(measured_at)}
        grids.append(grid | rounded(judge(grid, definitions)))
    source = (f"Python {platform.python_version()}, numpy {np.__version__}, "
              f"scipy {scipy.__version__}")
    lines = ",\n".join(json.dumps(grid, separators=(",", ":")) for grid in grids)
    pathlib.Path(arguments.out).write_text(
        f'{{"source": {json.dumps(source)},\n"grids": [\n{lines}\n]}}\n')
    print_counts(grids)


if __name__ == "__main__":
    main()
