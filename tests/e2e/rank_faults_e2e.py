"""One of several ranks fails at its k-th collective, for every k of a training of one step: it throws, it ends without a word, or it
stands still. All others end with 70 and, where there is one, the text of the one that failed; what was begun goes on to the bits of an
undisturbed run. So do faults of a thread beside: gradients of blocks travel in one, and by a channel of their own weights of
blocks and responses of a step ahead. What it took is printed and decides nothing."""
import itertools
import os
import subprocess
import time

from support import (HANG, UCAS, SamplingServer, check, check_quietly, clean, fail, finish, path, rows, same_bytes, served_words, small_task,
                     start_ranks, train_words, ucas)

small_task()
STEP = os.path.join("checkpoints", "step-0000001")
SHARD = {"collective": "gradients", "channel1": "weights"}  # by the channel whose calls fail


def words(run, channel="collective"):
    return train_words(path(run), "--train.steps", 1, "--train.test_freq", 1, "--update.reduce", "micro", "--update.shard", SHARD[channel],
                       "--update.micro_batch_tokens", 256)


def started(run, size, victim, k, how, channel="collective", **more):
    return start_ranks(size, words(run, channel), of_rank={victim: {"env": {"UCAS_FAULT": f"{channel}@{victim}:{k}:0:{how}"}}}, **more)


def go_on(run, name, channel="collective"):
    """Whatever a fault left, the same command with --resume auto ends in the bits of one process."""
    ucas(*words(run, channel), "--resume", "auto")
    check(rows(path(run)) == rows(path("whole")), f"{name}: goes on to the same steps.jsonl")
    for file in ("model.safetensors", "state/optimizer.safetensors"):
        check(same_bytes(path(run, STEP, file), path("whole", STEP, file)), f"{name}: and to the same {file}")


def struck(size, victim, k, how, channel="collective"):
    """The run; None: that rank makes no such call."""
    run = f"{channel}-{how}-{size}-{victim}-{k}"
    ended = finish(started(run, size, victim, k, how, channel))
    if ended[0] == [0] * size:
        return None
    return all_end(run, ended, victim, f"{channel}@{victim}, call {k}" if how == "throw" else "")


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


def still(size, victim, k, channel="collective"):
    """It stands still; nothing closes a connection."""
    run = f"{channel}-still-{size}-{victim}-{k}"
    processes = started(run, size, victim, k, "stop", channel, UCAS_HEARTBEAT="5")
    if os.waitid(os.P_PID, processes[victim].pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT).si_code != os.CLD_STOPPED:
        fail(f"{run}: it ends before")
    began = time.monotonic()
    others = [rank for rank in range(size) if rank != victim]
    said = {rank: processes[rank].communicate(timeout=HANG)[1] for rank in others}
    took = time.monotonic() - began
    processes[victim].kill()
    processes[victim].communicate()
    check(all(processes[rank].returncode == 70 for rank in others), f"{run}: the others end with 70: {said}")
    check(any(f"rank {victim}: nothing was heard of it" in text for text in said.values()), f"{run}: one names it: {said}")
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
for channel, size, stride in (("collective", 2, 1), ("collective", 3, 9), ("channel1", 2, 1), ("channel1", 3, 4)):
    for k in itertools.count(1, stride):
        run = struck(size, k % size, k, "throw", channel)
        if run is None:
            break
        if k % 11 == 1:
            go_on(run, run, channel)
        check(struck(size, (k + 1) % size, k, "exit", channel) is not None, "all ranks make a call")
        last[channel, size] = k
        number += 2
    check(last[channel, size] > (29 if channel == "collective" else 7), f"{size} ranks: {last[channel, size]} calls of a step by {channel}, or a few more")
print(f"{number} ranks that failed: all ended, in {time.monotonic() - began:.0f} s together")
of_weights, last = last["channel1", 2], last["collective", 2]
for size, victim, k, channel in ((2, 1, 3, "collective"), (2, 0, last // 3, "collective"), (2, 1, last // 2, "collective"),
                                 (2, 0, last - 2, "collective"), (3, 2, last // 2, "collective"), (2, 1, of_weights // 2, "channel1")):
    run, took = still(size, victim, k, channel)
    print(f"{run}: the others ended {took:.1f} s after it stood still")
for size, victim, k in ((2, 1, last // 2), (3, 2, last // 3), (2, 0, last // 2)):
    hangs(size, victim, k)
go_on(run, run, channel)

# Responses of a step ahead, of which a thread beside the step asks a server.
server = SamplingServer()
for victim, k, how in ((0, 1, "throw"), (1, 2, "throw"), (1, 3, "exit"), (0, 4, "exit")):
    run = f"ahead-{how}-{victim}-{k}"
    ahead = served_words(run, [server], "--train.steps", 2, "--rollout.off_policy_steps", 1)
    all_end(run, finish(start_ranks(2, ahead, of_rank={victim: {"env": {"UCAS_FAULT": f"channel1@{victim}:{k}:0:{how}"}}})), victim,
            f"channel1@{victim}, call {k}" if how == "throw" else "")
server.stop()

# By the launcher: the text of the rank that failed comes first.
done = subprocess.run([UCAS, *map(str, words("launched")), "--ranks", "2"], capture_output=True, text=True, timeout=HANG,
                      env={**os.environ, "UCAS_FAULT": f"collective@1:{last // 2}:0:throw"})
errors = [line for line in done.stderr.splitlines() if "UCAS_FAULT" in line or "error[" in line or "ended with" in line]
check(done.returncode in (74, 70) and errors and "UCAS_FAULT: collective@1" in "".join(errors[:2]), f"the launcher says why: {done.returncode} {errors}")
go_on("launched", "launched")
clean()
