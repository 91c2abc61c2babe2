"""The real GGUF file: fetched, converted in f32 and bf16 by python/ucas/convert.py, and the same tensors as transformers loads from it, bit for bit. Leaves both
checkpoints in build/real for the other tests."""
import hashlib
import os
import shutil
import struct
import subprocess
from array import array

from real import MODELS, ROOT, check, clean, golden, json, skip, ucas


def tensors_of(folder):
    """(name, shape, bytes) of each tensor, in turn."""
    with open(os.path.join(folder, "model.safetensors"), "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        base = file.tell()
        for name, entry in sorted(header.items()):
            if name != "__metadata__":
                begin, end = entry["data_offsets"]
                file.seek(base + begin)
                yield name, entry["shape"], file.read(end - begin)


def rounded(data):
    """bf16 of the first thousand values of f32, to nearest even."""
    return [((bits := x) + 0x7FFF + (bits >> 16 & 1)) >> 16 for x in array("I", data[:4000])]


shutil.rmtree(MODELS, ignore_errors=True)
for dtype in ("f32", "bf16"):
    folder = os.path.join(MODELS, dtype)
    fetched = subprocess.run([os.path.join(ROOT, "tools", "fetch_model"), folder, "--dtype", dtype], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if fetched.returncode == 77:
        skip(fetched.stderr.strip().splitlines()[-1])
    check(fetched.returncode == 0, f"the file is here, and converted in {dtype}: {fetched.stderr.strip().splitlines()[-1]}")
    check(": ok (checkpoint: Llama, 30 layers, 134,515,008 parameters" in ucas("check", folder).stdout, f"every command reads the one in {dtype}")
expected = golden("weights.json")
found = [[name, shape, hashlib.sha256(data).hexdigest()[:16]] for name, shape, data in tensors_of(os.path.join(MODELS, "f32"))]
check(found == expected, f"{len(expected)} tensors have the bits that transformers loads from the same file")
pairs = zip(tensors_of(os.path.join(MODELS, "f32")), tensors_of(os.path.join(MODELS, "bf16")))
check(all(a[0] == b[0] and len(a[2]) == 2 * len(b[2]) and rounded(a[2]) == list(array("H", b[2][:2000])) for a, b in pairs),
      "in bf16 they are those, rounded to nearest even")
clean()
