//! Verification: bonded plates, waves, energy, the path of the crack, and runs on ranks.

use std::sync::Mutex;

use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

use super::*;

fn settings(size: usize) -> Settings {
    Settings {
        size,
        steps: 6 * size,
        pressure: 1.5,
        courant: 0.3,
        heat_points: 0,
        migrate_every: 0,
        snapshot_every: 0,
    }
}

#[test]
fn a_wave_runs_through_a_bonded_plate_at_the_speed_of_sound() {
    // All of the left half moves; a plane wave runs to the right in the middle row.
    let settings = Settings { pressure: 0.0, steps: 0, ..settings(64) };
    let mut plate = Plate::new(settings, Strip { start: 0, end: 64 });
    let h = settings.spacing();
    let start = |x: f64| 1e-6 * (-((x - 0.5) / 0.08).powi(2)).exp();
    for x in 0..64 {
        for y in 0..32 {
            plate.displace(x, y, |corner| [start((x + (corner & 1)) as f64 * h), 0.0]);
        }
    }
    // Half of it runs each way. After 40 elements' crossings its middle is at 0.5 + 0.4.
    let steps = (0.4 / h / settings.courant).round() as usize;
    for _ in 0..steps {
        plate.step();
    }
    let middle: Vec<f64> = (0..64).map(|x| plate.displacements(x, 16)[0][0]).collect();
    let peak = (24..40).max_by(|a, b| middle[*a].total_cmp(&middle[*b])).unwrap();
    assert!((peak as f64 * h - 0.9).abs() < 1.5 * h, "{peak}");
    assert!((middle[peak] / 0.5e-6 - 1.0).abs() < 0.1, "{}", middle[peak]);
}

#[test]
fn without_pressure_nothing_moves() {
    let outcome = solve_alone(&Settings { pressure: 0.0, steps: 50, ..settings(16) }).unwrap();
    assert_eq!((outcome.sums.kinetic, outcome.sums.edges), (0.0, [0.0; 3]));
}

#[test]
fn pressure_drives_the_crack_straight_on_and_energy_is_kept() {
    let settings = settings(64);
    let outcome = solve_alone(&settings).unwrap();
    assert_eq!(outcome.verify(&settings, &outcome), Ok(()));
    let [inserted, broken, astray] = outcome.sums.edges;
    assert!(inserted > broken && broken > 5.0 && astray == 0.0, "{outcome:?}");
    // The crack is as long as its broken edges in a row.
    let notch = (NOTCH * 64.0).floor();
    assert!((outcome.sums.tip / settings.spacing() - notch - broken).abs() < 1.5);
    let weak = solve_alone(&Settings { pressure: 0.5, ..settings }).unwrap();
    assert_eq!(weak.sums.edges, [0.0; 3], "too little pressure for a crack");
}

#[test]
fn any_number_of_ranks_computes_the_bits_of_one_strip() {
    let settings = Settings { pressure: 3.0, heat_points: 24, migrate_every: 30, ..settings(32) };
    let alone = solve_alone(&settings).unwrap();
    assert!(alone.sums.edges[0] > 0.0);
    assert!(alone.sums.warming > 0.0 && alone.sums.heat > 0.0, "{alone:?}");
    for ranks in [1, 2, 7, 32] {
        mpi::run_local(ranks, |world: &SimpleCommunicator| {
            let run = solve(world, &settings, |_| (), |_| ()).unwrap();
            assert_eq!(run.is_some(), world.rank() == 0);
            if let Some(run) = run {
                assert_eq!(run.outcome.verify(&settings, &alone), Ok(()), "{ranks} ranks");
                assert_eq!(run.outcome.sums.edges, alone.sums.edges);
                assert_eq!(run.outcome.sums.tip, alone.sums.tip);
            }
        });
    }
}

#[test]
fn errors_come_on_every_rank() {
    let many = settings(8);
    mpi::run_local(9, |world: &SimpleCommunicator| {
        let error = solve(world, &many, |_| (), |_| ()).unwrap_err();
        assert_eq!(error, Error::TooManyRanks { ranks: 9, columns: 8 });
    });
    let long = Settings { courant: 3.0, steps: 4000, ..settings(16) };
    mpi::run_local(2, |world: &SimpleCommunicator| {
        let error = solve(world, &long, |_| (), |_| ()).unwrap_err();
        assert!(matches!(error, Error::BlownUp { .. }), "{error}");
    });
}

#[test]
fn what_is_wrong_is_found() {
    let right = solve_alone(&settings(16)).unwrap();
    let verdict = |change: fn(&mut Outcome)| {
        let mut outcome = right;
        change(&mut outcome);
        outcome.verify(&settings(16), &right)
    };
    assert!(matches!(verdict(|o| o.checksum ^= 1), Err(Wrong::Displacements { .. })));
    assert!(matches!(
        verdict(|o| o.sums.momentum[0] = o.sums.momenta),
        Err(Wrong::Momentum { .. })
    ));
    assert!(matches!(verdict(|o| o.sums.work *= 2.0), Err(Wrong::Energy { .. })));
}

#[test]
fn faces_of_broken_edges_warm_up_and_nothing_else_changes() {
    let settings = settings(64);
    let cold = solve_alone(&settings).unwrap();
    let warm = solve_alone(&Settings { heat_points: 32, ..settings }).unwrap();
    assert_eq!((cold.sums.warming, cold.sums.heat), (0.0, 0.0));
    // Edges that broke in the last step have not been ignited yet, and none has settled.
    let broken = warm.sums.edges[1];
    assert!(warm.sums.warming > 0.0 && broken - warm.sums.warming <= 1.0, "{warm:?}");
    let mechanics = Sums { warming: 0.0, heat: 0.0, ..warm.sums };
    assert_eq!(mechanics, cold.sums);
    assert_ne!(warm.checksum, cold.checksum, "heat is part of it");
}

#[test]
fn snapshots_have_the_whole_plate_and_become_files() {
    let settings = Settings { pressure: 3.0, snapshot_every: 90, ..settings(32) };
    let found = Mutex::new((Vec::new(), Sums::default()));
    mpi::run_local(3, |world: &SimpleCommunicator| {
        let mut snapshots = Vec::new();
        let run = solve(world, &settings, |_| (), |snapshot| snapshots.push(snapshot.clone()));
        match run.unwrap() {
            Some(run) => *found.lock().unwrap() = (snapshots, run.outcome.sums),
            None => assert!(snapshots.is_empty(), "they are for rank 0"),
        }
    });
    let (snapshots, sums) = found.into_inner().unwrap();
    assert_eq!(snapshots.iter().map(|s| s.steps).collect::<Vec<_>>(), [0, 90, 180, 192]);

    let last = snapshots.last().unwrap();
    let [inserted, broken, _] = sums.edges;
    assert!(broken > 0.0 && inserted > broken, "{sums:?}");
    assert_eq!(last.edges.iter().filter(|edge| !edge.is_notch).count(), inserted as usize);
    assert_eq!((last.broken(), last.tip()), (broken as usize, sums.tip));
    assert!(snapshots[0].edges.iter().all(|edge| edge.is_notch && edge.is_broken));
    // Where an element's corner is at rest, and how it is displaced, is what its edges have of it.
    let [_, ny] = settings.elements();
    for edge in &last.edges {
        let (x, y, is_right) = edge.at;
        let other = if is_right { (x + 1) * ny + y } else { x * ny + y + 1 };
        for (side, element) in [x * ny + y, other].into_iter().enumerate() {
            let element = &last.elements[element];
            for (end, u) in edge.ends.iter().zip(edge.u.map(|sides| sides[side])) {
                let mut corners = element.corners.iter().zip(element.u);
                assert!(corners.any(|corner| corner == (end, u)), "{edge:?} {element:?}");
            }
        }
    }

    let folder = tempfile::tempdir().unwrap();
    for snapshot in &snapshots {
        let places: Vec<[usize; 2]> = snapshot.elements.iter().map(|element| element.at).collect();
        let expected: Vec<[usize; 2]> =
            (0..32).flat_map(|x| (0..16).map(move |y| [x, y])).collect();
        assert_eq!(places, expected);
        let counts = [(4, snapshot.elements.len()), (2, snapshot.edges.len())];
        for (path, (corners, count)) in
            write_vtk(folder.path(), snapshot).unwrap().iter().zip(counts)
        {
            let file = vtkio::Vtk::import(path).unwrap();
            let vtkio::model::DataSet::UnstructuredGrid { pieces, .. } = file.data else {
                panic!("{}", path.display());
            };
            let vtkio::model::Piece::Inline(piece) = &pieces[0] else { panic!("not inline") };
            assert_eq!(piece.cells.types.len(), count);
            assert_eq!(piece.num_points(), corners * count);
            assert_eq!(piece.data.point.len(), 1, "displacements");
        }
        let path = folder.path().join("crack.svg");
        write_picture(&path, snapshot).unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        assert_eq!(text.matches("<polygon").count(), snapshot.elements.len());
        // Both sides of those that are broken.
        let broken = snapshot.edges.iter().filter(|edge| edge.is_broken).count();
        assert_eq!(text.matches("<line").count(), snapshot.edges.len() + broken);
        let title = format!("{} edges broken", snapshot.broken());
        assert_eq!(text.matches(&title).count(), 1, "{title}");
    }
}
