"""Samples of servers under several ranks: the bits of one process, also where a rank is killed, a server is gone or weights do not arrive, and the run goes on with another number of ranks."""
import json
import os
import signal

from support import (SamplingServer, check, clean, finish, path, rows, served_words, small_task, start_ranks, tensors_of, ucas,
                     wait_for_step)

STEPS = 4
small_task()


def words(run, server, *more):
    return served_words(run, [server], "--train.steps", STEPS, *more)


def same_run(a, b, name):
    at = os.path.join("checkpoints", f"step-{STEPS:07d}")
    check(tensors_of(path(a, at)) == tensors_of(path(b, at)), f"{name}: weights and moments are the same")
    without = lambda run: [{k: v for k, v in r.items() if k != "rollout/retries"} for r in rows(path(run))]
    check(without(a) == without(b), f"{name}: steps.jsonl is the same")


server = SamplingServer()
ucas(*words("one", server))
codes, said = finish(start_ranks(2, words("ranks", server)))
check(codes == [0, 0], f"two ranks ask one server: {said[0][-300:]}")
same_run("ranks", "one", "two ranks")
# Killed where nothing can be saved any more; one process goes on after two ranks, and two after one.
for name, before, after in (("killed", 1, 2), ("killed-of-two", 2, 1)):
    processes = start_ranks(before, words(name, server), UCAS_FAULT="step:2:0:stop", UCAS_HEARTBEAT="0")  # rank 0, and with it the others, waits after step 2
    check(wait_for_step(path(name), 2, processes[0]), f"{name}: step 2 is reached")
    processes[-1].kill()
    processes[0].send_signal(signal.SIGCONT)
    codes, _ = finish(processes)
    check(codes[-1] == -9 and codes[:-1] == [70] * (before - 1), f"{name}: one is killed, and no other goes on: {codes}")
    codes, said = finish(start_ranks(after, ["train", "--resume", path(name)]))
    check(codes == [0] * after, f"{name}: {after} go on: {said[0][-300:]}")
    same_run(name, "one", f"{name}, gone on with")

# The server is gone in the middle: rank 0 or another says so, none goes on; and goes on with another server.
processes = start_ranks(2, words("gone", server, "--rollout.retries", 1, "--rollout.patience", 2), UCAS_FAULT="step:2:0:stop", UCAS_HEARTBEAT="0")
check(wait_for_step(path("gone"), 2, processes[0]), "a run of two ranks reaches step 2")
server.stop()
processes[0].send_signal(signal.SIGCONT)
codes, said = finish(processes)
check(sorted(codes) in ([70, 75], [75, 75]), f"a server that is gone ends both ranks: {codes}")
check(any("error[server]" in text for text in said), "and it is said")
server = SamplingServer()
codes, said = finish(start_ranks(2, ["train", "--resume", path("gone"), "--rollout.servers", server.address]))
check(codes == [0, 0], f"two ranks go on with another server: {said[0][-300:]}")
same_run("gone", "one", "a server that was gone")
server.stop()

# Weights that were acknowledged and did not arrive.
server = SamplingServer("--fault", "ignore")
codes, said = finish(start_ranks(2, words("ignored", server)))
server.stop()
check(codes == [75, 70] and "are still those of the weights before" in said[0], f"two ranks find out undelivered weights: {codes}")
check("rank 1 of 2: " in said[1] and "another rank ended" in said[1], "the other rank says that one ended")
server = SamplingServer()
codes, said = finish(start_ranks(2, ["train", "--resume", path("ignored"), "--rollout.servers", server.address]))
check(codes == [0, 0], f"and go on with a server that delivers: {said[0][-300:]}")
server.stop()
same_run("ignored", "one", "undelivered weights")
clean()
