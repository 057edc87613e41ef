/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A plugin of QEMU's user mode emulation. It counts the executions of each block of code,
 * and writes what threads access to a socket: always the accesses that miss the first-level
 * cache, and in samples also the order of blocks and all accesses. The reader of the
 * socket is another program; see ../thread.go for what is written.
 *
 * Options: dir=DIR (of the counts), socket=PATH, sets=N, ways=N (of the first-level cache),
 * period=N, warm=N, detail=N (the most blocks between samples, and in their parts),
 * windows=N (in a run of the expected length), left=N and random=N (the state of sampling of a program that executed this one), and
 * cpu=NAME, plugin=PATH (how to execute further programs).
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "qemu.h"

__attribute__((visibility("default"))) int qemu_plugin_version = QEMU_API;

enum { FAST, WARM, DETAIL };                   /* what a thread writes */
enum { ACCESS, BLOCK, MISS, MARK };            /* the low two bits of a word */
enum { MARK_MODE, MARK_BACK, MARK_VALUE };     /* the next three bits of a MARK */
/* 1 for a store: QEMU has that bit at this place, and a function that takes longer. Callbacks
   for loads or stores alone get others in QEMU 7.2. */
#define WRITTEN(info) ((info) >> 17 & 1)
enum { PAST = 7 << 2 };                        /* in place of the size: a store past the caches */
enum { DIRTY = 63 };                           /* the low bits of a line's address in the cache, all or none */
#define NEVER UINT64_MAX                       /* no line that a program can access */
enum { FIXED = 0x10 };                         /* MAP_FIXED of Linux on all of these processors */

enum {
	BUFFER = 8192,                         /* words */
	PAGE = 4096,                           /* what can be read of the program's memory, or not */
	LINE_BITS = 6,                         /* of an address within a line */
	MAX_SETS = 512, MAX_WAYS = 16,         /* of the first-level cache */
	MAX_BLOCKS = 1 << 20,                  /* of a process */
	PLACE_BITS = 9, MAX_INSNS = 1 << PLACE_BITS, /* of a block */
	NUMBER_BITS = 32,                      /* of an instruction */
	SLOTS = 8,                             /* counts of a block: threads that do not disturb each other */
	LEAST_GAP = 300,                       /* blocks between samples at the beginning */
	GROWTH = 16,                           /* the gap grows by one block for so many that were passed */
	BEGINNING = 400000,                    /* behind so many blocks it grows twice as fast */
};

struct block {
	struct block *next;                    /* with the same hash */
	uint64_t vaddr, hash;
	uint32_t id, n;
	uint32_t first;                        /* number of its first instruction, of all of the process */
};

struct thread {
	/* What callbacks need: */
	int64_t left;                          /* blocks until a sample; in one each is the last */
	uint64_t *counts;                      /* its own, in the shared file */
	uint64_t sets;                         /* the bits of an address that are the set's, at those of a line */
	struct thread *next;
	int fd, slot;
	uint64_t quick[MAX_SETS];              /* lines[set][0], or NEVER in a window */
	/* And what the others do: */
	int mode;
	int64_t rest;                          /* blocks of a sample until the next mode */
	int64_t each, warm;                    /* blocks for each sample, at present; how many are for the predictor */
	uint64_t random;
	unsigned n;
	uint64_t streamed;                     /* the line that was last stored past the caches */
	uint64_t lines[MAX_SETS][MAX_WAYS];    /* the first-level cache: of each set those used last come first */
	uint64_t buffer[BUFFER];
};

static struct {
	const char *dir, *socket, *cpu, *plugin, *target;
	int64_t period, warm, detail, left, windows;
	uint64_t sets, ways;
	bool x86;
	uint64_t random;
} options;

/* What is in a file that the reader reads: it stays if the program is killed. */
struct shared {
	uint64_t counts[SLOTS][MAX_BLOCKS];    /* executions, by thread and block; of block 0 the block that was executed last */
	uint64_t n_said;                       /* bytes of the messages that were not sent yet */
	char said[1 << 16];
};

static struct shared *shared;
static uint64_t *passed;                       /* the blocks that samples stand for, of all processes */
static char counts_name[PATH_MAX];
static int control = -1;                       /* where blocks and mappings are written */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *blocks[1 << 18];
static uint32_t n_blocks, n_insns;
static struct thread *threads;
static unsigned long clock_reads, timers;      /* system calls that read the time, and that set timers */
static bool readable;                          /* the program's addresses are this process's: what it loads can be read */
static bool asks;                              /* and has code that asks for lines, at addresses made of that */
static bool remapped = true;                   /* the mappings are to be read again */
static struct thread nobody;                   /* before a thread's first block: it has no time left, and no lines */
static __thread struct thread *me __attribute__((tls_model("initial-exec"))) = &nobody;

enum access { OTHER, LOAD, STORE };             /* none, any or several; one load; one store */
struct mapping { uint64_t start, end; bool file; };
static struct mapping mappings[4096];
static unsigned n_mappings;

static void write_all(int fd, const void *data, size_t n)
{
	const char *p = data;
	while (n > 0 && fd >= 0) {
		ssize_t w = send(fd, p, n, MSG_NOSIGNAL);
		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0)
			_exit(125); /* nobody listens: the simulation has ended */
		p += w;
		n -= w;
	}
}

/* Connects to the reader. Descriptors are high, so that the program's have their usual numbers. */
static int dial(void)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	strncpy(to.sun_path, options.socket, sizeof to.sun_path - 1);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
		_exit(125);
	int high = fcntl(fd, F_DUPFD_CLOEXEC, 600);
	if (high >= 0) {
		close(fd);
		fd = high;
	}
	return fd;
}

/* Messages on the control connection are kept until there are many, or until
   a thread writes what refers to them. Under the lock. */
static void send_said(void)
{
	write_all(control, shared->said, shared->n_said);
	shared->n_said = 0;
}

/* Room for a message of up to so many bytes. */
static char *room(size_t n)
{
	if (shared->n_said + n > sizeof shared->said)
		send_said();
	return shared->said + shared->n_said;
}

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
	enum { MOST = PATH_MAX * 2 + 256 };
	char *at = room(MOST);
	va_list args;
	va_start(args, format);
	int n = vsnprintf(at, MOST, format, args);
	va_end(args);
	shared->n_said += n >= MOST ? MOST - 1 : n;
}

static void open_counts(void)
{
	void *at = shared;
	for (int i = 0;; i++) {
		snprintf(counts_name, sizeof counts_name, "%s/counts.%d.%d", options.dir, (int)getpid(), i);
		int fd = open(counts_name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0 && errno == EEXIST)
			continue;
		size_t size = sizeof *shared;
		if (fd < 0 || ftruncate(fd, size) < 0)
			_exit(125);
		shared = mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | (at ? MAP_FIXED : 0), fd, 0);
		close(fd);
		if (shared == MAP_FAILED)
			_exit(125);
		return;
	}
}

/* What all processes have passed is in a file of its own: a program of many processes has no
   more samples than others. */
static void open_passed(void)
{
	char name[PATH_MAX];
	snprintf(name, sizeof name, "%s/passed", options.dir);
	int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof *passed) < 0)
		_exit(125);
	passed = mmap(NULL, sizeof *passed, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (passed == MAP_FAILED)
		_exit(125);
}

/* Writes what a thread has to say. Under the lock. */
static void flush_locked(struct thread *t)
{
	send_said();
	if (t->n > 0 && t->fd < 0) {
		t->fd = dial();
		char hello[64];
		int n = snprintf(hello, sizeof hello, "thread %d %d\n", (int)getpid(), t->slot);
		write_all(t->fd, hello, n);
	}
	write_all(t->fd, t->buffer, t->n * sizeof *t->buffer);
	t->n = 0;
}

static void flush(struct thread *t)
{
	pthread_mutex_lock(&lock);
	flush_locked(t);
	pthread_mutex_unlock(&lock);
}

static inline void put(struct thread *t, uint64_t word)
{
	t->buffer[t->n++] = word;
	if (__builtin_expect(t->n == BUFFER, 0))
		flush(t);
}

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

/* Decides how far samples are apart, and returns the mean number of blocks between two. Nobody
   knows how long the program is: samples are near each other at its beginning, and stand for few
   blocks. */
static int64_t plan(struct thread *t)
{
	int64_t n = __atomic_load_n(passed, __ATOMIC_RELAXED), gap = LEAST_GAP + n / GROWTH;
	if (n > BEGINNING)
		gap += (n - BEGINNING) / GROWTH;
	int64_t most = n / options.windows; /* of a run that is longer than expected */
	if (most < options.period)
		most = options.period;
	if (gap > most)
		gap = most;
	t->warm = options.warm < gap / 2 ? options.warm : gap / 2 + 1;
	t->each = gap + t->warm + options.detail;
	return gap;
}

/* How many blocks pass until the next sample. */
static int64_t gap(struct thread *t)
{
	int64_t mean = plan(t);
	__atomic_fetch_add(passed, t->each, __ATOMIC_RELAXED);
	return mean / 2 + next_random(&t->random) % (mean + 1);
}

/* Of a thread in a window all accesses are written. */
static void fill_quick(struct thread *t)
{
	for (unsigned i = 0; i < options.sets; i++)
		t->quick[i] = t->mode == DETAIL ? NEVER : t->lines[i][0];
}

static void set_mode(struct thread *t, int mode)
{
	bool window = t->mode == DETAIL || mode == DETAIL;
	t->mode = mode;
	t->rest = mode == DETAIL ? options.detail : t->warm;
	t->left = mode == FAST ? gap(t) : 1;
	if (window)
		fill_quick(t);
	put(t, MARK | MARK_MODE << 2 | (uint64_t)mode << 5 | (mode == WARM ? (uint64_t)t->each << 7 | (uint64_t)t->warm << 40 : 0));
	if (mode == FAST)
		flush(t);
}

/* Returns this thread, and begins it. */
static struct thread *thread_of(unsigned cpu)
{
	if (me != &nobody)
		return me;
	struct thread *t = calloc(1, sizeof *t);
	if (!t)
		_exit(125);
	t->fd = -1;
	t->slot = cpu % SLOTS;
	t->counts = shared->counts[t->slot];
	t->sets = (options.sets - 1) << LINE_BITS;
	t->random = options.random + cpu * 0x9e3779b97f4a7c15u;
	int64_t mean = plan(t);
	t->left = cpu == 0 && options.left > 0 ? options.left : 1 + (int64_t)(next_random(&t->random) % mean);
	pthread_mutex_lock(&lock);
	t->next = threads;
	threads = t;
	pthread_mutex_unlock(&lock);
	return me = t;
}

/* Begins a block of a thread that has no time left, or the first one. */
static __attribute__((noinline)) void on_late_block(unsigned cpu, uint64_t id)
{
	struct thread *t = me;
	if (t == &nobody)
		(t = thread_of(cpu))->left--;
	t->counts[id]++;
	t->counts[0] = id;
	if (t->left > 0)
		return;
	if (t->mode == FAST)
		set_mode(t, WARM);
	else if (t->left = 1, --t->rest == 0)
		set_mode(t, t->mode == WARM ? DETAIL : FAST);
	if (t->mode != FAST)
		put(t, id << 2 | BLOCK);
}

/* Reports whether a block has begun. It is counted, if its thread has time left. */
static inline bool begun(uint64_t id)
{
	struct thread *t = me;
	if (__builtin_expect(--t->left <= 0, 0))
		return false;
	t->counts[id]++;
	t->counts[0] = id;
	return true;
}

static void on_block(unsigned cpu, void *data)
{
	if (!begun((uintptr_t)data))
		on_late_block(cpu, (uintptr_t)data);
}

/* Reads the program's memory; the size that could be read. */
static size_t peek(uint64_t addr, void *to, size_t n)
{
	struct iovec local = { to, n }, remote = { (void *)(uintptr_t)addr, n };
	ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
	return got < 0 ? 0 : (size_t)got;
}

/* Writes an access that the cache holds, or that misses. The instruction is its number and its place
   in the block. */
static void write_access(struct thread *t, qemu_plugin_meminfo_t info, uint64_t vaddr, uint64_t in, unsigned kind)
{
	unsigned size = qemu_plugin_mem_size_shift(info);
	put(t, vaddr << 15 | (in & (MAX_INSNS - 1)) << 6 | (uint64_t)qemu_plugin_mem_is_store(info) << 5 | (uint64_t)(size > 6 ? 6 : size) << 2 | kind);
	if (t->mode == FAST)
		put(t, (uint32_t)(in >> PLACE_BITS));
	if (t->mode == DETAIL && asks && size <= 3 && !qemu_plugin_mem_is_store(info)) {
		uint64_t value = 0; /* another thread may have unmapped it */
		if (peek(vaddr, &value, (size_t)1 << size) == (size_t)1 << size) {
			put(t, MARK | MARK_VALUE << 2);
			put(t, value);
		}
	}
}

/* Looks up a line that is not the latest of its set. */
static __attribute__((noinline)) void look_up(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, uint64_t in)
{
	struct thread *t = thread_of(cpu);
	uint64_t set = (vaddr & t->sets) >> LINE_BITS, *lines = t->lines[set], want = vaddr | DIRTY, found = lines[0];
	for (unsigned i = 1, ways = options.ways; i < ways && (found | DIRTY) != want; i++) {
		uint64_t next = lines[i]; /* those used later move by one place */
		lines[i] = found;
		found = next;
	}
	bool held = (found | DIRTY) == want;
	lines[0] = WRITTEN(info) ? want : held ? found : want - DIRTY;
	if (t->mode != DETAIL) {
		t->quick[set] = lines[0];
		if (held)
			return;
	}
	write_access(t, info, vaddr, in, held ? ACCESS : MISS);
	if (!held && found & DIRTY)
		put(t, MARK | MARK_BACK << 2 | found >> LINE_BITS << 5);
}

/* A store past the caches: of several to a line the first is written. */
static void on_past(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *data)
{
	struct thread *t = thread_of(cpu);
	bool same = t->streamed == vaddr >> LINE_BITS;
	t->streamed = vaddr >> LINE_BITS;
	if (!same || t->mode == DETAIL)
		write_access(t, info, vaddr, (uintptr_t)data, t->mode == FAST ? MISS | PAST : MISS);
}

/* The line used last of a set needs no more than these, and most accesses are to such lines. */
static inline uint64_t quick(uint64_t vaddr)
{
	struct thread *t = me;
	return *(uint64_t *)((char *)t->quick + ((vaddr & t->sets) >> (LINE_BITS - 3)));
}

static void on_load(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *data)
{
	if (__builtin_expect((quick(vaddr) ^ vaddr) > DIRTY, 0))
		look_up(cpu, info, vaddr, (uintptr_t)data);
}

static void on_store(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *data)
{
	if (__builtin_expect(quick(vaddr) != (vaddr | DIRTY), 0))
		look_up(cpu, info, vaddr, (uintptr_t)data);
}

static void on_access(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *data)
{
	uint64_t last = quick(vaddr);
	if (__builtin_expect((last ^ vaddr) > DIRTY || WRITTEN(info) > (last & 1), 0))
		look_up(cpu, info, vaddr, (uintptr_t)data);
}

/* The first access of a block, by an instruction that has one: it begins the block. */
static __attribute__((noinline)) void late_first(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, uint64_t data)
{
	on_late_block(cpu, data >> (PLACE_BITS + NUMBER_BITS));
	look_up(cpu, info, vaddr, data);
}

static void on_first_load(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *data)
{
	if (begun((uintptr_t)data >> (PLACE_BITS + NUMBER_BITS)))
		on_load(cpu, info, vaddr, data);
	else
		late_first(cpu, info, vaddr, (uintptr_t)data);
}

static void on_first_store(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *data)
{
	if (begun((uintptr_t)data >> (PLACE_BITS + NUMBER_BITS)))
		on_store(cpu, info, vaddr, data);
	else
		late_first(cpu, info, vaddr, (uintptr_t)data);
}

/* Returns the known mapping of an address, or NULL. */
static struct mapping *mapping_of(uint64_t addr)
{
	static unsigned latest;
	if (latest < n_mappings && addr >= mappings[latest].start && addr < mappings[latest].end)
		return &mappings[latest];
	for (unsigned i = 0; i < n_mappings; i++)
		if (addr >= mappings[i].start && addr < mappings[i].end)
			return &mappings[latest = i];
	return NULL;
}

static void read_mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	if (!f)
		return;
	remapped = false;
	n_mappings = 0;
	static char line[PATH_MAX + 128];
	say("maps\n");
	while (fgets(line, sizeof line, f)) {
		unsigned long long start, end, offset;
		char path[PATH_MAX] = "";
		if (sscanf(line, "%llx-%llx %*s %llx %*s %*s %[^\n]", &start, &end, &offset, path) < 3)
			continue;
		if (n_mappings < sizeof mappings / sizeof *mappings)
			mappings[n_mappings++] = (struct mapping){ start, end, path[0] == '/' };
		if (path[0] == '/')
			say("map %llx %llx %llx %s\n", start, end, offset, path);
	}
	fclose(f);
}

/* Writes the mappings that hold code, if an address is in none of the known ones. For code of
   no file it writes the time: programs say when they made it. */
static void map(uint64_t addr)
{
	struct mapping *in = remapped ? NULL : mapping_of(addr);
	if (!in) {
		read_mappings();
		in = mapping_of(addr);
	}
	if (!in || !in->file) {
		struct timespec now;
		clock_gettime(CLOCK_MONOTONIC, &now);
		say("now %llx\n", (unsigned long long)now.tv_sec * 1000000000 + now.tv_nsec);
	}
}

/* A hash of bytes, of which there may be some more. These must be 0. */
static uint64_t hash_of(uint64_t h, const unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n; i += 8) {
		uint64_t word;
		memcpy(&word, p + i, sizeof word);
		h = (h ^ word) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
	}
	return h;
}

/* Copies the bytes of an instruction, and returns how many. */
static size_t code_of(struct qemu_plugin_insn *in, unsigned char *to)
{
	size_t size = qemu_plugin_insn_size(in);
	if (size > 16)
		size = 16;
#if QEMU_API >= 3
	qemu_plugin_insn_data(in, to, size);
#else
	memcpy(to, qemu_plugin_insn_data(in), size);
#endif
	return size;
}

/* Reports whether an x86 instruction stores past the caches: MOVNTI, MOVNTPS, MOVNTDQ and
   others, with or without VEX prefix. Notes whether it is a prefetch instruction. */
static bool streams(const unsigned char *code, size_t n)
{
	if (!options.x86)
		return false;
	while (n > 3 && (*code == 0x66 || (*code & 0xf0) == 0x40))
		code++, n--;
	if (n < 3)
		return false;
	if (code[0] == 0x0f && code[2] >> 6 != 3 && (code[1] == 0x18 || code[1] == 0x0d) && (code[2] >> 3 & 7) < 4)
		asks = readable;
	if (n < 4)
		return false;
	unsigned op = code[0] == 0x0f ? code[1] : code[0] == 0xc5 ? code[2] : code[0] == 0xc4 && (code[1] & 0x1f) == 1 ? code[3] : 0;
	return op == 0x2b || op == 0xe7 || (op == 0xc3 && code[0] == 0x0f);
}

/* Reports whether an x86 instruction is one of those that surely access no memory: most are. Callbacks
   for them would only make translations slower. */
static bool in_registers(const unsigned char *code, size_t n)
{
	if (!options.x86)
		return false;
	while (n > 1 && (*code == 0x66 || *code == 0xf2 || *code == 0xf3 || (*code & 0xf0) == 0x40))
		code++, n--;
	unsigned op = *code, wide = op == 0xc5 ? 2 : op == 0xc4 ? 3 : op == 0x0f; /* bytes before the operation */
	if (n <= wide)
		return false;
	bool direct = n > wide + 1 && code[wide + 1] >> 6 == 3; /* operands are registers */
	if (wide) {
		op = code[wide];
		if (wide > 1 && (wide == 3 && (code[1] & 0x1f) != 1)) /* not the operations of 0x0f */
			return direct;
		if (wide == 1 && (op >> 4 == 8 || (op & 0xf8) == 0xc8 || op == 0x1f)) /* jump, BSWAP, NOP */
			return true;
		bool some = (op >= 0x10 && op < 0x18) || (op >= 0x28 && op < 0x30) || (op >= 0x40 && op < 0x77) || op >> 4 == 9 ||
			(op >= 0xa3 && op < 0xa6) || (op >= 0xab && op < 0xae) || op == 0xaf || op >= 0xb0;
		return direct && some && op != 0xc7 && op != 0xf7; /* MASKMOVDQU stores, RDRAND and others are rare */
	}
	if (op < 0x40)
		return (op & 7) < 4 ? direct : (op & 7) < 6;
	switch (op) {
	case 0x63: case 0x69: case 0x6b: case 0x80: case 0x81: case 0x83 ... 0x8b: case 0xc0: case 0xc1:
	case 0xc6: case 0xc7: case 0xd0 ... 0xd3: case 0xf6: case 0xf7: case 0xfe:
		return direct;
	case 0x70 ... 0x7f: case 0x8d: case 0x90 ... 0x99: case 0xa8: case 0xa9: case 0xb0 ... 0xbf: case 0xe9: case 0xeb:
		return true;
	case 0xff: /* INC, DEC, JMP; CALL and PUSH store */
		return direct && (code[1] >> 3 & 7) != 2 && (code[1] >> 3 & 7) < 5 && (code[1] >> 3 & 7) != 3;
	}
	return false;
}

/* Returns the access of an x86 instruction, if it surely has one, without a helper of QEMU. Those of SSE and AVX
   have several in QEMU. */
static enum access simple(const unsigned char *code, size_t n)
{
	if (!options.x86)
		return OTHER;
	while (n > 1 && (*code == 0x66 || *code == 0x64 || *code == 0x65 || (*code & 0xf0) == 0x40))
		code++, n--;
	unsigned op = *code, modrm = n > 1 ? code[1] : 0xc0, which = modrm >> 3 & 7;
	if (op == 0x0f) { /* CMOV, MOVZX, MOVSX, IMUL; SET */
		op = modrm;
		if (n < 3 || code[2] >> 6 == 3)
			return OTHER;
		return op >> 4 == 4 || (op & 0xf6) == 0xb6 || op == 0xaf ? LOAD : op >> 4 == 9 ? STORE : OTHER;
	}
	if (op >> 3 == 10 || op == 0x68 || op == 0x6a) /* PUSH */
		return STORE;
	if (op >> 3 == 11 || op == 0xc9) /* POP, LEAVE */
		return LOAD;
	if (modrm >> 6 == 3)
		return OTHER;
	if (op < 0x40)
		return (op & 7) == 2 || (op & 7) == 3 || op >> 1 == 0x1c ? LOAD : OTHER; /* also CMP */
	switch (op) {
	case 0x80: case 0x81: case 0x83: /* CMP */
		return which == 7 ? LOAD : OTHER;
	case 0xf6: case 0xf7: /* TEST */
		return which < 2 ? LOAD : OTHER;
	case 0x63: case 0x69: case 0x6b: case 0x84: case 0x85: case 0x8a: case 0x8b:
		return LOAD;
	case 0x88: case 0x89:
		return STORE;
	case 0xc6: case 0xc7:
		return which == 0 ? STORE : OTHER;
	}
	return OTHER;
}

static char *put_hex(char *at, uint64_t v)
{
	int bits = v ? (63 - __builtin_clzll(v)) & ~3 : 0;
	for (*at++ = ' '; bits >= 0; bits -= 4)
		*at++ = "0123456789abcdef"[v >> bits & 15];
	return at;
}

/* The code of the translation at hand, under the lock, and so much room that hashes may read whole words. */
static unsigned char code[MAX_INSNS * 16 + 8];
static uint8_t sizes[MAX_INSNS + 8];

/* Finds or makes the block of a translation. It is known already if it was translated before. */
static struct block *block_of(struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb), bytes = 0;
	uint64_t vaddr = qemu_plugin_tb_vaddr(tb);
	if (n > MAX_INSNS)
		n = MAX_INSNS;
	for (size_t i = 0; i < n; i++) {
		sizes[i] = code_of(qemu_plugin_tb_get_insn(tb, i), code + bytes);
		bytes += sizes[i];
	}
	memset(code + bytes, 0, 8);
	memset(sizes + n, 0, 8);
	static unsigned char own[sizeof code];
	if (n_blocks == 0)
		readable = options.x86 && peek(vaddr, own, bytes) == bytes && !memcmp(own, code, bytes);
	uint64_t h = hash_of(hash_of(0xcbf29ce484222325u ^ vaddr, sizes, n), code, bytes);
	struct block **bucket = &blocks[(vaddr >> 3 ^ vaddr >> 21) % (sizeof blocks / sizeof *blocks)]; /* neighbours are near each other */
	for (struct block *b = *bucket; b; b = b->next)
		if (b->hash == h && b->vaddr == vaddr && b->n == n)
			return b;
	struct block *b = calloc(1, sizeof *b);
	if (!b)
		_exit(125);
	b->hash = h;
	b->vaddr = vaddr;
	b->n = n;
	b->next = *bucket;
	*bucket = b;
	if (n_blocks + 1 < MAX_BLOCKS) {
		b->id = ++n_blocks;
		map(vaddr);
		char *text = room(MAX_INSNS * 17 + 64), *at = text;
		memcpy(at, "block", 5);
		at = put_hex(put_hex(put_hex(at + 5, b->id), vaddr), n);
		*at++ = '\n';
		memcpy(at, sizes, n);
		memcpy(at + n, code, bytes);
		shared->n_said += at + n + bytes - text;
	} /* else it is block 0: unknown code */
	b->first = n_insns;
	n_insns += b->id ? n : 0;
	return b;
}

/* The block begins with a callback of its own, or in that of its first access. The last instruction is none of
   the simple ones: it may be the first part of one that goes on in the next page, which QEMU 7.2 has here and does
   not execute. Or what QEMU writes for a signal may be taken as its accesses. */
static void on_translation(CALLBACK(struct qemu_plugin_tb *tb))
{
	pthread_mutex_lock(&lock);
	struct block *b = block_of(tb);
	bool begun = false;
	const unsigned char *at = code;
	for (size_t i = 0; i < b->n; at += sizes[i++]) {
		if (in_registers(at, sizes[i]))
			continue;
		void (*callback)(unsigned, qemu_plugin_meminfo_t, uint64_t, void *) = streams(at, sizes[i]) ? on_past : on_access;
		uint64_t data = (b->id ? b->first + i : UINT32_MAX) << PLACE_BITS | i;
		switch (i + 1 < b->n ? simple(at, sizes[i]) : OTHER) {
		case LOAD: callback = begun ? on_load : on_first_load; break;
		case STORE: callback = begun ? on_store : on_first_store; break;
		case OTHER:
			if (!begun)
				qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS, (void *)(uintptr_t)b->id);
			begun = true;
		}
		if (!begun)
			data |= (uint64_t)b->id << (PLACE_BITS + NUMBER_BITS);
		begun = true;
		qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(tb, i), callback, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW,
			(void *)(uintptr_t)data);
	}
	if (!begun)
		qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS, (void *)(uintptr_t)b->id);
	pthread_mutex_unlock(&lock);
}

static void end_threads(void)
{
	for (struct thread *t = threads; t; t = t->next)
		flush_locked(t);
}

/* Reads a string of the program; NULL if it cannot be read. */
static char *string_at(uint64_t addr)
{
	size_t n = 0, room = 128;
	char *text = malloc(room);
	while (text) {
		size_t most = PAGE - (addr + n) % PAGE, got = peek(addr + n, text + n, most < room - n ? most : room - n);
		if (got == 0)
			break;
		if (memchr(text + n, 0, got))
			return text;
		if ((n += got) == room) {
			char *more = realloc(text, room *= 2);
			if (!more)
				break;
			text = more;
		}
	}
	free(text);
	return NULL;
}

/* Reads a list of strings of the program, behind some free places, and one free behind. */
static char **strings_at(uint64_t addr, size_t before, size_t *count)
{
	size_t n = 0, room = 64;
	char **list = malloc((before + room + 1) * sizeof *list);
	while (list) {
		uint64_t p = 0;
		if (addr && peek(addr + n * 8, &p, 8) != 8)
			break;
		if (!p) {
			list[before + n] = NULL;
			*count = n;
			return list;
		}
		if (!(list[before + n] = string_at(p)))
			break;
		if (++n == room) {
			char **more = realloc(list, (before + (room *= 2) + 1) * sizeof *list);
			if (!more)
				break;
			list = more;
		}
	}
	return NULL;
}

/* Reports whether a file is a program of the machine that is emulated here. */
static bool runs_here(const unsigned char *head)
{
	Elf64_Ehdr own;
	if (memcmp(head, ELFMAG, SELFMAG) || head[EI_CLASS] != ELFCLASS64)
		return false;
	memcpy(&own, head, sizeof own);
	const char *t = options.target;
	switch (own.e_machine) {
	case EM_X86_64: return !strcmp(t, "x86_64");
	case EM_AARCH64: return !strcmp(t, "aarch64");
	case EM_RISCV: return !strcmp(t, "riscv64");
	case EM_PPC64: return !strncmp(t, "ppc64", 5);
	}
	return false;
}

/* A value of an option, whose commas QEMU expects twice. */
static const char *escaped(const char *text)
{
	char *to = malloc(2 * strlen(text) + 1), *at = to;
	if (!to)
		return "";
	for (; *text; text++) {
		if (*text == ',')
			*at++ = ',';
		*at++ = *text;
	}
	*at = 0;
	return to;
}

/* Executes a program in the emulator, where the emulator itself would execute it outside. It
   returns if that cannot be done, for the emulator to go on. */
static void follow(uint64_t path_at, uint64_t argv_at, uint64_t env_at)
{
	enum { OWN = 12 };
	static char qemu[PATH_MAX], plugin[PATH_MAX * 3], script[256];
	size_t argc = 0, envc = 0;
	char *path = string_at(path_at);
	char **argv = strings_at(argv_at, OWN, &argc), **env = strings_at(env_at, 0, &envc);
	ssize_t n = readlink("/proc/self/exe", qemu, sizeof qemu - 1);
	unsigned char head[256] = "";
	if (!path || !argv || !env || n <= 0 || access(path, X_OK))
		return;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	ssize_t got = read(fd, head, sizeof head - 1);
	close(fd);
	char **from = argv + OWN;
	const char *name = argc > 0 ? from[0] : path;
	if (got > 2 && head[0] == '#' && head[1] == '!') { /* a script */
		memcpy(script, head + 2, sizeof script - 2);
		script[strcspn(script, "\n")] = 0;
		char *interpreter = script + strspn(script, " \t");
		char *option = interpreter + strcspn(interpreter, " \t");
		if (*option) {
			*option++ = 0;
			option += strspn(option, " \t");
			option[strcspn(option, "\n")] = 0;
		}
		from[0] = path; /* the place of the old argument 0; there is always one */
		if (argc == 0)
			from[1] = NULL;
		if (*option)
			*--from = option;
		name = path = interpreter;
		fd = open(path, O_RDONLY | O_CLOEXEC);
		got = fd < 0 ? 0 : read(fd, head, sizeof head - 1);
		if (fd >= 0)
			close(fd);
	} else if (argc > 0) {
		from++;
	}
	if (got < (ssize_t)sizeof(Elf64_Ehdr) || !runs_here(head))
		return;
	struct thread *t = me == &nobody ? NULL : me;
	snprintf(plugin, sizeof plugin, "%s,dir=%s,socket=%s,sets=%llu,ways=%llu,period=%lld,warm=%lld,detail=%lld,windows=%lld,left=%lld,random=%llu,cpu=%s,plugin=%s",
		escaped(options.plugin), escaped(options.dir), escaped(options.socket), (unsigned long long)options.sets,
		(unsigned long long)options.ways, (long long)options.period, (long long)options.warm,
		(long long)options.detail, (long long)options.windows, t && t->mode == FAST ? (long long)t->left : 1LL, (unsigned long long)(t ? t->random : 1),
		escaped(options.cpu), escaped(options.plugin));
	*--from = path;
	*--from = (char *)name;
	*--from = "-0";
	*--from = plugin;
	*--from = "-plugin";
	if (options.cpu[0]) {
		*--from = (char *)options.cpu;
		*--from = "-cpu";
	}
	*--from = qemu;
	pthread_mutex_lock(&lock);
	end_threads();
	say("clock %lu %lu\nexec\n", clock_reads, timers);
	send_said();
	pthread_mutex_unlock(&lock);
	execve(qemu, from, env);
}

static void on_syscall(CALLBACK(unsigned cpu, int64_t number, uint64_t a, uint64_t b, uint64_t c,
	uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h))
{
	bool x86 = options.x86, ppc = !strncmp(options.target, "ppc64", 5);
	int64_t exec = x86 ? 59 : ppc ? 11 : 221;
	if (number == exec) {
		follow(a, b, c);
		pthread_mutex_lock(&lock);
		char *path = string_at(a);
		if (path && !access(path, X_OK))
			say("left %.1000s\n", path); /* it goes on outside */
		send_said();
		free(path);
		pthread_mutex_unlock(&lock);
		return;
	}
	if (x86 ? number == 228 || number == 96 || number == 201 : ppc ? number == 246 || number == 78 || number == 13 :
		number == 113 || number == 169)
		__atomic_fetch_add(&clock_reads, 1, __ATOMIC_RELAXED); /* clock_gettime, gettimeofday, time */
	if (x86 ? number == 37 || number == 38 || number == 222 : ppc ? number == 27 || number == 104 || number == 240 :
		number == 103 || number == 107)
		__atomic_fetch_add(&timers, 1, __ATOMIC_RELAXED); /* alarm, setitimer, timer_create */
	if (number == (x86 ? 9 : ppc ? 90 : 222)) /* mmap: elsewhere it is where no mapping is known */
		remapped |= (d & FIXED) != 0;
	if (x86 ? number == 11 || number == 25 : ppc ? number == 91 || number == 163 : number == 215 || number == 216)
		remapped = true; /* munmap, mremap */
}

static void on_thread_end(CALLBACK(unsigned cpu))
{
	struct thread *t = me;
	if (t == &nobody)
		return;
	pthread_mutex_lock(&lock);
	flush_locked(t);
	for (struct thread **at = &threads; *at; at = &(*at)->next)
		if (*at == t) {
			*at = t->next;
			break;
		}
	pthread_mutex_unlock(&lock);
	if (t->fd >= 0)
		close(t->fd);
	me = &nobody;
	free(t);
}

static void on_exit_all(CALLBACK_AT_EXIT)
{
	pthread_mutex_lock(&lock);
	end_threads();
	say("clock %lu %lu\nexit\n", clock_reads, timers);
	send_said();
	pthread_mutex_unlock(&lock);
}

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
	send_said();
	if (me != &nobody)
		flush_locked(me);
}

static void in_parent(void) { pthread_mutex_unlock(&lock); }

static void hello(const char *how, int parent)
{
	control = dial();
	say("process %d %s %d %s %s\n", (int)getpid(), how, parent, options.target, strrchr(counts_name, '/') + 1);
	send_said();
}

static void in_child(void)
{
	char *from = strdup(strrchr(counts_name, '/') + 1);
	close(control);
	open_counts();
	control = dial();
	say("process %d fork %s %s %s %u %u\n", (int)getpid(), from, options.target, strrchr(counts_name, '/') + 1, n_blocks, n_insns);
	send_said();
	free(from);
	for (struct thread *t = threads; t; t = t->next) {
		if (t->fd >= 0)
			close(t->fd);
		t->fd = -1;
		t->n = 0;
	}
	remapped = true; /* the reader may not have read the parent's yet */
	threads = NULL;
	if (me != &nobody) {
		threads = me;
		me->next = NULL;
		me->mode = FAST; /* as the reader takes a thread to begin; the sample is its parent's */
		me->left = gap(me);
		fill_quick(me);
	}
	pthread_mutex_unlock(&lock);
}

static const char *option(int argc, char **argv, const char *name, const char *otherwise)
{
	size_t n = strlen(name);
	for (int i = 0; i < argc; i++)
		if (!strncmp(argv[i], name, n) && argv[i][n] == '=')
			return strdup(argv[i] + n + 1);
	return otherwise;
}

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	options.target = strdup(info->target_name);
	options.x86 = !strcmp(options.target, "x86_64");
	options.dir = option(argc, argv, "dir", "");
	options.socket = option(argc, argv, "socket", "");
	options.cpu = option(argc, argv, "cpu", "");
	options.plugin = option(argc, argv, "plugin", "");
	options.period = atoll(option(argc, argv, "period", "1000000"));
	options.warm = atoll(option(argc, argv, "warm", "10000"));
	options.detail = atoll(option(argc, argv, "detail", "400"));
	options.left = atoll(option(argc, argv, "left", "0"));
	options.windows = atoll(option(argc, argv, "windows", "1000000"));
	options.sets = atoll(option(argc, argv, "sets", "64"));
	options.ways = atoll(option(argc, argv, "ways", "8"));
	options.random = strtoull(option(argc, argv, "random", "11400714819323198485"), NULL, 10);
	if (!options.dir[0] || !options.socket[0] || options.period < 1 || options.warm < 1 || options.detail < 1 || options.windows < 1 ||
		options.sets < 1 || options.sets > MAX_SETS || options.sets & (options.sets - 1) || options.ways < 1 || options.ways > MAX_WAYS)
		return 1;
	nobody.left = INT64_MIN / 2;
	nobody.quick[0] = NEVER;
	open_counts();
	open_passed();
	hello("exec", (int)getppid());
	pthread_atfork(before_fork, in_parent, in_child);
	qemu_plugin_register_vcpu_tb_trans_cb(id, REGISTERED(on_translation));
	qemu_plugin_register_vcpu_exit_cb(id, REGISTERED(on_thread_end));
	qemu_plugin_register_vcpu_syscall_cb(id, REGISTERED(on_syscall));
	qemu_plugin_register_atexit_cb(id, on_exit_all, NULL);
	return 0;
}
