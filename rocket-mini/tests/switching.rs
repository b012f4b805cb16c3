//! `rocket-mini switching` as its users run it.

#[expect(dead_code, reason = "what is compared between jobs has no times in it")]
mod common;

use common::{line, refused, report};

#[test]
fn all_stacks_are_switched_at_their_depth() {
    for stacks in ["slots", "copied", "threads"] {
        let deep = ["switching", "--stacks", stacks, "--depth", "50000", "--switches", "200"];
        let few = ["--pes", "1", "--ranks", "3", "--threads", "3"];
        let text = report(&[&deep[..], &few].concat());
        assert_eq!(line(&text, "steps"), "600 switches");
        assert!(line(&text, "depth").starts_with("50"), "{text}");
    }
}

#[test]
fn wrong_options_name_the_value_and_what_is_allowed() {
    refused(&["switching", "--depth", "-1"], 2, "-1 is not in 1..=4194304");
    refused(&["switching", "--switches", "0"], 2, "a whole number from 1 up is allowed");
    refused(&["switching", "--stacks", "heap"], 2, "slots, copied, threads");
    refused(&["switching", "--threads", "1"], 2, "2..=4096");
    refused(&["switching", "--pes", "1", "--ranks", "1"], 2, "not 1 ranks on 1 PEs");
    refused(&["switching", "--pes", "2", "--ranks", "4"], 2, "not 4 ranks on 2 PEs");
}
