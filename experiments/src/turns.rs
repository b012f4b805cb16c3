//! The order of jobs: all of them, and then all of them again, so that a slow minute of the machine does not affect only
//! one of them.

use std::time::Instant;

use vrt_cli::Progress;

/// The order in which jobs run this many times.
pub fn rounds(jobs: usize, times: usize) -> impl Iterator<Item = usize> {
    (0..times).flat_map(move |_| 0..jobs)
}

/// The same for jobs at these positions on a figure's horizontal axis: those with the same one run consecutively.
pub fn rounds_by_place(places: &[f64], times: usize) -> impl Iterator<Item = usize> + use<> {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by(|a, b| places[*a].total_cmp(&places[*b]));
    (0..times).flat_map(move |_| order.clone())
}

/// The order in which jobs run this many times, if each round begins with the jobs that the previous one ended with.
pub fn back_and_forth(jobs: usize, times: usize) -> impl Iterator<Item = usize> {
    (0..times).flat_map(move |round| {
        (0..jobs).map(move |at| if round % 2 == 0 { at } else { jobs - 1 - at })
    })
}

/// Runs jobs in an order, and returns the outcomes of each job. A line on the terminal shows what is running now.
///
/// # Errors
///
/// That of the first job that fails.
pub fn run_in_turn<J, T, E>(
    jobs: &[J],
    order: impl IntoIterator<Item = usize>,
    progress: &mut Progress,
    title: impl Fn(&J) -> String,
    mut run: impl FnMut(&J) -> Result<T, E>,
) -> Result<Vec<Vec<T>>, E> {
    let order: Vec<usize> = order.into_iter().collect();
    let mut outcomes: Vec<Vec<T>> = jobs.iter().map(|_| Vec::new()).collect();
    let began = Instant::now();
    for (number, &at) in order.iter().enumerate() {
        let (job, all) = (&jobs[at], order.len());
        progress.show(|| {
            let seconds = began.elapsed().as_secs_f64();
            format!("{} of {all} after {seconds:.0} s: {}", number + 1, title(job))
        });
        outcomes[at].push(run(job)?);
    }
    progress.clear();
    Ok(outcomes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_of_one_place_run_next_to_each_other_and_each_once_in_a_round() {
        let order: Vec<usize> = rounds_by_place(&[1.0, 8.0, 1.0, 4.0], 2).collect();
        assert_eq!(order, [0, 2, 3, 1, 0, 2, 3, 1]);
        assert_eq!(rounds(2, 2).collect::<Vec<_>>(), [0, 1, 0, 1]);
        assert_eq!(back_and_forth(3, 2).collect::<Vec<_>>(), [0, 1, 2, 2, 1, 0]);
    }

    #[test]
    fn outcomes_are_kept_by_job_until_one_fails() {
        let run = |limit: u32| {
            let mut runs = 0;
            run_in_turn(&['a', 'b'], [0, 1, 0], &mut Progress::new(false), char::to_string, |job| {
                runs += 1;
                if runs > limit { Err(*job) } else { Ok((*job, runs)) }
            })
        };
        assert_eq!(run(9), Ok(vec![vec![('a', 1), ('a', 3)], vec![('b', 2)]]));
        assert_eq!(run(1), Err('b'));
    }
}
