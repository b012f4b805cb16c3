//! The report: one page of HTML with the table and a picture of each run.

use std::fmt::Write as _;

use svg::Document;
use svg::node::element::{Group, Line, Polyline, Rectangle, Text, Title};

use crate::Run;
use crate::timeline::Timeline;

/// Width of the picture of a run, room for labels on its left, height of a PE and its gap.
const WIDTH: f64 = 860.0;
const LEFT: f64 = 56.0;
const HEIGHT: f64 = 44.0;
const GAP: f64 = 8.0;
/// Spans are put together until they are so many pixels wide.
const NARROWEST: f64 = 2.0;

/// The page.
pub(crate) fn page(runs: &[Run], pes: u32, ranks: u32) -> String {
    let mut html = String::from(HEAD);
    // Writing to a String cannot fail.
    let _ = writeln!(
        html,
        "<h1>What vrt gained</h1><p>{ranks} ranks on {pes} PEs. Each bar is a PE between two \
         balancing steps: its height, and how dark it is, is the part of the time in which ranks \
         ran there; the rest is waiting. The line is the number of ranks on the PE.</p>"
    );
    html.push_str(&table(runs));
    for pair in runs.chunks(2) {
        let end = pair.iter().map(|run| run.timeline.end()).fold(0.0, f64::max);
        for run in pair {
            let most = run.timeline.pes.iter().flatten().map(|span| span.ranks).max().unwrap_or(1);
            let _ = writeln!(
                html,
                "<h2>{}</h2><p>{}. PEs were busy {:.0}% of the time; {} moves.</p>{}",
                run.job.title,
                run.job.about,
                100.0 * run.timeline.busy(),
                run.timeline.moves(),
                picture(&run.timeline, end, most)
            );
        }
    }
    html.push_str("</main></body></html>\n");
    html
}

const HEAD: &str = r#"<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>What vrt gained</title><style>
body { font: 16px/1.5 system-ui, sans-serif; color: #1c2733; background: #f6f7f9; margin: 0 }
main { max-width: 920px; margin: 2em auto; padding: 1em 2em 2em; background: #fff;
  border-radius: 8px; box-shadow: 0 1px 4px #0002 }
h1 { margin: .4em 0 } h2 { margin: 1.6em 0 0; font-size: 1.15em } p { margin: .3em 0 .6em }
table { border-collapse: collapse; margin: 1em 0 }
th, td { padding: .3em .9em; border-bottom: 1px solid #dde2e8; text-align: right }
th:first-child, td:first-child, th:last-child, td:last-child { text-align: left }
td.gain { font-weight: 600; color: #0b6e4f }
td.loss { color: #8a5a00 }
svg text { font: 12px system-ui, sans-serif; fill: #51606f }
</style></head><body><main>
"#;

fn table(runs: &[Run]) -> String {
    let mut html = String::from(
        "<table><tr><th>run</th><th>time</th><th>gained</th><th>PEs busy</th><th>moves</th>\
         <th>result</th></tr>\n",
    );
    for (number, run) in runs.iter().enumerate() {
        let before = &runs[number / 2 * 2].outcome;
        let ratio = before.seconds / run.outcome.seconds;
        let gained = match number % 2 {
            0 => String::new(),
            _ => format!("{ratio:.2}x"),
        };
        let class = if ratio >= 1.0 { "gain" } else { "loss" };
        let _ = writeln!(
            html,
            "<tr><td>{}</td><td>{:.2} s</td><td class=\"{class}\">{gained}</td><td>{:.0}%</td>\
             <td>{}</td><td>{}</td></tr>",
            run.job.title,
            run.outcome.seconds,
            100.0 * run.timeline.busy(),
            run.timeline.moves(),
            run.outcome.result
        );
    }
    html + "</table>\n"
}

/// All PEs of a run, on an axis of `end` seconds.
fn picture(timeline: &Timeline, end: f64, most_ranks: usize) -> Document {
    let height = timeline.pes.len() as f64 * (HEIGHT + GAP) + 24.0;
    let x = |seconds: f64| LEFT + seconds / end.max(1e-9) * (WIDTH - LEFT - 8.0);
    let mut document = Document::new()
        .set("viewBox", (0, 0, WIDTH as i32, height as i32))
        .set("width", "100%")
        .set("role", "img");
    for (pe, spans) in timeline.pes.iter().enumerate() {
        let bottom = (pe + 1) as f64 * (HEIGHT + GAP);
        let mut group = Group::new();
        group =
            group.add(Text::new(format!("PE {pe}")).set("x", 4).set("y", bottom - HEIGHT / 2.5));
        let mut points = String::new();
        let mut at = 0;
        while at < spans.len() {
            // Short spans are one bar together.
            let mut next = at + 1;
            while next < spans.len() && x(spans[next].from) - x(spans[at].from) < NARROWEST {
                next += 1;
            }
            let together = &spans[at..next];
            at = next;
            let (from, to) = (together[0].from, together[together.len() - 1].to);
            let busy = together.iter().map(|span| span.busy * (span.to - span.from)).sum::<f64>()
                / (to - from).max(1e-9);
            let ranks = together.iter().map(|span| span.ranks).sum::<usize>() / together.len();
            let tip = format!("{from:.2} s to {to:.2} s: {:.0}% busy, {ranks} ranks", 100.0 * busy);
            group = group.add(
                Rectangle::new()
                    .set("x", x(from))
                    .set("y", bottom - HEIGHT * busy)
                    .set("width", (x(to) - x(from)).max(0.5))
                    .set("height", HEIGHT * busy)
                    .set("fill", format!("hsl(205 70% {:.0}%)", 82.0 - 40.0 * busy))
                    .add(Title::new(tip)),
            );
            let y = bottom - HEIGHT * ranks as f64 / most_ranks.max(1) as f64 * 0.95;
            let _ = write!(points, "{:.1},{y:.1} {:.1},{y:.1} ", x(from), x(to));
        }
        group = group.add(
            Polyline::new()
                .set("points", points)
                .set("fill", "none")
                .set("stroke", "#c2410c")
                .set("stroke-width", 1.5),
        );
        group = group.add(
            Line::new()
                .set("x1", LEFT)
                .set("x2", WIDTH - 8.0)
                .set("y1", bottom)
                .set("y2", bottom)
                .set("stroke", "#9aa7b4"),
        );
        document = document.add(group);
    }
    for tick in 0..=4 {
        let seconds = end * f64::from(tick) / 4.0;
        let anchor = if tick == 4 { "end" } else { "middle" };
        document = document.add(
            Text::new(format!("{seconds:.2} s"))
                .set("x", x(seconds))
                .set("y", height - 6.0)
                .set("text-anchor", anchor),
        );
    }
    document
}
