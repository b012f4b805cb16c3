//! The results of all runs: a figure for each kind of buffers, `report.md`, and the numbers as `copies.csv` and
//! `copies.json`.

use std::collections::BTreeSet;

use bytesize::ByteSize;
use experiments::statistics::ratios as pairs;
use experiments::{Axis, Folder, Labels, Spread, Table, cell};
use serde_json::{Value, json};
use vrt_cli::{Machine, quantity};

use super::Args;
use super::system::{Results, System, Way, Who};
use crate::Error;

/// The method of the C library.
const PLAIN: &str = "memcpy";

/// Writes everything to the directory, and the report also to standard output.
///
/// # Errors
///
/// If a file cannot be written.
pub(super) fn write(
    args: &Args,
    mut folder: Folder,
    systems: &[System],
    all: &[Results],
) -> Result<(), Error> {
    folder.add_paragraph(format!(
        "## Copies of messages between two cores, in GB/s\n\n{}; {} of each program, in turn, of which the medians count. \
         A way to copy is a method of `bench/c/methods.h`, who copies, and the size of pages. *Touched*: each line is \
         written before it is sent and read when it was received, and that takes its part of the time.\n",
        Machine::at_start().processor,
        quantity::count(args.rounds(), "round"),
    ));
    for touched in [false, true] {
        let of_kind: Vec<&Results> = all.iter().filter(|it| it.case.touched == touched).collect();
        let name = if touched { "touched" } else { "untouched" };
        draw(&folder, name, systems, &of_kind)?;
        folder.add_paragraph(format!("### {}{}\n", name[..1].to_uppercase(), &name[1..]));
        folder.add_paragraph(format!("![GB/s by length, {name}]({name}.svg)\n"));
        folder.add_paragraph(best_of_all(systems, &of_kind));
        for who in [Who::Receiver, Who::Both] {
            folder.add_paragraph(format!(
                "By method, where {}, with the better size of pages:\n",
                if who == Who::Both { "both ends copy" } else { "the receiver copies" }
            ));
            folder.add_paragraph(by_method(who, &of_kind));
        }
        folder.add_paragraph(
            "The times of `memcpy` by those of others (above 1: the other one is faster), the medians of the rounds' \
             ratios, with the least and the most of them. By both ends and pages of 2 MiB, unless told otherwise:\n",
        );
        folder.add_paragraph(ratios(&of_kind));
    }
    let rows = all.iter().flat_map(rows);
    let head = ["bytes", "touched", "method", "who", "pages", "median", "slowest", "fastest"];
    folder.write_table("copies", &head, rows)?;
    let numbers = json!({
        "processor": Machine::at_start().processor,
        "rounds": args.rounds(),
        "cases": all.iter().map(numbers).collect::<Vec<_>>(),
    });
    folder.write_json("copies", &numbers)?;
    Ok(folder.write_report()?)
}

/// A table whose first column contains lengths.
fn table<'a>(titles: impl IntoIterator<Item = &'a str>) -> Table {
    Table::new(std::iter::once("length").chain(titles))
}

fn length(results: &Results) -> String {
    format!("{:.0}", ByteSize(results.case.bytes.into()))
}

fn number(rate: Option<f64>) -> String {
    cell(rate, |rate| format!("{rate:.1}"))
}

/// For each length the best method by one end and by both, the rates of runtimes, and vrt's part of the best.
fn best_of_all(systems: &[System], all: &[&Results]) -> Table {
    let titles = ["best of one end", "best of both ends", "memcpy by the receiver"];
    let titles = titles.into_iter().chain(systems.iter().map(|it| it.title()));
    let mut table = table(titles.chain(["vrt / best"]));
    for results in all {
        let shown = |best: Option<(&Way, f64)>| {
            cell(best, |(way, rate)| {
                let who = if way.who == Who::Both { "" } else { way.who.name() };
                let words = [way.method.as_str(), who, way.pages.as_str()];
                let words: Vec<&str> = words.into_iter().filter(|it| !it.is_empty()).collect();
                format!("{rate:.1} ({})", words.join(", "))
            })
        };
        let best = results.best(|_| true).map(|(_, rate)| rate);
        let part = results.rate(System::Vrt).zip(best).map(|(ours, best)| ours / best);
        let mut cells = vec![
            length(results),
            shown(results.best(|way| way.who != Who::Both)),
            shown(results.best(|way| way.who == Who::Both)),
            number(plain(results)),
        ];
        cells.extend(systems.iter().map(|&system| number(results.rate(system))));
        cells.push(cell(part, |part| format!("{part:.2}")));
        table.row(cells);
    }
    table
}

/// GB/s of `memcpy` by the receiver.
fn plain(results: &Results) -> Option<f64> {
    results.best(|way| way.method == PLAIN && way.who == Who::Receiver).map(|(_, rate)| rate)
}

/// GB/s of each method.
fn by_method(who: Who, all: &[&Results]) -> Table {
    let ways = all.iter().flat_map(|it| it.bare.keys());
    let methods: BTreeSet<&str> = ways.map(|way| way.method.as_str()).collect();
    let mut table = table(methods.iter().copied());
    for results in all {
        let rate = |method: &&str| {
            number(results.best(|way| way.method == **method && way.who == who).map(|it| it.1))
        };
        table.row(std::iter::once(length(results)).chain(methods.iter().map(rate)));
    }
    table
}

/// Ratios of the times of two methods in each round, the first by the second.
fn ratio(results: &Results, first: &Way, second: &Way) -> Option<Spread> {
    let (first, second) = (results.bare.get(first)?, results.bare.get(second)?);
    Spread::of(pairs(first, second))
}

/// What pays in addition to `memcpy`: the other end's help, the fastest other method, non-temporal stores, large pages.
fn ratios(all: &[&Results]) -> Table {
    let titles =
        ["both ends / receiver", "fastest other method", "fastest non-temporal one", "2M / 4K"];
    let mut table = table(titles);
    let plain = |who, pages: &str| Way { method: PLAIN.to_owned(), who, pages: pages.to_owned() };
    for results in all {
        // Without large pages what there is counts.
        let pages = if results.bare.contains_key(&plain(Who::Both, "2M")) { "2M" } else { "4K" };
        let base = plain(Who::Both, pages);
        let beside = |way: &Way| ratio(results, &base, way);
        let fastest = |among: &dyn Fn(&Way) -> bool| {
            let best = results.best(|way| way.who == Who::Both && way.pages == pages && among(way));
            let (way, _) = best?;
            beside(way).map(|spread| format!("{spread:.2} {}", way.method))
        };
        let shown = |spread: Option<Spread>| spread.map(|it| format!("{it:.2}"));
        let cells = [
            shown(ratio(results, &plain(Who::Receiver, pages), &base)),
            fastest(&|way| way.method != PLAIN),
            fastest(&Way::is_non_temporal),
            shown(ratio(results, &plain(Who::Both, "4K"), &plain(Who::Both, "2M"))),
        ];
        let cells = cells.map(|it| cell(it, |text| text));
        table.row(std::iter::once(length(results)).chain(cells));
    }
    table
}

/// GB/s over the length, in KiB.
fn draw(
    folder: &Folder,
    name: &str,
    systems: &[System],
    all: &[&Results],
) -> Result<(), experiments::WriteError> {
    let line = |title: &str, rate: &dyn Fn(&Results) -> Option<f64>| {
        let place = |results: &Results| f64::from(results.case.bytes) / 1024.0;
        let points = all.iter().filter_map(|it| rate(it).map(|rate| (place(it), rate))).collect();
        (title.to_owned(), points)
    };
    let best = |results: &Results, both: bool| {
        results.best(|way| (way.who == Who::Both) == both).map(|(_, rate)| rate)
    };
    let mut lines = vec![
        line("best of both ends", &|results| best(results, true)),
        line("best of one end", &|results| best(results, false)),
        line("memcpy by the receiver", &plain),
    ];
    lines.extend(
        (systems.iter()).map(|system| line(system.title(), &|results| results.rate(*system))),
    );
    let labels =
        Labels { title: &format!("Messages between two cores, {name}"), x: "KiB", y: "GB/s" };
    folder.draw(name, &labels, &lines, Axis::Listed)
}

/// GB/s in the median, the slowest and the fastest round.
fn rates(results: &Results, seconds: &[f64]) -> [f64; 3] {
    Spread::of(seconds.iter().copied()).map_or([f64::NAN; 3], |it| {
        [it.median, it.most, it.least].map(|seconds| results.case.rate(seconds))
    })
}

/// Rows of the table of all numbers.
fn rows(results: &Results) -> Vec<Vec<String>> {
    let row = |names: [&str; 3], seconds: &[f64]| {
        let case = [results.case.bytes.to_string(), results.case.touched.to_string()];
        let rates = rates(results, seconds).map(|rate| format!("{rate:.3}"));
        case.into_iter().chain(names.map(str::to_owned)).chain(rates).collect::<Vec<String>>()
    };
    let bare = results.bare.iter();
    let bare = bare.map(|(way, seconds)| row([&way.method, way.who.name(), &way.pages], seconds));
    let systems = results.systems.iter();
    let systems = systems.map(|(system, seconds)| row([system.title(), "", ""], seconds));
    bare.chain(systems).collect()
}

/// All numbers of a case.
fn numbers(results: &Results) -> Value {
    let entry = |names: Value, seconds: &[f64]| {
        let [median, slowest, fastest] = rates(results, seconds);
        let mut entry = names;
        entry["median"] = json!(median);
        entry["slowest"] = json!(slowest);
        entry["fastest"] = json!(fastest);
        entry
    };
    let bare = results.bare.iter().map(|(way, seconds)| {
        let names = json!({ "method": way.method, "who": way.who.name(), "pages": way.pages });
        entry(names, seconds)
    });
    let systems = results.systems.iter();
    let systems =
        systems.map(|(system, seconds)| entry(json!({ "system": system.title() }), seconds));
    json!({
        "bytes": results.case.bytes,
        "touched": results.case.touched,
        "gigabytes_per_second": bare.chain(systems).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copies::system::Case;
    use crate::parsed;

    /// As if each method had its own speed.
    fn results(case: Case) -> Results {
        let mut results = Results::of(case, Vec::new());
        for (method, speed) in [("memcpy", 1.0), ("movsb", 0.9), ("avx512-nt", 2.0)] {
            for (who, ends) in [(Who::Receiver, 1.0), (Who::Sender, 0.8), (Who::Both, 1.8)] {
                for pages in ["4K", "2M"] {
                    let way = Way { method: method.to_owned(), who, pages: pages.to_owned() };
                    let seconds = 1e-9 * f64::from(case.bytes) / (10.0 * speed * ends);
                    results.bare.insert(way, vec![seconds, 2.0 * seconds, seconds]);
                }
            }
        }
        let seconds = 1e-9 * f64::from(case.bytes) / 9.0;
        results.systems.insert(System::Vrt, vec![seconds; 3]);
        results.systems.insert(System::VrtSmallPages, vec![2.0 * seconds; 3]);
        results
    }

    #[test]
    fn figures_report_and_numbers_are_written() {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("copies");
        let args = ["copies", "--no-open-mpi", "--out", out.to_str().unwrap()];
        let args = parsed::<Args>(&args).unwrap();
        let cases = [false, true].into_iter();
        let cases = cases.flat_map(|touched| [4096, 4 << 20].map(|bytes| Case { bytes, touched }));
        let all: Vec<Results> = cases.map(results).collect();
        write(&args, Folder::create(&out).unwrap(), &System::all(false), &all).unwrap();
        let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
        let report = read("report.md");
        for part in [
            "| 4 MiB | 20.0 (avx512-nt, receiver, 4K) | 36.0 (avx512-nt, 4K) | 10.0 | 9.0 | 4.5 | 0.25 |",
            "| 4 KiB | 1.80 (1.80 to 1.80) | 2.00 (2.00 to 2.00) avx512-nt |",
            "| 4 KiB | 36.0 | 18.0 | 16.2 |",
            "### Untouched",
            "### Touched",
        ] {
            assert!(report.contains(part), "no {part} in {report}");
        }
        for name in ["untouched", "touched"] {
            let svg = read(&format!("{name}.svg"));
            assert!(svg.contains("best of both ends") && svg.contains("vrt, pages of 4 KiB"));
        }
        assert!(read("copies.csv").contains("4096,true,memcpy,both,4K,18.000,9.000,18.000\n"));
        let numbers: Value = serde_json::from_str(&read("copies.json")).unwrap();
        let case = &numbers["cases"][3];
        assert_eq!((&case["bytes"], &case["touched"]), (&json!(4 << 20), &json!(true)));
        assert_eq!(case["gigabytes_per_second"].as_array().unwrap().len(), 20);
    }
}
