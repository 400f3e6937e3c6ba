// A library that a program loads with LD_PRELOAD. It numbers the operations with which the program changes files, over
// all threads, writes them to a log, and kills the program before one of them. FileOperations.swift compiles it.
//
//     FILE_OPERATIONS_BELOW=DIR    only operations on this directory, an absolute path, and on files below it count
//     FILE_OPERATIONS_LOG=FILE     each operation is appended to FILE before it is performed, as one line
//     FILE_OPERATIONS_AFTER=FILE   only operations while FILE exists count
//     FILE_OPERATIONS_KILL_AT=N    SIGKILL before the operation with the number N; the first one has the number 1
//
// A write of two or more bytes has two numbers: with the second one, half of the bytes have been written.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static const char *below, *after;
static int logNumber = -1;
static long killAt, count;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FILE_OPERATIONS_LOG"), *number = getenv("FILE_OPERATIONS_KILL_AT");
    below = getenv("FILE_OPERATIONS_BELOW");
    after = getenv("FILE_OPERATIONS_AFTER");
    killAt = number ? atol(number) : 0;
    // The system call itself: `openat` of this library is not meant. A high number disturbs no program.
    int opened = path ? syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (opened >= 0) {
        logNumber = fcntl(opened, F_DUPFD_CLOEXEC, 300);
        close(opened);
    }
}

// The path of a descriptor; empty if it has none.
static void describe(int descriptor, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(link, path, PATH_MAX - 1);
    path[size < 0 ? 0 : size] = 0;
}

static void resolve(int directory, const char *name, char *path) {
    size_t size = 0;
    path[0] = 0;
    if (name[0] != '/') {
        if (directory == AT_FDCWD) {
            if (!getcwd(path, PATH_MAX)) path[0] = 0;
        } else {
            describe(directory, path);
        }
        size = strlen(path);
        if (size < PATH_MAX - 1) path[size++] = '/';
    }
    snprintf(path + size, PATH_MAX - size, "%s", name);
}

static int counts(const char *path) {
    size_t size = below ? strlen(below) : 0;
    return below && strncmp(path, below, size) == 0 && (path[size] == '/' || path[size] == 0);
}

// The path in the log, relative to the directory.
static const char *shown(const char *path) {
    if (!counts(path)) return path;
    path += strlen(below);
    return *path ? path + 1 : ".";
}

// A write that writes only half of its bytes. The offset is negative for write(2).
struct half {
    int descriptor;
    const void *bytes;
    size_t size;
    off_t offset;
};

// Counts one operation.
static void operation(const char *name, const char *path, const char *other, const struct half *half) {
    if (!counts(path) && !(other && counts(other))) return;
    struct stat status;
    if (after && syscall(SYS_newfstatat, AT_FDCWD, after, &status, 0) != 0) return;
    pthread_mutex_lock(&mutex);
    count++;
    if (logNumber >= 0) {
        char line[2 * PATH_MAX + 64];
        int length = other ? snprintf(line, sizeof line, "%s %s %s\n", name, shown(path), shown(other))
                           : snprintf(line, sizeof line, "%s %s\n", name, shown(path));
        syscall(SYS_write, logNumber, line, (size_t)length);
    }
    if (count == killAt) {
        if (half && half->offset < 0) syscall(SYS_write, half->descriptor, half->bytes, half->size);
        if (half && half->offset >= 0) syscall(SYS_pwrite64, half->descriptor, half->bytes, half->size, half->offset);
        syscall(SYS_kill, getpid(), SIGKILL);
        for (;;) pause();
    }
    pthread_mutex_unlock(&mutex);
}

static void onDescriptor(const char *name, int descriptor) {
    char path[PATH_MAX];
    describe(descriptor, path);
    operation(name, path, NULL, NULL);
}

static void onPath(const char *name, int directory, const char *file) {
    char path[PATH_MAX];
    resolve(directory, file, path);
    operation(name, path, NULL, NULL);
}

static void onPaths(const char *name, int directory, const char *file, int newDirectory, const char *newFile) {
    char path[PATH_MAX], other[PATH_MAX];
    resolve(directory, file, path);
    resolve(newDirectory, newFile, other);
    operation(name, path, other, NULL);
}

// Declares `real`: the function of the C library.
#define REAL(name) \
    static __typeof__(&name) real; \
    if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name);

// MARK: Creation

static void onOpen(int directory, const char *path, int flags) {
    if ((flags & O_TMPFILE) == O_TMPFILE) {
        onPath("create", directory, path);
    } else if (flags & (O_CREAT | O_TRUNC)) {
        char resolved[PATH_MAX];
        resolve(directory, path, resolved);
        struct stat status;
        int exists = syscall(SYS_newfstatat, AT_FDCWD, resolved, &status, AT_SYMLINK_NOFOLLOW) == 0;
        if (!exists || flags & O_TRUNC) operation("create", resolved, NULL, NULL);
    }
}

#define MODE(flags) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | O_TMPFILE)) { \
        va_list arguments; \
        va_start(arguments, flags); \
        mode = va_arg(arguments, mode_t); \
        va_end(arguments); \
    }

int open(const char *path, int flags, ...) {
    REAL(open)
    MODE(flags)
    onOpen(AT_FDCWD, path, flags);
    return real(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    REAL(open64)
    MODE(flags)
    onOpen(AT_FDCWD, path, flags);
    return real(path, flags, mode);
}

int openat(int directory, const char *path, int flags, ...) {
    REAL(openat)
    MODE(flags)
    onOpen(directory, path, flags);
    return real(directory, path, flags, mode);
}

int openat64(int directory, const char *path, int flags, ...) {
    REAL(openat64)
    MODE(flags)
    onOpen(directory, path, flags);
    return real(directory, path, flags, mode);
}

int mkdir(const char *path, mode_t mode) {
    REAL(mkdir)
    onPath("mkdir", AT_FDCWD, path);
    return real(path, mode);
}

int mkdirat(int directory, const char *path, mode_t mode) {
    REAL(mkdirat)
    onPath("mkdir", directory, path);
    return real(directory, path, mode);
}

// MARK: Content

static void onWrite(int descriptor, const void *bytes, size_t size, off_t offset) {
    char path[PATH_MAX];
    describe(descriptor, path);
    operation("write", path, NULL, NULL);
    struct half half = {descriptor, bytes, size / 2, offset};
    if (size > 1) operation("half", path, NULL, &half);
}

ssize_t write(int descriptor, const void *bytes, size_t size) {
    REAL(write)
    onWrite(descriptor, bytes, size, -1);
    return real(descriptor, bytes, size);
}

ssize_t pwrite(int descriptor, const void *bytes, size_t size, off_t offset) {
    REAL(pwrite)
    onWrite(descriptor, bytes, size, offset);
    return real(descriptor, bytes, size, offset);
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t size, off64_t offset) {
    REAL(pwrite64)
    onWrite(descriptor, bytes, size, offset);
    return real(descriptor, bytes, size, offset);
}

ssize_t writev(int descriptor, const struct iovec *parts, int number) {
    REAL(writev)
    onDescriptor("write", descriptor);
    return real(descriptor, parts, number);
}

int ftruncate(int descriptor, off_t size) {
    REAL(ftruncate)
    onDescriptor("truncate", descriptor);
    return real(descriptor, size);
}

int ftruncate64(int descriptor, off64_t size) {
    REAL(ftruncate64)
    onDescriptor("truncate", descriptor);
    return real(descriptor, size);
}

int fallocate(int descriptor, int mode, off_t offset, off_t size) {
    REAL(fallocate)
    onDescriptor("allocate", descriptor);
    return real(descriptor, mode, offset, size);
}

int fallocate64(int descriptor, int mode, off64_t offset, off64_t size) {
    REAL(fallocate64)
    onDescriptor("allocate", descriptor);
    return real(descriptor, mode, offset, size);
}

int fsync(int descriptor) {
    REAL(fsync)
    onDescriptor("sync", descriptor);
    return real(descriptor);
}

int fdatasync(int descriptor) {
    REAL(fdatasync)
    onDescriptor("sync", descriptor);
    return real(descriptor);
}

// MARK: Attributes

int fchmod(int descriptor, mode_t mode) {
    REAL(fchmod)
    onDescriptor("chmod", descriptor);
    return real(descriptor, mode);
}

int futimens(int descriptor, const struct timespec times[2]) {
    REAL(futimens)
    onDescriptor("times", descriptor);
    return real(descriptor, times);
}

// MARK: Names

int rename(const char *path, const char *newPath) {
    REAL(rename)
    onPaths("rename", AT_FDCWD, path, AT_FDCWD, newPath);
    return real(path, newPath);
}

int renameat(int directory, const char *path, int newDirectory, const char *newPath) {
    REAL(renameat)
    onPaths("rename", directory, path, newDirectory, newPath);
    return real(directory, path, newDirectory, newPath);
}

int renameat2(int directory, const char *path, int newDirectory, const char *newPath, unsigned flags) {
    REAL(renameat2)
    onPaths("rename", directory, path, newDirectory, newPath);
    return real(directory, path, newDirectory, newPath, flags);
}

int link(const char *path, const char *newPath) {
    REAL(link)
    onPaths("link", AT_FDCWD, path, AT_FDCWD, newPath);
    return real(path, newPath);
}

int linkat(int directory, const char *path, int newDirectory, const char *newPath, int flags) {
    REAL(linkat)
    onPaths("link", directory, path, newDirectory, newPath);
    return real(directory, path, newDirectory, newPath, flags);
}

int unlink(const char *path) {
    REAL(unlink)
    onPath("unlink", AT_FDCWD, path);
    return real(path);
}

int unlinkat(int directory, const char *path, int flags) {
    REAL(unlinkat)
    onPath("unlink", directory, path);
    return real(directory, path, flags);
}

int rmdir(const char *path) {
    REAL(rmdir)
    onPath("unlink", AT_FDCWD, path);
    return real(path);
}
