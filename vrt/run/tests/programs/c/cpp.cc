// C++ with a runtime of each rank's own: constructors, streams, exceptions, type information.
#include "check.h"

#include <functional>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <vector>

static const int ROUNDS = 600;

// Destroyed last, as it is made first; what the others did in their destructors is to be seen here.
struct Last {
    int made = 1, destroyed = 0;
    ~Last() {
        std::printf("rank %d: %d destroyed, %s\n", rank, destroyed, destroyed == 3 ? "all" : "not all");
    }
};
static Last last_one;

struct Counted {
    Counted() { order = last_one.made++; }
    ~Counted() {
        last_one.destroyed++;
        if (order != 4 - last_one.destroyed) std::printf("rank %d: destroyed out of order\n", rank);
    }
    int order;
};
static Counted one, two;

static std::string greeting = "a string that does not fit into the object itself";
static std::vector<int> numbers = {1, 2, 3};
static std::map<std::string, std::function<long(long)>> functions = {
    {"twice", [](long x) { return 2 * x; }},
    {"next", [](long x) { return x + 1; }},
};

thread_local std::vector<std::string> of_thread = {"first"};
thread_local int plain_of_thread = 5;

struct Shape {
    virtual ~Shape() = default;
    virtual int corners() const = 0;
};
static int made;
template <int N> struct Polygon : Shape {
    static int count;
    Polygon() { count++, made++; }
    int corners() const override { return N; }
};
template <int N> int Polygon<N>::count = 0;

inline int &of_inline_function() {
    static int count = 100;
    return ++count;
}

static Counted &in_function() {
    static Counted made_late;
    return made_late;
}

struct Failure : std::runtime_error {
    int of;
    explicit Failure(int rank)
        : std::runtime_error("the failure of rank " + std::to_string(rank)), of(rank) {}
};

static int depth;
struct Depth {
    Depth() { depth++; }
    ~Depth() { depth--; }
};

static int pass(int out, int tag) {
    int in = -1;
    MPI_Sendrecv(&out, 1, MPI_INT, next_rank(), tag, &in, 1, MPI_INT, previous_rank(), tag,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return in;
}

// Throws out of some frames, below which the rank waited for a message.
static void descend(int levels) {
    Depth here;
    if (levels > 0) {
        descend(levels - 1);
        return;
    }
    CHECK(pass(rank, 1) == previous_rank());
    throw Failure(rank);
}

static void exceptions(int round) {
    bool caught = false;
    try {
        descend(round % 7);
    } catch (const std::exception &error) {
        // Others throw and catch while this one waits in its handler.
        CHECK(pass(10 * rank, 2) == 10 * previous_rank());
        const auto *failure = dynamic_cast<const Failure *>(&error);
        CHECK(failure && failure->of == rank);
        CHECK(error.what() == "the failure of rank " + std::to_string(rank));
        try {
            throw std::string("inner ") + std::to_string(rank);
        } catch (std::string &text) {
            CHECK(pass(rank, 3) == previous_rank());
            CHECK(text == "inner " + std::to_string(rank));
        }
        CHECK(std::current_exception() != nullptr);
        try {
            CHECK(pass(rank, 4) == previous_rank());
            throw;
        } catch (const Failure &again) {
            caught = again.of == rank;
        }
    }
    CHECK(caught && depth == 0 && std::uncaught_exceptions() == 0);
    CHECK(std::current_exception() == nullptr);
    try {
        std::vector<int>().at(round);
        CHECK(false);
    } catch (const std::out_of_range &) {
    }
}

static void types(int round) {
    std::unique_ptr<Shape> shape;
    if (rank % 2) shape = std::make_unique<Polygon<3>>();
    else shape = std::make_unique<Polygon<4>>();
    stir();
    CHECK(shape->corners() == (rank % 2 ? 3 : 4));
    CHECK((dynamic_cast<Polygon<3> *>(shape.get()) != nullptr) == (rank % 2 == 1));
    CHECK(typeid(*shape) == (rank % 2 ? typeid(Polygon<3>) : typeid(Polygon<4>)));
    CHECK(made == round + 1 && Polygon<3>::count + Polygon<4>::count == made);
}

static void streams() {
    CHECK(std::cout.precision() == 3 + rank % 4 && std::cout.fill() == 'a' + rank % 26);
    std::ostringstream out;
    out << std::fixed << std::setprecision(2) << rank + 0.126 << ' ' << std::hex << 255;
    CHECK(out.str() == std::to_string(rank) + ".13 ff");
    std::istringstream in(out.str());
    double number;
    in >> number;
    CHECK(number == rank + 0.13);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    CHECK(one.order == 1 && two.order == 2 && in_function().order == 3);
    CHECK(greeting.size() == 49 && numbers.size() == 3 && functions.size() == 2);
    greeting += " of rank " + std::to_string(rank);
    functions["own"] = [](long x) { return 1000 * rank + x; };
    std::cout << std::setprecision(3 + rank % 4) << std::setfill(char('a' + rank % 26));
    plain_of_thread += rank;
    for (int round = 0; round < ROUNDS; round++) {
        exceptions(round);
        types(round);
        streams();
        numbers.push_back(rank + round);
        of_thread.push_back(std::to_string(rank));
        CHECK(greeting.substr(49) == " of rank " + std::to_string(rank));
        CHECK(functions["own"](round) == 1000 * rank + round && functions["twice"](round) == 2 * round);
        CHECK(of_inline_function() == 101 + round);
        CHECK(plain_of_thread == 5 + rank && (int)of_thread.size() == round + 2);
        CHECK(of_thread.front() == "first" && of_thread.back() == std::to_string(rank));
    }
    CHECK((int)numbers.size() == 3 + ROUNDS && numbers.back() == rank + ROUNDS - 1);
    std::cout << std::flush;
    return finish("cpp");
}
