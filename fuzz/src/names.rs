//! Names that differ in case alone are one: a directory of such names against a map.

use crate::guarded_tree::listed;
use crate::input::Input;
use ramfs::{RamFs, RamOptions};
use std::collections::BTreeMap;
use vfs::{Base, Context, Errno, PathAt, RenameFlags, S_IFREG, Vfs};

/// Pieces of names. Some are letters whose cases differ in length, or that have more than two
/// cases. Some are bytes that are not UTF-8.
const PIECES: &[&[u8]] = &[
    b"a",
    b"A",
    b"bC",
    b"Bc",
    "é".as_bytes(),
    "É".as_bytes(),
    "ß".as_bytes(),
    "ẞ".as_bytes(),
    "İ".as_bytes(),
    "i\u{307}".as_bytes(),
    b"I",
    b"i",
    "Σ".as_bytes(),
    "σ".as_bytes(),
    "ς".as_bytes(),
    b"\xff",
    b"\xc3",
    b".",
    b"..",
    b"0123456789abcdef",
    b"0123456789ABCDEF",
    "\u{10400}".as_bytes(),
    "\u{10428}".as_bytes(),
    b" ",
];

/// The key of a name. Names that differ in case alone have equal keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Known {
    Letters(Vec<char>),
    Bytes(Vec<u8>),
}

fn known(name: &[u8]) -> Known {
    match std::str::from_utf8(name) {
        Ok(name) => Known::Letters(name.chars().flat_map(char::to_lowercase).collect()),
        Err(_) => Known::Bytes(name.to_vec()),
    }
}

/// Makes a name of one to four pieces, or of raw bytes. Returns `None` if the result is not a valid
/// name of a file.
fn name(input: &mut Input<'_>) -> Option<Vec<u8>> {
    let shape = input.byte();
    let name = if shape & 0x80 == 0 {
        (0..=shape % 4).flat_map(|_| input.pick(PIECES).to_vec()).collect()
    } else {
        input.take(usize::from(shape & 0x3f)).to_vec()
    };
    let is_name = !name.is_empty() && name != b"." && name != b".." && !name.iter().any(|&b| b == 0 || b == b'/');
    is_name.then_some(name)
}

/// Runs the operations that the input encodes on the names of one directory, and compares the
/// results with a map.
pub fn run(data: &[u8]) {
    let options = RamOptions { case_insensitive: true, ..RamOptions::default() };
    let vfs = Vfs::new(RamFs::with_options(&options));
    let context = vfs.context();
    context.mkdir(Base::CWD, b"/Dir", 0o755).expect("a new directory");
    let mut input = Input::new(data);
    let mut model: BTreeMap<Known, (Vec<u8>, u64)> = BTreeMap::new();
    let mut steps = 0;
    while !input.is_empty() && steps < 64 {
        steps += 1;
        let kind = input.byte();
        let Some(name) = name(&mut input) else { continue };
        let path = [if kind & 0x80 == 0 { &b"/Dir/"[..] } else { b"/dIR/" }, &name].concat();
        let there = model.get(&known(&name)).cloned();
        match kind % 5 {
            0 => create(&context, &path, &name, &mut model),
            1 => {
                let gone = context.unlink(Base::CWD, &path);
                assert_eq!(gone.is_ok(), model.remove(&known(&name)).is_some(), "{name:?}: {gone:?}");
            }
            2 => rename(&context, &path, &name, &mut input, &mut model),
            3 => list(&context, &model),
            _ => {}
        }
        if kind % 5 > 2 {
            let found = context.attr(Base::CWD, &path, false).map(|attr| attr.ino);
            assert_eq!(found, there.map(|(_, ino)| ino).ok_or(Errno::ENOENT), "{name:?}");
        }
    }
    list(&context, &model);
    assert_eq!(vfs.stats().live_dentries, model.len() + 2);
}

fn create(context: &Context, path: &[u8], name: &[u8], model: &mut BTreeMap<Known, (Vec<u8>, u64)>) {
    let made = context.mknod(Base::CWD, path, S_IFREG | 0o644, 0);
    if model.contains_key(&known(name)) {
        assert_eq!(made, Err(Errno::EEXIST), "{name:?}");
        return;
    }
    assert_eq!(made, Ok(()), "{name:?}");
    let ino = context.attr(Base::CWD, path, false).expect("what was just made").ino;
    model.insert(known(name), (name.to_vec(), ino));
}

fn rename(
    context: &Context,
    path: &[u8],
    old: &[u8],
    input: &mut Input<'_>,
    model: &mut BTreeMap<Known, (Vec<u8>, u64)>,
) {
    let flags = RenameFlags::from_bits(u32::from(input.byte()) % 3).unwrap_or_default();
    let Some(new) = name(input) else { return };
    let to = [&b"/Dir/"[..], &new].concat();
    let answer = context.rename(PathAt::cwd(path), PathAt::cwd(&to), flags);
    let (from, onto) = (model.get(&known(old)).cloned(), model.get(&known(&new)).cloned());
    let same = known(old) == known(&new);
    let Some((_, ino)) = from else {
        assert_eq!(answer, Err(Errno::ENOENT), "{old:?} {new:?} {flags:?}");
        return;
    };
    if flags.contains(RenameFlags::EXCHANGE) {
        assert_eq!(answer.is_ok(), onto.is_some(), "{old:?} {new:?}: {answer:?}");
        if let (Ok(()), Some((_, other))) = (answer, onto)
            && !same
        {
            model.insert(known(old), (old.to_vec(), other));
            model.insert(known(&new), (new, ino));
        }
    } else if answer.is_ok() {
        // One file under one name, written otherwise: nothing, or the new way to write it; the listing shows which.
        model.remove(&known(old));
        model.insert(known(&new), (new, ino));
    } else {
        assert!(flags.contains(RenameFlags::NOREPLACE) && onto.is_some(), "{old:?} {new:?}: {answer:?}");
    }
}

/// Checks that the listing of the directory has each name of `model` once, with the inode number of
/// its file, and has no other name.
fn list(context: &Context, model: &BTreeMap<Known, (Vec<u8>, u64)>) {
    let mut seen = BTreeMap::new();
    for entry in listed(context, b"/dir") {
        assert_eq!(seen.insert(known(&entry.name), entry.ino), None, "{:?} twice", entry.name);
    }
    let expected: BTreeMap<_, _> = model.iter().map(|(known, (_, ino))| (known.clone(), *ino)).collect();
    assert_eq!(seen, expected);
}
