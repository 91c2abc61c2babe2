"""The line that a training prints at its end, and `ucas evaluate RUN`, give the run's last validation."""
import json
import os
import shlex
import subprocess

from support import SCRATCH, UCAS, check, path, rows, small_task, train_words, ucas

small_task()
ucas("sft", "--model", path("base"), "--data", path("task", "sft_mixed.jsonl"), "--steps", 120, "--batch_size", 64,
     "--optimizer.lr", "5e-3", "--out", path("better"))
SETTINGS = ["--dtype", "bf16", "--reward.truncated", "wrong", "--reward.extract", "lenient",
          "--rollout.response_length", 28]
done = ucas(*train_words(path("run"), "--model", path("better"), "--train.steps", 4, *SETTINGS))
line = next(text.strip() for text in done.stderr.splitlines() if text.strip().startswith("ucas evaluate "))
print(line)
last = rows(path("run"))[-1]
validated = next(value for key, value in last.items() if key.startswith("val-core/") and key.endswith("/acc/mean@1"))


def greedy(out):
    folder = next(root for root, _, files in os.walk(path(out)) if any(name.endswith(".outputs.jsonl") for name in files))
    name = next(name for name in os.listdir(folder) if name.endswith(".outputs.jsonl"))
    with open(os.path.join(folder, name.replace(".outputs.jsonl", ".json"))) as file:
        return json.load(file)["greedy"]["pass@1"]["value"]


words = shlex.split(line)
check(words[0] == "ucas" and words[-2:] == ["--out", "EVAL"], "the line is a command")
check(all(option in words for option in ("--template", "--extract", "--truncated", "--max_tokens", "--dtype")),
      "with all that the run decided")
subprocess.run([UCAS, *words[1:-1], path("by-line"), "--samples", "0"], check=True, capture_output=True)
check(validated > 0, "the run gets some right")
check(greedy("by-line") == validated, f"the printed line gives the last validation, {validated}")

whole = ucas("evaluate", path("run"), "--samples", 0, "--out", path("by-run"))
check(greedy("by-run") == validated, "so does the run's directory alone")
said = whole.stderr.splitlines()
check("/run/config.toml says: --data " in said[0] and said[1].endswith("checkpoints/step-0000004"),
      "which says what it takes, first")
typed = ucas("evaluate", os.path.join(path("run"), "checkpoints", "step-0000004"), "--samples", 0, "--max_tokens", 3,
             "--out", path("typed"))
check("--max_tokens" not in typed.stderr.splitlines()[0] and "of at most 3 tokens" in typed.stderr, "what is typed wins")
base = ucas("evaluate", f"base={path('base')}", f"run={path('run')}", "--samples", 0)
check("--dtype bf16" in base.stderr, "beside another model the settings hold for both")

# Answers that nobody can read are no secret.
blind = ["--extract", "answer_tag", "--samples", 0, "--template", "plain", "--max_tokens", 20, "--data",
         path("task", "dev.jsonl")]
done = ucas("evaluate", path("base"), *blind)
check("warning: base, dev: no answer was found in 100.0 % of 20 responses (--extract answer_tag" in done.stderr,
      "an evaluation without a readable answer says so")
check("such as \"" in done.stderr and "hold one for --extract" in done.stderr, "with examples, and what would read them")
check("problems: 20 of dev; responses to sample: 20 (20 greedy), of at most 20 tokens" in done.stderr,
      "and how many responses it samples, before it starts")
done = ucas(*train_words(path("blind"), "--train.steps", 1, "--train.test_freq", 0, "--reward.extract", "answer_tag"))
check("warning: step 1: no answer was found in 100.0 % of" in done.stderr and "--reward.extract" in done.stderr,
      "and so does the first step of a training")
both = ucas("evaluate", f"a={path('run')}", f"b={path('blind')}", "--samples", 0, "--extract", "strict").stderr
check("config.toml say: --data" in both and "--template plain" in both and "warning: the runs differ in --dtype, not taken from them" in both,
      "two runs give what they share, and what differs is named")
