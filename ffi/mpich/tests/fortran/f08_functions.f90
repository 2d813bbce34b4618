! Functions of the program's that MPI calls, by mpi_f08.
module functions
  use, intrinsic :: iso_c_binding
  use checks
  implicit none
  integer :: deleted = 0, freed = 0, caught = 0, barriers = 0
  type(MPI_Comm) :: of
  type(MPI_Win) :: window
  ! C's functions, for attributes that both languages see.
  interface
    integer(C_INT) function get_by_c(comm, keyval, value, flag) bind(C, name="MPI_Comm_get_attr")
      import
      integer(C_INT), value :: comm, keyval
      type(C_PTR) :: value
      integer(C_INT) :: flag
    end function
    integer(C_INT) function set_by_c(comm, keyval, value) bind(C, name="MPI_Comm_set_attr")
      import
      integer(C_INT), value :: comm, keyval
      type(C_PTR), value :: value
    end function
  end interface
contains
  subroutine copy(oldcomm, comm_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    type(MPI_Comm) :: oldcomm
    integer :: comm_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    call expect(oldcomm == MPI_COMM_WORLD, 1)
    attribute_val_out = attribute_val_in + extra_state
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine

  subroutine delete(comm, comm_keyval, attribute_val, extra_state, ierror)
    type(MPI_Comm) :: comm
    integer :: comm_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: attribute_val, extra_state
    deleted = deleted + 1
    ierror = MPI_SUCCESS
  end subroutine

  subroutine delete_of_type(datatype, type_keyval, attribute_val, extra_state, ierror)
    type(MPI_Datatype) :: datatype
    integer :: type_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: attribute_val, extra_state
    deleted = deleted + 10
    ierror = MPI_SUCCESS
  end subroutine

  subroutine handle(comm, error_code)
    type(MPI_Comm) :: comm
    integer :: error_code
    integer :: class
    call MPI_Error_class(error_code, class)
    call expect(comm == of .and. class == MPI_ERR_RANK, 2)
    caught = caught + 1
  end subroutine

  subroutine handle_window(win, error_code)
    type(MPI_Win) :: win
    integer :: error_code
    integer :: class
    call MPI_Error_class(error_code, class)
    call expect(win == window .and. class == MPI_ERR_RANK, 3)
    caught = caught + 10
  end subroutine

  ! What is nearer to zero.
  subroutine nearer(invec, inoutvec, len, datatype)
    type(C_PTR), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: in(:), inout(:)
    call expect(datatype == MPI_INTEGER, 4)
    call c_f_pointer(invec, in, [len])
    call c_f_pointer(inoutvec, inout, [len])
    where (abs(in) < abs(inout)) inout = in
  end subroutine

  subroutine added(invec, inoutvec, len, datatype)
    type(C_PTR), value :: invec, inoutvec
    integer(MPI_COUNT_KIND) :: len
    type(MPI_Datatype) :: datatype
    real(8), pointer :: in(:), inout(:)
    call expect(datatype == MPI_DOUBLE_PRECISION, 5)
    call c_f_pointer(invec, in, [len])
    call c_f_pointer(inoutvec, inout, [len])
    inout = inout + in
  end subroutine

  subroutine query(extra_state, status, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    type(MPI_Status) :: status
    integer :: ierror
    call MPI_Status_set_elements(status, MPI_INTEGER, int(extra_state))
    call MPI_Status_set_cancelled(status, .false.)
    status%MPI_TAG = 11
    ierror = MPI_SUCCESS
  end subroutine

  subroutine release(extra_state, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    freed = freed + 1
    ierror = MPI_SUCCESS
  end subroutine

  subroutine cancel(extra_state, complete, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
    ierror = MPI_SUCCESS
  end subroutine

  ! A variable of any type comes with a description of it.
  integer function bits(object)
    class(*), intent(in) :: object
    bits = storage_size(object)
  end function
end module

! A tool's, by the profiling interface.
subroutine MPI_Barrier_f08(comm, ierror)
  use mpi_f08, only: MPI_Comm, PMPI_Barrier
  use functions, only: barriers
  implicit none
  type(MPI_Comm), intent(in) :: comm
  integer, optional, intent(out) :: ierror
  barriers = barriers + 1
  call PMPI_Barrier(comm, ierror)
end subroutine
