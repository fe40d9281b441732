use super::{Record, Records};

#[test]
fn slices_are_recorded_once_and_joined() {
    let path = std::env::temp_dir().join(format!("records-{}.txt", std::process::id()));
    std::fs::write(&path, "# a comment\n").unwrap();
    let record = Record::new("batch", "avx2", 8, 30, Some("some machine")).unwrap();
    let other = Record::new("split", "avx2", 0, 30, Some("some machine")).unwrap();
    let mut records = Records::read(&path).unwrap();
    for slice in [7, 1, 3, 2] {
        assert!(!records.contain(&record, slice));
        records.add(&record, slice).unwrap();
        assert!(records.contain(&record, slice) && !records.contain(&other, slice));
    }
    // A second run that has read the file before.
    Records { records: Vec::new(), ..records }.add(&other, 30).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let read = Records::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0], "# a comment");
    assert!(lines[1].contains(" 1-3,7/30 batch avx2 8 "), "{}", lines[1]);
    assert!(lines[2].contains(" 30/30 split avx2 - ") && lines[2].ends_with(" some_machine"));
    assert!(read.contain(&record, 7) && !read.contain(&record, 4));
    assert!(read.records.iter().all(Record::is_current));
}
