"""What a newcomer reads first stays short and in the field's words: README has at most 130 lines; README, help, docs and src hold no word that
docs/glossary.md replaced; no page or help text names a command or option that CHANGELOG.md lists as gone; a comment is not broken by the formatter; no line of help is wider than 100 columns; the title of a new commit is imperative, at most 72 characters, and ends
without a full stop."""
import os
import re
import subprocess

import tree

README_LINES = 130
# What the glossary's column "not" says and nothing else in this project does.
REPLACED = re.compile(r"""\b(laws?|walks?|hand(?:s|ed)?\ out|put\ together|shaped|companions?|surplus|settles?|strik(?:es?|ing)|struck|sittings?|rested|whoever
    |nobody|brood|siblings|beside|made\ again|under\ way|set\ aside|stands?|stood|standing|said\ (?:before|nothing)|draw|drawn|drew|paid|pays?|loud|silent
    |spoil(?:s|t|ed)?|told|tells?|heard|hears?|crew|lapses?|teams?|leaf\ (?:tensor|parameter)s?|passes\ over\ (?:the|each|all)|hand-over|(?:head|bf16)\ products?
    |masters?\ handed|narrow\ copy|gradient\ watch|tool\ repl(?:y|ies)|what\ it\ wrote|weight\ of\ a\ push|how\ sure|keys\ and\ values\ held|lie\ once
    |text\ that\ came|reading\ of\ a\ box|goes?\ on\ with|stands\ twice)\b""", re.I | re.X)
# Commands, options and presets that went, as a user would type them.
GONE = re.compile(r"""ucas\ (?:convert|init|configs|contamination|tokenize|merge|completion|man|verify-run|data)\b | --restarts | doctor\ --ranks
    | topk_(?:tv|kl) | train\.(?:track\b|tensorboard|patience|stop_when|watchdog_end|val_temperature|track_project|stored_signal_tokens)
    | update\.wire | shard\ =\ "(?:weights|auto)" | weight_sync(?!_) | backend\ =\ "sglang" | format\ gguf | run\ cards?\b | card\.json | matched_pass
    | objective\.(?:reject|correct_by|accumulation|norm_length|tis_cap|kl_schedule|keep_order|keep_untruncated) | kl_control | mixup_alpha
    | rollout\.(?:carry_over|stop_early|off_policy_steps) | data\.(?:order|weights|solved_cooldown) | optimizer\.(?:decay|momentum)\b""", re.X)
# (path, word): why it may stand there.
EXCEPTIONS = {
    ("src/verify/sandbox/launcher/root.cpp", "nobody"): "the user nobody",
    ("docs/reliability.md", "nobody"): "the user nobody",
    ("src/data/tasks/countdown.cpp", "stands"): "the text of a problem, which its data set keeps",
    ("src/report/report_test.cpp", "drawn"): "a class of the page's figures",
}
SHAPED = "shaped"  # what UCAS and its kin do to an advantage bears this name in the papers
# A line of a comment that the formatter cut: one or two words alone on it, then a line that begins with more than one blank; or a comment in a comment.
BROKEN = re.compile(r"^ *// [\w.]+( [\w.]+)?\n *//  +\S|^ *// //", re.M)
HELP_WIDTH = 100  # columns; {first ..} names what the program fills in
TITLE = 72  # characters
TITLED_BEFORE = {"a99910e2", "7144088a"}  # landed by merges before this guard saw them
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
    for path in ["README.md", *tree.files(".txt", under="help"), *tree.files(".md", under="docs")]:
        checked += 1
        for number, line in enumerate(tree.text(path).split("\n"), 1):
            if not path.startswith("docs/") and (found := REPLACED.search(line)):
                problems.append(f'{path}:{number}: "{found.group()}": docs/glossary.md has the word of the field')
            if path.startswith("help/") and len(line) > HELP_WIDTH and not line.startswith("{"):
                problems.append(f"{path}:{number}: {len(line)} columns, at most {HELP_WIDTH}")
            if path != "docs/decisions.md" and (found := GONE.search(line)):
                problems.append(f'{path}:{number}: "{found.group()}" is gone: CHANGELOG.md says what takes its place')
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
        if number[:8] not in TITLED_BEFORE and (len(title) > TITLE or title.endswith(".") or NOT_IMPERATIVE.search(title)):
            problems.append(f'{number}: "{title}": expected an imperative title of at most {TITLE} characters (CONTRIBUTING.md)')
    tree.report("words", problems, checked)


main()
