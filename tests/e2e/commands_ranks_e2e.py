"""Of several ranks the first alone does what is not shared (`generate`, `score`, `evaluate`, `sft`), to the files of one process; the others end well."""
import os

from support import check, clean, finish, path, same_bytes, small_task, start_ranks

small_task()
WORDS = {
    "samples.jsonl": ["generate", "--model", path("base"), "--template", "plain", "--data", path("task", "test.jsonl"), "--limit", 5, "--max_tokens", 8],
    "scores.jsonl": ["score", "--model", path("base"), path("1", "samples.jsonl")],
    "evaluated/base/eval/test.jsonl": ["evaluate", path("base"), "--template", "plain", "--data", path("task", "test.jsonl"), "--limit", 5,
                                       "--max_tokens", 8],
    "tuned/model.safetensors": ["sft", "--model", path("base"), "--data", path("task", "sft_worked.jsonl"), "--steps", 2, "--batch_size", 4],
}
for size in (1, 2):
    os.makedirs(path(str(size)), exist_ok=True)
    for file, words in WORDS.items():
        codes, said = finish(start_ranks(size, [*words, "--out", path(str(size), file.split("/")[0])]))
        check(codes == [0] * size and all(text == "" for text in said[1:]), f"{words[0]}: {size} ranks: {codes} {said}")
for file in WORDS:
    check(same_bytes(path("1", file), path("2", file)), f"{file}: of two ranks that of one process")
clean()
