#!/usr/bin/env python3
"""Writes tests/goldens/tokenizer/qwen2-deep/{tokenizer.json, cases.jsonl} with Hugging Face tokenizers 0.23.3.

A vocabulary of Qwen2's form with three thousand merges, learnt from the pages of docs/: merges many levels deep, as those of a real
vocabulary are, which the tiny ones of make_tokenizer_goldens.py lack; ids of passages of the pages, of our sources and of texts of many kinds.
Only needed to change the goldens.

    PYTHON -B tools/make_deep_tokenizer_golden.py
"""
import glob
import json
import os
import random

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from make_tokenizer_goldens import FIXED, MORE, row_of
from tokenizer_kinds import PATTERNS

MERGES = 3000


def made():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(PATTERNS["qwen2"]), "isolated"),
                                                       pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=256 + MERGES, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator((open(page, encoding="utf-8").read() for page in sorted(glob.glob("docs/*.md"))), trainer)
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    return tokenizer


def passages(pattern, count, rng):
    lines = [line for name in sorted(glob.glob(pattern, recursive=True)) for line in open(name, encoding="utf-8")]
    for _ in range(count):
        first = rng.randrange(len(lines))
        yield "".join(lines[first:first + rng.randrange(1, 4)])[:400]


def main():
    tokenizer, rng = made(), random.Random("deep")
    texts = [*FIXED, *MORE, *passages("docs/*.md", 60, rng), *passages("src/**/*.cpp", 60, rng), *passages("tools/*.py", 30, rng)]
    texts += ["<|im_start|>user\n" + text.strip() + "<|im_end|>\n" for text in passages("docs/*.md", 10, rng)]
    texts += ["".join(rng.choice(text) for text in (FIXED, MORE) for _ in range(3)) for _ in range(40)]
    folder = "tests/goldens/tokenizer/qwen2-deep"
    os.makedirs(folder, exist_ok=True)
    tokenizer.save(os.path.join(folder, "tokenizer.json"), pretty=False)
    with open(os.path.join(folder, "cases.jsonl"), "w", encoding="ascii") as file:
        for text in texts:
            file.write(json.dumps(row_of(tokenizer, text), separators=(",", ":")) + "\n")
    print(len(texts), "texts")


if __name__ == "__main__":
    main()
