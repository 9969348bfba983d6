"""`watch`: changes of a directory behind a mount with `watch`, beside readers that keep everything cached. Not a program."""

import ctypes
import mmap
import multiprocessing
import os
import pathlib
import queue
import random
import shutil
import signal
import stat
import statistics
import time

from mounts.machine import say, table, wait_for
from mounts.mount import Mount
from mounts.runner import OPTIONS, argument, command

_libc = ctypes.CDLL(None, use_errno=True)
RENAME_EXCHANGE = 2


def exchange(one, other):
    if _libc.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), RENAME_EXCHANGE) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


def xattrs(path):
    return {name: os.getxattr(path, name, follow_symlinks=False) for name in os.listxattr(path, follow_symlinks=False)}


def attributes(seen):
    """What must be equal on both sides. A directory's size is its file system's own affair."""
    size = None if stat.S_ISDIR(seen.st_mode) else seen.st_size
    return seen.st_mode, seen.st_uid, seen.st_gid, seen.st_nlink, size, seen.st_mtime_ns, seen.st_ctime_ns


def look(path):
    """Everything that a program can see of `path`; None if it is not there."""
    try:
        seen = os.lstat(path)
        if stat.S_ISLNK(seen.st_mode):
            what = os.readlink(path)
        elif stat.S_ISDIR(seen.st_mode):
            what = sorted(os.listdir(path))
        else:
            what = pathlib.Path(path).read_bytes()
        return attributes(seen), what, xattrs(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        # The path has become another one since `lstat`.
        return (0,), os.strerror(error.errno), None


def tree(root):
    """`look` at everything at and below `root`, by relative path."""
    found, todo = {}, [""]
    while todo:
        path = todo.pop()
        found[path] = look(os.path.join(root, path) if path else root)
        if found[path] and stat.S_ISDIR(found[path][0][0]):
            todo += [os.path.join(path, name) for name in found[path][1]]
    return found


def difference(wanted, got):
    for path in sorted(set(wanted) | set(got)):
        if wanted.get(path) != got.get(path):
            return f"{path or '.'}: the host has {str(wanted.get(path))[:300]}, the mount {str(got.get(path))[:300]}"
    return None


class Changer:
    """Random changes of the host below `host`, which the mount shows at `shown`."""

    def __init__(self, host, shown, seed, limit_s):
        self.host, self.shown, self.limit_s = pathlib.Path(host), pathlib.Path(shown), limit_s
        self.dice, self.made, self.times = random.Random(seed), 0, {}
        self.kept, self.coming = None, []
        self.host.mkdir()
        for number in range(6):
            (self.host / f"dir{number}").mkdir()
            (self.host / f"dir{number}" / "file").write_text(f"{number}\n" * 100)

    def new(self):
        self.made += 1
        return self.dice.choice(self.all(pathlib.Path.is_dir) + [self.host]) / f"name{self.made}"

    def all(self, of_kind):
        return sorted(path for path in self.host.rglob("*") if not path.is_symlink() and of_kind(path))

    def file(self):
        files = self.all(pathlib.Path.is_file)
        return self.dice.choice(files) if files else self.create()

    def directory(self):
        directories = self.all(pathlib.Path.is_dir)
        if not directories:
            directories = [self.host / f"again{self.made}"]
            directories[0].mkdir()
        return self.dice.choice(directories)

    def on_mount(self, path):
        return self.shown / path.relative_to(self.host)

    # The changes. Each returns nothing that matters; what they did is read from the host.

    def create(self):
        path = self.new()
        path.write_bytes(self.dice.randbytes(self.dice.randrange(20000)))
        return path

    def write_same_size(self):
        path = self.file()
        if size := path.stat().st_size:
            with open(path, "r+b") as file:
                file.seek(self.dice.randrange(size))
                file.write(self.dice.randbytes(1))

    def append(self):
        with open(self.file(), "ab") as file:
            file.write(self.dice.randbytes(100))

    def truncate(self):
        os.truncate(self.file(), self.dice.randrange(10000))

    def chmod(self):
        self.dice.choice([self.file, self.directory])().chmod(self.dice.randrange(0o1000) | 0o500)

    def chown(self):
        os.chown(self.dice.choice([self.file, self.directory])(), self.dice.randrange(3), self.dice.randrange(3))

    def utimes(self):
        os.utime(self.dice.choice([self.file, self.directory])(), ns=(10**18, self.dice.randrange(2**60)))

    def xattr(self):
        path = self.file()
        if names := os.listxattr(path):
            os.removexattr(path, names[0])
        else:
            os.setxattr(path, "user.name", self.dice.randbytes(10))

    def unlink(self):
        self.file().unlink()

    def rename_file(self):
        os.rename(self.file(), self.new())

    def replace(self):
        new, path = self.host / "new", self.file()
        new.write_bytes(self.dice.randbytes(self.dice.randrange(1000)))
        os.rename(new, path)

    def symlink(self):
        path = self.host / "link"
        new = self.host / "newlink"
        os.symlink("x" * self.dice.randrange(1, 100), new)
        os.rename(new, path)

    def hard_link(self):
        path, other = self.file(), self.new()
        os.link(path, other)
        with open(other, "r+b") as file:
            file.write(self.dice.randbytes(3))

    def mkdir(self):
        self.new().mkdir()

    def rmdir(self):
        path = self.directory()
        if len(self.all(pathlib.Path.is_dir)) > 5:
            shutil.rmtree(path)

    def move_directory(self):
        path = self.directory()
        to = self.dice.choice([other for other in self.all(pathlib.Path.is_dir) + [self.host] if path not in (other, *other.parents)])
        self.made += 1
        os.rename(path, to / f"name{self.made}")

    def exchange(self):
        directory = self.directory()
        others = [path for path in self.all(pathlib.Path.is_file) if directory not in path.parents]
        exchange(directory, self.dice.choice(others) if others else self.create_beside())

    def create_beside(self):
        self.made += 1
        path = self.host / f"name{self.made}"
        path.touch()
        return path

    def write_on_both_sides(self):
        path = self.file()
        with open(self.on_mount(path), "r+b") as mounted, open(path, "r+b") as own:
            for _ in range(self.dice.randrange(1, 4)):
                mounted.write(self.dice.randbytes(5))
                mounted.flush()
                own.seek(3)
                own.write(self.dice.randbytes(5))
                own.flush()

    def make_on_both_sides(self):
        path = self.new()
        self.on_mount(path).write_bytes(b"from the mount")
        new = self.host / "new"
        new.write_bytes(b"from the host")
        os.rename(new, path)

    KINDS = [create, write_same_size, append, truncate, chmod, chown, utimes, xattr, unlink, rename_file, replace, symlink,
             hard_link, mkdir, rmdir, move_directory, exchange, write_on_both_sides, make_on_both_sides]

    def keep_open(self):
        """A file of the mount, open and mapped, whose contents follow the host's until the file is replaced."""
        path = self.file()
        if path.stat().st_size == 0:
            return None
        mounted, own = open(self.on_mount(path), "rb"), open(path, "rb")
        area = mmap.mmap(mounted.fileno(), 0, prot=mmap.PROT_READ)
        area[:1]
        return path, mounted, own, area

    def differs(self):
        """Where the mount still differs from the host."""
        found = difference(tree(self.host), tree(self.shown))
        if found or not self.kept:
            return found
        path, mounted, own, area = self.kept
        size = os.fstat(own.fileno()).st_size
        if (wanted := os.pread(own.fileno(), size, 0)) != os.pread(mounted.fileno(), size + 1, 0):
            return f"{path}: other bytes by a descriptor from before"
        end = min(size, len(area))
        # Beyond the end of the file there is nothing to read.
        if size >= len(area) and wanted[:end] != area[:end]:
            return f"{path}: other bytes by a mapping from before"
        one, other = os.fstat(own.fileno()), os.fstat(mounted.fileno())
        if own_name_is_there(path, own) and attributes(one) != attributes(other):
            return f"{path}: {attributes(other)} by a descriptor from before, the host has {attributes(one)}"
        return None

    def next_kind(self):
        """Each kind once, in a random order, before one comes again: a slow machine makes all of them, too."""
        if not self.coming:
            self.coming = self.dice.sample(self.KINDS, len(self.KINDS))
        return self.coming.pop()

    def has_made_all(self):
        return len(self.times) == len(self.KINDS)

    def step(self):
        kind = self.next_kind()
        if not self.kept and self.dice.random() < 0.3:
            self.kept = self.keep_open()
        kind(self)
        if len(self.all(pathlib.Path.is_file)) > 60:
            for path in self.all(pathlib.Path.is_file)[::2]:
                path.unlink()
        self.wait(kind.__name__)
        if self.kept and self.dice.random() < 0.3:
            self.close()

    def close(self):
        if self.kept:
            _, mounted, own, area = self.kept
            area.close(), mounted.close(), own.close()
            self.kept = None

    def wait(self, kind):
        start = time.monotonic()
        while where := self.differs():
            if time.monotonic() - start > self.limit_s:
                raise RuntimeError(f"after {kind}, {self.limit_s} s later: {where}")
            time.sleep(0.001)
        self.times.setdefault(kind, []).append(time.monotonic() - start)


def own_name_is_there(path, file):
    """Whether the file still has the name at which it was opened: only then the host reports changes of its attributes."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(file.fileno()))
    except OSError:
        return False


def work(changer, until, results):
    steps = 0
    try:
        while time.monotonic() < until or not changer.has_made_all():
            changer.step()
            steps += 1
    except BaseException as error:  # noqa: B036  What a worker meets is reported by its parent.
        results.put(("problem", f"{changer.host.name}, step {steps}: {type(error).__name__}: {error}"))
    results.put(("times", changer.times))


def read(shown, until, results):
    """Keeps everything cached."""
    try:
        while time.monotonic() < until:
            try:
                tree(shown)
            except OSError as error:
                # A path that changes meanwhile.
                if error.errno not in (2, 20, 61, 116):
                    raise
    except BaseException as error:  # noqa: B036
        results.put(("problem", f"a reader: {type(error).__name__}: {error}"))


def overflow(mount, limit_s):
    """More changes than inotify queues while the daemon is stopped."""
    host, shown = pathlib.Path(mount.backing) / "many", mount.dir / "many"
    host.mkdir()
    (host / "old").write_text("old")
    with open("/proc/sys/fs/inotify/max_queued_events", encoding="ascii") as file:
        most = int(file.read())
    wait_for(lambda: (shown / "old").exists(), limit_s)
    for name in ("new", "f0"):
        assert not (shown / name).exists() and (shown / "old").read_text() == "old"
    os.kill(mount.pid, signal.SIGSTOP)
    try:
        for number in range(most // 2 + 1000):
            (host / f"f{number}").touch()
        (host / "old").write_text("OLD")
        (host / "new").write_text("new")
        (host / "old").chmod(0o600)
    finally:
        os.kill(mount.pid, signal.SIGCONT)
    start = time.monotonic()
    names = ("old", "new", "f0", f"f{most // 2}")
    seen = lambda: all(look(host / name) == look(shown / name) for name in names)  # noqa: E731
    if not wait_for(seen, limit_s):
        raise RuntimeError(f"after an overflow: {[(name, look(host / name), look(shown / name)) for name in names]}")
    return time.monotonic() - start


@command("watch", "30 seconds", argument("seconds", 30, "for how long", nargs="?"), argument("--workers", 2, "processes that change"),
         argument("--seed", int(time.time()) // 86400, "begins the random choices"),
         argument("--limit-s", 120.0, "after which a change counts as never visible"), OPTIONS)
def watch(options, verdict):
    """Changes a directory behind a mount with `watch`, and fails if a change does not become visible through the mount.

    Each worker changes its own directory on the host. A step looks at it through the mount, so that the kernel and Lightfoot
    cache it, makes one change of a random kind on the host, and looks through the mount until what it sees is the host's:
    attributes, contents (also by a descriptor and a mapping from before), listings, bodies of links, extended attributes. Some
    steps write through the mount at the same time. A reader lists, stats and reads everything meanwhile. Then the daemon is
    stopped while the host changes more than inotify queues, and everything must become visible again. Prints the times until a
    change was visible, by kind."""
    mount = Mount("lightfoot-host:watch", options.options)
    context, until, times = multiprocessing.get_context("fork"), time.monotonic() + options.seconds, {}
    results, failed = context.Queue(), verdict.failed
    jobs = [
        context.Process(target=work, args=(Changer(mount.backing / f"worker{number}", mount.dir / f"worker{number}",
                                                   options.seed + number, options.limit_s), until, results))
        for number in range(options.workers)
    ]
    jobs.append(context.Process(target=read, args=(mount.dir, until, results)))
    for job in jobs:
        job.start()
    while True:
        try:
            what, value = results.get(timeout=1)
        except queue.Empty:
            if not any(job.is_alive() for job in jobs):
                break
            if time.monotonic() > until + 2 * options.limit_s:
                verdict.fail("a process hangs")
                break
            continue
        if what == "problem":
            verdict.fail(value)
            continue
        for kind, own in value.items():
            times.setdefault(kind, []).extend(own)
    for job in jobs:
        if job.exitcode:
            verdict.fail(f"a process ended with status {job.exitcode}")
        job.kill()
    with verdict.catch("after an overflow of events"):
        verdict.ok(f"visible again {overflow(mount, options.limit_s):.2f} s after an overflow of events")
    if verdict.failed > failed:
        say(mount.diagnosis())
    rows = [[kind, len(own), f"{statistics.median(own) * 1000:.0f}", f"{max(own) * 1000:.0f}"] for kind, own in sorted(times.items())]
    say(table([["change", "number", "median ms", "longest ms"], *rows]))
    verdict.ok(f"{sum(map(len, times.values()))} changes, seed {options.seed}", len(times))
