"""What the scripts of mounts share: tools that they install or build, and file systems that they mount and take down.

Not a program. A `Mount` is a directory under test, with the daemon behind it if it has one; the kinds are in KINDS.
Everything lies in one temporary directory and is unmounted at exit, however the script ends but by SIGKILL. Needs
root.

What is built (libfuse's passthrough_hp, the load generator, crates) is kept in TARGET/fuse-tools. Debian's source
packages are fetched by apt-get with a list of sources of our own, so that the machine's own is left as it is.
"""

import atexit
import itertools
import json
import os
import pathlib
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve()
TOOLS = TARGET / "fuse-tools"
FUSE_KINDS = ("null", "passthrough_hp", "passthrough_hp-new", "bindfs", "lightfoot-ram", "lightfoot-host")
MIRRORS = ("passthrough_hp", "passthrough_hp-new", "bindfs", "lightfoot-host", "custom")
KINDS = ("tmpfs", "disk") + FUSE_KINDS
# What a daemon may have open: passthrough_hp holds a descriptor for each name that the kernel knows.
MAX_OPEN = 1 << 20

_workdir = None
_mounts = []
_numbers = itertools.count()


class Skip(Exception):
    """Something that the script needs is not on this machine and could not be put there."""


def say(text):
    print(text, flush=True)


def main(function):
    """Runs `function` with the exit status of the script: its value, 0 with a SKIPPED line if it raises Skip."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))
    try:
        sys.exit(function())
    except Skip as why:
        say(f"SKIPPED: {why}")
        sys.exit(0)
    except KeyboardInterrupt:
        sys.exit(130)


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
    more.setdefault("stdin", subprocess.DEVNULL)
    done = subprocess.run(
        command, shell=isinstance(command, str), text=True, errors="replace", timeout=timeout_s,
        stdout=more.pop("stdout", subprocess.PIPE), stderr=more.pop("stderr", subprocess.STDOUT), **more,
    )
    if check and done.returncode != 0:
        line = command if isinstance(command, str) else shlex.join(map(str, command))
        raise RuntimeError(f"status {done.returncode} of: {line}\n{(done.stdout or '')[-3000:]}")
    return done


def workdir():
    """The script's temporary directory, made once; with it goes the taking down of all mounts at exit."""
    global _workdir
    if _workdir is None:
        _workdir = pathlib.Path(tempfile.mkdtemp(prefix="lf-", dir=os.environ.get("FUSE_WORKDIR", "/tmp")))
        # Others than root run programs on the mounts.
        _workdir.chmod(0o755)
        atexit.register(_take_down)
    return _workdir


def python():
    """A Python that this user may run: ours may be in root's home directory."""
    return sys.executable if os.geteuid() == 0 else "/usr/bin/python3"


def scratch():
    """A directory below it in which every user may make files."""
    at = workdir() / "scratch"
    if not at.exists():
        at.mkdir()
        at.chmod(0o1777)
    return at


def _take_down():
    for mount in reversed(list(_mounts)):
        mount.down(expect_exit=False)
    # Not through a mount that would not go.
    if not any(str(_workdir) in line for line in _mountinfo()):
        shutil.rmtree(_workdir, ignore_errors=True)
    else:
        say(f"note: something is still mounted below {_workdir}")


def _mountinfo():
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as lines:
        return [line for line in lines]


def _open_many():
    """Raises the limit of open files as far as this process may."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit in (MAX_OPEN, hard):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
            return
        except (ValueError, OSError):
            pass


def _as_by_hand():
    """In the process of a mount: many open files, and the signals that end it also where this script ignores them (nohup)."""
    _open_many()
    for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sent, signal.SIG_DFL)


def is_mounted(path):
    return any(line.split()[4] == str(path) for line in _mountinfo())


def wait_for(condition, limit_s, every_s=0.01):
    """Whether `condition` came true within the limit."""
    end = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(every_s)
    return True


# ---- tools ----


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


def debian_source(package, suite="bookworm"):
    """The directory with the files of a Debian source package, fetched once."""
    out = TOOLS / "debian" / suite / package
    if any(out.glob("*.dsc")):
        return out
    if not shutil.which("apt-get"):
        raise Skip(f"the source of {package} needs apt-get")
    apt = TOOLS / "debian" / suite / "apt"
    (apt / "lists/partial").mkdir(parents=True, exist_ok=True)
    (apt / "list.sources").write_text(
        f"Types: deb-src\nURIs: http://deb.debian.org/debian\nSuites: {suite}\nComponents: main\n"
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
    )
    options = [
        "-o", f"Dir::Etc::sourcelist={apt}/list.sources", "-o", "Dir::Etc::sourceparts=/dev/null",
        "-o", f"Dir::State::lists={apt}/lists", "-o", f"Dir::Cache={apt}/cache", "-qq",
        "-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=20",
    ]
    partial = out.with_name(out.name + ".partial")
    partial.mkdir(parents=True, exist_ok=True)
    try:
        run(["apt-get", *options, "update"], 180)
        run(["apt-get", *options, "source", "--download-only", package], 400, cwd=partial)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        raise Skip(f"the source of {package} cannot be fetched: {str(error).splitlines()[-1]}") from None
    partial.rename(out)
    return out


def passthrough_hp():
    """libfuse's passthrough_hp of Debian's version, with one change: the option allow_other beside
    default_permissions, without which it refuses every user but root."""
    binary = TOOLS / "passthrough_hp"
    if binary.exists():
        return binary
    need_program("g++")
    need_program("pkg-config")
    need_program("dpkg-source", "dpkg-dev")
    if run("pkg-config --exists fuse3", check=False).returncode != 0:
        apt_install("libfuse3-dev")
    source = TOOLS / "fuse3-source"
    if not source.exists():
        description = next(debian_source("fuse3").glob("*.dsc"))
        run(["dpkg-source", "--no-check", "-x", str(description), str(source)], 60)
    example = source / "example"
    text = (example / "passthrough_hp.cc").read_text()
    patched = text.replace('"default_permissions,fsname=hpps"', '"default_permissions,allow_other,fsname=hpps"')
    if patched == text:
        raise RuntimeError("passthrough_hp.cc is not as expected: its mount options were not found")
    (example / "passthrough_hp_others.cc").write_text(patched)
    # Each switch is an operation that the example leaves out without it.
    have = "-DHAVE_UTIMENSAT -DHAVE_POSIX_FALLOCATE -DHAVE_SETXATTR"
    run(f"g++ -O2 {have} -std=gnu++17 passthrough_hp_others.cc $(pkg-config --cflags --libs fuse3) -o '{binary}'",
        200, cwd=example)
    return binary


def passthrough_hp_new():
    """passthrough_hp of a newer libfuse (Debian 13's), linked statically: it has the kernel's passthrough of reads and
    writes, which is its default."""
    binary = TOOLS / "passthrough_hp-new"
    if binary.exists():
        return binary
    for program, package in (("g++", "g++"), ("meson", "meson"), ("ninja", "ninja-build"), ("dpkg-source", "dpkg-dev")):
        need_program(program, package)
    source = TOOLS / "fuse3-new-source"
    if not source.exists():
        description = next(debian_source("fuse3", "trixie").glob("*.dsc"))
        run(["dpkg-source", "--no-check", "-x", str(description), str(source)], 60)
    switches = "--default-library=static --buildtype=release -Dexamples=true -Dutils=false -Dtests=false -Duseroot=false"
    run(f"meson setup build {switches} && ninja -C build example/passthrough_hp", 300, cwd=source)
    shutil.copy(source / "build/example/passthrough_hp", binary)
    return binary


def passthrough_hp_uring():
    """passthrough_hp of the newest libfuse (Debian's unstable), linked statically: it has io_uring, with `-o io_uring`."""
    binary = TOOLS / "passthrough_hp-uring"
    if binary.exists():
        return binary
    for program, package in (("g++", "g++"), ("meson", "meson"), ("ninja", "ninja-build"), ("dpkg-source", "dpkg-dev")):
        need_program(program, package)
    for library, package in (("liburing", "liburing-dev"), ("numa", "libnuma-dev")):
        if run(f"pkg-config --exists {library}", check=False).returncode != 0:
            apt_install(package)
    source = TOOLS / "fuse3-sid-source"
    if not source.exists():
        description = next(debian_source("fuse3", "sid").glob("*.dsc"))
        run(["dpkg-source", "--no-check", "-x", str(description), str(source)], 60)
    switches = "--default-library=static --buildtype=release -Dexamples=true -Dutils=false -Dtests=false -Duseroot=false"
    # A build that was cut off leaves a directory that meson does not accept.
    shutil.rmtree(source / "build", ignore_errors=True)
    run(f"meson setup build {switches} && ninja -C build example/passthrough_hp", 300, cwd=source)
    if "io_uring" not in run([str(source / "build/example/passthrough_hp"), "--help"], 10, check=False).stdout:
        raise Skip("this libfuse was built without io_uring")
    shutil.copy(source / "build/example/passthrough_hp", binary)
    return binary


def compiled(source, *flags):
    """The program of a C source beside this file, compiled anew when the source is younger."""
    source = ROOT / "tools/fuse" / source
    binary = TOOLS / f"fuse-{source.stem}"
    if not binary.exists() or binary.stat().st_mtime < source.stat().st_mtime:
        need_program("gcc")
        TOOLS.mkdir(parents=True, exist_ok=True)
        run(f"gcc -O2 -Wall -Wextra -Werror '{source}' {' '.join(flags)} -o '{binary}'", 60)
    return binary


def null_fs():
    """The file system that does nothing (null.c): what a request costs before anyone has done any work."""
    if run("pkg-config --exists fuse3", check=False).returncode != 0:
        apt_install("libfuse3-dev", "pkg-config")
    return compiled("null.c", "$(pkg-config --cflags --libs fuse3)")


def null_ring(is_cached):
    """The prototype of the ring (shared/prototypes/fuse-uring beside the repository): a small file system in memory that checks
    nothing. The kernel caches its names and attributes for a day, or not at all."""
    source = ROOT.parent / "shared/prototypes/fuse-uring"
    binary = TOOLS / ("fuse-uring-cached" if is_cached else "fuse-uring")
    if not binary.exists():
        if not source.exists():
            raise Skip(f"{source} is not there")
        copy = TOOLS / "fuse-uring-source"
        shutil.copytree(source, copy, dirs_exist_ok=True)
        text = (copy / "src/ops.rs").read_text()
        uncached = text.replace("const VALID: u64 = 86_400;", "const VALID: u64 = 0;")
        if uncached == text:
            raise RuntimeError("the prototype is not as expected: its time of validity was not found")
        (copy / "src/ops.rs").write_text(text if is_cached else uncached)
        built = TOOLS / "fuse-uring-build"
        environment = dict(os.environ, CARGO_TARGET_DIR=str(built), CARGO_NET_RETRY="2")
        try:
            run(["cargo", "build", "--release", "--no-default-features", "--quiet"], 900, env=environment, cwd=copy)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            raise Skip(f"the prototype cannot be built: {str(error).splitlines()[-1]}") from None
        shutil.copy(built / "release/fuse-uring-prototype", binary)
    return binary


def cargo_tool(crate, version):
    """The program of a crate from crates.io, built with its own lock file."""
    binary = TOOLS / "crates" / "bin" / crate
    if not binary.exists():
        environment = dict(os.environ, CARGO_TARGET_DIR=str(TOOLS / "crates-build"), CARGO_NET_RETRY="2")
        command = ["cargo", "install", crate, "--version", version, "--locked", "--quiet", "--root", TOOLS / "crates"]
        try:
            run([str(part) for part in command], 900, env=environment)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            raise Skip(f"the crate {crate} cannot be built: {str(error).splitlines()[-1]}") from None
    return binary


def lightfoot():
    """The binary: $LIGHTFOOT, or what `cargo build --release` makes of this tree."""
    if "LIGHTFOOT" in os.environ:
        return pathlib.Path(os.environ["LIGHTFOOT"]).resolve()
    command = ["cargo", "build", "--release", "--locked", "--quiet", "-p", "lightfoot-cli"]
    run(command, 1800, cwd=ROOT, stdout=None, stderr=None)
    return TARGET / "release" / "lightfoot"


# ---- mounts ----


class Mount:
    """A directory under test: `dir`; `backing`, what a host directory's mount shows (None for others); `pid` of the
    daemon, or None."""

    def __init__(self, kind, name=None, backing="tmpfs", options="", command=None, source=None, mountpoint=None, owner=None):
        """`backing` is where a mirrored directory lies: tmpfs or disk. `options` go to lightfoot's -o. `command` is for
        the kind `custom`: words with {source} and {mountpoint}, run in the foreground. `source` mirrors that directory
        in place of ours. `mountpoint` is a directory in place of ours; `owner` is the user who owns both. A kind may have options behind a colon: lightfoot-host:exclusive+threads=2
        for -o exclusive,threads=2."""
        self.name = name or kind
        kind, _, own = kind.partition(":")
        self.kind, self.options = kind, ",".join(part for part in (options, own.replace("+", ",")) if part)
        # Short: the path of a socket below it must fit into 108 bytes.
        self.base = workdir() / str(next(_numbers))
        self.dir = pathlib.Path(mountpoint) if mountpoint else self.base / "m"
        self.owner = owner
        self.backing, self.daemon, self.command, self.own_mount, self.on_disk = None, None, command, None, None
        self.base.mkdir()
        _mounts.append(self)
        self.dir.mkdir(exist_ok=mountpoint is not None)
        if kind == "disk":
            self._disk(self.dir)
            return
        if kind == "tmpfs":
            self._tmpfs(self.dir)
            return
        if source is not None:
            self.backing = pathlib.Path(source)
        elif kind in MIRRORS:
            self.backing = self.base / "source"
            self.backing.mkdir()
            (self._disk if backing == "disk" else self._tmpfs)(self.backing)
        for directory in (self.dir, self.backing):
            if owner is not None and directory is not None:
                os.chown(directory, owner, owner)
        self.up()

    def _tmpfs(self, at):
        # As the machine's /tmp has it, for tests that other users run.
        run(["mount", "-t", "tmpfs", "-o", "size=70%,nr_inodes=4m,mode=0777", "lightfoot-test", str(at)], 20)
        self.own_mount = at

    def _disk(self, at):
        """Shows at `at`, whose path is short, a directory beside what was built, whose path may be long."""
        self.on_disk = TOOLS / "disk" / f"{os.getpid()}-{self.base.name}"
        self.on_disk.mkdir(parents=True)
        run(["mount", "--bind", str(self.on_disk), str(at)], 20)
        self.own_mount = at

    def words(self):
        """The command of the daemon, in the foreground."""
        at = [str(self.backing), str(self.dir)]
        if self.kind == "null":
            return [str(null_fs()), "-f", "-o", "allow_other,default_permissions", at[1]]
        if self.kind == "passthrough_hp":
            return [str(passthrough_hp()), "--foreground", *at]
        if self.kind == "passthrough_hp-new":
            return [str(passthrough_hp_new()), "--foreground", "-o", "allow_other", *at]
        if self.kind == "bindfs":
            return [need_program("bindfs"), "-f", *at]
        if self.kind == "custom":
            return [word.format(source=at[0], mountpoint=at[1]) for word in shlex.split(self.command)]
        if self.kind == "lightfoot-ram":
            at[0] = "ram:"
        extra = os.environ.get("LIGHTFOOT_OPTIONS", "")
        # As tmpfs and the others are mounted, with which it is compared.
        others = "" if "own_permissions" in self.options else "allow_other"
        options = ",".join(part for part in (others, "suid,dev", self.options, extra) if part)
        return [str(lightfoot()), "mount", *at, "-o", options]

    def up(self, limit_s=20, answers=False):
        """Starts the daemon and waits until it is mounted; with `answers`, over a stale mount, until that answers."""
        words = self.words()
        self.log = self.base / "log"
        with open(self.log, "ab") as log:
            self.daemon = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, preexec_fn=_as_by_hand
            )
        # Twice: the directory below answers, too, after the daemon has taken a stale mount away and before it mounts.
        is_up = lambda: is_mounted(self.dir) and (not answers or os.path.isdir(self.dir) and is_mounted(self.dir))  # noqa: E731
        there = wait_for(lambda: is_up() or self.daemon.poll() is not None, limit_s)
        if not there or not is_up():
            said = self.log_tail()
            self.down(expect_exit=False)
            raise RuntimeError(f"no mount by: {shlex.join(words)}\n{said}")
        # Root may not look into another user's mount.
        as_owner = ["setpriv", f"--reuid={self.owner}", f"--regid={self.owner}", "--clear-groups"] if self.owner is not None else []
        run([*as_owner, "stat", str(self.dir)], 20)

    @property
    def pid(self):
        return self.daemon.pid if self.daemon else None

    def log_tail(self):
        return self.log.read_text(errors="replace")[-2000:]

    def diagnosis(self):
        """What the daemon's threads do now, and the end of its log: to be printed when it does not do what it should."""
        lines = []
        for task in sorted(pathlib.Path(f"/proc/{self.pid}/task").glob("*")):
            try:
                name, stack = ((task / part).read_text(errors="replace").strip() for part in ("comm", "stack"))
                state = (task / "stat").read_text(errors="replace").rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            places = [line.split()[-1].split("+")[0] for line in stack.splitlines()]
            lines.append(f"{task.name} {name} {state}: {' < '.join(places[:8])}")
        return "\n".join([f"threads of {self.name}:", *lines, "end of its log:", self.log_tail()])

    def wait_exit(self, limit_s=15):
        """The daemon's exit status, or None if it is still there after the limit."""
        try:
            return self.daemon.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None

    def unmount_daemon(self, expect_exit=True):
        """Unmounts the FUSE mount and waits for the daemon; its exit status, or None where there is none."""
        if self.daemon is None:
            return None
        status = None
        try:
            if is_mounted(self.dir):
                for command in (["umount"], ["umount", "-f"], ["umount", "-l"]):
                    if run([*command, str(self.dir)], 30, check=False).returncode == 0:
                        break
            status = self.wait_exit()
        except subprocess.TimeoutExpired:
            say(f"note: umount of {self.name} hangs")
        if status is None:
            if expect_exit:
                say(f"note: the daemon of {self.name} was still there 15 s after the unmount; killed")
            self.daemon.kill()
            self.daemon.wait(10)
            run(["umount", "-l", str(self.dir)], 30, check=False)
        self.daemon = None
        return status

    def remount(self):
        self.unmount_daemon()
        self.up()

    def down(self, expect_exit=True):
        """Takes all of it down. The daemon's exit status."""
        status = self.unmount_daemon(expect_exit)
        if self.own_mount is not None:
            run(["umount", "-l", str(self.own_mount)], 30, check=False)
        if self.on_disk is not None:
            shutil.rmtree(self.on_disk, ignore_errors=True)
        if self in _mounts:
            _mounts.remove(self)
        # Never through a mount that would not go: what it shows may be someone's directory.
        if not any(line.split()[4].startswith(f"{self.base}/") for line in _mountinfo()):
            shutil.rmtree(self.base, ignore_errors=True)
        return status

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.down()

    def rss_bytes(self):
        """The daemon's resident memory."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))

    def cpu_s(self):
        """The processor time that the daemon has taken, all its threads, those that ended too."""
        with open(f"/proc/{self.pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stats(self):
        """What `lightfoot stats` reports."""
        return json.loads(run([str(lightfoot()), "stats", "--json", str(self.dir)], 20).stdout)

    def gauge(self, name):
        """One of its figures."""
        return dict(self.stats()["snapshot"]["gauges"])[name]

    def open_files(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))


def drop_caches(what):
    """1: pages, 2: names and inodes, 3: both. Clean ones only; tmpfs keeps its own."""
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
        file.write(str(what))


def machine():
    """Where a figure comes from: processor, kernel, date, commit, load at the start."""
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
    changed = bool(run(["git", "status", "--porcelain", "-uno"], check=False, cwd=ROOT).stdout.strip())
    return {
        "cpu": model, "cpus": os.cpu_count(), "kernel": os.uname().release, "date": time.strftime("%Y-%m-%d %H:%M %Z"),
        "commit": run(["git", "rev-parse", "--short=12", "HEAD"], check=False, cwd=ROOT).stdout.strip()
        + ("+changes" if changed else ""),
        "load": os.getloadavg()[0],
        "libfuse": run("pkg-config --modversion fuse3", check=False).stdout.strip(),
    }


def machine_line(of):
    """The machine as one line under a table."""
    return (f"{of['cpu']}, {of['cpus']} CPUs, Linux {of['kernel']}, {of['date']}, commit {of['commit']}, "
            f"load {of['load']:.1f} at the start, libfuse {of['libfuse']}")


def table(rows):
    """Rows of words as a Markdown table; the first is its head, whose columns after the first go to the right."""
    rows = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    line = lambda row: "| " + " | ".join(  # noqa: E731
        cell.ljust(width) if at == 0 else cell.rjust(width) for at, (cell, width) in enumerate(zip(row, widths))
    ) + " |"
    rule = "|" + "|".join("-" * (w + 2) if at == 0 else "-" * (w + 1) + ":" for at, w in enumerate(widths)) + "|"
    return "\n".join([line(rows[0]), rule, *map(line, rows[1:])])
