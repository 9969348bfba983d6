"""`fsx`: random operations on one file, by the crate fsx. Not a program."""

import concurrent.futures
import ctypes
import os
import pathlib

from mounts.machine import run
from mounts.mount import Mount, workdir
from mounts.peers import cargo_tool
from mounts.runner import OPTIONS, argument, command, on

VERSION = "0.3.2"
KEEP_SIZE_AND_PUNCH = 3
MIXES = {
    "all": (262144, 65536, {
        "close_open": 3, "invalidate": 2, "mapread": 10, "mapwrite": 10, "read": 10, "write": 10, "truncate": 10, "fsync": 1,
        "fdatasync": 1, "posix_fallocate": 2, "punch_hole": 3, "sendfile": 3, "posix_fadvise": 1, "copy_file_range": 4}),
    "mapped": (262144, 65536, {
        "close_open": 1, "invalidate": 3, "mapread": 20, "mapwrite": 20, "read": 5, "write": 5, "truncate": 15, "fsync": 1}),
    "large": (8 << 20, 1 << 20, {
        "close_open": 1, "mapread": 5, "mapwrite": 5, "read": 10, "write": 10, "truncate": 2, "copy_file_range": 2}),
}


def allocates(directory, mode):
    """Whether the file system has a mode of fallocate(2); fsx takes the answer EOPNOTSUPP for a failure."""
    path = pathlib.Path(directory) / "probe"
    libc, size = ctypes.CDLL(None, use_errno=True), ctypes.c_long
    with open(path, "wb") as file:
        file.write(bytes(8192))
        file.flush()
        done = libc.fallocate(file.fileno(), mode, size(0), size(4096))
    path.unlink()
    return done == 0


def configuration(mix, without):
    length, largest, weights = MIXES[mix]
    lines = [f"flen = {length}", "[opsize]", f"max = {largest}", "min = 0", "align = 1", "[weights]"]
    names = set(weights) | {"mapread", "mapwrite", "read", "write", "truncate"}
    lines += [f"{name} = {0 if name in without else weights.get(name, 0)}" for name in sorted(names)]
    return "\n".join(lines) + "\n"


def one(mount_dir, backing, mix, seed, ops, config):
    """None, or what went wrong."""
    name = f"fsx-{mix}-{seed}"
    file, artifacts = pathlib.Path(mount_dir) / name, workdir() / f"artifacts-{name}"
    artifacts.mkdir(exist_ok=True)
    words = [cargo_tool("fsx", VERSION), "-f", config, "-N", ops, "-S", seed, "-P", artifacts, file]
    done = run(words, 300, check=False, env=dict(os.environ, RUST_BACKTRACE="0"))
    problem = None
    if done.returncode != 0:
        problem = "\n".join(done.stdout.splitlines()[-30:])
    elif backing is not None:
        os.sync()
        if file.read_bytes() != (pathlib.Path(backing) / name).read_bytes():
            problem = "the file in the mirrored directory differs from what its mount shows"
    file.unlink(missing_ok=True)
    return problem


def exercise(name, directory, backing, options, verdict):
    """All mixes and seeds in one directory, two at a time."""
    modes = {"posix_fallocate": 0, "punch_hole": KEEP_SIZE_AND_PUNCH}
    without, jobs, failed = {what for what, mode in modes.items() if not allocates(directory, mode)}, [], verdict.failed
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for mix in MIXES:
            config = workdir() / f"fsx-{mix}.toml"
            config.write_text(configuration(mix, without))
            ops = options.ops if mix != "large" else options.ops // 8
            for seed in range(options.first, options.first + options.seeds):
                jobs.append((mix, seed, pool.submit(one, directory, backing, mix, seed, ops, config)))
        for mix, seed, job in jobs:
            if problem := job.result():
                verdict.fail(f"{name}: mix {mix}, --first {seed} --seeds 1: {problem}")
    note = f" (without {', '.join(sorted(without))}, which it does not have)" if without else ""
    if verdict.failed == failed:
        verdict.ok(f"{name}: {len(jobs)} runs of fsx, {options.ops} operations each{note}", len(jobs))


@command("fsx", "1 minute, and 1 minute for the first build", on("lightfoot-ram,lightfoot-host"),
         argument("--seeds", 4, "runs of each mix"), argument("--first", 1, "the first seed"), argument("--ops", 10000, "operations"),
         OPTIONS)
def fsx(options, verdict):
    """Writes, truncates, punches, copies and maps one file at random and checks each read (fsx, the crate).

    The mixes: `all` (every kind of operation that the file system has), `mapped` (little else than mmap and truncation) and
    `large` (a file of 8 MiB with operations up to 1 MiB). A mirrored directory's file is compared with its mount's at the end.
    A failure prints the seed that repeats it: --first SEED --seeds 1."""
    cargo_tool("fsx", VERSION)  # Once, not by two threads.
    for kind in options.on.split(","):
        with Mount(kind, options.options) as mount:
            exercise(kind, mount.dir, mount.backing, options, verdict)
