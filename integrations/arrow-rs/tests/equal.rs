//! Bytes, folds, estimates and answers of `blocked-bloom-split` are those of `parquet` 60.

use std::path::Path;

use blocked_bloom::{Bitmask, Filter, Kernel};
use blocked_bloom_split::sbbf::{AsPlain, Sbbf as Named};
use blocked_bloom_split::thrift::ThriftError;
use blocked_bloom_split::{
    AtomicSplitBlockFilter, SplitBlockError, SplitBlockFilter, hash_offsets, hash_value,
};
use parquet::bloom_filter::Sbbf;
use parquet::data_type::{AsBytes, ByteArray, Decimal, FixedLenByteArray, Int96};
use parquet::errors::ParquetError;

mod files;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }
}

fn stored(theirs: &Sbbf) -> Vec<u8> {
    let mut bytes = Vec::new();
    theirs.write(&mut bytes).unwrap();
    bytes
}

/// One filter, built with every method.
struct Filters {
    theirs: Sbbf,
    named: Named,
    batches: Vec<SplitBlockFilter>,
    shared: AtomicSplitBlockFilter,
}

impl Filters {
    fn new(ndv: u64, fpp: f64) -> Self {
        let ours = || SplitBlockFilter::new(ndv, fpp).unwrap();
        Filters {
            theirs: Sbbf::new_with_ndv_fpp(ndv, fpp).unwrap(),
            named: Named::new_with_ndv_fpp(ndv, fpp).unwrap(),
            batches: Kernel::supported().map(|kernel| ours().with_kernel(kernel)).collect(),
            shared: ours().into(),
        }
    }

    fn insert<T: AsBytes + AsPlain>(&mut self, values: &[T]) {
        let hashes: Vec<u64> = values.iter().map(AsPlain::hash_plain).collect();
        for value in values {
            self.theirs.insert(value);
            self.named.insert(value);
        }
        self.batches.iter_mut().for_each(|filter| filter.insert_hashes(&hashes));
        self.shared.insert_hashes(&hashes);
    }

    fn check_bytes(&self) {
        let theirs = stored(&self.theirs);
        let mut named = Vec::new();
        self.named.write(&mut named).unwrap();
        assert!(named == theirs);
        for filter in &self.batches {
            assert!(filter.to_bytes() == theirs, "{}", filter.kernel());
        }
        assert_eq!(self.named.num_blocks(), self.theirs.num_blocks());
        assert_eq!(self.named.estimated_fpp().to_bits(), self.theirs.estimated_fpp().to_bits());
        let (mut bitset, mut expected) = (Vec::new(), Vec::new());
        self.named.write_bitset(&mut bitset).unwrap();
        self.theirs.write_bitset(&mut expected).unwrap();
        assert!(bitset == expected);
    }

    fn check_answers<T: AsBytes + AsPlain>(&self, values: &[T]) {
        let hashes: Vec<u64> = values.iter().map(AsPlain::hash_plain).collect();
        let expected: Vec<bool> = values.iter().map(|value| self.theirs.check(value)).collect();
        for (value, &expected) in values.iter().zip(&expected) {
            assert_eq!(self.named.check(value), expected);
        }
        let mut hits = Bitmask::new();
        let bytes = stored(&self.theirs);
        let opened = SplitBlockFilter::from_bytes(&bytes).unwrap();
        for filter in self.batches.iter().map(SplitBlockFilter::view).chain([opened.view()]) {
            filter.contains_hashes(&hashes, &mut hits);
            assert!(hits.iter().eq(expected.iter().copied()), "{}", filter.kernel());
            let one_by_one = hashes.iter().map(|&hash| filter.contains_hash(hash));
            assert!(one_by_one.eq(expected.iter().copied()), "{}", filter.kernel());
        }
    }

    fn fold(&mut self, fpp: f64) {
        self.theirs.fold_to_target_fpp(fpp);
        self.named.fold_to_target_fpp(fpp);
        self.batches.iter_mut().for_each(|filter| _ = filter.shrink_to_false_positive_rate(fpp));
    }
}

/// Ten million values in filters of every size, in cache and far beyond it.
#[test]
fn ten_million_insertions_fold_and_answer_alike() {
    let mut random = Random(49);
    let shapes = [
        (1, 0.5, 200),
        (100, 0.001, 3_000),
        (10_000, 0.01, 10_000),
        (1_000_000, 0.01, 1_000),
        (1_000_000, 0.05, 985_800),
        (3_000_000, 0.000_1, 3_000_000),
        (6_000_000, 0.01, 6_000_000),
    ];
    assert_eq!(shapes.iter().map(|(.., values)| values).sum::<u64>(), 10_000_000);
    for (ndv, fpp, values) in shapes {
        let mut filters = Filters::new(ndv, fpp);
        let mut present = Vec::new();
        let mut left = values;
        while left > 0 {
            let part: Vec<u64> = (0..left.min(65_537)).map(|_| random.next()).collect();
            filters.insert(&part);
            left -= part.len() as u64;
            present.extend(part.into_iter().step_by(7));
        }
        let absent: Vec<u64> = (0..100_000).map(|_| random.next()).collect();
        present.truncate(100_000);
        filters.check_bytes();
        filters.check_answers(&present);
        filters.check_answers(&absent);
        let shared =
            std::mem::replace(&mut filters.shared, AtomicSplitBlockFilter::with_blocks(1).unwrap());
        assert!(shared.into_filter().to_bytes() == stored(&filters.theirs));
        for target in [1e-9, 0.001, 0.01, 0.05, 0.3, 1.0] {
            filters.fold(target);
            filters.check_bytes();
            filters.check_answers(&present[..present.len().min(10_000)]);
            filters.check_answers(&absent[..10_000]);
        }
        assert_eq!(filters.theirs.num_blocks(), 1);
    }
}

#[test]
fn values_of_every_type_have_their_hash() {
    let mut random = Random(7);
    let numbers: Vec<u64> = (0..10_000).map(|_| random.next()).collect();
    macro_rules! check {
        ($($number:ty)*) => {$({
            let mut filters = Filters::new(20_000, 0.01);
            let values: Vec<$number> = numbers.iter().map(|&n| n as $number).collect();
            let (added, others) = values.split_at(5_000);
            filters.insert(added);
            filters.check_bytes();
            filters.check_answers(added);
            filters.check_answers(others);
        })*};
    }
    check! { i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 }
    let mut filters = Filters::new(20_000, 0.01);
    filters.insert(&[true, false]);
    let texts: Vec<Vec<u8>> = (0..600)
        .map(|length| numbers[..75].iter().flat_map(|n| n.to_le_bytes()).take(length).collect())
        .collect();
    filters.insert(&texts[..300]);
    filters.check_bytes();
    filters.check_answers(&texts);
    let words: Vec<String> = numbers.iter().map(u64::to_string).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    filters.insert(&words[..5_000]);
    filters.check_bytes();
    filters.check_answers(&words);
}

/// Sizes by distinct values and rate, and by bytes.
#[test]
fn sizes_are_theirs() {
    for bytes in (0..300).chain([1_000, 4_096, 4_097, 1 << 20, (1 << 20) + 1]) {
        let theirs = Sbbf::new_with_num_of_bytes(bytes);
        let ours = Named::new_with_num_of_bytes(bytes).unwrap();
        assert_eq!(ours.num_blocks(), theirs.num_blocks(), "{bytes} bytes");
    }
    let rates = [0.0, 1e-300, 1e-50, 1e-6, 0.000_1, 0.001, 0.01, 0.05, 0.1, 0.5, 0.9, 0.999_999];
    for ndv in [0, 1, 2, 10, 31, 99, 100, 1_000, 12_345, 100_000, 300_000] {
        for fpp in rates {
            let theirs = Sbbf::new_with_ndv_fpp(ndv, fpp).unwrap();
            let named = Named::new_with_ndv_fpp(ndv, fpp).unwrap();
            assert_eq!(named.num_blocks(), theirs.num_blocks(), "{ndv} at {fpp}");
            // A rate so small that the formula is not a number: `parquet` uses the smallest filter.
            if fpp > 1e-100 {
                let ours = SplitBlockFilter::new(ndv, fpp).unwrap();
                assert_eq!(ours.blocks().len(), theirs.num_blocks(), "{ndv} at {fpp}");
            }
        }
    }
    for fpp in [1.0, -0.1, 2.0, f64::NAN, f64::INFINITY] {
        assert!(
            Sbbf::new_with_ndv_fpp(10, fpp).is_err() && Named::new_with_ndv_fpp(10, fpp).is_err()
        );
    }
}

/// Sizes are computed by other functions here: compared where a value more doubles the filter, at
/// the last digits, and anywhere.
#[test]
fn sizes_at_random_and_where_they_double_are_theirs() {
    let mut random = Random(60);
    let (mut compared, mut doubled) = (0, 0);
    let mut compare = |ndv: u64, fpp: f64| {
        let theirs = Sbbf::new_with_ndv_fpp(ndv, fpp).unwrap().num_blocks();
        let named = Named::new_with_ndv_fpp(ndv, fpp).unwrap().num_blocks();
        let ours = SplitBlockFilter::new(ndv, fpp).unwrap().blocks().len();
        assert_eq!((named, ours), (theirs, theirs), "{ndv} at {fpp:e}");
        compared += 1;
        theirs
    };
    for _ in 0..20_000 {
        let unit = (random.next() >> 11) as f64 / (1_u64 << 53) as f64;
        let fpp = 10_f64.powf(-12.0 * unit).min(1.0 - 1e-9);
        compare(random.next() % 400_000, fpp);
        // The values that make the bits of a power of two of bytes, just not, and just.
        let bytes = 32_u64 << (random.next() % 14);
        let bits_of_one = -8.0 / (1.0 - fpp.powf(0.125)).ln();
        let ndv = (8.0 * bytes as f64 / bits_of_one) as u64;
        let sizes = [ndv.saturating_sub(1), ndv, ndv + 1, ndv + 2].map(|ndv| compare(ndv, fpp));
        doubled += u32::from(sizes[0] != sizes[3]);
    }
    assert!(compared == 100_000 && doubled > 5_000, "{doubled} of {compared}");
}

/// A target that is not a number never stops `parquet`'s folding.
#[test]
fn every_target_folds_alike() {
    let targets = [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0, 1e-300, 1.0];
    for values in [0, 1, 1_000] {
        for target in targets {
            let mut filters = Filters::new(10_000, 0.01);
            filters.insert(&(0..values).collect::<Vec<u64>>());
            let before = filters.theirs.num_blocks();
            filters.theirs.fold_to_target_fpp(target);
            filters.named.fold_to_target_fpp(target);
            assert_eq!(filters.named.num_blocks(), filters.theirs.num_blocks(), "{target}");
            let folds = target.is_nan() || target >= 1.0 || values == 0;
            assert_eq!(filters.theirs.num_blocks(), if folds { 1 } else { before }, "{target}");
            let mut bytes = Vec::new();
            filters.named.write(&mut bytes).unwrap();
            assert!(bytes == stored(&filters.theirs), "{target}");
        }
    }
}

/// Both cut a bitset that is not a multiple of a block. A bitset without a block is an error here,
/// and a panic at the first lookup in `parquet`.
#[test]
fn bytes_that_fill_no_block_are_left_out() {
    let mut random = Random(8);
    let bytes: Vec<u8> = (0..200).map(|_| random.next() as u8 | random.next() as u8).collect();
    for length in 0..200 {
        let theirs = Sbbf::new(&bytes[..length]);
        // Header and bitset, whose length the header has: up to 63, zigzag, one byte.
        let mut stored_bytes = stored(&Sbbf::new(&[0; 32]));
        stored_bytes.truncate(15);
        stored_bytes[1] = (2 * length) as u8;
        stored_bytes.extend(&bytes[..length]);
        if length < 32 {
            let error = SplitBlockError::BitsetLength { found: 0 };
            assert_eq!(Named::new(&bytes[..length]), Err(error));
            assert_eq!(theirs.num_blocks(), 0);
            assert!(std::panic::catch_unwind(|| theirs.check(&1)).is_err());
            assert_eq!(Named::from_bytes(&stored_bytes), Err(error));
            continue;
        }
        let mut all = vec![Named::new(&bytes[..length]).unwrap()];
        if length < 64 {
            all.push(Named::from_bytes(&stored_bytes).unwrap());
            let opened = Sbbf::from_bytes(&stored_bytes).unwrap();
            assert!(stored(&opened) == stored(&theirs));
        }
        for named in all {
            let mut written = Vec::new();
            named.write(&mut written).unwrap();
            assert!(written == stored(&theirs), "{length} bytes");
            assert!((0..1_000_u64).all(|value| named.check(&value) == theirs.check(&value)));
        }
    }
}

/// Replaces every byte of a header by every other value. We accept what `parquet` accepts, except
/// fields with a type that differs from Parquet's, which `parquet` does not check.
#[test]
fn headers_that_they_take_are_taken() {
    let mut whole = Sbbf::new_with_num_of_bytes(4_096);
    (0..100_u64).for_each(|value| whole.insert(&value));
    let whole = stored(&whole);
    let header = whole.len() - 4_096;
    let (mut taken, mut of_other_types) = (0, 0);
    for place in 0..header {
        for byte in 0..=255 {
            let mut bytes = whole.clone();
            bytes[place] = byte;
            let Ok(theirs) = Sbbf::from_bytes(&bytes) else { continue };
            match Named::from_bytes(&bytes) {
                Ok(named) => {
                    let mut written = Vec::new();
                    named.write(&mut written).unwrap();
                    assert!(written == stored(&theirs), "byte {place} is {byte}");
                    taken += 1;
                }
                Err(SplitBlockError::Thrift(ThriftError::FieldType { .. })) => of_other_types += 1,
                Err(error) => panic!("byte {place} is {byte}: {error}"),
            }
        }
    }
    println!("{taken} headers taken, {of_other_types} with fields of other types not");
    assert!(taken >= header && of_other_types > 0);
}

/// Values of types that implement only `AsBytes` are passed as bytes, and errors need a conversion
/// before `?`.
#[test]
fn types_and_errors_are_converted() -> Result<(), ParquetError> {
    let other = |error: SplitBlockError| ParquetError::External(Box::new(error));
    let mut theirs = Sbbf::new_with_ndv_fpp(100, 0.01)?;
    let mut named = Named::new_with_ndv_fpp(100, 0.01).map_err(other)?;
    macro_rules! insert {
        ($($value:expr)*) => {$({
            let value = $value;
            theirs.insert(&value);
            named.insert(value.as_bytes());
            assert!(named.check(value.as_bytes()) && theirs.check(&value));
        })*};
    }
    let mut int96 = Int96::new();
    int96.set_data(1, 2, 3);
    insert! {
        ByteArray::from("apple")
        FixedLenByteArray::from(vec![7; 16])
        int96
        Decimal::from_i64(12_345, 18, 2)
        Decimal::from_bytes(ByteArray::from(vec![1, 2, 3]), 7, 2)
    }
    let mut written = Vec::new();
    named.write(&mut written)?; // an `io::Error`, which `?` converts
    assert!(written == stored(&theirs));
    Ok(())
}

/// A column of strings as Arrow lays it out: one buffer, and where each value begins.
#[test]
fn hashes_by_offsets_are_found_in_their_filters() {
    let words: Vec<String> = (0..1_000).map(|i| format!("value {}", i * i)).collect();
    let mut offsets = vec![0];
    for word in &words {
        offsets.push(offsets[offsets.len() - 1] + word.len() as i32);
    }
    let mut hashes = vec![0; words.len()];
    hash_offsets(words.concat().as_bytes(), &offsets, &mut hashes).unwrap();
    assert!(hashes.iter().zip(&words).all(|(&hash, word)| hash == hash_value(word)));
    let mut theirs = Sbbf::new_with_ndv_fpp(1_000, 0.01).unwrap();
    words.iter().step_by(2).for_each(|word| theirs.insert(word.as_str()));
    let bytes = stored(&theirs);
    let mut hits = Bitmask::new();
    SplitBlockFilter::from_bytes(&bytes).unwrap().contains_hashes(&hashes, &mut hits);
    assert!(hits.iter().eq(words.iter().map(|word| theirs.check(word.as_str()))));
}

/// Bitsets of any number of blocks are copied, looked up, added to and written.
#[test]
fn bitsets_of_any_number_of_blocks_are_taken() {
    let mut random = Random(3);
    for blocks in (1..70).chain([1_000, 4_095, 100_003]) {
        let words: Vec<[u8; 8]> =
            (0..4 * blocks).map(|_| (random.next() & random.next()).to_le_bytes()).collect();
        let bitset = words.as_flattened();
        let (mut theirs, mut named) = (Sbbf::new(bitset), Named::new(bitset).unwrap());
        for _ in 0..200 {
            let value = random.next();
            assert_eq!(named.check(&value), theirs.check(&value));
            theirs.insert(&value);
            named.insert(&value);
            assert!(named.check(&value));
        }
        let mut bytes = Vec::new();
        named.write(&mut bytes).unwrap();
        assert!(bytes == stored(&theirs), "{blocks} blocks");
        let mut again = Vec::new();
        Named::from_bytes(&bytes).unwrap().write(&mut again).unwrap();
        assert!(again == bytes && Sbbf::from_bytes(&bytes).is_ok());
        for end in [0, 1, 10, bytes.len() - 1] {
            assert!(Named::from_bytes(&bytes[..end]).is_err());
            assert!(Sbbf::from_bytes(&bytes[..end]).is_err());
        }
    }
}

/// Where the repository's files of other writers are.
fn fixtures() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/formats/tests/fixtures/parquet")
}
