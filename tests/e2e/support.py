"""What the end-to-end tests share: a scratch folder, the program, a small task and a briefly trained base."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

UCAS = os.path.join(os.path.abspath(sys.argv[1]), "ucas")
SCRATCH = tempfile.mkdtemp(prefix="ucas-e2e-")


def ucas(*words, expect=0, **options):
    done = subprocess.run([UCAS, *map(str, words)], capture_output=True, text=True, timeout=300, **options)
    if done.returncode != expect:
        fail(f"ucas {' '.join(map(str, words))}: exit {done.returncode}, expected {expect}\n{done.stdout}{done.stderr}")
    return done


def fail(message):
    print("FAILED:", message)
    sys.exit(1)


def check(condition, message):
    if not condition:
        fail(message)
    print("ok:", message)


def path(*parts):
    return os.path.join(SCRATCH, *parts)


def small_task():
    """A task folder and a base model that already ends most of its answers."""
    ucas("make-task", "--out", path("task"), "--count_train", 400, "--count_dev", 20, "--count_test", 20,
         "--count_worked", 4000, "--count_mixed", 1000, "--n_max", 6)
    ucas("sft", "--init", "qwen2", "--tokenizer", path("task", "tokenizer"), "--data",
         f"{path('task', 'sft_worked.jsonl')},{path('task', 'sft_mixed.jsonl')}", "--steps", "30,20",
         "--batch_size", 64, "--optimizer.lr", "5e-3", "--out", path("base"))


def train_words(out, *more):
    return ["train", "dapo-tiny", "--model", path("base"), "--data", path("task", "train.jsonl"), "--val",
            path("task", "dev.jsonl"), "--out", out, "--data.train_batch_size", 6, "--data.gen_batch_size", 8,
            "--update.mini_batch_size", 3, "--rollout.n", 8, "--objective.keep_mixed_groups", "false",
            "--train.test_freq", 4, *more]


def rows(run):
    """steps.jsonl without what a clock or a memory gauge says."""
    with open(os.path.join(run, "steps.jsonl")) as lines:
        return [{k: v for k, v in json.loads(line).items() if not k.startswith(("timing_", "perf/"))} for line in lines]


def wait_for_step(run, step, process, seconds=120):
    steps = os.path.join(run, "steps.jsonl")
    until = time.time() + seconds
    while time.time() < until and process.poll() is None:
        if os.path.exists(steps) and f'"training/global_step": {step},' in open(steps).read():
            return True
        time.sleep(0.002)
    return False


def same_bytes(a, b):
    with open(a, "rb") as x, open(b, "rb") as y:
        return x.read() == y.read()


def clean():
    shutil.rmtree(SCRATCH, ignore_errors=True)
