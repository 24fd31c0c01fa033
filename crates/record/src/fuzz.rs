//! What a fuzzer feeds: each function takes any bytes and must not panic.
//!
//! Where a checksum guards a format, the bytes are also read with one that
//! fits: a fuzzer does not guess it.

use bytes::Bytes;

use crate::batch::{BatchRef, HEADER_BYTES};
use crate::frame::Frame;
use crate::kv::Change;

/// A batch of the log, its records, and its erased form.
pub fn batch(bytes: &[u8]) {
    for bytes in [bytes, &sealed(bytes)] {
        let Ok(batch) = BatchRef::parse(bytes) else { continue };
        assert_eq!(batch.records().count(), batch.count() as usize);
        let erased = batch.erase(&mut 0, &mut |seq, _, _| seq.0 % 2 == 0);
        let read = erased.as_deref().map(BatchRef::parse);
        assert!(read.is_none_or(|read| read.is_ok()), "an erased batch does not read back");
    }
}

/// A frame of a topic, as it is and with checksums that fit.
pub fn frame(bytes: &[u8]) {
    let mut sound = bytes.to_vec();
    if let Some((header, batches)) = sound.split_at_mut_checked(crate::frame::HEADER_BYTES) {
        header[4..8].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        let crc = crc32c::crc32c_append(crc32c::crc32c(&header[..8]), &header[12..]);
        header[8..12].copy_from_slice(&crc.to_le_bytes());
        batches.copy_from_slice(&sealed(batches));
    }
    for bytes in [bytes, &sound] {
        let Ok(frame) = Frame::parse(Bytes::copy_from_slice(bytes)) else { continue };
        assert_eq!(&frame.bytes()[..], bytes);
        let range = frame.range();
        let inside = |seq| range.after < seq && seq <= range.through;
        assert!(frame.records().all(|record| inside(record.seq)), "a record outside its range");
    }
}

/// An operation on a key, as a record holds it.
pub fn key_operation(bytes: &[u8]) {
    if let Ok(change) = Change::read(bytes) {
        let again = Change::read(&change.write());
        assert!(again.is_ok(), "an operation does not read back: {again:?}");
    }
}

/// The same bytes with a length and a checksum that fit them.
pub fn sealed(bytes: &[u8]) -> Vec<u8> {
    let mut sealed = bytes.to_vec();
    if sealed.len() >= HEADER_BYTES {
        let len = sealed.len() as u32;
        sealed[4..8].copy_from_slice(&len.to_le_bytes());
        let crc = crc32c::crc32c_append(crc32c::crc32c(&sealed[..8]), &sealed[12..]);
        sealed[8..12].copy_from_slice(&crc.to_le_bytes());
    }
    sealed
}
