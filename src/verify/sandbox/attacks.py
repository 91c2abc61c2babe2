# What a program that a model wrote might try, for verify/sandbox/sandbox.cpp. Each attack gives True if it got through. None of
# them does harm: the files, sockets and processes are the test's own. FOLDER, SECRET, PORT, PARENT are set before.
import os
import sys


def libc():
    import ctypes
    return ctypes.CDLL(None, use_errno=True)


def reads_a_secret_file():
    return SECRET in open(FOLDER + "/secret").read()


def writes_a_file_elsewhere():
    with open(FOLDER + "/open/written", "w") as file:
        file.write("x")
    return True


def removes_a_file_elsewhere():
    os.unlink(FOLDER + "/open/victim")
    return True


def changes_a_mode():
    os.chmod(FOLDER + "/open/kept", 0o600)
    return True


def changes_a_mode_of_a_name():
    return libc().fchmodat(-100, (FOLDER + "/open/kept").encode(), 0o600, 0) == 0


def changes_a_time():
    os.utime(FOLDER + "/open/kept", (1, 1))
    return True


def empties_a_file():
    os.truncate(FOLDER + "/open/kept", 0)
    return True


def empties_a_file_by_reading():
    os.close(os.open(FOLDER + "/open/kept", os.O_RDONLY | os.O_TRUNC))
    return True


def empties_a_file_unopened():
    os.close(os.open(FOLDER + "/open/kept", 3 | os.O_TRUNC))
    return True


def on_a_pipe(command, argument):
    import fcntl
    ends = os.pipe()
    try:
        fcntl.fcntl(ends[0], command, argument)
        return True
    finally:
        for end in ends:
            os.close(end)


def owns_a_signal_to_its_parent():
    return on_a_pipe(8, PARENT)  # F_SETOWN


def chooses_a_signal():
    return on_a_pipe(10, 9)  # F_SETSIG, SIGKILL


def lists_the_processes():
    return str(PARENT) in os.listdir("/proc")


def reads_an_environment():
    return len(open("/proc/%d/environ" % PARENT, "rb").read()) >= 0


def connects_by_tcp():
    import socket
    s = socket.create_connection(("127.0.0.1", PORT), 1)
    return s.send(b"x") == 1


def sends_by_udp():
    import socket
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    return s.sendto(b"x", ("127.0.0.1", PORT)) == 1


def connects_to_a_unix_socket():
    import socket
    s = socket.socket(socket.AF_UNIX)
    s.connect(FOLDER + "/open/socket")
    return True


def listens_on_tcp():
    import socket
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    s.listen()
    return True


def forks():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return True


def starts_a_program():
    return os.spawnv(os.P_WAIT, "/bin/true", ["true"]) == 0


def signals_its_parent():
    os.kill(PARENT, 0)
    return True


def changes_a_priority():
    os.setpriority(os.PRIO_PROCESS, PARENT, os.getpriority(os.PRIO_PROCESS, PARENT))
    return True


def changes_limits_of_another():
    import resource
    resource.prlimit(PARENT, resource.RLIMIT_NOFILE)
    return True


def pins_another():
    os.sched_setaffinity(PARENT, os.sched_getaffinity(PARENT))
    return True


def traces():
    return libc().ptrace(0, 0, 0, 0) == 0


def reads_the_memory_of_another():
    import ctypes
    buffer = ctypes.create_string_buffer(8)

    class Part(ctypes.Structure):
        _fields_ = [("at", ctypes.c_void_p), ("size", ctypes.c_size_t)]

    here, there = Part(ctypes.addressof(buffer), 8), Part(ADDRESS, 8)
    return libc().process_vm_readv(PARENT, ctypes.byref(here), 1, ctypes.byref(there), 1, 0) > 0


def makes_a_user_namespace():
    return libc().unshare(0x10000000) == 0


def keeps_code_in_memory():
    return os.memfd_create("x") >= 0


def uses_inherited_descriptors():
    for fd in range(5, 64):
        try:
            os.fstat(fd)
        except OSError:
            continue
        return True
    return False


def changes_the_root():
    os.chroot("/")
    return True


def shares_memory():
    segment = libc().shmget(0, 4096, 0o1600)
    if segment >= 0:
        libc().shmctl(segment, 0, None)
    return segment >= 0


def uses_the_keyring():
    return libc().syscall(250, 0, -3, 0, 0, 0) > 0


def makes_a_ring():
    import ctypes
    return libc().syscall(425, 1, ctypes.create_string_buffer(256)) >= 0


# What cripples the process that does it comes last.
LAST = ["changes_the_root", "makes_a_user_namespace", "traces"]


def attack_all():
    own = [n for n, f in globals().items() if hasattr(f, "__code__") and f.__code__.co_filename == "solution"]
    names = [n for n in own if n not in ("libc", "on_a_pipe", "attack_all") and n not in LAST] + LAST
    results = {}
    for name in names:
        try:
            results[name] = bool(globals()[name]())
        except BaseException:
            results[name] = False
    return results
