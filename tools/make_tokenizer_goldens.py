#!/usr/bin/env python3
"""Writes tests/goldens/tokenizer/NAME/{tokenizer.json, cases.jsonl} with Hugging Face tokenizers 0.23.3.

Three tiny byte-level BPE tokenizers are trained on a few sentences; the cases are what the library makes of texts of
many kinds. Only needed to change the goldens; building and testing ucas never call it.
"""
import json
import os
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CORPUS = [
    "A model samples an answer, a program checks it, and what was right becomes a little more likely.",
    "Let $x$ be the number of apples. Then $x + 3 = 2x - 1$, so $x = 4$. The answer is \\boxed{4}.",
    "We don't know that it's right; they're sure we'll see, I'd say, and you've asked what I'm doing.",
    "First we add the numbers:\n  1 + 2 + 3 = 6\n\nNext we multiply:\r\n  4 * 5 = 20\t(done)\n\n\n",
    "def check(values):\n    for value in values:\n        assert value > 0, value\n    return len(values)\n",
    "Stra\u00dfe caf\u00e9 na\u00efve \u00e9t\u00e9 \u4f60\u597d \u4f60\u4eec \u041f\u0440\u0438\u0432\u0435\u0442 \U0001f600 \U0001f600",
] * 4
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


def trained(normalizer, pre_tokenizer, post_processor, decoder, ignore_merges, vocabulary):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoder
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False, min_frequency=2
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    if post_processor is not None:
        tokenizer.post_processor = post_processor
    return tokenizer


def qwen2_like():
    split = pre_tokenizers.Split(Regex(QWEN2), behavior="isolated")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer = trained(
        normalizers.Sequence([normalizers.NFC()]), pre_tokenizers.Sequence([split, byte_level]),
        processors.ByteLevel(trim_offsets=False), decoders.ByteLevel(), False, 420,
    )  # fmt: skip
    tokenizer.add_special_tokens(["<|end|>", "<|start|>"])
    tokenizer.add_tokens([AddedToken("<tool>", normalized=False), AddedToken("<tool>s", normalized=False)])
    return tokenizer


def gpt2_like():
    tokenizer = trained(
        None, pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=True),
        processors.TemplateProcessing(single="$A", pair="$A $B", special_tokens=[]), decoders.ByteLevel(), True, 380,
    )  # fmt: skip
    tokenizer.add_special_tokens(["<|end|>"])
    return tokenizer


def added_tokens():
    tokenizer = trained(
        normalizers.NFC(), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True), None, decoders.ByteLevel(),
        False, 300,
    )  # fmt: skip
    tokenizer.add_special_tokens(["<|end|>"])
    tokenizer.add_tokens([
        AddedToken("mask", single_word=True, normalized=False),
        AddedToken("[L]", lstrip=True, normalized=False),
        AddedToken("[R]", rstrip=True, normalized=True),
        AddedToken("[B]", lstrip=True, rstrip=True, normalized=False),
        AddedToken("cafe\u0301!", normalized=True),
        AddedToken("two words", normalized=True),
        AddedToken("\u4f60\u597d", normalized=False),
    ])  # fmt: skip
    return tokenizer


def write(folder, tokenizer, count):
    os.makedirs(folder, exist_ok=True)
    tokenizer.save(os.path.join(folder, "tokenizer.json"), pretty=False)
    rng = random.Random(os.path.basename(folder))
    tokens = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
    texts = FIXED + [some_text(rng, tokens) for _ in range(count)]
    with open(os.path.join(folder, "cases.jsonl"), "w", encoding="ascii") as file:
        for text in texts:
            row = {"text": text, "ids": tokenizer.encode(text, add_special_tokens=False).ids}
            decoded = tokenizer.decode(row["ids"], skip_special_tokens=False)
            if decoded != text:
                row["decoded"] = decoded
            file.write(json.dumps(row, separators=(",", ":")) + "\n")


def main(root):
    for maker in (qwen2_like, gpt2_like, added_tokens):
        write(os.path.join(root, maker.__name__.replace("_", "-")), maker(), 250)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "tests/goldens/tokenizer")
