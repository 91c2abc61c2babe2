"""What one would use instead, measured as bench/table.py measures ucas; runs inside an environment that has the peer.

    PYTHON bench/peers.py decode transformers|vllm|llama.cpp SHAPE f32|bf16 BATCH[,BATCH ..] PROMPT NEW TAKES THREADS
    PYTHON bench/peers.py train transformers SHAPE f32|bf16 TOKENS TAKES THREADS
    PYTHON bench/peers.py head whole|compile|package ROWS f32|bf16 TAKES THREADS

Random weights in the shapes of bench/bench_model.h. One JSON line for each batch: how much was done in each of some
seconds; CPU seconds of the process with one thread, by the clock with more. Decoding draws at temperature 1; what
prompts take is measured by a run of one token, and is no part of it. Of the head also the memory of a step that is not the first, in MB, beyond
what was there before it: both gradients, and whatever lies between. The packages: bench/README.md; `package` is ours.
"""
import json
import os
import sys
import tempfile
import time

SHAPES = {  # D, layers, heads, key/value heads, F, V
    "tiny": (128, 4, 4, 2, 512, 512),
    "m25": (512, 6, 8, 2, 1792, 8192),
    "smollm2": (576, 30, 9, 3, 1536, 49152),
    "q05b": (896, 24, 14, 2, 4864, 151936),
}
TYPES = {"f32": "float32", "bf16": "bfloat16"}
CONTEXT = 1024


def seconds_of(work, takes, threads):
    now = time.process_time if threads == 1 else time.perf_counter
    seconds = []
    for _ in range(takes):
        began = now()
        work()
        seconds.append(now() - began)
    return sorted(seconds)


def print_takes(what, amount, seconds, **more):
    print(json.dumps({"what": what, "amount": amount, "seconds": [round(s, 6) for s in seconds], **more}), flush=True)


def memory_mb(work):
    """The highest that the process reached in `work` less what it had before."""
    def status(key):
        with open("/proc/self/status", encoding="utf-8") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(key)) / 1e3

    with open("/proc/self/clear_refs", "w", encoding="utf-8") as file:
        file.write("5")  # the highest is what there is now
    before = status("VmRSS")
    work()
    return round(status("VmHWM") - before)


def decode(generate, batches, new, takes, threads):
    """generate(batch, new) makes that many tokens of each of them from fresh prompts."""
    for batch in batches:
        generate(batch, 2)
        prompts = seconds_of(lambda: generate(batch, 1), 2, threads)[0]
        seconds = seconds_of(lambda: generate(batch, new), takes, threads)
        print_takes("decode", batch * (new - 1), [s - prompts for s in seconds])


def config_of(shape):
    from transformers import Qwen2Config
    D, layers, heads, shared, F, V = SHAPES[shape]
    return Qwen2Config(hidden_size=D, num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=shared,
                       intermediate_size=F, vocab_size=V, max_position_embeddings=CONTEXT, tie_word_embeddings=True,
                       bos_token_id=None, eos_token_id=1, pad_token_id=0)


def model_of(shape, dtype, threads):
    import torch
    from transformers import Qwen2ForCausalLM
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    return Qwen2ForCausalLM(config_of(shape)).to(getattr(torch, TYPES[dtype]))


def transformers_generate(shape, dtype, prompt, threads):
    import torch
    model = model_of(shape, dtype, threads).eval()
    model.generation_config.eos_token_id = None

    def generate(batch, new):
        tokens = torch.randint(3, SHAPES[shape][5], (batch, prompt))
        with torch.inference_mode():
            out = model.generate(tokens, attention_mask=torch.ones_like(tokens), pad_token_id=0, max_new_tokens=new,
                                 do_sample=True, temperature=1.0, top_k=0, top_p=1.0)
        assert out.shape[1] == prompt + new
    return generate


def vllm_generate(shape, dtype, prompt, threads, batches):
    os.environ.update(VLLM_CPU_KVCACHE_SPACE="2", VLLM_ENABLE_V1_MULTIPROCESSING="0", VLLM_LOGGING_LEVEL="ERROR",
                      VLLM_CPU_OMP_THREADS_BIND="nobind", OMP_NUM_THREADS=str(threads))
    import random
    from vllm import LLM, SamplingParams
    folder = tempfile.mkdtemp(prefix="ucas-bench-vllm-")
    model_of(shape, dtype, threads).save_pretrained(folder)
    engine = LLM(folder, skip_tokenizer_init=True, dtype=TYPES[dtype], enforce_eager=True, max_model_len=CONTEXT,
                 max_num_seqs=max(batches), enable_prefix_caching=False, disable_log_stats=True)

    def generate(batch, new):
        prompts = [{"prompt_token_ids": [random.randrange(3, SHAPES[shape][5]) for _ in range(prompt)]}
                   for _ in range(batch)]
        asked = SamplingParams(temperature=1.0, max_tokens=new, min_tokens=0, ignore_eos=True, detokenize=False)
        made = engine.generate(prompts, asked, use_tqdm=False)
        assert all(len(m.outputs[0].token_ids) == new for m in made)
    return generate


def gguf_of(shape, dtype, path):
    import gguf
    import numpy
    D, layers, heads, shared, F, V = SHAPES[shape]
    width = D // heads
    kind = gguf.GGMLQuantizationType.BF16
    draw = numpy.random.default_rng(0)
    out = gguf.GGUFWriter(path, "qwen2")
    out.add_context_length(CONTEXT)
    out.add_embedding_length(D)
    out.add_block_count(layers)
    out.add_feed_forward_length(F)
    out.add_head_count(heads)
    out.add_head_count_kv(shared)
    out.add_layer_norm_rms_eps(1e-6)
    out.add_rope_freq_base(1e6)
    out.add_tokenizer_model("llama")
    out.add_token_list([b"<unk>", b"<s>", b"</s>"] + [b"w%d" % i for i in range(3, V)])
    out.add_token_scores([0.0] * V)
    out.add_token_types([2, 3, 3] + [1] * (V - 3))
    out.add_bos_token_id(1)
    out.add_eos_token_id(2)

    def matrix(name, rows, columns):
        x = draw.standard_normal((rows, columns), dtype=numpy.float32) * 0.02
        if dtype == "bf16":
            out.add_tensor(name, gguf.quants.quantize(x, kind), raw_dtype=kind)
        else:
            out.add_tensor(name, x)

    def vector(name, size, value):
        out.add_tensor(name, numpy.full(size, value, numpy.float32))

    matrix("token_embd.weight", V, D)
    vector("output_norm.weight", D, 1)
    for i in range(layers):
        block = f"blk.{i}."
        vector(block + "attn_norm.weight", D, 1)
        vector(block + "ffn_norm.weight", D, 1)
        for name, rows in (("q", D), ("k", shared * width), ("v", shared * width)):
            matrix(f"{block}attn_{name}.weight", rows, D)
            vector(f"{block}attn_{name}.bias", rows, 0)
        matrix(block + "attn_output.weight", D, D)
        matrix(block + "ffn_gate.weight", F, D)
        matrix(block + "ffn_up.weight", F, D)
        matrix(block + "ffn_down.weight", D, F)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def llama_generate(shape, dtype, prompt, threads, batches):
    import random
    from concurrent.futures import ThreadPoolExecutor
    import xllamacpp
    folder = tempfile.mkdtemp(prefix="ucas-bench-llama-")
    gguf_of(shape, dtype, f"{folder}/model.gguf")
    asked = xllamacpp.CommonParams()
    asked.model.path = f"{folder}/model.gguf"
    asked.n_parallel, asked.warmup, asked.verbosity = max(batches), False, -1
    asked.n_ctx = max(batches) * 128
    asked.cpuparams.n_threads = asked.cpuparams_batch.n_threads = threads
    asked.cpuparams.poll = asked.cpuparams_batch.poll = 0
    asked.cache_prompt = False
    server = xllamacpp.Server(asked)

    def one(new):
        tokens = [random.randrange(3, SHAPES[shape][5]) for _ in range(prompt)]
        made = server.handle_completions({"prompt": tokens, "n_predict": new, "ignore_eos": True, "temperature": 1.0,
                                          "samplers": ["temperature"], "cache_prompt": False})
        assert made["usage"]["completion_tokens"] == new, made

    def generate(batch, new):
        with ThreadPoolExecutor(batch) as pool:
            list(pool.map(one, [new] * batch))
    return generate


def train(shape, dtype, tokens, takes, threads):
    import torch
    model = model_of(shape, dtype, threads).train()
    row = torch.randint(3, SHAPES[shape][5], (1, tokens))

    def step():
        for p in model.parameters():
            if p.grad is not None:
                p.grad.zero_()  # as those of ucas: their memory stays
        model(input_ids=row, labels=row, use_cache=False).loss.backward()
    step()
    print_takes("train", tokens, seconds_of(step, takes, threads))


def head(way, rows, dtype, takes, threads):
    import torch
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    D, V = SHAPES["q05b"][0], SHAPES["q05b"][5]
    hidden = torch.randn(rows, D).to(getattr(torch, TYPES[dtype])).requires_grad_()
    weight = (torch.randn(V, D) * 0.02).to(getattr(torch, TYPES[dtype])).requires_grad_()
    target, g, e = torch.randint(0, V, (rows,)), torch.randn(rows), 0.01 * torch.randn(rows)

    def statistics(hidden, weight, target):
        logits = (hidden @ weight.t()).float()
        logprobs = logits.log_softmax(-1)
        return logprobs.gather(-1, target[:, None])[:, 0], -(logprobs.exp() * logprobs).sum(-1)

    def package(hidden, weight, target):
        from ucas.lm_head import lm_head_stats
        return lm_head_stats(hidden, weight, target, threads=threads)[:2]
    of = {"compile": lambda: torch.compile(statistics), "whole": lambda: statistics, "package": lambda: package}[way]()

    def step():
        logprob, entropy = of(hidden, weight, target)
        (logprob * g + entropy * e).sum().backward()

    def forget():
        hidden.grad = weight.grad = None

    def whole_step():
        forget()
        step()
    step()
    forget()
    memory = memory_mb(step)
    print_takes("head", 1, seconds_of(whole_step, takes, threads), mb=memory)


def main():
    what, which, *rest = sys.argv[1:]
    if what == "decode":
        shape, dtype, batches, prompt, new, takes, threads = rest
        batches, prompt, new, takes, threads = [int(b) for b in batches.split(",")], *map(int, (prompt, new, takes, threads))
        make = {"transformers": lambda: transformers_generate(shape, dtype, prompt, threads),
                "vllm": lambda: vllm_generate(shape, dtype, prompt, threads, batches),
                "llama.cpp": lambda: llama_generate(shape, dtype, prompt, threads, batches)}
        decode(make[which](), batches, new, takes, threads)
    elif what == "train":
        train(rest[0], rest[1], *map(int, rest[2:]))
    else:
        head(which, int(rest[0]), rest[1], int(rest[2]), int(rest[3]))


if __name__ == "__main__":
    main()
