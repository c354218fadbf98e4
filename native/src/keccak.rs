//! Keccak-256 of many messages side by side, in as many lanes as the machine's vectors have.
//!
//! The permutation is written once, over a `Vector` of one, four or eight 64-bit words; word `w` of lane `l` stands at
//! `state[w * lanes + l]`. Which width serves is found out at run time.

#[cfg(target_arch = "x86_64")]
mod x86;

use std::array::from_fn;
use std::sync::OnceLock;

pub const HASH: usize = 32;
pub type Hash = [u8; HASH];

const RATE: usize = 136;
const STATE_WORDS: usize = 25;
const LANES_MAX: usize = 8;

/// The widths this machine can use, narrowest first; one serves only where it agrees with the plain one in every lane.
pub fn find_widths() -> &'static [Width] {
    static WIDTHS: OnceLock<Vec<Width>> = OnceLock::new();
    WIDTHS.get_or_init(|| {
        let messages: [Vec<u8>; LANES_MAX] = from_fn(|lane| vec![lane as u8; lane * RATE / 2]);
        let agrees = |width: &Width| width.hash_all(&messages) == SCALAR.hash_all(&messages);
        let mut widths = vec![SCALAR];
        widths.extend(find_vector_widths().into_iter().filter(agrees));
        widths
    })
}

#[cfg(target_arch = "x86_64")]
use x86::find_vector_widths;

#[cfg(not(target_arch = "x86_64"))]
fn find_vector_widths() -> Vec<Width> {
    vec![]
}

/// One way to permute, chosen by the processor's features.
#[derive(Clone, Copy)]
pub struct Width {
    pub lanes: usize,
    permute: fn(&mut State),
}

#[repr(align(64))]
struct State([u64; STATE_WORDS * LANES_MAX]);

const SCALAR: Width = Width { lanes: 1, permute: permute::<u64> };

impl Width {
    /// The hashes of all messages. Messages of like length share a group, because a group takes as long as its longest.
    pub fn hash_all<M: AsRef<[u8]>>(&self, messages: &[M]) -> Vec<Hash> {
        let mut order: Vec<usize> = (0..messages.len()).collect();
        order.sort_unstable_by_key(|&at| messages[at].as_ref().len() / RATE);
        let mut hashes = vec![[0; HASH]; messages.len()];
        for group in order.chunks(self.lanes) {
            let width = if group.len() == 1 { &SCALAR } else { self };
            let members: [&[u8]; LANES_MAX] =
                from_fn(|lane| group.get(lane).map_or(&[][..], |&at| messages[at].as_ref()));
            width.hash_group(&members[..group.len()], |lane, hash| hashes[group[lane]] = hash);
        }
        hashes
    }

    fn hash_group(&self, members: &[&[u8]], mut keep: impl FnMut(usize, Hash)) {
        let mut state = State([0; STATE_WORDS * LANES_MAX]);
        let blocks_max = members.iter().map(|member| member.len() / RATE + 1).max().unwrap_or(0);
        for block in 0..blocks_max {
            for (lane, member) in members.iter().enumerate() {
                self.absorb(&mut state, lane, &member[member.len().min(block * RATE)..]);
            }
            (self.permute)(&mut state);
            for (lane, member) in members.iter().enumerate() {
                if member.len() / RATE == block {
                    keep(lane, self.squeeze(&state, lane));
                }
            }
        }
    }

    /// The next block of a message into its lane; a message's last block is shorter than the rate, and padded.
    fn absorb(&self, state: &mut State, lane: usize, rest: &[u8]) {
        let mut padded = [0; RATE];
        let block = if let Some(block) = rest.first_chunk::<RATE>() {
            block
        } else {
            padded[..rest.len()].copy_from_slice(rest);
            padded[rest.len()] = 0x01;
            padded[RATE - 1] |= 0x80;
            &padded
        };
        for (word, bytes) in block.as_chunks::<8>().0.iter().enumerate() {
            state.0[word * self.lanes + lane] ^= u64::from_le_bytes(*bytes);
        }
    }

    fn squeeze(&self, state: &State, lane: usize) -> Hash {
        let words: [[u8; 8]; HASH / 8] = from_fn(|word| state.0[word * self.lanes + lane].to_le_bytes());
        from_fn(|at| words[at / 8][at % 8])
    }
}

/// As many 64-bit words as go into one instruction.
trait Vector: Copy {
    const LANES: usize;
    fn load(words: &[u64]) -> Self;
    fn store(self, words: &mut [u64]);
    fn fill(word: u64) -> Self;
    fn xor(self, other: Self) -> Self;
    /// `!self & other`
    fn and_not(self, other: Self) -> Self;
    fn rotate_left(self, bits: u32) -> Self;
}

#[rustfmt::skip]
const ROUNDS: [u64; 24] = [
    0x0000000000000001, 0x0000000000008082, 0x800000000000808A, 0x8000000080008000, 0x000000000000808B, 0x0000000080000001,
    0x8000000080008081, 0x8000000000008009, 0x000000000000008A, 0x0000000000000088, 0x0000000080008009, 0x000000008000000A,
    0x000000008000808B, 0x800000000000008B, 0x8000000000008089, 0x8000000000008003, 0x8000000000008002, 0x8000000000000080,
    0x000000000000800A, 0x800000008000000A, 0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008,
];
#[rustfmt::skip]
const ROTATIONS: [u32; STATE_WORDS] = [
     0,  1, 62, 28, 27,
    36, 44,  6, 55, 20,
     3, 10, 43, 25, 39,
    41, 45, 15, 21,  8,
    18,  2, 61, 56, 14,
];

/// Keccak-f[1600] as FIPS 202 names its steps. It is inlined to take on its caller's features, and uses no closures,
/// because those would not.
#[inline(always)]
fn permute<V: Vector>(state: &mut State) {
    let mut a = [V::fill(0); STATE_WORDS];
    for (word, words) in a.iter_mut().zip(state.0.chunks_exact(V::LANES)) {
        *word = V::load(words);
    }
    for constant in ROUNDS {
        permute_round(&mut a, constant);
    }
    for (word, words) in a.into_iter().zip(state.0.chunks_exact_mut(V::LANES)) {
        word.store(words);
    }
}

/// The compiler leaves loops over wide vectors rolled, which turns every rotation into a shift by a variable.
macro_rules! unroll {
    ($index:ident in $($value:literal)* => $body:block) => { $({ let $index: usize = $value; $body })* };
}

#[inline(always)]
fn permute_round<V: Vector>(a: &mut [V; STATE_WORDS], constant: u64) {
    // theta
    let (mut column, mut b) = ([a[0]; 5], *a);
    unroll!(x in 0 1 2 3 4 => {
        column[x] = a[x].xor(a[x + 5]).xor(a[x + 10]).xor(a[x + 15]).xor(a[x + 20]);
    });
    unroll!(x in 0 1 2 3 4 => {
        let mixed = column[(x + 4) % 5].xor(column[(x + 1) % 5].rotate_left(1));
        // rho, pi: the word at (x, y) goes to (y, 2x + 3y)
        unroll!(y in 0 1 2 3 4 => {
            let from = x + 5 * y;
            b[y + 5 * ((2 * x + 3 * y) % 5)] = a[from].xor(mixed).rotate_left(ROTATIONS[from]);
        });
    });
    // chi
    unroll!(y in 0 1 2 3 4 => {
        unroll!(x in 0 1 2 3 4 => {
            a[x + 5 * y] = b[x + 5 * y].xor(b[(x + 1) % 5 + 5 * y].and_not(b[(x + 2) % 5 + 5 * y]));
        });
    });
    // iota
    a[0] = a[0].xor(V::fill(constant));
}

impl Vector for u64 {
    const LANES: usize = 1;
    #[inline(always)]
    fn load(words: &[u64]) -> Self {
        words[0]
    }
    #[inline(always)]
    fn store(self, words: &mut [u64]) {
        words[0] = self;
    }
    #[inline(always)]
    fn fill(word: u64) -> Self {
        word
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        self ^ other
    }
    #[inline(always)]
    fn and_not(self, other: Self) -> Self {
        !self & other
    }
    #[inline(always)]
    fn rotate_left(self, bits: u32) -> Self {
        u64::rotate_left(self, bits)
    }
}
