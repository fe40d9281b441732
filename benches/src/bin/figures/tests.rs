//! The check finds faults that the tests plant in pages.

use std::fs;
use std::path::PathBuf;

use benches::results::{Report, distinct};

use crate::blocks::text;
use crate::names::{FILES_PICTURE, is_ours};
use crate::pages::{Page, fill};
use crate::run;
use crate::store::{SHOWN, Store};

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// A page whose numbers are known under `ten` and whose blocks under `rows`.
fn filled(text: &str) -> Page {
    let number = |key: &str| match key {
        "ten" => Ok("10.0".to_owned()),
        _ => Err(format!("no key: {key}")),
    };
    let block = |name: &str| match name {
        "rows" => Ok("| a |\n|---|\n| 1 |\n".to_owned()),
        _ => Err(format!("no block {name}")),
    };
    fill(text, &number, &block)
}

const GOOD: &str = "Some take <!--=ten-->10.0<!--/--> ns, <!--=ten-->10.0<!--/-->.\n\n\
    <!-- figures: rows -->\n\n| a |\n|---|\n| 1 |\n\n<!-- /figures -->\n\nThe end.\n";

#[test]
fn a_page_that_agrees_stays_as_it_is() {
    let page = filled(GOOD);
    assert_eq!((page.differences, page.errors), (vec![], vec![]));
    assert_eq!(page.text, GOOD);
}

#[test]
fn a_wrong_number_in_a_sentence_is_found_and_mended() {
    let page = filled(&GOOD.replacen("10.0<", "11.0<", 1));
    assert_eq!(page.differences, [(1, "found 11.0, expected 10.0 (ten)".to_owned())]);
    assert_eq!(page.text, GOOD);
}

#[test]
fn a_wrong_number_in_a_table_is_found_and_mended() {
    for wrong in [GOOD.replace("| 1 |", "| 2 |"), GOOD.replace("| 1 |\n", "| 1 |\n| 2 |\n")] {
        let page = filled(&wrong);
        assert_eq!(page.differences.len(), 1, "{wrong}");
        assert_eq!(page.text, GOOD);
    }
    let (line, what) = &filled(&GOOD.replace("| 1 |", "| 2 |")).differences[0];
    assert_eq!((*line, &**what), (7, "found | 2 |\n  expected | 1 |"));
}

#[test]
fn unknown_keys_and_blocks_are_errors() {
    let page =
        filled("So <!--=eleven-->11<!--/-->.\n<!-- figures: columns -->\n<!-- /figures -->\n");
    let errors = [(1, "no key: eleven".to_owned()), (2, "no block columns".to_owned())];
    assert_eq!(page.errors, errors);
}

#[test]
fn marks_without_an_end_are_errors() {
    for text in [
        "<!-- figures: rows -->\n\n| a |\n",
        "<!-- figures: rows -->\n<!-- figures: rows -->\n<!-- /figures -->\n",
        "<!-- /figures -->\n",
        "So <!--=ten-->10.0\n",
        "So <!--=ten 10.0<!--/-->\n",
        "  <!--=ten-->10.0<!--/-->\n",
    ] {
        assert_eq!(filled(text).errors.len(), 1, "{text}");
    }
}

#[test]
fn marks_in_code_are_examples() {
    let text = "As `<!--=eleven-->11<!--/-->`:\n```text\n<!-- figures: columns -->\n```\n";
    let page = filled(text);
    assert_eq!((page.errors, &*page.text), (vec![], text));
}

#[test]
fn the_pages_of_the_repository_agree_with_the_results() {
    let problems = run(&root(), true).unwrap();
    let how = "`cargo run -p blocked-bloom-benches --bin figures` fills the pages";
    assert!(problems.is_empty(), "{}\n{how}", problems.join("\n"));
}

#[test]
fn faults_planted_in_pages_of_the_repository_are_found() {
    let folder = std::env::temp_dir().join(format!("figures-{}", std::process::id()));
    fs::create_dir_all(folder.join("benches/results")).unwrap();
    for file in fs::read_dir(root().join("benches/results")).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), folder.join("benches/results").join(file.file_name())).unwrap();
    }
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    fs::write(folder.join("README.md"), &readme).unwrap();
    fs::create_dir_all(folder.join("docs/img")).unwrap();
    assert_eq!(
        run(&folder, true).unwrap(),
        [format!("{FILES_PICTURE}: not drawn from the results")]
    );
    fs::copy(root().join(FILES_PICTURE), folder.join(FILES_PICTURE)).unwrap();
    assert_eq!(run(&folder, true).unwrap(), [""; 0]);

    let row = readme.lines().find(|line| line.starts_with("| **blocked-bloom**")).unwrap();
    let digit = row.rfind(|c: char| c.is_ascii_digit()).unwrap();
    let other = if &row[digit..=digit] == "9" { "8" } else { "9" };
    let wrong = format!("{}{other}{}", &row[..digit], &row[digit + 1..]);
    fs::write(folder.join("README.md"), readme.replace(row, &wrong)).unwrap();
    let problems = run(&folder, true).unwrap();
    let line = readme.lines().position(|line| line == row).unwrap() + 1;
    let expected = format!("README.md:{line}: found {wrong}\n  expected {row}");
    assert_eq!(problems, [expected]);
    // Filling mends it.
    assert_eq!(run(&folder, false).unwrap(), [""; 0]);
    assert_eq!(fs::read_to_string(folder.join("README.md")).unwrap(), readme);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn keys_find_medians_ratios_and_rates() {
    let store = Store::read(&root().join("benches/results")).unwrap();
    let time = |row: &str| store.time("hashes, absent, 1024 a call", row, "10 M").unwrap();
    let (ours, other) = (time("blocked-bloom"), time("fastbloom"));
    let key = "hashes, absent, 1024 a call; fastbloom / blocked-bloom; 10 M";
    assert_eq!(store.text(key).unwrap(), format!("{:.2}", other / ours));
    assert!(store.text("rates; blocked-bloom; 10").unwrap().ends_with(" %"));
    assert!(store.text("machine").unwrap().contains("cores"));
    for unknown in ["", "rates", "rates; nothing; 10", "hashes; blocked-bloom; 10 M", "a; b; c; d"]
    {
        assert!(store.text(unknown).is_err(), "{unknown}");
    }
}

#[test]
fn a_table_shows_one_machine_and_date() {
    let report = |date: &str, kernel: &str| {
        let machine = r#""cpu": "a CPU", "cores": 2, "kernel": "scalar", "command": "","#;
        let time = r#"{"median": 2.5, "min": null, "samples": 1}"#;
        let text = format!(
            r#"{{"machine": {{{machine} "date": "{date}"}}, "tables": [{{"title":
            "hashing: 16 bytes, {kernel}, 32 a call", "date": "{date}", "command": "",
            "rows": [{{"name": "hash_batch", "time": {time}, "ratio": null}}]}}]}}"#
        );
        serde_json::from_str(&text).unwrap()
    };
    let mut store = Store { reports: vec![report("2026-11-22", "avx2")] };
    let of_one = text(&store, "hashing").unwrap();
    assert!(of_one.contains("AVX2, 32 a call") && of_one.contains("| 2.50 |"), "{of_one}");
    // The first counts, as the one that is shown does.
    store.reports.insert(0, report("2026-11-21", "avx512"));
    let of_both = text(&store, "hashing").unwrap();
    assert!(of_both.contains("AVX-512, 32") && !of_both.contains("AVX2"), "{of_both}");
}

#[test]
fn a_newer_run_on_another_machine_changes_no_page() {
    let folder = std::env::temp_dir().join(format!("figures-other-{}", std::process::id()));
    let results = folder.join("benches/results");
    fs::create_dir_all(&results).unwrap();
    let shown = root().join("benches/results").join(SHOWN);
    fs::copy(&shown, results.join(SHOWN)).unwrap();
    // The source of the picture.
    fs::create_dir_all(folder.join("docs/img")).unwrap();
    for file in ["benches/results/2026-11-27-zen3-files.json", FILES_PICTURE] {
        fs::copy(root().join(file), folder.join(file)).unwrap();
    }
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    fs::write(folder.join("README.md"), &readme).unwrap();
    // The same tables of another machine a year later, all slower, and one of its own.
    let mut other = Report::read(&shown).unwrap();
    other.machine.cpu = "another CPU".to_owned();
    other.machine.date = "2027-11-24".to_owned();
    other.times.iter_mut().for_each(|time| time.ns.median *= 2.0);
    let mut own = other.tables[0].clone();
    own.title = "engine: as many keys as there are".to_owned();
    own.rows[0].time.median = 7.0;
    other.tables.iter_mut().for_each(|table| table.date = "2027-11-24".to_owned());
    other.tables.push(own);
    other.write(&results.join("2027-11-24-other.json")).unwrap();
    assert_eq!(run(&folder, true).unwrap(), [""; 0]);
    let store = Store::read(&results).unwrap();
    let (table, at) = store.table("engine: 3276 keys a table").unwrap();
    assert_eq!((&at.cpu == "another CPU", table.date == "2027-11-24"), (false, false));
    // A table that only the other file has may be shown, with its own machine.
    let title = "engine: as many keys as there are";
    let row = &store.table(title).unwrap().0.rows[0].name;
    assert_eq!(store.text(&format!("{title}; {row}; median")).unwrap(), "7.00");
    assert!(store.text(&format!("machine; {title}")).unwrap().starts_with("another CPU"));
    assert!(!store.text("machine; engine").unwrap().starts_with("another CPU"));
    assert_eq!(store.text("machine; comparison + engine"), store.text("machine"));
    let mixed = store.text(&format!("machine; comparison + {title}"));
    assert_eq!(mixed, Err(format!("not all of one machine: comparison + {title}")));
    // Without the file that is shown nothing takes its place.
    fs::remove_file(results.join(SHOWN)).unwrap();
    assert!(Store::read(&results).unwrap_err().to_string().contains(SHOWN));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn every_case_in_which_another_is_ahead_is_shown() {
    let store = Store::read(&root().join("benches/results")).unwrap();
    let page = text(&store, "where others win").unwrap();
    let report = store.comparison().unwrap();
    let mut count = 0;
    for place in distinct(report.times.iter().map(|time| time.place())) {
        let times = || report.times.iter().filter(|time| time.place() == place);
        let least = |is_it: &dyn Fn(&str) -> bool| {
            let times = times().filter(|time| is_it(&time.row)).map(|time| time.ns.median);
            times.reduce(f64::min)
        };
        let others = least(&|row| !is_ours(row));
        for rows in [
            ["blocked-bloom", "blocked-bloom, one key a call"],
            ["blocked-bloom, AVX2", "blocked-bloom, AVX2, one key a call"],
        ] {
            let ours = least(&|row| rows.contains(&row));
            let Some((ours, other)) = ours.zip(others) else { continue };
            if other / ours < 0.995 {
                count += 1;
                let shown = format!("{} **{:.2}**", place.1, other / ours);
                assert!(page.contains(&shown), "{place:?}, {}: {shown}", rows[0]);
            }
        }
    }
    assert!(count > 60, "{count}");
}
