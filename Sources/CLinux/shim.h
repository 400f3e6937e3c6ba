#ifndef ONWARD_CLINUX_SHIM_H
#define ONWARD_CLINUX_SHIM_H

/* Declarations that glibc has only with _GNU_SOURCE, and that the Glibc module therefore lacks. */

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/types.h>

/* Declared here instead of included, because the definitions of <sys/socket.h> would become part of this module. */
struct sockaddr;
struct pollfd;
struct timespec;
extern int accept4(int listener, struct sockaddr *address, unsigned int *length, int flags);
extern int ppoll(struct pollfd *entries, unsigned long count, const struct timespec *time, const void *signals);
extern int renameat2(int from_directory, const char *from, int to_directory, const char *to, unsigned int flags);
extern int sync_file_range(int descriptor, off_t offset, off_t count, unsigned int flags);
extern int syncfs(int descriptor);
extern int fallocate(int descriptor, int mode, off_t offset, off_t count);
extern const char *strerrordesc_np(int number);
extern const char *strerrorname_np(int number);
extern int posix_spawn_file_actions_addclosefrom_np(void *actions, int from);
extern int pipe2(int descriptors[2], int flags);
extern int dup3(int from, int to, int flags);
extern int memfd_create(const char *name, unsigned int flags);
extern long syscall(long number, ...);
extern int pthread_setname_np(unsigned long thread, const char *name);
extern int pthread_getattr_np(unsigned long thread, pthread_attr_t *attributes);

/* <bits/poll.h> */
enum { ONWARD_POLLRDHUP = 0x2000 };
/* <sched.h> */
enum { ONWARD_SCHED_BATCH = 3 };

/* Sets the scheduling policy of the calling thread, and its time slice in nanoseconds; 0: the default
   (sched_setattr(2)). The niceness does not change. The structure is the first version of the structure in
   <linux/sched/types.h>. */
static inline int onward_set_scheduling(unsigned policy, unsigned long long turn)
{
    /* The system call returns 20 minus the niceness. */
    long distance = syscall(SYS_getpriority, 0, 0);
    if (distance < 0)
        return -1;
    struct {
        unsigned size, policy;
        unsigned long long flags;
        int nice;
        unsigned priority;
        unsigned long long runtime, deadline, period;
    } attributes = {.size = 48, .policy = policy, .nice = 20 - (int)distance, .runtime = turn};
    return (int)syscall(SYS_sched_setattr, 0, &attributes, 0);
}
/* <linux/magic.h> */
enum {
    ONWARD_EXT4_MAGIC = 0xef53,
    ONWARD_XFS_MAGIC = 0x58465342,
    ONWARD_BTRFS_MAGIC = 0x9123683e,
    ONWARD_TMPFS_MAGIC = 0x01021994
};
/* <linux/falloc.h> */
enum { ONWARD_FALLOC_KEEP_SIZE = 1, ONWARD_FALLOC_PUNCH_HOLE = 2 };
/* <linux/memfd.h> */
enum { ONWARD_MFD_CLOEXEC = 1, ONWARD_MFD_NOEXEC_SEAL = 8 };
/* <linux/fs.h> */
enum { ONWARD_RENAME_NOREPLACE = 1, ONWARD_RENAME_EXCHANGE = 2 };
enum {
    ONWARD_SYNC_FILE_RANGE_WAIT_BEFORE = 1,
    ONWARD_SYNC_FILE_RANGE_WRITE = 2,
    ONWARD_SYNC_FILE_RANGE_WAIT_AFTER = 4
};

#endif
