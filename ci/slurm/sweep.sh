#!/bin/bash
# sweep.sh DIR: run by run.sh inside a cluster of four nodes: the benchmark's batch script as users copy it.
set -euo pipefail
export PATH=$1:$PATH
out=/run/slurm/out
mkdir -p $out
# Four hosts that are one busy machine may have no core for the 10 s after which a silent host is lost.
export RESULTS=$out/results TRANSOM_TRANSPORT=tcp TRANSOM_HOST_TIMEOUT=60
job=$(sbatch --parsable --output=$out/stdout --error=$out/stderr launcher/slurm/bench.sbatch put-latency barrier matrix start-up --quick --sizes 8)
for _ in $(seq 6000); do
    state=$(scontrol show job "$job" | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p')
    [[ ! $state =~ ^(COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL)$ ]] || break
    sleep 0.05
done
fail() {
    echo "FAILED  sbatch bench.sbatch on four nodes: $*"
    head -n 40 $out/stdout $out/stderr
    exit 1
}
[ "$state" = COMPLETED ] || fail "its state is $state"
for count in 2 4; do
    grep -q "^=== $count nodes: n1,n2" $out/stdout || fail "no figures of $count nodes"
    grep -q "^ start-up  *$count  *ms " $out/stdout || fail "no start of $count ranks"
    [ -s $RESULTS/$count-nodes.json ] || fail "no samples of $count nodes"
done
! grep -q 'n3' $RESULTS/2-nodes.html || fail "two nodes are not two"
# A row of each matrix for each node, a cell for each ordered pair.
for node in n1 n2 n3 n4; do
    [ "$(grep -o "<th>[0-9]* <small>$node</small>" $RESULTS/4-nodes.html | wc -l)" = 2 ] || fail "no rows of $node in the matrices of pairs"
done
[ "$(grep -o '<td style="background:hsl' $RESULTS/4-nodes.html | wc -l)" = 24 ] || fail "a matrix has not 12 pairs"
echo "ok      sbatch bench.sbatch: 2 and 4 nodes, the page of 4 has the matrix of their pairs"
