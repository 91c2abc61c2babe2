"""Copies the licences of shared libraries and what they need, of archives and of headers into a folder: licences.py FOLDER FILE... NAME=FILE...

auditwheel bundles the libraries; Debian keeps each one's terms in /usr/share/doc/PACKAGE/copyright, which names the common
licences (LGPL and others) that stand in one place. NAME=FILE is for what no package owns: a licence, or a header that opens with one.
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
        if ".so" not in os.path.basename(path):  # a header or an archive, which was compiled in
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


def own_terms(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if not path.endswith(".h"):
        return text
    opening = re.match(r"/\*.*?\*/\n", text, re.DOTALL)
    if opening is None or "icense" not in opening[0]:
        sys.exit(f"licences.py: {path} does not open with its licence; the wheel must ship it")
    return opening[0]


def main():
    folder, given = sys.argv[1], [word for word in sys.argv[2:] if word]
    libraries = [word for word in given if "=" not in word]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for name, path in (word.split("=", 1) for word in given if "=" in word):
        with open(f"{folder}/{name}.txt", "w", encoding="utf-8") as file:
            file.write(own_terms(path))
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
