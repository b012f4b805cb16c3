/* A locale of each rank's own: one rank has another than the others. */
#include "check.h"

#include <ctype.h>
#include <locale.h>
#include <wchar.h>

#define ROUNDS 1500

static void locales(void) {
    stir();
    CHECK(strcmp(setlocale(LC_CTYPE, NULL), rank == 1 ? "C.UTF-8" : "C") == 0);
    CHECK(MB_CUR_MAX == (rank == 1 ? 6 : 1));
    wchar_t wide = 0;
    int length = mbtowc(&wide, "\xc3\xa4", 2);
    CHECK(rank == 1 ? length == 2 && wide == 0xe4 : length == -1);
    int number = 0;
    CHECK(toupper('a') == 'A' && sscanf(" 12", "%d", &number) == 1 && number == 12);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    if (rank == 1) CHECK(setlocale(LC_ALL, "C.UTF-8") != NULL);
    for (int round = 0; round < ROUNDS; round++) locales();
    return finish("locales");
}
