"""One of several ranks fails at its k-th collective, for every k of a training of one step: it throws, it ends without a word, or it
stands still. All others end with 70 and, where there is one, the text of the one that failed; what was begun goes on to the bits of an
undisturbed run. What it took is printed and decides nothing."""
import itertools
import os
import subprocess
import time

from support import HANG, UCAS, check, check_quietly, clean, fail, finish, path, rows, same_bytes, small_task, start_ranks, train_words, ucas

small_task()
STEP = os.path.join("checkpoints", "step-0000001")


def words(run):
    return train_words(path(run), "--train.steps", 1, "--train.test_freq", 1, "--update.reduce", "micro", "--update.shard", "gradients",
                       "--update.micro_batch_tokens", 256)


def started(run, size, victim, k, how, **more):
    return start_ranks(size, words(run), of_rank={victim: {"env": {"UCAS_FAULT": f"collective@{victim}:{k}:0:{how}"}}}, **more)


def go_on(run, name):
    """Whatever a fault left, the same command with --resume auto ends in the bits of one process."""
    ucas(*words(run), "--resume", "auto")
    check(rows(path(run)) == rows(path("whole")), f"{name}: goes on to the same steps.jsonl")
    for file in ("model.safetensors", "state/optimizer.safetensors"):
        check(same_bytes(path(run, STEP, file), path("whole", STEP, file)), f"{name}: and to the same {file}")


def struck(size, victim, k, how):
    """The run; None: that rank makes no such call."""
    run = f"{how}-{size}-{victim}-{k}"
    ended = finish(started(run, size, victim, k, how))
    if ended[0] == [0] * size:
        return None
    return all_end(run, ended, victim, f"collective@{victim}, call {k}" if how == "throw" else "")


def all_end(run, ended, victim, thrown):
    codes, said = ended
    size = len(codes)
    others = [rank for rank in range(size) if rank != victim]
    check(codes[victim] == (74 if thrown else 70), f"{run}: the rank that fails ends with its own code: {codes} {said[victim][-300:]}")
    check(all(codes[rank] == 70 for rank in others), f"{run}: the others end with 70: {codes} {[text[-300:] for text in said]}")
    check(all("another rank ended" in said[rank] for rank in others), f"{run}: and say that one is gone: {[said[rank][-300:] for rank in others]}")
    if thrown:
        text = f"UCAS_FAULT: {thrown}"
        check(said[victim].count(text) == 1, f"{run}: its text is said: {said[victim][-300:]}")
        check(all(f"rank {victim}: {text}" in said[rank] for rank in others), f"{run}: by the others, too: {[said[rank][-300:] for rank in others]}")
    return run


def still(size, victim, k):
    """It stands still; nothing closes a connection."""
    run = f"still-{size}-{victim}-{k}"
    processes = started(run, size, victim, k, "stop", UCAS_HEARTBEAT="5")
    if os.waitid(os.P_PID, processes[victim].pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT).si_code != os.CLD_STOPPED:
        fail(f"{run}: it ends before")
    began = time.monotonic()
    others = [rank for rank in range(size) if rank != victim]
    said = {rank: processes[rank].communicate(timeout=HANG)[1] for rank in others}
    took = time.monotonic() - began
    processes[victim].kill()
    processes[victim].communicate()
    check(all(processes[rank].returncode == 70 for rank in others), f"{run}: the others end with 70: {said}")
    check(any(f"rank {victim}: no heartbeat" in text for text in said.values()), f"{run}: one names it: {said}")
    return run, took


def hangs(size, victim, k):
    """It hangs in its own work, and its heartbeat goes on: it is named, by rank 0, and no one is ended for it."""
    processes = started(f"hangs-{size}-{victim}-{k}", size, victim, k, "hang", UCAS_HEARTBEAT="3")
    said = ""
    while "the others have waited" not in said:
        line = processes[0].stderr.readline()
        check_quietly(line != "", f"rank 0 goes on until it has said who is waited for: {said}")
        said += line
    line = said.splitlines()[-1]
    check(f"in call {k}, " in line and f"for rank {victim} of {size} (last in call {k - 1}, " in line, f"a rank that hangs is named: {line}")
    check(all(process.poll() is None for process in processes), "and no rank is ended for it")
    processes[victim].kill()
    codes, rest = finish(processes)
    others = [rank for rank in range(size) if rank != victim]
    check(all(codes[rank] == 70 for rank in others), f"until it is gone: {codes} {rest}")


ucas(*words("whole"))
began, number = time.monotonic(), 0
last = {}
for size, stride in ((2, 1), (3, 9)):
    for k in itertools.count(1, stride):
        run = struck(size, k % size, k, "throw")
        if run is None:
            break
        if k % 11 == 1:
            go_on(run, run)
        check(struck(size, (k + 1) % size, k, "exit") is not None, "all ranks make a call")
        last[size] = k
        number += 2
    check(last[size] > 29, f"{size} ranks: {last[size]} calls of a step, or a few more")
print(f"{number} ranks that failed: all ended, in {time.monotonic() - began:.0f} s together")
last = last[2]
for size, victim, k in ((2, 1, 3), (2, 0, last // 3), (2, 1, last // 2), (2, 0, last - 2), (3, 2, last // 2)):
    run, took = still(size, victim, k)
    print(f"{run}: the others ended {took:.1f} s after it stood still")
for size, victim, k in ((2, 1, last // 2), (3, 2, last // 3), (2, 0, last // 2)):
    hangs(size, victim, k)
go_on(run, run)

# By the launcher: the text of the rank that failed comes first.
done = subprocess.run([UCAS, *map(str, words("launched")), "--ranks", "2"], capture_output=True, text=True, timeout=HANG,
                      env={**os.environ, "UCAS_FAULT": f"collective@1:{last // 2}:0:throw"})
errors = [line for line in done.stderr.splitlines() if "UCAS_FAULT" in line or "error[" in line or "ended with" in line]
check(done.returncode == 74 and errors and "UCAS_FAULT: collective@1" in "".join(errors[:2]), f"the launcher says why: {done.returncode} {errors}")
go_on("launched", "launched")
clean()
