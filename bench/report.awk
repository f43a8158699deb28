# SPDX-License-Identifier: ISC
#
# Markdown tables from one of compare.sh's CSV files: awk -f report.awk -v
# what=load|strace|idle FILE. A cell holds the median of its rounds; a ratio is
# the median of the ratios of runs of the same round, which ran side by side.

BEGIN { FS = "," }

FNR == 1 {
	for (i = 1; i <= NF; i++)
		column[$i] = i
	next
}

what == "load" && $1 > 0 { load_row() }
what == "strace" { strace_row() }
what == "idle" { idle_row() }

END {
	if (what == "load")
		load_report()
	else if (what == "strace")
		strace_report()
	else
		idle_report()
}

# remember(set, x): x joins an ordered set.
function remember(set, x)
{
	if ((set, x) in seen)
		return
	seen[set, x] = 1
	member[set, ++size[set]] = x
}

# add(cell, x): one more value of that cell.
function add(cell, x)
{
	if (x != "")
		value[cell, ++n[cell]] = x
}

function median(cell,    i, j, t, v, k)
{
	k = n[cell]
	if (!k)
		return ""
	for (i = 1; i <= k; i++) {
		t = value[cell, i] + 0
		for (j = i - 1; j >= 1 && v[j] > t; j--)
			v[j + 1] = v[j]
		v[j + 1] = t
	}
	return k % 2 ? v[(k + 1) / 2] : (v[k / 2] + v[k / 2 + 1]) / 2
}

function show(format, x)
{
	return x == "" ? "-" : sprintf(format, x)
}

# -- load ------------------------------------------------------------------

function get(name)
{
	return $(column[name])
}

function load_row(    cell)
{
	cell = get("mode") SUBSEP get("system") SUBSEP get("clients")
	remember("mode", get("mode"))
	remember("system", get("system"))
	remember("clients", get("clients"))
	if (get("round") > rounds)
		rounds = get("round") + 0
	if (get("status") != "ok") {
		failed[cell]++
		return
	}
	load_metric("tps", cell, get("tps"))
	load_metric("cpu", cell, get("cpu_us_per_tx"))
	load_metric("latency", cell, get("latency_ms"))
	load_metric("p99", cell, get("p99_ms"))
	load_metric("rss", cell, get("rss_kib"))
}

function load_metric(metric, cell, x)
{
	if (x == "")
		return
	has[metric] = 1
	add(metric SUBSEP cell, x)
	by_round[metric, cell, get("round")] = x
}

function load_report()
{
	has["tps"] = 1
	load_table("tps", "Transactions per second", "%.0f")
	load_table("cpu", "CPU microseconds of the pooler per transaction (user and system)", "%.1f")
	load_table("latency", "Average latency, ms", "%.2f")
	load_table("p99", "99th percentile of the latency, ms", "%.2f")
	load_table("rss", "Resident memory of the pooler at most, KiB", "%.0f")
}

function load_table(metric, title, format,    m, s)
{
	if (!has[metric])
		return
	printf "\n**%s** (median of %d)\n\n", title, rounds
	heading("| mode | system |", size["clients"], "clients")
	for (m = 1; m <= size["mode"]; m++) {
		for (s = 1; s <= size["system"]; s++)
			load_line(metric, format, member["mode", m], member["system", s])
		if (("system", "pgweir") in seen && ("system", "pgbouncer") in seen)
			ratio_line(metric, member["mode", m])
	}
}

function heading(start, columns, set,    i, rule)
{
	printf "%s", start
	rule = "|---|---|"
	for (i = 1; i <= columns; i++) {
		printf " %s |", member[set, i]
		rule = rule "--:|"
	}
	printf "\n%s\n", rule
}

function load_line(metric, format, mode, who,    i, cell, line, some)
{
	for (i = 1; i <= size["clients"]; i++) {
		cell = mode SUBSEP who SUBSEP member["clients", i]
		some += n[metric, cell] + failed[cell]
		line = line " " show(format, median(metric SUBSEP cell)) \
			(failed[cell] ? sprintf(" (%d failed)", failed[cell]) : "") " |"
	}
	# A system without a process of its own has no CPU and no memory.
	if (some && !(who == "direct" && (metric == "cpu" || metric == "rss")))
		printf "| %s | %s |%s\n", mode, who, line
}

function ratio_line(metric, mode,    i, r, a, b, cell)
{
	printf "| %s | *pgweir / pgbouncer* |", mode
	for (i = 1; i <= size["clients"]; i++) {
		cell = "ratio" SUBSEP metric SUBSEP mode SUBSEP i
		for (r = 1; r <= rounds; r++) {
			a = by_round[metric, mode, "pgweir", member["clients", i], r]
			b = by_round[metric, mode, "pgbouncer", member["clients", i], r]
			if (a != "" && b > 0)
				add(cell, a / b)
		}
		printf " *%s* |", show("%.2f", median(cell))
	}
	printf "\n"
}

# -- strace ----------------------------------------------------------------

function strace_row(    cell)
{
	cell = get("mode") ", " get("clients") SUBSEP get("system")
	remember("cells", cell)
	remember("calls", get("syscall"))
	calls[cell, get("syscall")] = get("calls_per_tx")
	calls[cell, "all"] += get("calls_per_tx")
	most[get("syscall")] += get("calls_per_tx")
}

function strace_report(    i, j, part, line, name)
{
	printf "\n**System calls of the pooler per transaction** (strace slows it down, so wake-ups carry more events than usual)\n\n"
	remember("shown", "all")
	# What is rarer than one in fifty transactions is noise.
	for (j = 1; j <= size["calls"]; j++)
		if (most[member["calls", j]] / size["cells"] >= 0.02)
			remember("shown", member["calls", j])
	heading("| mode, clients | system |", size["shown"], "shown")
	for (i = 1; i <= size["cells"]; i++) {
		split(member["cells", i], part, SUBSEP)
		line = ""
		for (j = 1; j <= size["shown"]; j++) {
			name = member["shown", j]
			line = line " " show("%.2f", calls[member["cells", i], name]) " |"
		}
		printf "| %s | %s |%s\n", part[1], part[2], line
	}
}

# -- idle ------------------------------------------------------------------

function idle_row(    s)
{
	s = get("system")
	remember("system", s)
	idle = get("idle")
	add("before" SUBSEP s, get("rss_before"))
	add("with" SUBSEP s, get("rss_with"))
	add("after" SUBSEP s, get("rss_after"))
	add("each" SUBSEP s, (get("rss_with") - get("rss_before")) / idle)
	add("tps" SUBSEP s, get("tps_alone"))
	add("tps_ratio" SUBSEP s, get("tps_beside") / get("tps_alone"))
	add("cpu" SUBSEP s, get("cpu_alone"))
	add("cpu_ratio" SUBSEP s, get("cpu_beside") / get("cpu_alone"))
}

function idle_report(    i, s)
{
	printf "\n**%d idle clients, each having run one query, and 64 active ones** (median of %d)\n\n", idle, n["before", member["system", 1]]
	print "| system | RSS before, KiB | with them | after they left | KiB a client | tps of 64 alone | beside them | CPU us of 64 alone | beside them |"
	print "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
	for (i = 1; i <= size["system"]; i++) {
		s = member["system", i]
		printf "| %s | %d | %d | %d | %.2f | %.0f | x %.2f | %.1f | x %.2f |\n", s,
			median("before" SUBSEP s), median("with" SUBSEP s), median("after" SUBSEP s),
			median("each" SUBSEP s), median("tps" SUBSEP s), median("tps_ratio" SUBSEP s),
			median("cpu" SUBSEP s), median("cpu_ratio" SUBSEP s)
	}
}
