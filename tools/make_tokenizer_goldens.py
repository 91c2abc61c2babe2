#!/usr/bin/env python3
"""Writes tests/goldens/tokenizer/NAME/{tokenizer.json, cases.jsonl} with Hugging Face tokenizers 0.23.3.

A tiny tokenizer of each kind (tokenizer_kinds.py) is trained on a few sentences; the cases are what the library makes of
texts of many kinds. Only needed to change the goldens; building and testing ucas never call it.

    PYTHON -B tools/make_tokenizer_goldens.py [NAME ...]      all of them, or those named
"""
import json
import os
import random
import sys

from tokenizer_kinds import CORPUS, MAKERS

SPACES = list(" \t\n\r\x0b\x0c\x85\xa0\u1680\u2000\u2003\u2028\u2029\u202f\u205f\u3000\u180e\u200b\ufeff\x1c")
FIXED = [
    "", " ", "  ", "\n", "\r\n", "a", " a", "a ", "  a  ", "\n\n a", " \n", " \n ", "\t\t\tx", "\r\n\r\n  \r\n x",
    "'s", "'S", "'\u017f", "'re're", "'LL 'll 'lL", "it's IT'S don't DON'T we'Ve", "''s", "\u2019s", " 's", "'x", "x'",
    "0123456789", "1 22 333 4444", "\u0661\u0662 \u2167 \u00bd \u00b2", "3.14e-10", "#1!", " #1 !!\n\n", "--\r\n--",
    "caf\u00e9 cafe\u0301", "\u1100\u1161\u11a8 \uac00\u11a8", "a\u0345\u0301\u0334", "\u0958 \u0915\u093c", "\u2126 \u212b",
    "\u0301", "\u0301<|end|>\u0301", "e<|end|>\u0301", "\U0001e131\u0334 \U00011938", "\U0001f468\u200d\U0001f469",
    "<|end|>", "<|end|><|end|>", "a<|end|>b", " <|end|> ", "<|end", "<|<|end|>|>", "<|endless|>", "<|end|>\n", "|end|>",
    "mask", "unmask mask masked", " mask mask ", "mask\u0301", "_mask", "mask_", "mask.", "\u24b6mask", "mask\u24e9",
    "[L]", "  [L]  ", "x\n [L] y", "[R]", "  [R]  ", "x [R]\n y", "[L][R]", " [R] [L] ", "[B]", " \t[B]\u3000 x", "[B] [B]",
    "caf\u00e9!", "cafe\u0301!", "xcafe\u0301!y",
    "\x00\x01\x7f\u0080", "\ufffd", "\uffff\U0010ffff", "A" * 200, "ab" * 100, " " * 100, "!" * 70 + "\n" * 5,
]  # fmt: skip


def some_code(rng):
    while True:
        top = rng.choice([0x80, 0x250, 0x3000, 0x10000, 0x110000])
        code = rng.randrange(top)
        if not 0xD800 <= code < 0xE000:
            return chr(code)


def some_text(rng, tokens):
    kinds = [
        lambda: "".join(some_code(rng) for _ in range(rng.randrange(1, 7))),
        lambda: "".join(rng.choice(SPACES[:4] if rng.random() < 0.7 else SPACES) for _ in range(rng.randrange(1, 6))),
        lambda: rng.choice(tokens),
        lambda: rng.choice(FIXED[:80]),
        lambda: "".join(rng.choice("0123456789") for _ in range(rng.randrange(1, 6))),
        lambda: "".join(rng.choice("ea\u0301\u0308\u0323\u0345\u0334\u093c\uac00\u1100\u1161\u11a8") for _ in range(5)),
        lambda: rng.choice("!-#$.\\{}()*_~|<>") * rng.randrange(1, 9),
        lambda: rng.choice(CORPUS)[(i := rng.randrange(60)) : i + rng.randrange(1, 25)],
    ]
    return "".join(rng.choice(kinds)() for _ in range(rng.randrange(1, 6)))


# Beside the oldest three: what SentencePiece's kind, digits in threes and several splits in a row can get wrong.
MORE = [
    "\u2581", "\u2581\u2581a", " \u2581 a", "a\u2581b", "<0x0A>", "x<0xE2>y", "<s>", "</s> <s>", "<unk>", "<s> hi", "hi<s>hi",
    "1234567", "12 345 6789", "a1b22c333d4444", "1,234.5678%", "\u0661\u0662\u0663\u0664", "x" * 300, "\u4f60" * 120,
    "[INST] hi [/INST] there", "[INST]hi", "  [INST]  hi", "a\n\nb", "\r\n", "\u200d\U0001f468\u200d\U0001f469\u200d\U0001f466!",
    "\u3053\u3093\u306b\u3061\u306f \u4e16\u754c\uff01", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", "\u0928\u092e\u0938\u094d\u0924\u0947",
    "the the other", "xxyxx", "AbCdEF gh", "Hello, World!!", "HTTPServer's THEY'LL", "<pad>", "a <pad>b", "#!@$%^&*", " \u00a0 \u3000",
    "{\"a\": [1, 2.50, -3e10]}", "\u0301a", "\U000323af\U0002ebf0\U00010d40", "\u1c80\U0001e5d0", "tail \n", "\ttab\t\ttab",
]  # fmt: skip
# Bytes that no text of the corpus has.
BYTES = [
    "!\x04!", "(\x06)", "th\x04e", "\x13", "a\x14\x16b", "\U00040001", "\x04" * 120, "the\x04\x06 the", "\r\r\n\x0c", "\x04 \x04",
    "12\x0434", "<|\x04end|>", "<|end|>\x04<|end|>", "\u0104\u0100", "\x7f\u00ad\u0080", "~`^", " \x1d the \x1d",
]  # fmt: skip
LACKING = ("smollm2-like", "bytes-unknown", "bytes-fallback")
OLDEST = ("qwen2-like", "gpt2-like", "added-tokens")


def texts_for(name, tokenizer, count):
    rng = random.Random(name)
    tokens = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
    texts = FIXED + ([] if name in OLDEST else MORE) + (BYTES if name in LACKING else [])
    return texts + [some_text(rng, tokens) for _ in range(count)]


def row_of(tokenizer, text):
    row = {"text": text, "ids": tokenizer.encode(text, add_special_tokens=False).ids}
    decoded = tokenizer.decode(row["ids"], skip_special_tokens=False)
    if decoded != text:
        row["decoded"] = decoded
    skipped = tokenizer.decode(row["ids"], skip_special_tokens=True)
    if skipped != decoded:
        row["without_special"] = skipped
    return row


def write(root, name, count):
    tokenizer = MAKERS[name]()
    folder = os.path.join(root, name)
    os.makedirs(folder, exist_ok=True)
    tokenizer.save(os.path.join(folder, "tokenizer.json"), pretty=False)
    with open(os.path.join(folder, "cases.jsonl"), "w", encoding="ascii") as file:
        for text in texts_for(name, tokenizer, count):
            file.write(json.dumps(row_of(tokenizer, text), separators=(",", ":")) + "\n")


def main(names):
    for name in names or MAKERS:
        write("tests/goldens/tokenizer", name, 250 if name in OLDEST else 60)


if __name__ == "__main__":
    main(sys.argv[1:])
