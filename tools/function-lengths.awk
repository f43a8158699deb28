# SPDX-License-Identifier: ISC
# LINES FILE:LINE NAME EXCUSED for each function of C files in our style: the name at the start of a line, braces in
# the first column. EXCUSED is 1 when a comment with "long:" stands in the five lines above the name.
FNR == 1 { name = ""; start = 0; for (i = 1; i <= 6; i++) above[i] = "" }
/^[A-Za-z_][A-Za-z0-9_]*\(/ && !start {
	name = $0
	sub(/\(.*/, "", name)
	if (name ~ /^(START_TEST|START_LOOP_TEST)$/) {
		name = $0
		gsub(/^[A-Z_]*\(|\).*/, "", name)
	}
	excused = 0
	for (i = 1; i <= 6; i++)
		if (above[i] ~ /long:/)
			excused = 1
}
/^\{/ && name != "" { start = FNR }
/^\}/ && start {
	print FNR - start + 1, FILENAME ":" start, name, excused
	start = 0
	name = ""
}
{ above[FNR % 6 + 1] = $0 }
