//! A naive reading of Thrift's compact protocol and of the header of a Parquet filter.

/// What is left of the bytes, and how deep it got; every step is `None` at their end and at what is
/// not Thrift.
pub struct Naive<'a> {
    pub rest: &'a [u8],
    pub deepest: usize,
}

impl<'a> Naive<'a> {
    pub fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }

    pub fn bytes(&mut self, count: u64) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(usize::try_from(count).ok()?)?;
        self.rest = rest;
        Some(bytes)
    }

    /// The type of a list's elements, and how many there are.
    pub fn list(&mut self) -> Option<(u8, u64)> {
        let head = self.byte()?;
        Some((head % 16, if head / 16 == 15 { self.varint()? } else { u64::from(head / 16) }))
    }

    /// Of seven bits a byte, 64 at most.
    pub fn varint(&mut self) -> Option<u64> {
        let mut number = 0_u128;
        for i in 0..10 {
            let byte = self.byte()?;
            number |= u128::from(byte & 127) << (7 * i);
            if byte < 128 {
                return u64::try_from(number).ok();
            }
        }
        None
    }

    pub fn zigzag(&mut self) -> Option<i64> {
        let number = self.varint()?;
        let half = (number / 2) as i64;
        Some(if number % 2 == 0 { half } else { -1 - half })
    }

    /// Calls `read` with the number and type of every field.
    pub fn fields(&mut self, mut read: impl FnMut(&mut Self, i16, u8) -> Option<()>) -> Option<()> {
        let mut id = 0_i16;
        loop {
            let head = self.byte()?;
            if head % 16 == 0 {
                return Some(());
            }
            id = match head / 16 {
                0 => i16::try_from(self.zigzag()?).ok()?,
                step => id.checked_add(step.into())?,
            };
            read(self, id, head % 16)?;
        }
    }

    pub fn skip(&mut self, kind: u8, depth: usize, in_list: bool) -> Option<()> {
        self.deepest = self.deepest.max(depth);
        if depth > 40 {
            return None;
        }
        match kind {
            1 | 2 if in_list => self.byte().map(drop),
            1 | 2 => Some(()),
            3 => self.byte().map(drop),
            4..=6 => self.varint().map(drop),
            7 => self.bytes(8).map(drop),
            8 => self.varint().and_then(|length| self.bytes(length)).map(drop),
            9 | 10 => {
                let (kind, length) = self.list()?;
                (0..length).try_for_each(|_| self.skip(kind, depth + 1, true))
            }
            11 => {
                let length = self.varint()?;
                let kinds = if length > 0 { self.byte()? } else { 0 };
                (0..length).try_for_each(|_| {
                    self.skip(kinds / 16, depth + 1, true)?;
                    self.skip(kinds % 16, depth + 1, true)
                })
            }
            12 => self.fields(|reader, _, kind| reader.skip(kind, depth + 1, false)),
            13 => self.bytes(16).map(drop),
            _ => None,
        }
    }

    /// Bytes of the bitset, if this is the header of one.
    pub fn header(&mut self) -> Option<usize> {
        let (mut length, mut arms) = (None, [false; 3]);
        self.fields(|reader, id, kind| match (id, kind) {
            (1, 5) => {
                length = Some(i32::try_from(reader.zigzag()?).ok()?);
                Some(())
            }
            (2..=4, 12) => {
                let mut found = false;
                reader.fields(|reader, arm, kind| {
                    found = true;
                    (arm == 1 && kind == 12).then_some(())?;
                    reader.skip(12, 1, false)
                })?;
                arms[id as usize - 2] = found;
                Some(())
            }
            (1..=4, _) => None,
            _ => reader.skip(kind, 1, false),
        })?;
        let length = usize::try_from(length?).ok()?;
        let fits = arms == [true; 3] && length > 0 && length % 32 == 0;
        fits.then_some(length)
    }
}
