//! Numbers as people write them.

use blocked_bloom_inspect::numbers::{
    parse_bits, parse_bytes, parse_count, parse_keys, parse_present, parse_rate, parse_runs,
    parse_size,
};

#[test]
fn keys() {
    for (text, keys) in [
        ("1", 1),
        ("1_000_000", 1_000_000),
        ("1 000,000", 1_000_000),
        ("1,000", 1_000),
        ("12,345.5k", 12_345_500),
        ("1 500 M", 1_500_000_000),
        ("1_5M", 15_000_000),
        ("1e6", 1_000_000),
        ("10M", 10_000_000),
        ("1.1G", 1_100_000_000),
        ("0.3k", 300),
        ("18446744073709551615", u64::MAX),
    ] {
        assert_eq!(parse_keys(text), Ok(keys), "{text}");
    }
    for text in ["", "0", "-1", "1.5", "M", "10MiB", "inf", "nan", "1e30", "20000000000G"] {
        assert!(parse_keys(text).is_err(), "{text}");
    }
    // A comma meant as a decimal point, and unknown separators.
    for text in ["1,5M", "1,5", "1 5M", ",5", "1,", "1,,000", "1000,000", "1.000,5", "1,00k"] {
        assert!(parse_keys(text).is_err(), "{text}");
    }
    assert_eq!((parse_count("0"), parse_count("2k")), (Ok(0), Ok(2_000)));
    assert!(parse_count("").is_err() && parse_count("-1").is_err());
}

#[test]
fn bytes() {
    for (text, bytes) in [
        ("0", 0),
        ("7b", 7),
        ("64K", 64_000),
        ("64KB", 64_000),
        ("64 KiB", 65_536),
        ("1.5gib", 3 << 29),
        ("2MB", 2_000_000),
        ("3MiB", 3 << 20),
        ("4GB", 4_000_000_000),
        ("5T", 5_000_000_000_000),
        ("6TB", 6_000_000_000_000),
        ("7TiB", 7 << 40),
    ] {
        assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
    }
    for text in ["1,5GiB", "1,5 GB", "64 1KiB", "1e,500"] {
        assert!(parse_bytes(text).is_err(), "{text}");
    }
    assert!(parse_bytes("64KX").is_err() && parse_bytes("").is_err());
    assert_eq!(parse_size("1k"), Ok(1_000));
    assert!(parse_size("0").is_err());
}

#[test]
fn bits() {
    assert_eq!((parse_bits("0"), parse_bits("12.5")), (Ok(0.0), Ok(12.5)));
    for text in ["", "-1", "100.1", "1e400", "inf", "nan", "10M"] {
        assert!(parse_bits(text).is_err(), "{text}");
    }
}

#[test]
fn rates() {
    assert_eq!(parse_rate("0.01"), parse_rate("1%"));
    assert_eq!(parse_rate("100 %"), Ok(1.0));
    for text in ["0", "0%", "1.1", "101%", "nan", "-1", "%"] {
        assert!(parse_rate(text).is_err(), "{text}");
    }
}

#[test]
fn levels() {
    assert_eq!((parse_runs("1"), parse_runs("4294967295")), (Ok(1), Ok(u32::MAX)));
    for text in ["0", "-1", "1.5", "4294967296", ""] {
        assert!(parse_runs(text).is_err(), "{text}");
    }
    assert_eq!((parse_present("0"), parse_present("0 %")), (Ok(0.0), Ok(0.0)));
    assert_eq!((parse_present("90%"), parse_present("1")), (Ok(0.9), Ok(1.0)));
    for text in ["-0.1", "1.1", "101%", "nan", ""] {
        assert!(parse_present(text).is_err(), "{text}");
    }
}
