"""Which problems of an evaluation stand, wholly or in part, among those of a training:
  python -m ucas.overlap TRAIN.jsonl ... --against EVAL.jsonl ... [--words 13] [--problem NAME] [--show 5] [--json]

It looks for runs of words that both have. A word is a run of letters and digits, lower case for ASCII, a number with its decimal point, or one
letter of a script that writes no spaces. The signs of an expression (+ - * / = < > ^ % | and parentheses around them) belong to the word after
them, a percent sign and a closing parenthesis to the one before: `12 + 5 - 3` is `12 +5 -3`. Spaces, other punctuation and LaTeX's layout do
not count, and \\times is *. A problem shorter than a run counts where all its words are a training problem's. Exit code 1 where there is any.
Needs nothing beyond Python: any runs this file, and `python -m ucas.overlap` is the same.
"""
import argparse
import csv
import gzip
import json
import os
import sys
import unicodedata

COMMANDS = {"times": "*", "cdot": "*", "ast": "*", "div": "/", "le": "<=", "leq": "<=", "leqslant": "<=", "ge": ">=", "geq": ">=",
            "geqslant": ">=", "ne": "!=", "neq": "!=", "pm": "+-", "lt": "<", "gt": ">", "mid": "|", "vert": "|"}
LAYOUT = set("left right displaystyle text textbf textit mathrm mathbf quad qquad big Big bigl bigr Bigl Bigr".split())
SIGNS = dict(zip("+-*/=<>^%|()", "+-*/=<>^%|()")) | {"\u2212": "-", "\u00d7": "*", "\u00b7": "*", "\u22c5": "*", "\u00f7": "/", "\u2264": "<=",
                                                     "\u2265": ">=", "\u2260": "!=", "\u00b1": "+-"}
LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
MOST_BEGINS = 256  # of a run that very many problems have (a standing phrase), only so many are followed


class Piece:
    """A word, or one sign of an expression. prose: of two letters or more, and no command of LaTeX; apart: a space stands before it."""

    def __init__(self, text, sign=False, prose=False, apart=False):
        self.text, self.sign, self.prose, self.apart = text, sign, prose, apart


def stands_alone(letter):
    """Chinese, Japanese, Thai: a letter is a word."""
    code = ord(letter)
    return 0x0E00 <= code < 0x0E80 or 0x2E80 <= code < 0xAC00 or 0xF900 <= code < 0xFB00 or code >= 0x20000


def in_word(letter):
    return unicodedata.category(letter)[0] in "LN"


def is_digit(text, at):
    return 0 <= at < len(text) and "0" <= text[at] <= "9"


def read_word(text, begin):
    """From a letter or a number on: 12, 1.5, x, train, or one Chinese letter."""
    at, number = begin, is_digit(text, begin)
    while at < len(text):
        point = number and text[at] == "." and is_digit(text, at - 1) and is_digit(text, at + 1)
        if not point and not in_word(text[at]) or stands_alone(text[at]) and at > begin:
            break
        at += 1
        if stands_alone(text[at - 1]):
            break
    word = text[begin:at]
    return Piece(word, prose=sum(unicodedata.category(c)[0] == "L" for c in word) >= 2), at


def of_command(piece):
    """`\\times` is `*`, `\\left` nothing, `\\dfrac` `\\frac`: what a command of LaTeX is here."""
    if piece.text in COMMANDS:
        return [Piece(COMMANDS[piece.text], sign=True, apart=piece.apart)]
    if piece.text in LAYOUT:
        return []
    return [Piece("frac" if piece.text in ("dfrac", "tfrac") else piece.text, apart=piece.apart)]


def pieces_of(text):
    pieces, at, apart, command = [], 0, True, False
    while at < len(text):
        letter = text[at]
        if in_word(letter):
            piece, at = read_word(text, at)
            piece.apart = apart
            if not command:
                piece.text = piece.text.translate(LOWER)
            pieces += of_command(piece) if command else [piece]
            apart = command = False
            continue
        end = at + 1  # `--` is a dash, `**` marks bold text; `<=` is one sign
        while letter in "-*" and end < len(text) and text[end] == letter:
            end += 1
        if letter in SIGNS and end == at + 1:
            bound = SIGNS[letter] in "<>" and text[end:end + 1] == "="
            pieces.append(Piece(SIGNS[letter] + "=" * bound, sign=True, apart=apart))
            end, apart = end + bound, False
        elif letter in " \n\t":
            apart = True
        command, at = letter == "\\", end
    return pieces


def grouping(pieces):
    """Which parentheses change what an expression says: those around a sign and no words, as in 2(x + 1)."""
    groups, still_open = [False] * len(pieces), []  # [at, a sign is inside, prose is]
    for i, piece in enumerate(pieces):
        if piece.sign and piece.text == "(":
            still_open.append([i, False, False])
        elif piece.sign and piece.text == ")" and still_open:
            begin, sign, prose = still_open.pop()
            groups[begin] = groups[i] = sign and not prose
            if still_open:
                still_open[-1][1] |= sign
                still_open[-1][2] |= prose
        elif still_open:
            still_open[-1][1] |= piece.sign
            still_open[-1][2] |= piece.prose
    return groups


def is_minus(pieces, at):
    """A minus, and no hyphen (ten-sided, part-2) or dash (a number - any number)."""
    if at + 1 < len(pieces) and pieces[at + 1].prose:
        return False
    return at == 0 or not pieces[at - 1].prose or pieces[at].apart


def words_of(text):
    pieces = pieces_of(text)
    groups, words, signs = grouping(pieces), [], ""  # signs: before the next word
    for i, piece in enumerate(pieces):
        if not piece.sign:
            words.append(signs + piece.text)
            signs = ""
        elif not groups[i] if piece.text in ("(", ")") else piece.text == "-" and not is_minus(pieces, i):
            continue
        elif piece.text in ("%", ")") and not signs and words:
            words[-1] += piece.text
        else:
            signs += piece.text
    if words:
        words[-1] += signs
    return words


class Overlap:
    """whole: all words of the evaluated problem are the training problem's; others: further training problems that share a run."""

    def __init__(self, evaluated):
        self.evaluated, self.trained, self.others, self.whole, self.shared, self.text = evaluated, 0, 0, False, 0, ""


def find_overlaps(trained, evaluated, run):
    """Texts of `evaluated` that share a run of `run` words or more with one of `trained`, in order; of shorter ones those that are whole."""
    words, begins, whole = [words_of(text) for text in evaluated], {}, {}
    for i, own in enumerate(words):
        if own:
            whole.setdefault(tuple(own), []).append(i)
        for at in range(len(own) - run + 1):
            places = begins.setdefault(tuple(own[at:at + run]), [])
            if len(places) < MOST_BEGINS:
                places.append((i, at))
    found = {}
    for index, text in enumerate(trained):
        own, best = words_of(text), {}  # evaluated problem -> (length of the run, where it begins there, whole)
        for i in whole.get(tuple(own), []):
            best[i] = (len(own), 0, True)
        for at in range(len(own) - run + 1):
            for i, there in begins.get(tuple(own[at:at + run]), []):
                length = run
                while own[at + length:at + length + 1] == words[i][there + length:there + length + 1] != []:
                    length += 1
                known = best.get(i, (0, 0, False))
                is_whole = known[2] or length == len(words[i])
                best[i] = (length, there, is_whole) if length > known[0] else (known[0], known[1], is_whole)
        for i, (length, there, is_whole) in best.items():
            overlap = found.setdefault(i, Overlap(i))
            overlap.others += overlap.shared > 0
            overlap.whole |= is_whole
            if length > overlap.shared:
                overlap.trained, overlap.shared, overlap.text = index, length, " ".join(words[i][there:there + length])
    for i, overlap in found.items():
        overlap.words = len(words[i])
    return [found[i] for i in sorted(found)]


def rows_of(path):
    """Rows of JSONL, a JSON array or CSV, perhaps packed by gzip, with their lines."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8-sig", newline="") as file:
        text = file.read()
    name = path.removesuffix(".gz")
    if name.endswith((".csv", ".tsv")):
        yield from enumerate(csv.DictReader(text.splitlines(True), delimiter="\t" if name.endswith(".tsv") else ","), 2)
    elif text.lstrip().startswith("["):
        yield from enumerate(json.loads(text), 1)
    else:
        yield from ((line, json.loads(row)) for line, row in enumerate(text.split("\n"), 1) if row.strip())


def read_problems(paths, column):
    """(source, id, text) of each row: the question under `column`, where a row has that, else under the usual names."""
    out = []
    for path in paths:
        stem = os.path.basename(path.removesuffix(".gz")).rsplit(".", 1)[0]
        try:
            for line, row in rows_of(path):
                key = next((key for key in (column, "problem", "question", "prompt", "messages") if row.get(key) is not None), None)
                if key is None:
                    raise ValueError(f"line {line}: no question; expected problem, question, prompt or messages, or --problem NAME")
                text = row[key] if isinstance(row[key], str) else row[key][-1]["content"]  # of a chat the last turn
                out.append((str(row.get("data_source") or stem), str(row.get("id", f"{stem}/{line}")), text))
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise SystemExit(f"ucas.overlap: {path}: {error}")
    return out


def table_of(counts):
    rows = [("source", "problems", "share a run", "%", "whole")]
    rows += [(source, f"{n:,}", f"{shared:,}", f"{100 * shared / n:.1f}", f"{whole:,}") for source, (n, shared, whole) in sorted(counts.items())]
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join("  ".join([row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]) for row in rows)


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m ucas.overlap", description=__doc__.split("\n")[0])
    parser.add_argument("train", nargs="+")
    parser.add_argument("--against", nargs="+", required=True, help="problem files of the evaluation")
    parser.add_argument("--words", type=int, default=13, help="a shared run of so many words counts")
    parser.add_argument("--problem", help="column of the question")
    parser.add_argument("--show", type=int, default=5, help="problems to print")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    trained, evaluated = read_problems(asked.train, asked.problem), read_problems(asked.against, asked.problem)
    found = find_overlaps([text for _, _, text in trained], [text for _, _, text in evaluated], asked.words)
    found.sort(key=lambda o: (not o.whole, -o.shared / o.words))  # the most of a problem first
    counts = {}
    for source, _, _ in evaluated:
        counts.setdefault(source, [0, 0, 0])[0] += 1
    for o in found:
        counts[evaluated[o.evaluated][0]][1] += 1
        counts[evaluated[o.evaluated][0]][2] += o.whole
    rows = [{"source": evaluated[o.evaluated][0], "id": evaluated[o.evaluated][1], "words": o.words, "shared": o.shared, "whole": o.whole,
             "with_source": trained[o.trained][0], "with": trained[o.trained][1], "others": o.others, "text": o.text} for o in found]
    if asked.json:
        sources = {source: {"problems": n, "contaminated": shared, "whole": whole} for source, (n, shared, whole) in sorted(counts.items())}
        print(json.dumps({"sources": sources, "problems": rows}, indent=2, ensure_ascii=False))
        return 1 if found else 0
    print(table_of(counts))
    for row in rows[:asked.show]:
        more = f" (and of {row['others']:,} others in part)" if row["others"] else ""
        print(f"\n{row['source']} {row['id']}: {'all' if row['whole'] else str(row['shared']) + ' of'} {row['words']} words are those of "
              f"{row['with_source']} {row['with']}{more}\n  {row['text'][:240]}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
