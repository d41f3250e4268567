#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch on a CUDA device, bf16, at the paper's shapes: what `bench
--device=cuda` and the record of `gpu_check` are held against.

    python3 pytorch_device.py [--sequences 30] [--step-sequences 10]

prints one JSON line for each
    operation   copy, products, SDPA, grouped products, forward and backward:
                median of CUDA events over repeated calls, inputs drawn anew
    step        the model of pytorch_step.py with sparse experts, k = 2: bf16 by
                autocast, parameters and AdamW in float32, gradients accumulated
                over micro-batches of --step-sequences; tokens/s of a whole step
                of 240 sequences = all its micro-batches and one update
A form that this PyTorch lacks, or for which memory does not suffice, is a line
with "error". Nothing here is needed to build, test or run the project.
"""
import argparse
import contextlib
import json
import statistics

import torch
import torch.nn.functional as F

import pytorch_step

PAPER = {"layers": 10, "d_model": 640, "heads": 10, "d_ffn": 2560,
         "experts": 32, "vocab": 32768, "length": 2048}
BATCH_SEQUENCES = 240


def milliseconds(call, repeats=10, warm_up=3):
    """Median time of call() by events."""
    for _ in range(warm_up):
        call()
    times = []
    for _ in range(repeats):
        begin = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def tell(**line):
    print(json.dumps(line), flush=True)


@contextlib.contextmanager
def errors_told(**line):
    """What fails inside, memory included, is this line with "error"."""
    try:
        yield
    except (RuntimeError, AttributeError, TypeError) as error:
        tell(**line, error=(str(error) or repr(error)).splitlines()[0])


def tell_operation(name, shape, flops, nbytes, call):
    line = {"kind": "operation", "name": name, "shape": shape}
    with errors_told(**line):
        time = milliseconds(call)
        tell(**line, ms=round(time, 4), tflops=round(flops / time / 1e9, 1),
             gbps=round(nbytes / time / 1e6))


def tell_backward(name, shape, flops, nbytes, forward, inputs, d_out):
    """Of forward(), whose graph is kept from call to call."""
    with errors_told(kind="operation", name=name, shape=shape):
        out = forward()
        tell_operation(name, shape, flops, nbytes,
                       lambda: torch.autograd.grad(out, inputs, d_out,
                                                   retain_graph=True))


def numbers(*shape, requires_grad=False):
    return torch.randn(*shape, dtype=torch.bfloat16, device="cuda",
                       requires_grad=requires_grad)


def copy(count):
    big = numbers(count)
    out = torch.empty_like(big)
    tell_operation("copy", f"{count}", 0, 4 * count, lambda: out.copy_(big))


def product(name, m, n, k):
    a, b = numbers(m, k), numbers(k, n)
    tell_operation(name, f"{m}x{n}x{k}", 2 * m * n * k,
                   2 * (m * k + k * n + m * n), lambda: a @ b)


def attention(sequences):
    heads, length = PAPER["heads"], PAPER["length"]
    size = PAPER["d_model"] // heads
    q, k, v = (numbers(sequences, heads, length, size, requires_grad=True)
               for _ in range(3))
    d_out = numbers(sequences, heads, length, size)
    shape = f"{sequences} sequences of {length}, {heads} heads of {size}"
    flops = 2 * sequences * heads * size * length * (length + 1)
    nbytes = 2 * 4 * q.numel()

    def forward():
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    tell_operation("attention", shape, flops, nbytes, forward)
    # Four products, as the records count: without the scores, which a kernel
    # may compute again.
    tell_backward("attention, backward", shape, 2 * flops, 2 * nbytes, forward,
                  (q, k, v), d_out)


def grouped_mm(*args, **kwargs):
    """AttributeError on a PyTorch with neither of its names."""
    return (getattr(F, "grouped_mm", None) or torch._grouped_mm)(*args,
                                                                 **kwargs)


def experts(tokens, active=2):
    e, d, f = PAPER["experts"], PAPER["d_model"], PAPER["d_ffn"]
    rows = tokens * active
    offsets = torch.arange(1, e + 1, device="cuda", dtype=torch.int32) * (
        rows // e)
    x = numbers(rows, d, requires_grad=True)
    gate_up = numbers(e, d, 2 * f, requires_grad=True)
    down = numbers(e, f, d, requires_grad=True)
    d_out = numbers(rows, d)
    shape = f"{rows} rows, {e} experts of {d}x{f}"
    flops = 6 * rows * d * f

    def forward():
        gate, up = grouped_mm(x, gate_up, offs=offsets).chunk(2, dim=-1)
        return grouped_mm(F.silu(gate) * up, down, offs=offsets)

    tell_operation("experts", shape, flops, 0, forward)
    tell_backward("experts, backward", shape, 2 * flops, 0, forward,
                  (x, gate_up, down), d_out)


def rows(tokens):
    d = PAPER["d_model"]
    x = numbers(tokens, d, requires_grad=True)
    weight = torch.ones(d, dtype=torch.bfloat16, device="cuda",
                        requires_grad=True)
    d_out = numbers(tokens, d)
    shape = f"{tokens}x{d}"

    def forward():
        return F.rms_norm(x, (d,), weight, 1e-5)

    tell_operation("rmsnorm", shape, 0, 4 * tokens * d, forward)
    tell_backward("rmsnorm, backward", shape, 0, 8 * tokens * d, forward,
                  (x, weight), d_out)


class GroupedLayer(pytorch_step.Layer):
    """Experts as two grouped products with offsets on the device."""

    def moe(self, x):
        token, expert, gates, counts, balance = self.route(x)
        order = torch.argsort(expert, stable=True)
        token, gates = token[order], gates[order]
        offsets = torch.cumsum(counts, 0).to(torch.int32)
        gate, up = grouped_mm(x[token].bfloat16(), self.gate_up.bfloat16(),
                              offs=offsets).chunk(2, dim=-1)
        out = grouped_mm(F.silu(gate) * up, self.down.bfloat16(), offs=offsets)
        y = torch.zeros_like(x).index_add(
            0, token, (out * gates[:, None]).to(x.dtype))
        return y, balance


def step(form, sequences):
    """Milliseconds of one micro-batch and of one update."""
    size = dict(PAPER, sequences=sequences, tau=1.0)
    layer = pytorch_step.Layer
    if form == "grouped":
        pytorch_step.Layer = GroupedLayer
    try:
        model = pytorch_step.Model(size, "sparse", 2, form).cuda()
    finally:
        pytorch_step.Layer = layer
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=0.0, fused=True)
    text = torch.randint(size["vocab"], (sequences, size["length"] + 1))

    def micro_batch():
        with torch.autocast("cuda", torch.bfloat16):
            total, _ = model(text[:, :-1], text[:, 1:])
        total.backward()

    def update():
        torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)

    return milliseconds(micro_batch, 4, 2), milliseconds(update, 3, 1)


def tell_step(form, sequences):
    line = {"kind": "step", "form": form, "sequences": sequences}
    with errors_told(**line):
        torch.cuda.reset_peak_memory_stats()  # memory_gb is this form's alone
        micro_batch, update = step(form, sequences)
        count = BATCH_SEQUENCES // sequences
        tokens = BATCH_SEQUENCES * PAPER["length"]
        tell(**line, micro_batch_ms=round(micro_batch, 2),
             update_ms=round(update, 2),
             memory_gb=round(torch.cuda.max_memory_allocated() / 1e9, 1),
             tokens_per_second=round(
                 tokens / (1e-3 * (count * micro_batch + update))))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sequences", type=int, default=30)
    parser.add_argument("--step-sequences", type=int, default=10)
    args = parser.parse_args()
    if args.step_sequences < 1 or BATCH_SEQUENCES % args.step_sequences:
        parser.error(f"--step-sequences must divide {BATCH_SEQUENCES}, the "
                     "sequences of a step")
    torch.manual_seed(1)
    torch.set_default_device("cuda")
    tell(kind="facts", torch=torch.__version__,
         device=torch.cuda.get_device_name(), cuda=torch.version.cuda)
    tokens = args.sequences * PAPER["length"]
    d, f = PAPER["d_model"], PAPER["d_ffn"]
    with errors_told(kind="operation", name="copy"):
        copy(1 << 29)
    for name, *sizes in (
            ("product", 8192, 8192, 8192), ("qkv product", tokens, 3 * d, d),
            ("expert gate and up", 2 * tokens // PAPER["experts"], 2 * f, d),
            ("head", tokens // 4, PAPER["vocab"], d)):
        with errors_told(kind="operation", name=name):
            product(name, *sizes)
    with errors_told(kind="operation", name="attention"):
        attention(args.sequences)
    with errors_told(kind="operation", name="experts"):
        experts(tokens)
    with errors_told(kind="operation", name="rmsnorm"):
        rows(tokens)
    for form in ("grouped", "loop"):
        tell_step(form, args.step_sequences)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
