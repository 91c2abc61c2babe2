"""Several processes train what one would: the same bits by micro-batches (tests/e2e/micro_ranks_e2e.py has the whole matrix), the same
learning by sums; one that dies ends all. With --short the first of it."""
import os
import random
import signal
import sys

from support import check, clean, finish, path, rows, same_bytes, same_checkpoint, small_task, start_ranks as start, train_words, wait_for_step

STEPS = 6
SHORT = "--short" in sys.argv
SMALL = ["--update.micro_batch_tokens", 64, "--train.stored_signals", 2, "--train.save_freq", 2]
small_task()


def words(run, *more):
    return train_words(run, "--train.steps", STEPS, *SMALL, *more)


def same_run(a, b, name, steps=(2, 4, STEPS), whole=True, config=True):
    """`config`: they have the same one, which state.json keeps a mark of."""
    for step in steps:
        at = os.path.join("checkpoints", f"step-{step:07d}")
        if os.path.exists(os.path.join(b, at)):
            same_checkpoint(os.path.join(a, at), os.path.join(b, at), name, config)
    if not whole:
        return
    check(rows(a) == rows(b), f"{name}: steps.jsonl is the same")
    for step in (1, 2):
        at = os.path.join("signals", f"step-{step:07d}.jsonl")
        check(same_bytes(os.path.join(a, at), os.path.join(b, at)), f"{name}: {at} is the same")


def stopped_and_gone_on_with():
    """By another number of processes."""
    run = path("moved")
    processes = start(2, words(run, "--update.reduce", "micro"))
    check(wait_for_step(run, 2, processes[0]), "two processes reach step 2")
    processes[1].send_signal(signal.SIGTERM)
    codes, _ = finish(processes)
    check(codes in ([75, 75], [0, 0]), "a stop of one stops both, saved")
    codes, said = finish(start(3, ["train", "--resume", run]))
    check(codes == [0, 0, 0], f"three go on: {said[0][-300:]}")
    same_run(run, path("one"), "two, then three processes")


codes, _ = finish(start(1, words(path("one"), "--update.reduce", "micro")))
check(codes == [0], "one process trains")

for size in (2,) if SHORT else (2, 4):
    run = path(f"micro-{size}")
    codes, said = finish(start(size, words(run, "--update.reduce", "micro")))
    check(codes == [0] * size, f"{size} processes train by micro-batches")
    check(all(text == "" for text in said[1:]), f"{size} processes: rank 0 alone speaks")
    same_run(run, path("one"), f"{size} processes, by micro-batches")

# A block's gradients at a time, in narrower numbers, on three.
NARROW = ("--update.reduce", "micro", "--train.steps", 2, "--dtype", "bf16", "--update.recompute", "block", "--optimizer.moments", "int8")
for size, shard in ((1, "moments"), (3, "gradients")):
    codes, said = finish(start(size, words(path(f"narrow-{size}"), *NARROW, "--update.shard", shard)))
    check(codes == [0] * size, f"{size} processes, bf16: {said[0][-300:]}")
same_run(path("narrow-3"), path("narrow-1"), "3 processes, bf16", steps=(2,), config=False)

stopped_and_gone_on_with()
if SHORT:
    clean()
    sys.exit(0)

# Long responses of fewer prompts than share out, with all that is noted of their tokens.
LONG = ("--update.reduce", "micro", "--rollout.response_length", 200, "--rollout.temperature", 2, "--rollout.top_p", 0.95,
        "--rollout.n", 64, "--data.train_batch_size", 3, "--data.gen_batch_size", 3)
for size in (1, 2, 4):
    codes, said = finish(start(size, words(path(f"long-{size}"), *LONG)))
    check(codes == [0] * size, f"{size} processes draw long responses: {said[0][-300:]}")
    same_run(path(f"long-{size}"), path("long-1"), f"{size} processes, long responses")

# What is computed of every token by passes of the trainer, of the policy and of a reference, is shared out to the bit, too.
SCORED = ("--update.reduce", "micro", "--rollout.old_log_prob", "trainer", "--objective.kl_coeff", 0.01)
for size in (1, 3):
    codes, _ = finish(start(size, words(path(f"scored-{size}"), *SCORED)))
    check(codes == [0] * size, f"{size} processes score")
same_run(path("scored-3"), path("scored-1"), "3 processes, log-probs by the trainer and of a reference")

for run, more in (("sum", ()), ("sharded-sum", ("--update.shard", "gradients"))):
    codes, _ = finish(start(2, words(path(run), *more)))
    check(codes == [0, 0], f"two processes train by sums: {run}")
a, b = ([r for r in rows(path(of)) if r["training/global_step"] > 0] for of in ("sum", "sharded-sum"))
check(all(abs(x["actor/grad_norm"] - y["actor/grad_norm"]) < 1e-5 * (1 + y["actor/grad_norm"]) for x, y in zip(a[:3], b[:3])
          if "actor/grad_norm" in y), "with shares of gradients the sums have the same norms")
# Sums of another number of ranks have other bits.
resumed = ["train", "--resume", path("sum"), "--train.steps", STEPS + 2]
for size, named in ((3, "ranks of a sum = 2, now ranks of a sum = 3"), (1, "ranks of a sum = 2, now there is no ranks of a sum")):
    codes, said = finish(start(size, resumed))
    check(codes == [2] * size and named in said[0] and "--allow-changes" in said[0], f"{size} are refused: {codes} {said[0][-300:]}")
codes, said = finish(start(3, [*resumed, "--allow-changes"]))
check(codes == [0] * 3, f"unless it is allowed: {said[0][-300:]}")

run = path("sum")
a, b = ([r for r in rows(of) if r["training/global_step"] > 0] for of in (run, path("one")))
check(a[0]["response_length/mean"] == b[0]["response_length/mean"],
      "two processes draw the first step's samples")
check(all(abs(x["actor/grad_norm"] - y["actor/grad_norm"]) < 1e-3 * (1 + y["actor/grad_norm"])
          for x, y in zip(a[:3], b[:3]) if "actor/grad_norm" in y), "their sums have the same norms")

# 4 -> 1 -> 3, each to a step of its own.
for run, more in ((path("handed-on"), ()), (path("handed-on-shares"), ("--update.shard", "gradients"))):
    for size, last, first in ((4, 2, words(run, "--update.reduce", "micro", *more)), (1, 4, ["train", "--resume", run]),
                              (3, STEPS, ["train", "--resume", run])):
        codes, said = finish(start(size, [*first, "--train.steps", last]))
        check(codes == [0] * size, f"{size} train to step {last}: {said[0][-300:]}")
    same_run(run, path("one"), "four, one, then three processes", whole=False, config=not more)

# Any of them is killed at any moment: the others end, and another number goes on.
KILLS = int(os.environ.get("UCAS_TEST_KILLS", 5))
moment = random.Random(19)


def killed(name, kills, *more):
    """Steps in all."""
    run = path(name)
    begin, reached = words(run, "--update.reduce", "micro", "--train.steps", 4000, *more), 0
    for _ in range(kills):
        size = moment.choice((2, 3, 4))
        processes = start(size, begin)
        goal = reached + 2 + moment.randrange(30)
        check(wait_for_step(run, goal, processes[0]), f"{size} processes reach step {goal}")
        victim = moment.randrange(size)
        processes[victim].kill()
        codes, said = finish(processes)
        others = [rank for rank in range(size) if rank != victim]
        check(all(codes[rank] == 70 for rank in others), f"rank {victim} of {size} dies, and the others end: {codes}")
        check(all(f"rank {rank} of {size}: " in said[rank] and "another rank ended" in said[rank] for rank in others),
              f"and say that one is gone: {[said[rank][-250:] for rank in others]}")
        begin = ["train", "--resume", run]
        reached = rows(run)[-1]["training/global_step"]
    last = reached + 2 + reached % 2
    codes, said = finish(start(1, [*begin, "--train.steps", last]))
    check(codes == [0], f"one goes on after {kills} kills: {said[0][-300:]}")
    codes, _ = finish(start(1, words(path(f"{name}-spared"), "--update.reduce", "micro", "--train.steps", last, *more)))
    check(codes == [0], "one that nobody killed")
    same_run(run, path(f"{name}-spared"), f"{name}, {kills} times", steps=(last,), whole=False)
    return last


last = killed("killed", KILLS)
killed("killed-sharded", (KILLS + 1) // 2, "--update.shard", "gradients")
print(f"{KILLS} kills, {last} steps: all others ended")
clean()
