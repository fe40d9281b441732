# Instructions in the shortest loop of a function that has all of `wanted`; a function without a loop is counted whole. Reads assembly
# as rustc prints it. Given: `name`, part of the function's symbol; `wanted`, regular expressions separated by spaces.
# Prints a number, or a reason, which does not begin with a digit.

# The lines of the function from `first` to the current one, unless what was found before is shorter.
function consider(first,    i, j, missing, found_calls) {
    if (best && count - first >= best) return
    for (j in patterns) missing[j]
    for (i = first; i < count; i++) {
        if (line[i] ~ /^\t(call|bl|blr)[a-z]*\t/) found_calls++
        for (j in missing) if (line[i] ~ patterns[j]) delete missing[j]
    }
    for (j in missing) return
    best = count - first
    calls = found_calls
}

BEGIN { split(wanted, patterns, " ") }
/^_R[^ ]*:/ {
    inside = index($0, name) > 0
    functions += inside
}
!inside { next }
/^\.Lfunc_end/ {
    if (!loops) consider(0)
    inside = 0
}
/^\.L[A-Za-z0-9_]+:/ {
    sub(/:.*/, "")
    label[$0] = count
}
/^\t[a-z]/ {
    line[count++] = $0
    # A jump to a label that was already met closes a loop.
    if ($1 ~ /^(j|b|cb|tb)/ && $NF in label) {
        loops++
        consider(label[$NF])
    }
}
END {
    if (functions != 1) print "found " functions + 0 " functions called " name
    else if (!best) print "no loop has all of " wanted
    else if (calls) print "the loop calls a function"
    else print best
}
