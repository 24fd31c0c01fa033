//! Positions as gRPC has them.

use tideline_types::{Epoch, Incarnation, Position, Seq};

use crate::common_v1;

impl From<Position> for common_v1::Position {
    fn from(at: Position) -> Self {
        Self { incarnation: at.incarnation.0, epoch: at.epoch.0, seq: at.seq.0 }
    }
}

impl From<common_v1::Position> for Position {
    fn from(at: common_v1::Position) -> Self {
        Self { incarnation: Incarnation(at.incarnation), epoch: Epoch(at.epoch), seq: Seq(at.seq) }
    }
}
