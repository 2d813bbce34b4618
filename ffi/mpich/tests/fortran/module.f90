! Windows and messages by the module mpi: its two kinds of addresses, statuses as arrays, constants that are known by their places.
program module
  use, intrinsic :: iso_c_binding
  use mpi
  implicit none
  integer :: rank, ranks, next, last, ierror
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  next = mod(rank + 1, ranks)
  last = mod(rank + ranks - 1, ranks)
  call windows
  call shared
  call messages
  call attributes
  call handles
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  if (rank == 0) print '(A, I1)', 'all well with ', ranks
  call MPI_Finalize(ierror)
contains
  subroutine expect(holds, number)
    logical, intent(in) :: holds
    integer, intent(in) :: number
    if (holds) return
    print *, 'not so: number ', number
    call MPI_Abort(MPI_COMM_WORLD, 3, ierror)
  end subroutine

  subroutine windows
    integer :: win, one, ticket, from(2)
    integer, pointer :: memory(:)
    integer(MPI_ADDRESS_KIND) :: bytes, at, value
    type(C_PTR) :: base
    logical :: flag
    bytes = 16
    call MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, win, ierror)
    call c_f_pointer(base, memory, [4])
    memory = 0
    call MPI_Win_fence(0, win, ierror)
    from = [rank, 2 * rank]
    at = 1
    call MPI_Put(from, 2, MPI_INTEGER, next, at, 2, MPI_INTEGER, win, ierror)
    call MPI_Win_fence(0, win, ierror)
    call expect(memory(2) == last .and. memory(3) == 2 * last, 1)
    call MPI_Win_lock_all(0, win, ierror)
    one = 1
    at = 0
    call MPI_Fetch_and_op(one, ticket, MPI_INTEGER, 0, at, MPI_SUM, win, ierror)
    call MPI_Win_unlock_all(win, ierror)
    call expect(ticket >= 0 .and. ticket < ranks, 2)
    call MPI_Win_get_attr(win, MPI_WIN_BASE, value, flag, ierror)
    call expect(flag .and. value == transfer(base, value), 3)
    call MPI_Win_free(win, ierror)
    ! The address as an integer.
    call MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, at, win, ierror)
    call MPI_Win_get_attr(win, MPI_WIN_BASE, value, flag, ierror)
    call expect(flag .and. value == at, 4)
    call MPI_Win_free(win, ierror)
    call MPI_Alloc_mem(bytes, MPI_INFO_NULL, base, ierror)
    call c_f_pointer(base, memory, [4])
    memory = 5
    call MPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierror)
    call MPI_Win_get_attr(win, MPI_WIN_BASE, value, flag, ierror)
    call expect(flag .and. value == transfer(base, value), 5)
    call MPI_Win_free(win, ierror)
    call MPI_Free_mem(memory, ierror)
  end subroutine

  subroutine shared
    integer :: win, node, unit
    integer(MPI_ADDRESS_KIND) :: bytes, at, other
    integer, pointer :: memory(:)
    type(C_PTR) :: base, mine
    call MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, node, ierror)
    bytes = 4
    call MPI_Win_allocate_shared(bytes, 4, MPI_INFO_NULL, node, base, win, ierror)
    call c_f_pointer(base, memory, [1])
    memory = rank
    call MPI_Win_shared_query(win, MPI_PROC_NULL, bytes, unit, mine, ierror)
    call MPI_Win_shared_query(win, 0, bytes, unit, at, ierror)
    call expect(bytes == 4 .and. unit == 4 .and. at == transfer(mine, at), 10)
    call MPI_Win_free(win, ierror)
    call MPI_Win_allocate_shared(bytes, 4, MPI_INFO_NULL, node, at, win, ierror)
    call MPI_Win_shared_query(win, MPI_PROC_NULL, bytes, unit, other, ierror)
    call expect(at /= 0 .and. other /= 0, 11)
    call MPI_Win_free(win, ierror)
    call MPI_Comm_free(node, ierror)
  end subroutine

  subroutine messages
    integer :: from, to, requests(2), statuses(MPI_STATUS_SIZE, 2), status(MPI_STATUS_SIZE), n, sum(1)
    from = rank
    call MPI_Irecv(to, 1, MPI_INTEGER, last, 5, MPI_COMM_WORLD, requests(1), ierror)
    call MPI_Isend(from, 1, MPI_INTEGER, next, 5, MPI_COMM_WORLD, requests(2), ierror)
    call MPI_Waitall(2, requests, statuses, ierror)
    call MPI_F_sync_reg(to)
    call MPI_Get_count(statuses(:, 1), MPI_INTEGER, n, ierror)
    call expect(to == last .and. n == 1 .and. statuses(MPI_SOURCE, 1) == last, 20)
    call MPI_Isend(from, 1, MPI_INTEGER, next, 6, MPI_COMM_WORLD, requests(1), ierror)
    call MPI_Recv(to, 1, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, status, ierror)
    call expect(status(MPI_TAG) == 6 .and. status(MPI_SOURCE) == last, 21)
    requests(2) = MPI_REQUEST_NULL
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierror)
    sum = rank
    call MPI_Allreduce(MPI_IN_PLACE, sum, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    call expect(sum(1) == ranks * (ranks - 1) / 2, 22)
  end subroutine

  subroutine attributes
    integer :: key, comm
    integer(MPI_ADDRESS_KIND) :: extra, value
    logical :: flag
    extra = 0
    call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, key, extra, ierror)
    value = -5
    call MPI_Comm_set_attr(MPI_COMM_WORLD, key, value, ierror)
    value = 0
    call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierror)
    call MPI_Comm_get_attr(comm, key, value, flag, ierror)
    call expect(flag .and. value == -5, 30)
    call MPI_Comm_free(comm, ierror)
    call MPI_Comm_free_keyval(key, ierror)
  end subroutine

  ! The types of mpi_f08 are there, too, to be passed on.
  subroutine handles
    type(MPI_Comm) :: comm, other
    type(MPI_Status) :: status
    integer :: f_status(MPI_STATUS_SIZE), size, n
    double precision :: number(2)
    comm%MPI_VAL = MPI_COMM_WORLD
    other%MPI_VAL = MPI_COMM_SELF
    call expect(comm /= other .and. comm == MPI_Comm(MPI_COMM_WORLD), 40)
    call MPI_Comm_size(other%MPI_VAL, size, ierror)
    f_status = 0
    f_status(MPI_TAG) = 4
    call MPI_Status_f2f08(f_status, status, ierror)
    call MPI_Sizeof(number, n, ierror)
    call expect(size == 1 .and. status%MPI_TAG == 4 .and. n == 8, 41)
    call expect(MPI_Wtime() > 0 .and. PMPI_Wtick() > 0, 42)
  end subroutine
end program
