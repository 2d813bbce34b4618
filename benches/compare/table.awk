# Samples "LIBRARY ROW UNIT NUMBER", sorted by row, library and number -> a table: of each row and library the median, the best and
# (in brackets) the quartiles; and Transom's ratios of medians.

BEGIN {
    count = split(names, library, " ")
    order = "put+flush get+flush fetch_and_op+flush compare_and_swap+flush accumulate+flush get_accumulate+flush " \
        "rput+wait+flush lock+put+unlock put-1KiB+flush put-8KiB+flush put-rate accumulate-rate " \
        "contended-fetch_and_op+flush contended-fetch_and_op+flush-lesser-rank contended-64-fetch_and_op+flush " \
        "contended-64-fetch_and_op+flush-lesser-rank contended-locked-add contended-line-round-trip " \
        "shared-cache-fetch_and_op+flush shared-cache-64-fetch_and_op+flush shared-cache-locked-add " \
        "shared-cache-line-round-trip threads-1-put+flush threads-2-windows-put+flush " \
        "threads-2-targets-put+flush threads-1-fetch_and_op+flush threads-2-windows-fetch_and_op+flush " \
        "threads-2-targets-fetch_and_op+flush" \
        created() by_size("put get", "4KiB 64KiB 1MiB 4MiB", ",-64-same,-64-apart") \
        by_size("sum-double sum-float sum-int max-double band-long prod-complex", "4KiB 64KiB 1MiB", "")
}

# Rows of calls.c once more, over memory of the program's.
function created(    k, i, out) {
    for (i = 1; i <= split("put+flush get+flush fetch_and_op+flush compare_and_swap+flush accumulate+flush get_accumulate+flush " \
        "rput+wait+flush lock+put+unlock put-1KiB+flush put-8KiB+flush put-rate accumulate-rate", k, " "); i++) out = out " created-" k[i]
    return out
}

# Rows of bulk.c: each kind with each size in each manner.
function by_size(kinds, sizes, manners,    k, s, m, i, j, l, out) {
    for (i = 1; i <= split(kinds, k, " "); i++)
        for (j = 1; j <= split(sizes, s, " "); j++)
            for (l = 1; l <= split(manners "", m, ",") || l == 1; l++) out = out " " k[i] "-" s[j] m[l]
    return out
}

NF == 4 { n[$1, $2]++; value[$1, $2, n[$1, $2]] = $4; unit[$2] = $3 }

function at(name, row, part,    k) {
    k = int(part * (n[name, row] - 1) + 1.5)
    return value[name, row, k]
}

function cell(name, row,    best) {
    if (!n[name, row]) return "-"
    best = unit[row] == "ns" ? at(name, row, 0) : at(name, row, 1)
    return sprintf("%.4g  %.4g (%.4g-%.4g)", at(name, row, .5), best, at(name, row, .25), at(name, row, .75))
}

# Transom's median over another's; - if there is none.
function ratio(row, other) { return n["transom", row] && other > 0 ? sprintf("%.2f", at("transom", row, .5) / other) : "-" }

# Transom's median of one row over that of another.
function own(row, other) { return n["transom", other] ? ratio(row, at("transom", other, .5)) : "-" }

END {
    printf "%-44s %4s", "median  best (quartiles)", ""
    for (i = 1; i <= count; i++) printf "  %-30s", library[i]
    # What the last column compares with: the limit, where there is one.
    other = "ompi"
    for (i = 1; i <= count; i++) if (library[i] == "socket") other = "socket"
    printf "  %7s  %8s\n", "/ best", "/ " other
    rows = split(order, row, " ")
    for (r = 1; r <= rows; r++) {
        if (!(row[r] in unit)) continue
        printf "%-44s %4s", row[r], unit[row[r]]
        leader = 0
        for (i = 1; i <= count; i++) {
            name = library[i]
            printf "  %-30s", cell(name, row[r])
            if (name == "transom" || name == "socket" || !n[name, row[r]]) continue
            middle = at(name, row[r], .5)
            if (!leader || (unit[row[r]] == "ns" ? middle < leader : middle > leader)) leader = middle
        }
        if (unit[row[r]] == "%") print ""
        else printf "  %7s  %8s\n", ratio(row[r], leader), ratio(row[r], n[other, row[r]] ? at(other, row[r], .5) : 0)
    }
    kinds = unit["threads-1-put+flush"] ? split("put+flush fetch_and_op+flush", kind, " ") : 0
    for (k = 1; k <= kinds; k++) {
        one = "threads-1-" kind[k]
        printf "transom, %s: at MPI_THREAD_MULTIPLE %s x as long; two threads on windows %s x, on targets %s x as long as one\n", \
            kind[k], own(one, kind[k]), own("threads-2-windows-" kind[k], one), own("threads-2-targets-" kind[k], one)
    }
    print "/ best, / " other ": Transom's median over that of the best of the others, of " other ": for ns less is better, for others more"
}
