"""The real GGUF file: fetched, converted in f32 and bf16 by python/ucas/convert.py, and the same tensors as transformers loads from it, bit for bit. Leaves both
checkpoints in build/real for the other tests."""
import os
import shutil
from array import array

from real import MODELS, check, clean, digests, fetched, golden, tensors_of, ucas


def rounded(data):
    """bf16 of the first thousand values of f32, to nearest even."""
    return [((bits := x) + 0x7FFF + (bits >> 16 & 1)) >> 16 for x in array("I", data[:4000])]


shutil.rmtree(MODELS, ignore_errors=True)
for dtype in ("f32", "bf16"):
    folder = os.path.join(MODELS, dtype)
    fetched("smollm2", folder, dtype)
    check(": ok (checkpoint: Llama, 30 layers, 134,515,008 parameters" in ucas("check", folder).stdout, f"every command reads the one in {dtype}")
expected = golden("weights.json")
found = digests(os.path.join(MODELS, "f32"))
check(found == expected, f"{len(expected)} tensors have the bits that transformers loads from the same file")
pairs = zip(tensors_of(os.path.join(MODELS, "f32")), tensors_of(os.path.join(MODELS, "bf16")))
check(all(a[0] == b[0] and len(a[2]) == 2 * len(b[2]) and rounded(a[2]) == list(array("H", b[2][:2000])) for a, b in pairs),
      "in bf16 they are those, rounded to nearest even")
clean()
