// Counts the allocations of a process: a library for LD_PRELOAD. The environment variable ALLOCATION_COUNT names a file of
// 8 bytes, which is mapped, so that another process can read the number at any time.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

// glibc exports its allocator with these names, too. They can be called before dlsym().
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static uint64_t ignored;
static uint64_t *count = &ignored;

__attribute__((constructor)) static void map_count(void) {
    const char *name = getenv("ALLOCATION_COUNT");
    int file = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *page = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (page != MAP_FAILED) count = page;
    close(file);
}

static void add(void) { __atomic_fetch_add(count, 1, __ATOMIC_RELAXED); }

void *malloc(size_t size) { return add(), __libc_malloc(size); }
void *calloc(size_t number, size_t size) { return add(), __libc_calloc(number, size); }
void *realloc(void *old, size_t size) { return add(), __libc_realloc(old, size); }
void *memalign(size_t alignment, size_t size) { return add(), __libc_memalign(alignment, size); }
void *aligned_alloc(size_t alignment, size_t size) { return add(), __libc_memalign(alignment, size); }

int posix_memalign(void **result, size_t alignment, size_t size) {
    add();
    *result = __libc_memalign(alignment, size);
    return *result ? 0 : ENOMEM;
}
