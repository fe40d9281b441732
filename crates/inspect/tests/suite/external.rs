//! The tests for every filter of the repository, repeated with the filters outside of it, from the
//! folder of fixtures.

use crate::stored::{all_filters, external_filters};
use crate::{answers, damage, ranges, recognition, texts};

#[test]
#[ignore = "reads files of the folder BLOCKED_BLOOM_FIXTURES"]
fn every_filter_answers_as_its_system_does() {
    let (filters, answers) = answers::check_answers(&external_filters());
    assert!(filters >= 18 && answers > 60_000, "{filters} filters, {answers} answers");
}

#[test]
#[ignore = "reads files of the folder BLOCKED_BLOOM_FIXTURES"]
fn every_filter_is_recognised_and_described() {
    let mut filters = external_filters();
    recognition::check_marks(&filters);
    recognition::check_heads(&filters);
    recognition::check_lengths(&filters);
    ranges::check_ranges(&filters);
    texts::check_descriptions(&filters);
    filters.extend(all_filters());
    texts::check_shapes(&filters);
}

#[test]
#[ignore = "reads files of the folder BLOCKED_BLOOM_FIXTURES"]
fn damage_is_seen_where_it_can_be() {
    let filters = external_filters();
    let (opened, rejected) = damage::check_flipped_bits(&filters);
    assert!(opened > 1_000 && rejected > 100, "{opened} opened, {rejected} rejected");
    let truncated = damage::check_truncated(&filters);
    assert!(truncated > 1_000, "{truncated}");
    let errors = ranges::check_damage_by_ranges(&filters);
    assert!(errors > 100, "{errors}");
}
