//! The second process: a thread with its own root, working directory and umask, and now and then its own mounts.

use super::{Kernel, Place, become_user};
use crate::namespace::Namespace;
use crate::namespace::ops::{MountPoints, Op, SLOTS};
use crate::namespace::outcome::Outcome;
use rustix::fd::OwnedFd;
use rustix::fs::{self as sys, AtFlags, CWD};
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::thread::UnshareFlags;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// A file by its device and number.
pub(super) type Identity = (u64, u64);

/// The open files, which the two processes share, on their way from one to the other.
#[derive(Debug)]
struct Files {
    slots: [Option<OwnedFd>; SLOTS],
    listed: [bool; SLOTS],
    mount_points: MountPoints,
    kept: Vec<OwnedFd>,
}

/// What the second process does next.
enum Job {
    Apply { files: Files, op: Op, others: [Identity; 2] },
    Become(usize),
    Where,
}

enum Answer {
    Applied(Files, Outcome),
    Done,
    Where([Identity; 2]),
}

/// The second process, as the first sees it.
#[derive(Debug)]
pub(super) struct Second {
    /// `None` while it ends.
    jobs: Option<Sender<Job>>,
    answers: Receiver<Answer>,
    thread: Option<JoinHandle<()>>,
}

impl Second {
    /// A copy of the calling process. Its mounts are copied if `unshare`.
    pub(super) fn fork(unshare: bool) -> Self {
        let (jobs, for_thread) = channel();
        let (to_us, answers) = channel();
        let thread = std::thread::spawn(move || {
            begin(unshare);
            serve(&for_thread, &to_us);
        });
        let second = Second { jobs: Some(jobs), answers, thread: Some(thread) };
        // Until it has taken its context apart from ours, ours must not change.
        second.places();
        second
    }

    fn ask(&self, job: Job) -> Answer {
        self.jobs.as_ref().expect("it has not ended").send(job).expect("the second process listens");
        self.answers.recv().expect("the second process answers")
    }

    /// Its root and its working directory.
    pub(super) fn places(&self) -> [Identity; 2] {
        let Answer::Where(places) = self.ask(Job::Where) else { unreachable!("it answers what was asked") };
        places
    }

    pub(super) fn become_user(&self, user: usize) {
        self.ask(Job::Become(user));
    }
}

impl Drop for Second {
    fn drop(&mut self) {
        self.jobs = None;
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(matches!(ended, Some(Ok(())) | None) || std::thread::panicking(), "the second process has panicked");
    }
}

/// Takes the context of the calling thread apart from that of the thread that started it. Its user is the same.
fn begin(unshare: bool) {
    let what = if unshare { UnshareFlags::NEWNS } else { UnshareFlags::FS };
    // The right to copy mounts is root's; the user is set again by the first process.
    become_user(0).expect("the saved user is root");
    // SAFETY: no file descriptors are taken apart.
    unsafe { rustix::thread::unshare_unsafe(what) }.expect("its own context");
    if unshare {
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).expect("private mounts");
    }
}

fn serve(jobs: &Receiver<Job>, answers: &Sender<Answer>) {
    let mut kernel = Kernel::in_place(Place::Second);
    for job in jobs {
        let answer = match job {
            Job::Apply { files, op, others } => {
                (kernel.slots, kernel.listed, kernel.others) = (files.slots, files.listed, Some(others));
                (kernel.mount_points, kernel.kept) = (files.mount_points, files.kept);
                let outcome = kernel.apply(&op);
                Answer::Applied(kernel.lend_files(), outcome)
            }
            Job::Become(user) => {
                become_user(user).expect("a change of user");
                Answer::Done
            }
            Job::Where => Answer::Where(places()),
        };
        if answers.send(answer).is_err() {
            break;
        }
    }
}

/// Root and working directory of the calling thread.
pub(super) fn places() -> [Identity; 2] {
    // The root by its path, the working directory without one: neither needs the right to search it.
    let [root, cwd] = [("/", AtFlags::empty()), ("", AtFlags::EMPTY_PATH)]
        .map(|(path, flags)| sys::statat(CWD, path, flags).expect("attributes of the root and the working directory"));
    [(root.st_dev, root.st_ino), (cwd.st_dev, cwd.st_ino)]
}

impl Kernel {
    fn lend_files(&mut self) -> Files {
        let (slots, mount_points) = (std::mem::take(&mut self.slots), std::mem::take(&mut self.mount_points));
        Files { slots, listed: self.listed, mount_points, kept: std::mem::take(&mut self.kept) }
    }

    /// Carries out an operation by the second process, if there is one.
    pub(super) fn apply_by_other(&mut self, op: &Op) -> Outcome {
        if self.second.is_none() {
            return Outcome::Done;
        }
        let job = Job::Apply { files: self.lend_files(), op: op.clone(), others: places() };
        let second = self.second.as_ref().expect("there is one");
        let Answer::Applied(files, outcome) = second.ask(job) else { unreachable!("it answers what was asked") };
        (self.slots, self.listed) = (files.slots, files.listed);
        (self.mount_points, self.kept) = (files.mount_points, files.kept);
        outcome
    }

    /// Root and working directory of the other process.
    pub(super) fn other_places(&self) -> Option<[Identity; 2]> {
        self.second.as_ref().map(Second::places).or(self.others)
    }
}
