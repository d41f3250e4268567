#!/usr/bin/env python3
"""Checks a soft top-k in PyTorch against SoftMoE's reference.

  ./bazelw run //:verify -- run op=lapsum impl=serve:./torch_soft_topk.py
"""
import os
import sys

import h5py
import numpy as np
import torch


# ---- the implementation under test: put yours here ----------------------------

def threshold(scores, k, temperature):
    """x of every row such that the weights F((score - x)/T) sum to k."""
    n = scores.shape[1]
    y = k / n
    quantile = torch.log(2 * y) if y < 0.5 else -torch.log(2 * (1 - y))
    low = scores.amin(1, keepdim=True) - temperature * quantile
    high = scores.amax(1, keepdim=True) - temperature * quantile
    for _ in range(200):
        x = low + (high - low) / 2
        if ((x == low) | (x == high)).all():
            break
        u = (scores - x) / temperature
        above = (u >= 0).sum(1, keepdim=True)
        # Exactly k scores above x: compare the tails scaled, or they underflow.
        exact = above == k
        scale = torch.where(exact, -u.abs().amin(1, keepdim=True), 0.0)
        tails = 0.5 * torch.exp(-u.abs() - scale) * torch.where(u >= 0, -1.0, 1.0)
        tails = tails.sum(1, keepdim=True)
        more = torch.where(exact, tails, above - k + tails) > 0
        low, high = torch.where(more, x, low), torch.where(more, high, x)
    return low + (high - low) / 2


class SoftTopK(torch.autograd.Function):
    """weights[t, i] = F((scores[t, i] - x_t)/T), rows that sum to k."""

    @staticmethod
    def forward(ctx, scores, k, temperature):
        r, k64, t64 = scores.double(), k.double(), temperature.double()
        # From the score nearest to x: far from 0, x itself lacks digits for f64.
        nearest = (r - threshold(r, k64, t64)).abs().argmin(1, keepdim=True)
        r = r - r.gather(1, nearest)
        u = (r - threshold(r, k64, t64)) / t64
        density = 0.5 * torch.exp(-u.abs())
        ctx.save_for_backward(u, density, t64)
        return torch.where(u < 0, density, 1 - density).to(scores.dtype)

    @staticmethod
    def backward(ctx, d_weights):
        u, density, temperature = ctx.saved_tensors
        v = d_weights.double()
        share = torch.softmax(-u.abs(), 1)  # density / its sum, underflow or not
        mean_v = (share * v).sum(1, keepdim=True)
        mean_u = (share * u).sum(1, keepdim=True)
        d_scores = density / temperature * (v - mean_v)
        if os.environ.get("SOFT_TOPK_BUG") == "temperature":
            d_scores = d_scores * temperature  # a planted bug: no 1/T
        d_temperature = -(density * (u - mean_u) * v).sum() / temperature
        return (d_scores.to(d_weights.dtype), mean_v.sum().to(d_weights.dtype),
                d_temperature.to(d_weights.dtype))


# ---- between the files and the implementation ---------------------------------

def answer(case, out):
    """The outputs of one case of operation lapsum."""
    op = case.attrs["op"].decode()  # of fixed length: h5py gives bytes
    if op != "lapsum":
        out.attrs["unsupported"] = f"only lapsum, not {op}"
        return
    given = {name: torch.from_numpy(np.array(data[()]))
             for name, data in case["inputs"].items()}
    leaves = [given[name].requires_grad_()
              for name in ("scores", "mean_active", "temperature")]
    weights = SoftTopK.apply(*leaves)
    weights.backward(given["d_weights"])
    out["weights"] = weights.detach().numpy()
    out["d_scores"] = leaves[0].grad.numpy()
    out["d_mean_active"] = leaves[1].grad.numpy()
    out["d_temperature"] = leaves[2].grad.numpy()


def answer_file(cases_path, outputs_path):
    with h5py.File(cases_path) as cases, h5py.File(outputs_path, "w") as outputs:
        for name, case in cases["cases"].items():
            answer(case, outputs.create_group(f"cases/{name}"))


if __name__ == "__main__":
    torch.set_num_threads(1)
    if len(sys.argv) == 3:  # conformance vectors
        answer_file(*sys.argv[1:])
    else:  # serve: a pair of files on every line
        for line in sys.stdin:
            answer_file(*line.rstrip("\n").split("\t"))
            print("done", flush=True)
