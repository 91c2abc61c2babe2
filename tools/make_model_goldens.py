#!/usr/bin/env python3
"""Writes tests/goldens/model: tiny random checkpoints of each family saved by transformers, with the logits (and for one
case of each the gradients) that transformers computes from them. Never needed to build or run; the outputs are committed.

    pip install torch==2.13.0 transformers==5.23.0 safetensors==0.8.0
    python tools/make_model_goldens.py [CASE ...]

Always compared with a model that went through from_pretrained: model.to(bfloat16) would also round the rotary
frequencies, which from_pretrained keeps in f32.
"""
import json
import os
import pathlib
import shutil
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
from safetensors.torch import save_file
from transformers import (LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config,
                          Qwen3ForCausalLM)

ROOT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "goldens" / "model"
BASE = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=48,
            vocab_size=61, max_position_embeddings=512, rope_theta=10000.0, rms_norm_eps=1e-6,
            tie_word_embeddings=True, bos_token_id=None, eos_token_id=3, pad_token_id=0)
FAMILIES = {"qwen2": (Qwen2Config, Qwen2ForCausalLM), "qwen3": (Qwen3Config, Qwen3ForCausalLM),
            "llama": (LlamaConfig, LlamaForCausalLM)}
CASES = {
    # No padding id: transformers drops the gradient of that row of the embedding, ucas does not.
    "gqa_tied": dict(gradients=True, pad_token_id=None),
    "mha_untied": dict(hidden_size=24, num_attention_heads=3, num_key_value_heads=3, intermediate_size=40,
                       vocab_size=50, num_hidden_layers=1, rope_theta=1e6, rms_norm_eps=1e-5,
                       tie_word_embeddings=False, eos_token_id=[3, 7]),
    "sharded": dict(num_key_value_heads=1, tie_word_embeddings=False, shard="12KB", rope_theta=500000.0),
    "bf16": dict(dtype=torch.bfloat16, num_hidden_layers=3),
    "f16": dict(dtype=torch.float16, intermediate_size=33),
    "head_dim": dict(hidden_size=20, num_attention_heads=2, num_key_value_heads=1, head_dim=16, vocab_size=37),
    "long": dict(length=400, last=12, num_hidden_layers=1, hidden_size=16, num_attention_heads=2, intermediate_size=24),
    "qwen3": dict(family="qwen3", gradients=True, pad_token_id=None, head_dim=16),
    "qwen3_untied": dict(family="qwen3", dtype=torch.bfloat16, tie_word_embeddings=False, head_dim=6, rope_theta=1e6,
                         num_key_value_heads=1, hidden_size=24),
    "llama": dict(family="llama", gradients=True, pad_token_id=None, tie_word_embeddings=False, rope_theta=500000.0),
    "llama_tied": dict(family="llama", num_attention_heads=2, num_key_value_heads=1, head_dim=10, rms_norm_eps=1e-5),
}


def make(name, family="qwen2", length=23, last=None, dtype=torch.float32, shard=None, gradients=False, **changes):
    torch.manual_seed(sum(map(ord, name)))
    make_config, make_model = FAMILIES[family]
    config = make_config(**{**BASE, **changes})
    model = make_model(config)
    with torch.no_grad():
        for key, parameter in model.named_parameters():   # large enough that every part of the model matters
            scale = 0.3 if parameter.dim() == 1 else 1.5 / parameter.shape[-1] ** 0.5
            parameter.add_(torch.randn_like(parameter) * scale)
    directory = ROOT / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    model.to(dtype).save_pretrained(directory, **({"max_shard_size": shard} if shard else {}))
    model = make_model.from_pretrained(directory, dtype=torch.float32, attn_implementation="eager").eval()
    ids = torch.randint(0, config.vocab_size, (1, length))
    logits = model(ids).logits[0]
    expected = {"logits": logits[-(last or length):].detach().contiguous()}
    if gradients:
        target = ids[0, 1:]
        loss = -torch.log_softmax(logits[:-1], -1).gather(1, target[:, None]).mean()
        loss.backward()
        for key, parameter in model.named_parameters():
            expected["grad." + key] = parameter.grad.contiguous()
    save_file(expected, directory / "expected.safetensors")
    (directory / "ids.json").write_text(json.dumps({"ids": ids[0].tolist()}) + "\n")


for name in sys.argv[1:] or CASES:
    make(name, **CASES[name])
    print(name, sum(f.stat().st_size for f in (ROOT / name).iterdir()) // 1024, "KiB")
