//! The last lines of `bench --quick`: the kernel that the library takes, in the largest filter, beside the memory-bound baseline.

use benches::clock::Timing;
use blocked_bloom::Kernel;

use super::rows::{Name, Row, Setting};

/// A line for each of the five ops that was measured, below a line that says what they are; None if none was.
pub(super) fn text(setting: &Setting, rows: &[Row]) -> Option<String> {
    let kernel = Kernel::default().name();
    let batch = setting.batches.first().copied().unwrap_or(1);
    let lines = [
        (format!("absent keys, {batch} a call"), "contains_hashes", "absent", batch),
        (format!("present keys, {batch} a call"), "contains_hashes", "present", batch),
        ("absent keys, one a call".to_owned(), "contains_hash", "absent", 1),
        (
            format!("absent keys of 16 bytes, hashed, {batch} a call"),
            "contains_batch",
            "absent",
            batch,
        ),
        (format!("keys inserted, {batch} a call"), "insert_hashes", "absent", batch),
    ];
    let find = |op, mix, batch| {
        let is_it =
            |name: &Name| (name.op, name.mix, name.kernel, name.batch) == (op, mix, kernel, batch);
        rows.iter().find(|row| is_it(&row.name))
    };
    let heads = ["ns/key", "ratio", "memory-bound baseline"];
    let head = format!("summary: {} keys, kernel {kernel}", setting.keys);
    let mut text = String::new();
    let head = format!("\n{head:<48} {:>8} {:>6}  {}\n", heads[0], heads[1], heads[2]);
    for (name, op, mix, batch) in lines {
        let Some(row) = find(op, mix, batch) else { continue };
        // Whole keys are looked up in the same lines as their hashes.
        let baseline = row.baseline.or_else(|| find("contains_hashes", mix, batch)?.baseline);
        text += &line(&name, row.time, baseline);
    }
    (!text.is_empty()).then(|| head + &text)
}

fn line(name: &str, time: Timing, baseline: Option<Timing>) -> String {
    let [ratio, baseline] = match baseline {
        Some(baseline) => {
            [time.median / baseline.median, baseline.median].map(|x| format!("{x:.2}"))
        }
        None => ["-", "-"].map(str::to_owned),
    };
    format!("{name:<48} {:>8.2} {ratio:>6}  {baseline}\n", time.median)
}
