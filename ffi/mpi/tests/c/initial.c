/* The initial error handler is the one that the argument names: told, there, and what an error meets. */
#include "check.h"

int main(int argc, char **argv) {
    MPI_Errhandler handler;
    char value[64];
    int length = sizeof value, found;
    MPI_Init(&argc, &argv);
    CHECK(argc == 2);
    OK(MPI_Info_get_string(MPI_INFO_ENV, "mpi_initial_errhandler", &length, value, &found));
    CHECK(found && strcmp(value, argv[1]) == 0);
    const MPI_Errhandler expected = strcmp(value, "mpi_errors_return") == 0  ? MPI_ERRORS_RETURN
                                    : strcmp(value, "mpi_errors_abort") == 0 ? MPI_ERRORS_ABORT
                                                                             : MPI_ERRORS_ARE_FATAL;
    const MPI_Comm comms[] = {MPI_COMM_WORLD, MPI_COMM_SELF};
    for (int i = 0; i < 2; i++) {
        OK(MPI_Comm_get_errhandler(comms[i], &handler));
        CHECK(handler == expected);
        OK(MPI_Errhandler_free(&handler));
    }
    /* Of a communicator, and of no object. */
    FAILS(MPI_Send(NULL, 0, MPI_INT, 77, 0, MPI_COMM_WORLD), MPI_ERR_RANK);
    FAILS(MPI_Add_error_string(1, "predefined"), MPI_ERR_ARG);
    printf("errors are returned\n");
    MPI_Finalize();
    return 0;
}
