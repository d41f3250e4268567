#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Event files by TensorBoard itself: its protocol buffers, checksums and readers.

    python3 events_oracle.py --out ../../trainer/results/testdata/events.tfevents
    python3 events_oracle.py --check GRID_FOLDER             (tensorboard; seconds)

The first makes of events.jsonl beside it, a made-up metrics.jsonl, what
`grid tensorboard` must write, to the byte. The second loads what it wrote into a grid's folder, and compares
every value, step and time with metrics.jsonl of the runs there. Tags and times are
written from trainer/results/event_file.h.
"""
import argparse
import json
import math
import pathlib
import struct
import sys

from tensorboard.backend.event_processing import event_accumulator
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer.record_writer import RecordWriter


def single(number):
    """A number of a log as a float of 32 bits."""
    number = float(number)  # also "nan", "inf", "-inf"
    try:
        return struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)


def scalars(line):
    """(tag, value) of a line, in its order."""
    for name, value in line.items():
        if name in ("kind", "step"):
            continue
        if isinstance(value, list):
            for layer, number in enumerate(value):
                yield f"{name}/layer_{layer}", single(number)
        else:
            yield f"{line['kind']}/{name}", single(value)


def events(log):
    """(wall time, step, scalars) of the lines of a metrics.jsonl."""
    seconds = 0.0
    text = log.read_text()
    for line in map(json.loads, text[:text.rindex("\n")].split("\n")):
        if line["kind"] == "run":
            continue
        seconds += line.get("seconds", 0.0)
        yield seconds, line["step"], list(scalars(line))


def record(out):
    with open(out, "wb") as file:
        writer = RecordWriter(file)
        writer.write(event_pb2.Event(file_version="brain.Event:2").SerializeToString())
        for seconds, step, values in events(out.with_suffix(".jsonl")):
            summary = summary_pb2.Summary(value=[
                summary_pb2.Summary.Value(tag=tag, simple_value=value)
                for tag, value in values])
            event = event_pb2.Event(wall_time=seconds, step=step, summary=summary)
            writer.write(event.SerializeToString())


def same(a, b):
    return a == b or (math.isnan(a) and math.isnan(b))


def check(folder):
    wrong = runs = numbers = 0
    for made in sorted((folder / "tensorboard").iterdir()):
        runs += 1
        loaded = event_accumulator.EventAccumulator(str(made), {"scalars": 0})
        loaded.Reload()
        found = {tag: [(event.wall_time, event.step, event.value)
                       for event in loaded.Scalars(tag)]
                 for tag in loaded.Tags()["scalars"]}
        expected = {}
        for seconds, step, values in events(folder / made.name / "metrics.jsonl"):
            for tag, value in values:
                expected.setdefault(tag, []).append((seconds, step, value))
        if found.keys() != expected.keys():
            wrong += 1
            print(f"{made.name}: tags {sorted(found.keys() ^ expected.keys())}")
        for tag in found.keys() & expected.keys():
            numbers += len(expected[tag])
            if len(found[tag]) != len(expected[tag]):
                wrong += 1
                print(f"{made.name}, {tag}: {len(found[tag])} of {len(expected[tag])}")
            for ours, theirs in zip(found[tag], expected[tag]):
                if not all(map(same, ours, theirs)):
                    wrong += 1
                    print(f"{made.name}, {tag}: {ours}, expected {theirs}")
    print(f"{runs} runs, {numbers} numbers, {wrong} differences")
    return 1 if wrong or not numbers else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--out", type=pathlib.Path)
    what.add_argument("--check", type=pathlib.Path)
    options = parser.parse_args()
    if options.out:
        record(options.out)
    else:
        sys.exit(check(options.check))


if __name__ == "__main__":
    main()
