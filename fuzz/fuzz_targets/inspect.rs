//! Property: of any bytes, read as any format, whole and by ranges are the same: an error, or a
//! filter that is described, counted and looked up in alike. No answer is given of a filter that is
//! damaged, and the block of a single key says what the lookup says. The first byte chooses a
//! format, or that the bytes are to be recognised; the second what is looked up; the rest is the
//! file.
#![no_main]

use blocked_bloom_inspect::{
    EVIDENCE_BYTES, Error, FileRanges, Format, LookupOptions, Opened, Prefix, recognise,
};
use libfuzzer_sys::fuzz_target;

const NAMES: [&str; 3] = ["file", "nb-1-big-Filter.db", "me-1-big-Filter.db"];

/// Opens by the ranges that are asked for, each once.
fn open_by_ranges<'a>(name: &str, bytes: &'a [u8], format: Format) -> Result<Opened<'a>, Error> {
    let mut file = FileRanges::new(bytes.len() as u64);
    let load = |file: &mut FileRanges<'a>, offset: u64, length: u64| {
        assert!(length > 0 && file.get(offset, length).is_none(), "{offset} {length} again");
        let end = offset.checked_add(length).expect("a range that ends");
        file.insert(offset, &bytes[offset as usize..end as usize]);
    };
    loop {
        match Opened::new(name, &file, format, None) {
            Err(Error::NotLoaded { offset, length }) => load(&mut file, offset, length),
            Ok(opened) if !opened.missing(None).is_empty() => {
                for (offset, length) in opened.missing(None) {
                    if length > 0 && file.get(offset, length).is_none() {
                        load(&mut file, offset, length);
                    }
                }
            }
            other => return other,
        }
    }
}

/// All that can be asked of it, as text.
fn told(opened: &Opened<'_>, options: &LookupOptions) -> String {
    let facts = opened.describe();
    let mut told = format!("{}\n{:?}\n", facts.json(), facts.rows);
    for part in 0..opened.parts().min(4) {
        if let Some(loads) = opened.block_loads(part) {
            assert_eq!(loads.histogram.iter().sum::<u64>(), loads.blocks);
            told += &format!("{loads:?}\n");
        }
    }
    let keys: [&[u8]; 4] = [b"", b"7", b"a key", b"\x00\xff\x00\xff\x00\xff\x00\xff"];
    let lookup = match opened.lookup(options) {
        Ok(lookup) => lookup,
        Err(error) => return told + &error.to_string(),
    };
    assert!(facts.damage.is_none() || opened.format() == Format::PARQUET);
    for key in keys {
        let found = match lookup.contains(&[key]) {
            Ok(found) => found[0],
            Err(error) => {
                told += &format!("{error}\n");
                continue;
            }
        };
        told += &format!("{found}\n");
        let probes = opened.probes(key, options).expect("a key that was looked up");
        // A part without a filter, or whose kind has no blocks, has no probes: only absence needs
        // no further reason.
        assert!(found || probes.iter().all(|probe| !probe.is_hit()), "{probes:?}");
    }
    told
}

fuzz_target!(|data: &[u8]| {
    let [choice, lookup, bytes @ ..] = data else { return };
    let name = NAMES[usize::from(choice / 32) % NAMES.len()];
    let ends = bytes.len().min(EVIDENCE_BYTES as usize);
    let (head, tail) = (&bytes[..ends], &bytes[bytes.len() - ends..]);
    let format = match Format::ALL.get(usize::from(choice % 32)) {
        Some(&format) => format,
        None => match recognise(name, head, tail, Some(bytes.len() as u64)) {
            Ok(format) => format,
            Err(_) => return,
        },
    };
    let mut options = LookupOptions::default();
    options.encoded = lookup & 1 == 1;
    options.prefix = (lookup & 2 == 2).then_some(Prefix::FromFile);
    if lookup & 4 == 4 {
        options.row_groups = vec![usize::from(lookup / 32)];
    }
    let whole = Opened::new(name, &FileRanges::from(bytes), format, None);
    let pieces = open_by_ranges(name, bytes, format);
    match (whole, pieces) {
        (Ok(whole), Ok(pieces)) => {
            if lookup & 8 == 0 {
                options.column = whole.columns_with_filters().names.first().cloned();
            }
            assert_eq!(told(&whole, &options), told(&pieces, &options));
        }
        (Err(whole), Err(pieces)) => assert_eq!(whole, pieces),
        (whole, pieces) => panic!("{:?} and {:?}", whole.map(drop), pieces.map(drop)),
    }
});
