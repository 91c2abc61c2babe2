"""Checkpoints that ucas.convert makes of GGUF files that gguf-py writes: weights, config, tokenizer, and what is refused. Needs gguf; the real
model is tests/real/convert_real.py's."""
import json
import os
import sys
import tempfile
import unittest

import gguf
import numpy as np

try:
    from ucas import convert
except ImportError:  # from a checkout
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ucas"))
    import convert

TOKENS = ["<|end|>", "a", "b", "ab", "\u0120", "1", "<tool>"]
HEADS, KV, HEAD, WIDTH, WIDE = 2, 1, 16, 32, 64
Type = gguf.GGMLQuantizationType


def interleaved(x, heads):
    """Rows of q and k as llama.cpp's converter stores them."""
    return x.reshape(heads, 2, x.shape[0] // heads // 2, x.shape[1]).swapaxes(1, 2).reshape(x.shape)


class Convert(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.rng = np.random.default_rng(0)

    def matrix(self, *shape):
        return self.rng.normal(0, 0.1, shape).astype(np.float32)

    def write(self, kind="llama", stored=Type.F32, pre="llama-bpe", add=lambda writer: None):
        """The file, and the weights in it by Hugging Face's names."""
        path = os.path.join(self.folder, f"{kind}.gguf")
        writer, weights = gguf.GGUFWriter(path, kind), {}
        writer.add_block_count(1), writer.add_context_length(128), writer.add_embedding_length(WIDTH), writer.add_feed_forward_length(WIDE)
        writer.add_head_count(HEADS), writer.add_head_count_kv(KV), writer.add_layer_norm_rms_eps(1e-5), writer.add_rope_freq_base(5e5)
        writer.add_tokenizer_model("llama" if kind == "gemma3" else "gpt2"), writer.add_tokenizer_pre(pre), writer.add_token_list([*TOKENS, "[PAD7]"])
        writer.add_token_types([3, 1, 1, 1, 1, 1, 4, 5]), writer.add_bos_token_id(0), writer.add_eos_token_id(0)
        if kind == "gemma3":
            writer.add_add_space_prefix(False), writer.add_sliding_window(6)
        else:
            writer.add_token_merges(["a b"])
        writer.add_eot_token_id(3), writer.add_chat_template("{{ messages[0].content }}\r\n")
        add(writer)

        def put(name, ours, *shape):
            x = weights[ours] = self.matrix(*shape)
            turned = kind == "llama" and ("q_proj" in ours or "k_proj" in ours)
            x = interleaved(x, HEADS if "q_proj" in ours else KV) if turned else x
            chosen = stored if x.ndim == 2 else Type.F32
            packed = gguf.quants.quantize(x, chosen)
            weights[ours] = gguf.dequantize(gguf.quants.quantize(weights[ours], chosen), chosen)  # of whole rows: in either order
            if kind == "gemma3" and "norm" in ours:
                weights[ours] = weights[ours] - np.float32(1)
            writer.add_tensor(name, packed, raw_dtype=chosen)

        put("token_embd.weight", "model.embed_tokens.weight", len(TOKENS) + 1, WIDTH)
        for theirs, ours in (convert.GEMMA3 if kind == "gemma3" else convert.BLOCK).items():
            rows = {"q": HEADS * HEAD, "k": KV * HEAD, "v": KV * HEAD, "o": WIDTH, "gate": WIDE, "up": WIDE, "down": WIDTH}
            part = ours.split(".")[-1].removesuffix("_proj")
            layer = f"model.layers.0.{ours}"
            if part in rows:
                put(f"blk.0.{theirs}.weight", f"{layer}.weight", rows[part], WIDE if part == "down" else WIDTH)
                if kind == "qwen2" and part in "qkv":
                    put(f"blk.0.{theirs}.bias", f"{layer}.bias", rows[part])
            elif "layernorm" in part or kind in ("qwen3", "gemma3"):
                put(f"blk.0.{theirs}.weight", f"{layer}.weight", HEAD if part in ("q_norm", "k_norm") else WIDTH)
        put("output_norm.weight", "model.norm.weight", WIDTH)
        writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file(), writer.close()
        return path, weights

    def made(self, path, *more):
        out = os.path.join(self.folder, "made")
        convert.main([path, out, *more])
        with open(os.path.join(out, "model.safetensors"), "rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
            data = file.read()
        header.pop("__metadata__")
        read = {}
        for name, row in header.items():
            kind = {"F32": np.float32, "BF16": np.uint16}[row["dtype"]]
            read[name] = np.frombuffer(data[slice(*row["data_offsets"])], kind).reshape(row["shape"])
        texts = {}
        for name in os.listdir(out):
            with open(os.path.join(out, name), "rb") as file:
                texts[name] = file.read() if not name.endswith(".json") else json.load(file)
        return read, texts

    def test_each_architecture_and_type(self):
        for kind in convert.ARCHITECTURES:
            for stored in (Type.F32, Type.F16, Type.BF16, Type.Q8_0, Type.Q4_0):
                with self.subTest(kind=kind, stored=stored.name), tempfile.TemporaryDirectory() as self.folder:
                    path, weights = self.write(kind, stored)
                    read, texts = self.made(path)
                    self.assertEqual(set(read), set(weights))
                    for name, x in weights.items():
                        np.testing.assert_array_equal(read[name].view(np.uint32), x.view(np.uint32), name)
                    config = texts["config.json"]
                    self.assertEqual((config["model_type"], config["rms_norm_eps"], config["rope_theta"], config["vocab_size"], config["eos_token_id"]),
                                     (convert.MODEL_TYPES.get(kind, kind), 1e-5, 5e5, 8, [0, 3]))

    def test_gemma(self):
        _, texts = self.made(self.write("gemma3")[0])
        tokenizer, config = texts["tokenizer.json"], texts["config.json"]
        self.assertEqual(tokenizer["model"]["merges"], [["a", "b"]])
        self.assertEqual([next(iter(part)) for part in tokenizer["post_processor"]["single"]], ["SpecialToken", "Sequence"])
        self.assertTrue(tokenizer["model"]["byte_fallback"] and tokenizer["normalizer"]["type"] == "Replace")
        self.assertEqual((config["sliding_window"], config["layer_types"], config["query_pre_attn_scalar"], config["rope_local_base_freq"]),
                         (6, ["sliding_attention"], HEAD, 1e4))

    def test_merges_of_gemma_come_by_token_then_by_the_length_of_their_first_part(self):
        self.assertEqual(convert.merges_of_order(["a", "b", "ba", "ab", "aba"]), [("b", "a"), ("a", "b"), ("ab", "a"), ("a", "ba")])

    def test_bf16_is_to_nearest_even(self):
        path, weights = self.write()
        read, texts = self.made(path, "--dtype", "bf16")
        for name, x in weights.items():
            near = (read[name].astype(np.uint32) << 16).view(np.float32)
            up, down = ((read[name].astype(np.int64) + step).astype(np.uint32) << 16 for step in (1, -1))
            off = abs(near - x)
            self.assertTrue((off <= abs(up.view(np.float32) - x)).all() and (off <= abs(down.view(np.float32) - x)).all(), name)
        self.assertEqual(texts["config.json"]["dtype"], "bfloat16")

    def test_the_tokenizer(self):
        _, texts = self.made(self.write()[0])
        tokenizer = texts["tokenizer.json"]
        self.assertEqual(list(tokenizer["model"]["vocab"]), TOKENS)
        self.assertEqual([(t["content"], t["special"]) for t in tokenizer["added_tokens"]], [("<|end|>", True), ("<tool>", False)])
        self.assertTrue(tokenizer["model"]["ignore_merges"])
        single = tokenizer["post_processor"]["processors"][1]["single"]
        self.assertEqual([next(iter(part)) for part in single], ["SpecialToken", "Sequence"])
        self.assertEqual(texts["chat_template.jinja"], b"{{ messages[0].content }}\r\n")
        self.assertEqual(texts["tokenizer_config.json"]["eos_token"], "<|end|>")

    def test_what_is_refused_leaves_nothing(self):
        path, _ = self.write()
        with open(path, "rb") as file:
            whole = file.read()
        unknown = self.write("qwen3", add=lambda writer: writer.add_uint32("qwen3.attention.sliding_window", 4))[0]
        strange = self.write("qwen2", pre="poro-chat")[0]
        cut = os.path.join(self.folder, "cut.gguf")
        with open(cut, "wb") as file:
            file.write(whole[:-5000])
        for file, expected in ((unknown, "qwen3.attention.sliding_window = 4"), (strange, "tokenizer.ggml.pre = 'poro-chat'; expected gpt-2"),
                               (cut, "no GGUF file that can be read"), (os.path.join(self.folder, "none"), "none")):
            with self.assertRaisesRegex((convert.Error, OSError), expected):
                convert.convert(file, os.path.join(self.folder, "out"))
        with self.assertRaisesRegex(convert.Error, "exists already"):
            convert.convert(path, self.folder)
        self.assertEqual([name for name in os.listdir(self.folder) if not name.endswith(".gguf")], [])


if __name__ == "__main__":
    unittest.main()
