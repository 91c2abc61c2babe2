"""Text to token ids and back, as Hugging Face tokenizers do, from a tokenizer.json."""
import os
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from . import _ucas
from .arrays import array


class Tokenizer:
    """The tokenizer of a checkpoint directory (or the tokenizer.json in it): BPE over bytes or characters.

    Picklable; may be called from any thread. Ids are int32 [T].
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        path = os.fspath(directory)
        self.directory = os.path.dirname(path) or "." if path.endswith(".json") else path
        self._native = _ucas.Tokenizer.load(self.directory)

    def __reduce__(self) -> tuple[type["Tokenizer"], tuple[str]]:
        return Tokenizer, (self.directory,)

    def __repr__(self) -> str:
        return f"Tokenizer({self.directory!r})"

    def encode(self, text: str | bytes, special: bool = True, prompt: bool = False) -> npt.NDArray[np.int32]:
        """Ids of a text. special: "<|endoftext|>" in it means the token; else its characters. prompt: begins with the BOS of a
        tokenizer that has one."""
        return self._native.encode([text], special, prompt, 1)[0]

    def encode_batch(self, texts: Iterable[str | bytes], special: bool = True, prompt: bool = False,
                     threads: int = 0) -> list[npt.NDArray[np.int32]]:
        """The same for many texts, without the GIL: a list of arrays."""
        return self._native.encode(list(texts), special, prompt, threads)

    def decode(self, ids: npt.ArrayLike, skip_special: bool = False) -> str:
        """Text of ids [T]; bytes that are not UTF-8 become U+FFFD."""
        return self.decode_bytes(ids, skip_special).decode("utf-8", "replace")

    def decode_bytes(self, ids: npt.ArrayLike, skip_special: bool = False) -> bytes:
        """The bytes themselves: a response that is cut may end inside a character."""
        return self._native.decode(array(ids, np.int32, "ids", 1), skip_special)

    def token_bytes(self, id: int) -> bytes:
        """What this one token is within a text."""
        return self._native.token_text(id)

    def id_of(self, token: str | bytes) -> int | None:
        """The id of a token by its text in the file, or None."""
        return self._native.id_of(token)

    @property
    def vocab_size(self) -> int:
        """Highest id + 1, added tokens included."""
        return self._native.vocab_size

    @property
    def eos_ids(self) -> list[int]:
        """Ids that end a response, as the files of the checkpoint name them."""
        return self._native.eos_ids

    @property
    def pad_id(self) -> int | None:
        """The id of padding, or None."""
        return self._native.pad_id
