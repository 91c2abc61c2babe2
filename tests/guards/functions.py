"""A function of src/ has at most 60 lines, signature and closing brace among them, so that it is read on one page; longer ones are listed here, each
with what keeps it whole. Lambdas count as lines of the function that holds them. Tests and fuzz targets are exempt."""
import re

from tree import files, report, text

LIMIT = 60
# "path: function": why it stays whole.
LONGER = {
}
BLANKED = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-zA-Z_])\'(?:\\.|[^\'\\\n])*\'', re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.M)
SCOPE = re.compile(r"\b(?:namespace|class|struct|union|enum|extern)\b")
NAME = re.compile(r"((?:[\w~]+(?:<[^()]*?>)?::)*(?:operator\s*(?:\(\)|[^\s(]+)|~?\w+))\s*\(")


def blank(match):
    return re.sub(r"[^\n]", " ", match[0])


def is_scope(head):
    """A brace that opens a namespace or a type: no parameter list, but for those of a template or of attributes."""
    bare = re.sub(r"\b(?:alignas|__attribute__|decltype|requires)\s*\(+[^()]*\)+", "", head)
    return bool(SCOPE.search(bare)) and "(" not in bare


def is_initializer(head):
    """A brace that makes a value: of a variable, a default, an enumerator, or a member before the body of a constructor."""
    if "(" not in head or re.search(r"[^=!<>]=\s*(?:[\w:<>, ]*)$", head) and not re.search(r"operator\s*=+\s*\(", head):
        return True
    return bool(re.search(r"\)\s*(?:noexcept\s*)?:[^:].*?[\w>]\s*$", head, re.S)) and not re.search(r"\)\s*$", head)


def functions(source):
    """(name, first line, lines) of every function outside functions."""
    code = DIRECTIVE.sub(blank, BLANKED.sub(blank, source))
    stack, start, parens = [], 0, 0
    for at, c in enumerate(code):
        inside = any(kind != "scope" for kind, _, _ in stack)
        if c in "()":
            parens += 1 if c == "(" else -1
        elif c == "{":
            head = code[start:at]
            if inside or parens > 0:
                stack.append(("block", start, ""))
            elif is_scope(head):
                stack.append(("scope", start, ""))
                start = at + 1
            elif is_initializer(head):
                stack.append(("value", start, ""))
            else:
                found = NAME.search(re.sub(r"^\s*template\s*<[^{}]*?>\s*(?=\w)", "", head))
                stack.append(("function", start, found[1] if found else "?"))
        elif c == "}" and stack:
            kind, first, name = stack.pop()
            if kind == "function":
                first += len(code[first:]) - len(code[first:].lstrip())
                yield name, code.count("\n", 0, first) + 1, code.count("\n", first, at) + 1
            if kind in ("function", "scope"):
                start = at + 1
        elif not inside and parens == 0 and (c == ";" or c == ":" and re.search(r"\b(?:public|private|protected)\s*$", code[start:at])):
            start = at + 1


def main():
    sources = [f for f in files(".h", ".cpp", ".cu", under="src") if not f.endswith("_test.cpp")]
    problems, longer, checked = [], set(), 0
    for path in sources:
        for name, line, lines in functions(text(path)):
            checked += 1
            if lines <= LIMIT:
                continue
            longer.add(f"{path}: {name}")
            if f"{path}: {name}" not in LONGER:
                problems.append(f"{path}:{line}: {name} has {lines} lines, at most {LIMIT}; cut it by what its parts do")
    problems += [f"tests/guards/functions.py: {entry} is no longer above {LIMIT} lines; strike it" for entry in LONGER if entry not in longer]
    report("functions", problems, checked)


if __name__ == "__main__":
    main()
