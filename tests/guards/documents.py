"""Documents name files and functions; what they name must exist."""
import os
import re

from tree import ROOT, files, report, text

# `src/train/trainer.cpp` or `methods/ucas.cpp: advantages()`, as docs/paper.md writes it.
MENTION = re.compile(r"`([\w./-]+\.(?:cpp|h|py|md|toml|cmake|json))(?:: ?([\w:]+)\(\))?`")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def resolve(name, document):
    folder = os.path.dirname(document)
    for candidate in (name, f"src/{name}", os.path.join(folder, name), f"tests/{name}"):
        if os.path.exists(os.path.join(ROOT, candidate)):
            return candidate
    return None


def main():
    problems = []
    mentions = 0
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
        for target in LINK.findall(body):
            mentions += 1
            if resolve(target, document) is None:
                problems.append(f"{document}: the link {target} leads nowhere")
    report("documents", problems, mentions)


main()
