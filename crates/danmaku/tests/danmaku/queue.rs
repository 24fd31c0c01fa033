//! The bounded queue as callers see it, across memory and rest.

use tideline_danmaku::ask::{Action, Answer, Op, Refusal, SettingsPatch};
use tideline_danmaku::comment::{Rank, Role, State};
use tideline_danmaku::options::Options;
use tideline_danmaku::top::Scope;
use tideline_danmaku::{CommentId, STRETCH_MS};
use tideline_wire::danmaku::Pool;

use crate::partition::{Partition, actor, bounds, draft};

fn limited(limit: u32, scope: Scope) -> Partition {
    Partition::new(Options { limit: Some(limit), limit_scope: scope, ..Options::default() })
}

fn fill(p: &mut Partition, count: usize) -> Vec<CommentId> {
    (0..count).map(|n| p.post("v", "ann", draft(&format!("{n}"), 0)).unwrap().comment.id).collect()
}

#[test]
fn a_read_after_a_start_with_a_lower_limit_shows_no_more_than_that() {
    let mut p = limited(3, Scope::Video);
    fill(&mut p, 3);
    p.rest();
    let options = Options { limit: Some(1), limit_scope: Scope::Video, ..Options::default() };
    let mut p = p.crash(0, |_, _, n| n, options);
    assert_eq!(p.texts("v"), ["2"]);
    assert_eq!((p.view("v").counted, p.view("v").overflow), (1, 2));
}

#[test]
fn the_lowest_goes_and_the_highest_of_the_hidden_comes_back_from_rows() {
    let mut p = limited(3, Scope::Video);
    let ids = fill(&mut p, 6);
    assert_eq!(p.texts("v"), ["3", "4", "5"]);
    assert_eq!(p.state("v", ids[2]), State::Overflow);
    p.rest();
    let options = Options { limit: Some(3), limit_scope: Scope::Video, ..Options::default() };
    let mut p = p.crash(0, |_, _, n| n, options);
    p.moderate("v", ids[4], Action::Block).unwrap();
    assert_eq!(p.texts("v"), ["2", "3", "5"]);
    p.moderate("v", ids[4], Action::Restore).unwrap();
    assert_eq!(p.texts("v"), ["3", "4", "5"]);
    assert_eq!(p.state("v", ids[2]), State::Overflow);
    p.moderate("v", ids[1], Action::Hide).unwrap();
    p.moderate("v", ids[5], Action::Hide).unwrap();
    p.moderate("v", ids[4], Action::Hide).unwrap();
    assert_eq!(p.texts("v"), ["0", "2", "3"], "hidden by hand does not come back");
}

#[test]
fn protected_comments_stay_and_one_beyond_the_limit_is_a_conflict() {
    let mut p = limited(2, Scope::Video);
    let ids = fill(&mut p, 3);
    let conflict = |refusal: Result<_, Refusal>| matches!(refusal, Err(Refusal::Conflict(_)));
    p.moderate("v", ids[0], Action::Rank(Rank::Protected)).unwrap();
    assert_eq!(p.texts("v"), ["0", "2"], "it comes back for the lowest");
    p.moderate("v", ids[2], Action::Rank(Rank::Recommended)).unwrap();
    let third = p.moderate("v", ids[1], Action::Rank(Rank::Recommended));
    assert!(conflict(third), "both places are taken by its rank or above");
    p.moderate("v", ids[1], Action::Rank(Rank::Protected)).unwrap();
    assert_eq!(p.texts("v"), ["0", "1"]);
    let last = p.post("v", "ann", draft("3", 0)).unwrap();
    assert_eq!(last.comment.index.state, State::Overflow, "taken, and hidden at once");
    assert!(conflict(p.moderate("v", last.comment.id, Action::Rank(Rank::Protected))));
    p.moderate("v", ids[0], Action::Rank(Rank::Plain)).unwrap();
    assert_eq!(p.texts("v"), ["1", "2"], "the recommended one is above it again");
}

#[test]
fn a_limit_that_falls_hides_even_protected_ones_and_brings_them_back_when_it_rises() {
    let options = |limit| Options { limit: Some(limit), ..Options::default() };
    let mut p = Partition::new(options(4));
    let ids = fill(&mut p, 4);
    for id in &ids[..3] {
        p.moderate("v", *id, Action::Rank(Rank::Protected)).unwrap();
    }
    let mut p = p.crash(0, |_, _, n| n, options(2));
    let nothing = Op::Set { patch: SettingsPatch::default(), actor: actor("o", Role::Owner) };
    p.ask("v", nothing.clone());
    assert_eq!(p.texts("v"), ["1", "2"]);
    let mut p = p.crash(0, |_, _, n| n, options(3));
    p.ask("v", nothing);
    assert_eq!(p.texts("v"), ["0", "1", "2"]);
}

#[test]
fn a_limit_that_rises_far_brings_back_thousands_in_order() {
    let mut p = limited(100, Scope::Segment);
    for n in 0..2_000 {
        let at = n % 3 * STRETCH_MS;
        p.call(
            "v",
            Op::Post { draft: draft(&format!("{n}"), at), actor: actor("a", Role::Viewer) },
        );
        p.now += 1;
    }
    p.serve();
    p.rest();
    let options = Options { limit: Some(100), ..Options::default() };
    let mut p = p.crash(0, |_, _, n| n, options);
    let view = p.view("v");
    assert_eq!((view.counted, view.overflow, view.total), (100, 1900, 2000));
    let patch = SettingsPatch { limit: Some(Some(1_500)), ..SettingsPatch::default() };
    let set = Op::Set { patch, actor: actor("o", Role::Owner) };
    assert!(matches!(p.ask("v", set), Answer::Settings(_)));
    let view = p.view("v");
    assert_eq!((view.counted, view.overflow, view.limit), (1500, 500, 1500));
    assert_eq!(p.texts("v")[0], "501", "of each stretch the latest");
    let bad = SettingsPatch { limit: Some(Some(1_501)), ..SettingsPatch::default() };
    let bad = Op::Set { patch: bad, actor: actor("o", Role::Owner) };
    assert_eq!(p.ask("v", bad), Answer::Refused(Refusal::BadLimit(1_501)));
}

#[test]
fn opening_a_video_reads_no_more_where_a_hundred_thousand_are_hidden() {
    let bounds = tideline_danmaku::owner::Bounds { parked_max: 1 << 20, ..bounds() };
    let options = || Options { limit: Some(100), ..Options::default() };
    let mut p = Partition::with_bounds(options(), bounds);
    for n in 0..50_000_u32 {
        let op =
            Op::Post { draft: draft("x", n % 5 * STRETCH_MS), actor: actor("a", Role::Viewer) };
        p.call("v", op);
        if n % 64 == 0 {
            p.now += 1;
            p.serve();
        }
    }
    p.serve();
    p.rest();
    let mut p = p.crash(0, |_, _, n| n, options());
    assert_eq!(p.texts("v").len(), 100);
    assert!(p.owner.stats().hot_bytes < 200 << 10, "{:?}", p.owner.stats());
    assert_eq!(p.table_reads, 1);
    let op = Op::Post { draft: draft("y", 0), actor: actor("a", Role::Viewer) };
    p.ask("v", op);
    assert!(p.table_reads <= 2, "one look at the best of what is hidden");
    assert!(p.owner.stats().hot_bytes < 300 << 10, "{:?}", p.owner.stats());
}

#[test]
fn a_read_that_began_before_a_flush_sees_what_the_flush_brought_to_rest() {
    let mut p = limited(1, Scope::Video);
    let ids = fill(&mut p, 3);
    p.rest();
    let mut p = p.crash(0, |_, _, n| n, Options { limit: Some(1), ..Options::default() });
    assert_eq!(p.texts("v"), ["2"]);
    // 0 is blocked; the image of that flies while 2 goes and 1 is looked for.
    p.moderate("v", ids[1], Action::Block).unwrap();
    p.tick(5000);
    let hide = Op::Moderate { id: ids[2], action: Action::Hide, actor: actor("o", Role::Owner) };
    let ticket = p.call("v", hide);
    p.read_before(|p| while p.sync_one() || p.commit_one() || p.sync_table() {});
    p.serve();
    assert!(matches!(p.answers[&ticket], Answer::Moderated(_)));
    assert_eq!(p.texts("v"), ["0"], "not the blocked one");
}

#[test]
fn subtitles_do_not_count_and_moving_one_makes_room() {
    let mut p = limited(2, Scope::Video);
    let ids = fill(&mut p, 3);
    p.moderate("v", ids[2], Action::Move(Pool::Subtitle)).unwrap();
    assert_eq!(p.texts("v"), ["0", "1", "2"]);
    assert_eq!(p.view("v").counted, 2);
    p.moderate("v", ids[2], Action::Move(Pool::Normal)).unwrap();
    assert_eq!(p.texts("v"), ["1", "2"]);
    p.moderate("v", ids[0], Action::Move(Pool::Subtitle)).unwrap();
    assert_eq!(p.texts("v"), ["1", "2", "0"], "from the hidden, too; subtitles come last");
}

#[test]
fn late_comments_on_one_segment_do_not_empty_the_rest() {
    for (scope, want) in [(Scope::Video, 0), (Scope::Segment, 5)] {
        let mut p = limited(10, scope);
        for n in 0..5 {
            p.post("v", "ann", draft(&format!("film {n}"), STRETCH_MS)).unwrap();
        }
        for n in 0..20 {
            p.post("v", "ann", draft(&format!("first {n}"), 0)).unwrap();
        }
        let film = p.texts("v").iter().filter(|text| text.starts_with("film")).count();
        assert_eq!(film, want);
    }
}
