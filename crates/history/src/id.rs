//! Ids of objects in few bytes: decimal numbers and UUIDs are packed, any
//! other text is kept as it is.
//!
//! Packing is canonical: two ids are the same text exactly when their packed
//! forms are the same bytes. Order is the order of the texts, not of the
//! packed forms.

use std::cmp::Ordering;

use tideline_types::limits::FIELD_BYTES_MAX;

use crate::codec::{BadBytes, Out, Reader};

/// Any text; its length follows.
const TEXT: u8 = 0;
/// `1..=8`: a decimal number without leading zeros in so many bytes.
const DECIMAL_BYTES_MAX: u8 = 8;
/// A decimal number above `u64::MAX`, up to `u128::MAX`, in 16 bytes.
const WIDE: u8 = 9;
/// A UUID in lower case with its four dashes, in 16 bytes.
const UUID: u8 = 10;

/// The longest text that an id can be, on the stack.
pub(crate) type TextBuf = [u8; FIELD_BYTES_MAX];

/// A packed id, borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedId<'a> {
    form: u8,
    bytes: &'a [u8],
}

/// A packed id, on the stack.
#[derive(Clone, Copy, Debug)]
pub struct IdBuf {
    form: u8,
    len: u8,
    bytes: TextBuf,
}

impl IdBuf {
    /// Packs `text`, which must be at most 64 bytes (longer texts are cut at
    /// a character: the face refuses them before they come here).
    pub fn pack(text: &str) -> Self {
        let mut packed = Self { form: TEXT, len: 0, bytes: [0; FIELD_BYTES_MAX] };
        let raw = text.as_bytes();
        if let Some(number) = decimal_of(raw) {
            let len = if number <= u128::from(u64::MAX) {
                let used = (128 - number.leading_zeros()).div_ceil(8).max(1) as u8;
                packed.form = used;
                used
            } else {
                packed.form = WIDE;
                16
            };
            packed.bytes[..16].copy_from_slice(&number.to_le_bytes());
            packed.len = len;
        } else if let Some(uuid) = uuid_of(raw) {
            packed.form = UUID;
            packed.len = 16;
            packed.bytes[..16].copy_from_slice(&uuid);
        } else {
            let cut = text.floor_char_boundary(FIELD_BYTES_MAX);
            packed.len = cut as u8;
            packed.bytes[..cut].copy_from_slice(&raw[..cut]);
        }
        packed
    }

    /// The decimal id of a number.
    pub(crate) fn of_u64(number: u64) -> Self {
        let len = (64 - number.leading_zeros()).div_ceil(8).max(1) as u8;
        let mut id = Self { form: len, len, bytes: [0; FIELD_BYTES_MAX] };
        id.bytes[..8].copy_from_slice(&number.to_le_bytes());
        id
    }

    /// A copy of a borrowed one.
    pub fn of(id: PackedId<'_>) -> Self {
        let mut copy =
            Self { form: id.form, len: id.bytes.len() as u8, bytes: [0; FIELD_BYTES_MAX] };
        copy.bytes[..id.bytes.len()].copy_from_slice(id.bytes);
        copy
    }

    /// The same, borrowed.
    pub fn borrow(&self) -> PackedId<'_> {
        PackedId { form: self.form, bytes: &self.bytes[..usize::from(self.len)] }
    }
}

impl<'a> PackedId<'a> {
    /// The form of text.
    pub(crate) const TEXT_FORM: u8 = TEXT;
    /// The form of a UUID.
    pub(crate) const UUID_FORM: u8 = UUID;
    /// The form of a number above `u64::MAX`.
    pub(crate) const WIDE_FORM: u8 = WIDE;

    /// The number, where it is a decimal of at most 64 bits.
    pub(crate) fn as_u64(self) -> Option<u64> {
        if !(1..=DECIMAL_BYTES_MAX).contains(&self.form) {
            return None;
        }
        let mut word = [0; 8];
        word[..self.bytes.len()].copy_from_slice(self.bytes);
        Some(u64::from_le_bytes(word))
    }

    /// Whether it is a UUID.
    pub(crate) fn is_uuid(self) -> bool {
        self.form == UUID
    }

    /// Whether it is kept as text.
    pub(crate) fn is_text(self) -> bool {
        self.form == TEXT
    }

    /// How it is packed, below 16.
    pub(crate) fn form(self) -> u8 {
        self.form
    }

    /// The packed bytes.
    pub(crate) fn raw(self) -> &'a [u8] {
        self.bytes
    }

    /// Appends what [`Self::read_body`] reads, given the form.
    pub(crate) fn write_body(self, out: &mut impl Out) {
        if self.form == TEXT {
            out.put(self.bytes.len() as u8);
        }
        out.put_all(self.bytes);
    }

    /// Appends form and body.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        out.push(self.form);
        self.write_body(out);
    }

    /// Reads form and body.
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, BadBytes> {
        let form = reader.u8()?;
        Self::read_body(form, reader)
    }

    /// Reads the body of `form` and verifies that it is canonical.
    pub(crate) fn read_body(form: u8, reader: &mut Reader<'a>) -> Result<Self, BadBytes> {
        let id = Self::read_trusted(form, reader)?;
        let canonical = match form {
            TEXT => {
                std::str::from_utf8(id.bytes).is_ok()
                    && !id.bytes.is_empty()
                    && id.bytes.len() <= FIELD_BYTES_MAX
                    && decimal_of(id.bytes).is_none()
                    && uuid_of(id.bytes).is_none()
            }
            WIDE => id.bytes[8..].iter().any(|&byte| byte != 0),
            UUID => true,
            _ => id.bytes.len() == 1 || id.bytes.last() != Some(&0),
        };
        if canonical { Ok(id) } else { Err(BadBytes("an id is not in its shortest form")) }
    }

    /// Reads the body of `form` from bytes that this process wrote.
    pub(crate) fn read_trusted(form: u8, reader: &mut Reader<'a>) -> Result<Self, BadBytes> {
        let len = match form {
            TEXT => usize::from(reader.u8()?),
            1..=DECIMAL_BYTES_MAX => usize::from(form),
            WIDE | UUID => 16,
            _ => return Err(BadBytes("no such form of id")),
        };
        Ok(Self { form, bytes: reader.bytes(len)? })
    }

    /// The id as text, written into `buffer`.
    pub(crate) fn text_in(self, buffer: &'a mut TextBuf) -> &'a str {
        let len = match self.form {
            TEXT => return std::str::from_utf8(self.bytes).unwrap_or_default(),
            UUID => write_uuid(self.bytes, buffer),
            _ => write_decimal(self.bytes, buffer),
        };
        std::str::from_utf8(&buffer[..len]).unwrap_or_default()
    }

    /// The id as text.
    pub fn text(self) -> Box<str> {
        let mut buffer = [0; FIELD_BYTES_MAX];
        PackedId { form: self.form, bytes: self.bytes }.text_in(&mut buffer).into()
    }

    /// Compares as texts.
    pub fn cmp_text(self, other: PackedId<'_>) -> Ordering {
        if self == other {
            return Ordering::Equal;
        }
        let (mut a, mut b) = ([0; FIELD_BYTES_MAX], [0; FIELD_BYTES_MAX]);
        let mine = PackedId { form: self.form, bytes: self.bytes }.text_in(&mut a);
        let theirs = PackedId { form: other.form, bytes: other.bytes }.text_in(&mut b);
        mine.cmp(theirs)
    }

    /// One byte that differs for most different ids of a kind.
    pub(crate) fn tag(self, kind: u8) -> u8 {
        let mut hash = u64::from(self.form) << 8 | u64::from(kind);
        for chunk in self.bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            hash = (hash.rotate_left(23) ^ u64::from_le_bytes(word))
                .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        (hash >> 56) as u8
    }
}

/// The number that `text` writes in its only decimal form.
fn decimal_of(text: &[u8]) -> Option<u128> {
    if text.is_empty() || text.len() > 39 || (text[0] == b'0' && text.len() > 1) {
        return None;
    }
    if text.len() <= 19 {
        let mut number: u64 = 0;
        for &digit in text {
            let digit = digit.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            number = number * 10 + u64::from(digit);
        }
        return Some(u128::from(number));
    }
    text.iter().try_fold(0u128, |number, &digit| {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number.checked_mul(10)?.checked_add(u128::from(digit))
    })
}

fn write_decimal(bytes: &[u8], into: &mut TextBuf) -> usize {
    let mut word = [0; 16];
    word[..bytes.len()].copy_from_slice(bytes);
    let number = u128::from_le_bytes(word);
    let mut digits = [0; 39];
    let mut at = digits.len();
    if let Ok(mut small) = u64::try_from(number) {
        loop {
            at -= 1;
            digits[at] = b'0' + (small % 10) as u8;
            small /= 10;
            if small == 0 {
                break;
            }
        }
    } else {
        let mut wide = number;
        while wide > 0 {
            at -= 1;
            digits[at] = b'0' + (wide % 10) as u8;
            wide /= 10;
        }
    }
    let len = digits.len() - at;
    into[..len].copy_from_slice(&digits[at..]);
    len
}

const UUID_GROUPS: [usize; 5] = [8, 4, 4, 4, 12];

fn uuid_of(text: &[u8]) -> Option<[u8; 16]> {
    if text.len() != 36 {
        return None;
    }
    let mut uuid = [0; 16];
    let (mut at, mut nibble) = (0, 0);
    for (group, len) in UUID_GROUPS.into_iter().enumerate() {
        if group > 0 {
            if text[at] != b'-' {
                return None;
            }
            at += 1;
        }
        for _ in 0..len {
            let value = match text[at] {
                c @ b'0'..=b'9' => c - b'0',
                c @ b'a'..=b'f' => c - b'a' + 10,
                _ => return None,
            };
            uuid[nibble / 2] = uuid[nibble / 2] << 4 | value;
            nibble += 1;
            at += 1;
        }
    }
    Some(uuid)
}

fn write_uuid(bytes: &[u8], into: &mut TextBuf) -> usize {
    let (mut at, mut nibble) = (0, 0);
    for (group, len) in UUID_GROUPS.into_iter().enumerate() {
        if group > 0 {
            into[at] = b'-';
            at += 1;
        }
        for _ in 0..len {
            let byte = bytes[nibble / 2];
            let value = if nibble % 2 == 0 { byte >> 4 } else { byte & 15 };
            into[at] = b"0123456789abcdef"[usize::from(value)];
            nibble += 1;
            at += 1;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_id() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<u64>().prop_map(|n| n.to_string()),
            any::<u128>().prop_map(|n| n.to_string()),
            "0{0,2}[0-9]{1,5}",
            "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
            "[0-9A-F]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
            "[a-z0-9é-]{1,30}",
        ]
    }

    proptest! {
        #[test]
        fn an_id_reads_back_as_the_same_text(text in any_id()) {
            let packed = IdBuf::pack(&text);
            prop_assert_eq!(&*packed.borrow().text(), text.as_str());
            let mut bytes = Vec::new();
            packed.borrow().write(&mut bytes);
            let mut reader = Reader::new(&bytes);
            let back = PackedId::read(&mut reader).unwrap();
            prop_assert_eq!(back, packed.borrow());
            prop_assert!(reader.is_empty());
        }

        #[test]
        fn packed_ids_compare_as_their_texts(a in any_id(), b in any_id()) {
            let (pa, pb) = (IdBuf::pack(&a), IdBuf::pack(&b));
            prop_assert_eq!(pa.borrow().cmp_text(pb.borrow()), a.cmp(&b));
            prop_assert_eq!(pa.borrow() == pb.borrow(), a == b);
        }
    }

    #[test]
    fn ids_take_few_bytes_and_text_stays_text() {
        let len = |text: &str| IdBuf::pack(text).borrow().bytes.len();
        assert_eq!(len("0"), 1);
        assert_eq!(len("112489730346240"), 6);
        assert_eq!(len("18446744073709551615"), 8);
        assert_eq!(len("18446744073709551616"), 16);
        assert_eq!(len("123e4567-e89b-12d3-a456-426614174000"), 16);
        assert_eq!(IdBuf::pack("007").form, TEXT);
        assert_eq!(IdBuf::pack("123E4567-e89b-12d3-a456-426614174000").form, TEXT);
    }
}
