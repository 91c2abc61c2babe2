"""Documents and comments name files and functions; what they name must exist. (What src/README.md says of their length: reading_list.py.)"""
import os
import re

from tree import ROOT, files, report, text

# `src/train/loop/trainer.cpp` or `methods/signals/ucas.cpp: advantages()`, as docs/paper.md writes it.
MENTION = re.compile(r"`([\w./-]+\.(?:cpp|h|py|md|toml|cmake|json))(?:: ?([\w:]+)\(\))?`")
LINK = re.compile(r"\]\(([^)#:]*)(?:#([^)]*))?\)")
CODE = re.compile(r"^```.*?^```$", re.M | re.S)


def resolve(name, document):
    folder = os.path.dirname(document)
    for candidate in (name, f"src/{name}", os.path.join(folder, name), f"tests/{name}"):
        if os.path.exists(os.path.join(ROOT, candidate)):
            return candidate
    return None


def anchors(document):
    """Of the headings of a document, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", CODE.sub("", text(document)), re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


# In a comment: train/signals/logprobs, methods/kl.h, docs/formats.md, batch.h; not rollouts/ of a run, nor https://.
LAYERS = sorted(os.listdir(os.path.join(ROOT, "src")))
POINTER = re.compile(r"(?<![\w/.<>-])((?:src/|docs/|tests/|bench/|tools/|(?:%s)/)[\w./-]*\w|\w+\.(?:h|cpp|md|inc))(?![\w/*]|\.\w)"
                     % "|".join(name for name in LAYERS if os.path.isdir(os.path.join(ROOT, "src", name))))
COMMENT = re.compile(r"(?:^|\s)//(.*)")
ELSEWHERE = re.compile(r"algorithms: Sec|design notes")


def dangling_comments(path, every_name, metrics):
    problems, pointers = [], 0
    for number, line in enumerate(text(path).split("\n"), 1):
        comment = COMMENT.search(re.sub(r'"(?:\\.|[^"\\])*"', '""', line))
        if not comment:
            continue
        if ELSEWHERE.search(comment[1]):
            problems.append(f"{path}:{number}: points at a document that is not in the repository")
        for name in POINTER.findall(comment[1]):
            if "NAME" in name or f"`{name}`" in metrics:  # rollout/rejected_share is a metric
                continue
            pointers += 1
            near = [name, f"src/{name}", os.path.join(os.path.dirname(path), name)]
            there = any(os.path.exists(os.path.join(ROOT, p + end)) for p in near for end in ("", ".h", ".cpp", ".py"))
            if not there and not ("/" not in name and name in every_name):
                problems.append(f"{path}:{number}: {name} does not exist")
    return problems, pointers


# ErrorKind::config in the sources: each class has its row in docs/errors.md, and no row is of a class that is gone.
THROWN = re.compile(r"\bErrorKind::([a-z_0-9]+)")


def undocumented_errors(document):
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", text(document), re.M)
    told = {name for row in rows for name in re.findall(r"\w+", row)}
    sources = [text(path) for path in files(".h", ".cpp", under="src") if not path.endswith("_test.cpp")]
    thrown = {name for body in sources for name in THROWN.findall(body)}
    problems = [f"{document}: no row for error[{name}]" for name in sorted(thrown - told)]
    return problems + [f"{document}: nothing throws error[{name}]" for name in sorted(told - thrown)]


def main():
    problems = undocumented_errors("docs/errors.md")
    mentions = 0
    every_name = {os.path.basename(name) for name in files()}
    for path in files(".h", ".cpp", ".inc", under="src"):
        found, pointers = dangling_comments(path, every_name, text("docs/metrics.md"))
        problems += found
        mentions += pointers
    # Names of files that runs and checkpoints hold, not the project.
    elsewhere = re.compile(r"^_|^(config|generation_config|tokenizer\w*|special_tokens_map|added_tokens|vocab|env|state|optimizer|\S*"
                           r"index|manifest|chat_template)\.(json|toml)$|^(DIR|FILE|CONFIG|NAME|runs|LAYER)\b|.*NAME.*|.*LAYER.*")
    for document in files(".md"):
        body = text(document)
        for name, function in MENTION.findall(body):
            if elsewhere.match(name):
                continue
            mentions += 1
            target = resolve(name, document)
            if target is None:
                problems.append(f"{document}: `{name}` does not exist")
            elif function and not re.search(rf"\b{function.split('::')[-1]}\b", text(target)):
                problems.append(f"{document}: {target} has no {function}()")
        for target, anchor in LINK.findall(CODE.sub("", body)):
            if not target and not anchor:
                continue
            mentions += 1
            place = resolve(target, document) if target else document
            if place is None:
                problems.append(f"{document}: the link {target} leads nowhere")
            elif anchor and place.endswith(".md") and anchor not in anchors(place):
                problems.append(f"{document}: {place} has no heading #{anchor}")
    report("documents", problems, mentions)


main()
