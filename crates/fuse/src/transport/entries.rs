//! Requests on names: look up, make, remove, rename, link.

use super::Transport;
use super::convert::{self, caller};
use super::trace::{Replied, escaped, line, node};
use crate::session::{NameIn, NewMode};
use fusedev::wire::{Body, Operation, Request};
use vfs::Errno;

impl Transport {
    /// Replies with an entry, or to a removal with nothing.
    pub(super) fn answer_entry(&self, request: &Request<'_>, body: &mut Body) -> Result<(), Errno> {
        let (session, caller, parent) = (&self.session, caller(request), request.header.nodeid);
        let labels: Vec<_> = request.extensions.labels.iter().collect();
        let entry = match request.operation {
            Operation::Lookup(name) => {
                let found = session.lookup(&caller, parent, name);
                line!("LOOKUP\t{parent}\t{}\t->\t{}", escaped(name), node(&found));
                found
            }
            Operation::Mknod(new, name) => {
                let mode = NewMode::new(new.mode, new.umask).labelled(&labels);
                let made = session.mknod(&caller, parent, name, mode, new.rdev);
                line!("MKNOD\t{parent}\t{}\t{}\t{}\t->\t{}", escaped(name), new.mode, new.rdev, node(&made));
                made
            }
            Operation::Mkdir(new, name) => {
                let mode = NewMode::new(new.mode, new.umask).labelled(&labels);
                let made = session.mkdir(&caller, parent, name, mode);
                line!("MKDIR\t{parent}\t{}\t->\t{}", escaped(name), node(&made));
                made
            }
            Operation::Symlink(name, to) => {
                let made = session.symlink(&caller, parent, name, to, &labels);
                line!("SYMLINK\t{parent}\t{}\t->\t{}", escaped(name), node(&made));
                made
            }
            Operation::Link(link, name) => {
                let made = session.link(&caller, link.oldnodeid, parent, name);
                line!("LINK\t{}\t{parent}\t{}\t->\t{}", link.oldnodeid, escaped(name), node(&made));
                made
            }
            _ => return self.answer_removal(request, body),
        };
        body.put_struct(&convert::entry(&entry?));
        Ok(())
    }

    fn answer_removal(&self, request: &Request<'_>, body: &mut Body) -> Result<(), Errno> {
        let (session, caller, parent) = (&self.session, caller(request), request.header.nodeid);
        match request.operation {
            Operation::Unlink(name) => {
                let done = session.unlink(&caller, parent, name);
                line!("UNLINK\t{parent}\t{}\t->\t{}", escaped(name), Replied(done.map(|()| 0)));
                done
            }
            Operation::Rmdir(name) => {
                let done = session.rmdir(&caller, parent, name);
                line!("RMDIR\t{parent}\t{}\t->\t{}", escaped(name), Replied(done.map(|()| 0)));
                done
            }
            Operation::Rename(rename, name, new_name) => {
                let (from, to) = (NameIn::new(parent, name), NameIn::new(rename.newdir, new_name));
                let done = session.rename(&caller, from, to, rename.flags);
                let (name, new, replied) = (escaped(name), escaped(new_name), Replied(done.map(|()| 0)));
                line!("RENAME\t{parent}\t{name}\t{}\t{new}\t{}\t->\t{replied}", rename.newdir, rename.flags);
                done
            }
            _ => self.answer_attributes(request, body),
        }
    }
}
