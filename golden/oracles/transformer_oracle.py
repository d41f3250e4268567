#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records a tiny SoftMoE transformer's loss and gradients from PyTorch's
automatic differentiation in double precision: transformer.h5.

    python3 transformer_oracle.py --out transformer.h5      (torch, h5py)

The formulas are those of softmoe_torch.py.

Each case is also run in float32, unchanged and with every parameter moved to a
neighbouring float, eight times. The largest error of a tensor there, times
2^-29, is what rounding does to it in double: the recorded scale of its bound.
(One run alone may be right by luck, above all in tensors of two numbers.)
Selections must be the same in all runs, by a margin.
"""
import argparse

import numpy as np
import torch

from softmoe_hdf5 import EnvelopedFile
from softmoe_torch import draw, error_scale, forward, neighbours, shapes

SIZES = dict(num_layers=2, d_model=12, num_heads=2, d_ffn=10, num_experts=5,
             vocab_size=23, sequence_length=7, rope_base=100.0,
             norm_epsilon=1e-5)
SEQUENCES = 3
TEMPERATURE = 1.25
LOSS_SCALE, GROUP_SCALE = 1 / 32, 0.5
PERTURBATIONS = 8
MARGIN = 1e-4  # margin of a selection, far above float32's errors

COMMON = dict(expansion_factor=1.3, aux_loss_coeff=0.5, z_loss_coeff=0.25)
# How the cases differ.
CASES = {
    "sparse": dict(kind="sparse", k=2.0, tau=1.5, load_balance="megatron"),
    "soft_fixed": dict(kind="soft_fixed", k=1.5, tau=1.5, load_balance="soft"),
    "soft_fixed_top1": dict(kind="soft_fixed", k=1.5, tau=1.5,
                            load_balance="megatron", fallback="top1"),
    "soft_learned": dict(kind="soft_learned", k=1.5, tau=1.5,
                         load_balance="soft"),
    "soft_learned_megatron": dict(kind="soft_learned", k=2.25, tau=1.2,
                                  load_balance="megatron"),
}


def config_toml(case):
    """The case as the C++ side's configuration."""
    model = "".join(f"{key} = {value}\n" for key, value in SIZES.items())
    return (f"[model]\n{model}"
            f"[router]\nkind = \"{case['kind']}\"\n"
            f"mean_active_experts = {case['k']}\n"
            f"expansion_factor = {case['expansion_factor']}\n"
            f"tau = {case['tau']}\n"
            f"fallback = \"{case.get('fallback', 'none')}\"\n"
            f"load_balance = \"{case['load_balance']}\"\n"
            f"aux_loss_coeff = {case['aux_loss_coeff']}\n"
            f"z_loss_coeff = {case['z_loss_coeff']}\n")


def run(case, parameters, inputs, targets, dtype):
    """Loss, objective and gradients of every parameter."""
    p = {name: value.to(dtype, copy=True).requires_grad_()
         for name, value in parameters.items()}
    loss_sum, allocation, routings = forward(case, SIZES, p, inputs, targets,
                                             TEMPERATURE, case["tau"])
    objective = loss_sum * LOSS_SCALE + GROUP_SCALE * sum(
        r.balance + r.z_loss for r in routings)
    objective.backward()
    return loss_sum, objective, allocation.detach(), routings, {
        name: value.grad for name, value in p.items()}


def record(file, name, case, seed):
    generator = torch.Generator().manual_seed(seed)
    parameters = {tensor: draw(tensor, shape, generator)
                  for tensor, shape in shapes(case, SIZES).items()}
    tokens = torch.randint(SIZES["vocab_size"],
                           (2, SEQUENCES, SIZES["sequence_length"]),
                           generator=generator)
    exact = run(case, parameters, *tokens, torch.float64)
    rough = [run(case, moved, *tokens, torch.float32) for moved in (
        parameters, *(neighbours(parameters, generator)
                      for _ in range(PERTURBATIONS)))]
    if min(routing.margin for routing in exact[3]) < MARGIN:
        return False
    for other in rough:
        if not all(torch.equal(a.active, b.active)
                   for a, b in zip(exact[3], other[3])):
            return False
    group = f"/{name}"
    file.group(group)
    file.attribute("config", config_toml(case), group)
    file.attribute("num_sequences", SEQUENCES, group)
    file.attribute("temperature", TEMPERATURE, group)
    file.attribute("tau", case["tau"], group)
    file.attribute("loss_scale", LOSS_SCALE, group)
    file.attribute("group_scale", GROUP_SCALE, group)
    for key, index in (("loss_sum", 0), ("objective", 1)):
        file.attribute(key, exact[index].item(), group)
        file.attribute(key + "_error",
                       error_scale([other[index] for other in rough],
                                   exact[index]), group)
    file.dataset(f"{group}/inputs", tokens[0].int().numpy())
    file.dataset(f"{group}/targets", tokens[1].int().numpy())
    file.dataset(f"{group}/allocation", exact[2].numpy())
    for layer, routing in enumerate(exact[3]):
        file.dataset(f"{group}/active/{layer}",
                     routing.active.to(torch.uint8).numpy())
    for tensor, value in parameters.items():
        place = f"{group}/parameters/{tensor}"
        file.dataset(place, value.numpy())
        place = f"{group}/gradients/{tensor}"
        file.dataset(place, exact[4][tensor].numpy())
        file.attribute("error", error_scale(
            [other[4][tensor] for other in rough], exact[4][tensor]), place)
    soft = [r for r in exact[3] if hasattr(r, "without")]
    print(f"{name}: objective {exact[1].item():.6f}, seed {seed}, tokens "
          f"without expert {[r.without for r in soft]}, at the cap "
          f"{[r.at_cap for r in soft]}", flush=True)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="transformer.h5")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    with EnvelopedFile(arguments.out, kind="transformer-oracle",
                       version=1) as file:
        file.attribute("generator", "golden/oracles/transformer_oracle.py")
        file.attribute("source", f"PyTorch {torch.__version__}, autograd in "
                                 f"float64; numpy {np.__version__}")
        for name, case in CASES.items():
            seed = 1
            # The first seed whose selections are clear of all limits.
            while not record(file, name, COMMON | case, seed):
                seed += 1


if __name__ == "__main__":
    main()
