#!/usr/bin/env python3
"""Writes tests/goldens/sampling.json: what transformers' warpers leave of rows of logits, in the order in which generate() calls them.

Needed only to renew the golden, never to build or run.   PEER_PYTHON -B tools/make_sampling_goldens.py
"""
import json
import pathlib

import torch
import transformers
from transformers import MinPLogitsWarper, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

torch.manual_seed(3)
ROWS = {"flat": torch.randn(40) * 0.5, "usual": torch.randn(40) * 2, "sharp": torch.randn(40) * 6}
SETTINGS = [{"min_p": 0.05}, {"min_p": 0.3}, {"min_p": 1.0}, {"min_p": 0.1, "temperature": 0.6}, {"min_p": 0.1, "temperature": 1.7},
            {"min_p": 0.1, "top_k": 5}, {"min_p": 0.1, "top_p": 0.8}, {"min_p": 0.1, "top_p": 0.5, "top_k": 12, "temperature": 1.3},
            {"top_p": 0.8, "top_k": 12}]

cases = []
for name, logits in ROWS.items():
    for setting in SETTINGS:
        warpers = [TemperatureLogitsWarper(setting.get("temperature", 1.0))]
        warpers += [TopKLogitsWarper(setting["top_k"])] if "top_k" in setting else []
        warpers += [TopPLogitsWarper(setting["top_p"])] if "top_p" in setting else []
        warpers += [MinPLogitsWarper(setting["min_p"])] if "min_p" in setting else []
        scores = logits.double()[None]
        for warper in warpers:
            scores = warper(None, scores)
        logprob = torch.log_softmax(scores[0], -1)
        kept = torch.nonzero(torch.isfinite(logprob))[:, 0].tolist()
        cases.append({"row": name, "setting": setting, "kept": kept, "logprob": logprob[kept].tolist()})
golden = {"about": f"transformers {transformers.__version__}", "rows": {k: v.tolist() for k, v in ROWS.items()}, "cases": cases}
path = pathlib.Path(__file__).parent.parent / "tests" / "goldens" / "sampling.json"
path.write_text(json.dumps(golden, indent=1) + "\n")
print(path, [len(c["kept"]) for c in cases])
