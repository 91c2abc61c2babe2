"""Files stay readable: aim at 300 lines, talk above 500, fail above 800."""
from tree import files, report, text

LIMIT = 800


def main():
    sizes = {f: text(f).count("\n") for f in files(".h", ".cpp", ".py", ".cmake", "CMakeLists.txt")}
    order = sorted(sizes.values())
    print(f"lines per file: median {order[len(order) // 2]}, largest {order[-1]}")
    for f, n in sizes.items():
        if 500 < n <= LIMIT:
            print(f"note: {f} has {n} lines; above 500 a file wants to be two")
    report("sizes", [f"{f}: {n} lines, the limit is {LIMIT}" for f, n in sizes.items() if n > LIMIT], len(sizes))


main()
