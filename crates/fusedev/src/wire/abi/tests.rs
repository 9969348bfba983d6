//! The structs and numbers, compared with the installed C header. Where the header is older, the
//! newer ones are left out; without a header or a compiler, nothing is compared.

use super::{LAYOUTS, ext, fattr, fopen, opcode, uring, write};
use crate::wire::init::InitFlags;
use std::fmt::Write as _;
use std::process::Command;

const HEADER: &str = "/usr/include/linux/fuse.h";

/// Structs, and fields of older ones, that came with a minor version after [`OLDEST`].
const NEWER: &[(&str, &str, u32)] = &[
    ("OpenOut", "backing_id", 40),
    ("InitOut", "max_stack_depth", 40),
    ("InitOut", "request_timeout", 43),
    ("InitOut", "unused", 43),
    ("BackingMap", "", 40),
    // It came with 7.45; headers of libfuse with this number do not have it.
    ("NotifyPruneOut", "", 46),
    ("CopyFileRangeOut", "", 45),
    // The first headers of 7.38 do not have these two.
    ("ExtHeader", "", 39),
    ("SuppGroups", "", 39),
    ("StatxIn", "", 39),
    ("SxTime", "", 39),
    ("Statx", "", 39),
    ("StatxOut", "", 39),
    ("UringEntInOut", "", 42),
    ("UringCmdReq", "", 42),
];

/// Older headers are not compared.
const OLDEST: u32 = 38;

/// The name in C of a struct. `None`: the header does not have it.
fn c_name(name: &str) -> Option<String> {
    match name {
        // A body of two structs, and one of `linux/fs.h`.
        "CreateOut" | "Fsxattr" => return None,
        "StatfsOut" => return Some("fuse_kstatfs".into()),
        "DirentPlus" => return Some("fuse_direntplus".into()),
        _ => {}
    }
    let mut out = String::from("fuse");
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    Some(out)
}

/// A C program that prints a line for each size, offset and number, and the lines that we expect, each with the first
/// minor version of the protocol that has it.
fn program() -> (String, Vec<(u32, String)>) {
    let mut code = String::from("#include <linux/fuse.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n");
    let mut expected = Vec::new();
    let mut print = |label: String, since: u32, values: &[String], ours: &[usize]| {
        let words = ["%llu"; 2][..values.len()].join(" ");
        let values: Vec<_> = values.iter().map(|value| format!("(unsigned long long)({value})")).collect();
        let _ = writeln!(code, "#if FUSE_KERNEL_MINOR_VERSION >= {since}");
        let _ = writeln!(code, "printf(\"{label} {words}\\n\", {});\n#endif", values.join(", "));
        let ours: Vec<_> = ours.iter().map(ToString::to_string).collect();
        expected.push((since, format!("{label} {}", ours.join(" "))));
    };
    let since = |name: &str, field: &str| {
        let newer = NEWER.iter().find(|(of, what, _)| *of == name && (what.is_empty() || *what == field));
        newer.map_or(OLDEST, |(.., since)| *since)
    };
    for (name, size, fields) in LAYOUTS {
        let Some(c) = c_name(name) else { continue };
        // The C struct has fields that are sent only with a flag that we do not take.
        let c_size =
            if *name == "SetxattrIn" { "FUSE_COMPAT_SETXATTR_IN_SIZE".into() } else { format!("sizeof(struct {c})") };
        print((*name).into(), since(name, ""), &[c_size], &[*size]);
        for (field, at, size) in *fields {
            let c_field = match (*name, *field) {
                (_, "kind") => "type",
                ("DirentPlus", "entry") => "entry_out",
                ("SxTime", "reserved") => "__reserved",
                ("Statx", "spare0") => "__spare0",
                ("Statx", "spare2") => "__spare2",
                _ => field,
            };
            let values = [format!("offsetof(struct {c}, {c_field})"), format!("sizeof(((struct {c} *)0)->{c_field})")];
            print(format!("{name}.{field}"), since(name, field), &values, &[*at, *size]);
        }
    }
    let families = [
        ("FUSE_", opcode::ALL),
        ("FATTR_", fattr::ALL),
        ("FOPEN_", fopen::ALL),
        ("FUSE_WRITE_", write::ALL),
        ("FUSE_EXT_", ext::ALL),
        ("FUSE_IO_URING_CMD_", uring::ALL),
    ];
    for (prefix, numbers) in families {
        for (name, number) in numbers {
            let since = match *name {
                "STATX" | "GROUPS" => 39,
                "PASSTHROUGH" => 40,
                "COPY_FILE_RANGE_64" => 45,
                _ if prefix.contains("URING") => 42,
                _ => OLDEST,
            };
            print(format!("{prefix}{name}"), since, &[format!("{prefix}{name}")], &[*number as usize]);
        }
    }
    for (name, flag) in InitFlags::all().iter_names() {
        let since = match name {
            "DIRECT_IO_ALLOW_MMAP" | "CREATE_SUPP_GROUP" => 39,
            "PASSTHROUGH" | "NO_EXPORT_SUPPORT" | "HAS_RESEND" => 40,
            "ALLOW_IDMAP" => 41,
            "OVER_IO_URING" => 42,
            "REQUEST_TIMEOUT" => 43,
            _ => OLDEST,
        };
        print(format!("FUSE_{name}"), since, &[format!("FUSE_{name}")], &[flag.bits() as usize]);
    }
    code.push_str("return 0;\n}\n");
    (code, expected)
}

#[test]
fn structs_and_numbers_are_those_of_the_c_header() {
    let header = std::fs::read_to_string(HEADER).unwrap_or_default();
    let minor = header.lines().find_map(|line| line.strip_prefix("#define FUSE_KERNEL_MINOR_VERSION "));
    let Some(minor) = minor.and_then(|minor| minor.trim().parse::<u32>().ok()).filter(|minor| *minor >= OLDEST) else {
        return println!("SKIPPED: no {HEADER} of version 7.{OLDEST} or newer (package linux-libc-dev)");
    };
    let (code, expected) = program();
    let dir = std::env::temp_dir().join(format!("lightfoot-abi-{}", std::process::id()));
    std::fs::create_dir(&dir).expect("a directory");
    let (source, binary) = (dir.join("abi.c"), dir.join("abi"));
    std::fs::write(&source, code).expect("written");
    let compiled = Command::new("cc").arg("-o").arg(&binary).arg(&source).output();
    let printed = compiled.map(|compiled| (compiled, Command::new(&binary).output()));
    std::fs::remove_dir_all(&dir).expect("removed");
    let Ok((compiled, ran)) = printed else { return println!("SKIPPED: no C compiler, cc") };
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let lines = String::from_utf8(ran.expect("it runs").stdout).expect("words");
    let lines: Vec<_> = lines.lines().collect();
    let shown: Vec<_> = expected.iter().filter(|(since, _)| *since <= minor).map(|(_, ours)| ours.as_str()).collect();
    println!("7.{minor}: {} of {} compared", shown.len(), expected.len());
    let wrong: Vec<_> = shown.iter().zip(&lines).filter(|(ours, header)| ours != header).collect();
    assert!(wrong.is_empty() && shown.len() == lines.len(), "ours, and those of {HEADER}: {wrong:?}");
}
