! What the programs of mpi_f08 have in common.
module checks
  use mpi_f08
  implicit none
  integer :: rank, ranks
contains
  subroutine expect(holds, number)
    logical, intent(in) :: holds
    integer, intent(in) :: number
    if (holds) return
    print *, 'not so: number ', number
    call MPI_Abort(MPI_COMM_WORLD, 3)
  end subroutine

  subroutine begin
    call MPI_Init
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  end subroutine

  subroutine end
    call MPI_Barrier(MPI_COMM_WORLD)
    if (rank == 0) print '(A, I1)', 'all well with ', ranks
    call MPI_Finalize
  end subroutine
end module
