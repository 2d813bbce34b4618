"""Heat in a rod: each rank has a part of its cells, and before each step puts its outermost cells beside those of its neighbours. The
window holds two fields of the part, for odd and for even steps, so that one fence a step is enough."""

import numpy as np
from mpi4py import MPI

CELLS, STEPS = 960, 2000
HOT, COLD, RATE = 100.0, 0.0, 0.25

comm = MPI.COMM_WORLD


def first(rank):
    """The first cell of a rank."""
    return CELLS * rank // comm.size


own = first(comm.rank + 1) - first(comm.rank)
left = comm.rank - 1 if comm.rank > 0 else MPI.PROC_NULL
right = comm.rank + 1 if comm.rank + 1 < comm.size else MPI.PROC_NULL
# A field: the left neighbour's cell, the own ones, the right neighbour's; as long as the longest part at all ranks.
length = CELLS // comm.size + 1 + 2
window = MPI.Win.Allocate(2 * length * 8, 8, comm=comm)
fields = np.frombuffer(window, dtype=np.float64).reshape(2, length)
fields[:] = COLD
if comm.rank == 0:
    fields[:, 0] = HOT

behind = first(comm.rank) - first(comm.rank - 1) + 1 if comm.rank > 0 else 0  # the left one's right halo
window.Fence(MPI.MODE_NOPRECEDE)
for step in range(STEPS):
    now, later = fields[step % 2], fields[1 - step % 2]
    at = step % 2 * length
    window.Put(now[1:2], left, at + behind)
    window.Put(now[own : own + 1], right, at)
    window.Fence()
    later[1 : own + 1] = now[1 : own + 1] + RATE * (now[:own] - 2 * now[1 : own + 1] + now[2 : own + 2])
window.Fence(MPI.MODE_NOSUCCEED)

# Rank 0 looks at some cells, wherever they are.
window.Lock_all(MPI.MODE_NOCHECK)
heat = np.zeros(1)
for cell in range(0, 100, 20) if comm.rank == 0 else []:
    owner = max(rank for rank in range(comm.size) if first(rank) <= cell)
    window.Get(heat, owner, STEPS % 2 * length + cell - first(owner) + 1)
    window.Flush(owner)
    print(f"cell {cell:2}: {heat[0]:10.6f}")
window.Unlock_all()
window.Free()
