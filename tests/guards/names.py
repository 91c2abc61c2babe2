"""A method is one file and one row of methods/registry.h; nobody else compares a method's name."""
import os
import re

from tree import ROOT, files, report, text

DEFINITION = re.compile(r"^std::unique_ptr<Method> make_(\w+)\(\) \{", re.M)
ROW = re.compile(r"\bX\((\w+)\)")


def main():
    registry = text("src/methods/registry.h")
    macro = re.search(r"#define UCAS_METHODS\(X\)((?:.*\\\n)*.*)", registry)
    methods = ROW.findall(macro.group(1)) if macro else []
    problems = [] if methods else ["src/methods/registry.h: no row found in UCAS_METHODS(X)"]
    for name in methods:
        if not os.path.exists(f"{ROOT}/src/methods/{name}.cpp"):
            problems.append(f"src/methods/registry.h: row {name} has no file src/methods/{name}.cpp")
    for path in files(".cpp", under="src/methods"):
        for name in DEFINITION.findall(text(path)):
            if name not in methods:
                problems.append(f"{path}: no row X({name}) in src/methods/registry.h")
            elif path != f"src/methods/{name}.cpp":
                problems.append(f"{path}: make_{name}() belongs into src/methods/{name}.cpp")

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
