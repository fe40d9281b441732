//! An empty report of the comparison. `benches::results` defines its contents and its format.

use benches::results::{Peer, Report};

use crate::peers::Kind;

/// Of these kinds, which want this many bits per key.
pub(crate) fn empty(kinds: &[Kind], bits_per_key: f64) -> Report {
    let peer = |kind: &Kind| Peer {
        id: kind.id.to_owned(),
        version: kind.package.and_then(version).unwrap_or_default(),
        configuration: kind.configuration.to_owned(),
        rows: kind.rows.iter().map(|(row, _)| (*row).to_owned()).collect(),
    };
    let peers = kinds.iter().map(peer).collect();
    Report { bits_per_key, peers, ..Report::new(command()) }
}

/// The version in this package's Cargo.lock.
fn version(name: &str) -> Option<String> {
    let start = format!("name = \"{name}\"\n");
    let lock = include_str!("../Cargo.lock");
    let package = lock.split("[[package]]").find(|package| package.trim().starts_with(&start))?;
    Some(package.split('"').nth(3)?.to_owned())
}

fn command() -> String {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let command = "cargo run --release --manifest-path compare/Cargo.toml";
    match arguments.is_empty() {
        true => command.to_owned(),
        false => format!("{command} -- {}", arguments.join(" ")),
    }
}
