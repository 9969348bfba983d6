//! Trees of the tests: their contents, and copies.

use std::collections::BTreeMap;
use vfs::{Attr, Base, Context, Errno, OpenFlags, PathAt, S_IFDIR, S_IFLNK, S_IFMT, S_IFREG, Vfs};

/// The attributes that a program sees of a file: mode, links, length, and contents or body.
pub(crate) type Seen = (u32, u32, u64, Vec<u8>);

/// Returns all of a regular file.
pub(crate) fn read(context: &Context, path: &str) -> Result<Vec<u8>, Errno> {
    let file = context.open(Base::CWD, path.as_bytes(), OpenFlags::RDONLY, 0)?;
    let mut bytes = vec![0; file.attr()?.size as usize + 1];
    let mut done = 0;
    loop {
        match file.read_at(done as u64, &mut bytes[done..])? {
            0 => break,
            read => done += read,
        }
    }
    bytes.truncate(done);
    Ok(bytes)
}

/// Writes at an offset; creates the file if it does not exist.
pub(crate) fn write(context: &Context, path: &str, offset: u64, bytes: &[u8]) -> Result<(), Errno> {
    let flags = OpenFlags::WRONLY.union(OpenFlags::CREAT);
    let file = context.open(Base::CWD, path.as_bytes(), flags, 0o644)?;
    file.write_at(offset, bytes).map(drop)
}

/// Returns the names in a directory.
pub(crate) fn names(context: &Context, path: &str) -> Result<Vec<String>, Errno> {
    let dir = context.open(Base::CWD, path.as_bytes(), OpenFlags::RDONLY.union(OpenFlags::DIRECTORY), 0)?;
    let mut names = Vec::new();
    loop {
        let entries = dir.next_entries()?;
        if entries.is_empty() {
            break;
        }
        let text = entries.into_iter().map(|entry| String::from_utf8_lossy(&entry.name).into_owned());
        names.extend(text.filter(|name| name != "." && name != ".."));
    }
    names.sort();
    Ok(names)
}

/// Returns every path with its attributes.
pub(crate) fn walk(context: &Context) -> Vec<(String, Attr)> {
    let (mut all, mut dirs) = (Vec::new(), vec![String::new()]);
    while let Some(dir) = dirs.pop() {
        for name in names(context, &format!("{dir}/")).expect("a listing") {
            let path = format!("{dir}/{name}");
            let attr = context.attr(Base::CWD, path.as_bytes(), false).expect("a listed name exists");
            if attr.is_dir() {
                dirs.push(path.clone());
            }
            all.push((path, attr));
        }
    }
    all
}

/// Returns what a program sees of each path.
pub(crate) fn seen(context: &Context) -> BTreeMap<String, Seen> {
    let of = |(path, attr): (String, Attr)| {
        let bytes = match attr.kind() {
            S_IFREG => read(context, &path).expect("contents"),
            S_IFLNK => context.read_link(Base::CWD, path.as_bytes()).expect("a body"),
            _ => Vec::new(),
        };
        let size = if attr.is_dir() { 0 } else { attr.size };
        (path, (attr.mode, attr.nlink, size, bytes))
    };
    walk(context).into_iter().map(of).collect()
}

/// Copies a tree into an empty one, hard links too.
pub(crate) fn copy(from: &Context, to: &Context) {
    to.set_umask(0);
    let mut known: BTreeMap<u64, String> = BTreeMap::new();
    let mut all = walk(from);
    all.sort_by_key(|(path, _)| path.matches('/').count());
    for (path, attr) in all {
        let name = path.as_bytes();
        if let Some(first) = known.get(&attr.ino) {
            to.link(PathAt::cwd(first.as_bytes()), PathAt::cwd(name), false).expect("a link");
            continue;
        }
        match attr.mode & S_IFMT {
            S_IFDIR => to.mkdir(Base::CWD, name, attr.mode & 0o7777).expect("a directory"),
            S_IFLNK => {
                let body = from.read_link(Base::CWD, name).expect("a body");
                to.symlink(&body, Base::CWD, name).expect("a link");
            }
            _ => {
                write(to, &path, 0, &read(from, &path).expect("contents")).expect("a copy");
                let set = vfs::SetAttr { mode: Some(attr.mode & 0o7777), ..vfs::SetAttr::default() };
                to.set_attr(Base::CWD, name, true, &set).expect("a mode");
            }
        }
        if !attr.is_dir() {
            known.insert(attr.ino, path);
        }
    }
    to.set_umask(0o022);
}

/// Fills a tree with some files of each kind.
pub(crate) fn fill(context: &Context) {
    for dir in ["/a", "/a/b", "/c", "/a/b/d"] {
        context.mkdir(Base::CWD, dir.as_bytes(), 0o755).expect("a directory");
    }
    for (number, path) in ["/f", "/a/f", "/a/g", "/a/b/f", "/c/g", "/a/b/d/f"].into_iter().enumerate() {
        let bytes: Vec<u8> = (0..number * 3000).map(|at| (at % 251) as u8 + 1).collect();
        write(context, path, 0, &bytes).expect("a file");
    }
    context.link(PathAt::cwd(b"/a/f"), PathAt::cwd(b"/c/h"), false).expect("a link");
    context.symlink(b"../f", Base::CWD, b"/a/l").expect("a link");
}

/// Returns a context of a new tree in memory.
pub(crate) fn memory() -> Context {
    Vfs::new(ramfs::RamFs::new()).context()
}
