# SPDX-License-Identifier: ISC
# C source without the contents of comments, strings and character constants, line by line, so that a search in it
# finds code only. Prints FILE:LINE:CODE.
FNR == 1 { in_comment = 0 }
{
	out = ""
	n = length($0)
	for (i = 1; i <= n; i++) {
		c = substr($0, i, 1)
		two = substr($0, i, 2)
		if (in_comment) {
			if (two == "*/") {
				in_comment = 0
				i++
			}
		} else if (two == "/*") {
			in_comment = 1
			i++
			out = out " "
		} else if (two == "//") {
			break
		} else if (c == "\"" || c == "'") {
			out = out c
			for (i++; i <= n && substr($0, i, 1) != c; i++)
				if (substr($0, i, 1) == "\\")
					i++
			out = out c
		} else {
			out = out c
		}
	}
	print FILENAME ":" FNR ":" out
}
