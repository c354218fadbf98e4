//! Four lanes of AVX2 and eight of AVX-512.
//!
//! An intrinsic may run where the processor has its feature. Vectors of these types are made only inside the two functions
//! at the end, and those are handed out only after the processor has been asked.

use super::{State, Vector, Width, permute};
use std::arch::x86_64::*;

pub fn find_vector_widths() -> Vec<Width> {
    let mut widths = vec![];
    if is_x86_feature_detected!("avx2") {
        widths.push(Width { lanes: 4, permute: |state| unsafe { permute_four(state) } });
    }
    if is_x86_feature_detected!("avx512f") {
        widths.push(Width { lanes: 8, permute: |state| unsafe { permute_eight(state) } });
    }
    widths
}

#[target_feature(enable = "avx2")]
fn permute_four(state: &mut State) {
    permute::<__m256i>(state);
}

#[target_feature(enable = "avx512f")]
fn permute_eight(state: &mut State) {
    permute::<__m512i>(state);
}

impl Vector for __m256i {
    const LANES: usize = 4;
    #[inline(always)]
    fn load(words: &[u64]) -> Self {
        assert!(words.len() == Self::LANES);
        unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
    }
    #[inline(always)]
    fn store(self, words: &mut [u64]) {
        assert!(words.len() == Self::LANES);
        unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), self) }
    }
    #[inline(always)]
    fn fill(word: u64) -> Self {
        unsafe { _mm256_set1_epi64x(word as i64) }
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        unsafe { _mm256_xor_si256(self, other) }
    }
    #[inline(always)]
    fn and_not(self, other: Self) -> Self {
        unsafe { _mm256_andnot_si256(self, other) }
    }
    #[inline(always)]
    fn rotate_left(self, bits: u32) -> Self {
        let (left, right) = (bits as i64, 64 - bits as i64);
        unsafe {
            _mm256_or_si256(
                _mm256_sllv_epi64(self, _mm256_set1_epi64x(left)),
                _mm256_srlv_epi64(self, _mm256_set1_epi64x(right)),
            )
        }
    }
}

impl Vector for __m512i {
    const LANES: usize = 8;
    #[inline(always)]
    fn load(words: &[u64]) -> Self {
        assert!(words.len() == Self::LANES);
        unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
    }
    #[inline(always)]
    fn store(self, words: &mut [u64]) {
        assert!(words.len() == Self::LANES);
        unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), self) }
    }
    #[inline(always)]
    fn fill(word: u64) -> Self {
        unsafe { _mm512_set1_epi64(word as i64) }
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        unsafe { _mm512_xor_si512(self, other) }
    }
    #[inline(always)]
    fn and_not(self, other: Self) -> Self {
        unsafe { _mm512_andnot_si512(self, other) }
    }
    #[inline(always)]
    fn rotate_left(self, bits: u32) -> Self {
        unsafe { _mm512_rolv_epi64(self, _mm512_set1_epi64(bits as i64)) }
    }
}
