//! Lays a file, the environment and flags over the defaults.
//!
//! A later layer wins key by key. A key that the defaults do not have is
//! refused with the nearest one they have; two tables take names of the
//! caller's choosing, and each of their entries starts from a template.

use std::path::PathBuf;

use toml::{Table, Value};

use super::nearest::nearest;
use super::{Config, DEFAULT_TEXT};

/// Tables whose entries are named by the user, and what an entry starts from.
const OPEN_TABLES: [(&str, &str); 3] = [
    ("limits.methods", "user_per_second = 0\ncaller_per_second = 0\nmethod_per_second = 0\n"),
    (
        "history.kinds",
        "retention_days = 90\nmax_records = 1000\nmax_per_day = 0\ndeclared = true\n",
    ),
    (
        "catalogue.sources",
        "url = \"\"\ntoken_file = \"\"\nbatch_max = 200\nin_flight_max = 4\ntimeout_ms = 2000\n\
         ttl_seconds = 600\nnegative_ttl_seconds = 60\n",
    ),
];

/// What every name of an environment variable of ours starts with.
const ENV_PREFIX: &str = "TIDELINE__";

/// Why a configuration cannot be used. Names where it stands and the key.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{path}: {cause}")]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        cause: String,
    },
    /// The file is no TOML.
    #[error("{origin}: {message}")]
    Syntax {
        /// Which layer.
        origin: String,
        /// What the parser said, with the place.
        message: String,
    },
    /// No such key.
    #[error("{origin}: unknown key `{key}`; the nearest known one is `{nearest}`")]
    UnknownKey {
        /// Which layer.
        origin: String,
        /// The key as given, dotted.
        key: String,
        /// The most similar key there is.
        nearest: String,
    },
    /// A value of another type than the default's.
    #[error("{origin}: `{key}` must be {expected}, not {found}")]
    WrongType {
        /// Which layer.
        origin: String,
        /// The key, dotted.
        key: String,
        /// The type that is due.
        expected: &'static str,
        /// What was given.
        found: String,
    },
    /// The right type, but not a value that can be used.
    #[error("`{key}`: {why}")]
    BadValue {
        /// The key, dotted.
        key: String,
        /// What would be right.
        why: String,
    },
}

/// The layers over the defaults, lowest first.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// A TOML file.
    pub file: Option<PathBuf>,
    /// Environment variables; those that do not start with `TIDELINE__` are
    /// not looked at.
    pub env: Vec<(String, String)>,
    /// (key, value, the flag's name) of the command line.
    pub flags: Vec<(String, String, String)>,
}

/// The configuration in force.
pub fn load(sources: &Sources) -> Result<Config, ConfigError> {
    typed(merged(sources)?)
}

/// The defaults with `text` over them, as a file named `origin` would be.
pub fn parse(text: &str, origin: &str) -> Result<Config, ConfigError> {
    let mut base: Table = DEFAULT_TEXT.parse().expect("a test parses the default text");
    overlay(&mut base, table_of(text, origin)?, "", origin)?;
    typed(base)
}

fn typed(table: Table) -> Result<Config, ConfigError> {
    Value::Table(table).try_into().map_err(|e: toml::de::Error| ConfigError::Syntax {
        origin: "configuration".into(),
        message: e.to_string().trim_end().replace('\n', " "),
    })
}

/// The same as a table, before it is given types.
pub fn merged(sources: &Sources) -> Result<Table, ConfigError> {
    let mut base: Table = DEFAULT_TEXT.parse().expect("a test parses the default text");
    if let Some(path) = &sources.file {
        let origin = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|e| ConfigError::Read { path: path.into(), cause: e.to_string() })?;
        overlay(&mut base, table_of(&text, &origin)?, "", &origin)?;
    }
    let mut env: Vec<_> = sources.env.iter().collect();
    env.sort();
    for (name, value) in env {
        let Some(rest) = name.strip_prefix(ENV_PREFIX) else { continue };
        let key = rest.to_ascii_lowercase().replace("__", ".");
        set(&mut base, &key, value, name)?;
    }
    for (key, value, flag) in &sources.flags {
        set(&mut base, key, value, flag)?;
    }
    Ok(base)
}

fn table_of(text: &str, origin: &str) -> Result<Table, ConfigError> {
    text.parse().map_err(|e: toml::de::Error| ConfigError::Syntax {
        origin: origin.into(),
        message: e.to_string().trim_end().to_owned(),
    })
}

/// Lays `over` on `base`, which stands at `path` ("" is the root).
fn overlay(base: &mut Table, over: Table, path: &str, origin: &str) -> Result<(), ConfigError> {
    for (name, value) in over {
        let key = join(path, &name);
        let slot = slot(base, path, &name).ok_or_else(|| unknown(&key, origin))?;
        match (slot, value) {
            (Value::Table(inner), Value::Table(over)) => overlay(inner, over, &key, origin)?,
            (slot, value) => {
                if kind_of(slot) != kind_of(&value) {
                    return Err(ConfigError::WrongType {
                        origin: origin.into(),
                        key,
                        expected: kind_of(slot),
                        found: kind_of(&value).into(),
                    });
                }
                *slot = value;
            }
        }
    }
    Ok(())
}

/// Sets the dotted `key` to `text`, read as the type that the key has.
fn set(base: &mut Table, key: &str, text: &str, origin: &str) -> Result<(), ConfigError> {
    let (sections, last) = key.rsplit_once('.').unwrap_or(("", key));
    let mut table = base;
    let mut path = String::new();
    for word in sections.split('.').filter(|word| !word.is_empty()) {
        let here = slot(table, &path, word).and_then(Value::as_table_mut);
        table = here.ok_or_else(|| unknown(key, origin))?;
        path = join(&path, word);
    }
    let slot = slot(table, &path, last).filter(|slot| !slot.is_table());
    let slot = slot.ok_or_else(|| unknown(key, origin))?;
    *slot = read_as(slot, text).ok_or_else(|| ConfigError::WrongType {
        origin: origin.into(),
        key: key.into(),
        expected: kind_of(slot),
        found: format!("{text:?}"),
    })?;
    Ok(())
}

/// The value at `name` of the table at `path`, made from a template where the
/// table is an open one.
fn slot<'a>(table: &'a mut Table, path: &str, name: &str) -> Option<&'a mut Value> {
    if !table.contains_key(name) {
        let (_, template) = OPEN_TABLES.iter().find(|(open, _)| *open == path)?;
        let template: Table = template.parse().expect("a test parses the templates");
        table.insert(name.to_owned(), Value::Table(template));
    }
    table.get_mut(name)
}

fn read_as(like: &Value, text: &str) -> Option<Value> {
    Some(match like {
        Value::String(_) => Value::String(text.to_owned()),
        Value::Integer(_) => Value::Integer(text.replace('_', "").parse().ok()?),
        Value::Float(_) => Value::Float(text.parse().ok()?),
        Value::Boolean(_) => Value::Boolean(text.parse().ok()?),
        Value::Array(_) if text.trim_start().starts_with('[') => {
            let table: Table = format!("a = {text}").parse().ok()?;
            table.get("a")?.clone()
        }
        Value::Array(_) => Value::Array(
            text.split(',')
                .map(str::trim)
                .filter(|item| !item.is_empty())
                .map(|item| Value::String(item.to_owned()))
                .collect(),
        ),
        Value::Datetime(_) | Value::Table(_) => return None,
    })
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "a text",
        Value::Integer(_) => "a whole number",
        Value::Float(_) => "a number",
        Value::Boolean(_) => "true or false",
        Value::Datetime(_) => "a date",
        Value::Array(_) => "a list",
        Value::Table(_) => "a table",
    }
}

fn unknown(key: &str, origin: &str) -> ConfigError {
    let base: Table = DEFAULT_TEXT.parse().expect("a test parses the default text");
    let mut known = Vec::new();
    keys(&base, "", &mut known);
    for (open, template) in OPEN_TABLES {
        let template: Table = template.parse().expect("a test parses the templates");
        // The entry's own name, where the unknown key lies in one.
        let name = key.strip_prefix(open).and_then(|rest| rest.split('.').nth(1));
        keys(&template, &join(open, name.unwrap_or("<name>")), &mut known);
    }
    let nearest = nearest(key, known.iter().map(String::as_str)).unwrap_or_default().to_owned();
    ConfigError::UnknownKey { origin: origin.into(), key: key.into(), nearest }
}

fn keys(table: &Table, path: &str, known: &mut Vec<String>) {
    for (name, value) in table {
        let key = join(path, name);
        match value {
            Value::Table(inner) => {
                known.push(key.clone());
                keys(inner, &key, known);
            }
            _ => known.push(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(env: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let env = env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        load(&Sources { env, ..Sources::default() })
    }

    fn file(text: &str) -> Result<Config, ConfigError> {
        parse(text, "t.toml")
    }

    #[test]
    fn the_default_text_is_a_whole_configuration() {
        let config = load(&Sources::default()).unwrap();
        assert_eq!(config.server.http, "127.0.0.1:7766");
        assert_eq!(config.queue.partitions, 64);
        assert_eq!(config.history.kinds["shop"].retention_days, 62);
        assert_eq!(config.history.kinds.len(), 8);
    }

    #[test]
    fn every_line_of_the_default_text_that_sets_a_key_is_explained() {
        let mut explained = false;
        let mut section = String::new();
        for line in DEFAULT_TEXT.lines() {
            match line.trim() {
                "" => explained = false,
                text if text.starts_with('#') => explained = true,
                text if text.starts_with('[') => section = text.to_owned(),
                // Kinds after the first mean the same, and say it once.
                _ if section.starts_with("[history.kinds.") => {}
                text => assert!(explained, "{section} {text}"),
            }
        }
    }

    #[test]
    fn the_example_of_a_source_in_the_default_text_is_its_template() {
        let example: String = DEFAULT_TEXT
            .lines()
            .skip_while(|line| !line.starts_with("# [catalogue.sources."))
            .take_while(|line| line.starts_with("# "))
            .map(|line| format!("{}\n", &line[2..]))
            .collect();
        let config = file(&example).unwrap();
        let mut source = config.catalogue.sources["product"].clone();
        assert!(!source.url.is_empty());
        source.url.clear();
        let template: Table = OPEN_TABLES[2].1.parse().unwrap();
        assert_eq!(source, Value::Table(template).try_into().unwrap());
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_nearest_known_one() {
        let told = |result: Result<Config, ConfigError>| result.unwrap_err().to_string();
        assert_eq!(
            told(file("[history]\ntimezome = \"UTC\"")),
            "t.toml: unknown key `history.timezome`; the nearest known one is `history.timezone`"
        );
        assert_eq!(
            told(with(&[("TIDELINE__SERVER__HTPP", "x")])),
            "TIDELINE__SERVER__HTPP: unknown key `server.htpp`; the nearest known one is \
             `server.http`"
        );
        assert_eq!(
            told(file("[history.kinds.song]\nmax_record = 5")),
            "t.toml: unknown key `history.kinds.song.max_record`; the nearest known one is \
             `history.kinds.song.max_records`"
        );
        assert!(told(with(&[("TIDELINE__HISTORY", "x")])).contains("unknown key `history`"));
        assert!(told(with(&[("TIDELINE__DATA__X", "x")])).contains("unknown key `data.x`"));
    }

    #[test]
    fn a_new_kind_starts_from_the_template() {
        let config = file("[history.kinds.song]\nmax_records = 5").unwrap();
        let song = &config.history.kinds["song"];
        assert_eq!((song.retention_days, song.max_records, song.declared), (90, 5, true));
        let config = with(&[("TIDELINE__HISTORY__KINDS__SONG__RETENTION_DAYS", "0")]).unwrap();
        assert_eq!(config.history.kinds["song"].retention_days, 0);
    }

    #[test]
    fn a_later_layer_wins_key_by_key() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.toml");
        std::fs::write(&path, "data = \"f\"\n[server]\nhttp = \"f:1\"\ngrpc = \"f:2\"").unwrap();
        let config = load(&Sources {
            file: Some(path),
            env: vec![
                ("TIDELINE__SERVER__HTTP".into(), "e:1".into()),
                ("TIDELINE__DATA".into(), "e".into()),
                ("TIDELINE_DATA".into(), "not ours".into()),
            ],
            flags: vec![("data".into(), "flag".into(), "--data".into())],
        })
        .unwrap();
        assert_eq!(config.data, PathBuf::from("flag"));
        assert_eq!((&*config.server.http, &*config.server.grpc), ("e:1", "f:2"));
    }

    #[test]
    fn values_are_read_as_the_type_their_key_has() {
        let config = with(&[
            ("TIDELINE__QUEUE__PARTITIONS", "8"),
            ("TIDELINE__HISTORY__HOT_BUDGET_BYTES", "1_000"),
            ("TIDELINE__SERVER__CORS_ORIGINS", "https://a.example, https://b.example"),
            ("TIDELINE__HISTORY__DAILY_FIRST__KINDS", "[\"video\"]"),
            ("TIDELINE__HISTORY__KINDS__SHOP__DECLARED", "false"),
            ("TIDELINE__AUTH__MODE", "none"),
        ])
        .unwrap();
        assert_eq!(config.queue.partitions, 8);
        assert_eq!(config.history.hot_budget_bytes, 1000);
        assert_eq!(config.server.cors_origins.len(), 2);
        assert_eq!(config.history.daily_first.kinds, ["video"]);
        assert!(!config.history.kinds["shop"].declared);
        assert_eq!(config.auth.mode, super::super::AuthMode::None);
        let told = with(&[("TIDELINE__QUEUE__PARTITIONS", "many")]).unwrap_err().to_string();
        assert_eq!(
            told,
            "TIDELINE__QUEUE__PARTITIONS: `queue.partitions` must be a whole number, not \"many\""
        );
        assert!(file("data = 7").unwrap_err().to_string().contains("must be a text"));
        let told = with(&[("TIDELINE__AUTH__MODE", "open")]).unwrap_err().to_string();
        assert!(told.contains("mode") && told.contains("`jwt`"), "{told}");
        let told = file("[queue]\npartitions = -1").unwrap_err().to_string();
        assert!(told.contains("partitions"), "{told}");
    }
}
