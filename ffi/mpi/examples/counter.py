"""A distributed counter: each rank draws 1,000 tickets from one word at rank 0. No two ranks draw the same, and rank 0 does nothing
for it."""

import numpy as np
from mpi4py import MPI

DRAWS = 1000
TICKET, SUM, WORDS = 0, 1, 2  # rank 0's words

comm = MPI.COMM_WORLD
window = MPI.Win.Allocate(8 * WORDS if comm.rank == 0 else 0, 8, comm=comm)
words = np.frombuffer(window, dtype=np.int64)
words[:] = 0
comm.Barrier()  # nobody draws before the words are set

window.Lock_all()
one, ticket, total = np.ones(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64)
for _ in range(DRAWS):
    window.Fetch_and_op(one, ticket, 0, TICKET, MPI.SUM)
    window.Flush(0)  # now the ticket is here
    total += ticket
window.Accumulate(total, 0, SUM, MPI.SUM)
window.Unlock_all()

comm.Barrier()  # all have drawn
if comm.rank == 0:
    window.Lock(0, MPI.LOCK_SHARED)  # to read one's own memory
    print(f"{words[TICKET]} tickets, which sum up to {words[SUM]}")
    window.Unlock(0)
window.Free()
