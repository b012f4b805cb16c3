/* Signals as a process has them: each case says what it has seen, line by line. A test compares what a process of
 * its own says (compiled with -DALONE, without MPI) with what each rank says. No line has a time, or a number that
 * differs between two runs. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Old functions are in use, too. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static int rank;
#ifdef ALONE
static void step(void) {}
#else
#include <mpi.h>
/* Others run meanwhile, and ranks may be moved. */
static void step(void) {
    for (int i = 0; i < 3; i++) MPI_Barrier(MPI_COMM_WORLD);
}
#endif

static char said[1 << 16];
static void say(const char *format, ...) {
    size_t length = strlen(said);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(said + length, sizeof said - length, format, arguments);
    va_end(arguments);
}
static const char *name_of(int error) { return error ? strerrorname_np(error) : "-"; }

static volatile sig_atomic_t came, last, last_code, last_value;
static void count(int signal) { came++, last = signal; }
static void count_info(int signal, siginfo_t *info, void *context) {
    (void)context;
    came++, last = signal, last_code = info->si_code, last_value = info->si_value.sival_int;
}
static void handle(int signal, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigaction(signal, &action, NULL);
}
static void handle_info(int signal) {
    struct sigaction action = {.sa_sigaction = count_info, .sa_flags = SA_SIGINFO};
    sigaction(signal, &action, NULL);
}
static sigset_t set_of(int one, int other) {
    sigset_t set;
    sigemptyset(&set);
    if (one) sigaddset(&set, one);
    if (other) sigaddset(&set, other);
    return set;
}
static void timer(long first, long then) {
    struct itimerval value = {{.tv_usec = then}, {.tv_usec = first}};
    setitimer(ITIMER_REAL, &value, NULL);
}
static int is_blocked(int signal) {
    sigset_t now;
    sigprocmask(SIG_BLOCK, NULL, &now);
    return sigismember(&now, signal);
}
static void sleep_ms(long milliseconds) {
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    while (nanosleep(&time, &time) != 0) {}
}

/* Jumps. */
static sigjmp_buf place;
static void jump(int signal) { siglongjmp(place, signal); }
static void jump_plainly(int signal) { longjmp(place, signal); }
static void spin(void) {
    for (volatile double x = 0;; x += 1) {}
}
static void jump_out_of_timer(void) {
    handle(SIGALRM, jump, 0);
    for (volatile int i = 0; i < 5; i++) {
        if (sigsetjmp(place, 1) == 0) timer(2000, 0), spin();
        say("jump %d, blocked %d\n", i, is_blocked(SIGALRM));
        step();
    }
}
static void jump_out_of_periodic_timer(void) {
    handle(SIGALRM, jump, 0);
    volatile int jumps = 0;
    timer(2000, 2000);
    if (sigsetjmp(place, 1) == 0 || ++jumps < 20) spin();
    timer(0, 0);
    /* There may be one more before the timer ends. */
    say("20 jumps %d\n", jumps >= 20);
}
static void jump_out_of_raise(void) {
    handle(SIGUSR1, jump, 0);
    for (volatile int i = 0; i < 5; i++) {
        if (sigsetjmp(place, 1) == 0) raise(SIGUSR1), say("not reached\n");
        say("jump %d, blocked %d\n", i, is_blocked(SIGUSR1));
        step();
    }
}
static void jump_without_mask(void) {
    handle(SIGUSR1, jump_plainly, 0);
    for (volatile int i = 0; i < 3; i++) {
        if (sigsetjmp(place, 0) == 0) raise(SIGUSR1), say("not reached\n");
        say("jump %d, blocked %d\n", i, is_blocked(SIGUSR1));
        sigset_t set = set_of(SIGUSR1, 0);
        sigprocmask(SIG_UNBLOCK, &set, NULL);
        step();
    }
}
static void jump_without_mask_stays_blocked(void) {
    handle(SIGUSR1, jump_plainly, 0);
    if (_setjmp(place) == 0) raise(SIGUSR1);
    came = 0;
    handle(SIGUSR1, count, 0);
    raise(SIGUSR1);
    say("blocked %d, came %d\n", is_blocked(SIGUSR1), came);
    sigset_t set = set_of(SIGUSR1, 0);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    say("came %d\n", came);
}
static void jump_restores_whole_mask(void) {
    sigset_t set = set_of(SIGUSR2, SIGTERM);
    handle(SIGUSR2, count, 0);
    if (sigsetjmp(place, 1) == 0) {
        sigprocmask(SIG_BLOCK, &set, NULL);
        raise(SIGUSR2);
        say("came %d\n", came);
        siglongjmp(place, 1);
    }
    say("came %d, blocked %d %d\n", came, is_blocked(SIGUSR2), is_blocked(SIGTERM));
    sigprocmask(SIG_BLOCK, &set, NULL);
    if (sigsetjmp(place, 1) == 0) {
        sigprocmask(SIG_UNBLOCK, &set, NULL);
        siglongjmp(place, 1);
    }
    say("blocked %d %d\n", is_blocked(SIGUSR2), is_blocked(SIGTERM));
}
static void jump_out_of_waits(void) {
    handle(SIGALRM, jump, 0);
    for (volatile int i = 0; i < 6; i++) {
        int code = sigsetjmp(place, 1);
        if (code == 0) {
            timer(5000, 0);
            switch (i % 3) {
            case 0: sleep(100); break;
            case 1: pause(); break;
            default: poll(NULL, 0, 100000);
            }
            say("not reached\n");
        }
        say("jump %d out of wait %d\n", code, i % 3);
        step();
    }
}
static void jump_out_of_fault(void) {
    handle(SIGSEGV, jump, 0);
    for (volatile int i = 0; i < 3; i++) {
        int code = sigsetjmp(place, 1);
        if (code == 0) *(volatile int *)8 = 1;
        say("jump %d\n", code);
        step();
    }
}
static void ticks_after_jump(void) {
    handle(SIGALRM, jump, 0);
    if (sigsetjmp(place, 1) == 0) timer(2000, 0), spin();
    handle(SIGALRM, count, 0);
    timer(1000, 1000);
    while (came < 20) {}
    timer(0, 0);
    say("20 ticks\n");
}

/* Waits that a handler ends: what they return, whether something is left of the time. */
static int ends[2];
static struct timespec long_time = {100, 0};
static int waits_nanosleep(void) {
    struct timespec rest = {0, 0};
    int status = nanosleep(&long_time, &rest), error = errno;
    say("rest %d ", rest.tv_sec > 0);
    errno = error;
    return status;
}
static int waits_clock_nanosleep(void) {
    struct timespec rest = {0, 0};
    int status = clock_nanosleep(CLOCK_MONOTONIC, 0, &long_time, &rest);
    say("rest %d ", rest.tv_sec > 0);
    errno = status;
    return status ? -1 : 0;
}
static int waits_clock_nanosleep_until(void) {
    struct timespec until, rest = {0, 0};
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 100;
    int status = clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, &rest);
    say("rest %d ", rest.tv_sec > 0);
    errno = status;
    return status ? -1 : 0;
}
static int waits_usleep(void) { return usleep(900000) == 0 ? 0 : -1; }
static int waits_sleep(void) {
    int left = sleep(100);
    say("rest %d ", left > 0);
    errno = left ? EINTR : 0;
    return left ? -1 : 0;
}
static int waits_poll(void) {
    struct pollfd of = {ends[0], POLLIN, 0};
    return poll(&of, 1, 100000);
}
static int waits_poll_for_ever(void) {
    struct pollfd of = {ends[0], POLLIN, 0};
    return poll(&of, 1, -1);
}
static int waits_poll_nothing(void) { return poll(NULL, 0, 100000); }
static int waits_ppoll(void) {
    sigset_t none = set_of(0, 0);
    struct pollfd of = {ends[0], POLLIN, 0};
    return ppoll(&of, 1, &long_time, &none);
}
static int waits_ppoll_nothing(void) { return ppoll(NULL, 0, &long_time, NULL); }
static int waits_select(void) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    struct timeval time = {100, 0};
    return select(ends[0] + 1, &set, NULL, NULL, &time);
}
static int waits_select_nothing(void) {
    struct timeval time = {100, 0};
    int status = select(0, NULL, NULL, NULL, &time), error = errno;
    say("rest %d ", time.tv_sec > 0);
    errno = error;
    return status;
}
static int waits_pselect(void) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    return pselect(ends[0] + 1, &set, NULL, NULL, &long_time, NULL);
}
static int waits_pselect_nothing(void) { return pselect(0, NULL, NULL, NULL, &long_time, NULL); }
static int waits_epoll(void) {
    int epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN}, got;
    epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event);
    int status = epoll_wait(epoll, &got, 1, 100000), error = errno;
    close(epoll);
    errno = error;
    return status;
}
static int waits_read(void) {
    char byte;
    return read(ends[0], &byte, 1);
}
static int waits_write(void) {
    static char much[1 << 20];
    int full[2];
    if (pipe(full) != 0) return 1;
    fcntl(full[1], F_SETFL, O_NONBLOCK);
    while (write(full[1], much, sizeof much) > 0) {}
    fcntl(full[1], F_SETFL, 0);
    int status = write(full[1], much, 1), error = errno;
    close(full[0]), close(full[1]);
    errno = error;
    return status;
}
static int sockets[2];
static int waits_recv(void) {
    char byte;
    return recv(sockets[0], &byte, 1, 0);
}
static int waits_recvmsg(void) {
    char byte;
    struct iovec vector = {&byte, 1};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
    return recvmsg(sockets[0], &message, 0);
}
static int waits_accept(void) {
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    /* Linux gives an address to who names none. */
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    bind(listener, (struct sockaddr *)&address, sizeof(sa_family_t));
    listen(listener, 1);
    int status = accept(listener, NULL, NULL), error = errno;
    close(listener);
    errno = error;
    return status;
}
static int waits_sem_wait(void) {
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    return sem_wait(&semaphore);
}
static int waits_sem_timedwait(void) {
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 100;
    return sem_timedwait(&semaphore, &until);
}
static int waits_pause(void) { return pause(); }
static int waits_sigsuspend(void) {
    sigset_t none = set_of(0, 0);
    return sigsuspend(&none);
}
static int waits_sigwaitinfo(void) {
    sigset_t other = set_of(SIGTERM, 0);
    sigprocmask(SIG_BLOCK, &other, NULL);
    return sigwaitinfo(&other, NULL);
}
static int waits_sigtimedwait(void) {
    sigset_t other = set_of(SIGTERM, 0);
    sigprocmask(SIG_BLOCK, &other, NULL);
    return sigtimedwait(&other, NULL, &long_time);
}
/* A child that waits until it is told to end. */
static pid_t child_that_waits(int *tell) {
    int go[2];
    if (pipe(go) != 0) return -1;
    pid_t child = fork();
    if (child == 0) {
        char byte;
        close(go[1]);
        while (read(go[0], &byte, 1) < 0) {}
        _exit(0);
    }
    close(go[0]);
    *tell = go[1];
    return child;
}
static int waits_waitpid(void) {
    int tell, status;
    pid_t child = child_that_waits(&tell);
    int result = waitpid(child, &status, 0), error = errno;
    close(tell);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    errno = error;
    return result;
}
static int waits_wait(void) {
    int tell, status;
    pid_t child = child_that_waits(&tell);
    int result = wait(&status), error = errno;
    close(tell);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    errno = error;
    return result;
}
static int waits_waitid(void) {
    int tell, status;
    pid_t child = child_that_waits(&tell);
    siginfo_t info;
    int result = waitid(P_ALL, 0, &info, WEXITED), error = errno;
    close(tell);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    errno = error;
    return result;
}
/* Locks that a child holds until it is told to end. */
static int waits_lock(int is_flock) {
    char name[] = "/tmp/signals.XXXXXX";
    int file = mkstemp(name), held[2], go[2];
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char byte;
    if (file < 0 || pipe(held) != 0 || pipe(go) != 0) return 1;
    pid_t child = fork();
    if (child == 0) {
        close(go[1]);
        int own = open(name, O_RDWR);
        if (is_flock) flock(own, LOCK_EX);
        else fcntl(own, F_SETLKW, &lock);
        if (write(held[1], "x", 1) != 1) _exit(1);
        while (read(go[0], &byte, 1) < 0) {}
        _exit(0);
    }
    close(go[0]);
    while (read(held[0], &byte, 1) < 0) {}
    timer(30000, 30000);
    int result = is_flock ? flock(file, LOCK_EX) : fcntl(file, F_SETLKW, &lock), error = errno;
    timer(0, 0);
    close(go[1]);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {}
    close(file), close(held[0]), close(held[1]);
    unlink(name);
    errno = error;
    return result;
}
static int waits_flock(void) { return waits_lock(1); }
static int waits_fcntl(void) { return waits_lock(0); }
static int waits_fgetc(void) {
    FILE *in = fdopen(dup(ends[0]), "r");
    int result = fgetc(in), error = errno;
    say("error %d end %d ", ferror(in) != 0, feof(in) != 0);
    fclose(in);
    errno = error;
    return result;
}

static const struct wait {
    const char *name;
    int (*wait)(void);
    /* A handler with SA_RESTART ends it, too. */
    int ends_always;
} waits[] = {
#define WAIT(name, always) {#name, waits_##name, always}
    WAIT(nanosleep, 1), WAIT(clock_nanosleep, 1), WAIT(clock_nanosleep_until, 1), WAIT(usleep, 1), WAIT(sleep, 1),
    WAIT(poll, 1), WAIT(poll_for_ever, 1), WAIT(poll_nothing, 1), WAIT(ppoll, 1), WAIT(ppoll_nothing, 1),
    WAIT(select, 1), WAIT(select_nothing, 1), WAIT(pselect, 1), WAIT(pselect_nothing, 1), WAIT(epoll, 1),
    WAIT(pause, 1), WAIT(sigsuspend, 1), WAIT(sigwaitinfo, 1), WAIT(sigtimedwait, 1), WAIT(sem_timedwait, 1),
    WAIT(read, 0), WAIT(write, 0), WAIT(recv, 0), WAIT(recvmsg, 0), WAIT(accept, 0), WAIT(sem_wait, 0),
    WAIT(waitpid, 0), WAIT(wait, 0), WAIT(waitid, 0), WAIT(flock, 0), WAIT(fcntl, 0), WAIT(fgetc, 0),
};
/* Handlers of a signal that comes again and again end each of them, whenever the first one comes. */
static void interrupted(int first, int last, int flags) {
    if (pipe(ends) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) return;
    for (int i = first; i < last; i++) {
        handle(SIGALRM, count, flags);
        came = 0;
        say("%s: ", waits[i].name);
        timer(10000, 10000);
        errno = 0;
        int status = waits[i].wait(), error = errno;
        timer(0, 0);
        say("%d %s, came %d\n", status, name_of(error), came > 0);
    }
    close(ends[0]), close(ends[1]), close(sockets[0]), close(sockets[1]);
}
#define WAITS (int)(sizeof waits / sizeof *waits)
static void interrupted_sleeps(void) { interrupted(0, 15, 0); }
static void interrupted_waits_for_signals(void) { interrupted(15, 20, 0); }
static void interrupted_calls(void) { interrupted(20, WAITS, 0); }
static void interrupted_in_spite_of_restart(void) {
    for (int i = 0; i < WAITS; i++)
        if (waits[i].ends_always) interrupted(i, i + 1, SA_RESTART);
}

/* Calls that go on after a handler with SA_RESTART, until what they wait for is there. */
static int of_child[2];
static pid_t tells_later(int from) {
    pid_t child = fork();
    if (child == 0) {
        sleep_ms(60);
        if (write(from, "x", 1) != 1) _exit(1);
        _exit(7);
    }
    return child;
}
static void restarted(void) {
    char byte = 0;
    int status = 0;
    if (pipe(of_child) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) return;
    handle(SIGALRM, count, SA_RESTART);
    pid_t child = tells_later(of_child[1]);
    timer(5000, 5000);
    int result = read(of_child[0], &byte, 1);
    say("read %d %c, came %d\n", result, byte, came > 0);
    came = 0;
    say("waitpid %d, ", waitpid(child, &status, 0) == child);
    say("status %d\n", WEXITSTATUS(status));
    came = 0;
    child = tells_later(sockets[1]);
    result = recv(sockets[0], &byte, 1, 0);
    say("recv %d, came %d\n", result, came > 0);
    say("wait %d, ", wait(&status) == child);
    say("status %d\n", WEXITSTATUS(status));
    timer(0, 0);
    close(of_child[0]), close(of_child[1]), close(sockets[0]), close(sockets[1]);
}

/* A signal that is ignored, or blocked, ends nothing. */
static void uninterrupted(void) {
    struct timespec time = {0, 60000000}, rest = {9, 9};
    timer(5000, 5000);
    handle(SIGALRM, SIG_IGN, 0);
    say("ignored: %d\n", nanosleep(&time, &rest));
    sigset_t set = set_of(SIGALRM, 0);
    sigprocmask(SIG_BLOCK, &set, NULL);
    handle(SIGALRM, count, 0);
    timer(5000, 5000);
    came = 0;
    say("blocked: %d, came %d, ", nanosleep(&time, &rest), came);
    say("poll %d\n", poll(NULL, 0, 30));
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    timer(0, 0);
    say("came %d\n", came > 0);
}

/* Masks that calls have for themselves. */
static void masks_of_calls(void) {
    sigset_t set = set_of(SIGUSR1, 0), none = set_of(0, 0);
    handle(SIGUSR1, count, SA_RESTART);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGUSR1);
    say("came %d, ", came);
    int status = ppoll(NULL, 0, &long_time, &none), error = errno;
    say("ppoll %d %s, came %d, blocked %d\n", status, name_of(error), came, is_blocked(SIGUSR1));
    raise(SIGUSR1);
    status = pselect(0, NULL, NULL, NULL, &long_time, &none), error = errno;
    say("pselect %d %s, came %d, blocked %d\n", status, name_of(error), came, is_blocked(SIGUSR1));
    raise(SIGUSR1);
    status = sigsuspend(&none), error = errno;
    say("sigsuspend %d %s, came %d, blocked %d\n", status, name_of(error), came, is_blocked(SIGUSR1));
    int epoll = epoll_create1(0);
    struct epoll_event got;
    raise(SIGUSR1);
    status = epoll_pwait(epoll, &got, 1, 100000, &none), error = errno;
    say("epoll_pwait %d %s, came %d, blocked %d\n", status, name_of(error), came, is_blocked(SIGUSR1));
    close(epoll);
}

/* Children. */
static void children_are_told(void) {
    handle_info(SIGCHLD);
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        if (child == 0) _exit(10 + i);
        while (came <= i) sleep_ms(1);
        int status = 0;
        say("SIGCHLD %d, code %d, ", came, last_code == CLD_EXITED);
        say("own %d, status %d\n", waitpid(child, &status, 0) == child, WEXITSTATUS(status));
        step();
    }
}
static void child_ends_pause(void) {
    handle(SIGCHLD, count, 0);
    sigset_t set = set_of(SIGCHLD, 0), none = set_of(0, 0);
    sigprocmask(SIG_BLOCK, &set, NULL);
    pid_t child = fork();
    if (child == 0) _exit(0);
    say("before: %d, ", came);
    int status = sigsuspend(&none);
    say("sigsuspend %d, came %d, ", status, came);
    say("waited %d\n", waitpid(child, NULL, 0) == child);
}
static void child_wakes_sigwait(void) {
    sigset_t set = set_of(SIGCHLD, 0);
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        if (child == 0) _exit(3);
        siginfo_t info;
        int signal = sigwaitinfo(&set, &info);
        say("%s, of it %d, code %d, status %d, ", signal == SIGCHLD ? "SIGCHLD" : "another", info.si_pid == child,
            info.si_code == CLD_EXITED, info.si_status);
        say("waited %d\n", waitpid(child, NULL, 0) == child);
        step();
    }
}
static volatile sig_atomic_t reaped;
static void reap(int signal) {
    (void)signal;
    int error = errno;
    while (waitpid(-1, NULL, WNOHANG) > 0) reaped++;
    errno = error;
}
static void children_are_reaped_in_handler(void) {
    handle(SIGCHLD, reap, SA_RESTART);
    for (int i = 0; i < 5; i++)
        if (fork() == 0) _exit(i);
    while (reaped < 5) sleep_ms(1);
    int status = wait(NULL), error = errno;
    say("5 reaped, then %d %s\n", status, name_of(error));
}
static void ignored_children_leave_nothing(void) {
    handle(SIGCHLD, SIG_IGN, 0);
    pid_t child = fork();
    if (child == 0) _exit(1);
    int status = waitpid(child, NULL, 0), error = errno;
    say("%d %s\n", status, name_of(error));
}
static void any_child_is_an_own_one(void) {
    step();
    int status = 0;
    pid_t child = fork();
    if (child == 0) _exit(40 + rank % 2);
    step();
    say("own %d, ", wait(&status) == child);
    say("status %d\n", WEXITSTATUS(status) - rank % 2);
    status = waitpid(-1, NULL, WNOHANG);
    say("then %d %s\n", status, name_of(errno));
    step();
}
static void child_handles_its_own(void) {
    int ready[2], status = 0;
    char byte;
    if (pipe(ready) != 0) return;
    sigset_t usual, set = set_of(SIGUSR2, 0);
    handle(SIGUSR1, count, 0);
    sigprocmask(SIG_BLOCK, &set, &usual);
    pid_t child = fork();
    if (child == 0) {
        handle(SIGUSR2, count, 0);
        if (write(ready[1], "x", 1) != 1) _exit(1);
        while (came == 0) sleep_ms(1);
        int first = came * 10 + (last == SIGUSR1);
        sigsuspend(&usual);
        _exit(first + 2 * (last == SIGUSR2));
    }
    if (read(ready[0], &byte, 1) != 1) say("no child\n");
    kill(child, SIGUSR2);
    kill(child, SIGUSR1);
    while (waitpid(child, &status, 0) < 0) {}
    say("child: exited %d, %d\n", WIFEXITED(status), WEXITSTATUS(status));
    child = fork();
    if (child == 0) {
        handle(SIGTERM, SIG_DFL, 0);
        for (;;) pause();
    }
    kill(child, SIGTERM);
    while (waitpid(child, &status, 0) < 0) {}
    say("child: signal %d, parent's handlers %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0, came);
    close(ready[0]), close(ready[1]);
}
static void child_signals_its_parent(void) {
    handle_info(SIGUSR1);
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        if (child == 0) {
            kill(getppid(), SIGUSR1);
            _exit(0);
        }
        while (came <= i) sleep_ms(1);
        while (waitpid(child, NULL, 0) < 0) {}
        say("came %d, code %d\n", came, last_code == SI_USER);
    }
}
static void child_stops(void) {
    int status = 0;
    handle_info(SIGCHLD);
    pid_t child = fork();
    if (child == 0) {
        raise(SIGSTOP);
        _exit(4);
    }
    while (waitpid(child, &status, WUNTRACED) < 0) {}
    say("stopped %d by %d, code %d\n", WIFSTOPPED(status), WSTOPSIG(status), last_code == CLD_STOPPED);
    kill(child, SIGCONT);
    while (waitpid(child, &status, 0) < 0) {}
    say("exited %d\n", WEXITSTATUS(status));
}

/* Signals to oneself. */
static void sent_to_oneself(void) {
    union sigval value = {.sival_int = 4711};
    handle_info(SIGUSR1);
    handle_info(SIGRTMIN + 2);
#define SENT(call) \
    do { \
        last_value = 0, last_code = 99; \
        int status = call; \
        say("%s: %d, came %d, signal %d, code %d, value %d\n", #call, status, came, last, last_code, \
            last_code == SI_QUEUE ? last_value : 0); \
        step(); \
    } while (0)
    SENT(raise(SIGUSR1));
    SENT(kill(getpid(), SIGUSR1));
    SENT(kill(getpid(), 0));
    SENT(sigqueue(getpid(), SIGUSR1, value));
    SENT(sigqueue(getpid(), SIGRTMIN + 2, value));
    SENT(pthread_kill(pthread_self(), SIGUSR1));
    SENT(pthread_kill(pthread_self(), 0));
    SENT(pthread_sigqueue(pthread_self(), SIGUSR1, value));
    SENT(tgkill(getpid(), gettid(), SIGUSR1));
    SENT((int)syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1));
    SENT((int)syscall(SYS_kill, getpid(), SIGUSR1));
    errno = 0;
    SENT(raise(99));
    SENT(kill(getpid(), 99));
    say("%s\n", name_of(errno));
}
static int order[32], orders;
static void note(int signal, siginfo_t *info, void *context) {
    (void)context;
    order[orders++] = signal * 100 + (info->si_code == SI_QUEUE ? info->si_value.sival_int : 0);
}
static void queued(void) {
    int signals[] = {SIGRTMIN + 3, SIGRTMIN + 1, SIGUSR1};
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < 3; i++) {
        struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO};
        sigaction(signals[i], &action, NULL);
        sigaddset(&set, signals[i]);
    }
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (int round = 1; round <= 3; round++)
        for (int i = 0; i < 3; i++) {
            union sigval value = {.sival_int = round};
            sigqueue(getpid(), signals[i], value);
        }
    step();
    sigset_t pending;
    sigpending(&pending);
    say("pending %d %d %d %d\n", sigismember(&pending, signals[0]), sigismember(&pending, signals[1]),
        sigismember(&pending, SIGUSR1), sigismember(&pending, SIGUSR2));
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    for (int i = 0; i < orders; i++) say("%d of %d\n", order[i] % 100, order[i] / 100);
    sigpending(&pending);
    say("pending %d\n", sigismember(&pending, signals[0]));
}
static void taken_by_sigwait(void) {
    sigset_t set = set_of(SIGRTMIN + 1, SIGUSR1);
    struct timespec soon = {0, 10000000};
    siginfo_t info;
    int signal = 0;
    sigprocmask(SIG_BLOCK, &set, NULL);
    errno = 0;
    int status = sigtimedwait(&set, &info, &soon);
    say("%d %s\n", status, name_of(errno));
    for (int i = 1; i <= 2; i++) {
        union sigval value = {.sival_int = i};
        sigqueue(getpid(), SIGRTMIN + 1, value);
    }
    raise(SIGUSR1);
    step();
    say("sigwait %d ", sigwait(&set, &signal));
    say("%s\n", signal == SIGUSR1 ? "SIGUSR1" : "another");
    for (int i = 0; i < 2; i++) {
        signal = sigwaitinfo(&set, &info);
        say("%d, code %d, value %d\n", signal == SIGRTMIN + 1, info.si_code == SI_QUEUE, info.si_value.sival_int);
    }
    timer(5000, 0);
    sigset_t alarm = set_of(SIGALRM, 0);
    sigprocmask(SIG_BLOCK, &alarm, NULL);
    say("sigwait %d ", sigwait(&alarm, &signal));
    say("%s\n", signal == SIGALRM ? "SIGALRM" : "another");
}
static int depth, calls;
static void nests(int signal) {
    depth++;
    if (++calls < 3) raise(signal);
    say("depth %d\n", depth);
    depth--;
}
static void flags_of_handlers(void) {
    handle(SIGUSR1, nests, SA_NODEFER);
    raise(SIGUSR1);
    calls = 0;
    handle(SIGUSR1, nests, 0);
    raise(SIGUSR1);
    handle(SIGUSR1, count, SA_RESETHAND);
    raise(SIGUSR1);
    struct sigaction now;
    sigaction(SIGUSR1, NULL, &now);
    say("came %d, default %d\n", came, now.sa_handler == SIG_DFL);
    signal(SIGUSR1, count);
    sigaction(SIGUSR1, NULL, &now);
    say("restart %d\n", (now.sa_flags & SA_RESTART) != 0);
    siginterrupt(SIGUSR1, 1);
    sigaction(SIGUSR1, NULL, &now);
    say("restart %d\n", (now.sa_flags & SA_RESTART) != 0);
    struct sigaction action = {.sa_handler = count};
    say("SIGKILL: %d %s\n", sigaction(SIGKILL, &action, NULL), name_of(errno));
    sighold(SIGUSR1);
    came = 0;
    raise(SIGUSR1);
    say("held %d, ", came);
    sigrelse(SIGUSR1);
    say("released %d\n", came);
    sighold(SIGUSR1);
    raise(SIGUSR1);
    handle(SIGUSR1, SIG_IGN, 0);
    handle(SIGUSR1, count, 0);
    sigrelse(SIGUSR1);
    say("dropped: %d\n", came);
}

/* Threads. */
static sigset_t waited_for;
static void *waits_for_signal(void *result) {
    int signal = 0;
    sigwait(&waited_for, &signal);
    *(int *)result = signal;
    return NULL;
}
static void thread_in_sigwait(void) {
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        int signal = 0;
        waited_for = set_of(SIGUSR1, SIGTERM);
        pthread_sigmask(SIG_BLOCK, &waited_for, NULL);
        pthread_create(&thread, NULL, waits_for_signal, &signal);
        union sigval value = {.sival_int = 1};
        switch (i) {
        case 0: kill(getpid(), SIGUSR1); break;
        case 1: pthread_kill(thread, SIGTERM); break;
        case 2: sigqueue(getpid(), SIGTERM, value); break;
        default:
            sleep_ms(20);
            kill(getpid(), SIGUSR1);
        }
        pthread_join(thread, NULL);
        say("signal %d\n", signal);
    }
}
static pthread_t handled_by;
static volatile sig_atomic_t stops;
static void note_thread(int signal) {
    handled_by = pthread_self();
    count(signal);
}
static void *runs(void *unused) {
    while (!stops) {}
    return unused;
}
static void *sleeps(void *result) {
    struct timespec time = {100, 0};
    *(int *)result = nanosleep(&time, NULL) == -1 && errno == EINTR;
    return NULL;
}
static void thread_is_signalled(void) {
    pthread_t thread;
    int result = 0;
    handle(SIGUSR1, note_thread, 0);
    stops = 0;
    pthread_create(&thread, NULL, runs, NULL);
    pthread_kill(thread, SIGUSR1);
    while (came == 0) {}
    say("in it %d\n", pthread_equal(handled_by, thread) != 0);
    sigset_t set = set_of(SIGUSR1, 0);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    kill(getpid(), SIGUSR1);
    while (came == 1) {}
    say("in the one that has not blocked it %d\n", pthread_equal(handled_by, thread) != 0);
    stops = 1;
    pthread_join(thread, NULL);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    came = 0;
    pthread_create(&thread, NULL, sleeps, &result);
    while (pthread_tryjoin_np(thread, NULL) != 0) {
        pthread_kill(thread, SIGUSR1);
        sleep_ms(10);
    }
    say("sleep ended %d\n", result);
}
static void *tells(void *main) {
    sleep_ms(20);
    pthread_kill(*(pthread_t *)main, SIGUSR1);
    return NULL;
}
static void thread_signals_main(void) {
    pthread_t thread, self = pthread_self();
    handle(SIGUSR1, note_thread, 0);
    for (int i = 0; i < 2; i++) {
        came = 0;
        pthread_create(&thread, NULL, tells, &self);
        if (i == 0) {
            int status = sleep(100) > 0 ? -1 : 0;
            say("sleep %d, ", status);
        } else {
            while (came == 0) {}
        }
        pthread_join(thread, NULL);
        say("came %d, in main %d\n", came, pthread_equal(handled_by, self) != 0);
    }
}
static void *has_mask(void *result) {
    *(int *)result = is_blocked(SIGUSR2) * 2 + is_blocked(SIGUSR1);
    sigset_t set = set_of(SIGTERM, 0);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    raise(SIGTERM);
    sigset_t pending;
    sigpending(&pending);
    *(int *)result += 4 * sigismember(&pending, SIGTERM);
    return NULL;
}
static void masks_of_threads(void) {
    pthread_t thread;
    int result = 0;
    sigset_t set = set_of(SIGUSR2, 0);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_create(&thread, NULL, has_mask, &result);
    pthread_join(thread, NULL);
    say("%d, blocked in main %d\n", result, is_blocked(SIGTERM));
}
static void *sets_alarm(void *unused) {
    timer(5000, 0);
    return unused;
}
static void thread_sets_timer(void) {
    pthread_t thread;
    handle(SIGALRM, count, 0);
    pthread_create(&thread, NULL, sets_alarm, NULL);
    pthread_join(thread, NULL);
    while (came == 0) sleep_ms(1);
    say("came %d\n", came);
}

/* Timers. */
static void posix_timers(void) {
    timer_t id, other;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 1};
    event.sigev_value.sival_int = 77;
    struct itimerspec once = {{0, 0}, {0, 5000000}}, often = {{0, 1000000}, {0, 1000000}}, now;
    handle_info(SIGRTMIN + 1);
    say("made %d\n", timer_create(CLOCK_MONOTONIC, &event, &id));
    say("set %d\n", timer_settime(id, 0, &once, NULL));
    while (came == 0) {}
    say("came %d, code %d, value %d\n", came, last_code == SI_TIMER, last_value);
    timer_settime(id, 0, &often, NULL);
    while (came < 10) sleep_ms(1);
    sigset_t set = set_of(SIGRTMIN + 1, 0);
    sigprocmask(SIG_BLOCK, &set, NULL);
    sleep_ms(20);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    say("deleted %d\n", timer_delete(id));
    say("again %d\n", timer_delete(id));
    event.sigev_notify = SIGEV_NONE;
    say("quiet %d\n", timer_create(CLOCK_REALTIME, &event, &id));
    timer_settime(id, 0, &once, NULL);
    do timer_gettime(id, &now);
    while (now.it_value.tv_nsec != 0);
    say("run off\n");
    timer_delete(id);
    handle_info(SIGALRM);
    say("usual %d\n", timer_create(CLOCK_MONOTONIC, NULL, &other));
    came = 0;
    timer_settime(other, 0, &once, NULL);
    while (came == 0) {}
    say("came %d, SIGALRM %d\n", came, last == SIGALRM);
    timer_delete(other);
}
static void overruns(void) {
    timer_t id;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct itimerspec often = {{0, 1000000}, {0, 1000000}};
    sigset_t set = set_of(SIGUSR1, 0);
    sigprocmask(SIG_BLOCK, &set, NULL);
    timer_create(CLOCK_MONOTONIC, &event, &id);
    timer_settime(id, 0, &often, NULL);
    sleep_ms(50);
    sigset_t pending;
    sigpending(&pending);
    say("pending %d\n", sigismember(&pending, SIGUSR1));
    siginfo_t info;
    sigwaitinfo(&set, &info);
    say("overrun %d, the same %d\n", info.si_overrun > 3, timer_getoverrun(id) == info.si_overrun);
    timer_delete(id);
}
/* Paints the stack below the caller, or says how much of it has been used since. Its own frame stays small: signals
 * that come meanwhile lie right below it, too. */
__attribute__((noinline)) static size_t stack_used(int paints) {
    enum { SIZE = 256 << 10, OWN = 1 << 10 };
    volatile unsigned char *area = (unsigned char *)__builtin_frame_address(0) - OWN - SIZE;
    size_t clean = 0;
    for (size_t i = 0; i < SIZE && paints; i++) area[i] = 0xa5;
    while (clean < SIZE && area[clean] == 0xa5) clean++;
    return SIZE - clean;
}
/* However many come at once, their frames do not lie on one another. */
static void timers_at_once(void) {
    enum { TIMERS = 32 };
    timer_t timers[TIMERS];
    struct itimerspec soon = {{0, 0}, {0, 0}};
    struct timespec now;
    handle(SIGALRM, count, 0);
    stack_used(1);
    clock_gettime(CLOCK_MONOTONIC, &now);
    soon.it_value = now;
    soon.it_value.tv_sec += (now.tv_nsec + 5000000) / 1000000000;
    soon.it_value.tv_nsec = (now.tv_nsec + 5000000) % 1000000000;
    for (int i = 0; i < TIMERS; i++) {
        struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
        timer_create(CLOCK_MONOTONIC, &event, &timers[i]);
        timer_settime(timers[i], TIMER_ABSTIME, &soon, NULL);
    }
    while (!came) {}
    say("much of the stack %d\n", stack_used(0) > 32 << 10);
    for (int i = 0; i < TIMERS; i++) timer_delete(timers[i]);
}
static void interval_timers(void) {
    struct itimerval value = {{0, 2000}, {0, 2000}}, none = {{0, 0}, {0, 0}}, old;
    handle(SIGALRM, count, 0);
    handle(SIGPROF, count, 0);
    handle(SIGVTALRM, count, 0);
    int kinds[] = {ITIMER_REAL, ITIMER_PROF, ITIMER_VIRTUAL};
    int signals[] = {SIGALRM, SIGPROF, SIGVTALRM};
    for (int i = 0; i < 3; i++) {
        came = 0;
        setitimer(kinds[i], &value, NULL);
        while (came < 3) {}
        setitimer(kinds[i], &none, &old);
        say("3 came, signal %d, interval %d\n", last == signals[i], (int)old.it_interval.tv_usec);
    }
    alarm(100);
    say("alarm %d\n", alarm(0) > 90);
}
/* What came before a timer was ended, or a handler was set, has the handler of then; afterwards nothing comes. */
static void ended_timers(void) {
    int late = 0;
    for (int i = 0; i < 300; i++) {
        handle(SIGALRM, count, 0);
        timer(100, 100);
        if (i % 3 == 0) step();
        for (volatile int wait = i * 997 % 100000; wait > 0; wait--) {}
        timer(0, 0);
        int before = came;
        if (i % 2 == 0) handle(SIGALRM, SIG_DFL, 0);
        for (volatile int wait = 100000; wait > 0; wait--) {}
        late += came != before;
    }
    say("late %d\n", late);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
#define CASE(name) {#name, name}
    CASE(jump_out_of_timer), CASE(jump_out_of_periodic_timer), CASE(jump_out_of_raise), CASE(jump_without_mask),
    CASE(jump_without_mask_stays_blocked), CASE(jump_restores_whole_mask), CASE(jump_out_of_waits),
    CASE(jump_out_of_fault), CASE(ticks_after_jump), CASE(interrupted_sleeps), CASE(interrupted_waits_for_signals),
    CASE(interrupted_calls), CASE(interrupted_in_spite_of_restart), CASE(restarted), CASE(uninterrupted),
    CASE(masks_of_calls), CASE(children_are_told), CASE(child_ends_pause), CASE(child_wakes_sigwait),
    CASE(children_are_reaped_in_handler), CASE(ignored_children_leave_nothing), CASE(any_child_is_an_own_one),
    CASE(child_handles_its_own), CASE(child_signals_its_parent), CASE(child_stops), CASE(sent_to_oneself),
    CASE(queued), CASE(taken_by_sigwait), CASE(flags_of_handlers), CASE(thread_in_sigwait),
    CASE(thread_is_signalled), CASE(thread_signals_main), CASE(masks_of_threads), CASE(thread_sets_timer),
    CASE(posix_timers), CASE(overruns), CASE(timers_at_once), CASE(interval_timers),
    CASE(ended_timers),
};

static void reset(void) {
    timer(0, 0);
    for (int signal = 1; signal <= SIGRTMAX; signal++) handle(signal, SIG_DFL, 0);
    sigset_t none = set_of(0, 0);
    sigprocmask(SIG_SETMASK, &none, NULL);
    came = last = last_code = last_value = reaped = orders = depth = calls = 0;
}

int main(int argc, char **argv) {
#ifndef ALONE
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#endif
    for (int i = 1; i < argc; i++) {
        size_t at = 0;
        while (at < sizeof cases / sizeof *cases && strcmp(argv[i], cases[at].name) != 0) at++;
        if (at == sizeof cases / sizeof *cases) return 2;
        say("%s\n", argv[i]);
        cases[at].run();
        reset();
        step();
    }
    /* All at once, so that lines of ranks do not mix: each begins with its rank. */
    static char all[1 << 17];
    for (char *at = strtok(said, "\n"); at; at = strtok(NULL, "\n"))
        snprintf(all + strlen(all), sizeof all - strlen(all), "%d: %s\n", rank, at);
    fwrite(all, 1, strlen(all), stdout);
    fflush(stdout);
#ifndef ALONE
    MPI_Finalize();
#endif
    return 0;
}
