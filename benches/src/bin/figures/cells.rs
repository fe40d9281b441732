//! Cells and tables as pages show them.

use benches::table::markdown;

/// Formats a number with three digits.
pub(crate) fn digits(number: f64) -> String {
    match number {
        ..9.995 => format!("{number:.2}"),
        ..99.95 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}

/// Formats a percentage with two decimals, or with three below 0.1 %.
pub(crate) fn percent(number: f64) -> String {
    if number < 0.0995 { format!("{number:.3} %") } else { format!("{number:.2} %") }
}

pub(crate) fn italic(text: &str) -> String {
    format!("*{text}*")
}

pub(crate) fn bold(text: String, is_bold: bool) -> String {
    if is_bold { format!("**{text}**") } else { text }
}

/// Builds a Markdown table without empty columns and rows.
pub(crate) fn table<'h>(
    corner: &'h str,
    heads: impl IntoIterator<Item = &'h str>,
    mut rows: Vec<Vec<String>>,
) -> Result<String, String> {
    let mut heads: Vec<String> = [corner].into_iter().chain(heads).map(str::to_owned).collect();
    rows.retain(|row| row[1..].iter().any(|cell| !cell.is_empty()));
    if rows.is_empty() {
        return Err("nothing of this table was measured".to_owned());
    }
    for column in (1..heads.len()).rev() {
        if rows.iter().all(|row| row[column].is_empty()) {
            heads.remove(column);
            rows.iter_mut().for_each(|row| _ = row.remove(column));
        }
    }
    Ok(markdown(&heads, rows))
}
