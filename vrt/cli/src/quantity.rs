//! Times and numbers of things for people.

/// A time with three digits and a unit, without zeros after the point that say nothing: `76.5 us`.
#[must_use]
pub fn seconds(seconds: f64) -> String {
    let (value, unit) = match seconds {
        it if it < 1e-6 => (it * 1e9, "ns"),
        it if it < 1e-3 => (it * 1e6, "us"),
        it if it < 1.0 => (it * 1e3, "ms"),
        it => (it, "s"),
    };
    format!("{} {unit}", short(value))
}

/// A number of things: `1 PE`, `2 PEs`.
#[must_use]
pub fn count(number: u32, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

fn short(value: f64) -> String {
    let digits = match value {
        it if it < 10.0 => 2,
        it if it < 100.0 => 1,
        _ => 0,
    };
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_a_unit() {
        for (time, text) in [
            (40e-9, "40 ns"),
            (123.4e-9, "123 ns"),
            (3e-6, "3 us"),
            (76.5e-6, "76.5 us"),
            (0.527, "527 ms"),
            (1.756, "1.76 s"),
            (100e-9, "100 ns"),
            (0.0, "0 ns"),
        ] {
            assert_eq!(seconds(time), text);
        }
    }

    #[test]
    fn one_thing_is_singular() {
        assert_eq!([count(1, "PE"), count(2, "PE")], ["1 PE", "2 PEs"]);
    }
}
