! A histogram whose bins are spread over the ranks. Each rank counts its samples for itself, and adds its counts to each rank's bins by
! one accumulate.
program histogram
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64
  use mpi_f08
  implicit none
  integer, parameter :: samples = 20000, bins = 12
  integer(MPI_ADDRESS_KIND), parameter :: begin = 0
  integer :: rank, size, own, sample, die, target, number, bin, marks
  integer(int64) :: state, total
  integer(int64), pointer, asynchronous :: mine(:)
  integer(int64), asynchronous :: counts(0:bins - 1)
  type(c_ptr) :: memory
  type(MPI_Win) :: window

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  own = first(rank + 1) - first(rank)
  call MPI_Win_allocate(int(8 * own, MPI_ADDRESS_KIND), 8, MPI_INFO_NULL, MPI_COMM_WORLD, memory, window)
  call c_f_pointer(memory, mine, [own])
  mine = 0

  ! The sum of three dice of 0 to 99 that have fallen 20,000 times.
  counts = 0
  state = rank + 1
  do sample = 1, samples
    total = 0
    do die = 1, 3
      state = mod(state * 16807, 2147483647_int64) ! the minimal standard generator of random numbers
      total = total + mod(state, 100_int64)
    end do
    bin = int(total * bins / 298)
    counts(bin) = counts(bin) + 1
  end do
  call MPI_Win_fence(MPI_MODE_NOPRECEDE, window)
  do target = 0, size - 1
    number = first(target + 1) - first(target)
    if (number == 0) cycle
    call MPI_Accumulate(counts(first(target)), number, MPI_INTEGER8, target, begin, number, MPI_INTEGER8, MPI_SUM, window)
  end do
  call MPI_Win_fence(0, window)
  if (rank == 0) then
    do target = 0, size - 1
      number = first(target + 1) - first(target)
      if (number == 0) cycle
      call MPI_Get(counts(first(target)), number, MPI_INTEGER8, target, begin, number, MPI_INTEGER8, window)
    end do
  end if
  call MPI_Win_fence(MPI_MODE_NOSUCCEED, window)
  if (rank == 0) then
    do bin = 0, bins - 1
      marks = int(counts(bin) * 200 / (int(size, int64) * samples))
      if (marks > 0) print '(a, i2, a, i6, a, a)', 'bin ', bin, ': ', counts(bin), ' ', repeat('#', marks)
      if (marks == 0) print '(a, i2, a, i6)', 'bin ', bin, ': ', counts(bin)
    end do
  end if
  call MPI_Win_free(window)
  call MPI_Finalize()
contains
  ! The first bin of a rank.
  integer function first(rank)
    integer, intent(in) :: rank
    first = bins * rank / size
  end function
end program
