#!/usr/bin/env python3
"""Writes src/text/unicode/tables.txt from Unicode 16 (pip install unicodedata2==16.0.0).

Classes of characters are those of Unicode 16, as in Hugging Face's regular expressions. Its NFC, however, has always
been that of Unicode 9 (crate unicode-normalization-alignments), and every published model was trained behind it. The
normalisation of a character never changes once it is assigned, so Unicode 9 is Unicode 16 without the later characters.

A section is a general category, the codes beyond categories of a class, a combining class, or canonical decompositions.
Only needed to change the tables; building and running ucas never call it.
"""
import sys
import textwrap

import unicodedata2 as ud

assert ud.unidata_version == "16.0.0", ud.unidata_version
CODES = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
# White_Space has no Unicode 16 data file in Python; the set has been stable since Unicode 6.3 (U+180E left it).
WHITE = [9, 10, 11, 12, 13, 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000]
# Alphabetic characters of general category So (the rest of Other_Alphabetic are marks).
CIRCLED = [*range(0x24B6, 0x24EA), *range(0x1F130, 0x1F14A), *range(0x1F150, 0x1F16A), *range(0x1F170, 0x1F18A)]
# Characters after Unicode 9 that have a combining class or a canonical decomposition.
AFTER_9 = """
7FD 897-89F 8CA-8D3 9FE C3C D3B-D3C EBA 1715 1ABF-1ACE 1DF6-1DFA A82C 10D24-10D27 10D69-10D6D 10EAB-10EAC 10EFD-10EFF
10F46-10F50 10F82-10F85 11070 1133B 113CE-113D0 1145E 11839-1183A 1193D-1193E 11943 119E0 11A34 11A47 11A99 11D42
11D44-11D45 11D97 11F41-11F42 1612F 16FF0-16FF1 1E08F 1E130-1E136 1E2AE 1E2EC-1E2EF 1E4EC-1E4EF 1E5EE-1E5EF
105C9 105E4 11383 11385 1138E 11391 113C5 113C7-113C8 11938 16121-16128 16D68-16D6A
"""
# Punctuation as Hugging Face's pre-tokenizer of that name has it: general category P of Unicode 8 (crate unicode_categories),
# and ASCII symbols. These came to P later; two left it.
PUNCTUATION_AFTER_8 = """
61D 9FD A76 C77 C84 1B4E-1B4F 1B7D-1B7F 2E43-2E4F 2E52-2E5D 10D6E 10EAD 10F55-10F59 10F86-10F89 113D4-113D5 113D7-113D8
1144B-1144F 1145A-1145B 1145D 11660-1166C 116B9 1183B 11944-11946 119E2 11A3F-11A46 11A9A-11A9C 11A9E-11AA2 11B00-11B09
11BE1 11C41-11C45 11C70-11C71 11EF7-11EF8 11F43-11F4F 11FFF 12FF1-12FF2 16D6D-16D6F 16E97-16E9A 16FE2 1E5FF 1E95E-1E95F
"""
PUNCTUATION_UNTIL_8 = [0x166D, 0x111C9]
HANGUL_S, HANGUL_L, HANGUL_V, HANGUL_T = 0xAC00, 0x1100, 0x1161, 0x11A7


def ranges(codes):
    out = []
    for c in sorted(codes):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def codes_of(text):
    codes = set()
    for word in text.split():
        first, _, last = word.partition("-")
        codes |= {*range(int(first, 16), int(last or first, 16) + 1)}
    return codes


def is_hangul_syllable(c):
    return HANGUL_S <= c < HANGUL_S + 11172


def spelled(codes):
    return [f"{a:X}" if a == b else f"{a:X}-{b:X}" for a, b in ranges(codes)]


NFC_CODES = set(CODES) - codes_of(AFTER_9)


def decompositions():
    """"C0=41+300": its canonical decomposition, and the pair composes; "958:915+93C": it does not. Hangul is computed."""
    rows, seconds = [], set()
    for c in sorted(NFC_CODES):
        d = ud.decomposition(chr(c))
        if not d or d.startswith("<") or is_hangul_syllable(c):
            continue
        parts = [int(x, 16) for x in d.split()]
        composes = len(parts) == 2 and ud.normalize("NFC", chr(parts[0]) + chr(parts[1])) == chr(c)
        rows.append(f"{c:X}{'=' if composes else ':'}{'+'.join(f'{x:X}' for x in parts)}")
        if composes:
            seconds.add(parts[1])
    return rows, seconds


def main(path):
    by_category, by_class = {}, {}
    for c in CODES:
        by_category.setdefault(ud.category(chr(c)), []).append(c)
    for c in sorted(NFC_CODES):
        by_class.setdefault(ud.combining(chr(c)), []).append(c)
    rows, seconds = decompositions()
    composing = {c for c in NFC_CODES if ud.combining(chr(c)) != 0 or ud.normalize("NFC", chr(c)) != chr(c)} | seconds
    composing |= {*range(HANGUL_V, HANGUL_V + 21), *range(HANGUL_T + 1, HANGUL_T + 28)}
    ascii_symbols = {ord(c) for c in "$+<=>^`|~"}
    punctuation = {c for k in by_category if k[0] == "P" for c in by_category[k]} - codes_of(PUNCTUATION_AFTER_8)

    sections = [(k, spelled(codes)) for k, codes in sorted(by_category.items()) if k != "Cn"]
    sections += [("space", spelled(WHITE)), ("word", spelled([*CIRCLED, 0x200C, 0x200D])), ("composing", spelled(composing))]
    sections += [("punctuation", spelled(punctuation | ascii_symbols | set(PUNCTUATION_UNTIL_8)))]
    sections += [(str(k), spelled(codes)) for k, codes in sorted(by_class.items()) if k != 0] + [("decomposition", rows)]
    with open(path, "w", encoding="ascii") as f:
        for name, words in sections:
            f.write(f"@{name}\n" + textwrap.fill(" ".join(words), 140, break_on_hyphens=False) + "\n")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "src/text/unicode/tables.txt")
