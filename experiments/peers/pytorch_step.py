#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The training step of this repository's model in PyTorch, float32, CPU.

The peer of the ratios in README.md (DESIGN.md, ruling 16): same
sizes, same threads, the faster of two honest forms of the experts
    loop     one dense SwiGLU per expert over the rows it was given
    batched  rows padded to the busiest expert, three torch.bmm calls
with torch's own attention, cross-entropy and fused AdamW. Independent of the
C++ code; it recomputes nothing, and leaves out nothing that the C++ step does.

    python3 pytorch_step.py --size smoke [--router sparse|soft] [--threads N]

prints one JSON line: tokens/s of each form, torch version, threads, and the
GFLOP/s that torch's GEMM reaches here (below 60 % of ours the ratio is void).
"""
import argparse
import json
import math
import time

import torch
import torch.nn.functional as F

from lapsum_peer import default_threads, gemm_gflops, soft_topk

# The labels of //:bench's rows; compare.py checks that both sides agree.
LABELS = {
    "smoke": "layers=4 d_model=64 heads=4 d_ffn=128 experts=8 vocab=1024 length=128 sequences=16",
    "mini": "layers=10 d_model=128 heads=4 d_ffn=256 experts=16 vocab=2048 length=128 sequences=16",
    "midi": "layers=6 d_model=256 heads=4 d_ffn=512 experts=16 vocab=4096 length=256 sequences=32",
}
SIZES = {name: {key: int(value) for key, value in
                (field.split("=") for field in label.split())}
         for name, label in LABELS.items()}
EPSILON = 1e-5
AUX = 1e-2


def rotate(x, cosine, sine):
    """Rotate-half RoPE; x [sequences, heads, length, head_dim]."""
    low, high = x.chunk(2, dim=-1)
    return torch.cat([low * cosine - high * sine,
                      high * cosine + low * sine], dim=-1)


class Layer(torch.nn.Module):
    def __init__(self, size, router, k, form):
        super().__init__()
        self.size, self.router_kind, self.k, self.form = size, router, k, form
        d, f, e = size["d_model"], size["d_ffn"], size["experts"]
        scaled = 0.02 / math.sqrt(2 * size["layers"])

        def normal(std, *shape):
            return torch.nn.Parameter(torch.randn(*shape) * std)

        self.attention_norm = torch.nn.Parameter(torch.ones(d))
        self.qkv = normal(0.02, d, 3 * d)
        self.output = normal(scaled, d, d)
        self.moe_norm = torch.nn.Parameter(torch.ones(d))
        self.router = normal(0.02, d, e)
        self.gate_up = normal(0.02, e, d, 2 * f)
        self.down = normal(scaled, e, f, d)

    def forward(self, h, cosine, sine):
        h = h + self.attention(F.rms_norm(h, h.shape[-1:], self.attention_norm,
                                          EPSILON), cosine, sine)
        x = F.rms_norm(h, h.shape[-1:], self.moe_norm, EPSILON)
        y, balance = self.moe(x.reshape(-1, x.shape[-1]))
        return h + y.view_as(h), balance

    def attention(self, x, cosine, sine):
        s, t, d = x.shape
        heads = self.size["heads"]
        q, k, v = (x @ self.qkv).view(s, t, 3, heads, d // heads).permute(
            2, 0, 3, 1, 4)
        out = F.scaled_dot_product_attention(
            rotate(q, cosine, sine), rotate(k, cosine, sine), v,
            is_causal=True)
        return out.transpose(1, 2).reshape(s, t, d) @ self.output

    def route(self, x):
        """(token, expert) pairs with their gates, and the balance loss."""
        n, e = x.shape[0], self.size["experts"]
        scores = x @ self.router
        if self.router_kind == "sparse":
            basis = torch.softmax(scores, dim=-1)
            gates, chosen = basis.topk(self.k, dim=-1)
            token = torch.arange(n).repeat_interleave(self.k)
            expert = chosen.reshape(-1)
            gates = gates.reshape(-1)
        else:
            weights = soft_topk(scores, float(self.k), 1.5)
            basis = weights / self.k
            cap = min(e, 2 * self.k)
            kept = torch.zeros_like(weights).scatter_(
                -1, scores.topk(cap, dim=-1)[1], 1.0)
            active = (weights > self.size["tau"] * self.k / e) & (kept > 0)
            token, expert = active.nonzero(as_tuple=True)
            gates = weights[token, expert]
        counts = torch.bincount(expert, minlength=e)
        self.active_experts = len(expert) / n
        fraction = counts / counts.sum()
        return token, expert, gates, counts, (
            AUX * e * (fraction * basis.mean(dim=0)).sum())

    def moe(self, x):
        token, expert, gates, counts, balance = self.route(x)
        order = torch.argsort(expert, stable=True)
        token, gates = token[order], gates[order]
        rows = x[token]
        if self.form == "loop":
            out = torch.cat([
                self.expert(part, self.gate_up[i], self.down[i])
                for i, part in enumerate(rows.split(counts.tolist()))])
        else:
            out = self.padded(rows, expert[order], counts)
        y = torch.zeros_like(x).index_add(0, token, out * gates[:, None])
        return y, balance

    def padded(self, rows, expert, counts):
        e, d = self.size["experts"], rows.shape[1]
        longest = int(counts.max())
        first = torch.cumsum(counts, 0) - counts
        place = expert * longest + (torch.arange(len(rows)) - first[expert])
        padded = rows.new_zeros(e * longest, d).index_copy(0, place, rows)
        out = self.expert(padded.view(e, longest, d), self.gate_up, self.down)
        return out.reshape(e * longest, d)[place]

    @staticmethod
    def expert(x, gate_up, down):
        gate, up = (x @ gate_up).chunk(2, dim=-1)
        return (F.silu(gate) * up) @ down


class Model(torch.nn.Module):
    def __init__(self, size, router, k, form):
        super().__init__()
        d, v = size["d_model"], size["vocab"]
        self.embedding = torch.nn.Parameter(torch.randn(v, d) * 0.02)
        self.layers = torch.nn.ModuleList(
            Layer(size, router, k, form) for _ in range(size["layers"]))
        self.norm = torch.nn.Parameter(torch.ones(d))
        self.head = torch.nn.Parameter(torch.randn(v, d) * 0.02)
        pairs = d // size["heads"] // 2
        angle = torch.arange(size["length"])[:, None] * 10000.0 ** (
            -torch.arange(pairs) / pairs)
        self.register_buffer("cosine", torch.cos(angle))
        self.register_buffer("sine", torch.sin(angle))

    def forward(self, inputs, targets):
        h = F.embedding(inputs, self.embedding)
        total = 0
        for layer in self.layers:
            h, balance = layer(h, self.cosine, self.sine)
            total = total + balance
        h = F.rms_norm(h, h.shape[-1:], self.norm, EPSILON)
        loss = F.cross_entropy((h @ self.head.T).flatten(0, 1),
                               targets.flatten())
        return loss + total, loss


WARM_UP = 2  # steps: first touches of memory, torch's caches


def step_seconds(size, router, k, form, seconds):
    """Best and median time of a training step; active experts per token."""
    torch.manual_seed(1)
    model = Model(size, router, k, form)
    flat = [p for p in model.parameters()]
    # A rate of 0 costs the same and keeps the routing as initialised.
    optimizer = torch.optim.AdamW(
        [{"params": [p for p in flat if p.dim() > 1], "weight_decay": 0.01},
         {"params": [p for p in flat if p.dim() == 1], "weight_decay": 0.0}],
        lr=0.0, betas=(0.9, 0.95), eps=1e-8, fused=True)
    shape = (size["sequences"], size["length"] + 1)
    text = torch.randint(size["vocab"], shape)
    times, begin = [], time.perf_counter()
    while (time.perf_counter() - begin < seconds or
           len(times) < WARM_UP + 3):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        total, loss = model(text[:, :-1], text[:, 1:])
        total.backward()
        torch.nn.utils.clip_grad_norm_(flat, 1.0, foreach=True)
        optimizer.step()
        times.append(time.perf_counter() - start)
    assert math.isfinite(loss.item())
    active = sum(layer.active_experts for layer in model.layers)
    times = sorted(times[WARM_UP:])
    return times[0], times[len(times) // 2], active / len(model.layers)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", choices=SIZES, default="smoke")
    parser.add_argument("--router", choices=["sparse", "soft"],
                        default="sparse")
    parser.add_argument("--k", type=int, default=2)
    parser.add_argument("--threads", type=int, default=default_threads())
    parser.add_argument("--seconds", type=float, default=5.0)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    size = dict(SIZES[args.size], tau=1.0)
    tokens = size["sequences"] * size["length"]
    result = {
        "peer": "pytorch_step", "torch": torch.__version__,
        "threads": torch.get_num_threads(), "size": args.size,
        "router": args.router, "k": args.k, "label": LABELS[args.size],
        "gemm_gflops": round(gemm_gflops(), 1),
    }
    for form in ("loop", "batched"):
        best, median, active = step_seconds(size, args.router, args.k, form,
                                            args.seconds)
        result["active_experts"] = round(active, 2)
        result[f"{form}_tokens_per_second"] = round(tokens / best)
        result[f"{form}_median_tokens_per_second"] = round(tokens / median)
    result["tokens_per_second"] = max(result["loop_tokens_per_second"],
                                      result["batched_tokens_per_second"])
    print(json.dumps(result))


if __name__ == "__main__":
    main()
