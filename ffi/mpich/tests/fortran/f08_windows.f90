! Windows by mpi_f08: each way to make one, each kind of epoch, each kind of operation.
program windows
  use, intrinsic :: iso_c_binding
  use checks
  implicit none
  integer :: next, last
  call begin
  next = mod(rank + 1, ranks)
  last = mod(rank + ranks - 1, ranks)
  call allocated
  call created
  call shared
  call dynamic
  call with_requests
  call started_and_posted
  call large_counts
  call end
contains
  ! Locks, and the operations that are atomic.
  subroutine allocated
    type(MPI_Win) :: win
    type(C_PTR) :: base
    integer, pointer :: memory(:)
    integer, asynchronous :: one, ticket, swapped, mine, ranked, got(4)
    integer(MPI_ADDRESS_KIND) :: value
    logical :: flag
    call MPI_Win_allocate(int(16, MPI_ADDRESS_KIND), 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, win)
    call c_f_pointer(base, memory, [4])
    call MPI_Win_get_attr(win, MPI_WIN_BASE, value, flag)
    call expect(flag .and. value == transfer(base, value), 1)
    call MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, value, flag)
    call expect(flag .and. value == MPI_WIN_FLAVOR_ALLOCATE, 2)
    memory = [0, 0, 10 * rank, -1]
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Win_lock_all(0, win)
    one = 1
    ranked = rank + 1
    call MPI_Fetch_and_op(one, ticket, MPI_INTEGER, 0, 0_MPI_ADDRESS_KIND, MPI_SUM, win)
    call MPI_Win_flush(0, win)
    call expect(ticket >= 0 .and. ticket < ranks, 3)
    call MPI_Accumulate(ranked, 1, MPI_INTEGER, 0, 1_MPI_ADDRESS_KIND, 1, MPI_INTEGER, MPI_SUM, win)
    mine = rank
    call MPI_Compare_and_swap(mine, -1, swapped, MPI_INTEGER, next, 3_MPI_ADDRESS_KIND, win)
    call MPI_Win_flush(next, win)
    call expect(swapped == -1, 4)
    call MPI_Get(got, 1, MPI_INTEGER, next, 2_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win)
    call MPI_Win_flush_local(next, win)
    call expect(got(1) == 10 * next, 5)
    call MPI_Win_flush_all(win)
    call MPI_Win_unlock_all(win)
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win)
    call MPI_Get_accumulate(got, 0, MPI_INTEGER, got, 2, MPI_INTEGER, 0, 0_MPI_ADDRESS_KIND, 2, MPI_INTEGER, &
                            MPI_NO_OP, win)
    call MPI_Win_unlock(0, win)
    call expect(got(1) == ranks .and. got(2) == ranks * (ranks + 1) / 2, 6)
    call MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win)
    call MPI_Win_sync(win)
    call expect(memory(4) == last, 7)
    call MPI_Win_unlock(rank, win)
    call MPI_Win_free(win)
    call expect(win == MPI_WIN_NULL, 8)
  end subroutine

  ! Fences, and a datatype at the target.
  subroutine created
    type(MPI_Win) :: win
    type(MPI_Datatype) :: every_second
    real(8), asynchronous :: memory(8)
    real(8), asynchronous :: from(8)
    integer :: i
    memory = 0
    from = [(100.0d0 * rank + i, i = 1, 8)]
    call MPI_Win_create(memory, int(64, MPI_ADDRESS_KIND), 8, MPI_INFO_NULL, MPI_COMM_WORLD, win)
    call MPI_Type_vector(4, 1, 2, MPI_DOUBLE_PRECISION, every_second)
    call MPI_Type_commit(every_second)
    call MPI_Win_fence(MPI_MODE_NOPRECEDE, win)
    call MPI_Put(from, 4, MPI_DOUBLE_PRECISION, next, 1_MPI_ADDRESS_KIND, 1, every_second, win)
    call MPI_Win_fence(0, win)
    call MPI_F_sync_reg(memory)
    call expect(all(memory(2::2) == [(100.0d0 * last + i, i = 1, 4)]) .and. all(memory(1::2) == 0), 20)
    call MPI_Win_fence(MPI_MODE_NOSUCCEED, win)
    call MPI_Type_free(every_second)
    call expect(every_second == MPI_DATATYPE_NULL, 21)
    call MPI_Win_free(win)
  end subroutine

  subroutine shared
    type(MPI_Win) :: win
    type(MPI_Comm) :: node
    type(C_PTR) :: base, theirs
    integer, pointer :: memory(:), other(:)
    integer(MPI_ADDRESS_KIND) :: bytes
    integer :: unit, size, me
    call MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, node)
    call MPI_Comm_size(node, size)
    call MPI_Comm_rank(node, me)
    call MPI_Win_allocate_shared(8_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, node, base, win)
    call c_f_pointer(base, memory, [2])
    memory = [me, -me]
    call MPI_Win_fence(0, win)
    call MPI_Win_shared_query(win, mod(me + 1, size), bytes, unit, theirs)
    call c_f_pointer(theirs, other, [2])
    call expect(bytes == 8 .and. unit == 4 .and. other(1) == mod(me + 1, size), 30)
    call MPI_Win_fence(0, win)
    call MPI_Win_free(win)
    call MPI_Comm_free(node)
    call expect(node == MPI_COMM_NULL, 31)
  end subroutine

  subroutine dynamic
    type(MPI_Win) :: win
    type(C_PTR) :: base
    integer, pointer :: memory(:)
    integer(MPI_ADDRESS_KIND) :: at, places(0:9)
    integer, asynchronous :: got
    call MPI_Alloc_mem(8_MPI_ADDRESS_KIND, MPI_INFO_NULL, base)
    call c_f_pointer(base, memory, [2])
    memory = [7, 8 + rank]
    call MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, win)
    call MPI_Win_attach(win, memory, 8_MPI_ADDRESS_KIND)
    call MPI_Get_address(memory(2), at)
    call expect(MPI_Aint_diff(at, MPI_Aint_add(at, -4_MPI_ADDRESS_KIND)) == 4, 40)
    call MPI_Allgather(at, 1, MPI_AINT, places, 1, MPI_AINT, MPI_COMM_WORLD)
    call MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win)
    call MPI_Get(got, 1, MPI_INTEGER, next, places(next), 1, MPI_INTEGER, win)
    call MPI_Win_unlock(next, win)
    call expect(got == 8 + next, 41)
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Win_detach(win, memory)
    call MPI_Win_free(win)
    call MPI_Free_mem(memory)
  end subroutine

  subroutine with_requests
    type(MPI_Win) :: win
    type(MPI_Request) :: requests(2)
    type(MPI_Status) :: statuses(2)
    integer, asynchronous :: memory(2), from(2), to(2)
    memory = [rank, 0]
    call MPI_Win_create(memory, int(8, MPI_ADDRESS_KIND), 4, MPI_INFO_NULL, MPI_COMM_WORLD, win)
    call MPI_Win_lock_all(MPI_MODE_NOCHECK, win)
    from = [rank + 50, 0]
    call MPI_Rput(from, 1, MPI_INTEGER, next, 1_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win, requests(1))
    call MPI_Rget(to, 1, MPI_INTEGER, next, 0_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win, requests(2))
    call MPI_Waitall(2, requests, statuses)
    call MPI_F_sync_reg(to)
    call expect(to(1) == next .and. all(requests == MPI_REQUEST_NULL), 50)
    call MPI_Win_unlock_all(win)
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_F_sync_reg(memory)
    call expect(memory(2) == last + 50, 51)
    call MPI_Win_free(win)
  end subroutine

  subroutine started_and_posted
    type(MPI_Win) :: win
    type(MPI_Group) :: all, from, to
    integer, asynchronous :: memory(1), mine
    memory = -1
    mine = rank
    call MPI_Win_create(memory, int(4, MPI_ADDRESS_KIND), 4, MPI_INFO_NULL, MPI_COMM_WORLD, win)
    call MPI_Win_get_group(win, all)
    call MPI_Group_incl(all, 1, [last], from)
    call MPI_Group_incl(all, 1, [next], to)
    call MPI_Win_post(from, 0, win)
    call MPI_Win_start(to, 0, win)
    call MPI_Put(mine, 1, MPI_INTEGER, next, 0_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win)
    call MPI_Win_complete(win)
    call MPI_Win_wait(win)
    call MPI_F_sync_reg(memory)
    call expect(memory(1) == last, 60)
    call MPI_Group_free(all)
    call MPI_Group_free(from)
    call MPI_Group_free(to)
    call MPI_Win_free(win)
  end subroutine

  ! The same names with counts of another kind.
  subroutine large_counts
    type(MPI_Win) :: win
    type(C_PTR) :: base
    integer, pointer :: memory(:)
    integer, asynchronous :: from(2)
    integer(MPI_COUNT_KIND) :: two = 2
    integer(MPI_ADDRESS_KIND) :: unit, bytes
    logical :: flag
    call MPI_Win_allocate(8_MPI_ADDRESS_KIND, 4_MPI_ADDRESS_KIND, MPI_INFO_NULL, MPI_COMM_WORLD, base, win)
    call c_f_pointer(base, memory, [2])
    call MPI_Win_fence(0, win)
    from = [rank, -rank]
    call MPI_Put(from, two, MPI_INTEGER, next, 0_MPI_ADDRESS_KIND, two, MPI_INTEGER, win)
    call MPI_Win_fence(0, win)
    call expect(memory(1) == last .and. memory(2) == -last, 70)
    call MPI_Win_fence(0, win)
    call PMPI_Put(from(2), two / 2, MPI_INTEGER, next, 0_MPI_ADDRESS_KIND, two / 2, MPI_INTEGER, win)
    call MPI_Win_fence(0, win)
    call expect(memory(1) == -last, 71)
    call MPI_Win_get_attr(win, MPI_WIN_SIZE, bytes, flag)
    call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, unit, flag)
    call expect(bytes == 8 .and. unit == 4, 72)
    call MPI_Win_free(win)
  end subroutine
end program
