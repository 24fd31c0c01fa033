//! Bits in a row, most significant first: what day rows are made of.
//!
//! A number below a known bound takes about the logarithm of the bound; one
//! without a bound takes twice its own length (Elias gamma). Reading checks
//! every bound and panics on nothing.

use crate::codec::BadBytes;

/// Bits that are being written.
#[derive(Debug, Default)]
pub(super) struct BitWriter {
    bytes: Vec<u8>,
    /// Not yet in `bytes`, at the low end.
    rest: u64,
    /// How many, below 8.
    rest_len: u32,
}

impl BitWriter {
    /// The lowest `count` bits of `value`, at most 56.
    pub(super) fn put(&mut self, value: u64, count: u32) {
        debug_assert!(count <= 56 && value >> count == 0);
        self.rest = self.rest << count | value;
        self.rest_len += count;
        while self.rest_len >= 8 {
            self.rest_len -= 8;
            self.bytes.push((self.rest >> self.rest_len) as u8);
        }
        self.rest &= (1 << self.rest_len) - 1;
    }

    pub(super) fn flag(&mut self, is: bool) {
        self.put(u64::from(is), 1);
    }

    /// All 64 bits or fewer.
    fn long(&mut self, value: u64, count: u32) {
        if count > 32 {
            self.put(value >> 32, count - 32);
            self.put(value & 0xffff_ffff, 32);
        } else {
            self.put(value, count);
        }
    }

    /// A number below `bound`, which is at least 1.
    pub(super) fn below(&mut self, value: u64, bound: u64) {
        debug_assert!(value < bound);
        let short = bound.ilog2();
        // So many values get the shorter code.
        let few = (2u128 << short) - u128::from(bound);
        if u128::from(value) < few {
            self.long(value, short);
        } else {
            let code = u128::from(value) + few;
            self.long((code >> 1) as u64, short);
            self.put((code & 1) as u64, 1);
        }
    }

    /// A number of at least 1.
    pub(super) fn gamma(&mut self, value: u64) {
        debug_assert!(value > 0);
        let more = value.ilog2();
        self.long(0, more);
        self.flag(true);
        self.long(value & !(1 << more), more);
    }

    /// A number whose mean is about `mean`.
    pub(super) fn rice(&mut self, value: u64, mean: u64) {
        let low = mean.max(1).ilog2();
        self.gamma((value >> low) + 1);
        self.long(value & ((1 << low) - 1), low);
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.put(u64::from(byte), 8));
    }

    /// The bytes, the last filled with zeroes.
    pub(super) fn finish(mut self) -> Vec<u8> {
        if self.rest_len > 0 {
            self.bytes.push((self.rest << (8 - self.rest_len)) as u8);
        }
        self.bytes
    }
}

/// Bits that are being read.
#[derive(Debug)]
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    /// In bits.
    at: usize,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn get(&mut self, count: u32) -> Result<u64, BadBytes> {
        let mut value = 0;
        let mut left = count;
        while left > 0 {
            let byte = *self.bytes.get(self.at / 8).ok_or(BadBytes("cut short"))?;
            let free = 8 - (self.at % 8) as u32;
            let take = free.min(left);
            let bits = byte >> (free - take) & (0xff >> (8 - take));
            value = value << take | u64::from(bits);
            self.at += take as usize;
            left -= take;
        }
        Ok(value)
    }

    pub(super) fn flag(&mut self) -> Result<bool, BadBytes> {
        Ok(self.get(1)? == 1)
    }

    pub(super) fn below(&mut self, bound: u64) -> Result<u64, BadBytes> {
        let short = bound.max(1).ilog2();
        let few = (2u128 << short) - u128::from(bound.max(1));
        let value = self.get(short)?;
        if u128::from(value) < few {
            return Ok(value);
        }
        let code = u128::from(value) << 1 | u128::from(self.get(1)?);
        Ok((code - few) as u64)
    }

    pub(super) fn gamma(&mut self) -> Result<u64, BadBytes> {
        let mut more = 0;
        while !self.flag()? {
            more += 1;
            if more > 63 {
                return Err(BadBytes("a number is over 64 bits"));
            }
        }
        Ok(1 << more | self.get(more)?)
    }

    pub(super) fn rice(&mut self, mean: u64) -> Result<u64, BadBytes> {
        let low = mean.max(1).ilog2();
        let high = self.gamma()? - 1;
        if high.leading_zeros() < low {
            return Err(BadBytes("a number is over 64 bits"));
        }
        Ok(high << low | self.get(low)?)
    }

    pub(super) fn byte_vec(&mut self, len: usize) -> Result<Vec<u8>, BadBytes> {
        (0..len).map(|_| Ok(self.get(8)? as u8)).collect()
    }

    /// Whether nothing but the zeroes that fill the last byte is left.
    pub(super) fn is_at_end(&self) -> bool {
        let whole = self.at.div_ceil(8);
        let filled = match self.at % 8 {
            0 => true,
            used => self.bytes[whole - 1] & (0xff >> used) == 0,
        };
        whole == self.bytes.len() && filled
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_read_back(
            numbers in proptest::collection::vec((any::<u64>(), 1..=u64::MAX, 0..64u32), 1..20),
        ) {
            let mut bits = BitWriter::default();
            for &(value, bound, shift) in &numbers {
                bits.below((value >> shift) % bound, bound);
                bits.gamma((value >> shift).max(1));
                bits.rice(value >> shift >> 1, bound >> 1);
                bits.flag(value & 1 == 1);
            }
            let bytes = bits.finish();
            let mut bits = BitReader::new(&bytes);
            for &(value, bound, shift) in &numbers {
                prop_assert_eq!(bits.below(bound), Ok((value >> shift) % bound));
                prop_assert_eq!(bits.gamma(), Ok((value >> shift).max(1)));
                prop_assert_eq!(bits.rice(bound >> 1), Ok(value >> shift >> 1));
                prop_assert_eq!(bits.flag(), Ok(value & 1 == 1));
            }
            prop_assert!(bits.is_at_end());
        }
    }
}
