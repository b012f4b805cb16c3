//! Calls every function of the API that takes numbers with the most extreme ones: it must return an error class or do
//! its work. It must not crash, panic, hang, or end the job.
//!
//! The program is generated from the table of functions: for each function a block of calls, in which one or two
//! numbers are extreme and everything else is valid. Where a call with an extreme number would have to touch memory
//! that no program has, the elements have no bytes, or so many that their sum overflows, so that no memory may be
//! touched.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use vrt_abi::{FUNCTIONS, Function};

/// Functions that are not called, and why.
const SKIPPED: &[(&str, &str)] = &[
    ("MPI_Abort", "it ends the job"),
    ("MPI_Init_thread", "the program has begun"),
    ("MPI_Comm_call_errhandler", "called with any code, a handler may do anything"),
    ("MPI_Intercomm_create", "it waits for another group"),
    ("MPI_Intercomm_create_from_groups", "it waits for another group"),
    ("MPI_Win_start", "it waits for a post"),
    ("MPI_Session_call_errhandler", "called with any code, a handler may do anything"),
    ("MPI_Win_call_errhandler", "called with any code, a handler may do anything"),
];

/// Lengths of arrays that the program must provide: they are 0 or negative here.
const ARRAY_LENGTHS: &[(&str, &str)] = &[
    ("", "ndims"),
    ("", "nnodes"),
    ("", "indegree"),
    ("", "outdegree"),
    ("", "n"),
    ("", "length"),
    ("", "argc"),
    ("MPI_Type_create_", "count"),
    ("MPI_Type_indexed", "count"),
    ("MPI_Waitall", "count"),
    ("MPI_Waitany", "count"),
    ("MPI_Testall", "count"),
    ("MPI_Testany", "count"),
    ("MPI_Startall", "count"),
    ("MPI_Waitsome", "incount"),
    ("MPI_Testsome", "incount"),
    ("MPI_Request_get_status_a", "count"),
    ("MPI_Request_get_status_some", "incount"),
];

/// A number that a function takes.
struct Number<'a> {
    name: &'a str,
    is_wide: bool,
    /// The variable it is written to before the call, if it is not in the call itself.
    place: Option<String>,
}

struct Argument<'a> {
    kind: &'a str,
    name: &'a str,
}

fn arguments(function: &Function) -> Vec<Argument<'static>> {
    let prototype = function.prototype;
    let open = prototype.find('(').unwrap();
    let list = &prototype[open + 1..prototype.len() - 1];
    list.split(", ")
        .filter(|one| !matches!(*one, "void" | "..."))
        .map(|one| {
            let one = one.split_once('[').map_or(one, |(name, _)| name);
            let at = one.rfind([' ', '*']).unwrap() + 1;
            Argument { kind: one[..at].trim(), name: &one[at..] }
        })
        .collect()
}

fn is_array(function: &Function, name: &str) -> bool {
    function.prototype.contains(&format!(" {name}["))
}

fn is_count(function: &str, name: &str) -> bool {
    let names =
        ["count", "incount", "outcount", "sendcount", "recvcount", "origin_count", "target_count"];
    let more = ["result_count", "recvcounts", "sendcounts"];
    let of_type = ["MPI_Type_", "MPI_Status_", "MPI_Group", "MPI_Get_elements"];
    (names.contains(&name) || more.contains(&name))
        && !of_type.iter().any(|prefix| function.starts_with(prefix))
        && !is_length(function, name)
}

fn is_length(function: &str, name: &str) -> bool {
    let vector = ["MPI_Type_create_hvector", "MPI_Type_create_hvector_c"];
    ARRAY_LENGTHS.iter().any(|(prefix, of)| function.starts_with(prefix) && *of == name)
        && !(vector.contains(&function) && name == "count")
}

/// The text of an argument, and whether it is a number.
fn written<'a>(
    function: &Function,
    argument: &Argument<'a>,
    at: usize,
) -> (String, Option<Number<'a>>) {
    let (name, kind) = (argument.name, argument.kind);
    let number = |is_wide, place: Option<String>| Some(Number { name, is_wide, place });
    let array = is_array(function, name);
    let plain = |text: &str| (text.to_owned(), None);
    let comm = match function.name {
        of if of.contains("Cart") || of.contains("eighbor_") => "line",
        of if of.contains("Dist_graph_neighbors") => "dist",
        of if of.contains("Graph") => "graph",
        _ => "self",
    };
    match kind.trim_start_matches("const ") {
        "int" if name == "ranges" => {
            ("ranges".into(), number(false, Some("ranges[0][entry]".into())))
        }
        "int" if array => (format!("ints[{at}]"), number(false, Some(format!("ints[{at}][0]")))),
        "int" => (format!("(int)v[{at}]"), number(false, None)),
        "MPI_Count" if array => {
            (format!("counts[{at}]"), number(true, Some(format!("counts[{at}][0]"))))
        }
        "MPI_Aint" if array => {
            (format!("addresses[{at}]"), number(true, Some(format!("addresses[{at}][0]"))))
        }
        "MPI_Count" | "MPI_Aint" | "MPI_Offset" => (format!("v[{at}]"), number(true, None)),
        "int *" if matches!(name, "position" | "buflen") => {
            (format!("ints[{at}]"), number(false, Some(format!("ints[{at}][0]"))))
        }
        "MPI_Count *" if name == "position" => {
            (format!("counts[{at}]"), number(true, Some(format!("counts[{at}][0]"))))
        }
        "MPI_Aint *" if name == "position" => {
            (format!("addresses[{at}]"), number(true, Some(format!("addresses[{at}][0]"))))
        }
        "int *" => (format!("ints[{at}]"), None),
        "MPI_Count *" | "MPI_Offset *" => (format!("counts[{at}]"), None),
        "MPI_Aint *" => (format!("addresses[{at}]"), None),
        "void *" if name == "baseptr" => plain("&base"),
        "void *" => (format!("BUFFER({})", at % 2), None),
        "char *" if name == "datarep" => plain("\"external32\""),
        "char" if name == "datarep" => plain("\"external32\""),
        "char *" => plain(match (kind.starts_with("const"), name) {
            (true, "key") => "\"key\"",
            (true, "datarep") => "\"external32\"",
            (true, "pset_name") => "\"mpi://SELF\"",
            (true, _) => "\"value\"",
            (false, _) => "text[2]",
        }),
        "MPI_Datatype" if array => (format!("datatypes[{}]", at % 2), None),
        "MPI_Datatype" if function.name.starts_with("MPI_Type_get_contents") => plain("vector"),
        "MPI_Datatype" => plain("type"),
        "MPI_Datatype *" => plain("&made"),
        "MPI_Comm" => plain(comm),
        "MPI_Comm *" => plain("&new_comm"),
        "MPI_Group" => plain("group"),
        "MPI_Group *" => plain("&new_group"),
        "MPI_Op" => plain("op"),
        "MPI_Op *" => plain("&made_op"),
        "MPI_Errhandler *" => plain("&handler"),
        "MPI_Info *" => plain("&made_info"),
        "MPI_Win" if ["MPI_Win_lock", "MPI_Win_fence", "MPI_Win_post"].contains(&function.name) => {
            plain("idle")
        }
        "MPI_Win" => plain("win"),
        "MPI_Win *" => plain("&new_win"),
        "MPI_Info" => plain("info"),
        "MPI_Errhandler" => plain("MPI_ERRORS_RETURN"),
        "MPI_Session" => plain("session"),
        "MPI_Request" if array => plain("requests"),
        "MPI_Request" => plain("request"),
        "MPI_Request *" => plain("&request"),
        "MPI_Status *" if name == "array_of_statuses" => plain("statuses"),
        "MPI_Status *" => plain("&status"),
        "MPI_Status" => plain("statuses"),
        "MPI_Message *" => plain("&message"),
        "MPI_Message" => plain("message"),
        // Functions of the program's, and what no function has beside a number.
        _ => plain("NULL"),
    }
}

/// A number that is valid.
fn valid(function: &str, name: &str) -> &'static str {
    let key = match function {
        of if of.starts_with("MPI_Type_") => "type_key",
        of if of.starts_with("MPI_Win_") => "win_key",
        _ => "comm_key",
    };
    match name {
        "keyval" | "comm_keyval" | "type_keyval" | "win_keyval" => key,
        "insize" | "outsize" => "MEMORY",
        "lock_type" => "MPI_LOCK_SHARED",
        "order" => "MPI_ORDER_C",
        "split_type" => "MPI_COMM_TYPE_SHARED",
        "typeclass" => "MPI_TYPECLASS_INTEGER",
        "disp_unit" | "blocklength" | "stride" | "extent" | "ndims" | "nnodes" | "indegree"
        | "outdegree" | "n" | "partitions" | "length" | "valuelen" | "logical_size" | "p" | "r" => {
            "1"
        }
        "size" if function.contains("match_size") => "4",
        "size" => "1",
        "maxdims" | "maxindex" | "maxedges" | "maxindegree" | "maxoutdegree" | "maxneighbors" => {
            "1"
        }
        "max_integers" | "max_addresses" | "max_datatypes" | "max_large_counts" => "8",
        of if of.ends_with("count") => "1",
        _ => "0",
    }
}

/// The first entry of an array where it is not extreme.
fn valid_entry(name: &str) -> &'static str {
    match name {
        "array_of_blocklengths"
        | "array_of_gsizes"
        | "array_of_psizes"
        | "array_of_sizes"
        | "array_of_subsizes"
        | "dims"
        | "recvcounts"
        | "sendcounts"
        | "degrees" => "1",
        "array_of_distribs" => "MPI_DISTRIBUTE_NONE",
        "array_of_dargs" => "MPI_DISTRIBUTE_DFLT_DARG",
        "indx" => "1",
        "buflen" => "64",
        _ => "0",
    }
}

/// The role of a number in a call (`enum role`).
fn role(function: &str, number: &Number<'_>) -> &'static str {
    let name = number.name;
    match name {
        _ if is_length(function, name) => "LENGTH",
        // They say how long another array is.
        "degrees" | "indx" => "LENGTH",
        "insize" | "outsize" => "ROOM",
        _ if name.ends_with("displs") => "DISPLACEMENT",
        _ if is_count(function, name) && number.place.is_some() => "ENTRY_COUNT",
        _ if is_count(function, name) => "COUNT",
        _ => "PLAIN",
    }
}

/// The code that must precede a call, and the code that follows it.
fn surroundings(name: &str, tag: &str) -> (String, String) {
    let plain = name.trim_end_matches("_c");
    let sends = [
        "MPI_Send",
        "MPI_Bsend",
        "MPI_Ssend",
        "MPI_Rsend",
        "MPI_Isend",
        "MPI_Ibsend",
        "MPI_Issend",
        "MPI_Irsend",
    ];
    let receives =
        ["MPI_Recv", "MPI_Irecv", "MPI_Probe", "MPI_Iprobe", "MPI_Mprobe", "MPI_Improbe"];
    let both = ["MPI_Sendrecv", "MPI_Sendrecv_replace", "MPI_Isendrecv", "MPI_Isendrecv_replace"];
    let is_collective = plain.starts_with("MPI_I") || plain.starts_with("MPI_R");
    let made = "request != MPI_REQUEST_NULL";
    match plain {
        _ if sends.contains(&plain) => {
            let before = "self = own(MPI_COMM_SELF); MPI_Request other = wants();";
            (before.into(), "forget(&request); forget(&other); MPI_Comm_free(&self);".into())
        }
        _ if receives.contains(&plain) || both.contains(&plain) => {
            let before = format!("self = own(MPI_COMM_SELF); tell({tag});");
            let after = "if (message != MPI_MESSAGE_NULL) MPI_Mrecv(BUFFER(3), MEMORY, MPI_BYTE, &message, \
                         MPI_STATUS_IGNORE); forget(&request); drain(); MPI_Comm_free(&self);";
            (before, after.into())
        }
        "MPI_Buffer_attach" => (String::new(), "int n; MPI_Buffer_detach(&base, &n);".into()),
        "MPI_Comm_attach_buffer" | "MPI_Session_attach_buffer" => {
            let of = if plain.contains("Comm") { "Comm" } else { "Session" };
            let object = if plain.contains("Comm") { "self" } else { "session" };
            (String::new(), format!("int n; MPI_{of}_detach_buffer({object}, &base, &n);"))
        }
        "MPI_Alloc_mem" => (String::new(), "if (base) MPI_Free_mem(base);".into()),
        "MPI_Win_lock" => {
            (String::new(), "if (code == MPI_SUCCESS) MPI_Win_unlock(0, idle);".into())
        }
        "MPI_Win_unlock" => (String::new(), String::new()),
        "MPI_Win_post" => (String::new(), "int n; MPI_Win_free(&idle); MPI_Win_allocate(MEMORY, 1, MPI_INFO_NULL, MPI_COMM_SELF, &base, &idle); (void)n;".into()),
        "MPI_Psend_init" | "MPI_Precv_init" => (String::new(), format!("if ({made}) MPI_Request_free(&request);")),
        "MPI_Recv_init" => {
            let after = format!("if ({made}) {{ MPI_Start(&request); forget(&request); MPI_Request_free(&request); }}");
            (String::new(), after)
        }
        _ if plain.ends_with("_init") => {
            let after = format!(
                "if ({made}) {{ MPI_Start(&request); MPI_Wait(&request, MPI_STATUS_IGNORE); \
                 MPI_Request_free(&request); }}"
            );
            match plain.ends_with("send_init") || plain == "MPI_Send_init" {
                true => {
                    let before = "self = own(MPI_COMM_SELF); MPI_Request other = wants();";
                    (before.into(), format!("{after} forget(&other); MPI_Comm_free(&self);"))
                }
                false => (String::new(), after),
            }
        }
        _ if is_collective => {
            (String::new(), format!("if ({made}) MPI_Wait(&request, MPI_STATUS_IGNORE);"))
        }
        _ => (String::new(), String::new()),
    }
}

/// The generated calls of a function: its call, its numbers, and the line that begins them.
fn calls(function: &Function) -> Option<(String, String)> {
    let name = function.name;
    let written: Vec<_> = arguments(function)
        .iter()
        .enumerate()
        .map(|(at, argument)| written(function, argument, at))
        .collect();
    let (mut before, mut numbers, mut tag) = (String::new(), Vec::new(), "0".to_owned());
    for (at, (_, number)) in written.iter().enumerate() {
        let Some(number) = number else { continue };
        if let Some(place) = &number.place {
            write!(before, "{place} = v[{at}]; ").unwrap();
        }
        if matches!(number.name, "tag" | "recvtag") {
            tag = format!("v[{at}]");
        }
        let valid = match number.place {
            Some(_) => valid_entry(number.name),
            None => valid(name, number.name),
        };
        numbers.push(format!(
            "{{\"{}\", {at}, {}, {}, {valid}}}",
            number.name,
            u8::from(number.is_wide),
            role(name, number)
        ));
    }
    if numbers.is_empty() {
        return None;
    }
    let list: Vec<&str> = written.iter().map(|(text, _)| text.as_str()).collect();
    // What gives no code, but a handle or a number, is called all the same.
    let gives_code = function.prototype.starts_with("int ") && !name.ends_with("_toint");
    let result = if gives_code { "int code =" } else { "int code = MPI_SUCCESS; (void)" };
    let (around, after) = surroundings(name, &tag);
    let text = format!(
        "static int of_{name}(void) {{\n    {before}{around}\n    {result} {name}({});\n    {after}\n    \
         return code;\n}}\n\n",
        list.join(", ")
    );
    let line = format!(
        "        const struct number numbers[] = {{{}}};\n        run(\"{name}\", of_{name}, numbers, {}, {}, \
         {});\n",
        numbers.join(", "),
        numbers.len(),
        u8::from(function.prototype.contains("MPI_Datatype ")),
        u8::from(function.prototype.contains("MPI_Win"))
    );
    Some((text, line))
}

/// The program.
fn program() -> String {
    let is_called = |function: &&Function| {
        vrt_mpi::has_function(function.name)
            && !SKIPPED.iter().any(|(name, _)| *name == function.name)
    };
    let (mut all, mut main) = (String::from("#include \"extremes.h\"\n\n"), String::new());
    for function in FUNCTIONS.iter().filter(is_called) {
        let Some((text, line)) = calls(function) else { continue };
        all.push_str(&text);
        let name = function.name;
        write!(main, "    if (!only || !strcmp(only, \"{name}\")) {{\n{line}    }}\n").unwrap();
    }
    format!(
        "{all}int main(int argc, char **argv) {{\n    begin(argc, argv);\n    const char *only = argc > 2 ? argv[2] \
         : NULL;\n{main}    return finish();\n}}\n"
    )
}

#[test]
fn no_number_is_too_extreme() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("programs/extremes");
    fs::create_dir_all(&folder).unwrap();
    let (source, file, at) = (folder.join("calls.c"), folder.join("calls"), folder.join("now"));
    fs::write(&source, program()).unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/c");
    let mut compiler = Command::new("timeout");
    compiler.args(["--kill-after=5", "300", env!("CARGO_BIN_EXE_vrtcc")]);
    compiler.args(["-O0", "-w", "-I"]).args([&here, &source]).arg("-o").arg(&file);
    let output = compiler.env("XDG_CACHE_HOME", folder.join("cache")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut job = Command::new("timeout");
    job.args(["--kill-after=5", "60", env!("CARGO_BIN_EXE_vrtrun"), "--pes", "1", "--ranks", "1"]);
    let output = job.arg(&file).arg(&at).args(env::var("VRT_TEST_ONLY")).output().unwrap();
    let (said, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let last = fs::read(&at).unwrap_or_default();
    let last = String::from_utf8_lossy(last.split(|byte| *byte == 0).next().unwrap_or_default());
    assert!(
        output.status.success() && said.contains("all came back"),
        "{}: the last call was {last}\n{said}\n{errors}",
        output.status
    );
    println!("{said}");
}
