/* The client of tools/bench/mounts: plain system calls in a loop, paths made in advance, clock read outside.
 *
 *   fuse-load stat    DIR DIRS FILES PROCS [absent|open]  stat of every file of a tree of DIRS x FILES, in a shuffled
 *                                                    order; of names that are not there; or open and close
 *   fuse-load make    DIR DIRS FILES                 makes that tree (empty files)
 *   fuse-load create  DIR FILES PROCS one|own        each process creates (and closes) FILES files
 *   fuse-load unlink  DIR FILES PROCS one|own        and their removal; in one directory or in own ones
 *   fuse-load mkdir|rmdir DIR FILES PROCS one|own    the same with directories
 *   fuse-load rename  DIR FILES PROCS one|own        each of those names to another one and back: two operations
 *   fuse-load direct-write|direct-read DIR COUNT PROCS own   4 KiB each at random places of a file of each process, O_DIRECT
 *   fuse-load postmark DIR COUNT PROCS own           transactions of PostMark, each process in its own directory: a file is read,
 *                                                    or grows by pieces of 512 bytes; and one is created or removed
 *   fuse-load write|read|randwrite|randread FILE MIB BLOCK   one process, one file; writes end with fsync
 *
 * Processes start together. Prints nanoseconds an operation (the time from the common start to the last one's end, over
 * all operations), or MiB a second for files. Exit 1 with a message at the first error. Built by mounts.py.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what, const char *path)
{
	fprintf(stderr, "fuse-load: %s %s: %s\n", what, path, strerror(errno));
	exit(1);
}

static double now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static unsigned long long seed = 88172645463325252ull;

static unsigned long long random_u64(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

typedef void (*operation)(const char *path);

static void do_stat(const char *path)
{
	struct stat st;
	if (stat(path, &st) != 0)
		die("stat", path);
}

static void do_stat_absent(const char *path)
{
	struct stat st;
	if (stat(path, &st) == 0 || errno != ENOENT)
		die("stat of an absent name", path);
}

static void do_open(const char *path)
{
	int fd = open(path, O_RDONLY);
	if (fd < 0)
		die("open", path);
	close(fd);
}

static void do_create(const char *path)
{
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
	if (fd < 0)
		die("create", path);
	close(fd);
}

static void do_unlink(const char *path)
{
	if (unlink(path) != 0)
		die("unlink", path);
}

static void do_mkdir(const char *path)
{
	if (mkdir(path, 0755) != 0)
		die("mkdir", path);
}

static void do_rmdir(const char *path)
{
	if (rmdir(path) != 0)
		die("rmdir", path);
}

static void do_rename(const char *path)
{
	char other[4096];
	snprintf(other, sizeof other, "%s~", path);
	if (rename(path, other) != 0 || rename(other, path) != 0)
		die("rename", path);
}

/* 4 KiB at a random place of the first MiB of this process's file. */
static void direct(const char *path, int writes)
{
	static char buffer[4096] __attribute__((aligned(4096)));
	static int fd = -1;
	char name[4096];
	if (fd < 0) {
		snprintf(name, sizeof name, "%.*s/direct", (int)(strrchr(path, '/') - path), path);
		fd = open(name, O_RDWR | O_CREAT | O_DIRECT, 0644);
		if (fd < 0 || ftruncate(fd, 1 << 20) != 0)
			die("open", name);
	}
	off_t at = (off_t)(random_u64() % 256) * 4096;
	if ((writes ? pwrite(fd, buffer, 4096, at) : pread(fd, buffer, 4096, at)) != 4096)
		die("direct", path);
}

static void do_direct_write(const char *path)
{
	direct(path, 1);
}

static void do_direct_read(const char *path)
{
	direct(path, 0);
}

/* Appends pieces of 512 bytes to a file. */
static void grow(const char *name, int flags, int pieces)
{
	static const char piece[512];
	int fd = open(name, O_WRONLY | O_APPEND | flags, 0644);
	if (fd < 0)
		die("open", name);
	for (int i = 0; i < pieces; i++)
		if (write(fd, piece, sizeof piece) != sizeof piece)
			die("write", name);
	close(fd);
}

/* One transaction; before the first, a process makes files, and in the end it leaves some. */
static void do_postmark(const char *path)
{
	enum { FILES = 100, MOST_PIECES = 20 };
	static char names[2 * FILES][256], buffer[1 << 16];
	static int count, next;
	int dir = strrchr(path, '/') - path;
	while (next < FILES || count < FILES / 2) {
		snprintf(names[count], sizeof *names, "%.*s/%d-%d", dir, path, getpid(), next++);
		grow(names[count++], O_CREAT | O_EXCL, 1 + random_u64() % MOST_PIECES);
	}
	int at = random_u64() % count;
	if (random_u64() % 2) {
		int fd = open(names[at], O_RDONLY);
		if (fd < 0)
			die("open", names[at]);
		while (read(fd, buffer, sizeof buffer) > 0)
			;
		close(fd);
	} else {
		grow(names[at], 0, 1 + random_u64() % MOST_PIECES);
	}
	at = random_u64() % count;
	if (random_u64() % 2 && count < 2 * FILES) {
		snprintf(names[count], sizeof *names, "%.*s/%d-%d", dir, path, getpid(), next++);
		grow(names[count++], O_CREAT | O_EXCL, 1 + random_u64() % MOST_PIECES);
	} else {
		do_unlink(names[at]);
		memcpy(names[at], names[--count], sizeof *names);
	}
}

/* Operations on names that each process makes or has made. */
static const struct {
	const char *name;
	operation call;
	int makes;
} ON_NAMES[] = {
	{"create", do_create, 1}, {"unlink", do_unlink, 0}, {"mkdir", do_mkdir, 1}, {"rmdir", do_rmdir, 0}, {"rename", do_rename, 0},
	{"direct-write", do_direct_write, 1}, {"direct-read", do_direct_read, 1}, {"postmark", do_postmark, 1},
};

/* The place of `what` in that table, or -1. */
static int on_names(const char *what)
{
	for (int i = 0; i < (int)(sizeof ON_NAMES / sizeof *ON_NAMES); i++)
		if (!strcmp(what, ON_NAMES[i].name))
			return i;
	return -1;
}

/* Runs `what` on paths[i] for each process's share, all processes at once. Nanoseconds an operation. */
static double storm(operation what, char **paths, int count, int procs)
{
	int ready[2], go[2];
	char byte = 0;
	if (pipe(ready) || pipe(go))
		die("pipe", "");
	for (int p = 0; p < procs; p++) {
		pid_t pid = fork();
		if (pid < 0)
			die("fork", "");
		if (pid > 0)
			continue;
		close(go[1]);
		if (write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 0)
			_exit(1);
		int from = (long)count * p / procs, to = (long)count * (p + 1) / procs;
		for (int i = from; i < to; i++)
			what(paths[i]);
		_exit(0);
	}
	for (int p = 0; p < procs; p++)
		if (read(ready[0], &byte, 1) != 1)
			die("start", "");
	double start = now_s();
	close(go[1]);
	for (int p = 0; p < procs; p++) {
		int status;
		if (wait(&status) < 0 || status != 0)
			exit(1);
	}
	return (now_s() - start) * 1e9 / count;
}

static char *path_of(const char *format, int a, int b)
{
	char *path;
	if (asprintf(&path, format, a, b) < 0)
		die("memory", "");
	return path;
}

static char **tree(int dirs, int files, const char *format)
{
	char **paths = malloc(sizeof *paths * dirs * files);
	for (int i = 0; i < dirs * files; i++)
		paths[i] = path_of(format, i / files, i % files);
	return paths;
}

static void shuffle(char **paths, int count)
{
	for (int i = count - 1; i > 0; i--) {
		int j = random_u64() % (i + 1);
		char *other = paths[i];
		paths[i] = paths[j];
		paths[j] = other;
	}
}

static void make(int dirs, int files)
{
	char **paths = tree(dirs, files, "d%04d/f%05d");
	for (int i = 0; i < dirs * files; i++) {
		if (i % files == 0) {
			char *dir = path_of("d%04d", i / files, 0);
			if (mkdir(dir, 0755) != 0)
				die("mkdir", dir);
			free(dir);
		}
		do_create(paths[i]);
	}
}

static double change_names(int what, int files, int procs, const char *where)
{
	int own = !strcmp(where, "own");
	char **paths = tree(procs, files, own ? "d%02d/c%06d" : "d/c%02d-%06d");
	for (int p = 0; ON_NAMES[what].makes && p < (own ? procs : 1); p++) {
		char *dir = own ? path_of("d%02d", p, 0) : strdup("d");
		if (mkdir(dir, 0755) != 0 && errno != EEXIST)
			die("mkdir", dir);
	}
	return storm(ON_NAMES[what].call, paths, procs * files, procs);
}

/* MiB a second. A random run touches a sixteenth of the file's blocks. */
static double file_io(const char *what, const char *path, long mib, long block)
{
	int writes = strstr(what, "write") != NULL, is_random = !strncmp(what, "rand", 4);
	long blocks = mib * 1048576 / block, count = is_random ? blocks / 16 : blocks;
	char *buffer = aligned_alloc(4096, (block + 4095) / 4096 * 4096);
	for (long i = 0; i < block; i++)
		buffer[i] = random_u64();
	double start = now_s();
	int fd = open(path, (writes ? O_RDWR : O_RDONLY) | (writes && !is_random ? O_CREAT | O_TRUNC : 0), 0644);
	if (fd < 0)
		die("open", path);
	for (long i = 0; i < count; i++) {
		off_t at = (is_random ? (long)(random_u64() % blocks) : i) * block;
		if ((writes ? pwrite(fd, buffer, block, at) : pread(fd, buffer, block, at)) != block)
			die(what, path);
	}
	if (writes && fsync(fd) != 0)
		die("fsync", path);
	close(fd);
	return count * (double)block / 1048576 / (now_s() - start);
}

int main(int argc, char **argv)
{
	if (argc < 5) {
		fprintf(stderr, "usage: see the head of fuse-load.c\n");
		return 2;
	}
	const char *what = argv[1], *where = argv[2];
	int first = atoi(argv[3]), second = atoi(argv[4]);
	if (on_names(what) < 0 && (strstr(what, "read") || strstr(what, "write"))) {
		printf("%.1f\n", file_io(what, where, first, second));
		return 0;
	}
	if (chdir(where) != 0)
		die("chdir", where);
	if (!strcmp(what, "make")) {
		make(first, second);
	} else if (!strcmp(what, "stat") && argc > 5) {
		int absent = argc > 6 && !strcmp(argv[6], "absent"), opens = argc > 6 && !strcmp(argv[6], "open");
		char **paths = tree(first, second, absent ? "d%04d/-%05d" : "d%04d/f%05d");
		shuffle(paths, first * second);
		printf("%.0f\n", storm(absent ? do_stat_absent : opens ? do_open : do_stat, paths, first * second, atoi(argv[5])));
	} else if (on_names(what) >= 0 && argc > 5) {
		printf("%.0f\n", change_names(on_names(what), first, second, argv[5]));
	} else {
		fprintf(stderr, "usage: see the head of fuse-load.c\n");
		return 2;
	}
	return 0;
}
