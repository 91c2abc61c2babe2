#!/usr/bin/env python3
"""Writes tests/goldens/muon.json: three steps of torch.optim.Muon (match_rms_adamw) on a tall, a wide and a square matrix, in float64.

torch's Newton-Schulz iterations are in bfloat16; here they are NumPy's in float64. That both mean the same is checked on the way.
Needed only to renew the golden, never to build or run.   python3 tools/make_muon_goldens.py
"""
import json
import pathlib

import numpy as np
import torch
from torch.optim import _muon

LR, DECAY, MOMENTUM = 0.02, 0.1, 0.95
torch_iterations = _muon._zeropower_via_newtonschulz


def iterations(grad, ns_coefficients, ns_steps, eps):
    a, b, c = ns_coefficients
    x = grad.numpy()
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    x = x / max(np.linalg.norm(x), eps)
    for _ in range(ns_steps):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    ours = torch.from_numpy(np.ascontiguousarray(x.T if tall else x))
    theirs = torch_iterations(grad, ns_coefficients, ns_steps, eps).double()
    assert (ours - theirs).abs().max() < 0.03, (ours - theirs).abs().max()
    return ours


_muon._zeropower_via_newtonschulz = iterations
rng = np.random.default_rng(5)
out = {"about": f"torch {torch.__version__}, numpy {np.__version__}", "lr": LR, "weight_decay": DECAY, "momentum": MOMENTUM, "cases": []}
for rows, columns in ((10, 4), (4, 10), (6, 6)):
    begin = rng.standard_normal((rows, columns)).astype(np.float32)
    p = torch.nn.Parameter(torch.from_numpy(begin).double())
    optimizer = torch.optim.Muon([p], lr=LR, weight_decay=DECAY, momentum=MOMENTUM, adjust_lr_fn="match_rms_adamw")
    steps = []
    for _ in range(3):
        g = (0.01 * rng.standard_normal((rows, columns))).astype(np.float32)
        p.grad = torch.from_numpy(g).double()
        optimizer.step()
        steps.append({"gradient": g.flatten().tolist(), "parameter": p.detach().numpy().flatten().tolist()})
    out["cases"].append({"shape": [rows, columns], "begin": begin.flatten().tolist(), "steps": steps})

path = pathlib.Path(__file__).parent.parent / "tests" / "goldens" / "muon.json"
path.write_text(json.dumps(out, indent=None) + "\n")
print(path, path.stat().st_size, "bytes")
