/* Ranks that wait, compute and sleep until they are ended, each in a function of its own: `transom where` is to say in which. */
#include <mpi.h>
#include <unistd.h>

static volatile unsigned long number = 1;

static void exchange(void)
{
    char byte;
    MPI_Recv(&byte, 1, MPI_CHAR, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* at: exchange */
}

static void solve(void)
{
    for (;;) { number = number * 3 + 1; } /* at: solve */
}

static void idle(void)
{
    for (;;) {
        sleep(3600); /* at: idle */
    }
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    switch (rank) {
    case 1:
        solve();
        break;
    case 2:
        idle();
        break;
    default:
        exchange();
    }
    return MPI_Finalize();
}
