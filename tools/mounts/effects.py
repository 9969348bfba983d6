"""What options of docs/mounting.md do where no Rust test shows it: EFFECTS. `matrix` runs them. Not a program.

An effect is seen from outside: what a call returns, what the kernel's table of mounts shows, what `lightfoot stats`
counts. Each check also shows that the effect is absent without the option, so that it cannot pass by chance. PINNED names the
Rust test of each other option.
"""

import contextlib
import ctypes
import errno
import os
import pathlib
import re
import stat
import struct
import subprocess
import time

from mounts.actors import User, act
from mounts.checks import equal, raises
from mounts.machine import ROOT, need_program, run, wait_for
from mounts.mount import is_mounted, plain, workdir
from mounts.peers import lightfoot

EFFECTS = {}

# Rust tests, and the options whose effect they show.
PINNED = """
crates/cli/tests/it/mounting/options.rs remount_changes_the_flags_of_a_mount: ro rw noexec exec nosymfollow symfollow
crates/cli/tests/it/mounting/options.rs a_killed_server_leaves_no_mount_with_auto_unmount: auto_unmount
crates/cli/tests/it/mounting/sources.rs access_times_move_as_the_options_say: noatime atime strictatime relatime nodiratime diratime
crates/cli/tests/it/mounting/monitoring.rs each_file_system_of_a_tree_is_shown_with_its_budget: cache
crates/cli/tests/it/mounting/objects.rs options_decide_about_renames_of_directories_and_how_long_a_request_may_take: endpoint region rename_dirs timeout
crates/cli/tests/it/mounting/objects.rs programs_that_keep_attributes_find_them_again: symlinks metadata
crates/cli/tests/it/mounting/objects.rs find_lists_each_directory_once_and_a_warm_one_requests_nothing: nometadata
crates/objectfs/tests/it/s3/attributes.rs links_are_objects_as_rclone_writes_them: nosymlinks
crates/fuse/tests/it/messages.rs only_the_user_who_mounts_may_send_requests_without_allow_other: allow_other
crates/fuse/tests/it/session/callers.rs permissions_are_checked_by_lightfoot_or_by_the_kernel: own_permissions default_permissions
crates/fuse/tests/it/session/callers.rs owners_and_modes_are_shown_with_their_overrides: uid gid umask
crates/fuse/tests/it/session/nodes.rs replies_have_the_times_to_live_of_the_options: ttl entry_timeout attr_timeout negative_timeout
crates/fuse/tests/it/session/locks.rs without_the_option_the_kernel_keeps_the_locks: locks nolocks
crates/fuse/tests/mount/users.rs a_mount_of_root_has_nosuid_and_nodev_unless_requested: nosuid suid nodev dev
crates/fuse/tests/mount/carriers.rs io_uring_that_is_required_and_not_offered_is_an_error_of_the_mount: uring no_uring
crates/fuse/tests/mount/labels.rs files_of_each_kind_are_made_with_labels_on: security_ctx
crates/cli/tests/it/mounting/hanging.rs each_call_that_hangs_times_out_and_the_mount_goes_on: call_timeout
crates/fuse/tests/mount/timeouts.rs a_mount_whose_server_does_not_reply_ends: request_timeout
crates/fuse/tests/mount/main.rs the_kernel_drops_names_when_it_has_too_many: max_names
crates/fuse/src/transport/rings/plan.rs each_queue_is_served_and_only_our_processors_have_pinned_threads: pin
crates/hostfs/tests/it/policies.rs the_policy_decides_whether_changes_by_others_are_seen: always exclusive
crates/hostfs/tests/it/policies.rs changes_by_others_in_watched_directories_are_seen: watch nowatch
crates/hostfs/tests/it/mount_points.rs mount_points_are_entered_only_with_the_option: cross stay
crates/hostfs/tests/it/descriptor_budget.rs thousands_of_files_are_used_with_few_descriptors: fds
crates/ramfs/src/tests.rs options_say_what_the_root_is_and_how_names_are_compared: mode casefold
crates/ramfs/src/tests.rs a_write_takes_the_room_there_is_and_a_cut_gives_it_back: size nr_blocks
crates/ramfs/src/tests.rs each_thing_that_is_made_takes_an_inode: nr_inodes
crates/ramfs/src/tests.rs a_user_has_as_much_as_the_quota_says: usrquota_block_hardlimit usrquota_inode_hardlimit
crates/fuse/tests/it/session/files.rs without_opens_files_are_read_and_written_by_node: no_open open
"""


def check_effects(only, verdict):
    """Each option does what its row says, and no row is without a check."""
    for name, function in EFFECTS.items():
        if only in name:
            with verdict.catch(f"option {name}"):
                function()
                verdict.ok(f"option {name}")
    with verdict.catch("each option has a check"):
        checked = {name for names in EFFECTS for name in names.split()}
        for line in PINNED.strip().splitlines():
            file, test, *names = line.replace(":", " ").split()
            assert f"fn {test}()" in (ROOT / file).read_text(), f"{file} has no {test}"
            checked |= set(names)
        rows = (ROOT / "docs/mounting.md").read_text().split("<!-- options: begin")[1].split("<!-- options: end")[0]
        first = [line.split("|")[1] for line in rows.splitlines() if line.startswith("| `")]
        documented = {name.partition("=")[0] for cell in first for name in re.findall(r"`([^`]+)`", cell)}
        assert checked == documented, f"in tools/mounts/effects.py or docs/mounting.md alone: {sorted(checked ^ documented)}"
        verdict.ok(f"each of {len(documented)} options has a check here or in Rust")


def effect(names):
    """Registers the check of some options."""

    def register(function):
        EFFECTS[names] = function
        return function

    return register


def ram(options=""):
    return plain("ram:", options)


def host(options=""):
    return plain("{source}", options)


def count(mount, operation):
    """How often the kernel has sent requests of a kind."""
    return sum(of["count"] for of in mount.stats()["snapshot"]["ops"] if of["name"] == operation)


def soon(condition):
    """Waits for what must come true within the time of a cache."""
    assert wait_for(condition, 10), "it has not come true within 10 s"


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
        place = workdir() / "mapped"
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
        undo.callback(run, ["umount", "-l", str(place)])
        yield place


@effect("idmap")
def idmap():
    first = 100000
    for source in (ram, host):
        with source("allow_other") as mount:
            raises(errno.EINVAL, mapped(mount.dir, first).__enter__)
    # The host could not check the user of a change.
    for options in ("allow_other,idmap", "idmap,no_open,allow_other", "idmap,uid=5"):
        refused = False
        try:
            (ram if "=" in options or "no_open" in options else host)(options).down()
        except RuntimeError as why:
            refused = "nobody would check" in str(why)
        assert refused, f"{options} is not refused"
    if tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 12):
        with ram("allow_other,idmap") as mount, mapped(mount.dir, first) as place:
            mapped_owner(mount.dir, place, first)
        # Only the mounting user: the kernel lets nobody else in.
        with host("idmap") as mount:
            (mount.dir / "f").write_text("x")
            equal("x", (mount.backing / "f").read_text())
            equal("EACCES", act(User("7", 7, 7, ()), os.listdir, mount.dir))


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


@effect("threads max_threads")
def threads():
    number = {}
    for option in ("threads=2", "threads=7", "max_threads=7"):
        with ram(f"{option},no_uring") as mount:
            number[option] = mount.threads()
    equal((5, 5), tuple(number[option] - number["threads=2"] for option in ("threads=7", "max_threads=7")))


@effect("clone_fd no_clone_fd")
def clone_fd():
    channels = {}
    for option in ("clone_fd", "no_clone_fd"):
        with ram(f"threads=4,{option},no_uring") as mount:
            links = [os.readlink(f"/proc/{mount.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{mount.pid}/fd")]
            channels[option] = links.count("/dev/fuse")
    # One for each further thread; another descriptor may be for notices.
    equal(3, channels["clone_fd"] - channels["no_clone_fd"])


@effect("writeback nowriteback")
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
        control = workdir() / "fusectl"
        control.mkdir()
        run(["mount", "-t", "fusectl", "none", str(control)])
        try:
            equal("7", (control / str(os.minor(device)) / "max_background").read_text().strip())
        finally:
            run(["umount", str(control)])


@effect("kernel_cache auto_cache")
def kernel_cache():
    for option, is_kept in (("kernel_cache", True), ("kernel_cache,auto_cache", False)):
        with host(f"attr_timeout=0,{option}") as mount:
            (mount.backing / "f").write_text("text")
            # A file that changed less than two seconds ago has no version.
            time.sleep(2.5)
            (mount.dir / "f").read_text()
            before = count(mount, "read")
            equal("text", (mount.dir / "f").read_text())
            equal((option, is_kept), (option, count(mount, "read") == before))


@effect("passthrough nopassthrough")
def passthrough():
    for option, served_by_kernel in (("passthrough", True), ("passthrough,nopassthrough", False)):
        with host(option) as mount:
            (mount.backing / "f").write_bytes(b"x" * 100000)
            equal(100000, len((mount.dir / "f").read_bytes()))
            equal((option, served_by_kernel), (option, count(mount, "read") == 0))


@effect("acl noacl")
def acl():
    entry = ["setfacl", "-m", "u:1001:r"]
    need_program("setfacl", "acl")
    for option, works in (("acl", True), ("noacl", False)):
        with ram(option) as mount:
            (mount.dir / "f").write_text("")
            done = run([*entry, str(mount.dir / "f")], 10, check=False)
            equal((option, works), (option, done.returncode == 0))


@effect("nonempty")
def nonempty():
    at = workdir() / "nonempty"
    at.mkdir()
    (at / "file").write_text("")
    words = [lightfoot(), "mount", "ram:", str(at), "--daemon"]
    done = run(words, 20, check=False)
    assert done.returncode != 0 and not is_mounted(at), f"it is mounted over a file: {done.stdout}"
    run([*words, "-o", "nonempty"], 20)
    equal([], os.listdir(at))
    run(["umount", str(at)], 20)
    equal(["file"], os.listdir(at))


@effect("fsname")
def fsname():
    with ram("fsname=some-name") as mount:
        equal("some-name", run(["findmnt", "-n", "-o", "SOURCE", str(mount.dir)]).stdout.strip())
