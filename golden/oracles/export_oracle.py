#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Computes in PyTorch, in double precision, what //:evaluate measured, from
nothing but what others are given: an export and a trace.

    train ... --out RUN --export model.safetensors
    evaluate --run RUN --trace 4 --out OUT --json > OUT/evaluation.json
    python3 export_oracle.py model.safetensors OUT    (safetensors, torch, h5py)

Prints how far apart they are, and ends with 1 if an active set differs: then
see whether the nearest tie is as near as float32 errs. The formulas are those
of softmoe_torch.py.
"""
import argparse
import json
import pathlib
import tomllib

import h5py
import safetensors
import safetensors.torch
import torch

from softmoe_torch import Routing, forward, shapes


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("model")
    parser.add_argument("out", type=pathlib.Path)
    options = parser.parse_args()

    with safetensors.safe_open(options.model, "pt") as file:
        metadata = file.metadata()
        names = list(file.keys())
    parameters = {name: tensor.double() for name, tensor in
                  safetensors.torch.load_file(options.model).items()}
    trace = h5py.File(options.out / "trace.h5")
    evaluation = json.loads((options.out / "evaluation.json").read_text())
    assert metadata["config_hash"] == trace.attrs["config_hash"].decode()
    config = tomllib.loads(metadata["config"])
    sizes, router = config["model"], config["router"]
    case = dict(router, k=router["mean_active_experts"])
    wanted = shapes(case, sizes)
    assert set(names) == set(wanted), set(names) ^ set(wanted)
    for name, shape in wanted.items():
        assert tuple(parameters[name].shape) == shape, name

    tokens = torch.tensor(trace["tokens"][:]).long()
    targets = torch.tensor(trace["targets"][:]).long()
    temperature, tau = trace.attrs["temperature"], trace.attrs["tau"]
    with torch.no_grad():
        loss, allocation, routings = forward(
            case, sizes, parameters, tokens, targets, temperature, tau)
        print(f"{len(names)} tensors, {tokens.numel()} tokens")
        print(f"loss          {loss.item() / tokens.numel():.9f}, "
              f"evaluated {evaluation['loss']:.9f}")
        wrong = 0
        for layer, routing in enumerate(routings):
            scores = torch.tensor(trace["scores"][layer]).double()
            active = torch.tensor(trace["active"][layer]).bool()
            # What follows from the trace's own scores.
            own = Routing(case, sizes, scores, allocation[layer], temperature,
                          tau)
            gates = torch.tensor(trace["soft_weights"][layer]) * active
            differ = (own.active != active).any(-1)
            wrong += differ.sum().item()
            print(f"layer {layer}: k_l {allocation[layer]:.6f} against "
                  f"{trace['mean_active'][layer]:.6f}, scores within "
                  f"{(routing.scores - scores).abs().max():.2g}; from the "
                  f"trace's scores gates within "
                  f"{(own.gates - gates)[~differ].abs().max():.2g}, "
                  f"{differ.sum()} other active sets, nearest tie "
                  f"{own.margin:.2g}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
