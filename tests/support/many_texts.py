"""Texts of many kinds, the same at every call in one checkout: sources and documents of it, rows of the shared data where
that is, mixed scripts, control characters, digits, special tokens spelled out."""
import glob
import json
import os
import random

ROOT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..")
RANGES = [(0x20, 0x7E), (0xA0, 0x24F), (0x370, 0x5FF), (0x600, 0x6FF), (0x900, 0xDFF), (0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3),
          (0x1F300, 0x1F6FF), (0x2000, 0x206F), (0x0, 0x1F), (0x7F, 0x9F), (0xFE00, 0xFFFD), (0x10000, 0x10FFFF)]
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|im_start|>user\nhi<|im_end|>\n", "<|im_", "<|im_start|", " <|im_end|> ", "<repo_name>"]
FIXED = ["", " ", "  12 + 34", "a\x04b", "!\x04!", "(\x06)", "th\x04e", "\x13", "x\x13y\x14z\x16w\x1dv", "tab\tand\x06x", "\U00040001", "\U000F0001",
         "\U0001D800 sign", "  \n\n  12\r\n", "1234567890 0.5e-3", "I'll we've DON'T they'RE", "\xf1\xc1\xc0", "\u0661\u0662 \u2167 \u00bd", "e\u0301 \u1100\u1161\u11a8",
         "a" * 300, " " * 100, "!" * 70 + "\n" * 5, "0" * 40, "7 8  9   10", "\r\n\r\n", "\ufeffbom", "\u200d\u200b"]


def shared():
    return os.environ.get("UCAS_SHARED_DATA") or os.path.join(ROOT, "..", "shared", "data")


def from_rows(most_of_a_file):
    for path in sorted(glob.glob(os.path.join(shared(), "*", "*.jsonl"))):
        taken = 0
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                try:
                    row = json.loads(line)
                except ValueError:
                    continue
                values = row.values() if isinstance(row, dict) else ()
                for value in values:
                    if isinstance(value, str) and value and len(value) < 6000:
                        yield value
                        taken += 1
                if taken > most_of_a_file:
                    break


def from_files(pattern, most):
    for path in sorted(glob.glob(os.path.join(ROOT, pattern), recursive=True)):
        with open(path, encoding="utf-8", errors="replace") as file:
            parts = [part for part in file.read().split("\n\n") if 0 < len(part) < 6000]
        yield from parts[:most]


def scripts(rng):
    def one():
        low, high = rng.choice(RANGES)
        code = rng.randint(low, high)
        return "" if 0xD800 <= code < 0xE000 else chr(code)

    pieces = [one, one, lambda: rng.choice(SPECIAL), lambda: rng.choice(FIXED[:26]), lambda: " " * rng.randint(1, 4), lambda: str(rng.randint(0, 10 ** rng.randint(1, 9)))]
    return "".join(rng.choice(pieces)() for _ in range(rng.randint(2, 40)))


def many_texts(count, seed=1):
    """`count` of them: a third mixed scripts, the rest from files, evenly."""
    rng = random.Random(seed)
    found = [*from_files("src/**/*.cpp", 12), *from_files("src/**/*.h", 6), *from_files("docs/*.md", 40), *from_files("tests/**/*.py", 6), *from_rows(400)]
    rng.shuffle(found)
    texts = FIXED + SPECIAL + found[:2 * count // 3]
    texts += [scripts(rng) for _ in range(count - len(texts))]
    return texts[:count]
