/* For User-mode Linux on processors with large registers (AMX). It hands the floating-point state of its processes back in a
   buffer of fixed size, and the host's kernel takes the whole state only: what is missing is added here, as it stands. */
#define _GNU_SOURCE
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

long ptrace(enum __ptrace_request request, ...) {
  static char state[1 << 16] __attribute__((aligned(64)));
  struct iovec whole = {state, sizeof state};
  long word = 0;
  va_list rest;
  va_start(rest, request);
  pid_t pid = va_arg(rest, pid_t);
  void *address = va_arg(rest, void *);
  void *data = va_arg(rest, void *);
  va_end(rest);
  if (request == PTRACE_SETREGSET && (long)address == NT_X86_XSTATE) {
    const struct iovec *part = data;
    if (syscall(SYS_ptrace, PTRACE_GETREGSET, pid, address, &whole) == 0 && whole.iov_len > part->iov_len) {
      memcpy(state, part->iov_base, part->iov_len);
      data = &whole;
    }
  }
  if (request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA || request == PTRACE_PEEKUSER)
    return syscall(SYS_ptrace, request, pid, address, &word) < 0 ? -1 : word;
  return syscall(SYS_ptrace, request, pid, address, data);
}
