//! A description as text or as JSON: what `info` prints.

use blocked_bloom_inspect::{DAMAGED, Facts, List, Value};
use serde_json::{Map, Value as Json};

use crate::terminal::printable;

/// For programs.
pub(crate) fn json(value: Value) -> Json {
    match value {
        Value::Bool(value) => value.into(),
        Value::Integer(value) => match (u64::try_from(value), i64::try_from(value)) {
            (Ok(value), _) => value.into(),
            (_, Ok(value)) => value.into(),
            _ => Json::Null,
        },
        Value::Number(value) => value.into(),
        Value::Text(text) => text.into(),
        Value::List(values) => values.into_iter().map(json).collect(),
        Value::Object(facts) => {
            let facts = facts.into_iter().map(|(name, value)| (name.to_owned(), json(value)));
            Json::Object(facts.collect::<Map<_, _>>())
        }
        _ => Json::Null,
    }
}

/// For people. `mark` colours the word for damage.
pub(crate) fn table(facts: &Facts, mark: impl Fn(&str) -> String) -> String {
    let mut text = String::new();
    for (name, value) in &facts.rows {
        let value = printable(value);
        let value = match value.strip_prefix(DAMAGED) {
            // The name of a file may begin so, too.
            Some(rest) if name.ends_with("checksum") => mark(DAMAGED) + rest,
            _ if *name == "layout" && value.ends_with("as given") => {
                value + " by --cassandra-version"
            }
            _ => value,
        };
        text += &format!("{name:<32}{value}\n");
    }
    if let Some(list) = &facts.list {
        text.push('\n');
        text += &list_table(list, mark);
    }
    text
}

fn list_table(list: &List, mark: impl Fn(&str) -> String) -> String {
    let mut text = String::new();
    let heads = list.heads.iter().map(|&head| head.to_owned()).collect();
    let lines = list.lines.iter().map(|line| line.iter().map(|cell| printable(cell)).collect());
    let lines: Vec<Vec<String>> = [heads].into_iter().chain(lines).collect();
    let cells = |at: usize| lines.iter().map(move |line| line[at].chars().count());
    let widths: Vec<usize> = (0..lines[0].len()).map(|at| cells(at).max().unwrap_or(0)).collect();
    for line in &lines {
        let cells = line.iter().zip(&widths).enumerate();
        let cells: Vec<String> = cells
            .map(|(at, (cell, width))| match at < list.words {
                true => format!("{cell:<width$}"),
                // Marked when it is as wide as its column: a mark takes no space.
                false if cell == DAMAGED => {
                    format!("{cell:>width$}").replace(DAMAGED, &mark(DAMAGED))
                }
                false => format!("{cell:>width$}"),
            })
            .collect();
        text += cells.join("  ").trim_end();
        text.push('\n');
    }
    text
}
