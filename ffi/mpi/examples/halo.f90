! Heat in a rod: each rank has a part of its cells, and before each step puts its outermost cells beside those of its neighbours. The
! window holds two fields of the part, for odd and for even steps, so that one fence a step is enough.
program halo
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: real64
  use mpi_f08
  implicit none
  integer, parameter :: cells = 960, steps = 2000
  real(real64), parameter :: hot = 100, cold = 0, rate = 0.25_real64
  integer :: rank, size, own, left, right, length, step, now, later, cell, owner
  integer(MPI_ADDRESS_KIND) :: behind, at
  real(real64), pointer, asynchronous :: fields(:, :)
  real(real64), asynchronous :: heat
  type(c_ptr) :: memory
  type(MPI_Win) :: window

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  own = first(rank + 1) - first(rank)
  left = merge(rank - 1, MPI_PROC_NULL, rank > 0)
  right = merge(rank + 1, MPI_PROC_NULL, rank + 1 < size)
  ! A field: the left neighbour's cell, the own ones, the right neighbour's; as long as the longest part at all ranks.
  length = cells / size + 1 + 2
  call MPI_Win_allocate(int(16 * length, MPI_ADDRESS_KIND), 8, MPI_INFO_NULL, MPI_COMM_WORLD, memory, window)
  call c_f_pointer(memory, fields, [length, 2])
  fields = cold
  if (rank == 0) fields(1, :) = hot

  behind = 0
  if (rank > 0) behind = first(rank) - first(rank - 1) + 1 ! the left one's right halo
  call MPI_Win_fence(MPI_MODE_NOPRECEDE, window)
  do step = 0, steps - 1
    now = 1 + mod(step, 2)
    later = 3 - now
    at = int(now - 1, MPI_ADDRESS_KIND) * length
    call MPI_Put(fields(2, now), 1, MPI_REAL8, left, at + behind, 1, MPI_REAL8, window)
    call MPI_Put(fields(own + 1, now), 1, MPI_REAL8, right, at, 1, MPI_REAL8, window)
    call MPI_Win_fence(0, window)
    fields(2:own + 1, later) = fields(2:own + 1, now) &
      + rate * (fields(1:own, now) - 2 * fields(2:own + 1, now) + fields(3:own + 2, now))
  end do
  call MPI_Win_fence(MPI_MODE_NOSUCCEED, window)

  ! Rank 0 looks at some cells, wherever they are.
  call MPI_Win_lock_all(MPI_MODE_NOCHECK, window)
  if (rank == 0) then
    do cell = 0, 80, 20
      owner = 0
      do while (first(owner + 1) <= cell)
        owner = owner + 1
      end do
      at = int(mod(steps, 2), MPI_ADDRESS_KIND) * length + cell - first(owner) + 1
      call MPI_Get(heat, 1, MPI_REAL8, owner, at, 1, MPI_REAL8, window)
      call MPI_Win_flush(owner, window)
      print '(a, i2, a, f10.6)', 'cell ', cell, ': ', heat
    end do
  end if
  call MPI_Win_unlock_all(window)
  call MPI_Win_free(window)
  call MPI_Finalize()
contains
  ! The first cell of a rank.
  integer function first(rank)
    integer, intent(in) :: rank
    first = cells * rank / size
  end function
end program
