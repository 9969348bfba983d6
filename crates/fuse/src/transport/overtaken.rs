//! Replies that a notice overtakes, with a kernel that changes the tree when it gets a reply.

use super::*;
use crate::notices::{Notice, Sender};
use crate::options::{SessionOptions, Ttls};
use fusedev::wire::abi::{AttrOut, EntryOut, InHeader, LinkIn, SetattrIn, opcode};
use parking_lot::Mutex;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;
use testkit::{Store, StoreOptions};
use zerocopy::{FromBytes, IntoBytes};

/// A limit for a thread that never sends.
const LIMIT: Duration = Duration::from_secs(60);

type Act = Box<dyn Fn() + Send + Sync>;

/// Acts before it takes a reply.
struct Kernel {
    before: Act,
    replies: Mutex<Vec<Vec<u8>>>,
}

impl core::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.replies.fmt(f)
    }
}

impl Channel for Kernel {
    fn reply(&self, _: u64, error: i32, body: &[u8]) -> io::Result<()> {
        assert_eq!(error, 0);
        (self.before)();
        self.replies.lock().push(body.to_vec());
        Ok(())
    }

    fn open_backing(&self, _: BorrowedFd<'_>) -> io::Result<i32> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn close_backing(&self, _: i32) -> io::Result<()> {
        Ok(())
    }
}

struct Writer(mpsc::Sender<Option<Notice>>);

impl Sender for Writer {
    fn send(&self, notice: &Notice) -> io::Result<()> {
        drop(self.0.send(Some(notice.clone())));
        Ok(())
    }

    fn all(&self) -> io::Result<()> {
        drop(self.0.send(None));
        Ok(())
    }
}

struct Case {
    store: Store,
    session: Arc<Session>,
    transport: Transport,
    sent: Receiver<Option<Notice>>,
}

fn case() -> Case {
    let store = Store::with_options(StoreOptions { returns_attributes: true, ..StoreOptions::default() }, &["f"]);
    let session = SessionOptions { ttls: Ttls::LONG, reports_changes: true, ..SessionOptions::default() };
    let options = MountOptions { session: session.clone(), ..MountOptions::default() };
    let session = Session::new(&store.tree(), session).unwrap();
    session.note_expiry(true);
    let (send, sent) = mpsc::channel();
    session.notify_by(Writer(send));
    let case = Case { transport: Transport::new(session.clone(), &options), store, session, sent };
    case.ask(opcode::LOOKUP, Store::ROOT, b"f\0", Box::new(|| ()));
    case
}

impl Case {
    /// Returns the body of the reply to a request.
    fn ask(&self, opcode: u32, nodeid: u64, arguments: &[u8], before: Act) -> Vec<u8> {
        let len = (size_of::<InHeader>() + arguments.len()) as u32;
        let uid = rustix::process::geteuid().as_raw();
        let header = InHeader { len, opcode, unique: 7, nodeid, uid, ..InHeader::default() };
        let kernel = Arc::new(Kernel { before, replies: Mutex::default() });
        let channel: Arc<dyn Channel> = kernel.clone();
        self.transport.serve(&channel, &[header.as_bytes(), arguments].concat(), &mut Body::new());
        let mut replies = kernel.replies.lock();
        assert_eq!(replies.len(), 1);
        replies.remove(0)
    }

    /// Reports a change by `report` before the kernel takes the reply to a request, or after it. Checks that the thread
    /// sends notices of it at once, and `again` later.
    fn check(&self, request: (u32, u64, &[u8]), report: fn(&Store), again: [&Option<Notice>; 2]) {
        let (opcode, node, arguments) = request;
        for (again, is_before) in again.into_iter().zip([true, false]) {
            let act = self.acting(report);
            if is_before {
                self.ask(opcode, node, arguments, act);
            } else {
                self.ask(opcode, node, arguments, Box::new(|| ()));
                act();
            }
            let at_once: Vec<_> = self.sent.try_iter().collect();
            assert_ne!(at_once, [], "change before the reply: {is_before}");
            self.has_sent(again);
        }
    }

    /// Returns an action that reports a change and waits until the notices of it are sent.
    fn acting(&self, report: fn(&Store)) -> Act {
        let (store, session) = (self.store.clone(), self.session.clone());
        Box::new(move || {
            report(&store);
            session.flush_notices();
        })
    }

    /// Waits until the thread has sent the notice.
    fn has_sent(&self, notice: &Option<Notice>) {
        let mut all = std::iter::from_fn(|| self.sent.recv_timeout(LIMIT).ok());
        assert!(all.any(|sent| sent == *notice), "{notice:?} is sent again");
    }
}

fn is_of_name(notice: &Notice) -> bool {
    matches!(notice, Notice::Expire { .. })
}

fn expire_f() -> Option<Notice> {
    Some(Notice::Expire { parent: Store::ROOT, name: (*b"f").into() })
}

#[test]
fn a_notice_that_overtakes_the_lookup_of_a_name_is_sent_again() {
    let case = case();
    let lookup = (opcode::LOOKUP, Store::ROOT, &b"f\0"[..]);
    case.check(lookup, |store| store.invalidator().entry(Store::ROOT, b"f"), [&expire_f(), &expire_f()]);
    case.check(lookup, |store| store.invalidator().all(), [&expire_f(), &None]);
}

#[test]
fn a_notice_that_overtakes_a_change_of_attributes_is_sent_again() {
    let case = case();
    let node = case.store.node("f");
    let again = Some(Notice::InvalInode { node, offset: -1, len: 0 });
    let report = |store: &Store| store.invalidator().inode(store.node("f"));
    let set = SetattrIn { valid: fattr::MODE, mode: 0o600, ..SetattrIn::default() };
    case.check((opcode::SETATTR, node, set.as_bytes()), report, [&again, &again]);
    let set = SetattrIn { valid: fattr::SIZE, size: 10, ..set };
    case.check((opcode::SETATTR, node, set.as_bytes()), report, [&again, &again]);
    let link = LinkIn { oldnodeid: node };
    let act = case.acting(report);
    case.ask(opcode::LINK, Store::ROOT, &[link.as_bytes(), b"g\0"].concat(), act);
    case.has_sent(&again);
}

#[test]
fn a_notice_that_no_reply_meets_is_sent_once() {
    let case = case();
    // The kernel orders the reply to this request itself.
    case.ask(opcode::GETATTR, case.store.node("f"), &[0; 16], Box::new(|| ()));
    let mut names = (0..).map(|number| format!("unseen {number}").into_bytes());
    let slot = |name: &[u8]| case.session.replies.slot(Subject::Name(Store::ROOT, name)).map(core::ptr::from_ref);
    // Two names in one slot count the notices of each other.
    let unseen = names.find(|name| slot(name) != slot(b"f")).unwrap();
    case.store.invalidator().entry(Store::ROOT, &unseen);
    // The thread repeats notices in order, so a repeat of that one would come before this one's.
    case.store.invalidator().entry(Store::ROOT, b"f");
    let all = std::iter::from_fn(|| case.sent.recv_timeout(LIMIT).ok().flatten()).filter(is_of_name);
    let (first, unseen) = (expire_f().unwrap(), Notice::Expire { parent: Store::ROOT, name: unseen.into() });
    assert_eq!(all.take(3).collect::<Vec<_>>(), [unseen, first.clone(), first]);
}

#[test]
fn a_reply_that_a_notice_overtakes_before_it_is_sent_is_valid_for_no_time() {
    let case = case();
    let subjects = [Subject::Name(Store::ROOT, b"f"), Subject::Attributes(case.store.node("f"))];
    for (number, is_overtaken) in [(0, false), (0, true), (1, false), (1, true)] {
        let under_way = case.session.under_way(subjects[number]).unwrap();
        let kernel = Kernel { before: Box::new(|| ()), replies: Mutex::default() };
        let reply = Reply::new(&kernel, 7).under_way(Some(&under_way));
        reply.answer(case.session.metrics(), Op::Lookup, &mut Body::new(), |body, _| {
            if number == 0 {
                body.put_struct(&EntryOut { nodeid: 5, entry_valid: 1, attr_valid: 2, ..EntryOut::default() });
            } else {
                body.put_struct(&AttrOut { attr_valid: 2, dummy: 5, ..AttrOut::default() });
            }
            if is_overtaken {
                case.store.invalidator().entry(Store::ROOT, b"f");
            }
            Ok(())
        });
        let body = kernel.replies.lock().remove(0);
        let valid = u64::from(!is_overtaken);
        if number == 0 {
            let entry = EntryOut::read_from_bytes(&body).unwrap();
            assert_eq!((entry.nodeid, entry.entry_valid, entry.attr_valid), (5, valid, 2 * valid));
        } else {
            let attr = AttrOut::read_from_bytes(&body).unwrap();
            assert_eq!((attr.dummy, attr.attr_valid), (5, 2 * valid));
        }
    }
}
