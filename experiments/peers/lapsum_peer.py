#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""LapSum soft top-k in PyTorch: the peer of kernels/router.h (ruling 16).

The authors' published pure-PyTorch version (gmum/LapSum, tutorial notebook
soft_topk.ipynb) sorts each row, forms the two families of exponential sums
with logcumsumexp, finds the segment with a comparison and a gather, and solves
one quadratic; its backward pass is v*f - f*<q, v> with q = softmax(-|u|).
This is the same algorithm, without the notebook's habit of shifting its saved
input in place (SPEC.md 1.1). Independent of this repository's C++.

    python3 lapsum_peer.py [--rows 4096] [--experts 16] [--k 2] [--threads N]

prints ns per row of forward + backward, for float32 and float64.
"""
import argparse
import json
import math
import os
import time

import torch


class SoftTopK(torch.autograd.Function):
    """p_i = F((r_i - x)/T) with sum_i p_i = k, F the Laplace CDF."""

    @staticmethod
    def forward(ctx, scores, k, temperature):
        n = scores.shape[-1]
        scaled = scores / temperature
        s, _ = torch.sort(scaled, dim=-1, descending=True)
        # log A_j = log sum_{i<=j} e^{-s_i},  log B_j = log sum_{i>j} e^{s_i}.
        log_a = torch.logcumsumexp(-s, dim=-1)
        log_b = torch.logcumsumexp(s.flip(-1), dim=-1).flip(-1)
        # S(s_j) for every j, then the segment: scores above the root.
        j = torch.arange(1, n + 1, dtype=s.dtype, device=s.device)
        at_node = j - 0.5 * (torch.exp(log_a + s) - torch.exp(log_b - s) + 1)
        above = (at_node < k).sum(dim=-1, keepdim=True)
        minus_inf = torch.full_like(s[..., :1], -math.inf)
        a = torch.cat([minus_inf, log_a], -1).gather(-1, above)
        b = torch.cat([log_b, minus_inf], -1).gather(-1, above)
        # A z^2 - 2 d z - B = 0 for z = e^{x/T}, by its stable root.
        d = above.to(s.dtype) - k
        h = torch.exp(0.5 * (a + b))
        root_of = torch.sqrt(d * d + h * h)
        x_above = torch.log(d + root_of) - a
        x_below = b - torch.log(root_of - d)
        x = torch.where(d > 0, x_above, x_below)
        u = scaled - x
        half = 0.5 * torch.exp(-u.abs())
        weights = torch.where(u > 0, 1 - half, half)
        ctx.save_for_backward(u, half)
        ctx.temperature = temperature
        return weights

    @staticmethod
    def backward(ctx, d_weights):
        u, density = ctx.saved_tensors
        q = torch.softmax(-u.abs(), dim=-1)
        d_k = (q * d_weights).sum(dim=-1, keepdim=True)
        d_scores = density / ctx.temperature * (d_weights - d_k)
        return d_scores, d_k, None


def soft_topk(scores, k, temperature):
    """Weights of `scores` [rows, experts]; k is a number or [rows, 1]."""
    if not torch.is_tensor(k):
        k = torch.full_like(scores[..., :1], k)
    return SoftTopK.apply(scores, k, temperature)


def check():
    """Weights against bisection, gradient against autograd's checker."""
    torch.manual_seed(1)
    scores = torch.randn(64, 16, dtype=torch.float64)
    for k in (0.5, 1.0, 2.5, 11.0):
        weights = soft_topk(scores, k, 0.7)
        low = scores.min(-1, keepdim=True)[0] - 60
        high = scores.max(-1, keepdim=True)[0] + 60
        for _ in range(200):
            middle = 0.5 * (low + high)
            u = (scores - middle) / 0.7
            half = 0.5 * torch.exp(-u.abs())
            total = torch.where(u > 0, 1 - half, half).sum(-1, keepdim=True)
            low = torch.where(total > k, middle, low)
            high = torch.where(total > k, high, middle)
        u = (scores - low) / 0.7
        half = 0.5 * torch.exp(-u.abs())
        truth = torch.where(u > 0, 1 - half, half)
        assert (weights - truth).abs().max() < 1e-12, k
    small = scores[:4].clone().requires_grad_()
    k = torch.full((4, 1), 2.3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda s, k: SoftTopK.apply(s, k, 0.7), (small, k))


def nanoseconds_per_row(rows, experts, k, dtype, repeats):
    scores = torch.randn(rows, experts, dtype=dtype, requires_grad=True)
    d_weights = torch.randn(rows, experts, dtype=dtype)
    k_rows = torch.full((rows, 1), k, dtype=dtype, requires_grad=True)
    best = math.inf
    for _ in range(repeats):
        scores.grad = None
        start = time.perf_counter()
        SoftTopK.apply(scores, k_rows, 1.5).backward(d_weights)
        best = min(best, time.perf_counter() - start)
    return best / rows * 1e9


def default_threads():
    """As //:bench: one per core of this process, at most four."""
    return min(4, len(os.sched_getaffinity(0)))


def gemm_gflops():
    """Best rate of a 1024^3 float32 product."""
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
    best = math.inf
    for _ in range(20):
        start = time.perf_counter()
        a @ b
        best = min(best, time.perf_counter() - start)
    return 2 * 1024**3 / best * 1e-9


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--experts", type=int, default=16)
    parser.add_argument("--k", type=float, default=2.0)
    parser.add_argument("--threads", type=int, default=default_threads())
    parser.add_argument("--repeats", type=int, default=50)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    check()
    result = {
        "peer": "lapsum_torch", "torch": torch.__version__,
        "threads": torch.get_num_threads(), "rows": args.rows, "experts": args.experts,
        "k": args.k, "gemm_gflops": round(gemm_gflops(), 1),
    }
    for dtype in (torch.float32, torch.float64):
        name = str(dtype).removeprefix("torch.")
        result[f"ns_per_row_{name}"] = round(nanoseconds_per_row(
            args.rows, args.experts, args.k, dtype, args.repeats), 1)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
