"""`update.offload = "optimizer"` on the CPU, where buffers are copies: every file and the log of a run without it, alone and under two ranks,
and a run may go on with it or without it."""
import os

from support import check, clean, finish, path, rows, same_checkpoint, small_task, start_ranks, train_words, ucas

STEPS = 3
KINDS = {
    "f32": (),
    "bf16": ("--dtype", "bf16"),
    "int8-muon": ("--dtype", "bf16", "--optimizer.kind", "muon", "--optimizer.moments", "int8"),
    "bf16-moments": ("--optimizer.moments", "bf16"),
    "adapter": ("--dtype", "bf16", "--lora.rank", 4, "--lora.modules_to_save", "embed_tokens"),
}
OFFLOAD = ("--update.offload", "optimizer")
small_task()


def words(run, *more):
    return train_words(path(run), "--train.steps", STEPS, "--train.save_freq", 1, "--train.keep", 9, "--update.reduce", "micro",
                       "--update.micro_batch_tokens", 64, *more)


def same_run(a, b, config=True):
    check(rows(path(a)) == rows(path(b)), f"{a}: steps.jsonl is that of {b}")
    for step in range(1, STEPS + 1):
        at = os.path.join("checkpoints", f"step-{step:07d}")
        same_checkpoint(path(a, at), path(b, at), a, config)


for kind, more in KINDS.items():
    ucas(*words(kind, *more))
    ucas(*words(f"{kind}-offloaded", *more, *OFFLOAD))
    same_run(f"{kind}-offloaded", kind)
    codes, said = finish(start_ranks(2, words(f"{kind}-ranks", *more, *OFFLOAD)))
    check(codes == [0, 0], f"{kind}: two ranks train: {said[0][-300:]}")
    same_run(f"{kind}-ranks", kind)

# With it, without it, with it under two ranks.
ucas(*words("changes", *KINDS["bf16"], *OFFLOAD, "--train.steps", 1))
ucas("train", "--resume", path("changes"), "--update.offload", "none", "--train.steps", 2)
codes, said = finish(start_ranks(2, ["train", "--resume", path("changes"), *OFFLOAD, "--train.steps", STEPS]))
check(codes == [0, 0], f"two ranks go on: {said[0][-300:]}")
at = os.path.join("checkpoints", f"step-{STEPS:07d}")
same_checkpoint(path("changes", at), path("bf16", at), "with, without, with offload")

refused = ucas(*words("refused", "--dtype", "bf16", "--objective.kl_coeff", 0.1, "--reference.sync_steps", 1, *OFFLOAD), expect=2)
check("update.offload" in refused.stderr and not os.path.exists(path("refused")), "a reference that moves is refused beside it")
clean()
