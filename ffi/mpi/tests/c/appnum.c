/* MPI_APPNUM tells a process which of the programs of one job it is: the number that its argument says. */
#include "check.h"

int main(int argc, char **argv) {
    int size, *number, found;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK(size == 3);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &found));
    CHECK(found && argc == 2 && *number == atoi(argv[1]));
    OK(MPI_Finalize());
    return 0;
}
