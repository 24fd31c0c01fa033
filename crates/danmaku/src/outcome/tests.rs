use proptest::prelude::*;
use tideline_types::UserId;
use tideline_wire::danmaku::{Mode, Pool};

use super::*;
use crate::comment::{Rank, Role, State, Writer};
use crate::rows::tests::{any_content, any_id, any_index, any_settings};
use crate::sent::tests::any_sent;

fn any_change() -> impl Strategy<Value = Change> {
    let content = || any_content();
    prop_oneof![
        (any_id(), any_index(), content()).prop_map(|(id, index, content)| Change::New {
            id,
            index,
            content
        }),
        (any_id(), any_index(), any_index(), prop::option::of(content()))
            .prop_map(|(id, before, after, content)| Change::Index { id, before, after, content }),
        (any_id(), any::<u64>(), any::<u8>(), any::<bool>()).prop_map(
            |(id, user, reason, like)| {
                let kind = if like { MarkKind::Like } else { MarkKind::Report };
                Change::Mark { kind, id, user, reason }
            }
        ),
        (any_id(), any_index(), any::<u64>()).prop_map(|(id, before, user)| Change::Gone {
            id,
            before,
            user
        }),
        any::<u64>().prop_map(|user| Change::Forgotten { user }),
        (any_settings(), any_settings())
            .prop_map(|(before, after)| Change::Settings { before, after }),
        (prop::option::of(".{0,30}"), ".{0,30}").prop_map(|(before, after)| Change::Filters {
            before: before.map(Into::into),
            after: after.into()
        }),
        (any::<u64>(), any::<u64>(), any_work()).prop_map(|(total, shown, work)| Change::Count {
            total,
            shown,
            work
        }),
        (any_work(), any_work()).prop_map(|(before, after)| Change::Work { before, after }),
        any_sent().prop_map(Change::Sent),
    ]
}

fn any_work() -> impl Strategy<Value = Option<Arc<str>>> {
    prop::option::of("[a-z]{1,9}".prop_map(Into::into))
}

pub(crate) fn any_outcome() -> impl Strategy<Value = Outcome> {
    let actor = ("[a-z]{1,9}", 0_usize..4).prop_map(|(user, role)| Actor {
        user: UserId::new(&user).unwrap(),
        role: Role::ALL[role],
    });
    let changes = prop::collection::vec(any_change(), 0..5);
    (0_i64.., 0..Act::ALL.len(), prop::option::of(actor), changes).prop_map(
        |(taken, act, actor, changes)| Outcome {
            taken: Millis(taken),
            act: Act::ALL[act],
            actor,
            changes,
        },
    )
}

proptest! {
    #[test]
    fn an_outcome_reads_back(outcome in any_outcome()) {
        let bytes = outcome.encode();
        prop_assert_eq!(Outcome::decode(&bytes), Ok(outcome));
        crate::fuzz::danmaku_outcome(&bytes);
    }

    #[test]
    fn a_cut_outcome_is_none_or_has_fewer_changes(outcome in any_outcome(), cut: prop::sample::Index) {
        let bytes = outcome.encode();
        let cut = &bytes[..cut.index(bytes.len())];
        if let Ok(less) = Outcome::decode(cut) {
            prop_assert!(less.changes.len() < outcome.changes.len());
        }
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        crate::fuzz::danmaku_outcome(&bytes);
    }
}

pub(crate) fn sample() -> Outcome {
    let id = CommentId::new(849_315_200_000 << 22).unwrap();
    let index = Index {
        state: State::Shown,
        rank: Rank::Plain,
        pool: Pool::Normal,
        mode: Mode::Scroll,
        progress_ms: 1000,
        likes: 0,
        reports: 0,
        reviewed: false,
    };
    let user = UserId::new("ann").unwrap();
    let content = Content {
        color: 0x00ff_ffff,
        size: 25,
        sent_ms: id.time(),
        writer: Writer::User(user.clone()),
        weight: 0,
        attr: 0,
        client: None,
        text: "hi".into(),
    };
    let hidden = Index { state: State::Hidden, ..index };
    Outcome {
        taken: Millis(300),
        act: Act::Moderate,
        actor: Some(Actor { user, role: Role::Owner }),
        changes: vec![
            Change::New { id, index, content },
            Change::Index { id, before: index, after: hidden, content: None },
            Change::Count { total: 1, shown: 0, work: None },
        ],
    }
}

#[test]
fn the_bytes_of_an_outcome_never_change() {
    let id = (849_315_200_000_u64 << 22).to_le_bytes();
    let golden = [
        &[1, 3, 0xac, 2, 2, 3][..],
        b"ann",
        &[1],
        &id,
        &[0, 1, 0xe8, 7, 0, 0, 8, 1, 0, 3],
        b"annhi",
        &[2],
        &id,
        &[0, 1, 0xe8, 7, 0, 0, 3, 1, 0xe8, 7, 0, 0],
        &[8, 1, 0],
    ]
    .concat();
    assert_eq!(sample().encode(), golden);
}

#[test]
fn the_audit_says_who_did_what_and_how_to_undo_it() {
    let lines = audit("v1", &sample()).unwrap();
    let json: serde_json::Value = serde_json::from_str(&lines).unwrap();
    assert_eq!(json["video"], "v1");
    assert_eq!(json["act"], "moderate");
    assert_eq!(json["actor"], "ann");
    assert_eq!(json["role"], "owner");
    let change = &json["changes"][0];
    assert_eq!(change["id"], (849_315_200_000_i64 << 22).to_string());
    assert_eq!(change["before"]["state"], "shown");
    assert_eq!(change["after"]["state"], "hidden");
    assert_eq!(
        stats("v1", &sample()).unwrap(),
        r#"{"video":"v1","work":null,"total":1,"shown":0,"at_ms":300}"#
    );
}

#[test]
fn what_is_no_moderation_is_not_in_the_audit() {
    for act in [Act::Post, Act::Import, Act::Like, Act::Queue, Act::Count, Act::Send, Act::Work] {
        assert_eq!(audit("v1", &Outcome { act, ..sample() }), None);
    }
    let mut report = Outcome { act: Act::Report, ..sample() };
    report.changes.truncate(1);
    assert_eq!(audit("v1", &report), None, "a report that hides nothing");
    assert_eq!(stats("v1", &report), None);
}
