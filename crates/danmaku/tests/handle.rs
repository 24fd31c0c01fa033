//! The handle over engines in memory, with its threads.

#![allow(clippy::unwrap_used, reason = "a test ends where it is wrong")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tideline_danmaku::ask::{Action, Changes, ImportItem, Refusal};
use tideline_danmaku::comment::{Actor, Draft, NotAdmitted, Role, State};
use tideline_danmaku::erase;
use tideline_danmaku::segment::{Format, Patched};
use tideline_danmaku::video::Event;
use tideline_danmaku::{AUDIT, CommentId, Danmaku, FLAGS, Options, TOPIC};
use tideline_queue::{Fetched, From, OwnedRecord, Queue};
use tideline_store::mem::{MemJournal, MemTable};
use tideline_store::{ManualClock, ReadLimits};
use tideline_types::{Millis, PartitionId, Position, Seq, TopicName, UserId, partition_of};
use tideline_wire::danmaku::{Item, Mode, Pool};

const START: Millis = Millis(1_796_000_000_000);
const PARTITIONS: u16 = 4;

struct Site {
    journal: Arc<MemJournal>,
    table: Arc<MemTable>,
    clock: Arc<ManualClock>,
    queue: Queue,
    danmaku: Danmaku,
}

impl Site {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::at(START));
        Self::open(Arc::new(MemJournal::new()), Arc::new(MemTable::new()), clock)
    }

    fn with(options: Options) -> Self {
        let clock = Arc::new(ManualClock::at(START));
        Self::open_with(Arc::new(MemJournal::new()), Arc::new(MemTable::new()), clock, options)
    }

    fn open(journal: Arc<MemJournal>, table: Arc<MemTable>, clock: Arc<ManualClock>) -> Self {
        let options = Options { limit: Some(100), ..Options::default() };
        Self::open_with(journal, table, clock, options)
    }

    fn open_with(
        journal: Arc<MemJournal>,
        table: Arc<MemTable>,
        clock: Arc<ManualClock>,
        options: Options,
    ) -> Self {
        let (j, t, c) = (journal.clone(), table.clone(), clock.clone());
        let queue = Queue::open(j, t.clone(), c.clone(), tideline_queue::Options::default());
        let queue = queue.unwrap();
        let danmaku = Danmaku::open(queue.clone(), t, c, options, PARTITIONS).unwrap();
        Self { journal, table, clock, queue, danmaku }
    }

    fn reopen(self) -> Self {
        self.danmaku.close(Duration::from_secs(5));
        Self::open(self.journal, self.table, self.clock)
    }

    /// Stops as by a kill: of the table's unsynced commits `keep` remain.
    fn crash(self, keep: usize) -> Self {
        let table = Arc::new(self.table.crash(|_, _, unsynced| keep.min(unsynced)));
        let (journal, clock) = (self.journal.clone(), self.clock.clone());
        std::mem::forget(self);
        Self::open(journal, table, clock)
    }

    async fn post(&self, video: &str, name: &str, text: &str) -> Result<CommentId, Refusal> {
        self.clock.advance(1);
        let posted = self.danmaku.post(video, draft(text), actor(name, Role::Viewer)).await?;
        Ok(posted.comment.id)
    }

    async fn texts(&self, video: &str) -> Vec<String> {
        let all = self.danmaku.all(video).await.unwrap();
        all.items.iter().map(|c| c.content.text.to_string()).collect()
    }

    async fn until_at_rest(&self) {
        let dirty = |danmaku: &Danmaku| {
            danmaku.stats().iter().any(|(_, stats)| stats.dirty_videos > 0 || stats.lag > 0)
        };
        while dirty(&self.danmaku) {
            self.clock.advance(1000);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

fn actor(name: &str, role: Role) -> Actor {
    Actor { user: UserId::new(name).unwrap(), role }
}

fn draft(text: &str) -> Draft {
    Draft {
        text: text.into(),
        progress_ms: 1000,
        mode: Mode::Scroll,
        size: 25,
        color: 0x00ff_ffff,
        pool: Pool::Normal,
        client_id: None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_is_there_after_a_stop_and_after_a_kill() {
    let site = Site::new();
    for n in 0..150 {
        site.post("v", "ann", &format!("{n}")).await.unwrap();
    }
    let gone = site.post("v", "bob", "gone").await.unwrap();
    site.danmaku.recall("v", gone, actor("bob", Role::Viewer)).await.unwrap();
    let before = site.texts("v").await;
    assert_eq!((before.len(), before[99].as_str()), (100, "149"));
    let mut site = site.reopen();
    assert_eq!(site.texts("v").await, before);
    for keep in 0..3 {
        site.post("v", "ann", &format!("more {keep}")).await.unwrap();
        let before = site.texts("v").await;
        site.clock.advance(400_000);
        site = site.crash(keep);
        assert_eq!(site.texts("v").await, before);
        let gone = site.danmaku.find("v", gone).await.unwrap().unwrap();
        assert_eq!(gone.index.state, State::Recalled, "a deleted one is never back");
    }
    site.until_at_rest().await;
    let view = site.danmaku.view("v").await.unwrap();
    assert_eq!((view.total, view.counted), (154, 100));
    site.danmaku.close(Duration::from_secs(5));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_posts_at_once_are_each_one_comment() {
    let site = Arc::new(Site::new());
    let posts = (0..200).map(|n| {
        let site = Arc::clone(&site);
        tokio::spawn(async move {
            let draft = Draft { client_id: Some(format!("c{}", n % 100)), ..draft("hi") };
            let user = format!("u{}", n % 10);
            site.danmaku.post(&format!("v{}", n % 5), draft, actor(&user, Role::Viewer)).await
        })
    });
    let mut again = 0;
    for post in posts.collect::<Vec<_>>() {
        again += u32::from(post.await.unwrap().unwrap().again);
    }
    assert_eq!(again, 100, "each was posted twice");
    let mut total = 0;
    for n in 0..5 {
        total += site.danmaku.view(&format!("v{n}")).await.unwrap().total;
    }
    assert_eq!(total, 100);
    site.danmaku.close(Duration::ZERO);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_and_a_body_together_show_every_comment_once() {
    let site = Site::new();
    site.post("v", "ann", "first").await.unwrap();
    let mut watch = site.danmaku.watch("v");
    let snapshot = site.danmaku.segment("v", 1).await.unwrap().unwrap();
    let bodies = site.danmaku.bodies("v");
    let mut body = bodies.build(Format::Xml, &snapshot);
    let id = site.post("v", "bob", "second").await.unwrap();
    site.danmaku.moderate("v", id, Action::Hide, actor("o", Role::Owner)).await.unwrap();
    site.post("v", "bob", "third").await.unwrap();
    let mut heard = Vec::new();
    let hear = async {
        while body.seq() < site.danmaku.view("v").await.unwrap().seq {
            watch.changed().await.unwrap();
            let changes = site.danmaku.changes_since("v", body.seq()).await.unwrap();
            let Changes::Range { through, events, .. } = changes else { panic!() };
            let changed = bodies.patch(&mut body, through, &events) == Patched::Changed;
            assert_eq!(changed, !events.is_empty());
            heard.extend(events);
        }
    };
    tokio::time::timeout(Duration::from_secs(30), hear).await.unwrap();
    assert_eq!(heard.len(), 3);
    let anew = site.danmaku.segment("v", 1).await.unwrap().unwrap();
    assert_eq!(body.bytes(), bodies.build(Format::Xml, &anew).bytes());
    assert!(matches!(&heard[2].1, Event::Shown(c) if &*c.content.text == "third"));
    site.danmaku.close(Duration::ZERO);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn senders_leave_as_a_hash_of_the_video_alone() {
    let site = Site::new();
    for video in ["v", "w"] {
        site.post(video, "ann-secret-id", "hello").await.unwrap();
    }
    let mut senders = Vec::new();
    for video in ["v", "w"] {
        let all = site.danmaku.all(video).await.unwrap();
        senders.push(site.danmaku.item(video, &all.items[0]).sender);
        for format in [Format::Xml, Format::Proto, Format::Json] {
            let body = site.danmaku.bodies(video).build(format, &all);
            let text = String::from_utf8_lossy(body.bytes()).into_owned();
            assert!(text.contains("hello") && !text.contains("secret"), "{text}");
        }
    }
    assert_ne!(senders[0], senders[1]);
    site.danmaku.close(Duration::ZERO);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erased_user_is_gone_from_every_video_and_stays_gone() {
    let site = Site::new();
    for video in ["a", "b", "c"] {
        site.post(video, "ann", "hers").await.unwrap();
        site.post(video, "bob", "his").await.unwrap();
    }
    site.until_at_rest().await;
    site.post("d", "ann", "hers, not at rest").await.unwrap();
    let ann = UserId::new("ann").unwrap();
    site.danmaku.set_scores(&ann, vec![("a".into(), 1, "blob".into())]).await.unwrap();
    assert_eq!(site.danmaku.scores(&ann, "a", 1).await, Ok(Some("blob".into())));
    assert_eq!(site.danmaku.erase(&ann).await, Ok(4));
    assert_eq!(site.danmaku.erase(&ann).await, Ok(0));
    let site = site.crash(1);
    assert_eq!(site.danmaku.scores(&ann, "a", 1).await, Ok(None));
    for video in ["a", "b", "c", "d"] {
        assert!(site.danmaku.own(video, &ann, None, 10).await.unwrap().is_empty());
        assert!(!site.texts(video).await.iter().any(|text| text.starts_with("hers")));
    }
    site.danmaku.close(Duration::ZERO);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_site_refuses_what_its_filters_say_and_an_import_what_is_too_much() {
    let site = Site::new();
    let list = r#"[{"type":1,"filter":"^spam"},{"type":2,"filter":"eve"}]"#;
    let moderator = || actor("mod", Role::Moderator);
    site.danmaku.set_site_filters(list.into(), moderator()).await.unwrap();
    assert!(site.danmaku.set_site_filters("[7]".into(), moderator()).await.is_err());
    let site = site.crash(0);
    assert_eq!(site.post("v", "ann", "spam!").await, Err(Refusal::Forbidden));
    assert_eq!(site.post("v", "eve", "hi").await, Err(Refusal::Forbidden));
    assert!(site.post("v", "ann", "no spam").await.is_ok());
    let item = ImportItem { item: Item { text: "a".into(), ..Item::default() }, nth: 0 };
    let owner = || actor("o", Role::Owner);
    let many = site.danmaku.import("v", vec![item.clone(); 1001], owner()).await;
    assert!(matches!(many, Err(Refusal::TooMany { .. })));
    assert_eq!(site.danmaku.import("v", vec![item], owner()).await.unwrap().taken, 1);
    assert_eq!(site.post("", "ann", "a").await, Err(Refusal::BadVideo));
    assert_eq!(site.post(&"v".repeat(65), "ann", "a").await, Err(Refusal::BadVideo));
    site.danmaku.set_site_filters("[]".into(), moderator()).await.unwrap();
    assert!(site.post("v", "eve", "spam!").await.is_ok());
    site.danmaku.close(Duration::ZERO);
    assert!(matches!(site.post("v", "ann", "late").await, Err(Refusal::Overloaded(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_derived_topic_tells_moderation_and_changes_tell_the_rest() {
    let site = Site::new();
    let id = site.post("v", "ann", "bad").await.unwrap();
    let since = site.danmaku.view("v").await.unwrap().seq;
    site.danmaku.moderate("v", id, Action::Block, actor("mod", Role::Moderator)).await.unwrap();
    let Changes::Range { events, .. } = site.danmaku.changes_since("v", since).await.unwrap()
    else {
        panic!()
    };
    assert_eq!(events.len(), 1);
    let partition = partition_of(b"v", PARTITIONS);
    let limits = ReadLimits { records_max: 100, bytes_max: 1 << 20 };
    let fetch = |topic: &str| {
        let topic = TopicName::new(topic).unwrap();
        let queue = site.queue.clone();
        async move {
            let fetched = queue.fetch(&topic, partition, From::Earliest, limits, Duration::ZERO);
            fetched.await.unwrap().records
        }
    };
    assert_eq!(fetch(TOPIC).await.len(), 2);
    let audit = fetch(AUDIT).await;
    assert_eq!(audit.len(), 1);
    let line = std::str::from_utf8(&audit[0].value).unwrap();
    assert!(line.contains(r#""actor":"mod","role":"moderator""#), "{line}");
    site.danmaku.close(Duration::ZERO);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_file_holds_a_byte_of_an_erased_user_after_the_time_for_it() {
    let site = Site::new();
    site.post("v", "annabel", "her secret").await.unwrap();
    site.post("v", "bob", "his own").await.unwrap();
    let annabel = UserId::new("annabel").unwrap();
    assert_eq!(site.danmaku.erase(&annabel).await, Ok(1));
    site.until_at_rest().await;
    let topic = TopicName::new(TOPIC).unwrap();
    let partition = partition_of(b"v", PARTITIONS);
    let log = || {
        let limits = ReadLimits { records_max: 1000, bytes_max: 1 << 20 };
        let read = site.queue.read(&topic, partition, Seq(1), limits).unwrap();
        read.iter().flat_map(|batch| batch.to_vec()).collect::<Vec<u8>>()
    };
    let holds = |bytes: &[u8], word: &[u8]| bytes.windows(word.len()).any(|w| w == word);
    assert!(holds(&log(), b"secret"));
    site.clock.advance(13 * 3_600_000);
    while !erase::erasing(&*site.table).unwrap().is_empty() {
        site.clock.advance(3000);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let log = log();
    assert!(!holds(&log, b"secret") && !holds(&log, b"annabel"));
    assert!(holds(&log, b"his own"), "and others' records stay");
    site.danmaku.close(Duration::from_secs(5));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_who_posted_enough_today_waits_for_tomorrow_and_an_erase_is_none_the_wiser() {
    let site = Site::with(Options { sender_per_day: 2, ..Options::default() });
    for video in ["v", "w"] {
        site.post(video, "ann", "hello").await.unwrap();
    }
    assert_eq!(site.post("v", "ann", "\u{200b}").await, Err(NotAdmitted::Invisible.into()));
    assert!(matches!(site.post("v", "ann", "more").await, Err(Refusal::OverDay { max: 2, .. })));
    site.post("v", "bob", "hello").await.unwrap();
    let owner = actor("ann", Role::Owner);
    site.danmaku.post("v", draft("as the owner"), owner).await.unwrap();
    assert_eq!(site.danmaku.erase(&UserId::new("ann").unwrap()).await, Ok(3));
    site.clock.advance(86_400_000);
    site.post("v", "ann", "a new day").await.unwrap();
    site.danmaku.close(Duration::ZERO);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_audit_tells_is_undone_by_its_place_and_so_is_the_undoing() {
    let site = Site::new();
    let id = site.post("v", "ann", "hm").await.unwrap();
    let owner = || actor("o", Role::Owner);
    let blocked = site.danmaku.moderate("v", id, Action::Block, owner()).await.unwrap();
    let again = site.danmaku.moderate("v", id, Action::Block, owner()).await.unwrap();
    assert_eq!(again.seq, None, "nothing was done");
    site.danmaku.set_filters("v", r#"[{"type":0,"filter":"a"}]"#.into(), owner()).await.unwrap();
    site.danmaku.set_filters("v", "[]".into(), owner()).await.unwrap();
    let topic = TopicName::new(AUDIT).unwrap();
    let records = async |name: &str| {
        let partition = partition_of(name.as_bytes(), PARTITIONS);
        let limits = ReadLimits { records_max: 100, bytes_max: 1 << 20 };
        let queue = &site.queue;
        let told = queue.fetch(&topic, partition, From::Earliest, limits, Duration::ZERO).await;
        let Fetched { incarnation, epoch, records, .. } = told.unwrap();
        let place = |record: &OwnedRecord| Position { incarnation, epoch, seq: record.seq };
        (partition, records.iter().map(place).collect::<Vec<_>>())
    };
    let undo = async |name: &str, nth: usize| {
        let (partition, places) = records(name).await;
        let audited = site.danmaku.audited(partition, places[nth]).await.unwrap().unwrap();
        assert_eq!(audited.video(), Some(name));
        site.danmaku.undo(audited, owner()).await
    };
    assert!(site.texts("v").await.is_empty());
    let (partition, places) = records("v").await;
    let told = site.danmaku.place_of("v", blocked.seq.unwrap());
    assert_eq!(told, (partition, places[0]), "the place is told with the answer");
    undo("v", 0).await.unwrap();
    assert_eq!(site.texts("v").await, ["hm"]);
    assert!(matches!(undo("v", 0).await, Err(Refusal::Conflict(_))), "it stands no more");
    undo("v", 3).await.unwrap();
    assert!(site.texts("v").await.is_empty(), "blocked again");
    assert_eq!(site.danmaku.view("v").await.unwrap().filters.as_deref(), Some("[]"));
    undo("v", 2).await.unwrap();
    let filters = site.danmaku.view("v").await.unwrap().filters;
    assert_eq!(filters.as_deref(), Some(r#"[{"filter":"a","opened":true,"type":0}]"#));
    let (partition, places) = records("v").await;
    let before = Position { seq: places[0].seq.prev(), ..places[0] };
    assert!(site.danmaku.audited(partition, before).await.unwrap().is_none(), "that is a post");
    site.danmaku.close(Duration::ZERO);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scores_of_the_topic_are_there_soon_and_not_for_one_who_was_erased() {
    let site = Site::new();
    let topic = TopicName::new(FLAGS).unwrap();
    let record = |user: &str, flag: u8| {
        let flags = format!(r#"{{"default":5,"flags":[["1",{flag}]]}}"#);
        let line = format!(r#"{{"user":"{user}","video":"v","segment":1,"flags":{flags}}}"#);
        ((Bytes::from(user.to_owned()), Bytes::from(line)), Bytes::from(flags))
    };
    let produce = async |records: Vec<(Bytes, Bytes)>| {
        site.queue.produce(&topic, Some(PartitionId(0)), records).await.unwrap();
    };
    let (ann, bob) = (UserId::new("ann").unwrap(), UserId::new("bob").unwrap());
    let until = async |user: &UserId, want: Option<Bytes>| {
        let reached = async {
            while site.danmaku.scores(user, "v", 1).await.unwrap() != want {
                site.clock.advance(50);
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), reached).await.unwrap();
    };
    let odd = (Bytes::from("x"), Bytes::from("{}"));
    let ((first, one), (second, two)) = (record("ann", 1), record("bob", 2));
    produce(vec![odd, first, second]).await;
    until(&ann, Some(one)).await;
    until(&bob, Some(two)).await;
    site.danmaku.erase(&ann).await.unwrap();
    assert_eq!(site.danmaku.scores(&ann, "v", 1).await, Ok(None));
    // Written before the erase was, by a clock that stands still.
    let ((late, _), (more, three)) = (record("ann", 3), record("bob", 3));
    produce(vec![late]).await;
    produce(vec![more]).await;
    until(&bob, Some(three)).await;
    let limits = ReadLimits { records_max: 1000, bytes_max: 1 << 20 };
    let holds = |word: &[u8]| {
        (0..PARTITIONS).any(|at| {
            let read = site.queue.read(&topic, PartitionId(at), Seq(1), limits).unwrap_or_default();
            read.iter().any(|batch| batch.windows(word.len()).any(|w| w == word))
        })
    };
    assert!(holds(b"ann") && holds(b"bob"));
    site.clock.advance(13 * 3_600_000);
    let emptied = async {
        while !erase::erasing(&*site.table).unwrap().is_empty() {
            site.clock.advance(3000);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), emptied).await.unwrap();
    assert!(!holds(b"ann") && holds(b"bob"));
    assert_eq!(site.danmaku.scores(&ann, "v", 1).await, Ok(None));
    site.danmaku.close(Duration::from_secs(5));
}
