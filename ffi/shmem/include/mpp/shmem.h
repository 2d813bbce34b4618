/* The old place of shmem.h (OpenSHMEM 1.5, annex F). */
#include "../shmem.h"
