/* What libc reads from files when it is asked: users, hosts. */
#include "check.h"

#include <netdb.h>
#include <pwd.h>
#include <unistd.h>

int main(int argc, char **argv) {
    begin(&argc, &argv);
    for (int round = 0; round < 400; round++) {
        stir();
        struct passwd *user = getpwuid(0);
        CHECK(user && strcmp(user->pw_name, "root") == 0);
        stir();
        CHECK(strcmp(user->pw_name, "root") == 0);
        char host[256] = "";
        CHECK(gethostname(host, sizeof host) == 0 && host[0]);
        struct addrinfo *found = NULL;
        CHECK(getaddrinfo("127.0.0.1", "80", NULL, &found) == 0 && found);
        if (found) freeaddrinfo(found);
    }
    return finish("databases");
}
