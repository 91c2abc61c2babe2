"""Does peft see in an adapter that ucas trained what ucas sees in it?

    PEER_PYTHON -B tools/check_peft.py [--ucas build/ucas] [--length 64]

`ucas sft` trains adapters on random checkpoints of every family: some targets, all of them, norms and LM head or a tied
embedding trained whole beside them, in f32 and in bf16. peft loads each, and log-prob, entropy, confidence and logit of random
tokens must agree within 2e-4 in f32; then `ucas export ADAPTER` and peft's merge_and_unload must give the same weights and the same
figures. Prints the largest differences and ends with 1 if they do not agree. PEER_PYTHON has torch, transformers and peft;
that what peft saved is read by ucas is a test (src/model/peft_test.cpp).
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

import check_against_transformers as peer
import torch
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

CASES = {
    "qwen2 tied, q and v": ("qwen2", "--lora.rank 4 --lora.alpha 8 --lora.target_modules q_proj,v_proj"),
    "qwen2 tied, embedding whole": ("qwen2", "--lora.rank 3 --lora.modules_to_save embed_tokens"),
    "qwen3 untied, bf16": ("qwen3 untied", "--lora.rank 8 --dtype bf16 --recompute block"),
    "llama, norms and head whole": ("llama untied, head_dim apart", "--lora.rank 5 --lora.alpha 7 --lora.target_modules "
                                    "o_proj,down_proj --lora.modules_to_save norm,lm_head"),
    "mistral, one matrix, bf16": ("mistral window of 33, tied", "--lora.rank 2 --lora.target_modules "
                                  "layers.1.mlp.up_proj,k_proj --lora.modules_to_save input_layernorm --dtype bf16"),
}
TOLERANCE = 2e-4


def run(*words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}\n{done.stderr}")


def train(options, base, adapter, words):
    rng = random.Random(1)
    with open(base + ".jsonl", "w", encoding="utf-8") as file:
        for _ in range(8):
            prompt = "".join(f" w{rng.randrange(500)}" for _ in range(6))
            file.write(json.dumps({"prompt": prompt, "response_ids": [rng.randrange(500) for _ in range(24)]}) + "\n")
    run(options.ucas, "sft", "--model", base, "--data", base + ".jsonl", "--batch_size", "8", "--steps", "6", "--optimizer.lr",
        "1e-2", "--threads", "1", *words.split(), "--out", adapter)


def apart(ours, model, rows):
    """The largest difference of all four quantities."""
    worst = 0.0
    for row, mine in zip(rows, ours, strict=True):
        for key, theirs in peer.scored_by_transformers(model, row).items():
            worst = max(worst, (theirs - torch.tensor(mine[key]).double()).abs().max().item())
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ucas", default="build/ucas")
    parser.add_argument("--rows", type=int, default=4)
    parser.add_argument("--length", type=int, default=64)
    options = parser.parse_args()
    options.score, agree = "", True
    rows = peer.random_rows(options, peer.SHAPE["vocab_size"])
    print(f"{'largest difference':<32}{'adapter':>10}{'merged':>10}{'weights':>10}{'from the base':>15}")
    with tempfile.TemporaryDirectory(prefix="ucas-peft-") as root:
        for name, (family, words) in CASES.items():
            base, adapter, merged = (os.path.join(root, f"{len(os.listdir(root))}-{part}") for part in ("base", "adapter", "merged"))
            peer.make_checkpoint(base, **peer.CASES[family])
            train(options, base, adapter, words)
            run(options.ucas, "export", adapter, "--out", merged)
            plain = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32).eval()
            ours = peer.scored_by_ucas(options, adapter, rows)
            from_base = apart(ours, plain, rows)
            theirs = PeftModel.from_pretrained(plain, adapter).eval()
            read = apart(ours, theirs, rows)
            theirs = theirs.merge_and_unload()
            both = apart(peer.scored_by_ucas(options, merged, rows), theirs, rows)
            weights = max((theirs.state_dict()[key] - value).abs().max().item()
                          for key, value in load_file(os.path.join(merged, "model.safetensors")).items())
            good = max(read, both) <= TOLERANCE and weights <= 1e-6 and from_base > 0.1
            agree = agree and good
            print(f"{name:<32}{read:>10.1e}{both:>10.1e}{weights:>10.1e}{from_base:>15.2f}" + ("" if good else "  DIFFERS"),
                  flush=True)
    sys.exit(0 if agree else 1)


if __name__ == "__main__":
    main()
