"""A method is one file and one row of methods/registry.h; nobody else compares a method's name."""
import os
import re

from tree import ROOT, files, report, text

ROW = re.compile(r"\bX\((\w+)\)")


def main():
    registry = text("src/methods/registry.h")
    macro = re.search(r"#define UCAS_METHODS\(X\)((?:.*\\\n)*.*)", registry)
    methods = ROW.findall(macro.group(1)) if macro else []
    problems = [] if methods else ["src/methods/registry.h: no row found in UCAS_METHODS(X)"]
    for name in methods:
        if not os.path.exists(f"{ROOT}/src/methods/{name}.cpp"):
            problems.append(f"src/methods/registry.h: row {name} has no file src/methods/{name}.cpp")
    # A .cpp of methods/ without a header of its own is a method.
    for path in files(".cpp", under="src/methods"):
        stem = os.path.basename(path)[:-4]
        alone = not os.path.exists(f"{ROOT}/src/methods/{stem}.h")
        if alone and not stem.endswith("_test") and stem not in methods:
            problems.append(f"{path}: no row X({stem}) in src/methods/registry.h")

    quoted = '"(?:%s)"' % "|".join(methods)
    compares = re.compile(rf"[!=]=\s*{quoted}|{quoted}\s*[!=]=|(?:compare|starts_with|contains)\(\s*{quoted}")
    looked_at = [f for f in files(".h", ".cpp", under="src") if not f.startswith("src/methods/")]
    for path in looked_at:
        if path.endswith("_test.cpp"):
            continue
        for number, line in enumerate(text(path).split("\n"), 1):
            if methods and compares.search(line):
                problems.append(f"{path}:{number}: compares a method's name; ask the method for what it needs instead")
    report("names", problems, len(looked_at) + len(methods))


main()
