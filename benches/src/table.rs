//! Tables as Markdown.

/// A table with these heads; the first column is of text, the others are of numbers.
pub fn markdown<R: AsRef<[String]>>(heads: &[String], rows: impl IntoIterator<Item = R>) -> String {
    let mut table =
        format!("| {} |\n|---|{}\n", heads.join(" | "), "---:|".repeat(heads.len() - 1));
    for row in rows {
        table += &format!("| {} |\n", row.as_ref().join(" | "));
    }
    table
}

/// Formats a number of keys in thousands or millions.
pub fn counted(keys: u64) -> String {
    match keys {
        0..1_000_000 => format!("{} k", keys / 1_000),
        _ => format!("{} M", keys / 1_000_000),
    }
}
