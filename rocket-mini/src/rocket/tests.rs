//! The rocket on ranks compared with one rank, its conservation, and its output.

use std::sync::Mutex;

use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

use super::*;

fn settings(size: usize) -> Settings {
    let (cells, elements) = Settings::meshes(size);
    Settings {
        cells,
        elements,
        intervals: 6,
        interval: 0.05,
        cfl: 0.4,
        ignition: 0.0,
        heat_points: 0,
        precision: Precision { tolerance: 1e-11, max_iterations: 2_000 },
        migrate_every: 0,
        snapshot_every: 0,
    }
}

fn run_alone(settings: &Settings) -> (Outcome, Vec<Snapshot>) {
    let found = Mutex::new((Outcome::default(), Vec::new()));
    mpi::run_local(1, |world: &SimpleCommunicator| {
        let mut snapshots = Vec::new();
        let run = solve(world, settings, |_| (), |snapshot| snapshots.push(snapshot.clone()));
        *found.lock().unwrap() = (run.unwrap().unwrap().outcome, snapshots);
    });
    found.into_inner().unwrap()
}

#[test]
fn any_number_of_ranks_flies_the_same_rocket() {
    let settings = settings(24);
    let (alone, _) = run_alone(&settings);
    assert_eq!(alone.verify(&settings, &alone), Ok(()));
    assert!(alone.displacement > 1e-5 && alone.mean_pressure() > 1.05, "{alone:?}");
    for ranks in [2, 7, 12] {
        mpi::run_local(ranks, |world: &SimpleCommunicator| {
            let run = solve(world, &settings, |_| (), |_| ()).unwrap();
            assert_eq!(run.is_some(), world.rank() == 0);
            if let Some(run) = run {
                assert_eq!(run.outcome.verify(&settings, &alone), Ok(()), "{ranks} ranks");
                assert!(run.outcome.most_partners > 1);
            }
        });
    }
}

#[test]
fn a_front_of_ignition_warms_the_grain_on_its_way_on_any_number_of_ranks() {
    // The front is halfway at the end, and what it met first has settled.
    let settings =
        Settings { intervals: 30, ignition: 3.0, heat_points: MIN_POINTS as usize, ..settings(16) };
    let (alone, _) = run_alone(&settings);
    let (at_once, _) = run_alone(&Settings { ignition: 0.0, ..settings });
    let columns = settings.cells[0] * settings.cells[2];
    assert_eq!(at_once.most_warming, columns);
    assert!(alone.most_warming > 0 && alone.most_warming < columns / 2, "{alone:?}");
    assert!(alone.mean_pressure() < at_once.mean_pressure());
    assert!(alone.propellant_volume > at_once.propellant_volume);
    assert!(alone.heat > 0.0 && alone.heat < at_once.heat);
    for ranks in [2, 7] {
        mpi::run_local(ranks, |world: &SimpleCommunicator| {
            if let Some(run) = solve(world, &settings, |_| (), |_| ()).unwrap() {
                assert_eq!(run.outcome.verify(&settings, &alone), Ok(()), "{ranks} ranks");
                assert_eq!(run.outcome.most_warming, alone.most_warming);
            }
        });
    }
}

#[test]
fn the_propellant_swings_about_where_statics_put_it() {
    // A layer between walls is as stiff as E (1 - nu) / ((1 + nu) (1 - 2 nu)). Its lowest mode has
    // a period of some 7 intervals.
    let settings = Settings { intervals: 40, snapshot_every: 1, ..settings(16) };
    let (_, snapshots) = run_alone(&settings);
    let Material { young, poisson, .. } = material();
    let stiffness = young * (1.0 - poisson) / ((1.0 + poisson) * (1.0 - 2.0 * poisson));
    let (mut found, mut expected) = (0.0, 0.0);
    for snapshot in &snapshots[12..] {
        let middle = |at: &[usize; 3]| at[0] == settings.elements[0] / 2 && at[1] == 0;
        let lowest = snapshot.propellant.iter().find(|element| middle(&element.at)).unwrap();
        let below = [settings.cells[0] / 2, settings.cells[1] - 1, 0];
        let gas = snapshot.gas.iter().find(|cell| cell.at == below).unwrap();
        let thickness = PROBLEM.size()[1] + THICKNESS - lowest.corners[0][1];
        found += lowest.u[0][1];
        expected += (gas.state[4] - OUTSIDE) * thickness / stiffness;
    }
    assert!((found / expected - 1.0).abs() < 0.1, "{}", found / expected);
}

#[test]
fn propellant_that_has_burned_through_is_an_error() {
    let settings = Settings { intervals: 40, interval: 1.0, ..settings(8) };
    mpi::run_local(1, |world: &SimpleCommunicator| {
        let error = solve(world, &settings, |_| (), |_| ()).unwrap_err();
        assert!(matches!(error, Error::BurnedThrough { .. }), "{error}");
    });
}

#[test]
fn snapshots_have_the_whole_rocket_and_become_files() {
    let settings = Settings { snapshot_every: 3, ..settings(16) };
    let (_, snapshots) = run_alone(&settings);
    assert_eq!(snapshots.iter().map(|s| s.interval).collect::<Vec<_>>(), [0, 3, 6]);
    let folder = tempfile::tempdir().unwrap();
    for snapshot in &snapshots {
        assert_eq!(snapshot.gas.len(), settings.cells.iter().product::<usize>());
        assert_eq!(snapshot.propellant.len(), settings.elements.iter().product::<usize>());
        for path in write_vtk(folder.path(), snapshot).unwrap() {
            let file = vtkio::Vtk::import(&path).unwrap();
            let vtkio::model::DataSet::UnstructuredGrid { pieces, .. } = file.data else {
                panic!("{}", path.display());
            };
            let vtkio::model::Piece::Inline(piece) = &pieces[0] else { panic!("not inline") };
            let is_gas = path.to_string_lossy().contains("gas");
            let count = if is_gas { snapshot.gas.len() } else { snapshot.propellant.len() };
            assert_eq!(piece.cells.types.len(), count);
            assert_eq!(piece.num_points(), 8 * count);
        }
    }
    let path = folder.path().join("rocket.svg");
    write_picture(&path, &snapshots).unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    let in_slice = |snapshot: &Snapshot| {
        let gas = snapshot.gas.iter().filter(|cell| cell.at[2] == settings.cells[2] / 2).count();
        let middle = settings.elements[2] / 2;
        gas + snapshot.propellant.iter().filter(|element| element.at[2] == middle).count()
    };
    assert_eq!(text.matches("<polygon").count(), snapshots.iter().map(in_slice).sum::<usize>());
}
