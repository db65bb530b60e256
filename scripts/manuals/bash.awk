# Completion for bash. SPDX-License-Identifier: MIT
END {
	print "# Completion of mural for bash; made by scripts/manuals/make from the program's own help."
	print "_mural() {"
	print "\tlocal current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} words="
	print "\tif [ \"$COMP_CWORD\" -eq 1 ]; then"
	printf "\t\twords='"
	for (i = 1; i <= n_commands; i++)
		printf "%s ", commands[i]
	print "--help --version'"
	print "\telse"
	print "\t\tcase ${COMP_WORDS[1]}:$previous in"
	for (i = 1; i <= n_commands; i++) {
		c = commands[i]
		for (k = 1; k <= n_options[c]; k++)
			if (choices(argument[c, k]) != "")
				print "\t\t" c ":" options[c, k] ") words='" choices(argument[c, k]) "' ;;"
			else if (argument[c, k] != "")
				print "\t\t" c ":" options[c, k] ") ;;"
		if (actions[c] != "")
			print "\t\t" c ":" c ") words='" actions[c] "' ;;"
		printf "\t\t%s:*) words='", c
		for (k = 1; k <= n_options[c]; k++)
			printf "%s%s", (k > 1 ? " " : ""), options[c, k]
		print "' ;;"
	}
	print "\t\tesac"
	print "\t\t[[ $words != --* || $current == -* ]] || words="
	print "\tfi"
	print "\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")"
	print "}"
	print "complete -o bashdefault -o default -F _mural mural"
}
