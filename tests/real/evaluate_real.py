"""`ucas evaluate` of the real model on rows of GSM8K (own sums where the shared data is not there)."""
import os

from real import check, clean, lines, model, path, ucas, write_lines

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

clean()
