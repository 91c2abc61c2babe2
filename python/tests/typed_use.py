"""What a user's code is, to a type checker: `mypy --strict` accepts it (tools/test_wheel). Never run."""
from typing import assert_type

import numpy as np
import numpy.typing as npt

import ucas

assert_type(ucas.verify("1/2", r"\boxed{0.5}"), ucas.Verdict)
verdicts = ucas.Verifier("lenient", threads=2).batch(["1", ["2", "3"]], ["a", b"b"])
assert_type(verdicts.score, npt.NDArray[np.float32])
assert_type([one.kind for one in verdicts], list[str])
assert_type(ucas.Verifier().batch(["1"], ["1"])[0].right, bool)

shaped = ucas.advantages("ucas", settings={"beta": 0.02}, reward=[1, 0], group=[0, 0], length=[2, 1])
assert_type(shaped.recorded["W"], npt.NDArray[np.float32])
assert_type(ucas.methods(), list[str])

assert_type(ucas.stats.share(7, 10).p, float)
assert_type(ucas.stats.holm([0.1, 0.2]), npt.NDArray[np.float64])
assert_type(ucas.Tokenizer("checkpoint").encode_batch(["a"]), list[npt.NDArray[np.int32]])
assert_type(ucas.Tokenizer("checkpoint").id_of("a"), int | None)
assert_type(ucas.__version__, str)
assert_type(ucas.read("run").stored_steps["signals"], list[int])

ucas.verify(None, "1")  # type: ignore[arg-type]
ucas.stats.share("7", 10)  # type: ignore[arg-type]
