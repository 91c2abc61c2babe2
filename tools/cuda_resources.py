"""What each GPU kernel takes of a multiprocessor, by architecture, as CSV on standard output; nothing but nvcc is needed.

    cuda_resources.py [--nvcc PATH] [--architectures 80,90]

Registers, shared memory, stack and spills come from ptxas. In the PTX of sm_90 no kernel may touch memory before
griddepcontrol.wait: the one before it may still be writing.
"""
import argparse
import csv
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COLUMNS = ["kernel", "architecture", "registers", "shared_bytes", "stack_bytes", "spill_bytes"]


def architectures():
    text = open(os.path.join(ROOT, "cmake/nvcc.cmake"), encoding="utf-8").read()
    return re.search(r'UCAS_CUDA_ARCHITECTURES "([0-9;]+)"', text).group(1).split(";")


def compiled(nvcc, *words):
    command = [nvcc, "-std=c++20", "-O3", "--expt-relaxed-constexpr", "-I", os.path.join(ROOT, "src"), *words,
               os.path.join(ROOT, "src/kernels/gpu/device.cu")]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"cuda_resources: {' '.join(command)}:\n{done.stderr[-2000:]}")
    return done.stderr + done.stdout


def kernel_of(mangled):
    """AttendPart<6> of run_kernel<ucas::gpu::AttendPart<6>>."""
    name = subprocess.run(["c++filt", mangled], capture_output=True, text=True, check=True).stdout.strip()
    found = re.search(r"run_kernel<(.*)>\(", name)
    return re.sub(r"ucas::gpu::(\(anonymous namespace\)::)?", "", found.group(1)) if found else name


def rows_of(nvcc, architecture):
    with tempfile.TemporaryDirectory() as folder:
        log = compiled(nvcc, "-cubin", f"-arch=sm_{architecture}", "--resource-usage", "-o", os.path.join(folder, "cubin"))
    rows = []
    for part in re.split(r"Compiling entry function '", log)[1:]:
        stack, stores, loads = re.search(
            r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", part).groups()
        shared = re.search(r"(\d+) bytes smem", part)
        rows.append({"kernel": kernel_of(part.split("'")[0]), "architecture": architecture,
                     "registers": int(re.search(r"Used (\d+) registers", part).group(1)),
                     "shared_bytes": int(shared.group(1)) if shared else 0, "stack_bytes": int(stack),
                     "spill_bytes": int(stores) + int(loads)})
    return sorted(rows, key=lambda row: row["kernel"])


def early_reads(nvcc):
    """Kernels of sm_90 that read or write memory before they wait for the one before them."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ptx")
        compiled(nvcc, "-ptx", "-arch=compute_90", "-o", path)
        text = open(path, encoding="utf-8").read()
    entries = re.split(r"\.entry ", text)[1:]
    bad = []
    for entry in entries:
        waits = entry.find("griddepcontrol.wait")
        touches = re.search(r"\b(ld|st|atom|red|cp)\.(?!param)", entry)
        if waits < 0 or (touches and touches.start() < waits):
            bad.append(kernel_of(entry.split("(")[0].strip()))
    return len(entries), bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nvcc", default="")
    parser.add_argument("--architectures", default="")
    a = parser.parse_args()
    nvcc = a.nvcc or subprocess.run([os.path.join(ROOT, "tools/find_nvcc")], capture_output=True, text=True,
                                    check=True).stdout.strip()
    rows = []
    for architecture in a.architectures.split(",") if a.architectures else architectures():
        rows += rows_of(nvcc, architecture)
    count, early = early_reads(nvcc)
    problems = [f"{kernel}: touches memory before griddepcontrol.wait" for kernel in early]
    writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    for problem in problems:
        print(f"cuda_resources: {problem}", file=sys.stderr)
    print(f"cuda_resources: {len(rows)} kernels by architecture, {count} of sm_90 read: {len(problems)} problems", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
