//! The part of a row group that holds a value.

/// Odd, so that multiplying by it can be undone.
const MULTIPLIER: u64 = 0xd6e8_feb8_6659_fd93;

/// What `MULTIPLIER` times is 1: each step of Newton's method doubles the number of right bits, of
/// which an odd number has three to begin with.
const INVERSE: u64 = {
    let (mut inverse, mut step) = (MULTIPLIER, 0);
    while step < 5 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(MULTIPLIER.wrapping_mul(inverse)));
        step += 1;
    }
    inverse
};

/// A hash in another order: that of the parts, of however many there are. Its upper half is
/// independent of the bits that the planes use.
pub(crate) fn mix(hash: u64) -> u64 {
    (hash ^ (hash >> 29)).wrapping_mul(MULTIPLIER)
}

/// The hash that [`mix`] mixed.
pub(crate) fn unmix(mixed: u64) -> u64 {
    let x = mixed.wrapping_mul(INVERSE);
    x ^ (x >> 29) ^ (x >> 58)
}

/// The part of a mixed hash, of `parts`.
pub(crate) fn part_of_mixed(mixed: u64, parts: u32) -> u32 {
    (((mixed >> 32) * u64::from(parts)) >> 32) as u32
}

/// The part of a hash, of `parts`.
pub(crate) fn part(hash: u64, parts: u32) -> u32 {
    part_of_mixed(mix(hash), parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixing_is_undone_and_keeps_the_order_of_parts() {
        let mut hash = 1_u64;
        for i in 0..10_000_u32 {
            hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(i) ^ u64::from(i);
            for hash in [hash, u64::from(i), !u64::from(i), hash << 40] {
                assert_eq!(unmix(mix(hash)), hash);
                let parts = 1 + i % 3_000;
                assert!(part(hash, parts) < parts);
                let next = mix(hash).saturating_add(hash >> 20);
                assert!(part_of_mixed(next, parts) >= part(hash, parts));
            }
        }
    }

    /// The definition, in integers that cannot overflow.
    #[test]
    fn parts_are_those_of_the_definition() {
        for hash in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef, 1 << 63, 1 << 29] {
            let mixed = u128::from(hash ^ (hash >> 29)) * u128::from(MULTIPLIER) % (1 << 64);
            for parts in [1, 2, 3, 100, u32::MAX] {
                let expected = ((mixed >> 32) * u128::from(parts)) >> 32;
                assert_eq!(u128::from(part(hash, parts)), expected);
            }
        }
    }
}
