/* Is each file well-formed XML, as far as Mural writes it? Tags match, attributes are quoted and there once, text has no bare `<` or `&`,
 * one element is at the top. No document types, no CDATA. Exit code 1 names file and byte. SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 64, NAME = 64, ATTRIBUTES = 32 };

typedef struct reader {
	const char *text, *at;
	char open[DEPTH][NAME];
	int depth, tops;
	const char *wrong; /* NULL: nothing is */
} reader;

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr(":_-.", c);
}

static size_t take_name(reader *r, char name[NAME])
{
	size_t n = 0;
	while (*r->at && is_name(*r->at) && n < NAME - 1)
		name[n++] = *r->at++;
	name[n] = '\0';
	if (n == 0)
		r->wrong = "expected a name";
	return n;
}

static void skip_blanks(reader *r)
{
	r->at += strspn(r->at, " \t\r\n");
}

/* Text or the value of an attribute, up to a character of `ends`. */
static void take_text(reader *r, const char *ends)
{
	static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
	while (*r->at && !strchr(ends, *r->at) && !r->wrong) {
		bool known = *r->at != '&';
		for (size_t e = 0; e < sizeof entities / sizeof *entities; e++)
			known |= strncmp(r->at, entities[e], strlen(entities[e])) == 0;
		if (!known)
			r->wrong = "an & that begins no entity";
		else if (*r->at == '<')
			r->wrong = "a < inside a value";
		else if ((unsigned char)*r->at < 0x20 && !strchr("\t\r\n", *r->at))
			r->wrong = "a control character";
		else
			r->at++;
	}
}

static void take_attributes(reader *r)
{
	char names[ATTRIBUTES][NAME];
	int n = 0;
	for (skip_blanks(r); !r->wrong && is_name(*r->at); skip_blanks(r)) {
		take_name(r, names[n]);
		for (int i = 0; i < n; i++)
			if (strcmp(names[i], names[n]) == 0)
				r->wrong = "an attribute that is there twice";
		if (n < ATTRIBUTES - 1)
			n++;
		char quote[2] = {r->at[0] == '=' ? r->at[1] : 0, 0};
		if (quote[0] != '"' && quote[0] != '\'') {
			r->wrong = "an attribute without a quoted value";
			return;
		}
		r->at += 2;
		take_text(r, quote);
		if (*r->at)
			r->at++;
	}
}

static void take_end(reader *r)
{
	char name[NAME];
	r->at += 2;
	take_name(r, name);
	skip_blanks(r);
	if (r->depth == 0 || strcmp(r->open[r->depth - 1], name) != 0)
		r->wrong = "an end tag that matches no start tag";
	else if (*r->at++ != '>')
		r->wrong = "expected >";
	else
		r->depth--;
}

static void take_tag(reader *r)
{
	if (r->at[1] == '/') {
		take_end(r);
		return;
	}
	if (r->at[1] == '?') {
		const char *end = strstr(r->at, "?>");
		if (!end || r->at != r->text)
			r->wrong = "a declaration that does not end, or not at the start";
		else
			r->at = end + 2;
		return;
	}
	r->at++;
	if (r->depth == DEPTH) {
		r->wrong = "too deep";
		return;
	}
	r->tops += r->depth == 0;
	if (take_name(r, r->open[r->depth]) == 0)
		return;
	take_attributes(r);
	if (r->wrong)
		return;
	if (strncmp(r->at, "/>", 2) == 0) {
		r->at += 2;
	} else if (*r->at == '>') {
		r->at++;
		r->depth++;
	} else {
		r->wrong = "expected > or />";
	}
}

static int check(const char *path)
{
	static char text[1 << 22];
	FILE *in = fopen(path, "r");
	size_t n = in ? fread(text, 1, sizeof text - 1, in) : 0;
	if (in)
		fclose(in);
	text[n] = '\0';
	reader r = {.text = text, .at = text};
	if (strlen(text) != n)
		r.wrong = "a NUL byte";
	while (*r.at && !r.wrong) {
		take_text(&r, "<");
		if (*r.at && !r.wrong)
			take_tag(&r);
	}
	if (!r.wrong && (r.depth > 0 || r.tops != 1))
		r.wrong = "expected one element that ends";
	if (r.wrong)
		fprintf(stderr, "%s:%zu: %s\n", path, (size_t)(r.at - text), r.wrong);
	return r.wrong != NULL;
}

int main(int argc, char **argv)
{
	int wrong = argc < 2;
	for (int i = 1; i < argc; i++)
		wrong |= check(argv[i]);
	return wrong;
}
