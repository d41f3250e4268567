#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our speed against PyTorch's, in turns on one machine (design.md, ruling 16).

    ./bazelw build //:bench
    python3 experiments/peers/compare.py bazel-bin/optimized/bench

Three comparisons: a 1024^3 product (below 60 % of our rate, torch is not at its
best here and every other ratio is void), whole training steps at the sizes of
the smoke and mini grids, and LapSum forward + backward. Both sides run for a few
seconds in turn, round after round, so that a busy neighbour hits both; each
side's figure is its best of all rounds. Prints a line for each comparison and a
JSON object at the end; README.md has the commands that set it up.
"""
import argparse
import json
import pathlib
import platform
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
# Our rows that do the same work as the peer's.
ROUTERS = {"sparse": "sparse2", "soft": "soft_fixed2"}
VOID_BELOW = 0.6
# The router of the paper: 32 experts, k = 2; rows as in our benchmark.
EXPERTS, K, ROWS = 32, 2.0, 8192


class Ours:
    def __init__(self, args):
        self.args = args
        self.context = {}

    def run(self, pattern, seconds):
        output = subprocess.run(
            [self.args.benchmark, f"--threads={self.args.threads}",
             f"--benchmark_filter={pattern}",
             f"--benchmark_min_time={seconds}", "--benchmark_format=json"],
            check=True, capture_output=True, text=True).stdout
        parsed = json.loads(output)
        self.context = parsed["context"]
        if not parsed["benchmarks"]:
            sys.exit(f"{self.args.benchmark} has no benchmark {pattern}")
        return parsed["benchmarks"]

    def gemm_gflops(self):
        return self.run("^BM_Gemm/1024/1024/1024/"
                        f"{self.args.threads}/", 0.5)[0]["GFLOPS"]

    def step(self, size, router):
        result = self.run(f"^{size}/{ROUTERS[router]}/", self.args.seconds)[0]
        return result["best_tokens/s"], result["active_experts"]

    def lapsum_ns(self):
        runs = self.run(f"^BM_RouterSoft(Forward|Backward)/experts:{EXPERTS}/"
                        f"k_tenths:{round(10 * K)}/"
                        f"threads:{self.args.threads}/", 0.3)
        return sum(run["per_row"] for run in runs) * 1e9


def peer(script, *options):
    output = subprocess.run([sys.executable, HERE / script, *options],
                            check=True, capture_output=True, text=True).stdout
    return json.loads(output)


def compare_step(args, ours, size, router):
    """tokens/s of a training step; the peer's GEMM rate beside it."""
    result = {"what": f"step {size} {router}", "ours": 0.0, "loop": 0.0,
              "batched": 0.0, "torch_gemm": 0.0, "unit": "tokens/s"}
    for _ in range(args.rounds):
        tokens, active = ours.step(size, router)
        theirs = peer("pytorch_step.py", "--size", size, "--router", router,
                      "--threads", str(args.threads),
                      "--seconds", str(args.seconds))
        result["torch"] = theirs["torch"]
        result["active_experts"] = round(active, 2)
        result["torch_active_experts"] = theirs["active_experts"]
        result["ours"] = max(result["ours"], round(tokens))
        for form in ("loop", "batched"):
            result[form] = max(result[form],
                               theirs[f"{form}_tokens_per_second"])
        result["torch_gemm"] = max(result["torch_gemm"], theirs["gemm_gflops"])
    result["ratio"] = result["ours"] / max(result["loop"], result["batched"])
    return result


def compare_lapsum(args, ours):
    """ns per row, forward + backward, in float32."""
    result = {"what": f"LapSum n={EXPERTS} k={K:g}", "ours": 1e30,
              "torch": 1e30, "unit": "ns/row"}
    for _ in range(args.rounds):
        result["ours"] = min(result["ours"], ours.lapsum_ns())
        theirs = peer("lapsum_peer.py", "--rows", str(ROWS), "--experts",
                      str(EXPERTS), "--k", str(K), "--threads",
                      str(args.threads))
        result["torch"] = min(result["torch"], theirs["ns_per_row_float32"])
    result["ratio"] = result["torch"] / result["ours"]
    return result


def processor():
    try:
        for line in open("/proc/cpuinfo", encoding="utf-8"):
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("benchmark", help="the program behind //:bench")
    parser.add_argument("--sizes", default="smoke,mini")
    parser.add_argument("--routers", default="sparse,soft")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--threads", type=int, default=4, choices=[1, 4],
                        help="the counts that //:bench times kernels with")
    args = parser.parse_args()
    ours = Ours(args)
    gemm, torch_gemm, results = 0.0, 0.0, []

    def say(result):
        results.append(result)
        figures = ", ".join(f"{key} {value:.6g}" for key, value in
                            result.items() if isinstance(value, float) and
                            key != "ratio")
        print(f"{result['what']}: {result['ratio']:.2f}x ({figures} "
              f"{result['unit']})", flush=True)

    for size in args.sizes.split(","):
        for router in args.routers.split(","):
            gemm = max(gemm, ours.gemm_gflops())
            result = compare_step(args, ours, size, router)
            torch_gemm = max(torch_gemm, result["torch_gemm"])
            say(result)
    say(compare_lapsum(args, ours))
    share = torch_gemm / gemm
    print(f"1024^3 product: torch {torch_gemm:.0f} GFLOP/s, ours {gemm:.0f}: "
          f"{share:.0%}" + ("" if share >= VOID_BELOW else
                            "; below 60 %: THE RATIOS ABOVE ARE VOID"))
    print(json.dumps({"cpu": processor(), "isa": ours.context["isa"],
                      "threads": args.threads,
                      "compiler": ours.context["compiler"],
                      "void": share < VOID_BELOW,
                      "our_gemm_gflops": round(gemm, 1),
                      "torch_gemm_gflops": round(torch_gemm, 1),
                      "results": results}))


if __name__ == "__main__":
    main()
