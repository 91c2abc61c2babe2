"""What a run plans of memory is what `ucas plan` says, and it says at its end what it took."""
import json
import os
import re

from support import check, clean, finish, path, small_task, start_ranks, train_words, ucas

small_task()
done = ucas(*train_words(path("long"), "--train.steps", 2, "--threads", 1))
check(re.search(r"memory: peak .* planned", done.stderr) is not None and os.path.exists(path("long", "env.json")), "a run says at its end what was planned of memory")

# Of several processes each takes what one of so many takes: room for its share of the responses, for one.
peaks, more = {}, ("--threads", 1, "--update.micro_batch_tokens", 64, "--rollout.response_length", 200, "--rollout.n", 32)
for ranks in (1, 2):
    run = path(f"of-{ranks}")
    codes, told = finish(start_ranks(ranks, train_words(run, "--train.steps", 1, *more)))
    check(codes == [0] * ranks, f"{ranks} processes train: {told[0][-300:]}")
    with open(os.path.join(run, "env.json")) as file:
        peaks[ranks] = json.load(file)["planned_memory"]
    words = train_words(run)[1:]
    at = words.index("--out")
    plan = ucas("plan", *words[:at], *words[at + 2:], *more, "--gpu", "cpu", "--gpus", ranks, "--json")
    check(json.loads(plan.stdout)["peak"] == peaks[ranks], f"a run of {ranks} plans what ucas plan --gpus {ranks} says: {peaks[ranks]}")
check(peaks[2] < peaks[1], f"and two need less each than one: {peaks}")
clean()
