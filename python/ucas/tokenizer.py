"""Text to token ids and back, as Hugging Face tokenizers do, from a tokenizer.json."""
import os

import numpy as np

from . import _ucas
from .arrays import array


class Tokenizer:
    """The tokenizer of a checkpoint directory (or the tokenizer.json in it): BPE over bytes or characters.

    Picklable; may be called from any thread. Ids are int32 [T].
    """

    def __init__(self, directory):
        path = os.fspath(directory)
        self.directory = os.path.dirname(path) or "." if path.endswith(".json") else path
        self._native = _ucas.Tokenizer.load(self.directory)

    def __reduce__(self):
        return Tokenizer, (self.directory,)

    def __repr__(self):
        return f"Tokenizer({self.directory!r})"

    def encode(self, text, special=True, prompt=False):
        """Ids of a text. special: "<|endoftext|>" in it means the token; else its characters. prompt: begins with the BOS of a
        tokenizer that has one."""
        return self._native.encode([text], special, prompt, 1)[0]

    def encode_batch(self, texts, special=True, prompt=False, threads=0):
        """The same for many texts, without the GIL: a list of arrays."""
        return self._native.encode(list(texts), special, prompt, threads)

    def decode(self, ids, skip_special=False):
        """Text of ids [T]; bytes that are not UTF-8 become U+FFFD."""
        return self.decode_bytes(ids, skip_special).decode("utf-8", "replace")

    def decode_bytes(self, ids, skip_special=False):
        """The bytes themselves: a response that is cut may end inside a character."""
        return self._native.decode(array(ids, np.int32, "ids", 1), skip_special)

    def token_bytes(self, id):
        """What this one token is within a text."""
        return self._native.token_text(id)

    def id_of(self, token):
        """The id of a token by its text in the file, or None."""
        return self._native.id_of(token)

    @property
    def vocab_size(self):
        """Highest id + 1, added tokens included."""
        return self._native.vocab_size

    @property
    def eos_ids(self):
        return self._native.eos_ids

    @property
    def pad_id(self):
        return self._native.pad_id
