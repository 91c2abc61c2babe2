"""One RL step beside TRL's GRPOTrainer: the same random model, prompts, samples and one core, in the same sitting.

    PEER_PYTHON=.../bin/python bench/trl_step.py [--ucas build/ucas] [--core 0] [--steps 8]

PEER_PYTHON has torch, transformers, trl and datasets (pip install). Both sides run pinned to one core, and times are
CPU time, so that other work on the machine mostly drops out. See bench/README.md.
"""
import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time

PROMPTS, SAMPLES, PROMPT_TOKENS, NEW_TOKENS = 16, 16, 16, 64
# One word of the vocabulary is a whole answer, so that a random model is right now and then (about one in ten).
ANSWER = "\\boxed{7}"
WORDS = [ANSWER, *(f" w{i}" for i in range(1, 510))]
HERE = os.path.dirname(os.path.realpath(__file__))


def prepare(folder):
    """The checkpoint and a problem file that both sides read."""
    subprocess.run([sys.executable, f"{HERE}/../tests/support/make_checkpoint.py", f"{folder}/model", "--words",
                    ",".join(WORDS)], check=True)
    draw = random.Random(0)
    with open(f"{folder}/problems.jsonl", "w", encoding="utf-8") as file:
        for _ in range(64):
            text = "".join(draw.choice(WORDS[1:]) for _ in range(PROMPT_TOKENS))
            file.write(json.dumps({"problem": text, "answer": "7"}) + "\n")


def pinned(core, command, **options):
    """Runs a command on one core: its CPU seconds, peak MiB and standard output."""
    process = subprocess.Popen(["taskset", "-c", str(core), *command], stdout=subprocess.PIPE, text=True, **options)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"failed: {' '.join(command)}\n{output}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, output


def run_ucas(arguments, folder, steps):
    out = tempfile.mkdtemp(dir=folder)
    cpu, peak, _ = pinned(arguments.core, [
        arguments.ucas, "train", "--model", f"{folder}/model", "--data.files", f"{folder}/problems.jsonl",
        "--out", f"{out}/run", "--data.template", "plain", "--method.name", "grpo", "--rollout.n", str(SAMPLES),
        "--rollout.response_length", str(NEW_TOKENS), "--data.train_batch_size", str(PROMPTS),
        "--update.mini_batch_size", str(PROMPTS), "--update.micro_batch_tokens", str(arguments.micro),
        "--optimizer.lr", "1e-5", "--train.steps", str(steps)], stderr=subprocess.DEVNULL)
    with open(f"{out}/run/steps.jsonl", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return cpu, peak, rows


def ucas_figures(arguments, folder):
    # The first run ends after one step, so that the difference is steps and nothing else.
    first, _, _ = run_ucas(arguments, folder, 1)
    whole, peak, rows = run_ucas(arguments, folder, 1 + arguments.steps)
    lengths = [row["response_length/mean"] for row in rows]
    return {"first_step_s": first, "step_s": (whole - first) / arguments.steps, "peak_mib": peak,
            "mean_length": sum(lengths) / len(lengths)}


def peer(folder, steps):
    """Runs inside PEER_PYTHON."""
    import torch
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    torch.set_num_threads(1)
    # AutoTokenizer would take the Qwen2 tokenizer for any checkpoint of that architecture
    tokenizer = PreTrainedTokenizerFast.from_pretrained(f"{folder}/model", padding_side="left")
    with open(f"{folder}/problems.jsonl", encoding="utf-8") as file:
        data = Dataset.from_list([{"prompt": json.loads(line)["problem"]} for line in file])
    ends = []

    class Mark(TrainerCallback):
        def on_step_end(self, *args, **kwargs):
            ends.append(time.process_time())

    rows = PROMPTS * SAMPLES
    config = GRPOConfig(output_dir=f"{folder}/trl", use_cpu=True, bf16=False, report_to=[], save_strategy="no",
                        per_device_train_batch_size=rows, num_generations=SAMPLES, max_completion_length=NEW_TOKENS,
                        max_steps=1 + steps, learning_rate=1e-5, logging_steps=1, disable_tqdm=True, temperature=1.0,
                        beta=0.0, gradient_checkpointing=False, dataloader_pin_memory=False)
    model = AutoModelForCausalLM.from_pretrained(f"{folder}/model", dtype=torch.float32)
    trainer = GRPOTrainer(model=model, reward_funcs=lambda completions, **_: [float(ANSWER in c) for c in completions],
                          args=config, train_dataset=data, processing_class=tokenizer, callbacks=[Mark()])
    trainer.train()
    lengths = [row["completions/mean_length"] for row in trainer.state.log_history if "completions/mean_length" in row]
    print(json.dumps({"first_step_s": ends[0], "step_s": (ends[-1] - ends[0]) / steps,
                      "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                      "mean_length": sum(lengths) / len(lengths)}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ucas", default=os.path.join(HERE, "../build/ucas"))
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--micro", type=int, default=4096, help="ucas: tokens per forward and backward pass")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        return peer(arguments.peer, arguments.steps)
    python = os.environ.get("PEER_PYTHON") or sys.exit("set PEER_PYTHON (see bench/README.md)")
    with tempfile.TemporaryDirectory(prefix="ucas-bench-") as folder:
        prepare(folder)
        ours = ucas_figures(arguments, folder)
        quiet = dict(os.environ, HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", TOKENIZERS_PARALLELISM="false")
        _, _, output = pinned(arguments.core, [python, os.path.realpath(__file__), "--peer", folder, "--steps",
                                               str(arguments.steps)], env=quiet, stderr=subprocess.DEVNULL)
    theirs = json.loads(output.strip().split("\n")[-1])
    print(f"{PROMPTS} prompts x {SAMPLES} samples, {PROMPT_TOKENS} + {NEW_TOKENS} tokens, d 128, 4 layers, V 512, f32, one core")
    print(f"{'':32} {'ucas':>10} {'TRL':>10} {'ratio':>8}")
    for key, text in (("step_s", "RL step, CPU s"), ("first_step_s", "launch to first step done, CPU s"),
                      ("peak_mib", "peak memory, MiB"), ("mean_length", "mean response length")):
        print(f"{text:32} {ours[key]:10.2f} {theirs[key]:10.2f} {theirs[key] / ours[key]:8.2f}")


main()
