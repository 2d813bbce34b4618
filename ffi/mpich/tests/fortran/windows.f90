! Windows, attributes with functions of ours, addresses and MPI_BOTTOM, generalised requests.
module functions
  implicit none
  include 'mpif.h'
  integer :: deleted = 0, freed = 0
contains
  subroutine expect(holds, number)
    logical, intent(in) :: holds
    integer, intent(in) :: number
    integer :: ierror
    if (holds) return
    print *, 'not so: number ', number
    call MPI_Abort(MPI_COMM_WORLD, 3, ierror)
  end subroutine

  subroutine copy(comm, keyval, extra, value, copied, flag, ierror)
    integer :: comm, keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra, value, copied
    logical :: flag
    copied = value + extra
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine

  subroutine delete(comm, keyval, value, extra, ierror)
    integer :: comm, keyval, ierror
    integer(MPI_ADDRESS_KIND) :: value, extra
    deleted = deleted + 1
    ierror = MPI_SUCCESS
  end subroutine

  subroutine query(extra, status, ierror)
    integer(MPI_ADDRESS_KIND) :: extra
    integer :: status(MPI_STATUS_SIZE), ierror
    call MPI_Status_set_elements(status, MPI_INTEGER, int(extra), ierror)
    call MPI_Status_set_cancelled(status, .false., ierror)
    status(MPI_TAG) = 11
  end subroutine

  subroutine release(extra, ierror)
    integer(MPI_ADDRESS_KIND) :: extra
    integer :: ierror
    freed = freed + 1
    ierror = MPI_SUCCESS
  end subroutine

  subroutine cancel(extra, complete, ierror)
    integer(MPI_ADDRESS_KIND) :: extra
    logical :: complete
    integer :: ierror
    ierror = MPI_SUCCESS
  end subroutine
end module

program windows
  use functions
  implicit none
  integer :: rank, ranks, ierror
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  call window
  call attributes
  call addresses
  call general
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  if (rank == 0) print '(A, I1)', 'all well with ', ranks
  call MPI_Finalize(ierror)
contains
  subroutine window
    integer :: win, next, i
    integer :: memory(4), one, ticket, got(4)
    integer(MPI_ADDRESS_KIND) :: bytes, at, value
    logical :: flag
    next = mod(rank + 1, ranks)
    memory = 0
    bytes = 16
    call MPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierror)
    call MPI_Win_get_attr(win, MPI_WIN_SIZE, value, flag, ierror)
    call expect(flag .and. value == 16, 1)
    call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, value, flag, ierror)
    call expect(flag .and. value == 4, 2)
    call MPI_Win_get_attr(win, MPI_WIN_BASE, value, flag, ierror)
    call expect(flag .and. value == loc(memory), 3)
    call MPI_Win_fence(0, win, ierror)
    at = 1
    call MPI_Put((/ (rank + i, i = 1, 3) /), 3, MPI_INTEGER, next, at, 3, MPI_INTEGER, win, ierror)
    call MPI_Win_fence(0, win, ierror)
    call expect(memory(2) == mod(rank + ranks - 1, ranks) + 1, 4)
    call MPI_Win_lock_all(0, win, ierror)
    one = 1
    at = 0
    call MPI_Fetch_and_op(one, ticket, MPI_INTEGER, 0, at, MPI_SUM, win, ierror)
    call expect(ticket >= 0 .and. ticket < ranks, 5)
    call MPI_Win_unlock_all(win, ierror)
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    call MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win, ierror)
    call MPI_Get(got, 1, MPI_INTEGER, 0, at, 1, MPI_INTEGER, win, ierror)
    call MPI_Win_unlock(0, win, ierror)
    call expect(got(1) == ranks, 6)
    call MPI_Win_free(win, ierror)
    call expect(win == MPI_WIN_NULL, 7)
  end subroutine

  subroutine attributes
    integer :: key, comm, predefined
    integer(MPI_ADDRESS_KIND) :: extra, value
    logical :: flag
    extra = 1000
    call MPI_Comm_create_keyval(copy, delete, key, extra, ierror)
    value = 2_8**40
    call MPI_Comm_set_attr(MPI_COMM_WORLD, key, value, ierror)
    call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierror)
    call MPI_Comm_get_attr(comm, key, value, flag, ierror)
    call expect(flag .and. value == 2_8**40 + 1000, 10)
    call MPI_Comm_free(comm, ierror)
    call MPI_Comm_delete_attr(MPI_COMM_WORLD, key, ierror)
    call expect(deleted == 2, 11)
    call MPI_Comm_free_keyval(key, ierror)
    call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, key, extra, ierror)
    value = -5
    call MPI_Comm_set_attr(MPI_COMM_WORLD, key, value, ierror)
    call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierror)
    call MPI_Comm_get_attr(comm, key, value, flag, ierror)
    call expect(flag .and. value == -5, 12)
    call MPI_Comm_free(comm, ierror)
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, value, flag, ierror)
    call expect(flag .and. value >= ranks, 13)
  end subroutine

  ! A structure at absolute addresses.
  subroutine addresses
    integer :: newtype, number, copied
    double precision :: real, other
    integer(MPI_ADDRESS_KIND) :: at(2)
    number = 3
    real = 4.5d0
    call MPI_Get_address(number, at(1), ierror)
    call MPI_Get_address(real, at(2), ierror)
    call MPI_Type_create_struct(2, (/ 1, 1 /), at, (/ MPI_INTEGER, MPI_DOUBLE_PRECISION /), newtype, ierror)
    call MPI_Type_commit(newtype, ierror)
    call MPI_Sendrecv(MPI_BOTTOM, 1, newtype, rank, 1, number, 0, MPI_INTEGER, MPI_PROC_NULL, 1, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
    number = 0
    real = 0
    call MPI_Recv(MPI_BOTTOM, 1, newtype, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
    call MPI_F_sync_reg(number)
    call MPI_F_sync_reg(real)
    call expect(number == 3 .and. real == 4.5d0, 20)
    call MPI_Type_free(newtype, ierror)
  end subroutine

  subroutine general
    integer :: request, status(MPI_STATUS_SIZE), n
    integer(MPI_ADDRESS_KIND) :: extra
    extra = 6
    call MPI_Grequest_start(query, release, cancel, extra, request, ierror)
    call MPI_Grequest_complete(request, ierror)
    call MPI_Wait(request, status, ierror)
    call MPI_Get_elements(status, MPI_INTEGER, n, ierror)
    call expect(n == 6 .and. status(MPI_TAG) == 11 .and. freed == 1, 30)
  end subroutine
end program
