! A distributed hash table: ranks insert words, numbers here, by compare-and-swap of a slot's key, and count them by accumulate.
program hash_table
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64
  use mpi_f08
  implicit none
  integer, parameter :: words = 1000, slots = 2048 ! each rank's
  integer(int64), parameter :: empty_key = 0
  ! A rank's window: keys, their counts, and at rank 0 what is found in the end.
  integer(MPI_ADDRESS_KIND), parameter :: keys = 0, counts = slots, different_at = 2 * slots, most_at = different_at + 1
  integer(MPI_ADDRESS_KIND), parameter :: all_words = most_at + 1
  integer :: rank, size, i
  integer(int64) :: state
  integer(int64), pointer, asynchronous :: table(:)
  integer(int64), asynchronous :: different, most
  type(c_ptr) :: memory
  type(MPI_Win) :: window

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call MPI_Win_allocate(8 * all_words, 8, MPI_INFO_NULL, MPI_COMM_WORLD, memory, window)
  call c_f_pointer(memory, table, [all_words])
  table = empty_key
  call MPI_Barrier(MPI_COMM_WORLD)

  call MPI_Win_lock_all(0, window)
  state = rank + 1
  do i = 1, words
    state = mod(state * 16807, 2147483647_int64) ! the minimal standard generator of random numbers
    call insert(mod(state, 500_int64) + 1)
  end do
  call MPI_Win_flush_all(window)
  call MPI_Barrier(MPI_COMM_WORLD) ! all is inserted

  ! Each rank looks at its own part. Of words that are as frequent the smallest is wanted.
  call MPI_Win_sync(window)
  different = 0
  most = 0
  do i = 1, slots
    if (table(i) == empty_key) cycle
    different = different + 1
    most = max(most, table(slots + i) * 1000 + (999 - table(i)))
  end do
  call MPI_Accumulate(different, 1, MPI_INTEGER8, 0, different_at, 1, MPI_INTEGER8, MPI_SUM, window)
  call MPI_Accumulate(most, 1, MPI_INTEGER8, 0, most_at, 1, MPI_INTEGER8, MPI_MAX, window)
  call MPI_Win_flush(0, window)
  call MPI_Barrier(MPI_COMM_WORLD)
  if (rank == 0) then
    call MPI_Win_sync(window)
    most = table(most_at + 1)
    print '(i0, a, i0, a)', size * words, ' words, ', table(different_at + 1), ' different'
    print '(i0, a, i0, a)', 999 - mod(most, 1000_int64), ' is there ', most / 1000, ' times'
  end if
  call MPI_Win_unlock_all(window)
  call MPI_Win_free(window)
  call MPI_Finalize()
contains
  ! Counts a word: from its first slot on, the first that is empty or has it.
  subroutine insert(number)
    integer(int64), intent(in) :: number
    integer(int64), asynchronous :: word, empty, one, found
    integer(MPI_ADDRESS_KIND) :: slot
    integer :: owner
    word = number
    empty = empty_key
    one = 1
    owner = int(mod(word, int(size, int64)))
    slot = mod(word / size * 7919, int(slots, int64))
    do
      call MPI_Compare_and_swap(word, empty, found, MPI_INTEGER8, owner, keys + slot, window)
      call MPI_Win_flush(owner, window)
      if (found == empty_key .or. found == word) exit
      slot = mod(slot + 1, int(slots, MPI_ADDRESS_KIND))
    end do
    call MPI_Accumulate(one, 1, MPI_INTEGER8, owner, counts + slot, 1, MPI_INTEGER8, MPI_SUM, window)
    call MPI_Win_flush_local(owner, window) ! `one` is free again
  end subroutine
end program
