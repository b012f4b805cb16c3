//! Suggestions for misspelt names.

/// The least similarity of two texts, from 0 to 1 by Jaro's measure. It is the one that `clap` uses
/// for flags.
const LIKE: f64 = 0.7;

/// The one of `known` that is most similar to `text`, if any is similar enough.
pub fn similar<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let text = text.to_lowercase();
    let likeness = |name: &str| strsim::jaro(&text, &name.to_lowercase());
    known
        .into_iter()
        .map(|name| (likeness(name), name))
        .filter(|(likeness, _)| *likeness > LIKE)
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, name)| name)
}

/// The same as the end of a message, such as "; did you mean `greedy`?".
#[must_use]
pub fn did_you_mean<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    similar(text, known).map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_nearly_right_are_found() {
        let known = ["null", "greedy", "greedy-refine", "refine", "hilbert"];
        for (text, meant) in [
            ("gready", Some("greedy")),
            ("greedy_refine", Some("greedy-refine")),
            ("Refine", Some("refine")),
            ("hillbert", Some("hilbert")),
            ("magic", None),
            ("", None),
        ] {
            assert_eq!(similar(text, known), meant, "{text}");
        }
        assert_eq!(did_you_mean("nul", known), "; did you mean `null`?");
        assert_eq!(did_you_mean("x", known), "");
    }
}
