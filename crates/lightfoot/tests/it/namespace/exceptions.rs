//! What is not compared with the kernel, and why. Nothing else is left out of the operations that both have.

/// What is left alone, the reason, and where it is seen to.
#[allow(dead_code, reason = "it is for readers")]
pub(crate) const EXCEPTIONS: [(&str, &str, &str); 19] = [
    (
        "what is done by an open file after its process has changed its credentials",
        "Lightfoot's open files keep the credentials of open(2); Linux uses those of the caller",
        "generate.rs, closed_by",
    ),
    (
        "mounting on the root or the working directory, by pivot_root too, and moving or unmounting it",
        "what the root is to Linux depends on how the process came to it; a walk by `..` at a root that something is mounted on goes \
         there on Linux, and not in Lightfoot",
        "is_root and refuses_pivot of both sides",
    ),
    (
        "which error pivot_root returns, and what it does with a directory that was removed",
        "Linux fails with ENOENT for what was removed or unmounted before it checks mounts",
        "extra and refuses_pivot of both sides (the errors are in mounts/lifetime.rs)",
    ),
    (
        "pivot_root after chroot",
        "Linux needs the root of any mount for the old root, Lightfoot the root of the namespace",
        "generate/extra.rs, acted",
    ),
    (
        "SEEK_DATA and SEEK_HOLE where storage was reserved and not written",
        "a hole on tmpfs, data in ramfs: lseek(2) leaves it to the file system",
        "generate/extra.rs, seek_for",
    ),
    (
        "security.capability",
        "Linux takes it from a file that is written, cut or given away; nothing is executed here, and it stays",
        "generate/extra.rs, NAMES (its rules are compared by acl.rs)",
    ),
    (
        "fs.protected_regular and fs.protected_fifos at level 2 in directories that are open to their group only",
        "Policy knows on and off",
        "generate.rs, dir_mode",
    ),
    (
        "the order of entries in a listing",
        "an exchange puts both entries first on tmpfs, and leaves them where they are in Lightfoot",
        "list of both sides sorts each batch",
    ),
    (
        "the position of a directory that was listed",
        "a number of the file system's own: lseek(2) and readdir(3) promise nothing of it",
        "lseek of both sides",
    ),
    (
        "RESOLVE_CACHED, and EAGAIN of a scoped walk that something moved under",
        "what is cached is each side's own affair; Lightfoot goes on where Linux fails with EAGAIN",
        "kernel/extra.rs, TRIES",
    ),
    (
        "RESOLVE_NO_XDEV with O_CREAT, or without RESOLVE_NO_SYMLINKS",
        "open: at a mount point with O_CREAT and O_EXCL Linux fails with EXDEV and Lightfoot with EEXIST; not to follow: behind an absolute link \
         Linux 6.18 fails with EXDEV if the path is relative, on one mount too, since it compares with a root that it has not looked up",
        "generate/extra.rs, open_how",
    ),
    (
        "removing or moving what is a mount point of the other process only",
        "EBUSY in Lightfoot; Linux unmounts it there (docs/semantics.md)",
        "MountPoints of both sides",
    ),
    (
        "a name by AT_EMPTY_PATH for what the other process has opened",
        "Linux compares the objects of the credentials, of which each process has its own",
        "generate/extra.rs, link_open",
    ),
    (
        "in forks, the sizes of directories",
        "tmpfs counts 20 bytes for a name; a directory of the base keeps its size, since the base may be an ext4, which counts blocks",
        "Less in kernel.rs",
    ),
    (
        "in forks, access times",
        "a read sets them in the cache only; the next change of the file, or a lookup, brings the time of the fork's record",
        "Less in kernel.rs",
    ),
    (
        "in forks, truncate(2) to the length that the file has",
        "only tmpfs leaves the times as they are, and only of a file without storage",
        "Less in kernel.rs",
    ),
    (
        "in forks, O_TMPFILE with O_EXCL",
        "FileSystem::create does not receive O_EXCL, and a file system that reports attributes decides which file may have a first name",
        "Less in kernel.rs",
    ),
    (
        "the storage and the holes of files, in forks of a base that nothing else changes",
        "the fork stores changed pages over the base's file, and does not read where that has holes",
        "Less in kernel.rs",
    ),
    ("FALLOC_FL_ZERO_RANGE", "tmpfs has none", "ops/extra.rs, Storage"),
];
