"""Who may include whom (src/README.md has the picture). `a: b c` reads "a may include b and c"."""
import os
import re

from tree import ROOT, files, report, text

ALLOWED = {
    "base": "",
    # HTTP as a library speaks it, client and server
    "http": "base",
    "core": "base",
    "kernels": "base",
    "hf": "base core",
    "text": "base core",
    # data/templates turns questions into token ids, data/register_chains writes its tokenizer
    "data": "base core text",
    "verify": "base core",
    "objective": "base core",
    "methods": "base core objective",
    "stats": "base core",
    # what a run leaves on disk, each file with its writer and its reader
    "records": "base core text data verify stats",
    "compare": "base core objective verify stats records config",
    "report": "base core stats records compare config",
    "sampling": "base kernels",
    # CUDA kernels and their walk on the CPU; a draw is compared with the sampler's
    "gpu": "base kernels sampling",
    "progress": "base core stats records report",
    "model": "base core text kernels hf sampling gpu",
    "rollout": "base core text kernels hf sampling model",
    "evaluate": "base http core text kernels hf sampling model rollout verify data stats records compare config",
    "config": "base core hf sampling verify objective methods data records",
    "explain": "base core objective methods config",
    "plan": "base core kernels hf sampling methods config",
    # evaluate: validation during training is the same code as `ucas evaluate`
    "train": "base http core text kernels hf sampling model rollout objective methods verify data stats records evaluate config plan",
    "study": "base core text hf sampling rollout verify data stats records compare objective methods config evaluate train report progress",
    # a checkpoint behind an API
    "serve": "base http core text hf sampling model rollout data",
    "cli": "base http serve core text kernels hf sampling model rollout objective methods verify data stats records compare evaluate train "
           "report config explain plan progress study",
}
# The folder rule: these see LibTorch, and every folder called engine; http is in their library.
ENGINE = re.compile(r"^(src/)?(http|model|rollout|serve|train)/|/engine/")
LIBTORCH = re.compile(r"^(ATen|c10|torch)/")
# FLINT (before FLINT 3: Arb and Calcium, too) is seen by the exact arithmetic of the verifier alone.
FLINT = re.compile(r"^(flint|calcium)/|^(acb|arb|arf|ca|fmpz)\w*\.h$")
# Named one by one instead of the headers that pull in everything: 4 s a file instead of 18 s.
TOO_MUCH = {"torch/torch.h", "torch/extension.h", "ATen/ATen.h", "ATen/Functions.h", "ATen/NativeFunctions.h"}
# The rooms of src/verify/math, and into which each may look.
ROOMS = {"read": {"read"}, "exact": {"exact", "read"}, "compare": {"compare", "exact", "read"}}
ROOM = re.compile(r"^(?:src/)?verify/math/(\w+)/")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.M)


def includes(path):
    return [(a or b, bool(a)) for a, b in INCLUDE.findall(text(path))]


def main():
    sources = files(".h", ".cpp", under="src")
    problems = []
    own = {}
    for path in sources:
        layer = path.split("/")[1]
        own[path] = []
        if layer not in ALLOWED:
            problems.append(f"{path}: src/{layer}/ is not a layer")
            continue
        allowed = {layer, *ALLOWED[layer].split()}
        for name, quoted in includes(path):
            if name in TOO_MUCH:
                problems.append(f"{path}: <{name}> is too much: include the single headers, <ATen/ops/x.h>")
            elif LIBTORCH.match(name) and not ENGINE.search(path):
                problems.append(f"{path}: LibTorch header <{name}> outside the engine layers")
            elif FLINT.match(name) and not path.startswith("src/verify/math/exact/"):
                problems.append(f"{path}: <{name}> outside src/verify/math/exact")
            elif name == "oniguruma.h" and path != "src/text/regex.cpp":
                problems.append(f"{path}: <{name}> outside src/text/regex.cpp")
            elif re.match("(arrow|parquet)/", name) and not quoted and path != "src/data/parquet_reader.cpp":
                problems.append(f"{path}: <{name}> outside src/data/parquet_reader.cpp")
            elif name == "httplib.h" and not path.startswith("src/http/"):
                problems.append(f"{path}: <{name}> outside src/http")
            elif name == "nlohmann/json.hpp" and path.endswith(".h"):
                problems.append(f"{path}: <nlohmann/json.hpp> in a header; use base/json.h")
            if not quoted:
                continue
            target = f"src/{name}"
            if not os.path.exists(os.path.join(ROOT, target)):
                if not path.endswith("_test.cpp"):  # tests also have tests/ on their include path
                    problems.append(f'{path}: "{name}" is not rooted at src/')
                continue
            own[path].append(target)
            if name.split("/")[0] not in allowed and not path.endswith("_test.cpp"):
                problems.append(f'{path}: layer {layer} must not include "{name}"')
            room, other = ROOM.match(path), ROOM.match(name)
            if room and other and other[1] not in ROOMS[room[1]] and not path.endswith("_test.cpp"):
                problems.append(f'{path}: room {room[1]} must not include "{name}"')
            if ENGINE.search(name) and not ENGINE.search(path):
                problems.append(f'{path}: "{name}" belongs to the engine')

    # Plain commands may read options of engine layers, but no header that brings LibTorch along.
    reach = {}

    def torch_through(path):
        if path not in reach:
            reach[path] = None
            for name, _ in includes(path):
                if LIBTORCH.match(name):
                    reach[path] = name
            for target in own.get(path, []):
                reach[path] = reach[path] or torch_through(target)
        return reach[path]

    for path in sources:
        if not ENGINE.search(path):
            for target in own[path]:
                if torch_through(target):
                    problems.append(f"{path}: {target} brings LibTorch ({torch_through(target)}) into a plain file")
    report("layering", problems, len(sources))


main()
