# common.sh DIR: what checks inside a cluster have in common; sourced.
# shellcheck disable=SC2034,SC2154
set -uo pipefail
bin=$1
export PATH=$bin:$PATH
out=/run/slurm/out
mkdir -p $out
passed=0
failed=0
files=("$PWD"/ci/data/*.txt)
ci/count.sh "${files[@]}" >$out/expected

begin() { start=$(date +%s%N); }
check() { # name command…: passes if the command succeeds
    local name=$1
    shift
    local status=0
    "$@" >$out/why 2>&1 || status=$?
    local ms=$((($(date +%s%N) - start) / 1000000))
    if [ $status = 0 ]; then
        echo "ok      $name ($ms ms)"
        passed=$((passed + 1))
    else
        echo "FAILED  $name ($ms ms)"
        head -n 20 $out/why $out/stdout $out/stderr 2>/dev/null | sed 's/^/        /'
        failed=$((failed + 1))
    fi
    begin
}

# A batch job's end, as Slurm tells it (`sbatch --wait` asks far less often).
submit() { job=$(sbatch --parsable --output=$out/stdout --error=$out/stderr "$@") || job=; }
# Of a job of several (components, an array): the states that there are.
state() { scontrol show job "$job" 2>/dev/null | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p' | sort -u | paste -sd' '; }
wait_until() { # seconds pattern: whether the job's state comes to be that
    local end=$((SECONDS + $1))
    until [[ $(state) =~ ^($2)$ ]]; do
        [ $SECONDS -lt $end ] || { echo "job $job is $(state) after $1 s"; return 1; }
        sleep 0.05
    done
}
finish() { wait_until 60 'COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL'; }
completed() { [ "$(state)" = COMPLETED ] && cmp $out/expected $out/stdout; }
failed_with() { # exit-code text
    scontrol show job "$job" | grep -q "ExitCode=$1:0" && grep -q -- "$2" $out/stderr || {
        scontrol show job "$job" | grep ExitCode
        false
    }
}
# All namespaces are below this script's, so that its /proc has all of the nodes' processes.
alive() { # pattern: command lines of living processes that match
    local file line
    for file in /proc/[0-9]*/cmdline; do
        { line=$(tr '\0' ' ' <"$file"); } 2>/dev/null || continue
        if [[ $line =~ $1 ]]; then
            echo "$line"
        fi
    done
}
gone() { # pattern, seconds: whether nothing like it is left within that time
    for _ in $(seq $((20 * $2))); do
        alive "$1" >$out/left
        [ -s $out/left ] || return 0
        sleep 0.05
    done
    cat $out/left
    return 1
}
running() { [ "$(alive '^sleep 98765' | wc -l)" = 4 ]; }
four_run() { # seconds: whether four ranks come to sleep within that time
    for _ in $(seq $((20 * $1))); do
        running && return
        sleep 0.05
    done
    running
}
# Ours go within a second; Slurm's own daemon of a step takes its time to tell its controller.
nothing_left() { gone '(^|/)(wordcount|sleep 98765|transom (run|agent|exec-rank))' 1 && gone slurmstepd 10; }
