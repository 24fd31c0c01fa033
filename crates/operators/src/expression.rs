//! Expressions over one record, in CEL.
//!
//! Refused when they are read: those that walk over a list or a map (`map`,
//! `filter`, `all`, ...), for the order within a map is not the same twice; and
//! longer ones than 1,000 bytes, so that what one makes is bounded. A map after
//! a `+` would be walked over too, to append its keys; only when it runs is it
//! known to be one, and that fails.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, operators};
use cel::common::types::{DYN_TYPE, Kind};
use cel::common::value::CowVal;
use cel::objects::Key;
use cel::{Context, Env, ExecutionError, Program, Value};
use serde_json::Value as Json;

/// Bytes of one expression, at most.
pub(crate) const EXPRESSION_BYTES_MAX: usize = 1_000;
/// Bytes of a value that an expression sees, at most.
pub(crate) const SEEN_BYTES_MAX: usize = 64 << 10;

/// One expression, ready.
pub(crate) struct Expression {
    text: String,
    ready: IdedExpr,
}

/// What expressions see of a record.
pub(crate) struct Scope(Context<'static, 'static>);

impl Scope {
    pub(crate) fn new(key: &str, value: Json, time_ms: i64, seq: u64) -> Self {
        let mut context = Context::with_env(environment());
        context.add_variable_from_value("key", key);
        context.add_variable_from_value("value", value_of(value));
        context.add_variable_from_value("time_ms", Value::Int(time_ms));
        context.add_variable_from_value("seq", Value::UInt(seq));
        Self(context)
    }
}

impl Expression {
    /// Reads an expression; says what is wrong with it.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        if text.len() > EXPRESSION_BYTES_MAX {
            return Err(format!("is over {EXPRESSION_BYTES_MAX} bytes"));
        }
        let program = Program::compile(text).map_err(|error| error.to_string())?;
        let mut ready = program.expression().clone();
        check(&mut ready)?;
        Ok(Self { text: text.to_owned(), ready })
    }

    fn of(&self, scope: &Scope) -> Result<Value, String> {
        scope.0.resolve(&self.ready).map_err(|error| format!("{}: {}", self.text, why(&error)))
    }

    /// The truth of it.
    pub(crate) fn is_true(&self, scope: &Scope) -> Result<bool, String> {
        match self.of(scope)? {
            Value::Bool(is) => Ok(is),
            other => Err(self.not(&other, "true or false")),
        }
    }

    /// A whole number.
    pub(crate) fn number(&self, scope: &Scope) -> Result<i64, String> {
        match self.of(scope)? {
            Value::Int(number) => Ok(number),
            Value::UInt(number) if number <= i64::MAX as u64 => Ok(number as i64),
            other => Err(self.not(&other, "a whole number")),
        }
    }

    /// A key: a text, or a whole number as text.
    pub(crate) fn key(&self, scope: &Scope) -> Result<String, String> {
        match self.of(scope)? {
            Value::String(text) => Ok(text.to_string()),
            Value::Int(number) => Ok(number.to_string()),
            Value::UInt(number) => Ok(number.to_string()),
            other => Err(self.not(&other, "a text or a whole number")),
        }
    }

    /// As JSON.
    pub(crate) fn json(&self, scope: &Scope) -> Result<Json, String> {
        let value = self.of(scope)?;
        json_of(&value).ok_or_else(|| self.not(&value, "a value that JSON has"))
    }

    fn not(&self, is: &Value, wanted: &str) -> String {
        format!("{}: is {}, not {wanted}", self.text, is.type_of())
    }
}

/// What went wrong, in words that are the same on every host. A failure is
/// handed on in its record's place, and how the library shows a map depends on
/// an order that is not the same twice: of a value that could hold one, the type
/// is told.
fn why(error: &ExecutionError) -> String {
    use ExecutionError as E;
    match error {
        E::UnsupportedTargetType { target } => format!("not possible for {}", named(target)),
        E::NotSupportedAsMethod { method, target } => {
            format!("{method} is not possible for {}", named(target))
        }
        E::UnsupportedKeyType(value) => format!("{} cannot be a key", named(value)),
        E::ValuesNotComparable(a, b) => {
            format!("{} cannot be compared to {}", named(a), named(b))
        }
        E::UnsupportedBinaryOperator(operator, a, b) => {
            format!("{operator} is not possible for {} and {}", named(a), named(b))
        }
        E::Overflow(operator, a, b) => {
            format!("{operator} of {} and {} is too large", named(a), named(b))
        }
        E::UnsupportedIndex(value, index) => {
            format!("{} cannot be indexed by {}", named(value), named(index))
        }
        E::DivisionByZero(value) => format!("{} is divided by zero", named(value)),
        E::RemainderByZero(value) => format!("{} has no remainder by zero", named(value)),
        E::IndexOutOfBounds(index) => format!("there is no element {}", named(index)),
        E::DuplicateKey(key) => format!("the key {} is there twice", named(key)),
        E::InvalidArgumentCount { .. }
        | E::UnexpectedType { .. }
        | E::NoSuchKey(_)
        | E::NoSuchOverload(_)
        | E::UndeclaredReference(_)
        | E::MissingArgumentOrTarget
        | E::FunctionError { .. } => error.to_string(),
        // Another one may show a value.
        _ => "cannot be computed".into(),
    }
}

/// A value that is one number or truth as it is, another by its type.
fn named(value: &Value) -> String {
    match value {
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Bool(is) => is.to_string(),
        other => other.type_of().to_string(),
    }
}

/// The functions that expressions have. Laid out once: it takes longer than most
/// expressions.
fn environment() -> Arc<Env> {
    static ENVIRONMENT: OnceLock<Arc<Env>> = OnceLock::new();
    let make = || {
        let mut environment = Env::stdlib();
        environment
            .add_overload(IN_ORDER, IN_ORDER, vec![DYN_TYPE], in_order)
            .expect("no other function has its name");
        Arc::new(environment)
    };
    ENVIRONMENT.get_or_init(make).clone()
}

/// The function around what follows a `+`. No expression can call it by this
/// name.
const IN_ORDER: &str = "+ of";

/// Its argument, unless that is a map.
fn in_order<'b, 'v>(mut args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let value = args.pop().ok_or(ExecutionError::MissingArgumentOrTarget)?;
    if value.get_type().kind() == Kind::Map {
        return Err(ExecutionError::function_error("+", "a map has no order"));
    }
    Ok(value)
}

/// No part of it depends on an order that is not the same twice.
fn check(expression: &mut IdedExpr) -> Result<(), String> {
    match &mut expression.expr {
        Expr::Comprehension(_) => {
            Err("walking over a list or a map is not possible in a derived topic".into())
        }
        Expr::Call(call) => {
            call.target.as_deref_mut().map_or(Ok(()), check)?;
            call.args.iter_mut().try_for_each(check)?;
            if call.func_name == operators::ADD
                && let Some(last) = call.args.pop()
            {
                let id = last.id;
                let call_of =
                    CallExpr { func_name: IN_ORDER.to_owned(), target: None, args: vec![last] };
                call.args.push(IdedExpr { id, expr: Expr::Call(call_of) });
            }
            Ok(())
        }
        Expr::List(list) => list.elements.iter_mut().try_for_each(check),
        Expr::Map(map) => map.entries.iter_mut().try_for_each(|entry| match &mut entry.expr {
            EntryExpr::MapEntry(entry) => {
                check(&mut entry.key).and_then(|()| check(&mut entry.value))
            }
            EntryExpr::StructField(field) => check(&mut field.value),
        }),
        Expr::Select(select) => check(&mut select.operand),
        Expr::Struct(_) => Err("there are no types but those of JSON".into()),
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => Ok(()),
    }
}

/// Numbers that are whole are whole here too.
fn value_of(json: Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(is) => Value::Bool(is),
        Json::String(text) => Value::String(Arc::new(text)),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Value::Int(number),
            (None, Some(number)) => Value::UInt(number),
            (None, None) => Value::Float(number.as_f64().unwrap_or_default()),
        },
        Json::Array(list) => Value::List(Arc::new(list.into_iter().map(value_of).collect())),
        Json::Object(map) => {
            let entries = map.into_iter();
            let entries: HashMap<Key, Value> =
                entries.map(|(key, value)| (key.into(), value_of(value))).collect();
            entries.into()
        }
    }
}

/// The fields of a map in the order of their names: that of the map is not the
/// same twice.
fn json_of(value: &Value) -> Option<Json> {
    Some(match value {
        Value::Null => Json::Null,
        Value::Bool(is) => (*is).into(),
        Value::Int(number) => (*number).into(),
        Value::UInt(number) => (*number).into(),
        Value::Float(number) => serde_json::Number::from_f64(*number)?.into(),
        Value::String(text) => text.as_str().into(),
        Value::List(list) => list.iter().map(json_of).collect::<Option<Vec<_>>>()?.into(),
        Value::Map(map) => {
            let entries =
                map.map.iter().map(|(key, value)| Some((key.to_string(), json_of(value)?)));
            // Sorted: serde_json's own map is a tree unless a feature says otherwise.
            let entries: std::collections::BTreeMap<String, Json> =
                entries.collect::<Option<_>>()?;
            Json::Object(entries.into_iter().collect())
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn scope() -> Scope {
        let value = json!({"id": "v1", "n": 3, "half": 0.5, "tags": ["a", "b"], "deep": {"x": 1}});
        Scope::new("ann", value, 1_000, 7)
    }

    fn json(text: &str) -> Result<Json, String> {
        Expression::read(text)?.json(&scope())
    }

    #[test]
    fn an_expression_sees_the_key_the_value_the_time_and_the_number() {
        assert_eq!(json("key + '/' + value.id"), Ok(json!("ann/v1")));
        assert_eq!(json("value.n + 1"), Ok(json!(4)));
        assert_eq!(json("value.half * 3.0"), Ok(json!(1.5)));
        assert_eq!(json("time_ms > 999 && seq == 7u"), Ok(json!(true)));
        assert_eq!(json("'b' in value.tags && value.deep.x == 1"), Ok(json!(true)));
        assert_eq!(json("has(value.none) ? 1 : 0"), Ok(json!(0)));
        assert_eq!(json("size(value.tags)"), Ok(json!(2)));
        assert_eq!(json("['c'] + value.tags"), Ok(json!(["c", "a", "b"])));
        assert_eq!(
            json("[1] + value.deep").unwrap_err(),
            "[1] + value.deep: Error executing function '+': a map has no order"
        );
        let map = json("{'z': 1, 'a': [value.n, null]}").unwrap();
        assert_eq!(map.to_string(), r#"{"a":[3,null],"z":1}"#);
    }

    #[test]
    fn what_depends_on_an_order_or_is_too_long_is_refused() {
        for text in ["value.deep.map(k, k)", "value.tags.all(t, t == 'a')", "[1].filter(x, true)"] {
            assert!(json(text).unwrap_err().starts_with("walking over"), "{text}");
        }
        assert!(json("1 + [value.deep.exists(k, true)][0]").unwrap_err().starts_with("walking"));
        assert_eq!(json(&"1+".repeat(600)).unwrap_err(), "is over 1000 bytes");
        assert!(json("value.").is_err());
    }

    #[test]
    fn the_deepest_expression_fits_on_the_stack_of_a_thread() {
        let nest = |open: &str, close: &str| {
            let depth = (EXPRESSION_BYTES_MAX - 1) / (open.len() + close.len());
            format!("{}1{}", open.repeat(depth), close.repeat(depth))
        };
        for text in [
            nest("(", ")"),
            nest("[", "]"),
            nest("-", ""),
            nest("!", ""),
            nest("1+", ""),
            nest("1?1:", ""),
            nest("{1:", "}"),
            nest("size(", ")"),
            format!("value{}", ".a".repeat(490)),
            format!("value{}", "[0]".repeat(330)),
        ] {
            let run = std::thread::Builder::new().stack_size(2 << 20);
            let run = run.spawn(move || json(&text).is_ok()).unwrap();
            assert!(run.join().is_ok());
        }
    }

    #[test]
    fn a_failure_names_the_expression_and_what_is_wrong() {
        let filter = Expression::read("value.n").unwrap();
        assert_eq!(filter.is_true(&scope()).unwrap_err(), "value.n: is int, not true or false");
        assert!(json("value.none").unwrap_err().starts_with("value.none: "));
        assert_eq!(json("1 / 0").unwrap_err(), "1 / 0: 1 is divided by zero");
    }

    /// A map of three shows them in one order out of six.
    #[test]
    fn a_failure_over_a_map_is_told_the_same_each_time() {
        let map = "{'x': 1, 'y': 2, 'z': 3}";
        for text in [
            format!("null + {map}"),
            format!("{map} + {map}"),
            format!("{map} < {map}"),
            format!("[{map}] + {map}"),
            format!("[1] + (true ? {map} : [2])"),
            "[1] + value".to_owned(),
            "[1] + [value] + value.deep".to_owned(),
            format!("-{map}"),
            format!("{map}[{map}]"),
            format!("[1][{map}]"),
            format!("{{{map}: 1}}"),
            format!("size(1, {map})"),
            format!("{map}.size(1)"),
            format!("{map}.startsWith('a')"),
            format!("string({map})"),
            format!("'a'.matches({map})"),
            format!("{map} in {map}"),
            format!("{map} / 0"),
            format!("{map} ? 1 : 0"),
        ] {
            let Ok(expression) = Expression::read(&text) else { continue };
            let first = expression.json(&scope());
            for _ in 0..30 {
                assert_eq!(expression.json(&scope()), first, "{text}");
            }
        }
    }
}
