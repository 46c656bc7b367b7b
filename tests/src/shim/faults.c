/* Preloaded into a process under test. Counts the calls that change files in SHIM_FOLDER and the writes to standard output, in
 * order, and logs them to SHIM_LOG. At call number SHIM_AT it injects the fault named by SHIM_DO:
 *
 *   kill    SIGKILL before the call
 *   torn    SIGKILL after the call; a write is cut to its first half
 *   eio     the call fails with EIO, once: a retry would seem to succeed
 *   enospc  the call fails with ENOSPC, and so do all later writes and new files
 *   short   a write is cut to its first half, and all later writes fail with ENOSPC
 *
 * Log format: a line "kind inode offset length mark name", then for writes and output `length` bytes and a line feed.
 * Kinds: c new file, d new folder, w write, t truncation to offset, s sync, r renaming (two names), u removal, o output.
 * Mark: '!' for the call with the fault, '.' for all others.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

enum fault { NONE, KILL, TORN, EIO_ONCE, FULL, SHORT };
enum { MOST = 1024 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *folder;
static size_t folder_length;
static int log_fd = -1;
static long calls, at = -1;
static enum fault fault;
static int full;
static ino_t inode_of[MOST]; /* 0: not watched */
static struct stat output;

__attribute__((constructor)) static void begin(void) {
    const char *text = getenv("SHIM_DO");
    folder = getenv("SHIM_FOLDER");
    folder_length = folder ? strlen(folder) : 0;
    if (getenv("SHIM_AT")) at = atol(getenv("SHIM_AT"));
    if (text) {
        fault = !strcmp(text, "kill") ? KILL : !strcmp(text, "torn") ? TORN : !strcmp(text, "eio") ? EIO_ONCE
             : !strcmp(text, "enospc") ? FULL : !strcmp(text, "short") ? SHORT : NONE;
    }
    if (getenv("SHIM_LOG")) {
        log_fd = (int)syscall(SYS_openat, AT_FDCWD, getenv("SHIM_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    }
    fstat(1, &output);
}

/* Returns the name within the folder, "." for the folder itself, and NULL for any other path. */
static const char *within(const char *path) {
    if (!folder || !path || strncmp(path, folder, folder_length) != 0) return NULL;
    if (path[folder_length] == 0 || (path[folder_length] == '/' && path[folder_length + 1] == 0)) return ".";
    return path[folder_length] == '/' ? path + folder_length + 1 : NULL;
}

static ino_t watched(int fd) { return fd >= 0 && fd < MOST ? inode_of[fd] : 0; }

static int is_output(int fd) {
    struct stat s;
    return watched(fd) == 0 && S_ISFIFO(output.st_mode) && fstat(fd, &s) == 0 && s.st_ino == output.st_ino && s.st_dev == output.st_dev;
}

static void die(void) {
    syscall(SYS_kill, getpid(), SIGKILL);
    for (;;) pause();
}

static void put(const void *bytes, size_t length) {
    if (log_fd >= 0 && syscall(SYS_write, log_fd, bytes, length) != (long)length) abort();
}

static void note(char kind, ino_t inode, off_t offset, size_t length, char mark, const char *name, const void *data) {
    char line[700];
    int n = snprintf(line, sizeof line, "%c %lu %ld %lu %c %s\n", kind, (unsigned long)inode, (long)offset, (unsigned long)length,
                     mark, name ? name : "");
    put(line, (size_t)n);
    if (data) {
        put(data, length);
        put("\n", 1);
    }
}

/* Counts the call and returns its fault, if any. The caller holds the lock. */
static enum fault next(void) {
    enum fault now = calls++ == at ? fault : NONE;
    if (now == FULL || now == SHORT) full = 1;
    return now;
}

#define REAL(name) static __typeof__(name) *real; if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)
#define FAIL(error) do { errno = (error); return -1; } while (0)

/* A write at an offset; only `go` bytes are actually written. */
#define WRITE(offset_expression, call)                                                        \
    ino_t inode = watched(fd);                                                                \
    int out = !inode && is_output(fd);                                                        \
    if (!inode && !out) return call(length);                                                  \
    pthread_mutex_lock(&lock);                                                                \
    int was_full = full;                                                                      \
    /* Sizes depend slightly on the noise, and so do calls. Output cannot fail: the next call fails instead. */ \
    if (out && calls == at && fault != KILL && fault != TORN) at++;                             \
    enum fault now = next();                                                                   \
    off_t where = out ? 0 : (offset_expression);                                              \
    char kind = out ? 'o' : 'w', mark = now == NONE ? '.' : '!';                              \
    if (now == KILL) { note('x', 0, 0, 0, '!', "", NULL); die(); }                            \
    size_t go = length;                                                                       \
    if ((now == TORN && !out) || (now == SHORT && !out)) go = length / 2;                     \
    if (!out && (now == EIO_ONCE || now == FULL || was_full || (go == 0 && now == SHORT))) {  \
        note('f', inode, where, 0, '!', "", NULL);                                            \
        pthread_mutex_unlock(&lock);                                                          \
        FAIL(now == EIO_ONCE ? EIO : ENOSPC);                                                 \
    }                                                                                         \
    ssize_t done = call(go);                                                                  \
    if (done >= 0) note(kind, inode, where, (size_t)done, mark, "", bytes);                   \
    if (now == TORN) die();                                                                   \
    pthread_mutex_unlock(&lock);                                                              \
    return done;

ssize_t write(int fd, const void *bytes, size_t length) {
    REAL(write);
#define CALL(n) real(fd, bytes, n)
    WRITE(lseek(fd, 0, SEEK_CUR), CALL)
#undef CALL
}

#define PWRITE(name)                                                                          \
    ssize_t name(int fd, const void *bytes, size_t length, off_t offset) {                    \
        REAL(name);                                                                           \
        WRITE(offset, CALL)                                                                   \
    }
#define CALL(n) real(fd, bytes, n, offset)
PWRITE(pwrite)
PWRITE(pwrite64)
#undef CALL

/* Syncs and truncations. */
#define OTHER(kind, where, call)                                                              \
    ino_t inode = watched(fd);                                                                \
    if (!inode) return call;                                                                  \
    pthread_mutex_lock(&lock);                                                                \
    enum fault now = next();                                                                   \
    if (now == KILL) { note('x', 0, 0, 0, '!', "", NULL); die(); }                            \
    if (now == EIO_ONCE || now == FULL || now == SHORT) {                                     \
        note('f', inode, 0, 0, '!', "", NULL);                                                \
        pthread_mutex_unlock(&lock);                                                          \
        FAIL(now == EIO_ONCE ? EIO : ENOSPC);                                                 \
    }                                                                                         \
    int done = call;                                                                          \
    if (done == 0) note(kind, inode, where, 0, now == NONE ? '.' : '!', "", NULL);            \
    if (now == TORN) die();                                                                   \
    pthread_mutex_unlock(&lock);                                                              \
    return done;

int fsync(int fd) { REAL(fsync); OTHER('s', 0, real(fd)) }
int fdatasync(int fd) { REAL(fdatasync); OTHER('s', 0, real(fd)) }
int ftruncate(int fd, off_t length) { REAL(ftruncate); OTHER('t', length, real(fd, length)) }
int ftruncate64(int fd, off_t length) { REAL(ftruncate64); OTHER('t', length, real(fd, length)) }

static int opened(int fd, const char *name, int isnew, int flags, enum fault now) {
    struct stat s;
    if (fd >= 0 && fd < MOST && fstat(fd, &s) == 0) {
        inode_of[fd] = s.st_ino;
        if (isnew) note('c', s.st_ino, 0, 0, now == NONE ? '.' : '!', name, NULL);
        else if (flags & O_TRUNC) note('t', s.st_ino, 0, 0, now == NONE ? '.' : '!', name, NULL);
    }
    if (now == TORN) die();
    return fd;
}

/* Opening counts only where it creates or empties a file. */
#define OPEN(call)                                                                            \
    mode_t mode = 0;                                                                          \
    if (flags & (O_CREAT | O_TMPFILE)) { va_list more; va_start(more, flags); mode = va_arg(more, mode_t); va_end(more); } \
    const char *name = within(path);                                                          \
    if (!name) return call;                                                                   \
    pthread_mutex_lock(&lock);                                                                \
    int isnew = (flags & O_CREAT) && access(path, F_OK) != 0;                                 \
    enum fault now = NONE;                                                                     \
    int was_full = full;                                                                      \
    if (isnew || (flags & O_TRUNC)) now = next();                                             \
    if (now == KILL) { note('x', 0, 0, 0, '!', name, NULL); die(); }                          \
    if (now == EIO_ONCE || now == FULL || now == SHORT || (isnew && was_full)) {              \
        note('f', 0, 0, 0, '!', name, NULL);                                                  \
        pthread_mutex_unlock(&lock);                                                          \
        FAIL(now == EIO_ONCE ? EIO : ENOSPC);                                                 \
    }                                                                                         \
    int fd = opened(call, name, isnew, flags, now);                                           \
    pthread_mutex_unlock(&lock);                                                              \
    return fd;

int open(const char *path, int flags, ...) { REAL(open); OPEN(real(path, flags, mode)) }
int open64(const char *path, int flags, ...) { REAL(open64); OPEN(real(path, flags, mode)) }
int openat(int at_fd, const char *path, int flags, ...) { REAL(openat); OPEN(real(at_fd, path, flags, mode)) }
int openat64(int at_fd, const char *path, int flags, ...) { REAL(openat64); OPEN(real(at_fd, path, flags, mode)) }

int close(int fd) {
    REAL(close);
    if (fd >= 0 && fd < MOST) inode_of[fd] = 0;
    return real(fd);
}

#define NAMES(kind, call, first, second)                                                      \
    const char *name = within(first);                                                         \
    if (!name) return call;                                                                   \
    char both[600];                                                                           \
    const char *to = second ? within(second) : NULL;                                          \
    snprintf(both, sizeof both, "%s %s", name, to ? to : "");                                 \
    pthread_mutex_lock(&lock);                                                                \
    enum fault now = next();                                                                   \
    if (now == KILL) { note('x', 0, 0, 0, '!', name, NULL); die(); }                          \
    if (now == EIO_ONCE || now == FULL || now == SHORT) {                                     \
        note('f', 0, 0, 0, '!', name, NULL);                                                  \
        pthread_mutex_unlock(&lock);                                                          \
        FAIL(now == EIO_ONCE ? EIO : ENOSPC);                                                 \
    }                                                                                         \
    int done = call;                                                                          \
    if (done == 0) note(kind, 0, 0, 0, now == NONE ? '.' : '!', both, NULL);                  \
    if (now == TORN) die();                                                                   \
    pthread_mutex_unlock(&lock);                                                              \
    return done;

int unlink(const char *path) { REAL(unlink); NAMES('u', real(path), path, (const char *)NULL) }
int rename(const char *from, const char *to_path) { REAL(rename); NAMES('r', real(from, to_path), from, to_path) }

/* An existing folder is not created. */
int mkdir(const char *path, mode_t mode) {
    REAL(mkdir);
    const char *name = within(path);
    if (!name || access(path, F_OK) == 0) return real(path, mode);
    pthread_mutex_lock(&lock);
    enum fault now = next();
    if (now == KILL) { note('x', 0, 0, 0, '!', name, NULL); die(); }
    if (now == EIO_ONCE || now == FULL || now == SHORT) {
        note('f', 0, 0, 0, '!', name, NULL);
        pthread_mutex_unlock(&lock);
        FAIL(now == EIO_ONCE ? EIO : ENOSPC);
    }
    int done = real(path, mode);
    struct stat s;
    if (done == 0 && stat(path, &s) == 0) note('d', s.st_ino, 0, 0, now == NONE ? '.' : '!', name, NULL);
    if (now == TORN) die();
    pthread_mutex_unlock(&lock);
    return done;
}
