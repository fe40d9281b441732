//! Keys and a client for the examples.

use std::io::{Read, Write};
use std::net::TcpStream;

pub(crate) fn key(i: u64) -> [u8; 16] {
    // 16 hexadecimal digits that do not repeat.
    let mut key = [0; 16];
    let number = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for (digit, byte) in key.iter_mut().enumerate() {
        *byte = b"0123456789abcdef"[(number >> (4 * digit) & 15) as usize];
    }
    key
}

/// A client that reads replies and does not decode them, which takes the redis crate longer than
/// the server needs for a key.
pub(crate) struct Client(TcpStream);

impl Client {
    pub(crate) fn new(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_nodelay(true).unwrap();
        Client(stream)
    }

    /// Sends commands, and reads until this many lines have come: replies are a line for each
    /// number, and one for an array.
    pub(crate) fn send(&mut self, packed: &[u8], lines: usize) {
        self.0.write_all(packed).unwrap();
        let (mut left, mut buffer) = (lines, [0; 16 << 10]);
        while left > 0 {
            let bytes = self.0.read(&mut buffer).unwrap();
            assert!(
                bytes > 0 && buffer[0] != b'-',
                "{}",
                String::from_utf8_lossy(&buffer[..bytes])
            );
            left -= buffer[..bytes].iter().filter(|byte| **byte == b'\n').count();
        }
    }
}
