//! Tests of [`super`]: round trips, and messages that are cut at each byte.

use super::*;
use crate::wire::abi::{ExtHeader, Secctx, ext};

const UNIQUE: u64 = 0x1122_3344_5566_7788;

/// A message of an operation, with the parts of its arguments.
fn message(opcode: u32, parts: &[&[u8]]) -> Vec<u8> {
    let arguments = parts.concat();
    let len = (size_of::<InHeader>() + arguments.len()) as u32;
    let header = InHeader { len, opcode, unique: UNIQUE, nodeid: 7, uid: 1, gid: 2, pid: 3, ..InHeader::default() };
    [header.as_bytes(), &arguments].concat()
}

/// Messages with what is read from them.
fn examples() -> Vec<(Vec<u8>, Operation<'static>)> {
    let setattr = SetattrIn { valid: 1 << 4, fh: 2, size: 3, atime: u64::MAX, atimensec: 5, ..SetattrIn::default() };
    let write = WriteIn { fh: 2, offset: 9, size: 3, write_flags: 4, ..WriteIn::default() };
    let rename = Rename2In { newdir: 5, flags: 2, ..Rename2In::default() };
    let setxattr = SetxattrIn { size: 3, flags: 1 };
    let lock = LkIn { fh: 1, owner: 2, ..LkIn::default() };
    let create = CreateIn { flags: 2, mode: 0o100_600, ..CreateIn::default() };
    let read = ReadIn { fh: 3, offset: 4, size: 5, ..ReadIn::default() };
    let call = IoctlIn { fh: 3, cmd: 4, in_size: 3, out_size: 9, ..IoctlIn::default() };
    vec![
        (message(opcode::LOOKUP, &[b"name\0"]), Operation::Lookup(b"name")),
        (message(opcode::SYMLINK, &[b"name\0to/that\0"]), Operation::Symlink(b"name", b"to/that")),
        (message(opcode::SETATTR, &[setattr.as_bytes()]), Operation::Setattr(setattr)),
        (message(opcode::WRITE, &[write.as_bytes(), b"a\0b"]), Operation::Write(write, b"a\0b")),
        (message(opcode::RENAME2, &[rename.as_bytes(), b"a\0b\0"]), Operation::Rename(rename, b"a", b"b")),
        (
            message(opcode::RENAME, &[&5u64.to_ne_bytes(), b"a\0b\0"]),
            Operation::Rename(Rename2In { flags: 0, ..rename }, b"a", b"b"),
        ),
        (
            message(opcode::SETXATTR, &[setxattr.as_bytes(), b"user.a\0xyz"]),
            Operation::Setxattr(setxattr, b"user.a", b"xyz"),
        ),
        (message(opcode::SETLKW, &[lock.as_bytes()]), Operation::Setlkw(lock)),
        (message(opcode::READDIRPLUS, &[read.as_bytes()]), Operation::Readdirplus(read)),
        (message(opcode::TMPFILE, &[create.as_bytes(), b"/\0"]), Operation::Tmpfile(create)),
        (message(opcode::IOCTL, &[call.as_bytes(), b"a\0b"]), Operation::Ioctl(call, b"a\0b")),
        (message(opcode::GETATTR, &[]), Operation::Getattr),
        (message(4096, &[b"anything"]), Operation::Unknown),
    ]
}

#[test]
fn what_the_kernel_sends_is_read() {
    for (message, operation) in examples() {
        let request = Request::parse(&message).expect("a request");
        assert_eq!(request.operation, operation);
        let InHeader { unique, nodeid, uid, gid, pid, .. } = request.header;
        assert_eq!((unique, nodeid, uid, gid, pid), (UNIQUE, 7, 1, 2, 3));
    }
}

#[test]
fn a_message_that_is_cut_anywhere_is_malformed() {
    for (message, _) in examples() {
        for len in 0..message.len() {
            let expected = if len < size_of::<InHeader>() { Malformed::NoHeader } else { Malformed::Request(UNIQUE) };
            assert_eq!(Request::parse(&message[..len]), Err(expected), "{message:?}");
        }
    }
}

#[test]
fn a_message_whose_arguments_are_cut_is_malformed_or_another_operation_without_arguments() {
    for (message, operation) in examples() {
        for len in size_of::<InHeader>()..message.len() {
            let mut cut = message[..len].to_vec();
            cut[..4].copy_from_slice(&(len as u32).to_ne_bytes());
            let parsed = Request::parse(&cut);
            let is_without = operation == Operation::Unknown;
            assert_eq!(parsed.is_ok(), is_without, "{operation:?}, {len}");
        }
    }
}

#[test]
fn lengths_that_lie_are_malformed() {
    let check = |bytes: &[u8]| assert_eq!(Request::parse(bytes), Err(Malformed::Request(UNIQUE)));
    let write = WriteIn { size: 4, ..WriteIn::default() };
    check(&message(opcode::WRITE, &[write.as_bytes(), b"abc"]));
    check(&message(opcode::IOCTL, &[IoctlIn { in_size: 4, ..IoctlIn::default() }.as_bytes(), b"abc"]));
    check(&message(opcode::SETXATTR, &[SetxattrIn { size: u32::MAX, flags: 0 }.as_bytes(), b"a\0b"]));
    for count in [2, u32::MAX] {
        let head = BatchForgetIn { count, dummy: 0 };
        check(&message(opcode::BATCH_FORGET, &[head.as_bytes(), ForgetOne::default().as_bytes()]));
    }
    check(&message(opcode::INIT, &[&[0; 15]]));
    for len in [0u32, 39, 46, u32::MAX] {
        let mut bytes = message(opcode::LOOKUP, &[b"name\0"]);
        bytes[..4].copy_from_slice(&len.to_ne_bytes());
        check(&bytes);
    }
    // More extensions than bytes; the end of the name is in them.
    let mut bytes = message(opcode::LOOKUP, &[b"name\0\0\0\0"]);
    bytes[36..38].copy_from_slice(&2u16.to_ne_bytes());
    check(&bytes);
    bytes[36..38].copy_from_slice(&1u16.to_ne_bytes());
    check(&bytes);
}

#[test]
fn names_are_names() {
    for bad in [&b"\0"[..], b"a/b\0", b"/\0", b"no end", b""] {
        for code in [opcode::LOOKUP, opcode::UNLINK, opcode::RMDIR] {
            assert_eq!(Request::parse(&message(code, &[bad])), Err(Malformed::Request(UNIQUE)), "{bad:?}");
        }
    }
    assert_eq!(
        Request::parse(&message(opcode::REMOVEXATTR, &[b"user.a/b\0"])).map(|request| request.operation),
        Ok(Operation::Removexattr(b"user.a/b"))
    );
}

#[test]
fn nodes_to_forget_are_all_read() {
    let nodes = [ForgetOne { nodeid: 3, nlookup: 1 }, ForgetOne { nodeid: 4, nlookup: u64::MAX }];
    let head = BatchForgetIn { count: 2, dummy: 0 };
    let message = message(opcode::BATCH_FORGET, &[head.as_bytes(), nodes.as_bytes()]);
    let Ok(Request { operation: Operation::BatchForget(forgets), .. }) = Request::parse(&message) else {
        panic!("a request");
    };
    assert_eq!(forgets.iter().collect::<Vec<_>>(), nodes);
}

#[test]
fn an_old_kernels_init_is_read() {
    let old = [7u32, 31, 131_072, 5].as_bytes().to_vec();
    let Ok(Request { operation: Operation::Init(init), .. }) =
        Request::parse(&message(opcode::INIT, &[&old])).as_ref().copied()
    else {
        panic!("a request");
    };
    assert_eq!(init, InitIn { major: 7, minor: 31, max_readahead: 131_072, flags: 5, ..InitIn::default() });
}

/// A request to make a directory, with these extensions.
fn with_extensions(parts: &[&[u8]]) -> Vec<u8> {
    let extensions = parts.concat();
    let mut bytes = message(opcode::MKDIR, &[&[0; 8], b"dir\0", &extensions]);
    bytes[36..38].copy_from_slice(&((extensions.len() / 8) as u16).to_ne_bytes());
    bytes
}

/// An extension with this content, whose length makes it a multiple of 8 bytes.
fn extension(kind: u32, content: &[&[u8]]) -> Vec<u8> {
    let content = content.concat();
    let size = (size_of::<ExtHeader>() + content.len()) as u32;
    [ExtHeader { size, kind }.as_bytes(), &content].concat()
}

#[test]
fn extensions_are_read_and_unknown_ones_skipped() {
    let group = |group: u32| extension(ext::GROUPS, &[&1u32.to_ne_bytes(), &group.to_ne_bytes()]);
    let unknown = extension(33, &[&[0xff; 16]]);
    let none = extension(ext::GROUPS, &[&[0; 8]]);
    for (parts, expected) in [
        (vec![], None),
        (vec![&group(7)[..]], Some(7)),
        (vec![&unknown, &group(0)], Some(0)),
        (vec![&group(7), &unknown], Some(7)),
        (vec![&none], None),
        (vec![&unknown], None),
    ] {
        let message = with_extensions(&parts);
        let request = Request::parse(&message).expect("a request");
        assert_eq!(request.operation, Operation::Mkdir(MkdirIn::default(), b"dir"));
        assert_eq!(request.extensions.group, expected);
    }
}

#[test]
fn extensions_whose_lengths_lie_are_malformed() {
    let head = |size: u32, kind: u32| ExtHeader { size, kind }.as_bytes().to_vec();
    let numbers = |first: u32, second: u32| [first, second].as_bytes().to_vec();
    let all = [
        head(0, 33),
        head(4, 33),
        head(12, 33),
        head(16, 33),
        head(u32::MAX, 33),
        // Groups without their number; more of them than there are bytes.
        head(8, ext::GROUPS),
        [head(16, ext::GROUPS), numbers(2, 7)].concat(),
        [head(16, ext::GROUPS), numbers(u32::MAX, 7)].concat(),
        // A good one before a bad one.
        [head(16, ext::GROUPS), numbers(1, 7), head(9, 33)].concat(),
    ];
    for bytes in &all {
        assert_eq!(Request::parse(&with_extensions(&[bytes])), Err(Malformed::Request(UNIQUE)), "{bytes:?}");
    }
}

/// A label, with zeros up to a multiple of 8 bytes.
fn label(name: &[u8], value: &[u8]) -> Vec<u8> {
    let mut bytes = [Secctx { size: value.len() as u32, padding: 0 }.as_bytes(), name, b"\0", value].concat();
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

#[test]
fn labels_of_security_modules_are_read() {
    type Pairs = &'static [(&'static [u8], &'static [u8])];
    let all: [Pairs; 5] = [
        &[],
        &[(b"security.selinux", b"system_u:object_r:tmp_t:s0\0")],
        &[(b"security.a", b"")],
        &[(b"security.a", b"1234567"), (b"security.b", b"12345678"), (b"security.c", b"\0")],
        &[(b"x" as &[u8], b"1" as &[u8]); 31],
    ];
    for pairs in all {
        let content: Vec<_> = pairs.iter().map(|(name, value)| label(name, value)).collect();
        let content: Vec<_> = content.iter().map(Vec::as_slice).collect();
        let labels = extension(pairs.len() as u32, &content);
        let group = extension(ext::GROUPS, &[&1u32.to_ne_bytes(), &7u32.to_ne_bytes()]);
        for parts in [[&labels[..], &group], [&group, &labels]] {
            let message = with_extensions(&parts);
            let request = Request::parse(&message).expect("a request");
            assert_eq!(request.extensions.labels.iter().collect::<Vec<_>>(), pairs);
            assert_eq!(request.extensions.group, Some(7));
        }
    }
}

#[test]
fn labels_whose_lengths_lie_are_malformed() {
    let good = label(b"security.a", b"value");
    let with_size = |size: u32| [&size.to_ne_bytes()[..], &good[4..]].concat();
    let all = [
        // More than there are; no end of the name; no name; longer than the extension.
        extension(2, &[&good]),
        extension(31, &[]),
        extension(1, &[&[1; 16]]),
        extension(1, &[&label(b"", b"value")]),
        extension(1, &[&with_size(14)]),
        extension(1, &[&with_size(u32::MAX)]),
        extension(1, &[&good[..8]]),
        extension(2, &[&good, &with_size(1000)]),
    ];
    for bytes in &all {
        assert_eq!(Request::parse(&with_extensions(&[bytes])), Err(Malformed::Request(UNIQUE)), "{bytes:?}");
    }
}
