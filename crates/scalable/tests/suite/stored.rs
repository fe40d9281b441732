//! The stored form: it reads back, all damage is rejected, and its bytes never change.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use crate::common::Random;
use crate::{filled, new};
use blocked_bloom::parts::HeaderError;
use blocked_bloom::{Bitmask, BloomFilter, Filter, FilterOptions, FormatError, KeyHash, Sizing};
use blocked_bloom_scalable::{
    ScalableBloomFilter, ScalableError, ScalableFormatError, ScalableOptions,
};
use xxhash_rust::xxh3::xxh3_64;

/// No link, one, several, and one filter of caller-supplied hashes.
fn specimens() -> Vec<ScalableBloomFilter> {
    let caller = KeyHash::Caller { tag: 0xfeed };
    let mut caller_hashed = ScalableOptions::new(0.05, 3).with_key_hash(caller).build().unwrap();
    caller_hashed.insert_hash(0x0123_4567_89ab_cdef).unwrap();
    vec![new(0.01, 1_000), filled(0.02, 10, 5).0, filled(0.02, 10, 60).0, caller_hashed]
}

#[test]
fn filters_read_back_as_they_were_written() {
    for filter in specimens() {
        let bytes = filter.to_bytes();
        assert_eq!(
            bytes.len() as u64,
            64 + 64 * filter.links().len() as u64 + filter.memory_bytes()
        );
        let mut parts = filter.stored_headers().into_iter();
        let mut pieces = Vec::from(parts.next().unwrap());
        for (link, header) in filter.links().iter().zip(parts) {
            pieces.extend([&header, link.blocks().as_flattened()].concat());
        }
        assert_eq!(pieces, bytes);
        #[cfg(feature = "std")]
        {
            let mut written = Vec::new();
            assert_eq!(filter.write_to(&mut written).unwrap(), bytes.len() as u64);
            assert_eq!(written, bytes);
        }
        let view = ScalableBloomFilter::from_bytes_any_hash(&bytes).unwrap();
        assert_eq!(
            (view.key_hash(), view.links().len()),
            (filter.key_hash(), filter.links().len())
        );
        assert_eq!(view.hasher(), filter.hasher());
        let queries = [Random(10).hashes(60), Random(9).hashes(60)].concat();
        let (mut hits, mut expected) = (Bitmask::new(), Bitmask::new());
        view.contains_hashes(&queries, &mut hits);
        filter.contains_hashes(&queries, &mut expected);
        assert_eq!(hits, expected);
        assert!(queries.iter().all(|&hash| view.contains_hash(hash) == filter.contains_hash(hash)));
        let mut read = view.to_filter().unwrap();
        assert_eq!(read, filter);
        // The opened filter continues like the stored one.
        let mut filter = filter;
        for hash in Random(9).hashes(500) {
            assert_eq!(read.insert_hash(hash), filter.insert_hash(hash));
        }
        assert_eq!(read.to_bytes(), filter.to_bytes());
    }
}

#[test]
fn headers_and_links_that_were_read_apart_are_the_filter() {
    for filter in specimens() {
        let (headers, links) = (filter.stored_headers(), filter.links().to_vec());
        let read = |headers: &[[u8; 64]], links: &[BloomFilter]| {
            ScalableBloomFilter::from_stored_headers(headers, links.to_vec())
        };
        let mut again = read(&headers, &links).unwrap();
        assert_eq!(again, filter);
        let mut filter = filter;
        for hash in Random(9).hashes(500) {
            assert_eq!(again.insert_hash(hash), filter.insert_hash(hash));
        }
        assert_eq!(again.to_bytes(), filter.to_bytes());
        // A wrong number of links, of headers, or of both, and no headers and links at all.
        let one = filter.links()[0].clone();
        let more = [&links[..], &[one]].concat();
        let more_headers = [&headers[..], &headers[..1]].concat();
        assert!(read(&headers, &more).is_err() && read(&more_headers, &links).is_err());
        assert!(read(&more_headers, &more).is_err() && read(&[], &[]).is_err());
        if let Some((_, fewer)) = links.split_last() {
            let fewer_headers = &headers[..headers.len() - 1];
            assert!(read(&headers, fewer).is_err() && read(fewer_headers, &links).is_err());
            assert!(read(fewer_headers, fewer).is_err());
        }
    }
    // Headers of other links, any damage of the first header, and links with another hash.
    let filter = filled(0.02, 10, 60).0;
    let headers = filter.stored_headers();
    let mut swapped = headers.clone();
    swapped.swap(1, 2);
    let error = ScalableBloomFilter::from_stored_headers(&swapped, filter.links().to_vec());
    let sum = |error| matches!(error, HeaderError::BodyChecksum { offset: 40, .. });
    assert!(matches!(error, Err(ScalableFormatError::Header(error)) if sum(error)));
    for bit in 0..512 {
        let mut damaged = headers.clone();
        damaged[0][bit / 8] ^= 1 << (bit % 8);
        let links = filter.links().to_vec();
        assert!(ScalableBloomFilter::from_stored_headers(&damaged, links).is_err(), "{bit}");
    }
    // Links of another filter with the same hash: more blocks, or other probes or keys.
    let link = &filter.links()[0];
    let blocks = link.blocks();
    let more = [blocks, blocks].concat();
    for (blocks, probes, keys) in [
        (&more[..], link.params().probes(), link.keys_inserted()),
        (blocks, link.params().probes() + 1, link.keys_inserted()),
        (blocks, link.params().probes(), link.keys_inserted() + 1),
    ] {
        let other = BloomFilter::from_blocks(blocks, probes, link.key_hash()).unwrap();
        let mut links = filter.links().to_vec();
        links[0] = other.to_filter().unwrap().with_facts(keys, link.contents());
        let error = ScalableBloomFilter::from_stored_headers(&headers, links);
        let is_about_blocks = |error| matches!(error, HeaderError::Field { offset: 24, .. });
        assert!(matches!(error, Err(ScalableFormatError::Header(error)) if is_about_blocks(error)));
    }
    let other = KeyHash::Xxh3 { seed: 5 };
    let links = filter.links().iter().map(|link| {
        BloomFilter::from_blocks(link.blocks(), link.params().probes(), other).unwrap()
    });
    let error = ScalableBloomFilter::from_stored_headers(&headers, links.collect());
    assert_eq!(
        error.unwrap_err(),
        HeaderError::HashMismatch { offset: 10, found: other, expected: filter.key_hash() }.into()
    );
}

/// With either page size the links have the same bits, whether or not they were written at once.
#[test]
fn pages_make_no_difference() {
    let [small, huge] = [false, true].map(|huge_pages| {
        let options = ScalableOptions::new(0.01, 150_000).with_growth(16);
        let mut filter = options.build().unwrap().with_huge_pages(huge_pages);
        for hash in Random(7).hashes(160_000) {
            filter.insert_hash(hash).unwrap();
        }
        filter
    });
    // The second link is sized for 2.4 million keys.
    assert!(small.links().len() == 2 && small.links()[1].memory_bytes() > 2 << 20);
    assert!(small == huge && small.to_filter().unwrap() == small);
}

#[test]
fn every_truncation_and_extension_is_refused() {
    for filter in specimens() {
        let bytes = filter.to_bytes();
        for length in 0..bytes.len() {
            let error = ScalableBloomFilter::from_bytes_any_hash(&bytes[..length]).unwrap_err();
            match error {
                ScalableFormatError::Header(HeaderError::TooShort { found }) => {
                    assert!(found == length as u64 && length < 64);
                }
                ScalableFormatError::Link { ref error, start, .. } => {
                    assert!(matches!(
                        error,
                        FormatError::Header(
                            HeaderError::TooShort { .. } | HeaderError::Length { .. }
                        )
                    ));
                    assert!(start <= length as u64);
                }
                ref other => panic!("{length} bytes: {other}"),
            }
            assert_eq!(error.offset(), length as u64, "{error}");
        }
        for extra in [1, 64, 128] {
            let mut longer = bytes.clone();
            longer.resize(bytes.len() + extra, 0);
            let error = ScalableBloomFilter::from_bytes_any_hash(&longer).unwrap_err();
            let (found, expected) = (longer.len() as u64, bytes.len() as u64);
            assert_eq!(error, ScalableFormatError::Header(HeaderError::Length { found, expected }));
            assert_eq!(error.offset(), expected);
        }
        // One link more, or less, than the header says.
        if let Some(link) = filter.links().last() {
            let longer = [bytes.clone(), link.to_bytes()].concat();
            assert!(ScalableBloomFilter::from_bytes_any_hash(&longer).is_err());
            let shorter = &bytes[..bytes.len() - link.to_bytes().len()];
            assert!(ScalableBloomFilter::from_bytes_any_hash(shorter).is_err());
        }
    }
}

/// Links of another filter, each valid by itself, and links in another order.
#[test]
fn links_of_other_filters_are_refused() {
    let (one, _) = filled(0.01, 20, 200);
    let mut other = new(0.01, 20);
    for key in 1_000..1_200_u64 {
        other.insert(key.to_le_bytes()).unwrap();
    }
    assert_eq!(one.links().len(), other.links().len());
    let links = |filter: &ScalableBloomFilter| -> Vec<Vec<u8>> {
        filter.links().iter().map(|link| link.to_bytes()).collect()
    };
    let header = &one.to_bytes()[..64];
    let (ours, theirs) = (links(&one), links(&other));
    assert!(ScalableBloomFilter::from_bytes_any_hash(&[header, &ours.concat()].concat()).is_ok());
    for i in 0..ours.len() {
        let mut mixed = ours.clone();
        mixed[i].clone_from(&theirs[i]);
        let mixed = [header, &mixed.concat()].concat();
        let error = ScalableBloomFilter::from_bytes_any_hash(&mixed).unwrap_err();
        assert!(matches!(
            error,
            ScalableFormatError::Header(HeaderError::BodyChecksum { offset: 40, .. })
        ));
        assert_eq!(error.offset(), 40);
    }
    let mut reversed = ours;
    reversed.reverse();
    assert!(
        ScalableBloomFilter::from_bytes_any_hash(&[header, &reversed.concat()].concat()).is_err()
    );
}

#[test]
fn every_flipped_bit_is_refused() {
    for filter in specimens() {
        let bytes = filter.to_bytes();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let error =
                ScalableBloomFilter::from_bytes_any_hash(&damaged).expect_err("a flipped bit");
            use ScalableFormatError::{Header, Link};
            let expected = match bit / 8 {
                0..8 => matches!(error, Header(HeaderError::Magic { .. })),
                8..10 => matches!(error, Header(HeaderError::Version { .. })),
                10..64 => matches!(error, Header(HeaderError::Checksum { .. })),
                at => matches!(error, Link { start, .. } if start <= at as u64),
            };
            assert!(expected, "bit {bit}: {error}");
        }
    }
}

#[test]
fn trusted_bytes_are_refused_for_their_headers_and_lengths_alone() {
    for filter in specimens() {
        let bytes = filter.to_bytes();
        let opened = ScalableBloomFilter::from_bytes_trusted_any_hash(&bytes).unwrap();
        assert_eq!(opened.to_filter().unwrap(), filter);
        let mut headers = vec![false; bytes.len()];
        headers[..64].fill(true);
        let mut start = 64;
        for link in filter.links() {
            headers[start..start + 64].fill(true);
            start += 64 + link.memory_bytes() as usize;
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            let opened = ScalableBloomFilter::from_bytes_trusted_any_hash(&damaged);
            assert_eq!(opened.is_err(), headers[at], "byte {at}");
        }
        assert!(
            ScalableBloomFilter::from_bytes_trusted_any_hash(&bytes[..bytes.len() - 64]).is_err()
        );
        assert!(
            ScalableBloomFilter::from_bytes_trusted_any_hash(&[&bytes[..], &[0; 64]].concat())
                .is_err()
        );
    }
}

/// Bytes whose owner lends as many as the test sets.
#[derive(Clone)]
struct Owner {
    bytes: Arc<[u8]>,
    lends: Rc<Cell<usize>>,
}

impl Owner {
    fn new(bytes: Vec<u8>) -> Self {
        Owner { lends: Rc::new(Cell::new(bytes.len() - 1)), bytes: bytes.into() }
    }
}

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.lends.get()]
    }
}

/// Detects links that look up bytes of another length than was verified.
#[test]
fn owners_that_lend_other_bytes() {
    for filter in specimens() {
        let bytes = filter.to_bytes();
        let length = bytes.len();
        let absent: Vec<u64> = Random(77)
            .hashes(200)
            .into_iter()
            .filter(|&hash| !filter.contains_hash(hash))
            .collect();
        let open: [fn(Owner) -> Result<_, _>; 2] = [
            ScalableBloomFilter::from_bytes_any_hash,
            ScalableBloomFilter::from_bytes_trusted_any_hash,
        ];
        for open in open {
            // One byte more than the owner lends.
            let owner = Owner::new([&bytes[..], &[0]].concat());
            let opened = open(owner.clone()).unwrap();
            let (mut hits, links) = (Bitmask::new(), filter.links().len());
            for lends in [length, 0, 63, 64, 127, length - 64, length - 1, length + 1, length] {
                owner.lends.set(lends);
                let misses = if lends == length || links == 0 { absent.len() } else { 0 };
                for count in [1, 2, 65, absent.len()] {
                    let hashes = &absent[..count];
                    opened.contains_hashes(hashes, &mut hits);
                    assert_eq!(hits.count_misses(), misses.min(count), "{lends} of {length}");
                }
                let single = absent.iter().filter(|&&hash| !opened.contains_hash(hash)).count();
                assert_eq!(single, misses, "{lends} of {length}");
                absent.iter().for_each(|&hash| opened.prefetch_hash(hash));
                let copy = opened.to_filter().unwrap();
                assert!(lends != length || copy == filter);
                assert!(links == 0 || copy.contains_hash(absent[0]) == (lends != length));
                let stored = opened.to_bytes();
                assert!(lends != length || stored == bytes);
                if let Ok(read) = ScalableBloomFilter::from_bytes_any_hash(&stored[..]) {
                    assert!(lends == length || links == 0 || read.contains_hash(absent[0]));
                }
            }
        }
        // While it is opened.
        for lends in [0, 63, 64, length - 1].into_iter().filter(|&lends| lends < length) {
            let owner = Owner::new(bytes.clone());
            owner.lends.set(lends);
            assert!(ScalableBloomFilter::from_bytes_any_hash(owner.clone()).is_err());
            assert!(ScalableBloomFilter::from_bytes_trusted_any_hash(owner).is_err());
        }
    }
}

/// Bytes that become one byte shorter after some number of calls.
#[derive(Clone)]
struct Shrinking<'c>(Arc<[u8]>, &'c Cell<usize>);

impl AsRef<[u8]> for Shrinking<'_> {
    fn as_ref(&self) -> &[u8] {
        let left = self.1.get();
        self.1.set(left.saturating_sub(1));
        &self.0[..self.0.len() - usize::from(left == 0)]
    }
}

/// Detects an operation that relies on an earlier measurement of the bytes.
#[test]
fn owners_that_lend_other_bytes_within_a_call() {
    let (filter, added) = filled(0.02, 10, 300);
    let (bytes, left) = (Arc::<[u8]>::from(filter.to_bytes()), Cell::new(usize::MAX));
    assert!(filter.links().len() > 3);
    for calls in 0..40 {
        for open in [
            ScalableBloomFilter::from_bytes_any_hash,
            ScalableBloomFilter::from_bytes_trusted_any_hash,
        ] {
            left.set(calls);
            if let Ok(opened) = open(Shrinking(bytes.clone(), &left)) {
                assert!(added.iter().all(|&hash| opened.contains_hash(hash)), "{calls}");
            }
        }
        left.set(usize::MAX);
        let opened =
            ScalableBloomFilter::from_bytes_any_hash(Shrinking(bytes.clone(), &left)).unwrap();
        let mut hits = Bitmask::new();
        for count in [1, 3, 64, 300] {
            left.set(calls);
            opened.contains_hashes(&added[..count], &mut hits);
            assert_eq!(hits.count_misses(), 0, "{count} hashes, {calls} calls");
        }
        left.set(calls);
        assert!(added.iter().all(|&hash| opened.contains_hash(hash)), "{calls}");
        left.set(calls);
        let copy = opened.to_filter().unwrap();
        assert!(added.iter().all(|&hash| copy.contains_hash(hash)), "{calls}");
        left.set(calls);
        let stored = opened.to_bytes();
        if let Ok(read) = ScalableBloomFilter::from_bytes_any_hash(&stored) {
            assert!(added.iter().all(|&hash| read.contains_hash(hash)), "{calls}");
        }
    }
}

/// A filter that borrows nothing, in several threads.
#[test]
fn filters_that_own_their_bytes() {
    fn is_static<T: Send + Sync + 'static>(filter: T) -> T {
        filter
    }
    let (filter, added) = filled(0.02, 10, 60);
    let shared: Arc<[u8]> = filter.to_bytes().into();
    let opened = is_static(ScalableBloomFilter::from_bytes_any_hash(shared.clone()).unwrap());
    // The links share the bytes and copy none.
    assert_eq!(Arc::strong_count(&shared), 1 + filter.links().len());
    let places = shared.as_ptr_range();
    for link in opened.links() {
        assert!(places.contains(&link.blocks().as_flattened().as_ptr()));
    }
    assert!(opened == filter && opened.to_filter().unwrap() == filter);
    let copy = opened.clone();
    drop((shared, opened));
    let found = std::thread::spawn(move || added.iter().all(|&hash| copy.contains_hash(hash)));
    assert!(found.join().unwrap());
}

/// A header of a hostile or buggy writer, with a valid checksum.
#[test]
fn headers_that_make_no_sense_are_refused() {
    let bytes = new(0.01, 1_000).to_bytes();
    let forged = |offset: usize, value: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[offset..offset + value.len()].copy_from_slice(value);
        let sum = xxh3_64(&bytes[..56]);
        bytes[56..64].copy_from_slice(&sum.to_le_bytes());
        ScalableBloomFilter::from_bytes_any_hash(&bytes).map(|filter| filter.to_filter().unwrap())
    };
    let error = |offset, value: &[u8]| {
        let error = forged(offset, value).unwrap_err();
        assert!(!error.to_string().is_empty());
        error
    };
    // A field with this value: its offset, and the value found.
    let field = |error| match error {
        ScalableFormatError::Header(HeaderError::Field { offset, found, .. }) => (offset, found),
        other => panic!("{other}"),
    };
    assert_eq!(field(error(10, &[2])), (10, 2));
    for number in [0.0, -1.0, 1.5, f64::NAN, f64::INFINITY] {
        for at in [24, 32] {
            let error = error(at, &number.to_le_bytes());
            let ScalableFormatError::Header(HeaderError::Number { offset, found, .. }) = error
            else {
                panic!("{error}");
            };
            assert_eq!((offset, found.to_bits()), (at as u64, number.to_bits()));
            assert_eq!(error.offset(), offset);
        }
    }
    for found in [0, 1, 17, 255] {
        let error = error(11, &[found]);
        assert_eq!(error.offset(), 11);
        assert_eq!(field(error), (11, found.into()));
    }
    assert!(matches!(
        error(40, &[1]),
        ScalableFormatError::Header(HeaderError::BodyChecksum { offset: 40, .. })
    ));
    assert_eq!(field(error(48, &[0; 8])), (48, 0));
    assert!(matches!(error(12, &[1]), ScalableFormatError::Link { link: 0, start: 64, .. }));
    assert!(matches!(error(12, &[0xff; 4]), ScalableFormatError::Link { link: 0, .. }));
    // Absurd but harmless: a first link for 2^64 - 1 keys cannot be created.
    let mut filter = forged(48, &[0xff; 8]).unwrap();
    assert!(matches!(filter.insert("a"), Err(ScalableError::Params(_))));
    // From 16 GiB upwards, links are as large as the one before: a link of 2^33 keys has 15 GiB,
    // and one of 2^34 would have 31 GiB.
    for (items, next) in [(1_u64 << 30, 1_u64 << 31), (1 << 32, 1 << 33), (1 << 33, 1 << 33)] {
        let mut filter = new(0.01, 1_000);
        filter.insert("a").unwrap();
        let mut bytes = filter.to_bytes();
        bytes[48..56].copy_from_slice(&items.to_le_bytes());
        let sum = xxh3_64(&bytes[..56]);
        bytes[56..64].copy_from_slice(&sum.to_le_bytes());
        let filter = ScalableBloomFilter::from_bytes_any_hash(&bytes).unwrap();
        assert_eq!(filter.next_link().unwrap().expected_items(), next);
    }
    // A link with another hash than the header.
    let found = KeyHash::Xxh3 { seed: 1 };
    let stranger = FilterOptions::new(Sizing::BitsPerKey(10.0)).with_key_hash(found);
    let mut with_stranger = bytes.clone();
    with_stranger[12] = 1;
    let sum = xxh3_64(&with_stranger[..56]);
    with_stranger[56..64].copy_from_slice(&sum.to_le_bytes());
    with_stranger.extend(stranger.builder().finish().unwrap().to_bytes());
    let error = ScalableBloomFilter::from_bytes_any_hash(&with_stranger).unwrap_err();
    let expected = KeyHash::default();
    let error_of_link = HeaderError::HashMismatch { offset: 11, found, expected }.into();
    assert_eq!(error, ScalableFormatError::Link { link: 0, start: 64, error: error_of_link });
}

/// Pins the container and the sizes of the links: never update it.
#[test]
fn the_golden_file_is_what_is_written_and_still_opens() {
    let mut filter = new(0.01, 20);
    for key in 0..100_u64 {
        filter.insert(key.to_le_bytes()).unwrap();
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/scalable.bloom");
    let stored = std::fs::read(path).unwrap_or_else(|error| {
        let built = concat!(env!("CARGO_TARGET_TMPDIR"), "/scalable.bloom");
        std::fs::write(built, filter.to_bytes()).unwrap();
        panic!("{path}: {error}; {built} has what was built")
    });
    assert_eq!(stored, filter.to_bytes());
    let view = ScalableBloomFilter::from_bytes_any_hash(&stored).unwrap();
    assert!((0..100_u64).all(|key| view.contains(key.to_le_bytes())));
    assert_eq!(
        (stored.len(), xxh3_64(&stored), view.links().len()),
        (640, 0xeb2c_3fd8_8b68_bf73, 3)
    );
}

/// Reads the table of the container in the document, and checks each row against a filter's bytes.
#[test]
fn the_document_matches_the_code() {
    let document = include_str!("../../../../docs/format.md");
    let section = document.split("## Growing filter").nth(1).expect("the section");
    let section = section.split("\n### ").next().unwrap();
    let (filter, _) = filled(0.02, 10, 60);
    let bytes = filter.to_bytes();
    let mut end = 0;
    for line in section.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [offset, length, field, value] = cells[..] else { continue };
        let (Ok(offset), Ok(length)) = (offset.parse::<usize>(), length.parse::<usize>()) else {
            continue;
        };
        assert_eq!(offset, end, "{field} begins where the field before it ends");
        end = offset + length;
        let mut found = [0; 8];
        found[..length].copy_from_slice(&bytes[offset..end]);
        let found = u64::from_le_bytes(found);
        match field {
            "magic" => {
                let hex: Vec<String> =
                    bytes[..8].iter().map(|byte| format!("{byte:02x}")).collect();
                assert_eq!(value, format!("`{}`", hex.join(" ")));
            }
            "version" => assert_eq!(found.to_string(), value),
            "hash" => assert_eq!(found, 1),
            "checksum of the links" => {
                let sums: Vec<u8> = filter
                    .links()
                    .iter()
                    .flat_map(|link| link.to_bytes()[56..64].to_vec())
                    .collect();
                assert_eq!(found, xxh3_64(&sums));
            }
            "links" => assert_eq!(found, filter.links().len() as u64),
            "seed" => assert_eq!(found, 0),
            "false-positive rate" => assert_eq!(f64::from_bits(found), 0.02),
            "tightening" => {
                assert!(f64::from_bits(found) == 0.85 && value.contains("0.05 to 0.95"))
            }
            "growth" => assert!(found == 2 && value.contains("2 to 16")),
            "items" => assert_eq!(found, 40),
            "checksum of the header" => assert_eq!(found, xxh3_64(&bytes[..56])),
            other => panic!("unknown field {other}"),
        }
        if end == 64 {
            return;
        }
    }
    panic!("the table ends at {end}");
}
