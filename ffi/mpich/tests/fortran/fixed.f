C     Constants that are variables, indices from 1, strings, and what MPI-1 had,
C     in the fixed form.
      program fixed
      implicit none
      include 'mpif.h'
      integer ierror, rank, ranks, i, index, done
      integer numbers(4), sums(4), requests(2), indices(2)
      integer status(MPI_STATUS_SIZE), statuses(MPI_STATUS_SIZE, 2)
      integer info, length, newtype, extent, ticket
      logical flag
      character*20 value
      character*(MPI_MAX_ERROR_STRING) text
      character*12 name
      external add
      integer operation
      common /ticks/ ticket

      call MPI_INIT(ierror)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierror)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, ierror)

C     In place, and with a function of ours
      do i = 1, 4
        numbers(i) = rank + i
        sums(i) = rank + i
      end do
      call MPI_ALLREDUCE(MPI_IN_PLACE, sums, 4, MPI_INTEGER, MPI_SUM,
     &                   MPI_COMM_WORLD, ierror)
      call expect(sums(2) .eq. ranks * (ranks - 1) / 2 + 2 * ranks, 1)
      call MPI_OP_CREATE(add, .true., operation, ierror)
      call MPI_ALLREDUCE(numbers, sums, 4, MPI_INTEGER, operation,
     &                   MPI_COMM_WORLD, ierror)
      call expect(sums(3) .eq. ranks * (ranks - 1) / 2 + 3 * ranks, 2)
      call MPI_OP_FREE(operation, ierror)

C     Statuses, indices
      call MPI_IRECV(numbers, 1, MPI_INTEGER, rank, 1, MPI_COMM_WORLD,
     &               requests(1), ierror)
      call MPI_IRECV(sums, 1, MPI_INTEGER, rank, 2, MPI_COMM_WORLD,
     &               requests(2), ierror)
      call MPI_SEND(7, 1, MPI_INTEGER, rank, 2, MPI_COMM_WORLD, ierror)
      call MPI_WAITANY(2, requests, index, status, ierror)
      call expect(index .eq. 2 .and. sums(1) .eq. 7, 3)
      call expect(status(MPI_SOURCE) .eq. rank, 4)
      call expect(status(MPI_TAG) .eq. 2, 5)
      call MPI_GET_COUNT(status, MPI_INTEGER, i, ierror)
      call expect(i .eq. 1, 6)
      call MPI_SEND(8, 1, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, ierror)
      call MPI_WAITSOME(2, requests, done, indices, statuses, ierror)
      call expect(done .eq. 1 .and. indices(1) .eq. 1, 7)
      call MPI_WAITALL(2, requests, MPI_STATUSES_IGNORE, ierror)
      call MPI_TESTANY(2, requests, index, flag, MPI_STATUS_IGNORE,
     &                 ierror)
      call expect(flag .and. index .eq. MPI_UNDEFINED, 8)

C     Strings
      call MPI_INFO_CREATE(info, ierror)
      call MPI_INFO_SET(info, ' key  ', '  a value ', ierror)
      value = 'xxxxxxxxxxxxxxxxxxxx'
      call MPI_INFO_GET(info, 'key', 20, value, flag, ierror)
      call expect(flag .and. value .eq. 'a value', 9)
      call MPI_INFO_GET_VALUELEN(info, 'key', length, flag, ierror)
      call expect(flag .and. length .eq. 7, 10)
      length = 20
      call MPI_INFO_GET_STRING(info, 'key', length, value, flag, ierror)
      call expect(flag .and. length .eq. 7, 11)
      call MPI_INFO_FREE(info, ierror)
      call MPI_COMM_SET_NAME(MPI_COMM_SELF, ' of one ', ierror)
      call MPI_COMM_GET_NAME(MPI_COMM_SELF, name, length, ierror)
      call expect(name .eq. ' of one' .and. length .eq. 7, 12)

C     Errors, attributes of before MPI-2
      call MPI_ERRHANDLER_SET(MPI_COMM_SELF, MPI_ERRORS_RETURN, ierror)
      call MPI_SEND(7, 1, MPI_INTEGER, 5, 2, MPI_COMM_SELF, ierror)
      call MPI_ERROR_CLASS(ierror, i, ierror)
      call expect(i .eq. MPI_ERR_RANK, 13)
      call MPI_ERROR_STRING(i, text, length, ierror)
      call expect(text(1:12) .eq. 'MPI_ERR_RANK', 14)
      call MPI_ATTR_GET(MPI_COMM_WORLD, MPI_TAG_UB, i, flag, ierror)
      call expect(flag .and. i .ge. 32767, 15)
      call MPI_PCONTROL(1)
      done = 1000000
      call MPI_WAITSOME(-1, requests, done, indices, statuses, ierror)
      call expect(ierror .ne. MPI_SUCCESS, 18)
      call MPI_TYPE_HVECTOR(2, 1, 16, MPI_INTEGER, newtype, ierror)
      call MPI_TYPE_EXTENT(newtype, extent, ierror)
      call expect(extent .eq. 20, 16)
      call MPI_TYPE_FREE(newtype, ierror)
      call expect(MPI_WTIME() .ge. 0d0 .and. MPI_WTICK() .gt. 0d0, 17)

      call MPI_BARRIER(MPI_COMM_WORLD, ierror)
      if (rank .eq. 0) then
        if (ranks .lt. 10) print '(A, I1)', 'all well with ', ranks
      end if
      call MPI_FINALIZE(ierror)
      end

      subroutine add(from, to, n, newtype)
      implicit none
      integer n, newtype, from(n), to(n), i
      do i = 1, n
        to(i) = to(i) + from(i)
      end do
      end

      subroutine expect(holds, number)
      implicit none
      include 'mpif.h'
      logical holds
      integer number, ierror
      if (.not. holds) then
        print *, 'not so: number ', number
        call MPI_ABORT(MPI_COMM_WORLD, 3, ierror)
      end if
      end
