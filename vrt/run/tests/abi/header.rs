//! `mpi.h` as compilers see it.

use std::fmt::Write;

use vrt_abi::{CONSTANTS, DATATYPES, FUNCTIONS, HEADER, Kind, NamedDatatype, Native};

use crate::tools::{Place, is_installed, succeed};

const STRICT: &[&str] = &["-Wall", "-Wextra", "-Werror", "-pedantic"];

fn with_header() -> Place {
    let place = Place::new();
    place.write("mpi.h", HEADER);
    place
}

/// Compiled as if included by two other headers, and with no other header before it.
#[test]
fn it_is_c_and_cxx_without_a_warning() {
    let place = with_header();
    let c = place.write("a.c", "#include \"mpi.h\"\n#include \"mpi.h\"\nMPI_Comm c;\n");
    let cxx = place.write("a.cc", "#include \"mpi.h\"\n#include \"mpi.h\"\nMPI_Comm c;\n");
    let cases = [("gcc", "g++"), ("clang", "clang++")];
    for (c_compiler, cxx_compiler) in cases.into_iter().filter(|(c, _)| is_installed(c)) {
        let cases = [
            (c_compiler, &c, ["c89", "c99", "c11", "c17"].as_slice()),
            (cxx_compiler, &cxx, &["c++98", "c++11", "c++17", "c++20"]),
        ];
        for (compiler, source, standards) in cases {
            for standard in standards {
                let mut command = place.command(compiler);
                command.arg(format!("-std={standard}")).args(STRICT).arg("-fsyntax-only");
                succeed(command.arg(source));
            }
        }
    }
}

/// A program that checks each constant's type and value against the table.
#[test]
fn every_constant_has_its_type_and_value() {
    let place = with_header();
    let mut text = String::from(
        "#include \"mpi.h\"\n\
         #include <stdio.h>\n\
         #define IS(type, expression) \\\n\
         _Static_assert(_Generic((expression), type: 1, default: 0), #expression)\n\
         static int wrong;\n\
         static void same(const char *name, intptr_t value, intptr_t expected)\n\
         { if (value != expected) { printf(\"%s is %ld\\n\", name, (long)value); wrong = 1; } }\n\
         int main(void)\n{\n",
    );
    for constant in CONSTANTS {
        let (name, value) = (constant.name, constant.value);
        // Enumerators are of type int, also those of an enumeration that is a type.
        let c_type = match constant.c_type {
            "MPI_T_cb_safety" | "MPI_T_source_order" => "int",
            other => other,
        };
        let _ = writeln!(text, "IS({c_type}, {name});");
        // What is no pointer is a constant of the compiler's, too.
        let _ = match c_type {
            "int" | "MPI_Offset" => {
                writeln!(text, "_Static_assert({name} == {value}, \"{name}\");")
            }
            _ => writeln!(text, "same(\"{name}\", (intptr_t){name}, {value});"),
        };
    }
    text.push_str("return wrong;\n}\n");
    place.write("constants.c", &text);
    succeed(place.command("cc").args(["-std=c11", "-Wall", "-Werror", "constants.c", "-o", "c"]));
    succeed(&mut place.command(place.join("c")));
}

/// Declares each function once more as in the table, under both names.
#[test]
fn every_function_is_declared() {
    let place = with_header();
    let mut text = String::from("#include \"mpi.h\"\n");
    for function in FUNCTIONS {
        let profiled =
            function.prototype.replacen(function.name, &format!("P{}", function.name), 1);
        let _ = writeln!(text, "{};\n{profiled};", function.prototype);
        let (name, at) = (function.name, FUNCTIONS.len());
        let _ = writeln!(text, "void *address_of_{name}_{at}(void) {{ return (void *)P{name}; }}");
    }
    place.write("functions.c", &text);
    succeed(place.command("cc").args(["-std=c11", "-Wall", "-Werror", "-c", "functions.c"]));
}

#[test]
fn datatypes_have_the_sizes_of_their_types() {
    let place = with_header();
    let mut c = String::from(
        "#include \"mpi.h\"\n#include <stddef.h>\n#include <wchar.h>\n\
         _Static_assert(sizeof(MPI_Status) == 32 && sizeof(MPI_Comm) == 8, \"sizes\");\n",
    );
    let mut cxx = String::from("#include <complex>\n");
    for datatype in DATATYPES {
        let NamedDatatype { name, size, extent, alignment, .. } = *datatype;
        let _ = match (datatype.native, datatype.kind) {
            (Some(Native::C(native)), _) => writeln!(
                c,
                "_Static_assert(sizeof({native}) == {size} && _Alignof({native}) == {alignment}, \
                 \"{name}\");"
            ),
            (Some(Native::Cxx(native)), _) => writeln!(
                cxx,
                "static_assert(sizeof({native}) == {size} && alignof({native}) == {alignment}, \
                 \"{name}\");"
            ),
            (None, Kind::Pair { value, index, index_offset }) => {
                let half = |handle| match NamedDatatype::of(handle).unwrap().native {
                    Some(Native::C(native)) => native,
                    // Fortran's are of these sizes.
                    Some(Native::Fortran("INTEGER")) => "int",
                    Some(Native::Fortran("REAL")) => "float",
                    Some(Native::Fortran("DOUBLE PRECISION")) => "double",
                    other => panic!("{name} is a pair of {other:?}"),
                };
                writeln!(
                    c,
                    "struct {name} {{ {} value; {} index; }};\n\
                     _Static_assert(sizeof(struct {name}) == {extent} \
                     && offsetof(struct {name}, index) == {index_offset} \
                     && _Alignof(struct {name}) == {alignment}, \"{name}\");",
                    half(value),
                    half(index)
                )
            }
            _ => continue,
        };
    }
    // A structure's name may not be a macro's.
    let c = c.replace("struct MPI_", "struct pair_");
    place.write("sizes.c", &c);
    place.write("sizes.cc", &cxx);
    succeed(place.command("cc").args(["-std=c11", "-fsyntax-only", "sizes.c"]));
    succeed(place.command("c++").args(["-std=c++17", "-fsyntax-only", "sizes.cc"]));
}

#[test]
fn fortrans_datatypes_have_its_sizes() {
    if !is_installed("gfortran") {
        return;
    }
    let place = Place::new();
    let mut text = String::from("program sizes\n");
    let mut checks = String::new();
    for datatype in DATATYPES {
        let Some(Native::Fortran(native)) = datatype.native else { continue };
        // Halves are of no type of gfortran's.
        if matches!(datatype.name, "MPI_REAL2" | "MPI_COMPLEX4") {
            continue;
        }
        let (name, bits) = (datatype.name, datatype.size * 8);
        let _ = writeln!(text, "{native} :: x_{name}");
        let _ = writeln!(checks, "if (storage_size(x_{name}) /= {bits}) error stop \"{name}\"");
    }
    let _ = writeln!(text, "{checks}end program");
    place.write("sizes.f90", &text);
    succeed(place.command("gfortran").args(["sizes.f90", "-o", "sizes"]));
    succeed(&mut place.command(place.join("sizes")));
}
