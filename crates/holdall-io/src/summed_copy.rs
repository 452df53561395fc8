//! Copying units of 4 KiB and computing their CRC-32C in one pass.
//!
//! Owns: [`copy_unit`], [`copy_units`]. Bytes are loaded once, stored, and folded into the sum while they lie in
//! registers; a copy with a sum behind it loads them twice. Source of the folding: Gopal, Ozturk,
//! Guilford and others, "Fast CRC computation for generic polynomials using PCLMULQDQ", Intel 2009,
//! reflected variant. It takes AVX2 with VPCLMULQDQ (AMD since Zen 3, Intel since Ice Lake). Other
//! processors copy first: with the 128-bit multiplication one pass was no faster than two.
//!
//! The argument, for all `unsafe` here:
//! - *Addresses.* The caller promises 4 KiB to read at `from`, aligned to 32 bytes; all offsets
//!   stay below that. The target is a reference to 4 KiB that nobody else has.
//! - *Bytes that change.* Others may write to the source meanwhile. Each part is loaded once, by a
//!   volatile read, so that the sum is of the bytes that were stored, whatever they are.
//! - *Instructions.* A function with target features is called only after the processor was asked
//!   for all of them.

/// Bytes of a unit.
pub(crate) const UNIT: usize = 4096;

/// Copies the unit at `from` to `to` and returns the CRC-32C of the bytes stored there.
///
/// # Safety
/// 4 KiB at `from` can be read, aligned to 32 bytes, and do not overlap `to`. Others may write
/// there meanwhile.
#[expect(unsafe_code, reason = "reads memory that others write; see the argument above")]
pub(crate) unsafe fn copy_unit(from: *const u8, to: &mut [u8; UNIT]) -> u32 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if x86::is_available() {
        // SAFETY: the caller's promise; the features were asked for.
        return unsafe { x86::copy_unit(from, to) };
    }
    // SAFETY: the caller's promise.
    unsafe { copy_first(from, to) }
}

/// Copies whole units, as many as `sums` has, and puts the CRC-32C of each into `sums`.
pub(crate) fn copy_units(from: &[u8], to: &mut [u8], sums: &mut [u32]) {
    let (from, to) = (from.as_chunks::<UNIT>().0, to.as_chunks_mut::<UNIT>().0);
    let aligned = from.as_ptr().addr().is_multiple_of(32);
    for ((from, to), sum) in from.iter().zip(to).zip(sums) {
        #[expect(unsafe_code, reason = "see the argument above")]
        // SAFETY: references to units that nobody writes and that do not overlap; `copy_unit` gets
        // aligned ones.
        unsafe {
            let from = from.as_ptr();
            *sum = if aligned { copy_unit(from, to) } else { copy_first(from, to) };
        }
    }
}

/// As [`copy_unit`], on any processor, from any address.
#[expect(unsafe_code, reason = "as `copy_unit`")]
unsafe fn copy_first(from: *const u8, to: &mut [u8; UNIT]) -> u32 {
    // SAFETY: the caller's promise; `to` is as long, and bytes have no invalid values.
    unsafe { std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), UNIT) };
    crc_fast::crc32_iscsi(to)
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[expect(unsafe_code, reason = "instructions of some processors; see the argument above")]
mod x86 {
    use super::UNIT;
    use std::arch::x86_64::{
        __m128i, __m256i, _mm_clmulepi64_si128, _mm_crc32_u64, _mm_cvtsi32_si128,
        _mm_extract_epi64, _mm_set_epi64x, _mm_xor_si128, _mm256_broadcastsi128_si256,
        _mm256_castsi256_si128, _mm256_clmulepi64_epi128, _mm256_extracti128_si256,
        _mm256_setzero_si256, _mm256_storeu_si256, _mm256_xor_si256, _mm256_zextsi128_si256,
    };

    /// The reversed polynomial of CRC-32C.
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    /// Bytes of a register.
    const PART: usize = size_of::<__m256i>();
    /// Sums that grow beside each other: as many as the multiplier's delay takes.
    const SUMS: usize = 8;

    pub(super) fn is_available() -> bool {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("vpclmulqdq")
            && is_x86_feature_detected!("pclmulqdq")
            && is_x86_feature_detected!("sse4.2")
    }

    /// x^`n` modulo the polynomial, bits reversed.
    const fn power(n: usize) -> i64 {
        let (mut value, mut i) = (1_u32 << 31, 0);
        while i < n {
            value = if value & 1 == 1 { value >> 1 ^ POLYNOMIAL } else { value >> 1 };
            i += 1;
        }
        value as i64
    }

    /// The factors that move 128 bits past `BITS` others: of the half that comes first, which is 64
    /// bits further away, and of the second. A product of reversed numbers is 33 bits too far.
    struct Past<const BITS: usize>;

    impl<const BITS: usize> Past<BITS> {
        const FIRST: i64 = power(BITS + 64 - 33);
        const SECOND: i64 = power(BITS - 33);

        #[target_feature(enable = "sse2")]
        fn factors() -> __m128i {
            _mm_set_epi64x(Self::SECOND, Self::FIRST)
        }
    }

    #[target_feature(enable = "avx2,vpclmulqdq")]
    fn fold(sum: __m256i, factors: __m256i, next: __m256i) -> __m256i {
        let first = _mm256_clmulepi64_epi128::<0x00>(sum, factors);
        let second = _mm256_clmulepi64_epi128::<0x11>(sum, factors);
        _mm256_xor_si256(_mm256_xor_si256(first, second), next)
    }

    #[target_feature(enable = "pclmulqdq")]
    fn fold_half(sum: __m128i, factors: __m128i, next: __m128i) -> __m128i {
        let first = _mm_clmulepi64_si128::<0x00>(sum, factors);
        let second = _mm_clmulepi64_si128::<0x11>(sum, factors);
        _mm_xor_si128(_mm_xor_si128(first, second), next)
    }

    /// Loads the part at `at` of the source, once, and stores it.
    ///
    /// # Safety
    /// As [`copy_unit`]; `at` is a multiple of [`PART`] and below [`UNIT`].
    #[target_feature(enable = "avx2")]
    unsafe fn copy_part(from: *const u8, to: &mut [u8; UNIT], at: usize) -> __m256i {
        // SAFETY: the part lies inside both, and the source is aligned.
        unsafe {
            let part = from.add(at).cast::<__m256i>().read_volatile();
            _mm256_storeu_si256(to.as_mut_ptr().add(at).cast(), part);
            part
        }
    }

    /// See [`super::copy_unit`].
    ///
    /// # Safety
    /// As there, if [`is_available`].
    #[target_feature(enable = "avx2,vpclmulqdq,pclmulqdq,sse4.2")]
    pub(super) unsafe fn copy_unit(from: *const u8, to: &mut [u8; UNIT]) -> u32 {
        let mut sums = [_mm256_setzero_si256(); SUMS];
        for (i, sum) in sums.iter_mut().enumerate() {
            // SAFETY: the first parts of the unit.
            *sum = unsafe { copy_part(from, to, i * PART) };
        }
        // A CRC-32C begins with all bits set.
        let start = _mm256_zextsi128_si256(_mm_cvtsi32_si128(-1));
        sums[0] = _mm256_xor_si256(sums[0], start);
        let factors = _mm256_broadcastsi128_si256(Past::<{ SUMS * PART * 8 }>::factors());
        for row in (SUMS * PART..UNIT).step_by(SUMS * PART) {
            for (i, sum) in sums.iter_mut().enumerate() {
                // SAFETY: a unit is some whole rows.
                let part = unsafe { copy_part(from, to, row + i * PART) };
                *sum = fold(*sum, factors, part);
            }
        }
        let [first, rest @ ..] = sums;
        let factors = _mm256_broadcastsi128_si256(Past::<{ PART * 8 }>::factors());
        let sum = rest.into_iter().fold(first, |sum, next| fold(sum, factors, next));
        let (first, second) = (_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum));
        let sum = fold_half(first, Past::<{ PART * 4 }>::factors(), second);
        let crc = _mm_crc32_u64(0, _mm_extract_epi64::<0>(sum) as u64);
        !(_mm_crc32_u64(crc, _mm_extract_epi64::<1>(sum) as u64) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(32))]
    struct Unit([u8; UNIT]);

    fn sums_of(unit: &Unit, at: usize) -> [u32; 2] {
        let mut to = vec![0; at + UNIT];
        let target: &mut [u8; UNIT] = (&mut to[at..]).try_into().unwrap();
        #[expect(unsafe_code, reason = "what is tested")]
        // SAFETY: a unit of the test's own, aligned.
        let one = unsafe { copy_unit(unit.0.as_ptr(), target) };
        assert_eq!(target, &unit.0);
        target.fill(0);
        #[expect(unsafe_code, reason = "what is tested")]
        // SAFETY: as above.
        let other = unsafe { copy_first(unit.0.as_ptr(), target) };
        assert_eq!(target, &unit.0);
        [one, other]
    }

    /// Each bit of a CRC is linear: units with one bit set, the empty and the full one, and some
    /// without pattern tell every wrong factor.
    #[test]
    fn the_sum_is_that_of_the_copy_whatever_the_target_s_alignment() {
        let mut unit = Unit([0; UNIT]);
        for bit in (0..UNIT * 8).step_by(37).chain(0..300).chain(UNIT * 8 - 300..UNIT * 8) {
            unit.0[bit / 8] ^= 1 << (bit % 8);
            let [one, other] = sums_of(&unit, bit % 70);
            assert_eq!(one, other, "bit {bit}");
            unit.0[bit / 8] ^= 1 << (bit % 8);
        }
        let mut state = 1_u64;
        for round in 0..300 {
            for byte in &mut unit.0 {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                *byte = if round == 0 { 0xff } else { (state >> 40) as u8 };
            }
            let [one, other] = sums_of(&unit, round);
            assert_eq!(one, other, "round {round}");
        }
    }

    /// RFC 3720, B.4, has the sums of 32 bytes; those of 4 KiB of zeros and ones follow by the
    /// definition, bit by bit.
    #[test]
    fn known_values() {
        for fill in [0, 0xff, 0x5a] {
            let step = |c: u32| if c & 1 == 1 { c >> 1 ^ 0x82f6_3b78 } else { c >> 1 };
            let by_bits = (0..UNIT).fold(!0_u32, |c, _| (0..8).fold(c ^ fill, |c, _| step(c)));
            assert_eq!(sums_of(&Unit([fill as u8; UNIT]), 3), [!by_bits; 2], "{fill}");
        }
    }
}
