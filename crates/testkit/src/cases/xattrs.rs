//! Extended attributes.

use crate::fixture::Fixture;
use crate::outcome::{OrFail, Outcome, needs, same};
use vfs::{Base, Errno, SetXattr};

fn set(c: &Fixture, path: &str, name: &str, value: &[u8], how: SetXattr) -> Result<(), Errno> {
    c.at().set_xattr(Base::CWD, path.as_bytes(), true, name.as_bytes(), value, how)
}

fn get(c: &Fixture, path: &str, name: &str) -> Result<Vec<u8>, Errno> {
    c.at().get_xattr(Base::CWD, path.as_bytes(), true, name.as_bytes()).map(<[u8]>::into_vec)
}

fn names(c: &Fixture, path: &str) -> Result<Vec<String>, Errno> {
    let names = c.at().list_xattrs(Base::CWD, path.as_bytes(), true)?;
    let mut names: Vec<_> = names.iter().map(|name| name.escape_ascii().to_string()).collect();
    names.sort_unstable();
    Ok(names)
}

fn remove(c: &Fixture, path: &str, name: &str) -> Result<(), Errno> {
    c.at().remove_xattr(Base::CWD, path.as_bytes(), true, name.as_bytes())
}

/// Makes the files of the cases. Returns `false` if the file system refuses attributes, as it must without the feature.
fn begin(c: &Fixture) -> Result<bool, crate::outcome::Failure> {
    c.write("/file", b"text")?;
    c.mkdir("/dir").or_fail("mkdir /dir")?;
    if !c.features().xattrs {
        same("setting", set(c, "/file", "user.a", b"1", SetXattr::Any), Err(Errno::EOPNOTSUPP))?;
        same("getting", get(c, "/file", "user.a"), Err(Errno::EOPNOTSUPP))?;
        same("removing", remove(c, "/file", "user.a"), Err(Errno::EOPNOTSUPP))?;
    }
    Ok(c.features().xattrs)
}

pub(crate) fn extended_attributes_are_kept(c: &Fixture) -> Outcome {
    needs!(begin(c)?);
    let long = "user.".to_string() + &"n".repeat(250);
    for path in ["/file", "/dir"] {
        same(format_args!("names of {path} at first"), names(c, path), Ok(Vec::new()))?;
        same("a missing attribute", get(c, path, "user.a"), Err(Errno::ENODATA))?;
        same("removing a missing attribute", remove(c, path, "user.a"), Err(Errno::ENODATA))?;
        for (name, value) in [("user.a", &b"\x00\xff value"[..]), ("user.empty", b""), (&long, &[3; 1000])] {
            set(c, path, name, value, SetXattr::Any).or_fail(format_args!("setting {name}"))?;
            c.twice(|| same(name, get(c, path, name), Ok(value.to_vec())))?;
        }
        c.twice(|| same("names", names(c, path), Ok(vec!["user.a".into(), "user.empty".into(), long.clone()])))?;
        remove(c, path, "user.a").or_fail("removing")?;
        c.twice(|| same("the removed one", get(c, path, "user.a"), Err(Errno::ENODATA)))?;
    }
    if c.features().rename {
        c.rename("/file", "/other").or_fail("rename")?;
        c.twice(|| same("names after a rename", names(c, "/other"), Ok(vec!["user.empty".into(), long.clone()])))?;
    }
    c.twice(|| same("names of the directory", names(c, "/dir"), Ok(vec!["user.empty".into(), long.clone()])))
}

pub(crate) fn extended_attributes_are_made_or_replaced_as_requested(c: &Fixture) -> Outcome {
    needs!(begin(c)?);
    let set = |value: &[u8], how| set(c, "/file", "user.a", value, how);
    same("replacing a missing attribute", set(b"0", SetXattr::Replace), Err(Errno::ENODATA))?;
    set(b"1", SetXattr::Create).or_fail("making one")?;
    same("making an existing attribute", set(b"2", SetXattr::Create), Err(Errno::EEXIST))?;
    c.twice(|| same("its value", get(c, "/file", "user.a"), Ok(b"1".to_vec())))?;
    set(b"three", SetXattr::Replace).or_fail("replacing one")?;
    c.twice(|| same("its value", get(c, "/file", "user.a"), Ok(b"three".to_vec())))
}
