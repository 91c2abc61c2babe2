"""Small tokenizers of each kind that families of models use, trained on a few sentences with Hugging Face tokenizers.

Used by make_tokenizer_goldens.py and check_tokenizers.py. The components are those of the published files (the vocabularies
are our own): GPT-2, Qwen2, Llama 3, DeepSeek, Mistral's tekken, cl100k, o200k; Llama 2 and Mistral; Gemma.
"""
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

PATTERNS = {
    "qwen2": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+",
    "llama3": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+",
    "cl100k": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"
    r"|\s+(?!\S)|\s",
    "o200k": r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "tekken": r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "deepseek3": r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}
CORPUS = [
    "A model samples an answer, a program checks it, and what was right becomes a little more likely.",
    "Let $x$ be the number of apples. Then $x + 3 = 2x - 1$, so $x = 4$. The answer is \\boxed{4}.",
    "We don't know that it's right; they're sure we'll see, I'd say, and you've asked what I'm doing.",
    "First we add the numbers:\n  1 + 2 + 3 = 6\n\nNext we multiply:\r\n  4 * 5 = 20\t(done)\n\n\n",
    "def check(values):\n    for value in values:\n        assert value > 0, value\n    return len(values)\n",
    "Stra\u00dfe caf\u00e9 na\u00efve \u00e9t\u00e9 \u4f60\u597d \u4f60\u4eec \u041f\u0440\u0438\u0432\u0435\u0442 \U0001f600 \U0001f600",
] * 4
SPIECE = "\u2581"
BOS = "<|begin_of_text|>"


def split(name, **more):
    return pre_tokenizers.Split(Regex(PATTERNS[name]), **({"behavior": "isolated"} | more))


def byte_level(*steps, prefix_space=False, use_regex=False):
    last = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space, use_regex=use_regex)
    return pre_tokenizers.Sequence([*steps, last]) if steps else last


def trained(pre_tokenizer, vocabulary, normalizer=None, decoder=None, tokens=(), alphabet=None, limit=None, **model):
    """Byte-level unless an alphabet is given; `tokens` come first in the vocabulary."""
    tokenizer = Tokenizer(models.BPE(**model))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoder or decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet() if alphabet is None else alphabet
    more = {} if limit is None else {"limit_alphabet": limit}
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, initial_alphabet=alphabet, show_progress=False,
                                  min_frequency=2, special_tokens=list(tokens), **more)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def begun_with(tokenizer, token, end=None):
    """The post-processor of Llama 3: ByteLevel, and a template that puts the token before a text."""
    ends = [end] if end else []
    template = processors.TemplateProcessing(
        single=" ".join([token, "$A", *ends]), pair=f"{token} $A {token} $B",
        special_tokens=[(t, tokenizer.token_to_id(t)) for t in [token, *ends]])
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=True), template])
    return tokenizer


def qwen2_like():
    tokenizer = trained(byte_level(split("qwen2")), 420, normalizers.Sequence([normalizers.NFC()]))
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.add_special_tokens(["<|end|>", "<|start|>"])
    tokenizer.add_tokens([AddedToken("<tool>", normalized=False), AddedToken("<tool>s", normalized=False)])
    return tokenizer


def gpt2_like():
    tokenizer = trained(byte_level(prefix_space=True, use_regex=True), 380, ignore_merges=True)
    tokenizer.post_processor = processors.TemplateProcessing(single="$A", pair="$A $B", special_tokens=[])
    tokenizer.add_special_tokens(["<|end|>"])
    return tokenizer


def added_tokens():
    tokenizer = trained(byte_level(use_regex=True), 300, normalizers.NFC())
    tokenizer.add_special_tokens(["<|end|>"])
    tokenizer.add_tokens([
        AddedToken("mask", single_word=True, normalized=False),
        AddedToken("[L]", lstrip=True, normalized=False),
        AddedToken("[R]", rstrip=True, normalized=True),
        AddedToken("[B]", lstrip=True, rstrip=True, normalized=False),
        AddedToken("cafe\u0301!", normalized=True),
        AddedToken("two words", normalized=True),
        AddedToken("\u4f60\u597d", normalized=False),
    ])  # fmt: skip
    return tokenizer


def llama3_like():
    tokenizer = trained(byte_level(split("llama3")), 420, ignore_merges=True)
    tokenizer.add_special_tokens([BOS, "<|end|>"])
    return begun_with(tokenizer, BOS)


def deepseek_coder_like():
    steps = [
        pre_tokenizers.Split(Regex(r"[\r\n]"), "isolated"),
        pre_tokenizers.Split(Regex(r"\s?\p{L}+"), "isolated"),
        pre_tokenizers.Split(Regex(r"\s?\p{P}+"), "isolated"),
        pre_tokenizers.Split(Regex("[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"), "isolated"),
        pre_tokenizers.Digits(individual_digits=True),
    ]
    tokenizer = trained(byte_level(*steps), 420)
    tokenizer.add_special_tokens([BOS, "<|end|>"])
    tokenizer.add_tokens([AddedToken("\u00f5", normalized=False)])
    return begun_with(tokenizer, BOS)


def deepseek3_like():
    steps = [
        pre_tokenizers.Split(Regex(r"\p{N}{1,3}"), "isolated"),
        pre_tokenizers.Split(Regex("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"), "isolated"),
        split("deepseek3"),
    ]
    tokenizer = trained(byte_level(*steps), 420)
    tokenizer.add_special_tokens([BOS, "<|end|>"])
    return begun_with(tokenizer, BOS)


def pattern_like(name):
    def maker():
        tokenizer = trained(byte_level(split(name)), 400)
        tokenizer.add_special_tokens(["<|end|>"])
        return tokenizer
    return maker


def split_kinds():
    """Behaviours, inversion, literal patterns, classes of characters, and ByteLevel's own split after them."""
    steps = [
        pre_tokenizers.Split("the", "merged_with_next"),
        pre_tokenizers.Split(Regex(r"[aeiou]"), "merged_with_previous"),
        pre_tokenizers.Split(Regex(r"\w+|[^\w\s]+"), "removed", invert=True),
        pre_tokenizers.Split(Regex(r"x*"), "isolated"),
        pre_tokenizers.Split(Regex(r"(?<=\p{Lu})\p{Ll}|\b"), "contiguous"),
        pre_tokenizers.Punctuation("contiguous"),
        pre_tokenizers.Digits(individual_digits=False),
    ]
    tokenizer = trained(byte_level(*steps, prefix_space=True, use_regex=True), 350)
    tokenizer.add_special_tokens(["<|end|>"])
    return tokenizer


def smollm2_like():
    """Trained without the alphabet: bytes that the corpus lacks have no token and are dropped."""
    pre = byte_level(pre_tokenizers.Digits(individual_digits=True), use_regex=True)
    tokenizer = trained(pre, 330, alphabet=[])
    tokenizer.add_special_tokens(["<|end|>"])
    return tokenizer


def bytes_unknown():
    """The same bytes are the unknown token each, and nothing says how to join tokens to a text."""
    tokenizer = trained(byte_level(split("qwen2")), 260, normalizers.NFC(), alphabet=[], tokens=["<unk>"], unk_token="<unk>")
    tokenizer.add_special_tokens(["<|end|>"])
    tokenizer.decoder = None
    return tokenizer


def bytes_fallback():
    """Where all bytes of their spelling have tokens they become those, else one unknown token in a row."""
    tokens = ["<unk>", "<0xC4>", *[f"<0x{b:02X}>" for b in range(0x80, 0xA0)]]
    tokenizer = trained(byte_level(use_regex=True), 300, alphabet=[], tokens=tokens, unk_token="<unk>", fuse_unk=True,
                        byte_fallback=True)
    saved = Tokenizer(tokenizer.model)
    saved.pre_tokenizer, saved.decoder = tokenizer.pre_tokenizer, tokenizer.decoder
    saved.add_special_tokens(["<|end|>"])
    return saved


def spm_tokens(fallback=True):
    return ["<unk>", "<s>", "</s>", *([f"<0x{b:02X}>" for b in range(256)] if fallback else [])]


def spm_decoder(strip=True):
    steps = [decoders.Replace(SPIECE, " "), decoders.ByteFallback(), decoders.Fuse()]
    return decoders.Sequence(steps + [decoders.Strip(" ", 1, 0)] if strip else steps)


def of_characters(pre_tokenizer, normalizer, decoder, vocabulary=420, fallback=True, limit=60, fuse=True):
    """Trained word by word; the file has what is said here."""
    tokenizer = trained(pre_tokenizers.Metaspace(), vocabulary, decoder=decoder, tokens=spm_tokens(fallback),
                        alphabet=[], limit=limit, unk_token="<unk>", fuse_unk=fuse, byte_fallback=fallback)
    saved = Tokenizer(tokenizer.model)
    saved.add_special_tokens(["<unk>", "<s>", "</s>"])
    if normalizer is not None:
        saved.normalizer = normalizer
    if pre_tokenizer is not None:
        saved.pre_tokenizer = pre_tokenizer
    saved.decoder = decoder
    saved.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    return saved


def llama2_like():
    normalizer = normalizers.Sequence([normalizers.Prepend(SPIECE), normalizers.Replace(" ", SPIECE)])
    tokenizer = of_characters(None, normalizer, spm_decoder())
    tokenizer.add_special_tokens(["<|end|>"])
    tokenizer.add_tokens([AddedToken("<pad>", normalized=True), AddedToken("[R]", rstrip=True, normalized=False)])
    return tokenizer


def mistral_like():
    pre = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    tokenizer = of_characters(pre, None, spm_decoder())
    tokenizer.add_special_tokens(["[INST]", "[/INST]", "<|end|>"])
    return tokenizer


def gemma_like():
    pre = pre_tokenizers.Split(" ", "merged_with_previous")
    tokenizer = of_characters(pre, normalizers.Replace(" ", SPIECE), spm_decoder(strip=False))
    tokenizer.add_special_tokens(["<|end|>"])
    return tokenizer


def metaspace_unknown():
    """No bytes to fall back to: what has no token is the unknown one."""
    decoder = decoders.Metaspace()
    tokenizer = of_characters(pre_tokenizers.Metaspace(), normalizers.Replace(Regex(r"\s+"), " "), decoder,
                              vocabulary=200, fallback=False, limit=50)
    tokenizer.add_special_tokens(["<|end|>"])
    return tokenizer


def metaspace_never():
    pre = pre_tokenizers.Metaspace(prepend_scheme="never")
    return of_characters(pre, None, decoders.Metaspace(prepend_scheme="never"), vocabulary=120, fallback=False,
                         limit=40, fuse=False)


MAKERS = {
    "qwen2-like": qwen2_like, "gpt2-like": gpt2_like, "added-tokens": added_tokens, "llama3-like": llama3_like,
    "deepseek-coder-like": deepseek_coder_like, "deepseek3-like": deepseek3_like, "o200k-like": pattern_like("o200k"),
    "cl100k-like": pattern_like("cl100k"), "tekken-like": pattern_like("tekken"), "split-kinds": split_kinds,
    "llama2-like": llama2_like, "mistral-like": mistral_like, "gemma-like": gemma_like,
    "metaspace-unknown": metaspace_unknown, "metaspace-never": metaspace_never, "smollm2-like": smollm2_like,
    "bytes-unknown": bytes_unknown, "bytes-fallback": bytes_fallback,
}  # fmt: skip
