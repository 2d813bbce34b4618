/* Extensions of OpenSHMEM: Transom has none. */
#include <shmem.h>
