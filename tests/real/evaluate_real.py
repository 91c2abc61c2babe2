"""`ucas evaluate` of the real model on rows of GSM8K (own sums where the shared data is not there), and `ucas serve` with its chat
template: the answers of transformers over HTTP."""
import json
import os
import signal
import subprocess
import urllib.request

from real import HANG, UCAS, check, clean, golden, lines, model, path, ucas, write_lines

from many_texts import shared  # noqa: E402
from prompts import word_problem  # noqa: E402

ROWS, LENGTH = 12, 128
gsm8k = os.path.join(shared(), "eval", "extra_gsm8k.jsonl")
problems = lines(gsm8k)[:ROWS] if os.path.exists(gsm8k) else [{"problem": p, "answer": str(a)} for p, a in map(word_problem, range(ROWS))]
data = write_lines(path("gsm8k.jsonl"), [{**row, "id": f"r{i}"} for i, row in enumerate(problems)])
words = ["evaluate", f"smollm2={model('bf16')}", "--data", data, "--template", "chat", "--extract", "lenient", "--max_tokens", LENGTH, "--samples", 0,
         "--dtype", "bf16", "--out", path("evaluation")]
print(ucas(*words).stdout)
outputs = lines(path("evaluation", "smollm2", "eval", "gsm8k.outputs.jsonl"))[1:]
check(len(outputs) == ROWS, f"{ROWS} problems of {'GSM8K' if os.path.exists(gsm8k) else 'our own'} were answered")
ucas("verify", path("evaluation", "smollm2"))
check(True, "its figures are what its responses come to")

process = subprocess.Popen([UCAS, "serve", model(), "--port", "0", "--template", "chat"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
url = process.stdout.readline().split()[-1]
for row in [golden("answers.json")[i] for i in (0, 2, 10)]:
    body = {"messages": [{"role": "user", "content": row["prompt"]}], "temperature": 0, "max_tokens": 128, "logprobs": True}
    request = urllib.request.Request(url + "/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=HANG) as reply:
        answer = json.load(reply)
    made = [token["logprob"] for token in answer["choices"][0]["logprobs"]["content"]]
    theirs = row["f32"]["logprob"]
    check(answer["usage"]["prompt_tokens"] == len(row["prompt_ids"]) and abs(len(made) - len(theirs)) <= 1 and
          all(abs(x - y) < 1e-3 for x, y in zip(made, theirs)), f"served: {answer['choices'][0]['message']['content'][:60]!r}")
process.send_signal(signal.SIGTERM)
process.communicate(timeout=HANG)
check(process.returncode == 0, "SIGTERM ends it")
clean()
