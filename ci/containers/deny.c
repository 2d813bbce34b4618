// deny others|all PROGRAM...: runs a program to which the kernel refuses process_vm_readv and process_vm_writev, with EPERM:
//   others  of other processes, as Yama does with ptrace_scope 2 and 3 (and 1, without PR_SET_PTRACER);
//   all     of any, and ptrace and userfaultfd, too, as Docker's default profile does on kernels before 4.8.
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define EQUAL(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define REFUSE BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

int main(int argc, char **argv) {
    if (argc < 3 || (strcmp(argv[1], "others") && strcmp(argv[1], "all"))) {
        fprintf(stderr, "usage: deny others|all PROGRAM...\n");
        return 2;
    }
    // The process keeps its number when it becomes the program. (The number's low half is the first of a little-endian word.)
    struct sock_filter others[] = {
        LOAD(nr), EQUAL(SYS_process_vm_readv, 2, 0), EQUAL(SYS_process_vm_writev, 1, 0), ALLOW,
        LOAD(args[0]), EQUAL(getpid(), 0, 1), ALLOW, REFUSE,
    };
    struct sock_filter all[] = {
        LOAD(nr), EQUAL(SYS_process_vm_readv, 4, 0), EQUAL(SYS_process_vm_writev, 3, 0), EQUAL(SYS_ptrace, 2, 0),
        EQUAL(SYS_userfaultfd, 1, 0), ALLOW, REFUSE,
    };
    struct sock_fprog program = {sizeof others / sizeof *others, others};
    if (!strcmp(argv[1], "all")) program = (struct sock_fprog){sizeof all / sizeof *all, all};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        perror("deny: seccomp");
        return 2;
    }
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
