"""Programs that are built for the scripts, once, in TARGET/fuse-tools: lightfoot, and what it is compared with or tested by.
Not a program.

Debian's source packages are fetched by apt-get with a list of sources of our own, so that the machine's own is left as it is.
"""

import functools
import os
import pathlib
import shutil
import subprocess

from mounts.machine import ROOT, TARGET, Skip, need_library, need_program, run

TOOLS = TARGET / "fuse-tools"


@functools.cache
def lightfoot():
    """The binary: $LIGHTFOOT, or what `cargo build --release` makes of this tree."""
    if "LIGHTFOOT" in os.environ:
        return pathlib.Path(os.environ["LIGHTFOOT"]).resolve()
    run(["cargo", "build", "--release", "--locked", "--quiet", "-p", "lightfoot-cli"], 1800, cwd=ROOT, stdout=None, stderr=None)
    return TARGET / "release" / "lightfoot"


def fuse_source(suite):
    """The source of libfuse in a version of Debian, fetched once."""
    need_program("dpkg-source", "dpkg-dev")
    need_program("apt-get")
    base = TOOLS / "debian" / suite
    if (base / "source").exists():
        return base / "source"
    (base / "lists/partial").mkdir(parents=True, exist_ok=True)
    (base / "list.sources").write_text(
        f"Types: deb-src\nURIs: http://deb.debian.org/debian\nSuites: {suite}\nComponents: main\n"
        "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
    )
    settings = {"Dir::Etc::sourcelist": base / "list.sources", "Dir::Etc::sourceparts": "/dev/null",
                "Dir::State::lists": base / "lists", "Dir::Cache": base / "cache", "Acquire::Retries": 1,
                "Acquire::http::Timeout": 20}
    apt = ["apt-get", "-qq"] + [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    try:
        run([*apt, "update"], 180)
        run([*apt, "source", "--download-only", "fuse3"], 400, cwd=base)
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        raise Skip(f"the source of libfuse cannot be fetched: {str(error).splitlines()[-1]}") from None
    run(["dpkg-source", "--no-check", "-x", next(base.glob("*.dsc")), base / "source"], 60)
    return base / "source"


def passthrough_hp():
    """libfuse's passthrough_hp of Debian 12, with one change: the option allow_other beside default_permissions, without
    which it refuses every user but root."""
    binary = TOOLS / "passthrough_hp"
    if binary.exists():
        return binary
    need_program("g++")
    need_library("fuse3", "libfuse3-dev")
    example = fuse_source("bookworm") / "example"
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


def passthrough_hp_of(suite, *libraries):
    """That of a newer libfuse, linked statically. Debian 13's (trixie) has the kernel's passthrough of reads and writes, which is
    its default; that of Debian's unstable (sid) has io_uring, with `-o io_uring`. `libraries`: pairs of a name and its package."""
    binary = TOOLS / f"passthrough_hp-{suite}"
    if binary.exists():
        return binary
    for program, package in (("g++", "g++"), ("meson", "meson"), ("ninja", "ninja-build")):
        need_program(program, package)
    for library in libraries:
        need_library(*library)
    source = fuse_source(suite)
    # A build that was cut off leaves a directory that meson does not accept.
    shutil.rmtree(source / "build", ignore_errors=True)
    switches = "--default-library=static --buildtype=release -Dexamples=true -Dutils=false -Dtests=false -Duseroot=false"
    run(f"meson setup build {switches} && ninja -C build example/passthrough_hp", 300, cwd=source)
    return shutil.copy(source / "build/example/passthrough_hp", binary)


def passthrough_hp_uring():
    binary = passthrough_hp_of("sid", ("liburing", "liburing-dev"), ("numa", "libnuma-dev"))
    if "io_uring" not in run([binary, "--help"], 10, check=False).stdout:
        raise Skip("this libfuse was built without io_uring")
    return binary


def compiled(source, *flags):
    """The program of a C source beside this file, compiled anew when the source is younger."""
    source = pathlib.Path(__file__).with_name(source)
    binary = TOOLS / f"fuse-{source.stem}"
    if not binary.exists() or binary.stat().st_mtime < source.stat().st_mtime:
        need_program("gcc")
        TOOLS.mkdir(parents=True, exist_ok=True)
        run(f"gcc -O2 -Wall -Wextra -Werror '{source}' {' '.join(flags)} -o '{binary}'", 60)
    return binary


def null_fs():
    """The file system that does nothing (null.c): what a request costs before anyone has done any work."""
    need_library("fuse3", "libfuse3-dev")
    return compiled("null.c", "$(pkg-config --cflags --libs fuse3)")


def cargo_tool(crate, version):
    """The program of a crate from crates.io, built with its own lock file."""
    binary = TOOLS / "crates" / "bin" / crate
    if not binary.exists():
        environment = dict(os.environ, CARGO_TARGET_DIR=str(TOOLS / "crates-build"), CARGO_NET_RETRY="2")
        command = ["cargo", "install", crate, "--version", version, "--locked", "--quiet", "--root", TOOLS / "crates"]
        try:
            run(command, 900, env=environment)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            raise Skip(f"the crate {crate} cannot be built: {str(error).splitlines()[-1]}") from None
    return binary
