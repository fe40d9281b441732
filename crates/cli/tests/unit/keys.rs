use super::KeyBatch;

#[test]
fn the_longest_key_is_part_of_a_batch() {
    assert_eq!(KeyBatch::memory(1 << 20), 24 << 20);
    assert_eq!(KeyBatch::memory(u64::MAX), u64::MAX);
}
