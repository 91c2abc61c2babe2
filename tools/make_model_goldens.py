#!/usr/bin/env python3
"""Writes tests/goldens/model: tiny random checkpoints of each family saved by transformers, with the logits (and for
some the gradients and greedy decoding) that transformers computes from them; low-rank adapters of them (lora_*) saved by peft, with the
logits and gradients that peft computes; bf16_logits.safetensors, what both compute in bf16; and configs.json, what
transformers makes of files as models publish them and of files that leave everything out. Never needed to build or run;
the outputs are committed.

    pip install torch==2.13.0 transformers==5.23.0 safetensors==0.8.0 peft==0.21.2
    python tools/make_model_goldens.py [CASE ... | bf16_logits | configs]

Always compared with a model that went through from_pretrained: model.to(bfloat16) would also round the rotary
frequencies, which from_pretrained keeps in f32.
"""
import json
import os
import pathlib
import shutil
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import (CONFIG_MAPPING, Gemma3Config, Gemma3ForCausalLM, Gemma3ForConditionalGeneration, Gemma3TextConfig, GraniteConfig, GraniteForCausalLM, LlamaConfig,
                          LlamaForCausalLM, MistralConfig, MistralForCausalLM, Olmo2Config, Olmo2ForCausalLM, Olmo3Config,
                          Olmo3ForCausalLM, Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM, SmolLM3Config,
                          SmolLM3ForCausalLM)
from transformers.models.gemma3.modeling_gemma3 import Gemma3RotaryEmbedding
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding   # that of every other family here
from transformers.models.olmo3.modeling_olmo3 import Olmo3RotaryEmbedding

ROOT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "goldens" / "model"
BASE = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=48,
            vocab_size=61, max_position_embeddings=512, rope_theta=10000.0, rms_norm_eps=1e-6,
            tie_word_embeddings=True, bos_token_id=None, eos_token_id=3, pad_token_id=0)
FAMILIES = {"qwen2": (Qwen2Config, Qwen2ForCausalLM), "qwen3": (Qwen3Config, Qwen3ForCausalLM),
            "llama": (LlamaConfig, LlamaForCausalLM), "mistral": (MistralConfig, MistralForCausalLM),
            "gemma3_text": (Gemma3TextConfig, Gemma3ForCausalLM), "smollm3": (SmolLM3Config, SmolLM3ForCausalLM),
            "granite": (GraniteConfig, GraniteForCausalLM), "olmo2": (Olmo2Config, Olmo2ForCausalLM),
            "olmo3": (Olmo3Config, Olmo3ForCausalLM), "gemma3": (Gemma3Config, Gemma3ForConditionalGeneration),
            "qwen2_5_vl": (Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration)}
SMALL = dict(hidden_size=16, num_attention_heads=2, num_key_value_heads=1, intermediate_size=24)


def rope(kind, theta=10000.0, **keys):
    return dict(rope_parameters=dict(rope_type=kind, rope_theta=theta, **keys))


LLAMA3 = dict(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0)
CASES = {
    # No padding id: transformers drops the gradient of that row of the embedding, ucas does not.
    "gqa_tied": dict(gradients=True, pad_token_id=None),
    "mha_untied": dict(hidden_size=24, num_attention_heads=3, num_key_value_heads=3, intermediate_size=40,
                       vocab_size=50, num_hidden_layers=1, rope_theta=1e6, rms_norm_eps=1e-5,
                       tie_word_embeddings=False, eos_token_id=[3, 7]),
    "sharded": dict(num_key_value_heads=1, tie_word_embeddings=False, shard="12KB", rope_theta=500000.0),
    "bf16": dict(dtype=torch.bfloat16, num_hidden_layers=3),
    "f16": dict(dtype=torch.float16, intermediate_size=33),
    "head_dim": dict(hidden_size=20, num_attention_heads=2, num_key_value_heads=1, head_dim=16, vocab_size=37),
    "long": dict(length=400, last=12, num_hidden_layers=1, hidden_size=16, num_attention_heads=2, intermediate_size=24),
    "qwen3": dict(family="qwen3", gradients=True, pad_token_id=None, head_dim=16),
    "qwen3_untied": dict(family="qwen3", dtype=torch.bfloat16, tie_word_embeddings=False, head_dim=6, rope_theta=1e6,
                         num_key_value_heads=1, hidden_size=24),
    "llama": dict(family="llama", gradients=True, pad_token_id=None, tie_word_embeddings=False, rope_theta=500000.0),
    "llama_tied": dict(family="llama", num_attention_heads=2, num_key_value_heads=1, head_dim=10, rms_norm_eps=1e-5),
    "mistral": dict(SMALL, family="mistral", gradients=True, pad_token_id=None, sliding_window=5,
                    tie_word_embeddings=False),
    "mistral_full": dict(SMALL, family="mistral", sliding_window=None, head_dim=12, rope_theta=1e6),
    "qwen2_window": dict(SMALL, gradients=True, pad_token_id=None, num_hidden_layers=3, use_sliding_window=True,
                         sliding_window=6, max_window_layers=1, length=40),
    "qwen3_window": dict(SMALL, family="qwen3", head_dim=10, use_sliding_window=True, sliding_window=17, length=50,
                         layer_types=["sliding_attention", "full_attention"], tie_word_embeddings=False),
    "llama3": dict(SMALL, family="llama", head_dim=16, length=96, last=24, gradients=True, pad_token_id=None,
                   **rope("llama3", 500.0, original_max_position_embeddings=64, **LLAMA3)),
    "yarn": dict(SMALL, length=100, last=24, gradients=True, pad_token_id=None, head_dim=16, tie_word_embeddings=False,
                 **rope("yarn", factor=4.0, original_max_position_embeddings=32)),
    "yarn_mscale": dict(SMALL, family="llama", head_dim=16, length=100, last=24,
                        **rope("yarn", 500.0, factor=16.0, original_max_position_embeddings=64, beta_fast=8.0,
                               beta_slow=2.0, mscale=1.2, mscale_all_dim=0.7, truncate=False)),
    "yarn_attention": dict(SMALL, family="mistral", length=60, last=24, sliding_window=24, head_dim=16,
                           **rope("yarn", factor=2.0, original_max_position_embeddings=128, attention_factor=0.9)),
    "linear": dict(SMALL, family="qwen3", head_dim=16, length=60, last=24, **rope("linear", factor=3.0)),
    "dynamic": dict(SMALL, family="llama", length=64, last=24, max_position_embeddings=64,
                    **rope("dynamic", factor=2.2)),
    # Spelt as the models of that name publish it.
    "r1_distill_qwen": dict(SMALL, tie_word_embeddings=False, dtype=torch.bfloat16, published=dict(
        max_window_layers=21, rope_theta=10000, sliding_window=4096, use_mrope=False, use_sliding_window=False,
        rope_scaling=None, torch_dtype="bfloat16", attention_dropout=0.0, transformers_version="4.44.0")),
    "r1_distill_llama": dict(SMALL, family="llama", tie_word_embeddings=False, dtype=torch.bfloat16, length=64, last=24,
                             published=dict(
        rope_scaling=dict(LLAMA3, original_max_position_embeddings=32, rope_type="llama3"), rope_theta=500.0,
        torch_dtype="bfloat16", attention_bias=False, mlp_bias=False, pretraining_tp=1, transformers_version="4.43.0")),
}
GEMMA3 = dict(family="gemma3_text", head_dim=12, length=40, query_pre_attn_scalar=20, sliding_window=6)
CASES |= {
    "gemma3": dict(GEMMA3, gradients=True, greedy=16, pad_token_id=None, num_hidden_layers=3,
                   layer_types=["sliding_attention", "full_attention", "sliding_attention"],
                   rope_parameters=dict(full_attention=dict(rope_type="linear", factor=4.0, rope_theta=50000.0),
                                        sliding_attention=dict(rope_type="default", rope_theta=100.0))),
    # Spelt as google/gemma-3-1b publishes it; what it leaves out is the family's.
    "gemma3_published": dict(SMALL, **(GEMMA3 | dict(head_dim=16)), greedy=12, dtype=torch.bfloat16, sliding_window_pattern=2,
                             published=dict(rope_theta=1000000, rope_local_base_freq=10000, rope_scaling=None,
                                            sliding_window_pattern=2, attn_logit_softcapping=None, cache_implementation="hybrid",
                                            final_logit_softcapping=None, torch_dtype="bfloat16",
                                            transformers_version="4.50.0.dev0")),
}
GRANITE = dict(SMALL, family="granite", embedding_multiplier=3.5, attention_multiplier=0.2, residual_multiplier=0.4, logits_scaling=0.7)
CASES |= {
    "smollm3": dict(SMALL, family="smollm3", gradients=True, greedy=12, pad_token_id=None, num_hidden_layers=3, no_rope_layers=[1, 0, 1]),
    # Spelt as HuggingFaceTB/SmolLM3-3B publishes it.
    "smollm3_published": dict(BASE | SMALL, family="smollm3", greedy=12, dtype=torch.bfloat16, no_rope_layer_interval=2, published=dict(
        rope_theta=10000.0, rope_scaling=None, use_sliding_window=False, sliding_window=None, max_window_layers=28,
        no_rope_layer_interval=2, no_rope_layers=[1, 0], pretraining_tp=2, attention_bias=False, mlp_bias=False,
        layer_types=["full_attention"] * 2, torch_dtype="bfloat16", transformers_version="4.54.0.dev0")),
    "granite": dict(GRANITE, gradients=True, greedy=12, pad_token_id=None, num_hidden_layers=3),
    # Spelt as ibm-granite/granite-3.3-2b-instruct publishes it.
    "granite_published": dict(GRANITE, greedy=12, dtype=torch.bfloat16, tie_word_embeddings=False, published=dict(
        rope_theta=10000.0, rope_scaling=None, attention_bias=False, mlp_bias=False, attention_dropout=0.1, torch_dtype="bfloat16",
        transformers_version="4.49.0")),
    "olmo2": dict(family="olmo2", gradients=True, greedy=12, pad_token_id=None, num_hidden_layers=3, rms_norm_eps=1e-5),
    "olmo2_published": dict(SMALL, family="olmo2", greedy=12, dtype=torch.bfloat16, tie_word_embeddings=False, published=dict(
        rope_theta=10000.0, rope_scaling=None, attention_bias=False, torch_dtype="bfloat16", transformers_version="4.47.0")),
    "olmo3": dict(family="olmo3", gradients=True, greedy=16, pad_token_id=None, num_hidden_layers=4, length=40, sliding_window=6,
                  rope_parameters=dict(full_attention=dict(rope_type="yarn", factor=4.0, rope_theta=10000.0,
                                                           original_max_position_embeddings=32, attention_factor=1.2),
                                       sliding_attention=dict(rope_type="default", rope_theta=10000.0))),
}
# The text model of checkpoints with an image model, by the text alone.
EYES = dict(hidden_size=8, intermediate_size=8, patch_size=14)
CASES |= {
    "gemma3_inside": dict(SMALL, **(GEMMA3 | dict(family="gemma3")), gradients=True, greedy=12, pad_token_id=None,
                          layer_types=["sliding_attention", "full_attention"], inside=dict(
        mm_tokens_per_image=4, vision_config=dict(EYES, num_hidden_layers=1, num_attention_heads=1, image_size=28))),
    "qwen2_5_vl_inside": dict(SMALL, family="qwen2_5_vl", greedy=12, dtype=torch.bfloat16, inside=dict(
        vision_config=dict(EYES, depth=1, num_heads=1, out_hidden_size=16, fullatt_block_indexes=[0])),
        **rope("default", mrope_section=[1, 1, 2])),
}
# Adapters of the checkpoints above: what becomes LoraConfig, and the base.
ADAPTERS = {
    "lora_qv": dict(base="gqa_tied", r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"]),
    "lora_all": dict(base="llama", r=3, lora_alpha=32, target_modules="all-linear"),
    "lora_rs": dict(base="mistral", r=4, lora_alpha=6, use_rslora=True,
                    target_modules=["q_proj", "k_proj", "v_proj", "o_proj"]),
    "lora_saved": dict(base="llama", r=2, lora_alpha=5, target_modules=["o_proj", "down_proj"],
                       modules_to_save=["norm", "lm_head"]),
    "lora_tied": dict(base="gqa_tied", r=2, lora_alpha=4, target_modules=["up_proj"], modules_to_save=["embed_tokens"],
                      ensure_weight_tying=True),
    "lora_gemma3": dict(base="gemma3", r=3, lora_alpha=7, target_modules=["q_proj", "o_proj", "down_proj"],
                        modules_to_save=["pre_feedforward_layernorm"]),
    "lora_granite": dict(base="granite", r=3, lora_alpha=7, target_modules="all-linear"),
    "lora_olmo2": dict(base="olmo2", r=3, lora_alpha=7, target_modules=["q_proj", "o_proj", "down_proj"],
                       modules_to_save=["post_feedforward_layernorm", "k_norm"]),
    "lora_one": dict(base="qwen3", r=5, lora_alpha=3, target_modules=["layers.1.self_attn.k_proj", "gate_proj"]),
}
# config.json of models as they publish it, less what decides nothing here, and of each family with what it must have.
LEAST = dict(hidden_size=256, num_hidden_layers=3, num_attention_heads=32, intermediate_size=96, vocab_size=100)
PUBLISHED = {
    "Qwen2.5-7B-Instruct with its yarn": dict(
        model_type="qwen2", architectures=["Qwen2ForCausalLM"], hidden_size=3584, intermediate_size=18944,
        max_position_embeddings=32768, max_window_layers=28, num_attention_heads=28, num_hidden_layers=28,
        num_key_value_heads=4, rms_norm_eps=1e-6, rope_theta=1000000.0, sliding_window=131072, use_sliding_window=False,
        tie_word_embeddings=False, torch_dtype="bfloat16", vocab_size=152064,
        rope_scaling=dict(factor=4.0, original_max_position_embeddings=32768, type="yarn")),
    "Qwen3-0.6B": dict(
        model_type="qwen3", architectures=["Qwen3ForCausalLM"], attention_bias=False, head_dim=128, hidden_size=1024,
        intermediate_size=3072, max_position_embeddings=40960, max_window_layers=28, num_attention_heads=16,
        num_hidden_layers=28, num_key_value_heads=8, rms_norm_eps=1e-6, rope_scaling=None, rope_theta=1000000,
        sliding_window=None, tie_word_embeddings=True, torch_dtype="bfloat16", use_sliding_window=False,
        vocab_size=151936),
    "Llama-2-7b": dict(
        model_type="llama", architectures=["LlamaForCausalLM"], hidden_size=4096, intermediate_size=11008,
        max_position_embeddings=4096, num_attention_heads=32, num_hidden_layers=32, num_key_value_heads=32,
        pretraining_tp=1, rms_norm_eps=1e-5, rope_scaling=None, tie_word_embeddings=False, torch_dtype="float16",
        vocab_size=32000),
    "Llama-3.2-1B": dict(
        model_type="llama", architectures=["LlamaForCausalLM"], attention_bias=False, head_dim=64, hidden_size=2048,
        intermediate_size=8192, max_position_embeddings=131072, mlp_bias=False, num_attention_heads=32,
        num_hidden_layers=16, num_key_value_heads=8, pretraining_tp=1, rms_norm_eps=1e-5, rope_theta=500000.0,
        rope_scaling=dict(factor=32.0, high_freq_factor=4.0, low_freq_factor=1.0, original_max_position_embeddings=8192,
                          rope_type="llama3"),
        tie_word_embeddings=True, torch_dtype="bfloat16", vocab_size=128256),
    "DeepSeek-R1-Distill-Qwen-1.5B": dict(
        model_type="qwen2", architectures=["Qwen2ForCausalLM"], attention_dropout=0.0, bos_token_id=151643,
        eos_token_id=151643, hidden_act="silu", hidden_size=1536, intermediate_size=8960,
        max_position_embeddings=131072, max_window_layers=21, num_attention_heads=12, num_hidden_layers=28, num_key_value_heads=2, rms_norm_eps=1e-6,
        rope_theta=10000, sliding_window=4096, tie_word_embeddings=False, torch_dtype="bfloat16", use_mrope=False,
        use_sliding_window=False, vocab_size=151936),
    "DeepSeek-R1-Distill-Llama-8B": dict(
        model_type="llama", architectures=["LlamaForCausalLM"], attention_bias=False, attention_dropout=0.0,
        bos_token_id=128000, eos_token_id=128001, hidden_act="silu", hidden_size=4096, intermediate_size=14336,
        max_position_embeddings=131072, mlp_bias=False, num_attention_heads=32, num_hidden_layers=32,
        num_key_value_heads=8, pretraining_tp=1, rms_norm_eps=1e-5, rope_theta=500000.0,
        rope_scaling=dict(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8192,
                          rope_type="llama3"),
        tie_word_embeddings=False, torch_dtype="bfloat16", vocab_size=128256),
    "Mistral-7B-v0.1": dict(
        model_type="mistral", architectures=["MistralForCausalLM"], hidden_size=4096, intermediate_size=14336,
        max_position_embeddings=32768, num_attention_heads=32, num_hidden_layers=32, num_key_value_heads=8,
        rms_norm_eps=1e-5, rope_theta=10000.0, sliding_window=4096, tie_word_embeddings=False, torch_dtype="bfloat16",
        vocab_size=32000),
    "Mistral-Nemo-12B": dict(
        model_type="mistral", architectures=["MistralForCausalLM"], head_dim=128, hidden_size=5120,
        intermediate_size=14336, max_position_embeddings=131072, num_attention_heads=32, num_hidden_layers=40,
        num_key_value_heads=8, rms_norm_eps=1e-5, rope_theta=1000000.0, sliding_window=None, tie_word_embeddings=False,
        torch_dtype="bfloat16", vocab_size=131072),
    "gemma-3-1b": dict(
        model_type="gemma3_text", architectures=["Gemma3ForCausalLM"], attention_bias=False, attention_dropout=0.0,
        attn_logit_softcapping=None, bos_token_id=2, cache_implementation="hybrid", eos_token_id=[1, 106],
        final_logit_softcapping=None, head_dim=256, hidden_activation="gelu_pytorch_tanh", hidden_size=1152,
        initializer_range=0.02, intermediate_size=6912, max_position_embeddings=32768, num_attention_heads=4,
        num_hidden_layers=26, num_key_value_heads=1, pad_token_id=0, query_pre_attn_scalar=256, rms_norm_eps=1e-6,
        rope_local_base_freq=10000, rope_scaling=None, rope_theta=1000000, sliding_window=512, sliding_window_pattern=6,
        torch_dtype="bfloat16", vocab_size=262144),
    "Gemma 3 with a linear scaling": dict(
        LEAST | dict(num_hidden_layers=7), model_type="gemma3_text", head_dim=64, rope_local_base_freq=500.0, sliding_window=33,
        rope_scaling=dict(rope_type="linear", factor=8.0)),
    "Gemma 3 as transformers 5 writes it": dict(
        LEAST, model_type="gemma3_text", head_dim=32, layer_types=["full_attention", "sliding_attention", "full_attention"],
        query_pre_attn_scalar=168, sliding_window=512, rope_parameters=dict(
            full_attention=dict(rope_type="linear", factor=8.0, rope_theta=1e6),
            sliding_attention=dict(rope_type="default", rope_theta=2e4))),
    "a linear scaling": dict(LEAST, model_type="llama", head_dim=128, rope_theta=100000,
                             rope_scaling=dict(type="linear", factor=4.0)),
    "a dynamic scaling": dict(LEAST, model_type="llama", head_dim=80, max_position_embeddings=1000,
                              rope_scaling=dict(type="dynamic", factor=3.3)),
    "yarn with everything": dict(
        LEAST, model_type="qwen3", rope_theta=5e5, max_position_embeddings=65536,
        rope_scaling=dict(rope_type="yarn", factor=7.5, original_max_position_embeddings=4000, beta_fast=20, beta_slow=1.5,
                          truncate=False, mscale=0.707, mscale_all_dim=1.0)),
    "yarn with its own factor": dict(LEAST, model_type="qwen2", head_dim=64, num_key_value_heads=32, rope_scaling=dict(
        rope_type="yarn", factor=2.0, attention_factor=1.25)),
    "half of Qwen2's layers slide": dict(LEAST, model_type="qwen2", use_sliding_window=True, max_window_layers=2,
                                         sliding_window=128),
    "some of Qwen3's layers slide": dict(
        LEAST, model_type="qwen3", use_sliding_window=True,
        layer_types=["full_attention", "sliding_attention", "full_attention"]),
    "SmolLM3-3B": dict(
        model_type="smollm3", architectures=["SmolLM3ForCausalLM"], attention_bias=False, bos_token_id=None, eos_token_id=128012,
        hidden_size=2048, intermediate_size=11008, max_position_embeddings=65536, max_window_layers=28, mlp_bias=False,
        no_rope_layer_interval=4, no_rope_layers=[1, 1, 1, 0] * 9, num_attention_heads=16, num_hidden_layers=36,
        num_key_value_heads=4, pad_token_id=128004, pretraining_tp=2, rms_norm_eps=1e-6, rope_scaling=None, rope_theta=5000000.0,
        sliding_window=None, layer_types=["full_attention"] * 36, torch_dtype="bfloat16", use_sliding_window=False, vocab_size=128256),
    "granite-3.3-2b": dict(
        model_type="granite", architectures=["GraniteForCausalLM"], attention_bias=False, attention_multiplier=0.015625,
        bos_token_id=0, embedding_multiplier=12.0, eos_token_id=0, hidden_size=2048, intermediate_size=8192, logits_scaling=8.0,
        max_position_embeddings=131072, mlp_bias=False, num_attention_heads=32, num_hidden_layers=40, num_key_value_heads=8,
        pad_token_id=0, residual_multiplier=0.22, rms_norm_eps=1e-5, rope_scaling=None, rope_theta=10000000.0,
        tie_word_embeddings=True, torch_dtype="bfloat16", vocab_size=49159),
    "OLMo-2-0425-1B": dict(
        model_type="olmo2", architectures=["Olmo2ForCausalLM"], attention_bias=False, eos_token_id=100257, hidden_size=2048,
        intermediate_size=8192, max_position_embeddings=4096, num_attention_heads=16, num_hidden_layers=16, num_key_value_heads=16,
        pad_token_id=100277, rms_norm_eps=1e-6, rope_scaling=None, rope_theta=500000, tie_word_embeddings=False,
        torch_dtype="bfloat16", vocab_size=100352),
    "Olmo-3-1025-7B": dict(
        model_type="olmo3", architectures=["Olmo3ForCausalLM"], attention_bias=False, eos_token_id=100257, hidden_size=4096,
        intermediate_size=11008, max_position_embeddings=65536, num_attention_heads=32, num_hidden_layers=32, num_key_value_heads=32,
        pad_token_id=100277, rms_norm_eps=1e-6, rope_theta=500000, sliding_window=4096, tie_word_embeddings=False,
        layer_types=(["sliding_attention"] * 3 + ["full_attention"]) * 8, torch_dtype="bfloat16", vocab_size=100278,
        rope_scaling=dict(attention_factor=1.2079441541679836, beta_fast=32.0, beta_slow=1.0, factor=8.0,
                          original_max_position_embeddings=8192, rope_type="yarn")),
    "layers of SmolLM3 without rotation slide": dict(LEAST, model_type="smollm3", use_sliding_window=True, sliding_window=128,
                                                     no_rope_layers=[0, 1, 0]),
    "no more than needed: smollm3": dict(LEAST | dict(num_hidden_layers=5), model_type="smollm3"),
    "no more than needed: granite": dict(LEAST, model_type="granite"),
    "no more than needed: olmo2": dict(LEAST, model_type="olmo2"),
    "no more than needed: olmo3": dict(LEAST | dict(num_hidden_layers=5), model_type="olmo3"),
    "gemma-3-4b-it": dict(
        model_type="gemma3", architectures=["Gemma3ForConditionalGeneration"], boi_token_index=255999, eoi_token_index=256000,
        eos_token_id=[1, 106], image_token_index=262144, mm_tokens_per_image=256, torch_dtype="bfloat16",
        text_config=dict(hidden_size=2560, intermediate_size=10240, model_type="gemma3_text", num_hidden_layers=34,
                         rope_scaling=dict(factor=8.0, rope_type="linear"), sliding_window=1024),
        vision_config=dict(hidden_size=1152, image_size=896, intermediate_size=4304, model_type="siglip_vision_model",
                           num_attention_heads=16, num_hidden_layers=27, patch_size=14, vision_use_head=False)),
    "Qwen2.5-VL-3B-Instruct": dict(
        model_type="qwen2_5_vl", architectures=["Qwen2_5_VLForConditionalGeneration"], attention_dropout=0.0, bos_token_id=151643,
        eos_token_id=151645, hidden_act="silu", hidden_size=2048, image_token_id=151655, intermediate_size=11008,
        max_position_embeddings=128000, max_window_layers=70, num_attention_heads=16, num_hidden_layers=36, num_key_value_heads=2,
        rms_norm_eps=1e-6, rope_scaling=dict(type="mrope", mrope_section=[16, 24, 24]), rope_theta=1000000.0, sliding_window=32768,
        tie_word_embeddings=True, torch_dtype="bfloat16", use_sliding_window=False, vocab_size=151936,
        vision_config=dict(depth=32, hidden_size=1280, intermediate_size=3420, num_heads=16, out_hidden_size=2048, patch_size=14)),
    "no more than needed: qwen2": dict(LEAST, model_type="qwen2"),
    "no more than needed: qwen3": dict(LEAST, model_type="qwen3"),
    "no more than needed: llama": dict(LEAST, model_type="llama"),
    "no more than needed: mistral": dict(LEAST, model_type="mistral"),
    "no more than needed: gemma3_text": dict(LEAST | dict(num_hidden_layers=7), model_type="gemma3_text"),
    "null for none: qwen2": dict(LEAST, model_type="qwen2", num_key_value_heads=None, rope_scaling=None),
    "null for none: mistral": dict(LEAST, model_type="mistral", sliding_window=None, head_dim=None),
}


def respell(path, published):
    """The keys of `published` instead of what transformers 5 writes for them."""
    config = json.loads(path.read_text())
    for key in ("rope_parameters", "dtype", "layer_types"):
        config.pop(key, None)
    path.write_text(json.dumps({**config, **published}, indent=2) + "\n")


def make(name, family="qwen2", length=23, last=None, dtype=torch.float32, shard=None, gradients=False, greedy=0,
         published=None, inside=None, **changes):
    torch.manual_seed(sum(map(ord, name)))
    make_config, make_model = FAMILIES[family]
    config = make_config(**{**{k: v for k, v in BASE.items() if k != "rope_theta" or "rope_parameters" not in changes},
                            **changes} if inside is None else dict(text_config={**BASE, **changes}, **inside))
    vocabulary = config.vocab_size if inside is None else config.text_config.vocab_size
    model = make_model(config)
    with torch.no_grad():
        for key, parameter in model.named_parameters():   # large enough that every part of the model matters
            scale = 0.3 if parameter.dim() == 1 else 1.5 / parameter.shape[-1] ** 0.5
            if family in ("gemma3", "gemma3_text") and "embed" in key:   # else the next token would always be the last one again
                scale *= 0.3
            parameter.add_(torch.randn_like(parameter) * scale)
    directory = ROOT / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    model.to(dtype).save_pretrained(directory, **({"max_shard_size": shard} if shard else {}))
    if published:
        respell(directory / "config.json", published)
    model = make_model.from_pretrained(directory, dtype=torch.float32, attn_implementation="eager").eval()
    ids = torch.randint(0, vocabulary, (1, length))
    logits = model(ids).logits[0]
    expected = {"logits": logits[-(last or length):].detach().contiguous()}
    if gradients:
        target = ids[0, 1:]
        loss = -torch.log_softmax(logits[:-1], -1).gather(1, target[:, None]).mean()
        loss.backward()
        for key, parameter in model.named_parameters():
            if parameter.grad is not None:   # of an image model none
                expected["grad." + key.replace("language_model.", "")] = parameter.grad.contiguous()
    save_file(expected, directory / "expected.safetensors")
    found = {"ids": ids[0].tolist()}
    if greedy:   # with a cache, from the first ids on
        prompt = ids[:, :length // 2]
        found["greedy"] = model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False,
                                         max_new_tokens=greedy, min_new_tokens=greedy, eos_token_id=-1,
                                         pad_token_id=0)[0].tolist()
    (directory / "ids.json").write_text(json.dumps(found) + "\n")


def make_adapter(name, base, **settings):
    """The base is named beside the adapter, so that both may lie anywhere."""
    torch.manual_seed(sum(map(ord, name)))
    family = json.loads((ROOT / base / "config.json").read_text())["model_type"]
    directory = ROOT / name
    shutil.rmtree(directory, ignore_errors=True)

    def fresh_base():
        return FAMILIES[family][1].from_pretrained(ROOT / base, dtype=torch.float32, attn_implementation="eager")

    model = get_peft_model(fresh_base(), LoraConfig(task_type="CAUSAL_LM", **settings))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter) * (0.3 if parameter.dim() == 1 else 0.08))
    model.save_pretrained(directory)
    (directory / "README.md").unlink(missing_ok=True)
    config = directory / "adapter_config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "base_model_name_or_path": "../" + base},
                                 indent=2, sort_keys=True) + "\n")
    model = PeftModel.from_pretrained(fresh_base(), directory, is_trainable=True).eval()
    ids = torch.randint(0, model.config.vocab_size, (1, 23))
    logits = model(ids).logits[0]
    expected = {"logits": logits.detach().contiguous()}
    (-torch.log_softmax(logits[:-1], -1).gather(1, ids[0, 1:, None]).mean()).backward()
    for key, parameter in model.named_parameters():
        if parameter.grad is not None:
            stored = key.replace(".modules_to_save.default", "").replace(".default", "")
            expected["grad." + stored] = parameter.grad.contiguous()
    with torch.no_grad():
        expected["merged_logits"] = model.merge_and_unload()(ids).logits[0].contiguous()
    save_file(expected, directory / "expected.safetensors")
    (directory / "ids.json").write_text(json.dumps({"ids": ids[0].tolist()}) + "\n")


def make_bf16(names):
    """What transformers and peft compute in bf16 from the same files: as many last rows as expected.safetensors has."""
    path = ROOT / "bf16_logits.safetensors"
    logits = load_file(path) if path.exists() else {}
    for name in names:
        base = ROOT / ADAPTERS.get(name, {"base": name})["base"]
        family = json.loads((base / "config.json").read_text())["model_type"]
        model = FAMILIES[family][1].from_pretrained(base, dtype=torch.bfloat16, attn_implementation="eager")
        if name in ADAPTERS:
            model = PeftModel.from_pretrained(model, ROOT / name, autocast_adapter_dtype=False)
        ids = json.loads((ROOT / name / "ids.json").read_text())["ids"]
        rows = load_file(ROOT / name / "expected.safetensors")["logits"].shape[0]
        with torch.no_grad():
            logits[name] = model.eval()(torch.tensor([ids])).logits[0, -rows:].to(torch.bfloat16).contiguous()
    save_file(logits, path)


def understood(published):
    """What transformers makes of a config.json."""
    config = CONFIG_MAPPING[published["model_type"]].from_dict(json.loads(json.dumps(published)))
    eos = config.eos_token_id if "text_config" in published else None
    tied, config = config.tie_word_embeddings, config.get_text_config()
    layers = config.num_hidden_layers
    window = getattr(config, "sliding_window", None) or 0
    kinds = ["sliding_attention"] * layers if config.model_type == "mistral" else getattr(config, "layer_types", None)
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    expected = {"num_key_value_heads": config.num_key_value_heads, "head_dim": width,
                "max_position_embeddings": config.max_position_embeddings, "rms_norm_eps": config.rms_norm_eps,
                "tie_word_embeddings": tied,
                "windows": [window if kind == "sliding_attention" else 0 for kind in kinds or [""] * layers]}
    if config.model_type == "gemma3_text":
        rotary = Gemma3RotaryEmbedding(config)
        ids = eos or config.eos_token_id
        ids = ids if isinstance(ids, list) else [ids]
        return expected | {"rope_frequencies": rotary.full_attention_inv_freq.tolist(),
                           "rope_attention_factor": rotary.full_attention_attention_scaling,
                           "local_rope_frequencies": rotary.sliding_attention_inv_freq.tolist(),
                           "query_pre_attn_scalar": config.query_pre_attn_scalar, "eos_token_id": ids,
                           "bos_token_id": config.bos_token_id, "pad_token_id": config.pad_token_id}
    if config.model_type == "olmo3":
        rotary = Olmo3RotaryEmbedding(config)
        return expected | {"rope_frequencies": rotary.full_attention_inv_freq.tolist(),
                           "rope_attention_factor": rotary.full_attention_attention_scaling,
                           "local_rope_frequencies": rotary.sliding_attention_inv_freq.tolist()}
    if config.model_type == "smollm3":
        expected["no_rope_layers"] = config.no_rope_layers
    if config.model_type == "granite":
        keys = ("embedding_multiplier", "attention_multiplier", "residual_multiplier", "logits_scaling")
        expected |= {key: getattr(config, key) for key in keys}
    rotary = LlamaRotaryEmbedding(config)
    return expected | {"rope_frequencies": rotary.inv_freq.tolist(), "rope_attention_factor": rotary.attention_scaling}


def make_configs():
    rows = [{"name": name, "config": config, "expected": understood(config)} for name, config in PUBLISHED.items()]
    (ROOT / "configs.json").write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


for name in sys.argv[1:] or [*CASES, *ADAPTERS, "bf16_logits", "configs"]:
    if name in ("bf16_logits", "configs"):
        make_configs() if name == "configs" else make_bf16([*CASES, *ADAPTERS])
        continue
    if name in ADAPTERS:
        make_adapter(name, **ADAPTERS[name])
    else:
        make(name, **CASES[name])
    if sys.argv[1:]:
        make_bf16([name])
    print(name, sum(f.stat().st_size for f in (ROOT / name).iterdir()) // 1024, "KiB")
