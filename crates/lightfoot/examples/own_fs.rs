//! A read-only file system over a list of paths and contents, as a program would embed its assets.
//!
//! Three requests are enough: look up a name, list a directory, read bytes of a file. The VFS does the rest (paths,
//! `..`, permissions, caching, open files). Requests that the file system does not implement fail.
//!
//! Run it with `cargo run --release -p lightfoot --example own_fs`.

use lightfoot::fs::{Attr, FileSystem, Inode, Listed, NewInode, NextNames, Open, Request, S_IFDIR, S_IFREG, Want};
use lightfoot::{Errno, Fallback, Vfs};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A file or directory. Its place in the list is its *node*: the number that the VFS uses for it.
struct Node {
    name: &'static str,
    parent: usize,
    /// A file's contents; `None`: a directory.
    contents: Option<&'static str>,
}

/// The file system. The first node is the root.
struct Assets {
    nodes: Vec<Node>,
    lookups: Arc<AtomicU32>,
}

impl Assets {
    fn new(files: &[(&'static str, &'static str)], lookups: Arc<AtomicU32>) -> Self {
        let mut assets = Self { nodes: vec![Node { name: "", parent: 0, contents: None }], lookups };
        for (path, contents) in files {
            let (dirs, name) = path.rsplit_once('/').unwrap_or(("", path));
            let mut parent = 0;
            for dir in dirs.split('/').filter(|dir| !dir.is_empty()) {
                parent = assets.find(parent, dir.as_bytes()).unwrap_or_else(|| assets.add(dir, parent, None));
            }
            assets.add(name, parent, Some(contents));
        }
        assets
    }

    fn add(&mut self, name: &'static str, parent: usize, contents: Option<&'static str>) -> usize {
        self.nodes.push(Node { name, parent, contents });
        self.nodes.len() - 1
    }

    /// The nodes in a directory, with their places.
    fn children(&self, dir: usize) -> impl Iterator<Item = (usize, &Node)> {
        self.nodes.iter().enumerate().skip(1).filter(move |(_, node)| node.parent == dir)
    }

    fn find(&self, dir: usize, name: &[u8]) -> Option<usize> {
        self.children(dir).find(|(_, node)| node.name.as_bytes() == name).map(|(place, _)| place)
    }

    /// What the VFS wants to know of a node: attributes as `stat(2)` has them.
    fn describe(&self, place: usize) -> NewInode {
        let attr = match self.nodes[place].contents {
            Some(contents) => Attr { mode: S_IFREG | 0o444, nlink: 1, size: contents.len() as u64, ..Attr::default() },
            None => {
                let subdirs = self.children(place).filter(|(_, node)| node.contents.is_none()).count();
                Attr { mode: S_IFDIR | 0o555, nlink: 2 + subdirs as u32, ..Attr::default() }
            }
        };
        // Inode numbers are ours to choose, but not 0. `valid` stays at its default: no other program changes anything here.
        NewInode { node: place as u64, attr: Attr { ino: place as u64 + 1, ..attr }, ..NewInode::default() }
    }
}

impl FileSystem for Assets {
    fn root(&self) -> NewInode {
        self.describe(0)
    }

    /// One name in one directory. Called once: then the answer is in the cache, a name that is not there (`ENOENT`) as
    /// well.
    fn lookup(&self, _: &Request, dir: &Inode, name: &[u8], _: &mut NextNames<'_>) -> Result<NewInode, Errno> {
        self.lookups.fetch_add(1, Relaxed);
        self.find(dir.node() as usize, name).map(|place| self.describe(place)).ok_or(Errno::ENOENT)
    }

    /// Entries after the one with the cookie `after`. A cookie is above 0 and stays the same for an entry: its place in
    /// the list is enough. An entry may come with its attributes, which cost nothing here: then no lookup follows.
    fn read_dir(
        &self,
        _: &Request,
        dir: &Open<'_>,
        after: u64,
        _: Want,
        emit: &mut dyn FnMut(Listed) -> bool,
    ) -> Result<(), Errno> {
        for (place, node) in self.children(dir.inode.node() as usize).filter(|(place, _)| *place as u64 > after) {
            if !emit(Listed::with_inode(node.name.as_bytes(), place as u64, self.describe(place))) {
                break;
            }
        }
        Ok(())
    }

    fn read(&self, _: &Request, file: &Open<'_>, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        let contents = self.nodes[file.inode.node() as usize].contents.ok_or(Errno::EISDIR)?.as_bytes();
        let rest = usize::try_from(offset).ok().and_then(|offset| contents.get(offset..)).unwrap_or_default();
        let len = rest.len().min(buf.len());
        buf[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }
}

fn main() -> io::Result<()> {
    let files = [
        ("index.html", "<h1>hello</h1>\n"),
        ("css/site.css", "h1 { color: green }\n"),
        ("css/print/page.css", "h1 { color: black }\n"),
    ];
    let lookups = Arc::new(AtomicU32::new(0));
    let vfs = Vfs::new(Assets::new(&files, lookups.clone()));
    let ctx = vfs.context();

    // A working directory, dots and slashes: the file system never hears of them.
    ctx.set_current_dir("/css/print")?;
    println!("page.css says {:?}", ctx.read_to_string("../print//./page.css")?.trim_end());
    for entry in ctx.read_dir("/css")?.with_metadata() {
        let entry = entry?;
        println!("in /css: {:?}, {} links", entry.file_name(), entry.metadata()?.nlink());
    }

    // What is not implemented is refused, and the cache stays as it was.
    let error = ctx.create_dir("/new").expect_err("it makes nothing");
    println!("making a directory: {error}");

    // However often a name is used, the file system was called once for it.
    for _ in 0..1000 {
        ctx.metadata("/css/print/page.css")?;
        ctx.metadata("/none").expect_err("it is not there");
    }
    println!("{} lookups, {} walks that missed", lookups.load(Relaxed), vfs.fallbacks(Fallback::Miss));
    Ok(())
}
