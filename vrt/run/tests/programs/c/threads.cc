// Threads of ranks, as C++ has them: each rank waits for its own.
#include "check.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <numeric>
#include <regex>
#include <shared_mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static const int ROUNDS = 20;

static std::mutex mutex;
static std::recursive_mutex recursive;
static std::shared_mutex shared;
static std::condition_variable changed;
static std::vector<int> queue;
static bool finished;
static std::atomic<long> total;
static thread_local std::string of_thread = "new";
static thread_local int count_of_thread = 10;

struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

static void consume() {
    CHECK(of_thread == "new" && count_of_thread == 10);
    of_thread = "consumer of " + std::to_string(rank);
    for (;;) {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [] { return finished || !queue.empty(); });
        if (queue.empty()) return;
        total += queue.back();
        queue.pop_back();
        count_of_thread++;
        try {
            throw Failure(of_thread);
        } catch (const std::exception &error) {
            CHECK(error.what() == "consumer of " + std::to_string(rank));
        }
    }
}

static void producer_and_consumers() {
    finished = false;
    total = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++) threads.emplace_back(consume);
    stir();
    for (int i = 1; i <= 100; i++) {
        std::lock_guard<std::mutex> lock(mutex);
        queue.push_back(i);
        changed.notify_one();
    }
    {
        std::lock_guard<std::mutex> lock(mutex);
        finished = true;
    }
    changed.notify_all();
    for (auto &thread : threads) thread.join();
    CHECK(total == 5050 && queue.empty());
}

static void futures() {
    auto sum = std::async(std::launch::async, [](int of) {
        std::vector<long> numbers(1000);
        std::iota(numbers.begin(), numbers.end(), of);
        return std::accumulate(numbers.begin(), numbers.end(), 0L);
    }, rank);
    auto fails = std::async(std::launch::async, []() -> int { throw Failure("in a thread"); });
    std::promise<std::string> promise;
    std::thread teller([&] { promise.set_value(std::to_string(rank)); });
    stir();
    CHECK(sum.get() == 499500 + 1000L * rank);
    bool caught = false;
    try {
        fails.get();
    } catch (const Failure &failure) {
        caught = failure.what() == std::string("in a thread");
    }
    CHECK(caught && promise.get_future().get() == std::to_string(rank));
    teller.join();
}

static void locks_of_one_thread() {
    std::unique_lock<std::recursive_mutex> one(recursive);
    std::unique_lock<std::shared_mutex> writer(shared);
    static std::once_flag flag;
    static int called;
    std::call_once(flag, [] { called++; });
    stir();
    CHECK(recursive.try_lock() && called == 1);
    recursive.unlock();
}

static void libraries_of_cpp(int round) {
    std::smatch parts;
    std::string text = "rank " + std::to_string(rank) + ", round " + std::to_string(round);
    CHECK(std::regex_match(text, parts, std::regex("rank (\\d+), round (\\d+)")));
    stir();
    CHECK(parts[1] == std::to_string(rank) && parts[2] == std::to_string(round));
    auto before = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    CHECK(std::chrono::steady_clock::now() - before >= std::chrono::microseconds(200));
    bool refused = false;
    try {
        volatile size_t most = SIZE_MAX / 4;
        std::vector<char> none(most);
    } catch (const std::bad_alloc &) {
        refused = true;
    } catch (const std::length_error &) {
        refused = true;
    }
    CHECK(refused);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    of_thread = "main of " + std::to_string(rank);
    for (int round = 0; round < ROUNDS; round++) {
        producer_and_consumers();
        futures();
        locks_of_one_thread();
        libraries_of_cpp(round);
        CHECK(of_thread == "main of " + std::to_string(rank) && count_of_thread == 10);
    }
    for (int round = 0; round < 200; round++) stir();
    return finish("threads");
}
