#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records a tiny SoftMoE transformer's loss and gradients from PyTorch's
automatic differentiation in double precision: transformer.h5.

    python3 transformer_oracle.py --out transformer.h5      (torch, h5py)

Written from the paper's formulas, not from the C++ code: LapSum by bisection
and one Newton step, through which autograd finds the derivative of the root;
everything else from torch's own operations. No backward pass is written here.

Each case is also run in float32, as it is and with every parameter moved to a
neighbouring float, eight times. The largest error of a tensor there, times
2^-29, is what rounding does to it in double: the recorded scale of its bound.
(One run alone may be right by luck, above all in tensors of two numbers.)
Selections must be the same in all runs, by a margin.
"""
import argparse
import math

import numpy as np
import torch
import torch.nn.functional as F

from softmoe_hdf5 import EnvelopedFile

SIZES = dict(num_layers=2, d_model=12, num_heads=2, d_ffn=10, num_experts=5,
             vocab_size=23, sequence_length=7)
SEQUENCES = 3
ROPE_BASE, EPSILON = 100.0, 1e-5
TEMPERATURE = 1.25
LOSS_SCALE, GROUP_SCALE = 1 / 32, 0.5
PERTURBATIONS = 8
MARGIN = 1e-4  # of a selection, far above float32's errors

# What differs between the cases; the rest is common.
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
EXPANSION, AUX, Z = 1.3, 0.5, 0.25


def config_toml(case):
    """The case as the C++ side's configuration."""
    model = "".join(f"{key} = {value}\n" for key, value in SIZES.items())
    return (f"[model]\n{model}rope_base = {ROPE_BASE}\n"
            f"norm_epsilon = {EPSILON}\n"
            f"[router]\nkind = \"{case['kind']}\"\n"
            f"mean_active_experts = {case['k']}\n"
            f"expansion_factor = {EXPANSION}\ntau = {case['tau']}\n"
            f"fallback = \"{case.get('fallback', 'none')}\"\n"
            f"load_balance = \"{case['load_balance']}\"\n"
            f"aux_loss_coeff = {AUX}\nz_loss_coeff = {Z}\n")


def shapes(case):
    """Names and shapes in the order of the flat layout's documentation."""
    s = SIZES
    d, e, f = s["d_model"], s["num_experts"], s["d_ffn"]
    result = {"embedding": (s["vocab_size"], d)}
    for layer in range(s["num_layers"]):
        p = f"layers.{layer}."
        result |= {p + "attention_norm": (d,), p + "qkv_weight": (d, 3 * d),
                   p + "output_weight": (d, d), p + "moe_norm": (d,),
                   p + "router_weight": (d, e),
                   p + "gate_up_weight": (e, d, 2 * f),
                   p + "down_weight": (e, f, d)}
    result |= {"final_norm": (d,), "head_weight": (s["vocab_size"], d)}
    if case["kind"] == "soft_learned":
        result["budget_logits"] = (s["num_layers"],)
    return result


def draw(name, shape, generator):
    """Parameters of a size at which every part matters, exact in float32."""
    values = torch.randn(shape, generator=generator, dtype=torch.float64)
    if name.endswith("norm"):
        values = 1 + 0.25 * values
    elif name not in ("embedding", "budget_logits"):
        inward = shape[-1] if name == "head_weight" else shape[-2]
        values = values / math.sqrt(inward)
    return torch.round(values * 4096) / 4096


def laplace_cdf(u):
    half = torch.exp(-u.abs()) / 2
    return torch.where(u > 0, 1 - half, half)


def soft_top_k(scores, k, temperature):
    """LapSum weights of each row; k is a tensor and has a gradient."""
    with torch.no_grad():
        low = scores.min(-1, keepdim=True)[0] - 100 * temperature
        high = scores.max(-1, keepdim=True)[0] + 100 * temperature
        for _ in range(200):
            middle = (low + high) / 2
            above = laplace_cdf((scores - middle) / temperature).sum(
                -1, keepdim=True) > k
            low = torch.where(above, middle, low)
            high = torch.where(above, high, middle)
        root = (low + high) / 2
        slope = -(torch.exp(-((scores - root) / temperature).abs()) / 2).sum(
            -1, keepdim=True) / temperature
    # At the root this step has length 0, and the derivative of the root.
    total = laplace_cdf((scores - root) / temperature).sum(-1, keepdim=True)
    root = root - (total - k) / slope
    return laplace_cdf((scores - root) / temperature)


def rms_norm(x, weight):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + EPSILON) * weight


def rotate(x):
    """Rotate-half RoPE of [sequences, length, heads, head_dim]."""
    length, width = x.shape[1], x.shape[3]
    pair = torch.arange(width // 2, dtype=x.dtype)
    position = torch.arange(length, dtype=x.dtype)
    angle = position[:, None] * ROPE_BASE ** (-2 * pair / width)
    cosine, sine = angle.cos()[:, None, :], angle.sin()[:, None, :]
    first, second = x[..., :width // 2], x[..., width // 2:]
    return torch.cat([first * cosine - second * sine,
                      first * sine + second * cosine], -1)


def attention(x, qkv, output):
    d, heads = SIZES["d_model"], SIZES["num_heads"]
    length = SIZES["sequence_length"]
    shape = (SEQUENCES, length, heads, d // heads)
    q, k, v = (part.reshape(shape) for part in (x @ qkv).split(d, -1))
    scores = torch.einsum("sthd,suhd->shtu", rotate(q), rotate(k))
    future = torch.ones(length, length, dtype=torch.bool).triu(1)
    scores = (scores / math.sqrt(d // heads)).masked_fill(future, -math.inf)
    mixed = torch.einsum("shtu,suhd->sthd", scores.softmax(-1), v)
    return mixed.reshape(-1, d) @ output


class Routing:
    """Of one layer: gates [tokens, experts], the active set, the losses."""

    def __init__(self, case, scores, mean_active):
        e = SIZES["num_experts"]
        order = scores.argsort(dim=-1, descending=True, stable=True)
        rank = order.argsort(dim=-1)
        softmax = scores.softmax(-1)
        self.margin = self.gap(scores, case, mean_active)
        if case["kind"] == "sparse":
            active = rank < round(case["k"])
            weights = softmax
        else:
            k = mean_active.detach().item()
            cap = min(e, math.ceil(EXPANSION * k - 1e-6))
            weights = soft_top_k(scores, mean_active, TEMPERATURE)
            cutoff = case["tau"] * k / e
            active = (weights > cutoff) & (rank < cap)
            self.margin = min(self.margin, (weights - cutoff).abs().min())
            self.without = (~active.any(-1)).sum().item()
            self.at_cap = (active.sum(-1) == cap).sum().item()
            if case.get("fallback") == "top1":
                active = active | (~active.any(-1, keepdim=True) & (rank == 0))
        self.active = active
        self.gates = torch.where(active, weights, torch.zeros_like(weights))
        if case["load_balance"] == "soft":
            # The auxiliary loss holds the counts and k_l still.
            held = soft_top_k(scores, mean_active.detach(), TEMPERATURE)
            counts = active.sum(0).to(scores.dtype)
            probability = held.mean(0) / mean_active.detach()
        else:
            top = math.ceil(mean_active.detach().item())
            counts = (rank < top).sum(0).to(scores.dtype)
            probability = softmax.mean(0)
        fraction = counts / counts.sum()
        self.balance = AUX * e * (fraction * probability).sum()
        self.z_loss = Z * (scores.logsumexp(-1) ** 2).mean()

    @staticmethod
    def gap(scores, case, mean_active):
        """The smallest gap at a rank where a selection may end."""
        k = mean_active.detach().item()
        ordered = scores.sort(dim=-1, descending=True)[0]
        cap = math.ceil(EXPANSION * k - 1e-6)
        ends = {round(case["k"]), math.ceil(k), cap, 1}
        return min((ordered[:, end - 1] - ordered[:, end]).min()
                   for end in ends if end < ordered.shape[1])


def run(case, parameters, inputs, targets, dtype):
    """Loss, objective and gradients of every parameter."""
    p = {name: value.to(dtype, copy=True).requires_grad_()
         for name, value in parameters.items()}
    layers = SIZES["num_layers"]
    if case["kind"] == "soft_learned":
        share = p["budget_logits"].softmax(0)
        allocation = 1 + (case["k"] * layers - layers) * share
    else:
        allocation = torch.full((layers,), case["k"], dtype=dtype)
    h = p["embedding"][inputs].reshape(-1, SIZES["d_model"])
    routings = []
    for layer in range(layers):
        q = {name.split(".")[-1]: value for name, value in p.items()
             if name.startswith(f"layers.{layer}.")}
        h = h + attention(rms_norm(h, q["attention_norm"]).reshape(
            SEQUENCES, SIZES["sequence_length"], -1),
            q["qkv_weight"], q["output_weight"])
        x = rms_norm(h, q["moe_norm"])
        routing = Routing(case, x @ q["router_weight"], allocation[layer])
        gate, up = torch.einsum("nd,edf->enf", x, q["gate_up_weight"]).chunk(
            2, -1)
        out = torch.einsum("enf,efd->end", F.silu(gate) * up, q["down_weight"])
        h = h + torch.einsum("ne,end->nd", routing.gates, out)
        routings.append(routing)
    logits = rms_norm(h, p["final_norm"]) @ p["head_weight"].T
    loss_sum = F.cross_entropy(logits, targets.reshape(-1), reduction="sum")
    objective = loss_sum * LOSS_SCALE + GROUP_SCALE * sum(
        r.balance + r.z_loss for r in routings)
    objective.backward()
    return loss_sum, objective, allocation.detach(), routings, {
        name: value.grad for name, value in p.items()}


def neighbours(parameters, generator):
    """Every parameter moved by one unit in the last place of float32."""
    result = {}
    for name, value in parameters.items():
        up = torch.rand(value.shape, generator=generator) < 0.5
        towards = torch.where(up, math.inf, -math.inf)
        result[name] = torch.nextafter(value.float(), towards).double()
    return result


def error_scale(singles, double):
    """What double precision's roundings do to a tensor, from what float32's
    did: errors are linear in the unit of rounding, 2^-29 as large."""
    return max((single.double() - double).abs().max().item()
               for single in singles) * 2.0 ** -29


def record(file, name, case, seed):
    generator = torch.Generator().manual_seed(seed)
    parameters = {tensor: draw(tensor, shape, generator)
                  for tensor, shape in shapes(case).items()}
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
            # The first seed whose selections are clear of every limit.
            while not record(file, name, case, seed):
                seed += 1


if __name__ == "__main__":
    main()
