"""The attacks of attacks.py. Not a program.

An attack is a function over a `Place`. It prepares files as root, lets users act, and returns facts: a dictionary of
what was seen. Where it is a generator, a `yield` waits until every cache has expired. What is right is what the same
function returns on tmpfs, with the same users; an attack with `expected` is compared with that.

Each attack has a directory for itself: `place.at` on the mount, `place.behind` where the file system keeps it (the same
directory without one).
"""

import ctypes
import errno
import fcntl
import mmap
import os
import shutil
import signal
import stat
import struct
import time

from mounts.actors import ALICE, BOB, BOBS, BOTH, ROOT, Actor, act, attempt, repeat

SECRET = b"only root may read this"
RDONLY, WRONLY, RDWR, CREAT, TRUNC, EXCL = os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC, os.O_EXCL
ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"
_libc = ctypes.CDLL(None, use_errno=True)

# What an attack needs of a combination (see there): `changes`: what root changes behind the mount is seen after a while;
# `host`: a directory behind the mount; `acl`; `locks`; `searched`: search permission is checked for cached names.
ATTACKS = []


def attack(title, needs=(), expected=None, only=None):
    """`only`: the name of the one combination that this is for."""

    def add(function):
        function.title, function.needs, function.only = title, frozenset(needs), only
        function.expected = expected
        ATTACKS.append(function)
        return function

    return add


class Place:
    """Where an attack runs."""

    def __init__(self, at, behind):
        self.at, self.behind = at, behind

    def file(self, name, mode=0o644, uid=0, gid=0, data=SECRET):
        """Root makes a file behind the mount. Its path on the mount."""
        path = f"{self.behind}/{name}"
        descriptor = os.open(path, CREAT | EXCL | WRONLY, 0o600)
        os.write(descriptor, data)
        os.close(descriptor)
        self._give(path, mode, uid, gid)
        return f"{self.at}/{name}"

    def directory(self, name, mode=0o755, uid=0, gid=0):
        path = f"{self.behind}/{name}"
        os.mkdir(path, 0o700)
        self._give(path, mode, uid, gid)
        return f"{self.at}/{name}"

    def program(self, name, mode, source="/usr/bin/id", uid=0, gid=0):
        """A copy of a program of the system."""
        shutil.copyfile(source, f"{self.behind}/{name}")
        self._give(f"{self.behind}/{name}", mode, uid, gid)
        return f"{self.at}/{name}"

    @staticmethod
    def _give(path, mode, uid, gid):
        os.chown(path, uid, gid)
        os.chmod(path, mode)

    def path(self, name):
        return f"{self.at}/{name}"

    def state(self, name):
        """Owner, group and mode where the file system keeps it."""
        return state(f"{self.behind}/{name}")

    def data(self, name):
        with open(f"{self.behind}/{name}", "rb") as file:
            return file.read()

    def root(self, function, name, *arguments, **more):
        """Root calls `function(path, ...)` behind the mount."""
        return function(f"{self.behind}/{name}", *arguments, **more)


def state(path):
    info = os.lstat(path)
    return f"{info.st_uid}:{info.st_gid} {stat.S_IMODE(info.st_mode):04o}"


# ---- what users do ----


def read(path, flags=RDONLY):
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    try:
        return os.read(descriptor, 100).decode(errors="replace")
    finally:
        os.close(descriptor)


def write(path, data=b"written", flags=WRONLY):
    descriptor = os.open(path, flags | os.O_NONBLOCK, 0o666)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)


def make(path, flags=WRONLY | CREAT | EXCL, mode=0o666):
    os.close(os.open(path, flags, mode))


def opens(path, flags):
    os.close(os.open(path, flags | os.O_NONBLOCK, 0o666))


def runs(path, *arguments):
    """What a program prints."""
    here, there = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(there, 1)
        try:
            os.execv(path, [path, *arguments])
        except OSError as error:
            os.write(1, errno.errorcode[error.errno].encode())
        os._exit(126)
    os.close(there)
    os.waitpid(child, 0)
    output = os.read(here, 1000).decode().strip()
    os.close(here)
    return output


def several(*calls):
    """The outcomes of several calls of one user, each a function with its arguments."""
    return [attempt(function, *arguments) for function, *arguments in calls]


def as_each(function, *arguments):
    """The outcomes for both users."""
    return {user.name: act(user, function, *arguments) for user in (ALICE, BOB)}


def acl(*entries):
    """An ACL as the attribute has it: of ("u", uid or None, bits), ("g", gid or None, bits), ("m", bits), ("o", bits)."""
    packed = []
    for entry in entries:
        tag, who, bits = entry if len(entry) == 3 else (entry[0], None, entry[1])
        number = {"u": (1, 2), "g": (4, 8), "m": (16, 16), "o": (32, 32)}[tag][who is not None]
        packed.append((number, 0xFFFFFFFF if who is None else who, bits))
    # The kernel wants them in this order.
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", tag, bits, who) for tag, who, bits in sorted(packed))


def acl_of(path, name=ACCESS):
    return attempt(lambda: os.getxattr(path, name, follow_symlinks=False).hex())


# ---- names that the kernel believes absent ----


# Milliseconds from the moment at which an answer that is valid for one second expires: two caches follow each other, and
# the second expires a little later.
AROUND = range(-4, 20)


@attack("a file that root made where the user's kernel knows no file")
def created_meanwhile(place):
    place.directory("d", 0o777)
    early, late = [f"d/{number}" for number in AROUND], [f"d/late{number}" for number in range(3)]
    ways = (RDONLY | CREAT, RDWR | CREAT, RDWR | CREAT | TRUNC)

    def user(pause):
        looked = []
        for name in early + late:
            attempt(os.stat, place.path(name))
            looked.append(time.monotonic())
            time.sleep(0.003)
        pause()
        outcomes = set()
        for at, name in enumerate(early):
            while time.monotonic() < looked[at] + 1 + AROUND[at] / 1000:
                pass
            outcomes.add(attempt(read, place.path(name), ways[at % 3]))
        pause()
        return outcomes | {attempt(read, place.path(name), way) for name, way in zip(late, ways)}

    actor = Actor(ALICE, user).until_pause()
    for name in early + late:
        place.file(name, 0o600)
    actor.go_on().until_pause()
    yield
    outcomes = {"refused" if outcome in ("EACCES", "EEXIST") else outcome for outcome in actor.go_on().result()}
    files = {(place.data(name) == SECRET, place.state(name)) for name in early + late}
    return {"outcomes": sorted(outcomes), "files as they were": sorted(files)}


@attack("a file that all may use, made where the user's kernel knows no file, opens with O_CREAT", needs={"changes"})
def created_readable_meanwhile(place):
    place.directory("d", 0o777)
    place.directory("shared", 0o770, 0, BOTH)
    files = [(f"{where}/{way}{mode:o}", mode, group) for where, group in (("d", 0), ("shared", BOTH))
             for mode in (0o644, 0o666, 0o660, 0o640) for way in ("r", "w")]

    def user(pause):
        for name, *_ in files:
            attempt(os.stat, place.path(name))
        pause()
        outcomes, end = {name: "EEXIST" for name, *_ in files}, time.monotonic() + 1.6
        # A file system that believes in the absence of the name answers so until it looks again.
        while "EEXIST" in outcomes.values() and time.monotonic() < end:
            for name in [name for name, outcome in outcomes.items() if outcome == "EEXIST"]:
                flags = RDONLY | CREAT if "/r" in name else WRONLY | CREAT
                outcomes[name] = attempt(opens, place.path(name), flags)
        return outcomes, several(*[(make, place.path(name)) for name, *_ in files])

    actor = Actor(ALICE, user).until_pause()
    for name, mode, group in files:
        place.file(name, mode, 0, group)
    return {"outcomes": actor.go_on().result(), "files": [place.state(name) for name, *_ in files]}


@attack("directory, link, FIFO over a name that root made meanwhile")
def made_over(place):
    place.directory("d", 0o777)
    facts = {}
    calls = {"mkdir": os.mkdir, "symlink": lambda path: os.symlink("x", path), "mkfifo": os.mkfifo}
    for name, call in calls.items():

        def user(pause, path, call):
            attempt(os.stat, path)
            pause()
            return attempt(call, path)

        actor = Actor(ALICE, user, place.path(f"d/{name}"), call).until_pause()
        place.file(f"d/{name}", 0o600)
        facts[name] = actor.go_on().result(), place.state(f"d/{name}")
    return facts


@attack("names exchanged while another member of the directory's group makes files", needs={"host"})
def exchanged(place):
    """Whoever may write in the directory gives root's file the name that was just made, for some microseconds."""
    place.directory("d", 0o770, 0, BOTH)
    place.file("d/victim", 0o600)
    behind, at = f"{place.behind}/d", f"{place.at}/d"
    victim, names = os.fsencode(f"{behind}/victim"), [os.fsencode(f"{behind}/{number}") for number in range(1 << 16)]
    inode = os.stat(victim).st_ino
    # The number of the name that is made next.
    current = mmap.mmap(-1, 4)

    def exchange():
        name = names[int.from_bytes(current[:4], "little")]
        # 2: RENAME_EXCHANGE.
        if _libc.renameat2(-100, victim, -100, name, 2) == 0:
            sum(range(500))
            _libc.renameat2(-100, victim, -100, name, 2)

    def makes():
        number = int.from_bytes(current[:4], "little") + 1
        current[:4] = number.to_bytes(4, "little")
        path = f"{at}/{number}"
        (lambda: os.mkdir(path, 0o777), lambda: os.symlink("target", path), lambda: os.mkfifo(path, 0o666))[number % 3]()

    actors = [repeat(ALICE, makes), repeat(BOB, exchange)]
    time.sleep(0.7)
    gone = [actor.kill() for actor in actors]
    files = [place.state(f"d/{name}") for name in os.listdir(behind) if os.lstat(f"{behind}/{name}").st_ino == inode]
    return {"ended": gone, "root's file": files}


# ---- what is held while root changes it ----


def _held_program(place, after):
    place.file("program", 0o755, ALICE.uid, ALICE.gid)

    def user(pause, path):
        descriptor = os.open(path, RDWR)
        pause()
        return several((os.fchmod, descriptor, 0o4755), (os.chmod, path, 0o4755), (os.utime, path, (1, 1)),
                       (os.chown, path, ALICE.uid, BOTH), (os.setxattr, path, ACCESS, acl(("u", 7), ("g", 7), ("o", 7))))

    actor = Actor(ALICE, user, place.path("program")).until_pause()
    place.root(os.chown, "program", 0, 0)
    yield from after
    return {"changes": actor.go_on().result(), "file": place.state("program")}


@attack("set-user-id by a former owner with an open file, at once", needs={"acl"})
def former_owner_at_once(place):
    return (yield from _held_program(place, ()))


@attack("set-user-id by a former owner with an open file, later", needs={"acl", "changes"})
def former_owner_later(place):
    return (yield from _held_program(place, [None]))


@attack("a write to a file that root made set-id meanwhile", needs={"changes"})
def set_id_meanwhile(place):
    ways = {"write": lambda file: os.write(file, b"x"), "ftruncate": lambda file: os.ftruncate(file, 3),
            "fallocate": lambda file: os.posix_fallocate(file, 0, 8192), "hole": _punch,
            "copy": lambda file: os.copy_file_range(file, file, 3, 0, 10), "splice": _splice}

    def user(pause, path, way):
        descriptor = os.open(path, RDWR)
        pause()
        done = attempt(way, descriptor)
        os.fsync(descriptor)
        return done

    facts = {}
    for name, way in ways.items():
        place.file(name, 0o777)
        actor = Actor(BOB, user, place.path(name), way).until_pause()
        place.root(os.chmod, name, 0o6777)
        facts[name] = actor.go_on().result(), place.state(name)
    return facts


def _punch(file):
    keep_size, punch_hole = 1, 2
    if _libc.fallocate(file, keep_size | punch_hole, ctypes.c_long(0), ctypes.c_long(10)) != 0:
        raise OSError(ctypes.get_errno(), "fallocate")


def _splice(file):
    here, there = os.pipe()
    os.write(there, b"spliced")
    return os.splice(here, file, 7)


@attack("a removed search right, from the working directory and from open directories", needs={"changes"})
def search_removed(place):
    place.directory("d", 0o755)
    place.directory("d/sub", 0o755)
    place.file("d/sub/f")

    def user(pause, path):
        os.chdir(path)
        descriptor = os.open(".", RDONLY | os.O_DIRECTORY)
        os.stat("f")
        pause()
        return several((read, "f"), (os.stat, "absent"), (lambda: os.stat("f", dir_fd=descriptor) and None,), (os.chdir, ".."),
                       (lambda: len(os.listdir(descriptor)),))

    actor = Actor(ALICE, user, place.path("d/sub")).until_pause()
    place.root(os.chmod, "d/sub", 0o700)
    yield
    return {"uses": actor.go_on().result()}


@attack("a right that root took away", needs={"changes"})
def revoked(place):
    place.directory("d", 0o755)
    place.file("d/f", 0o666)
    place.file("g", 0o660, 0, BOTH)
    act(ALICE, read, place.path("d/f"))
    act(ALICE, read, place.path("g"))
    place.root(os.chmod, "d", 0o700)
    place.root(os.chown, "g", 0, BOBS)
    yield
    return {"in a directory": as_each(read, place.path("d/f")), "by its group": as_each(read, place.path("g")),
            "write": as_each(write, place.path("g"))}


def _is_read(outcome):
    return SECRET.decode() in str(outcome)


@attack("names of the user's files that root's files have since", needs={"host"})
def taken_names(place):
    """In a sticky directory, the user removes her file behind the mount, and root makes one with that name."""
    place.directory("d", 0o1777)
    calls = {"unlink": os.unlink, "open": lambda path: read(path), "write": lambda path: write(path),
             "cut": lambda path: opens(path, WRONLY | TRUNC), "truncate": lambda path: os.truncate(path, 0),
             "chmod": lambda path: os.chmod(path, 0o666), "away": lambda path: os.rename(path, f"{path}.mine"),
             "over": lambda path: os.rename(f"{path}.own", path), "exchange": lambda path: _exchange(f"{path}.own", path),
             "link": lambda path: os.link(path, f"{path}.link"), "times": lambda path: os.utime(path, (1, 1)),
             "acl": lambda path: os.setxattr(path, ACCESS, acl(("u", 6), ("g", 6), ("o", 6))),
             "user.a": lambda path: os.setxattr(path, "user.a", b"1")}
    held = {}

    def user(pause):
        for name in calls:
            make(place.path(f"d/{name}"))
            make(place.path(f"d/{name}.own"))
            held[name] = os.open(place.path(f"d/{name}"), RDWR)
        pause()
        outcomes = {name: attempt(call, place.path(f"d/{name}")) for name, call in calls.items()}
        return outcomes, [attempt(os.fchmod, descriptor, 0o666) for descriptor in held.values()]

    actor = Actor(ALICE, user).until_pause()
    for name in calls:
        os.unlink(f"{place.behind}/d/{name}")
        place.file(f"d/{name}", 0o600)
    outcomes = actor.go_on().result()
    facts = {"read": _is_read(outcomes)}
    for name in calls:
        path = f"{place.behind}/d/{name}"
        facts[name] = os.path.exists(path) and (place.data(f"d/{name}") == SECRET, place.state(f"d/{name}"), os.stat(path).st_nlink,
                                                os.stat(path).st_mtime != 1, acl_of(path), attempt(os.listxattr, path))
    return facts


@attack("directories of the user's that root's directories or links have replaced", needs={"host"})
def replaced_directories(place):
    place.directory("d", 0o1777)
    place.directory("private", 0o700)
    place.file("private/f", 0o666)
    kinds = ("directory", "link", "exchanged")

    def user(pause):
        open_directories = []
        for name in kinds:
            os.mkdir(place.path(f"d/{name}"))
            make(place.path(f"d/{name}/f"))
            open_directories.append(os.open(place.path(f"d/{name}"), RDONLY | os.O_DIRECTORY))
        pause()
        outcomes = [several((read, f"{path}/f"), (write, f"{path}/f"), (os.listdir, path), (make, f"{path}/new"),
                            (os.mkdir, f"{path}/newd"), (os.unlink, f"{path}/f"), (os.symlink, "x", f"{path}/l"))
                    for path in map(place.path, (f"d/{name}" for name in kinds))]
        outcomes += [several((lambda: attempt(os.open, "f", RDONLY, dir_fd=descriptor) and None,),
                             (lambda: os.mkdir("by-fd", dir_fd=descriptor),)) for descriptor in open_directories]
        return outcomes

    actor = Actor(ALICE, user).until_pause()
    for name in kinds:
        os.rename(f"{place.behind}/d/{name}", f"{place.behind}/d/old-{name}")
    place.directory("d/directory", 0o700)
    place.file("d/directory/f", 0o666)
    os.symlink("../private", f"{place.behind}/d/link")
    os.rename(f"{place.behind}/private", f"{place.behind}/d/exchanged")
    os.mkdir(f"{place.behind}/private", 0o700)
    place.file("private/f", 0o666)
    outcomes = actor.go_on().result()
    facts = {"read": _is_read(outcomes)}
    for name in ("d/directory", "d/exchanged", "private"):
        facts[name] = place.state(name), sorted(os.listdir(f"{place.behind}/{name}")), place.data(f"{name}/f") == SECRET
    return facts


# ---- set-id bits ----


@attack("set-id bits after a write by somebody else")
def write_clears(place):
    def written_with_open(path):
        with open(path, "r+b", buffering=0) as file:
            file.write(b"other content")

    def fallocated(path):
        with open(path, "r+b", buffering=0) as file:
            os.posix_fallocate(file.fileno(), 0, 8192)

    def shortened(path):
        with open(path, "r+b", buffering=0) as file:
            os.ftruncate(file.fileno(), 3)

    def copied(path):
        with open("/etc/passwd", "rb") as source, open(path, "r+b", buffering=0) as file:
            os.sendfile(file.fileno(), source.fileno(), 0, 10)

    ways = {"write": written_with_open, "append": lambda path: write(path, b"x", WRONLY | os.O_APPEND),
            "O_TRUNC": lambda path: opens(path, WRONLY | TRUNC), "truncate": lambda path: os.truncate(path, 3),
            "ftruncate": shortened, "fallocate": fallocated, "sendfile": copied}
    facts = {}
    for way, function in ways.items():
        for user, owner in ((BOB, ALICE), (ALICE, ALICE), (BOB, ROOT)):
            name = f"{way}-{user.name}-{owner.name}"
            path = place.file(name, 0o6777, owner.uid, owner.gid)
            os.stat(path)
            done = act(user, function, path)
            # What the kernel knows decides about the next program that it starts.
            facts[name] = done, place.state(name), state(path)
    return facts


@attack("set-id bits after a change of owner or group")
def chown_clears(place):
    path = place.file("f", 0o6755, ALICE.uid, ALICE.gid)
    done = act(ALICE, os.chown, path, -1, BOTH)
    other = place.file("g", 0o6755, ALICE.uid, ALICE.gid)
    os.chown(other, 0, 0)
    return {"by the owner": (done, place.state("f"), state(path)), "by root": (place.state("g"), state(other))}


@attack("set-group-id for a group that the user is not in")
def foreign_set_group_id(place):
    facts = {}
    for name, group in (("own", ALICE.gid), ("both", BOTH), ("bobs", BOBS)):
        path = place.file(name, 0o755, ALICE.uid, group)
        directory = place.directory(f"{name}-d", 0o755, ALICE.uid, group)
        facts[name] = (act(ALICE, os.chmod, path, 0o2755), place.state(name),
                       act(ALICE, os.chmod, directory, 0o2775), place.state(f"{name}-d"))
        inherits = place.directory(f"{name}-i", 0o2777, 0, group)
        made = act(ALICE, lambda path: [make(f"{path}/f", mode=0o2755), os.mkdir(f"{path}/d", 0o755),
                                        os.chmod(f"{path}/f", 0o2755)] and None, inherits)
        facts[f"{name}, inherited"] = made, place.state(f"{name}-i/f"), place.state(f"{name}-i/d")
    return facts


@attack("set-id programs")
def set_id_programs(place):
    facts = {}
    for mode in (0o4755, 0o2755, 0o755):
        path = place.program(f"p{mode:o}", mode)
        facts[f"{mode:o}"] = act(ALICE, runs, path, "-u"), act(ALICE, runs, path, "-g")
    return facts


@attack("a set-id program after somebody else wrote to it")
def written_program(place):
    path = place.program("p", 0o6777, uid=ALICE.uid, gid=ALICE.gid)
    before = act(BOB, runs, path, "-u")
    done = act(BOB, write, path, b"", WRONLY), act(BOB, write, path, open("/usr/bin/id", "rb").read(64))
    return {"before": before, "write": done, "after": act(BOB, runs, path, "-u"), "file": place.state("p")}


@attack("file capabilities after a write by somebody else", needs={"suid"})
def file_capabilities(place):
    path = place.program("p", 0o777)
    # cap_dac_override, permitted and effective.
    value = struct.pack("<IIIII", 0x02000001, 2, 0, 0, 0)
    put = attempt(place.root, os.setxattr, "p", "security.capability", value)
    os.stat(path)
    written = act(BOB, write, path, b"\x7fELF")
    return {"set": put, "written": written, "kept": attempt(lambda: len(os.getxattr(path, "security.capability"))),
            "set by a user": act(ALICE, os.setxattr, path, "security.capability", value)}


# ---- files of others ----


@attack("reading, writing, cutting a file of somebody else, by its mode")
def by_mode(place):
    facts = {}
    modes = [(mode, owner, group) for owner, group in ((0, 0), (0, BOTH), (ALICE.uid, BOBS))
             for mode in (0o600, 0o640, 0o644, 0o604, 0o660, 0o666, 0o622, 0o444, 0o077, 0o000)]
    for mode, owner, group in modes:
        path = place.file(f"{mode:o}-{owner}-{group}", mode, owner, group)
        facts[f"{mode:o} {owner}:{group}"] = as_each(several, (read, path), (opens, path, WRONLY), (opens, path, RDWR),
                                                     (opens, path, RDONLY | TRUNC), (os.truncate, path, 1),
                                                     (lambda p: [os.access(p, bits) for bits in (4, 2, 1)], path))
    return facts


@attack("changing mode, owner and times of a file of somebody else")
def foreign_attributes(place):
    facts = {}
    for mode, owner, group in ((0o644, 0, 0), (0o666, 0, BOTH), (0o664, BOB.uid, BOTH), (0o600, ALICE.uid, ALICE.gid)):
        name = f"{mode:o}-{owner}-{group}"
        path = place.file(name, mode, owner, group)
        facts[name] = act(ALICE, several, (os.chmod, path, 0o777), (os.utime, path), (os.utime, path, (1, 1)),
                          (os.chown, path, ALICE.uid, -1), (os.chown, path, -1, ALICE.gid), (os.chown, path, -1, BOTH),
                          (os.chown, path, -1, BOBS), (os.chown, path, BOB.uid, -1), (os.chown, path, 0, 0),
                          (opens, path, RDONLY | os.O_NOATIME)), place.state(name)

    def by_descriptor(path):
        descriptor = os.open(path, RDONLY)
        return several((os.fchmod, descriptor, 0o777), (os.fchown, descriptor, ALICE.uid, -1), (os.utime, descriptor, (1, 1)),
                       (os.ftruncate, descriptor, 0), (os.chmod, f"/proc/self/fd/{descriptor}", 0o777),
                       (opens, f"/proc/self/fd/{descriptor}", RDWR), (write, f"/proc/self/fd/{descriptor}"),
                       (os.truncate, f"/proc/self/fd/{descriptor}", 0))

    facts["by descriptor"] = act(ALICE, by_descriptor, place.file("open", 0o644)), place.state("open")
    return facts


@attack("a file that others may write, in a directory that they may not search, by /proc/self/fd")
def by_descriptor(place):
    place.directory("d", 0o700)
    facts = {}
    for mode in (0o666, 0o644, 0o600):
        path = place.file(f"d/{mode:o}", mode)
        for name, flags in (("O_PATH", os.O_PATH), ("O_RDONLY", RDONLY)):
            descriptor = os.open(path, flags)
            facts[f"{mode:o} {name}"] = act(ALICE, several, (read, f"/proc/self/fd/{descriptor}"),
                                            (write, f"/proc/self/fd/{descriptor}"), (read, path),
                                            (os.fchmod, descriptor, 0o777))
            os.close(descriptor)
    return facts


@attack("extended attributes of somebody else's file")
def foreign_xattrs(place):
    facts = {}
    for mode in (0o644, 0o666, 0o600):
        name = f"f{mode:o}"
        path = place.file(name, mode)
        place.root(os.setxattr, name, "user.a", b"1")
        place.root(os.setxattr, name, "trusted.a", SECRET)
        calls = [(os.getxattr, path, "user.a"), (os.getxattr, path, "trusted.a"), (lambda p: sorted(os.listxattr(p)), path)]
        for key in ("user.a", "user.b", "trusted.a", "security.a", "security.capability"):
            calls += [(os.setxattr, path, key, b"2"), (os.removexattr, path, key)]
        facts[name] = act(ALICE, several, *calls)
    place.directory("sticky", 0o1777)
    os.mkfifo(f"{place.behind}/fifo")
    os.chmod(f"{place.behind}/fifo", 0o666)
    act(ALICE, os.symlink, "x", place.path("sticky/link"))
    facts["others"] = act(ALICE, several, (os.setxattr, place.path("sticky"), "user.a", b"1"),
                          (os.setxattr, place.path("fifo"), "user.a", b"1"),
                          (lambda: os.setxattr(place.path("sticky/link"), "user.a", b"1", follow_symlinks=False),))
    return facts


@attack("hard links to files of somebody else")
def hard_links(place):
    place.directory("d", 0o777)
    facts = {}
    for name, mode, owner in (("private", 0o600, 0), ("readable", 0o644, 0), ("writable", 0o666, 0), ("setid", 0o4777, 0),
                              ("own", 0o600, ALICE.uid)):
        path = place.file(name, mode, owner, 0)
        facts[name] = act(ALICE, os.link, path, place.path(f"d/{name}")), os.stat(f"{place.behind}/{name}").st_nlink

    def by_descriptor(path, to):
        descriptor = os.open(path, os.O_PATH)
        os.link(f"/proc/self/fd/{descriptor}", to, follow_symlinks=True)

    facts["/proc/self/fd"] = act(ALICE, by_descriptor, place.path("readable"), place.path("d/by-fd"))
    os.link(f"{place.behind}/private", f"{place.behind}/d/second")
    facts["a second name"] = act(ALICE, read, place.path("d/second"))
    return facts


# ---- directories of others ----


@attack("names in directories of somebody else")
def foreign_directories(place):
    facts = {}
    for mode, owner, group in ((0o755, 0, 0), (0o711, 0, 0), (0o733, 0, 0), (0o700, 0, 0), (0o770, 0, BOTH), (0o1777, 0, 0),
                               (0o777, 0, 0), (0o1770, 0, BOTH), (0o744, 0, 0), (0o2775, 0, BOTH), (0o1777, ALICE.uid, 0),
                               (0o077, ALICE.uid, ALICE.gid)):
        name = f"{mode:o}-{owner}-{group}"
        at = place.directory(name, mode, owner, group)
        for file in ("a", "b", "c"):
            place.file(f"{name}/{file}", 0o644)
        place.file(f"{name}/bobs", 0o644, BOB.uid, BOB.gid)
        place.directory(f"{name}/d", 0o755)
        # The kernel knows these names.
        [attempt(os.stat, f"{at}/{file}") for file in ("a", "b", "c", "d", "absent")]
        facts[name] = act(ALICE, several, (lambda p: sorted(os.listdir(p)), at), (read, f"{at}/a"), (os.stat, f"{at}/absent"),
                          (lambda p: os.stat(p) and None, f"{at}/a"), (os.chdir, at), (make, f"{at}/new"),
                          (os.mkdir, f"{at}/newd"), (os.symlink, "x", f"{at}/newl"), (os.mkfifo, f"{at}/newp"),
                          (os.rename, f"{at}/bobs", f"{at}/a"), (os.rename, f"{at}/new", f"{at}/b"),
                          (os.rename, f"{at}/d", f"{at}/moved"), (os.unlink, f"{at}/c"), (os.rmdir, f"{at}/d"),
                          (os.rmdir, f"{at}/newd"), (os.unlink, f"{at}/newl"))
        facts[f"{name}, after"] = sorted(f"{n} {place.state(f'{name}/{n}')}" for n in os.listdir(f"{place.behind}/{name}"))
    return facts


@attack("rename over files and directories of somebody else, between directories")
def renames(place):
    place.directory("own", 0o755, ALICE.uid, ALICE.gid)
    place.directory("sticky", 0o1777)
    place.directory("free", 0o777)
    place.directory("closed", 0o755)
    for where in ("own", "sticky", "free", "closed"):
        place.file(f"{where}/mine", 0o644, ALICE.uid, ALICE.gid)
        place.file(f"{where}/theirs", 0o600, BOB.uid, BOB.gid)
        place.directory(f"{where}/theird", 0o755, BOB.uid, BOB.gid)
    facts = {}
    for one in ("own", "sticky", "free", "closed"):
        for other in ("own", "sticky", "free", "closed"):
            a, b = place.path(one), place.path(other)
            facts[f"{one} -> {other}"] = act(ALICE, several, (os.rename, f"{a}/theird", f"{b}/moved"),
                                             (os.rename, f"{b}/moved", f"{a}/theird"),
                                             (os.rename, f"{a}/theirs", f"{b}/took"),
                                             (os.rename, f"{b}/took", f"{a}/theirs"),
                                             (_exchange, f"{a}/mine", f"{b}/theirs"), (_exchange, f"{a}/mine", f"{b}/theirs"))
    facts["over"] = act(ALICE, several, (os.rename, place.path("own/mine"), place.path("sticky/theirs")),
                        (os.rename, place.path("own/mine"), place.path("closed/theirs")),
                        (os.rename, place.path("own/mine"), place.path("free/theirs")))
    return facts


def _exchange(one, other):
    if _libc.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), 2) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


@attack("names below a directory that only root may search, known to the kernel", needs={"searched"})
def hidden_names(place):
    place.directory("d", 0o700)
    place.directory("d/e", 0o755)
    place.file("d/e/f", 0o666)
    os.stat(place.path("d/e/f"))
    return as_each(several, (read, place.path("d/e/f")), (write, place.path("d/e/f")), (os.stat, place.path("d/e/absent")),
                   (os.listdir, place.path("d/e")), (make, place.path("d/e/new")), (os.unlink, place.path("d/e/f")))


@attack("watching what the user may not read")
def watched(place):
    facts = {}
    for mode in (0o700, 0o711, 0o733, 0o755):
        at = place.directory(f"d{mode:o}", mode)
        place.file(f"d{mode:o}/f", mode & 0o666)

        def user():
            inotify = _libc.inotify_init()
            return several((_watch, inotify, at), (_watch, inotify, f"{at}/f"))

        facts[f"{mode:o}"] = act(ALICE, user)
    return facts


def _watch(inotify, path):
    if _libc.inotify_add_watch(inotify, os.fsencode(path), 2) < 0:
        raise OSError(ctypes.get_errno(), "inotify_add_watch")


@attack("dot-dot out of a directory")
def dot_dot(place):
    place.directory("d", 0o700)
    place.file("d/secret", 0o666)
    place.directory("d/sub", 0o777)
    descriptor = os.open(place.path("d/sub"), RDONLY | os.O_DIRECTORY)

    def user():
        os.chdir(f"/proc/self/fd/{descriptor}")
        return several((read, "../secret"), (os.listdir, ".."), (read, "../../d/secret"), (make, "new"), (make, "../new"),
                       (lambda: os.stat("../secret", dir_fd=descriptor) and None,), (os.link, "../secret", "link"),
                       (os.chdir, ".."), (os.chroot, "."))

    outcome = act(ALICE, user)
    os.close(descriptor)
    return {"with a directory that root opened": outcome}


@attack("symbolic links into what only root may read")
def symbolic_links(place):
    place.directory("sticky", 0o1777)
    place.directory("d", 0o700)
    place.file("d/secret", 0o666)
    act(ALICE, os.symlink, "../d/secret", place.path("sticky/link"))
    act(ALICE, os.symlink, place.path("d"), place.path("sticky/dir"))
    return as_each(several, (read, place.path("sticky/link")), (write, place.path("sticky/link")),
                   (read, place.path("sticky/dir/secret")), (os.readlink, place.path("sticky/link")),
                   (os.truncate, place.path("sticky/link"), 0), (os.chmod, place.path("sticky/link"), 0o777))


# ---- other types of file ----


@attack("FIFOs and sockets by their mode")
def fifos(place):
    facts = {}
    for mode in (0o600, 0o622, 0o644, 0o666):
        name = f"p{mode:o}"
        os.mkfifo(f"{place.behind}/{name}")
        os.chmod(f"{place.behind}/{name}", mode)
        path = place.path(name)
        holder = os.open(path, RDWR | os.O_NONBLOCK)
        facts[name] = act(ALICE, several, (opens, path, RDONLY), (opens, path, WRONLY), (opens, path, RDWR))
        os.close(holder)
    return facts


@attack("devices")
def devices(place):
    facts = {}
    place.directory("own", 0o755, ALICE.uid, ALICE.gid)
    for name, kind, number in (("null", stat.S_IFCHR, os.makedev(1, 3)), ("loop", stat.S_IFBLK, os.makedev(7, 0))):
        os.mknod(f"{place.behind}/{name}", kind | 0o666, number)
        os.chmod(f"{place.behind}/{name}", 0o666)
        mine = place.path(f"own/{name}")
        facts[name] = act(ALICE, opens, place.path(name), RDONLY) if name == "null" else None, act(
            ALICE, attempt, os.mknod, mine, kind | 0o666, number)
    return facts


@attack("programs by their execute bits")
def execute_bits(place):
    facts = {}
    for mode, owner, group in ((0o711, 0, 0), (0o755, 0, 0), (0o644, 0, 0), (0o744, 0, 0), (0o754, 0, BOTH), (0o655, ALICE.uid, 0),
                               (0o645, 0, BOTH), (0o700, ALICE.uid, 0), (0o001, BOB.uid, BOB.gid)):
        name = f"{mode:o}-{owner}-{group}"
        path = place.program(name, mode, "/usr/bin/true", owner, group)
        facts[name] = act(ALICE, lambda p: runs(p) or "ran", path), act(ALICE, lambda p: len(read(p)) > 0, path)
    return facts


# ---- new files ----


@attack("owner, group and mode of what a user makes")
def new_files(place):
    facts = {}
    for mode, group in ((0o1777, 0), (0o777, BOTH), (0o2777, BOTH), (0o2777, BOBS), (0o770, BOTH)):
        name = f"d{mode:o}-{group}"
        at = place.directory(name, mode, 0, group)

        def user(mask):
            os.umask(mask)
            here = f"{at}/{mask:o}"
            return several((make, f"{here}f"), (make, f"{here}x", WRONLY | CREAT, 0o6777), (os.mkdir, f"{here}d", 0o777),
                           (os.mkfifo, f"{here}p", 0o777), (os.symlink, "x", f"{here}l"),
                           (os.mknod, f"{here}n", stat.S_IFREG | 0o6666))

        facts[name] = act(ALICE, user, 0), act(BOB, user, 0o077), sorted(
            f"{n} {place.state(f'{name}/{n}')}" for n in os.listdir(f"{place.behind}/{name}"))
    return facts


@attack("a file made without write permission for its maker")
def made_read_only(place):
    place.directory("d", 0o777)

    def user():
        path = place.path("d/f")
        descriptor = os.open(path, CREAT | EXCL | RDWR, 0o444)
        return several((os.write, descriptor, b"x"), (write, path), (os.truncate, path, 0), (os.ftruncate, descriptor, 0),
                       (os.chmod, path, 0o200), (read, path), (write, path))

    return {"uses": act(ALICE, user), "others": act(BOB, read, place.path("d/f")), "file": place.state("d/f")}


# ---- ACLs ----


@attack("a group that an ACL denies", needs={"acl"})
def denied_group(place):
    facts = {}
    lists = {"group": acl(("u", 6), ("g", 4), ("g", BOBS, 0), ("m", 4), ("o", 4)),
             "user": acl(("u", 6), ("u", BOB.uid, 0), ("g", 4), ("m", 4), ("o", 4)),
             "granted": acl(("u", 6), ("u", ALICE.uid, 6), ("g", 0), ("m", 6), ("o", 0)),
             "masked": acl(("u", 6), ("u", ALICE.uid, 6), ("g", BOBS, 6), ("g", 0), ("m", 4), ("o", 0))}
    for name, value in lists.items():
        path = place.file(name, 0o644)
        place.root(os.setxattr, name, ACCESS, value)
        facts[name] = as_each(several, (read, path), (write, path), (lambda p: os.access(p, 2), path)), acl_of(path)
    place.directory("d", 0o755)
    place.file("d/f")
    place.root(os.setxattr, "d", ACCESS, acl(("u", 7), ("g", 5), ("g", BOBS, 0), ("m", 5), ("o", 5)))
    facts["directory"] = as_each(several, (read, place.path("d/f")), (os.listdir, place.path("d")))
    return facts


@attack("a right that root took away from an ACL", needs={"acl", "changes"})
def revoked_acl(place):
    path = place.file("f", 0o600)
    place.root(os.setxattr, "f", ACCESS, acl(("u", 6), ("u", ALICE.uid, 6), ("g", 0), ("m", 6), ("o", 0)))
    yield
    before = as_each(read, path)
    place.root(os.removexattr, "f", ACCESS)
    place.root(os.chmod, "f", 0o600)
    yield
    other = place.file("g", 0o644)
    attempt(os.stat, other)
    act(BOB, read, other)
    place.root(os.setxattr, "g", ACCESS, acl(("u", 6), ("u", BOB.uid, 0), ("g", 4), ("m", 4), ("o", 4)))
    yield
    return {"before": before, "after": as_each(read, path), "denied since": as_each(read, other)}


@attack("setting ACLs", needs={"acl"})
def set_acls(place):
    own = place.file("own", 0o600, ALICE.uid, ALICE.gid)
    other = place.file("other", 0o666)
    directory = place.directory("d", 0o755, ALICE.uid, ALICE.gid)
    value = acl(("u", 6), ("u", BOB.uid, 6), ("g", 0), ("m", 6), ("o", 0))
    default = acl(("u", 7), ("u", BOB.uid, 7), ("g", 5), ("m", 7), ("o", 0))
    facts = {"own": act(ALICE, os.setxattr, own, ACCESS, value), "other": act(ALICE, os.setxattr, other, ACCESS, value),
             "default": act(ALICE, os.setxattr, directory, DEFAULT, default),
             "default of a file": act(ALICE, os.setxattr, own, DEFAULT, default),
             "bad": act(ALICE, os.setxattr, own, ACCESS, b"\2\0\0\0bad")}
    facts["bob"] = act(BOB, several, (read, own), (write, own, b"bob"), (os.chmod, own, 0o666), (os.removexattr, own, ACCESS))
    facts["mode"] = place.state("own"), acl_of(own), place.root(acl_of, "own")

    def makes():
        os.umask(0o077)
        return several((make, f"{directory}/f"), (os.mkdir, f"{directory}/e", 0o777), (make, f"{directory}/e/g", WRONLY | CREAT, 0o600))

    facts["inherited"] = act(ALICE, makes)
    facts["files"] = {name: (place.state(name), acl_of(place.path(name)), acl_of(place.path(name), DEFAULT))
                      for name in ("d/f", "d/e", "d/e/g")}
    facts["chmod"] = act(ALICE, os.chmod, own, 0o640), acl_of(own), act(BOB, write, own)
    return facts


@attack("files without a name in directories of another user")
def files_without_a_name(place):
    def user(directory):
        descriptor = os.open(directory, os.O_TMPFILE | RDWR, 0o6777)
        stat = os.fstat(descriptor)
        return (oct(stat.st_mode), stat.st_uid, attempt(os.link, f"/proc/self/fd/{descriptor}", f"{directory}/named"))

    modes = (0o700, 0o755, 0o777, 0o2777)
    return {oct(mode): act(ALICE, user, place.directory(f"d{mode:o}", mode)) for mode in modes}


# ---- locks ----


@attack("locks on files that the user may only read")
def locks_by_mode(place):
    path = place.file("f", 0o644)

    def user():
        descriptor = os.open(path, RDONLY)
        return several((fcntl.lockf, descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB), (fcntl.lockf, descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB),
                       (fcntl.flock, descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB))

    return {"locks": act(ALICE, user)}


@attack("two processes that wait for each other's lock", needs={"locks"})
def crosswise(place):
    path = place.file("f", 0o666)

    def user(pause, mine, other):
        descriptor = os.open(path, RDWR)
        fcntl.lockf(descriptor, fcntl.LOCK_EX, 1, mine)
        pause()
        return attempt(fcntl.lockf, descriptor, fcntl.LOCK_EX, 1, other)

    actors = [Actor(user_, user, mine, 1 - mine).until_pause() for mine, user_ in enumerate((ALICE, BOB))]
    actors[0].go_on()
    time.sleep(0.2)
    actors[1].go_on()
    time.sleep(0.2)
    gone = [actor.kill() for actor in actors]
    return {"the processes can be killed": gone, "the lock is free": act(ALICE, _locks, path)}


@attack("two processes that wait for each other's lock: one gets EDEADLK", needs={"locks"})
def deadlock(place):
    path = place.file("f", 0o666)

    def user(pause, mine, other):
        descriptor = os.open(path, RDWR)
        fcntl.lockf(descriptor, fcntl.LOCK_EX, 1, mine)
        pause()
        signal.setitimer(signal.ITIMER_REAL, 2)
        signal.signal(signal.SIGALRM, lambda *_: os._exit(1))
        return attempt(fcntl.lockf, descriptor, fcntl.LOCK_EX, 1, other)

    actors = [Actor(user_, user, mine, 1 - mine).until_pause() for mine, user_ in enumerate((ALICE, BOB))]
    actors[0].go_on()
    time.sleep(0.2)
    try:
        second = actors[1].go_on().result()
    except Exception:
        second = "waits"
    actors[0].kill()
    return {"the second": second}


def _locks(path):
    descriptor = os.open(path, RDWR)
    fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@attack("flock and fcntl locks of two users do not meet", needs={"locks"})
def two_kinds_of_locks(place):
    path = place.file("f", 0o666)

    def holds(pause):
        descriptor = os.open(path, RDWR)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        pause()

    actor = Actor(ALICE, holds).until_pause()
    outcome = act(BOB, _locks, path)
    actor.go_on().result()
    return {"fcntl beside flock": outcome}


# ---- what one user can use up ----


@attack("open files of one user", only="host: few descriptors", expected={"bob": "ok"})
def open_files(place):
    place.directory("d", 0o777)
    for number in range(400):
        place.file(f"d/{number}", 0o644)
    place.file("bobs", 0o644)

    def user(pause):
        held = []
        for number in range(400):
            try:
                held.append(os.open(f"{place.at}/d/{number}", RDONLY))
            except OSError:
                break
        pause()

    actor = Actor(ALICE, user).until_pause()
    outcome = act(BOB, several, (read, place.path("bobs")), (write, place.path("new"), b"x", WRONLY | CREAT))[0]
    actor.go_on().result()
    return {"bob": "ok" if outcome == SECRET.decode() else outcome}


@attack("locks of one user", only="ram: many locks", expected={"alice": "ENOLCK", "bob": "ok"})
def many_locks(place):
    path = place.file("f", 0o666)

    def user(pause):
        descriptor = os.open(path, RDWR)
        outcome = "no limit"
        for number in range(20_000):
            outcome = attempt(fcntl.lockf, descriptor, fcntl.LOCK_EX, 1, 2 * number)
            if outcome != "ok":
                break
        pause()
        return outcome

    def locks():
        descriptor = os.open(path, RDWR)
        fcntl.lockf(descriptor, fcntl.LOCK_EX, 1, 1)

    actor = Actor(ALICE, user).until_pause()
    outcome = act(BOB, locks)
    return {"alice": actor.go_on().result(), "bob": outcome}


@attack("watches of one user", only="host: small cache", expected={"bob": "ok"})
def watches(place):
    place.directory("d", 0o777)
    for number in range(6000):
        os.close(os.open(f"{place.behind}/d/{number}", CREAT | WRONLY, 0o644))
    place.directory("e", 0o755)
    for number in range(200):
        place.file(f"e/{number}", 0o644)

    def user(pause):
        inotify = _libc.inotify_init()
        for number in range(6000):
            if _libc.inotify_add_watch(inotify, f"{place.at}/d/{number}".encode(), 2) < 0:
                break
        pause()

    actor = Actor(ALICE, user).until_pause()
    outcome = act(BOB, several, *[(read, place.path(f"e/{number}")) for number in range(200)])
    actor.go_on().result()
    return {"bob": "ok" if set(outcome) == {SECRET.decode()} else str(set(outcome))}


@attack("hard links of one user", only="ram: small")
def many_links(place):
    place.directory("d", 0o777)
    path = place.file("d/f", 0o666, ALICE.uid, ALICE.gid)

    def user():
        for number in range(2000):
            try:
                os.link(path, f"{path}{number}")
            except OSError as error:
                return errno.errorcode[error.errno]
        return "2000 links"

    return {"links": act(ALICE, user)}


# ---- the options uid=, gid=, umask= ----


def _shown(place, name, mode, *calls):
    path = place.file(name, mode)
    outcome = act(ALICE, several, *[(call[0], path, *call[1:]) for call in calls])
    after = os.stat(f"{place.behind}/{name}")
    return outcome, after.st_uid, bool(after.st_mode & 0o6000)


@attack("set-id bits on a file of root's that the mount shows as the user's", needs={"shown"},
        expected={"chmod": (0, False), "write": (0, False), "chgrp": (0, False), "make": (0, False)})
def shown_as_own(place):
    facts = {}
    facts["chmod"] = _shown(place, "a", 0o755, (write, b"evil"), (os.chmod, 0o4755), (os.chmod, 0o6755))[1:]
    facts["write"] = _shown(place, "b", 0o6777, (write, b"evil"))[1:]
    facts["chgrp"] = _shown(place, "c", 0o2775, (os.chown, -1, BOTH), (os.chmod, 0o2775))[1:]
    place.directory("d", 0o777)

    def makes(path):
        return several((make, f"{path}/f", WRONLY | CREAT, 0o6777), (os.chmod, f"{path}/f", 0o6777))

    act(ALICE, makes, place.path("d"))
    after = place.root(os.stat, "d/f") if os.path.exists(f"{place.behind}/d/f") else None
    # Her own file may have the bits, where it is hers.
    bits = after is not None and after.st_uid == 0 and bool(after.st_mode & 0o6000)
    facts["make"] = (0, bits)
    return facts


@attack("owner and devices of files that the mount shows as the user's", needs={"shown"},
        expected={"chown": "EPERM", "mknod": "EPERM", "trusted": "EPERM"})
def shown_as_own_still(place):
    path = place.file("f", 0o644)
    place.directory("d", 0o777)
    return {"chown": act(ALICE, os.chown, path, BOB.uid, -1),
            "mknod": act(ALICE, os.mknod, place.path("d/n"), stat.S_IFCHR | 0o666, os.makedev(1, 3)),
            "trusted": act(ALICE, os.setxattr, path, "trusted.a", b"1")}
