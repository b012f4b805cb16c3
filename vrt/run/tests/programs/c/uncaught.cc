// Ends by what C++ does not allow, on one rank.
#include "check.h"

#include <exception>
#include <stdexcept>
#include <string>

struct Shape {
    Shape() { draw(); }
    virtual ~Shape() = default;
    void draw() { corners(); }
    virtual int corners() const = 0;
};
struct Square : Shape {
    int corners() const override { return 4; }
};

static void fails() { throw std::runtime_error("an error that nobody catches"); }
static void must_not_fail() noexcept { fails(); }

struct Destroyed {
    ~Destroyed() { std::printf("destroyed\n"); }
};

int main(int argc, char **argv) {
    begin(&argc, &argv);
    std::string what = argc == 2 ? argv[1] : "";
    if (rank == 1) {
        static Destroyed at_exit;
        Destroyed on_stack;
        if (what == "uncaught") fails();
        if (what == "noexcept") must_not_fail();
        if (what == "pure") Square();
        if (what == "terminate") std::terminate();
        if (what == "exit") std::exit(5);
        if (what == "quick_exit") std::quick_exit(6);
    }
    return finish("uncaught");
}
