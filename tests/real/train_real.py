"""Training the real model: `ucas sft` begins at the loss of transformers and lowers it; two steps of RLVR, where sampler and trainer agree to
the last bit, end in the same bytes after a SIGKILL in between."""
import json
import os
import signal
import subprocess

from real import UCAS, check, clean, golden, lines, model, path, ucas, wait_until, write_lines

from prompts import TUNED, word_problem  # noqa: E402

data = write_lines(path("rows.jsonl"), TUNED)
words = ["sft", "--model", model(), "--data", data, "--prompt_template", "plain",
         "--batch_size", len(TUNED), "--steps", 3, "--optimizer.lr", "2e-5", "--save_freq", 0]
ucas(*words, "--out", path("tuned"))
losses = [row["loss"] for row in lines(path("tuned", "sft.jsonl"))]
expected = golden("sft.json")
first = sum(loss for _, loss in expected) / sum(count for count, _ in expected)
check(abs(losses[0] - first) < 1e-4, f"sft: the first loss is {losses[0]:.6f}, transformers' {first:.6f}")
check(losses[-1] < 0.9 * losses[0], f"and falls: {', '.join(f'{loss:.3f}' for loss in losses)}")
subprocess.run(["rm", "-r", path("tuned")], check=True)

problems = write_lines(path("train.jsonl"), [{"id": f"w{i}", "problem": p, "answer": str(a)} for i, (p, a) in enumerate(map(word_problem, range(40)))])
words = ["train", "--model", model("bf16"), "--data", problems, "--data.template", "chat", "--method.name", "grpo", "--dtype", "bf16",
         "--objective.entropy_coeff", "1e-3", "--objective.keep_mixed_groups", "false", "--data.train_batch_size", 4, "--data.gen_batch_size", 4,
         "--rollout.n", 4, "--rollout.response_length", 24, "--update.mini_batch_size", 2, "--reward.extract", "lenient",
         "--optimizer.lr", "1e-5", "--optimizer.moments", "int8", "--train.steps", 2, "--train.save_freq", 1, "--train.keep", 1, "--train.test_freq", 0]


def sha256(run):
    return subprocess.run(["sha256sum", os.path.join(run, "checkpoints", "step-0000002", "model.safetensors")], capture_output=True,
                          text=True, check=True).stdout.split()[0]


def steps(run):
    keep = ("training/global_step", "actor/loss", "actor/grad_norm", "actor/entropy", "response_length/mean", "rollout/logprob_diff_max")
    return [{k: row.get(k) for k in keep} for row in lines(os.path.join(run, "steps.jsonl"))]


ucas(*words, "--out", path("whole"))
check(all(row["rollout/logprob_diff_max"] == 0 for row in steps(path("whole"))), "sampler and trainer agree to the last bit at both steps")
check(all(row["actor/grad_norm"] > 0 for row in steps(path("whole"))), "each step has a gradient")
whole = sha256(path("whole"))
rows = steps(path("whole"))
subprocess.run(["rm", "-r", path("whole")], check=True)

process = subprocess.Popen([UCAS, *map(str, words), "--out", path("killed")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
first = path("killed", "checkpoints", "step-0000001")
check(wait_until(lambda: os.path.isdir(first), process), "its first step is kept")
process.send_signal(signal.SIGKILL)
check(process.wait() == -signal.SIGKILL, "killed after the first step")
ucas("train", "--resume", path("killed"))
check(sha256(path("killed")) == whole, "resumed: the same bytes as never killed")
check(steps(path("killed")) == rows, f"and the same figures: {json.dumps(rows[-1])}")
clean()
