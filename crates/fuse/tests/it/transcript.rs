//! Replays the requests of a kernel with a session over a new tree: the replies are the same, and nothing is left at the end.
//!
//! Node ids and handles in a transcript stand for those of this run. The test forgets at the end what the kernel had not
//! forgotten at the unmount; it must be as much as was recorded.

use lightfoot_fuse::{Caller, Entry, Gauge, NameIn, NewMode, Session, SessionOptions, Ttls, Unlisted};
use ramfs::RamFs;
use std::collections::BTreeMap;
use std::sync::Arc;
use vfs::{Base, Errno, Vfs, Want};

const GIT_CLONE: &str = include_str!("transcripts/git-clone.txt");

const SUPER: Caller = Caller::of(0, 0);

/// One line: the operation, its arguments, the reply.
#[derive(Clone)]
struct Line<'t> {
    op: &'t str,
    args: Vec<&'t str>,
    answer: Vec<&'t str>,
}

impl<'t> Line<'t> {
    fn parse(line: &'t str) -> Self {
        let mut words = line.split('\t');
        let op = words.next().unwrap();
        let args: Vec<_> = words.by_ref().take_while(|word| *word != "->").collect();
        Self { op, args, answer: words.collect() }
    }

    /// Whether it is an entry of the listing before it.
    fn is_listed(&self) -> bool {
        self.op.starts_with("LISTED")
    }

    fn number(&self, at: usize) -> u64 {
        self.args[at].parse().unwrap()
    }

    /// Argument `at` as a name, without the escapes of `escape_ascii`.
    fn name(&self, at: usize) -> Vec<u8> {
        let (mut name, mut rest) = (Vec::new(), self.args[at].as_bytes());
        while let Some((&byte, after)) = rest.split_first() {
            let (byte, len) = match (byte, after.first()) {
                (b'\\', Some(b'x')) => (u8::from_str_radix(str::from_utf8(&after[1..3]).unwrap(), 16).unwrap(), 3),
                (b'\\', Some(b't')) => (b'\t', 1),
                (b'\\', Some(b'n')) => (b'\n', 1),
                (b'\\', Some(b'r')) => (b'\r', 1),
                (b'\\', Some(other)) => (*other, 1),
                _ => (byte, 0),
            };
            name.push(byte);
            rest = &after[len..];
        }
        name
    }
}

/// A session that serves the requests of a transcript.
struct Replay {
    vfs: Vfs,
    session: Arc<Session>,
    /// The current node of each recorded node, and its lookup count.
    nodes: BTreeMap<u64, (u64, u64)>,
    handles: BTreeMap<u64, u64>,
    directories: BTreeMap<u64, u64>,
    cookies: BTreeMap<u64, u64>,
}

impl Replay {
    fn new() -> Self {
        let vfs = Vfs::new(RamFs::new());
        let session = Session::new(&vfs, SessionOptions { ttls: Ttls::LONG, ..SessionOptions::default() }).unwrap();
        let nodes = BTreeMap::from([(1, (1, 0))]);
        let (handles, directories, cookies) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::from([(0, 0)]));
        Self { vfs, session, nodes, handles, directories, cookies }
    }

    fn node(&self, line: &Line<'_>, at: usize) -> u64 {
        self.nodes[&line.number(at)].0
    }

    /// Compares a reply with the recorded one, and counts the lookup.
    fn compare(&mut self, line: &Line<'_>, entry: Result<&Entry, Errno>) -> Result<(), String> {
        self.compare_node(line, entry.map(|entry| entry.node))
    }

    fn compare_node(&mut self, line: &Line<'_>, found: Result<u64, Errno>) -> Result<(), String> {
        let recorded = line.answer[0];
        let matches = match (found, recorded.parse::<u64>()) {
            (Ok(node), Ok(recorded)) => {
                let (now, lookups) = self.nodes.entry(recorded).or_insert((node, 0));
                let is_same = *lookups == 0 || *now == node;
                (*now, *lookups) = (node, *lookups + 1);
                is_same
            }
            (Err(errno), Err(_)) => format!("{errno:?}") == recorded,
            _ => false,
        };
        if matches { Ok(()) } else { Err(format!("recorded {recorded}, now {found:?}")) }
    }

    fn forget(&mut self, recorded: u64, lookups: u64) -> Result<(), String> {
        let (now, count) = self.nodes.get_mut(&recorded).ok_or("forgot an unknown node")?;
        *count = count.checked_sub(lookups).ok_or("forgot more lookups than were counted")?;
        self.session.forget(*now, lookups);
        Ok(())
    }

    /// Lists as the transport does: looks up and forgets entries that do not fit.
    fn list(&mut self, line: &Line<'_>, listed: &[Line<'_>]) -> Result<(), String> {
        let (handle, cookie) = (self.directories[&line.number(0)], self.cookies[&line.number(1)]);
        let (session, mut expected, mut done) = (self.session.clone(), listed.iter(), Ok(()));
        let answer = session.clone().readdir(handle, cookie, Want::ATTRIBUTES, &mut |entry| {
            if matches!(entry.name, b"." | b"..") {
                self.cookies.insert(entry.cookie, entry.cookie);
                return true;
            }
            let (op, node) = match session.listed_entry(&SUPER, handle, entry) {
                Ok(found) => ("LISTED", found.node),
                Err(Unlisted::NameOnly(node)) => ("LISTED_NAME", node),
                Err(Unlisted::Gone) => return true,
            };
            let Some(line) = expected.next() else {
                session.forget(node, 1);
                return false;
            };
            if (line.op, &*line.name(0)) != (op, entry.name) {
                done = Err(format!("listed {}, now {}", line.args[0], entry.name.escape_ascii()));
                return false;
            }
            self.cookies.insert(line.number(1), entry.cookie);
            done = self.compare_node(line, Ok(node));
            done.is_ok()
        });
        done?;
        if answer.is_ok() && expected.next().is_none() { Ok(()) } else { Err(format!("listed more; now {answer:?}")) }
    }

    fn create(&mut self, line: &Line<'_>) -> Result<(), String> {
        let flags = line.args[2].parse().unwrap();
        let made = self.session.create(&SUPER, self.node(line, 0), &line.name(1), NewMode::new(0o644, 0), flags);
        if let (Ok((_, opened)), Some(recorded)) = (&made, line.answer.get(1)) {
            self.handles.insert(recorded.parse().unwrap(), opened.handle);
        }
        self.compare(line, made.as_ref().map(|(entry, _)| entry).map_err(|errno| *errno))
    }

    fn open(&mut self, line: &Line<'_>) -> Result<(), String> {
        let node = self.node(line, 0);
        let opened = match line.op {
            "OPENDIR" => self.session.opendir(&SUPER, node),
            _ => self.session.open(&SUPER, node, line.args[1].parse().unwrap()).map(|opened| opened.handle),
        };
        let table = if line.op == "OPENDIR" { &mut self.directories } else { &mut self.handles };
        match (opened, line.answer[0].parse()) {
            (Ok(handle), Ok(recorded)) => drop(table.insert(recorded, handle)),
            (Err(errno), Err(_)) if format!("{errno:?}") == line.answer[0] => {}
            (opened, _) => return Err(format!("opened {}, now {opened:?}", line.answer[0])),
        }
        Ok(())
    }

    fn serve(&mut self, line: &Line<'_>, listed: &[Line<'_>]) -> Result<(), String> {
        let session = self.session.clone();
        let made = |made: Result<Entry, Errno>, replay: &mut Self| replay.compare(line, made.as_ref().map_err(|e| *e));
        let done = |done: Result<(), Errno>| match done {
            Ok(()) if line.answer[0] == "0" => Ok(()),
            Err(errno) if format!("{errno:?}") == line.answer[0] => Ok(()),
            now => Err(format!("answered {}, now {now:?}", line.answer[0])),
        };
        match line.op {
            "LOOKUP" => made(session.lookup(&SUPER, self.node(line, 0), &line.name(1)), self),
            "MKDIR" => made(session.mkdir(&SUPER, self.node(line, 0), &line.name(1), NewMode::new(0o755, 0)), self),
            "MKNOD" => made(session.mknod(&SUPER, self.node(line, 0), &line.name(1), NewMode::new(0o644, 0), 0), self),
            "SYMLINK" => made(session.symlink(&SUPER, self.node(line, 0), &line.name(1), b"body", &[]), self),
            "LINK" => made(session.link(&SUPER, self.node(line, 0), self.node(line, 1), &line.name(2)), self),
            "UNLINK" => done(session.unlink(&SUPER, self.node(line, 0), &line.name(1))),
            "RMDIR" => done(session.rmdir(&SUPER, self.node(line, 0), &line.name(1))),
            "RENAME" => {
                let (name, new) = (line.name(1), line.name(3));
                let (from, to) = (NameIn::new(self.node(line, 0), &name), NameIn::new(self.node(line, 2), &new));
                done(session.rename(&SUPER, from, to, line.number(4) as u32))
            }
            "CREATE" => self.create(line),
            "OPEN" | "OPENDIR" => self.open(line),
            "RELEASE" => {
                session.release(self.handles.remove(&line.number(1)).ok_or("not open")?);
                Ok(())
            }
            "RELEASEDIR" => {
                session.releasedir(self.directories.remove(&line.number(0)).ok_or("not open")?);
                Ok(())
            }
            "READDIRPLUS" => self.list(line, listed),
            "FORGET" | "BATCH_FORGET" => (0..line.args.len() / 2)
                .try_for_each(|pair| self.forget(line.number(2 * pair), line.number(2 * pair + 1))),
            "END" => self.end(line),
            op => Err(format!("there is no {op}")),
        }
    }

    /// The unmount: compares what the kernel has not forgotten.
    fn end(&mut self, line: &Line<'_>) -> Result<(), String> {
        let left: Vec<_> =
            self.nodes.iter().filter(|(_, (_, lookups))| *lookups != 0).map(|(node, known)| (*node, known.1)).collect();
        let (nodes, lookups) = (left.len() as u64, left.iter().map(|(_, lookups)| lookups).sum::<u64>());
        self.session.measure();
        let counted = (self.session.known_nodes() as u64 - 1, self.session.metrics().get(Gauge::Lookups));
        if (nodes, lookups) != (line.number(0), line.number(1)) || counted != (nodes, lookups) {
            return Err(format!("left {:?}, now {nodes} {lookups}, and the session counts {counted:?}", line.args));
        }
        left.into_iter().try_for_each(|(node, lookups)| self.forget(node, lookups))
    }
}

/// What is left: nodes, lookups, handles, forgets in excess, held places.
type Left = (usize, u64, usize, u64, Vec<String>);

fn replay(text: &str) -> Result<Left, String> {
    let lines: Vec<Line<'_>> = text.lines().filter(|line| !line.starts_with('#')).map(Line::parse).collect();
    let mut replay = Replay::new();
    for (number, line) in lines.iter().enumerate().filter(|(_, line)| !line.is_listed()) {
        let listed: Vec<_> = lines[number + 1..].iter().take_while(|line| line.is_listed()).cloned().collect();
        let label = |what| format!("line {number}, {} {:?}: {what}", line.op, line.args);
        replay.serve(line, &listed).map_err(label)?;
    }
    let Replay { vfs, session, .. } = replay;
    session.measure();
    let gauge = |gauge| session.metrics().get(gauge);
    let holders = vfs.context().holders(Base::CWD, b"/").unwrap().into_iter();
    // Contexts hold the root.
    let held = holders.map(|holder| holder.path.to_string_lossy().into_owned()).filter(|path| path != "/");
    let open = session.open_handles();
    Ok((session.known_nodes(), gauge(Gauge::Lookups), open, gauge(Gauge::ExcessForgets), held.collect()))
}

#[test]
fn a_clone_and_its_removal_leave_nothing_behind() {
    assert_eq!(replay(GIT_CLONE), Ok((1, 0, 0, 0, vec![])));
}

#[test]
fn a_transcript_that_differs_in_one_line_is_noticed() {
    let lines: Vec<&str> = GIT_CLONE.lines().collect();
    // The operation whose first line is changed, and how.
    type Change = fn(&str) -> String;
    let changes: [(&str, Change); 8] = [
        ("FORGET", |_| "#".into()),
        ("FORGET", |line| format!("{line}0")),
        ("FORGET", |line| format!("{line}\n{line}")),
        // Without its last node.
        ("BATCH_FORGET", |line| line.rsplitn(3, '\t').last().unwrap().into()),
        ("RELEASE", |_| "#".into()),
        ("LISTED", |_| "#".into()),
        ("LOOKUP", |line| format!("{line}\n{line}").replace("ENOENT", "EIO")),
        ("UNLINK", |_| "#".into()),
    ];
    for (op, change) in changes {
        let at = lines.iter().position(|line| line.split('\t').next() == Some(op)).unwrap();
        let changed = change(lines[at]);
        assert_ne!(changed, lines[at], "{op}");
        let text: Vec<&str> =
            lines.iter().enumerate().map(|(n, line)| if n == at { &*changed } else { line }).collect();
        assert_ne!(replay(&text.join("\n")), Ok((1, 0, 0, 0, vec![])), "{op}: {changed}");
    }
}
