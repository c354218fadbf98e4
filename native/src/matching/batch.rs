//! The events of one call, laid out for the chunks: a row of values for each event, a column for each attribute.

use super::chunk::NOTHING;
use super::cuts::{ABSENT, Cuts};

pub struct Batch {
    pub events: usize,
    attributes: usize,
    lows: Vec<f64>,
    highs: Option<Vec<f64>>,
    low_buckets: Vec<u8>,
    high_buckets: Option<Vec<u8>>,
    columns: Vec<f64>,
    high_columns: Option<Vec<f64>>,
    token_starts: Vec<usize>,
    tokens: Vec<u32>,
}

/// What the caller hands over: one row per event, not a number where it has no value.
pub struct Rows<'a> {
    pub attributes: &'a [u32],
    pub lows: &'a [f64],
    /// Empty where every value is a point.
    pub highs: &'a [f64],
    pub token_starts: &'a [u32],
    pub tokens: &'a [u32],
}

impl Batch {
    /// The events from `first` to `last` of the rows.
    pub fn new(rows: &Rows, first: usize, last: usize, cuts: &[Cuts]) -> Self {
        let width = rows.attributes.len();
        let part =
            |values: &[f64]| spread(rows.attributes, &values[first * width..last * width], last - first, cuts.len());
        let lows = part(rows.lows);
        let highs = (!rows.highs.is_empty()).then(|| part(rows.highs));
        let from = rows.token_starts[first] as usize;
        Batch {
            events: last - first,
            attributes: cuts.len(),
            low_buckets: find_buckets(&lows, cuts),
            high_buckets: highs.as_ref().map(|highs| find_buckets(highs, cuts)),
            columns: transpose(&lows, last - first, cuts.len()),
            high_columns: highs.as_ref().map(|highs| transpose(highs, last - first, cuts.len())),
            lows,
            highs,
            token_starts: rows.token_starts[first..=last].iter().map(|&start| start as usize - from).collect(),
            tokens: rows.tokens[from..rows.token_starts[last] as usize].to_vec(),
        }
    }

    #[inline(always)]
    pub fn values(&self, event: usize) -> (&[f64], &[f64]) {
        let row = event * self.attributes..(event + 1) * self.attributes;
        (&self.lows[row.clone()], &self.highs.as_ref().unwrap_or(&self.lows)[row])
    }

    #[inline(always)]
    pub fn low_buckets(&self, event: usize) -> &[u8] {
        &self.low_buckets[event * self.attributes..(event + 1) * self.attributes]
    }

    #[inline(always)]
    pub fn high_buckets(&self, event: usize) -> Option<&[u8]> {
        let buckets = self.high_buckets.as_ref()?;
        Some(&buckets[event * self.attributes..(event + 1) * self.attributes])
    }

    /// The attribute's values, one per event: lower and upper ends.
    #[inline(always)]
    pub fn column(&self, attribute: u16) -> (&[f64], &[f64]) {
        let column = attribute as usize * self.events..(attribute as usize + 1) * self.events;
        (&self.columns[column.clone()], &self.high_columns.as_ref().unwrap_or(&self.columns)[column])
    }

    #[inline(always)]
    pub fn tokens(&self, event: usize) -> &[u32] {
        &self.tokens[self.token_starts[event]..self.token_starts[event + 1]]
    }

    /// Every token that an event carries, with the event, in order of the tokens.
    pub fn events_by_token(&self) -> Vec<(u32, u32)> {
        let carried =
            (0..self.events).flat_map(|event| self.tokens(event).iter().map(move |&token| (token, event as u32)));
        let mut pairs: Vec<(u32, u32)> = carried.collect();
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    }
}

/// Rows over the attributes of the caller as rows over all the attributes; those that nobody asks for are left out.
fn spread(attributes: &[u32], values: &[f64], events: usize, all: usize) -> Vec<f64> {
    let mut rows = vec![f64::NAN; events * all];
    rows.chunks_exact_mut(all).for_each(|row| row[NOTHING as usize] = 0.0);
    for (row, values) in rows.chunks_exact_mut(all).zip(values.chunks_exact(attributes.len().max(1))) {
        for (&attribute, &value) in attributes.iter().zip(values) {
            if let Some(place) = row.get_mut(attribute as usize + 1) {
                *place = value;
            }
        }
    }
    rows
}

fn find_buckets(rows: &[f64], cuts: &[Cuts]) -> Vec<u8> {
    let bucket = |(value, cuts): (&f64, &Cuts)| if value.is_nan() { ABSENT } else { cuts.bucket(*value) };
    rows.chunks_exact(cuts.len()).flat_map(|row| row.iter().zip(cuts).map(bucket)).collect()
}

fn transpose(rows: &[f64], events: usize, attributes: usize) -> Vec<f64> {
    (0..attributes).flat_map(|attribute| (0..events).map(move |event| rows[event * attributes + attribute])).collect()
}
