"""The command line of tools/check/mounts and tools/bench/mounts: subcommands, their options, verdicts. Not a program.

A subcommand is a function that `command` registers. It gets its options and a `Verdict`; what it returns is written to the
file of `--json`, with the machine. Every line of a verdict begins with `ok`, `FAILED` or `SKIPPED`. The exit status is 1 if
something failed, else 0; also where there is no root or no /dev/fuse, with one line SKIPPED.
"""

import argparse
import contextlib
import importlib
import inspect
import json
import pathlib
import signal
import sys
import traceback

from mounts import machine
from mounts.machine import Skip, Unsupported, say

COMMANDS = {}
EPILOG = """$LIGHTFOOT names the binary; without it, `cargo build --release` makes one. $LIGHTFOOT_OPTIONS are further
options for each `lightfoot mount -o`, $FUSE_WORKDIR is where to mount (/tmp).

KIND is tmpfs, disk, ext4, xfs, btrfs (in a file), overlay, passthrough_hp (libfuse's example, of Debian 12), passthrough_hp-new
(of Debian 13, with the kernel's passthrough), bindfs, null (a file system that does nothing), lightfoot-ram or lightfoot-host (a
directory). It may have options: lightfoot-host:exclusive+threads=2 is `-o exclusive,threads=2`; `fork` among them is a fork of the
tree. Mirrored directories lie on a tmpfs; disk/KIND has its own on the disk of the target directory, xfs/KIND on XFS. Lightfoot's
mounts are made with allow_other,suid,dev, as tmpfs has them."""


def description(error):
    """What was wrong: the message of an error that a check raised on purpose, or where another one came from."""
    is_own = isinstance(error, (RuntimeError, AssertionError, OSError)) and str(error)
    return (str(error) if is_own else traceback.format_exc(limit=-3)).strip()[-1500:]


class Verdict:
    """Counts, and prints a line for each result."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def ok(self, what, count=1):
        self.passed += count
        say(f"ok - {what}")

    def fail(self, what):
        self.failed += 1
        say(f"FAILED - {what}")

    def skip(self, what):
        self.skipped += 1
        say(f"SKIPPED - {what}")

    @contextlib.contextmanager
    def catch(self, what):
        """An exception in the block is a failure of `what`, or a reason to skip it."""
        try:
            yield
        except (Skip, Unsupported) as why:
            self.skip(f"{what}: {why}")
        except Exception as error:  # What a check meets is what it reports.
            self.fail(f"{what}: {description(error)}")

    def end(self):
        """Prints the sum. The exit status."""
        if not (self.passed or self.failed or self.skipped):
            self.fail("nothing was chosen")
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        say(f"{'FAILED' if self.failed else 'ok'}: {self.passed} passed, {self.failed} failed{skipped}")
        return 1 if self.failed else 0


def argument(name, default=None, about="", **more):
    """An argument of a subcommand: a switch if the default is False, repeated if it is a list, else of the default's type."""
    if default is False:
        more["action"] = "store_true"
    elif isinstance(default, list):
        more["action"] = "append"
    elif default is not None:
        more["type"] = type(default)
    return name, {"default": default, "help": about, **more}


def on(default):
    return argument("--on", default, "what to mount: KIND[,KIND]", metavar="KINDS")


OPTIONS = argument("--options", "", "further options for `lightfoot mount -o`", metavar="OPTS")
JSON = argument("--json", None, "write all results to this file", type=pathlib.Path, metavar="FILE")
LIST = argument("--list", False, "only list what would run")


def command(name, time, *arguments):
    """Registers a function as a subcommand; the first line of its documentation is its summary."""

    def add(function):
        COMMANDS[name] = function, time, arguments
        return function

    return add


def _parser(about):
    class Format(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
        """Keeps line breaks; names defaults."""

    parser = argparse.ArgumentParser(description=about, epilog=EPILOG, formatter_class=Format)
    names = parser.add_subparsers(dest="command", required=True, metavar="SUBCOMMAND", title="subcommands")
    for name, (function, time, arguments) in COMMANDS.items():
        text = inspect.getdoc(function)
        of = names.add_parser(name, help=f"{text.splitlines()[0]} {time}.", description=f"{text}\n\n{time}.", epilog=EPILOG,
                              formatter_class=Format)
        for flag, more in arguments:
            of.add_argument(flag, **more)
    return parser


def main(about, modules):
    """Runs the subcommand of the command line; `modules` have the subcommands. Does not return."""
    for module in modules:
        importlib.import_module(f"mounts.{module}")
    options, verdict = _parser(about).parse_args(), Verdict()
    # As exceptions, so that mounts are unmounted.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))
    try:
        if not getattr(options, "list", False):
            machine.need_fuse()
        machine.facts()  # With the load at the start.
        results = COMMANDS[options.command][0](options, verdict)
        if getattr(options, "json", None):
            options.json.write_text(json.dumps({"machine": machine.facts(), **results}, indent=1) + "\n")
        if not getattr(options, "list", False):
            sys.exit(verdict.end())
    except Skip as why:
        say(f"SKIPPED: {why}")
    except KeyboardInterrupt:
        sys.exit(130)
    sys.exit(0)
