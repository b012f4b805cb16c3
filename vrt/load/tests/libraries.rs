//! Where libraries are found, and which ones are loaded.

mod harness;

use harness::{LIBC, Workshop, open, run};

const USER: &str = r#"
int value(void);
int main(void) { report("value", value()); return 0; }
"#;

fn valued(value: u32) -> String {
    format!("int value(void) {{ return {value}; }}")
}

#[test]
fn run_paths_are_followed_as_the_systems_loader_does() {
    let workshop = Workshop::new();
    for folder in ["one", "two", "link"] {
        std::fs::create_dir(workshop.path(folder)).unwrap();
    }
    workshop.library("one/libvalue.so", &valued(1), "-Wl,-soname,libvalue.so");
    workshop.library("two/libvalue.so", &valued(2), "-Wl,-soname,libvalue.so");
    let build =
        |name: &str, flags: &str| workshop.program(name, USER, &format!("-Lone -lvalue {flags}"));
    let new = build("new", "-Wl,--enable-new-dtags,-rpath,/nowhere:$ORIGIN/two:$ORIGIN/one");
    let old = build("old", "-Wl,--disable-new-dtags,-rpath,${ORIGIN}/one");
    // Where the program is reached by a link, the file's own folder counts.
    let link = workshop.path("link/linked");
    std::os::unix::fs::symlink(workshop.path("new"), &link).unwrap();
    for (program, value) in [(&new, 2), (&old, 1), (&link, 2)] {
        let native = workshop.native(program);
        assert_eq!(native.value("value"), value);
        assert_eq!(run(&open(program, LIBC), 2)[1], native);
    }
}

#[test]
fn an_old_run_path_serves_the_libraries_libraries_too() {
    let workshop = Workshop::new();
    std::fs::create_dir(workshop.path("deep")).unwrap();
    workshop.library("deep/libvalue.so", &valued(3), "-Wl,-soname,libvalue.so");
    let middle = "int value(void); int middle(void) { return value(); }";
    workshop.library("deep/libmiddle.so", middle, "-Wl,-soname,libmiddle.so -Ldeep -lvalue");
    let source = r#"
        int middle(void);
        int main(void) { report("value", middle()); return 0; }"#;
    let flags =
        "-Ldeep -lmiddle -Wl,--disable-new-dtags,-rpath,$ORIGIN/deep -Wl,--allow-shlib-undefined";
    let program = workshop.program("user", source, flags);
    let native = workshop.native(&program);
    assert_eq!(native.value("value"), 3);
    let plan = open(&program, LIBC);
    assert_eq!(run(&plan, 2)[0], native);
    let names: Vec<_> = plan.modules().iter().map(|module| module.name.as_str()).collect();
    assert_eq!(names, ["user", "libmiddle.so", "libvalue.so"]);
}

#[test]
fn a_library_under_two_names_is_loaded_once() {
    let workshop = Workshop::new();
    let counting = "static int count; int value(void) { return ++count; }";
    // Without a name of its own it is known by those of its files.
    workshop.c("libvalue.so", counting, "-fPIC -shared");
    std::os::unix::fs::symlink(workshop.path("libvalue.so"), workshop.path("libother.so")).unwrap();
    let middle = "int value(void); int middle(void) { return value(); }";
    workshop.library("libmiddle.so", middle, "-L. -lother -Wl,-rpath,$ORIGIN");
    let source = r#"
        int value(void); int middle(void);
        int main(void) { value(); middle(); report("value", value()); return 0; }"#;
    let flags = "-L. -lvalue -lmiddle -Wl,-rpath,$ORIGIN";
    let program = workshop.program("user", source, flags);
    let plan = open(&program, LIBC);
    assert_eq!(plan.modules().len(), 3);
    for outcome in run(&plan, 2) {
        assert_eq!(outcome.value("value"), 3);
    }
}

#[test]
fn a_library_can_be_the_processs_or_the_images() {
    let workshop = Workshop::new();
    let counting = r#"
        static int count; __thread int local = 4;
        int value(void) { return __atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST); }"#;
    workshop.library("libcount4f3.so", counting, "");
    let source = r#"
        int value(void);
        int main(void) { meet(); report("value", value()); meet(); return value() - 2; }"#;
    let program = workshop.program("user", source, "-L. -lcount4f3 -Wl,-rpath,$ORIGIN");
    let plan = open(&program, LIBC);
    assert!(plan.has_private("libcount4f3.so") && !plan.has_private("libc.so"));
    assert!(run(&plan, 3).iter().all(|outcome| outcome.value("value") == 1));
    // Found by the program's run path, of which the process knows nothing.
    let plan = open(&program, &[LIBC, &["libcount4f3.so"]].concat());
    assert_eq!(plan.modules().len(), 1);
    let mut values: Vec<_> = run(&plan, 3).iter().map(|outcome| outcome.value("value")).collect();
    values.sort_unstable();
    assert_eq!(values, [1, 2, 3]);
}

#[test]
fn an_image_is_described_for_debuggers_and_unwinding() {
    let workshop = Workshop::new();
    workshop.library("libvalue.so", &valued(1), "");
    let program = workshop.program("user", USER, "-L. -lvalue -Wl,-rpath,$ORIGIN");
    let plan = open(&program, LIBC);
    let modules = plan.modules();
    assert_eq!(modules[0].path, program.canonicalize().unwrap());
    let mut end = 0;
    for module in modules {
        assert!(module.span.start >= end && module.span.end <= plan.size());
        end = module.span.end;
        let (headers, count) = module.program_headers.unwrap();
        assert!(count > 3 && module.span.contains(&headers));
        let table = module.unwind_table.unwrap();
        for offset in [module.span.start, table, module.span.end - 1] {
            assert_eq!(plan.find_module(offset).unwrap().path, module.path);
        }
    }
    assert!(plan.find_module(plan.thread_pointer(0)).is_none());
    assert!(plan.find_module(plan.size()).is_none());
    // Code and data share no page, and are inside of the modules or the thread block.
    for code in plan.code() {
        let range = code.offset..code.offset + code.len;
        assert!(plan.data().iter().all(|data| data.end <= range.start || data.start >= range.end));
        assert!(modules[code.module].span.contains(&range.start));
    }
    assert!(plan.data().iter().any(|data| data.contains(&plan.thread_pointer(0))));
    assert!(plan.data().iter().all(|data| data.end <= plan.size()));
}

#[test]
fn code_is_mapped_in_few_pieces() {
    let workshop = Workshop::new();
    let plan = open(&workshop.program("small", "int main(void) { return 0; }", ""), LIBC);
    // GNU ld: what is read, what runs, and constants are one. lld has other distances for some of
    // it.
    let pieces = plan.code().len();
    assert!((1..=2).contains(&pieces), "{:?}", plan.code());
    // Data and the thread block are one more.
    assert_eq!(plan.mappings(), pieces + 1);
}

#[test]
fn a_library_that_is_linked_to_an_address_lies_elsewhere() {
    let workshop = Workshop::new();
    let source =
        "static int number = 5; int *address = &number; int value(void) { return *address; }";
    workshop.library("libvalue.so", source, "-Wl,-Ttext-segment=0x7000000");
    let program = workshop.program("user", USER, "-L. -lvalue -Wl,-rpath,$ORIGIN");
    let plan = open(&program, LIBC);
    let library = &plan.modules()[1];
    assert_eq!(library.bias.wrapping_add(0x700_0000), library.span.start);
    assert!(plan.size() < 1 << 20);
    for outcome in run(&plan, 2) {
        assert_eq!(outcome.value("value"), 5);
    }
}
