//! The known key that a mistyped one most likely meant.

/// The one of `known` that is most like `key`; both are dotted. A right last
/// word under a wrong section counts almost as much as the whole.
pub(super) fn nearest<'a>(key: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let last = |text: &str| text.rsplit('.').next().map(str::to_owned).unwrap_or_default();
    let likeness = |candidate: &str| {
        let whole = strsim::normalized_damerau_levenshtein(key, candidate);
        let word = strsim::normalized_damerau_levenshtein(&last(key), &last(candidate));
        whole.max(word * 0.9)
    };
    known
        .into_iter()
        .map(|candidate| (likeness(candidate), candidate))
        .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(a.1)))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_and_a_wrong_section_both_lead_home() {
        let known = ["data", "server.http", "server.grpc", "history.timezone", "queue.partitions"];
        let of = |key| nearest(key, known);
        assert_eq!(of("history.timezome"), Some("history.timezone"));
        assert_eq!(of("timezone"), Some("history.timezone"));
        assert_eq!(of("topics.partition"), Some("queue.partitions"));
        assert_eq!(of("server.htttp"), Some("server.http"));
        assert_eq!(of("dta"), Some("data"));
    }
}
