//! Thread-locals of C programs and of their libraries, for every model that the compiler uses.

use crate::program::Program;

macro_rules! models {
    ($($model:ident: $option:literal;)+) => {$(
        mod $model {
            use super::Program;

            const THREAD_LOCALS: Program = Program {
                options: &[$option],
                libraries: &["thread_locals_library.c"],
                ..Program::new("thread_locals.c")
            };

            in_places! { THREAD_LOCALS, 6 }
        }
    )+};
}

models! {
    global_dynamic: "-ftls-model=global-dynamic";
    local_dynamic: "-ftls-model=local-dynamic";
    initial_exec: "-ftls-model=initial-exec";
}

/// Only in executables.
mod local_exec {
    use super::Program;

    const THREAD_LOCALS: Program = Program {
        options: &["-DLOCAL_EXEC"],
        libraries: &["thread_locals_library.c"],
        ..Program::new("thread_locals.c")
    };

    in_places! { THREAD_LOCALS, 6 }
}
