use bytes::Bytes;
use proptest::prelude::*;
use tideline_types::{Incarnation, Seq};

use super::*;
use crate::commit::Entry;

/// One call in a few letters: `+/a` creates, `+e/a` ephemeral and `+s/a`
/// sequential, `=/a` sets, `=/a@3` sets if written by 3, `-/a` deletes, `?/a`
/// expects it, `!/a` expects it not to be.
pub(crate) fn op(word: &str) -> Op {
    let (at, modified) = match word.split_once('@') {
        Some((at, seq)) => (at, Some(Seq(seq.parse().unwrap()))),
        None => (word, None),
    };
    let slash = at.find('/').unwrap();
    let path = Path::new(&at[slash..]).unwrap();
    let value = Bytes::from_static(b"v");
    match &at[..slash] {
        "=" => Op::Set { path, value, modified },
        "-" => Op::Delete { path, modified },
        "?" => Op::Check { path, expect: Expect::Present },
        "!" => Op::Check { path, expect: Expect::Absent },
        create => {
            let (ephemeral, sequential) = (create.contains('e'), create.contains('s'));
            Op::Create { path, value, ephemeral, sequential }
        }
    }
}

/// Runs transactions, split by `|`, in the session of the first commit, if
/// `begins`; tells what each came to.
fn run(tree: &mut Tree, quota: &Quota, script: &str) -> String {
    let session = tree.sessions().next().map(|(id, _)| id);
    let one = |text: &str| {
        let txn = Txn { ops: text.split(' ').map(op).collect(), session, op: None };
        match transact(tree, quota, &txn) {
            Ok(Decision::Log(commit)) => {
                let created = crate::tree::written(&commit).created;
                format!("{}{created:?}", commit.seq)
            }
            Ok(Decision::Before(written)) => format!("at {}", written.seq),
            Err(refusal) => refusal.to_string(),
        }
    };
    script.split(" | ").map(one).collect::<Vec<_>>().join(", ")
}

fn tree() -> Tree {
    Tree::new(Incarnation(1))
}

fn check(script: &str, expected: &str) {
    assert_eq!(run(&mut tree(), &Quota::default(), script), expected);
}

#[test]
fn a_set_goes_through_only_on_the_seq_it_names() {
    check(
        "+/a | =/a@1 | =/a@1 | -/a@1 | -/a@2",
        "1[/a], 2[], /a was last written by 2, /a was last written by 2, 3[]",
    );
}

#[test]
fn a_transaction_happens_as_a_whole_or_not_at_all() {
    check(
        "+/a +/a/b | =/a -/x | ?/a/b -/a/b -/a !/a | ?/a",
        "1[/a, /a/b], /x does not exist, 2[], /a does not exist",
    );
}

#[test]
fn what_changes_nothing_takes_no_number() {
    check("+/a | ?/a | +/b", "1[/a], at 1, 2[/b]");
}

#[test]
fn a_name_that_comes_with_its_number_is_neither_repeated_nor_overtaken() {
    check(
        "+/n0000000007 | +s/n | +/n0000000003 | +s/m | +/x00000000090 | +s/n",
        "1[/n0000000007], 2[/n0000000008], 3[/n0000000003], 4[/m0000000009], \
         5[/x00000000090], 6[/n0000000091]",
    );
}

#[test]
fn sequential_names_come_from_a_counter_that_never_goes_back() {
    check(
        "+/q | +s/q/n +s/q/n | -/q/n0000000001 | +s/q/n | =/q | +s/q/m",
        "1[/q], 2[/q/n0000000000, /q/n0000000001], 3[], 4[/q/n0000000002], 5[], 6[/q/m0000000003]",
    );
}

#[test]
fn a_node_made_again_is_another() {
    let mut tree = tree();
    run(&mut tree, &Quota::default(), "+/a | -/a | +/a");
    let node = tree.get(&Path::new("/a").unwrap()).unwrap();
    assert_eq!((node.created, node.modified), (Seq(3), Seq(3)));
}

#[test]
fn nodes_are_not_made_where_they_cannot_be() {
    check(
        "+/a/b | +/a +/a/b | -/a | +/a | +e/x | -/",
        "/a does not exist, 1[/a, /a/b], /a has children, /a exists, \
         an ephemeral node needs a session, the root of a subtree is neither created nor removed",
    );
}

#[test]
fn a_refused_transaction_leaves_no_trace() {
    let mut tree = tree();
    begin(&mut tree, 1000, None).unwrap();
    run(&mut tree, &Quota::default(), "+/a | +s/a/n");
    let before = tree.clone();
    run(&mut tree, &Quota::default(), "+e/e =/a +s/a/n -/a/n0000000000 -/none");
    assert_eq!(tree, before);
}

#[test]
fn a_quota_stops_what_adds_and_nothing_else() {
    let mut tree = tree();
    let roomy = Quota { nodes_max: 3, bytes_max: 10_000 };
    let said = run(&mut tree, &roomy, "+/a | +/b | +/c | +/d | -/a | +/d");
    assert_eq!(said, "1[/a], 2[/b], 3[/c], the subtree holds 4 nodes, 3 are allowed, 4[], 5[/d]");
    let tight = Quota { nodes_max: 9, bytes_max: 100 };
    let said = run(&mut tree, &tight, "=/b | -/b | -/c | =/d");
    assert_eq!(said, "the subtree holds 201 bytes, 100 are allowed, 6[], 7[], 8[]");
}

#[test]
fn limits_that_never_move_act_at_admission_and_change_nothing() {
    let mut tree = tree();
    let mut refused = |ops: Vec<Op>| {
        let txn = Txn { ops, session: None, op: None };
        let said = transact(&mut tree, &Quota::default(), &txn).unwrap_err().to_string();
        assert_eq!((tree.seq(), tree.count()), (Seq::ZERO, 0), "{said}");
        said
    };
    let create = |name: usize, bytes: usize| Op::Create {
        path: Path::new(&format!("/{name}")).unwrap(),
        value: vec![0; bytes].into(),
        ephemeral: false,
        sequential: false,
    };
    let over = |what, given, max| format!("{what}: {given}, at most {max} are allowed");
    let many = (0..=META_TXN_OPS_MAX).map(|n| create(n, 0)).collect();
    let expected = over("operations of a transaction", META_TXN_OPS_MAX + 1, META_TXN_OPS_MAX);
    assert_eq!(refused(many), expected);
    let large = META_VALUE_BYTES_MAX + 1;
    let expected = over("bytes of a value", large, META_VALUE_BYTES_MAX);
    assert_eq!(refused(vec![create(0, large)]), expected);
    let half = META_TXN_BYTES_MAX / 2;
    let expected = over("bytes of a transaction", 2 * half + 4, META_TXN_BYTES_MAX);
    assert_eq!(refused(vec![create(0, half), create(1, half)]), expected);
    for lease_ms in [0, META_LEASE_MS_MIN - 1, META_LEASE_MS_MAX + 1] {
        let refused = begin(&mut tree, lease_ms, None).unwrap_err();
        assert!(matches!(refused, Refusal::Limit { .. }), "{refused}");
    }
}

#[test]
fn a_retried_create_is_told_what_the_first_one_made() {
    let mut tree = tree();
    let txn = Txn { ops: vec![op("+s/n")], session: None, op: Some(OpId(7)) };
    let Ok(Decision::Log(commit)) = transact(&mut tree, &Quota::default(), &txn) else {
        panic!("the first is logged")
    };
    let first = crate::tree::written(&commit);
    assert_eq!(first.created, [Path::new("/n0000000000").unwrap()]);
    let again = transact(&mut tree, &Quota::default(), &txn).unwrap();
    assert_eq!(again, Decision::Before(first));
    assert_eq!(tree.count(), 1);
}

#[test]
fn the_end_of_a_session_removes_its_nodes_in_steps() {
    let mut tree = tree();
    let Ok(Decision::Log(_)) = begin(&mut tree, 1000, None) else { panic!("it begins") };
    let id = SessionId(1);
    let quota = Quota::default();
    run(&mut tree, &quota, "+/stays");
    for n in 0..META_CLOSE_NODES + 1 {
        run(&mut tree, &quota, &format!("+e/e{n}"));
    }
    let Ok(Decision::Log(first)) = end(&mut tree, id) else { panic!("a step") };
    assert_eq!(first.changes.len(), META_CLOSE_NODES + 1);
    assert_eq!(first.changes[0], Change::Ending { session: id });
    assert_eq!(run(&mut tree, &quota, "+/late"), "session 1 has ended");
    let Ok(Decision::Log(last)) = end(&mut tree, id) else { panic!("a step") };
    assert_eq!(last.changes.len(), 2);
    assert_eq!(last.changes[1], Change::End { session: id });
    assert!(matches!(end(&mut tree, id), Ok(Decision::Before(_))), "no more is to be done");
    assert_eq!((tree.count(), tree.sessions().count()), (1, 0));
}

#[test]
fn a_child_is_listed_after_its_elder_whatever_lies_below() {
    let mut tree = tree();
    run(&mut tree, &Quota::default(), "+/a +/a/x +/a/x/y +/a/x-1 +/a/z +/a-b +/b");
    let names = |at: &str, after: Option<&str>| {
        let (at, after) = (Path::new(at).unwrap(), after.map(|a| Path::new(a).unwrap()));
        tree.children(&at, after.as_ref()).map(|(path, _)| path.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names("/", None), ["/a", "/a-b", "/b"]);
    assert_eq!(names("/a", None), ["/a/x", "/a/x-1", "/a/z"]);
    assert_eq!(names("/a", Some("/a/x")), ["/a/x-1", "/a/z"]);
    assert_eq!(names("/b", None), [""; 0]);
}

/// Calls of every kind on a few names.
pub(crate) fn any_op() -> impl Strategy<Value = Op> {
    let path = prop::sample::select(vec!["/a", "/b", "/a/x", "/a/y", "/a/x/z", "/q", "/q/n", ""]);
    let path = path.prop_map(|text| Path::new(text).unwrap());
    let value = prop::collection::vec(any::<u8>(), 0..20).prop_map(Bytes::from);
    let modified = prop::option::of((0_u64..40).prop_map(Seq));
    (path, value, modified, 0_u8..10, any::<bool>()).prop_map(
        |(path, value, modified, kind, flag)| match kind {
            0..4 => Op::Create { path, value, ephemeral: flag, sequential: kind == 0 },
            4..6 => Op::Set { path, value, modified },
            6..9 => Op::Delete { path, modified: modified.filter(|_| flag) },
            _ => Op::Check { path, expect: if flag { Expect::Present } else { Expect::Absent } },
        },
    )
}

/// What happens to a subtree.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Apply(Vec<Op>, bool, Option<u8>),
    Begin,
    End(u8),
}

pub(crate) fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    let ops = prop::collection::vec(any_op(), 1..4);
    let step = prop_oneof![
        8 => (ops, any::<bool>(), prop::option::of(0_u8..6))
            .prop_map(|(ops, own, op)| Step::Apply(ops, own, op)),
        1 => Just(Step::Begin),
        1 => any::<u8>().prop_map(Step::End),
    ];
    prop::collection::vec(step, 1..60)
}

/// Carries a step out on `tree`; the commit, if there is one.
pub(crate) fn take(tree: &mut Tree, step: &Step) -> Option<Commit> {
    let ids: Vec<SessionId> = tree.sessions().map(|(id, _)| id).collect();
    let decided = match step {
        Step::Apply(ops, own, op) => {
            let session = ids.first().copied().filter(|_| *own);
            let txn = Txn { ops: ops.clone(), session, op: op.map(|op| OpId(op.into())) };
            transact(tree, &Quota { nodes_max: 6, bytes_max: 600 }, &txn)
        }
        Step::Begin => begin(tree, 1000, None),
        Step::End(n) if ids.is_empty() => end(tree, SessionId(u64::from(*n))),
        Step::End(n) => end(tree, ids[usize::from(*n) % ids.len()]),
    };
    match decided {
        Ok(Decision::Log(commit)) => Some(commit),
        _ => None,
    }
}

proptest! {
    #[test]
    fn a_replay_of_what_was_decided_ends_in_the_same_tree(steps in any_steps()) {
        let (mut decided, mut replayed) = (tree(), tree());
        for step in &steps {
            let Some(commit) = take(&mut decided, step) else {
                prop_assert_eq!(&decided, &replayed, "nothing was logged, but something changed");
                continue;
            };
            let bytes = Bytes::from(commit.encode());
            let Ok(Entry::Commit(read)) = Entry::decode(&bytes) else { panic!("reads back") };
            replayed.apply(&read).unwrap();
            prop_assert_eq!(&decided, &replayed);
            let again = replayed.clone().apply(&read);
            prop_assert!(again.is_err(), "a commit is applied once");
        }
    }

    #[test]
    fn counts_are_what_the_nodes_come_to(steps in any_steps()) {
        let mut tree = tree();
        steps.iter().for_each(|step| _ = take(&mut tree, step));
        let mut bytes = 0;
        for (path, node) in tree.nodes() {
            let beside = if path.is_root() { 0 } else { 64 };
            bytes += beside + path.as_str().len() as u64 + node.value.len() as u64;
            prop_assert_eq!(tree.children(path, None).count() as u32, node.children);
            if let Some(parent) = path.parent() {
                prop_assert!(tree.get(&parent).is_some(), "{} is an orphan", path);
            }
            if let Some(owner) = node.owner {
                prop_assert!(tree.session(owner).unwrap().nodes.contains(path));
            }
        }
        prop_assert_eq!(tree.bytes(), bytes);
        let owned: usize = tree.sessions().map(|(_, session)| session.nodes.len()).sum();
        prop_assert_eq!(owned, tree.nodes().filter(|(_, node)| node.owner.is_some()).count());
    }
}
