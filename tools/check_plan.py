"""What `ucas plan` says against what `ucas train` takes: nine trainings of different family, dtype, recompute, adapter,
optimizer and length, two updates each, on random checkpoints of 33 to 102 M parameters.

    tools/check_plan.py [--ucas build/ucas] [--only "NAME;NAME"] [--folder DIR] [--tolerance 0.1]

Prints a table of planned and measured peaks (maximum resident size of the training); ends with 1 if one is off by more than the
tolerance. --folder keeps the checkpoints and runs there. Some ten minutes on two cores.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
MODELS = {
    "qwen2": ["--family", "qwen2", "--rows", 32000, "--hidden", 512, "--layers", 8, "--heads", 8, "--intermediate", 1408],
    "qwen2-stored-bf16": ["--family", "qwen2", "--rows", 32000, "--hidden", 512, "--layers", 6, "--heads", 8,
                          "--intermediate", 1408, "--config", '{"torch_dtype": "bfloat16"}'],
    "qwen3": ["--family", "qwen3", "--rows", 151936, "--hidden", 512, "--layers", 8, "--heads", 8, "--intermediate", 1536],
    "llama": ["--family", "llama", "--rows", 32000, "--hidden", 768, "--layers", 8, "--heads", 12, "--kv-heads", 4,
              "--intermediate", 2048, "--untied"],
    "mistral": ["--family", "mistral", "--rows", 32000, "--hidden", 640, "--layers", 10, "--heads", 10,
                "--intermediate", 1792, "--untied", "--config", '{"sliding_window": 128}'],
    "gemma3": ["--family", "gemma3_text", "--rows", 32000, "--hidden", 512, "--layers", 8, "--heads", 4, "--kv-heads", 1,
               "--intermediate", 1408, "--config", '{"sliding_window": 128}'],
}
# name, model, options of the training beyond `COMMON`
RUNS = [
    ("f32", "qwen2", {}),
    ("bf16, vocabulary 152k", "qwen3", {"dtype": "bf16", "update.recompute": "keep_attention"}),
    ("f32, LoRA", "llama", {"lora.rank": 16}),
    ("bf16, int8 moments, window", "mistral", {"dtype": "bf16", "update.recompute": "block", "optimizer.moments": "int8",
                                               "rollout.response_length": 320}),
    ("bf16, LoRA, KL loss", "qwen2", {"dtype": "bf16", "lora.rank": 32, "objective.kl_coeff": 1e-3,
                                      "update.micro_batch_tokens": 8192}),
    ("f32, Muon, bf16 moments", "qwen3", {"optimizer.kind": "muon", "optimizer.moments": "bf16",
                                          "update.micro_batch_tokens": 1024}),
    ("f32, long, KL loss", "llama", {"update.recompute": "block", "objective.kl_coeff": 1e-3,
                                     "rollout.response_length": 900, "rollout.n": 2, "data.train_batch_size": 2}),
    ("bf16, norms after", "gemma3", {"dtype": "bf16"}),
    ("f32, critic", "qwen2-stored-bf16", {"method.name": "ppo", "update.micro_batch_tokens": 2048}),
]
# Every response takes part (an entropy bonus: random answers are all wrong, and a group of equal rewards is skipped).
COMMON = {"data.template": "plain", "data.max_prompt_length": 32, "data.train_batch_size": 4, "rollout.n": 4,
          "rollout.response_length": 160, "objective.entropy_coeff": 1e-3, "objective.keep_mixed_groups": False,
          "update.micro_batch_tokens": 4096, "optimizer.lr": 1e-5, "train.steps": 1, "train.save_freq": 1}


def words_of(settings):
    return [word for key, value in settings.items()
            for word in (f"--{key}", str(value).lower() if isinstance(value, bool) else str(value))]


def make(folder, name):
    path = f"{folder}/model-{name}"
    if not os.path.exists(f"{path}/model.safetensors"):
        maker = os.path.join(HERE, "../tests/support/make_checkpoint.py")
        subprocess.run([sys.executable, maker, path, "--vocab", "64", "--pool", "1000000", *map(str, MODELS[name])],
                       check=True)
    return path


def settings_of(folder, model, options):
    settings = {"model": make(folder, model), "data.files": f"{folder}/problems.jsonl", **COMMON, **options}
    return {**settings, "update.mini_batch_size": settings["data.train_batch_size"] // 2}


def planned(ucas, settings):
    done = subprocess.run([ucas, "plan", "--json", *words_of(settings)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def measured(ucas, settings, run):
    """Bytes at the peak of the whole process, as the kernel has it."""
    subprocess.run(["rm", "-rf", run], check=True)
    process = subprocess.Popen([ucas, "train", "--out", run, "--progress", "none", *words_of(settings)],
                               stderr=subprocess.PIPE, text=True)
    log = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"failed with status {status}: {log}")
    return usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--ucas", default=os.path.join(HERE, "../build/ucas"))
    parser.add_argument("--only", default="", help="names of runs, separated by ;")
    parser.add_argument("--folder", default="")
    parser.add_argument("--tolerance", type=float, default=0.1)
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = a.folder or scratch
        os.makedirs(folder, exist_ok=True)
        with open(f"{folder}/problems.jsonl", "w", encoding="utf-8") as file:
            for i in range(16):
                question = "".join(f" w{(7 * i + k) % 60}" for k in range(24))
                file.write(json.dumps({"problem": question, "answer": str(i)}) + "\n")
        worst = 0
        print("| run | model | planned MiB | measured MiB | planned / measured |\n| --- | --- | ---: | ---: | ---: |")
        for i, (name, model, options) in enumerate(RUNS):
            if a.only and name not in a.only.split(";"):
                continue
            settings = settings_of(folder, model, options)
            plan = planned(a.ucas, settings)
            peak = measured(a.ucas, settings, f"{folder}/run-{i}")
            ratio = plan["peak"] / peak
            worst = max(worst, abs(ratio - 1))
            print(f"| {name} | {model} | {plan['peak'] / 2**20:,.0f} | {peak / 2**20:,.0f} | {ratio:.3f} |", flush=True)
        print(f"\nworst {100 * worst:.1f} %")
        sys.exit(1 if worst > a.tolerance else 0)


main()
