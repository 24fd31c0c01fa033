//! A batch of records: the unit that is written, checksummed and passed on.
//! (The codec; see below.)
