//! Where the values of one attribute are cut into buckets: at quantiles of the ends of the ranges that were added.
//!
//! The cuts decide speed only. Every value falls into one bucket and buckets keep the order of values, so that a value
//! inside a range is never in a bucket outside the buckets of its ends, wherever the cuts are.

pub const BUCKETS: usize = 32;
/// The bucket of an attribute that the event does not have.
pub const ABSENT: u8 = BUCKETS as u8;
/// Ends kept as a sample: sixteen for each bucket.
const SAMPLE_MAX: usize = 512;

#[derive(Default)]
pub struct Cuts {
    cuts: Vec<f64>,
    sample: Vec<f64>,
    seen: u64,
}

impl Cuts {
    /// Count an end of a range into the sample; every end seen so far is in it with the same chance.
    pub fn observe(&mut self, end: f64) {
        if !end.is_finite() {
            return;
        }
        self.seen += 1;
        if self.sample.len() < SAMPLE_MAX {
            self.sample.push(end);
            return;
        }
        let place = scramble(self.seen) % self.seen;
        if let Some(old) = self.sample.get_mut(place as usize) {
            *old = end;
        }
    }

    /// Move the cuts to the sample's quantiles, and let what comes next weigh as much as all that came before.
    pub fn refresh(&mut self) {
        self.sample.sort_unstable_by(f64::total_cmp);
        let mut distinct = self.sample.clone();
        distinct.dedup();
        let source = if distinct.len() < BUCKETS { &distinct } else { &self.sample };
        let step = (source.len() as f64 / BUCKETS as f64).max(1.0);
        self.cuts = (0..BUCKETS - 1)
            .map_while(|place| source.get((place as f64 * step + step / 2.0) as usize).copied())
            .collect();
        self.cuts.dedup();
        self.seen = self.seen.min(SAMPLE_MAX as u64);
    }

    pub fn bucket(&self, value: f64) -> u8 {
        self.cuts.iter().map(|&cut| u8::from(cut <= value)).sum()
    }

    /// The place of a value among the cuts, between 0 and `BUCKETS`, with a fraction inside its bucket.
    pub fn position(&self, value: f64) -> f64 {
        let bucket = self.bucket(value) as usize;
        let low = bucket.checked_sub(1).map(|before| self.cuts[before]);
        let fraction = match (low, self.cuts.get(bucket)) {
            (Some(low), Some(high)) => (value - low) / (high - low),
            _ => 0.5,
        };
        bucket as f64 + fraction
    }

    pub fn memory(&self) -> usize {
        size_of::<Self>() + 8 * (self.cuts.capacity() + self.sample.capacity())
    }
}

/// A fixed mixing of the bits of a counter (SplitMix64), so that the same calls give the same index.
fn scramble(counter: u64) -> u64 {
    let mut bits = counter.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
