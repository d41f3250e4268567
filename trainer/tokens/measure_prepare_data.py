#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast //:prepare_data is with one core and with two, and what memory it takes.

    ./bazelw build //:prepare_data
    python3 trainer/tokens/measure_prepare_data.py bazel-bin/trainer/tokens/prepare_data \\
        --shards 64 --megabytes 2000 --kills 20 --folder /tmp/measured

Makes a corpus in the form of C4 (English of made-up words, as frequent as in the
language, with some that occur once), prepares it with one thread on one core and with
two on two, and with --kills once more while it is killed that often at random moments.
Prints for each stage the wall time and the largest resident memory, and compares the
bytes of all. Exits with 1 if they differ, if two threads are less than 1.8 times as
fast, or if encoding takes more than 200 MB and 4 bytes a document. A shard that is there
is not made again.
"""
import argparse
import bisect
import gzip
import hashlib
import itertools
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import threading
import time

SUFFIXES = (".bin", ".idx", ".model", ".manifest")


def make_sentences():
    """2 MB of sentences; word n is as frequent as 1/n, behind the first 6000 as 1/n^2."""
    rng = random.Random(0)
    words = ["".join(rng.choices("etaoinshrdlucmfwypvbgkjqxz", range(27, 1, -1),
                                 k=rng.randint(2, 10))) for _ in range(100_000)]
    weights = [1 / n if n < 6000 else 6000 / n**2 for n in range(1, len(words) + 1)]
    total = list(itertools.accumulate(weights))
    draw = lambda: words[bisect.bisect(total, rng.random() * total[-1])]
    return [" ".join(draw() for _ in range(rng.randint(5, 25))).capitalize() + "."
            for _ in range(25_000)]


def make_shard(path, sentences, index, size):
    rng = random.Random(index)
    part = path.with_suffix(".part")
    written = 0
    with gzip.open(part, "wt", compresslevel=1) as file:
        while written < size:
            text = " ".join(rng.choices(sentences, k=rng.randint(3, 40)))
            text += "".join(f" {rng.getrandbits(32):x}" for _ in range(3))
            file.write(json.dumps({"text": text, "timestamp": "2019-04-25T12:57:54Z",
                                   "url": "https://example.org/"}) + "\n")
            written += len(text)
    part.rename(path)


class Preparation:
    def __init__(self, options, corpus, name, threads):
        self.out = options.folder / name
        self.environment = os.environ | {"XDG_CACHE_HOME": str(options.folder / "cache" / name)}
        self.cores = sorted(os.sched_getaffinity(0))[:threads]
        self.command = [str(options.program.resolve()), "--corpus", f"jsonl:{corpus}",
                        "--vocab-size", str(options.vocab_size), "--threads", str(threads),
                        "--out", str(self.out)]

    def start(self, **pipes):
        return subprocess.Popen(self.command, env=self.environment, **pipes,
                                preexec_fn=lambda: os.sched_setaffinity(0, self.cores))

    def run(self):
        """Seconds and the largest resident megabytes of each stage."""
        stage, began = "finding", time.monotonic()
        stages = {}
        process = self.start(stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

        def watch():
            while process.poll() is None:
                try:
                    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
                    resident = int(status.split("VmRSS:")[1].split()[0]) / 1024
                    seconds, most = stages.get(stage, (0, 0))
                    stages[stage] = (time.monotonic() - began, max(most, resident))
                except (IndexError, OSError):
                    pass  # it is ending
                time.sleep(0.02)

        watcher = threading.Thread(target=watch)
        start = time.monotonic()
        watcher.start()
        said = []
        for line in process.stderr:
            said.append(line)
            for name in ("sampling", "training", "encoding"):
                if line.startswith(f"prepare: {name}") and stage != name:
                    stage, began = name, time.monotonic()
        watcher.join()
        if process.returncode != 0:
            sys.exit("".join(said[-5:]))
        return time.monotonic() - start, stages

    def hashes(self):
        return [hashlib.sha256(pathlib.Path(f"{self.out}{suffix}").read_bytes()).hexdigest()
                for suffix in SUFFIXES]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--megabytes", type=int, default=2000, help="of text")
    parser.add_argument("--vocab-size", type=int, default=32768)
    parser.add_argument("--kills", type=int, default=0)
    options = parser.parse_args()
    corpus = options.folder / f"c4-{options.shards}x{options.megabytes}"
    corpus.mkdir(parents=True, exist_ok=True)
    sentences = make_sentences()
    for index in range(options.shards):
        path = corpus / f"c4-train.{index:05}-of-{options.shards:05}.json.gz"
        if not path.exists():
            make_shard(path, sentences, index, options.megabytes * 1e6 / options.shards)

    shutil.rmtree(options.folder / "cache", ignore_errors=True)
    times, hashes, bad = {}, {}, []
    for threads in (1, 2):
        preparation = Preparation(options, corpus, f"threads{threads}", threads)
        times[threads], stages = preparation.run()
        hashes[threads] = preparation.hashes()
        about = json.loads(pathlib.Path(f"{preparation.out}.json").read_text())
        documents = about["num_documents"]
        print(f"{threads} threads: {times[threads]:.1f} s, "
              f"{about['text_bytes'] / times[threads] / 1e6:.1f} MB/s of text; " +
              ", ".join(f"{name} {seconds:.1f} s {resident:.0f} MB"
                        for name, (seconds, resident) in stages.items()), flush=True)
        allowed = 200 + 4 * documents / 1e6
        if stages["encoding"][1] * 1.048576 > allowed:
            bad.append(f"encoding took more than {allowed:.0f} MB")
    ratio = times[1] / times[2]
    print(f"{about['text_bytes'] / 1e6:.0f} MB of text, {documents} documents, "
          f"{about['num_tokens']} tokens; two threads are {ratio:.2f} times as fast")
    if ratio < 1.8:
        bad.append("that is less than 1.8")
    if hashes[1] != hashes[2]:
        bad.append("the bytes depend on the number of threads")
    if options.kills:
        rng = random.Random(1)
        preparation = Preparation(options, corpus, "killed", 2)
        killed = 0
        for _ in range(options.kills):
            process = preparation.start(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                process.wait(rng.uniform(0, times[2] / 4))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                killed += 1
        preparation.run()
        print(f"killed {killed} times")
        if preparation.hashes() != hashes[1]:
            bad.append("the bytes are not those of the unbroken run")
    for what in bad:
        print(f"WRONG: {what}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
