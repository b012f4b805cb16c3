/* Conversions, for which libc opens libraries of its own. */
#include "check.h"

#include <iconv.h>

int main(int argc, char **argv) {
    begin(&argc, &argv);
    for (int round = 0; round < 60; round++) {
        stir();
        iconv_t latin = iconv_open("UTF-8", "ISO-8859-1");
        CHECK(latin != (iconv_t)-1);
        stir();
        char in[] = "\xe4", out[8] = "", *from = in, *to = out;
        size_t left = 1, room = 8;
        if (latin != (iconv_t)-1) {
            CHECK(iconv(latin, &from, &left, &to, &room) == 0 && strcmp(out, "\xc3\xa4") == 0);
            iconv_close(latin);
        }
    }
    return finish("character_sets");
}
