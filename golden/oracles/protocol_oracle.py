#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the active experts of scores drawn at random: protocol.json.

    python3 protocol_oracle.py --out protocol.json    (numpy; a minute)

For each router, rows of E independent normal scores, LapSum's weights from the sorted
scores (SPEC.md 1.2), those above the cutoff tau k / E counted, at most the cap. No
integral is taken. A calibrated tau is read off the sorted weights, as the trainer does
it: the one that the largest k of a row, in the mean, exceed. Of a run, each row has a
step of its own, drawn at random.

The file holds, for each case, the mean of the active experts and the share of rows
without one, with their standard errors. numpy's random numbers with a fixed seed draw the
scores; the same versions give the same file.
"""
import argparse
import json
import math
import pathlib
import platform

import numpy as np

ROWS = 100_000
AT_ONCE = 10_000
PAPER = {"experts": 32, "spread": 0.02 * math.sqrt(640), "steps": 18_000}
MINI = {"experts": 16, "spread": 0.02 * math.sqrt(128), "steps": 1_000}
ROUTERS = [(1, 4, 1.1), (1.5, 3, 1.8), (2, 4, 1.2)]  # k, cap, published tau


def soft_weights(scores, k, temperature):
    """[rows, E], descending, from the closed form over sorted scores.

    temperature: [rows, 1].
    """
    s = -np.sort(-scores, axis=1)
    experts = s.shape[1]
    decay = np.exp(-(s[:, :-1] - s[:, 1:]) / temperature)  # e^-delta_j
    a, b = np.ones_like(s), np.ones_like(s)
    for j in range(1, experts):
        a[:, j] += a[:, j - 1] * decay[:, j - 1]
        b[:, -1 - j] += b[:, -j] * decay[:, -j]
    node = np.arange(1, experts + 1) - (a - (b - 1)) / 2  # S(s_j)
    segment = (node < k).sum(axis=1)
    rows = np.arange(len(s))
    anchor, offset = s[:, 0].copy(), np.log(b[:, 0] / (2 * k))
    last = segment == experts
    anchor[last] = s[last, -1]
    offset[last] = np.log(2 * (experts - k) / a[last, -1])
    inner = (segment > 0) & ~last
    i, j = rows[inner], segment[inner]
    d = j - k
    h = np.sqrt(decay[i, j - 1] * a[i, j - 1] * b[i, j])
    root = np.hypot(d, h)
    # If j - k < 0, the other form of the root, anchored at s_{j+1}.
    anchor[inner] = np.where(d > 0, s[i, j - 1], s[i, j])
    offset[inner] = np.where(d > 0, np.log((np.maximum(d, 0) + root) / a[i, j - 1]),
                             np.log(b[i, j] / (np.maximum(-d, 0) + root)))
    u = (s - anchor[:, None]) / temperature - offset[:, None]
    tail = np.exp(-np.abs(u)) / 2
    weights = np.where(u <= 0, tail, 1 - tail)
    assert np.abs(weights.sum(axis=1) - k).max() < 1e-9
    return weights


def temperatures(rng, case, rows):
    if "steps" not in case:
        return np.full((rows, 1), float(case["temperature"]))
    step = rng.integers(0, case["steps"], (rows, 1))
    start, end = case["schedule"]
    return end + (start - end) * (1 + np.cos(math.pi * step / case["steps"])) / 2


def counted(rng, case):
    """The largest weights of every row, as multiples of k / E: [ROWS, cap]."""
    parts = []
    for _ in range(ROWS // AT_ONCE):
        scores = case["spread"] * rng.standard_normal((AT_ONCE, case["experts"]))
        weights = soft_weights(scores, case["k"], temperatures(rng, case, AT_ONCE))
        parts.append(weights[:, :case["cap"]] * case["experts"] / case["k"])
    return np.concatenate(parts)


def result(rng, case):
    weights = counted(rng, case)
    made = dict(case)
    if "tau" not in case:  # calibrated: exactly k ROWS weights lie above it
        ranked = -np.sort(-weights.ravel())
        made["calibrated"] = True
        made["tau"] = round(float(ranked[round(case["k"] * ROWS) - 1:][:2].mean()), 9)
    active = (weights > made["tau"]).sum(axis=1)
    zero = active == 0
    error = math.sqrt(ROWS)
    made |= {"active": active.mean(), "active_error": active.std(ddof=1) / error,
             "zero": zero.mean(), "zero_error": zero.std(ddof=1) / error}
    return {key: round(float(value), 9) if isinstance(value, np.floating) else value
            for key, value in made.items()}


def cases():
    for size in (PAPER, MINI):
        start = {"experts": size["experts"], "spread": size["spread"]}
        for k, cap, tau in ROUTERS:
            router = start | {"k": k, "cap": cap}
            yield router | {"temperature": 5}  # calibrated
            yield router | {"temperature": 5, "tau": tau}
            yield router | {"temperature": 2.5, "tau": tau}
            yield router | {"temperature": 1, "tau": tau}
            yield router | {"steps": size["steps"], "schedule": [5, 1], "tau": tau}
    # Wide scores, where the order of two or three decides; few experts; a
    # cutoff above one half, so that only the largest can be active; many
    # experts; no cap.
    for experts, spread, k, cap, tau in [(32, 2.3, 1, 4, 1.1), (32, 4, 1.5, 3, 1.8),
                                         (32, 1, 2, 4, 2.0), (8, 1, 1, 4, 1.1),
                                         (8, 1, 1.5, 3, 3.2), (8, 4, 2, 4, 1.5),
                                         (64, 0.5, 2, 4, 3.0), (256, 1, 100, 256, 1.3),
                                         (32, 1, 8, 32, 2.5)]:
        yield {"experts": experts, "spread": spread, "k": k, "cap": cap,
               "temperature": 1, "tau": tau}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, required=True)
    out = parser.parse_args().out
    rng = np.random.default_rng(28)
    lines = [json.dumps(result(rng, case)) for case in cases()]
    program = f"Python {platform.python_version()}, numpy {np.__version__}"
    out.write_text('{"recorded_by": ' + json.dumps(program) + f', "rows": {ROWS}' +
                   ', "cases": [\n' + ",\n".join(lines) + "\n]}\n")


if __name__ == "__main__":
    main()
