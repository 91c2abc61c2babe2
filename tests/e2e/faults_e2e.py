"""I/O under fire: a training, a fine-tuning and an evaluation are killed, or a call fails, at one I/O call after the other (UCAS_FAULT of
src/base/files/file.h); the command that is due then goes on and ends in the same bytes as an undisturbed run, without leftovers, and no logged
step but the last was lost. What a fault of the machine ends is exit 74, never the 2 of a bad input. What was interrupted is then started
on a disk that fails from its n-th call on, for n = 1, 2, 4 ... With --every at each write, fsync, rename, mkdir and unlink (and every
seventh of them failing otherwise); without, at some calls. Names of commands after it: those alone."""
import filecmp
import os
import re
import shutil
import signal
import subprocess
import sys

from support import HANG, UCAS, check, clean, fail, path, rows, small_task, train_words, ucas

EVERY = "--every" in sys.argv
OPERATIONS = ["write", "fsync", "rename", "mkdir", "unlink"] if EVERY else ["any"]
KINDS = {"kill": "0:kill", "EIO": "5", "full, for good": "28:sticky", "a short write": "28:short"}
LEFTOVER = re.compile(r"\.(tmp|partial|trash)-|\.run$")
small_task()


def same_tree(a, b):
    """Names and bytes, but for what a clock says."""
    both = filecmp.dircmp(a, b, ignore=[])
    names = both.left_only + both.right_only
    _, different, unread = filecmp.cmpfiles(a, b, both.common_files, shallow=False)
    return names + different + unread + [f for d in both.common_dirs for f in same_tree(os.path.join(a, d), os.path.join(b, d))]


def leftovers(folder):
    return [os.path.join(d, n) for d, dirs, files in os.walk(folder) for n in dirs + files if LEFTOVER.search(n)]


def last_step(run):
    try:
        lines = open(os.path.join(run, "steps.jsonl")).read().split("\n")[:-1]
    except OSError:
        return 0
    return int(re.search(r'"training/global_step": ?(\d+)', lines[-1])[1]) if lines else 0


class Training:
    stride = 241

    def words(self, out):
        return train_words(out, "--train.save_freq", 1, "--train.steps", 3, "--train.test_freq", 0)

    def go_on(self, out):
        return ["train", "--resume", out] if os.path.exists(os.path.join(out, "config.toml")) else self.words(out)

    def differences(self, out, whole):
        a, b = (os.path.join(r, "checkpoints", "step-0000003") for r in (out, whole))
        return same_tree(a, b) + ([] if rows(out) == rows(whole) else ["steps.jsonl"])


class FineTuning:
    stride = 223

    def words(self, out):
        return ["sft", "--model", path("base"), "--data", f"{path('task', 'sft_mixed.jsonl')},{path('task', 'sft_worked.jsonl')}", "--steps",
                "4,5", "--batch_size", 16, "--save_freq", 2, "--optimizer.lr", "1e-3", "--out", out]

    def go_on(self, out):
        return ["--version"] if os.path.exists(out) and not os.path.exists(out + ".run") else self.words(out)  # what is whole is refused

    def differences(self, out, whole):
        return same_tree(out, whole)


class Evaluation:
    stride = 61

    def words(self, out):
        return ["evaluate", path("base"), "--data", path("task", "test.jsonl"), "--template", "plain", "--samples", 4, "--max_tokens", 24, "--out",
                out]

    go_on = words

    def differences(self, out, whole):
        return [name for name in ("test.outputs.jsonl", "test.jsonl", "test.json")
                if not filecmp.cmp(*(os.path.join(r, "base", "eval", name) for r in (out, whole)), shallow=False)]


def strike(what, name, kind, operation):
    """Faults at one call after the other until a run passes untouched; how many there were."""
    stride = (1 if kind == "kill" else 7) if EVERY else what.stride if kind == "kill" else what.calls
    number, struck = (1 if EVERY else 1 + stride // 2), 0
    while kind == "kill" or number <= what.calls:
        out = path(f"{name}-struck")
        for leftover in (out, out + ".run"):
            shutil.rmtree(leftover, ignore_errors=True)
        fault = f"{operation}:{number}:{KINDS[kind]}"
        done = subprocess.run([UCAS, *map(str, what.words(out))], capture_output=True, text=True, timeout=HANG,
                              env=dict(os.environ, UCAS_FAULT=fault))
        ended = done.returncode
        if ended not in ((0, -signal.SIGKILL) if kind == "kill" else (0, 74)):
            fail(f"{name} under {fault}: exit {ended}\n{done.stderr}")
        if ended == 0 and kind == "kill":
            return struck
        struck += 1
        if ended != 0:
            before = last_step(out)
            again = subprocess.run([UCAS, *map(str, what.go_on(out))], capture_output=True, text=True, timeout=HANG)
            if again.returncode == 2 and "holds no checkpoint" in again.stderr:  # none could be saved, and the log goes on: it asks first
                again = subprocess.run([UCAS, *map(str, what.go_on(out)), "--allow-changes"], capture_output=True, text=True,
                                       timeout=HANG)
            if again.returncode != 0:
                fail(f"{name} after {fault}: exit {again.returncode}\n{again.stderr}")
            taken = re.search(r"resuming \S+ after step (\d+)", again.stderr)
            if taken and int(taken[1]) < before - 1 and kind != "full, for good":  # then it logs while it tries to save again
                fail(f"{name} after {fault}: {before} steps were logged, it went on after {taken[1]}")
        if different := what.differences(out, path(name)):
            fail(f"{name} after {fault}: not the undisturbed run's: {different}")
        if ended != 0 and (left := leftovers(out) + [n for n in os.listdir(path()) if LEFTOVER.search(n)]):
            fail(f"{name} after {fault}: left behind: {left}")
        if kind == "kill":
            what.calls = number
        number += stride
    return struck


def start_on_a_bad_disk(what, name):
    """Killed half way, then started where every call from the n-th on fails: the same end once the disk answers again."""
    out, half, number, starts = path(f"{name}-struck"), path(f"{name}-half"), 1, 0
    shutil.rmtree(half, ignore_errors=True)
    subprocess.run([UCAS, *map(str, what.words(half))], capture_output=True, timeout=HANG,
                   env=dict(os.environ, UCAS_FAULT=f"any:{what.calls // 2}:0:kill"))
    while True:
        for ending in ("", ".run"):  # of a fine-tuning
            shutil.rmtree(out + ending, ignore_errors=True)
            if os.path.isdir(half + ending):
                shutil.copytree(half + ending, out + ending)
        done = subprocess.run([UCAS, *map(str, what.go_on(out))], capture_output=True, text=True, timeout=HANG,
                              env=dict(os.environ, UCAS_FAULT=f"any:{number}:{28 if starts % 2 else 5}:sticky"))
        if done.returncode == 0:
            break
        if done.returncode != 74:
            fail(f"{name}, a start with every call from {number} on failing: exit {done.returncode}\n{done.stderr}")
        ucas(*what.go_on(out))
        if different := what.differences(out, path(name)):
            fail(f"{name}, a start with every call from {number} on failing: not the undisturbed run's: {different}")
        starts, number = starts + 1, number + 7 if EVERY else number * 2
    for leftover in [path(n) for n in os.listdir(path()) if re.match(rf"\.?{name}-half(\.|$)", n)]:
        shutil.rmtree(leftover) if os.path.isdir(leftover) else os.remove(leftover)
    return starts


commands = {"training": Training(), "fine-tuning": FineTuning(), "evaluation": Evaluation()}
asked = [word for word in sys.argv[2:] if word in commands] or list(commands)
for name in asked:
    ucas(*commands[name].words(path(name)))
    for operation in OPERATIONS:
        commands[name].calls = 0
        for kind in KINDS:
            struck = strike(commands[name], name, kind, operation)
            check(struck > 0 or operation in ("mkdir", "unlink"),
                  f"{name}, {operation}, {kind}: at {struck} calls, the same in the end")
        if operation == OPERATIONS[0]:
            struck = start_on_a_bad_disk(commands[name], name)
            check(struck > 3, f"{name}, started {struck} times on a disk that fails for good: exit 74, the same in the end")
clean()
