/* The first thread ends, its rank goes on with another one; functions whose code lies on the stack. */
#include "check.h"

#include <pthread.h>
#include <unistd.h>

static pthread_key_t key;
static void of_key(void *value) { printf("rank %d: value %d\n", rank, *(int *)value); }
static void cleans(void *name) { printf("rank %d: leaves %s\n", rank, (char *)name); }
static void *last(void *unused) {
    usleep(20000);
    printf("rank %d: last words\n", rank);
    return unused;
}
static void at_exit(void) { printf("rank %d: exits\n", rank); }
static void inner(void) {
    pthread_cleanup_push(cleans, "inner");
    pthread_exit(NULL);
    pthread_cleanup_pop(0);
}
static void outer(void) {
    pthread_cleanup_push(cleans, "outer");
    pthread_cleanup_push(cleans, "none");
    pthread_cleanup_pop(0);
    inner();
    pthread_cleanup_pop(0);
}

static long apply(long (*function)(long), long value) { return function(value); }
static void *applies(void *result) {
    long base = *(long *)result;
    long add(long value) { return value + base; }
    *(long *)result = apply(add, 5);
    return NULL;
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    if (argc == 2 && strcmp(argv[1], "nested") == 0) {
        long sum = 0;
        long add(long value) { return sum += value * rank; }
        for (int i = 1; i <= 100; i++) {
            CHECK(apply(add, i) == (long)i * (i + 1) / 2 * rank);
            stir();
        }
        pthread_t thread;
        long result = rank;
        pthread_create(&thread, NULL, applies, &result);
        pthread_join(thread, NULL);
        CHECK(result == rank + 5);
        return finish("nested");
    }
    MPI_Finalize();
    pthread_t thread;
    pthread_key_create(&key, of_key);
    pthread_setspecific(key, &rank);
    pthread_create(&thread, NULL, last, NULL);
    atexit(at_exit);
    outer();
    return 1;
}
