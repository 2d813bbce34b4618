/* Sessions, without MPI_Init (MPI-4.1 §11.3). */
#include "check.h"

int main(void) {
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    MPI_Info info;
    char name[MPI_MAX_PSET_NAME_LEN], value[16];
    int n, len = sizeof name, flag, sum, one = 1;
    OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
    OK(MPI_Initialized(&flag));
    CHECK(!flag);
    OK(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &n));
    CHECK(n == 2);
    OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &len, name));
    CHECK(strcmp(name, "mpi://WORLD") == 0 && len == (int)strlen(name) + 1);
    OK(MPI_Group_from_session_pset(session, name, &group));
    OK(MPI_Session_get_pset_info(session, name, &info));
    OK(MPI_Info_get(info, "mpi_size", 15, value, &flag));
    OK(MPI_Group_size(group, &size_));
    CHECK(flag && atoi(value) == size_);
    OK(MPI_Info_free(&info));
    FAILS(MPI_Group_from_session_pset(session, "mpi://NOBODY", &group), MPI_ERR_ARG);
    OK(MPI_Comm_create_from_group(group, "test", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
    OK(MPI_Group_free(&group));
    OK(MPI_Comm_rank(comm, &rank_));
    OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm));
    CHECK(sum == size_);
    OK(MPI_Comm_free(&comm));
    if (rank_ == 0) printf("all well with %d\n", size_);
    OK(MPI_Session_finalize(&session));
    CHECK(session == MPI_SESSION_NULL);
    return 0;
}
