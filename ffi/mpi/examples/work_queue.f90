! A queue of work: tasks of different lengths, of which each rank takes the next when it is done with one. The numbers 1 to 3,000
! are halved if even, else tripled and increased, until they are 1: which takes the most steps?
program work_queue
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64
  use mpi_f08
  implicit none
  integer, parameter :: tasks = 3000
  ! Rank 0's words: how many tasks are taken, the steps of all, the longest; and behind them the steps of each task.
  integer(MPI_ADDRESS_KIND), parameter :: taken_at = 0, total_at = 1, longest_at = 2, steps_at = 3
  integer :: rank
  integer(MPI_ADDRESS_KIND) :: number
  integer(int64), pointer, asynchronous :: words(:)
  integer(int64), asynchronous :: one, task, steps, order
  type(c_ptr) :: memory
  type(MPI_Win) :: window

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  number = merge(int(steps_at) + tasks, 0, rank == 0)
  call MPI_Win_allocate(8 * number, 8, MPI_INFO_NULL, MPI_COMM_WORLD, memory, window)
  call c_f_pointer(memory, words, [number])
  words = 0
  call MPI_Barrier(MPI_COMM_WORLD)

  call MPI_Win_lock_all(0, window)
  one = 1
  do
    call MPI_Fetch_and_op(one, task, MPI_INTEGER8, 0, taken_at, MPI_SUM, window)
    call MPI_Win_flush(0, window)
    if (task >= tasks) exit
    steps = work(task + 1)
    order = steps * 10000 + task + 1
    call MPI_Put(steps, 1, MPI_INTEGER8, 0, steps_at + task, 1, MPI_INTEGER8, window)
    call MPI_Accumulate(steps, 1, MPI_INTEGER8, 0, total_at, 1, MPI_INTEGER8, MPI_SUM, window)
    call MPI_Accumulate(order, 1, MPI_INTEGER8, 0, longest_at, 1, MPI_INTEGER8, MPI_MAX, window)
    call MPI_Win_flush_local(0, window) ! `steps` and `order` are free again
  end do
  call MPI_Win_unlock_all(window)

  call MPI_Barrier(MPI_COMM_WORLD)
  if (rank == 0) then
    call MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window)
    order = words(longest_at + 1)
    print '(i0, a, i0, a)', tasks, ' numbers took ', words(total_at + 1), ' steps'
    print '(a, i0, a, i0, a, i0)', '27 took ', words(steps_at + 27), &
      ', the most took ', mod(order, 10000_int64), ': ', order / 10000
    call MPI_Win_unlock(0, window)
  end if
  call MPI_Win_free(window)
  call MPI_Finalize()
contains
  integer(int64) function work(start)
    integer(int64), intent(in) :: start
    integer(int64) :: number
    number = start
    work = 0
    do while (number /= 1)
      number = merge(number / 2, 3 * number + 1, mod(number, 2_int64) == 0)
      work = work + 1
    end do
  end function
end program
