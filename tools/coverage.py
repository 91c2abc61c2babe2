"""Line coverage of src/ after a run of tests in a --coverage build: coverage.py BUILD. Needs gcov, nothing else."""
import gzip
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), ".."))


def main():
    build = os.path.realpath(sys.argv[1])
    lines = {}  # file -> {line: times run}, over all objects that contain it
    data = [os.path.join(d, n) for d, _, names in os.walk(build) for n in names if n.endswith(".gcda")]
    if not data:
        sys.exit("no .gcda files: build with --preset coverage and run the tests first")
    with tempfile.TemporaryDirectory() as folder:
        for first in range(0, len(data), 50):
            subprocess.run(["gcov", "--json-format", "--hash-filenames", "--preserve-paths", *data[first:first + 50]],
                           cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        for name in os.listdir(folder):
            with gzip.open(os.path.join(folder, name)) as file:
                report = json.load(file)
            for entry in report["files"]:
                path = os.path.realpath(os.path.join(report["current_working_directory"], entry["file"]))
                path = os.path.relpath(path, ROOT)
                if not path.startswith("src/") or path.endswith("_test.cpp"):
                    continue
                counts = lines.setdefault(path, {})
                for line in entry["lines"]:
                    counts[line["line_number"]] = counts.get(line["line_number"], 0) + line["count"]
    layers = {}
    for path, counts in sorted(lines.items()):
        hit, total = sum(1 for c in counts.values() if c), len(counts)
        layer = layers.setdefault(path.split("/")[1], [0, 0])
        layer[0] += hit
        layer[1] += total
        if total and hit < 0.7 * total:
            print(f"  {100 * hit / total:5.1f} %  {path} ({total - hit} of {total} lines not run)")
    for layer, (hit, total) in sorted(layers.items()):
        print(f"{layer:10} {100 * hit / max(total, 1):5.1f} %  of {total} lines")
    hit, total = (sum(v[i] for v in layers.values()) for i in (0, 1))
    print(f"{'src/':10} {100 * hit / max(total, 1):5.1f} %  of {total} lines")


main()
