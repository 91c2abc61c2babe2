"""Ranks that were not started alike train nothing: each mistake ends all of them with one line that names it, by rank 0 alone. What
each sees differently while it trains (times, retries) rank 0 decides for all; and what one knows alone is said with its number."""
import os
import shutil

from support import check, clean, finish, path, small_task, start_ranks, train_words, ucas

small_task()
# Two folders whose files have the same names: a rank that runs in the other one reads a stale copy.
for folder in ("here", "there"):
    os.makedirs(path(folder))
    shutil.copytree(path("base"), path(folder, "base"))
    shutil.copytree(path("task"), path(folder, "task"))
ELSEWHERE = {1: {"cwd": path("there")}}


def words(run, *more):
    made = train_words(path(run), "--train.steps", 2, "--train.save_freq", 1, "--update.reduce", "micro", *more)
    return [str(word).replace(path("base"), "base").replace(path("task"), "task") for word in made]


def ends(name, codes, line, words, of_rank, size=2, absent=None):
    for rank in range(size):
        of_rank.setdefault(rank, {}).setdefault("cwd", path("here"))
    got, said = finish(start_ranks(size, words, of_rank))
    check(got == codes, f"{name}: all end with {codes}: {got} {[text[-300:] for text in said]}")
    lines = "".join(said).splitlines()
    check(len(lines) == 1 and said[0] != "" and line in lines[0], f"{name}: with one line: {said}")
    if absent:
        check(not os.path.exists(path(absent, "config.toml")), f"{name}: and begin no run")


def other(*more, **own):
    return {1: {"more": more, **own}}


# 1: another option, base, seed, order of the data.
same_run = "error[config]: the ranks are not at the same run: "
ends("a learning rate", [2, 2], f"{same_run}optimizer.lr = ", words("a"), other("--optimizer.lr", 0.05), absent="a")
ends("a seed", [2, 2, 2], "seed = 1 at ranks 0 and 2, 9 at rank 1", words("a", "--seed", 1), other("--seed", 9), size=3, absent="a")
with open(path("there", "base", "model.safetensors"), "r+b") as file:
    file.seek(-5, 2)
    byte = file.read(1)
    file.seek(-5, 2)
    file.write(bytes([byte[0] ^ 1]))
ends("another base", [2, 2], f"{same_run}the weights to begin with (hash) = ", words("a"), {1: {"cwd": path("there")}}, absent="a")
shutil.copy(path("here", "base", "model.safetensors"), path("there", "base"))
with open(path("here", "task", "train.jsonl")) as file:
    lines = file.readlines()
with open(path("there", "task", "train.jsonl"), "w") as file:
    file.writelines(reversed(lines))
ends("data in another order", [2, 2], f"{same_run}training problems in their order (hash) = ", words("a"), {1: {"cwd": path("there")}},
     absent="a")
shutil.copy(path("here", "task", "train.jsonl"), path("there", "task"))
# 3, 4, 7: what decides when a run ends, saves and validates is the same, too.
ends("saves", [2, 2], "train.save_freq = 1 at rank 0, 2 at rank 1", words("a"), other("--train.save_freq", 2), absent="a")
ends("another run directory", [2, 2], "out = ", words("a"), other("--out", path("b")), absent="a")
# 5: another instruction set; before anything is read.
ends("an instruction set", [2, 2], "error[config]: the ranks are not the same: isa = ", words("a"), other(env={"UCAS_ISA": "scalar"}), absent="a")
# 9: what is wrong on one alone.
ends("a device", [2, 2], 'error[config]: rank 1: device = "cuda:999": ', words("a"), other("--device", "cuda:999"), absent="a")
ends("an option", [2, 2], "rank 1: --no.such", words("a"), other("--no.such", 1), absent="a")
ends("an option of all", [2, 2], "ucas: error[config]: --no.such", words("a", "--no.such", 1), {}, absent="a")
os.rename(path("there", "base"), path("there", "gone"))
ends("a base that one lacks", [2, 2], "rank 1: base", words("a"), {1: {"cwd": path("there")}}, absent="a")
os.rename(path("there", "gone"), path("there", "base"))
ends("a number of ranks", [2, 2], "error[config]: WORLD_SIZE is 2 at rank 0, 3 at rank 1", words("a"), other(env={"WORLD_SIZE": "3"}), absent="a")
ends("a number twice", [2, 2, 2], "error[config]: two processes have RANK=1", words("a"), {2: {"env": {"RANK": "1"}}}, size=3, absent="a")

# 6: rank 0 chooses the checkpoint; one that sees another one, or none, there says so.
begin = words("here/run")
begin[begin.index(path("here/run"))] = "run"
codes, said = finish(start_ranks(2, begin, {rank: {"cwd": path("here")} for rank in (0, 1)}))
check(codes == [0, 0], f"two train: {said[0][-300:]}")
check(all(text == "" for text in said[1:]), "rank 0 alone speaks")
go_on = ["train", "--resume", "run", "--train.steps", 3]
shutil.copytree(path("here", "run"), path("there", "run"))
step = path("there", "run", "checkpoints", "step-0000002")
shutil.rmtree(step)
ends("a checkpoint that one does not see", [74, 74], "error[io]: rank 1: run/checkpoints/step-0000002: ", go_on, {1: {"cwd": path("there")}})
shutil.copytree(path("here", "run", "checkpoints", "step-0000001"), step)
ends("a checkpoint that is another", [74, 74], "another manifest than rank 0 reads there", go_on, {1: {"cwd": path("there")}})
shutil.rmtree(step)
shutil.copytree(path("here", "run", "checkpoints", "step-0000002"), step)
with open(os.path.join(step, "model.safetensors"), "r+b") as file:
    file.seek(-3, 2)
    file.write(b"\x11")
ends("weights of it that are not those", [2, 2], "the weights to begin with (hash) = ", go_on, {1: {"cwd": path("there")}})
codes, said = finish(start_ranks(2, go_on, {rank: {"cwd": path("here")} for rank in (0, 1)}))
check(codes == [0, 0], f"where all see the same they go on: {said[0][-300:]}")

# 10: which of the devices a rank takes is no property of a run: one that kept cuda:0 goes on with cuda (here there is none).
shutil.copytree(path("here", "run"), path("gpu"))
with open(path("gpu", "config.toml")) as file:
    text = file.read()
check('device = "cpu"' in text, "config.toml has the device")
with open(path("gpu", "config.toml"), "w") as file:
    file.write(text.replace('device = "cpu"', 'device = "cuda:0"'))
said = ucas("train", "--resume", path("gpu"), "--device", "cuda:999", expect=2).stderr
check("cannot change on --resume" not in said and 'device = "cuda:999": ' in said, f"another GPU may be named: {said}")
check("cannot change on --resume" in ucas("train", "--resume", path("gpu"), "--device", "cpu", expect=2).stderr, "no other kind of device")
clean()
