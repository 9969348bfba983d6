"""`soak`: a mixed load that checks what it reads, and the daemon's memory and open files meanwhile. Not a program."""

import mmap
import multiprocessing
import os
import random
import shutil
import statistics
import time

from mounts.machine import drop_caches, run, say, wait_for
from mounts.mount import Mount
from mounts.runner import JSON, OPTIONS, argument, command, on

FILES_A_WORKER = 400
EVERY = (
    "lightfoot-ram,lightfoot-ram:nowriteback+no_open,lightfoot-ram:writeback+locks,lightfoot-ram:own_permissions,lightfoot-host,"
    "lightfoot-host:cache=4M,lightfoot-host:watch,lightfoot-host:writeback,lightfoot-host:exclusive+passthrough,lightfoot-host:always"
)
LARGEST = 300_000
MIB = 1 << 20


class Worker:
    """Random operations below `base`, checked against what was done before."""

    def __init__(self, base, seed):
        self.base, self.dice, self.made = base, random.Random(seed), 0
        self.files, self.directories = {}, [base]
        base.mkdir()

    def content(self, length):
        """Bytes that are cheap to make and differ from one another's."""
        word = self.dice.randbytes(61)
        return (word * (length // 61 + 1))[:length]

    def new_path(self):
        self.made += 1
        return self.dice.choice(self.directories) / f"name-{self.made}-{'x' * self.dice.randrange(40)}"

    def create(self):
        path, data = self.new_path(), self.content(int(self.dice.paretovariate(0.6) * 100) % LARGEST)
        path.write_bytes(data)
        self.files[path] = bytearray(data)

    def pick(self):
        return self.dice.choice(list(self.files))

    def check(self, path):
        data = path.read_bytes()
        if data != self.files[path]:
            raise AssertionError(f"{path}: {len(data)} bytes read, {len(self.files[path])} expected, or others")

    def write(self):
        path = self.pick()
        data, at = self.content(self.dice.randrange(1, 20000)), self.dice.randrange(len(self.files[path]) + 1)
        with open(path, "r+b") as file:
            file.seek(at)
            file.write(data)
        self.files[path][at : at + len(data)] = data

    def append(self):
        path, data = self.pick(), self.content(self.dice.randrange(1, 3000))
        if len(self.files[path]) < LARGEST:
            with open(path, "ab") as file:
                file.write(data)
            self.files[path] += data

    def truncate(self):
        path = self.pick()
        size = self.dice.randrange(LARGEST // 4)
        os.truncate(path, size)
        known = self.files[path]
        self.files[path] = known[:size] + bytearray(size - min(size, len(known)))

    def rename(self):
        path, to = self.pick(), self.new_path() if self.dice.random() < 0.7 else self.pick()
        os.rename(path, to)
        self.files[to] = self.files.pop(path)

    def unlink(self):
        path = self.pick()
        if self.dice.random() < 0.3:
            with open(path, "rb") as file:
                path.unlink()
                if file.read() != self.files[path]:
                    raise AssertionError(f"{path}: other bytes after its unlink")
        else:
            path.unlink()
        del self.files[path]

    def link(self):
        path, other = self.pick(), self.new_path()
        os.link(path, other)
        if os.stat(other).st_nlink != 2:
            raise AssertionError(f"{other}: {os.stat(other).st_nlink} links, not 2")
        if self.dice.random() < 0.5:
            path, other = other, path
            self.files[path] = self.files.pop(other)
        other.unlink()

    def symlink(self):
        path, other = self.pick(), self.new_path()
        os.symlink(path, other)
        if other.read_bytes() != self.files[path]:
            raise AssertionError(f"{other}: other bytes through a link")
        other.unlink()

    def map(self):
        path = self.pick()
        if not self.files[path]:
            return
        with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as area:
            if area[:] != self.files[path]:
                raise AssertionError(f"{path}: other bytes in the map")
            at = self.dice.randrange(len(self.files[path]))
            area[at] = self.files[path][at] = self.dice.randrange(256)

    def stat(self):
        path = self.pick()
        if os.stat(path).st_size != len(self.files[path]):
            raise AssertionError(f"{path}: size {os.stat(path).st_size}, not {len(self.files[path])}")
        if os.path.lexists(self.base / f"absent-{self.dice.randrange(10**9)}"):
            raise AssertionError("an absent name is there")

    def list(self):
        directory = self.dice.choice(self.directories)
        seen = sorted(name for name in os.listdir(directory) if name.startswith("name-"))
        known = sorted(path.name for path in self.files if path.parent == directory)
        if seen != known:
            raise AssertionError(f"{directory}: lists {len(seen)} files, not {len(known)}")

    def directory(self):
        if len(self.directories) < 12:
            self.made += 1
            path = self.dice.choice(self.directories) / f"dir-{self.made}"
            path.mkdir()
            self.directories.append(path)
        else:
            victim = self.dice.choice(self.directories[1:])
            shutil.rmtree(victim)
            below = lambda path: path == victim or victim in path.parents  # noqa: E731
            self.files = {path: data for path, data in self.files.items() if not below(path)}
            self.directories = [path for path in self.directories if not below(path)]

    def step(self):
        if len(self.files) < 20 or (len(self.files) < FILES_A_WORKER and self.dice.random() < 0.25):
            return self.create()
        if len(self.files) >= FILES_A_WORKER:
            return self.unlink()
        weights = {self.write: 10, self.append: 8, self.truncate: 4, self.rename: 10, self.unlink: 12, self.link: 4,
                   self.symlink: 3, self.map: 4, self.stat: 25, self.list: 3, self.directory: 1}
        what = self.dice.choices(list(weights), list(weights.values()))[0]
        what()
        if self.dice.random() < 0.3 and self.files:
            self.check(self.pick())
        return None


def work(base, seed, until):
    worker = Worker(base, seed)
    while time.monotonic() < until:
        worker.step()
        yield 1
    for path in worker.files:
        worker.check(path)
    shutil.rmtree(base)


def churn(base, _seed, until):
    """Whole trees come and go."""
    number = 0
    while time.monotonic() < until:
        tree = base / f"tree-{number}"
        for directory in range(10):
            (tree / f"d{directory}").mkdir(parents=True)
            for file in range(20):
                (tree / f"d{directory}" / f"f{file}").touch()
        shutil.rmtree(tree)
        number += 1
        yield 400


def find(base, _seed, until):
    """Lists and stats everything; what vanishes meanwhile is passed over."""
    problems = []
    while time.monotonic() < until:
        for where, _, names in os.walk(base, onerror=problems.append):
            for name in names:
                try:
                    os.lstat(os.path.join(where, name))
                except FileNotFoundError:
                    pass
        if bad := [error for error in problems if not isinstance(error, FileNotFoundError)]:
            raise bad[0]
        time.sleep(0.2)
        yield 0


class Load:
    """The processes that keep one mount busy, and what was seen of its daemon."""

    def __init__(self, mount, options, until, queue):
        self.mount, self.operations, self.samples = mount, multiprocessing.Value("q", 0), []
        self.first = self.now() if mount.pid else None
        (mount.dir / "churn").mkdir()
        jobs = [(work, mount.dir / f"worker{number}", options.seed + number) for number in range(options.workers)]
        jobs += [(churn, mount.dir / "churn", 0), (find, mount.dir, 0)]
        self.processes = [multiprocessing.get_context("fork").Process(target=self.repeat, args=(*job, until, queue)) for job in jobs]
        for process in self.processes:
            process.start()

    def repeat(self, function, base, seed, until, queue):
        """In a process: the function's steps. It ends at the first problem, which it reports."""
        done = 0
        try:
            for count in function(base, seed, until):
                done += count
        except BaseException as error:  # noqa: B036  What a worker meets is reported by its parent.
            queue.put(f"{self.mount.name}: {function.__name__} in {base.name}, seed {seed}, after {done} operations: "
                      f"{type(error).__name__}: {error}")
        with self.operations.get_lock():
            self.operations.value += done

    def seen(self):
        """The daemon's resident memory, open files and threads."""
        return {"rss": self.mount.rss_bytes(), "open files": self.mount.open_files(), "threads": self.mount.threads()}

    def now(self):
        """The same, and the files that the kernel knows; 0 for daemons of others."""
        return {**self.seen(), "nodes": self.mount.gauge("nodes") if self.mount.kind.startswith("lightfoot") else 0}

    def sample(self):
        if self.mount.pid and self.mount.daemon.poll() is None:
            self.samples.append(self.seen())

    def problems(self, options):
        """Problems with the daemon; prints its line."""
        mount, samples, first = self.mount, self.samples, self.first
        say(f"{mount.name}: {self.operations.value:,} operations in {options.seconds} s, seed {options.seed}")
        if mount.daemon is not None and mount.daemon.poll() is not None:
            yield f"the daemon died with status {mount.daemon.returncode}: {mount.log_tail()}"
            return
        if not mount.pid or len(samples) < 8:
            return
        quarter, memory = len(samples) // 4, [sample["rss"] / MIB for sample in samples]
        early, late = statistics.median(memory[quarter : 2 * quarter]), statistics.median(memory[-quarter:])
        if late > early * 1.1 + options.slack_mib:
            yield f"memory grows: {early:.1f} MiB in the second quarter, {late:.1f} in the last"
        if max(memory) > options.limit_mib:
            yield f"memory peaks at {max(memory):.1f} MiB, above {options.limit_mib}"
        # A worker that failed has left its files.
        run(["rm", "-rf", *mount.dir.iterdir()], 60)
        drop_caches(2)
        bounds = {"open files": 16, "nodes": 16}
        if mount.kind.startswith("lightfoot"):
            # It has more threads while its calls wait for the disk. They leave when it did not need them for 10 seconds; it rouses
            # them with a request about a file, so there must be one. Two other threads start when they are first needed.
            (mount.dir / "file").touch()
            bounds["threads"] = 2
        for what, more in bounds.items():
            if not wait_for(lambda: self.now()[what] <= first[what] + more, 30, 0.2):  # noqa: B023
                yield f"{self.now()[what]} {what} at the end, {first[what]} at the start"
        end = self.now()
        others = "; ".join(f"{what} {first[what]}, {end[what]} at the end" for what in bounds)
        say(f"  memory {first['rss'] / MIB:.1f} MiB at the start, {early:.1f} in the second quarter, {late:.1f} in the last, "
            f"{max(memory):.1f} at most, {end['rss'] / MIB:.1f} at the end; {others}")


@command("soak", "1 minute, or as long as it is told", argument("seconds", 60, "for how long", nargs="?"),
         on("lightfoot-ram,lightfoot-host:cache=4M"), argument("--every", False, "on each kind of mount that Lightfoot has"),
         argument("--workers", 2, "processes that use each mount"), argument("--slack-mib", 16, "growth of memory that is good"),
         argument("--limit-mib", 512, "the most memory that is good"),
         argument("--seed", int(time.time()) // 86400, "begins the random choices"), OPTIONS, JSON)
def soak(options, verdict):
    """Keeps mounts busy with a mixed load that checks what it reads, and fails if a daemon's memory or open files grow.

    All mounts are used at once. The cache of a host directory grows to its budget, with absent names too; the small one of the
    default makes it full within a run. `soak 600 --every` is the check of 10 minutes, `soak 86400` the day-long run.

    Each worker keeps at most 400 files in directories of its own and knows what is in them: it creates, writes, appends,
    truncates, renames, links, unlinks, lists, maps, and makes and removes directories, and names are used up for good (each
    creation has a new name). What it reads must be what it wrote. A churner makes and removes whole trees; a finder lists
    everything. Every second the daemon's resident memory and open files are sampled. The bounds: the median of the last
    quarter's memory exceeds the second quarter's by no more than the slack and a tenth; the peak is below the limit; at the end,
    with all removed and the kernel's caches dropped, at most 16 files more are open, and at most 16 nodes more are known, than at
    the start, and Lightfoot has at most 2 threads more."""
    mounts = [Mount(kind, options.options) for kind in (EVERY if options.every else options.on).split(",")]
    queue, until = multiprocessing.get_context("fork").SimpleQueue(), time.monotonic() + options.seconds
    loads = [Load(mount, options, until, queue) for mount in mounts]
    processes = [process for load in loads for process in load.processes]
    # A worker that fails ends only itself.
    while time.monotonic() < until and any(process.is_alive() for process in processes):
        time.sleep(max(1.0, options.seconds / 3600))
        for load in loads:
            load.sample()
    for process in processes:
        process.join(60)
        if process.is_alive():
            verdict.fail("a process hangs")
            process.kill()
        elif process.exitcode:
            verdict.fail(f"a process ended with status {process.exitcode}")
    while not queue.empty():
        verdict.fail(queue.get())
    for load in loads:
        with verdict.catch(load.mount.name):
            before = verdict.failed
            for problem in load.problems(options):
                verdict.fail(f"{load.mount.name}: {problem}")
            if verdict.failed == before:
                verdict.ok(load.mount.name)
    return {"samples": {load.mount.name: load.samples for load in loads}}
