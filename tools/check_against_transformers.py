"""Does transformers see in a checkpoint what ucas sees in it?

    PEER_PYTHON -B tools/check_against_transformers.py DIR [DIR ...] [--ucas build/ucas] [--rows 8] [--length 64]

Random token ids are scored by `ucas score` and by transformers from each directory; log-probability, entropy,
confidence and raw logit of every token must agree within 2e-4. Prints the largest differences and ends with 1 if they
do not. PEER_PYTHON has torch and transformers.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

import torch
from transformers import AutoModelForCausalLM

TOLERANCE = 2e-4


def scored_by_ucas(ucas, directory, rows):
    with tempfile.TemporaryDirectory(prefix="ucas-check-") as folder:
        path = os.path.join(folder, "rows.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        out = subprocess.run([ucas, "score", "--model", directory, path], check=True, stdout=subprocess.PIPE).stdout
    return [json.loads(line) for line in out.decode().splitlines()]


def scored_by_transformers(model, row):
    ids = torch.tensor([row["prompt_ids"] + row["response_ids"]])
    with torch.no_grad():
        logits = model(ids).logits[0, len(row["prompt_ids"]) - 1:-1].double()
    chosen = torch.tensor(row["response_ids"])[:, None]
    logs = torch.log_softmax(logits, -1)
    return {"logprob": logs.gather(1, chosen)[:, 0], "logit": logits.gather(1, chosen)[:, 0],
            "entropy": -(logs.exp() * logs).sum(-1), "confidence": torch.logsumexp(logits, -1) - logits.mean(-1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("directories", nargs="+", metavar="DIR")
    parser.add_argument("--ucas", default="build/ucas")
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--length", type=int, default=64)
    options = parser.parse_args()
    agree = True
    for directory in options.directories:
        model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()
        rng, vocab = random.Random(0), model.config.vocab_size
        rows = []
        for _ in range(options.rows):
            ids = [rng.randrange(vocab) for _ in range(rng.randint(3, options.length))]
            cut = rng.randint(1, len(ids) - 1)
            rows.append({"prompt_ids": ids[:cut], "response_ids": ids[cut:]})
        worst = {}
        for row, ours in zip(rows, scored_by_ucas(options.ucas, directory, rows), strict=True):
            for key, theirs in scored_by_transformers(model, row).items():
                difference = (theirs - torch.tensor(ours[key]).double()).abs().max().item()
                worst[key] = max(worst.get(key, 0.0), difference)
        good = max(worst.values()) <= TOLERANCE
        agree = agree and good
        print("agrees " if good else "DIFFERS", directory, " ".join(f"{k} {v:.1e}" for k, v in worst.items()))
    sys.exit(0 if agree else 1)


if __name__ == "__main__":
    main()
