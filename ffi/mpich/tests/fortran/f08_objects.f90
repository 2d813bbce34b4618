! Objects and functions of the program's by mpi_f08: communicators, statuses, requests, datatypes, error handlers, attributes,
! operations, strings, and what is known by its place.
program objects
  use, intrinsic :: iso_c_binding
  use functions
  implicit none
  integer :: next, last
  call begin
  next = mod(rank + 1, ranks)
  last = mod(rank + ranks - 1, ranks)
  call communicators
  call messages
  call reductions
  call attributes
  call errors
  call strings
  call datatypes
  call places
  call others
  call end
contains
  subroutine communicators
    type(MPI_Comm) :: half, ring
    type(MPI_Group) :: all, one
    integer :: size, result, ierror, source, dest, ranges(3, 1)
    logical :: flag, periods(1)
    call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), -rank, half, ierror)
    call MPI_Comm_size(half, size)
    call expect(ierror == MPI_SUCCESS .and. size == (ranks + 1 - mod(rank, 2)) / 2, 10)
    call MPI_Comm_compare(half, MPI_COMM_WORLD, result)
    call expect(result /= MPI_IDENT .and. half /= MPI_COMM_WORLD, 11)
    call MPI_Comm_free(half)
    call MPI_Cart_create(MPI_COMM_WORLD, 1, [ranks], [.true.], .false., ring)
    call MPI_Cart_shift(ring, 0, 1, rank_source=source, rank_dest=dest)
    call MPI_Cart_get(ring, 1, ranges(1, :), periods, ranges(2, :))
    call expect(source == last .and. dest == next .and. periods(1), 12)
    call MPI_Comm_test_inter(ring, flag)
    call expect(.not. flag .and. bits(ring) == 32, 13)
    call MPI_Comm_free(ring)
    call MPI_Comm_group(MPI_COMM_WORLD, all)
    ranges(:, 1) = [0, 0, 1]
    call MPI_Group_range_incl(all, 1, ranges, one)
    call MPI_Group_size(one, size)
    call expect(size == 1, 14)
    call MPI_Group_free(all)
    call MPI_Group_free(one)
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [last], MPI_UNWEIGHTED, 1, [next], MPI_UNWEIGHTED, &
                                        MPI_INFO_NULL, .false., ring)
    call MPI_Dist_graph_neighbors_count(ring, source, dest, flag)
    call expect(source == 1 .and. dest == 1 .and. .not. flag, 15)
    call MPI_Comm_free(ring)
  end subroutine

  subroutine messages
    type(MPI_Request) :: requests(2), request
    type(MPI_Status) :: statuses(2), status
    type(MPI_Message) :: message
    type(C_PTR) :: place
    integer, asynchronous :: from(3), to(3)
    integer, asynchronous :: table(2, 3)
    character(len=1), target :: buffer(MPI_BSEND_OVERHEAD + 100)
    integer :: f_status(MPI_STATUS_SIZE), n, index
    integer(MPI_COUNT_KIND) :: many
    logical :: flag
    from = rank
    call MPI_Irecv(to, 3, MPI_INTEGER, last, 5, MPI_COMM_WORLD, requests(1))
    call MPI_Isend(from, 2, MPI_INTEGER, next, 5, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, statuses)
    call MPI_F_sync_reg(to)
    call MPI_Get_count(statuses(1), MPI_INTEGER, n)
    call MPI_Get_count(statuses(1), MPI_INTEGER, many)
    call expect(n == 2 .and. many == 2 .and. all(to(:2) == last), 20)
    call expect(statuses(1)%MPI_SOURCE == last .and. statuses(1)%MPI_TAG == 5, 21)
    call MPI_Status_f082f(statuses(1), f_status)
    call expect(f_status(MPI_SOURCE) == last .and. f_status(MPI_TAG) == 5, 22)
    f_status(MPI_TAG) = 6
    call MPI_Status_f2f08(f_status, status)
    call expect(status%MPI_TAG == 6 .and. status%MPI_SOURCE == last, 23)
    call MPI_Isend(from, 1_MPI_COUNT_KIND, MPI_INTEGER, next, 7, MPI_COMM_WORLD, request)
    call MPI_Mprobe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, message, MPI_STATUS_IGNORE)
    call MPI_Mrecv(to, 3, MPI_INTEGER, message, status)
    call expect(status%MPI_SOURCE == last .and. message == MPI_MESSAGE_NULL, 24)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    requests = MPI_REQUEST_NULL
    call MPI_Irecv(to, 0, MPI_INTEGER, MPI_PROC_NULL, 7, MPI_COMM_WORLD, requests(2))
    call MPI_Waitany(2, requests, index, status)
    call expect(index == 2 .and. status%MPI_SOURCE == MPI_PROC_NULL, 25)
    call MPI_Testall(2, requests, flag, MPI_STATUSES_IGNORE)
    call expect(flag, 26)
    ! Sections that are not contiguous are copied for calls that block.
    table(1, :) = [rank, 10, 20]
    table(2, :) = -1
    call MPI_Sendrecv(table(1, :), 3, MPI_INTEGER, next, 6, table(2, :), 3, MPI_INTEGER, last, 6, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE)
    call expect(all(table(2, :) == [last, 10, 20]) .and. table(1, 1) == rank, 29)
    ! A buffer comes back as an address.
    call MPI_Buffer_attach(buffer, size(buffer))
    call MPI_Bsend(from, 1, MPI_INTEGER, rank, 8, MPI_COMM_WORLD)
    call MPI_Recv(to, 1, MPI_INTEGER, rank, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Buffer_detach(place, n)
    call expect(n == size(buffer) .and. c_associated(place, c_loc(buffer)), 27)
    call MPI_Psend_init(from, 3, 1_MPI_COUNT_KIND, MPI_INTEGER, next, 9, MPI_COMM_WORLD, MPI_INFO_NULL, requests(1))
    call MPI_Precv_init(to, 1, 3_MPI_COUNT_KIND, MPI_INTEGER, last, 9, MPI_COMM_WORLD, MPI_INFO_NULL, requests(2))
    call MPI_Startall(2, requests)
    call MPI_Pready_range(0, 2, requests(1))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call MPI_F_sync_reg(to)
    call expect(all(to == last), 28)
    call MPI_Request_free(requests(1))
    call MPI_Request_free(requests(2))
  end subroutine

  subroutine reductions
    type(MPI_Op) :: op
    integer :: number(2)
    real(8) :: sum(1)
    logical :: commutes
    call MPI_Op_create(nearer, .true., op)
    call MPI_Op_commutative(op, commutes)
    number = [rank - 1, 100 - rank]
    call MPI_Allreduce(MPI_IN_PLACE, number, 2, MPI_INTEGER, op, MPI_COMM_WORLD)
    call expect(commutes .and. number(1) == min(ranks - 2, 0) .and. number(2) == 101 - ranks, 30)
    call MPI_Op_free(op)
    call expect(op == MPI_OP_NULL, 31)
    call MPI_Op_create_c(added, .true., op)
    call MPI_Allreduce([real(8) :: rank], sum, 1_MPI_COUNT_KIND, MPI_DOUBLE_PRECISION, op, MPI_COMM_WORLD)
    call expect(sum(1) == ranks * (ranks - 1) / 2, 32)
    call MPI_Op_free(op)
  end subroutine

  subroutine attributes
    type(MPI_Comm) :: comm
    type(MPI_Datatype) :: pair
    integer :: key, code, found
    integer(MPI_ADDRESS_KIND) :: value
    integer(MPI_ADDRESS_KIND), pointer :: number
    integer, target, save :: table
    type(C_PTR) :: place
    logical :: flag
    call MPI_Comm_create_keyval(copy, delete, key, 1000_MPI_ADDRESS_KIND)
    call MPI_Comm_set_attr(MPI_COMM_WORLD, key, 2_MPI_ADDRESS_KIND**40)
    call MPI_Comm_dup(MPI_COMM_WORLD, comm)
    call MPI_Comm_get_attr(comm, key, value, flag)
    call expect(flag .and. value == 2_MPI_ADDRESS_KIND**40 + 1000, 40)
    ! C gets the address of an integer of Fortran's, and Fortran that of what C has.
    code = get_by_c(comm%MPI_VAL, key, place, found)
    call c_f_pointer(place, number)
    call expect(code == MPI_SUCCESS .and. found == 1 .and. number == 2_MPI_ADDRESS_KIND**40 + 1000, 44)
    code = set_by_c(comm%MPI_VAL, key, c_loc(table))
    call MPI_Comm_get_attr(comm, key, value, flag)
    call expect(code == MPI_SUCCESS .and. flag .and. value == transfer(c_loc(table), value), 45)
    call MPI_Comm_free(comm)
    call MPI_Comm_delete_attr(MPI_COMM_WORLD, key)
    call MPI_Comm_free_keyval(key)
    call expect(deleted == 3 .and. key == MPI_KEYVAL_INVALID, 41)
    call MPI_Type_create_keyval(MPI_TYPE_DUP_FN, delete_of_type, key, 0_MPI_ADDRESS_KIND)
    call MPI_Type_contiguous(2, MPI_INTEGER, pair)
    call MPI_Type_set_attr(pair, key, -5_MPI_ADDRESS_KIND)
    call MPI_Type_free(pair)
    call expect(deleted == 13, 42)
    call MPI_Type_free_keyval(key)
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag)
    call expect(flag .and. value >= 32767, 43)
  end subroutine

  subroutine errors
    type(MPI_Errhandler) :: handler, of_windows
    integer :: code, class, length
    character(len=MPI_MAX_ERROR_STRING) :: text
    call MPI_Comm_dup(MPI_COMM_WORLD, of)
    call MPI_Comm_create_errhandler(handle, handler)
    call MPI_Comm_set_errhandler(of, handler)
    ! Without the argument the handler hears of it all the same.
    call MPI_Send(1, 1, MPI_INTEGER, ranks + 5, 1, of)
    call MPI_Send(1, 1, MPI_INTEGER, ranks + 5, 1, of, code)
    call expect(caught == 2 .and. code /= MPI_SUCCESS, 50)
    call MPI_Errhandler_free(handler)
    call MPI_Win_create_dynamic(MPI_INFO_NULL, of, window)
    call MPI_Win_create_errhandler(handle_window, of_windows)
    call MPI_Win_set_errhandler(window, of_windows)
    call MPI_Win_lock(MPI_LOCK_SHARED, ranks + 5, 0, window)
    call expect(caught == 12, 51)
    call MPI_Errhandler_free(of_windows)
    call MPI_Win_free(window)
    call MPI_Comm_set_errhandler(of, MPI_ERRORS_RETURN)
    call MPI_Send(1, 1, MPI_INTEGER, ranks + 5, 1, of, ierror=code)
    call MPI_Error_class(code, class)
    call MPI_Error_string(code, text, length)
    call expect(class == MPI_ERR_RANK .and. length > 0 .and. len_trim(text) == length, 52)
    call MPI_Comm_free(of)
  end subroutine

  subroutine strings
    type(MPI_Info) :: info
    type(MPI_Datatype) :: pair
    character(len=20) :: value, key
    character(len=MPI_MAX_OBJECT_NAME) :: name
    integer :: length
    logical :: flag
    call MPI_Info_create(info)
    call MPI_Info_set(info, " a key ", "a value  ")
    call MPI_Info_get(info, "a key", 20, value, flag)
    call expect(flag .and. value == "a value", 60)
    length = 20
    call MPI_Info_get_string(info, "a key", length, value, flag)
    call expect(flag .and. length == 7, 61)
    call MPI_Info_get_nthkey(info, 0, key)
    call expect(key == "a key", 62)
    call MPI_Info_free(info)
    call expect(info == MPI_INFO_NULL, 63)
    call MPI_Comm_get_name(MPI_COMM_WORLD, name, length)
    call expect(name == "MPI_COMM_WORLD" .and. length == 14, 64)
    call MPI_Type_contiguous(2, MPI_INTEGER, pair)
    call MPI_Type_get_name(pair, name, length)
    call expect(name == " " .and. length == 0, 65)
    call MPI_Type_free(pair)
  end subroutine

  ! Addresses and counts have one kind, so that forms that differ in these have one name and one form.
  subroutine datatypes
    type(MPI_Datatype) :: block, resized, types(1)
    integer(MPI_ADDRESS_KIND) :: lb, extent, addresses(1)
    integer(MPI_COUNT_KIND) :: many, none, large(1)
    integer :: n, m, k, combiner, integers(5)
    call MPI_Type_create_subarray(2, [4, 4], [2, 2], [1, 1], MPI_ORDER_FORTRAN, MPI_REAL, block)
    call MPI_Type_create_resized(block, 0_MPI_ADDRESS_KIND, 128_MPI_ADDRESS_KIND, resized)
    call MPI_Type_get_extent(resized, lb, extent)
    call MPI_Type_size(resized, n)
    call MPI_Type_size(resized, many)
    call expect(lb == 0 .and. extent == 128 .and. n == 16 .and. many == 16, 70)
    call MPI_Type_get_envelope(block, n, m, k, combiner)
    call expect(combiner == MPI_COMBINER_SUBARRAY .and. n == 8 .and. k == 1, 71)
    call MPI_Type_free(block)
    call MPI_Type_free(resized)
    call MPI_Type_contiguous(2_MPI_COUNT_KIND**33, MPI_BYTE, block)
    call MPI_Type_size(block, many)
    call expect(many == 2_MPI_COUNT_KIND**33, 72)
    call MPI_Type_get_envelope(block, none, none, many, none, combiner)
    call MPI_Type_get_contents(block, 0_MPI_COUNT_KIND, 0_MPI_COUNT_KIND, 1_MPI_COUNT_KIND, 1_MPI_COUNT_KIND, &
                               integers, addresses, large, types)
    call expect(many == 1 .and. large(1) == 2_MPI_COUNT_KIND**33 .and. types(1) == MPI_BYTE, 73)
    call MPI_Type_free(block)
    call MPI_Sizeof(extent, n)
    call MPI_Sizeof([(1.0, 2.0)], m)
    call expect(n == 8 .and. m == 8, 74)
  end subroutine

  ! A structure at absolute addresses.
  subroutine places
    type(MPI_Datatype) :: structure
    integer, asynchronous :: number
    real(8), asynchronous :: real
    integer(MPI_ADDRESS_KIND) :: at(2)
    call MPI_Get_address(number, at(1))
    call MPI_Get_address(real, at(2))
    call MPI_Type_create_struct(2, [1, 1], at, [MPI_INTEGER, MPI_DOUBLE_PRECISION], structure)
    call MPI_Type_commit(structure)
    number = 3 + rank
    real = 4.5d0
    call MPI_F_sync_reg(number)
    call MPI_F_sync_reg(real)
    call MPI_Bcast(MPI_BOTTOM, 1, structure, 0, MPI_COMM_WORLD)
    call MPI_F_sync_reg(number)
    call MPI_F_sync_reg(real)
    call expect(number == 3 .and. real == 4.5d0, 80)
    call MPI_Type_free(structure)
  end subroutine

  subroutine others
    type(MPI_Request) :: request
    type(MPI_Status) :: status
    type(MPI_Session) :: session
    type(MPI_Comm) :: child
    integer :: n, code, class, codes(1)
    call MPI_Grequest_start(query, release, cancel, 6_MPI_ADDRESS_KIND, request)
    call MPI_Grequest_complete(request)
    call MPI_Wait(request, status)
    call MPI_Get_elements(status, MPI_INTEGER, n)
    call expect(n == 6 .and. status%MPI_TAG == 11 .and. freed == 1, 90)
    call MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, session)
    call MPI_Session_get_num_psets(session, MPI_INFO_NULL, n)
    call expect(n >= 2, 91)
    call MPI_Session_finalize(session)
    call expect(MPI_Wtime() > 0 .and. PMPI_Wtick() > 0, 92)
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Barrier(MPI_COMM_WORLD, code)
    call expect(barriers == 2 .and. code == MPI_SUCCESS, 95)
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
    call MPI_Comm_spawn("none", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, child, MPI_ERRCODES_IGNORE, code)
    call MPI_Error_class(code, class)
    call expect(class == MPI_ERR_UNSUPPORTED_OPERATION, 93)
    call MPI_Comm_spawn("none", ["one", "two", "   "], 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, child, codes, code)
    call MPI_Error_class(code, class)
    call expect(class == MPI_ERR_UNSUPPORTED_OPERATION, 94)
  end subroutine
end program
