//! Calls, one after the other, and what they come to.

use tideline_danmaku::ask::{Action, Answer, Changes, ImportItem, Op, Refusal, SettingsPatch};
use tideline_danmaku::comment::{Draft, Rank, Role, State};
use tideline_danmaku::options::Options;
use tideline_danmaku::outcome::{self, Outcome};
use tideline_danmaku::video::Event;
use tideline_danmaku::{CommentId, STRETCH_MS};
use tideline_record::batch::BatchRef;
use tideline_types::Seq;
use tideline_wire::danmaku::{Attr, Item, Mode, Pool, Sender};

use crate::partition::{Partition, actor, draft, user};

fn partition() -> Partition {
    Partition::new(Options::default())
}

#[test]
fn a_comment_is_shown_once_posted_and_known_to_its_writer() {
    let mut p = partition();
    let posted = p.post("v", "ann", draft("hello", 1000)).unwrap();
    assert!(!posted.again);
    assert_eq!(posted.comment.index.state, State::Shown);
    assert_eq!(p.texts("v"), ["hello"]);
    assert_eq!(p.own("v", "ann")[0].id, posted.comment.id);
    assert!(p.own("v", "bob").is_empty() && p.own("w", "ann").is_empty());
    let view = p.view("v");
    assert_eq!((view.total, view.shown, view.segments, view.limit), (1, 1, 1, 3000));
    assert!(view.seq >= posted.seq);
}

#[test]
fn nothing_is_answered_before_it_is_synced() {
    let mut p = partition();
    p.texts("v");
    let actor = actor("ann", Role::Viewer);
    let post = p.call("v", Op::Post { draft: draft("a", 0), actor });
    let read = p.call("v", Op::All);
    while p.read_one() {}
    assert!(!p.answers.contains_key(&post) && !p.answers.contains_key(&read));
    assert!(p.changed.is_empty());
    while p.sync_one() {}
    assert!(p.answers.contains_key(&post) && p.answers.contains_key(&read));
    assert_eq!(p.changed.len(), 1, "rooms hear of it once it is safe");
}

#[test]
fn a_retried_post_is_one_comment_also_after_it_came_to_rest() {
    let mut p = partition();
    let named = || Draft { client_id: Some("c1".into()), ..draft("hi", 5) };
    let first = p.post("v", "ann", named()).unwrap();
    let again = p.post("v", "ann", named()).unwrap();
    assert!(again.again && again.comment.id == first.comment.id && again.seq >= first.seq);
    assert!(!p.post("v", "bob", named()).unwrap().again, "another's name is another's");
    assert!(!p.post("w", "ann", named()).unwrap().again, "and another video's");
    p.rest();
    let mut p = p.crash(0, |_, _, n| n, Options::default());
    let again = p.post("v", "ann", named()).unwrap();
    assert!(again.again && again.comment.id == first.comment.id);
    assert_eq!(p.view("v").total, 2);
}

#[test]
fn a_writer_takes_back_within_two_minutes_and_nobody_else_does() {
    let mut p = partition();
    let id = p.post("v", "ann", draft("oops", 0)).unwrap().comment.id;
    let recall = |name| Op::Recall { id, actor: actor(name, Role::Viewer) };
    assert_eq!(p.comment("v", recall("bob")), Err(Refusal::NotYours));
    assert_eq!(p.comment("v", recall("ann")).unwrap().index.state, State::Recalled);
    assert!(p.texts("v").is_empty());
    assert_eq!(p.moderate("v", id, Action::Restore), Err(Refusal::Is(State::Recalled)));
    let late = p.post("v", "ann", draft("late", 0)).unwrap().comment.id;
    p.now += 120_001;
    let recall = Op::Recall { id: late, actor: actor("ann", Role::Viewer) };
    assert!(matches!(p.comment("v", recall), Err(Refusal::TooLate { age_ms: 120_001, .. })));
}

#[test]
fn a_moderator_hides_blocks_and_restores_and_a_viewer_does_not() {
    let mut p = partition();
    let id = p.post("v", "ann", draft("a", 0)).unwrap().comment.id;
    for (action, state) in [
        (Action::Hide, State::Hidden),
        (Action::Block, State::Blocked),
        (Action::Restore, State::Shown),
        (Action::Restore, State::Shown),
    ] {
        assert_eq!(p.moderate("v", id, action).unwrap().index.state, state);
        assert_eq!(p.texts("v").len(), usize::from(state == State::Shown));
        p.rest();
    }
    let viewer = Op::Moderate { id, action: Action::Hide, actor: actor("ann", Role::Viewer) };
    assert_eq!(p.comment("v", viewer), Err(Refusal::NotYours));
}

#[test]
fn reports_hide_until_somebody_has_looked() {
    let mut p = Partition::new(Options { report_threshold: 2, ..Options::default() });
    let id = p.post("v", "ann", draft("rude", 0)).unwrap().comment.id;
    let report = |name| Op::Report { id, actor: actor(name, Role::Viewer), reason: 4 };
    assert_eq!(p.comment("v", report("a")).unwrap().index.state, State::Shown);
    assert_eq!(p.comment("v", report("a")), Err(Refusal::Again));
    p.rest();
    assert_eq!(p.comment("v", report("a")), Err(Refusal::Again), "also from rows");
    assert_eq!(p.comment("v", report("b")).unwrap().index.state, State::Reported);
    assert!(p.texts("v").is_empty());
    assert_eq!(p.comment("v", report("c")), Err(Refusal::NotFound), "nobody sees it");
    assert!(p.moderate("v", id, Action::Restore).unwrap().index.reviewed);
    assert_eq!(p.comment("v", report("c")).unwrap().index.state, State::Shown);
}

#[test]
fn a_user_likes_once() {
    let mut p = partition();
    let id = p.post("v", "ann", draft("nice", 0)).unwrap().comment.id;
    let like = |name| Op::Like { id, actor: actor(name, Role::Viewer) };
    assert_eq!(p.comment("v", like("a")).unwrap().index.likes, 1);
    assert_eq!(p.comment("v", like("b")).unwrap().index.likes, 2);
    p.rest();
    let mut p = p.crash(0, |_, _, n| n, Options::default());
    assert_eq!(p.comment("v", like("a")), Err(Refusal::Again));
    assert_eq!(p.find("v", id).unwrap().index.likes, 2);
}

#[test]
fn a_closed_video_takes_comments_of_its_owner_alone() {
    let mut p = partition();
    let patch = SettingsPatch { closed: Some(true), ..SettingsPatch::default() };
    p.ask("v", Op::Set { patch, actor: actor("owner", Role::Owner) });
    assert_eq!(p.post("v", "ann", draft("a", 0)), Err(Refusal::Closed));
    let own = Op::Post { draft: draft("b", 0), actor: actor("owner", Role::Owner) };
    assert!(matches!(p.ask("v", own), Answer::Posted(_)));
}

#[test]
fn the_owners_filters_refuse_a_text_and_a_sender() {
    let mut p = partition();
    let json = r#"[{"type":0,"filter":"spoiler"},{"type":2,"filter":"eve"}]"#.to_owned();
    let owner = actor("owner", Role::Owner);
    assert_eq!(p.ask("v", Op::SetFilters { json, actor: owner.clone() }), Answer::Done);
    let bad = Op::SetFilters { json: "[{}]".into(), actor: owner };
    assert!(matches!(p.ask("v", bad), Answer::Refused(Refusal::BadFilters(_))));
    p.rest();
    let mut p = p.crash(0, |_, _, n| n, Options::default());
    assert_eq!(p.post("v", "ann", draft("A SPOILER", 0)), Err(Refusal::Forbidden));
    assert_eq!(p.post("v", "eve", draft("hi", 0)), Err(Refusal::Forbidden));
    assert!(p.post("v", "ann", draft("hi", 0)).is_ok());
}

#[test]
fn segments_reach_the_end_and_the_last_takes_what_lies_beyond() {
    let mut p = partition();
    let at = |segment: u32| (segment - 1) * STRETCH_MS;
    for (text, segment) in [("one", 1), ("two", 2), ("five", 5)] {
        p.post("v", "ann", draft(text, at(segment))).unwrap();
    }
    assert_eq!(p.view("v").segments, 5, "as far as the last comment");
    let mut segment = |n| match p.ask("v", Op::Segment(n)) {
        Answer::Snapshot(snapshot) => {
            snapshot.map(|s| s.items.iter().map(|c| c.content.text.to_string()).collect::<Vec<_>>())
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(segment(1).unwrap(), ["one"]);
    assert_eq!(segment(3).unwrap(), [""; 0]);
    assert_eq!((segment(0), segment(6)), (None, None));
    let duration_ms = Some(Some(at(3)));
    let patch = SettingsPatch { duration_ms, ..SettingsPatch::default() };
    p.ask("v", Op::Set { patch, actor: actor("owner", Role::Owner) });
    let mut segment = |n| match p.ask("v", Op::Segment(n)) {
        Answer::Snapshot(snapshot) => snapshot.map(|s| s.items.len()),
        other => panic!("{other:?}"),
    };
    assert_eq!((segment(2), segment(3)), (Some(2), None));
    assert!(p.post("v", "ann", draft("end", at(3))).is_ok(), "the end belongs to the video");
    assert!(p.post("v", "ann", draft("beyond", at(3) + 1)).is_err());
}

#[test]
fn scripts_are_not_in_segments_but_in_packs_with_their_text() {
    let mut p = partition();
    let script = |n: usize| Draft {
        mode: Mode::Script,
        pool: Pool::Special,
        ..draft(&format!("var a = {n};"), 0)
    };
    for n in 0..9 {
        let post = Op::Post { draft: script(n), actor: actor("owner", Role::Owner) };
        assert!(matches!(p.ask("v", post), Answer::Posted(_)));
    }
    assert!(p.texts("v").is_empty());
    assert_eq!(p.view("v").special_packs, 2);
    p.rest();
    let mut p = p.crash(0, |_, _, n| n, Options::default());
    let mut pack = |pack| match p.ask("v", Op::Special { pack }) {
        Answer::Snapshot(snapshot) => {
            snapshot.map(|s| s.items.iter().map(|c| c.content.text.to_string()).collect::<Vec<_>>())
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(pack(1).unwrap()[7], "var a = 7;");
    assert_eq!(pack(2).unwrap(), ["var a = 8;"]);
    assert_eq!((pack(0), pack(3)), (None, None));
}

#[test]
fn a_room_that_joins_at_a_snapshot_misses_nothing_and_sees_nothing_twice() {
    let mut p = partition();
    p.post("v", "ann", draft("before", 0)).unwrap();
    let Answer::Snapshot(Some(snapshot)) = p.ask("v", Op::Segment(1)) else { panic!() };
    let id = p.post("v", "ann", draft("after", 0)).unwrap().comment.id;
    p.moderate("v", id, Action::Rank(Rank::Recommended)).unwrap();
    p.post("w", "ann", draft("elsewhere", 0)).unwrap();
    p.moderate("v", id, Action::Hide).unwrap();
    let Answer::Changes(changes) = p.ask("v", Op::Changes { since: snapshot.seq }) else {
        panic!()
    };
    let Changes::Range { since, through, events, .. } = changes else { panic!() };
    assert_eq!(since, snapshot.seq);
    assert!(matches!(&events[0].1, Event::Shown(c) if c.id == id));
    assert!(matches!(&events[1].1, Event::Changed(c) if c.index.rank == Rank::Recommended));
    assert!(matches!(&events[2].1, Event::Hidden(gone) if *gone == id));
    assert_eq!(events.len(), 3);
    assert!(events.iter().all(|(seq, _)| since < *seq && *seq <= through));
    let Answer::Changes(next) = p.ask("v", Op::Changes { since: through }) else { panic!() };
    assert!(matches!(next, Changes::Range { events, .. } if events.is_empty()));
    let Answer::Changes(future) = p.ask("v", Op::Changes { since: Seq(9999) }) else { panic!() };
    assert!(matches!(future, Changes::Lagged { .. }), "a number that was lost");
}

#[test]
fn a_room_that_fell_behind_is_told_to_load_anew() {
    let mut p = partition();
    for n in 0..2_100 {
        p.call("v", Op::Post { draft: draft(&format!("{n}"), 0), actor: actor("a", Role::Viewer) });
    }
    p.serve();
    let Answer::Changes(changes) = p.ask("v", Op::Changes { since: Seq(1) }) else { panic!() };
    assert!(matches!(changes, Changes::Lagged { through } if through == Seq(2_100)));
}

#[test]
fn an_import_is_taken_once_and_beyond_the_limit() {
    let mut p = Partition::new(Options { limit: Some(3), ..Options::default() });
    let item = |n: i64| ImportItem {
        item: Item {
            id: n,
            progress_ms: 1000,
            sent_ms: 1_400_000_000_000 + n / 2 * 1000,
            sender: Sender::new(7),
            attr: Attr::LIVE.with(Attr::PROTECTED, n == 0),
            text: format!("text {}", n / 2).into(),
            ..Item::default()
        },
        nth: 0,
    };
    let items: Vec<_> = (0..10).map(item).collect();
    let import = || Op::Import { items: items.clone(), actor: actor("owner", Role::Owner) };
    let Answer::Imported(tally) = p.ask("v", import()) else { panic!() };
    assert_eq!((tally.taken, tally.duplicates, tally.refused.len()), (10, 0, 0));
    assert_eq!(p.texts("v"), ["text 0", "text 4", "text 4"], "the protected one and the latest");
    p.rest();
    let mut p = p.crash(0, |_, _, n| n, Options { limit: Some(3), ..Options::default() });
    let Answer::Imported(tally) = p.ask("v", import()) else { panic!() };
    assert_eq!((tally.taken, tally.duplicates), (0, 10));
    let twin = vec![items[3].clone(), ImportItem { nth: 1, ..items[3].clone() }];
    let twin = Op::Import { items: twin, actor: actor("owner", Role::Owner) };
    let Answer::Imported(tally) = p.ask("v", twin) else { panic!() };
    assert_eq!((tally.taken, tally.duplicates), (1, 1), "a second one that is meant");
    let bad = vec![ImportItem { item: Item::default(), nth: 0 }];
    let bad = Op::Import { items: bad, actor: actor("owner", Role::Owner) };
    let Answer::Imported(tally) = p.ask("v", bad) else { panic!() };
    assert_eq!(tally.refused.len(), 1);
}

#[test]
fn an_erased_user_is_in_no_row_and_others_come_back_in_their_place() {
    let mut p = Partition::new(Options { limit: Some(2), ..Options::default() });
    p.post("v", "bob", draft("old", 0)).unwrap();
    for n in 0..150 {
        p.post("v", "ann", draft(&format!("secret {n}"), 0)).unwrap();
    }
    p.rest();
    assert_eq!(p.texts("v"), ["secret 148", "secret 149"]);
    assert_eq!(p.ask("v", Op::Erase { user: user("ann") }), Answer::Erased(150));
    assert_eq!(p.texts("v"), ["old"]);
    assert!(p.own("v", "ann").is_empty());
    p.rest();
    assert_eq!(p.view("v").total, 1);
    let holds = |bytes: &[u8]| bytes.windows(6).any(|w| w == b"secret");
    let dump = p.dump();
    assert!(!dump.values().any(|value| holds(value)));
    let users = dump.keys().filter(|(key, _)| key[0] == b'u').count();
    assert_eq!(users, 1, "bob's alone");
}

#[test]
fn counts_are_told_once_for_many_changes_and_the_audit_tells_moderation() {
    let mut p = partition();
    for n in 0..5 {
        p.post("v", "ann", draft(&format!("{n}"), 0)).unwrap();
    }
    let id = p.post("v", "ann", draft("bad", 0)).unwrap().comment.id;
    p.moderate("v", id, Action::Block).unwrap();
    p.tick(2000);
    p.tick(2000);
    p.serve();
    let outcomes: Vec<Outcome> = p
        .log
        .iter()
        .flat_map(|batch| {
            let batch = BatchRef::parse(batch).unwrap();
            batch.records().map(|r| Outcome::decode(r.value).unwrap()).collect::<Vec<_>>()
        })
        .collect();
    let stats: Vec<String> = outcomes.iter().filter_map(|o| outcome::stats("v", o)).collect();
    assert_eq!(stats.len(), 1);
    assert!(
        stats[0].starts_with(r#"{"video":"v","work":null,"total":6,"shown":5,"#),
        "{}",
        stats[0]
    );
    let audit: Vec<String> = outcomes.iter().filter_map(|o| outcome::audit("v", o)).collect();
    assert_eq!(audit.len(), 1);
    assert!(audit[0].contains(&id.to_string()) && audit[0].contains(r#""state":"blocked""#));
}

#[test]
fn the_limit_of_a_day_counts_a_retry_once_and_outlives_a_restart() {
    let options = || Options { sender_per_day: 2, ..Options::default() };
    let mut p = Partition::new(options());
    let begun = p.now;
    let send = |post| Op::Send { post };
    for post in [Some(1), Some(1), Some(2), Some(2)] {
        assert_eq!(p.ask("ann's own", send(post)), Answer::Done);
    }
    let over = |answer| match answer {
        Answer::Refused(Refusal::OverDay { max: 2, wait_ms }) => wait_ms,
        other => panic!("{other:?}"),
    };
    assert_eq!(over(p.ask("ann's own", send(None))), 86_400_000);
    assert_eq!(p.ask("bob's own", send(None)), Answer::Done);
    // From the log alone, then from rows.
    p = p.crash(0, |_, _, _| 0, options());
    assert_eq!(over(p.ask("ann's own", send(None))), 86_400_000);
    p.rest();
    p = p.crash(0, |_, _, n| n, options());
    p.now = begun + 86_399_999;
    assert_eq!(over(p.ask("ann's own", send(None))), 1);
    p.now += 1;
    assert_eq!(p.ask("ann's own", send(None)), Answer::Done);
    assert!(p.texts("ann's own").is_empty());
}

#[test]
fn an_undo_puts_back_what_was_there_unless_somebody_changed_it_since() {
    let mut p = Partition::new(Options { limit: Some(1), ..Options::default() });
    let low = p.post("v", "ann", draft("low", 0)).unwrap().comment.id;
    let high = p.post("v", "ann", draft("high", 0)).unwrap().comment.id;
    let last = |p: &Partition| {
        let batch = p.log.last().unwrap();
        BatchRef::parse(batch).unwrap().records().next().map(|r| r.value.to_vec()).unwrap()
    };
    let undo = |p: &mut Partition, done: &[u8], role| {
        let outcome = Box::new(Outcome::decode(done).unwrap());
        p.ask("v", Op::Undo { outcome, actor: actor("o", role) })
    };
    assert_eq!(p.texts("v"), ["high"]);
    // A rank that pushed another one out.
    p.moderate("v", low, Action::Rank(Rank::Protected)).unwrap();
    let ranked = last(&p);
    assert_eq!(p.texts("v"), ["low"]);
    assert_eq!(undo(&mut p, &ranked, Role::Viewer), Answer::Refused(Refusal::NotYours));
    assert_eq!(undo(&mut p, &ranked, Role::Owner), Answer::Done);
    assert_eq!(p.texts("v"), ["high"], "the queue is as it was");
    // A state, from rows that were let go meanwhile.
    p.moderate("v", high, Action::Hide).unwrap();
    let hidden = last(&p);
    assert_eq!(p.texts("v"), ["low"]);
    p.rest();
    p = p.crash(0, |_, _, n| n, Options { limit: Some(1), ..Options::default() });
    assert_eq!(undo(&mut p, &hidden, Role::Moderator), Answer::Done);
    assert_eq!(p.texts("v"), ["high"]);
    p.moderate("v", high, Action::Block).unwrap();
    assert!(matches!(undo(&mut p, &hidden, Role::Owner), Answer::Refused(Refusal::Conflict(_))));
    // Subtitles and settings.
    p.moderate("v", low, Action::Move(Pool::Subtitle)).unwrap();
    let moved = last(&p);
    assert_eq!(undo(&mut p, &moved, Role::Owner), Answer::Done);
    assert_eq!(p.find("v", low).unwrap().index.pool, Pool::Normal);
    let patch = SettingsPatch { closed: Some(true), ..SettingsPatch::default() };
    p.ask("v", Op::Set { patch, actor: actor("o", Role::Owner) });
    let closed = last(&p);
    assert_eq!(undo(&mut p, &closed, Role::Owner), Answer::Done);
    assert!(!p.view("v").settings.closed);
    // What its writer took back stays so.
    let mine = p.post("v", "bob", draft("mine", 0)).unwrap().comment.id;
    p.ask("v", Op::Recall { id: mine, actor: actor("bob", Role::Viewer) });
    let recalled = last(&p);
    let refused = undo(&mut p, &recalled, Role::Owner);
    assert_eq!(refused, Answer::Refused(Refusal::Is(State::Recalled)));
}

#[test]
fn what_waits_is_seen_by_its_writer_alone_until_a_word_is_said() {
    let options = || Options { look_first: true, limit: Some(1), ..Options::default() };
    let mut p = Partition::new(options());
    let judge = |id, shown| Op::Judge { id, shown };
    let one = p.post("v", "ann", draft("one", 0)).unwrap().comment;
    assert_eq!(one.index.state, State::Waiting);
    let two = p.post("v", "ann", draft("two", 0)).unwrap().comment.id;
    assert!(p.texts("v").is_empty() && p.view("v").total == 2);
    p.rest();
    let due = |p: &Partition| p.dump().keys().filter(|(key, _)| key[0] == b'd').count();
    assert_eq!(due(&p), 2);
    p = p.crash(0, |_, _, n| n, options());
    assert_eq!(p.comment("v", judge(two, true)).unwrap().index.state, State::Shown);
    assert_eq!(p.comment("v", judge(one.id, true)).unwrap().index.state, State::Overflow);
    assert_eq!(p.texts("v"), ["two"], "the queue holds for it as for others");
    assert_eq!(p.comment("v", judge(two, false)).unwrap().index.state, State::Shown, "once");
    let bad = p.post("v", "ann", draft("bad", 0)).unwrap().comment.id;
    assert_eq!(p.comment("v", judge(bad, false)).unwrap().index.state, State::Blocked);
    let mine = p.post("v", "ann", draft("mine", 0)).unwrap().comment.id;
    p.ask("v", Op::Recall { id: mine, actor: actor("ann", Role::Viewer) });
    assert_eq!(p.comment("v", judge(mine, true)).unwrap().index.state, State::Recalled);
    p.rest();
    assert_eq!(due(&p), 0);
    let owner = Op::Post { draft: draft("of the owner", 0), actor: actor("o", Role::Owner) };
    assert!(
        matches!(p.ask("v", owner), Answer::Posted(p) if p.comment.index.state == State::Shown)
    );
}

#[test]
fn a_segment_may_be_longer_than_six_minutes() {
    let mut p = Partition::new(Options { segment_stretches: 2, ..Options::default() });
    let at = |n: u32| n * STRETCH_MS;
    for (text, stretch) in [("a", 0), ("b", 1), ("c", 2)] {
        p.post("v", "ann", draft(text, at(stretch))).unwrap();
    }
    assert_eq!(p.view("v").segments, 2);
    let mut segment = |n| match p.ask("v", Op::Segment(n)) {
        Answer::Snapshot(snapshot) => {
            snapshot.map(|s| s.items.iter().map(|c| c.content.text.to_string()).collect::<Vec<_>>())
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(segment(1).unwrap(), ["a", "b"]);
    assert_eq!(segment(2).unwrap(), ["c"]);
    assert_eq!(segment(3), None);
    let options = Options { segment_stretches: 2, ..Options::default() };
    let third = p.post("v", "ann", draft("d", at(3))).unwrap().comment.id;
    assert_eq!((options.segment_ms(), options.segment_at(third.stretch())), (720_000, 2));
}

#[test]
fn the_hidden_are_listed_by_where_in_the_video_and_those_for_want_of_room_are_not() {
    let mut p = Partition::new(Options { limit: Some(100), ..Options::default() });
    let at = |n: u32| n * STRETCH_MS;
    let mut ids: Vec<CommentId> = Vec::new();
    for n in [3, 1, 2, 0] {
        ids.push(p.post("v", "ann", draft(&format!("c{n}"), at(n))).unwrap().comment.id);
    }
    for (id, action) in [(ids[0], Action::Hide), (ids[1], Action::Block), (ids[3], Action::Hide)] {
        p.moderate("v", id, action).unwrap();
    }
    p.rest();
    p.moderate("v", ids[3], Action::Restore).unwrap();
    p.comment("v", Op::Recall { id: ids[2], actor: actor("ann", Role::Viewer) }).unwrap();
    let mut hidden = |after, limit| match p.ask("v", Op::Hidden { after, limit }) {
        Answer::Own(found) => found.iter().map(|c| (c.id, c.index.state)).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    let all = [(ids[1], State::Blocked), (ids[2], State::Recalled), (ids[0], State::Hidden)];
    assert_eq!(hidden(None, 100), all, "of rows at rest and of what is not at rest yet");
    assert_eq!(hidden(None, 2), all[..2]);
    assert_eq!(hidden(Some(ids[2]), 2), all[2..]);
}
