"""File systems that the scripts mount and take down. Not a program.

A `Mount` is a directory under test, with the daemon behind it if it has one. Everything lies in one temporary directory and is
unmounted at exit, however the script ends but by SIGKILL.
"""

import atexit
import contextlib
import itertools
import json
import os
import pathlib
import resource
import shlex
import shutil
import signal
import subprocess
import tempfile
import time

from mounts.machine import Skip, need_program, run, say, wait_for
from mounts.peers import TOOLS, lightfoot, null_fs, passthrough_hp, passthrough_hp_of

# What a daemon may have open: passthrough_hp holds a descriptor for each name that the kernel knows.
MAX_OPEN = 1 << 20

# File systems in a file, by the package that makes them.
IN_A_FILE = {"ext4": "e2fsprogs", "xfs": "xfsprogs", "btrfs": "btrfs-progs"}

_workdir = None
_mounts = []
_numbers = itertools.count()


def workdir():
    """The script's temporary directory, made once; with it goes the taking down of all mounts at exit."""
    global _workdir
    if _workdir is None:
        _workdir = pathlib.Path(tempfile.mkdtemp(prefix="lf-", dir=os.environ.get("FUSE_WORKDIR", "/tmp")))
        # Others than root run programs on the mounts.
        _workdir.chmod(0o755)
        atexit.register(_take_down)
    return _workdir


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
    if not any(at.startswith(str(_workdir)) for at in mounted_at()):
        shutil.rmtree(_workdir, ignore_errors=True)
    else:
        say(f"note: something is still mounted below {_workdir}")


def mounted_at():
    """The mount points of this machine."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as lines:
        return [line.split()[4] for line in lines]


def is_mounted(path):
    return str(path) in mounted_at()


def _as_by_hand():
    """In the process of a mount: many open files, and the signals that end it also where this script ignores them (nohup)."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit in (MAX_OPEN, hard):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
            break
    for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sent, signal.SIG_DFL)


def as_user(uid):
    """The words before a command that a user runs."""
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]


class Mount:
    """A directory under test: `dir`; `backing`, the directory that it mirrors (None for others); `pid` of the daemon, or None."""

    def __init__(self, kind, options="", name=None, command=None, mountpoint=None, owner=None, lower=None):
        """`kind` is one of those in runner.py, or `custom` with a `command`: words with {source} and {mountpoint}, run in the
        foreground. `options` go to lightfoot's -o. `mountpoint` is a directory in place of ours; `owner` is the user who owns it
        and the mirrored directory. `lower` is the lower directory of an overlay, which otherwise has an empty one."""
        self.name = name or kind
        place, _, kind = kind.rpartition("/")
        self.kind, _, own = kind.partition(":")
        # `fork`: not an option, but a fork of the tree behind the mount.
        own = own.split("+") if own else []
        self.is_fork = "fork" in own
        self.options = ",".join(filter(None, (options, *(word for word in own if word != "fork"))))
        # Short: the path of a socket below it must fit into 108 bytes.
        self.base = workdir() / str(next(_numbers))
        self.dir = self.mountpoint = pathlib.Path(mountpoint) if mountpoint else self.base / "m"
        self.command, self.owner, self.log, self.lower = command, owner, self.base / "log", lower
        self.backing, self.daemon, self.own_mount, self.on_disk = None, None, None, None
        self.base.mkdir()
        _mounts.append(self)
        self.dir.mkdir(exist_ok=mountpoint is not None)
        if self.kind in ("disk", "tmpfs", "overlay", *IN_A_FILE):
            self._show(self.dir, self.kind)
            return
        if self.kind.startswith("passthrough_hp") or self.kind in ("bindfs", "lightfoot-host") or "{source}" in str(command):
            self.backing = self.base / "source"
            self.backing.mkdir()
            self._show(self.backing, place or "tmpfs")
        for directory in (self.dir, self.backing):
            if owner is not None and directory is not None:
                os.chown(directory, owner, owner)
        self.source = self.backing
        if self.is_fork:
            # Writes to a fork do not reach it.
            self.backing = None
        self.up()

    def _show(self, at, kind):
        """Shows at `at`, whose path is short, a file system, or a directory beside what was built, whose path may be long."""
        if kind == "tmpfs":
            # As the machine's /tmp has it, for tests that other users run.
            run(["mount", "-t", "tmpfs", "-o", "size=70%,nr_inodes=4m,mode=0777", "lightfoot-test", at], 20)
        elif kind == "overlay":
            layers = {"lowerdir": self.lower or self.base / "lower", "upperdir": self.base / "upper", "workdir": self.base / "work"}
            for layer in layers.values():
                layer.mkdir(exist_ok=True)
            # Without an index, a change by one name of a file of the lower layer would not show by its others.
            options = ",".join(f"{name}={path}" for name, path in layers.items()) + ",index=on"
            self._try_mount(["-t", "overlay", "-o", options, "lightfoot-test", at])
        elif kind in IN_A_FILE:
            need_program(f"mkfs.{kind}", IN_A_FILE[kind])
            image = self.base / "image"
            with open(image, "wb") as file:
                file.truncate(4 << 30)
            run([f"mkfs.{kind}", "-q", image], 60)
            self._try_mount(["-t", kind, "-o", "loop", image, at])
            at.chmod(0o777)
        else:
            self.on_disk = TOOLS / "disk" / f"{os.getpid()}-{self.base.name}"
            self.on_disk.mkdir(parents=True)
            run(["mount", "--bind", self.on_disk, at], 20)
        self.own_mount = at

    def _try_mount(self, words):
        """Mounts a file system that the kernel may lack, or without the loop device that it needs."""
        done = run(["mount", *words], 20, check=False)
        if done.returncode != 0:
            self.down()
            raise Skip(f"no {self.name}: {done.stdout.strip()}")

    def words(self):
        """The command of the daemon, in the foreground."""
        mirror = [str(self.source), str(self.mountpoint)]
        if self.kind == "custom":
            return [word.replace("{source}", mirror[0]).replace("{mountpoint}", mirror[1]) for word in self.command]
        if self.kind == "null":
            return [str(null_fs()), "-f", "-o", "allow_other,default_permissions", str(self.dir)]
        if self.kind == "passthrough_hp":
            return [str(passthrough_hp()), "--foreground", *mirror]
        if self.kind == "passthrough_hp-new":
            return [str(passthrough_hp_of("trixie")), "--foreground", "-o", "allow_other", *mirror]
        if self.kind == "bindfs":
            return [need_program("bindfs"), "-f", *mirror]
        source = {"lightfoot-ram": "ram:", "lightfoot-host": mirror[0]}.get(self.kind)
        if source is None:
            raise RuntimeError(f"there is no kind {self.kind!r}")
        # As tmpfs and the others are mounted, with which it is compared.
        others = "" if "own_permissions" in self.options else "allow_other"
        options = (others, "suid,dev", self.options, os.environ.get("LIGHTFOOT_OPTIONS"))
        forks = ["--workspaces"] if self.is_fork else []
        return [str(lightfoot()), "mount", source, str(self.mountpoint), *forks, "-o", ",".join(filter(None, options))]

    def up(self, limit_s=20):
        """Starts the daemon and waits until it is mounted."""
        words = self.words()
        with open(self.log, "ab") as log:
            self.daemon = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, preexec_fn=_as_by_hand
            )
        wait_for(lambda: is_mounted(self.mountpoint) or self.daemon.poll() is not None, limit_s)
        if not is_mounted(self.mountpoint):
            said = self.log_tail()
            self.down(expect_exit=False)
            raise RuntimeError(f"no mount by: {shlex.join(words)}\n{said}")
        if self.is_fork:
            self.dir = self.mountpoint / "w" / "f"
            run([lightfoot(), "fork", self.mountpoint, "f"], 20)
        # Root may not look into another user's mount.
        run([*(as_user(self.owner) if self.owner is not None else []), "stat", self.dir], 20)

    @property
    def pid(self):
        return self.daemon.pid if self.daemon else None

    def log_tail(self):
        return self.log.read_text(errors="replace")[-2000:]

    def diagnosis(self):
        """What the daemon's threads do now, and the end of its log: to be printed when it does not do what it should."""
        lines = []
        for task in sorted(pathlib.Path(f"/proc/{self.pid}/task").glob("*")):
            with contextlib.suppress(OSError):
                name, stack, state = ((task / part).read_text(errors="replace").strip() for part in ("comm", "stack", "stat"))
                places = [line.split()[-1].split("+")[0] for line in stack.splitlines()]
                lines.append(f"{task.name} {name} {state.rsplit(')', 1)[1].split()[0]}: {' < '.join(places[:8])}")
        return "\n".join([f"threads of {self.name}:", *lines, "end of its log:", self.log_tail()])

    def unmount_daemon(self, expect_exit=True):
        """Unmounts the FUSE mount and waits for the daemon; its exit status, or None where there is none."""
        if self.daemon is None:
            return None
        status = None
        try:
            if is_mounted(self.mountpoint):
                for word in ([], ["-f"], ["-l"]):
                    if run(["umount", *word, self.mountpoint], 30, check=False).returncode == 0:
                        break
            status = self.daemon.wait(15)
        except subprocess.TimeoutExpired:
            if expect_exit:
                say(f"note: the unmount of {self.name} hangs, or its daemon is still there 15 s later; killed")
            self.daemon.kill()
            self.daemon.wait(10)
            run(["umount", "-l", self.mountpoint], 30, check=False)
        self.daemon = None
        return status

    def remount(self):
        self.unmount_daemon()
        self.up()

    def down(self, expect_exit=True):
        """Takes all of it down. The daemon's exit status."""
        status = self.unmount_daemon(expect_exit)
        if self.own_mount is not None:
            run(["umount", "-l", self.own_mount], 30, check=False)
        if self.on_disk is not None:
            shutil.rmtree(self.on_disk, ignore_errors=True)
        if self in _mounts:
            _mounts.remove(self)
        # Never through a mount that would not go: what it shows may be someone's directory.
        if not any(at.startswith(f"{self.base}/") for at in mounted_at()):
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
        """The processor time that the daemon has taken, all its threads, those that ended too; 0 if there is none."""
        # The clock of a process, as clock_getcpuclockid(3) makes its number.
        return time.clock_gettime((~self.pid << 3) | 2) if self.pid else 0.0

    def threads(self):
        return len(os.listdir(f"/proc/{self.pid}/task"))

    def open_files(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def stats(self):
        """What `lightfoot stats` reports."""
        return json.loads(run([lightfoot(), "stats", "--json", self.mountpoint], 20).stdout)

    def gauge(self, name):
        """One of its figures."""
        return dict(self.stats()["snapshot"]["gauges"])[name]


def plain(source, options="", name=None, before=(), **more):
    """A mount by `lightfoot mount` with these options and no others. `source`: `ram:...`, a path, or `{source}` for an empty
    directory. `before`: words before the command."""
    words = [*before, str(lightfoot()), "mount", str(source), "{mountpoint}", *(["-o", options] if options else [])]
    return Mount("custom", name=name, command=words, **more)
