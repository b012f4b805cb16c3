//! What is in a message: structs, and parts of arrays that do not lie side by side.
//!
//! ```sh
//! VRT_PES=2 VRT_RANKS=8 cargo run -p virtual-ranks --example datatypes
//! ```

use vrt::collective::SystemOperation;
use vrt::datatype::{MutView, UserDatatype, View};
use vrt::point_to_point::{send_receive_into, send_receive_replace_into};
use vrt::traits::*;

/// Its fields are sent, not the padding between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Equivalence)]
struct Particle {
    charge: i8,
    position: [f64; 3],
    kind: Kind,
}

/// Structs may have fields that are structs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Equivalence)]
struct Kind {
    family: u16,
    is_stable: bool,
}

const SIZE: usize = 4;

#[vrt::main]
fn main() {
    let universe = vrt::initialize().expect("main is a rank's program");
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());
    let right = world.process_at_rank((rank + 1) % size);
    let left = world.process_at_rank((rank + size - 1) % size);

    // Structs are elements like numbers, alone and in slices.
    let particle_of = |rank: i32| Particle {
        charge: if rank % 2 == 0 { 1 } else { -1 },
        position: [f64::from(rank), 0.5, -1.0],
        kind: Kind { family: rank as u16, is_stable: rank != 1 },
    };
    let mut particles = [particle_of(rank); 3];
    send_receive_replace_into(&mut particles[..], &right, &left);
    assert_eq!(particles, [particle_of(left.rank()); 3]);

    // A column of a matrix is one number of each row. A datatype says where they lie: SIZE blocks of
    // one number, SIZE numbers apart.
    let number = f64::equivalent_datatype();
    let column = UserDatatype::vector(SIZE as i32, 1, SIZE as i32, &number);
    let matrix: Vec<f64> = (0..SIZE * SIZE).map(|i| f64::from(rank) + i as f64).collect();
    let mut theirs = [0.0; SIZE];
    // SAFETY: the last number of a column that begins at the first row lies in the last row.
    let second_column = unsafe { View::with_count_and_datatype(&matrix[1..], 1, &column) };
    // What is sent as a column may be received as a row: both are SIZE numbers.
    send_receive_into(&second_column, &right, &mut theirs[..], &left);
    let expected: Vec<f64> =
        (0..SIZE).map(|row| f64::from(left.rank()) + (row * SIZE + 1) as f64).collect();
    assert_eq!(theirs[..], expected);

    // And a row as a column: this transposes.
    let mut transposed = [0.0; SIZE * SIZE];
    for row in 0..SIZE {
        let from = &matrix[row * SIZE..][..SIZE];
        // SAFETY: as above.
        let mut to =
            unsafe { MutView::with_count_and_datatype(&mut transposed[row..], 1, &column) };
        let this = world.this_process();
        send_receive_into(from, &this, &mut to, &this);
    }
    assert!((0..SIZE * SIZE).all(|i| transposed[i] == matrix[i % SIZE * SIZE + i / SIZE]));

    let mut right_ranks = 0;
    world.all_reduce_into(&1, &mut right_ranks, SystemOperation::sum());
    if rank == 0 {
        println!("{right_ranks} ranks have sent particles and columns, and transposed a matrix");
    }
}
