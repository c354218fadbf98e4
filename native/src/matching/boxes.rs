//! Subscriptions as the caller hands them over, in columns.

use super::chunk::{Entry, Range};
use super::index::NO_TOKEN;

pub struct Boxes {
    pub ids: Vec<u32>,
    pub token_starts: Vec<u32>,
    pub tokens: Vec<u32>,
    pub range_starts: Vec<u32>,
    pub attributes: Vec<u32>,
    pub lows: Vec<f64>,
    pub highs: Vec<f64>,
}

impl Boxes {
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Everything that the other functions rely on.
    pub fn check(&self) -> Result<(), &'static str> {
        check_starts(&self.token_starts, self.tokens.len())?;
        check_starts(&self.range_starts, self.attributes.len())?;
        let counts = [self.token_starts.len() - 1, self.range_starts.len() - 1];
        if counts != [self.len(); 2] || [self.lows.len(), self.highs.len()] != [self.attributes.len(); 2] {
            return Err("columns differ in length");
        }
        if self.range_starts.windows(2).any(|ends| ends[1] - ends[0] > u8::MAX.into()) {
            return Err("a subscription has too many ranges");
        }
        if self.attributes.iter().any(|&attribute| attribute >= u16::MAX.into()) {
            return Err("too many attributes");
        }
        if self.tokens.contains(&NO_TOKEN) {
            return Err("too many tokens");
        }
        if self.lows.iter().zip(&self.highs).any(|(low, high)| low > high || low.is_nan() || high.is_nan()) {
            return Err("a range is empty");
        }
        Ok(())
    }

    pub fn all_ranges(&self) -> impl Iterator<Item = Range> + '_ {
        (0..self.attributes.len()).map(|place| self.range(place))
    }

    pub fn entry(&self, place: usize) -> Entry {
        let part = |starts: &[u32]| starts[place] as usize..starts[place + 1] as usize;
        Entry {
            id: self.ids[place],
            ranges: part(&self.range_starts).map(|place| self.range(place)).collect(),
            tokens: self.tokens[part(&self.token_starts)].to_vec(),
        }
    }

    /// Attributes are counted from 1 inside, because 0 is `chunk::NOTHING`.
    fn range(&self, place: usize) -> Range {
        Range { attribute: self.attributes[place] as u16 + 1, low: self.lows[place], high: self.highs[place] }
    }
}

pub fn check_starts(starts: &[u32], total: usize) -> Result<(), &'static str> {
    if starts.first() != Some(&0) || !starts.is_sorted() || starts.last().map(|&end| end as usize) != Some(total) {
        return Err("starts do not ascend from 0 to the number of elements");
    }
    Ok(())
}
