"""Functions of the user's own as tools, and a class as an environment: training over their answers has one set of bits for sampler and trainer in
f32 and bf16, for a run that is killed and resumed, and for a replay; the chat template shows the tools; an evaluation takes them from the run; what
goes wrong in a function is an answer, and what ends or hangs its Python ends the run."""
import json
import os
import re
import subprocess
import sys

from support import HERE, check, clean, environment_of_responses, path, resumes_and_replays, same_bits_over_inserts, ucas

STEPS = 3
CALL, CLOSE = '<tool_call>{"name": "price", "arguments": {"item": "', '"}}</tool_call>'
PRICES = {"bread": 3, "milk": 2, "rice": 5}
WORDS = [CALL, CLOSE, "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "\\boxed{", "user:", "assistant:", "bread", "milk", "rice", "\n", *map(chr, range(32, 127))]
TEMPLATE = ("{% if tools %}{% for t in tools %}{{ t.function.name }}{% endfor %};{% endif %}"
            "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}assistant:")
TOOLS = '''
import os, signal
def ends(item: str): "Ends."; os._exit(3)
def hangs(item: str): "Hangs."; signal.pause()
def bare(item): "Has no type."
ends.__name__ = hangs.__name__ = "price"
class Game:
    turn_ends = ["\\n"]
    def reset(self, problem):
        self.turns, self.problem = 0, problem
    def step(self, text):
        self.turns += 1
        return f"{self.problem['problem']} {self.turns}" if self.turns < 3 else None
'''


def read(*parts):
    with open(path(*parts)) as lines:
        return [json.loads(line) for line in lines]


def write(name, text):
    with open(path(name), "w") as file:
        file.write(text)


def answered(item, value):
    return f"{CALL}{item}{CLOSE};user:<tool_response>\n{value}\n</tool_response>;assistant:\\boxed{{{value}}}"


problems = [(f"{n} {item}?", item, n * price) for item, price in PRICES.items() for n in range(1, 10)]
for name, some in ("train", problems), ("test", problems[::5]):
    write(f"{name}.jsonl", "".join(json.dumps({"problem": text, "answer": str(value)}) + "\n" for text, _, value in some))
write("demonstrations.jsonl", "".join(json.dumps({"prompt": text, "response": answered(item, PRICES[item])}) + "\n" for text, item, _ in problems))
with open(os.path.join(HERE, "..", "..", "docs", "environments.md")) as docs:
    write("shop.py", re.search(r"This is shop.py:\n\n```python\n(.*?)```", docs.read(), re.S)[1].replace("    return", '    print("this is no reply")\n    return'))
write("own.py", TOOLS)
write("shown.toml", """chat = true\nset = ['tools = [{"function": {"name": "price"}}]']\n""")
subprocess.run([sys.executable, os.path.join(HERE, "..", "support", "make_checkpoint.py"), path("raw"), "--words", json.dumps(WORDS),
                "--hidden", "64", "--layers", "2", "--heads", "4", "--kv-heads", "2", "--intermediate", "128"], check=True)
write("raw/chat_template.jinja", TEMPLATE)
ucas("sft", "--model", path("raw"), "--data", path("demonstrations.jsonl"), "--prompt_template", path("shown.toml"), "--steps", 90, "--batch_size", 64,
     "--optimizer.lr", "5e-3", "--threads", 1, "--out", path("base"))


def words(run, *more, tools=f"{path('shop.py')}:price"):
    return ["train", "grpo-tiny", "--model", path("base"), "--data", path("train.jsonl"), "--val", path("test.jsonl"), "--out", path(run),
            "--data.template", "chat", "--rollout.tools", tools, "--rollout.max_turns", 3, "--rollout.tool_chars", 30, "--rollout.tool_seconds", 60, "--rollout.response_length", 90,
            "--rollout.n", 4, "--data.train_batch_size", 4, "--data.gen_batch_size", 4, "--update.mini_batch_size", 2, "--train.steps", STEPS,
            "--train.save_freq", 1, "--train.keep", 9, "--train.stored_signals", 1, "--train.test_freq", 3, "--threads", 1, *more]


def inserts(run):
    return [(row, insert["text"]) for step in range(1, STEPS + 1) for row in read(run, "rollouts", f"step-{step:07d}.jsonl") for insert in row.get("inserts", [])]


done = same_bits_over_inserts(words)
check("this is no reply" in done.stderr and "warning" not in done.stderr, "what a tool prints goes to standard error")
with open(path("base", "tokenizer.json")) as file:
    word_of = {number: word for word, number in json.load(file)["model"]["vocab"].items()}
prompts = {"".join(word_of[i] for i in row["prompt"]) for row in read("one", "signals", "step-0000001.jsonl") if "prompt" in row}
check(prompts and all(prompt.startswith("price;user:") for prompt in prompts), f"the chat template shows the tool: {prompts}")
right = 0
for row, text in inserts("one"):
    said = re.fullmatch(r";user:<tool_response>\n(.+)\n</tool_response>;assistant:", text, re.S)
    check(said, f"a tool's answer: {text!r}")
    item = re.match(re.escape(CALL) + "(bread|milk|rice)" + re.escape(CLOSE), row["transcript"])
    if item and text == row["inserts"][0]["text"]:
        check(said[1] == str(PRICES[item[1]]), f"{item[1]} has its price")
        right += 1
check(right > 10, f"{right} of {len(inserts('one'))} answers were looked up again")

resumes_and_replays(words("killed"), STEPS)

check(environment_of_responses("one", "test") == f"tools {path('shop.py')}:price, 30 characters", "the responses' file names the tool")
done = ucas("evaluate", path("one"), "--data", path("test.jsonl"), "--environment", "calculator", expect=2)
check("one of them answers" in done.stderr, "not with an environment")

# A class: turns that end with a token of the model's are answered in a turn of the user, which the template does not end once more.
with open(path("base", "chat_template.jinja"), "w") as file:
    file.write(TEMPLATE.replace(";{% endfor %}assistant", "<eos>{% endfor %}assistant"))
ucas(*words("game", tools=f"{path('own.py')}:Game"))
said = [(row["problem"], text) for row, text in inserts("game")]
numbers = {f"train/{i + 1}": text for i, (text, *_) in enumerate(problems)}
expected = all(re.fullmatch(re.escape(f"user:{numbers[name]} ") + "[12]<eos>assistant:", text.removeprefix("<eos>")) for name, text in said)
check(len(said) > 20 and expected, f"a class answers each turn: {said[:3]}")
check(any(not text.startswith("<eos>") for _, text in said), "a turn has one end")
done = ucas("replay", path("game"), "--step", 2)
check("16 of 16 responses identical" in done.stdout, "and is replayed")

# What goes wrong before the first step, and later.
own = path("own.py")
for tools, message in ((f"{own}:absent", "own.py has no function absent; it has ends, hangs"), (f"{own}:bare", "expected a docstring and a type hint"),
                       (path("none.py:f"), "no such file as")):
    done = ucas(*words("refused", tools=tools), expect=2)
    check(f"error[python]: rollout.tools = {tools}" in done.stderr and message in done.stderr and not os.path.exists(path("refused")), f"refused: {message}")
check("servers know of no inserts" in ucas(*words("refused", "--rollout.servers", "http://127.0.0.1:1"), expect=2).stderr, "refused: servers")
for name, message in (("ends", "ended with exit code 3 after 0 of 1 replies; the episode is not answered"),
                      ("hangs", "no reply for more than 10 * rollout.tool_seconds = 10 s")):
    done = ucas(*words(name, "--rollout.tool_seconds", 1, "--train.test_freq", 0, tools=f"{own}:{name}"), expect=74)
    check(f"error[python]: rollout.tools = {own}:{name}: {message}" in done.stderr, f"what {name} ends the run")
clean()
