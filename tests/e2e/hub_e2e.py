"""Names of the Hugging Face hub from a cache that huggingface_hub itself laid out, offline: hub_e2e.py BUILD

A hub that answers over HTTP on this machine gives huggingface_hub two revisions of a model, a data set and an adapter; it lays out the
cache. Then that hub is gone, and ucas must find what `huggingface_hub.snapshot_download(local_files_only=True)` finds, and refuse in one
line what that refuses. Skipped where the package cannot be had.
"""
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

SKIP = 77
HERE = os.path.dirname(os.path.realpath(__file__))
ROWS = [{"question": f"{i}?", "answer": str(i % 4)} for i in (0, 1, 2, 3, 1, 2)]
COMMITS = {"main": "1" * 40, "v1.0": "2" * 40}


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIP)


def python_with_hub(scratch):
    """A Python that has huggingface_hub: this one, or that of an environment made for the test."""
    if subprocess.run([sys.executable, "-c", "import huggingface_hub"], capture_output=True).returncode == 0:
        return sys.executable
    venv = os.environ.get("UCAS_HUB_VENV") or os.path.join(scratch, "venv")
    python = os.path.join(venv, "bin", "python")
    if not os.path.exists(python):
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        done = subprocess.run([python, "-m", "pip", "install", "--quiet", "huggingface_hub"], capture_output=True, text=True)
        if done.returncode != 0:
            skip("huggingface_hub is not here and cannot be installed: " + done.stderr.strip().split("\n")[-1])
    return python


class Hub:
    """What huggingface_hub asks of a hub: the files of a revision, and each file with its commit and hash."""

    def __init__(self):
        self.repositories = {}  # "models/org/name" -> {revision: {path: bytes}}
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def answer(self, head):
                found = hub.look_up(unquote(self.path.split("?")[0]))
                if found is None:
                    self.send_response(404)
                    self.send_header("X-Error-Code", "RevisionNotFound")
                    self.send_header("Content-Length", "0")
                    return self.end_headers()
                body, headers = found
                self.send_response(200)
                for key, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(key, value)
                self.end_headers()
                if not head:
                    self.wfile.write(body)

            def do_GET(self):
                self.answer(False)

            def do_HEAD(self):
                self.answer(True)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def commit(self, revision):
        return COMMITS.get(revision) or (revision if revision in COMMITS.values() else None)

    def files(self, kind, name, revision):
        revisions = self.repositories.get(f"{kind}/{name}", {})
        return next((files for known, files in revisions.items() if COMMITS[known] == self.commit(revision)), None)

    def look_up(self, path):
        parts = path.strip("/").split("/")
        if parts[0] == "api":  # /api/models/ORG/NAME[/revision/REV] and .../tree/REV
            kind, name, rest = parts[1], "/".join(parts[2:4]), parts[4:]
            revision = rest[1] if len(rest) > 1 else "main"
            files = self.files(kind, name, revision)
            if files is None:
                return None
            if rest[:1] == ["tree"]:
                tree = [{"type": "file", "path": path, "size": len(body), "oid": hashlib.sha1(body).hexdigest()} for path, body in files.items()]
                return json.dumps(tree).encode(), {"Content-Type": "application/json"}
            info = {"_id": "0", "id": name, "sha": self.commit(revision), "siblings": [{"rfilename": path} for path in files], "tags": [],
                    "private": False, "downloads": 0, "likes": 0, "gated": False}
            return json.dumps(info).encode(), {"Content-Type": "application/json"}
        kind = "datasets" if parts[0] == "datasets" else "models"
        parts = parts[1:] if kind == "datasets" else parts
        if len(parts) < 5 or parts[2] != "resolve":
            return None
        files = self.files(kind, "/".join(parts[:2]), parts[3])
        body = None if files is None else files.get("/".join(parts[4:]))
        if body is None:
            return None
        return body, {"ETag": f'"{hashlib.sha256(body).hexdigest()}"', "X-Repo-Commit": self.commit(parts[3])}


def files_below(folder):
    paths = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]
    return {os.path.relpath(path, folder): open(path, "rb").read() for path in paths}


def make_model(folder, seed):
    shape = ["--words", "\\boxed{,},0,1,2,3,?", "--hidden", "32", "--layers", "1", "--heads", "2", "--kv-heads", "1", "--intermediate", "64", "--spread", "0.3"]
    subprocess.run([sys.executable, os.path.join(HERE, "../support/make_checkpoint.py"), folder, *shape, "--seed", str(seed)], check=True)
    return files_below(folder)


def lines_of(rows):
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


class Test:
    def __init__(self, build, scratch):
        self.ucas, self.scratch, self.failures = os.path.abspath(os.path.join(build, "ucas")), scratch, 0
        self.home = os.path.join(scratch, "hf home")
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "HUGGINGFACE_", "TRANSFORMERS_"))}
        self.environment |= {"HF_HOME": self.home, "NO_TTY": "1"}

    def run(self, *words, **variables):
        return subprocess.run([self.ucas, *words], cwd=self.scratch, env=self.environment | variables, capture_output=True, text=True)

    def say(self, what, ok, done):
        print(("ok   " if ok else "FAIL ") + what)
        if not ok:
            self.failures += 1
            print(f"    exit {done.returncode}\n    out: {done.stdout[:2000]}\n    err: {done.stderr[:2000]}")

    def works(self, what, *words, holds="", **variables):
        done = self.run(*words, **variables)
        self.say(what, done.returncode == 0 and holds in done.stdout + done.stderr, done)

    def refuses(self, what, *words, holds, **variables):
        done = self.run(*words, **variables)
        one_line = done.returncode == 2 and done.stderr.count("\n") == 1
        self.say(what, one_line and all(text in done.stderr for text in holds), done)


FETCH = """
import sys
from huggingface_hub import snapshot_download
kind, name, revision, local = sys.argv[1:5]
print(snapshot_download(name, repo_type=kind, revision=revision or None, local_files_only=bool(local)))
"""


def main():
    with tempfile.TemporaryDirectory(prefix="ucas-hub-") as scratch:
        python = python_with_hub(scratch)
        test = Test(sys.argv[1], scratch)
        hub = Hub()
        first, second = make_model(os.path.join(scratch, "first"), 1), make_model(os.path.join(scratch, "second"), 2)
        hub.repositories["models/org/tiny"] = {"main": first, "v1.0": second}
        hub.repositories["models/org/half"] = {"main": first}
        hub.repositories["models/org/pointer"] = {"main": first}
        hub.repositories["datasets/org/sums"] = {"main": {
            "main/train-00000-of-00002.jsonl": lines_of(ROWS[:3]), "main/train-00001-of-00002.jsonl": lines_of(ROWS[3:]),
            "main/test-00000-of-00001.jsonl": lines_of(ROWS[:2]), "hard/train.jsonl": lines_of(ROWS[:1]), "README.md": b"# sums\n"}}

        def fetch(kind, name, revision="", local=False, expect=True):
            done = subprocess.run([python, "-c", FETCH, kind, name, revision, "1" if local else ""], capture_output=True, text=True,
                                  env=test.environment | {"HF_ENDPOINT": hub.address, "HF_HUB_DISABLE_XET": "1"})
            if expect and done.returncode != 0:
                sys.exit(f"huggingface_hub does not take the hub of this test:\n{done.stderr[-3000:]}")
            return done.stdout.strip() if done.returncode == 0 else None

        fetch("model", "org/tiny")
        fetch("model", "org/half")
        fetch("model", "org/pointer")
        fetch("dataset", "org/sums")
        cache = os.path.join(test.home, "hub")

        # One revision is there, and it is the one that huggingface_hub finds offline.
        place = fetch("model", "org/tiny", local=True)
        with open(os.path.join(scratch, "one.jsonl"), "wb") as file:
            file.write(lines_of(ROWS[:1]))
        ask = ["--data", "one.jsonl", "--max_tokens", "4", "--threads", "1"]  # its rows have the log-prob
        told = test.run("generate", "--model", place, *ask)
        named = test.run("generate", "--model", "org/tiny", *ask)
        test.say("a name answers as its snapshot does", named.returncode == 0 and named.stdout == told.stdout != "", named)
        test.refuses("a revision that is not there is refused", "generate", "--model", "org/tiny@v1.0", *ask,
                     holds=["org/tiny@v1.0: revision v1.0 is not in the cache", "hf download org/tiny --revision v1.0"])
        test.say("as huggingface_hub refuses it", fetch("model", "org/tiny", "v1.0", local=True, expect=False) is None, named)
        fetch("model", "org/tiny", "v1.0")
        other = test.run("generate", "--model", "org/tiny@v1.0", *ask)
        test.say("another revision is another model", other.returncode == 0 and other.stdout != named.stdout, other)
        test.works("a commit is a revision", "check", f"org/tiny@{COMMITS['v1.0']}", holds="checkpoint: ")
        again = test.run("generate", "--model", "org/tiny", *ask)
        test.say("without one it is main still", again.stdout == named.stdout, again)

        # The variables that say where the cache is.
        test.works("HF_HUB_CACHE", "check", "org/tiny", HF_HOME="/nowhere", HF_HUB_CACHE=cache)
        moved = os.path.join(scratch, "xdg", "huggingface")
        shutil.copytree(test.home, moved, symlinks=True)
        test.works("XDG_CACHE_HOME", "check", "org/tiny", HF_HOME="", XDG_CACHE_HOME=os.path.join(scratch, "xdg"))
        test.works("HF_HOME with ~", "check", "org/tiny", HOME=scratch, HF_HOME="~/hf home")
        test.refuses("no cache at all", "check", "org/tiny", HF_HOME="/nowhere",
                     holds=["org/tiny: no such directory, and not in the cache of the hub, /nowhere/hub; ucas fetches nothing: run hf download org/tiny\n"])

        # A directory of that name wins.
        shutil.copytree(os.path.join(scratch, "second"), os.path.join(scratch, "org", "tiny"))
        local = test.run("generate", "--model", "org/tiny", *ask)
        test.say("a local directory wins", local.stdout == other.stdout, local)
        shutil.rmtree(os.path.join(scratch, "org"))

        # Half of a model, and what git leaves in the place of a file.
        half = os.path.join(cache, "models--org--half", "snapshots", COMMITS["main"], "model.safetensors")
        blob = os.path.realpath(half)
        os.rename(blob, blob + ".incomplete")
        test.refuses("a download that did not end", "check", "org/half",
                     holds=["org/half: model.safetensors is not in the snapshot", "hf download org/half\n"])
        pointer = os.path.realpath(os.path.join(cache, "models--org--pointer", "snapshots", COMMITS["main"], "model.safetensors"))
        with open(pointer, "w") as file:
            file.write("version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 1234\n")
        test.refuses("an LFS pointer", "check", "org/pointer", holds=["error[lfs_pointer]", "a Git LFS pointer", "hf download"])

        # A data set: a file, its shards in order.
        listed = test.run("generate", "--model", "org/tiny", "--data", "hf://org/sums/main/train-*", "--max_tokens", "1", "--threads", "1")
        ids = [json.loads(line)["id"] for line in listed.stdout.splitlines()]
        test.say("shards are one set", ids == [f"sums/{i}" for i in range(1, 7)], listed)
        tested = test.run("generate", "--model", "org/tiny", "--data", "hf://datasets/org/sums@main/main/test-*", "--max_tokens", "1", "--threads", "1")
        test.say("of a revision", len(tested.stdout.splitlines()) == 2, tested)
        test.refuses("a folder is no file", "train", "grpo-tiny", "--model", "org/tiny", "--data", "hf://org/sums/main", "--out", "run", "--train.test_freq", "0",
                     holds=["hf://org/sums: no file main in the snapshot", "there are README.md, hard, main"])
        test.refuses("a set that is not there", "train", "grpo-tiny", "--model", "org/tiny", "--data", "hf://org/none/x", "--out", "run", "--train.test_freq", "0",
                     holds=["hf://org/none: not in the cache of the hub", "hf download org/none --repo-type dataset"])
        os.unlink(os.path.join(cache, "datasets--org--sums", "snapshots", COMMITS["main"], "main", "train-00001-of-00002.jsonl"))
        test.refuses("a shard that is not there", "train", "grpo-tiny", "--model", "org/tiny", "--data", "hf://org/sums/main/train-*", "--out", "run", "--train.test_freq", "0",
                     holds=["main/train-00001-of-00002.jsonl is not in the snapshot", "hf download org/sums --repo-type dataset"])

        # A training from names; its adapter names the base as PEFT does, and is found with it.
        small = ["--data.train_batch_size", "1", "--data.gen_batch_size", "0", "--update.mini_batch_size", "1", "--rollout.n", "2", "--train.steps", "1",
                 "--rollout.response_length", "8", "--train.test_freq", "0", "--threads", "1", "--lora.rank", "2", "--lora.alpha", "4"]
        test.works("a training from names", "train", "intuitor-tiny", "--model", "org/tiny@v1.0", "--data", "hf://org/sums/hard/train.jsonl", "--out", "run", *small)
        adapter = os.path.join(scratch, "run", "checkpoints", "step-0000001")
        with open(os.path.join(adapter, "adapter_config.json")) as file:
            config = json.load(file)
        test.say("its adapter names the base", (config["base_model_name_or_path"], config.get("revision")) == ("org/tiny", COMMITS["v1.0"]), named)
        test.works("and is a model", "generate", "--model", adapter, *ask)
        test.works("resumes", "train", "--resume", "run", "--train.steps", "2")
        test.refuses("without its base it is none", "generate", "--model", adapter, *ask, HF_HOME="/nowhere",
                     holds=["base_model_name_or_path: org/tiny", f"hf download org/tiny --revision {COMMITS['v1.0']}"])
        test.works("export", "export", "run", "--out", "card")
        with open(os.path.join(scratch, "card", "README.md")) as file:
            card = file.read()
        test.say("the card names model and data", 'base_model: "org/tiny"' in card and "org/sums" in card, named)
        print(f"{test.failures} failures")
        sys.exit(1 if test.failures else 0)


if __name__ == "__main__":
    main()
