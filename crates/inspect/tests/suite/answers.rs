//! Answers match those of the systems that wrote the filters.

use blocked_bloom::Bitmask;
use blocked_bloom_formats::parquet::{PhysicalType, Value};
use blocked_bloom_inspect::{
    BadKey, Error, FileRanges, Format, Lookup, LookupOption, LookupOptions, Opened, Prefix, Warning,
};
use blocked_bloom_split::SplitBlockFilter;

use crate::fixtures::committed;
use crate::stored::{StoredFilter, all_filters, encoded, key};

/// Whether the file records the systems' answers, instead of serving only for comparisons.
fn is_recorded(stored: &StoredFilter) -> bool {
    !stored.name.contains("matrix") && !stored.name.contains(".sbbf")
}

/// Returns the numbers of filters and of answers.
pub(crate) fn check_answers(filters: &[StoredFilter]) -> (usize, usize) {
    let (mut count, mut answers) = (0, 0);
    for stored in filters.iter().filter(|stored| is_recorded(stored)) {
        let opened = stored.open().unwrap_or_else(|error| panic!("{}: {error}", stored.name));
        for (options, expected) in &stored.lookups {
            let (keys, expected): (Vec<&[u8]>, Vec<bool>) =
                expected.iter().map(|(key, hit)| (&key[..], *hit)).unzip();
            let lookup = opened.lookup(options).unwrap();
            let found = lookup.contains(&keys).unwrap();
            assert_eq!(found, expected, "{}: {options:?}", stored.name);
            // One by one, and in another order.
            for (key, hit) in keys.iter().zip(&expected).rev().take(50) {
                assert_eq!(lookup.contains(&[key]).unwrap(), [*hit], "{}", stored.name);
            }
            answers += keys.len();
        }
        count += 1;
    }
    (count, answers)
}

#[test]
fn every_filter_answers_as_its_system_does() {
    let (filters, answers) = check_answers(&all_filters());
    assert!(filters >= 39 && answers > 118_000, "{filters} filters, {answers} answers");
}

/// For each value, the filters of a column and the row groups to read agree with the lookups in
/// single row groups.
#[test]
fn row_groups_are_those_whose_filters_may_have_a_value() {
    let mut skipped = 0;
    for stored in all_filters().iter().filter(|stored| stored.format == Format::PARQUET) {
        let opened = stored.open().unwrap();
        for (options, answers) in &stored.lookups {
            let (name, [group]) = (options.column.as_deref().unwrap(), &options.row_groups[..])
            else {
                panic!("one row group each")
            };
            let column = opened.column(name, &[]).unwrap();
            let encode = |key| column.column_type().encode(key, true).unwrap().hash();
            let hashes: Vec<u64> = answers.iter().map(|(key, _)| encode(key)).collect();
            let mut hits = Bitmask::new();
            column.contains_hashes(*group, &hashes, &mut hits);
            let expected: Vec<bool> = answers.iter().map(|answer| answer.1).collect();
            assert_eq!(hits.iter().collect::<Vec<_>>(), expected, "{}, {name}", stored.name);
            for (key, hit) in answers.iter().take(20) {
                let read = column.row_groups_to_read(&[key], true).unwrap();
                assert_eq!(read.contains(group), *hit);
                skipped += usize::from(!hit);
            }
        }
    }
    assert!(skipped > 100, "{skipped}");
}

fn open(bytes: &[u8]) -> Opened<'_> {
    Opened::new("f", &FileRanges::from(bytes), Format::PARQUET, None).unwrap()
}

#[test]
fn a_row_group_without_a_usable_filter_must_be_read() {
    let path = committed("parquet").join("pyarrow_n5000_ndv5000_fpp0.01_2rg.parquet");
    let mut bytes = std::fs::read(path).unwrap();
    let sound = bytes.clone();
    let offset = {
        let opened = open(&sound);
        let facts = opened.describe().json();
        let chunk = |at: usize, field| match facts.get("column_chunks") {
            Some(blocked_bloom_inspect::Value::List(chunks)) => chunks[at].get(field).cloned(),
            _ => None,
        };
        assert_eq!(chunk(0, "column"), Some("i64".into()));
        let Some(blocked_bloom_inspect::Value::Integer(offset)) = chunk(0, "filter_offset") else {
            panic!("no offset")
        };
        let column = opened.column("nobloom", &[]).unwrap();
        assert!(column.row_groups().iter().all(|group| matches!(group.filter, Ok(None))));
        assert_eq!(column.row_groups_to_read(&["1"], false).unwrap(), [0, 1]);
        let none = opened.column("i64", &[]).unwrap();
        assert!(none.row_groups_to_read(&["4711000000"], false).unwrap().is_empty());
        offset as usize
    };
    bytes[offset] ^= 0xff;
    let opened = open(&bytes);
    let column = opened.column("i64", &[]).unwrap();
    assert!(column.row_groups()[0].filter.is_err());
    assert_eq!(column.row_groups_to_read(&["4711000000"], false).unwrap(), [0]);
    assert_eq!(column.hash_value(Value::Int64(-1)).unwrap(), Value::Int64(-1).hash());
    assert!(column.hash_value(Value::Int32(-1)).is_err());
    let mut options = LookupOptions::default();
    options.column = Some("i64".to_owned());
    let error = opened.lookup(&options).unwrap_err();
    let text = "`row_groups` selects the others (read as parquet; it must not be used";
    assert!(error.to_string().starts_with("column \"i64\", row group 0: "), "{error}");
    assert!(error.to_string().contains(text), "{error}");
    assert!(matches!(opened.describe().damage, Some(Error::Damaged { .. })));
    options.row_groups = vec![1];
    assert_eq!(opened.lookup(&options).unwrap().contains(&["4711000000"]).unwrap(), [false]);
}

#[test]
fn zeros_are_looked_up_with_both_signs_unless_they_are_encoded() {
    let path = committed("parquet").join("pyarrow_special.parquet");
    let bytes = std::fs::read(path).unwrap();
    let opened = open(&bytes);
    let mut options = LookupOptions::default();
    options.column = Some("d".to_owned());
    let lookup = opened.lookup(&options).unwrap();
    assert_eq!(lookup.contains(&["0", "-0", "0.0"]).unwrap(), [true; 3]);
    let bad = lookup.contains(&["0", "nan"]).unwrap_err();
    let BadKey { index: 1, problem, .. } = bad else { panic!("{bad:?}") };
    let text = "found 'nan', expected a number within the range of DOUBLE (NaN, which has many \
                encodings, by --hex)";
    assert_eq!(problem.with_names(|_| "--hex"), text);
    // A filter of one zero alone.
    let mut positive = SplitBlockFilter::with_blocks(1).unwrap();
    positive.insert_hash(Value::Double(0.0).hash());
    let bytes = positive.to_bytes();
    let file = FileRanges::from(&bytes[..]);
    let bare = Opened::new("f", &file, Format::PARQUET_FILTER, None).unwrap();
    let mut of_type = LookupOptions::default();
    of_type.value_type = Some(PhysicalType::Double);
    let lookup = bare.lookup(&of_type).unwrap();
    assert_eq!(lookup.contains(&["1", "-0", "0"]).unwrap(), [false, true, true]);
    of_type.encoded = true;
    let lookup = bare.lookup(&of_type).unwrap();
    assert_eq!(lookup.contains(&[(-0.0_f64).to_le_bytes()]).unwrap(), [false]);
    options.encoded = true;
    let bad = opened.lookup(&options).unwrap().contains(&[[0; 7]]).unwrap_err();
    assert_eq!(bad.to_string(), "found 7 bytes, expected the 8 of DOUBLE");
}

#[test]
fn encoded_integers_of_a_wrong_width_are_refused_after_right_ones() {
    let mut filter = SplitBlockFilter::with_blocks(1).unwrap();
    filter.insert_hash(Value::Int32(7).hash());
    filter.insert_hash(Value::Int64(7).hash());
    let bytes = filter.to_bytes();
    let file = FileRanges::from(&bytes[..]);
    let opened = Opened::new("f", &file, Format::PARQUET_FILTER, None).unwrap();
    for (value_type, width) in [(PhysicalType::Int32, 4), (PhysicalType::Int64, 8)] {
        let mut options = encoded();
        options.value_type = Some(value_type);
        let lookup = opened.lookup(&options).unwrap();
        let key = |number: u64| number.to_le_bytes()[..width].to_vec();
        assert_eq!(lookup.contains(&[key(7), key(8), key(7)]).unwrap(), [true, false, true]);
        for wrong in [width - 1, width + 1] {
            let keys = [key(7), key(8), vec![0; wrong], key(7)];
            let bad = lookup.contains(&keys).unwrap_err();
            assert_eq!(bad.index, 2);
            let text = format!("found {wrong} bytes, expected the {width} of {value_type}");
            assert_eq!(bad.problem.to_string(), text);
        }
    }
}

#[test]
fn unanswerable_lookups_warn_and_answer_maybe() {
    let filters = all_filters();
    let of = |name: &str| filters.iter().find(|stored| stored.name.ends_with(name)).unwrap();
    let maybe = |lookup: &Lookup<'_>| {
        assert!(lookup.warnings().iter().any(Warning::is_pass_all), "{:?}", lookup.warnings());
        assert_eq!(lookup.contains(&[key(0), b"nobody".to_vec()]).unwrap(), [true; 2]);
    };
    let mut prefix = LookupOptions::default();
    prefix.prefix = Some("fixed:5".parse::<Prefix>().unwrap());
    maybe(&of("native").open().unwrap().lookup(&prefix).unwrap());
    maybe(&of("partition-index").open().unwrap().lookup(&encoded()).unwrap());
    let mut column = encoded();
    column.column = Some("nobloom".to_owned());
    let groups = of("pyarrow_n5000_ndv5000_fpp0.01_2rg.parquet").open().unwrap();
    maybe(&groups.lookup(&column).unwrap());
    // An SST file whose properties say that its filter has no whole keys.
    let sst = of("no_checksum_fv5.sst");
    assert_eq!(sst.open().unwrap().lookup(&encoded()).unwrap().warnings(), []);
    let (mut bytes, name) = (sst.bytes.clone(), b"whole.key.filtering");
    let at = bytes.windows(name.len()).position(|found| found == name).unwrap() + name.len();
    assert_eq!(std::mem::replace(&mut bytes[at], b'0'), b'1');
    maybe(&sst.open_bytes(&bytes).unwrap().lookup(&encoded()).unwrap());
    maybe(&of("bloom_b10_n5000_str.sst").open().unwrap().lookup(&prefix).unwrap());
    let both = of("bloom_b10_n3000_whole_and_prefix4.sst").open().unwrap();
    maybe(&both.lookup(&prefix).unwrap());
    prefix.prefix = Some(Prefix::FromFile);
    assert_eq!(both.lookup(&prefix).unwrap().contains(&["p000", "zzzz"]).unwrap(), [true, false]);
    let error = of("native").open().unwrap().lookup(&prefix).unwrap_err();
    assert!(error.to_string().contains("give the rule that it was built with"), "{error}");
    let error = of("removable").open().unwrap().lookup(&prefix).unwrap_err();
    let Error::Options(message) = error else { panic!("{error}") };
    assert_eq!(message.option(), Some(LookupOption::Prefix));
    let text = "--prefix is for native and partition-index and rocksdb-sst, not for removable";
    assert_eq!(message.with_names(|_| "--prefix"), text);
    let mut groups = LookupOptions::default();
    groups.row_groups = vec![0];
    let message = Format::PARQUET_FILTER.check(&groups).unwrap_err();
    assert_eq!(message.to_string(), "`row_groups` is for parquet, not for parquet-filter");
    assert_eq!(Format::PARQUET.check(&groups), Ok(()));
    prefix.prefix = Some("fixed:5".parse::<Prefix>().unwrap());
    let opened = of("prefixes").open().unwrap();
    let lookup = opened.lookup(&prefix).unwrap();
    assert_eq!(lookup.warnings(), []);
    assert_eq!(lookup.contains(&["key 0", "zzzzz"]).unwrap(), [true, false]);
}

#[test]
fn keys_that_tell_of_a_wrong_layout_or_form_are_doubted() {
    let folder = committed("cassandra");
    let bytes = std::fs::read(folder.join("nb-1-big-Filter.db")).unwrap();
    let keys = std::fs::read_to_string(folder.join("keys.txt")).unwrap();
    let keys: Vec<&str> = keys.lines().collect();
    let file = FileRanges::from(&bytes[..]);
    let open = |name: &str| Opened::new(name, &file, Format::CASSANDRA, None).unwrap();
    let doubts = |opened: &Opened<'_>, keys: &[&str], options: &LookupOptions| {
        let (lookup, mut hits) = (opened.lookup(options).unwrap(), Bitmask::new());
        lookup.contains_batch(keys, &mut hits).unwrap();
        lookup.doubts(keys, &hits)
    };
    assert_eq!(doubts(&open("nb-1-big-Filter.db"), &keys, &LookupOptions::default()), []);
    // The false positives in the wrong layout are left out.
    let wrong = open("me-1-big-Filter.db");
    let lost = wrong.lookup(&encoded()).unwrap().contains(&keys).unwrap();
    let lost: Vec<&str> =
        keys.iter().zip(lost).filter(|found| !found.1).map(|key| *key.0).collect();
    assert!(lost.len() > 10);
    let found = doubts(&wrong, &lost, &encoded());
    let [other] = &found[..] else { panic!("{found:?}") };
    assert_eq!(other.message().option(), Some(LookupOption::Layout));
    assert!(other.to_string().ends_with("its name may be wrong, give `layout` nb"), "{other}");
    // Not of keys of which some are found.
    let hits = wrong.lookup(&encoded()).unwrap().contains(&keys).unwrap();
    let hit = keys[hits.iter().position(|&hit| hit).unwrap()];
    assert_eq!(doubts(&wrong, &[&[hit][..], &lost].concat(), &encoded()), []);
    let numbers = doubts(&open("nb-1-big-Filter.db"), &["kiwi", "42"], &LookupOptions::default());
    assert_eq!(numbers[0].message().option(), Some(LookupOption::Encoded));
    assert!(numbers.len() == 1 && !numbers[0].is_pass_all(), "{numbers:?}");
    assert!(numbers[0].to_string().starts_with("'42' and the like"), "{}", numbers[0]);
    assert_eq!(doubts(&open("nb-1-big-Filter.db"), &["42"], &encoded()), []);
}

#[test]
fn an_opened_filter_can_be_shared_and_sent() {
    fn shared<T: Send + Sync>(_: &T) {}
    fn shorter<'long: 'short, 'short>(opened: Opened<'long>) -> Opened<'short> {
        opened
    }
    let bytes =
        all_filters().into_iter().find(|stored| stored.format == Format::NATIVE).unwrap().bytes;
    let opened = Opened::new("f", &FileRanges::from(&bytes[..]), Format::NATIVE, None).unwrap();
    let opened = shorter(opened);
    shared(&opened);
    shared(&opened.lookup(&LookupOptions::default()).unwrap());
}

/// A year and a date without hyphens are no numbers of days.
#[test]
fn numbers_that_may_be_dates_need_a_sign() {
    use blocked_bloom_inspect::{ColumnType, LogicalType, PhysicalType, TimeUnit};
    let timestamp = LogicalType::Timestamp { unit: TimeUnit::Micros, is_utc: false };
    for (physical, logical) in
        [(PhysicalType::Int32, LogicalType::Date), (PhysicalType::Int64, timestamp)]
    {
        let mut column = ColumnType::from(physical);
        column.logical_type = Some(logical);
        for text in ["2020", "20200131", "20240229"] {
            let message = column.encode(text.as_bytes(), false).unwrap_err().to_string();
            assert!(
                message.ends_with(&format!("+{text} if this is the stored number")),
                "{message}"
            );
        }
        for text in
            ["+2020", "-2020", "+20200131", "20200231", "20201301", "0", "18262", "123456789"]
        {
            let number: i64 = text.parse().unwrap();
            let stored = column.encode(text.as_bytes(), false).unwrap().bytes;
            assert_eq!(*stored, number.to_le_bytes()[..stored.len()], "{text}");
        }
    }
    let mut column = ColumnType::from(PhysicalType::Int32);
    column.logical_type = Some(LogicalType::Time(TimeUnit::Millis));
    assert!(column.encode(b"2020", false).is_ok());
}
