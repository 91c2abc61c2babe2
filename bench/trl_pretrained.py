"""RLVR of a real pretrained model beside TRL's GRPOTrainer: the same weights, prompts, group size, lengths and reward, on one core each.

    ucas make-task --task word-problems --out words
    PEER_PYTHON=.../bin/python bench/trl_pretrained.py MODEL words [--ucas build/ucas] [--core 0] [--steps 8] [--only ucas|trl]

MODEL is what `make demo-real` converts: SmolLM2-135M-Instruct. Both train by config demo-pretrained: 16 prompts x 8 responses of at most 48 tokens
after four worked examples, bf16, Adam with 1e-5, DAPO's loss, two updates a step, no KL; a response that is cut is wrong. ucas leaves out groups
that are all right or all wrong, which is DAPO's; TRL trains on all. Printed by step: the share of right samples, seconds, CPU seconds; and peak memory.
"""
import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time

PROMPTS, SAMPLES, NEW_TOKENS, SHOTS = 16, 8, 48, 4
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def rows_of(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ours(arguments, folder):
    """Steps are seen from outside, by the lines of steps.jsonl, so that CPU seconds stand beside each."""
    out = f"{folder}/run"
    command = ["taskset", "-c", str(arguments.core), arguments.ucas, "train", "demo-pretrained", "--model", arguments.model, "--data",
               f"{arguments.words}/train.jsonl", "--data.few_shot", os.path.abspath(f"{arguments.words}/shots.jsonl"), "--data.shots", str(SHOTS),
               "--train.val_before_train", "false", "--train.test_freq", "0", "--train.stored_signals", "0", "--train.steps",
               str(arguments.steps), "--threads", "1", "--out", out]
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=open(f"{folder}/ucas.log", "wb"))
    marks = []
    while process.poll() is None:
        time.sleep(0.05)
        done = len(rows_of(f"{out}/steps.jsonl")) if os.path.exists(f"{out}/steps.jsonl") else 0
        now = (time.monotonic() - began, cpu_seconds(process.pid)) if process.poll() is None else (marks or [(0, 0)])[-1]
        marks += [now] * (done - len(marks))
    if process.returncode != 0:
        sys.exit(open(f"{folder}/ucas.log", encoding="utf-8").read())
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    rewards = [row["critic/score/mean"] for row in rows_of(f"{out}/steps.jsonl")]
    lengths = [row["response_length/mean"] for row in rows_of(f"{out}/steps.jsonl")]
    return report(rewards, marks, usage.ru_maxrss / 1024, lengths)


def report(rewards, marks, peak_mib, lengths):
    """marks: seconds and CPU seconds since the start, at the end of each step; the first step carries the start."""
    steps = [(b[0] - a[0], b[1] - a[1]) for a, b in zip([(0.0, 0.0), *marks], marks)]
    return {"right": rewards, "s": [s for s, _ in steps], "cpu_s": [c for _, c in steps], "peak_mib": peak_mib, "lengths": lengths}


def theirs(arguments):
    """Runs inside PEER_PYTHON."""
    import torch
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    torch.set_num_threads(1)
    shots = []
    for row in rows_of(f"{arguments.words}/shots.jsonl")[:SHOTS]:
        shots += [{"role": "user", "content": row["problem"]}, {"role": "assistant", "content": row["response"]}]
    data = Dataset.from_list([{"prompt": [*shots, {"role": "user", "content": row["problem"]}], "answer": str(row["answer"])}
                              for row in rows_of(f"{arguments.words}/train.jsonl")])
    tokenizer = AutoTokenizer.from_pretrained(arguments.model)
    rewards, marks = [], []
    began = time.monotonic()

    def right(completions, answer, completion_ids, **_):
        """The last number, as the lenient extraction finds it; wrong where the end token did not come."""
        got = []
        for completion, gold, ids in zip(completions, answer, completion_ids):
            numbers = NUMBER.findall(completion[0]["content"].replace(",", ""))
            got.append(float(tokenizer.eos_token_id in ids and bool(numbers) and float(numbers[-1]) == float(gold)))
        rewards.append(sum(got) / len(got))
        return got

    class Mark(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            if state.global_step % 2 == 0:
                marks.append((time.monotonic() - began, time.process_time()))
                print(f"TRL: step {len(marks)}, {marks[-1][1]:.0f} CPU seconds so far, right {100 * rewards[-1]:.1f} %", file=sys.stderr, flush=True)

    config = GRPOConfig(output_dir=tempfile.mkdtemp(), max_steps=2 * arguments.steps, learning_rate=1e-5, warmup_steps=4,
                        lr_scheduler_type="constant_with_warmup", per_device_train_batch_size=8, gradient_accumulation_steps=8,
                        steps_per_generation=16, num_generations=SAMPLES, max_completion_length=NEW_TOKENS, beta=0.0, epsilon=0.2,
                        epsilon_high=0.28, loss_type="dapo", temperature=1.0, bf16=True, use_cpu=True, gradient_checkpointing=False,
                        weight_decay=0.1, max_grad_norm=1.0, logging_steps=2, report_to=[], save_strategy="no", seed=0, disable_tqdm=True,
                        dataloader_pin_memory=False)
    model = AutoModelForCausalLM.from_pretrained(arguments.model, dtype=torch.float32)
    trainer = GRPOTrainer(model=model, reward_funcs=right, args=config, train_dataset=data, processing_class=tokenizer, callbacks=[Mark()])
    trainer.train()
    lengths = [row["completions/mean_length"] for row in trainer.state.log_history if "completions/mean_length" in row]
    print(json.dumps(report(rewards, marks, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, lengths)))


def show(name, result):
    print(f"\n{name}: peak {result['peak_mib']:,.0f} MiB")
    for key, text, places in (("right", "right samples, %", 1), ("lengths", "response tokens", 1), ("s", "seconds", 1), ("cpu_s", "CPU seconds", 1)):
        values = [100 * v if key == "right" else v for v in result[key]]
        print(f"{text:18}" + " ".join(f"{v:7.{places}f}" for v in values))
    later = result["cpu_s"][1:]
    if later:
        print(f"mean CPU seconds of a step after the first: {sum(later) / len(later):.1f}", flush=True)
    return sum(later) / len(later) if later else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("words")
    parser.add_argument("--ucas", default=os.path.join(os.path.dirname(os.path.realpath(__file__)), "../build/ucas"))
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--only", choices=["ucas", "trl"])
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        return theirs(arguments)
    python = os.environ.get("PEER_PYTHON") or sys.exit("set PEER_PYTHON (see bench/README.md)")
    steps, peaks = {}, {}
    with tempfile.TemporaryDirectory(prefix="ucas-bench-") as folder:
        if arguments.only != "trl":
            result = ours(arguments, folder)
            steps["ucas"], peaks["ucas"] = show("ucas", result), result["peak_mib"]
        if arguments.only != "ucas":
            quiet = dict(os.environ, HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", TOKENIZERS_PARALLELISM="false")
            output = subprocess.run(["taskset", "-c", str(arguments.core), python, os.path.realpath(__file__), arguments.model, arguments.words,
                                     "--steps", str(arguments.steps), "--peer"], env=quiet, stdout=subprocess.PIPE, text=True, check=True).stdout
            result = json.loads(output.strip().split("\n")[-1])
            steps["TRL"], peaks["TRL"] = show("TRL", result), result["peak_mib"]
    if len(steps) == 2 and all(steps.values()):
        print(f"\nTRL / ucas: CPU seconds of a step {steps['TRL'] / steps['ucas']:.2f}, peak memory {peaks['TRL'] / peaks['ucas']:.2f}")


main()
