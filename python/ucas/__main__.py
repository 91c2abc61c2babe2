"""`python -m ucas ...` is `ucas ...`."""
from ._program import main

main()
