/* Another wall clock for one process: LD_PRELOAD, and in CHAOS_CLOCK a file of 8 bytes: how many seconds it is off.
 *
 * Debian's libfaketime 0.9.10 also wraps the timed waits of pthread, by which Python hands its lock from thread to thread: a
 * brain under it needs a whole core and loads its rules in half a minute. Here only the three ways to read the wall clock are
 * changed; monotonic clocks and waits are the system's.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *off;

__attribute__((constructor)) static void open_file(void)
{
    const char *path = getenv("CHAOS_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *found = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    if (found != MAP_FAILED)
        off = found;
    close(file);
}

int clock_gettime(clockid_t id, struct timespec *at)
{
    int failed = syscall(SYS_clock_gettime, id, at);
    if (!failed && off && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        at->tv_sec += *off;
    return failed;
}

int gettimeofday(struct timeval *at, void *zone)
{
    int failed = syscall(SYS_gettimeofday, at, zone);
    if (!failed && off)
        at->tv_sec += *off;
    return failed;
}

time_t time(time_t *at)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at)
        *at = now.tv_sec;
    return now.tv_sec;
}
