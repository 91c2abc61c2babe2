"""`update.reduce = "micro"` over Gloo: every tensor and file of a checkpoint, and the log, are those of one process, for 2, 3 and 4 ranks, for
each level of shards, and for whatever else changes how gradients are made and used."""
import os

from support import check, clean, finish, path, rows, same_checkpoint, small_task, start_ranks, train_words

STEPS = 2
KINDS = {
    "f32": (),
    "bf16": ("--dtype", "bf16"),
    "lora": ("--lora.rank", 4),
    "int8": ("--optimizer.moments", "int8"),
    "muon": ("--optimizer.kind", "muon"),
    "recompute": ("--update.recompute", "block"),
    "together": ("--dtype", "bf16", "--update.recompute", "keep_attention", "--optimizer.moments", "int8", "--optimizer.kind", "muon",
                 "--lora.rank", 3, "--lora.modules_to_save", "embed_tokens", "--update.epochs", 2),
    "one": ("--update.micro_batch_tokens", 65536),  # micro-batch in each mini-batch: most ranks have none
    "silent": ("--objective.keep_mixed_groups", "false", "--method.name", "grpo"),  # responses that are only logged
    "chosen": ("--method.name", "clip_cov"),  # tokens, by the policy before each update
    "critic": ("--method.name", "ppo"),
    "prm": ("--method.name", "prime"),
}
small_task()


def trained(size, kind, shard):
    run = f"{kind}-{size}-{shard}"
    words = train_words(path(run), "--train.steps", STEPS, "--train.save_freq", 1, "--update.micro_batch_tokens", 64, "--update.reduce",
                        "micro", "--update.shard", shard, *KINDS[kind])
    codes, said = finish(start_ranks(size, words))
    check(codes == [0] * size, f"{run}: trains: {said[0][-300:]}")
    return path(run)


for kind in KINDS:
    one = trained(1, kind, "moments")
    for size in (2, 3, 4):
        shard = "moments" if size == 3 else "gradients"
        run = trained(size, kind, shard)
        check(rows(run) == rows(one), f"{run}: steps.jsonl is that of one process")
        for step in range(1, STEPS + 1):
            at = os.path.join("checkpoints", f"step-{step:07d}")
            same_checkpoint(os.path.join(run, at), os.path.join(one, at), run, config=shard == "moments")
clean()
