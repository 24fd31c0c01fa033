//! What retention frees.

use std::sync::Arc;

use std::time::Duration;

use tideline_queue::{Options, TopicSpec};
use tideline_store::Clock;
use tideline_store::mem::MemJournal;
use tideline_types::Seq;

use crate::{House, P0, name};

#[tokio::test]
async fn old_records_go_and_young_ones_stay() {
    let house = House::new();
    let mut spec = TopicSpec::new(name("chat"));
    spec.retention = Some(Duration::from_secs(60));
    let topic = house.queue.create_topic(spec).unwrap().name;
    house.say(&topic, &["old"]).await;
    house.clock.advance(50_000);
    house.say(&topic, &["young"]).await;
    house.clock.advance(20_000);
    house.queue.run_retention(house.clock.now()).unwrap();
    assert_eq!(house.queue.topic(&topic).unwrap().bounds[0].start, Seq(2));
}

#[tokio::test]
async fn nothing_goes_that_a_durable_view_has_not_applied() {
    let options = Options { log_bytes_target: 1, ..Options::default() };
    let house = House::over(Arc::new(MemJournal::new()), Arc::default(), options);
    let mut spec = TopicSpec::new(name("chat"));
    spec.durable_view = true;
    let topic = house.queue.create_topic(spec).unwrap().name;
    for value in ["a", "b", "c"] {
        house.say(&topic, &[value]).await;
    }
    let start = || house.queue.topic(&topic).unwrap().bounds[0].start;
    house.clock.advance(365 * 86_400_000);
    house.queue.run_retention(house.clock.now()).unwrap();
    assert_eq!(start(), Seq(1));
    house.queue.trim_allowed(&topic, P0, Seq(2)).unwrap();
    house.queue.run_retention(house.clock.now()).unwrap();
    assert_eq!(start(), Seq(3));
}

#[tokio::test]
async fn nothing_goes_while_someone_holds_still_and_all_goes_after() {
    let house = House::new();
    let topic = house.topic("chat", 1);
    house.say(&topic, &["old"]).await;
    house.clock.advance(365 * 86_400_000);
    house.say(&topic, &["young"]).await;
    let start = || house.queue.topic(&topic).unwrap().bounds[0].start;
    let still = house.queue.hold_still();
    house.queue.run_retention(house.clock.now()).unwrap();
    assert_eq!(house.queue.trim(&topic, P0, Seq(1)).unwrap(), Seq(1));
    assert_eq!(start(), Seq(1));
    drop(still);
    house.queue.run_retention(house.clock.now()).unwrap();
    assert_eq!(start(), Seq(2));
}
