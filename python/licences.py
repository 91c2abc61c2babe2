"""Copies the licences of shared libraries and what they need, and of headers, into a folder: licences.py FOLDER FILE...

auditwheel bundles the libraries; Debian keeps each one's terms in /usr/share/doc/PACKAGE/copyright, which names the common
licences (LGPL and others) that stand in one place.
"""
import os
import re
import shutil
import subprocess
import sys

ALLOWED_TO_STAY = re.compile(r"^(lib(c|m|dl|pthread|rt|gcc_s|stdc\+\+)\.so|ld-linux|linux-vdso)")  # auditwheel leaves these out


def needed_by(libraries):
    found = set()
    for library in libraries:
        path = os.path.realpath(library)
        found.add(path)
        if ".so" not in os.path.basename(path):  # a header that was compiled in
            continue
        for line in subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout.splitlines():
            if " => /" in line and not ALLOWED_TO_STAY.match(line.strip()):
                found.add(os.path.realpath(line.split(" => ")[1].split()[0]))
    return sorted(found)


def package_of(path):
    for candidate in (path, path.replace("/usr/lib/", "/lib/", 1), path.replace("/lib/", "/usr/lib/", 1)):
        done = subprocess.run(["dpkg-query", "-S", candidate], capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout.split(":")[0]
    sys.exit(f"licences.py: no Debian package owns {path}, so its licence is not known; the wheel must ship it")


def main():
    folder, libraries = sys.argv[1], [library for library in sys.argv[2:] if library]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    common = set()
    for path in needed_by(libraries):
        package = package_of(path)
        terms = f"/usr/share/doc/{package}/copyright"
        if not os.path.exists(terms):
            sys.exit(f"licences.py: {terms} is missing: install {package} with its documentation")
        shutil.copy(terms, f"{folder}/{package}.txt")
        with open(terms, encoding="utf-8", errors="replace") as file:
            common |= set(re.findall(r"/usr/share/common-licenses/([\w.-]*[\w])", file.read()))
    for name in sorted(common):
        shutil.copy(f"/usr/share/common-licenses/{name}", f"{folder}/{name}")


main()
