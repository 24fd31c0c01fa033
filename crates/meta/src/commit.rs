//! What is logged: one step of one subtree, whole.
//!
//! A record's key is the subtree's root, its value one entry. A commit says
//! what changes and not what was asked, so that it needs neither a clock nor a
//! quota nor a rule to be applied: by the owner, by a replay and by every
//! observer alike. Numbers of nodes follow from the commit's own: a node that
//! it creates is created, and modified, at its seq.
//!
//! ```text
//! version (1), tag, incarnation, then by tag
//!   1 open    nodes_max, bytes_max
//!   2 shut
//!   3 commit  seq, operation id (0, or 1 and 16 bytes), count, changes
//!             1 create  path, owner, counter + 1 or 0, value
//!             2 set     path, value
//!             3 delete  path
//!             4 begin   lease_ms (the session's id is the seq)
//!             5 ending  session
//!             6 end     session
//! ```
//!
//! Numbers are varints; texts and values have their length before them.

use bytes::Bytes;
use tideline_record::codec::{BadBytes, Reader, put_varint};
use tideline_types::limits::{META_PATH_BYTES_MAX, META_VALUE_BYTES_MAX};
use tideline_types::{Incarnation, Seq};

use crate::path::Path;

/// A session of one subtree: the seq at which it began, and so a fencing
/// token that grows from each to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// Names one write of one client, so that it can be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(pub u128);

/// What a subtree may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Nodes, its root not counted.
    pub nodes_max: u64,
    /// Bytes: of each node its path, its value and 64 more.
    pub bytes_max: u64,
}

impl Default for Quota {
    fn default() -> Self {
        Self { nodes_max: 100_000, bytes_max: 64 << 20 }
    }
}

/// One change of a subtree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A node that was not there.
    Create {
        /// Which.
        path: Path,
        /// What it holds.
        value: Bytes,
        /// The session with which it goes.
        owner: Option<SessionId>,
        /// What the parent's counter becomes, if the name took one from it.
        counter: Option<u64>,
    },
    /// A node's value.
    Set {
        /// Which.
        path: Path,
        /// What it holds from now on.
        value: Bytes,
    },
    /// A node is gone.
    Delete {
        /// Which.
        path: Path,
    },
    /// A session begins; its id is the commit's seq.
    Begin {
        /// For how long it lasts unless it is renewed.
        lease_ms: u32,
    },
    /// A session has ended and writes nothing more; its nodes still go.
    Ending {
        /// Which.
        session: SessionId,
    },
    /// A session and all its nodes are gone.
    End {
        /// Which.
        session: SessionId,
    },
}

/// One step of a subtree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Which life of the subtree.
    pub incarnation: Incarnation,
    /// Its number: one after the one before.
    pub seq: Seq,
    /// Who may ask for it again.
    pub op: Option<OpId>,
    /// What changes, in order, all together.
    pub changes: Vec<Change>,
}

/// The value of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The subtree begins here, empty; whatever was there before is gone.
    Open {
        /// Which life.
        incarnation: Incarnation,
        /// What it may hold.
        quota: Quota,
    },
    /// The subtree is gone.
    Shut {
        /// Which life.
        incarnation: Incarnation,
    },
    /// A step of it.
    Commit(Commit),
}

const VERSION: u8 = 1;

impl Entry {
    /// The record's value.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        match self {
            Self::Open { incarnation, quota } => {
                out.push(1);
                put_varint(&mut out, incarnation.0);
                put_varint(&mut out, quota.nodes_max);
                put_varint(&mut out, quota.bytes_max);
            }
            Self::Shut { incarnation } => {
                out.push(2);
                put_varint(&mut out, incarnation.0);
            }
            Self::Commit(commit) => commit.encode_after_version(&mut out),
        }
        out
    }

    /// Reads what [`Entry::encode`] wrote; values share `bytes`.
    pub fn decode(bytes: &Bytes) -> Result<Self, BadBytes> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != VERSION {
            return Err(BadBytes("an entry of another version"));
        }
        let (tag, incarnation) = (reader.u8()?, Incarnation(reader.varint()?));
        let entry = match tag {
            1 => {
                let quota = Quota { nodes_max: reader.varint()?, bytes_max: reader.varint()? };
                Self::Open { incarnation, quota }
            }
            2 => Self::Shut { incarnation },
            3 => Self::Commit(Commit::read(incarnation, &mut reader, bytes)?),
            _ => return Err(BadBytes("an entry of no known kind")),
        };
        if reader.is_empty() { Ok(entry) } else { Err(BadBytes("bytes after an entry")) }
    }
}

impl Commit {
    /// The same bytes as the record's value.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        self.encode_after_version(&mut out);
        out
    }

    fn encode_after_version(&self, out: &mut Vec<u8>) {
        out.push(3);
        put_varint(out, self.incarnation.0);
        put_varint(out, self.seq.0);
        match self.op {
            None => out.push(0),
            Some(op) => {
                out.push(1);
                out.extend(op.0.to_le_bytes());
            }
        }
        put_varint(out, self.changes.len() as u64);
        self.changes.iter().for_each(|change| change.encode(out));
    }

    fn read(
        incarnation: Incarnation,
        reader: &mut Reader<'_>,
        whole: &Bytes,
    ) -> Result<Self, BadBytes> {
        let seq = Seq(reader.varint()?);
        let op = match reader.u8()? {
            0 => None,
            1 => Some(read_op(reader)?),
            _ => return Err(BadBytes("neither with nor without an operation id")),
        };
        let count = reader.varint()?;
        // Bounded by the bytes there are: a change has two at least.
        let mut changes = Vec::with_capacity((count as usize).min(reader.left().len() / 2));
        for _ in 0..count {
            changes.push(Change::read(reader, whole)?);
        }
        Ok(Self { incarnation, seq, op, changes })
    }
}

impl Change {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Create { path, value, owner, counter } => {
                out.push(1);
                put_bytes(out, path.as_str().as_bytes());
                put_varint(out, owner.map_or(0, |owner| owner.0));
                put_varint(out, counter.map_or(0, |counter| counter + 1));
                put_bytes(out, value);
            }
            Self::Set { path, value } => {
                out.push(2);
                put_bytes(out, path.as_str().as_bytes());
                put_bytes(out, value);
            }
            Self::Delete { path } => {
                out.push(3);
                put_bytes(out, path.as_str().as_bytes());
            }
            Self::Begin { lease_ms } => {
                out.push(4);
                put_varint(out, u64::from(*lease_ms));
            }
            Self::Ending { session } => {
                out.push(5);
                put_varint(out, session.0);
            }
            Self::End { session } => {
                out.push(6);
                put_varint(out, session.0);
            }
        }
    }

    fn read(reader: &mut Reader<'_>, whole: &Bytes) -> Result<Self, BadBytes> {
        Ok(match reader.u8()? {
            1 => {
                let path = read_path(reader)?;
                let owner = read_owner(reader)?;
                let counter = reader.varint()?.checked_sub(1);
                Self::Create { path, value: read_value(reader, whole)?, owner, counter }
            }
            2 => Self::Set { path: read_path(reader)?, value: read_value(reader, whole)? },
            3 => Self::Delete { path: read_path(reader)? },
            4 => Self::Begin { lease_ms: reader.varint32()? },
            5 => Self::Ending { session: SessionId(reader.varint()?) },
            6 => Self::End { session: SessionId(reader.varint()?) },
            _ => return Err(BadBytes("a change of no known kind")),
        })
    }
}

/// Appends the length and the bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Bytes with their length before them, at most `max`.
pub(crate) fn read_bytes<'a>(reader: &mut Reader<'a>, max: usize) -> Result<&'a [u8], BadBytes> {
    let len = usize::try_from(reader.varint()?).unwrap_or(usize::MAX);
    if len > max {
        return Err(BadBytes("a length over its limit"));
    }
    reader.bytes(len)
}

pub(crate) fn read_path(reader: &mut Reader<'_>) -> Result<Path, BadBytes> {
    let text = std::str::from_utf8(read_bytes(reader, META_PATH_BYTES_MAX)?);
    let path = text.ok().filter(|text| *text != "/").and_then(|text| Path::new(text).ok());
    path.ok_or(BadBytes("not a path"))
}

pub(crate) fn read_value(reader: &mut Reader<'_>, whole: &Bytes) -> Result<Bytes, BadBytes> {
    Ok(whole.slice_ref(read_bytes(reader, META_VALUE_BYTES_MAX)?))
}

pub(crate) fn read_owner(reader: &mut Reader<'_>) -> Result<Option<SessionId>, BadBytes> {
    Ok(Some(reader.varint()?).filter(|&id| id > 0).map(SessionId))
}

pub(crate) fn read_op(reader: &mut Reader<'_>) -> Result<OpId, BadBytes> {
    let bytes = reader.bytes(16)?;
    Ok(OpId(u128::from_le_bytes(bytes.try_into().expect("sixteen bytes were taken"))))
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(crate) fn any_path() -> impl Strategy<Value = Path> {
        prop::collection::vec("[a-zé-]{1,5}", 0..4).prop_map(|names| {
            let text: String = names.iter().map(|name| format!("/{name}")).collect();
            Path::new(&text).unwrap()
        })
    }

    fn any_change() -> impl Strategy<Value = Change> {
        let bytes = || prop::collection::vec(any::<u8>(), 0..30).prop_map(Bytes::from);
        let owner = prop::option::of((1..u64::MAX).prop_map(SessionId));
        prop_oneof![
            (any_path(), bytes(), owner, prop::option::of(0..u64::MAX - 1)).prop_map(
                |(path, value, owner, counter)| Change::Create { path, value, owner, counter }
            ),
            (any_path(), bytes()).prop_map(|(path, value)| Change::Set { path, value }),
            any_path().prop_map(|path| Change::Delete { path }),
            any::<u32>().prop_map(|lease_ms| Change::Begin { lease_ms }),
            any::<u64>().prop_map(|id| Change::Ending { session: SessionId(id) }),
            any::<u64>().prop_map(|id| Change::End { session: SessionId(id) }),
        ]
    }

    fn any_entry() -> impl Strategy<Value = Entry> {
        let commit = (
            any::<u64>(),
            any::<u64>(),
            prop::option::of(any::<u128>().prop_map(OpId)),
            prop::collection::vec(any_change(), 0..6),
        );
        prop_oneof![
            any::<[u64; 3]>().prop_map(|[incarnation, nodes_max, bytes_max]| Entry::Open {
                incarnation: Incarnation(incarnation),
                quota: Quota { nodes_max, bytes_max },
            }),
            any::<u64>().prop_map(|n| Entry::Shut { incarnation: Incarnation(n) }),
            commit.prop_map(|(incarnation, seq, op, changes)| Entry::Commit(Commit {
                incarnation: Incarnation(incarnation),
                seq: Seq(seq),
                op,
                changes,
            })),
        ]
    }

    proptest! {
        #[test]
        fn an_entry_reads_back(entry in any_entry()) {
            let bytes = Bytes::from(entry.encode());
            prop_assert_eq!(Entry::decode(&bytes), Ok(entry));
            crate::fuzz::meta_entry(&bytes);
        }

        #[test]
        fn an_entry_that_is_cut_is_none(entry in any_entry(), cut: prop::sample::Index) {
            let bytes = Bytes::from(entry.encode());
            prop_assert!(Entry::decode(&bytes.slice(..cut.index(bytes.len()))).is_err());
        }

        #[test]
        fn no_bytes_make_the_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            crate::fuzz::meta_entry(&bytes);
        }
    }

    #[test]
    fn the_bytes_of_an_entry_never_change() {
        let path = Path::new("/a").unwrap();
        let commit = Entry::Commit(Commit {
            incarnation: Incarnation(300),
            seq: Seq(9),
            op: Some(OpId(1)),
            changes: vec![
                Change::Create {
                    path: path.clone(),
                    value: Bytes::from_static(b"v"),
                    owner: Some(SessionId(7)),
                    counter: Some(0),
                },
                Change::Set { path: path.clone(), value: Bytes::new() },
                Change::Delete { path },
                Change::Begin { lease_ms: 500 },
                Change::Ending { session: SessionId(7) },
                Change::End { session: SessionId(7) },
            ],
        });
        let golden = [
            &[1, 3, 0xac, 2, 9, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6][..],
            b"\x01\x02/a\x07\x01\x01v",
            b"\x02\x02/a\x00",
            b"\x03\x02/a",
            &[4, 0xf4, 3, 5, 7, 6, 7],
        ];
        assert_eq!(commit.encode(), golden.concat());
        let quota = Quota { nodes_max: 2, bytes_max: 128 };
        let open = Entry::Open { incarnation: Incarnation(5), quota };
        assert_eq!(open.encode(), [1, 1, 5, 2, 0x80, 1]);
        assert_eq!(Entry::Shut { incarnation: Incarnation(5) }.encode(), [1, 2, 5]);
    }
}
