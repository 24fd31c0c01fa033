//! The laws of the seams as suites that every engine runs. They panic with the
//! law that was broken, so they are called from tests alone.

pub mod table;
