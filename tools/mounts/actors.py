"""Users who act on a mount: processes of root's that have taken another user's identity. Not a program.

An actor runs one function in its own process, with the user's groups and without capabilities. What it returns, or
the name of the error that it raised, comes back to the caller. It may pause in the middle, while others act.
"""

import collections
import ctypes
import errno
import os
import pickle
import select
import signal
import struct
import sys
import time
import traceback

User = collections.namedtuple("User", "name uid gid groups")

ROOT = User("root", 0, 0, ())
# 2001 is the group of both. Only Bob is in 2002.
ALICE = User("alice", 1001, 1001, (1001, 2001))
BOB = User("bob", 1002, 1002, (1002, 2001, 2002))
BOTH, BOBS = 2001, 2002

# An actor that takes longer hangs.
LIMIT_S = 8
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4
_libc = ctypes.CDLL(None, use_errno=True)


class Stuck(RuntimeError):
    """An actor did not come to its end or to its pause."""


def error_name(error):
    return errno.errorcode.get(error.errno, str(error.errno))


def attempt(function, *arguments, **more):
    """What `function` returns (`ok` for None), or the name of the error."""
    try:
        value = function(*arguments, **more)
    except OSError as error:
        return error_name(error)
    return "ok" if value is None else value


def become(user):
    """Takes the user's identity, for good."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.umask(0o022)
    if user.uid != 0:
        os.setgroups(user.groups)
        os.setresgid(user.gid, user.gid, user.gid)
        os.setresuid(user.uid, user.uid, user.uid)
    # As in a process that the user started.
    _libc.prctl(_PR_SET_DUMPABLE, 1)


class Actor:
    """A process of `user` that runs `function(pause, *arguments)`. `pause()` returns when the caller calls `go_on`. Each
    reply must come within `limit_s`."""

    def __init__(self, user, function, *arguments, limit_s=LIMIT_S):
        here, there = os.pipe()
        wait, go = os.pipe()
        self.limit_s = limit_s
        self.name = f"{user.name}: {getattr(function, '__name__', function)}"
        self.pid = os.fork()
        if self.pid == 0:
            os.close(here)
            os.close(go)
            _child(user, there, wait, function, arguments)
        os.close(there)
        os.close(wait)
        self.replies, self.go = here, go

    def _receive(self):
        head = self._read(4)
        return pickle.loads(self._read(struct.unpack("<I", head)[0]))

    def _read(self, count):
        data, end = b"", time.monotonic() + self.limit_s
        while len(data) < count:
            if not select.select([self.replies], [], [], max(0, end - time.monotonic()))[0]:
                raise Stuck(f"{self.name}: nothing after {self.limit_s} s")
            part = os.read(self.replies, count - len(data))
            if not part:
                raise Stuck(f"{self.name}: its process has ended")
            data += part
        return data

    def until_pause(self):
        kind, value = self._receive()
        if kind != "pause":
            raise Stuck(f"{self.name}: it ended before its pause: {kind} {value}")
        return self

    def go_on(self):
        os.write(self.go, b"x")
        return self

    def result(self):
        """What the function returned, or the name of its error; the actor has ended."""
        try:
            kind, value = self._receive()
        except Stuck:
            self.kill()
            raise
        self.end()
        if kind == "bug":
            raise RuntimeError(f"{self.name}: {value}")
        return value

    def kill(self):
        """Kills the process. Whether it was gone within three seconds."""
        os.kill(self.pid, signal.SIGKILL)
        return self.end(3)

    def end(self, limit_s=LIMIT_S):
        """Waits until the process has ended. Whether it did."""
        for descriptor in (self.replies, self.go):
            try:
                os.close(descriptor)
            except OSError:
                pass
        end = time.monotonic() + limit_s
        while self.pid:
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                self.pid = 0
            elif time.monotonic() > end:
                return False
            else:
                time.sleep(0.002)
        return True


def _child(user, replies, wait, function, arguments):
    """The actor's process."""

    def send(kind, value):
        data = pickle.dumps((kind, value))
        os.write(replies, struct.pack("<I", len(data)) + data)

    def pause():
        send("pause", None)
        os.read(wait, 1)

    try:
        become(user)
        try:
            value = function(pause, *arguments)
            send("done", "ok" if value is None else value)
        except OSError as error:
            send("done", error_name(error))
    except BaseException:  # The caller reports it.
        send("bug", traceback.format_exc(limit=-4))
    finally:
        sys.stdout.flush()
        os._exit(0)


def act(user, function, *arguments, **more):
    """What `function(*arguments)` returns to this user, or the name of the error."""
    return Actor(user, lambda _pause: function(*arguments, **more)).result()


def repeat(user, function, *arguments):
    """An actor that repeats `function` until it is killed; errors do not matter."""

    def forever(pause):
        pause()
        while True:
            try:
                function(*arguments)
            except OSError:
                pass

    return Actor(user, forever).until_pause().go_on()
