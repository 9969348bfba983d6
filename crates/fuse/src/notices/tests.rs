//! The queue with senders that report each notice, and block where a test needs it.

use super::*;
use std::sync::mpsc::{self, Receiver, SyncSender};

#[derive(Debug, PartialEq)]
enum Sent {
    One(Notice),
    All,
    /// The sender is dropped, and with it the thread.
    Gone,
}

/// Reports each notice, then waits for the result to return.
struct Fake {
    sent: mpsc::Sender<Sent>,
    results: Receiver<io::Result<()>>,
}

impl Fake {
    fn report(&self, what: Sent) -> io::Result<()> {
        self.sent.send(what).expect("the test listens");
        // No more results: all succeed.
        self.results.recv().unwrap_or(Ok(()))
    }
}

impl Sender for Fake {
    fn send(&self, notice: &Notice) -> io::Result<()> {
        assert_eq!(thread::current().name(), Some("lightfoot-notices"));
        self.report(Sent::One(notice.clone()))
    }

    fn all(&self) -> io::Result<()> {
        self.report(Sent::All)
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let _ = self.sent.send(Sent::Gone);
    }
}

struct Case {
    notices: Notices,
    metrics: Arc<Metrics>,
    sent: Receiver<Sent>,
    results: SyncSender<io::Result<()>>,
}

fn case(capacity: usize, slow: Duration) -> Case {
    let (report, sent) = mpsc::channel();
    let (results, take) = mpsc::sync_channel(100);
    let metrics = Arc::new(Metrics::new());
    let fake = Fake { sent: report, results: take };
    let notices = Notices::start_with(fake, capacity, metrics.clone(), slow).expect("a thread");
    Case { notices, metrics, sent, results }
}

fn inode(node: u64) -> Notice {
    Notice::InvalInode { node, offset: 0, len: 0 }
}

#[test]
fn notices_are_sent_in_the_order_they_were_pushed() {
    let Case { notices, metrics, sent, results } = case(10, Duration::MAX);
    let name = || Box::from(&b"name"[..]);
    let all = [Notice::Expire { parent: 1, name: name() }, inode(2), Notice::Expire { parent: 2, name: name() }];
    all.iter().for_each(|notice| notices.push(notice.clone()));
    drop(results);
    notices.flush();
    assert_eq!(sent.try_iter().collect::<Vec<_>>(), all.map(Sent::One));
    assert_eq!((metrics.get(Gauge::NoticesSent), metrics.get(Gauge::SlowNotices)), (3, 0));
    drop(notices);
    assert_eq!(sent.try_iter().collect::<Vec<_>>(), [Sent::Gone], "a drop joins");
}

#[test]
fn a_notice_that_equals_the_last_in_the_queue_is_not_queued_again() {
    let Case { notices, sent, results, .. } = case(10, Duration::MAX);
    notices.push(inode(1));
    assert_eq!(sent.recv(), Ok(Sent::One(inode(1))));
    // The first is being sent, and may not cover later changes.
    [1, 1, 2, 2, 1].into_iter().for_each(|node| notices.push(inode(node)));
    drop(results);
    notices.flush();
    assert_eq!(sent.try_iter().collect::<Vec<_>>(), [1, 2, 1].map(|node| Sent::One(inode(node))));
}

#[test]
fn a_full_queue_becomes_everything_and_then_a_queue_again() {
    let Case { notices, metrics, sent, results } = case(2, Duration::MAX);
    notices.push(inode(1));
    assert_eq!(sent.recv(), Ok(Sent::One(inode(1))));
    // Does not wait, though nothing is taken out.
    (2..1000).for_each(|node| notices.push(inode(node)));
    results.send(Ok(())).expect("it listens");
    assert_eq!(sent.recv(), Ok(Sent::All));
    // A notice that comes while "everything" is sent may be too late for it.
    notices.push(inode(7));
    drop(results);
    notices.flush();
    assert_eq!(sent.try_iter().collect::<Vec<_>>(), [Sent::One(inode(7))]);
    assert_eq!((metrics.get(Gauge::NoticesCollapsed), metrics.get(Gauge::NoticesSent)), (1, 3));
}

#[test]
fn an_unknown_name_is_not_a_failure_and_other_errors_are_counted() {
    let Case { notices, metrics, sent, results } = case(10, Duration::MAX);
    for (node, errno) in [(1, ENOENT), (2, 38), (3, 5)] {
        results.send(Err(io::Error::from_raw_os_error(errno))).expect("it listens");
        notices.push(inode(node));
    }
    notices.flush();
    assert_eq!(sent.try_iter().count(), 3, "it goes on");
    assert_eq!((metrics.get(Gauge::NoticesFailed), metrics.get(Gauge::NoticesSent)), (2, 3));
}

#[test]
fn a_notice_that_the_kernel_refuses_is_sent_again_after_the_others() {
    const EBUSY: i32 = 16;
    let Case { notices, metrics, sent, results } = case(10, Duration::MAX);
    notices.push(inode(1));
    assert_eq!(sent.recv(), Ok(Sent::One(inode(1))));
    notices.push(inode(2));
    for _ in 0..2 {
        results.send(Err(io::Error::from_raw_os_error(EBUSY))).expect("it listens");
        results.send(Ok(())).expect("it listens");
    }
    drop(results);
    notices.flush();
    assert_eq!(sent.try_iter().collect::<Vec<_>>(), [2, 1, 1].map(|node| Sent::One(inode(node))));
    assert_eq!((metrics.get(Gauge::NoticesFailed), metrics.get(Gauge::NoticesSent)), (2, 4));
    // Not for ever.
    let Case { notices, sent, results, .. } = case(10, Duration::MAX);
    notices.push(inode(1));
    (0..10).for_each(|_| results.send(Err(io::Error::from_raw_os_error(EBUSY))).expect("it listens"));
    notices.flush();
    assert_eq!(sent.try_iter().count(), usize::from(MAX_TRIES));
}

#[test]
fn a_call_that_takes_too_long_is_counted_once() {
    let Case { notices, metrics, sent, results } = case(10, Duration::ZERO);
    notices.push(inode(1));
    assert_eq!(sent.recv(), Ok(Sent::One(inode(1))));
    // It has not returned.
    (2..5).for_each(|node| notices.push(inode(node)));
    assert_eq!(metrics.get(Gauge::SlowNotices), 1);
    drop(results);
    notices.flush();
    assert_eq!(metrics.get(Gauge::SlowNotices), 4);
}

#[test]
fn a_drop_does_not_wait_for_a_call_that_hangs_and_nothing_is_sent_after_it() {
    let Case { notices, sent, results, .. } = case(10, Duration::MAX);
    notices.push(inode(1));
    assert_eq!(sent.recv(), Ok(Sent::One(inode(1))));
    notices.push(inode(2));
    drop(notices);
    assert!(sent.try_recv().is_err(), "the call hangs still");
    drop(results);
    assert_eq!(sent.recv(), Ok(Sent::Gone));
}

#[test]
fn a_queue_without_notices_ends() {
    let Case { notices, sent, .. } = case(0, Duration::MAX);
    notices.flush();
    drop(notices);
    assert_eq!(sent.recv(), Ok(Sent::Gone));
}

#[test]
fn a_sender_that_panics_fails_one_notice_and_sends_the_others() {
    struct Panics;
    impl Sender for Panics {
        fn send(&self, notice: &Notice) -> io::Result<()> {
            assert_ne!(*notice, inode(1), "on purpose");
            Ok(())
        }

        fn all(&self) -> io::Result<()> {
            Ok(())
        }
    }
    let metrics = Arc::new(Metrics::new());
    let notices = Notices::start(Panics, 10, metrics.clone()).expect("a thread");
    notices.push(inode(1));
    notices.flush();
    notices.push(inode(2));
    notices.flush();
    let counts = [Gauge::NoticesSent, Gauge::NoticesFailed, Gauge::Panics].map(|gauge| metrics.get(gauge));
    assert_eq!(counts, [2, 1, 1]);
}
