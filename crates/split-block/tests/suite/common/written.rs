//! Compact Thrift, including forms that no writer produces.
#![allow(dead_code, reason = "each test file uses a part")]

pub(crate) const TRUE: u8 = 1;
pub(crate) const FALSE: u8 = 2;
pub(crate) const I32: u8 = 5;
pub(crate) const I64: u8 = 6;
pub(crate) const BINARY: u8 = 8;
pub(crate) const LIST: u8 = 9;
pub(crate) const MAP: u8 = 11;
pub(crate) const STRUCT: u8 = 12;

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

pub(crate) fn number(value: i64) -> Vec<u8> {
    varint((value << 1 ^ value >> 63) as u64)
}

pub(crate) fn binary(bytes: &[u8]) -> Vec<u8> {
    [varint(bytes.len() as u64), bytes.to_vec()].concat()
}

pub(crate) fn list(kind: u8, elements: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = vec![0xf0 | kind];
    bytes.extend(varint(elements.len() as u64));
    bytes.extend(elements.concat());
    bytes
}

/// Fields whose ids are written in full.
pub(crate) fn structure(fields: &[(i64, u8, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (id, kind, value) in fields {
        bytes.push(*kind);
        bytes.extend(number(*id));
        bytes.extend(value);
    }
    bytes.push(0);
    bytes
}
