//! Bloom filters of logs; the definition is `proofcast/ethereum/bloom.py`.

use crate::keccak::{Hash, Width};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::array::from_fn;
use std::collections::HashMap;

pub const BLOOM: usize = 256;
type Bloom = [u8; BLOOM];

/// Bit `n` is the `n`th from the low end of a bloom, which begins with its high end.
fn get_place(bit: usize) -> (usize, u8) {
    (BLOOM - 1 - bit / 8, 1 << (bit % 8))
}

/// Everything needed to compute the blooms of a block's receipts, whose entries are hashed together at the end.
pub struct Blooms<'a> {
    wanted: &'a [u8],
    /// Of each receipt: its bloom and where in `uses` its entries begin.
    receipts: Vec<(&'a Bloom, usize)>,
    /// Places in `entries`, in the order of the logs.
    uses: Vec<usize>,
    entries: Vec<&'a [u8]>,
    places: HashMap<&'a [u8], usize>,
}

impl<'a> Blooms<'a> {
    pub fn new(wanted: &'a [u8]) -> Self {
        Blooms { wanted, receipts: vec![], uses: vec![], entries: vec![], places: HashMap::new() }
    }

    pub fn push_receipt(&mut self, bloom: &'a Bloom) {
        self.receipts.push((bloom, self.uses.len()));
    }

    /// An address or topic of the receipt pushed last.
    pub fn push_entry(&mut self, entry: &'a [u8]) {
        let place = *self.places.entry(entry).or_insert(self.entries.len());
        if place == self.entries.len() {
            self.entries.push(entry);
        }
        self.uses.push(place);
    }

    /// Is each receipt's bloom that of its entries, and are all together the wanted one?
    pub fn agree(&self, width: &Width) -> bool {
        let hashes = width.hash_all(&self.entries);
        let ends = self.receipts.iter().skip(1).map(|receipt| receipt.1).chain([self.uses.len()]);
        let mut union = [0; BLOOM];
        for ((bloom, start), end) in self.receipts.iter().zip(ends) {
            let mut computed = [0; BLOOM];
            self.uses[*start..end].iter().for_each(|&place| set_bits(&mut computed, &hashes[place]));
            if computed != **bloom {
                return false;
            }
            union.iter_mut().zip(computed).for_each(|(byte, more)| *byte |= more);
        }
        union == self.wanted
    }
}

fn set_bits(bloom: &mut Bloom, hash: &Hash) {
    for pair in hash[..6].as_chunks().0 {
        let (byte, mask) = get_place(u16::from_be_bytes(*pair) as usize % (BLOOM * 8));
        bloom[byte] |= mask;
    }
}

// --- many headers against many filters

/// Of each clause a matching log has one entry, and an entry has three bits.
type Clause = Vec<[u16; 3]>;

const SIDE: usize = u64::BITS as usize;
const WORDS: usize = BLOOM / size_of::<u64>();
/// Squares of 64 blooms that are matched together: more of them no longer fit a processor's second cache.
const SQUARES: usize = 8;
const TILE: usize = SIDE * SQUARES;
/// One bit of each bloom of a tile.
type Row = [u64; SQUARES];

/// For each filter a bitmap, lowest bit first, of the blooms that may match.
///
/// 512 blooms at a time are turned on their side: row `b` then has bit `b` of each, and an entry is three rows and-ed.
#[pyfunction]
pub fn match_blooms<'py>(
    py: Python<'py>,
    blooms: &[u8],
    filters: Vec<Vec<Clause>>,
) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let mut bits = filters.iter().flatten().flatten().flatten();
    if !blooms.len().is_multiple_of(BLOOM) || bits.any(|&bit| bit as usize >= BLOOM * 8) {
        return Err(PyValueError::new_err("a bloom has 256 bytes and 2,048 bits"));
    }
    let bitmaps = py.detach(|| match_tiles(blooms.as_chunks().0, &filters));
    Ok(bitmaps.iter().map(|bitmap| PyBytes::new(py, bitmap)).collect())
}

fn match_tiles(blooms: &[Bloom], filters: &[Vec<Clause>]) -> Vec<Vec<u8>> {
    let mut bitmaps = vec![Vec::with_capacity(blooms.len().div_ceil(8)); filters.len()];
    let mut rows = vec![[0; SQUARES]; BLOOM * 8];
    let mut is_used = [false; WORDS];
    filters.iter().flatten().flatten().flatten().for_each(|&bit| is_used[bit as usize / SIDE] = true);
    for tile in blooms.chunks(TILE) {
        (0..WORDS).filter(|&word| is_used[word]).for_each(|word| turn(tile, word, &mut rows));
        for (bitmap, clauses) in bitmaps.iter_mut().zip(filters) {
            let matching =
                clauses.iter().fold([u64::MAX; SQUARES], |found, clause| and(found, match_clause(clause, &rows)));
            let bytes = matching.iter().flat_map(|word| word.to_le_bytes());
            bitmap.extend(bytes.take(tile.len().div_ceil(8)));
            clear_beyond(bitmap, tile.len());
        }
    }
    bitmaps
}

/// The bits behind the last bloom.
fn clear_beyond(bitmap: &mut [u8], count: usize) {
    if let (Some(last), 1..) = (bitmap.last_mut(), count % 8) {
        *last &= (1 << (count % 8)) - 1;
    }
}

fn match_clause(clause: &Clause, rows: &[Row]) -> Row {
    clause.iter().fold([0; SQUARES], |found, &[first, second, third]| {
        let all = and(and(rows[first as usize], rows[second as usize]), rows[third as usize]);
        from_fn(|square| found[square] | all[square])
    })
}

fn and(left: Row, right: Row) -> Row {
    from_fn(|square| left[square] & right[square])
}

/// Turns 64 bits of every bloom: bit `l` of `rows[b]` becomes bit `b` of bloom `l`.
fn turn(tile: &[Bloom], word: usize, rows: &mut [Row]) {
    let start = BLOOM - size_of::<u64>() * (word + 1);
    for (at, blooms) in tile.chunks(SIDE).enumerate() {
        let mut square = [0; SIDE];
        for (line, bloom) in square.iter_mut().zip(blooms) {
            *line = u64::from_be_bytes(from_fn(|byte| bloom[start + byte]));
        }
        transpose(&mut square);
        for (row, line) in rows[word * SIDE..].iter_mut().zip(square) {
            row[at] = line;
        }
    }
}

/// By exchanging ever smaller blocks of bits across the diagonal.
fn transpose(square: &mut [u64; SIDE]) {
    let mut size = SIDE / 2;
    let mut mask = u64::MAX >> size;
    while size > 0 {
        for at in (0..SIDE).filter(|at| at & size == 0) {
            let exchanged = (square[at] >> size ^ square[at + size]) & mask;
            square[at] ^= exchanged << size;
            square[at + size] ^= exchanged;
        }
        size /= 2;
        mask ^= mask << size;
    }
}
