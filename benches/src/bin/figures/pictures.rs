//! The pictures that are drawn from the files of results without measuring anew.

use benches::chart::{Axis, Chart, Panel, Point, Series};

use crate::names::FILE_METHODS;
use crate::store::Store;

/// Requests for an absent value against the number of files.
pub(crate) fn files(store: &Store) -> Result<String, String> {
    let counts = [10, 30, 100, 300, 658];
    let mut series = Vec::new();
    for (name, colour, line, mark) in FILE_METHODS {
        let mut points = Vec::new();
        for count in counts {
            let (table, _) = store.table(&format!("files: {count} files; requests"))?;
            let row = table.rows.iter().find(|row| row.name == name);
            let y = row.ok_or_else(|| format!("{count} files: no row {name}"))?.time.median;
            points.push(Point { x: f64::from(count), y, to: y });
        }
        let name = name.to_owned();
        series.push(Series { name, colour, points, line, mark, is_listed: true });
    }
    let ticks: Vec<f64> = counts.into_iter().map(f64::from).collect();
    let panel = Panel {
        title: String::new(),
        x: Axis::log("files", (8.0, 800.0), &ticks, ""),
        y: Axis::log("requests", (1.0, 4_000.0), &[1.0, 3.0, 10.0, 100.0, 1_000.0, 3_000.0], ""),
        series,
        height: 240.0,
        right: 250.0,
    };
    let chart = Chart {
        title: "Requests for a value that is in no file".to_owned(),
        notes: vec![
            "DataFusion in a new session, which collects statistics; opening the index included. \
             Nearly three row groups a file."
                .to_owned(),
            store.text("machine; files")?,
        ],
        panels: vec![panel],
    };
    Ok(chart.svg())
}
