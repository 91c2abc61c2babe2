"""`update.reduce = "micro"` over Gloo: every file of a checkpoint, and the log, are those of one process, for 2, 3 and 4 ranks, for
either level of shards, and for whatever else changes how gradients are made and used."""
import os

from support import check, clean, finish, path, rows, same_bytes, small_task, start_ranks, train_words

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
        for shard in ("moments", "gradients"):
            run = trained(size, kind, shard)
            check(rows(run) == rows(one), f"{run}: steps.jsonl is that of one process")
            for step in range(1, STEPS + 1):
                folder = os.path.join(one, "checkpoints", f"step-{step:07d}")
                files = [os.path.relpath(os.path.join(at, file), one) for at, _, names in os.walk(folder) for file in names]
                check(len(files) > 6, f"{kind}: a checkpoint of step {step}")
                for file in files:
                    # These two keep a mark of the config.
                    if shard == "gradients" and os.path.basename(file) in ("state.json", "manifest.json"):
                        continue
                    check(same_bytes(os.path.join(run, file), os.path.join(one, file)), f"{run}: {file} is that of one process")
clean()
