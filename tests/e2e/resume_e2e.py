"""Interrupted and resumed equals uninterrupted, bit for bit: weights, optimizer, steps.jsonl, stored responses."""
import os
import signal
import subprocess

from support import UCAS, check, clean, path, rows, same_bytes, small_task, train_words, ucas, wait_for_step

STEPS = 12
small_task()
OPTIONS = ("--train.steps", STEPS, "--train.save_freq", 5, "--train.stored_signals", 3)
ucas(*train_words(path("whole"), *OPTIONS))


def interrupted(name, signal_number, at_step, expect):
    run = path(name)
    process = subprocess.Popen([UCAS, *map(str, train_words(run, *OPTIONS))],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    check(wait_for_step(run, at_step, process), f"{name}: reached step {at_step}")
    process.send_signal(signal_number)
    check(process.wait(60) == expect, f"{name}: ended with {expect}")
    ucas("train", "--resume", run)
    check(rows(run) == rows(path("whole")), f"{name}: steps.jsonl is that of the uninterrupted run")
    for file in ("model.safetensors", "optimizer.safetensors", "state.json"):
        a, b = (os.path.join(r, "checkpoints", f"step-{STEPS:07d}", file) for r in (run, path("whole")))
        check(same_bytes(a, b), f"{name}: {file} is the same")
    for step in range(1, STEPS + 1):
        a, b = (os.path.join(r, "rollouts", f"step-{step:07d}.jsonl") for r in (run, path("whole")))
        check(same_bytes(a, b), f"{name}: responses of step {step} are the same")
    signals = os.listdir(path("whole", "signals"))
    check(len(signals) == 1 + STEPS // 3 and sorted(os.listdir(os.path.join(run, "signals"))) == sorted(signals),
          f"{name}: signals of the same steps are kept")
    for file in signals:
        check(same_bytes(os.path.join(run, "signals", file), path("whole", "signals", file)), f"{name}: {file} too")


interrupted("killed", signal.SIGKILL, 7, -signal.SIGKILL)
interrupted("terminated", signal.SIGTERM, 3, 75)

# Another thread count gives the same responses (our arithmetic) and is refused on resume without being asked for.
ucas(*train_words(path("one-thread"), "--train.steps", 1, "--threads", 1))
ucas(*train_words(path("two-threads"), "--train.steps", 1, "--threads", 2))
a, b = (path(name, "rollouts", "step-0000001.jsonl") for name in ("one-thread", "two-threads"))
check(same_bytes(a, b), "responses do not depend on the number of threads")
check(rows(path("whole"))[1]["rollout/logprob_diff_max"] == 0, "sampler and trainer agree bit for bit")
refused = ucas("train", "--resume", path("one-thread"), "--threads", 2, "--train.steps", 2, expect=2)
check("threads" in refused.stderr and "--allow-changes" in refused.stderr, "a changed thread count is refused by name")
refused = ucas("train", "--resume", path("one-thread"), "--optimizer.lr", 1, expect=2)
check("optimizer.lr" in refused.stderr, "a changed option is refused by name")
with open(path("task", "train.jsonl"), "a") as data:
    data.write('{"id": "new", "problem": " a3 b*2.\\n", "answer": "6"}\n')
refused = ucas("train", "--resume", path("one-thread"), "--train.steps", 2, expect=2)
check("data" in refused.stderr, "changed data is refused by name")
clean()
