"""Studies and configs that documents name exist, docs/paper.md leaves nothing of the paper out, and what docs/studies holds has
the form that the studies give it today."""
import os
import re
import tomllib

from tree import ROOT, files, report, text

# What the paper numbers.
PAPER = [f"Eq. {i}" for i in range(1, 23)] + [f"Table {i}" for i in range(1, 9)] + [f"Fig. {i}" for i in range(1, 7)] + ["Algorithm 1"]
COMMAND = re.compile(r"ucas (study|explain|train) ([a-z][\w.-]*[\w])")
NAMED = re.compile(r"`((?:paper|tiny)-[a-z][\w.-]*|[a-z_]+-(?:paper|released)(?:-[a-z]+)?-[\d.]+b|[a-z_]+(?:-[a-z0-9]+)*-tiny)`")
# What a kind adds below the table.
PARTS = {"dynamics": ["| end less minimum |"], "confidence": ["| before, joint z |"], "passk": ["|  | pass@1 % |"], "case": ["<table>"],
         "sensitivity": ["-bars-"], "ablation": ["-bars-"], "methods": ["-bars-"], "signals": ["-bars-"], "seeds": ["## Each run"]}


def configs():
    """Their names: a file's, or those of the tables [config.NAME] in it."""
    for path in files(".toml", under="configs"):
        tables = tomllib.loads(text(path)).get("config")
        yield from tables or [os.path.basename(path)[:-5]]


def names_in(body):
    for command, name in COMMAND.findall(body):
        yield name, ["studies"] if command == "study" else ["configs"]
    for name in NAMED.findall(body):
        yield name, ["studies", "configs", "suites"]


def rows_of(study):
    return 1 + len(study.get("runs", []))


def merged(below, above):
    out = dict(below)
    for key, value in above.items():
        out[key] = merged(out[key], value) if isinstance(value, dict) and isinstance(out.get(key), dict) else value
    return out


def study_called(name):
    own = tomllib.loads(text(f"studies/{name}.toml"))
    return merged(study_called(own["extends"]), own) if "extends" in own else own


def columns_of(study):
    """As the head of the table has them."""
    for name in study["columns"]:
        column = study.get("column", {}).get(name, {})
        for metric in column.get("metric", [name]):
            at = f"@{column['accuracy']}" if "accuracy" in column else ""
            for source in column.get("source", [""]):
                yield metric + at + {"": "", "macro": ", macro"}.get(source, f":{source}")


def flat(table, prefix=""):
    for key, value in table.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def form(name, body):
    """In what the document of a study is not what the study makes today."""
    study = study_called(name)
    kinds = study["kind"] if isinstance(study["kind"], list) else [study["kind"]]
    lines = body.split("\n")
    if lines[0] != f"# {study['title']}":
        yield f"title {lines[0]!r}, expected {study['title']!r}"
    made = next((line for line in lines if line.startswith("Made by ")), "")
    if not re.match(rf"Made by `ucas study {re.escape(name)}(?: --base\.model \S+)?`", made):
        yield f"made by {made!r}"
    runs = study.get("seeds", 1)
    if study.get("base", {}).get("crossed"):
        runs *= len(study["base"]["sft_seeds"])
    if runs > 1 and not re.search(rf"over {runs} ", made):
        yield f"not over the study's {runs} runs of a row"
    table = [line.strip("|").split("|") for line in lines[lines.index(made) + 1:lines.index("", lines.index(made) + 2)] if line]
    shown = [re.sub(r"\\(\W|_)", r"\1", cell) for cell in table[0][1:]] if table else []  # without Markdown's escapes
    head = [cell.strip().removesuffix(" %") for cell in shown]
    expected = list(columns_of(study))
    if head != expected:
        yield f"columns {head}, expected {expected}"
    if len(table) - 2 != rows_of(study):
        yield f"{len(table) - 2} rows, expected {rows_of(study)}"
    if len(study.get("runs", [])) > 1 and "| corrected p |" not in body:
        yield "its p are not corrected"
    for kind in kinds:
        for part in PARTS[kind]:
            if part not in body:
                yield f"kind {kind}: no {part!r}"


def main():
    problems = []
    checked = 0
    embedded = set(configs())
    for document in files(".md"):
        for name, folders in names_in(text(document)):
            if name.endswith(".toml") or "NAME" in name:
                continue
            checked += 1
            there = any(os.path.exists(os.path.join(ROOT, folder, f"{name}.toml")) for folder in folders)
            if not there and not ("configs" in folders and name in embedded):
                problems.append(f"{document}: there is no {name} in {' or '.join(folders)}")
    paper = text("docs/paper.md")
    for item in PAPER:
        checked += 1
        if not re.search(rf"^\|[^|]*{re.escape(item)}\b", paper, re.MULTILINE):
            problems.append(f"docs/paper.md: no row is about {item}")
    # Readings over several studies are written by people, one-step.md is of `make docs-one-step`; every other document there is the
    # output of one study.
    readings = {"docs/studies/README.md", "docs/studies/exploration.md", "docs/studies/confidence.md", "docs/studies/one-step.md",
                "docs/studies/decision.md", "docs/studies/data/README.md"}
    documents = [f for f in files(".md", under="docs/studies") if f not in readings]
    bodies = {f: text(f) for f in documents}
    for document, body in bodies.items():
        name = os.path.basename(document)[:-3]
        checked += 1
        if not os.path.exists(os.path.join(ROOT, "studies", f"{name}.toml")):
            problems.append(f"{document}: there is no study {name}")
            continue
        problems += [f"{document}: {what}; make docs-{name}" for what in form(name, body)]
    for figure in files(".svg", ".csv", under="docs/studies"):
        checked += 1
        stem = os.path.basename(figure)[:-4]
        drawn = any(f"]({stem}.svg)" in body for body in [*bodies.values(), *map(text, readings)])
        listed = figure.endswith(".csv") and any(stem.startswith(os.path.basename(d)[:-3] + "-") for d in documents if "<table>" in bodies[d])
        if not drawn and not listed:
            problems.append(f"{figure}: no document shows it any more")
    report("studies", problems, checked)


main()
