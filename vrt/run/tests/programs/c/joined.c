/* Ranks have threads for a short time, and then none any more. */
#include "check.h"

#include <pthread.h>
#include <time.h>

static void *run(void *argument) { return argument; }

int main(int argc, char **argv) {
    begin(&argc, &argv);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) CHECK(pthread_create(&threads[i], NULL, run, &threads[i]) == 0);
    for (int i = 0; i < 3; i++) {
        void *result = NULL;
        CHECK(pthread_join(threads[i], &result) == 0 && result == &threads[i]);
    }
    for (int round = 0; round < 1000; round++) stir();
    return finish("joined");
}
