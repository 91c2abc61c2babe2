"""The task and the base of all end-to-end tests, made once for a run of ctest: make_base.py BUILD FOLDER."""
import os
import shutil
import sys

from support import clean, make_small_task, path

make_small_task()
shutil.rmtree(sys.argv[2], ignore_errors=True)
os.makedirs(sys.argv[2])
for name in ("task", "base"):
    shutil.move(path(name), os.path.join(sys.argv[2], name))
clean()
