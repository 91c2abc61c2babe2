"""A method is one file and one row of methods/registry.h, and nobody else compares a method's name. A type of a named
namespace is defined in one file: two of one name in one library are two layouts that share one destructor."""
import collections
import os
import re

from tree import files, report, text

DEFINITION = re.compile(r"^MethodRow (\w+)_row\(\) \{", re.M)
ROW = re.compile(r"\bX\((\w+)\)")

NAMESPACE = re.compile(r"\s*(?:inline\s+)?namespace\s*([\w:]*)\s*\{")
TYPE = re.compile(r"\s*(?:struct|class|union|enum(?: class)?)\s+(\w+)\b(?!::)[^;]*\{")
NO_CODE = re.compile(r'"(\\.|[^"\\])*"|//.*')


def types_of(path):
    """Names of the types that `path` defines at namespace scope, those of anonymous namespaces left out."""
    names, open_braces = [], []  # names of the open namespaces, "{" for other braces
    for line in text(path).split("\n"):
        code = NO_CODE.sub("", line)
        if namespace := NAMESPACE.match(code):
            open_braces.append(namespace[1])
            code = code[namespace.end():]
        elif (found := TYPE.match(code)) and "{" not in open_braces and "" not in open_braces:
            names.append("::".join([*open_braces, found[1]]))
        for brace in re.findall(r"[{}]", code):
            if brace == "{":
                open_braces.append("{")
            elif open_braces:
                open_braces.pop()
    return names


def types_defined_twice(paths):
    seen = collections.defaultdict(set)
    for path in paths:
        for name in types_of(path):
            seen[name].add(path)
    return [f"{name} is defined in {', '.join(sorted(where))}: one of them needs a name of its own"
            for name, where in sorted(seen.items()) if len(where) > 1]


def main():
    registry = text("src/methods/registry.h")
    macro = re.search(r"#define UCAS_METHODS\(X\)((?:.*\\\n)*.*)", registry)
    methods = ROW.findall(macro.group(1)) if macro else []
    problems = [] if methods else ["src/methods/registry.h: no row found in UCAS_METHODS(X)"]
    sources = files(".cpp", under="src/methods")
    for name in methods:
        if sum(path.endswith(f"/{name}.cpp") for path in sources) != 1:
            problems.append(f"src/methods/registry.h: row {name} has no file {name}.cpp below src/methods, or has two")
    for path in sources:
        for name in DEFINITION.findall(text(path)):
            if name not in methods:
                problems.append(f"{path}: no row X({name}) in src/methods/registry.h")
            elif os.path.basename(path) != f"{name}.cpp":
                problems.append(f"{path}: {name}_row() belongs into a file {name}.cpp")

    quoted = '"(?:%s)"' % "|".join(methods)
    compares = re.compile(rf"[!=]=\s*{quoted}|{quoted}\s*[!=]=|(?:compare|starts_with|contains)\(\s*{quoted}")
    looked_at = [f for f in files(".h", ".cpp", under="src") if not f.startswith("src/methods/")]
    for path in looked_at:
        if path.endswith("_test.cpp"):
            continue
        for number, line in enumerate(text(path).split("\n"), 1):
            if methods and compares.search(line):
                problems.append(f"{path}:{number}: compares a method's name; ask the method for what it needs instead")
    problems += types_defined_twice(files(".h", ".cpp", under="src"))
    report("names", problems, len(looked_at) + len(methods))


main()
