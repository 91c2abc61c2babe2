"""What a step of lag costs in learning, on the embedded task: validation accuracy with and without, from the same base and seeds.

    bench/lag.py BUILD [SEEDS] [STEPS]

A base of the embedded task that ends most of its answers, then `ucas train dapo-tiny` with rollout.off_policy_steps 0 and 1, and 1 with
objective.tis = "token"."""
import json
import os
import subprocess
import sys
import tempfile

UCAS = os.path.join(os.path.abspath(sys.argv[1]), "ucas")
SEEDS, STEPS = (int(sys.argv[i]) if len(sys.argv) > i else n for i, n in ((2, 3), (3, 40)))
FOLDER = tempfile.mkdtemp(prefix="ucas-lag-")
path = lambda *parts: os.path.join(FOLDER, *parts)


def ucas(*words):
    subprocess.run([UCAS, *map(str, words)], check=True, capture_output=True, text=True)


ucas("make-task", "--out", path("task"), "--count_train", 400, "--count_dev", 100, "--count_test", 20, "--count_worked", 4000,
     "--count_mixed", 1000, "--n_max", 6)
ucas("sft", "--init", "qwen2", "--tokenizer", path("task", "tokenizer"), "--data",
     f"{path('task', 'sft_worked.jsonl')},{path('task', 'sft_mixed.jsonl')}", "--steps", "400,200", "--batch_size", 64,
     "--optimizer.lr", "5e-3", "--out", path("base"))
print(f"{'':22} {'seed':>4} {'start':>7} {'middle':>7} {'end':>7}   reward of the last 5 steps, largest |log-prob difference| of a step")
for name, words in (("no lag", []), ("lag 1", ["--rollout.off_policy_steps", 1]),
                    ("lag 1, tis token", ["--rollout.off_policy_steps", 1, "--objective.tis", "token"])):
    for seed in range(SEEDS):
        run = path(f"{name.replace(' ', '-').replace(',', '')}-{seed}")
        ucas("train", "dapo-tiny", "--model", path("base"), "--data", path("task", "train.jsonl"), "--val", path("task", "dev.jsonl"),
             "--out", run, "--seed", seed, "--threads", 1, "--data.train_batch_size", 8, "--data.gen_batch_size", 8,
             "--update.mini_batch_size", 4, "--rollout.n", 8, "--train.steps", STEPS, "--train.test_freq", STEPS // 2,
             "--objective.keep_mixed_groups", "false", *words)
        with open(os.path.join(run, "steps.jsonl")) as file:
            rows = [json.loads(line) for line in file]
        values = [next(v for k, v in r.items() if k.startswith("val-core/") and k.endswith("mean@1")) for r in rows
                  if any(k.startswith("val-core/") for k in r)]
        last = [r["critic/rewards/mean"] for r in rows[-5:]]
        apart = max(r["rollout/logprob_diff_max"] for r in rows[1:])
        print(f"{name:22} {seed:4} " + " ".join(f"{v:7.3f}" for v in values[:3]) + f"   {sum(last) / len(last):.3f} {apart:.3f}", flush=True)
