#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our training step against PyTorch's, in turns on one machine (ruling 16).

    python3 compare_step.py path/to/model_benchmark [--rounds 3] [--threads 4]

Both sides run for a few seconds in turn, round after round, so that a busy
neighbour hits both; each side's figure is its best step of all rounds. Needs
torch in this Python. Ends with one JSON line per size; `ratio` is void if
torch's own GEMM is below 60 % of ours (--our_gemm, GFLOP/s of
//kernels:gemm_benchmark on the same machine).
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

# Rows of the two programs that do the same work.
ROUTERS = {"sparse": "sparse2", "soft": "soft_fixed2"}


def ours(benchmark, size, router, threads, seconds):
    output = subprocess.run(
        [benchmark, f"--benchmark_filter={size}/{ROUTERS[router]}/",
         f"--benchmark_min_time={seconds}", "--benchmark_format=json"],
        env={**os.environ, "SOFTMOE_THREADS": str(threads)},
        check=True, capture_output=True, text=True).stdout
    run = json.loads(output)["benchmarks"][0]
    return run["best_tokens/s"], run["active_experts"]


def theirs(size, router, threads, seconds):
    script = pathlib.Path(__file__).with_name("pytorch_step.py")
    output = subprocess.run(
        [sys.executable, script, "--size", size, "--router", router,
         "--threads", str(threads), "--seconds", str(seconds)],
        check=True, capture_output=True, text=True).stdout
    return json.loads(output)


def compare(args, size, router):
    result = {"size": size, "router": router, "threads": args.threads,
              "ours": 0.0, "loop": 0.0, "batched": 0.0, "torch_gemm": 0.0}
    for _ in range(args.rounds):
        tokens, active = ours(args.benchmark, size, router, args.threads,
                              args.seconds)
        peer = theirs(size, router, args.threads, args.seconds)
        result["torch"] = peer["torch"]
        result["active_experts"] = round(active, 2)
        result["torch_active_experts"] = peer["active_experts"]
        result["ours"] = max(result["ours"], round(tokens))
        for form in ("loop", "batched"):
            result[form] = max(result[form],
                               peer[f"{form}_tokens_per_second"])
        result["torch_gemm"] = max(result["torch_gemm"], peer["gemm_gflops"])
    best = max(result["loop"], result["batched"])
    result["ratio"] = round(result["ours"] / best, 2)
    if args.our_gemm and result["torch_gemm"] < 0.6 * args.our_gemm:
        result["ratio"] = "void: torch's GEMM is below 60 % of ours"
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("benchmark")
    parser.add_argument("--sizes", default="smoke,mini")
    parser.add_argument("--routers", default="sparse,soft")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--our_gemm", type=float, default=0.0)
    args = parser.parse_args()
    for size in args.sizes.split(","):
        for router in args.routers.split(","):
            print(json.dumps(compare(args, size, router)), flush=True)


if __name__ == "__main__":
    main()
