"""A study is killed and goes on, gives the same bytes with one and with two processes, and lends its runs to another study.
With --short the first two."""
import json
import os
import shutil
import signal
import subprocess
import sys

from support import UCAS, check, clean, path, same_bytes, ucas, wait_until

COMMON = """
threads = 1
[all]
train.steps = 6
train.test_freq = 3
data.train_batch_size = 6
data.gen_batch_size = 8
update.mini_batch_size = 3
rollout.n = 8
objective.keep_mixed_groups = false
[base]
task = "register_chains"
sft_worked_steps = 30
sft_mixed_steps = 10
test_problems = 16
[evaluate]
samples = 4
ks = [1, 4]
"""
FIRST = 'title = "First"\nkind = ["ablation", "dynamics"]\nseeds = 2\nruns = ["dapo-tiny", "mine"]\n'
MINE = '[run.mine]\nconfig = "ucas-tiny"\nlabel = "my row"\nmethod.beta = 0\n'
# Another study: the same runs under other names, and another evaluation of them.
SECOND = 'title = "Second"\nkind = "sensitivity"\nseeds = 2\nruns = ["dapo-tiny", "beta0"]\n'
OTHER = '[run.beta0]\nconfig = "ucas-tiny"\nlabel = "beta 0"\nmethod.beta = 0\n'


def write(name, text):
    with open(path(name), "w") as file:
        file.write(text)
    return path(name)


def words(study, pool, *more):
    name = os.path.basename(study)[:-5]
    return ["study", study, "--out", path(f"{pool}-{name}"), "--pool", path(pool), *more]


def begin(study, pool):
    return subprocess.Popen([UCAS, *map(str, words(study, pool))], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def runs_of(pool):
    return sorted(name for name in os.listdir(path(pool)) if "-seed" in name)


def done(pool):
    return [name for name in runs_of(pool) if os.path.exists(path(pool, name, "done"))] if os.path.isdir(path(pool)) else []


first = write("first.toml", FIRST + COMMON + MINE)
second = write("second.toml", SECOND + COMMON + OTHER)

checked = ucas(*words(first, "two", "--check")).stdout
check("4 runs, 4 to do" in checked and not os.path.exists(path("two")), "--check counts and starts nothing")

ucas(*words(first, "one"))
check(len(done("one")) == 4, "four runs")

# Two processes of the same command; one is killed once a run is done, the other goes on, and so does the same command.
while True:
    first_process, other = begin(first, "two"), begin(first, "two")
    wait_until(lambda: done("two"), first_process)
    first_process.kill()
    killed = first_process.wait() == -signal.SIGKILL and len(done("two")) < 4
    check(other.wait() == 0, "the other process goes on to the end")
    if killed:
        break
    shutil.rmtree(path("two"))  # it was done before this process had its turn
check(True, "killed before the last run was done")
kept = {name: os.stat(path("two", name, "done")).st_mtime_ns for name in done("two")}
went_on = ucas(*words(first, "two"))
check(len(done("two")) == 4 and "4 done already" in went_on.stderr, "the same command finds all of them done")
for name, when in kept.items():
    check(os.stat(path("two", name, "done")).st_mtime_ns == when, f"{name} was not trained again")

check(same_bytes(path("one-first", "results.md"), path("two-first", "results.md")), "the same table with one and with two processes")
check(runs_of("one") == runs_of("two"), "the same runs by name")
for name in runs_of("one"):
    weights = [path(pool, name, "checkpoints", "step-0000006", "model.safetensors") for pool in ("one", "two")]
    check(same_bytes(*weights), f"{name}: same weights")
table = open(path("one-first", "results.md")).read()
check("| my row |" in table and "## Against DAPO" in table, "the table has the study's names and the comparison")
check(os.path.exists(path("one-first", "report.html")), "a report")
figures = os.listdir(path("one-first", "figures"))
check(any(f.startswith("first-dynamics") and f.endswith(".svg") for f in figures), "dynamics are drawn")
check(any(f.startswith("first-bars") and f.endswith(".csv") for f in figures), "bars have their numbers beside them")

if "--short" in sys.argv:
    clean()
    sys.exit(0)

# The second study needs no training: same settings, other names.
before = {name: os.stat(path("two", name, "steps.jsonl")).st_mtime_ns for name in runs_of("two")}
second_run = ucas(*words(second, "two", "--evaluate.samples", 8, "--evaluate.ks", "1,8"))
check("4 runs: 0 done already" in second_run.stderr, "another evaluation is to be made")
check(runs_of("two") == runs_of("one"), "no run was added")
for name, when in before.items():
    check(os.stat(path("two", name, "steps.jsonl")).st_mtime_ns == when, f"{name} was not trained again")
check("| beta 0 |" in open(path("two-second", "results.md")).read(), "the same run has another name in another study")
evaluations = {f for f in os.listdir(path("two", runs_of("two")[0], "eval")) if f.startswith("test-") and f.count(".") == 1}
check(len([f for f in evaluations if f.endswith(".json")]) == 2, "both evaluations stand side by side")
ucas(*words(first, "two"))
check(same_bytes(path("one-first", "results.md"), path("two-first", "results.md")), "the first study's table did not change")
shown = json.load(open(path("two-second", "runs", "beta0-seed1", "eval", "test.json")))
check(shown["samples"] == 8, "each study sees its own evaluation")

# A base for each seed: another model, the same problems, and the runs that were there already are taken again.
paired = write("paired.toml", 'title = "Paired"\nkind = "seeds"\nseeds = 2\nruns = ["dapo-tiny"]\n' +
               COMMON.replace("[evaluate]", "sft_seeds = [0, 5]\n[evaluate]"))
bases = {name for name in os.listdir(path("two")) if name.startswith("base-")}
runs = set(runs_of("two"))
done_paired = ucas(*words(paired, "two"))
more_bases = {name for name in os.listdir(path("two")) if name.startswith("base-")} - bases
more_runs = set(runs_of("two")) - runs
check(len(bases) == 1 and len(more_bases) == 1, "one base was there, one was made")
check(len(more_runs) == 1 and "2 runs: 1 done already" in done_paired.stderr, "seed 0 begins with the base that was there")
first_base, second_base = path("two", *bases), path("two", *more_bases)
check(not same_bytes(os.path.join(first_base, "model", "model.safetensors"),
                     os.path.join(second_base, "model", "model.safetensors")), "the bases are different models")
check(not os.path.exists(os.path.join(second_base, "task")), "of the same task")
views = path("two-paired", "runs")
check(sorted(os.listdir(views)) == ["base-0", "base-5", "dapo-tiny-seed0", "dapo-tiny-seed1"], "every base has a view")
asked = [[(row["id"], row["problem"]) for row in map(json.loads, open(os.path.join(views, view, "eval", "test.jsonl")))]
         for view in ("base-0", "base-5", "dapo-tiny-seed1")]
check(len(asked[0]) == 16 and asked[0] == asked[1] == asked[2], "all answer the same problems")
labels = [json.load(open(os.path.join(views, view, "study.json"))) for view in ("base-5", "dapo-tiny-seed1")]
check(labels == [{"row": "base", "base": "base 5"}, {"row": "dapo-tiny", "base": "base 5", "seed": 1}],
      "a run's label says row, base and seed")

# Every base with every seed.
crossed = write("crossed.toml", 'title = "Crossed"\nkind = "seeds"\nseeds = 2\nruns = ["dapo-tiny"]\n' +
                COMMON.replace("[evaluate]", "sft_seeds = [5, 6, 7]\ncrossed = true\nsamples = 8\n[evaluate]"))
done_crossed = ucas(*words(crossed, "two"))
check("6 runs: " in done_crossed.stderr and "base-5" in done_crossed.stderr, "base 5 was there")
views = path("two-crossed", "runs")
check(sorted(os.listdir(views)) == ["base-5", "base-6", "base-7"] +
      [f"dapo-tiny-base{base}-seed{seed}" for base in (5, 6, 7) for seed in (0, 1)], "a view for each base and seed")
label = json.load(open(os.path.join(views, "dapo-tiny-base6-seed1", "study.json")))
check(label == {"row": "dapo-tiny", "base": "base 6", "seed": 1}, "its label says so")
samples = [json.load(open(os.path.join(views, view, "eval", "test.json")))["samples"] for view in ("base-6", "dapo-tiny-base6-seed1")]
check(samples == [8, 4], "the base is asked more often")
check("6 runs: 3 bases and 2 seeds" in open(path("two-crossed", "results.md")).read(), "the table says what its deviation is over")

# One run alone, and what cannot be asked for.
ucas(*words(first, "three", "--only", "mine/1"))
check(len(done("three")) == 1 and done("three")[0].endswith("-seed1"), "--only makes that run alone")
refused = ucas(*words(first, "three", "--only", "mine/7"), expect=2)
check("mine/7" in refused.stderr, "--only says what it does not know")

# A run that fails is named; the others are done.
broken = write("broken.toml", FIRST.replace("dapo-tiny", "late") + COMMON + MINE +
               '[run.late]\nconfig = "dapo-tiny"\ndata.max_prompt_length = 1\n')
refused = ucas(*words(broken, "four"), expect=2)
check("runs failed, the others are done; DAPO, seed 0: " in refused.stderr and "DAPO, seed 1: " in refused.stderr, "failed runs are named")
check(len(done("four")) == 2, "the others are done")
clean()
