//! Ranks ask libc for what it answers in memory of the process, move, and look at the answers again;
//! their neighbours have asked for something else meanwhile.

use std::ffi::{CStr, c_char};
use std::process::ExitCode;

use clap::Parser;
use vrt::topology::SimpleCommunicator;
use vrt::traits::*;

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    vrt: vrt::Config,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    vrt::launch(arguments.vrt, run)
}

unsafe extern "C" {
    fn asctime(time: *const libc::tm) -> *mut c_char;
    fn ctime(time: *const libc::time_t) -> *mut c_char;
    fn gethostbyname(name: *const c_char) -> *mut libc::hostent;
    fn inet_ntoa(address: u32) -> *mut c_char;
    fn strtok(text: *mut c_char, delimiters: *const c_char) -> *mut c_char;
}

/// Answers, each of a rank's own question.
struct Answers {
    local: *mut libc::tm,
    universal: *mut libc::tm,
    texts: Vec<(*mut c_char, String)>,
    user: *mut libc::passwd,
    group: *mut libc::group,
    host: *mut libc::hostent,
}

/// # Safety
/// A text.
unsafe fn text(at: *const c_char) -> String {
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned()
}

fn run() {
    let world = vrt::initialize().expect("in a rank").world();
    let me = world.rank();
    // SAFETY: plain calls of libc's; the answers are kept as long as nothing else is asked.
    unsafe {
        let answers = ask(me);
        let mut list = format!("{me}a,{me}b,{me}c\0").into_bytes();
        let list = list.as_mut_ptr().cast::<c_char>();
        let comma = c",".as_ptr();
        assert_eq!(text(strtok(list, comma)), format!("{me}a"));
        // Everybody has asked.
        world.barrier();
        look(me, &answers);
        go_on(&world);
        look(me, &answers);
        assert_eq!(text(strtok(std::ptr::null_mut(), comma)), format!("{me}b"));
        go_on(&world);
        look(me, &answers);
        assert_eq!(text(strtok(std::ptr::null_mut(), comma)), format!("{me}c"));
        assert!(strtok(std::ptr::null_mut(), comma).is_null());
    }
    world.barrier();
    if me == 0 {
        println!("answers of {} ranks are right", world.size());
    }
}

/// Everybody goes to the other PE.
fn go_on(world: &SimpleCommunicator) {
    let there = 1 - vrt::statistics().pe;
    world.migrate_to(there, &mut ()).expect("answers do not pin");
    assert_eq!(vrt::statistics().pe, there);
    world.barrier();
}

/// A moment of each rank's own.
fn moment(me: i32) -> libc::time_t {
    libc::time_t::from(me) * 86_400 * 400 + 1_000_000
}

unsafe fn ask(me: i32) -> Answers {
    // SAFETY: valid arguments.
    unsafe {
        let time = moment(me);
        let texts = [
            asctime(libc::gmtime(&time)),
            ctime(&time),
            inet_ntoa(u32::from_ne_bytes([10, 0, 0, me as u8])),
            libc::strerror(1000 + me),
            libc::strerror(libc::ENOENT),
            libc::strsignal(100 + me),
            libc::setlocale(libc::LC_ALL, std::ptr::null()),
        ];
        Answers {
            local: libc::localtime(&time),
            universal: libc::gmtime(&time),
            texts: texts.into_iter().map(|at| (at, text(at))).collect(),
            user: libc::getpwuid(user(me)),
            group: libc::getgrgid(user(me)),
            host: gethostbyname(format!("127.0.0.{}\0", me + 1).as_ptr().cast()),
        }
    }
}

/// Root, or somebody who is on all systems.
fn user(me: i32) -> libc::uid_t {
    (me % 2) as libc::uid_t
}

unsafe fn look(me: i32, answers: &Answers) {
    // SAFETY: the answers are this rank's.
    unsafe {
        assert_eq!(i64::from((*answers.universal).tm_yday), days_of(me));
        assert_eq!((*answers.local).tm_min, (*answers.universal).tm_min);
        assert!(!text((*answers.local).tm_zone).is_empty());
        for (at, before) in &answers.texts {
            assert_eq!(text(*at), *before);
        }
        assert!(answers.texts[2].1.ends_with(&format!("0.{me}")), "{:?}", answers.texts);
        assert!(answers.texts[3].1.contains(&(1000 + me).to_string()));
        let name = if user(me) == 0 { "root" } else { "daemon" };
        assert_eq!(text((*answers.user).pw_name), name);
        assert_eq!(text((*answers.group).gr_name), name);
        assert!((*answers.user).pw_dir != (*answers.user).pw_shell);
        assert_eq!((*(*answers.host).h_addr_list).cast::<[u8; 4]>().read()[3], me as u8 + 1);
        assert!((*(*answers.host).h_addr_list.add(1)).is_null());
    }
}

/// The day of the year of a rank's moment.
fn days_of(me: i32) -> i64 {
    let time = moment(me);
    // SAFETY: a structure of integers and a null pointer, which the call fills.
    unsafe {
        let mut day: libc::tm = std::mem::zeroed();
        libc::gmtime_r(&time, &mut day);
        i64::from(day.tm_yday)
    }
}
