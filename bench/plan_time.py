"""What `ucas plan --gpu cpu` says of a step's time against what `ucas train` takes: seven trainings of random models on the CPU, of
different size, family, length and optimizer.

    bench/plan_time.py [--ucas build/ucas] [--sweep] [--only "NAME;NAME"] [--folder DIR] [--tolerance 0.25]

--sweep: one model instead, and whole steps, as length, group, batch, layers, width and vocabulary grow, one at a time.

On one thread, and in seconds of the processor, which are those of the clock where nobody else shares it: those of a run of four steps
less those of one step, over three. The phases of the quickest step by the clock, scaled to them. The plan is told the mean lengths that
the run had. Ends with 1 if a step is off by more than the tolerance.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
# name, checkpoint, options of the training beyond COMMON
RUNS = [
    ("0.2 M, qwen2", ["--family", "qwen2", "--rows", 512, "--hidden", 64, "--layers", 2, "--heads", 4, "--kv-heads", 2,
                      "--intermediate", 192], {"rollout.response_length": 64, "data.train_batch_size": 16}),
    ("5 M, qwen3", ["--family", "qwen3", "--rows", 4096, "--hidden", 256, "--layers", 4, "--heads", 4, "--kv-heads", 2,
                    "--intermediate", 1024], {"data.train_batch_size": 4}),
    ("17 M, llama, long", ["--family", "llama", "--rows", 8192, "--hidden", 384, "--layers", 6, "--heads", 6, "--kv-heads", 2,
                           "--intermediate", 1152, "--untied"],
     {"rollout.response_length": 400, "rollout.n": 4, "data.train_batch_size": 2, "rollout.old_log_prob": "trainer"}),
    ("42 M, qwen2, recomputed", ["--family", "qwen2", "--rows", 32000, "--hidden", 512, "--layers", 8, "--heads", 8,
                                 "--intermediate", 1408], {"update.recompute": "block", "data.train_batch_size": 2, "rollout.n": 4}),
    ("33 M, mistral, KL loss", ["--family", "mistral", "--rows", 16000, "--hidden", 512, "--layers", 6, "--heads", 8,
                                "--intermediate", 1792], {"objective.kl_coeff": 1e-3, "data.train_batch_size": 2, "rollout.response_length": 64}),
    ("11 M, qwen3, DPPO of 20 likely tokens", ["--family", "qwen3", "--rows", 32768, "--hidden", 256, "--layers", 4, "--heads", 4,
                                               "--kv-heads", 2, "--intermediate", 1024],
     {"data.train_batch_size": 4, "method.name": "dppo", "method.preset": "topk_tv"}),
    ("33 M, mistral, adapter", ["--family", "mistral", "--rows", 16000, "--hidden", 512, "--layers", 6, "--heads", 8,
                                "--intermediate", 1792], {"lora.rank": 16, "data.train_batch_size": 2}),
]
# Of the second of RUNS, one thing at a time.
SWEEP = {"response_length": ("rollout.response_length", [64, 128, 256, 512]), "group": ("rollout.n", [4, 8, 16]),
         "batch": ("data.train_batch_size", [4, 8, 16]), "layers": ("--layers", [2, 4, 8]), "width": ("--hidden", [128, 256, 512]),
         "vocabulary": ("--rows", [1024, 4096, 32768])}
# Every response takes part, as random answers are all wrong.
COMMON = {"data.template": "plain", "data.max_prompt_length": 32, "data.train_batch_size": 8, "rollout.n": 8,
          "rollout.response_length": 128, "objective.entropy_coeff": 1e-3, "objective.keep_mixed_groups": False,
          "update.micro_batch_tokens": 2048, "optimizer.lr": 1e-6, "train.val_before_train": False}
PHASES = {"generate": "timing_s/gen", "score": "timing_s/old_log_prob", "reference": "timing_s/ref", "update": "timing_s/update_actor",
          "step": "timing_s/step"}


def sweep():
    _, model, options = RUNS[1]
    for name, (key, values) in SWEEP.items():
        for value in values:
            if key.startswith("--"):
                at = model.index(key) + 1
                yield f"{name} {value}", [*model[:at], value, *model[at + 1:]], options
            else:
                yield f"{name} {value}", model, {**options, key: value}


def words_of(settings):
    return [word for key, value in settings.items()
            for word in (f"--{key}", str(value).lower() if isinstance(value, bool) else str(value))]


def settings_of(folder, i, model, options):
    path = f"{folder}/model-{i}"
    if not os.path.exists(f"{path}/model.safetensors"):
        maker = os.path.join(HERE, "../tests/support/make_checkpoint.py")
        subprocess.run([sys.executable, maker, path, "--vocab", "64", "--pool", "1000000", *map(str, model)], check=True)
    settings = {"model": path, "data.files": f"{folder}/problems.jsonl", "threads": 1, **COMMON, **options}
    return {**settings, "update.mini_batch_size": settings["data.train_batch_size"] // 2}


def trained(a, settings, run, steps):
    """Seconds of the processor, and the rows of the steps."""
    subprocess.run(["rm", "-rf", run], check=True)
    words = [a.ucas, "train", "--out", run, "--progress", "none", "--train.steps", str(steps), *words_of(settings)]
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"failed with status {status}: {' '.join(words)}")
    with open(f"{run}/steps.jsonl", encoding="utf-8") as file:
        return usage.ru_utime + usage.ru_stime, list(map(json.loads, file))


def measured(a, settings, run):
    """The row of the quickest step, its seconds scaled to those of the processor."""
    (one, _), (four, rows) = (trained(a, settings, run, steps) for steps in (1, 4))
    row = min(rows, key=lambda row: row["timing_s/step"])
    scale = (four - one) / 3 / row["timing_s/step"]
    return {key: value * scale if key.startswith("timing_s/") else value for key, value in row.items()}


def planned(a, settings, row):
    lengths = ["--prompt_tokens", str(row["prompt_length/mean"]), "--response_tokens", str(row["response_length/mean"])]
    done = subprocess.run([a.ucas, "plan", "--gpu", "cpu", "--json", *lengths, *words_of(settings)], capture_output=True, text=True, check=True)
    time = json.loads(done.stdout)["time"]
    return {**time, "update": time["update"] + time["optimizer"] + time.get("likely tokens", 0)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--ucas", default=os.path.join(HERE, "../build/ucas"))
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--only", default="", help="names of runs, separated by ;")
    parser.add_argument("--folder", default="")
    parser.add_argument("--tolerance", type=float, default=0.25)
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = a.folder or scratch
        os.makedirs(folder, exist_ok=True)
        with open(f"{folder}/problems.jsonl", "w", encoding="utf-8") as file:
            for i in range(256):
                question = "".join(f" w{(7 * i + k) % 60}" for k in range(24))
                file.write(json.dumps({"problem": question, "answer": str(i)}) + "\n")
        worst = 0
        print("| run | phase | planned s | measured s | planned / measured |\n| --- | --- | ---: | ---: | ---: |")
        for i, (name, model, options) in enumerate(sweep() if a.sweep else RUNS):
            if a.only and name not in a.only.split(";"):
                continue
            settings = settings_of(folder, i, model, options)
            row = measured(a, settings, f"{folder}/run-{i}")
            plan = planned(a, settings, row)
            for phase, key in PHASES.items():
                if phase != "step" and a.sweep:
                    continue
                if key in row and phase in plan:
                    print(f"| {name} | {phase} | {plan[phase]:.3f} | {row[key]:.3f} | {plan[phase] / row[key]:.2f} |", flush=True)
            worst = max(worst, abs(plan["step"] / row["timing_s/step"] - 1))
        print(f"\nworst step {100 * worst:.0f} %")
        sys.exit(1 if worst > a.tolerance else 0)


if __name__ == "__main__":
    main()
