#!/usr/bin/env python3
"""Writes tests/goldens/choices.json: what transformers thinks of letters after prompts, on the tiny checkpoints of
make_model_goldens.py. Never needed to build or run; the output is committed.

    pip install torch==2.13.0 transformers==5.23.0
    python tools/make_choice_goldens.py
"""
import json
import os
import pathlib

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
from transformers import Qwen2ForCausalLM

ROOT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "goldens"
LETTERS = [5, 11, 12, 30]


def digits(value):
    return float(f"{value:.9g}")


cases = []
for name in ("gqa_tied", "mha_untied", "sharded", "bf16"):
    torch.manual_seed(sum(map(ord, name)))
    model = Qwen2ForCausalLM.from_pretrained(ROOT / "model" / name, dtype=torch.float32,
                                             attn_implementation="eager").eval()
    prompts = [torch.randint(0, 37, (length,)).tolist() for length in (1, 2, 9, 17, 33)]
    expected = []
    for prompt in prompts:
        with torch.no_grad():
            z = model(torch.tensor([prompt])).logits[0, -1].double()
        logprob = torch.log_softmax(z, -1)
        expected.append({"logprob": [digits(logprob[i].item()) for i in LETTERS],
                         "entropy": digits(-(logprob.exp() * logprob).sum().item()),
                         "confidence": digits((torch.logsumexp(z, -1) - z.mean()).item())})
    cases.append({"model": name, "letters": LETTERS, "prompts": prompts, "expected": expected})
(ROOT / "choices.json").write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")
