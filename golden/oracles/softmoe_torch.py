# SPDX-License-Identifier: Apache-2.0
"""SoftMoE's loss in PyTorch, for the recorders: automatic differentiation in
double precision instead of a backward pass written by hand.

Written from the paper's formulas, not from the C++ code: LapSum by bisection
and one Newton step, through which autograd finds the derivative of the root;
everything else from torch's own operations.

Cases and sizes are dictionaries with the names of the configuration.
"""
import math

import torch
import torch.nn.functional as F


def shapes(case, sizes):
    """Names and shapes in the order of the flat layout's documentation."""
    d, e, f = sizes["d_model"], sizes["num_experts"], sizes["d_ffn"]
    result = {"embedding": (sizes["vocab_size"], d)}
    for layer in range(sizes["num_layers"]):
        p = f"layers.{layer}."
        result |= {p + "attention_norm": (d,), p + "qkv_weight": (d, 3 * d),
                   p + "output_weight": (d, d), p + "moe_norm": (d,),
                   p + "router_weight": (d, e),
                   p + "gate_up_weight": (e, d, 2 * f),
                   p + "down_weight": (e, f, d)}
    result |= {"final_norm": (d,), "head_weight": (sizes["vocab_size"], d)}
    if case["kind"] == "soft_learned":
        result["budget_logits"] = (sizes["num_layers"],)
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
    # At the root this step has length 0 but carries the root's derivative.
    total = laplace_cdf((scores - root) / temperature).sum(-1, keepdim=True)
    root = root - (total - k) / slope
    return laplace_cdf((scores - root) / temperature)


def rms_norm(x, weight, epsilon):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + epsilon) * weight


def rotate(x, base):
    """Rotate-half RoPE of [sequences, length, heads, head_dim]."""
    length, width = x.shape[1], x.shape[3]
    pair = torch.arange(width // 2, dtype=x.dtype)
    position = torch.arange(length, dtype=x.dtype)
    angle = position[:, None] * base ** (-2 * pair / width)
    cosine, sine = angle.cos()[:, None, :], angle.sin()[:, None, :]
    first, second = x[..., :width // 2], x[..., width // 2:]
    return torch.cat([first * cosine - second * sine,
                      first * sine + second * cosine], -1)


def attention(x, qkv, output, sizes):
    """x [sequences, length, d_model] -> [sequences * length, d_model]."""
    sequences, length, d = x.shape
    heads = sizes["num_heads"]
    shape = (sequences, length, heads, d // heads)
    q, k, v = (part.reshape(shape) for part in (x @ qkv).split(d, -1))
    base = sizes["rope_base"]
    scores = torch.einsum("sthd,suhd->shtu", rotate(q, base), rotate(k, base))
    future = torch.ones(length, length, dtype=torch.bool).triu(1)
    scores = (scores / math.sqrt(d // heads)).masked_fill(future, -math.inf)
    mixed = torch.einsum("shtu,suhd->sthd", scores.softmax(-1), v)
    return mixed.reshape(-1, d) @ output


def cap(case, sizes, k):
    return min(sizes["num_experts"],
               math.ceil(case["expansion_factor"] * k - 1e-6))


class Routing:
    """One layer's gates [tokens, experts], active set and losses."""

    def __init__(self, case, sizes, scores, mean_active, temperature, tau):
        e = sizes["num_experts"]
        order = scores.argsort(dim=-1, descending=True, stable=True)
        rank = order.argsort(dim=-1)
        softmax = scores.softmax(-1)
        self.scores = scores.detach()
        self.margin = self.gap(scores, case, mean_active)
        if case["kind"] == "sparse":
            active = rank < round(case["k"])
            weights = softmax
        else:
            k = mean_active.detach().item()
            most = cap(case, sizes, k)
            weights = soft_top_k(scores, mean_active, temperature)
            cutoff = tau * k / e
            active = (weights > cutoff) & (rank < most)
            self.margin = min(self.margin, (weights - cutoff).abs().min())
            self.without = (~active.any(-1)).sum().item()
            self.at_cap = (active.sum(-1) == most).sum().item()
            # The ratios that tau's calibration ranks.
            self.ratios = (weights.detach() / (k / e))[rank < most]
            if case.get("fallback") == "top1":
                active = active | (~active.any(-1, keepdim=True) & (rank == 0))
        self.active = active
        self.gates = torch.where(active, weights, torch.zeros_like(weights))
        if case["load_balance"] == "soft":
            # The auxiliary loss treats the counts and k_l as constants.
            held = soft_top_k(scores, mean_active.detach(), temperature)
            counts = active.sum(0).to(scores.dtype)
            probability = held.mean(0) / mean_active.detach()
        else:
            top = math.ceil(mean_active.detach().item())
            counts = (rank < top).sum(0).to(scores.dtype)
            probability = softmax.mean(0)
        fraction = counts / counts.sum()
        self.balance = case["aux_loss_coeff"] * e * (
            fraction * probability).sum()
        self.z_loss = case["z_loss_coeff"] * (scores.logsumexp(-1) ** 2).mean()

    @staticmethod
    def gap(scores, case, mean_active):
        """The smallest gap at a rank where a selection may end."""
        k = mean_active.detach().item()
        ordered = scores.sort(dim=-1, descending=True)[0]
        most = math.ceil(case["expansion_factor"] * k - 1e-6)
        ends = {round(case["k"]), math.ceil(k), most, 1}
        return min((ordered[:, end - 1] - ordered[:, end]).min()
                   for end in ends if end < ordered.shape[1])


def no_noise(layer, what, x):
    return x


def allocate(case, sizes, parameters):
    """k_l of every layer; has the parameters' type and a gradient to them."""
    layers = sizes["num_layers"]
    if case["kind"] == "soft_learned":
        share = parameters["budget_logits"].softmax(0)
        return 1 + (case["k"] * layers - layers) * share
    return torch.full((layers,), case["k"],
                      dtype=parameters["embedding"].dtype)


def forward(case, sizes, parameters, inputs, targets, temperature, tau,
            noise=no_noise):
    """Sum of the cross-entropies, k_l, and the Routing of every layer.

    `noise(layer, "input" or "scores", x)` returns x with its noise.
    """
    allocation = allocate(case, sizes, parameters)
    epsilon = sizes["norm_epsilon"]
    h = parameters["embedding"][inputs].reshape(-1, sizes["d_model"])
    routings = []
    for layer in range(sizes["num_layers"]):
        q = {name.split(".")[-1]: value for name, value in parameters.items()
             if name.startswith(f"layers.{layer}.")}
        h = h + attention(
            rms_norm(h, q["attention_norm"], epsilon).reshape(
                *inputs.shape, -1), q["qkv_weight"], q["output_weight"], sizes)
        x = rms_norm(h, q["moe_norm"], epsilon)
        scores = noise(layer, "scores",
                       noise(layer, "input", x) @ q["router_weight"])
        routing = Routing(case, sizes, scores, allocation[layer], temperature,
                          tau)
        gate, up = torch.einsum("nd,edf->enf", x, q["gate_up_weight"]).chunk(
            2, -1)
        out = torch.einsum("enf,efd->end", F.silu(gate) * up, q["down_weight"])
        h = h + torch.einsum("ne,end->nd", routing.gates, out)
        routings.append(routing)
    logits = rms_norm(h, parameters["final_norm"], epsilon) @ parameters[
        "head_weight"].T
    loss_sum = F.cross_entropy(logits, targets.reshape(-1), reduction="sum")
    return loss_sum, allocation, routings


def neighbours(parameters, generator):
    """Every parameter moved by one unit in the last place of float32."""
    result = {}
    for name, value in parameters.items():
        up = torch.rand(value.shape, generator=generator) < 0.5
        towards = torch.where(up, math.inf, -math.inf)
        result[name] = torch.nextafter(value.float(), towards).double()
    return result


def error_scale(singles, double):
    """What roundings in double do to a tensor, from what those in float32
    did: errors are linear in the unit roundoff, which is 2^-29 as large."""
    return max((single.double() - double).abs().max().item()
               for single in singles) * 2.0 ** -29
