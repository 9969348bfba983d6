//! Quotas of users: `EDQUOT`. A full file system is in `storage`.

use crate::features::Quota;
use crate::fixture::{Fixture, MAKE, pattern, read_all, write_all};
use crate::outcome::{Failure, OrFail, Outcome, same};
use vfs::{
    Allocate, Base, Capabilities, Context, Credentials, Errno, OpenFile, OpenFlags, PathAt, S_IFIFO, S_IFREG, SetAttr,
};

/// A directory in which everybody may make files, and the users.
struct Shared<'c> {
    c: &'c Fixture,
    quota: Quota,
    user: Context,
    other: Context,
}

/// State that must not change: mode, owner, group, length, contents; and the names in the
/// directory.
type State = ([u64; 4], Vec<u8>, Vec<String>);

fn open(context: &Context, path: &str, flags: OpenFlags) -> Result<OpenFile, Errno> {
    context.open(Base::CWD, path.as_bytes(), flags, 0o666)
}

impl<'c> Shared<'c> {
    /// `None`: quotas are not tested.
    fn new(c: &'c Fixture) -> Result<Option<Self>, Failure> {
        let Some(quota) = c.features().quota else { return Ok(None) };
        c.at().mkdir(Base::CWD, b"/d", 0o777).or_fail("mkdir /d")?;
        let of = |user| c.of(Credentials::user(user, user, &[]));
        Ok(Some(Self { c, quota, user: of(quota.user), other: of(quota.other) }))
    }

    /// Has the user write to the file, from `start` on, until the file system takes no further byte; returns where.
    fn fill(&self, file: &OpenFile, start: u64) -> Result<u64, Failure> {
        let (mut end, mut len) = (start, 3000);
        while len > 0 {
            match file.write_at(end, &pattern(end, len)) {
                Ok((0, _)) => return Err(Failure::new("a write beyond the quota: expected EDQUOT, got 0 bytes")),
                Ok((written, after)) => {
                    same("the end of a write", after, end + written as u64)?;
                    end = after;
                }
                Err(Errno::EDQUOT) => len /= 2,
                Err(errno) => same("a write beyond the quota", errno, Errno::EDQUOT)?,
            }
            same(format_args!("{end} bytes are within the quota"), end <= self.quota.bytes, true)?;
        }
        Ok(end)
    }

    /// Makes a file of the user that takes all that is left of the quota; returns it with its length.
    fn full(&self, path: &str) -> Result<(OpenFile, u64), Failure> {
        let file = open(&self.user, path, MAKE).or_fail(format_args!("making {path}"))?;
        let end = self.fill(&file, 0)?;
        same(format_args!("a user without files could store something, here {end} bytes"), end > 0, true)?;
        Ok((file, end))
    }

    /// Makes a file of another user.
    fn write_as_other(&self, path: &str, len: usize) -> Outcome {
        let file = open(&self.other, path, MAKE).or_fail(format_args!("making {path} as another user"))?;
        write_all(&file, 0, &pattern(0, len))
    }

    fn unlink(&self, path: &str) -> Outcome {
        self.user.unlink(Base::CWD, path.as_bytes()).or_fail(format_args!("unlink of {path}"))?;
        self.c.vfs().barrier();
        Ok(())
    }

    fn state(&self, path: &str) -> Result<State, Errno> {
        let attr = self.c.attr(path)?;
        let facts = [attr.mode, attr.uid, attr.gid].map(u64::from);
        Ok(([facts[0], facts[1], facts[2], attr.size], self.c.read(path)?, self.c.names("/d")?))
    }

    /// Checks that the change fails with `EDQUOT`, also when it is tried again, and that the file at `path` and all names are as
    /// before.
    fn refused<T>(&self, what: &str, path: &str, change: impl Fn() -> Result<T, Errno>) -> Outcome {
        let before = self.state(path).or_fail(path)?;
        for _ in 0..3 {
            same(what, change().map(drop), Err(Errno::EDQUOT))?;
        }
        self.c.twice(|| same(format_args!("{path} after {what}"), self.state(path), Ok(before.clone())))
    }

    /// Changes the owner of the file. The caller has `CAP_CHOWN`, but not `CAP_SYS_RESOURCE`, so quotas limit it.
    fn chown(&self, path: &str, to: u32) -> Result<(), Errno> {
        let mut giver = Credentials::user(self.quota.other, self.quota.other, &[]);
        giver.capabilities = Capabilities::CHOWN;
        let set = SetAttr { uid: Some(to), ..SetAttr::default() };
        self.c.of(giver).set_attr(Base::CWD, path.as_bytes(), true, &set)
    }
}

pub(crate) fn a_user_stores_up_to_the_quota_and_again_after_a_removal(c: &Fixture) -> Outcome {
    let Some(shared) = Shared::new(c)? else { return Ok(()) };
    let small = open(&shared.user, "/d/small", MAKE).or_fail("making /d/small")?;
    write_all(&small, 0, b"text")?;
    let mut stored = None;
    for round in 0..3 {
        let (file, end) = shared.full("/d/large")?;
        same("length of what was written", file.attr().map(|attr| attr.size), Ok(end))?;
        same("what was written", read_all(&file), Ok(pattern(0, end as usize)))?;
        drop(file);
        c.twice(|| same("the file", c.read("/d/large"), Ok(pattern(0, end as usize))))?;
        c.twice(|| same("the other file", c.read("/d/small"), Ok(b"text".to_vec())))?;
        // As much as before: nothing that was refused or removed counts.
        same(format_args!("bytes that the user could store in round {round}"), end, *stored.get_or_insert(end))?;
        let path = format!("/d/other{round}");
        shared.write_as_other(&path, 8192)?;
        c.twice(|| same("the file of another user", c.read(&path), Ok(pattern(0, 8192))))?;
        shared.unlink("/d/large")?;
    }
    Ok(())
}

pub(crate) fn what_a_quota_refuses_changes_nothing(c: &Fixture) -> Outcome {
    let Some(shared) = Shared::new(c)? else { return Ok(()) };
    let small = open(&shared.user, "/d/small", MAKE).or_fail("making /d/small")?;
    write_all(&small, 0, b"text")?;
    let (file, end) = shared.full("/d/large")?;
    shared.refused("a write at the end", "/d/large", || file.write_at(end, b"x"))?;
    shared.refused("a long write at the end", "/d/large", || file.write_at(end, &pattern(end, 100_000)))?;
    shared.refused("a write far away", "/d/small", || small.write_at(1 << 20, b"x"))?;
    let append = OpenFlags::WRONLY.union(OpenFlags::APPEND);
    let appending = open(&shared.user, "/d/large", append).or_fail("an open to append")?;
    shared.refused("an append", "/d/large", || appending.write_at(0, b"x"))?;
    shared.refused("a copy", "/d/large", || file.copy_to(0, &file, end, 4096.min(end)))?;
    if c.features().allocate {
        shared.refused("a reservation", "/d/large", || file.allocate(Allocate::Reserve, false, 0, end + 4096))?;
    }
    check_partial_write(&shared, &small)?;
    check_growth(&shared, &file)?;
    // A refused write may clear these bits. If it does, so it does in the cache and in the file system.
    let set_id = SetAttr { mode: Some(0o6777), ..SetAttr::default() };
    c.at().set_attr(Base::CWD, b"/d/large", true, &set_id).or_fail("chmod /d/large")?;
    same("a write at the end", file.write_at(end, b"x"), Err(Errno::EDQUOT))?;
    let mode = c.attr("/d/large").map(|attr| attr.mode);
    c.twice(|| same("the mode after a refused write", c.attr("/d/large").map(|attr| attr.mode), mode))
}

/// Checks a write of which a part may fit, into a file with the contents `text`.
fn check_partial_write(shared: &Shared<'_>, file: &OpenFile) -> Outcome {
    let mut expected = b"text".to_vec();
    match file.write_at(2, &pattern(2, 20_000)) {
        Ok((written, _)) => {
            expected.truncate(2);
            expected.extend(pattern(2, written));
        }
        Err(errno) => same("a write of which a part may fit", errno, Errno::EDQUOT)?,
    }
    shared.c.twice(|| same("what was reported as written", shared.c.read("/d/small"), Ok(expected.clone())))
}

/// Checks a truncation to more, which makes a hole. The hole may take no storage.
fn check_growth(shared: &Shared<'_>, file: &OpenFile) -> Outcome {
    let c = shared.c;
    let before = file.attr().or_fail("fstat")?.size;
    let after = match file.set_len(before + 100_000) {
        Ok(()) => before + 100_000,
        Err(errno) => same("a truncation to more", errno, Errno::EDQUOT).map(|()| before)?,
    };
    let mut expected = pattern(0, before as usize);
    expected.resize(after as usize, 0);
    c.twice(|| same("contents after a truncation to more", c.read("/d/large"), Ok(expected.clone())))?;
    file.set_len(before).or_fail("the truncation back")?;
    c.twice(|| same("contents after it", c.read("/d/large"), Ok(pattern(0, before as usize))))
}

/// A way of making the file `/d/more`; of `O_TMPFILE` one without a name.
type Make = fn(&Context) -> Result<(), Errno>;

/// Returns each way that the file system has.
fn makers(c: &Fixture) -> Vec<Make> {
    let features = c.features();
    let mut makers: Vec<Make> =
        vec![|user| open(user, "/d/more", MAKE).map(drop), |user| user.mkdir(Base::CWD, b"/d/more", 0o755), |user| {
            user.mknod(Base::CWD, b"/d/more", S_IFREG | 0o600, 0)
        }];
    if features.symlinks {
        makers.push(|user| user.symlink(b"to", Base::CWD, b"/d/more"));
    }
    if features.special_files {
        makers.push(|user| user.mknod(Base::CWD, b"/d/more", S_IFIFO | 0o600, 0));
    }
    if features.unnamed {
        makers.push(|user| open(user, "/d", OpenFlags::RDWR.union(OpenFlags::TMPFILE)).map(drop));
    }
    makers
}

pub(crate) fn a_quota_of_files_refuses_new_ones(c: &Fixture) -> Outcome {
    let Some(shared) = Shared::new(c)? else { return Ok(()) };
    let Some(most) = shared.quota.files else { return Ok(()) };
    let user = &shared.user;
    let mut made = 0;
    let refusal = loop {
        match open(user, &format!("/d/{made}"), MAKE) {
            Ok(file) => write_all(&file, 0, b"text")?,
            Err(errno) => break errno,
        }
        made += 1;
        same(format_args!("{made} files are within the quota"), made <= most, true)?;
    };
    same("one more file", refusal, Errno::EDQUOT)?;
    same(format_args!("a user without files could make one, here {made}"), made > 0, true)?;
    for (place, make) in makers(c).iter().enumerate() {
        shared.refused(&format!("way {place} of making a file"), "/d/0", || make(user))?;
    }
    shared.write_as_other("/d/other", 100)?;
    if shared.quota.follows_owner {
        shared
            .refused("a chown to a user with many files", "/d/other", || shared.chown("/d/other", shared.quota.user))?;
    }
    // A further name, or another one, is not a further file.
    if c.features().rename {
        c.rename("/d/0", "/d/moved").or_fail("rename")?;
        c.rename("/d/moved", "/d/0").or_fail("rename back")?;
    }
    if c.features().hard_links {
        user.link(PathAt::cwd(b"/d/0"), PathAt::cwd(b"/d/link"), false).or_fail("link")?;
        user.unlink(Base::CWD, b"/d/link").or_fail("unlink of the link")?;
    }
    for make in makers(c) {
        shared.unlink("/d/0")?;
        make(user).or_fail("a file after a removal")?;
        let _ = user.unlink(Base::CWD, b"/d/more").or_else(|_| user.rmdir(Base::CWD, b"/d/more"));
        c.vfs().barrier();
        drop(open(user, "/d/0", MAKE).or_fail("a file after a removal")?);
    }
    same("one more file than there is room for", open(user, "/d/more", MAKE).map(drop), Err(Errno::EDQUOT))
}

pub(crate) fn a_file_counts_for_its_owner(c: &Fixture) -> Outcome {
    let Some(shared) = Shared::new(c)?.filter(|shared| shared.quota.follows_owner) else { return Ok(()) };
    let Quota { user, other, .. } = shared.quota;
    shared.write_as_other("/d/gift", 8192)?;
    let mode = SetAttr { mode: Some(0o4666), ..SetAttr::default() };
    let (file, end) = shared.full("/d/large")?;
    c.at().set_attr(Base::CWD, b"/d/gift", true, &mode).or_fail("chmod /d/gift")?;
    shared.refused("a chown to a user without room", "/d/gift", || shared.chown("/d/gift", user))?;
    let large = open(&shared.other, "/d/large", OpenFlags::WRONLY).or_fail("an open of /d/large by another user")?;
    shared.refused("a write by another user", "/d/large", || large.write_at(end, b"x"))?;
    let gift = open(&shared.user, "/d/gift", OpenFlags::WRONLY).or_fail("an open of /d/gift by the user")?;
    write_all(&gift, 8192, &pattern(8192, 4096))?;
    c.twice(|| same("the file of another user", c.read("/d/gift"), Ok(pattern(0, 12_288))))?;
    // A file that the user gives away no longer counts.
    let half = end / 2;
    file.set_len(half).or_fail("a truncation to half")?;
    shared.chown("/d/large", other).or_fail("a chown to a user with room")?;
    c.twice(|| same("owner after a chown", c.attr("/d/large").map(|attr| attr.uid), Ok(other)))?;
    let (second, again) = shared.full("/d/second")?;
    same("bytes that the user could store after giving a file away", again, end)?;
    // A file that the user gets counts.
    drop((file, large, gift, second));
    shared.unlink("/d/second")?;
    shared.chown("/d/gift", user).or_fail("a chown to a user with room")?;
    let (_second, less) = shared.full("/d/second")?;
    same(format_args!("{less} bytes beside a file that takes 12288"), less + 12_288 <= shared.quota.bytes, true)?;
    c.twice(|| same("the file that was given", c.read("/d/gift"), Ok(pattern(0, 12_288))))
}
