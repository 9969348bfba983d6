"""`memory`: what a mount of ram: keeps of its memory after everything was removed. Not a program."""

import concurrent.futures
import os
import shutil

from mounts.machine import drop_caches, wait_for
from mounts.mount import Mount
from mounts.runner import OPTIONS, argument, command

MIB = 1 << 20


def make_names(at, count, threads):
    """`count` empty files in directories of 1,000 files or fewer, by so many threads."""
    dirs = [at / f"d{number}" for number in range(max(threads, count // 1000))]

    def fill(directory):
        directory.mkdir()
        for number in range(count // len(dirs)):
            os.close(os.open(directory / f"file{number}", os.O_CREAT | os.O_WRONLY))

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        list(pool.map(fill, dirs))


def make_files(at, mib, count, threads=1):
    block = b"x" * MIB

    def fill(number):
        with open(at / f"large{number}", "wb", buffering=0) as file:
            for _ in range(mib // count):
                file.write(block)

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        list(pool.map(fill, range(count)))


def case(name, options, make, verdict):
    """Whether one mount gave back what `make` made it take."""
    with Mount("lightfoot-ram", options.options) as mount:
        tree = mount.dir / "tree"
        tree.mkdir()
        make_names(tree, 4000, 8)
        make_files(tree, 32, 8, 8)
        shutil.rmtree(tree)
        drop_caches(2)
        fresh = mount.rss_bytes()
        tree.mkdir()
        make(tree)
        most = mount.rss_bytes()
        shutil.rmtree(tree)
        drop_caches(2)
        is_good = wait_for(lambda: mount.rss_bytes() <= fresh * options.limit, 20, 0.05)
        left = mount.rss_bytes()
    text = (f"{name}: fresh {fresh / MIB:.1f} MiB, most {most / MIB:.1f}, left {left / MIB:.1f}: {left / fresh:.2f} times, "
            f"limit {options.limit}")
    (verdict.ok if is_good else verdict.fail)(text)


@command("memory", "15 seconds", argument("--names", 200_000, "files in the first case"),
         argument("--mib", 300, "MiB in the second case"), argument("--limit", 1.3, "the largest ratio that is good"), OPTIONS)
def memory(options, verdict):
    """Measures what a mount of ram: keeps of its memory after everything was removed: of many names, and of large files.

    The ratio is that of the memory to which it falls within 20 seconds to a fresh mount's. The fresh mount has served 8 clients,
    who made and removed 4,000 names and 8 files of 4 MiB: its threads, with their stacks and buffers of requests, are there in
    both."""
    case(f"{options.names} names", options, lambda at: make_names(at, options.names, 2), verdict)
    case(f"{options.mib} MiB in 6 files", options, lambda at: make_files(at, options.mib, 6), verdict)
