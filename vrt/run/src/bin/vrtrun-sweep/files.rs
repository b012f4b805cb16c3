//! Writes the results for other programs: a row for each run (CSV), and everything with its summary
//! (JSON).

use std::io;

use serde_json::{Value, json};
use vrt_cli::Machine;

use crate::SweepError;
use crate::job::Shares;
use crate::options::{Configuration, Plan};
use crate::results::Results;

/// Writes `sweep.csv` and `sweep.json`.
pub(crate) fn write(plan: &Plan, results: &Results) -> Result<(), SweepError> {
    for (name, text) in [("sweep.csv", csv(results)), ("sweep.json", json_text(plan, results))] {
        let path = plan.out.join(name);
        std::fs::write(&path, text).map_err(|error: io::Error| SweepError::Write(path, error))?;
    }
    Ok(())
}

/// A line for each run. Nothing needs quotes, as names of balancers contain no commas.
fn csv(results: &Results) -> String {
    let mut text = "ratio,ranks,balancer,run,value,busy,idle,overhead,work\n".to_owned();
    for row in &results.rows {
        let Configuration { ratio, ranks, strategy } = &row.configuration;
        for (number, run) in row.runs.iter().enumerate() {
            let shares = run.shares.map_or_else(
                || ",,,".to_owned(),
                |it| format!("{},{},{},{}", it.busy, it.idle, it.overhead(), it.work),
            );
            text += &format!("{ratio},{ranks},{strategy},{},{},{shares}\n", number + 1, run.value);
        }
    }
    text
}

fn json_text(plan: &Plan, results: &Results) -> String {
    let command: Vec<String> =
        plan.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let rows = results.rows.iter().map(|row| {
        let Configuration { ratio, ranks, strategy } = &row.configuration;
        let values: Vec<f64> = row.runs.iter().map(|run| run.value).collect();
        let summary = row.summary();
        let of = |part: fn(&Shares) -> f64| summary.and_then(|it| it.shares).map(|it| part(&it));
        json!({
            "ratio": ratio,
            "ranks": ranks,
            "balancer": strategy,
            "values": values,
            "median": summary.map(|it| it.values.median),
            "least": summary.map(|it| it.values.least),
            "most": summary.map(|it| it.values.most),
            "busy": of(|it| it.busy),
            "idle": of(|it| it.idle),
            "overhead": of(|it| it.overhead()),
            "work": of(|it| it.work),
        })
    });
    let all = json!({
        "command": command,
        "machine": Machine::at_start(),
        "pes": plan.pes,
        "unit": results.unit(plan),
        "more_is_better": plan.rate,
        "weak": plan.weak,
        "configurations": rows.collect::<Vec<Value>>(),
    });
    format!("{all:#}\n")
}
