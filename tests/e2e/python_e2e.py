"""Python beside a training: rewards and advantages by functions, trackers, ucas.train: python_e2e.py BUILD

Everything by the Python that runs this test and the base of the other end-to-end tests; what needs a package that is not here is left out,
and said. UCAS_TEST_PYTHON names a Python that has tensorboard, wandb and reasoning-gym.
"""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

from support import wait_until

HERE = os.path.dirname(os.path.realpath(__file__))
REWARDS = '''
import os
def trl(completions, answer, **kwargs):
    print("this is no reply")
    return [float(a in c) for a, c in zip(answer, completions)]
def verl(data_source, solution_str, ground_truth, extra_info=None):
    return {"score": 1.0 if ground_truth in solution_str else 0.0, "acc": ground_truth in solution_str}
def batches(data_sources, solution_strs, ground_truths, extra_infos):
    with open("batches", "a") as file:
        file.write(f"{len(solution_strs)}\\n")
    return [float(g in s) for g, s in zip(ground_truths, solution_strs)]
def level(completions, level, completion_ids, log_extra, **kwargs):
    log_extra("level", level)
    return [float(one == "hard" and len(ids) > 0) for one, ids in zip(level, completion_ids)]
def chat(prompts, completions, **kwargs):
    return [float(p[-1]["role"] == "user" and c[0]["role"] == "assistant" and isinstance(c[0]["content"], str)) for p, c in zip(prompts, completions)]
def extra(data_source, solution_str, ground_truth, extra_info):
    return float(extra_info["difficulty"] == 3 and "tokens" in extra_info)
def unfit(completions, absent):
    return [0.0] * len(completions)
def raises(completions, **kwargs):
    return 1 / 0
def short(completions, **kwargs):
    return [1.0]
def infinite(data_source, solution_str, ground_truth):
    return float("inf")
def nan(completions, **kwargs):
    return [0.5, float("nan")] * (len(completions) // 2)
def late(completions, **kwargs):
    return [1 / (len(completions) < 5)] * len(completions)
def late_short(completions, **kwargs):
    return [1.0] * min(2, len(completions))
def none(completions, **kwargs):
    return [None if i % 4 == 0 else float(i % 2) for i in range(len(completions))]
def nearly_none(completions, **kwargs):
    return [None if i % 4 else 1.0 for i in range(len(completions))]
def grpo(step):
    return [(r["reward"] - r["group_mean"]) / (r["group_std"] + 1e-6) for r in step["responses"]]
def own(step):
    return [r["advantage"] for r in step["responses"]]
def zeros(step):
    return [[0.0] * r["length"] for r in step["responses"]]
def wrong_length(step):
    return [[0.0] for r in step["responses"]]
'''


class Test:
    def __init__(self, build, scratch):
        self.ucas, self.scratch, self.failures = os.path.abspath(os.path.join(build, "ucas")), scratch, 0
        self.python = os.environ.get("UCAS_TEST_PYTHON", sys.executable)
        self.environment = dict(os.environ, NO_TTY="1", UCAS_PYTHON=self.python, XDG_CACHE_HOME=os.path.join(scratch, "cache"))
        self.base = os.path.join(scratch, "base")
        shape = ["--words", "\\boxed{,},0,1,2,3,?", "--hidden", "32", "--layers", "1", "--heads", "2", "--kv-heads", "1", "--intermediate", "64", "--spread", "0.3"]
        subprocess.run([sys.executable, os.path.join(HERE, "../support/make_checkpoint.py"), self.base, *shape], check=True)
        with open(os.path.join(scratch, "train.jsonl"), "w") as file:
            file.writelines(json.dumps({"problem": f"{i}?", "answer": str(i % 4), "level": "hard"}) + "\n" for i in range(4))
        with open(os.path.join(scratch, "chats.jsonl"), "w") as file:
            file.writelines(json.dumps({"prompt": [{"role": "user", "content": f"{i}?"}], "reward_model": {"ground_truth": str(i % 4)},
                                        "extra_info": {"difficulty": 3}}) + "\n" for i in range(4))
        with open(os.path.join(scratch, "own.py"), "w") as file:
            file.write(REWARDS)

    def has(self, *modules):
        return subprocess.run([self.python, "-c", "import " + ", ".join(modules)], capture_output=True).returncode == 0

    def train(self, out, *words, **variables):
        small = [*([] if "--model" in words else ["--model", "base"]), "--data.train_batch_size", "2", "--data.gen_batch_size", "0", "--update.mini_batch_size", "1", "--rollout.n", "4",
                 "--rollout.response_length", "12", "--train.test_freq", "0", "--threads", "1", "--train.steps", "2", "--optimizer.lr", "1e-2"]
        data = [] if "--data" in words else ["--data", "train.jsonl"]
        return subprocess.run([self.ucas, "train", "grpo-tiny", *small, *data, "--out", out, *words], cwd=self.scratch,
                              env=self.environment | variables, capture_output=True, text=True)

    def say(self, what, ok, done=None):
        print(("ok   " if ok else "FAIL ") + what, flush=True)
        if not ok:
            self.failures += 1
            if done is not None:
                print(f"    exit {done.returncode}\n    out: {done.stdout[-1500:]}\n    err: {done.stderr[-2500:]}")

    def steps(self, out):
        with open(os.path.join(self.scratch, out, "steps.jsonl")) as file:
            return [json.loads(line) for line in file]

    def weights(self, out):
        with open(os.path.join(self.scratch, out, "checkpoints/step-0000002/model.safetensors"), "rb") as file:
            return file.read()


def rewards(test):
    scores = {}
    for name in ("trl", "verl", "batches"):
        done = test.train(f"reward-{name}", "--reward.python", f"own.py:{name}")
        test.say(f"a reward as {name} has it", done.returncode == 0, done)
        scores[name] = [row["critic/score/mean"] for row in test.steps(f"reward-{name}")]
    test.say("the same rewards by each of them", scores["trl"] == scores["verl"] == scores["batches"] and any(scores["trl"]))
    with open(os.path.join(test.scratch, "batches")) as file:
        test.say("in whole batches, after a call on two rows", file.read() == "2\n8\n8\n")
    done = test.train("reward-dotted", "--reward.python", "own.trl")
    test.say("by its dotted path", done.returncode == 0 and [row["critic/score/mean"] for row in test.steps("reward-dotted")] == scores["trl"], done)
    for name, data in (("level", "train.jsonl"), ("chat", "chats.jsonl"), ("extra", "chats.jsonl")):
        done = test.train(f"reward-{name}", "--reward.python", f"own.py:{name}", "--data", data)
        test.say(f"what TRL and verl hand on: {name}", done.returncode == 0 and {row["critic/score/mean"] for row in test.steps(f"reward-{name}")[1:]} == {1.0}, done)
    done = test.train("unfit", "--reward.python", "own.py:unfit")
    test.say("a column that the data do not have is named before the first step", done.returncode == 2 and "missing a required argument: 'absent'" in done.stderr
             and "level" in done.stderr and not os.path.exists(os.path.join(test.scratch, "unfit")), done)
    for name, said in (("raises", "raises ZeroDivisionError: division by zero when called with train/1, train/2 of the data, before the first step"),
                       ("short", "gave 1 scores for 2 responses"), ("nan", "gave nan for the response to train/2; expected a finite number"),
                       ("infinite", "gave inf for the response to train/1; expected a finite number")):
        done = test.train(name, "--reward.python", f"own.py:{name}")
        traced = name != "raises" or 'own.py", line' in done.stderr
        test.say(f"what a call on two rows shows ends before the first step: {name}", done.returncode == 2 and traced and not os.path.exists(os.path.join(test.scratch, name))
                 and f"error[python]: reward.python own.py:{name}: {said}" in done.stderr, done)
    done = test.train("late", "--reward.python", "own.py:late")
    test.say("an exception ends the run with its traceback", done.returncode == 74 and "ZeroDivisionError: division by zero" in done.stderr
             and 'own.py", line' in done.stderr and "error[reward]: reward.python own.py:late: ended with exit code 1" in done.stderr, done)
    done = test.train("late-short", "--reward.python", "own.py:late_short")
    test.say("too few scores are refused", done.returncode == 74 and "gave 2 scores for 8 responses" in done.stderr, done)
    done = test.train("none", "--reward.python", "own.py:none")
    means = [row["critic/score/mean"] for row in test.steps("none")[-2:]] if done.returncode == 0 else []
    test.say("None leaves a response out of its group", len(means) == 2 and all(abs(mean - 2 / 3) < 1e-6 for mean in means)
             and "no score (None) for 2 responses: left out of their groups" in done.stderr, done)
    done = test.train("nearly-none", "--reward.python", "own.py:nearly_none")
    still = [row.get("critic/advantages/max", 0) for row in test.steps("nearly-none")[-2:]] if done.returncode == 0 else []
    test.say("a group of which one is left does not learn", still == [0, 0], done)
    done = test.train("absent", "--reward.python", "own.py:absent")
    test.say("a function that is not there is named", done.returncode == 2 and "own.py has no function absent; it has trl, verl" in done.stderr, done)
    done = test.train("both", "--reward.python", "own.py:trl", "--reward.command", "cat")
    test.say("not with reward.command", done.returncode == 2 and "both given" in done.stderr, done)


# Written after the layout of published GRPO trainings: messages with tags, columns by their names, verl's countdown.
PUBLISHED = """
import re
def correctness_reward_func(prompts, completions, answer, **kwargs) -> list[float]:
    responses = [completion[0]["content"] for completion in completions]
    print(f"Question: {prompts[0][-1]['content']} Answer: {answer[0]} Response: {responses[0]}")
    extracted = [text.split("<answer>")[-1].split("</answer>")[0].strip() for text in responses]
    return [2.0 if r == a else 0.0 for r, a in zip(extracted, answer)]
def soft_format_reward_func(completions, **kwargs) -> list[float]:
    return [0.5 if re.match(r"<think>.*?</think>", completion[0]["content"]) else 0.0 for completion in completions]
def compute_score(solution_str, ground_truth, method="strict", format_score=0.1, score=1.0):
    numbers = [int(n) for n in re.findall(r"\\d+", solution_str)]
    if sorted(numbers) != sorted(ground_truth["numbers"]):
        return format_score
    return score if sum(numbers) == ground_truth["target"] else 0
try:
    from trl.rewards import get_soft_overlong_punishment
    overlong = get_soft_overlong_punishment(12, 6)
except ImportError:
    pass
"""


def published(test):
    """Reward functions as TRL, verl and people who use them write them, unchanged."""
    with open(os.path.join(test.scratch, "published.py"), "w") as file:
        file.write(PUBLISHED)
    with open(os.path.join(test.scratch, "chats-and-columns.jsonl"), "w") as file:
        file.writelines(json.dumps({"prompt": [{"role": "user", "content": f"{i}?"}], "answer": str(i % 4),
                                    "solution": f"${i % 4}$" if i else "no formula"}) + "\n" for i in range(4))
    with open(os.path.join(test.scratch, "countdown.jsonl"), "w") as file:
        file.writelines(json.dumps({"data_source": "countdown", "prompt": [{"role": "user", "content": f"{i}?"}],
                                    "reward_model": {"style": "rule", "ground_truth": {"target": 3, "numbers": [1, 2]}}}) + "\n" for i in range(4))
    chats = ("--data", "chats-and-columns.jsonl")
    asked = [("published.py:correctness_reward_func", chats, {0, 2}), ("published.py:soft_format_reward_func", chats, {0, 0.5}),
             ("published.py:compute_score", ("--data", "countdown.jsonl"), {0, 0.1, 1})]
    if test.has("trl.rewards", "math_verify"):
        asked += [("trl.rewards.accuracy_reward", chats, {0, 1}), ("trl.rewards.think_format_reward", chats, {0, 1}), ("published.py:overlong", chats, None)]
    else:
        print("left out: trl or math_verify is not installed")
    found = subprocess.run([test.python, "-c", "import importlib.util as u; print(u.find_spec('verl').submodule_search_locations[0])"], capture_output=True, text=True)
    if found.returncode == 0:  # by their files, as its __init__ asks for ray
        asked += [(os.path.join(found.stdout.strip(), f"utils/reward_score/{name}.py:compute_score"), (), {0, 1}) for name in ("gsm8k", "math_reward")]
    else:
        print("left out: verl is not installed")
    for i, (place, data, scores) in enumerate(asked):
        validated = ("--val", data[1], "--train.test_freq", "2", "--train.val_n", "2") if data else ()
        done = test.train(f"published-{i}", "--reward.python", place, *data, *validated)
        rows = []
        if done.returncode == 0:
            for path in glob.glob(os.path.join(test.scratch, f"published-{i}/rollouts/*.jsonl")):
                with open(path) as file:
                    rows += [json.loads(line) for line in file]
        given = {round(row["score"], 6) for row in rows if "score" in row}
        test.say(f"unchanged: {place}", done.returncode == 0 and len(given) > 0 and (scores is None or given <= scores), done)
        means = [value for row in test.steps(f"published-{i}") for key, value in row.items() if "/reward/mean@" in key] if done.returncode == 0 else []
        test.say(f"and validated by it: {place}", not data or (len(means) == 4 and all(min(scores or [-1]) <= mean <= max(scores or [0]) for mean in means)), done)


def advantages(test):
    plain = test.train("plain", "--objective.aggregation", "token_mean")
    test.say("a training", plain.returncode == 0, plain)
    own = test.train("own", "--method.python", "own.py:own", "--objective.aggregation", "token_mean")
    test.say("the method's own advantages, through Python, give the same bits", own.returncode == 0 and test.weights("own") == test.weights("plain"), own)
    grpo = test.train("grpo", "--method.python", "own.py:grpo", "--objective.aggregation", "token_mean")
    rows = [(a["critic/advantages/max"], b["critic/advantages/max"]) for a, b in zip(test.steps("grpo"), test.steps("plain"))]
    test.say("GRPO's own formula in Python", grpo.returncode == 0 and all(abs(a - b) < 1e-4 for a, b in rows), grpo)
    zeros = test.train("zeros", "--method.python", "own.py:zeros")
    test.say("one number for each token", zeros.returncode == 0 and all(row["critic/advantages/max"] == 0 for row in test.steps("zeros")), zeros)
    wrong = test.train("wrong", "--method.python", "own.py:wrong_length")
    test.say("a wrong length is refused", wrong.returncode == 74 and "advantages for the" in wrong.stderr, wrong)


READ_EVENTS = """
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1]); events.Reload()
print([(e.step, round(e.value, 5)) for e in events.Scalars("critic/score/mean")])
"""
# Its records are protobuf messages by its own definitions, in the framing of LevelDB's log: blocks of 32 KiB, chunks of crc, length, type.
READ_WANDB = """
import sys, json
from wandb.proto import wandb_internal_pb2
data, rows, at, record = open(sys.argv[1], "rb").read(), [], 7, b""
assert data[:4] == b":W&B"
while at + 7 <= len(data):
    if 32768 - at % 32768 < 7:
        at += 32768 - at % 32768
        continue
    length, kind = int.from_bytes(data[at + 4:at + 6], "little"), data[at + 6]
    record += data[at + 7:at + 7 + length]
    at += 7 + length
    if kind in (2, 3):  # first, middle
        continue
    message, record = wandb_internal_pb2.Record.FromString(record), b""
    if message.WhichOneof("record_type") == "history":
        row = {(item.key or "/".join(item.nested_key)): json.loads(item.value_json) for item in message.history.item}
        rows.append((row.get("_step", message.history.step.num), round(row["critic/score/mean"], 5)))
print(rows)
"""


def trackers(test):
    done = test.train("tracked", "--reward.python", "own.py:trl")
    wanted = [(int(row["training/global_step"]), round(row["critic/score/mean"], 5)) for row in test.steps("tracked")] if done.returncode == 0 else []
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python", "ucas", "track.py")

    def sent_to(name, **more):
        sent = subprocess.run([test.python, script, "tracked", "--to", name], cwd=test.scratch, capture_output=True, text=True, env=test.environment | more)
        test.say(f"a run is sent to {name}", sent.returncode == 0 and f"{len(wanted)} steps sent to {name}" in sent.stdout, sent)

    if test.has("tensorboard"):
        sent_to("tensorboard")
        read = subprocess.run([test.python, "-c", READ_EVENTS, os.path.join(test.scratch, "tracked/tensorboard")], capture_output=True, text=True)
        test.say("TensorBoard's own reader", read.stdout.strip().split("\n")[-1] == str(wanted), read)
    else:
        print("left out: tensorboard is not installed")
    if test.has("wandb"):
        sent_to("wandb", WANDB_MODE="offline", WANDB_DIR=test.scratch, WANDB_SILENT="true")
        files = glob.glob(os.path.join(test.scratch, "wandb/offline-run-*/*.wandb"))
        read = subprocess.run([test.python, "-c", READ_WANDB, files[0] if files else ""], capture_output=True, text=True)
        test.say("W&B's own messages", len(files) == 1 and read.stdout.strip().split("\n")[-1] == str(wanted), read)
    else:
        print("left out: wandb is not installed")


def reasoning(test):
    absent = test.train("gym", "--data", "rg:chain_sum,size=4,seed=1", UCAS_PYTHON="/nowhere/python")
    test.say("without a Python it is refused", absent.returncode == 2 and "error[python]: rg:chain_sum,size=4,seed=1:" in absent.stderr, absent)
    if not test.has("reasoning_gym"):
        absent = test.train("gym", "--data", "rg:chain_sum,size=4,seed=1")
        test.say("without the package it is refused", absent.returncode == 2 and "pip install reasoning-gym" in absent.stderr, absent)
        return print("left out: reasoning-gym is not installed")
    unknown = test.train("gym", "--data", "rg:chain_sun,size=4")
    test.say("a task that there is not", unknown.returncode == 2 and "did you mean chain_sum?" in unknown.stderr, unknown)
    tokenizer, rows = os.path.join(test.scratch, "tokenizer"), os.path.join(test.scratch, "rows.jsonl")
    shutil.copytree(os.path.join(HERE, "../goldens/tokenizer/qwen2-like"), tokenizer)
    for path, row in ((os.path.join(tokenizer, "tokenizer_config.json"), {"eos_token": "<|end|>"}), (rows, {"prompt": "a", "response": "b"})):
        with open(path, "w") as file:
            file.write(json.dumps(row) + "\n")
    made = subprocess.run([test.ucas, "sft", "--init", "qwen2", "--model.hidden_size", "32", "--model.num_hidden_layers", "1", "--tokenizer", tokenizer,
                           "--data", rows, "--steps", "1", "--threads", "1", "--out", "bytes"], cwd=test.scratch, capture_output=True, text=True)
    test.say("a model of bytes", made.returncode == 0, made)
    done = test.train("gym", "--data", "rg:chain_sum,size=4,seed=1", "--data.max_prompt_length", "256", "--train.steps", "1", "--model", "bytes")
    test.say("a training on a task, scored by it", done.returncode == 0 and "reward.python = reasoning_gym" in done.stderr
             and test.steps("gym")[-1]["critic/score/mean"] >= 0, done)
    shown = subprocess.run([test.ucas, "check", "rg:chain_sum,size=4,seed=1", "--summary"], cwd=test.scratch, env=test.environment, capture_output=True, text=True)
    test.say("and what it holds", "4 whole number" in shown.stdout and "4 rg:chain_sum" in shown.stdout, shown)


# A package that evaluates answers as reasoning-gym's scorers do, by exec(), which the sandbox alone keeps in.
FAKE = """
class Data:
    def __getitem__(self, index):
        return {"question": f"{index}?", "answer": str(index)}
    def score_answer(self, answer, entry):
        names = {}
        exec("value = " + answer, names)
        return float(str(names["value"]) == entry["answer"])
def create_dataset(task, **settings):
    return Data()
"""
CODE = "__import__('{}').{}"
ANSWERS = {  # of the problem 0; nothing that an answer does reaches another one
    "1": 0.0, "0": 1.0,
    "open(MARK, 'w')": 0.0, CODE.format("os", "system('touch ' + MARK)"): 0.0, CODE.format("os", "kill(1, 9)"): 0.0,
    CODE.format("tempfile", "TemporaryFile().write(b'x' * 99999)"): 0.0, CODE.format("os", "write(4, b'{\"score\": 1.0, \"why\": \"\"}\\n')"): 0.0,
    CODE.format("builtins", "__dict__.__setitem__('float', lambda *a: 1.0)"): 1.0, CODE.format("os", "_exit(0)"): 0.0,
    CODE.format("socket", "socket()"): 0.0, CODE.format("os", "open('/etc/passwd', 0)"): 0.0, "' ' * 10**11": 0.0,
    "[0 for _ in iter(int, 1)]": 0.0, CODE.format("time", "sleep(10**6)"): 0.0, CODE.format("signal", "pause()") + " if not __import__('os').fork() else 5": 0.0,
    CODE.format("resource", "prlimit(1, 0, (1, 1))"): 0.0, "[__import__('os').fork() for _ in range(9)]": 0.0, "0 ": 1.0, "2": 0.0,
}


def scorers(test):
    """Whatever a scorer evaluates costs its own answer at most."""
    if "tier a: ok" not in subprocess.run([test.ucas, "doctor", "--sandbox"], capture_output=True, text=True).stdout:
        return print("left out: no sandbox of tier a")
    os.chmod(test.scratch, 0o755)
    package, mark, script = os.path.join(test.scratch, "packages"), os.path.join(test.scratch, "mark"), os.path.join(HERE, "../../python/ucas/reasoning.py")
    os.makedirs(os.path.join(package, "reasoning_gym"))
    for name, text in (("__init__.py", FAKE), ("factory.py", "DATASETS = {'fake': None}")):
        with open(os.path.join(package, "reasoning_gym", name), "w") as file:
            file.write(text)
    with open(os.path.join(test.scratch, "fake.jsonl"), "w") as file:
        file.write(json.dumps({"id": "fake/0", "problem": "0?", "reasoning_gym": {"task": "fake", "settings": {}, "index": 0}}) + "\n")
    answers = [answer.replace("MARK", repr(mark)) for answer in ANSWERS]
    asked = "".join(json.dumps({"id": i, "problem": "fake/0", "verdict": "unequal", "response": f"<answer>{answer}</answer>"}) + "\n"
                    for i, answer in enumerate(answers))
    for python in (test.python, "/usr/bin/python3"):
        done = subprocess.run([python, "-B", script, "score", os.path.join(os.path.dirname(test.ucas), "ucas-sandbox"), "2", "1", str(2 << 30), "fake.jsonl"],
                              cwd=test.scratch, input=asked, capture_output=True, text=True, env=test.environment | {"PYTHONPATH": package})
        if "every user must be able to read" not in done.stderr:
            break
        print(f"left out: {python}, which not every user can read")
    else:
        return
    got = [json.loads(line)["score"] for line in done.stdout.split("\n") if line]
    for answer, wanted, score in zip(answers, ANSWERS.values(), got):
        test.say(f"{answer[:60]} is scored {wanted:g}", score == wanted, done)
    test.say(f"{len(answers)} answers, a score for each", len(got) == len(answers), done)
    test.say("and no file is made", not os.path.exists(mark))


def stopped(test):
    """A Python under way ends with the program that asked it."""
    slow, pid = os.path.join(test.scratch, "slow.sh"), os.path.join(test.scratch, "slow.pid")
    with open(slow, "w") as file:
        file.write(f"#!/bin/sh\nsetsid sleep 100000 &\necho $! > '{pid}.new'; mv '{pid}.new' '{pid}'\nwait\n")
    os.chmod(slow, 0o755)
    asks = subprocess.Popen([test.ucas, "check", "rg:chain_sum,size=4", "--summary"], cwd=test.scratch, env=test.environment | {"UCAS_PYTHON": slow},
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wait_until(lambda: os.path.exists(pid), asks)
    asks.terminate()
    asks.communicate()
    with open(pid) as file:
        left = int(file.read())
    wait_until(lambda: not os.path.exists(f"/proc/{left}"))
    test.say("SIGTERM while problems are made ends all of it", asks.returncode != 0)


FROM_PYTHON = """
import sys
sys.path.insert(0, sys.argv[1])
import training
run = training.train("grpo-tiny", out="from-python", model="base", data="train.jsonl", **{"data.train_batch_size": 2, "data.gen_batch_size": 0},
                     rollout={"n": 4, "response_length": 12}, update={"mini_batch_size": 1}, train={"steps": 2, "test_freq": 0}, threads=1)
steps = [int(row["training/global_step"]) for row in run]
run.wait()
print(steps, run.latest()["training/global_step"], run.running)
try:
    training.train("grpo-tiny", out="refused", model="absent", data="train.jsonl", train={"test_freq": 0}).wait()
except training.Error as error:
    print(str(error).split("\\n")[0])
"""


def from_python(test):
    done = subprocess.run([sys.executable, "-c", FROM_PYTHON, os.path.join(HERE, "../../python/ucas")], cwd=test.scratch, capture_output=True, text=True,
                          env=test.environment | {"UCAS_PROGRAM": test.ucas})
    lines = done.stdout.split("\n")
    test.say("ucas.train follows a training", lines[0] == "[1, 2] 2 False", done)
    test.say("and says what went wrong", len(lines) > 1 and "ucas train ended with 2: ucas: error[path]" in lines[1], done)


def main():
    with tempfile.TemporaryDirectory(prefix="ucas-python-") as scratch:
        test = Test(sys.argv[1], scratch)
        for part in (rewards, published, advantages, trackers, reasoning, scorers, stopped, from_python):
            part(test)
    print(f"{test.failures} failures")
    sys.exit(1 if test.failures else 0)


if __name__ == "__main__":
    main()
