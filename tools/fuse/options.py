"""What each option of docs/mounting.md does, as a check on a mount: EFFECTS. Not a program; tools/fuse/matrix runs them.

An effect is seen from outside: what a call returns, what the kernel's table of mounts shows, what `lightfoot stats`
counts. Each check also shows that the effect is absent without the option, so that it cannot pass by chance.
"""

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import pathlib
import shlex
import signal
import stat
import struct
import subprocess
import tempfile

import mounts as fuse
import objects
from actors import ALICE, User, act
from checks import equal, raises
from mounts import Mount

EFFECTS = {}


def effect(*names):
    """Registers the check of some options."""

    def register(function):
        EFFECTS.update({name: function for name in names})
        return function

    return register


@contextlib.contextmanager
def mounted(source, options=""):
    """A mount of root's. `source`: `ram:...`, or `host` for an empty directory, which is `backing`."""
    words = [str(fuse.lightfoot()), "mount", "{source}" if source == "host" else source, "{mountpoint}"]
    with Mount("custom", command=shlex.join(words + (["-o", options] if options else []))) as mount:
        yield mount


def ram(options=""):
    return mounted("ram:", options)


def host(options=""):
    return mounted("host", options)


def flags(mount):
    """The flags of the mount and of its file system, as the kernel lists them."""
    with open("/proc/self/mountinfo", encoding="utf-8") as lines:
        words = next(line.split() for line in lines if line.split()[4] == str(mount.dir))
    return set(words[5].split(",")) | set(words[-1].split(","))


def count(mount, operation):
    """How often the kernel has sent requests of a kind."""
    return sum(of["count"] for of in mount.stats()["snapshot"]["ops"] if of["name"] == operation)


def ends_with(number, call, *arguments):
    """Whether the call fails with this errno."""
    try:
        call(*arguments)
    except OSError as error:
        return error.errno == number
    return False


def soon(condition):
    """Waits for what must come true within the time of a cache."""
    assert fuse.wait_for(condition, 10), "it has not come true within 10 s"


# ---- what may be done ----


@effect("ro", "rw")
def ro():
    with host("ro") as mount:
        (mount.backing / "f").write_text("x")
        equal("x", (mount.dir / "f").read_text())
        raises(errno.EROFS, lambda: (mount.dir / "g").write_text("x"))
    with host("ro,rw") as mount:
        (mount.dir / "g").write_text("x")
        equal("x", (mount.backing / "g").read_text())


@effect("allow_other")
def allow_other():
    with ram() as mount:
        equal("EACCES", act(ALICE, os.listdir, mount.dir))
    with ram("allow_other") as mount:
        equal([], act(ALICE, os.listdir, mount.dir))


@effect("own_permissions", "default_permissions")
def own_permissions():
    words = (("", False), ("own_permissions", False), ("default_permissions", True), ("own_permissions,default_permissions", True),
             ("allow_other", True), ("no_open", True), ("writeback,locks", False))
    for option, by_kernel in words:
        with ram(option) as mount:
            equal(by_kernel, "default_permissions" in flags(mount))
            # Root may all but execute what nobody may execute, whichever side checks.
            (mount.dir / "f").write_text("x")
            (mount.dir / "f").chmod(0)
            equal((True, True, False), tuple(os.access(mount.dir / "f", right) for right in (os.R_OK, os.W_OK, os.X_OK)))
            (mount.dir / "f").chmod(0o010)
            equal(True, os.access(mount.dir / "f", os.X_OK))
            raises(errno.ENOENT, lambda: os.stat(mount.dir / "none"))


@effect("uid", "gid", "umask")
def owner():
    with host("uid=1001,gid=2002,umask=027") as mount:
        (mount.backing / "f").write_text("x")
        of = os.stat(mount.dir / "f")
        equal((1001, 2002, 0o750), (of.st_uid, of.st_gid, stat.S_IMODE(of.st_mode)))
        equal(0, os.stat(mount.backing / "f").st_uid)
    with mounted("ram:uid=1001,gid=2002,mode=0700") as mount:
        of = os.stat(mount.dir)
        equal((1001, 2002, 0o700), (of.st_uid, of.st_gid, stat.S_IMODE(of.st_mode)))


@contextlib.contextmanager
def mapped(at, first):
    """`at` once more, in a place where the user and group N of the file system are seen as N + `first`."""
    libc = ctypes.CDLL(None, use_errno=True)

    def call(number, *arguments):
        result = libc.syscall(number, *arguments)
        if result < 0:
            raise OSError(ctypes.get_errno(), f"system call {number}")
        return result

    with contextlib.ExitStack() as undo:
        place = fuse.workdir() / "mapped"
        place.mkdir()
        undo.callback(place.rmdir)
        # The kernel takes the mapping from a user namespace.
        child = undo.enter_context(subprocess.Popen(["unshare", "--user", "sleep", "1000"]))
        undo.callback(child.kill)
        soon(lambda: os.readlink(f"/proc/{child.pid}/ns/user") != os.readlink("/proc/self/ns/user"))
        for of in ("uid_map", "gid_map"):
            pathlib.Path(f"/proc/{child.pid}/{of}").write_text(f"0 {first} 65536")
        space = os.open(f"/proc/{child.pid}/ns/user", os.O_RDONLY)
        undo.callback(os.close, space)
        open_tree, move_mount, mount_setattr = 428, 429, 442
        tree = call(open_tree, -100, os.fsencode(at), 1 | os.O_CLOEXEC)
        undo.callback(os.close, tree)
        idmap, empty_path = 0x100000, 0x1000
        attributes = struct.pack("QQQQ", idmap, 0, 0, space)
        call(mount_setattr, tree, b"", empty_path, attributes, len(attributes))
        call(move_mount, tree, b"", -100, os.fsencode(place), 4)
        undo.callback(fuse.run, ["umount", "-l", str(place)])
        yield place


@effect("idmap")
def idmap():
    first = 100000
    for source in (ram, host):
        with source("allow_other") as mount:
            raises(errno.EINVAL, mapped(mount.dir, first).__enter__)
        if tuple(map(int, os.uname().release.split(".")[:2])) < (6, 12):
            continue
        with source("allow_other,idmap") as mount, mapped(mount.dir, first) as place:
            mapped_owner(mount.dir, place, first)


def mapped_owner(plain, place, first):
    """Users of a mount, and of the same files in a place whose users have greater numbers by `first`."""
    file, new = place / "f", place / "new"
    of = lambda number: User(str(number), number, number, ())  # noqa: E731
    owner = lambda path: (os.stat(path).st_uid, os.stat(path).st_gid)  # noqa: E731
    (plain / "f").write_text("old")
    os.chown(plain / "f", 7, 7)
    os.chmod(plain / "f", 0o600)
    os.chmod(plain, 0o777)
    equal((first + 7, first + 7), owner(file))
    # Its owner by the mapping may use and change it; the user with the number that is stored may not.
    equal("old", act(of(first + 7), file.read_text))
    equal("ok", act(of(first + 7), os.truncate, file, 2))
    equal("ok", act(of(first + 7), os.chmod, file, 0o640))
    equal("ok", act(of(first + 7), os.utime, file, (3, 4)))
    now = os.stat(plain / "f")
    equal((2, 0o640, 4), (now.st_size, stat.S_IMODE(now.st_mode), int(now.st_mtime)))
    equal("EACCES", act(of(7), file.read_text))
    equal("EPERM", act(of(7), os.chmod, file, 0o666))
    equal("EPERM", act(of(first + 9), os.utime, file, (3, 4)))
    # A file of the mapped root is root's. A user without a mapping makes none.
    equal(1, act(of(first), new.write_text, "x"))
    equal((0, 0), owner(plain / "new"))
    equal("EOVERFLOW", act(of(5), (place / "other").write_text, "x"))
    # A writer that is not root still clears set-id bits.
    os.chmod(plain / "new", 0o4777)
    equal(1, act(of(first + 9), new.write_text, "y"))
    equal(0o777, stat.S_IMODE(os.stat(plain / "new").st_mode))
    equal("ok", act(of(first), os.unlink, new))
    # In the mount itself, users have their numbers.
    equal("ok", act(of(12), os.mkdir, plain / "own"))
    equal((12, 12), owner(plain / "own"))
    equal("ok", act(of(12), os.rmdir, plain / "own"))


@effect("mode")
def mode():
    with mounted("ram:mode=1777") as mount:
        equal(0o1777, stat.S_IMODE(os.stat(mount.dir).st_mode))
    with ram() as mount:
        equal(0o755, stat.S_IMODE(os.stat(mount.dir).st_mode))


@effect("nosuid", "suid", "nodev", "dev", "noexec", "exec")
def kernel_flags():
    with ram() as mount:
        equal({"nosuid", "nodev"}, flags(mount) & {"nosuid", "nodev", "noexec"})
    with ram("suid,dev,noexec") as mount:
        equal({"noexec"}, flags(mount) & {"nosuid", "nodev", "noexec"})
        program = mount.dir / "program"
        program.write_bytes(pathlib.Path("/bin/true").read_bytes())
        program.chmod(0o755)
        raises(errno.EACCES, lambda: subprocess.run([program], check=True))
        os.mknod(mount.dir / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        equal(b"", (mount.dir / "null").read_bytes())
    with ram("suid,nosuid,dev,nodev,noexec,exec") as mount:
        equal({"nosuid", "nodev"}, flags(mount) & {"nosuid", "nodev", "noexec"})


@effect("nosymfollow", "symfollow")
def nosymfollow():
    for option, refused in (("nosymfollow", True), ("nosymfollow,symfollow", False)):
        with ram(option) as mount:
            (mount.dir / "f").write_text("x")
            (mount.dir / "l").symlink_to("f")
            equal("f", os.readlink(mount.dir / "l"))
            if refused:
                raises(errno.ELOOP, (mount.dir / "l").read_text)
            else:
                equal("x", (mount.dir / "l").read_text())


# ---- access times ----


def atime_moves(mount, since):
    """Whether reading moves the access time of a file whose access time is `since` seconds before its last change."""
    path = mount.dir / f"f{since}"
    path.write_text("text")
    of = os.stat(path)
    os.utime(path, ns=(of.st_mtime_ns - since * 10**9, of.st_mtime_ns))
    first = os.stat(path).st_atime_ns
    path.read_text()
    return os.stat(path).st_atime_ns != first


@effect("noatime", "atime", "strictatime", "relatime")
def atime():
    for option, old, recent in (("", True, False), ("noatime", False, False), ("strictatime", True, True),
                                ("noatime,atime", True, False), ("strictatime,relatime", True, False)):
        with ram(option) as mount:
            # Relatime: the access time is at or before the last change, or it is after it and a day old.
            equal((option, old), (option, atime_moves(mount, 10)))
            equal((option, recent), (option, atime_moves(mount, -10)))


@effect("nodiratime", "diratime")
def nodiratime():
    for option, moves in (("nodiratime", False), ("nodiratime,diratime", True)):
        with ram(f"strictatime,{option}") as mount:
            (mount.dir / "d").mkdir()
            os.utime(mount.dir / "d", ns=(0, 0))
            os.listdir(mount.dir / "d")
            equal((option, moves), (option, os.stat(mount.dir / "d").st_atime_ns != 0))


# ---- how long the caches hold ----


def seen(options, prepare, change, look):
    """Whether a change behind a mount of a directory is seen within a second and more than the time of its caches."""
    with host(options) as mount:
        prepare(mount.backing)
        before = look(mount.dir)
        change(mount.backing)
        return fuse.wait_for(lambda: look(mount.dir) != before, 1.5)


def grown(options):
    return seen(options, lambda at: (at / "f").write_text("x"), lambda at: (at / "f").write_text("xyz"),
                lambda at: os.stat(at / "f").st_size)


def removed(options):
    return seen(options, lambda at: (at / "f").write_text("x"), lambda at: (at / "f").unlink(), lambda at: os.path.exists(at / "f"))


def appeared(options):
    return seen(options, lambda at: None, lambda at: (at / "f").write_text("x"), lambda at: os.path.exists(at / "f"))


@effect("ttl")
def ttl():
    for look in (grown, removed, appeared):
        equal((look.__name__, True), (look.__name__, look("ttl=100ms")))
        equal((look.__name__, False), (look.__name__, look("ttl=1h")))


@effect("entry_timeout", "attr_timeout", "negative_timeout")
def timeouts():
    # When the kernel requests attributes, it learns that the file is gone; when it looks a name up again, it learns the attributes.
    for look in (grown, removed):
        equal((look.__name__, False), (look.__name__, look("ttl=100ms,entry_timeout=1h,attr_timeout=1h")))
    equal(True, removed("ttl=100ms,attr_timeout=1h"))
    equal(True, grown("ttl=100ms,entry_timeout=1h"))
    equal(False, appeared("ttl=100ms,negative_timeout=1h"))
    for look in (grown, removed, appeared):
        equal((look.__name__, True), (look.__name__, look("ttl=100ms,attr_timeout=0,entry_timeout=0,negative_timeout=0")))


@effect("always", "exclusive")
def always():
    for look in (grown, removed, appeared):
        equal((look.__name__, False), (look.__name__, look("exclusive")))
    with host("always") as mount:
        for number in range(50):
            (mount.backing / "f").write_text("x" * number)
            equal(number, os.stat(mount.dir / "f").st_size)


@effect("watch", "nowatch")
def watch():
    for look in (grown, removed):
        equal((look.__name__, True), (look.__name__, look("watch,ttl=1h")))
        equal((look.__name__, False), (look.__name__, look("watch,nowatch,ttl=1h")))


# ---- how the requests come ----


@effect("threads", "max_threads")
def threads():
    number = {}
    for option in ("threads=2", "threads=7", "max_threads=7"):
        with ram(f"{option},no_uring") as mount:
            number[option] = len(os.listdir(f"/proc/{mount.pid}/task"))
    equal((5, 5), tuple(number[option] - number["threads=2"] for option in ("threads=7", "max_threads=7")))


@effect("uring", "no_uring")
def uring():
    def names(option):
        with ram(option) as mount:
            tasks = pathlib.Path(f"/proc/{mount.pid}/task").glob("*/comm")
            return {name.read_text().strip() for name in tasks}

    switch = pathlib.Path("/sys/module/fuse/parameters/enable_uring")
    is_offered = switch.exists() and switch.read_text().strip() == "Y"
    equal(False, "lightfoot-ring" in names("no_uring"))
    equal(is_offered, "lightfoot-ring" in names(""))
    try:
        equal(True, "lightfoot-ring" in names("uring"))
    except Exception:
        equal(False, is_offered)


@effect("pin")
def pin():
    switch = pathlib.Path("/sys/module/fuse/parameters/enable_uring")
    if not switch.exists() or switch.read_text().strip() != "Y":
        with ram("pin=off"):
            return

    def processors(option):
        with ram(option) as mount:
            tasks = pathlib.Path(f"/proc/{mount.pid}/task").iterdir()
            rings = [task.name for task in tasks if (task / "comm").read_text().strip() == "lightfoot-ring"]
            return {len(os.sched_getaffinity(int(ring))) for ring in rings}

    equal({1}, processors("pin=on"))
    equal({len(os.sched_getaffinity(0))}, processors("pin=off"))


@effect("clone_fd", "no_clone_fd")
def clone_fd():
    channels = {}
    for option in ("clone_fd", "no_clone_fd"):
        with ram(f"threads=4,{option},no_uring") as mount:
            links = [os.readlink(f"/proc/{mount.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{mount.pid}/fd")]
            channels[option] = links.count("/dev/fuse")
    # One for each further thread; another descriptor may be for notices.
    equal(3, channels["clone_fd"] - channels["no_clone_fd"])


@effect("writeback", "nowriteback")
def writeback():
    for option, writes in (("writeback", 1), ("writeback,nowriteback", 100)):
        with host(option) as mount:
            with open(mount.dir / "f", "wb", buffering=0) as file:
                for _ in range(100):
                    file.write(b"0123456789")
                os.fsync(file.fileno())
                equal(b"0123456789" * 100, (mount.backing / "f").read_bytes())
                equal((option, writes), (option, count(mount, "write")))


@effect("max_write")
def max_write():
    for option, writes in (("max_write=16k", 64), ("max_write=1m", 1)):
        with ram(f"nowriteback,{option}") as mount:
            with open(mount.dir / "f", "wb", buffering=0) as file:
                equal(1 << 20, file.write(b"x" * (1 << 20)))
            equal((option, writes), (option, count(mount, "write")))


@effect("max_background")
def max_background():
    with ram("max_background=7") as mount:
        device = os.stat(mount.dir).st_dev
        control = fuse.workdir() / "fusectl"
        control.mkdir()
        fuse.run(["mount", "-t", "fusectl", "none", str(control)])
        try:
            equal("7", (control / str(os.minor(device)) / "max_background").read_text().strip())
        finally:
            fuse.run(["umount", str(control)])


@effect("request_timeout")
def request_timeout():
    with ram("request_timeout=5") as mount:
        equal(4096, os.statvfs(mount.dir).f_bsize)
        if tuple(map(int, os.uname().release.split(".")[:2])) < (6, 15):
            return
        os.kill(mount.daemon.pid, signal.SIGSTOP)
        # The signal reaches the threads one after another, and one that still runs would reply.
        states = lambda: [file.read_text().rsplit(") ", 1)[1][0] for file in tasks.glob("*/stat")]  # noqa: E731
        tasks = pathlib.Path(f"/proc/{mount.daemon.pid}/task")
        soon(lambda: set(states()) == {"T"})
        try:
            os.statvfs(mount.dir)
            raise AssertionError("a server that does not run has replied")
        except OSError as error:
            equal(True, error.errno in (errno.ECONNABORTED, errno.ENOTCONN))
        finally:
            os.kill(mount.daemon.pid, signal.SIGCONT)


@effect("kernel_cache", "auto_cache")
def kernel_cache():
    for option, seen in (("kernel_cache", "old"), ("kernel_cache,auto_cache", "new")):
        with host(f"ttl=10ms,{option}") as mount:
            (mount.backing / "f").write_text("old")
            equal("old", (mount.dir / "f").read_text())
            (mount.backing / "f").write_text("new")
            wanted = os.stat(mount.backing / "f").st_mtime_ns
            soon(lambda: os.stat(mount.dir / "f").st_mtime_ns == wanted)  # noqa: B023
            equal((option, seen), (option, (mount.dir / "f").read_text()))


@effect("passthrough", "nopassthrough")
def passthrough():
    for option, served_by_kernel in (("passthrough", True), ("passthrough,nopassthrough", False)):
        with host(option) as mount:
            (mount.backing / "f").write_bytes(b"x" * 100000)
            equal(100000, len((mount.dir / "f").read_bytes()))
            equal((option, served_by_kernel), (option, count(mount, "read") == 0))


@effect("no_open", "open")
def no_open():
    for option, sent in (("no_open", False), ("no_open,open", True)):
        with ram(option) as mount:
            for number in range(5):
                (mount.dir / "f").write_text(str(number))
                equal(str(number), (mount.dir / "f").read_text())
                equal(["f"], os.listdir(mount.dir))
            # The first is how the kernel finds out that it need not.
            equal((option, sent), (option, count(mount, "open") > 1))
            equal((option, sent), (option, count(mount, "opendir") > 1))


@effect("security_ctx")
def security_ctx():
    # A label comes only where a security module is active (crates/fuse/tests/session/labels.rs has what happens then).
    with ram("security_ctx") as mount:
        (mount.dir / "f").write_text("contents")
        (mount.dir / "d").mkdir()
        (mount.dir / "l").symlink_to("f")
        equal(["d", "f", "l"], sorted(os.listdir(mount.dir)))


@effect("locks", "nolocks")
def locks():
    for option, sent in (("locks", True), ("locks,nolocks", False)):
        with ram(option) as mount, open(mount.dir / "f", "wb") as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            equal((option, sent), (option, count(mount, "setlk") > 0))


@effect("acl", "noacl")
def acl():
    entry = ["setfacl", "-m", "u:1001:r"]
    fuse.need_program("setfacl", "acl")
    for option, works in (("acl", True), ("noacl", False)):
        with ram(option) as mount:
            (mount.dir / "f").write_text("")
            done = fuse.run([*entry, str(mount.dir / "f")], 10, check=False)
            equal((option, works), (option, done.returncode == 0))


# ---- the mount ----


@effect("nonempty")
def nonempty():
    at = fuse.workdir() / "nonempty"
    at.mkdir()
    (at / "file").write_text("")
    words = [str(fuse.lightfoot()), "mount", "ram:", str(at), "--daemon"]
    done = fuse.run(words, 20, check=False)
    assert done.returncode != 0 and not fuse.is_mounted(at), f"it is mounted over a file: {done.stdout}"
    fuse.run([*words, "-o", "nonempty"], 20)
    equal([], os.listdir(at))
    fuse.run(["umount", str(at)], 20)
    equal(["file"], os.listdir(at))


@effect("auto_unmount")
def auto_unmount():
    fuse.need_program("fusermount3", "fuse3")
    for option, is_gone in (("auto_unmount", True), ("", False)):
        at = fuse.workdir() / f"killed-{option}"
        words = [str(fuse.lightfoot()), "mount", "ram:", str(at), "--daemon"]
        fuse.run(words + (["-o", option] if option else []), 20)
        pid = json.loads(fuse.run([str(fuse.lightfoot()), "stats", "--json", str(at)], 20).stdout)["pid"]
        os.kill(pid, signal.SIGKILL)
        if is_gone:
            soon(lambda: not fuse.is_mounted(at))  # noqa: B023
        else:
            soon(lambda: ends_with(errno.ENOTCONN, os.listdir, at))  # noqa: B023
            fuse.run(["umount", "-l", str(at)], 20)


@effect("fsname")
def fsname():
    with ram("fsname=some-name") as mount:
        equal("some-name", fuse.run(["findmnt", "-n", "-o", "SOURCE", str(mount.dir)]).stdout.strip())


@effect("max_names")
def max_names():
    for option, few in (("max_names=200", True), ("max_names=100k", False)):
        with ram(option) as mount:
            for number in range(1000):
                (mount.dir / str(number)).touch()
            known = lambda: mount.gauge("nodes")  # noqa: E731
            if few:
                soon(lambda: known() <= 200)
            else:
                assert known() > 900, f"the kernel knows {known()} of 1,000 files"


# ---- sizes ----


@effect("cache")
def cache():
    for mib in (16, 64):
        with mounted("host", f"cache={mib}m") as mount:
            budget = sum(mount.stats()["file_systems"][0]["budget"].values())
            wanted = mib << 20
            assert abs(budget - wanted) < wanted // 50, f"cache={mib}m: {budget} bytes in all"
    with mounted("ram:", "cache=1m") as mount:
        equal(None, mount.stats()["file_systems"][0]["budget"])


@effect("size", "nr_blocks")
def size():
    for source in ("ram:size=1m", "ram:nr_blocks=256"):
        with mounted(source) as mount:
            of = os.statvfs(mount.dir)
            equal((source, 1 << 20), (source, of.f_blocks * of.f_frsize))
            raises(errno.ENOSPC, lambda: (mount.dir / "f").write_bytes(b"x" * (2 << 20)))  # noqa: B023


@effect("nr_inodes")
def nr_inodes():
    with mounted("ram:nr_inodes=10") as mount:
        equal(10, os.statvfs(mount.dir).f_files)

        def fill():
            for number in range(20):
                (mount.dir / str(number)).touch()

        raises(errno.ENOSPC, fill)


@effect("usrquota_block_hardlimit", "usrquota_inode_hardlimit")
def quota():
    with mounted("ram:mode=0777,usrquota_block_hardlimit=1m,usrquota_inode_hardlimit=5", "allow_other,nowriteback") as mount:
        write = lambda: (mount.dir / "f").write_bytes(b"x" * (2 << 20)) and None  # noqa: E731
        equal("EDQUOT", act(ALICE, write))

        def fill():
            for number in range(10):
                (mount.dir / str(number)).touch()

        equal("EDQUOT", act(ALICE, fill))


@effect("casefold")
def casefold():
    with mounted("ram:casefold") as mount:
        (mount.dir / "Name").write_text("x")
        equal("x", (mount.dir / "NAME").read_text())
        raises(errno.EEXIST, lambda: os.mkdir(mount.dir / "name"))
        equal(["Name"], os.listdir(mount.dir))
    with ram() as mount:
        (mount.dir / "A").write_text("x")
        assert not (mount.dir / "a").exists(), "a is A"


# ---- the directory ----


@effect("cross", "stay")
def cross():
    for option in ("cross", "cross,stay"):
        base = pathlib.Path(tempfile.mkdtemp(dir=fuse.workdir()))
        (base / "inner").mkdir(parents=True)
        (base / "m").mkdir()
        fuse.run(["mount", "-t", "tmpfs", "lightfoot-test", str(base / "inner")], 10)
        try:
            (base / "inner/below").write_text("")
            command = shlex.join([str(fuse.lightfoot()), "mount", str(base), "{mountpoint}", "-o", option])
            with Mount("custom", command=command) as mount:
                if option == "cross":
                    equal(["below"], os.listdir(mount.dir / "inner"))
                else:
                    raises(errno.EXDEV, lambda: os.listdir(mount.dir / "inner"))  # noqa: B023
        finally:
            fuse.run(["umount", "-l", str(base / "inner")], 10)


@effect("fds")
def fds():
    highest = {}
    for option in ("fds=64", "fds=2048"):
        with host(option) as mount:
            for number in range(500):
                (mount.backing / str(number)).mkdir()
                (mount.backing / str(number) / "f").write_text("x")
            for number in range(500):
                equal("x", (mount.dir / str(number) / "f").read_text())
            highest[option] = mount.open_files()
    assert highest["fds=64"] < 64 + 32 < highest["fds=2048"], f"open files: {highest}"


# ---- object stores ----


def bucket(server, options=""):
    """A mount of the server's bucket."""
    return mounted(f"s3://{objects.BUCKET}", ",".join(filter(None, [server.options(), options])))


@effect("endpoint", "region")
def server_and_region():
    for region in ("us-east-1", "xx-test-7"):
        with objects.serving() as server:
            server.objects["f"] = b"text"
            with bucket(server, "" if region == "us-east-1" else f"region={region}") as mount:
                equal("text", (mount.dir / "f").read_text())
            assert server.seen and all(f"/{region}/s3/" in signature for signature in server.seen), server.seen


@effect("rename_dirs")
def rename_dirs():
    for options in ("", "rename_dirs=no", "rename_dirs=copy"):
        with objects.serving() as server:
            server.objects["d/f"] = b"text"
            with bucket(server, options) as mount:
                if options == "rename_dirs=copy":
                    (mount.dir / "d").rename(mount.dir / "e")
                    equal("text", (mount.dir / "e" / "f").read_text())
                    assert server.objects.get("e/f") == b"text" and "d/f" not in server.objects, server.objects
                else:
                    raises(errno.EOPNOTSUPP, lambda: (mount.dir / "d").rename(mount.dir / "e"))  # noqa: B023


@effect("timeout")
def timeout():
    with objects.serving() as server:
        server.objects["f"] = b"text"
        with bucket(server, "timeout=200ms,ttl=0s") as mount:
            equal("text", (mount.dir / "f").read_text())
            # The server answers no more, and the call ends.
            server.delay = 3600
            try:
                os.stat(mount.dir / "g")
            except OSError as error:
                assert error.errno in (errno.ETIMEDOUT, errno.EIO), error
            else:
                raise AssertionError("a name was found without an answer")
            server.delay = 0
