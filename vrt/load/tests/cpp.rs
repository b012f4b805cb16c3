//! C++: constructors, exceptions, run-time types, streams; each image has its own library.

mod harness;

use harness::{LIBC, Workshop, open, run};

const PROGRAM: &str = r#"
#include <cstdlib>
#include <functional>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

struct Registry {
  std::map<std::string, std::function<long(long)>> operations;
  Registry() { operations["double"] = [](long x) { return 2 * x; }; }
  ~Registry() { report("destroyed", operations.size()); }
};
static Registry registry;
static std::vector<double> history;

struct Base { virtual ~Base() {} virtual int id() const = 0; };
template <int N> struct Derived : Base {
  static int count;
  Derived() { count++; }
  int id() const override { return N; }
};
template <int N> int Derived<N>::count = 0;

struct Error : std::runtime_error {
  int image;
  explicit Error(int image)
      : std::runtime_error("error of image " + std::to_string(image)), image(image) {}
};
static int depth;
struct Guard { Guard() { depth++; } ~Guard() { depth--; } };

static void deep(int image, int levels) {
  Guard guard;
  if (levels > 0) return deep(image, levels - 1);
  meet();
  throw Error(image);
}

thread_local std::string of_thread = "begins so";

int main(int argc, char **argv) {
  int image = std::atoi(argv[1]), wrong = 0;
  std::cout << std::setprecision(3 + image);
  of_thread += std::to_string(image);
  for (int round = 0; round < 50; round++) {
    try {
      deep(image, round % 7);
      wrong++;
    } catch (const Error &error) {
      meet();
      if (error.image != image || depth != 0) wrong++;
      if (error.what() != "error of image " + std::to_string(image)) wrong++;
      try {
        throw std::string("inner ") + std::to_string(image);
      } catch (const std::string &text) {
        meet();
        if (text != "inner " + std::to_string(image)) wrong++;
      }
      try { std::rethrow_exception(std::current_exception()); }
      catch (const std::exception &again) { if (!dynamic_cast<const Error *>(&again)) wrong++; }
    }
    // Thrown by the library, through its frames.
    try { std::vector<int>().at(5); wrong++; } catch (const std::out_of_range &) {}
    try { std::map<int, int>().at(3); wrong++; } catch (const std::out_of_range &) {}
    if (std::uncaught_exceptions() != 0) wrong++;
    std::unique_ptr<Base> base;
    if (round % 2) base.reset(new Derived<1>); else base.reset(new Derived<2>);
    if ((dynamic_cast<Derived<1> *>(base.get()) != nullptr) != (round % 2 == 1)) wrong++;
    if (typeid(*base) != (round % 2 ? typeid(Derived<1>) : typeid(Derived<2>))) wrong++;
    history.push_back(registry.operations["double"](round));
    std::ostringstream text;
    text << std::fixed << std::setprecision(2) << image + 0.126 << std::hex << 255;
    if (text.str() != std::to_string(image) + ".13ff") wrong++;
  }
  std::mt19937 random(42);
  report("random", random());
  if (history.size() != 50 || Derived<1>::count + Derived<2>::count != 50) wrong++;
  if (std::cout.precision() != 3 + image) wrong++;
  if (of_thread != "begins so" + std::to_string(image)) wrong++;
  report("wrong", wrong);
  return 0;
}
"#;

fn check(shared: &[&str], private: &[&str]) {
    let workshop = Workshop::new();
    let program = workshop.cpp("program", PROGRAM, "");
    let native = workshop.native(&program);
    assert_eq!((native.status, native.value("wrong"), native.value("destroyed")), (0, 0, 1));
    let plan = open(&program, shared);
    assert!(private.iter().all(|library| plan.has_private(library)));
    for outcome in run(&plan, 4) {
        assert_eq!(outcome, native);
    }
}

#[test]
fn a_program_has_its_own_libstdcpp() {
    check(LIBC, &["libstdc++.so"]);
}

#[test]
fn a_program_has_its_own_libstdcpp_libm_and_libgcc() {
    check(&["libc.so"], &["libstdc++.so", "libm.so", "libgcc_s.so"]);
}

#[test]
fn a_program_has_all_libraries_for_itself() {
    check(&[], &["libstdc++.so", "libm.so", "libgcc_s.so", "libc.so"]);
}

const LIBRARY: &str = r#"
#include <stdexcept>
#include <string>
struct Shape { virtual ~Shape(); virtual double area() const; };
struct Failure : std::runtime_error { using std::runtime_error::runtime_error; ~Failure(); };
Shape::~Shape() {}
double Shape::area() const { return 1; }
Failure::~Failure() {}
void call(void (*function)(), int times) {
  if (times == 0) return function();
  std::string local(100, 'x');
  call(function, times - 1);
}
void fail(const char *text) { throw Failure(text); }
"#;

const USER: &str = r#"
#include <stdexcept>
#include <string>
#include <typeinfo>
struct Shape { virtual ~Shape(); virtual double area() const; };
struct Failure : std::runtime_error { using std::runtime_error::runtime_error; ~Failure(); };
struct Square : Shape { double area() const override { return 4; } };
void call(void (*function)(), int times);
void fail(const char *text);
static int caught;
int main() {
  Square square;
  Shape *shape = &square;
  report("area", shape->area() + dynamic_cast<Square *>(shape)->Shape::area());
  for (int i = 0; i < 20; i++) {
    try { call([] { throw 5; }, i); } catch (int) { caught++; }
    meet();
    try { fail("text"); } catch (const Failure &failure) { caught += failure.what()[0] == 't'; }
    try { call([] { fail("from afar"); }, i); } catch (const std::exception &e) {
      caught += typeid(e) == typeid(Failure);
    }
  }
  report("caught", caught);
  return 0;
}
"#;

#[test]
fn exceptions_and_types_cross_a_private_library() {
    let workshop = Workshop::new();
    workshop.cpp_library("libshapes.so", LIBRARY, "");
    let program = workshop.cpp("user", USER, "-L. -lshapes -Wl,-rpath,$ORIGIN");
    let native = workshop.native(&program);
    assert_eq!((native.value("area"), native.value("caught")), (5, 60));
    for shared in [LIBC, &[]] {
        for outcome in run(&open(&program, shared), 4) {
            assert_eq!(outcome, native);
        }
    }
}
