//! The notices of a session, with a sender that records them.

use super::*;
use crate::notices::Notice;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use vfs::{Base, FileSystem, Inode, Invalidator, MountFlags, NewInode, NextNames, PathAt, Request, S_IFDIR, S_IFREG};

const SUPER: Caller = Caller::of(0, 0);

/// A file system that changes behind the tree. `d` is a directory; `f` and `g` in it are one file. A name with `n` first is a file.
struct ChangingFs(Arc<OnceLock<Invalidator>>);

const ROOT: u64 = 1;
const D: u64 = 2;
const F: u64 = 3;

impl FileSystem for ChangingFs {
    fn root(&self) -> NewInode {
        new(ROOT, S_IFDIR | 0o755)
    }

    fn mounted(&self, invalidator: Invalidator) {
        assert!(self.0.set(invalidator).is_ok());
    }

    fn lookup(&self, _: &Request, dir: &Inode, name: &[u8], _: &mut NextNames<'_>) -> Result<NewInode, Errno> {
        match (dir.node(), name) {
            (ROOT, b"d" | b"e") => Ok(new(if name == b"d" { D } else { 4 }, S_IFDIR | 0o755)),
            (D, b"f" | b"g") => Ok(new(F, S_IFREG | 0o644)),
            (_, [b'n', number @ ..]) => {
                Ok(new(100 + str::from_utf8(number).unwrap().parse::<u64>().unwrap(), S_IFREG | 0o644))
            }
            _ => Err(Errno::ENOENT),
        }
    }
}

fn new(node: u64, mode: u32) -> NewInode {
    NewInode { node, attr: Attr { ino: node, mode, nlink: 1, ..Attr::default() }, ..NewInode::default() }
}

mod small_cache;

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sent {
    Entry(u64, Vec<u8>),
    Inode(u64),
    Drop(u64, Vec<u8>),
    Delete(u64, u64, Vec<u8>),
    Prune(Vec<u64>),
    All,
}

fn sent(notice: &Notice) -> Sent {
    match notice {
        Notice::Expire { parent, name } => Sent::Entry(*parent, name.to_vec()),
        Notice::Drop { parent, name } => Sent::Drop(*parent, name.to_vec()),
        Notice::Delete { parent, child, name } => Sent::Delete(*parent, *child, name.to_vec()),
        Notice::Prune(nodes) => Sent::Prune(nodes.to_vec()),
        Notice::InvalInode { node, offset: 0, len: 0 } => Sent::Inode(*node),
        Notice::InvalInode { .. } => panic!("{notice:?}"),
    }
}

struct Writer(mpsc::Sender<Sent>);

impl Sender for Writer {
    fn send(&self, notice: &Notice) -> io::Result<()> {
        drop(self.0.send(sent(notice)));
        Ok(())
    }

    fn all(&self) -> io::Result<()> {
        drop(self.0.send(Sent::All));
        Ok(())
    }
}

struct Case {
    session: Arc<Session>,
    vfs: Vfs,
    invalidator: Invalidator,
    sent: Receiver<Sent>,
}

fn case(options: SessionOptions) -> Case {
    let invalidator = Arc::new(OnceLock::new());
    let vfs = Vfs::new(ChangingFs(invalidator.clone()));
    let session = Session::new(&vfs, options).unwrap();
    session.note_expiry(true);
    let (send, sent) = mpsc::channel();
    session.notify_by(Writer(send));
    session.allow_waiting(1);
    Case { session, vfs, invalidator: invalidator.get().unwrap().clone(), sent }
}

impl Case {
    fn look(&self, dir: u64, name: &str) -> u64 {
        self.session.lookup(&SUPER, dir, name.as_bytes()).unwrap().node
    }

    /// Returns the notices since the last call, without duplicates.
    fn sent(&self) -> Vec<Sent> {
        self.session.flush_notices();
        self.sent.try_iter().collect::<BTreeSet<_>>().into_iter().collect()
    }
}

#[test]
fn changes_of_the_tree_become_notices_unless_the_session_makes_them() {
    let vfs = Vfs::new(ramfs::RamFs::new());
    let context = vfs.context();
    let session = Session::new(&vfs, SessionOptions { tree_changes: true, ..SessionOptions::default() }).unwrap();
    session.note_expiry(true);
    let (send, received) = mpsc::channel();
    session.notify_by(Writer(send));
    let sent = || {
        session.flush_notices();
        received.try_iter().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()
    };
    let of_name = |name: &str| [Sent::Entry(ROOT_NODE, name.into()), Sent::Inode(ROOT_NODE)];
    context.mkdir(Base::CWD, b"/d", 0o755).unwrap();
    assert_eq!(sent(), of_name("d"));
    context.mknod(Base::CWD, b"/d/f", S_IFREG | 0o644, 0).unwrap();
    assert_eq!(sent(), [], "the kernel does not know /d");
    let d = session.lookup(&SUPER, ROOT_NODE, b"d").unwrap().node;
    context
        .rename(PathAt::new(Base::CWD, b"/d/f"), PathAt::new(Base::CWD, b"/g"), vfs::RenameFlags::default())
        .unwrap();
    let [name, root] = of_name("g");
    assert_eq!(sent(), [name, Sent::Entry(d, b"f".into()), root, Sent::Inode(d)]);
    {
        let _serving = session.serving();
        session.mkdir(&SUPER, ROOT_NODE, b"own", NewMode::new(0o755, 0)).unwrap();
        session.unlink(&SUPER, ROOT_NODE, b"g").unwrap();
    }
    assert_eq!(sent(), []);
    context.rmdir(Base::CWD, b"/d").unwrap();
    let [name, root] = of_name("d");
    assert_eq!(sent(), [name, root, Sent::Inode(d)]);
    // Without sessions nothing is published.
    drop(session);
    context.mkdir(Base::CWD, b"/d", 0o755).unwrap();
}

#[test]
fn the_kernel_gets_notices_of_what_it_knows_and_of_nothing_else() {
    let case = case(SessionOptions::default());
    let invalidator = &case.invalidator;
    // The tree has d and f; the kernel has only the root.
    case.vfs.context().attr(Base::CWD, b"/d/f", true).unwrap();
    invalidator.entry(ROOT, b"d");
    assert_eq!(case.sent(), [Sent::Entry(ROOT_NODE, b"d".into())]);
    case.vfs.context().attr(Base::CWD, b"/d/f", true).unwrap();
    invalidator.entry(D, b"f");
    invalidator.inode(D);
    invalidator.inode(F);
    assert_eq!(case.sent(), []);
    let d = case.look(ROOT_NODE, "d");
    invalidator.entry(D, b"none");
    assert_eq!(case.sent(), [Sent::Entry(d, b"none".into())], "the kernel may have cached that it does not exist");
    let f = case.look(d, "f");
    invalidator.entry(D, b"f");
    invalidator.inode(ROOT);
    // The file may have lost a name, and its contents may have changed under the name that it has now.
    assert_eq!(case.sent(), [Sent::Entry(d, b"f".into()), Sent::Inode(ROOT_NODE), Sent::Inode(f)]);
    invalidator.inode(F);
    invalidator.inode(D);
    assert_eq!(case.sent(), [Sent::Inode(d), Sent::Inode(f)]);
    // It gets no notices of nodes that it has forgotten.
    case.session.forget(f, 1);
    invalidator.inode(F);
    assert_eq!(case.sent(), []);
    invalidator.all();
    assert_eq!(case.sent(), [Sent::All]);
}

#[test]
fn a_file_that_was_removed_is_deleted_in_the_kernel_unless_it_had_several_names() {
    let case = case(SessionOptions::default());
    let d = case.look(ROOT_NODE, "d");
    let removed = |name: &str| {
        case.vfs.context().attr(Base::CWD, format!("/d/{name}").as_bytes(), true).unwrap();
        case.invalidator.removed(D, name.as_bytes());
        case.sent()
    };
    assert_eq!(removed("n7"), [Sent::Entry(d, b"n7".into())], "the kernel does not know the file");
    let file = case.look(d, "n7");
    assert_eq!(removed("n7"), [Sent::Inode(file), Sent::Delete(d, file, b"n7".into())]);
    case.invalidator.removed(ROOT, b"d");
    assert_eq!(case.sent(), [Sent::Entry(ROOT_NODE, b"d".into()), Sent::Inode(d)], "never a directory");
    // The kernel has learned of two names, though the file has one now.
    let (_, node) = case.session.nodes.find(file).unwrap();
    node.note_names(&Attr { nlink: 2, mode: S_IFREG, ..Attr::default() });
    assert_eq!(removed("n7"), [Sent::Entry(d, b"n7".into()), Sent::Inode(file)]);
}

#[test]
fn a_file_with_two_names_is_one_node_with_one_notice() {
    let case = case(SessionOptions::default());
    let d = case.look(ROOT_NODE, "d");
    let (f, g) = (case.look(d, "f"), case.look(d, "g"));
    assert_eq!((f, case.session.nodes.lookups(f)), (g, Some(2)));
    case.invalidator.inode(F);
    assert_eq!(case.sent(), [Sent::Inode(f)]);
}

#[test]
fn the_root_is_one_node_also_if_its_number_is_the_root_nodes() {
    let session = case(SessionOptions::default()).session;
    let root = session.nodes.find(ROOT_NODE).unwrap().1.identity();
    for ino in [ROOT_NODE, ROOT_NODE + 1] {
        assert_eq!(session.nodes_of(root, ino).len(), 1);
    }
}

#[test]
fn a_file_in_two_mounts_has_a_notice_for_each() {
    let case = case(SessionOptions::default());
    case.vfs.context().bind(PathAt::cwd(b"/d"), PathAt::cwd(b"/e"), MountFlags::default(), false).unwrap();
    let (d, e) = (case.look(ROOT_NODE, "d"), case.look(ROOT_NODE, "e"));
    let (f, g) = (case.look(d, "f"), case.look(e, "f"));
    assert!(d != e && f != g);
    let both = |one: Sent, other: Sent| Vec::from_iter(BTreeSet::from([one, other]));
    case.invalidator.inode(F);
    assert_eq!(case.sent(), both(Sent::Inode(f), Sent::Inode(g)));
    case.invalidator.entry(D, b"x");
    assert_eq!(case.sent(), both(Sent::Entry(d, b"x".into()), Sent::Entry(e, b"x".into())));
    // The first is forgotten, the second keeps its number.
    case.session.forget(f, 1);
    assert_eq!(case.look(e, "f"), g);
    case.invalidator.inode(F);
    assert_eq!(case.sent(), [Sent::Inode(g)]);
}

#[test]
fn everything_is_each_node_and_each_name() {
    let case = case(SessionOptions::default());
    let d = case.look(ROOT_NODE, "d");
    let f = case.look(d, "f");
    let mut all = BTreeSet::new();
    case.session.everything(|notice| assert!(all.insert(sent(&notice))));
    let names = [Sent::Entry(ROOT_NODE, b"d".into()), Sent::Entry(d, b"f".into())];
    let nodes = [ROOT_NODE, d, f].map(Sent::Inode);
    assert_eq!(all, names.into_iter().chain(nodes).collect());
}

#[test]
fn a_kernel_with_too_many_nodes_must_forget_unused_ones() {
    let case = case(SessionOptions { max_nodes: 10, ..SessionOptions::default() });
    let names: Vec<String> = (0..10).map(|number| format!("n{number}")).collect();
    names.iter().take(9).for_each(|name| assert!(case.look(ROOT_NODE, name) > ROOT_NODE));
    assert_eq!(case.sent(), [], "these are not too many");
    (10..40).for_each(|number| assert!(case.look(ROOT_NODE, &format!("n{number}")) > ROOT_NODE));
    let sent = case.sent();
    assert!(!sent.is_empty());
    for one in sent {
        assert!(matches!(&one, Sent::Prune(nodes) if nodes.iter().all(|node| *node > ROOT_NODE)), "{one:?}");
    }
    assert_eq!(case.session.known_nodes(), 40, "only its forget makes them go");
}

#[test]
fn a_kernel_that_cannot_prune_drops_names_of_files_that_are_not_open() {
    let case = case(SessionOptions::default());
    case.session.note_kernel_without_prune();
    let d = case.look(ROOT_NODE, "d");
    let (open, n7) = (case.look(ROOT_NODE, "n1"), case.look(ROOT_NODE, "n7"));
    case.session.open(&SUPER, open, 0).unwrap();
    // The clock comes by a second time when nothing has used them.
    let dropped = (0..10).flat_map(|_| {
        case.session.make_much_room();
        case.sent()
    });
    assert_eq!(dropped.collect::<BTreeSet<_>>(), BTreeSet::from([Sent::Drop(ROOT_NODE, b"n7".into())]));
    assert_eq!(case.session.known_nodes(), 4, "the root, {d}, {open} and {n7}");
}

#[test]
fn a_kernel_that_cannot_expire_names_drops_none_of_directories_and_open_files() {
    let case = case(SessionOptions::default());
    case.session.note_expiry(false);
    let d = case.look(ROOT_NODE, "d");
    let (f, n1) = (case.look(d, "f"), case.look(ROOT_NODE, "n1"));
    case.session.open(&SUPER, f, 0).unwrap();
    case.invalidator.entry(ROOT, b"d");
    case.invalidator.entry(D, b"f");
    case.invalidator.entry(ROOT, b"n1");
    case.invalidator.entry(ROOT, b"absent");
    let drop = |name: &[u8]| Sent::Drop(ROOT_NODE, name.into());
    let nodes = [d, f, n1].map(Sent::Inode);
    let expected = BTreeSet::from_iter(nodes.into_iter().chain([drop(b"absent"), drop(b"n1")]));
    assert_eq!(case.sent(), Vec::from_iter(expected));
    let mut all = BTreeSet::new();
    case.session.everything(|notice| assert!(all.insert(sent(&notice))));
    let nodes = [ROOT_NODE, d, f, n1].map(Sent::Inode);
    assert_eq!(all, nodes.into_iter().chain([drop(b"n1")]).collect());
}

#[test]
fn no_notice_follows_the_end_of_the_session() {
    let Case { session, vfs, invalidator, sent } = case(SessionOptions::default());
    vfs.context().attr(Base::CWD, b"/d", true).unwrap();
    session.flush_notices();
    drop(session);
    invalidator.entry(ROOT, b"d");
    invalidator.all();
    assert_eq!(sent.iter().collect::<Vec<_>>(), [], "and the sender has gone");
}

#[test]
fn the_end_of_a_session_drops_all_nodes_and_handles() {
    let case = case(SessionOptions { locks: true, ..SessionOptions::default() });
    let d = case.look(ROOT_NODE, "d");
    case.look(d, "f");
    case.session.opendir(&SUPER, d).unwrap();
    case.session.end();
    assert_eq!((case.session.known_nodes(), case.session.open_handles()), (1, 0));
    let holders = case.vfs.context().holders(Base::CWD, b"/").unwrap();
    assert!(holders.iter().all(|holder| holder.path == Path::new("/")), "{holders:?}");
}
