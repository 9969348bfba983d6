//! The coherence protocol: the cost of a miss, and its effect on the line.
//!
//! # What it is
//! A line serves one exclusive transfer at a time, others queue. When requests queue, the owner keeps the line for a
//! while (its hits in that time are real hits), then the transfer takes a fraction of the unloaded latency. Shared reads are fetched
//! once per node where CPUs share a cache, and then served inside. All changes of state happen when a transaction
//! starts; the operation takes effect when the requester gets the line, so a requester must not do anything between.
//!
//! # What it is not
//! A model of buses or links: transactions on different lines do not disturb each other.
//!
//! # Where it comes from
//! The rules are in `lab/docs/simulator.md`. Two simpler models failed: effect at issue, and a
//! fixed hold time.

use super::event::Event;
use super::virtual_cpu::add;
use super::{Engine, Kind};

impl Engine {
    /// Requests a line that `cpu` misses now. Returns the time at which the CPU gets the line.
    /// Returns `None` if the CPU queues: [`arbitrate`](Self::arbitrate) will set the CPU's clock.
    pub(super) fn request(&self, number: usize, cpu: usize, kind: Kind) -> Option<u64> {
        let line = self.lines.line(number);
        let now = self.clock.get();
        if kind == Kind::Load {
            add(&self.counts.load_misses, 1);
            let node = self.places.node(cpu);
            if self.costs.shared_cache && line.owner.get() == 0 && line.nodes.get() & 1 << node != 0 {
                return Some(self.read_in_node(number, cpu, now));
            }
        } else {
            add(&self.counts.write_misses, 1);
        }
        if now >= line.busy.get() && line.head.get() == 0 {
            return Some(self.transact(number, cpu, kind, now, false));
        }
        add(&self.counts.queued, 1);
        let (this, who) = (&self.cpus[cpu], cpu as u16 + 1);
        this.request.set(kind);
        this.next_request.set(0);
        match line.head.get() {
            0 => line.head.set(who),
            _ => self.cpus[usize::from(line.tail.get()) - 1].next_request.set(who),
        }
        line.tail.set(who);
        if !line.is_due.replace(true) {
            self.at(line.busy.get().max(now), Event::Arbitrate(number as u32));
        }
        None
    }

    /// Serves one request of the queue when the home is free.
    pub(super) fn arbitrate(&self, number: usize) {
        let line = self.lines.line(number);
        let now = self.clock.get();
        line.is_due.set(false);
        if line.head.get() == 0 {
            return;
        }
        let (before, pick) = self.pick(number);
        let cpu = usize::from(pick) - 1;
        let kept = if line.owner.get() == 0 { 0 } else { line.ready.get() + self.keep_time(number, cpu) };
        let until = kept.max(line.busy.get());
        if now < until {
            line.is_due.set(true);
            return self.at(until, Event::Arbitrate(number as u32));
        }
        line.streak.set(if before == 0 { 0 } else { line.streak.get() + 1 });
        self.unqueue(number, before, pick);
        let kind = self.cpus[cpu].request.get();
        let arrival = self.transact(number, cpu, kind, now, true);
        self.cpus[cpu].arrival.set(arrival);
        self.set_clock(cpu, if self.is_buffered(kind) { now } else { arrival });
        if self.costs.shared_cache && line.owner.get() == 0 {
            self.serve_nodes_with_copies(number, now);
        }
        if line.head.get() != 0 {
            line.is_due.set(true);
            self.at(line.busy.get(), Event::Arbitrate(number as u32));
        }
    }

    /// Returns the request to serve and the one before it in the queue: the oldest, or one of the
    /// owner's node if it may overtake.
    fn pick(&self, number: usize) -> (u16, u16) {
        let line = self.lines.line(number);
        let oldest = (0, line.head.get());
        if line.owner.get() == 0 || line.streak.get() >= self.costs.overtake {
            return oldest;
        }
        let node = self.places.node(usize::from(line.owner.get()) - 1);
        let (mut before, mut request) = oldest;
        while request != 0 {
            let cpu = usize::from(request) - 1;
            if self.places.node(cpu) == node {
                return (before, request);
            }
            before = request;
            request = self.cpus[cpu].next_request.get();
        }
        oldest
    }

    /// Returns how long the owner keeps the line: the snoop needs that time to reach the owner. The
    /// time is drawn once per ownership.
    fn keep_time(&self, number: usize, next: usize) -> u64 {
        let line = self.lines.line(number);
        let owner = usize::from(line.owner.get()) - 1;
        let mean = self.costs.keep[self.places.distance(self.places.node(owner), self.places.node(next))];
        if line.keep.get() == 0 && mean > 0 {
            line.keep.set((mean / 2 + self.cpus[owner].random.below(mean)).max(1) as u32);
        }
        line.keep.get().into()
    }

    /// Returns whether the CPU continues when the transfer of an access of this kind begins.
    pub(super) fn is_buffered(&self, kind: Kind) -> bool {
        kind == Kind::Store && self.costs.stores > 0
    }

    fn unqueue(&self, number: usize, before: u16, request: u16) {
        let line = self.lines.line(number);
        let next = self.cpus[usize::from(request) - 1].next_request.get();
        match before {
            0 => line.head.set(next),
            _ => self.cpus[usize::from(before) - 1].next_request.set(next),
        }
        if line.tail.get() == request {
            line.tail.set(before);
        }
    }

    /// Queued reads of nodes that have a copy at this time are served there.
    fn serve_nodes_with_copies(&self, number: usize, now: u64) {
        let line = self.lines.line(number);
        let (mut before, mut request) = (0, line.head.get());
        while request != 0 {
            let cpu = usize::from(request) - 1;
            let next = self.cpus[cpu].next_request.get();
            if self.cpus[cpu].request.get() == Kind::Load && line.nodes.get() & 1 << self.places.node(cpu) != 0 {
                self.unqueue(number, before, request);
                let arrival = self.read_in_node(number, cpu, now);
                self.set_clock(cpu, arrival);
            } else {
                before = request;
            }
            request = next;
        }
    }

    /// Serves a load from the node's shared cache, which has the line. Other nodes serve loads at
    /// the same time.
    fn read_in_node(&self, number: usize, cpu: usize, now: u64) -> u64 {
        let line = self.lines.line(number);
        let slot = &self.shared[self.places.node(cpu) * 64 + number % 64];
        let (known, busy) = slot.get();
        let busy = if known == number as u32 { busy } else { 0 };
        let start = now.max(busy).max(line.ready.get());
        slot.set((number as u32, start + self.costs.local_occupancy));
        self.give_copy(number, cpu);
        start + self.costs.load_shared[0]
    }

    /// Makes one transaction, which starts at `start`. Returns the time at which the requester gets
    /// the line.
    fn transact(&self, number: usize, cpu: usize, kind: Kind, start: u64, was_queued: bool) -> u64 {
        let line = self.lines.line(number);
        if line.home.get() == 0 {
            line.home.set(self.places.node(cpu) as u16 + 1);
        }
        match kind {
            Kind::Load => self.transact_load(number, cpu, start, was_queued),
            Kind::Store | Kind::Rmw => self.transact_write(number, cpu, kind, start, was_queued),
        }
    }

    /// Returns the time of a transfer. A request that was queued takes a fraction of the unloaded
    /// latency.
    fn transfer(&self, latency: u64, was_queued: bool) -> u64 {
        if was_queued { latency * self.costs.rest / 256 } else { latency }
    }

    fn transact_load(&self, number: usize, cpu: usize, start: u64, was_queued: bool) -> u64 {
        let line = self.lines.line(number);
        let (node, owner) = (self.places.node(cpu), line.owner.get());
        let begin = start.max(line.ready.get());
        let done = if owner != 0 {
            // Modified or exclusive in one cache, which now shares it.
            let distance = self.places.distance(node, self.places.node(usize::from(owner) - 1));
            let done = begin + self.transfer(self.costs.load_modified[distance], was_queued);
            line.busy.set(done);
            line.ready.set(done);
            line.is_put_off.set(false);
            line.owner.set(0);
            done
        } else if line.nodes.get() != 0 {
            // The nearest sharer sends it; the home serializes.
            let (nearest, _) = self.places.range(node, line.nodes.get());
            let occupancy = if nearest == 0 { self.costs.local_occupancy } else { self.costs.home_occupancy };
            line.busy.set(start + occupancy);
            begin + self.costs.load_shared[nearest]
        } else {
            let done = start + self.costs.memory[self.places.distance(node, usize::from(line.home.get()) - 1)];
            line.busy.set(start + self.costs.home_occupancy);
            line.ready.set(done);
            line.keep.set(0);
            // Exclusive: no other CPU has it, so a write needs no transaction.
            line.owner.set(cpu as u16 + 1);
            done
        };
        if self.costs.shared_cache {
            self.shared[node * 64 + number % 64].set((number as u32, done));
        }
        line.nodes.set(line.nodes.get() | 1 << node);
        self.give_copy(number, cpu);
        done
    }

    fn transact_write(&self, number: usize, cpu: usize, kind: Kind, start: u64, was_queued: bool) -> u64 {
        let line = self.lines.line(number);
        let node = self.places.node(cpu);
        let latency = if line.nodes.get() == 0 {
            self.costs.memory[self.places.distance(node, usize::from(line.home.get()) - 1)]
        } else if self.costs.shared_cache && line.nodes.get() == 1 << node && !self.others_have_copies(number, cpu) {
            // The shared cache of the own node has it, or confirms that no other has.
            self.costs.load_shared[0]
        } else {
            // The farthest copy must be taken away.
            let (_, farthest) = self.places.range(node, line.nodes.get());
            let row = if kind == Kind::Rmw { &self.costs.rmw_miss } else { &self.costs.store_miss };
            row[farthest]
        };
        let done = start.max(line.ready.get()) + self.transfer(latency, was_queued);
        line.busy.set(done);
        line.ready.set(done);
        line.keep.set(0);
        line.is_put_off.set(false);
        line.owner.set(cpu as u16 + 1);
        line.nodes.set(1 << node);
        line.version.set(line.version.get().wrapping_add(1));
        self.lines.remove_copies(number);
        self.give_copy(number, cpu);
        if line.waiters.get() != 0 {
            self.wake_spinners(number, node, start);
        }
        done
    }

    fn others_have_copies(&self, number: usize, cpu: usize) -> bool {
        (0..self.lines.words).any(|word| {
            let own = if word == cpu / 64 { 1 << (cpu % 64) } else { 0 };
            self.lines.copies(number, word) & !own != 0
        })
    }

    /// Gives `cpu` a copy; its cache makes room.
    fn give_copy(&self, number: usize, cpu: usize) {
        self.lines.add_copy(number, cpu);
        let Some(caches) = &self.caches else { return };
        if let Some(victim) = caches.insert(cpu, number, &self.lines) {
            self.evict(victim, cpu);
        }
    }

    /// Drops a line from the private cache of `cpu`. A cache that the node shares keeps the line.
    fn evict(&self, number: usize, cpu: usize) {
        add(&self.counts.evictions, 1);
        let line = self.lines.line(number);
        self.lines.remove_copy(number, cpu);
        if usize::from(line.owner.get()) == cpu + 1 {
            line.owner.set(0);
        }
        let node = self.places.node(cpu);
        if !self.costs.shared_cache && !self.lines.node_has_copy(number, node, &self.places) {
            line.nodes.set(line.nodes.get() & !(1 << node));
        }
    }
}
