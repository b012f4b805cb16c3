/* Short messages and collective operations for as long as it takes that ranks move at any point of them: while
 * their PE waits for a message to another one, or goes from one rank to the next. */
#include "check.h"

#define ROUNDS 50000

int main(int argc, char **argv) {
    begin(&argc, &argv);
    for (int round = 0; round < ROUNDS; round++) stir();
    return finish("exchanges");
}
