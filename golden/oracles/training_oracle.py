#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records training steps of tiny SoftMoE transformers: training.h5.

    python3 training_oracle.py --out training.h5    (torch, h5py, mpmath)

The parts of a step, which share only definitions with the C++ code:
gradients from PyTorch's automatic differentiation in double precision
(softmoe_torch.py), summed over two balance groups; torch.optim.AdamW in two
groups of parameters, with decay and without; learning rate and temperature
from mpmath with 40 digits; noise by a Philox in plain integers; routing
metrics by numpy; tau calibrated by sorting; and the parameters that a run
starts from. SPEC.md 2.3-2.5, 3.2, 4, 5.2.

Each step begins from the recorded state, so that errors do not add up over
steps. The scale of a gradient's error comes from float32 runs, as in
transformer_oracle.py. Clipping is min(1, clip_norm/norm): PyTorch's
clip_grad_norm_ and Megatron-LM divide by norm + 1e-6 instead.
"""
import argparse
import math

import mpmath
import numpy as np
import torch

import philox
from softmoe_hdf5 import EnvelopedFile
from softmoe_torch import draw, error_scale, forward, neighbours, shapes

SIZES = dict(num_layers=2, d_model=8, num_heads=2, d_ffn=3, num_experts=4,
             vocab_size=11, sequence_length=5, rope_base=100.0,
             norm_epsilon=1e-5)
GROUPS, GROUP_SEQUENCES = 2, 3
# Warm-up of 1.5 steps: 0, 2/3 of the peak, then the cosine. Epsilon is not
# small against the second moment, so that its place matters.
TRAINING = dict(steps=4, warmup_fraction=0.375, learning_rate=0.05,
                min_learning_rate=0.005, beta1=0.9, beta2=0.95,
                adam_epsilon=1e-3, weight_decay=0.25,
                seed=0x0123456789ABCDEF)
TEMPERATURES = dict(temperature_start=2.0, temperature_end=0.75)
PERTURBATIONS = 8
MARGIN = 1e-4  # margin of a selection, far above float32's errors

COMMON = dict(expansion_factor=1.3, aux_loss_coeff=0.5, z_loss_coeff=0.25,
              fallback="none", noise="none", noise_amplitude=0.0,
              calibration_batches=2)
CASES = {
    "sparse": dict(kind="sparse", k=2.0, load_balance="megatron",
                   clip_norm=1.0),
    "soft_fixed": dict(kind="soft_fixed", k=1.5, tau=1.4,
                       load_balance="megatron", fallback="top1",
                       noise="input_jitter", noise_amplitude=0.25,
                       clip_norm=0.0),
    "soft_learned": dict(kind="soft_learned", k=1.25, tau="calibrated",
                         load_balance="soft", noise="logit_gauss",
                         noise_amplitude=0.5, clip_norm=1.35),
}
# Schedules alone: steps, warm-up, and the updates to check.
SCHEDULES = {
    "owt": (18000, 0.01, [0, 1, 90, 179, 180, 181, 5000, 9090, 17999, 18000]),
    "c4": (164000, 0.01, [0, 1, 1639, 1640, 1641, 40000, 163999, 164000]),
    "fractional": (37, 0.1, list(range(38))),
    "no_warmup": (10, 0.0, list(range(11))),
    "one_step": (1, 0.01, [0, 1]),
}


def learning_rate(training, m):
    """By mpmath; the configuration's numbers are exactly their doubles."""
    number = {key: mpmath.mpf(value) for key, value in training.items()}
    warmup = number["warmup_fraction"] * number["steps"]
    if m <= warmup and warmup > 0:
        return number["learning_rate"] * m / warmup
    low, high = number["min_learning_rate"], number["learning_rate"]
    progress = (m - warmup) / (number["steps"] - warmup)
    return low + (high - low) * (1 + mpmath.cos(mpmath.pi * progress)) / 2


def temperature(router, steps, m):
    low, high = (mpmath.mpf(router["temperature_" + end])
                 for end in ("end", "start"))
    return low + (high - low) * (1 + mpmath.cos(mpmath.pi * m / steps)) / 2


def toml(section, values):
    lines = (f"{key} = " + (f'"{value}"' if isinstance(value, str)
                            else repr(value))
             for key, value in values.items())
    return f"[{section}]\n" + "".join(line + "\n" for line in lines)


def training_of(case):
    return TRAINING | dict(
        clip_norm=case["clip_norm"],
        global_batch_sequences=GROUPS * GROUP_SEQUENCES,
        micro_batch_sequences=GROUP_SEQUENCES,
        balance_group_sequences=GROUP_SEQUENCES)


def config_toml(case):
    router = {"mean_active_experts" if key == "k" else key: value
              for key, value in case.items() if key != "clip_norm"}
    return (toml("model", SIZES) + toml("router", router | TEMPERATURES) +
            toml("training", training_of(case)))


class Noise:
    """The noise of one group and step, keyed by the token's global index."""

    def __init__(self, case, step, first_token):
        self.case, self.step, self.first_token = case, step, first_token

    def words(self, layer, x):
        """[tokens, ceil(width/4)] quadruples."""
        quads = (x.shape[1] + 3) // 4
        return [[philox.words(TRAINING["seed"], philox.ROUTER_NOISE, self.step,
                              layer, (self.first_token + t) * quads + q)
                 for q in range(quads)] for t in range(x.shape[0])]

    def __call__(self, layer, what, x):
        kind, size = self.case["noise"], self.case["noise_amplitude"]
        if kind == "input_jitter" and what == "input":
            drawn = [[1 - size + 2 * size * philox.uniform(w)
                      for quad in row for w in quad]
                     for row in self.words(layer, x)]
        elif kind == "logit_gauss" and what == "scores":
            drawn = [[size * z for a, b, c, d in row
                      for z in philox.normals(a, b) + philox.normals(c, d)]
                     for row in self.words(layer, x)]
        else:
            return x
        drawn = torch.tensor(drawn, dtype=torch.float64)[:, :x.shape[1]]
        drawn = drawn.to(x.dtype)
        return x * drawn if what == "input" else x + drawn


def group_tokens(batch):
    """inputs and targets of each group [GROUP_SEQUENCES, length]."""
    return zip(*(part.split(GROUP_SEQUENCES) for part in batch))


class Step:
    """Losses and gradients of one step: both groups."""

    def __init__(self, case, values, batch, step, tau, dtype):
        p = {name: value.detach().to(dtype, copy=True).requires_grad_()
             for name, value in values.items()}
        heat = float(temperature(TEMPERATURES, TRAINING["steps"], step))
        num_tokens = batch[0].numel()
        objective, self.loss, self.balance, self.z_loss = 0, 0, 0, 0
        self.groups = []
        for g, (inputs, targets) in enumerate(group_tokens(batch)):
            noise = Noise(case, step, g * inputs.numel())
            loss_sum, allocation, routings = forward(
                case, SIZES, p, inputs, targets, heat, tau, noise)
            balance = sum(r.balance for r in routings) / GROUPS
            z_loss = sum(r.z_loss for r in routings) / GROUPS
            objective = objective + loss_sum / num_tokens + balance + z_loss
            self.loss = self.loss + loss_sum.detach() / num_tokens
            self.balance = self.balance + balance.detach()
            self.z_loss = self.z_loss + z_loss.detach()
            self.groups.append(routings)
        objective.backward()
        self.allocation = allocation.detach()
        self.gradients = {name: value.grad for name, value in p.items()}

    def margin(self):
        return min(r.margin for group in self.groups for r in group)

    def active(self):
        """[layers, tokens of the step, experts]"""
        return torch.stack([torch.cat([group[layer].active
                                       for group in self.groups])
                            for layer in range(SIZES["num_layers"])])


def calibrate(case, values, batches, dtype):
    """tau, and the smallest gap beside it."""
    p = {name: value.to(dtype) for name, value in values.items()}
    heat = float(temperature(TEMPERATURES, TRAINING["steps"], 0))
    ratios, pairs = [], 0
    for batch in batches[:case["calibration_batches"]]:
        for inputs, targets in group_tokens(batch):
            for routing in forward(case, SIZES, p, inputs, targets, heat,
                                   0.0)[2]:
                ratios.append(routing.ratios)
                pairs += routing.active.shape[0]
    ordered = torch.cat(ratios).sort(descending=True)[0]
    wanted = round(case["k"] * pairs)
    above, below = ordered[wanted - 1], ordered[wanted]
    return (above.double() + below.double()).item() / 2, above - below


def flat(tensors):
    return torch.cat([value.reshape(-1) for value in tensors.values()])


def state_of(values, optimizer):
    """Parameters and moments, flat."""
    def moments(key):
        return torch.cat([optimizer.state[value].get(
            key, torch.zeros_like(value)).reshape(-1)
            for value in values.values()])
    return dict(parameters=flat(values).detach().clone(),
                first_moment=moments("exp_avg"),
                second_moment=moments("exp_avg_sq"))


def adamw(values):
    for value in values.values():
        value.requires_grad_()
    return torch.optim.AdamW(
        [dict(params=[v for v in values.values() if (v.dim() > 1) == decays],
              weight_decay=TRAINING["weight_decay"] if decays else 0.0)
         for decays in (True, False)],
        lr=0.0, betas=(TRAINING["beta1"], TRAINING["beta2"]),
        eps=TRAINING["adam_epsilon"], foreach=False)


def update(case, values, optimizer, gradients, step):
    """One step of AdamW; returns the gradient's norm."""
    norm = flat(gradients).norm().item()
    clip = case["clip_norm"]
    for name, value in values.items():
        value.grad = gradients[name] * (
            min(1.0, clip / norm) if clip > 0 else 1.0)
    for group in optimizer.param_groups:
        group["lr"] = float(learning_rate(training_of(case), step))
    optimizer.step()
    return norm


def simulate(case, seed):
    """Tau with its error, the steps (state, batch, exact and rough Step,
    norm) and the last state; None where a selection is too close."""
    generator = torch.Generator().manual_seed(seed)
    values = {tensor: draw(tensor, shape, generator)
              for tensor, shape in shapes(case, SIZES).items()}
    shape = (2, GROUPS * GROUP_SEQUENCES, SIZES["sequence_length"])
    batches = [torch.randint(SIZES["vocab_size"], shape, generator=generator)
               for _ in range(TRAINING["steps"])]

    def rough(run):
        here = {name: value.detach() for name, value in values.items()}
        return [run(moved, torch.float32) for moved in (
            here, *(neighbours(here, generator)
                    for _ in range(PERTURBATIONS)))]

    tau, tau_error = case.get("tau", 0.0), 0.0
    if tau == "calibrated":
        tau, gap = calibrate(case, values, batches, torch.float64)
        if gap < MARGIN:
            return None
        tau_error = 2.0 ** -29 * max(abs(other - tau) for other, _ in rough(
            lambda moved, dtype: calibrate(case, moved, batches, dtype)))
    optimizer = adamw(values)
    steps = []
    for step, batch in enumerate(batches):
        exact = Step(case, values, batch, step, tau, torch.float64)
        others = rough(lambda moved, dtype: Step(case, moved, batch, step, tau,
                                                 dtype))
        if exact.margin() < MARGIN or not all(
                torch.equal(exact.active(), other.active())
                for other in others):
            return None
        state = state_of(values, optimizer)
        norm = update(case, values, optimizer, exact.gradients, step)
        steps.append((state, batch, exact, others, norm))
    return tau, tau_error, steps, state_of(values, optimizer)


def write_state(file, place, state):
    file.group(place)
    for name, value in state.items():
        file.dataset(f"{place}/{name}", value.numpy())


def write_metrics(file, place, active, without):
    """Records the columns of the tables by numpy; returns the AE."""
    counts = active.numpy().sum(axis=1)  # [layers, experts]
    per_token = active.numpy().sum(axis=2)
    mean, variance = counts.mean(axis=1), counts.var(axis=1)
    file.attribute("active_experts", float(per_token.mean()), place)
    # Before the fallback.
    file.attribute("zero_active_fraction", without / per_token.size, place)
    file.dataset(f"{place}/tokens_per_expert", counts.astype(np.int64))
    file.dataset(f"{place}/load_variance", np.stack(
        [variance / mean ** 2, counts.std(axis=1) / mean, variance / mean],
        axis=1))
    return per_token.mean()


def active_parameters(case, active_experts):
    """Active-Param: everything but the experts, and the experts' share."""
    total = 0.0
    for name, shape in shapes(case, SIZES).items():
        if name == "budget_logits":
            continue
        expert = name.endswith(("gate_up_weight", "down_weight"))
        share = active_experts / SIZES["num_experts"] if expert else 1
        total += share * np.prod(shape)
    return float(total)


def write_case(file, name, case, seed):
    simulated = simulate(case, seed)
    if simulated is None:
        return False
    tau, tau_error, steps, last = simulated
    group = f"/cases/{name}"
    file.group(group)
    file.attribute("config", config_toml(case), group)
    file.attribute("tau", tau, group)
    file.attribute("tau_error", tau_error, group)
    activities = []
    for step, (state, batch, exact, rough, norm) in enumerate(steps):
        place = f"{group}/{step}"
        write_state(file, place, state)
        for key in ("learning_rate", "temperature"):
            value = (learning_rate(training_of(case), step)
                     if key == "learning_rate" else
                     temperature(TEMPERATURES, TRAINING["steps"], step))
            file.attribute(key, float(value), place)
        for key in ("loss", "balance", "z_loss"):
            file.attribute(key, getattr(exact, key).item(), place)
            file.attribute(key + "_error", error_scale(
                [getattr(other, key) for other in rough],
                getattr(exact, key)), place)
        file.attribute("gradient_norm", norm, place)
        file.dataset(f"{place}/inputs", batch[0].int().numpy())
        file.dataset(f"{place}/targets", batch[1].int().numpy())
        file.dataset(f"{place}/allocation", exact.allocation.numpy())
        file.dataset(f"{place}/gradient", flat(exact.gradients).numpy())
        file.dataset(f"{place}/gradient_error", np.array([error_scale(
            [other.gradients[tensor] for other in rough],
            exact.gradients[tensor]) for tensor in exact.gradients]))
        activities.append(write_metrics(
            file, place, exact.active(),
            sum(getattr(routing, "without", 0) for routings in exact.groups
                for routing in routings)))
    write_state(file, f"{group}/{len(steps)}", last)
    mean = float(np.mean(activities))
    file.attribute("train_active_experts", mean, group)
    file.attribute("active_parameters", active_parameters(case, mean), group)
    print(f"{name}: seed {seed}, tau {tau:.4f}; per step: loss, norm, AE, "
          "tokens that no weight of passes the cutoff")
    for (_, _, exact, _, norm), activity in zip(steps, activities):
        print(f"  {exact.loss.item():.3f} {norm:.3f} {activity:.3f}",
              [getattr(routing, "without", 0) for routings in exact.groups
               for routing in routings], flush=True)
    return True


def write_initial_parameters(file):
    """N(0, 0.02^2); over sqrt(2 layers) what adds to the residual stream."""
    case = COMMON | CASES["soft_learned"]
    values = []
    for i, (name, shape) in enumerate(shapes(case, SIZES).items()):
        size = int(np.prod(shape))
        if len(shape) == 1:
            values += [0.0 if name == "budget_logits" else 1.0] * size
            continue
        std = 0.02
        if name.endswith(("output_weight", "down_weight")):
            std /= math.sqrt(2 * SIZES["num_layers"])
        drawn = []
        for quad in range((size + 3) // 4):
            a, b, c, d = philox.words(TRAINING["seed"], philox.PARAMETERS, 0,
                                      i, quad)
            drawn += philox.normals(a, b) + philox.normals(c, d)
        values += [std * z for z in drawn[:size]]
    file.dataset("/initial_parameters", np.array(values))


def write_schedules(file):
    file.group("/schedules")
    for name, (steps, warmup, updates) in SCHEDULES.items():
        training = dict(steps=steps, warmup_fraction=warmup,
                        learning_rate=1e-3, min_learning_rate=1e-5)
        router = dict(temperature_start=5.0, temperature_end=1.0)
        place = f"/schedules/{name}"
        file.group(place)
        file.attribute("steps", steps, place)
        file.attribute("warmup_fraction", warmup, place)
        file.dataset(f"{place}/completed_updates", np.array(updates))
        file.dataset(f"{place}/learning_rate", np.array(
            [float(learning_rate(training, m)) for m in updates]))
        file.dataset(f"{place}/temperature", np.array(
            [float(temperature(router, steps, m)) for m in updates]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="training.h5")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    mpmath.mp.dps = 40
    with EnvelopedFile(arguments.out, kind="training-oracle",
                       version=1) as file:
        file.attribute("generator", "golden/oracles/training_oracle.py")
        file.attribute("source", f"PyTorch {torch.__version__}, autograd and "
                                 f"AdamW in float64; mpmath "
                                 f"{mpmath.__version__}; numpy "
                                 f"{np.__version__}")
        write_initial_parameters(file)
        write_schedules(file)
        file.group("/cases")
        for name, case in CASES.items():
            seed = 1
            # The first seed whose selections are clear of all limits.
            while not write_case(file, name, COMMON | case, seed):
                seed += 1


if __name__ == "__main__":
    main()
