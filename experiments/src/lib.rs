//! What the commands that repeat the experiments of a paper have in common: the choice of the experiment, the order of
//! its jobs, tables, and the directory with tables, figures and report.
//!
//! ```
//! use experiments::{Axis, Folder, Labels, rounds};
//!
//! let out = std::env::temp_dir().join("experiments-doc");
//! let mut folder = Folder::create(&out)?;
//! let sizes = [1.0, 2.0, 4.0];
//! let mut best = [f64::INFINITY; 3];
//! for job in rounds(sizes.len(), 5) {
//!     let start = std::time::Instant::now();
//!     std::hint::black_box(vec![1_u8; 1000 * sizes[job] as usize]);
//!     best[job] = start.elapsed().as_secs_f64().min(best[job]);
//! }
//! let rows = sizes.iter().zip(best).map(|(size, seconds)| [size.to_string(), seconds.to_string()]);
//! folder.write_table("memory", &["kilobytes", "seconds"], rows)?;
//! let labels = Labels { title: "Memory", x: "kilobytes", y: "seconds" };
//! let line = ("vec".to_owned(), sizes.into_iter().zip(best).collect());
//! folder.draw("memory", &labels, &[line], Axis::Listed)?;
//! folder.add_paragraph("## Memory\n\n![Memory](memory.svg)\n");
//! folder.write_report()?;
//! # std::fs::remove_dir_all(out).ok();
//! # Ok::<(), experiments::WriteError>(())
//! ```

pub mod document;
mod figure;
mod folder;
mod table;
mod turns;

pub use figure::{Axis, Labels, Series, Spreads};
pub use folder::{Folder, WriteError};
pub use table::{Table, cell};
pub use turns::{back_and_forth, rounds, rounds_by_place, run_in_turn};
pub use vrt_cli::Progress;
pub use vrt_cli::statistics::{self, Spread};

/// No experiment has the requested name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no experiment `{name}`; experiments: all, {known}")]
pub struct Unknown {
    name: String,
    known: String,
}

/// The experiment with this name, or all of them for `all`.
///
/// # Errors
///
/// [`Unknown`] if none has this name.
pub fn choose<'a, E>(
    experiments: &'a [E],
    name_of: fn(&E) -> &'static str,
    name: &str,
) -> Result<Vec<&'a E>, Unknown> {
    let chosen: Vec<&E> =
        experiments.iter().filter(|it| name == "all" || name_of(it) == name).collect();
    if chosen.is_empty() {
        let known = experiments.iter().map(name_of).collect::<Vec<_>>().join(", ");
        return Err(Unknown { name: name.to_owned(), known });
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_experiment_or_all_are_chosen() {
        let all = ["ranks", "styles"];
        let name_of: fn(&&'static str) -> &'static str = |it| *it;
        assert_eq!(choose(&all, name_of, "styles"), Ok(vec![&"styles"]));
        assert_eq!(choose(&all, name_of, "all"), Ok(vec![&"ranks", &"styles"]));
        let error = choose(&all, name_of, "style").map_err(|it| it.to_string());
        assert_eq!(error, Err("no experiment `style`; experiments: all, ranks, styles".to_owned()));
    }
}
