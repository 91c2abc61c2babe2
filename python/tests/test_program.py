"""The program of the installed package with the torch and the pyarrow that stand beside it, in a process that finds no compiler and no other
program: it trains, evaluates, reports, reads Parquet, and says of what is missing what to install. UCAS_TORCH_DIR names another torch."""
import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest

from pip._vendor.packaging.requirements import Requirement

import ucas

PACKAGE = os.path.dirname(ucas.__file__)
BIN = os.path.dirname(sys.executable)
TORCH = os.environ.get("UCAS_TORCH_DIR") or (importlib.util.find_spec("torch") and os.path.dirname(importlib.util.find_spec("torch").origin))
PYARROW = importlib.util.find_spec("pyarrow") is not None
TINY = ["--seeds", "1", "--steps", "2", "--sft_worked_steps", "20", "--sft_mixed_steps", "10", "--test_problems", "16", "--test_samples", "4",
        "--methods", "grpo", "--progress", "none"]


def program(*words, folder=None, expect=0, **variables):
    """`ucas ..` with nothing on its PATH but the environment's own folder."""
    kept = {name: value for name, value in os.environ.items() if name in ("HOME", "TMPDIR", "UCAS_TORCH_DIR", "LD_LIBRARY_PATH")}
    done = subprocess.run([os.path.join(BIN, "ucas"), *map(str, words)], cwd=folder, capture_output=True, text=True,
                          env={**kept, "PATH": BIN, **variables})
    if done.returncode != expect:
        raise AssertionError(f"ucas {' '.join(map(str, words))}: exit {done.returncode}, expected {expect}\n{done.stdout}{done.stderr}")
    return done


def torch_version(folder):
    with open(os.path.join(folder, "version.py"), encoding="utf-8") as file:
        return next(line.split("'")[1] for line in file if line.startswith("__version__ = "))


class Inside(unittest.TestCase):
    def served(self, folder, before):
        return {name.removeprefix(before) for name in os.listdir(os.path.join(PACKAGE, folder))}

    def test_the_extra_asks_for_what_is_served(self):
        asked = {r.name: r.specifier for r in map(Requirement, importlib.metadata.requires("ucas")) if r.marker}
        engines = self.served("engines", "torch")
        self.assertTrue(engines)
        for minor in range(40):
            self.assertEqual(asked["torch"].contains(f"2.{minor}.1"), f"2.{minor}" in engines, f"torch 2.{minor}")

    def test_torch_brings_the_only_openmp(self):
        libraries = os.listdir(os.path.join(os.path.dirname(PACKAGE), "ucas.libs"))
        self.assertGreater(len(libraries), 5)
        self.assertEqual([name for name in libraries if "gomp" in name or "torch" in name or "arrow" in name], [])

    def test_no_path_of_the_machine_that_built_it_is_searched(self):
        for where, _, names in os.walk(PACKAGE):
            for name in names:
                path = os.path.join(where, name)
                if ".so" not in name and os.path.basename(where) != "bin":
                    continue
                with open(path, "rb") as file:
                    self.assertEqual(file.read(4), b"\x7fELF", path)
                # the loader's own word for where it looks
                found = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
                places = [line.split("=> ")[1] for line in found.splitlines() if "=> /" in line]
                home = os.path.realpath(os.path.dirname(PACKAGE))
                for place in places:
                    self.assertTrue(os.path.realpath(place).startswith((home, "/lib", "/usr/lib")), f"{path}: {place}")


class WithoutTorch(unittest.TestCase):
    def with_version(self, version):
        folder = os.path.join(self.enterContext(tempfile.TemporaryDirectory()), "torch")
        os.makedirs(folder)
        with open(os.path.join(folder, "version.py"), "w", encoding="utf-8") as file:
            file.write(f"from typing import Optional\n__version__ = '{version}'\n")
        return folder

    def refusal(self, folder):
        done = program("train", "grpo-tiny", "--model", "nowhere", expect=2, UCAS_TORCH_DIR=folder)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done.stderr

    def test_a_torch_that_no_engine_serves_is_named_with_those_that_are(self):
        said = self.refusal(self.with_version("2.9.1+cu128"))
        self.assertRegex(said, r"torch 2\.9\.1\+cu128 in .*: this package of ucas serves torch 2\.\d+.*pip install 'ucas\[train\]'")

    def test_a_torch_without_its_libraries_is_named(self):
        said = self.refusal(self.with_version(sorted(name.removeprefix("torch") for name in os.listdir(f"{PACKAGE}/engines"))[0] + ".0"))
        self.assertRegex(said, r"libc10\.so: cannot be loaded.*is torch complete\?")

    def test_a_folder_that_is_not_there_is_named(self):
        self.assertIn("UCAS_TORCH_DIR=/nowhere: no folder is there", self.refusal("/nowhere"))

    @unittest.skipIf(TORCH, "torch is here")
    def test_a_training_says_what_to_install(self):
        done = program("train", "grpo-tiny", "--model", "nowhere", expect=2)
        self.assertRegex(done.stderr, r"^ucas: error\[unsupported\]: this command runs a model and needs PyTorch, which is not installed next to "
                                      r"ucas: `pip install 'ucas\[train\]'` brings it \(served: torch 2\.\d+.*\)\n$")

    @unittest.skipIf(TORCH, "torch is here")
    def test_what_runs_no_model_works(self):
        self.assertIn("equal", program("verify", "--gold", "1/2", "--answer", "0.5").stdout)
        self.assertRegex(program("doctor").stdout, r"(?m)^engine +not usable")
        self.assertIn("memory", program("plan", "qwen2.5-0.5b", "--model", "qwen2.5-0.5b").stdout)
        with tempfile.TemporaryDirectory() as folder:
            program("make-task", "--out", f"{folder}/task")
            self.assertTrue(os.path.exists(f"{folder}/task/train.jsonl"))

    @unittest.skipIf(PYARROW, "pyarrow is here")
    def test_a_parquet_file_says_what_to_install(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/x.parquet", "wb") as file:
                file.write(b"PAR1")
            done = program("check", f"{folder}/x.parquet", expect=2)
        self.assertRegex(done.stderr, r"error\[unsupported\]: .*x\.parquet: reading Parquet needs pyarrow: .*pip install 'ucas\[parquet\]'")


@unittest.skipUnless(TORCH, "torch is not here")
class WithTorch(unittest.TestCase):
    def test_the_engine_is_that_of_the_torch_installed(self):
        found = json.loads(program("doctor", "--json").stdout)
        self.assertEqual(found["libtorch"], torch_version(TORCH))
        self.assertNotIn("engine", found)
        self.assertRegex(found["rows"], "equal bits")
        self.assertEqual(found["version"], ucas.__version__)

    def test_trains_evaluates_and_reports(self):
        with tempfile.TemporaryDirectory() as folder:
            program("demo", *TINY, "--out", "demo", folder=folder)
            self.assertGreater(os.path.getsize(f"{folder}/demo/report.html"), 10000)
            base = next(where for where, _, names in os.walk(f"{folder}/demo") if "model.safetensors" in names)
            task = next(where for where, _, names in os.walk(f"{folder}/demo") if "train.jsonl" in names)
            words = ["--model", base, "--data", f"{task}/train.jsonl", "--val", f"{task}/dev.jsonl", "--threads", "1"]
            program("train", "grpo-tiny", *words, "--train.steps", 3, "--out", "whole", folder=folder)
            with open(f"{folder}/whole/env.json", encoding="utf-8") as file:
                self.assertEqual(json.load(file)["torch"], torch_version(TORCH))
            self.assertEqual(self.steps(f"{folder}/whole")[-1]["training/global_step"], 3)
            program("evaluate", f"base={base}", "new=whole", "--data", f"{task}/test.jsonl", "--out", "eval", folder=folder)
            program("report", "whole", "-o", "report.html", folder=folder)
            self.assertGreater(os.path.getsize(f"{folder}/report.html"), 10000)

    def steps(self, run):
        with open(f"{run}/steps.jsonl", encoding="utf-8") as file:
            return [json.loads(line) for line in file]


def kernels():
    """libucas_cuda.so for this torch, and whether torch is a build for CUDA with CUDA's own packages."""
    library = os.path.join(PACKAGE, "engines", "torch" + ".".join(torch_version(TORCH).split(".")[:2]), "libucas_cuda.so") if TORCH else ""
    whole = TORCH and os.path.exists(f"{TORCH}/lib/libtorch_cuda.so") and os.path.exists(f"{TORCH}/../nvidia/cudnn/lib")
    return library, whole and os.path.exists(library)


@unittest.skipUnless(kernels()[1], "no torch for CUDA with CUDA's packages, or a wheel without kernels")
class WithTorchForCuda(unittest.TestCase):
    """As far as a machine without a GPU can show: the kernels' library loads beside this torch, with every symbol, and the program says that there is
    no device. In the place of the driver's library stands one that is no driver, so that torch's CUDA half is loaded."""

    def setUp(self):
        self.driver = self.enterContext(tempfile.TemporaryDirectory())
        with open(f"{self.driver}/libcuda.so.1", "wb") as file, open(next(
                path for path in ("/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6") if os.path.exists(path)), "rb") as any_library:
            file.write(any_library.read())

    def test_every_symbol_is_there(self):
        load = "import ctypes, os, sys\n" \
               "for name in sys.argv[1:-1]: ctypes.CDLL(name, mode=os.RTLD_NOW | os.RTLD_GLOBAL)\n" \
               "library = ctypes.CDLL(sys.argv[-1], mode=os.RTLD_NOW)\n" \
               "library.ucas_cuda_library.restype = ctypes.c_void_p\n" \
               "assert library.ucas_cuda_library()\n" \
               "assert library.ucas_make_device_group\n"
        libraries = [f"{TORCH}/lib/{name}" for name in ("libc10.so", "libtorch_cpu.so", "libc10_cuda.so", "libtorch_cuda.so")]
        subprocess.run([sys.executable, "-c", load, *libraries, f"{PACKAGE}/libucas.so", kernels()[0]], check=True)

    def test_no_device_is_said_in_a_line(self):
        done = program("doctor", "--json", LD_LIBRARY_PATH=self.driver)
        self.assertEqual(done.stderr, "")
        self.assertEqual(json.loads(done.stdout)["devices_note"], "LibTorch sees no CUDA device")
        done = program("doctor", "--device", "cuda", expect=2, LD_LIBRARY_PATH=self.driver)
        self.assertRegex(done.stderr, r"no CUDA device is usable here")
        self.assertEqual(done.stderr.count("\n"), 1)


@unittest.skipUnless(PYARROW, "pyarrow is not here")
class WithPyarrow(unittest.TestCase):
    def test_reads_what_pyarrow_writes(self):
        import pyarrow
        import pyarrow.parquet

        rows = [{"gold": "1/2", "prediction": r"\boxed{0.5}"}, {"gold": "3", "prediction": r"\boxed{4}"}]
        with tempfile.TemporaryDirectory() as folder:
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), f"{folder}/rows.parquet", compression="zstd")
            program("verify", "rows.parquet", "--out", "out.jsonl", folder=folder)
            with open(f"{folder}/out.jsonl", encoding="utf-8") as file:
                self.assertEqual([json.loads(line)["verdict"] for line in file], ["equal", "unequal"])


if __name__ == "__main__":
    unittest.main()
