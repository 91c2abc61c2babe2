"""The way of a real checkpoint: made by transformers, trained and evaluated by ucas, read back by transformers.

    PEER_PYTHON=.../bin/python tools/real_checkpoint.py [--ucas build/ucas] [--data ../shared/data] [--steps 3]

A Qwen2-shaped checkpoint with random weights (hidden 256, 4 layers, vocabulary 151,936) and the Qwen2 tokenizer goes
through `ucas train` (grpo, no group filter, entropy_coeff 1e-3, prompts up to 1,024 tokens, responses up to 256),
`ucas evaluate` on AIME 2024 and `ucas score`, and then transformers loads what was saved and must agree: per-token
log-probabilities within 2e-4 and the same best tokens. Ends with 1 if anything is not as it should be.
PEER_PYTHON has torch, transformers and safetensors.
"""
import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
TOLERANCE = 2e-4


def run(command, quiet=False):
    """Runs a command: wall seconds, CPU seconds and peak MiB."""
    print("$", " ".join(command), flush=True)
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL if quiet else None)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"failed with status {status}: {' '.join(command)}")
    return time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def make(folder):
    """Runs inside PEER_PYTHON: the checkpoint as transformers saves it."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(0)
    config = Qwen2Config(vocab_size=151936, hidden_size=256, num_hidden_layers=4, num_attention_heads=4,
                         num_key_value_heads=2, intermediate_size=688, max_position_embeddings=4096,
                         tie_word_embeddings=True, rope_theta=1e6, bos_token_id=151643, eos_token_id=151645)
    Qwen2ForCausalLM(config).save_pretrained(folder)


def compare(folder, scores):
    """Runs inside PEER_PYTHON: transformers on the trained checkpoint against the rows that `ucas score` wrote."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    with open(f"{scores}/rows.jsonl", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    with open(f"{scores}/scored.jsonl", encoding="utf-8") as file:
        scored = [json.loads(line) for line in file]
    worst = {"logprob": 0.0, "logit": 0.0, "entropy": 0.0, "confidence": 0.0}
    with torch.no_grad():
        for row, ours in zip(rows, scored, strict=True):
            ids = torch.tensor([row["prompt_ids"] + row["response_ids"]])
            logits = model(ids).logits[0, len(row["prompt_ids"]) - 1:-1].double()
            chosen = torch.tensor(row["response_ids"])[:, None]
            logs = torch.log_softmax(logits, -1)
            theirs = {"logprob": logs.gather(1, chosen)[:, 0], "logit": logits.gather(1, chosen)[:, 0],
                      "entropy": -(logs.exp() * logs).sum(-1),
                      "confidence": torch.logsumexp(logits, -1) - logits.mean(-1)}
            for key, values in theirs.items():
                worst[key] = max(worst[key], (values - torch.tensor(ours[key]).double()).abs().max().item())
    print(json.dumps({"rows": len(rows), **worst}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ucas", default=os.path.join(HERE, "../build/ucas"))
    parser.add_argument("--data", default=os.environ.get("UCAS_SHARED_DATA", os.path.join(HERE, "../../shared/data")))
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--peer", nargs="+", help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.peer:
        return make(*a.peer) if len(a.peer) == 1 else compare(*a.peer)
    python = os.environ.get("PEER_PYTHON") or sys.exit("set PEER_PYTHON: a Python with torch and transformers")
    os.environ["HF_HUB_OFFLINE"] = "1"
    peer = [python, os.path.realpath(__file__), "--peer"]
    problems = []
    with tempfile.TemporaryDirectory(prefix="ucas-real-") as work:
        base, runs = f"{work}/base", f"{work}/run"
        run([*peer, base])
        shutil.copy(f"{a.data}/tokenizer-qwen2/tokenizer.json", base)
        train = run([a.ucas, "train", "--model", base, "--data.files", f"{a.data}/train/math_lvl3to5.jsonl", "--out", runs,
                     "--method.name", "grpo", "--objective.entropy_coeff", "1e-3", "--rollout.n", str(a.samples),
                     "--data.max_prompt_length", "1024", "--rollout.response_length", "256",
                     "--data.train_batch_size", str(a.prompts), "--update.mini_batch_size", str(a.prompts),
                     "--train.steps", str(a.steps)])
        with open(f"{runs}/steps.jsonl", encoding="utf-8") as file:
            steps = [json.loads(line) for line in file]
        for step in steps:
            print("step", {k: step[k] for k in ("actor/grad_norm", "actor/entropy", "response_length/mean",
                                                "rollout/logprob_diff_max") if k in step})
            if not step.get("actor/grad_norm", 0) > 0:
                problems.append("a gradient norm is not above 0")
        if len(steps) != a.steps:
            problems.append(f"{len(steps)} steps were logged, {a.steps} asked for")
        trained = os.path.join(runs, "checkpoints", sorted(os.listdir(f"{runs}/checkpoints"))[-1])
        evaluation = run([a.ucas, "evaluate", trained, "--data", f"{a.data}/eval/aime24.jsonl", "--samples", "0",
                          "--max_tokens", "256", "--out", f"{work}/eval"])
        draw = random.Random(0)
        with open(f"{work}/rows.jsonl", "w", encoding="utf-8") as file:
            for length in (1, 2, 7, 64, 300):
                ids = [draw.randrange(151643) for _ in range(5 + length)]
                file.write(json.dumps({"prompt_ids": ids[:5], "response_ids": ids[5:]}) + "\n")
        run([a.ucas, "score", "--model", trained, f"{work}/rows.jsonl", "--out", f"{work}/scored.jsonl"])
        output = subprocess.run([*peer, trained, work], stdout=subprocess.PIPE, text=True, check=True).stdout
    differences = json.loads(output.strip().split("\n")[-1])
    print("largest difference to transformers:", differences)
    problems += [f"{k} differs by {v:.2e}" for k, v in differences.items() if k != "rows" and not v <= TOLERANCE]
    for name, (wall, cpu, peak) in (("train", train), ("evaluate", evaluation)):
        print(f"{name}: {wall:.1f} s ({cpu:.1f} CPU s), peak memory {peak:,.0f} MiB")
    print("\n".join(problems) or "as it should be")
    sys.exit(1 if problems else 0)


main()
