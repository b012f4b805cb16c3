//! Verification: constants and linear fields, forces, and meshes spread over ranks.

use mpi::topology::SimpleCommunicator;
use mpi::traits::*;

use super::*;

/// The faces of a graded mesh, distributed: every `count`th strip from `first` on.
fn mesh(cells: [usize; 2], grading: f64, first: usize, count: usize) -> Vec<Face> {
    let lines = cells.map(|cells| graded_lines(cells, grading));
    let mut faces = Vec::new();
    for j in 0..cells[1] {
        for i in (0..cells[0]).filter(|i| i % count == first) {
            faces.push(Face {
                number: (j * cells[0] + i) as u64,
                low: [lines[0][i], lines[1][j]],
                high: [lines[0][i + 1], lines[1][j + 1]],
            });
        }
    }
    faces
}

fn corners(face: &Face, field: impl Fn([f64; 2]) -> f64) -> Corners {
    let Face { low, high, .. } = face;
    [*low, [high[0], low[1]], [low[0], high[1]], *high].map(field)
}

fn linear([x, y]: [f64; 2]) -> f64 {
    2.0 - 3.0 * x + 0.5 * y
}

#[test]
fn loads_of_linear_fields_are_those_of_the_mesh_itself() {
    let (fluid, solid) = (mesh([13, 9], 0.3, 0, 1), mesh([5, 7], -0.4, 0, 1));
    let loads: Vec<Corners> = fluid.iter().map(|face| corners(face, linear)).collect();
    let found = forces(&solid, &fluid, &loads);
    let mut total = 0.0;
    for (face, found) in solid.iter().zip(&found) {
        let mut own = [0.0; 4];
        face.add_load(&mut own, face, &corners(face, linear));
        assert!(own.iter().zip(found).all(|(a, b)| (a - b).abs() < 1e-15), "{own:?} {found:?}");
        total += found.iter().sum::<f64>();
    }
    assert!((total - 0.75).abs() < 1e-14, "the integral of the field: {total}");
}

#[test]
fn any_load_keeps_its_force_and_its_moment() {
    let (fluid, solid) = (mesh([4, 31], 0.5, 0, 1), mesh([9, 6], 0.2, 0, 1));
    let wild = |face: &Face| [0, 1, 2, 3].map(|c| (7.0 * (face.number * 4 + c) as f64).sin());
    let loads: Vec<Corners> = fluid.iter().map(wild).collect();
    let found = forces(&solid, &fluid, &loads);
    for field in [|_: [f64; 2]| 1.0, |[x, _]: [f64; 2]| x, |[_, y]: [f64; 2]| y] {
        // A corner's force does work by the field's value there; linear fields are their own
        // interpolation, so the work is the integral of load times field on either mesh.
        let work = |faces: &[Face], forces: &[Corners]| -> f64 {
            let of_face = |(face, forces): (&Face, &Corners)| {
                corners(face, field).iter().zip(forces).map(|(f, g)| f * g).sum::<f64>()
            };
            faces.iter().zip(forces).map(of_face).sum()
        };
        let own = forces_of_themselves(&fluid, &loads);
        assert!((work(&fluid, &own) - work(&solid, &found)).abs() < 1e-14);
    }
}

fn forces_of_themselves(faces: &[Face], loads: &[Corners]) -> Vec<Corners> {
    let own = |(face, load): (&Face, &Corners)| {
        let mut own = [0.0; 4];
        face.add_load(&mut own, face, load);
        own
    };
    faces.iter().zip(loads).map(own).collect()
}

#[test]
fn points_get_linear_fields_exactly_and_none_outside() {
    let solid = mesh([5, 7], 0.4, 0, 1);
    let values: Vec<[Corners; 1]> = solid.iter().map(|face| [corners(face, linear)]).collect();
    let points: Vec<[f64; 2]> = (0..=20)
        .flat_map(|i| (0..=10).map(move |j| [f64::from(i) / 20.0, f64::from(j) / 10.0]))
        .collect();
    for (point, value) in points.iter().zip(interpolate(&points, &solid, &values)) {
        assert!((value.unwrap()[0] - linear(*point)).abs() < 1e-14);
    }
    assert_eq!(interpolate(&[[1.1, 0.5]], &solid, &values), [None]);
}

#[test]
fn a_route_brings_each_rank_the_faces_that_touch_its_own() {
    for ranks in [1, 2, 7, 16] {
        mpi::run_local(ranks, |world: &SimpleCommunicator| {
            let (rank, ranks) = (world.rank() as usize, ranks as usize);
            let sources = mesh([23, 6], 0.3, rank, ranks);
            let targets = mesh([11, 8], -0.2, ranks - 1 - rank, ranks);
            let route = Route::discover(world, &sources, &targets);
            let all = mesh([23, 6], 0.3, 0, 1);
            let expected: Vec<Face> = (all.into_iter())
                .filter(|face| targets.iter().any(|target| target.touches(face)))
                .collect();
            let found: Vec<Face> = (route.faces.iter().copied())
                .filter(|face| targets.iter().any(|target| target.touches(face)))
                .collect();
            assert_eq!(found, expected);
            let values: Vec<[f64; 2]> =
                sources.iter().map(|face| [face.number as f64, face.low[0]]).collect();
            for (face, value) in route.faces.iter().zip(route.send(world, &values)) {
                assert_eq!(value, [face.number as f64, face.low[0]]);
            }
        });
    }
}
