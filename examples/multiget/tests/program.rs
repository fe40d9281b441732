//! The program as it is run.

use std::error::Error;
use std::process::Command;

#[test]
fn every_answer_is_right() -> Result<(), Box<dyn Error>> {
    let output = Command::new(env!("CARGO_BIN_EXE_multiget")).output()?;
    let (report, progress) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
    assert!(output.status.success(), "{report}{progress}");
    // The one that the program damages.
    assert_eq!(progress.matches("warning: ").count(), 1, "{progress}");
    let last = report.lines().last().unwrap_or_default();
    let saved = last.strip_prefix("every answer was right; filters saved ").ok_or("no sentence")?;
    let percent = saved.split_once(" %").ok_or("no percentage")?.0;
    assert!(percent.parse::<u32>()? >= 50, "{report}");
    Ok(())
}
