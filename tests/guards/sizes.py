"""Files stay readable: aim at 300 lines, talk above 500, fail above 800. Tables of data are exempt."""
from tree import files, report, text

EXEMPT = {"src/text/unicode/unicode_tables.cpp", "src/text/unicode/unicode_tables.h"}
LIMIT = 800


def main():
    sizes = {f: text(f).count("\n") for f in files(".h", ".cpp", ".py", ".cmake", "CMakeLists.txt") if f not in EXEMPT}
    order = sorted(sizes.values())
    print(f"lines per file: median {order[len(order) // 2]}, largest {order[-1]}")
    for f, n in sizes.items():
        if 500 < n <= LIMIT:
            print(f"note: {f} has {n} lines; above 500 a file wants to be two")
    report("sizes", [f"{f}: {n} lines, the limit is {LIMIT}" for f, n in sizes.items() if n > LIMIT], len(sizes))


main()
