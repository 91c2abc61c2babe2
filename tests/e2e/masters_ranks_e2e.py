"""In bf16 each of several ranks keeps the f32 masters of its share alone: the files of one process for any number of ranks, of the
policy, of adapters, of a reference that moves, of a critic and a reward model, whose updates they share; also stopped, killed, and with servers that are handed weights."""
import array
import json
import os
import random
import shutil

from support import (SamplingServer, check, clean, finish, path, rows, same_bytes, same_checkpoint, served_words, small_task, start_ranks, train_words,
                     ucas, wait_for_step)

STEPS = 4
KINDS = {
    "whole": ("--train.best_metric", "val-core/dev/acc/mean@1"),
    "narrow": (),  # from a base that is stored in bf16: masters stand in state/
    "adapter": ("--lora.rank", 4, "--lora.modules_to_save", "embed_tokens"),
    "reference": ("--objective.kl_coeff", 0.05, "--reference.sync_steps", 2),
    "critic": ("--method.name", "ppo"),
    "critic-f32": ("--method.name", "ppo", "--dtype", "f32", "--method.critic.updates", 3, "--method.critic.optimizer.moments", "int8"),
    "prm": ("--method.name", "prime"),
    "muon": ("--optimizer.kind", "muon", "--optimizer.moments", "int8", "--update.recompute", "block"),
}
small_task()


def narrow_base():
    """The base with the upper halves of its numbers."""
    shutil.copytree(path("base"), path("base16"))
    with open(path("base", "model.safetensors"), "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    for name, entry in header.items():
        if name != "__metadata__":
            entry["dtype"], entry["data_offsets"] = "BF16", [n // 2 for n in entry["data_offsets"]]
    text = json.dumps(header).encode()
    with open(path("base16", "model.safetensors"), "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + array.array("H", data)[1::2].tobytes())
    with open(path("base16", "config.json")) as file:
        config = json.load(file)
    config["torch_dtype"] = config["dtype"] = "bfloat16"
    with open(path("base16", "config.json"), "w") as file:
        json.dump(config, file)


def words(kind, run, *more):
    made = train_words(path(run), "--train.steps", STEPS, "--train.save_freq", 2, "--update.micro_batch_tokens", 64, "--dtype", "bf16",
                       "--update.reduce", "micro", *KINDS[kind], *more)
    return [path("base16") if kind == "narrow" and word == path("base") else word for word in made]


def same_files(a, b, step, name, config=True):
    """Every tensor and file of a checkpoint; but those that keep a mark of another config."""
    a, b = (path(run, "checkpoints", f"step-{step:07d}") for run in (a, b))
    same_checkpoint(a, b, name, config)


def trained(size, kind, run, *more):
    codes, said = finish(start_ranks(size, words(kind, run, *more)))
    check(codes == [0] * size, f"{kind}: {size} processes train: {said[0][-300:]}")


narrow_base()
for kind in KINDS:
    trained(1, kind, f"{kind}-1")
    for size in (2, 4) if kind in ("whole", "narrow") else (3,):
        trained(size, kind, f"{kind}-{size}")
        same_files(f"{kind}-{size}", f"{kind}-1", STEPS, f"{kind}, {size} processes")
        check(rows(path(f"{kind}-{size}")) == rows(path(f"{kind}-1")), f"{kind}, {size} processes: steps.jsonl is the same")


# One is killed in the middle of a save: the others end, the checkpoint before counts, and another number goes on.
def parts_of(run, step):
    state = path(run, "checkpoints", f"step-{step:07d}", "state")
    return sorted(name for name in os.listdir(state) if name.startswith("optimizer") and name.endswith(".safetensors"))


check(parts_of("narrow-2", 2) == ["optimizer-0-of-2.safetensors", "optimizer-1-of-2.safetensors"], "each of two writes its own")
check(parts_of("narrow-1", 2) == ["optimizer.safetensors"], "one process writes one file")
with open(path("narrow-2", "checkpoints/step-0000002/state/optimizer-1-of-2.safetensors"), "rb") as file:
    tensors = len(json.loads(file.read(int.from_bytes(file.read(8), "little")))) - 1
for number, write in enumerate((1, tensors // 2, tensors + 1)):
    run = f"mid-save-{number}"
    fault = {1: {"env": {"UCAS_FAULT": f"write:{tensors + 2 + write}:0:kill"}}}  # a save is its header's two writes and one of each tensor
    codes, said = finish(start_ranks(2, words("narrow", run), of_rank=fault))
    check(codes == [70, -9], f"rank 1 is killed at write {write} of its second save: {codes}")
    left = sorted(os.listdir(path(run, "checkpoints")))
    check(len(left) == 2 and left[0].startswith(".tmp-step-0000004") and left[1] == "step-0000002", f"half a checkpoint is none: {left}")
    codes, said = finish(start_ranks(3, ["train", "--resume", path(run)]))
    check(codes == [0, 0, 0], f"three go on: {said[0][-300:]}")
    same_files(run, "narrow-1", STEPS, f"killed at write {write} of a save")
    check(not any(name.startswith(".tmp") for name in os.listdir(path(run, "checkpoints"))), "what was left is removed")
with open(path("narrow-1", "checkpoints/step-0000004/state/optimizer.safetensors"), "rb") as file:
    check(b'"master/' in file.read(1 << 20), "masters stand beside the moments where the model is stored in bf16")
trained(2, "narrow", "narrow-shares", "--update.shard", "gradients")
same_files("narrow-shares", "narrow-1", STEPS, "with shares of gradients", config=False)

# By sums all ranks still have the same weights: rank 1's share is read by rank 0.
trained(2, "whole", "sum", "--update.reduce", "sum")
a, b = (rows(path(run)) for run in ("sum", "whole-1"))
check(all(abs(x["actor/grad_norm"] - y["actor/grad_norm"]) < 0.02 * (1 + y["actor/grad_norm"]) for x, y in zip(a[:3], b[:3])
          if "actor/grad_norm" in y), "sums have the same norms")

for kind, names in (("critic-f32", ("critic/grad_norm", "critic/vf_loss", "critic/vpred_mean")), ("prm", ("prm/grad_norm", "prm/ce_loss", "prm/accuracy"))):
    trained(2, kind, f"{kind}-sum", "--update.reduce", "sum")
    a, b = (next(r for r in rows(path(run)) if r["training/global_step"] == 1) for run in (f"{kind}-sum", f"{kind}-1"))
    check(all(abs(a[name] - b[name]) < 2e-3 * (1e-3 + abs(b[name])) for name in names), f"{kind}, sums: {[(a[n], b[n]) for n in names]}")

# What matrices are handed out as: two bytes an element where f32 has four.
trained(2, "whole", "sum-f32", "--update.reduce", "sum", "--dtype", "f32")
with open(path("base", "model.safetensors"), "rb") as file:
    header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
sizes = [entry["data_offsets"] for entry in header.values() if len(entry.get("shape", ())) == 2]
saved = 2 * sum(end - begin for begin, end in sizes) / 2  # of two updates
sent = []
for run in ("sum-f32", "sum"):
    with open(path(run, "steps.jsonl")) as file:
        sent.append([json.loads(line)["perf/ranks/bytes"] for line in file if '"training/global_step": 1,' in line][0])
check(0.8 < (sent[0] - sent[1]) / saved < 1.2, f"bf16 saves half of what is handed out, {saved} bytes: {sent}")

# 2 -> 1 -> 4, and with a reference that moves 3 -> 2.
for kind, sizes in (("narrow", (2, 1, 4)), ("reference", (3, 2))):
    for i, size in enumerate(sizes):
        last = ["--train.steps", STEPS - len(sizes) + i + 1, "--train.save_freq", 1]
        first = words(kind, f"{kind}-moved", *last) if i == 0 else ["train", "--resume", path(f"{kind}-moved"), *last]
        codes, said = finish(start_ranks(size, first))
        check(codes == [0] * size, f"{kind}: {size} go on: {said[0][-300:]}")
    same_files(f"{kind}-moved", f"{kind}-1", STEPS, f"{kind}, {sizes}", config=False)

# Any of them is killed at any moment, and another number goes on.
moment = random.Random(5)
begin, reached = words("narrow", "killed", "--train.steps", 4000), 0
for kill in range(int(os.environ.get("UCAS_TEST_KILLS", 2))):
    size = moment.choice((2, 3))
    processes = start_ranks(size, begin)
    goal = reached + 2 + moment.randrange(20)
    check(wait_for_step(path("killed"), goal, processes[0]), f"{size} processes reach step {goal}")
    victim = moment.randrange(size)
    processes[victim].kill()
    codes, said = finish(processes)
    check(all(code == 70 for rank, code in enumerate(codes) if rank != victim), f"rank {victim} of {size} dies, and all end: {codes}")
    begin = ["train", "--resume", path("killed")]
    reached = rows(path("killed"))[-1]["training/global_step"]
last = reached + 2 + reached % 2
codes, said = finish(start_ranks(1, [*begin, "--train.steps", last]))
check(codes == [0], f"one goes on: {said[0][-300:]}")
trained(1, "narrow", "spared", "--train.steps", last)
same_files("killed", "spared", last, "killed and gone on with", config=False)

# Servers are handed the same files by two ranks as by one process.
server = SamplingServer()
served = lambda run: served_words(run, [server], "--train.steps", 2, "--dtype", "bf16")
ucas(*served("served-1"))
codes, said = finish(start_ranks(2, served("served-2")))
check(codes == [0, 0], f"two ranks hand over weights: {said[0][-300:]}")
same_files("served-2", "served-1", 2, "servers")
handed = [os.path.join("weights", name, "model.safetensors") for name in os.listdir(path("served-1", "weights"))]
check(len(handed) == 1 and same_bytes(path("served-2", handed[0]), path("served-1", handed[0])), "what servers were handed is the same")
server.stop()
clean()
