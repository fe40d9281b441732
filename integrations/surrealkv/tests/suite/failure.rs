//! A filter that cannot be built: its error cannot be caused through the trait.
#![expect(unreachable_pub, reason = "the policy's source")]

include!("../../src/policy.rs");

#[test]
fn a_filter_that_cannot_be_built_answers_maybe_and_is_counted() {
    let policy = BlockedBloomPolicy::new(Sizing::BitsPerKey(10.0)).unwrap();
    for failures in 1..3 {
        let filter = policy.pass_all(&"no memory".parse::<u8>().unwrap_err());
        assert!((0..1_000_u32).all(|i| policy.may_contain(&filter, &i.to_le_bytes())));
        assert_eq!(policy.unusable_filters(), failures);
    }
}
