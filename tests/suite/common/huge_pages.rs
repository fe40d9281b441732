//! The advice that Linux has received about memory.

/// Whether the mapping of `start` is advised to use huge pages. Only for memory of 32 MiB or more:
/// smaller memory may have been used and advised before.
fn are_advised(start: *const u8) -> bool {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    let mut here = false;
    maps.lines().any(|line| {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        if let Some((first, end)) = range {
            let [first, end] = [first, end].map(|end| usize::from_str_radix(end, 16));
            here = first.is_ok_and(|first| first <= start.addr())
                && end.is_ok_and(|end| start.addr() < end);
        }
        here && line.starts_with("VmFlags:") && line.split(' ').any(|flag| flag == "hg")
    })
}

/// Checks that memory is advised if and only if it should be. A kernel without huge pages ignores
/// advice.
pub(crate) fn check_advice(wanted: &[*const u8], not_wanted: &[*const u8]) {
    assert!(not_wanted.iter().all(|&start| !are_advised(start)));
    let advised = wanted.iter().filter(|&&start| are_advised(start)).count();
    assert!(advised == 0 || advised == wanted.len(), "{advised} of {}", wanted.len());
}
