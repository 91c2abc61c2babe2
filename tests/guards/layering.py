"""Which room of src/ may include which (src/README.md has the picture). `a: b c/*` reads "a may include b, c and what is below c"; every room
may include itself and base/*. An arrow goes to a room that stands above: the few that go back are listed, with what would end them."""
import os
import re

from tree import ROOT, files, report, text

ALLOWED = {
    "base": "",
    "base/terminal": "base",
    "base/files": "base base/terminal",
    "base/text": "base base/terminal base/files",
    "base/process": "base base/terminal base/files base/text",
    # HTTP as a library speaks it: a client
    "http": "",
    "core": "",
    "kernels": "",
    "results/stats": "core",
    # tables of figures and what writes them
    "results": "results/stats",
    "hf": "core",
    "text/unicode": "",
    "text/split": "text/unicode",
    "text/tokenizer": "text/unicode text/split",
    "text": "text/*",
    "data/rows": "",
    "data": "core text/unicode data/rows",
    # questions become messages and token ids
    "data/prompts": "core text/* data/rows",
    # register_chains writes its tokenizer
    "data/tasks": "core text/tokenizer",
    "verify/sandbox": "",
    "verify": "core verify/sandbox",
    "verify/math/read": "verify",
    "verify/math/exact": "verify/math/read",
    "verify/math/compare": "verify verify/math/read verify/math/exact",
    "verify/text": "verify verify/math/read",
    "verify/math": "verify verify/text verify/math/*",
    "verify/code": "verify verify/sandbox verify/math/read",
    # what people see of verdicts: rows of files, tables, the reasons
    "verify/audit": "core results/stats results data data/rows verify verify/math/read",
    "objective/advantage": "core",
    # options of the rooms: every config.h and config.cpp, wherever it lies. Plain: they know no tensor.
    "sections": "core data data/rows data/prompts verify verify/sandbox objective/advantage",
    "rollout/sampling": "kernels sections",
    # CUDA kernels and their emulation on the CPU; a sampled token is compared with the sampler's
    "kernels/gpu": "kernels rollout/sampling sections",
    "objective/loss": "core sections objective/advantage",
    "objective/filter": "core sections",
    "objective": "core sections objective/*",
    "methods": "core sections objective/*",
    "methods/advantage": "core sections objective/* methods",
    "methods/loss": "core sections objective/* methods",
    "methods/signals": "core sections objective/* methods",
    "methods/models": "core sections objective/* methods",
    "model/tensor": "kernels/gpu",
    "model/attention": "hf model/tensor",
    "model/gemm": "kernels model/tensor",
    "model/head": "core hf kernels rollout/sampling sections model/tensor model/gemm",
    "model": "core hf kernels rollout/sampling sections text/tokenizer model/tensor model/gemm model/head",
    "model/backend": "core hf kernels model model/tensor model/gemm model/attention",
    "model/backend/cpu": "core hf kernels rollout/sampling model model/tensor model/gemm model/attention model/head model/backend",
    "model/backend/gpu": "core hf kernels/gpu rollout/sampling model model/tensor model/gemm model/attention model/head model/backend",
    "model/backend/aten": "core hf model model/tensor model/gemm model/attention model/head model/backend",
    # what a run leaves on disk, each file with its writer and its reader
    "records/run": "core hf text/tokenizer verify results/stats",
    "records": "core hf text/tokenizer data data/rows data/prompts verify results/stats records/run",
    "config": "core hf rollout/sampling verify objective/* methods data data/rows data/prompts records records/run sections",
    "config/explain": "core sections verify objective/* methods config",
    "config/plan": "core results sections kernels hf rollout/sampling methods config",
    "results/compare": "core sections objective/* verify results/stats results records records/run config",
    "report": "core results/stats results records records/run results/compare config sections",
    "report/svg": "results/stats report",
    "report/figures": "core results/stats results records records/run results/compare config report report/svg",
    "report/page": "core methods results/stats results records records/run results/compare config report report/svg report/figures",
    "report/progress": "core results/stats results records records/run report",
    "sharding": "core verify kernels model model/tensor model/gemm objective objective/loss sections",
    # log-probs, entropy and confidence of responses, as the trainer computes them
    "train/signals": "core sections hf kernels model model/tensor model/gemm model/head sharding",
    "rollout": "core sections http hf kernels text text/tokenizer rollout/sampling model model/tensor records/run sharding train/signals",
    "rollout/environment": "core sections text text/* data/prompts verify/sandbox verify/text rollout",
    "evaluate": "core sections hf text/* data data/rows data/prompts verify results/stats records records/run results/compare config",
    "evaluate/results": "core sections text/* data data/rows verify results/stats results records records/run results/compare config evaluate",
    "train/optimizer": "core sections model model/tensor model/gemm model/backend model/backend/gpu sharding",
    "train/collect": "core sections text/* data data/prompts verify verify/sandbox objective/* records/run config rollout sharding",
    "train/metrics": "core sections results/stats objective/* records/run sharding train/signals train/collect",
    "train/update": "core sections kernels model model/tensor model/gemm model/head model/backend/gpu objective/* methods config/plan config sharding "
                    "train/signals train/optimizer",
    "evaluate/engine": "core sections kernels hf text/* rollout/sampling data data/rows data/prompts verify results/stats model model/tensor rollout "
                       "rollout/environment sharding records records/run results/compare config evaluate evaluate/results "
                       "train/update",
    "train/auxiliary": "core sections hf text/tokenizer model model/tensor objective/* methods config sharding train/signals train/optimizer train/metrics",
    "train/state": "core sections hf kernels data data/prompts model model/tensor records records/run config rollout sharding train/optimizer "
                   "train/collect train/auxiliary",
    "train/sft": "core sections hf kernels text text/tokenizer data data/rows data/prompts model records records/run config sharding train/signals train/update "
                 "train/optimizer train/state",
    # evaluate: validation during training is the same code as `ucas evaluate`
    "train/loop": "core sections hf kernels text/* rollout/sampling data data/prompts verify verify/audit results/stats objective/* methods model model/tensor records "
                  "records/run config config/plan evaluate evaluate/engine rollout rollout/environment sharding train/signals train/optimizer train/collect train/metrics "
                  "train/update train/auxiliary train/state",
    "study": "core results/stats results verify data data/tasks records records/run results/compare config evaluate report report/svg sections",
    "study/engine": "core sections text/* hf rollout/sampling rollout results/stats results verify data data/tasks data/prompts records records/run results/compare methods config "
                    "evaluate evaluate/engine report report/progress study train/loop train/sft train/state",
    "cli/options": "core sections hf data data/tasks config",
    "cli": "core sections hf text/* data/rows records records/run config study cli/options",
    "cli/commands": "core sections hf kernels text/* data data/* verify verify/* results/stats results records records/run results/compare objective/* methods config config/explain config/plan "
                    "evaluate evaluate/results report report/progress study cli cli/options",
    "cli/engine": "core sections hf kernels text/* rollout/sampling data data/* verify verify/audit results/stats records records/run results/compare methods config model model/gemm "
                  "model/tensor rollout sharding evaluate evaluate/engine evaluate/results report report/progress study study/engine train/* cli cli/options",
}
# Arrows back, each with the includes that make it. None is added; each ends when what it needs has a place of its own.
BACK = {
    ("model/gemm", "model/backend"): "block.h: sizes and rows of padded buffers, to be a header of their own",
    ("model/head", "model/backend"): "block.h: the same",
    ("model", "model/backend/gpu"): "transformer makes the head of a GPU: a back end makes its head",
    ("sharding", "train/state"): "agreement sends the best validated step, a type of the state",
    ("report", "report/page"): "report writes the page; benchmarks use its tables",
    ("report/figures", "report/page"): "series and templates of the page, to be rooms of their own",
}
# The folder rule: these see LibTorch, and every folder called engine; http is in their library. Options (config.h) do not.
ENGINE = re.compile(r"^(src/)?(http|model|rollout(?!/sampling/)|sharding|train)/(?!(.*/)?config\.(h|cpp)$)|/engine/")
SECTION = re.compile(r"^(?!study/).*/config\.(h|cpp)$")
LIBTORCH = re.compile(r"^(ATen|c10|torch)/")
# FLINT (before FLINT 3: Arb and Calcium, too) is seen by the exact arithmetic of the verifier alone.
FLINT = re.compile(r"^(flint|calcium)/|^(acb|arb|arf|ca|fmpz)\w*\.h$")
# Named one by one instead of the headers that pull in everything: 4 s a file instead of 18 s.
TOO_MUCH = {"torch/torch.h", "torch/extension.h", "ATen/ATen.h", "ATen/Functions.h", "ATen/NativeFunctions.h"}
# The sandbox's launcher is a program of its own: it links nothing of ours.
ALONE = "verify/sandbox/launcher"
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.M)


# A model on a GPU is compared with the CPU before it is used (train/update/self_check.h): by who opens it, or by whom it hands it to.
CHECKED_LATER = {"src/cli/engine/entry.cpp": "doctor prints the check", "src/train/loop/run_plan.cpp": "start.cpp", "src/cli/engine/sft.cpp": "run_sft", "src/study/engine/runs.cpp": "run_sft",
                 "src/study/engine/text_tasks.cpp": "run_sft"}


def unchecked_devices():
    """Files that choose a device and never have it checked."""
    return [f"{path}: parse_device() without require_sound_gpu() (train/update/self_check.h)" for path in files(".cpp", under="src")
            if "parse_device(" in text(path) and "require_sound_gpu(" not in text(path) and path not in CHECKED_LATER
            and not path.endswith("_test.cpp") and path != "src/rollout/policy.cpp"]


def budget_of(name):
    """Of "train/update/gradients.h": "train/update"; options are a room wherever they lie."""
    return "sections" if SECTION.match(name) else name.rpartition("/")[0]


def rooms_named(entries):
    """Rooms of "a b/*"; `b/*` is b, if it is a room, and all below it."""
    named = set()
    for entry in entries.split():
        named |= {r for r in ALLOWED if r.startswith(entry[:-1]) or r == entry[:-2]} if entry.endswith("/*") else {entry}
    return named


def allowed(room):
    base = set() if room.startswith("base") else rooms_named("base/*")
    return {room} | base | rooms_named(ALLOWED[room]) | {to for at, to in BACK if at == room}


def includes(path):
    return [(a or b, bool(a)) for a, b in INCLUDE.findall(text(path))]


def wrong_table():
    """The table itself: every name is a room, and stands above those that may include it."""
    order = {room: number for number, room in enumerate(ALLOWED)}
    problems = [f"tests/guards/layering.py: {name}, which {room} may include, is no room" for room in ALLOWED
                for name in rooms_named(ALLOWED[room]) if name not in order]
    problems += [f"tests/guards/layering.py: {room} may include {name}, which stands below it: an arrow back" for room in ALLOWED
                 for name in rooms_named(ALLOWED[room]) - {room} if order.get(name, -1) > order[room]]
    return problems + [f"tests/guards/layering.py: {at} -> {to} is no arrow back" for at, to in BACK if order[to] < order[at]]


def main():
    sources = files(".h", ".cpp", under="src")
    problems = wrong_table() + unchecked_devices()
    own, back = {}, set()
    for path in sources:
        name_of = path.removeprefix("src/")
        room = budget_of(name_of)
        own[path] = []
        if room == ALONE:
            problems += [f'{path}: the launcher must not include "{n}"' for n, quoted in includes(path) if quoted and budget_of(n) != ALONE]
            continue
        if room not in ALLOWED:
            problems.append(f"{path}: src/{room}/ is no room of tests/guards/layering.py")
            continue
        may = allowed(room)
        for name, quoted in includes(path):
            if name in TOO_MUCH:
                problems.append(f"{path}: <{name}> is too much: include the single headers, <ATen/ops/x.h>")
            elif LIBTORCH.match(name) and not ENGINE.search(path):
                problems.append(f"{path}: LibTorch header <{name}> outside the engine rooms")
            elif FLINT.match(name) and not path.startswith("src/verify/math/exact/"):
                problems.append(f"{path}: <{name}> outside src/verify/math/exact")
            elif name == "oniguruma.h" and path != "src/text/split/regex.cpp":
                problems.append(f"{path}: <{name}> outside src/text/split/regex.cpp")
            elif name == "httplib.h" and not path.startswith("src/http/"):
                problems.append(f"{path}: <{name}> outside src/http")
            elif name == "nlohmann/json.hpp" and path.endswith(".h"):
                problems.append(f"{path}: <nlohmann/json.hpp> in a header; use base/text/json.h")
            if not quoted:
                continue
            target = f"src/{name}"
            if not os.path.exists(os.path.join(ROOT, target)):
                if not path.endswith("_test.cpp"):  # tests also have tests/ on their include path
                    problems.append(f'{path}: "{name}" is not rooted at src/')
                continue
            own[path].append(target)
            if budget_of(name) not in may and not path.endswith("_test.cpp"):
                problems.append(f'{path}: room {room} must not include "{name}" (room {budget_of(name)})')
            if not path.endswith("_test.cpp"):
                back.add((room, budget_of(name)))
            if ENGINE.search(name) and not ENGINE.search(path):
                problems.append(f'{path}: "{name}" belongs to the engine')
    problems += [f"tests/guards/layering.py: the arrow back {at} -> {to} is gone; strike it from BACK" for at, to in BACK if (at, to) not in back]

    # Plain commands may read options of engine rooms, but no header that brings LibTorch along.
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


if __name__ == "__main__":
    main()
