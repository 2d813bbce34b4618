/* What programs that go on when a process dies include, and how they find out that they can: the names of Open MPI. The functions
 * themselves are in mpi.h, as MPICH has them. */
#ifndef TRANSOM_MPI_EXT_H
#define TRANSOM_MPI_EXT_H

#include <mpi.h>

#define OMPI_HAVE_MPI_EXT 1
#define OMPI_HAVE_MPI_EXT_FTMPI 1
#define OMPI_HAVE_MPI_EXT_ULFM 1
#define OMPI_HAVE_MPIX_COMM_GET_FAILED 1
#define OMPI_HAVE_MPIX_COMM_ACK_FAILED 1
#define OMPI_HAVE_MPIX_COMM_ISHRINK 1

#endif
