#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The LapSum authors' own operator on our conformance vectors (SPEC.md 1.1).

    git clone https://github.com/gmum/LapSum /tmp/LapSum
    git -C /tmp/LapSum checkout c277d1a
    pip install torch numpy h5py ninja          # in a virtual environment
    ./bazelw build //:verify
    python3 experiments/peers/published_lapsum.py /tmp/LapSum \\
        bazel-bin/property_tests/verify/verify

Compiles the clone's CPU source outside of the clone, has it answer 400 vectors
at f64 and 300 at f32 through the clone's own Python, and lets check-vectors
judge: forward pass and gradients by scores, k and temperature. Then it does so
again with a copy of the source in which the one thing is changed that the
operator's interface rounds: `const float alpha` to `const double alpha`. Exits
with 0 when all are judged, whatever the verdicts; 2 if it is not such a clone.
"""
import argparse
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import types

import h5py
import numpy as np
import torch
from torch.utils import cpp_extension

KNOWN_COMMIT = "c277d1a"  # the commit that SPEC.md's counts refer to
VECTORS = {"f64": 400, "f32": 300}
PACKAGE = "lapsum/lapsum/topk"
SOURCE = PACKAGE + "/cpu/soft_topk.cpp"
WRAPPER = PACKAGE + "/extension/soft_topk.py"
AS_PUBLISHED, IN_DOUBLE = "as published", "temperature in double"


def fail(message, code=2):
    print(f"published_lapsum.py: {message}", file=sys.stderr)
    sys.exit(code)


def commit_of(clone):
    """The clone's commit, with "-dirty" appended if files were changed."""
    git = subprocess.run(
        ["git", "-C", clone, "describe", "--always", "--dirty", "--abbrev=7",
         "--exclude=*"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True, check=False)
    return git.stdout.strip() or "unknown"


def build(name, source, folder):
    """The operator compiled from the text `source`."""
    folder.mkdir()
    path = folder / (name + ".cpp")
    path.write_text(source, encoding="utf-8")
    return cpp_extension.load(name=name, sources=[str(path)],
                              build_directory=str(folder))


def wrapper(clone, compiled):
    """The clone's soft_topk.py on `compiled`. Its packages are made up here:
    theirs import operators for GPUs, and others, that nobody built."""
    parent = "lapsum.topk.extension"
    for name in ("lapsum", "lapsum.topk", parent):
        package = types.ModuleType(name)
        package.__path__ = []
        sys.modules[name] = package
    sys.modules[parent].soft_topk_cpu = compiled
    sys.modules[parent].soft_topk_cuda = None
    spec = importlib.util.spec_from_file_location(parent + ".soft_topk",
                                                  clone / WRAPPER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.soft_topk


def answer(soft_topk, vectors, outputs):
    """Writes what the operator computes for every case of the file."""
    with h5py.File(vectors) as cases, h5py.File(outputs, "w") as out:
        for name, case in cases["cases"].items():
            given = {key: torch.from_numpy(np.array(data[()]))
                     for key, data in case["inputs"].items()}
            scores = given["scores"].requires_grad_()
            k = given["mean_active"].requires_grad_()
            # A tensor, because the operator's backward pass fails for a plain
            # number. The operator overwrites it with -temperature, hence the
            # clone and the gradient's sign.
            alpha = given["temperature"].clone().requires_grad_()
            weights = soft_topk(scores, k.expand(len(scores), 1).contiguous(),
                                alpha)
            weights.backward(given["d_weights"])
            group = out.create_group(f"cases/{name}")
            group["weights"] = weights.detach().numpy()
            group["d_scores"] = scores.grad.numpy()
            group["d_mean_active"] = k.grad.numpy()
            group["d_temperature"] = -alpha.grad.numpy().reshape(())


def run(command, allowed=(0,)):
    done = subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode not in allowed:
        fail(f"{' '.join(map(str, command))} ended with {done.returncode}:\n"
             f"{done.stdout[-1000:]}{done.stderr[-1000:]}", done.returncode)
    return done.stdout


def judge(verify, vectors, outputs, folder):
    """Cases by verdict, and [number, first] for each way to fail."""
    report = folder / "report.json"
    text = run([verify, "check-vectors", vectors, outputs, "--json", report],
               allowed=(0, 1))
    cases = json.loads(report.read_text())["units"][0]["cases"]
    # "FAIL 12x REPRO v6 verify run ... dtype=f32 fill=huge ... # FAIL ..."
    ways = re.findall(r"^FAIL (\d+)x REPRO .*?(fill=.*)$", text, re.MULTILINE)
    return cases, ways


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("clone", type=pathlib.Path)
    parser.add_argument("verify", type=pathlib.Path,
                        help="the program of //:verify")
    parser.add_argument("--seed", type=int, default=0,
                        help="of the vectors [0]")
    args = parser.parse_args()
    for path in (args.clone / SOURCE, args.clone / WRAPPER):
        if not path.is_file():
            fail(f"{args.clone} is not a clone of gmum/LapSum: {path} is missing")
    if not args.verify.is_file():
        fail(f"{args.verify} does not exist; ./bazelw build //:verify makes it", 5)
    commit = commit_of(args.clone)
    if commit != KNOWN_COMMIT:
        print(f"note: the clone is at {commit}, SPEC.md's counts are of "
              f"{KNOWN_COMMIT}", file=sys.stderr)
    published = (args.clone / SOURCE).read_text(encoding="utf-8")
    in_double = published.replace("const float alpha", "const double alpha")
    if in_double == published:
        fail(f"{args.clone / SOURCE} has no `const float alpha`: the operator "
             "does not take its temperature as a float any more")

    torch.set_num_threads(1)
    print(f"LapSum {commit}, torch {torch.__version__}, seed {args.seed}")
    with tempfile.TemporaryDirectory(prefix="published_lapsum.") as name:
        folder = pathlib.Path(name)
        operators = {
            AS_PUBLISHED: build("soft_topk_cpu", published, folder / "float"),
            IN_DOUBLE: build("soft_topk_cpu_double", in_double,
                             folder / "double"),
        }
        for dtype, count in VECTORS.items():
            vectors, outputs = folder / "vectors.h5", folder / "outputs.h5"
            run([args.verify, "export-vectors", "op=lapsum",
                 f"dtype={dtype}", f"seed={args.seed}", "--cases",
                 str(count), "--out", vectors])
            for form, compiled in operators.items():
                answer(wrapper(args.clone, compiled), vectors, outputs)
                cases, ways = judge(args.verify, vectors, outputs, folder)
                print(f"{dtype}, {form}: {cases.get('FAIL', 0)} of "
                      f"{sum(cases.values())} vectors fail", flush=True)
                for number, first in ways:
                    print(f"    {number} of them as {first}")


if __name__ == "__main__":
    main()
