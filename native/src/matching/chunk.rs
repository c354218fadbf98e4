//! Up to 512 subscriptions that are tested together, one bit each.
//!
//! For an attribute that many of them constrain there is a line of 512 bits for each bucket: a bit is set where the
//! subscription refuses every value of the bucket. The lines of an event's buckets, joined by `or`, leave the candidates,
//! and each candidate's ranges and tokens are then compared exactly. The last line of an attribute is for events without
//! it, which all who constrain it refuse.
//!
//! Bits of one slot are spread over all lines, so drawing them for one subscription costs nearly as much as for several.
//! A new one is therefore no more than a candidate of every event until several have come.

use super::batch::Batch;
use super::cuts::{ABSENT, BUCKETS, Cuts};

pub const SLOTS: usize = 512;
const WORDS: usize = SLOTS / 64;
/// One bit for each slot, in one line of the processor's cache.
#[derive(Clone, Copy, Default, PartialEq)]
#[repr(align(64))]
struct Line([u64; WORDS]);
const LINES: usize = BUCKETS + 1;

impl Line {
    fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    fn has(&self, slot: usize) -> bool {
        self.0[slot / 64] >> (slot % 64) & 1 == 1
    }

    fn set(&mut self, slot: usize) {
        self.0[slot / 64] |= 1 << (slot % 64);
    }

    fn clear(&mut self, slot: usize) {
        self.0[slot / 64] &= !(1 << (slot % 64));
    }
}

/// An attribute has lines where so many of the chunk's subscriptions constrain it; they cost 2 kB.
const USERS_MIN: usize = 16;
/// So many subscriptions are drawn into the lines at once.
const DRAWN_TOGETHER: usize = 4;
/// The attribute of a place without range: every event has a value for it.
pub const NOTHING: u16 = 0;
const EVERYTHING: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

#[derive(Clone, Copy)]
pub struct Range {
    pub attribute: u16,
    pub low: f64,
    pub high: f64,
}

/// One subscription, outside of any chunk.
#[derive(Clone, Default)]
pub struct Entry {
    pub id: u32,
    pub ranges: Vec<Range>,
    /// What the event must carry besides the token of the group.
    pub tokens: Vec<u32>,
}

#[derive(Default)]
pub struct Chunk {
    pub group: u32,
    /// The greatest key put in so far.
    pub top: u64,
    live: Line,
    /// Live slots of which the lines say nothing yet.
    undrawn: Line,
    /// Free slots of which the lines still say something.
    stale: Line,
    ids: Vec<u32>,
    range_counts: Vec<u8>,
    /// Ranges per slot that there is room for.
    stride: usize,
    attributes: Vec<u16>,
    ends: Vec<(f64, f64)>,
    /// Of the few slots that have some.
    tokens: Vec<(u16, u32)>,
    /// The attributes that have lines, in the order of the lines.
    lined: Vec<u16>,
    lines: Vec<Line>,
    /// Every subscription refuses values of this attribute outside of these ends.
    pub bound: Option<Range>,
    changes: usize,
    laid_out_at: usize,
}

impl Chunk {
    pub fn new(group: u32) -> Self {
        Chunk { group, ..Chunk::default() }
    }

    pub fn len(&self) -> usize {
        self.live.count()
    }

    pub fn is_full(&self) -> bool {
        self.live.0 == [u64::MAX; WORDS]
    }

    pub fn slots(&self) -> Vec<usize> {
        bits(self.live).collect()
    }

    pub fn memory(&self) -> usize {
        let per_slot = 4 * self.ids.capacity() + self.range_counts.capacity();
        let ranges = 2 * self.attributes.capacity() + 16 * self.ends.capacity();
        let tokens = size_of::<(u16, u32)>() * self.tokens.capacity();
        size_of::<Self>() + per_slot + ranges + tokens + 64 * self.lines.capacity() + 2 * self.lined.capacity()
    }

    fn ranges(&self, slot: usize) -> impl Iterator<Item = Range> + '_ {
        let first = slot * self.stride;
        (first..first + self.range_counts[slot] as usize).map(|place| {
            let (low, high) = self.ends[place];
            Range { attribute: self.attributes[place], low, high }
        })
    }

    pub fn entry(&self, slot: usize) -> Entry {
        let tokens = self.tokens.iter().filter(|(owner, _)| *owner as usize == slot);
        Entry {
            id: self.ids[slot],
            ranges: self.ranges(slot).collect(),
            tokens: tokens.map(|(_, token)| *token).collect(),
        }
    }

    /// Put a subscription into a free slot; the chunk must not be full.
    pub fn insert(&mut self, entry: &Entry, cuts: &[Cuts]) -> usize {
        if entry.ranges.len() > self.stride {
            self.restride(entry.ranges.len());
        }
        let slot = self.free_slot(cuts);
        self.write(slot, entry);
        self.live.set(slot);
        self.undrawn.set(slot);
        if self.undrawn.count() >= DRAWN_TOGETHER {
            self.draw_new(cuts);
        }
        self.widen_bound(entry);
        self.changes += 1;
        slot
    }

    /// Whether so much has come since the lines were chosen that they should be chosen again.
    pub fn is_outgrown(&self) -> bool {
        self.changes >= self.laid_out_at.max(2 * USERS_MIN)
    }

    pub fn remove(&mut self, slot: usize) {
        self.live.clear(slot);
        if self.undrawn.has(slot) {
            self.undrawn.clear(slot);
        } else {
            self.stale.set(slot);
        }
        self.tokens.retain(|(owner, _)| *owner as usize != slot);
    }

    /// A slot of which the lines say nothing.
    fn free_slot(&mut self, cuts: &[Cuts]) -> usize {
        let is_last_resort = self.ids.len() == SLOTS || self.stale.count() >= DRAWN_TOGETHER;
        if let Some(free) = self.clean_slot() {
            return free;
        }
        if is_last_resort {
            self.draw_new(cuts);
            return self.clean_slot().expect("the chunk is not full");
        }
        self.ids.push(0);
        self.range_counts.push(0);
        let places = self.ids.len() * self.stride;
        self.attributes.resize(places, NOTHING);
        self.ends.resize(places, EVERYTHING);
        self.ids.len() - 1
    }

    fn clean_slot(&self) -> Option<usize> {
        let taken = |word: usize| self.live.0[word] | self.stale.0[word];
        let word = (0..WORDS).find(|&word| taken(word) != u64::MAX)?;
        let slot = word * 64 + taken(word).trailing_ones() as usize;
        (slot < self.ids.len()).then_some(slot)
    }

    /// Bring the lines up to date.
    fn draw_new(&mut self, cuts: &[Cuts]) {
        let (stale, undrawn) = (std::mem::take(&mut self.stale), std::mem::take(&mut self.undrawn));
        for line in &mut self.lines {
            for word in 0..WORDS {
                line.0[word] &= !stale.0[word];
            }
        }
        self.draw_slots(bits(undrawn), cuts);
    }

    fn restride(&mut self, stride: usize) {
        let old: Vec<Vec<Range>> = (0..self.ids.len()).map(|slot| self.ranges(slot).collect()).collect();
        self.stride = stride;
        self.attributes = vec![NOTHING; old.len() * stride];
        self.ends = vec![EVERYTHING; old.len() * stride];
        for (slot, ranges) in old.iter().enumerate() {
            self.write_ranges(slot, ranges);
        }
    }

    fn write(&mut self, slot: usize, entry: &Entry) {
        self.ids[slot] = entry.id;
        self.range_counts[slot] = entry.ranges.len() as u8;
        self.write_ranges(slot, &entry.ranges);
        self.tokens.extend(entry.tokens.iter().map(|token| (slot as u16, *token)));
    }

    fn write_ranges(&mut self, slot: usize, ranges: &[Range]) {
        let places = slot * self.stride..(slot + 1) * self.stride;
        self.attributes[places.clone()].fill(NOTHING);
        self.ends[places.clone()].fill(EVERYTHING);
        for (place, range) in places.zip(ranges) {
            self.attributes[place] = range.attribute;
            self.ends[place] = (range.low, range.high);
        }
    }

    /// Set the slot's bit in each line of the attribute whose bucket is outside of these; it was set in none.
    fn draw(&mut self, slot: usize, attribute: u16, first: u8, last: u8) {
        let Some(place) = self.lined.iter().position(|&lined| lined == attribute) else { return };
        let lines = &mut self.lines[place * LINES..(place + 1) * LINES];
        lines[..first as usize].iter_mut().for_each(|line| line.set(slot));
        lines[last as usize + 1..].iter_mut().for_each(|line| line.set(slot));
    }

    /// A chunk without bound gets one when it is laid out, not before.
    fn widen_bound(&mut self, entry: &Entry) {
        let Some(bound) = &mut self.bound else { return };
        match entry.ranges.iter().find(|range| range.attribute == bound.attribute) {
            Some(range) => {
                bound.low = bound.low.min(range.low);
                bound.high = bound.high.max(range.high);
            }
            None => self.bound = None,
        }
    }

    /// Choose the attributes that have lines, draw the lines and find the bound anew.
    pub fn lay_out(&mut self, cuts: &[Cuts]) {
        let slots = self.slots();
        let mut users: Vec<u16> =
            slots.iter().flat_map(|&slot| self.ranges(slot)).map(|range| range.attribute).collect();
        users.sort_unstable();
        let runs: Vec<&[u16]> = users.chunk_by(|one, other| one == other).collect();
        self.lined = runs.iter().filter(|run| run.len() >= USERS_MIN).map(|run| run[0]).collect();
        self.lines = vec![Line::default(); self.lined.len() * LINES];
        let everybodys: Vec<u16> = runs.iter().filter(|run| run.len() == slots.len()).map(|run| run[0]).collect();
        (self.undrawn, self.stale) = (Line::default(), Line::default());
        self.draw_slots(slots.iter().copied(), cuts);
        self.bound = everybodys.iter().map(|&attribute| self.hull(&slots, attribute)).min_by(|one, other| {
            let width = |range: &Range| {
                let cuts = &cuts[range.attribute as usize];
                cuts.position(range.high) - cuts.position(range.low)
            };
            width(one).total_cmp(&width(other))
        });
        self.changes = 0;
        self.laid_out_at = slots.len();
    }

    fn draw_slots(&mut self, slots: impl Iterator<Item = usize>, cuts: &[Cuts]) {
        for slot in slots {
            for place in slot * self.stride..slot * self.stride + self.range_counts[slot] as usize {
                let (attribute, (low, high)) = (self.attributes[place], self.ends[place]);
                let cuts = &cuts[attribute as usize];
                self.draw(slot, attribute, cuts.bucket(low), cuts.bucket(high));
            }
        }
    }

    fn hull(&self, slots: &[usize], attribute: u16) -> Range {
        let mut hull = Range { attribute, low: f64::INFINITY, high: f64::NEG_INFINITY };
        for range in slots.iter().flat_map(|&slot| self.ranges(slot)).filter(|range| range.attribute == attribute) {
            hull.low = hull.low.min(range.low);
            hull.high = hull.high.max(range.high);
        }
        hull
    }

    /// Read the chunk from end to end, which brings it into the cache much faster than the scans of single events would.
    #[inline(always)]
    pub fn touch(&self) {
        let lines = self.lines.iter().fold(0, |sum, line| sum ^ line.0[0]);
        let ends = self.ends.iter().step_by(4).fold(0, |sum, ends| sum ^ ends.0.to_bits());
        std::hint::black_box(lines ^ ends);
    }

    /// Append the ids of the subscriptions that the event matches; `accepted` is room to work in.
    #[inline(always)]
    pub fn scan(&self, batch: &Batch, event: usize, accepted: &mut [u16; SLOTS], found: &mut Vec<u32>) {
        let mut refused = Line(self.live.0.map(|word| !word));
        self.join_lines(&mut refused, batch.low_buckets(event));
        if let Some(buckets) = batch.high_buckets(event) {
            self.join_lines(&mut refused, buckets);
        }
        let (lows, highs) = batch.values(event);
        let mut count = 0;
        for slot in bits(Line(refused.0.map(|word| !word))) {
            accepted[count] = slot as u16;
            count += usize::from(self.is_inside(slot, lows, highs));
        }
        let carries = |slot: &&u16| self.tokens.is_empty() || self.carries_tokens(**slot, batch.tokens(event));
        found.extend(accepted[..count].iter().filter(carries).map(|&slot| self.ids[slot as usize]));
    }

    #[inline(always)]
    fn join_lines(&self, refused: &mut Line, buckets: &[u8]) {
        for (lines, &attribute) in self.lines.chunks_exact(LINES).zip(&self.lined) {
            let line = &lines[buckets[attribute as usize].min(ABSENT) as usize];
            for word in 0..WORDS {
                refused.0[word] |= line.0[word];
            }
        }
    }

    /// Every place of the slot is compared, also those without a range: a branch would be mispredicted half of the time.
    #[inline(always)]
    fn is_inside(&self, slot: usize, lows: &[f64], highs: &[f64]) -> bool {
        let places = slot * self.stride..(slot + 1) * self.stride;
        let mut inside = true;
        for (&attribute, &(low, high)) in self.attributes[places.clone()].iter().zip(&self.ends[places]) {
            inside &= (low <= lows[attribute as usize]) & (highs[attribute as usize] <= high);
        }
        inside
    }

    fn carries_tokens(&self, slot: u16, carried: &[u32]) -> bool {
        let mut wanted = self.tokens.iter().filter(|(owner, _)| *owner == slot);
        wanted.all(|(_, token)| carried.contains(token))
    }
}

#[inline(always)]
fn bits(line: Line) -> impl Iterator<Item = usize> {
    line.0.into_iter().enumerate().flat_map(|(place, word)| {
        let mut rest = word;
        std::iter::from_fn(move || {
            (rest != 0).then(|| {
                let bit = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                place * 64 + bit
            })
        })
    })
}
