//! Streams of `BF.LOADCHUNK`, and odd options, that RedisBloom accepts and sends to its replicas
//! and AOF. Each is compared with a model of what RedisBloom does.

use std::ops::Range;

use blocked_bloom_formats::redis::RedisFilter;

use crate::following::{AOF, packed, server_with_aof};
use crate::loading::{Dump, LOADING, keys, redis_bloom};
use crate::persistence::value_of_redisbloom;
use crate::server::{Server, call, dump, info, items, load_chunk, reply, wait_until};

/// A step of a stream after the header.
enum Step {
    /// Sends these bytes of the dump, maybe changed.
    Piece {
        range: Range<usize>,
        is_changed: bool,
    },
    Add(String),
}

/// A filter in RedisBloom: all links exist once the header has arrived, as zeros.
struct Model {
    header: Vec<u8>,
    links: Vec<Vec<u8>>,
    has_arrived: Vec<bool>,
}

impl Model {
    fn new(dump: &Dump) -> Self {
        let header = dump[0].1.clone();
        let sizes = header[20..].chunks(53);
        let sizes = sizes.map(|link| u64::from_le_bytes(link[..8].try_into().unwrap()) as usize);
        let links: Vec<_> = sizes.map(|bytes| vec![0; bytes]).collect();
        let has_arrived = vec![false; links.iter().map(Vec::len).sum()];
        Model { header, links, has_arrived }
    }

    fn load(&mut self, start: usize, data: &[u8]) {
        self.has_arrived[start..start + data.len()].fill(true);
        let mut start = start;
        for link in &mut self.links {
            if start < link.len() {
                return link[start..start + data.len()].copy_from_slice(data);
            }
            start -= link.len();
        }
    }

    fn filter(&self) -> RedisFilter {
        RedisFilter::from_links(&self.header, self.links.clone()).unwrap()
    }

    fn add(&mut self, item: &str) {
        let mut filter = self.filter();
        filter.insert(item).unwrap();
        self.header = filter.dump().next().unwrap().1.into_owned();
        self.links = filter.links().iter().map(|link| link.as_bytes().to_vec()).collect();
        self.has_arrived.fill(true);
    }

    fn dump(&self) -> Dump {
        self.filter().dump().map(|(iterator, data)| (iterator, data.into_owned())).collect()
    }

    /// The filter as it is saved: no item can be "absent" for want of a piece.
    fn with_ones(&self) -> Model {
        let (mut links, mut arrived) = (self.links.clone(), self.has_arrived.iter());
        for byte in links.iter_mut().flatten() {
            *byte |= if arrived.next() == Some(&true) { 0 } else { 0xff };
        }
        Model { header: self.header.clone(), links, has_arrived: self.has_arrived.clone() }
    }

    fn is_complete(&self) -> bool {
        self.has_arrived.iter().all(|&arrived| arrived)
    }
}

/// Named streams, and many random ones.
fn streams(ends: &[usize]) -> Vec<(String, Vec<Step>)> {
    let piece = |range: Range<usize>| Step::Piece { range, is_changed: false };
    let links = || {
        let starts = [0].iter().chain(ends);
        starts.zip(ends).map(|(&start, &end)| piece(start..end)).collect::<Vec<_>>()
    };
    let add = |number: usize| Step::Add(format!("added:{number}"));
    let mut streams: Vec<(String, Vec<Step>)> = Vec::new();
    let mut push = |name: &str, steps: Vec<Step>| streams.push((name.into(), steps));
    push("header alone", vec![]);
    push("repeated first", [vec![piece(0..ends[0])], links()].into_iter().flatten().collect());
    push("repeated last", links().into_iter().chain(links().pop()).collect());
    push("backwards", links().into_iter().rev().collect());
    push("complete, then again", links().into_iter().chain(links()).collect());
    let changed = Step::Piece { range: 3..ends[0] - 2, is_changed: true };
    push("complete, then changed", links().into_iter().chain([changed]).collect());
    push("empty piece", [piece(4..4)].into_iter().chain(links()).collect());
    push("half, then an addition", vec![piece(0..ends[0]), add(1)]);
    push("addition, then pieces", [add(1)].into_iter().chain(links()).collect());
    push("header, then additions", (0..700).map(add).collect());
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 33) as usize % below
    };
    for number in 0..300 {
        let (mut steps, additions) = (Vec::new(), next(3) == 0);
        for _ in 0..next(40) {
            let link = next(ends.len());
            let start = if link == 0 { 0 } else { ends[link - 1] };
            let from = start + next(ends[link] - start);
            let most = ends[link] - from + 1;
            let range = if next(4) == 0 { start..ends[link] } else { from..from + next(most) };
            steps.push(match next(12) {
                0 if additions => add(next(1_000)),
                one => Step::Piece { range, is_changed: one == 1 },
            });
        }
        streams.push((format!("random {number}"), steps));
    }
    streams
}

#[test]
fn streams_of_pieces_that_redisbloom_accepts_are_followed() {
    let (_, whole) = redis_bloom(100, 300);
    let data: Vec<u8> = whole[1..].iter().flat_map(|(_, data)| data).copied().collect();
    let ends: Vec<usize> = whole[1..].iter().map(|(end, _)| *end as usize - 1).collect();
    let (mut commands, mut models) = (Vec::new(), Vec::new());
    for (name, steps) in streams(&ends) {
        let mut model = Model::new(&whole);
        let header = &whole[0].1;
        let words: [&[u8]; 4] = [b"BF.LOADCHUNK", name.as_bytes(), b"1", header];
        let mut all = vec![packed(&words)];
        for step in steps {
            match step {
                Step::Piece { range, is_changed } => {
                    let mut piece = data[range.clone()].to_vec();
                    piece.iter_mut().filter(|_| is_changed).for_each(|byte| *byte ^= 0x5a);
                    let iterator = (range.end + 1).to_string();
                    let words: [&[u8]; 4] =
                        [b"BF.LOADCHUNK", name.as_bytes(), iterator.as_bytes(), &piece];
                    all.push(packed(&words));
                    model.load(range.start, &piece);
                }
                Step::Add(item) => {
                    all.push(packed(&[b"BF.ADD", name.as_bytes(), item.as_bytes()]));
                    model.add(&item);
                }
            }
        }
        commands.extend(all);
        models.push((name, model));
    }
    let half = models.iter().filter(|(_, model)| !model.is_complete()).count();
    println!("{} streams, of which {half} leave a filter half loaded", models.len());
    assert!(half > 20 && half < 300);
    for word in ["no", "read", "write"] {
        let arguments = ["--module-arguments", "REDISBLOOM_TYPE", word];
        let options = |aof: &[&'static str]| [aof, &arguments].concat();
        let Some(mut server) = server_with_aof(&commands) else { return };
        let plain = [&AOF[..], &["--aof-use-rdb-preamble", "no"]].concat();
        server.start_again_with(&options(&plain));
        let mut connection = server.connect();
        let check = |server: &Server, what: &str, keeps_halves: bool| {
            let mut connection = server.connect();
            for (name, model) in &models {
                if model.is_complete() {
                    assert!(dump(&mut connection, name) == model.dump(), "{word}, {what}: {name}");
                    continue;
                }
                if keeps_halves {
                    let found = reply(&mut connection, &["BF.EXISTS", name, "key:1"]);
                    assert_eq!(found, LOADING, "{word}, {what}: {name}");
                } else {
                    let expected = model.with_ones().dump();
                    assert!(dump(&mut connection, name) == expected, "{word}, {what}: {name}");
                }
            }
        };
        check(&server, "read from the AOF", true);
        for (name, model) in &models {
            let expected = if word == "no" { "BlkdBloom" } else { "MBbloom--" };
            assert_eq!(call::<String>(&mut connection, &["TYPE", name]), expected, "{name}");
            if word != "no" && model.is_complete() {
                let payload: Vec<u8> = redis::cmd("DUMP").arg(name).query(&mut connection).unwrap();
                let value = value_of_redisbloom(&model.dump());
                assert!(payload[10..payload.len() - 10] == value || payload.len() < value.len());
            }
        }
        // The rewritten AOF has the pieces that there are, with their gaps.
        call::<()>(&mut connection, &["BGREWRITEAOF"]);
        wait_until("the AOF is rewritten", || info(&mut connection, "aof_rewrites") == 1);
        wait_until("the AOF is rewritten", || {
            info(&mut connection, "aof_rewrite_in_progress") == 0
        });
        server.kill();
        server.start_again_with(&options(&plain));
        check(&server, "read from the rewritten AOF", true);
        call::<()>(&mut server.connect(), &["SAVE"]);
        server.kill();
        server.start_again_with(&options(&[]));
        check(&server, "read from the RDB file", word == "no");
        // The type of the module's own is not in a file that RedisBloom has to read.
        let file = std::fs::read(server.folder().join("dump.rdb")).unwrap();
        let id = [0x81, 0x06, 0x59, 0x1d, 0x06, 0x5a, 0x28, 0x98, 0x01];
        let own = file.windows(id.len()).filter(|bytes| *bytes == id).count();
        assert_eq!(own > 0, word == "no", "{own} keys of the own type");
        // Half-loaded filters can be completed, or loaded again.
        let mut connection = server.connect();
        for (name, model) in models.iter().filter(|(_, model)| !model.is_complete()) {
            if word == "no" {
                load_chunk(&mut connection, name, 1, &model.header).unwrap();
            } else {
                call::<()>(&mut connection, &["DEL", name]);
                load_chunk(&mut connection, name, 1, &model.header).unwrap();
            }
            for (iterator, data) in &whole[1..] {
                load_chunk(&mut connection, name, *iterator, data).unwrap();
            }
            assert!(dump(&mut connection, name) == whole, "{word}: {name}");
        }
        assert!(server.is_sound());
    }
}

/// RedisBloom 2.8.2 keeps the lower 32 bits of any expansion, also of a filter that does not grow.
#[test]
fn expansions_that_redisbloom_accepts_are_followed() {
    let numbers = [1, 32_769, 70_000, (1 << 32) - 1, 1 << 32, (1 << 32) + 2, i64::MAX as u64];
    let (mut commands, mut expected) = (Vec::new(), Vec::new());
    let mut push = |words: &[&str], growth: u32, is_fixed: bool| {
        commands.push(packed(&words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>()));
        expected.push((words[1].to_string(), growth, is_fixed));
    };
    for number in numbers {
        let (text, growth) = (number.to_string(), number as u32);
        let name = |kind: &str| format!("{kind}:{number}");
        push(&["BF.RESERVE", &name("r"), "0.01", "10", "EXPANSION", &text], growth, false);
        push(&["BF.INSERT", &name("i"), "EXPANSION", &text, "ITEMS", "a"], growth, false);
        let fixed = ["BF.INSERT", &name("f"), "EXPANSION", &text, "NONSCALING", "ITEMS", "a"];
        push(&fixed, growth, true);
        let fixed = ["BF.INSERT", &name("n"), "NONSCALING", "EXPANSION", &text, "ITEMS", "a"];
        push(&fixed, growth, true);
    }
    push(&["BF.RESERVE", "plain", "0.01", "10", "NONSCALING"], 2, true);
    // Its words are looked for among all arguments, and the first one counts.
    push(&["BF.RESERVE", "NONSCALING", "0.01", "10"], 2, true);
    push(&["BF.RESERVE", "nonscaling", "0.01", "10", "GROWING"], 2, true);
    push(&["BF.RESERVE", "twice", "0.01", "10", "EXPANSION", "3", "EXPANSION"], 3, false);
    let Some(mut server) = server_with_aof(&commands) else { return };
    let options = ["--module-arguments", "REDISBLOOM_TYPE", "read", "EXPANSION", "7"];
    server.start_again_with(&[&AOF[..], &options].concat());
    let check = |server: &Server| {
        let mut connection = server.connect();
        for (name, growth, is_fixed) in &expected {
            let header = &dump(&mut connection, name)[0].1;
            let number = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap());
            assert_eq!((number(16), number(12) & 8 != 0), (*growth, *is_fixed), "{name}");
        }
    };
    check(&server);
    // From an RDB file, which has the same numbers.
    call::<()>(&mut server.connect(), &["SAVE"]);
    server.kill();
    server.start_again_with(&options);
    check(&server);
    // Clients have the range of Redis 8.
    let mut connection = server.connect();
    let words = ["BF.RESERVE", "x", "0.01", "10", "EXPANSION", "32769"];
    assert!(reply(&mut connection, &words).starts_with("-ERR expansion must be in the range"));
    // A filter that has grown by such a number keeps its keys.
    items(&mut connection, "BF.MADD", "r:70000", &keys(0, 50));
    assert!(items(&mut connection, "BF.MEXISTS", "r:70000", &keys(0, 50)).iter().all(|hit| *hit));
    assert!(server.is_sound());
}

/// A follower that cannot add a key which its source has ends: RedisBloom makes a link that is
/// always "present" where the expansion is 0.
#[test]
fn a_filter_that_cannot_grow_as_its_source_ends_the_follower() {
    let mut commands =
        vec![packed(&[b"BF.RESERVE", b"f", b"0.01", b"10", b"EXPANSION", b"4294967296"])];
    commands.extend(keys(0, 20).iter().map(|key| packed(&[b"BF.ADD", b"f", key.as_bytes()])));
    let Some(mut server) = server_with_aof(&commands) else { return };
    assert!(!server.starts_again(crate::server::module()), "{}", server.log());
    assert!(server.log().contains("BF.ADD of key `f`: "), "{}", server.log());
}

/// A file that is refused says why: key, field, value and limit.
#[test]
fn a_refused_file_names_key_field_value_and_limit() {
    let options = ["--rdbcompression", "no", "--rdbchecksum", "no"];
    let arguments = ["--module-arguments", "REDISBLOOM_TYPE", "write"];
    let Some(mut server) = Server::start(&[&options[..], &arguments].concat()) else { return };
    let mut connection = server.connect();
    // `%` and zero bytes do not reach the log's format.
    let name = b"odd %s%n \0 key";
    redis::cmd("BF.ADD").arg(name).arg("a").exec(&mut connection).unwrap();
    call::<()>(&mut connection, &["SAVE"]);
    server.kill();
    let path = server.folder().join("dump.rdb");
    let file = std::fs::read(&path).unwrap();
    let filter = {
        let mut filter = RedisFilter::new(100, 0.01, Some(2)).unwrap();
        filter.insert("a").unwrap();
        filter
    };
    let dump: Dump = filter.dump().map(|(i, data)| (i, data.into_owned())).collect();
    let value = value_of_redisbloom(&dump);
    let at = file.windows(value.len()).position(|bytes| bytes == value).unwrap();
    for (offset, byte, text) in [
        (3, 0, "nfilters 0, expected 1 to 4294967295"),
        (5, 16, "options 16, expected 0 to 15"),
        (1, 2, "size 2, expected 1"),
    ] {
        let mut damaged = file.clone();
        damaged[at + offset] = byte;
        std::fs::write(&path, damaged).unwrap();
        assert!(!server.starts_again(crate::server::module()));
        let log = server.log();
        assert!(log.contains(text), "{log}");
        assert!(log.contains(r"RESTORE or RDB load of key `odd %s%n \x00 key`: "), "{log}");
    }
    std::fs::write(&path, file).unwrap();
    server.start_again();
}
