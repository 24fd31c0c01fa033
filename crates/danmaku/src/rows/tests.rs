use proptest::prelude::*;
use tideline_types::limits::{COLOR_MAX, PROGRESS_MS_MAX};
use tideline_types::{Epoch, Millis, Seq, UserId};
use tideline_wire::danmaku::{Mode, Pool, Sender};

use super::*;
use crate::comment::{Content, Writer};
use crate::id::stretch_of;

pub(crate) fn any_id() -> impl Strategy<Value = CommentId> {
    (any::<u64>())
        .prop_map(|bits| CommentId::from_bits(bits >> 1).unwrap())
        .prop_filter("a stretch of some video", |id| id.stretch() <= stretch_of(PROGRESS_MS_MAX))
}

pub(crate) fn any_index() -> impl Strategy<Value = Index> {
    let words = (0..State::ALL.len(), 0..Rank::ALL.len(), 0..3_usize, 0..7_usize);
    let numbers = (0..=PROGRESS_MS_MAX, any::<u32>(), any::<u32>(), any::<bool>());
    (words, numbers).prop_map(
        |((state, rank, pool, mode), (progress_ms, likes, reports, reviewed))| Index {
            state: State::ALL[state],
            rank: Rank::ALL[rank],
            pool: Pool::ALL[pool],
            mode: Mode::ALL[mode],
            progress_ms,
            likes,
            reports,
            reviewed,
        },
    )
}

pub(crate) fn any_content() -> impl Strategy<Value = Content> {
    let writer = prop_oneof![
        "[a-z]{1,20}".prop_map(|user| Writer::User(UserId::new(&user).unwrap())),
        (any::<u32>(), any::<bool>())
            .prop_map(|(hash, guest)| Writer::Imported(Sender { hash, guest })),
    ];
    let usual =
        (prop_oneof![Just(COLOR_MAX), 0..=COLOR_MAX], prop_oneof![Just(25_u8), any::<u8>()]);
    let rest = (any::<i64>(), 0_u8..12, any::<u32>(), any::<Option<u64>>(), ".{0,40}");
    (writer, usual, rest).prop_map(|(writer, (color, size), (sent, weight, attr, client, text))| {
        Content {
            color,
            size,
            sent_ms: Millis(sent),
            writer,
            weight,
            attr,
            client,
            text: text.into(),
        }
    })
}

pub(crate) fn any_settings() -> impl Strategy<Value = Settings> {
    let number = || prop_oneof![Just(None), (0..u32::MAX).prop_map(Some)];
    (number(), number(), any::<bool>()).prop_map(|(duration_ms, limit, closed)| Settings {
        duration_ms,
        limit,
        closed,
    })
}

proptest! {
    #[test]
    fn an_index_reads_back(index in any_index()) {
        let bytes = encode_index(&index);
        prop_assert_eq!(decode_index(&bytes), Ok(index));
        prop_assert!(decode_index(&bytes[..bytes.len() - 1]).is_err());
    }

    #[test]
    fn a_content_reads_back(id in any_id(), content in any_content()) {
        prop_assert_eq!(decode_content(id, &encode_content(id, &content)), Ok(content));
    }

    #[test]
    fn facts_read_back(
        seq: u64, epoch: u32, total: u64, settings in any_settings(),
        queue in prop::collection::btree_map(0_u16..5966, (any::<u32>(), 1_u64..), 0..9),
    ) {
        let queue = queue.into_iter().map(|(at, (shown, hidden))| (at, shown, hidden)).collect();
        let facts = Facts { epoch: Epoch(epoch), seq: Seq(seq), settings, total, queue };
        prop_assert_eq!(Facts::decode(&facts.encode()), Ok(facts));
    }

    #[test]
    fn keys_of_the_queue_sort_best_first(a in (0..3_usize, any_id()), b in (0..3_usize, any_id())) {
        let [a, b] = [a, b].map(|(rank, id)| (Rank::ALL[rank], id));
        let keys = [a, b].map(queue_key);
        prop_assert_eq!(order_of(&keys[0]), Ok(a));
        if a.1.stretch() == b.1.stretch() {
            prop_assert_eq!(a.cmp(&b), keys[1].cmp(&keys[0]));
            let (from, to) = queue_range(a.1.stretch(), None);
            prop_assert!(from <= keys[0] && keys[0] < to);
            let (below, _) = queue_range(a.1.stretch(), Some(a));
            prop_assert_eq!(below <= keys[1], b < a);
        }
    }

    #[test]
    fn no_bytes_make_a_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        crate::fuzz::danmaku_rows(&bytes);
    }
}

#[test]
fn the_bytes_of_rows_never_change() {
    let id = CommentId::new(849_315_200_000 << 22 | 3 << 9 | 5).unwrap();
    let index = Index {
        state: State::Overflow,
        rank: Rank::Recommended,
        pool: Pool::Subtitle,
        mode: Mode::Top,
        progress_ms: 1_080_300,
        likes: 2,
        reports: 1,
        reviewed: true,
    };
    assert_eq!(encode_index(&index), [1, 0xa9, 5, 0xec, 0xf7, 0x41, 2, 1]);
    let mut content = Content {
        color: COLOR_MAX,
        size: 25,
        sent_ms: id.time(),
        writer: Writer::User(UserId::new("ann").unwrap()),
        weight: 0,
        attr: 0,
        client: None,
        text: "hi".into(),
    };
    assert_eq!(encode_content(id, &content), b"\x01\x00\x03annhi");
    content = Content {
        color: 0x010203,
        size: 18,
        sent_ms: id.time().plus(-1),
        writer: Writer::Imported(Sender { hash: 0xa6216d9, guest: true }),
        weight: 7,
        attr: 2,
        client: Some(9),
        ..content
    };
    let golden = b"\x01\xfe\x0a\x62\x16\xd9\0\0\0\0\0\0\0\x09\x07\x02\x12\x01\x02\x03\x01hi";
    assert_eq!(encode_content(id, &content), golden);
    let facts = Facts {
        epoch: Epoch(2),
        seq: Seq(300),
        settings: Settings { duration_ms: Some(9), limit: None, closed: true },
        total: 4,
        queue: vec![(0, 5, 1), (3, 0, 2)],
    };
    assert_eq!(facts.encode(), [1, 2, 0xac, 2, 10, 0, 1, 4, 0, 5, 1, 3, 0, 2]);
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let bits = format!("{:016x}", id.bits());
    assert_eq!(hex(&content_key(id)), format!("400003{bits}"));
    assert_eq!(hex(&text_key(id)), format!("500003{bits}"));
    assert_eq!(hex(&index_key(id, &index)), format!("200003fe{:016x}", !id.bits()));
    assert_eq!(hex(&own_key(1, id)), format!("600000000000000001{bits}"));
    assert_eq!(hex(&mark_key(MarkKind::Report, id, 1)), format!("7001{bits}0000000000000001"));
    assert_eq!(video_key("1"), b"v1");
    assert_eq!(user_key(2), b"u\0\0\0\0\0\0\0\x02");
}
