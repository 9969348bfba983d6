"""`ltp`: the tests of calls on files of the Linux Test Project. Not a program."""

import os
import pathlib
import re
import shutil

from mounts.machine import Skip, run, say
from mounts.mount import Mount, workdir
from mounts.runner import OPTIONS, argument, command, on

CALLS = """access chdir chmod chown chroot close copy_file_range creat dup dup2 dup3 execve execveat faccessat faccessat2 fallocate fchdir
fchmod fchmodat fchmodat2 fchown fchownat fcntl fdatasync flistxattr flock fgetxattr fpathconf fremovexattr fsetxattr fstat fstatat
fstatfs fsync ftruncate futimesat getcwd getdents getxattr inotify lchown lgetxattr link linkat listxattr llistxattr llseek lremovexattr
lseek lstat mkdir mkdirat mknod mknodat mmap msync munmap name_to_handle_at open open_by_handle_at openat openat2 pathconf pread preadv
preadv2 pwrite pwritev pwritev2 read readahead readdir readlink readlinkat readv removexattr rename renameat renameat2 rmdir sendfile
setxattr splice stat statfs statvfs statx symlink symlinkat sync sync_file_range syncfs truncate umask unlink unlinkat ustat utime
utimensat utimes vmsplice write writev""".split()

# Tests with a file system on a device.
ELSEWHERE = re.compile(r"needs_device|all_filesystems|mount_device|format_device|needs_rofs|needs_hugetlb|needs_cgroup")

# Tests that cannot pass in a mount, with the reason.
WITHOUT = {
    "name_to_handle_at": "a FUSE mount without the option of NFS has no file handles",
    "open_by_handle_at": "a FUSE mount without the option of NFS has no file handles",
    "creat05": "the test has as many files open as a process may have, and the server has each open, too",
    "fcntl12": "the test has as many files open as a process may have, and the server has each open, too",
}
WITHOUT_IN_FORKS = {"setxattr03": "a fork has no flags of inodes (chattr)"}


def build(tree):
    """{program: its path}, with what is missing built."""
    if not (tree / "include/mk/config.mk").exists():
        run(["make", "autotools"], 300, cwd=tree)
        run(["./configure", "--without-modules"], 300, cwd=tree)
    run(["make", "-C", "lib", "-j2"], 900, cwd=tree)
    run(["make", "-C", "libs", "-j2"], 300, cwd=tree, check=False)
    found = {}
    for directory in (tree / "testcases/kernel/syscalls" / call for call in CALLS):
        if directory.is_dir():
            run(["make", "-k", "-j2", "-C", directory], 300, check=False)
            found |= {path.name: path for path in directory.rglob("*") if path.is_file() and os.access(path, os.X_OK)}
    return found


def chosen(tree, programs):
    """(name, command) of each test of `programs` that needs no device."""
    lines = [line.split() for line in (tree / "runtest/syscalls").read_text().splitlines() if not line.startswith("#")]
    for words in lines:
        source = programs[words[1]].with_suffix(".c") if len(words) > 1 and words[1] in programs else None
        if source and source.exists() and not ELSEWHERE.search(source.read_text(errors="replace")):
            yield words[0], " ".join(words[1:])


def one(root, at, name, line):
    """The lines of the failures of one test, or an empty list."""
    place = at / name
    place.mkdir()
    place.chmod(0o777)
    path = f"{root / 'testcases/bin'}:{os.environ['PATH']}"
    env = dict(os.environ, TMPDIR=str(place), PATH=path, LTPROOT=str(root), KCONFIG_SKIP_CHECK="1", LTP_COLORIZE_OUTPUT="0")
    done = run(["timeout", "-k", "3", "60", "sh", "-c", line], 90, check=False, cwd=place, env=env)
    shutil.rmtree(place, ignore_errors=True)
    failures = [text[:200] for text in done.stdout.splitlines() if re.search(r"\b(TFAIL|TBROK)\b", text)]
    # Bits of the status: 1 failed, 2 broken; 4 a warning, 32 not for this machine.
    return failures or ([f"exit status {done.returncode}"] if done.returncode & ~(4 | 32) else [])


def results(root, at, tests):
    """{test: its failures}, one after the other: some tests use up a limit of the machine."""
    return {name: one(root, pathlib.Path(at), name, line) for name, line in tests}


def reason(kind, name):
    """The reason of a test that cannot pass in a mount, or None."""
    known = next((why for start, why in WITHOUT.items() if name.startswith(start)), None)
    return known or (WITHOUT_IN_FORKS.get(name) if "fork" in kind else None)


@command("ltp", "6 minutes, and 5 for the first build", on("lightfoot-host,lightfoot-host:fork"),
         argument("--tree", "", "a clone of the Linux Test Project"), OPTIONS)
def ltp(options, verdict):
    """Runs the tests of calls on files of the Linux Test Project, with tmpfs beside: a test that passes there must pass in the mount.

    --tree is a clone of https://github.com/linux-test-project/ltp. What is missing there is built, with autoconf, automake, make
    and gcc. Tests with a file system on a device are left out."""
    tree = pathlib.Path(options.tree or "/none").resolve()
    if not (tree / "runtest/syscalls").exists():
        raise Skip("no clone of the Linux Test Project (--tree DIR)")
    programs = build(tree)
    root = workdir() / "ltp"
    (root / "testcases/bin").mkdir(parents=True)
    for name, path in programs.items():
        (root / "testcases/bin" / name).symlink_to(path)
    tests = list(chosen(tree, programs))
    with Mount("tmpfs") as mount:
        expected = results(root, mount.dir, tests)
    say(f"tmpfs: {sum(not failures for failures in expected.values())} of {len(tests)} tests pass")
    for kind in options.on.split(","):
        with Mount(kind, options.options) as mount:
            found = results(root, mount.dir, tests)
        wrong = {name: failures for name, failures in found.items() if failures and not expected[name]}
        known = {name for name in wrong if reason(kind, name)}
        for name in sorted(wrong.keys() - known):
            verdict.fail(f"{kind}: {name}: " + "\n    ".join(wrong[name][:5]))
        verdict.ok(f"{kind}: {sum(not failures for failures in found.values())} of {len(tests)} tests pass", len(tests) - len(wrong))
        for name in sorted(known):
            verdict.skip(f"{kind}: {name}: {reason(kind, name)}")
