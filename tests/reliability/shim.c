/* Preloaded before the C library: records or breaks the writes to files named data.mdb.
 *
 * Record: with ZLMDB_TRACE naming a file, each write and flush is appended to it: five 64-bit numbers (kind, synchronous,
 * offset, length, 0), then the bytes. Kinds: 1 write, 2 flush, 3 truncate; programs append 4, an acknowledgement.
 * Break: after shim_fail(n, error, part) the n-th write or flush from now on fails with that errno, once; with part it
 * writes half and says so. shim_calls() counts them.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static long calls, fail_at;
static int fail_with, fail_part;

long shim_calls(void) { return calls; }
void shim_fail(long n, int error, int part) { fail_at = n ? calls + n : 0; fail_with = error; fail_part = part; }

static int is_data(int fd) {
    char link[64], name[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, name, sizeof name - 1);
    return n > 8 && !memcmp(name + n - 8, "data.mdb", 8);
}

static int trace = -2;
static void note(int64_t kind, int fd, off_t offset, const struct iovec *v, int count, int64_t length) {
    if (trace == -2) {
        const char *path = getenv("ZLMDB_TRACE");
        trace = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644) : -1;
    }
    if (trace < 0) return;
    int64_t head[5] = {kind, !!(fcntl(fd, F_GETFL) & O_DSYNC), offset, length, 0};
    struct iovec all[1 + 1024];
    int64_t left = v ? length : 0;
    int used = 1;
    all[0].iov_base = head; all[0].iov_len = sizeof head;
    for (int i = 0; v && i < count && left > 0; i++, used++) {
        all[used] = v[i];
        if ((int64_t)all[used].iov_len > left) all[used].iov_len = left;
        left -= all[used].iov_len;
    }
    if (syscall(SYS_writev, trace, all, used) < 0) abort();
}

/* 1: fail; 2: do half of it; 0: go on. */
static int breaks(void) {
    calls++;
    if (!fail_at || calls != fail_at) return 0;
    fail_at = 0;
    errno = fail_with;
    return fail_part ? 2 : 1;
}

static ssize_t put(int fd, const struct iovec *v, int count, off_t offset, int moves) {
    int how = breaks();
    if (how == 1) return -1;
    off_t at = moves ? lseek(fd, 0, SEEK_CUR) : offset;
    ssize_t done;
    if (how == 2) {
        size_t half = v[0].iov_len / 2;
        done = moves ? syscall(SYS_write, fd, v[0].iov_base, half) : syscall(SYS_pwrite64, fd, v[0].iov_base, half, at);
    } else {
        done = moves ? syscall(SYS_writev, fd, v, count) : syscall(SYS_pwritev, fd, v, count, at, 0);
    }
    if (done > 0) note(1, fd, at, v, count, done);
    return done;
}

#define ONE(b, n) struct iovec one = {(void *)(b), (n)}
ssize_t pwrite(int fd, const void *b, size_t n, off_t o) {
    ONE(b, n);
    return is_data(fd) ? put(fd, &one, 1, o, 0) : syscall(SYS_pwrite64, fd, b, n, o);
}
ssize_t pwrite64(int fd, const void *b, size_t n, off_t o) { return pwrite(fd, b, n, o); }
ssize_t write(int fd, const void *b, size_t n) {
    ONE(b, n);
    return is_data(fd) ? put(fd, &one, 1, 0, 1) : syscall(SYS_write, fd, b, n);
}
ssize_t writev(int fd, const struct iovec *v, int c) {
    return is_data(fd) ? put(fd, v, c, 0, 1) : syscall(SYS_writev, fd, v, c);
}
ssize_t pwritev(int fd, const struct iovec *v, int c, off_t o) {
    return is_data(fd) ? put(fd, v, c, o, 0) : syscall(SYS_pwritev, fd, v, c, o, 0);
}
ssize_t pwritev64(int fd, const struct iovec *v, int c, off_t o) { return pwritev(fd, v, c, o); }

static int flush(int fd, long number) {
    if (!is_data(fd)) return syscall(number, fd);
    if (breaks()) return -1;
    int done = syscall(number, fd);
    if (!done) note(2, fd, 0, 0, 0, 0);
    return done;
}
int fdatasync(int fd) { return flush(fd, SYS_fdatasync); }
int fsync(int fd) { return flush(fd, SYS_fsync); }
int ftruncate(int fd, off_t size) {
    int done = syscall(SYS_ftruncate, fd, size);
    if (!done && is_data(fd)) note(3, fd, size, 0, 0, 0);
    return done;
}
int ftruncate64(int fd, off_t size) { return ftruncate(fd, size); }
