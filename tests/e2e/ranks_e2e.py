"""Several processes train what one would: the same bits in order, the same learning by sums; one that dies ends all."""
import os
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


def same_run(a, b, name):
    for step in (2, 4, STEPS):
        for file in ("model.safetensors", "state/optimizer.safetensors", "state/state.json"):
            at = os.path.join("checkpoints", f"step-{step:07d}", file)
            if os.path.exists(os.path.join(b, at)):
                check(same_bytes(os.path.join(a, at), os.path.join(b, at)), f"{name}: {at} is the same")
    check(rows(a) == rows(b), f"{name}: steps.jsonl is the same")
    for step in (1, 2):
        at = os.path.join("signals", f"step-{step:07d}.jsonl")
        check(same_bytes(os.path.join(a, at), os.path.join(b, at)), f"{name}: {at} is the same")


codes, _ = finish(start(1, words(path("one"), "--update.reduce", "ordered")))
check(codes == [0], "one process trains")

for size in (2, 3):
    run = path(f"ordered-{size}")
    codes, said = finish(start(size, words(run, "--update.reduce", "ordered")))
    check(codes == [0] * size, f"{size} processes train in order")
    check(all(text == "" for text in said[1:]), f"{size} processes: rank 0 alone speaks")
    same_run(run, path("one"), f"{size} processes, ordered")

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

run = path("killed")
processes = start(3, words(run, "--train.steps", 4000))
check(wait_for_step(run, 2, processes[0]), "three processes reach step 2")
processes[1].kill()
began = time.time()
codes, said = finish(processes)
check(time.time() - began < 30 and codes[0] == 70 and codes[2] == 70, f"the others end within 30 s: {codes}")
check("rank 0 of 3" in said[0] and "another rank ended" in said[0], "and say that one is gone")
