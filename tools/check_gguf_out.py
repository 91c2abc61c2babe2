"""Is what `ucas export --format gguf` writes what gguf-py would write, and does llama.cpp answer from it what ucas answers?

    PEER_PYTHON -B tools/check_gguf_out.py --ucas build/ucas [DIR ...] [--tokens 16]

Of each checkpoint DIR (small ones of each family without any) files in f32, f16, bf16 and q8_0 are compared with what gguf-py makes of the
same entries and of the checkpoint's own tensors, quantised by it: byte for byte, the whole file. Then llama.cpp (xllamacpp, its server as a
package) loads the f32 file and must give the greedy tokens of `ucas generate`. Where a package is missing, it says so and ends with 77.
"""
import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

SKIP = 77
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import check_gguf  # noqa: E402


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIP)


def turned(matrix, heads):
    """Rows of q and k as llama's files have them: those of each head interleaved."""
    return matrix.reshape(heads, 2, matrix.shape[0] // heads // 2, *matrix.shape[1:]).swapaxes(1, 2).reshape(matrix.shape)


def tensors_of(directory):
    """The checkpoint's tensors in f32, by name, read with nothing of this project."""
    import numpy as np
    tensors = {}
    for name in sorted(os.listdir(directory)):
        if not name.endswith(".safetensors"):
            continue
        with open(os.path.join(directory, name), "rb") as file:
            size = int.from_bytes(file.read(8), "little")
            head, data = json.loads(file.read(size)), file.read()
        for key, row in head.items():
            if key == "__metadata__":
                continue
            raw = data[slice(*row["data_offsets"])]
            if row["dtype"] == "BF16":
                values = (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32)
            else:
                values = np.frombuffer(raw, {"F32": np.float32, "F16": np.float16}[row["dtype"]]).astype(np.float32)
            tensors[key] = values.reshape(row["shape"])
    return tensors


def rewritten(path, directory, kind, out):
    """What gguf-py writes of the entries of `path` and of the tensors of `directory`."""
    import gguf
    import numpy as np
    reader = gguf.GGUFReader(path)
    architecture = str(bytes(reader.fields["general.architecture"].parts[-1]), "utf-8")
    with open(os.path.join(directory, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    writer = gguf.GGUFWriter(out, architecture)
    for key, field in reader.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture":
            continue
        if field.types[0] == gguf.GGUFValueType.ARRAY:
            writer.add_array(key, field.contents())
        else:
            writer.add_key_value(key, field.contents(), field.types[0])
    ours = tensors_of(directory)
    names = gguf.get_tensor_name_map(getattr(gguf.MODEL_ARCH, architecture.upper()), config["num_hidden_layers"])
    theirs = {names.get_name(key, try_suffixes=(".weight", ".bias")): (key, value) for key, value in ours.items()}
    for tensor in reader.tensors:
        if tensor.name not in theirs:  # factors of the rotary embedding: no tensor of the checkpoint
            writer.add_tensor(tensor.name, tensor.data)
            continue
        key, value = theirs[tensor.name]
        if architecture == "llama" and key.endswith(("q_proj.weight", "k_proj.weight")):
            value = turned(value, config["num_attention_heads" if "q_proj" in key else "num_key_value_heads"])
        wanted = gguf.GGMLQuantizationType.F32 if value.ndim == 1 else kind
        if wanted == gguf.GGMLQuantizationType.Q8_0 and value.shape[-1] % 32:
            wanted = gguf.GGMLQuantizationType.F16
        writer.add_tensor(tensor.name, gguf.quants.quantize(np.ascontiguousarray(value), wanted), raw_dtype=wanted)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def first_difference(a, b):
    with open(a, "rb") as one, open(b, "rb") as other:
        x, y = one.read(), other.read()
    if x == y:
        return None
    return next((i for i, (p, q) in enumerate(zip(x, y)) if p != q), min(len(x), len(y)))


def by_llama(asked, directory, path, dtype, root):
    """How many of ucas' greedy answers llama.cpp gives from the file, asked by ids and by text; (same, all)."""
    ours = check_gguf.answers_of_ucas(asked, directory, dtype, root)
    by_ids = check_gguf.answers_of_llama(asked, path, [row["prompt_ids"] for row in ours])
    by_text = check_gguf.answers_of_llama(asked, path, [row["prompt"] for row in ours])
    return sum(row["response_ids"] == a == b for row, a, b in zip(ours, by_ids, by_text)), len(ours)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("directories", nargs="*")
    parser.add_argument("--ucas", default="build/ucas")
    parser.add_argument("--tokens", type=int, default=16)
    asked = parser.parse_args()
    try:
        import gguf
    except ImportError as error:
        skip(f"{error}; pip install gguf")
    ucas, wrong, has_llama = os.path.abspath(asked.ucas), 0, importlib.util.find_spec("xllamacpp") is not None
    asked.ucas = ucas
    with tempfile.TemporaryDirectory(prefix="ucas-gguf-out-") as root:
        directories = asked.directories
        if not directories:
            directories = [directory for _, directory, _ in check_gguf.make_models(ucas, root)]
        for directory in directories:
            name = os.path.basename(os.path.normpath(directory))
            for kind in ("f32", "f16", "bf16", "q8_0"):
                out = os.path.join(root, f"{name}-{kind}")
                done = subprocess.run([ucas, "export", directory, "--format", "gguf", "--gguf_type", kind, "--name", "m", "--out", out],
                                      capture_output=True, text=True)
                if done.returncode != 0:
                    sys.exit(f"{directory}: {done.stderr}")
                ours, theirs = os.path.join(out, f"m-{kind.upper()}.gguf"), os.path.join(out, "theirs.gguf")
                rewritten(ours, directory, getattr(gguf.GGMLQuantizationType, kind.upper()), theirs)
                at = first_difference(ours, theirs)
                print(f"{name} {kind}: {os.path.getsize(ours):,} bytes, {'those of gguf-py' if at is None else f'gguf-py differs from byte {at} on'}")
                wrong += at is not None
                if kind in ("f32", "bf16") and has_llama:
                    same, count = by_llama(asked, directory, ours, kind, root)
                    print(f"    llama.cpp: {same} of {count} greedy answers are those of ucas")
                    wrong += same != count
    print(f"{wrong} differ" + ("" if has_llama else "; xllamacpp is not here: llama.cpp has loaded none of them"))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
