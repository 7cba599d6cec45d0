/* What time it is to a process that is started with this: as it is, and so many seconds more.
 *
 * The seconds are a number in a file that all processes on one clock share. Time since a moment, by which
 * programs wait, goes on as ever. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const long *wrong_by;
static int (*true_clock)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("RECOLLECT_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *shared = mmap(NULL, sizeof *wrong_by, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (shared != MAP_FAILED)
        wrong_by = shared;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    if (!true_clock)
        true_clock = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = true_clock(clock, now);
    if (!failed && wrong_by && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += *wrong_by;
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec found;
    int failed = clock_gettime(CLOCK_REALTIME, &found);
    if (!failed) {
        now->tv_sec = found.tv_sec;
        now->tv_usec = found.tv_nsec / 1000;
    }
    return failed;
}

time_t time(time_t *kept) {
    struct timespec found;
    if (clock_gettime(CLOCK_REALTIME, &found))
        return (time_t)-1;
    if (kept)
        *kept = found.tv_sec;
    return found.tv_sec;
}
