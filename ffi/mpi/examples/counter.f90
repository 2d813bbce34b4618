! A distributed counter: each rank draws 1,000 tickets from one word at rank 0. No two ranks draw the same, and rank 0 does nothing for it.
program counter
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64
  use mpi_f08
  implicit none
  integer, parameter :: draws = 1000
  integer(MPI_ADDRESS_KIND), parameter :: ticket_at = 0, sum_at = 1 ! rank 0's words
  integer :: rank, draw
  integer(MPI_ADDRESS_KIND) :: bytes
  integer(int64), pointer :: words(:)
  integer(int64), asynchronous :: one, ticket, total
  type(c_ptr) :: memory
  type(MPI_Win) :: window

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  bytes = merge(16, 0, rank == 0)
  call MPI_Win_allocate(bytes, 8, MPI_INFO_NULL, MPI_COMM_WORLD, memory, window)
  call c_f_pointer(memory, words, [bytes / 8])
  words = 0
  call MPI_Barrier(MPI_COMM_WORLD) ! nobody draws before the words are set

  call MPI_Win_lock_all(0, window)
  one = 1
  total = 0
  do draw = 1, draws
    call MPI_Fetch_and_op(one, ticket, MPI_INTEGER8, 0, ticket_at, MPI_SUM, window)
    call MPI_Win_flush(0, window) ! now the ticket is here
    total = total + ticket
  end do
  call MPI_Accumulate(total, 1, MPI_INTEGER8, 0, sum_at, 1, MPI_INTEGER8, MPI_SUM, window)
  call MPI_Win_unlock_all(window)

  call MPI_Barrier(MPI_COMM_WORLD) ! all have drawn
  if (rank == 0) then
    call MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window) ! to read one's own memory
    print '(i0, a, i0)', words(1), ' tickets, which sum up to ', words(2)
    call MPI_Win_unlock(0, window)
  end if
  call MPI_Win_free(window)
  call MPI_Finalize()
end program
