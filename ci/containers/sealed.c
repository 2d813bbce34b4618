// Preloaded: the process is not dumpable, as one whose program its user may not read, or that has changed its user.
#include <sys/prctl.h>

__attribute__((constructor)) static void seal(void) { prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }
