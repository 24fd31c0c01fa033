//! Rows of one user. (Plain; to be packed.)

use tideline_types::Millis;

use crate::id::{IdBuf, PackedId};
use crate::kinds::KindId;
use crate::query::Row;
use crate::row::RowRef;

/// Rows of one user, each (kind, id) once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    rows: Vec<(IdBuf, Row)>,
}

/// Where a row lies, until the next change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place(u32);

/// What most filters ask of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) place: Place,
    pub(crate) kind: KindId,
    pub(crate) event_ms: Millis,
}

impl Store {
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.rows.capacity() * size_of::<(IdBuf, Row)>()
    }

    /// How many rows of a kind.
    pub(crate) fn count(&self, kind: KindId) -> usize {
        self.rows.iter().filter(|(_, row)| row.kind == kind).count()
    }

    fn at(&self, kind: KindId, id: PackedId<'_>) -> Option<usize> {
        self.rows.iter().position(|(own, row)| row.kind == kind && own.borrow() == id)
    }

    pub(crate) fn find(&self, kind: KindId, id: PackedId<'_>) -> Option<RowRef<'_>> {
        self.at(kind, id).map(|at| self.get(Place(at as u32)))
    }

    /// Sets a row; `replaced` sees the one it replaces.
    pub(crate) fn put(
        &mut self,
        kind: KindId,
        row: &RowRef<'_>,
        mut replaced: impl FnMut(&RowRef<'_>),
    ) {
        self.remove(kind, row.id, &mut replaced);
        let owned = row.to_row(kind);
        self.rows.push((IdBuf::pack(&owned.id), owned));
    }

    /// Removes a row; `removed` sees it.
    pub(crate) fn remove(
        &mut self,
        kind: KindId,
        id: PackedId<'_>,
        mut removed: impl FnMut(&RowRef<'_>),
    ) {
        if let Some(at) = self.at(kind, id) {
            let (id, row) = self.rows.remove(at);
            removed(&RowRef::of(&row, &id));
        }
    }

    pub(crate) fn retain(&mut self, mut keep: impl FnMut(KindId, &RowRef<'_>) -> bool) {
        self.rows.retain(|(id, row)| keep(row.kind, &RowRef::of(row, id)));
    }

    pub(crate) fn get(&self, place: Place) -> RowRef<'_> {
        let (id, row) = &self.rows[place.0 as usize];
        RowRef::of(row, id)
    }

    /// All rows, in no order.
    pub(crate) fn heads(&self) -> impl Iterator<Item = Head> {
        self.rows.iter().enumerate().map(|(at, (_, row))| Head {
            place: Place(at as u32),
            kind: row.kind,
            event_ms: row.event_ms,
        })
    }
}
