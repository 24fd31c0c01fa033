//! What a client may ask, as the ledger notes it.

use serde_json::{Value, json};

/// A mark as sent. It always carries its time: an outcome that hangs on the
/// server's clock could not be foretold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Whose.
    pub user: String,
    /// Of which kind.
    pub kind: String,
    /// Which object.
    pub id: String,
    /// Which part.
    pub part: Option<String>,
    /// How far.
    pub position_ms: Option<u64>,
    /// Of how much.
    pub duration_ms: Option<u64>,
    /// When.
    pub event_ms: i64,
    /// Where.
    pub device: Option<String>,
    /// Declared finished.
    pub finished: bool,
    /// Its name, for retries.
    pub event_id: Option<String>,
}

impl Mark {
    fn json(&self, with_user: bool) -> Value {
        let mut value = json!({"kind": self.kind, "id": self.id, "event_ms": self.event_ms});
        let mut set = |name: &str, field: Option<Value>| {
            if let Some(field) = field {
                value[name] = field;
            }
        };
        set("user", with_user.then(|| json!(self.user)));
        set("part", self.part.as_ref().map(|v| json!(v)));
        set("position_ms", self.position_ms.map(|v| json!(v)));
        set("duration_ms", self.duration_ms.map(|v| json!(v)));
        set("device", self.device.as_ref().map(|v| json!(v)));
        set("finished", self.finished.then_some(Value::Bool(true)));
        set("event_id", self.event_id.as_ref().map(|v| json!(v)));
        value
    }
}

/// Which rows a clear takes. At least one condition stands, or `all` does.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Clear {
    /// Of this kind.
    pub kind: Option<String>,
    /// Of this id.
    pub id: Option<String>,
    /// At or after.
    pub after_ms: Option<i64>,
    /// Before.
    pub before_ms: Option<i64>,
    /// Finished alone.
    pub finished: bool,
}

impl Clear {
    fn query(&self) -> String {
        let mut parts = Vec::new();
        parts.extend(self.kind.iter().map(|v| format!("kind={v}")));
        parts.extend(self.id.iter().map(|v| format!("id={v}")));
        parts.extend(self.after_ms.map(|v| format!("after_ms={v}")));
        parts.extend(self.before_ms.map(|v| format!("before_ms={v}")));
        if self.finished {
            parts.push("finished=true".into());
        }
        if parts.is_empty() {
            parts.push("all=true".into());
        }
        parts.join("&")
    }

    /// Whether an event lies in it.
    pub fn covers(&self, kind: &str, id: &str, event_ms: i64) -> bool {
        self.kind.as_ref().is_none_or(|v| v == kind)
            && self.id.as_ref().is_none_or(|v| v == id)
            && self.after_ms.is_none_or(|v| v <= event_ms)
            && self.before_ms.is_none_or(|v| event_ms < v)
    }
}

/// By which call marks go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// One mark as an object.
    One,
    /// An array of one user's.
    Array,
    /// Many users at once.
    Batch,
    /// Kept offline: no reward.
    Merge,
}

/// One request that changes something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Marks.
    Write {
        /// In order.
        marks: Vec<Mark>,
        /// By which call.
        way: Way,
        /// Answered before it is durable.
        fast: bool,
    },
    /// Deletes of single rows, sent at `at_ms`.
    Delete {
        /// Whose.
        user: String,
        /// Kinds and ids, each once. One alone goes by path.
        keys: Vec<(String, String)>,
        /// The client's clock.
        at_ms: i64,
    },
    /// A clear, sent at `at_ms`.
    Clear {
        /// Whose.
        user: String,
        /// Of what.
        filter: Clear,
        /// The client's clock.
        at_ms: i64,
    },
    /// Recording on or off, sent at `at_ms`.
    Switch {
        /// Whose.
        user: String,
        /// On?
        on: bool,
        /// The client's clock.
        at_ms: i64,
    },
    /// Erase everything, sent at `at_ms`.
    Erase {
        /// Whom.
        user: String,
        /// The client's clock.
        at_ms: i64,
    },
}

/// One thing that happens to one user, whole or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A mark; the flag says whether it can be a first of the day.
    Mark(Mark, bool),
    /// A delete of one row.
    Delete(String, String, i64),
    /// A clear.
    Clear(Clear, i64),
    /// A switch.
    Switch(bool, i64),
    /// An erase.
    Erase(i64),
}

/// A request ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// GET, POST, PUT, DELETE.
    pub method: &'static str,
    /// Path and query.
    pub path: String,
    /// JSON, where there is a body.
    pub body: Option<String>,
}

impl Op {
    /// What happens to whom, in order.
    pub fn steps(&self) -> Vec<(String, Step)> {
        match self {
            Self::Write { marks, way, .. } => {
                let rewarded = *way != Way::Merge;
                let step = |mark: &Mark| (mark.user.clone(), Step::Mark(mark.clone(), rewarded));
                marks.iter().map(step).collect()
            }
            Self::Delete { user, keys, at_ms } => keys
                .iter()
                .map(|(kind, id)| (user.clone(), Step::Delete(kind.clone(), id.clone(), *at_ms)))
                .collect(),
            Self::Clear { user, filter, at_ms } => {
                vec![(user.clone(), Step::Clear(filter.clone(), *at_ms))]
            }
            Self::Switch { user, on, at_ms } => vec![(user.clone(), Step::Switch(*on, *at_ms))],
            Self::Erase { user, at_ms } => vec![(user.clone(), Step::Erase(*at_ms))],
        }
    }

    /// Whether it may be lost although it was answered.
    pub fn is_fast(&self) -> bool {
        matches!(self, Self::Write { fast: true, .. })
    }

    /// Whether sending it again is safe by the retry rule: every mark has a
    /// name of its own.
    pub fn can_be_retried(&self) -> bool {
        let Self::Write { marks, .. } = self else { return false };
        marks.iter().all(|mark| mark.event_id.is_some())
    }

    /// The call.
    pub fn request(&self) -> Request {
        let post = |path: String, body: Value| Request {
            method: "POST",
            path,
            body: Some(body.to_string()),
        };
        let delete = |path: String| Request { method: "DELETE", path, body: None };
        match self {
            Self::Write { marks, way, fast } => {
                let all = |with_user| marks.iter().map(|m| m.json(with_user)).collect::<Vec<_>>();
                let user = &marks[0].user;
                let ack = if *fast { "?ack=fast" } else { "" };
                match way {
                    Way::One => {
                        post(format!("/v1/users/{user}/history{ack}"), marks[0].json(false))
                    }
                    Way::Array => post(format!("/v1/users/{user}/history{ack}"), json!(all(false))),
                    Way::Merge => {
                        post(format!("/v1/users/{user}/history:merge"), json!(all(false)))
                    }
                    Way::Batch => {
                        post(format!("/v1/history:batch{ack}"), json!({"marks": all(true)}))
                    }
                }
            }
            Self::Delete { user, keys, .. } => match &keys[..] {
                [(kind, id)] => delete(format!("/v1/users/{user}/history/{kind}/{id}")),
                keys => {
                    let key = |(kind, id): &(String, String)| json!({"kind": kind, "id": id});
                    let keys: Vec<_> = keys.iter().map(key).collect();
                    post(format!("/v1/users/{user}/history:delete"), json!({"keys": keys}))
                }
            },
            Self::Clear { user, filter, .. } => {
                delete(format!("/v1/users/{user}/history?{}", filter.query()))
            }
            Self::Switch { user, on, .. } => Request {
                method: "PUT",
                path: format!("/v1/users/{user}/history/settings"),
                body: Some(json!({"recording": on}).to_string()),
            },
            Self::Erase { user, .. } => delete(format!("/v1/users/{user}")),
        }
    }
}
