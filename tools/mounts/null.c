/* A FUSE file system that does nothing: what a request costs before any file system has done any work.
 *
 * Every name that begins with d is a directory; with - or c there is none, but one with c can be made; all others are
 * regular files. A name's number is a hash of its path. Creations and removals succeed and change nothing, reads give
 * zeros, writes are dropped, listings are empty. Entries and attributes are good for a day, absent names too; its worker
 * threads are libfuse's defaults. Built by mounts.py with Debian's libfuse3-dev. Not a part of the product.
 */
#define FUSE_USE_VERSION 35
#include <errno.h>
#include <fuse_lowlevel.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TTL_S 86400.0
#define DIRECTORY_BIT 1ull

static char zeros[1 << 20];

static struct stat attributes(fuse_ino_t ino)
{
	struct stat st = { .st_ino = ino, .st_nlink = 1, .st_blksize = 4096 };
	int is_dir = ino == FUSE_ROOT_ID || (ino & DIRECTORY_BIT);
	st.st_mode = is_dir ? S_IFDIR | 0777 : S_IFREG | 0666;
	return st;
}

/* FNV-1a of the parent's number and the name; its lowest bit says what it is. Never 0 or 1, the root's number. */
static fuse_ino_t number(fuse_ino_t parent, const char *name)
{
	unsigned long long hash = 14695981039346656037ull ^ parent;
	for (const char *c = name; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 1099511628211ull;
	hash &= ~DIRECTORY_BIT;
	return hash | 16 | (name[0] == 'd' ? DIRECTORY_BIT : 0);
}

static struct fuse_entry_param entry(fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param e = { .attr_timeout = TTL_S, .entry_timeout = TTL_S };
	e.ino = number(parent, name);
	e.attr = attributes(e.ino);
	return e;
}

static void null_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param e = entry(parent, name);
	if (name[0] == '-' || name[0] == 'c')
		e.ino = 0;
	fuse_reply_entry(req, &e);
}

static void null_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)fi;
	struct stat st = attributes(ino);
	fuse_reply_attr(req, &st, TTL_S);
}

static void null_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *to, int what, struct fuse_file_info *fi)
{
	(void)to, (void)what;
	null_getattr(req, ino, fi);
}

static void null_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
	(void)mode, (void)rdev;
	struct fuse_entry_param e = entry(parent, name);
	fuse_reply_entry(req, &e);
}

static void null_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	null_mknod(req, parent, name, mode, 0);
}

static void null_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi)
{
	(void)mode;
	struct fuse_entry_param e = entry(parent, name);
	fuse_reply_create(req, &e, fi);
}

static void null_remove(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	(void)parent, (void)name;
	fuse_reply_err(req, 0);
}

static void null_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	fuse_reply_open(req, fi);
}

static void null_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	(void)ino, (void)off, (void)fi;
	fuse_reply_buf(req, zeros, size < sizeof zeros ? size : sizeof zeros);
}

static void null_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off, struct fuse_file_info *fi)
{
	(void)ino, (void)buf, (void)off, (void)fi;
	fuse_reply_write(req, size);
}

static void null_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	(void)ino, (void)size, (void)off, (void)fi;
	fuse_reply_buf(req, NULL, 0);
}

static void null_done(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino, (void)fi;
	fuse_reply_err(req, 0);
}

static const struct fuse_lowlevel_ops operations = {
	.lookup = null_lookup, .getattr = null_getattr, .setattr = null_setattr, .mknod = null_mknod,
	.mkdir = null_mkdir, .create = null_create, .unlink = null_remove, .rmdir = null_remove,
	.open = null_open, .opendir = null_open, .read = null_read, .write = null_write,
	.readdir = null_readdir, .flush = null_done, .release = null_done, .releasedir = null_done,
};

int main(int argc, char *argv[])
{
	struct fuse_args args = FUSE_ARGS_INIT(argc, argv);
	struct fuse_cmdline_opts opts;
	int status = 1;

	if (fuse_parse_cmdline(&args, &opts) != 0 || !opts.mountpoint)
		return 2;
	struct fuse_session *session = fuse_session_new(&args, &operations, sizeof operations, NULL);
	if (session && fuse_set_signal_handlers(session) == 0) {
		if (fuse_session_mount(session, opts.mountpoint) == 0) {
			struct fuse_loop_config config = { .clone_fd = 0, .max_idle_threads = 10 };
			status = fuse_session_loop_mt(session, &config) != 0;
			fuse_session_unmount(session);
		}
		fuse_remove_signal_handlers(session);
	}
	if (session)
		fuse_session_destroy(session);
	fuse_opt_free_args(&args);
	return status;
}
