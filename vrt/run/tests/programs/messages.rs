//! Messages between two ranks, and their datatypes.

use crate::program::Program;

mod point_to_point {
    use super::Program;

    const POINT_TO_POINT: Program = Program::new("point_to_point.c");

    in_places! { POINT_TO_POINT, 6 }
}

mod datatypes {
    use super::Program;

    const DATATYPES: Program = Program::new("datatypes.c");

    in_places! { DATATYPES, 5 }
}

mod exchanges {
    use super::Program;

    const EXCHANGES: Program = Program::new("exchanges.c");

    in_places! { EXCHANGES, 5, |_| (); moving }
}
