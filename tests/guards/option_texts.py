"""Every option's help text stands alone: no pronoun without a referent, no fragment at its start, no more than 40 words.
   docs/glossary.md has the words, base/text/fields.h the declarations."""
import re

import tree

LONGEST = 40  # words; write 25
PRONOUNS = re.compile(r"\b(these|those|its|it|they|them)\b", re.I)
FRAGMENT = re.compile(r"(of|from|in|on|by|with|to|for|at|as|beside|under|over|above|below|after|before|between|into|and|or|then|that)\b")
CALL = re.compile(r"\b(?:\w+\.(field|choice)|\w+_fields)\(")
NAMED = re.compile(r"const char\* (\w*[hH]elp\w*) =\s*")
LITERALS = re.compile(r'(?:\s*"(?:[^"\\]|\\.)*")+\s*')


def arguments(source, at):
    """The arguments of the call whose bracket opens before `at`, each (begin, end)."""
    found, begin, depth = [], at, 0
    while True:
        if source[at] == '"':
            at = re.compile(r'"(?:[^"\\]|\\.)*"').match(source, at).end()
            continue
        if source[at] in ",)" and depth == 0:
            found.append((begin, at))
            begin = at + 1
            if source[at] == ")":
                return found
        depth += (source[at] in "({[") - (source[at] in ")}]")
        at += 1


def said(literals):
    """The text of "a" "b" as the compiler joins them."""
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', literals)).replace('\\"', '"').replace("\\\\", "\\")


def texts(source):
    """(begin, end, key, text) of every help text that a source file declares."""
    for call in CALL.finditer(source):
        spans = arguments(source, call.end())
        words = [source[b:e] for b, e in spans]
        if call[1] and not LITERALS.fullmatch(words[0]):
            continue
        helps = [i for i in range(2 if call[1] else 1, len(words)) if LITERALS.fullmatch(words[i])]
        if helps:
            yield *spans[helps[0]], said(words[0]) if call[1] else "", said(words[helps[0]])
    for constant in NAMED.finditer(source):
        if literals := LITERALS.match(source, constant.end()):
            yield literals.start(), literals.end(), constant[1], said(literals[0])


def wrong_with(text):
    if pronoun := PRONOUNS.search(text):
        yield f'"{pronoun[0]}" has no referent: name the thing'
    if fragment := FRAGMENT.match(text):
        yield f'begins with "{fragment[0]}": begin with a noun or a verb'
    if len(text.split()) > LONGEST:
        yield f"{len(text.split())} words: {LONGEST} at most"


def main():
    problems, checked = [], 0
    for path in tree.files(".h", ".cpp", under="src"):
        if path.endswith("_test.cpp"):
            continue
        source = tree.text(path)
        for begin, _, key, text in texts(source):
            line = source.count("\n", 0, begin) + 1
            checked += text != ""  # "": an option that is read early and shown elsewhere
            problems += [f"{path}:{line}: {key}: {wrong}: {text}" for wrong in wrong_with(text)]
    tree.report("option texts", problems, checked)


if __name__ == "__main__":
    main()
