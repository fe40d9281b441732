//! The program as it is run.

use std::error::Error;
use std::process::Command;

#[test]
fn every_answer_is_right() -> Result<(), Box<dyn Error>> {
    let output = Command::new(env!("CARGO_BIN_EXE_multiget")).output()?;
    let (report, progress) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
    assert!(output.status.success() && !progress.contains("warning"), "{progress}");
    let last = report.lines().last().unwrap_or_default();
    let (fewer, rest) = last.split_once(" times fewer block reads").ok_or("no such sentence")?;
    assert!(fewer.parse::<u32>()? >= 10 && rest.ends_with("every answer right"), "{last}");
    assert_eq!(report.matches("skips no table").count(), 3, "{report}");
    Ok(())
}
