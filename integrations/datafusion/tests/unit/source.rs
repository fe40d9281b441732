use datafusion::parquet::arrow::arrow_reader::{RowSelection, RowSelector};

use super::*;

fn left(file: &PartitionedFile) -> Vec<usize> {
    file.extensions.get::<ParquetAccessPlan>().expect("a plan").row_group_indexes()
}

#[test]
fn narrowing_keeps_earlier_exclusions() {
    let mut file = PartitionedFile::new("f", 1);
    assert!(narrow(&mut file, &[false, true, true, false, true]));
    assert_eq!(left(&file), [1, 2, 4]);
    assert!(narrow(&mut file, &[true, true, false, true, true]));
    assert_eq!(left(&file), [1, 4]);
    assert!(!narrow(&mut file, &[true; 4]), "a plan of another number of row groups");
    assert_eq!(left(&file), [1, 4]);

    let mut file = PartitionedFile::new("f", 1);
    let rows = RowSelection::from(vec![RowSelector::skip(5), RowSelector::select(5)]);
    file.extensions.insert(ParquetRowSelection::new(rows));
    assert!(!narrow(&mut file, &[true, false]), "a selection of rows");
    assert!(file.extensions.get::<ParquetAccessPlan>().is_none());
}
