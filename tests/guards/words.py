"""What a newcomer reads first stays short and in the field's words: README has at most 150 lines; README, help, docs and src hold no word that
docs/glossary.md replaced; a comment's table is not broken by the formatter; the title of a new commit is imperative, at most 72 characters, and ends
without a full stop."""
import os
import re
import subprocess

import tree

README_LINES = 150
REPLACED = re.compile(r"\b(laws?|walks?|handed out|shaped|companions?|surplus|settles?|strikes?|struck|sittings?|whoever|nobody|stands? beside|brood|siblings)\b", re.I)
# (path, word): why it may stand there.
EXCEPTIONS = {
    ("docs/formats.md", "surplus"): "the name of a file of earlier runs, surplus.jsonl",
    ("src/train/collect/carry_over.h", "surplus"): "the same file",
    ("src/train/state/train_state.cpp", "surplus"): "a key of earlier state.json",
    ("src/train/state/train_state.cpp", "companions"): "a key of earlier state.json",
    ("src/train/state/train_state_test.cpp", "surplus"): "a key of earlier state.json",
    ("src/train/state/train_state_test.cpp", "companions"): "a key of earlier state.json",
    ("src/verify/sandbox/launcher/root.cpp", "nobody"): "the user nobody",
    ("docs/reliability.md", "nobody"): "the user nobody",
}
SHAPED = "shaped"  # what UCAS and its kin do to an advantage bears this name in the papers
# A line of a comment that the formatter cut: one or two words alone on it, then a line that begins with more than one blank.
BROKEN = re.compile(r"^ *// [\w.]+( [\w.]+)?\n *//  +\S", re.M)
TITLE = 72  # characters
SINCE = "6226f00a4c35b89228c6c5014fcf2dc261250448"  # titles before it are as they are
NOT_IMPERATIVE = re.compile(r"^(?!Embed|Feed|Seed|Speed|Need|Bring|Ping)(?:\w+ed|\w+ing|The|A|An|What|It|This|That|Which|How|Where)\b")


def titles():
    """Titles of the commits that are no merges, newest first; none where this is no clone or the first one is not in it."""
    done = subprocess.run(["git", "-C", tree.ROOT, "log", "--no-merges", "--format=%h %s", f"{SINCE}..HEAD"], capture_output=True, text=True)
    return done.stdout.splitlines() if done.returncode == 0 and os.path.exists(os.path.join(tree.ROOT, ".git")) else []


def main():
    problems, checked = [], 0
    lines = tree.text("README.md").split("\n")
    if len(lines) > README_LINES:
        problems.append(f"README.md: {len(lines)} lines, at most {README_LINES}")
    for path in ["README.md", *tree.files(".txt", under="help")]:
        checked += 1
        for number, line in enumerate(tree.text(path).split("\n"), 1):
            if found := REPLACED.search(line):
                problems.append(f'{path}:{number}: "{found.group()}": docs/glossary.md has the word of the field')
    for path in [*tree.files(".md", under="docs"), *tree.files(".h", ".cpp", ".inc", ".cu", ".md", under="src")]:
        if path == "docs/glossary.md":
            continue
        checked += 1
        source = tree.text(path)
        for number, line in enumerate(source.split("\n"), 1):
            for word in REPLACED.findall(line):
                word = word.lower()
                if word != SHAPED and (path, word) not in EXCEPTIONS:
                    problems.append(f'{path}:{number}: "{word}": docs/glossary.md has the word of the field')
        if path.endswith((".h", ".cpp", ".inc")):
            problems += [f"{path}:{source.count(chr(10), 0, cut.start()) + 1}: a broken line in a comment; set tables between // clang-format off and on"
                         for cut in BROKEN.finditer(source)]
    for line in titles():
        checked += 1
        number, title = line.split(" ", 1)
        if len(title) > TITLE or title.endswith(".") or NOT_IMPERATIVE.search(title):
            problems.append(f'{number}: "{title}": expected an imperative title of at most {TITLE} characters (CONTRIBUTING.md)')
    tree.report("words", problems, checked)


main()
