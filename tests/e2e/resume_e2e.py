"""Interrupted and resumed equals uninterrupted, bit for bit: weights, optimizer, steps.jsonl, stored responses.
With --short of three kinds of run alone."""
import os
import shutil
import signal
import subprocess
import sys

from support import (HANG, UCAS, check, clean, end, path, rows, same_bytes, small_task, stopped_at, train_words, ucas,
                     wait_for_step)

STEPS = 12
# What a run is made of beside the policy, and the files of a checkpoint that hold it. One row for each thing that has
# to go on from where it was.
KINDS = {
    "policy": ([], []),
    "reference": (["--objective.kl_coeff", 0.01, "--reward.kl_coeff", 0.05], []),
    "moving-reference": (["--objective.kl_coeff", 0.05, "--reference.sync_steps", 2, "--dtype", "bf16"],
                         ["reference.safetensors"]),
    "entropy": (["--objective.entropy_coeff", 0.02, "--objective.entropy_target", 1.9], []),
    "bf16": (["--optimizer.moments", "bf16"], []),
    "int8": (["--optimizer.moments", "int8"], []),
    "muon": (["--optimizer.kind", "muon", "--optimizer.moments", "bf16"], []),
    "teacher": (["--method.name", "distill", "--method.preset", "reward", "--method.teacher", path("base")], []),
    "critic": (["--method.name", "ppo", "--method.critic.optimizer.moments", "int8"],
               ["critic.safetensors", "critic-optimizer.safetensors", "critic-optimizer.json"]),
    "critic-bf16": (["--method.name", "ppo", "--dtype", "bf16"],
                    ["critic.safetensors", "critic-optimizer.safetensors", "critic-optimizer.json"]),
    "prm": (["--method.name", "prime"], ["prm.safetensors", "prm-optimizer.safetensors", "prm-optimizer.json"]),
    "prm-after": (["--method.name", "prime", "--method.preset", "authors", "--method.prm.optimizer.lr", "6e-4",
                   "--objective.keep_low", 0, "--objective.keep_high", 1],
                  ["prm.safetensors", "prm-optimizer.safetensors", "prm-optimizer.json"]),
}
ALWAYS = ["optimizer.safetensors", "optimizer.json", "state.json", "manifest.json"]
MODEL = ["config.json", "generation_config.json", "model.safetensors", "state", "tokenizer.json", "tokenizer_config.json"]
if "--short" in sys.argv:
    KINDS = {kind: KINDS[kind] for kind in ("policy", "prm")}
small_task()


def words(kind, run, *more):
    return train_words(run, "--train.steps", STEPS, "--train.save_freq", 5, "--train.stored_signals", 3,
                       *KINDS[kind][0], *more)


def same_checkpoint(kind, run, whole, step, name):
    """Every file of the model and of what lies in state/ is there and the same."""
    a, b = (os.path.join(r, "checkpoints", f"step-{step:07d}") for r in (run, whole))
    check(sorted(os.listdir(a)) == MODEL, f"{name}: a checkpoint holds the model, its tokenizer and state/")
    state = sorted(ALWAYS + KINDS[kind][1])
    check(sorted(os.listdir(os.path.join(a, "state"))) == state, f"{name}: state/ holds {' '.join(state)}")
    for file in [file for file in MODEL if file != "state"] + [os.path.join("state", file) for file in state]:
        check(same_bytes(os.path.join(a, file), os.path.join(b, file)), f"{name}: {file} is the same")


def interrupted(kind, name, signal_number, at_step, expect):
    whole, run = path(kind), path(f"{kind}-{name}")
    process = stopped_at(words(kind, run), f"step:{at_step + 1}")  # a line before the first step, of the validation
    code, said = end(process, signal_number)
    check(code == expect, f"{kind}, {name}: ended with {expect} after step {at_step}")
    if expect == 75:
        for what in ("memory: peak", "stopped after step", "the model is", "ucas evaluate", "ucas report"):
            check(what in said, f"{kind}, {name}: says {what}, as at its end")
    ucas("train", "--resume", run)
    check(rows(run) == rows(whole), f"{kind}, {name}: steps.jsonl is that of the uninterrupted run")
    same_checkpoint(kind, run, whole, STEPS, f"{kind}, {name}")
    for step in range(1, STEPS + 1):
        a, b = (os.path.join(r, "rollouts", f"step-{step:07d}.jsonl") for r in (run, whole))
        check(same_bytes(a, b), f"{kind}, {name}: responses of step {step} are the same")
    signals = os.listdir(os.path.join(whole, "signals"))
    check(len(signals) == 1 + STEPS // 3 and sorted(os.listdir(os.path.join(run, "signals"))) == sorted(signals),
          f"{kind}, {name}: signals of the same steps are kept")
    for file in signals:
        check(same_bytes(os.path.join(run, "signals", file), os.path.join(whole, "signals", file)),
              f"{kind}, {name}: {file} too")


for kind in KINDS:
    ucas(*words(kind, path(kind)))
    interrupted(kind, "killed", signal.SIGKILL, 7, -signal.SIGKILL)
interrupted("policy", "terminated", signal.SIGTERM, 3, 75)
if "--short" in sys.argv:
    clean()
    sys.exit(0)

# Somebody moves the log and deletes the lock file of a run: no second trainer comes in, and the log is whole.
with open(path("moved.log"), "w") as log:
    first = subprocess.Popen([UCAS, *map(str, words("policy", path("moved")))], stdout=subprocess.DEVNULL, stderr=log)
check(wait_for_step(path("moved"), 3, first), "a run whose log is to be moved reached step 3")
first.send_signal(signal.SIGSTOP)
os.rename(path("moved", "steps.jsonl"), path("moved", "steps.jsonl.1"))
os.unlink(path("moved", ".lock"))
second = ucas("train", "--resume", path("moved"), expect=2)
check("in use by another ucas" in second.stderr, "a second trainer is refused without the lock file, too")
first.send_signal(signal.SIGCONT)
check(first.wait(HANG) == 0, "the first one goes on to its end")
with open(path("moved.log")) as log:
    said = log.read()
check("was moved or deleted while this run writes it" in said and "1 log moved or cut" in said, "says that its log was moved")
check(rows(path("moved")) == rows(path("policy")), "and has made it again with every step")
ucas("train", "--resume", path("moved"), "--train.steps", STEPS + 1)

# Five saves after a resume with the default train.keep: what the first checkpoints brought along is long pruned.
ucas(*words("policy", path("many"), "--train.save_freq", 1, "--train.steps", 7))
ucas(*words("policy", path("many-resumed"), "--train.save_freq", 1, "--train.steps", 2))
ucas("train", "--resume", path("many-resumed"), "--train.steps", 7)
kept = sorted(os.listdir(path("many-resumed", "checkpoints")))
check(kept == ["step-0000006", "step-0000007"], "the default keeps two")
same_checkpoint("policy", path("many-resumed"), path("many"), 7, "five saves after a resume")
ucas("train", "--resume", path("many-resumed"), "--train.steps", 8)

# A run of before: everything in one folder of the checkpoint, no copy of the base's files.
old = path("old")
shutil.copytree(path("many"), old)
shutil.rmtree(os.path.join(old, "model_files"))
ucas("train", "--resume", old, "--train.steps", 8)
same_checkpoint("policy", old, path("many-resumed"), 8, "a run without model_files")

# The base is gone, and a file of the run's copy of it: it is made again from the checkpoint, and said.
os.remove(os.path.join(old, "model_files", "tokenizer.json"))
os.rename(path("base"), path("elsewhere"))
resumed = ucas("train", "--resume", old, "--train.steps", 9)
check("model_files: tokenizer.json is missing; restored from" in resumed.stderr, "a lost tokenizer is made again")
os.rename(path("elsewhere"), path("base"))
ucas("generate", "--model", os.path.join(old, "checkpoints", "step-0000009"), "--prompt", " a1 b*2.\n", "--max_tokens", 2)

# Killed at each call that puts a file or a directory in its place: from the first file of the run directory, through the
# copy of the base's files and the checkpoints, to the last pruning. Whichever command is due goes on from there.
short = ["--train.save_freq", 1, "--train.steps", 3]
ucas(*words("policy", path("short"), *short))
kills = before_start = 0
while True:
    run = path("killed-at-rename")
    shutil.rmtree(run, ignore_errors=True)
    process = subprocess.run([UCAS, *map(str, words("policy", run, *short))], capture_output=True,
                             env=dict(os.environ, UCAS_FAULT=f"rename:{kills + 1}:0:kill"))
    if process.returncode == 0:
        break
    kills += 1
    started = os.path.exists(os.path.join(run, "config.toml"))
    before_start += not started
    ucas(*(["train", "--resume", run] if started else words("policy", run, *short)))
    if rows(run) != rows(path("short")):
        check(False, f"killed at rename {kills}: steps.jsonl is that of the uninterrupted run")
    a, b = (os.path.join(r, "checkpoints", "step-0000003") for r in (run, path("short")))
    for folder in ("", "state"):
        names = sorted(os.listdir(os.path.join(b, folder)))
        if sorted(os.listdir(os.path.join(a, folder))) != names or not all(
                same_bytes(os.path.join(a, folder, n), os.path.join(b, folder, n)) for n in names if n != "state"):
            check(False, f"killed at rename {kills}: the last checkpoint is the same")
check(kills > 30 and before_start == 2, f"killed at each of {kills} renames, {before_start} before config.toml: all went on")

# The reference is the run's initial policy, and the entropy bonus was steered.
steps = rows(path("reference"))[1:]
check(steps[0]["actor/reward_kl_penalty"] == 0, "before the first update policy and reference agree to the bit")
check(steps[-1]["actor/kl_loss"] > 0, "later they do not")
check(len({step["actor/entropy_coeff"] for step in rows(path("entropy"))[1:]}) > STEPS // 2, "the entropy bonus was steered")
with open(path("base", "model.safetensors"), "r+b") as weights:
    weights.seek(-1, os.SEEK_END)
    last = weights.read(1)
    weights.seek(-1, os.SEEK_END)
    weights.write(bytes([last[0] ^ 1]))
refused = ucas("train", "--resume", path("reference"), "--train.steps", STEPS + 1, expect=2)
check("weights of" in refused.stderr and path("base") in refused.stderr, "a changed base is refused by name")
with open(path("base", "model.safetensors"), "r+b") as weights:
    weights.seek(-1, os.SEEK_END)
    weights.write(last)

# Stopped before its first step, when only the validation of the base stands in the log.
ucas(*train_words(path("before"), "--train.steps", 2, "--train.max_hours", "1e-9"), expect=75)
check([row["training/global_step"] for row in rows(path("before"))] == [0], "a run can stop before its first step")
ucas("train", "--resume", path("before"), "--train.max_hours", 0)
check([row["training/global_step"] for row in rows(path("before"))] == [0, 1, 2], "and goes on, each step once")

# The number of threads changes no bit of a run, before a resume or after it, under Muon neither.
ucas(*train_words(path("one-thread"), "--train.steps", 1, "--threads", 1))
ucas(*train_words(path("two-threads"), "--train.steps", 2, "--threads", 2))
a, b = (path(name, "rollouts", "step-0000001.jsonl") for name in ("one-thread", "two-threads"))
check(same_bytes(a, b), "responses do not depend on the number of threads")
check(rows(path("policy"))[1]["rollout/logprob_diff_max"] == 0, "sampler and trainer agree bit for bit")
ucas("train", "--resume", path("one-thread"), "--threads", 2, "--train.steps", 2)
a, b = (path(name, "checkpoints", "step-0000002", "model.safetensors") for name in ("one-thread", "two-threads"))
check(same_bytes(a, b), "weights do not depend on the number of threads")
ucas(*train_words(path("scored"), "--train.steps", 2, "--rollout.old_log_prob", "trainer"))
check(same_bytes(a, path("scored", "checkpoints", "step-0000002", "model.safetensors")),
      "the sampler's log-probs are those of a pass of the trainer")
shares = [rows(path(name))[-1]["rollout/checked_share"] for name in ("two-threads", "scored")]
check(0 < shares[0] < 0.5 and shares[1] == 1, "and such a pass is not made")
ucas(*train_words(path("muon-one"), "--train.steps", 1, "--threads", 1, "--optimizer.kind", "muon"))
ucas(*train_words(path("muon-two"), "--train.steps", 2, "--threads", 2, "--optimizer.kind", "muon"))
ucas("train", "--resume", path("muon-one"), "--threads", 2, "--train.steps", 2)
of_muon = [path(name, "checkpoints", "step-0000002", "model.safetensors") for name in ("muon-one", "muon-two")]
check(same_bytes(*of_muon) and not same_bytes(of_muon[0], a), "nor do Muon's")
refused = ucas("train", "--resume", path("one-thread"), "--optimizer.lr", 1, expect=2)
check("optimizer.lr" in refused.stderr, "a changed option is refused by name")
with open(path("task", "train.jsonl"), "a") as data:
    data.write('{"id": "new", "problem": " a3 b*2.\\n", "answer": "6"}\n')
refused = ucas("train", "--resume", path("one-thread"), "--train.steps", 3, expect=2)
check("data" in refused.stderr, "changed data is refused by name")
clean()
