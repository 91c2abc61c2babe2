"""What `ucas sft` saves, transformers loads and reproduces.

    PEER_PYTHON -B tools/sft_check.py [--ucas build/ucas]

Runs under a Python with torch and transformers. A small model is trained on the embedded task's demonstrations; then
transformers loads the directory, and its log-probabilities of responses must be those of `ucas score` within 2e-4.
Ends with 1 if they are not.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import torch
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

TOLERANCE = 2e-4


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ucas", default="build/ucas")
    ucas = os.path.abspath(parser.parse_args().ucas)
    os.chdir(tempfile.mkdtemp(prefix="ucas-sft-"))
    subprocess.run([ucas, "make-task", "--out", "task", "--count_train", "20", "--count_dev", "5", "--count_test", "5",
                    "--count_worked", "2000", "--count_mixed", "40"], check=True)
    subprocess.run([ucas, "sft", "--init", "qwen2", "--tokenizer", "task/tokenizer", "--data", "task/sft_worked.jsonl",
                    "--steps", "30", "--batch_size", "64", "--optimizer.lr", "5e-3", "--out", "model"], check=True)
    # Not AutoTokenizer: for model_type qwen2 transformers 5 takes its own class whatever the files say.
    tokenizer = PreTrainedTokenizerFast.from_pretrained("model")
    rows = []
    for line in open("task/sft_mixed.jsonl", encoding="utf-8").readlines()[:40]:
        row = json.loads(line)
        response = tokenizer(row["response"])["input_ids"] + [tokenizer.eos_token_id]
        rows.append({"prompt_ids": tokenizer(row["prompt"])["input_ids"], "response_ids": response})
    with open("rows.jsonl", "w", encoding="utf-8") as out:
        out.writelines(json.dumps(row) + "\n" for row in rows)
    subprocess.run([ucas, "score", "--model", "model", "rows.jsonl", "--out", "scores.jsonl"], check=True)

    model, info = AutoModelForCausalLM.from_pretrained("model", output_loading_info=True)
    strange = {name: value for name, value in info.items() if value}
    worst, tokens = 0.0, 0
    for row, line in zip(rows, open("scores.jsonl", encoding="utf-8"), strict=True):
        prompt, response = row["prompt_ids"], row["response_ids"]
        with torch.no_grad():
            logprob = model(torch.tensor([prompt + response])).logits[0].log_softmax(-1)
        for i, (token, ours) in enumerate(zip(response, json.loads(line)["logprob"], strict=True)):
            worst = max(worst, abs(logprob[len(prompt) - 1 + i, token].item() - ours))
            tokens += 1
    print(f"transformers: {model.config.model_type}, {model.num_parameters():,} parameters, left over: {strange}; "
          f"{tokens} tokens, log-probabilities differ by at most {worst:.1e}")
    sys.exit(0 if worst <= TOLERANCE and not strange and tokens > 0 else 1)


main()
