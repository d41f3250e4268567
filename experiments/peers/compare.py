#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our speed against PyTorch's, in turn on one machine (DESIGN.md, ruling 16).

    ./bazelw build //:bench
    python3 experiments/peers/compare.py bazel-bin/trainer/tokens/bench

Whole training steps at the sizes of the smoke and midi grids, and LapSum
forward + backward at those of their routers and the paper's. In every round
both sides run for a few seconds, one after the other; a side's figure is its
median step, for LapSum our mean call and the peer's best. A round's ratio is
ours to the faster form of the peer, and the ratio printed is the median of the
rounds. Rounds in which other processes took more than 5 % of the machine are
repeated, and where that does not help the line says how much they took: such a
ratio is not a result.

Both sides run as many threads as //:bench does by default, one per core and at
most four, or --threads. With more threads than cores a ratio is void: PyTorch's
threads spin while they wait, and disturb each other far more than ours do.

Beside each comparison both sides multiply 1024^3 matrices: where torch's best
call reaches less than 60 % of our mean rate it is not at its best here, and the
ratio is void.

Exits with 0 if every ratio reaches its target, 1 if one misses it, 2 if the
arguments or the benchmark program are not usable, 4 if a ratio is void or
disturbed, 5 if a side does not run (no torch, for example).
"""
import argparse
import json
import os
import pathlib
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
SIZES = ("smoke", "mini", "midi")  # those of both sides
# Our rows that do the same work as the peer's.
ROUTERS = {"sparse": "sparse2", "soft": "soft_fixed2"}
ASKED = {"step": 3.0, "lapsum": 20.0}
VOID_BELOW = 0.6
DISTURBED_ABOVE = 0.05
PATIENCE = 60  # seconds to wait for a quiet machine before each round
ATTEMPTS = 3  # per round
# The routers of the smoke, midi and paper grids; rows as in our benchmark.
LAPSUM_EXPERTS, K, ROWS = (8, 16, 32), 2.0, 8192


def fail(code, text):
    print(f"compare.py: {text}", file=sys.stderr)
    sys.exit(code)


class Machine:
    """CPU time used by processes other than our children."""

    def __init__(self):
        self.start = self.clocks()

    @staticmethod
    def clocks():
        with open("/proc/stat", encoding="ascii") as stat:
            fields = [int(x) for x in stat.readline().split()[1:9]]
        busy = sum(fields) - fields[3] - fields[4]  # minus idle and iowait
        own = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (busy / os.sysconf("SC_CLK_TCK"), own.ru_utime + own.ru_stime,
                time.monotonic())

    def others(self):
        """Their share of the machine since the beginning."""
        busy, own, wall = (b - a for a, b in zip(self.start, self.clocks()))
        return max(0.0, (busy - own) / (wall * os.cpu_count()))


def wait_for_quiet():
    """Returns when the machine is quiet, or patience is at an end."""
    for _ in range(PATIENCE):
        machine = Machine()
        time.sleep(1)
        if machine.others() <= DISTURBED_ABOVE:
            return


def json_of(command, **options):
    """What a side prints."""
    return json.loads(subprocess.run(command, check=True, text=True,
                                     stdout=subprocess.PIPE, **options).stdout)


class Ours:
    def __init__(self, args):
        self.args = args
        self.context = {}

    def run(self, pattern, seconds):
        threads = self.args.threads
        parsed = json_of(
            [self.args.benchmark,
             *([] if threads is None else [f"--threads={threads}"]),
             f"--benchmark_filter={pattern}",
             f"--benchmark_min_time={seconds}", "--benchmark_format=json"],
            stderr=subprocess.DEVNULL)
        self.context = parsed["context"]
        return parsed["benchmarks"]

    def machine(self):
        """The threads that it uses by default, and the available cores."""
        threads, self.args.threads = self.args.threads, None
        self.run("^BM_FmaPeak/threads:1/", 0.01)
        self.args.threads = threads
        return int(self.context["threads"]), int(self.context["cores"])

    def gemm(self):
        return self.run("^BM_Gemm/1024/1024/1024/"
                        f"{self.args.threads}/", 0.3)[0]["GFLOPS"]

    def step(self, size, router):
        return self.run(f"^{size}/{ROUTERS[router]}/", self.args.seconds)[0]

    def lapsum_ns(self, experts):
        runs = self.run(f"^BM_RouterSoft(Forward|Backward)/experts:{experts}/"
                        f"k_tenths:{round(10 * K)}/"
                        f"threads:{self.args.threads}/", 0.3)
        return sum(run["per_row"] for run in runs) * 1e9


def peer(script, *options):
    return json_of([sys.executable, str(HERE / script), *options])


def step_round(args, ours, size, router):
    """Tokens/s of both sides."""
    mine = ours.step(size, router)
    theirs = peer("pytorch_step.py", "--size", size, "--router", router,
                  "--threads", str(args.threads),
                  "--seconds", str(args.seconds))
    if theirs["label"] != mine["label"]:
        fail(2, f"other sizes: {mine['label']}, peer {theirs['label']}")
    loop = theirs["loop_median_tokens_per_second"]
    batched = theirs["batched_median_tokens_per_second"]
    return {"ours": mine["tokens/s"], "loop": loop, "batched": batched,
            "ratio": mine["tokens/s"] / max(loop, batched),
            "best_ratio": mine["best_tokens/s"] / theirs["tokens_per_second"],
            "threads": max(mine["threads"], theirs["threads"]),
            "ours_active": mine["active_experts"],
            "torch_active": theirs["active_experts"],
            "our_gemm": ours.gemm(), "torch_gemm": theirs["gemm_gflops"]}


def lapsum_round(args, ours, experts):
    """ns per row of forward + backward of both sides, float32."""
    mine = ours.lapsum_ns(experts)
    theirs = peer("lapsum_peer.py", "--rows", str(ROWS), "--experts",
                  str(experts), "--k", str(K), "--threads", str(args.threads))
    return {"ours": mine, "torch": theirs["ns_per_row_float32"],
            "ratio": theirs["ns_per_row_float32"] / mine,
            "threads": max(args.threads, theirs["threads"]),
            "our_gemm": ours.gemm(), "torch_gemm": theirs["gemm_gflops"]}


def too_many(threads, cores):
    return f"VOID: {threads:g} threads on {cores} core{'s' * (cores != 1)}"


def compare(args, kind, what, run_round):
    """Runs the rounds; prints and returns their results."""
    quiet, disturbed = [], []
    attempts = ATTEMPTS * args.rounds if args.repeat else args.rounds
    for _ in range(attempts):
        if args.repeat:
            wait_for_quiet()
        machine = Machine()
        result = run_round()
        result["others"] = machine.others()
        calm = result["others"] <= DISTURBED_ABOVE
        (quiet if calm else disturbed).append(result)
        if len(quiet) == args.rounds:
            break
    rounds = quiet if len(quiet) >= args.rounds else quiet + disturbed
    result = {key: round(statistics.median(r[key] for r in rounds), 3)
              for key in rounds[0]}
    ratios = [r["ratio"] for r in rounds]
    notes = []
    if rounds is not quiet:
        most = max(r["others"] for r in rounds)
        notes.append(f"DISTURBED: others took up to {most:.0%} of the machine")
    if result["torch_gemm"] < VOID_BELOW * result["our_gemm"]:
        notes.append("VOID: torch's product is below 60 % of ours")
    if result["threads"] > args.cores:
        notes.append(too_many(result["threads"], args.cores))
    usable = not notes
    met = statistics.median(ratios) >= ASKED[kind]  # not rounded
    notes.insert(0, "met" if met else "MISSED")
    figures = ", ".join(f"{key} {value:.5g}" for key, value in result.items()
                        if key != "ratio")
    print(f"{what}: {result['ratio']:.2f}x [{min(ratios):.2f}, "
          f"{max(ratios):.2f}], asked {ASKED[kind]:g}x: {'; '.join(notes)}\n"
          f"    {figures}", flush=True)
    return {"what": what, "asked": ASKED[kind], "met": met, "usable": usable,
            "notes": notes, "rounds": len(rounds), **result}


def processor():
    try:
        for line in open("/proc/cpuinfo", encoding="utf-8"):
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor()


def list_of(known):
    """Reads names with commas between them, all of which are known."""
    def read(text):
        names = [name for name in text.split(",") if name]
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(
                    f"unknown: '{name}'; known are {', '.join(known)}")
        return names
    return read


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("benchmark", help="the program of //:bench")
    parser.add_argument("--sizes", type=list_of(SIZES), default="smoke,midi")
    parser.add_argument("--routers", type=list_of(ROUTERS),
                        default="sparse,soft")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--threads", type=int,
                        help="at most one per core [one per core, at most 4]")
    parser.add_argument("--no-repeat", dest="repeat", action="store_false",
                        help="neither wait for a quiet machine nor repeat "
                        "disturbed rounds")
    args = parser.parse_args()
    if args.threads is not None and args.threads < 1:
        parser.error("--threads: at least 1")
    if args.rounds < 1:
        parser.error("--rounds: at least 1")
    if shutil.which(args.benchmark) is None:
        parser.error(f"{args.benchmark}: not a program")
    return args


def compare_all(args):
    """Every comparison that was asked for; prints and returns the results."""
    ours = Ours(args)
    threads, args.cores = ours.machine()
    if args.threads is None:
        args.threads = threads
    if args.threads > args.cores:
        print(f"{too_many(args.threads, args.cores)}; nothing was timed, use "
              f"--threads {args.cores} at most")
        sys.exit(4)
    torch = peer("lapsum_peer.py", "--rows", "64", "--repeats", "1")["torch"]
    facts = {"date": time.strftime("%Y-%m-%d"), "processor": processor(),
             "cores": args.cores, "threads": args.threads,
             "isa": ours.context["isa"],
             "compiler": ours.context["compiler"], "torch": torch}
    print(", ".join(f"{key} {value}" for key, value in facts.items()))

    results = []
    for size in args.sizes:
        for router in args.routers:
            results.append(compare(
                args, "step", f"step {size} {router} (tokens/s)",
                lambda s=size, r=router: step_round(args, ours, s, r)))
    for experts in LAPSUM_EXPERTS:
        results.append(compare(
            args, "lapsum", f"LapSum n={experts} k={K:g} (ns/row)",
            lambda e=experts: lapsum_round(args, ours, e)))
    print(json.dumps({**facts, "results": results}))
    return results


def main():
    args = arguments()
    try:
        results = compare_all(args)
    except (OSError, subprocess.CalledProcessError) as error:
        fail(5, error)
    except (LookupError, TypeError, ValueError) as error:
        fail(2, f"{args.benchmark}: not this tree's //:bench: {error!r}")
    if not all(result["usable"] for result in results):
        sys.exit(4)
    if not all(result["met"] for result in results):
        sys.exit(1)


if __name__ == "__main__":
    main()
