"""This machine: its programs and caches, and what a figure says about where it was taken. Not a program."""

import functools
import os
import pathlib
import shlex
import shutil
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve()


class Skip(Exception):
    """Something that is needed is not on this machine and could not be put there."""


class Unsupported(Exception):
    """A file system does not have what a check is about."""


def say(text):
    print(text, flush=True)


def need_fuse():
    """Raises Skip unless this is root with /dev/fuse."""
    if os.geteuid() != 0:
        raise Skip("mounting in these tests needs root")
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as error:
        raise Skip(f"/dev/fuse cannot be opened: {error.strerror}") from None


def run(command, timeout_s=300, check=True, **more):
    """Runs `command` (a list, or a line for the shell) with its output captured as text. Raises with that output."""
    if not isinstance(command, str):
        command = [str(word) for word in command]
    more = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, **more}
    done = subprocess.run(command, shell=isinstance(command, str), text=True, errors="replace", timeout=timeout_s, **more)
    if check and done.returncode != 0:
        line = command if isinstance(command, str) else shlex.join(command)
        raise RuntimeError(f"status {done.returncode} of: {line}\n{(done.stdout or '')[-3000:]}")
    return done


def wait_for(condition, limit_s, every_s=0.01):
    """Whether `condition` came true within the limit."""
    end = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(every_s)
    return True


def drop_caches(what):
    """1: pages, 2: names and inodes, 3: both. Clean ones only; tmpfs keeps its own."""
    os.sync()
    pathlib.Path("/proc/sys/vm/drop_caches").write_text(str(what), encoding="ascii")


def apt_install(*packages):
    """Installs Debian packages. Raises Skip where that does not work."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise Skip(f"{' '.join(packages)} cannot be installed: no root or no apt-get")
    apt = ["apt-get", "-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=20", "-qq"]
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    install = apt + ["install", "-y", "--no-install-recommends", *packages]
    try:
        if run(install, 240, check=False, env=environment).returncode != 0:
            run(apt + ["update"], 180, check=False, env=environment)
            run(install, 240, env=environment)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        raise Skip(f"{' '.join(packages)} cannot be installed: {str(error).splitlines()[-1]}") from None


def need_program(name, package=None):
    """The path of program `name`, installed from Debian's `package` if need be."""
    if not shutil.which(name):
        apt_install(package or name)
    if not shutil.which(name):
        raise Skip(f"there is no {name}")
    return shutil.which(name)


def need_library(name, package):
    """Installs Debian's `package` unless pkg-config finds the library."""
    need_program("pkg-config")
    if run(f"pkg-config --exists {name}", check=False).returncode != 0:
        apt_install(package)


@functools.cache
def facts():
    """Where a figure comes from: processor, kernel, date, commit, load; at the first call."""
    cpu_info = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    changed = run(["git", "status", "--porcelain", "-uno"], check=False, cwd=ROOT).stdout.strip()
    commit = run(["git", "rev-parse", "--short=12", "HEAD"], check=False, cwd=ROOT).stdout.strip()
    return {
        "cpu": next((line.split(":", 1)[1].strip() for line in cpu_info if line.startswith("model name")), "unknown"),
        "cpus": os.cpu_count(), "kernel": os.uname().release, "date": time.strftime("%Y-%m-%d %H:%M %Z"),
        "commit": commit + ("+changes" if changed else ""), "load": os.getloadavg()[0],
        "libfuse": run("pkg-config --modversion fuse3", check=False, stderr=subprocess.DEVNULL).stdout.strip() or "none",
    }


def facts_line():
    """The facts as one line under a table."""
    return ("{cpu}, {cpus} CPUs, Linux {kernel}, {date}, commit {commit}, load {load:.1f} at the start, libfuse {libfuse}"
            .format_map(facts()))


def table(rows):
    """Rows of words as a Markdown table; the first is its head, whose columns after the first go to the right."""
    rows = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["| " + " | ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) + " |" for row in rows]
    rule = "|" + "|".join(["-" * (widths[0] + 2)] + ["-" * (width + 1) + ":" for width in widths[1:]]) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])
