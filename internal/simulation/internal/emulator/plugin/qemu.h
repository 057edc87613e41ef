/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The part of QEMU's plugin interface that trace.c uses, as QEMU's documentation of TCG
 * plugins states it: docs/devel/tcg-plugins.rst. Distributions have no header for it.
 * QEMU_API is the version of the interface, which the compiler is given.
 */
#ifndef CYCLESTACK_QEMU_H
#define CYCLESTACK_QEMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef QEMU_API
#define QEMU_API 1
#endif

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;

typedef struct {
	const char *target_name;
	struct { int min, cur; } version;
	bool system_emulation;
} qemu_info_t; /* the rest is about emulated machines */

struct qemu_plugin_tb;
struct qemu_plugin_insn;

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_R = 1, QEMU_PLUGIN_MEM_W, QEMU_PLUGIN_MEM_RW };

/* Callbacks have the plugin's number first. Since 7 they have what they were registered with last. */
#if QEMU_API >= 7
#define CALLBACK(...) __VA_ARGS__, void *userdata
#define CALLBACK_AT_EXIT void *userdata
#define REGISTERED(callback) callback, NULL
#define WITH_DATA , void *
#else
#define CALLBACK(...) qemu_plugin_id_t id, __VA_ARGS__
#define CALLBACK_AT_EXIT qemu_plugin_id_t id, void *userdata
#define REGISTERED(callback) callback
#define WITH_DATA
#endif

void qemu_plugin_register_vcpu_exit_cb(qemu_plugin_id_t, void (*)(CALLBACK(unsigned)) WITH_DATA);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, void (*)(CALLBACK(struct qemu_plugin_tb *)) WITH_DATA);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, void (*)(unsigned, void *),
	enum qemu_plugin_cb_flags, void *);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *,
	void (*)(unsigned, qemu_plugin_meminfo_t, uint64_t, void *),
	enum qemu_plugin_cb_flags, enum qemu_plugin_mem_rw, void *);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t,
	void (*)(CALLBACK(unsigned, int64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t)) WITH_DATA);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(CALLBACK_AT_EXIT), void *);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
#if QEMU_API >= 3
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *, void *, size_t);
#else
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
#endif
unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t);

#endif
