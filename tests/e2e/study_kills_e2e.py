"""A study and an evaluation are killed at random moments, again and again, each time with all that they started, and begun again by
the same command; the tables, figures, weights, moments and responses are in the end those of an undisturbed one, byte for byte.
With --seed N another row of moments; --kills N at most so many (6)."""
import os
import random
import signal
import subprocess
import sys
import time

from support import UCAS, check, clean, fail, path, same_bytes, small_task, ucas, wait_until

STUDY = """
title = "Killed"
kind = ["ablation", "dynamics"]
seeds = 1
runs = ["dapo-tiny", "ucas-tiny"]
threads = 1
[all]
train.steps = 4
train.save_freq = 2
train.test_freq = 2
data.train_batch_size = 4
data.gen_batch_size = 6
update.mini_batch_size = 2
rollout.n = 4
objective.keep_mixed_groups = false
[base]
task = "register_chains"
sft_worked_steps = 20
sft_mixed_steps = 5
test_problems = 8
[evaluate]
samples = 4
ks = [1, 4]
"""


def option(name, default):
    return int(sys.argv[sys.argv.index(name) + 1]) if name in sys.argv else default


KILLS = option("--kills", 6)
draw = random.Random(option("--seed", 1))


def kill_session(session):
    """All at once, the processes that a study started, too: those in groups of their own."""
    while True:
        alive = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/stat") as stat:
                    state, _, _, its_session = stat.read().rpartition(")")[2].split()[:4]
            except OSError:
                continue
            if int(its_session) == session and state != "Z":
                alive.append(int(name))
        if not alive:
            return
        for pid in alive:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def progress(*folders):
    """How far they are, whatever the machine: the files that there are and the lines of the logs among them."""
    count = 0
    for folder in folders:
        for name in (os.path.join(d, n) for d, _, names in os.walk(folder) for n in names):
            count += 1
            if name.endswith(".jsonl"):
                try:
                    with open(name, "rb") as file:
                        count += file.read().count(b"\n")
                except OSError:  # it has just been renamed
                    pass
    return count


def until_done(words, folders, whole, kills):
    """Started again after each kill; how often it was killed. The moments are shares of `whole`, the progress of an undisturbed one."""
    moments, killed = sorted(draw.uniform(0, 0.95 * whole) for _ in range(kills)), 0
    while True:
        process = subprocess.Popen([UCAS, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
        if moments and wait_until(lambda: progress(*folders) >= moments[0], process):
            time.sleep(draw.uniform(0, 0.05))  # between two files, too
        if moments and process.poll() is None:
            kill_session(process.pid)
            process.communicate()
            killed += 1
            moments = [moment for moment in moments[1:] if moment > progress(*folders)]
            continue
        _, said = process.communicate()
        if process.returncode != 0:
            fail(f"after {killed} kills: exit {process.returncode}\n{said.decode()}")
        return killed


def files(folder, *endings):
    return sorted(os.path.relpath(os.path.join(d, name), folder) for d, _, names in os.walk(folder) for name in names
                  if name.endswith(endings))


def check_same(one, other, *endings):
    listed = files(one, *endings)
    if listed != files(other, *endings):
        fail(f"other files: {set(listed) ^ set(files(other, *endings))}")
    different = [name for name in listed if not same_bytes(os.path.join(one, name), os.path.join(other, name))]
    if different:
        fail(f"other bytes: {different}")
    return len(listed)


with open(path("killed.toml"), "w") as file:
    file.write(STUDY)


def words(pool):
    return ["study", path("killed.toml"), "--out", path(pool + "-out"), "--pool", path(pool)]


ucas(*words("whole"))
# First while its task is written, at the rename of each file.
for number in range(1, 9):
    ended = subprocess.run([UCAS, *map(str, words("killed"))], capture_output=True, env={**os.environ, "UCAS_FAULT": f"rename:{number}:0:kill"})
    check(ended.returncode == -signal.SIGKILL, f"killed at rename {number}")
check(not files(path("killed"), "task.toml"), "a task is whole with its last file")
killed = until_done(words("killed"), (path("killed"), path("killed-out")), progress(path("whole"), path("whole-out")), KILLS)
check(not [name for name in files(path("killed"), "") if ".tmp-" in name], "nothing is left of them")
check(True, f"the study was killed {killed} times")
tables = check_same(path("whole-out"), path("killed-out"), ".md", ".csv", ".svg")
check(tables > 3, f"the same bytes: {tables} tables and figures")
weights = check_same(path("whole"), path("killed"), ".safetensors", ".outputs.jsonl", "eval/test.json")
check(weights > 4, f"the same bytes: {weights} files of weights, moments and responses")

small_task()
evaluation = ["evaluate", path("base"), "--data", path("task", "test.jsonl"), "--template", "plain", "--samples", 16, "--max_tokens", 24]
ucas(*evaluation, "--out", path("evaluated"))
killed = until_done([*evaluation, "--out", path("torn")], (path("torn"),), progress(path("evaluated")), KILLS)
check(True, f"the evaluation was killed {killed} times")
same = check_same(path("evaluated", "base", "eval"), path("torn", "base", "eval"), "test.json", ".jsonl")
check(same == 3, f"the same bytes: {same} files of an evaluation")
clean()
