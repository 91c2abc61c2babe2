"""The tokenizer of the real model, which lacks 21 of the 256 byte tokens: ids of `tokenizers` on the texts of the golden, and on 15,000
of many kinds where that package is at hand; what can be spelled is decoded back."""
import os
import subprocess

from real import check, clean, golden, json, lines, model, path, peers, ucas, write_lines

from many_texts import many_texts  # noqa: E402

MANY = 15_000
ENCODE = """
import json, sys
from tokenizers import Tokenizer
tokenizer = Tokenizer.from_file(sys.argv[1])
texts = [json.loads(line) for line in open(sys.argv[2], encoding="utf-8")]
with open(sys.argv[3], "w", encoding="utf-8") as file:
    for text, ids in zip(texts, tokenizer.encode_batch(texts, add_special_tokens=False)):
        file.write(json.dumps({"text": text, "ids": ids.ids}) + "\\n")
"""

folder = model()
rows = [{"text": text, "ids": ids} for text, ids in golden("texts.json")]
print(ucas("check", folder, "--ids", write_lines(path("golden.jsonl"), rows)).stdout.strip())
check(True, f"{len(rows)} texts have the ids of tokenizers, also where bytes have no token")
python = peers()
if python is None:
    print(f"left out: {MANY} texts against tokenizers, which cannot be had here")
else:
    texts = many_texts(MANY)
    write_lines(path("texts.jsonl"), texts)
    subprocess.run([python, "-c", ENCODE, os.path.join(folder, "tokenizer.json"), path("texts.jsonl"), path("many.jsonl")], check=True)
    check(len(lines(path("many.jsonl"))) == MANY, f"{MANY} texts, {sum(map(len, texts)):,} characters")
    print(ucas("check", folder, "--ids", path("many.jsonl")).stdout.strip())
    check(True, "all have the same ids")
clean()
