//! Short transfers, and errors at every position, through the public interface of open files: honest counts, and nothing lost.

use lightfoot_testkit::{Fault, Faults, Ledger, Opens, Plan, Store};
use std::sync::Arc;
use vfs::{Base, Context, Credentials, Errno, OpenFile, OpenFlags, SetAttr, Vfs};

const DATA: &[u8] = b"the quick brown fox jumps over the lazy dog";

struct World {
    store: Store,
    plan: Arc<Plan>,
    opens: Arc<Opens>,
    context: Context,
}

fn world() -> World {
    let store = Store::with_paths(&["file", "copy"]);
    let (faults, plan) = Faults::of(Box::new(store.clone()));
    let (ledger, opens) = Ledger::of(Box::new(faults));
    World { store, plan, opens, context: Vfs::new(ledger).context() }
}

impl World {
    fn open(&self, path: &str) -> OpenFile {
        self.context.open(Base::CWD, path.as_bytes(), OpenFlags::RDWR, 0).unwrap()
    }
}

/// Writes `data` as a program does: goes on after a short count. Returns what was reported as written.
fn write_all(file: &OpenFile, data: &[u8]) -> (usize, Result<(), Errno>) {
    let mut done = 0;
    while done < data.len() {
        match file.write_at(done as u64, &data[done..]) {
            Ok((0, _)) => return (done, Err(Errno::EIO)),
            Ok((len, end)) => {
                done += len;
                assert_eq!(end, done as u64);
            }
            Err(errno) => return (done, Err(errno)),
        }
    }
    (done, Ok(()))
}

fn read_all(file: &OpenFile) -> Vec<u8> {
    let (mut data, mut buf) = (Vec::new(), [0; 16]);
    loop {
        let len = file.read_at(data.len() as u64, &mut buf).unwrap();
        if len == 0 {
            return data;
        }
        data.extend_from_slice(&buf[..len]);
    }
}

#[test]
fn short_transfers_lose_nothing() {
    for most in 1..=DATA.len() {
        let world = world();
        world.plan.set(move |_| Some(Fault::Short(most)));
        let (file, copy) = (world.open("/file"), world.open("/copy"));
        assert_eq!(write_all(&file, DATA), (DATA.len(), Ok(())), "{most}");
        assert_eq!(world.plan.calls("write"), DATA.len().div_ceil(most) as u64);
        assert_eq!(read_all(&file), DATA, "{most}");
        let mut copied = 0;
        while copied < DATA.len() as u64 {
            let len = file.copy_to(copied, &copy, copied, DATA.len() as u64 - copied).unwrap();
            assert!(len > 0, "{most}");
            copied += len;
        }
        assert_eq!(read_all(&copy), DATA, "{most}");
        assert_eq!(copy.attr().unwrap().size, DATA.len() as u64);
    }
}

#[test]
fn an_error_at_any_position_leaves_what_was_reported() {
    const MOST: usize = 5;
    for errno in [Errno::EIO, Errno::ENOSPC, Errno::EDQUOT] {
        for at in 0..DATA.len().div_ceil(MOST) as u64 {
            let world = world();
            world.plan.set(move |call| match call.method {
                "write" if call.number == at => Some(Fault::Fail(errno)),
                "write" => Some(Fault::Short(MOST)),
                _ => None,
            });
            let file = world.open("/file");
            let (done, result) = write_all(&file, DATA);
            assert_eq!((done as u64, result), (at * MOST as u64, Err(errno)));
            assert_eq!(file.attr().unwrap().size, done as u64, "{errno}");
            assert_eq!(read_all(&file), &DATA[..done], "{errno}");
            // The program tries again.
            assert_eq!(file.write_at(done as u64, &DATA[done..done + 1]), Ok((1, done as u64 + 1)));
        }
    }
}

#[test]
fn an_error_of_closing_is_reported_and_the_file_is_released() {
    for method in ["flush", "sync"] {
        let world = world();
        let file = world.open("/file");
        file.write_at(0, DATA).unwrap();
        world.plan.set(move |call| (call.method == method && call.number == 0).then_some(Fault::Fail(Errno::EDQUOT)));
        let close = || if method == "flush" { file.flush() } else { file.sync(false) };
        // (The store does not want `flush`; the ledger does, and answers it without calling the store.)
        assert_eq!(close(), if method == "flush" { Ok(()) } else { Err(Errno::EDQUOT) });
        assert_eq!((close(), read_all(&file)), (Ok(()), DATA.to_vec()));
        drop(file);
        let World { opens, context, .. } = world;
        drop(context);
        assert_eq!(opens.counts(), (1, 1));
        opens.check_the_end().unwrap();
    }
}

#[test]
fn an_open_that_fails_inside_is_not_released() {
    let world = world();
    world.plan.set(|call| (call.method == "open").then_some(Fault::Fail(Errno::EIO)));
    assert_eq!(world.context.open(Base::CWD, b"/file", OpenFlags::RDWR, 0).err(), Some(Errno::EIO));
    assert_eq!((world.opens.counts(), world.plan.injected()), ((0, 0), 1));
    world.plan.release();
    drop(world.open("/file"));
    world.opens.check_the_end().unwrap();
}

#[test]
fn a_change_that_fails_half_way_leaves_the_same_attributes_in_the_cache_and_in_the_store() {
    let all = |mode, size| SetAttr { mode: Some(mode), uid: Some(7), size, ..SetAttr::default() };
    let check = |method: &'static str, change: &dyn Fn(&World, &Context) -> Result<(), Errno>| {
        let world = world();
        world.context.set_attr(Base::CWD, b"/file", true, &all(0o6777, None)).unwrap();
        let user = world.context.fork();
        user.set_credentials(Credentials::user(8, 8, &[]));
        world.plan.set(move |call| (call.method == method).then_some(Fault::Fail(Errno::EDQUOT)));
        assert_eq!(change(&world, &user), Err(Errno::EDQUOT), "{method}");
        let seen = |context: &Context| {
            let attr = context.attr(Base::CWD, b"/file", true).unwrap();
            (attr.mode & 0o7777, attr.uid, attr.size)
        };
        assert_eq!(seen(&world.context), seen(&world.store.tree().context()), "{method}");
    };
    let write = |user: &Context| user.open(Base::CWD, b"/file", OpenFlags::WRONLY, 0)?.write_at(0, DATA).map(drop);
    check("write", &|_, user| write(user));
    check("set_len", &|world, _| world.context.set_attr(Base::CWD, b"/file", true, &all(0o600, Some(9))));
    check("set_attr", &|world, _| world.context.set_attr(Base::CWD, b"/file", true, &all(0o600, Some(9))));
}
