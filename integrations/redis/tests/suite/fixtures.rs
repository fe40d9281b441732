//! Dumps that RedisBloom wrote, with its answers. They are not part of this repository: they are
//! read from the folder that the environment variable `BLOCKED_BLOOM_FIXTURES` names, or from
//! `../shared/fixtures`. A test whose files are missing says so and passes, unless
//! `BLOCKED_BLOOM_REQUIRE_FIXTURES` is set.

// How the fixtures are found is written once, in the tests of the formats.
#[path = "../../../../crates/formats/tests/suite/common/fixtures.rs"]
mod found;

use blocked_bloom_formats::redis::RedisFilter;

use found::{external, unhex};

use crate::server::{Server, call, dump, items, load};

/// A dump, and keys with what RedisBloom answers.
struct Fixture {
    name: String,
    replies: Vec<(i64, Vec<u8>)>,
    keys: Vec<Vec<u8>>,
    answers: Vec<bool>,
}

fn fixtures() -> Vec<Fixture> {
    let Some(folder) = external("redisbloom") else { return Vec::new() };
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let dumps =
        files.filter(|path| path.extension().is_some_and(|extension| extension == "scandump"));
    dumps
        .map(|path| {
            let mut bytes = &std::fs::read(&path).unwrap()[..];
            let mut replies = Vec::new();
            while let Some((iterator, rest)) = bytes.split_first_chunk() {
                let (length, rest) = rest.split_first_chunk().unwrap();
                let (data, rest) = rest.split_at(u64::from_le_bytes(*length) as usize);
                bytes = rest;
                replies.push((i64::from_le_bytes(*iterator), data.to_vec()));
            }
            replies.retain(|(iterator, _)| *iterator != 0);
            let answers = std::fs::read_to_string(path.with_extension("csv")).unwrap();
            let rows = answers.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
            let (keys, answers) = rows.map(|row| (unhex(row[0]), row[2] == "1")).unzip();
            Fixture {
                name: path.file_stem().unwrap().to_string_lossy().into(),
                replies,
                keys,
                answers,
            }
        })
        .collect()
}

#[test]
fn are_answered_as_redisbloom_answers_and_dumped_as_they_are() {
    let Some(mut server) = Server::start(&[]) else { return };
    let mut connection = server.connect();
    for Fixture { name, replies, keys, answers } in fixtures() {
        load(&mut connection, &name, &replies);
        let together = items(&mut connection, "BF.MEXISTS", &name, &keys);
        let wrong =
            together.iter().zip(&answers).filter(|(found, expected)| found != expected).count();
        assert_eq!(wrong, 0, "{name}: wrong answers of BF.MEXISTS");
        let mut pipeline = redis::pipe();
        for key in &keys {
            pipeline.cmd("BF.EXISTS").arg(&name).arg(key);
        }
        let alone: Vec<i64> = pipeline.query(&mut connection).unwrap();
        assert!(alone.iter().map(|&bit| bit == 1).eq(answers.iter().copied()), "{name}: BF.EXISTS");
        assert_eq!(dump(&mut connection, &name), replies, "{name}");
        println!(
            "{name}: {} answers by BF.MEXISTS and BF.EXISTS, 0 wrong; the same dump",
            keys.len()
        );

        // It grows as RedisBloom's: the keys of formats' `RedisFilter`, which is compared with
        // RedisBloom's code.
        let mut filter = RedisFilter::load(replies.clone()).unwrap();
        let more: Vec<String> = (0..10_000).map(|i| format!("more:{i}")).collect();
        let expected: Vec<bool> = more.iter().map(|key| filter.insert(key).unwrap()).collect();
        assert_eq!(items(&mut connection, "BF.MADD", &name, &more), expected, "{name}");
        let expected: Vec<(i64, Vec<u8>)> =
            filter.dump().map(|(i, data)| (i, data.into_owned())).collect();
        assert_eq!(dump(&mut connection, &name), expected, "{name}");
        assert_eq!(call::<u64>(&mut connection, &["BF.CARD", &name]), filter.size(), "{name}");
        let [capacity]: [u64; 1] = call(&mut connection, &["BF.INFO", &name, "CAPACITY"]);
        let [links]: [usize; 1] = call(&mut connection, &["BF.INFO", &name, "FILTERS"]);
        assert_eq!((capacity, links), (filter.capacity(), filter.links().len()), "{name}");
        println!(
            "{name}: 10000 keys more, {links} links, the same replies and dump as RedisFilter"
        );
    }
    assert!(server.is_sound());
}
