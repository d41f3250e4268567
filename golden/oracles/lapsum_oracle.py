#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records LapSum and its derivatives from arbitrary precision: lapsum.h5.

    python3 lapsum_oracle.py --out lapsum.h5        (mpmath, h5py; minutes)

Nothing is shared with the C++ code but the definition (SPEC.md 1.1):

    S(x) = sum_i F((r_i - x)/T) = k,   p_i = F((r_i - x)/T)

is solved to 110 digits by a bracketed Newton iteration on S itself: no
sorting, no segments, no closed form. Derivatives are central differences of
that solution with a step of 1e-30: p is C^1, so their error is below 1e-27 of
the scale even where a score equals the root. Python's random numbers with a
fixed seed draw the cases; the same versions give the same file.
"""
import argparse
import math
import random

import mpmath
import numpy as np

from softmoe_hdf5 import EnvelopedFile

DIGITS = 110
STEP = mpmath.mpf("1e-30")
FULL_JACOBIAN_UP_TO = 8
# Scores per row -> cases. Most rows are small: a row of 256 tests sums, not
# logic.
COUNTS = {1: 100, 2: 300, 3: 400, 8: 700, 32: 420, 64: 120, 256: 20}
# The same, of rows with k beside a whole number and a gap at that rank.
BESIDE_COUNTS = {2: 40, 3: 40, 8: 80, 32: 40}


class Problem:
    """S(x) = k + shift. `shift` is kept apart from k: with a gap of 1e6 T in
    the scores it is a million digits smaller."""

    def __init__(self, scores, k, temperature, shift=0):
        self.scores, self.k = scores, k
        self.temperature, self.shift = temperature, shift

    def halves(self, x):
        """(u_i > 0, e^-|u_i| / 2): p_i is the second, or 1 less it."""
        result = []
        for score in self.scores:
            u = (score - x) / self.temperature
            result.append((u > 0, mpmath.exp(-abs(u)) / 2))
        return result

    def residual_and_slope(self, x):
        """S(x) - k - shift and -S'(x) T. The ones of F are counted apart, so
        that nothing is lost where k is an integer and all halves are tiny."""
        whole, rest, slope = 0, -self.shift, mpmath.mpf(0)
        for above, half in self.halves(x):
            slope += half
            whole += above
            rest += -half if above else half
        return (whole - self.k) + rest, slope

    def solve(self):
        """The root to 100 digits of T."""
        low, high = min(self.scores), max(self.scores)
        reach = self.temperature
        while self.residual_and_slope(low)[0] <= 0:
            low, reach = low - reach, 2 * reach
        reach = self.temperature
        while self.residual_and_slope(high)[0] >= 0:
            high, reach = high + reach, 2 * reach
        tolerance = self.temperature * mpmath.mpf(10) ** -100
        newton = None
        while high - low > tolerance:
            inside = newton is not None and low < newton < high
            x = newton if inside else (low + high) / 2
            width = high - low
            residual, slope = self.residual_and_slope(x)
            if residual == 0:
                return x
            # Newton's steps may approach the root from one side for ever: a
            # step slightly beyond it closes the bracket on the other side.
            step = self.temperature * residual / slope
            if residual > 0:
                low, newton = x, x + step + tolerance / 4
            else:
                high, newton = x, x + step - tolerance / 4
            if high - low > width / 2:
                newton = None if inside and abs(step) > width / 4 else newton
        return (low + high) / 2

    def solution(self):
        return self.halves(self.solve())


def derivative(moved, step):
    """Central difference of the weights of `moved(h)`, a Problem.

    Weights near one differ from it by less than any precision: their halves
    are subtracted instead."""
    result = []
    for (above, a), (below, b) in zip(moved(step).solution(),
                                      moved(-step).solution()):
        if above == below:
            change = b - a if above else a - b
        else:
            change = (1 - a if above else a) - (1 - b if below else b)
        result.append(change / (2 * step))
    return result


def grid(rng, scale):
    """A normal number on a grid of 2^-12: such files compress."""
    return round(rng.gauss(0, 1) * 4096) / 4096 * scale


def make_scores(rng, n):
    scale = rng.choice([1.0, 1.0, 1.0, 1e3, 1e-6])
    scores = [grid(rng, scale) for _ in range(n)]
    kind = rng.choice(["plain", "plain", "ties", "near_ties", "plateau",
                       "all_equal", "dominant"])
    if kind == "ties":
        for i in range(n):
            scores[i] = scores[rng.randrange(n)]
    elif kind == "near_ties":
        for i in range(1, n):
            if rng.random() < 0.5:
                scores[i] = scores[rng.randrange(i)]
                for _ in range(rng.randrange(4)):
                    scores[i] = math.nextafter(scores[i], math.inf)
    elif kind == "plateau":
        upper = rng.randrange(n + 1)
        scores = [s + 40 * scale * (i < upper) for i, s in enumerate(scores)]
        rng.shuffle(scores)
    elif kind == "all_equal":
        scores = [scores[0]] * n
    elif kind == "dominant":
        scores[rng.randrange(n)] += 300 * scale
    return scores


def make_k(rng, scores, temperature):
    n = len(scores)
    kind = rng.choice(["anywhere", "anywhere", "integer", "half", "near_zero",
                       "near_n", "node"])
    if kind == "integer" and n > 1:
        return float(rng.randrange(1, n))
    if kind == "half":
        return rng.randrange(n) + 0.5
    if kind == "near_zero":
        return rng.choice([1e-9, 1e-6, 1e-3])
    if kind == "near_n":
        return n - rng.choice([1e-6, 1e-3])
    if kind == "node":
        node = mpmath.mpf(rng.choice(scores))
        value = float(Problem([mpmath.mpf(s) for s in scores], 0, mpmath.mpf(
            temperature)).residual_and_slope(node)[0])
        for _ in range(rng.randrange(4)):
            value = math.nextafter(value, rng.choice([0.0, float(n)]))
        if 0 < value < n:
            return value
    return rng.uniform(0.001, 0.999) * n


def make_beside_a_gap(rng, n, temperature):
    """Scores with a gap below the j-th largest, and k beside j by a few ulp or
    a little more (1e-15 rounds away beside a large j). The weights at the gap
    depend on k - j against e^(-gap / 2), gap in units of T; either may be the
    larger one."""
    j = rng.randrange(1, n)
    gap = rng.choice([20, 30, 40, 60, 70, 80, 200, 2000])
    scores = [(grid(rng, 0.25) + gap * (i < j)) * temperature
              for i in range(n)]
    rng.shuffle(scores)
    move = rng.choice(["ulp", "ulp", 1e-15, 1e-13, 1e-10, 1e-7])
    side = rng.choice([-1, 1])
    if move != "ulp":
        return scores, j + side * move
    k = float(j)
    for _ in range(rng.randrange(1, 5)):
        k = math.nextafter(k, side * math.inf)
    return scores, k


class Recorder:
    def __init__(self):
        self.columns = {}

    def add(self, **values):
        for name, value in values.items():
            self.columns.setdefault(name, []).extend(
                value if isinstance(value, list) else [value])


def record(rng, n, recorder, beside):
    temperature = 10 ** rng.uniform(-3, 3)
    if rng.random() < 0.3:
        temperature = rng.choice([1.0, 5.0, 1.7])
    if beside:
        scores, k = make_beside_a_gap(rng, n, temperature)
    else:
        scores = make_scores(rng, n)
        k = make_k(rng, scores, temperature)
    # A direction of size 1, in units in which the problem has size 1.
    d_scores = [rng.randrange(-64, 65) / 64 * temperature for _ in scores]
    d_k = rng.randrange(-64, 65) / 64 * min(k, n - k, 1.0)
    d_temperature = rng.randrange(-64, 65) / 64 * temperature
    cotangents = [rng.randrange(-64, 65) / 64 for _ in scores]

    r = [mpmath.mpf(s) for s in scores]
    kk, t = mpmath.mpf(k), mpmath.mpf(temperature)
    base = Problem(r, kk, t)
    root = base.solve()
    density = base.residual_and_slope(root)[1]
    # Everything varies on the scale of T, except the dependence on k, whose
    # scale is the sum of densities: tiny where the scores have a gap.
    k_step = STEP * min(density, kk, n - kk)

    def with_k(h):
        return Problem(r, kk, t, h)

    def along(h):
        return Problem([a + h * b for a, b in zip(r, d_scores)], kk,
                       t + h * d_temperature)

    by_k = derivative(with_k, k_step)
    by_rest = derivative(along, STEP)
    recorder.add(
        n=n, temperature=temperature, mean_active=k, scores=scores,
        weights=[float(1 - half if above else half)
                 for above, half in base.halves(root)],
        direction_scores=d_scores, direction_mean_active=d_k,
        direction_temperature=d_temperature,
        weights_dot=[float(a + d_k * b) for a, b in zip(by_rest, by_k)],
        root_d_mean_active=float(
            (with_k(k_step).solve() - with_k(-k_step).solve()) / (2 * k_step)))
    if n > FULL_JACOBIAN_UP_TO:
        return

    def pull_back(column):
        return float(sum(a * b for a, b in zip(column, cotangents)))

    def with_score(j):
        return lambda h: Problem(
            [a + h if i == j else a for i, a in enumerate(r)], kk, t)

    recorder.add(
        cotangents=cotangents,
        d_scores=[pull_back(derivative(with_score(j), STEP * t))
                  for j in range(n)],
        d_mean_active=pull_back(by_k),
        d_temperature=pull_back(derivative(
            lambda h: Problem(r, kk, t + h), STEP * t)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="lapsum.h5")
    parser.add_argument("--seed", type=int, default=20261121)
    arguments = parser.parse_args()
    mpmath.mp.dps = DIGITS
    rng = random.Random(arguments.seed)
    beside_rng = random.Random(arguments.seed + 1)
    recorder = Recorder()
    for n, count in COUNTS.items():
        for _ in range(count):
            record(rng, n, recorder, beside=False)
        beside = BESIDE_COUNTS.get(n, 0)
        for _ in range(beside):
            record(beside_rng, n, recorder, beside=True)
        print(f"n = {n}: {count} + {beside} cases", flush=True)
    with EnvelopedFile(arguments.out, kind="lapsum-oracle", version=1) as file:
        file.attribute("generator", "golden/oracles/lapsum_oracle.py")
        file.attribute("source", f"mpmath {mpmath.__version__}, {DIGITS} "
                                 "digits, bracketed Newton and central "
                                 "differences")
        file.attribute("seed", arguments.seed)
        for name, values in recorder.columns.items():
            kind = np.int64 if name == "n" else np.float64
            file.dataset(name, np.array(values, kind))


if __name__ == "__main__":
    main()
