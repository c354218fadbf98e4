//! All subscriptions: groups by token, each a list of chunks in an order that puts alike subscriptions together.
//!
//! A subscription stands in the group of its rarest token, or in the group of those without token, so an event looks at
//! the groups of its own tokens and at that one. Inside a group the order is by the attribute whose range lets through
//! least, then by how wide that range is, then by its middle: so most chunks are bound on one attribute and skipped by
//! most events. A full chunk is split in two, an emptied one given to its neighbour: the leaves of a B+ tree.

use std::collections::HashMap;

use super::batch::{Batch, Rows};
use super::boxes::Boxes;
use super::chunk::{Chunk, Entry, Range, SLOTS};
use super::cuts::Cuts;

/// The group of the subscriptions that demand no token.
pub const NO_TOKEN: u32 = u32::MAX;
/// A chunk filled in order is left with room for a tenth more, so that the next additions do not split every chunk.
const FILLED: usize = SLOTS * 9 / 10;
/// Below it a chunk joins its neighbour.
const SPARSE: usize = SLOTS / 4;
/// The cuts are found anew after so many additions, or as many as there are subscriptions.
const ADDITIONS_MIN: usize = 256;
/// Events looked at together, the first time and at most: enough to pay for bringing a chunk into the cache.
const EVENTS_FIRST: usize = 1024;
const EVENTS_MAX: usize = 16_384;
/// Values of those events, in all attributes: 8 MB.
const VALUES_MAX: usize = 1 << 20;
/// Ids found for those events: 32 MB.
const IDS_MAX: usize = 8 << 20;
/// Events that together use most of a chunk's lines.
const SURVIVORS_MANY: usize = 32;

/// Chunks in order, and the least key that belongs into each but the first.
#[derive(Default)]
struct Group {
    chunks: Vec<u32>,
    fences: Vec<u64>,
}

#[derive(Default)]
pub struct Index {
    cuts: Vec<Cuts>,
    chunks: Vec<Chunk>,
    unused: Vec<u32>,
    groups: HashMap<u32, Group>,
    members: HashMap<u32, u32>,
    places: HashMap<u32, (u32, u16)>,
    additions: usize,
    refreshed_at: usize,
}

impl Index {
    pub fn new() -> Self {
        // The cuts of the attribute `NOTHING`, which has one value.
        Index { cuts: vec![Cuts::default()], ..Index::default() }
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn contains(&self, id: u32) -> bool {
        self.places.contains_key(&id)
    }

    pub fn memory(&self) -> usize {
        let chunks: usize = self.chunks.iter().map(Chunk::memory).sum();
        let cuts: usize = self.cuts.iter().map(Cuts::memory).sum();
        let groups: usize = self.groups.values().map(|group| 12 * group.chunks.capacity() + 48 + 8).sum();
        chunks + cuts + groups + self.places.capacity() * 8 / 7 * 13 + self.members.capacity() * 8 / 7 * 9
    }

    /// Add subscriptions whose ids are new.
    pub fn add(&mut self, boxes: &Boxes) {
        for range in boxes.all_ranges() {
            let attribute = range.attribute as usize;
            if attribute >= self.cuts.len() {
                self.cuts.resize_with(attribute + 1, Cuts::default);
            }
            self.cuts[attribute].observe(range.low);
            self.cuts[attribute].observe(range.high);
        }
        self.additions += boxes.len();
        if self.additions >= self.refreshed_at.max(ADDITIONS_MIN) {
            self.refresh(boxes.len());
        }
        let mut order: Vec<(u32, u64, u32)> = (0..boxes.len()).map(|place| self.rank(boxes, place)).collect();
        order.sort_unstable();
        for (group, key, place) in order {
            let mut entry = boxes.entry(place as usize);
            entry.tokens.retain(|token| *token != group);
            self.insert(group, key, &entry);
        }
    }

    pub fn remove(&mut self, id: u32) {
        let Some((chunk, slot)) = self.places.remove(&id) else { return };
        self.chunks[chunk as usize].remove(slot as usize);
        let group = self.chunks[chunk as usize].group;
        *self.members.get_mut(&group).expect("its group has a member") -= 1;
        if self.chunks[chunk as usize].len() < SPARSE {
            self.shrink(group, chunk);
        }
    }

    fn refresh(&mut self, arriving: usize) {
        self.cuts.iter_mut().for_each(Cuts::refresh);
        for chunk in &mut self.chunks {
            chunk.lay_out(&self.cuts);
        }
        self.additions = 0;
        self.refreshed_at = self.len() + arriving;
    }

    /// The group of the rarest token, the key inside the group, and the place among the boxes.
    fn rank(&mut self, boxes: &Boxes, place: usize) -> (u32, u64, u32) {
        let entry = boxes.entry(place);
        let count = |token: &u32| self.members.get(token).copied().unwrap_or(0);
        let group = entry.tokens.iter().copied().min_by_key(count).unwrap_or(NO_TOKEN);
        *self.members.entry(group).or_default() += 1;
        (group, self.key(&entry.ranges), place as u32)
    }

    fn key(&self, ranges: &[Range]) -> u64 {
        let width = |range: &Range| {
            let cuts = &self.cuts[range.attribute as usize];
            cuts.position(range.high) - cuts.position(range.low)
        };
        let narrowest = ranges.iter().min_by(|one, other| width(one).total_cmp(&width(other)));
        narrowest.map_or(u64::MAX, |range| {
            let width_class = (width(range).max(1.0) as u64).ilog2() as u64;
            u64::from(range.attribute) << 48 | width_class << 44 | order(middle(range)) >> 20
        })
    }

    fn insert(&mut self, group: u32, key: u64, entry: &Entry) {
        let (place, is_last) = self.find_chunk(group, key);
        let number = self.groups[&group].chunks[place];
        let chunk = &self.chunks[number as usize];
        if chunk.is_full() {
            self.split(group, place);
            return self.insert(group, key, entry);
        }
        if is_last && chunk.top <= key && chunk.len() >= FILLED {
            self.open_chunk(group, place + 1, key);
            return self.insert(group, key, entry);
        }
        self.store(number, key, entry);
        if self.chunks[number as usize].is_outgrown() {
            self.chunks[number as usize].lay_out(&self.cuts);
        }
    }

    /// The chunk of the group that the key belongs into, made where there is none, and whether it is the last.
    fn find_chunk(&mut self, group: u32, key: u64) -> (usize, bool) {
        if self.groups.entry(group).or_default().chunks.is_empty() {
            self.open_chunk(group, 0, 0);
        }
        let fences = &self.groups[&group].fences;
        let place = fences.partition_point(|&fence| fence <= key).max(1) - 1;
        (place, place + 1 == fences.len())
    }

    fn store(&mut self, number: u32, key: u64, entry: &Entry) {
        let chunk = &mut self.chunks[number as usize];
        let slot = chunk.insert(entry, &self.cuts);
        chunk.top = chunk.top.max(key);
        self.places.insert(entry.id, (number, slot as u16));
    }

    fn open_chunk(&mut self, group: u32, place: usize, fence: u64) -> u32 {
        let number = self.unused.pop().unwrap_or_else(|| {
            self.chunks.push(Chunk::default());
            self.chunks.len() as u32 - 1
        });
        self.chunks[number as usize] = Chunk::new(group);
        let group = self.groups.get_mut(&group).expect("the group was made before");
        group.chunks.insert(place, number);
        group.fences.insert(place, fence);
        number
    }

    fn split(&mut self, group: u32, place: usize) {
        let number = self.groups[&group].chunks[place];
        let full = std::mem::take(&mut self.chunks[number as usize]);
        let mut keyed = self.take_entries(&full);
        keyed.sort_by_key(|(key, _)| *key);
        let upper = keyed.split_off(keyed.len() / 2);
        self.chunks[number as usize] = Chunk::new(group);
        let sibling = self.open_chunk(group, place + 1, upper[0].0);
        self.fill(number, keyed);
        self.fill(sibling, upper);
    }

    fn take_entries(&self, chunk: &Chunk) -> Vec<(u64, Entry)> {
        let entries = chunk.slots().into_iter().map(|slot| chunk.entry(slot));
        entries.map(|entry| (self.key(&entry.ranges), entry)).collect()
    }

    fn fill(&mut self, number: u32, keyed: Vec<(u64, Entry)>) {
        for (key, entry) in keyed {
            self.store(number, key, &entry);
        }
        self.chunks[number as usize].lay_out(&self.cuts);
    }

    /// Give what is left of a sparse chunk to its neighbour, if that has room.
    fn shrink(&mut self, group: u32, number: u32) {
        let left = self.chunks[number as usize].len();
        let chunks = &self.groups[&group].chunks;
        let place = chunks.iter().position(|&chunk| chunk == number).expect("the chunk is in its group");
        let neighbour = if place > 0 { place - 1 } else { place + 1 };
        let has_room = |&chunk: &u32| self.chunks[chunk as usize].len() + left <= FILLED;
        if left > 0 && !chunks.get(neighbour).is_some_and(has_room) {
            return;
        }
        let neighbour = chunks.get(neighbour).copied();
        let sparse = std::mem::take(&mut self.chunks[number as usize]);
        self.close_chunk(group, place, number);
        if let Some(neighbour) = neighbour.filter(|_| left > 0) {
            self.fill(neighbour, self.take_entries(&sparse));
        }
    }

    fn close_chunk(&mut self, token: u32, place: usize, number: u32) {
        let group = self.groups.get_mut(&token).expect("the chunk is in its group");
        group.chunks.remove(place);
        group.fences.remove(place);
        if group.chunks.is_empty() {
            self.groups.remove(&token);
            self.members.remove(&token);
        }
        self.unused.push(number);
    }

    /// How many rows to match in one go, after so many of which so many ids were found.
    pub fn batch_size(&self, rows: usize, ids: usize) -> usize {
        let by_ids = ids.checked_div(rows).map_or(EVENTS_FIRST, |each| IDS_MAX / (each + 1));
        by_ids.min(VALUES_MAX / self.cuts.len()).clamp(1, EVENTS_MAX)
    }

    /// Push the ids that each of the rows matches to the list of its event.
    #[inline(always)]
    pub fn match_rows(&self, rows: &Rows, first: usize, last: usize, found: &mut [Vec<u32>]) {
        let batch = Batch::new(rows, first, last, &self.cuts);
        let everything: Vec<(u32, u32)> = (0..batch.events as u32).map(|event| (NO_TOKEN, event)).collect();
        let mut survivors = vec![0; batch.events];
        let runs = batch.events_by_token();
        let runs = runs.chunk_by(|one, other| one.0 == other.0);
        for run in runs.chain(everything.chunks(batch.events)) {
            for &number in self.groups.get(&run[0].0).map_or(&[][..], |group| &group.chunks) {
                let chunk = &self.chunks[number as usize];
                let count = find_survivors(chunk, &batch, run, &mut survivors);
                scan(chunk, &batch, &survivors[..count], found);
            }
        }
    }
}

/// Write the events of the run that are inside the chunk's bound and return how many they are.
#[inline(always)]
fn find_survivors(chunk: &Chunk, batch: &Batch, run: &[(u32, u32)], survivors: &mut [u32]) -> usize {
    let Some(bound) = chunk.bound else {
        survivors.iter_mut().zip(run).for_each(|(place, (_, event))| *place = *event);
        return run.len();
    };
    let (lows, highs) = batch.column(bound.attribute);
    let mut count = 0;
    for &(_, event) in run {
        survivors[count] = event;
        count += usize::from((bound.low <= lows[event as usize]) & (highs[event as usize] <= bound.high));
    }
    count
}

#[inline(always)]
fn scan(chunk: &Chunk, batch: &Batch, survivors: &[u32], found: &mut [Vec<u32>]) {
    let mut accepted = [0; SLOTS];
    if survivors.len() >= SURVIVORS_MANY {
        chunk.touch();
    }
    for &event in survivors {
        chunk.scan(batch, event as usize, &mut accepted, &mut found[event as usize]);
    }
}

fn middle(range: &Range) -> f64 {
    match (range.low.is_finite(), range.high.is_finite()) {
        (true, true) => range.low / 2.0 + range.high / 2.0,
        (true, false) => range.low,
        (false, true) => range.high,
        (false, false) => 0.0,
    }
}

/// The bits of a number, as an integer that orders numbers the same way.
fn order(number: f64) -> u64 {
    let bits = number.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}
