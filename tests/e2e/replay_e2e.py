"""Responses of three runs are generated again, one alone and all together: the same tokens and log-probs, to the bit."""
import json
import os
import random
import shutil

from support import check, path, small_task, train_words, ucas

small_task()
MORE = {"grpo": ("--method", "grpo"), "ucas": ("--method", "ucas", "--rollout.top_p", 0.9),
        "bf16": ("--dtype", "bf16", "--rollout.temperature", 1.5, "--seed", 7)}
for run, more in MORE.items():
    ucas(*train_words(path(run), "--train.steps", 3, "--train.stored_signals", 1, "--train.save_freq", 1, "--train.keep", 9,
                      *more))
    for step in (1, 2, 3):
        done = ucas("replay", path(run), "--step", step, "--threads", step % 2 + 1)
        count = sum('"token"' in line for line in open(os.path.join(path(run), "signals", f"step-{step:07d}.jsonl")))
        check(f"{count} of {count} responses identical" in done.stdout, f"{run}: all {count} responses of step {step}")
rng = random.Random(5)
for _ in range(12):
    run, step = rng.choice(sorted(MORE)), rng.choice((1, 2, 3))
    lines = [json.loads(line) for line in open(os.path.join(path(run), "signals", f"step-{step:07d}.jsonl"))]
    problem = rng.choice([row["problem"] for row in lines if "prompt" in row])
    done = ucas("replay", path(run), "--step", step, "--problem", problem, "--sample", 3, "--show")
    check("1 of 1 responses identical" in done.stdout, f"{run} step {step}, {problem}, sample 3 alone")

done = ucas("replay", path("grpo"), "--step", 1, "--problem", "none", expect=2)
check("kept no such response" in done.stderr, "a problem that is none of those kept")
shutil.rmtree(os.path.join(path("grpo"), "checkpoints", "step-0000002"))
done = ucas("replay", path("grpo"), "--step", 3, expect=2)
check("both are there of steps 1, 2" in done.stderr, "what can be replayed is said")
# Other weights give another response.
shutil.copytree(os.path.join(path("grpo"), "checkpoints", "step-0000001"),
                os.path.join(path("grpo"), "checkpoints", "step-0000002"))
done = ucas("replay", path("grpo"), "--step", 3, expect=1)
check("another token at" in done.stdout or "log-probs differ" in done.stdout, "other weights are noticed")
