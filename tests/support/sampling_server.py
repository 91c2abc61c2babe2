"""A server that speaks what training asks of samplers, SGLang's or vLLM's interface as their documentation has it, in front
of `ucas serve` and `ucas score`, which are started anew for every directory of weights that is handed over; and that can
be told to be at fault.

    sampling_server.py UCAS --as sglang|vllm --model DIR [--fault NAME] [--faults N]

Faults of the hand-over: "ignore" acknowledges weights and keeps those it has, "unversioned" takes them and names others,
"refuse" says no. Where weights come by a group of torch.distributed (it needs PyTorch then): "absent" never joins, "larger" joins one
of another size, "pipeline" has workers that none can join, "unknown" has left it, "dies" ends amid the weights of step 1. Faults of
replies, each request's first N of them: stall, drop, damaged, cut, 429, 500, fewer, outside,
lengths, abort, positive; "mixed" takes them in turn, "always NAME" never ends. Prints its port; on SIGTERM what it did, as
one line of JSON."""
import argparse
import atexit
import collections
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import zlib

from server_base import Handler, Server

REPLIES = ["stall", "drop", "damaged", "cut", "429", "500", "fewer", "outside", "lengths", "abort", "positive"]


class Backend:
    """`ucas serve` of one directory."""

    def __init__(self, directory):
        self.directory = directory
        self.process = subprocess.Popen([OPTIONS.ucas, "serve", directory, "--port", "0", "--threads", "1"],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.port = int(self.process.stdout.readline().split("http://127.0.0.1:")[1].split("/")[0])

    def complete(self, prompt, tokens, temperature, seed, stops):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("POST", "/v1/completions", json.dumps({
            "prompt": prompt, "max_tokens": tokens, "temperature": temperature, "seed": seed, "stop_token_ids": stops,
            "return_token_ids": True, "logprobs": 1}), {"Content-Type": "application/json"})
        body = json.loads(connection.getresponse().read())
        connection.close()
        choice = body["choices"][0]
        return choice["token_ids"], choice["logprobs"]["token_logprobs"], choice["finish_reason"]

    def score(self, ids):
        """Log-probs of all ids but the first, at temperature 1."""
        with tempfile.TemporaryDirectory() as folder:
            rows = os.path.join(folder, "rows.jsonl")
            with open(rows, "w") as file:
                file.write(json.dumps({"prompt_ids": ids[:1], "response_ids": ids[1:]}) + "\n")
            done = subprocess.run([OPTIONS.ucas, "score", "--model", self.directory, rows, "--threads", "1"], capture_output=True,
                                  text=True)
            assert done.returncode == 0, done.stderr
            return json.loads(done.stdout.splitlines()[0])["logprob"]

    def stop(self):
        self.process.terminate()
        self.process.wait()


def take(directory, version):
    """True where the weights are loaded, or said to be."""
    global BACKEND, VERSION
    with LOCK:
        COUNTS["hand_over"] += 1
    if OPTIONS.fault == "refuse":
        return False
    if OPTIONS.fault != "ignore" or BACKEND is None:
        before, BACKEND = BACKEND, Backend(directory)
        if before:
            before.stop()
    if version is not None:
        VERSION = version
    return True


class WeightGroup:
    """This server's place in a group of torch.distributed, and what came in it. As SGLang's workers have it: the store of the
    address, its keys under the group's name, and a new group of that name beside any others."""

    def __init__(self, asked):
        import torch.distributed as dist
        from torch.distributed import distributed_c10d as c10d
        from torch.distributed.distributed_c10d import default_pg_timeout as HANG
        rank, size, name = asked["rank_offset"], asked["world_size"] + (1 if OPTIONS.fault == "larger" else 0), asked["group_name"]
        store = dist.TCPStore(asked["master_address"], asked["master_port"], size, is_master=False, wait_for_workers=False)
        self.name = name
        self.group, _ = c10d._new_process_group_helper(size, rank, [], c10d.Backend(asked["backend"]), dist.PrefixStore(name, store),
                                                       group_name=name, timeout=HANG)
        c10d._world.pg_group_ranks[self.group] = {i: i for i in range(size)}
        self.weights = {}

    def receive(self, asked):
        import torch
        import torch.distributed as dist
        for name, dtype, shape in zip(asked["names"], asked["dtypes"], asked["shapes"], strict=True):
            tensor = torch.empty(shape, dtype=getattr(torch, dtype))
            if OPTIONS.fault == "dies" and asked.get("weight_version") == "1" and len(self.weights) == len(asked["names"]) // 2:
                BACKEND.stop()
                shutil.rmtree(SCRATCH, ignore_errors=True)
                os._exit(9)
            dist.broadcast(tensor, src=0, group=self.group)
            self.weights[name] = tensor
        if asked["flush_cache"]:
            self.load(asked["weight_version"])

    def load(self, version):
        """By a directory like the one before, with what came in place of its tensors."""
        folder = tempfile.mkdtemp(prefix="received-", dir=SCRATCH)
        for file in os.listdir(OPTIONS.model):
            if not file.endswith((".safetensors", ".safetensors.index.json")):
                shutil.copy(os.path.join(OPTIONS.model, file), folder)
        write_safetensors(os.path.join(folder, "model.safetensors"), self.weights)
        self.weights = {}
        take(folder, version)


DTYPES = {"torch.float32": "F32", "torch.bfloat16": "BF16", "torch.float16": "F16"}


def write_safetensors(path, tensors):
    import torch
    header, data = {}, b""
    for name, tensor in tensors.items():
        begin = len(data)
        data += bytes(tensor.contiguous().view(torch.uint8).flatten().tolist())
        header[name] = {"dtype": DTYPES[str(tensor.dtype)], "shape": list(tensor.shape), "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)


class Answers(Handler):
    def group_call(self, asked):
        """True where it is one of the calls of a group of torch.distributed."""
        global GROUP
        if self.path == "/init_weights_update_group":
            if OPTIONS.fault == "absent":
                return self.stall() or True
            GROUP = WeightGroup(asked)
        elif self.path == "/update_weights_from_distributed":
            if OPTIONS.fault == "unknown" or GROUP is None or asked["group_name"] != GROUP.name:
                self.reply(400, {"success": False, "message": f"Group {asked['group_name']} not in []."})
                return True
            GROUP.receive(asked)
        elif self.path == "/destroy_weights_update_group":
            GROUP = None
        else:
            return False
        self.reply(200, {"success": True, "message": "Succeeded."})
        return True

    def do_GET(self):
        if OPTIONS.speaks == "sglang" and self.path == "/get_server_info":
            return self.reply(200, {"tp_size": 1, "pp_size": 2 if OPTIONS.fault == "pipeline" else 1, "dp_size": 1})
        if OPTIONS.speaks == "vllm" and self.path == "/v1/models":
            return self.reply(200, {"object": "list", "data": [{"id": "tiny", "object": "model"}]})
        self.reply(404, {"detail": "Not Found"})

    def do_POST(self):
        global VERSION
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with LOCK:
            COUNTS[self.path] += 1
        if OPTIONS.speaks == "sglang":
            if self.group_call(asked):
                return
            if self.path == "/update_weights_from_disk":
                good = take(asked["model_path"], asked["weight_version"])
                said = "Succeeded to update model weights." if good else "Failed to load the weights"
                return self.reply(200 if good else 400, {"success": good, "message": said, "num_paused_requests": 0})
            if self.path == "/generate":
                settings = asked["sampling_params"]
                if asked.get("logprob_start_len", -1) == 0:
                    return self.scored(asked["input_ids"])
                return self.sampled(asked["input_ids"], settings["max_new_tokens"], settings["temperature"],
                                    settings["sampling_seed"], settings["stop_token_ids"])
        else:
            if self.path in ("/pause?mode=wait", "/resume"):
                return self.reply(200, {"status": "paused" if "pause" in self.path else "resumed"})
            if self.path == "/collective_rpc" and asked["method"] == "reload_weights":
                good = take(asked["kwargs"]["weights_path"], None)
                return self.reply(200, {"results": [None]}) if good else self.reply(400, {"error": {"message": "no such path"}})
            if self.path == "/reset_prefix_cache":
                return self.reply(200, "")
            if self.path == "/update_weight_version":
                VERSION = asked["new_version"]
                return self.reply(200, {"success": True, "new_version": VERSION})
            if self.path == "/v1/completions":
                if "prompt_logprobs" in asked:
                    return self.scored(asked["prompt"])
                return self.sampled(asked["prompt"], asked["max_tokens"], asked["temperature"], asked["seed"],
                                    asked["stop_token_ids"])
        self.reply(404, {"detail": "Not Found"})

    def scored(self, ids):
        values = [None, *BACKEND.score(ids)]
        if OPTIONS.speaks == "sglang":
            return self.reply(200, {"text": "", "output_ids": [0], "meta_info": {
                "finish_reason": {"type": "length", "length": 1}, "weight_version": VERSION,
                "input_token_logprobs": [[v, i, None] for v, i in zip(values, ids)],
                "output_token_logprobs": [[0.0, 0, None]]}})
        self.reply(200, {"choices": [{"index": 0, "text": "", "finish_reason": "length", "logprobs": None, "prompt_logprobs": [
            None if v is None else {str(i): {"logprob": v, "rank": 1, "decoded_token": ""}} for v, i in zip(values, ids)]}]})

    def sampled(self, prompt, limit, temperature, seed, stops):
        ids, values, reason = BACKEND.complete(prompt, limit, temperature, seed, stops)
        fault = OPTIONS.fault
        if fault == "mixed" or fault in REPLIES or fault.startswith("always "):
            name = f"{prompt} {seed} {VERSION}"
            with LOCK:
                tries = TRIES[name] = TRIES[name] + 1
            if fault.startswith("always "):
                fault = fault[len("always "):]
            elif tries > OPTIONS.faults:
                fault = ""
            elif fault == "mixed":
                fault = REPLIES[(zlib.crc32(name.encode()) + tries) % len(REPLIES)]
            with LOCK:
                COUNTS[fault or "answered"] += 1
            if fault == "stall":
                return self.stall()
            if fault == "drop":
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
            if fault == "429":
                return self.reply(429, {"error": {"message": "slow down"}}, [("Retry-After", "0")])
            if fault == "500":
                return self.reply(500, {"error": {"message": "trouble"}})
            if fault == "fewer":
                ids, values, reason = (ids[:-1], values[:-1], "length") if len(ids) > 1 else ([], [], "length")
            if fault == "outside":
                ids = [*ids[:-1], 100000]
            if fault == "lengths":
                values = values[:-1]
            if fault == "abort":
                reason = "abort"
            if fault == "positive":
                values = [0.5, *values[1:]]
        body = self.body(ids, values, reason)
        if fault == "damaged":
            return self.reply(200, json.dumps(body)[:-3] + "\x00")
        if fault == "cut":
            self.reply(200, body, length=len(json.dumps(body)) + 100)
            self.close_connection = True
            return
        self.reply(200, body)

    def body(self, ids, values, reason):
        if OPTIONS.speaks == "sglang":
            pairs = [[v, i, None] for v, i in zip(values, ids)]
            if len(values) < len(ids):
                pairs.append([None, ids[-1], None])
            return {"text": "", "output_ids": ids, "meta_info": {
                "id": "x", "finish_reason": {"type": reason}, "prompt_tokens": 1, "completion_tokens": len(ids),
                "weight_version": "other" if OPTIONS.fault == "unversioned" else VERSION, "output_token_logprobs": pairs}}
        return {"id": "x", "object": "text_completion", "model": "tiny", "choices": [{
            "index": 0, "text": "", "finish_reason": reason, "token_ids": ids,
            "logprobs": {"token_logprobs": values, "tokens": [f"token_id:{i}" for i in ids], "top_logprobs": None}}]}


parser = argparse.ArgumentParser()
parser.add_argument("ucas")
parser.add_argument("--as", dest="speaks", default="sglang")
parser.add_argument("--model", required=True)
parser.add_argument("--fault", default="")
parser.add_argument("--faults", type=int, default=1)
OPTIONS = parser.parse_args()
LOCK = threading.Lock()
COUNTS, TRIES = collections.Counter(), collections.Counter()
VERSION = "default"
GROUP = None
SCRATCH = tempfile.mkdtemp(prefix="sampling-server-")
atexit.register(shutil.rmtree, SCRATCH, ignore_errors=True)
BACKEND = Backend(OPTIONS.model)
server = Server(("127.0.0.1", 0), Answers)
print(server.server_address[1], flush=True)
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
server.serve_forever()
BACKEND.stop()
print(json.dumps(COUNTS))
sys.stdout.flush()
