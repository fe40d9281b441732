//! `check-file.py`, which checks files before a server with this module loads them.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use crate::following::{AOF, packed};
use crate::persistence::fill;
use crate::server::{Server, call};

/// The script's output and exit status.
fn check(path: &Path) -> (String, Option<i32>) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/check-file.py");
    let output = Command::new("python3").arg(script).arg(path).output().expect("python3");
    (String::from_utf8(output.stdout).unwrap(), output.status.code())
}

#[test]
fn files_are_checked_before_a_server_loads_them() {
    let Some(mut server) = Server::start(&AOF) else { return };
    let mut connection = server.connect();
    fill(&mut connection);
    for line in [
        "SET string 1",
        "SET expires abc EX 1000",
        "RPUSH list a b c",
        "SADD set a 1",
        "ZADD sorted 1.5 a",
        "HSET hash a b",
        "XADD stream * a b",
        "XGROUP CREATE stream group 0",
        "BF.INSERT valkey TIGHTENING 0.5 ITEMS a",
    ] {
        call::<redis::Value>(&mut connection, &line.split(' ').collect::<Vec<_>>());
    }
    call::<()>(&mut connection, &["SAVE"]);
    server.kill();
    let rdb = server.folder().join("dump.rdb");
    let aof = server.folder().join("appendonlydir/appendonly.aof.1.incr.aof");
    for path in [&rdb, &aof] {
        let (text, status) = check(path);
        assert!(text.contains("all keys and commands can be loaded"), "{text}");
        assert_eq!(status, Some(0));
    }
    // A command and a key of a module that this server does not have.
    let mut file = std::fs::File::options().append(true).open(&aof).unwrap();
    file.write_all(&packed(&[b"CF.ADD", b"cuckoo", b"a"])).unwrap();
    let (text, status) = check(&aof);
    assert!(text.contains("not loaded: command CF.ADD of key b'cuckoo'"), "{text}");
    assert_eq!(status, Some(1));
    let mut bytes = std::fs::read(&rdb).unwrap();
    // The type of valkey-bloom's key, with its version raised.
    let id = [0x81, 0x6e, 0x5a, 0x28, 0x99, 0xf9, 0x6d, 0xac, 0x01];
    let at = bytes.windows(id.len()).position(|bytes| bytes == id);
    let end = at.map(|at| at + 8).expect("a key of valkey-bloom's");
    bytes[end] = 2;
    std::fs::write(&rdb, &bytes).unwrap();
    let (text, status) = check(&rdb);
    assert!(text.contains("key b'valkey': module type bloomfltr, version 2"), "{text}");
    assert_eq!(status, Some(1));
    std::fs::write(&rdb, &bytes[..bytes.len() / 2]).unwrap();
    assert_eq!(check(&rdb).1, Some(2));
}
