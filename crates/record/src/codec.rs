//! The few ways in which the codecs of views write numbers and texts.
//!
//! Whole numbers are LEB128 varints; signed ones are zigzagged first. Reading
//! checks every bound and panics on nothing.

use std::fmt;

/// Bytes that are not what they were meant to be; says what, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadBytes(pub &'static str);

impl fmt::Display for BadBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for BadBytes {}

/// Where bytes are written to.
pub trait Out {
    /// Appends one byte.
    fn put(&mut self, byte: u8);
    /// Appends some.
    fn put_all(&mut self, bytes: &[u8]);
}

impl Out for Vec<u8> {
    fn put(&mut self, byte: u8) {
        self.push(byte);
    }

    fn put_all(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Appends `value` in 7 bits a byte, least first.
pub fn put_varint(out: &mut impl Out, mut value: u64) {
    while value >= 0x80 {
        out.put(value as u8 | 0x80);
        value >>= 7;
    }
    out.put(value as u8);
}

/// Appends a signed number so that small ones of either sign are short.
pub fn put_signed(out: &mut impl Out, value: i64) {
    put_varint(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Appends a length of at most 255 bytes and the text.
pub fn put_text(out: &mut impl Out, text: &str) {
    debug_assert!(text.len() <= usize::from(u8::MAX));
    out.put(text.len() as u8);
    out.put_all(text.as_bytes());
}

/// What is left of some bytes.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    left: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads `bytes` from the front.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { left: bytes }
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// What has not been read.
    pub fn left(&self) -> &'a [u8] {
        self.left
    }

    /// The next `len` bytes.
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], BadBytes> {
        let (head, tail) = self.left.split_at_checked(len).ok_or(BadBytes("cut short"))?;
        self.left = tail;
        Ok(head)
    }

    /// The next byte.
    pub fn u8(&mut self) -> Result<u8, BadBytes> {
        let (&first, tail) = self.left.split_first().ok_or(BadBytes("cut short"))?;
        self.left = tail;
        Ok(first)
    }

    /// A number of eight bytes, low byte first.
    pub fn u64_le(&mut self) -> Result<u64, BadBytes> {
        let bytes = self.bytes(8)?;
        Ok(u64::from_le_bytes(bytes.try_into().expect("eight bytes were taken")))
    }

    /// A number as [`put_varint`] writes it, in its shortest form alone.
    pub fn varint(&mut self) -> Result<u64, BadBytes> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(BadBytes("a number is over 64 bits"));
            }
            value |= bits << shift;
            if byte < 0x80 {
                if byte == 0 && shift > 0 {
                    return Err(BadBytes("a number is not in its shortest form"));
                }
                return Ok(value);
            }
        }
        Err(BadBytes("a number is over 64 bits"))
    }

    /// A varint that counts something, from `min` to `max`.
    pub fn count(&mut self, min: usize, max: usize) -> Result<usize, BadBytes> {
        let count = usize::try_from(self.varint()?).ok();
        count.filter(|n| (min..=max).contains(n)).ok_or(BadBytes("a count out of range"))
    }

    /// A number as [`put_signed`] writes it.
    pub fn signed(&mut self) -> Result<i64, BadBytes> {
        let raw = self.varint()?;
        Ok((raw >> 1) as i64 ^ -((raw & 1) as i64))
    }

    /// A number that must fit in 32 bits.
    pub fn varint32(&mut self) -> Result<u32, BadBytes> {
        u32::try_from(self.varint()?).map_err(|_| BadBytes("a number is over 32 bits"))
    }

    /// A text of `1..=max` bytes with its length before it.
    pub fn text(&mut self, max: usize) -> Result<&'a str, BadBytes> {
        let len = usize::from(self.u8()?);
        if len == 0 || len > max {
            return Err(BadBytes("a text has an impossible length"));
        }
        std::str::from_utf8(self.bytes(len)?).map_err(|_| BadBytes("a text is not UTF-8"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_read_back(plain in any::<u64>(), signed in any::<i64>()) {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, plain);
            put_signed(&mut bytes, signed);
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.varint(), Ok(plain));
            prop_assert_eq!(reader.signed(), Ok(signed));
            prop_assert!(reader.is_empty());
        }
    }

    #[test]
    fn a_number_has_one_form_only() {
        assert!(Reader::new(&[0x80, 0]).varint().is_err());
        assert!(Reader::new(&[0xff; 10]).varint().is_err());
        assert!(Reader::new(&[0x80]).varint().is_err());
    }
}
