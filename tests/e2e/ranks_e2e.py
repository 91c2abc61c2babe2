"""Several processes train what one would: the same bits in order, the same learning by sums; one that dies ends all."""
import os
import random
import signal
import socket
import subprocess
import time

from support import UCAS, check, path, rows, same_bytes, small_task, train_words, wait_for_step

STEPS = 6
SMALL = ["--update.micro_batch_tokens", 64, "--train.stored_signals", 2, "--train.save_freq", 2]
small_task()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(size, words):
    port = free_port()
    environment = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    return [subprocess.Popen([UCAS, *map(str, words)], env={**os.environ, **environment, "RANK": str(rank)},
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for rank in range(size)]


def finish(processes):
    said = [process.communicate(timeout=120) for process in processes]
    return [process.returncode for process in processes], [errors for _, errors in said]


def words(run, *more):
    return train_words(run, "--train.steps", STEPS, *SMALL, *more)


def same_run(a, b, name, steps=(2, 4, STEPS), whole=True):
    for step in steps:
        for file in ("model.safetensors", "state/optimizer.safetensors", "state/state.json"):
            at = os.path.join("checkpoints", f"step-{step:07d}", file)
            if os.path.exists(os.path.join(b, at)):
                check(same_bytes(os.path.join(a, at), os.path.join(b, at)), f"{name}: {at} is the same")
    if not whole:
        return
    check(rows(a) == rows(b), f"{name}: steps.jsonl is the same")
    for step in (1, 2):
        at = os.path.join("signals", f"step-{step:07d}.jsonl")
        check(same_bytes(os.path.join(a, at), os.path.join(b, at)), f"{name}: {at} is the same")


codes, _ = finish(start(1, words(path("one"), "--update.reduce", "ordered")))
check(codes == [0], "one process trains")

for size in (2, 4):
    run = path(f"ordered-{size}")
    codes, said = finish(start(size, words(run, "--update.reduce", "ordered")))
    check(codes == [0] * size, f"{size} processes train in order")
    check(all(text == "" for text in said[1:]), f"{size} processes: rank 0 alone speaks")
    same_run(run, path("one"), f"{size} processes, ordered")

# What is computed of every token by passes of the trainer, of the policy and of a reference, is shared out to the bit, too.
SCORED = ("--update.reduce", "ordered", "--rollout.old_log_prob", "trainer", "--objective.kl_coeff", 0.01)
for size in (1, 3):
    codes, _ = finish(start(size, words(path(f"scored-{size}"), *SCORED)))
    check(codes == [0] * size, f"{size} processes score")
same_run(path("scored-3"), path("scored-1"), "3 processes, log-probs by the trainer and of a reference")

run = path("sum")
codes, _ = finish(start(2, words(run)))
check(codes == [0, 0], "two processes train by sums")
a, b = ([r for r in rows(of) if r["training/global_step"] > 0] for of in (run, path("one")))
check(a[0]["response_length/mean"] == b[0]["response_length/mean"],
      "two processes draw the first step's samples")
check(all(abs(x["actor/grad_norm"] - y["actor/grad_norm"]) < 1e-3 * (1 + y["actor/grad_norm"])
          for x, y in zip(a[:3], b[:3]) if "actor/grad_norm" in y), "their sums have the same norms")

# Stopped, and gone on with by another number of processes.
run = path("moved")
processes = start(2, words(run, "--update.reduce", "ordered"))
check(wait_for_step(run, 2, processes[0]), "two processes reach step 2")
processes[1].send_signal(signal.SIGTERM)
codes, _ = finish(processes)
check(codes in ([75, 75], [0, 0]), "a stop of one stops both, saved")
codes, said = finish(start(3, ["train", "--resume", run]))
check(codes == [0, 0, 0], f"three go on: {said[0][-300:]}")
same_run(run, path("one"), "two, then three processes")

# 2 -> 1 -> 4, each to a step of its own.
run = path("handed-on")
for size, last, first in ((2, 2, words(run, "--update.reduce", "ordered")), (1, 4, ["train", "--resume", run]),
                          (4, STEPS, ["train", "--resume", run])):
    codes, said = finish(start(size, [*first, "--train.steps", last]))
    check(codes == [0] * size, f"{size} train to step {last}: {said[0][-300:]}")
same_run(run, path("one"), "two, one, then four processes", whole=False)

# Any of them is killed at any moment: the others end, and another number goes on.
KILLS, slowest = int(os.environ.get("UCAS_TEST_KILLS", 5)), 0
moment = random.Random(19)
run = path("killed")
begin, reached = words(run, "--update.reduce", "ordered", "--train.steps", 4000), 0
for kill in range(KILLS):
    size = moment.choice((2, 3, 4))
    processes = start(size, begin)
    check(wait_for_step(run, reached + 2, processes[0]), f"{size} processes reach step {reached + 2}")
    time.sleep(moment.uniform(0, 0.7))
    victim = moment.randrange(size)
    processes[victim].kill()
    began = time.time()
    codes, said = finish(processes)
    slowest = max(slowest, time.time() - began)
    others = [rank for rank in range(size) if rank != victim]
    check(time.time() - began < 30 and all(codes[rank] == 70 for rank in others), f"rank {victim} of {size} dies, the others within 30 s: {codes}")
    check(all(f"rank {rank} of {size}: " in said[rank] and "another rank ended" in said[rank] for rank in others),
          f"and say that one is gone: {[said[rank][-250:] for rank in others]}")
    begin = ["train", "--resume", run]
    reached = rows(run)[-1]["training/global_step"]
last = reached + 2 + reached % 2
codes, said = finish(start(1, [*begin, "--train.steps", last]))
check(codes == [0], f"one goes on after {KILLS} kills: {said[0][-300:]}")
codes, _ = finish(start(1, words(path("spared"), "--update.reduce", "ordered", "--train.steps", last)))
check(codes == [0], "one that nobody killed")
same_run(run, path("spared"), f"{KILLS} kills", steps=(last,), whole=False)
print(f"{KILLS} kills, {last} steps: all others ended within {slowest:.2f} s")
