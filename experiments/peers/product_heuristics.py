#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The products of the paper's training step, as measured on a device, against
what NVIDIA's nvMatmulHeuristics expects of that device. Runs on a CPU.

    python3 -m venv /tmp/softmoe-heuristics-venv
    /tmp/softmoe-heuristics-venv/bin/pip install \\
        nvidia-matmul-heuristics h5py numpy
    /tmp/softmoe-heuristics-venv/bin/python \\
        experiments/peers/product_heuristics.py

Prints a table for each record and precision, a line for each product:
    calls     in a micro-batch of 30 sequences: two experts a token, rows spread
              evenly over the experts, nothing recomputed
    first     measured (lines of kind `algorithm`, golden/gpu_runs): the first
              algorithm of cuBLASLt's heuristic, which models take
    fastest   measured: the fastest of the first eight
    expected  the lowest of nvMatmulHeuristics' estimates for up to 64 kernels,
              for the same shape, layout and types: a model, not a bound
    ratio     expected / first: above 1, we are faster than expected
and last the sums over calls, as if one ran after the other; models run products
of several experts at once. Products that records do not have (output
projection, router, gradients of the head, attention) are in no sum.

Exits with 0, 2 if a record is missing or not usable, 5 if a package is.
"""
import argparse
import json
import math
import pathlib
import sys

MISSING = None
try:
    import h5py
    import nvMatmulHeuristics as nvmh
except ImportError as error:
    MISSING = error

RECORDS = pathlib.Path(__file__).parents[2] / "golden" / "gpu_runs"
GPUS = {"NVIDIA H100 80GB HBM3": "H100_SXM", "NVIDIA H200": "H200_SXM"}
KERNELS = 64  # more than there are; the best is not always among the first
# 10 layers, 32 experts in each; the head takes 2048 of 61,440 tokens at a time.
EACH_LAYER, EACH_EXPERT, EACH_CHUNK = 10, 10 * 32, 30
# ProductsOfAStep of optimized/operation_benchmark.cc (m, n, k: in the record):
# what is transposed (T), is the result float even in bf16, calls.
PRODUCTS = {
    "qkv": ("NN", False, EACH_LAYER),
    "qkv d_input": ("NT", False, EACH_LAYER),
    "qkv d_weight": ("TN", True, EACH_LAYER),
    "expert gate and up": ("NN", False, EACH_EXPERT),
    "expert down": ("NN", False, EACH_EXPERT),
    "expert d_activation": ("NT", False, EACH_EXPERT),
    "expert d_hidden": ("NT", False, EACH_EXPERT),
    "expert d_gate_up_weight": ("TN", True, EACH_EXPERT),
    "expert d_down_weight": ("TN", True, EACH_EXPERT),
    "head": ("NT", True, EACH_CHUNK),
}


def fail(code, text):
    print(f"product_heuristics.py: {text}", file=sys.stderr)
    sys.exit(code)


def lines_of(path):
    """The lines of a record, of every kind."""
    try:
        with h5py.File(path) as file:
            text = bytes(file["lines"][()])
        return [json.loads(line) for line in text.splitlines()]
    except (OSError, KeyError, TypeError, ValueError) as error:
        fail(2, f"{path}: not a record of a device: {error}")


def read(path):
    """Device, {(precision, name): (shape, {choice: seconds})}, and the number
    of stages that did not pass."""
    device, products, not_passed = None, {}, 0
    try:
        for line in lines_of(path):
            if line["kind"] == "facts":
                device = line["model"]
            elif line["kind"] == "stage":
                not_passed += line["outcome"] != "passed"
            elif line["kind"] == "algorithm":
                # What was not measured is left out, or a text: inf, nan.
                seconds = float(line.get("seconds", "nan"))
                if not math.isnan(seconds):
                    key = line["precision"], line["name"]
                    times = products.setdefault(key, (line["shape"], {}))[1]
                    times[line["choice"]] = seconds
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        fail(2, f"{path}: not a record of a device: {error!r}")
    if device is None:
        fail(2, f"{path}: not a record of a device: no line of kind facts")
    return device, products, not_passed


def latest():
    """Of each device, the record of its latest date with algorithms; of several
    one with the fewest stages that did not pass."""
    paths = {}

    def order(path):  # names begin with the date
        return path.name[:10], -read(path)[2], path.name

    for path in sorted(RECORDS.glob("*.h5"), key=order):
        device, products, _ = read(path)
        if products:
            paths[device] = path
    if not paths:
        fail(2, f"no record with lines of kind `algorithm` in {RECORDS}")
    return paths.values()


def expected(heuristics, shape, layout, types):
    """Seconds. `types`: operands, accumulation, result; T: bf16, S: float."""
    problem = heuristics.makeNvMatmulHeuristicsProblem(
        *map(int, shape.split("x")),
        nvmh.NvMatmulHeuristicsMatmulLayout[layout + "_ROW_MAJOR"])
    times = [kernel["runtime"]
             for kernel in heuristics.get(problem, KERNELS, types)]
    if not times or min(times) <= 0:
        fail(5, f"nvMatmulHeuristics has no estimate for {shape} {types}")
    return min(times)


def tell(path):
    device, measured, _ = read(path)
    if device not in GPUS:
        fail(2, f"{path}: {device}; known are {', '.join(GPUS)}")
    heuristics = nvmh.NvMatmulHeuristicsInterfaceEx(
        gpu=nvmh.NvMatmulHeuristicsNvidiaGpu[GPUS[device]])
    for precision in ("bf16", "fp32"):
        lines, sums = [], [0, 0, 0]
        for name, (layout, is_float, calls) in PRODUCTS.items():
            shape, seconds = measured.get((precision, name), ("", {}))
            if 0 not in seconds:
                fail(2, f"{path}: no time of {name}, {precision}, algorithm 0")
            types = "TST" if precision == "bf16" else "SSS"
            estimate = expected(heuristics, shape, layout,
                                types[:2] + "S" if is_float else types)
            times = [1e6 * time for time in (
                seconds[0], min(seconds.values()), estimate)]
            sums = [a + calls * b for a, b in zip(sums, times)]
            lines.append((name, shape, calls, *times))
        print(f"\n{device}, {path.name}, {precision}, microseconds\n"
              f"{'product':24}{'m x n x k':14}{'calls':>6}{'first':>10}"
              f"{'fastest':>10}{'expected':>10}{'ratio':>6}")
        for name, shape, calls, first, fastest, model in lines + [
                ("sums over calls", "", "", *sums)]:
            print(f"{name:24}{shape:14}{calls:>6}{first:10.1f}{fastest:10.1f}"
                  f"{model:10.1f}{model / first:6.2f}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", nargs="*", type=pathlib.Path,
                        help="[the latest with algorithms of each device]")
    args = parser.parse_args()
    if MISSING:
        fail(5, f"{MISSING}; pip install nvidia-matmul-heuristics h5py numpy")
    for path in args.record or latest():
        tell(path)


if __name__ == "__main__":
    main()
