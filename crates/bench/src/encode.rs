//! A mark as bytes of each protocol, made before the clock starts.
//!
//! The encoders are written by hand because the client must cost less than
//! what it measures; a test holds the protobuf to the real messages.

use bytes::Bytes;

use crate::data::{DataSet, Fields, KIND, Spec, push_decimal, push_user};

/// Makes requests out of marks; keeps its buffers.
#[derive(Debug)]
pub(crate) struct Encoder<'a> {
    data: &'a DataSet,
    fields: Fields,
    text: String,
    bytes: Vec<u8>,
}

impl<'a> Encoder<'a> {
    /// For marks of `data`.
    pub(crate) fn new(data: &'a DataSet) -> Self {
        Self { data, fields: Fields::default(), text: String::new(), bytes: Vec::new() }
    }

    /// A `RecordRequest` with these marks, each with its own user.
    pub(crate) fn record_request(&mut self, specs: &[Spec]) -> Bytes {
        let mut out = Vec::new();
        for spec in specs {
            self.data.fields(spec, &mut self.fields);
            self.bytes.clear();
            put_mark(&self.fields, &mut self.bytes);
            put_bytes(2, &self.bytes, &mut out);
        }
        out.into()
    }

    /// A `ListRequest` for the newest 20 of a user.
    pub(crate) fn list_request(&mut self, user: u32) -> Bytes {
        let mut out = Vec::new();
        self.user(user);
        put_bytes(1, self.text.as_bytes(), &mut out);
        put_number(3, 20, &mut out);
        out.into()
    }

    /// A whole HTTP/1.1 request that records one mark.
    pub(crate) fn http_record(&mut self, spec: &Spec) -> Bytes {
        self.json(spec);
        self.user(spec.user);
        let head = format!(
            "POST /v1/users/{}/history HTTP/1.1\r\nhost: 127.0.0.1\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            self.text,
            self.bytes.len()
        );
        [head.as_bytes(), &self.bytes].concat().into()
    }

    /// A whole HTTP/1.1 request for the newest 20 of a user.
    pub(crate) fn http_list(&mut self, user: u32) -> Bytes {
        self.user(user);
        let user = &self.text;
        format!("GET /v1/users/{user}/history?limit=20 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").into()
    }

    /// The usual three commands per mark: the sorted set by time, the mark
    /// itself for 90 days, and the cut to 1,000.
    pub(crate) fn redis_record(&mut self, specs: &[Spec]) -> Bytes {
        let mut out = Vec::new();
        for spec in specs {
            self.data.fields(spec, &mut self.fields);
            let Fields { user, id, part, device, event_ms, position_ms, duration_ms, .. } =
                &self.fields;
            let mut value =
                format!("{{\"position_ms\":{position_ms},\"duration_ms\":{duration_ms}");
            for (name, text) in [("part", part), ("device", device)] {
                if !text.is_empty() {
                    value.push_str(&format!(",\"{name}\":\"{text}\""));
                }
            }
            value.push('}');
            let (set, member) = (format!("h:{user}"), format!("{KIND}:{id}"));
            let one = format!("{set}:{member}");
            put_command(&["ZADD", &set, &event_ms.to_string(), &member], &mut out);
            put_command(&["SET", &one, &value, "EX", "7776000"], &mut out);
            put_command(&["ZREMRANGEBYRANK", &set, "0", "-1001"], &mut out);
        }
        out.into()
    }

    /// The first half of a list: the newest 20 members. The second half, the
    /// MGET, depends on the answer.
    pub(crate) fn redis_newest(&mut self, user: u32) -> Bytes {
        self.user(user);
        let mut out = Vec::new();
        put_command(&["ZREVRANGE", &format!("h:{}", self.text), "0", "19"], &mut out);
        out.into()
    }

    fn user(&mut self, rank: u32) {
        self.text.clear();
        push_user(rank, &mut self.text);
    }

    /// The mark as a JSON object, into `self.bytes`.
    fn json(&mut self, spec: &Spec) {
        self.data.fields(spec, &mut self.fields);
        let fields = &self.fields;
        let mut text = format!(
            "{{\"kind\":\"{KIND}\",\"id\":\"{}\",\"position_ms\":{},\"duration_ms\":{},\"event_ms\":{}",
            fields.id, fields.position_ms, fields.duration_ms, fields.event_ms
        );
        let optional =
            [("part", &fields.part), ("device", &fields.device), ("event_id", &fields.event_id)];
        for (name, value) in optional {
            if !value.is_empty() {
                text.push_str(&format!(",\"{name}\":\"{value}\""));
            }
        }
        text.push('}');
        self.bytes.clear();
        self.bytes.extend_from_slice(text.as_bytes());
    }
}

/// Appends a `Mark`.
fn put_mark(fields: &Fields, out: &mut Vec<u8>) {
    put_bytes(1, fields.user.as_bytes(), out);
    put_bytes(2, KIND.as_bytes(), out);
    put_bytes(3, fields.id.as_bytes(), out);
    if !fields.part.is_empty() {
        put_bytes(4, fields.part.as_bytes(), out);
    }
    put_number(5, fields.position_ms, out);
    put_number(6, fields.duration_ms, out);
    put_number(7, fields.event_ms, out);
    if !fields.device.is_empty() {
        put_bytes(8, fields.device.as_bytes(), out);
    }
    put_bytes(11, fields.event_id.as_bytes(), out);
}

/// Appends a length-delimited protobuf field.
pub(crate) fn put_bytes(field: u32, bytes: &[u8], out: &mut Vec<u8>) {
    put_varint(u64::from(field << 3 | 2), out);
    put_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Appends a varint protobuf field.
pub(crate) fn put_number(field: u32, n: u64, out: &mut Vec<u8>) {
    put_varint(u64::from(field << 3), out);
    put_varint(n, out);
}

fn put_varint(mut n: u64, out: &mut Vec<u8>) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Appends a command in RESP.
pub(crate) fn put_command(words: &[&str], out: &mut Vec<u8>) {
    let mut head = String::with_capacity(16);
    head.push('*');
    push_decimal(words.len() as u64, &mut head);
    head.push_str("\r\n");
    out.extend_from_slice(head.as_bytes());
    for word in words {
        put_bulk(word.as_bytes(), out);
    }
}

/// Appends a bulk string in RESP.
pub(crate) fn put_bulk(word: &[u8], out: &mut Vec<u8>) {
    let mut head = String::with_capacity(8);
    head.push('$');
    push_decimal(word.len() as u64, &mut head);
    head.push_str("\r\n");
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(word);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Options;

    fn spec() -> (DataSet, Spec) {
        let data = DataSet::new(Options::whole(1_796_000_000_000).shrunk_to(10_000));
        let key = data.in_order_of_time()[17];
        let spec = data.spec(key);
        (data, spec)
    }

    #[test]
    fn a_command_is_an_array_of_bulk_strings() {
        let mut out = Vec::new();
        put_command(&["GET", "key"], &mut out);
        assert_eq!(out, b"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n");
    }

    #[test]
    fn the_json_of_a_mark_is_json_with_every_field_as_text_or_number() {
        let (data, mut spec) = spec();
        (spec.part, spec.device) = (Some(3), Some(0));
        let mut encoder = Encoder::new(&data);
        let request = encoder.http_record(&spec);
        let at = memchr::memmem::find(&request, b"\r\n\r\n").unwrap() + 4;
        let json: serde_json::Value = serde_json::from_slice(&request[at..]).unwrap();
        assert_eq!(json["position_ms"], spec.position_ms);
        assert_eq!(json["part"], "ep3");
        assert!(json["id"].is_string() && json["event_id"].is_string());
    }

    #[test]
    fn a_batch_is_a_record_request_and_a_list_is_a_list_request() {
        use prost::Message as _;
        use tideline_wire::history_v1::{ListRequest, RecordRequest};

        let (data, mut spec) = spec();
        (spec.part, spec.device) = (Some(24), Some(1));
        let mut encoder = Encoder::new(&data);
        let request = RecordRequest::decode(encoder.record_request(&[spec, spec])).unwrap();
        assert_eq!(request.marks.len(), 2);
        let mark = &request.marks[1];
        let mut fields = Fields::default();
        data.fields(&spec, &mut fields);
        assert_eq!((&mark.user, &mark.id), (&fields.user, &fields.id));
        assert_eq!((mark.kind.as_str(), mark.part.as_deref()), (KIND, Some("ep24")));
        assert_eq!(mark.event_ms, Some(spec.event_ms as i64));
        assert_eq!(mark.position_ms, Some(spec.position_ms));
        assert_eq!(mark.duration_ms, Some(spec.duration_ms));
        assert_eq!(mark.device.as_ref(), Some(&fields.device));
        assert_eq!(mark.event_id.as_ref(), Some(&fields.event_id));
        let request = ListRequest::decode(encoder.list_request(spec.user)).unwrap();
        assert_eq!((request.user, request.limit), (fields.user, 20));
    }
}
