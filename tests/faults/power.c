/* A disk whose power can be cut: a library for LD_PRELOAD.

For each file F in the folder RECOLLECT_DISK, the folder RECOLLECT_DISK/stored holds what a power cut would leave of
it: F's pages as of their last successful flush. The file F.dirty beside that has a byte for each page that was written
since. It stands for the memory of the kernel, so it outlives the process. The file RECOLLECT_DISK/behaviour says what
a flush does: "s" stores, "f" fails, and forgets which pages were dirty, as Linux does; "h" holds until that changes.
A flush that is held makes the file RECOLLECT_DISK/behaviour.held.
Changes of the length and deletions are stored at once. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096

static char behaviour(void) {
    char path[4096], found = 's';
    snprintf(path, sizeof path, "%s/behaviour", getenv("RECOLLECT_DISK"));
    int file = open(path, O_RDONLY);
    if (file >= 0) {
        if (read(file, &found, 1) != 1) found = 's';
        close(file);
    }
    return found;
}

static void mark_held(void) {
    char path[4096];
    snprintf(path, sizeof path, "%s/behaviour.held", getenv("RECOLLECT_DISK"));
    int file = open(path, O_RDWR | O_CREAT, 0600);
    if (file >= 0) close(file);
}

/* The path of what is stored of a file, with an ending; 0 if the file is not in the folder. */
static int stored_at(const char *path, const char *end, char *to) {
    const char *folder = getenv("RECOLLECT_DISK");
    size_t length = folder ? strlen(folder) : 0;
    if (!length || strncmp(path, folder, length) || path[length] != '/' || strchr(path + length + 1, '/')) return 0;
    if (strstr(path, "-shm") || strstr(path, "behaviour")) return 0;
    snprintf(to, 4096, "%s/stored/%s%s", folder, path + length + 1, end);
    return 1;
}

static int stored_of(int file, const char *end, char *to) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return stored_at(path, end, to);
}

static void mark(int file, off_t start, size_t count) {
    char path[4096];
    if (!count || !stored_of(file, ".dirty", path)) return;
    int marks = open(path, O_WRONLY | O_CREAT, 0600);
    for (off_t page = start / PAGE; page <= (off_t)(start + count - 1) / PAGE; page++)
        if (pwrite(marks, "d", 1, page) != 1) abort();
    close(marks);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t start) {
    static ssize_t (*next)(int, const void *, size_t, off64_t);
    if (!next) next = dlsym(RTLD_NEXT, "pwrite64");
    ssize_t written = next(file, bytes, count, start);
    char path[4096];
    if (written > 0 && !stored_of(file, "", path)) return written;
    if (written > 0) mark(file, start, written);
    return written;
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t start) { return pwrite64(file, bytes, count, start); }

ssize_t write(int file, const void *bytes, size_t count) {
    static ssize_t (*next)(int, const void *, size_t);
    if (!next) next = dlsym(RTLD_NEXT, "write");
    char path[4096];
    off_t start = getenv("RECOLLECT_DISK") && stored_of(file, "", path) ? lseek(file, 0, SEEK_CUR) : -1;
    ssize_t written = next(file, bytes, count);
    if (written > 0 && start >= 0) mark(file, start, written);
    return written;
}

static int flush(int file) {
    char stored_path[4096], marks_path[4096], page[PAGE], state;
    if (!stored_of(file, "", stored_path) || !stored_of(file, ".dirty", marks_path)) return 0;
    while ((state = behaviour()) == 'h') {
        mark_held();
        usleep(2000);
    }
    int marks = open(marks_path, O_RDWR | O_CREAT, 0600), stored = open(stored_path, O_RDWR | O_CREAT, 0600);
    struct stat now;
    fstat(file, &now);
    for (off_t number = 0; number * PAGE < now.st_size; number++) {
        char dirty = 0;
        if (pread(marks, &dirty, 1, number) != 1 || dirty != 'd' || state == 'f') continue;
        ssize_t length = pread(file, page, PAGE, number * PAGE);
        if (pwrite(stored, page, length, number * PAGE) != length) abort();
    }
    if (ftruncate(marks, 0)) abort();
    close(marks);
    close(stored);
    errno = EIO;
    return state == 'f' ? -1 : 0;
}

int fsync(int file) { return flush(file); }
int fdatasync(int file) { return flush(file); }

int ftruncate64(int file, off64_t size) {
    static int (*next)(int, off64_t);
    if (!next) next = dlsym(RTLD_NEXT, "ftruncate64");
    char path[4096];
    if (stored_of(file, "", path) && truncate64(path, size) && errno != ENOENT) abort();
    return next(file, size);
}

int ftruncate(int file, off_t size) { return ftruncate64(file, size); }

int unlink(const char *path) {
    static int (*next)(const char *);
    if (!next) next = dlsym(RTLD_NEXT, "unlink");
    char stored[4096];
    if (stored_at(path, "", stored)) next(stored);
    if (stored_at(path, ".dirty", stored)) next(stored);
    return next(path);
}
