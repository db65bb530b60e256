/* Help and docs/configuration.md, from the table. SPDX-License-Identifier: MIT */
#include "engine/config_build.h"

#include <stdio.h>
#include <string.h>

#define COLUMN 30 /* where explanations begin */
#define WIDTH 112 /* columns of a line */

static const char *type_text(const mu_config_row *row)
{
	switch (row->type) {
	case MU_CONFIG_BLOCK: return "object";
	case MU_CONFIG_ANY: return "any";
	case MU_CONFIG_BOOL: return "true, false";
	case MU_CONFIG_WHOLE: return "whole number";
	case MU_CONFIG_REAL: return row->flags & MU_CONFIG_INTEGER ? "whole number" : "number";
	case MU_CONFIG_TEXT: return "text";
	case MU_CONFIG_CHOICE: return "one of";
	case MU_CONFIG_REALS:
	case MU_CONFIG_FLOATS: return "numbers";
	case MU_CONFIG_SIDES: return "one or two whole numbers";
	case MU_CONFIG_SET: return "list of";
	case MU_CONFIG_SHARES: return "equal, auto, a whole number per rank, or replay:FILE";
	}
	return "";
}

static const char *support_text(const mu_config_row *row)
{
	switch (row->support) {
	case MU_CONFIG_OBEYED: return "";
	case MU_CONFIG_TUNES: return "ignored with W-UNSUPPORTED";
	case MU_CONFIG_CHANGES: return "refused unless default";
	}
	return "";
}

/* "whole number, [1, inf)", "one of a, b". In a table of Markdown a bar would end the cell. */
static void print_type(FILE *out, const mu_config_row *row)
{
	bool choices = row->range && strchr("[(", row->range[0]) == NULL;
	fputs(choices && row->type != MU_CONFIG_SET ? "one of" : type_text(row), out);
	if (!row->range)
		return;
	fputs(choices ? " " : ", ", out);
	for (const char *p = row->range; *p; p++) {
		if (choices && *p == '|')
			fputs(", ", out);
		else
			fputc(*p, out);
	}
}

static void print_row_markdown(FILE *out, const mu_config_row *row)
{
	fprintf(out, "| `%s` | ", row->key);
	if (row->option)
		fprintf(out, "`--%s`", row->option);
	fputs(" | ", out);
	print_type(out, row);
	fprintf(out, " | %s%s%s | %s", row->fallback ? "`" : "",
	        row->fallback ? *row->fallback ? row->fallback : "\"\"" : "", row->fallback ? "`" : "", row->help);
	if (*support_text(row))
		fprintf(out, " (%s)", support_text(row));
	if (row->alias)
		fprintf(out, "; also `%s`", row->alias);
	fputs(" |\n", out);
}

static void print_row_plain(FILE *out, const mu_config_row *row)
{
	fprintf(out, "%s\n    ", row->key);
	print_type(out, row);
	if (row->fallback)
		fprintf(out, ", default %s", *row->fallback ? row->fallback : "\"\"");
	if (row->option)
		fprintf(out, ", --%s", row->option);
	if (*support_text(row))
		fprintf(out, ", %s", support_text(row));
	fprintf(out, "\n    %s\n", row->help);
}

static const char markdown_head[] =
        "# Configuration\n"
        "\n"
        "<!-- Made from src/engine/config_table.c: MURAL_WRITE_DOCS=1 ctest -R config_print writes it anew. -->\n"
        "\n"
        "A configuration file is DeepSpeed's, read as HJSON: comments (`#`, `//`, `/* */`), trailing commas and keys "
        "without\n"
        "quotes are fine. Mural's own settings stand in the block `mural`. The command line has priority over the "
        "file, the\n"
        "file over the model's preset, the preset over the defaults. `--show-config` prints every value in force and "
        "where it\n"
        "comes from, in the same format.\n"
        "\n"
        "`train_batch_size` = `train_micro_batch_size_per_gpu` x `gradient_accumulation_steps` x ranks. Two of the "
        "three settle\n"
        "the third; one of the two sizes alone means accumulation 1. The value `\"auto\"` means: from the command "
        "line, else\n"
        "derived, else the default.\n"
        "\n"
        "Mistakes are found before anything starts, with file, line and key. In the blocks that DeepSpeed checks "
        "itself\n"
        "(`zero_optimization`, `fp16`, `bf16`, the monitors), in `params` and in `mural` an unknown key is an error. "
        "Elsewhere it\n"
        "is a warning, and `--strict-config` makes every warning an error. A key that begins with `_` is a comment.\n"
        "\n"
        "| warning | means |\n"
        "| --- | --- |\n"
        "| W-UNKNOWN | a key that nobody knows, ignored |\n"
        "| W-MISPLACED | a known key in the wrong block, ignored |\n"
        "| W-DEPRECATED | an old spelling, read as the new one |\n"
        "| W-COERCED | a value of another type, converted |\n"
        "| W-NOEFFECT | valid, but does nothing here |\n"
        "| W-UNSUPPORTED | known to DeepSpeed, without influence on the result, not in Mural |\n"
        "| W-AUTO | a batch size \"auto\" was derived |\n"
        "\n"
        "Keys that DeepSpeed knows, Mural does not have and that would change the result are refused by `mural "
        "train`.\n"
        "\n"
        "```\n"
        "{\n"
        "  \"train_batch_size\": 256,\n"
        "  \"optimizer\": { \"type\": \"AdamW\", \"params\": { \"lr\": 5e-4, \"weight_decay\": 0.05 } },\n"
        "  \"mural\": {\n"
        "    \"model\": \"vit_ti_4\", \"image_size\": 28, \"channels\": 1, \"classes\": 10,\n"
        "    \"data\": { \"path\": \"fashion-mnist\", \"crop_padding\": 2, \"flip\": 0.5 },\n"
        "    \"epochs\": 3, \"schedule\": \"cosine\", \"warmup_epochs\": 0.5, # linear, then half a cosine\n"
        "  }\n"
        "}\n"
        "```\n";

static const char markdown_tail[] =
        "\n"
        "## Formulas of the schedules\n"
        "\n"
        "n = 1, 2, 3, ... is the number of the optimizer step; steps that are skipped do not count. Mural's own "
        "`cosine`, with\n"
        "k = n - 1, W warm-up steps and T steps in all, is\n"
        "\n"
        "- for k < W: lr (k + 1) / W\n"
        "- then: min_lr + (lr - min_lr) (1 + cos(pi (k - W) / max(1, T - 1 - W))) / 2, and min_lr from step T on\n"
        "\n"
        "DeepSpeed's are computed as DeepSpeed does: step 1 uses the first value of the schedule, and step n >= 2 the\n"
        "formula at i = n - 2, so the first two steps of a warm-up have the same rate. g is the warm-up's share of i < "
        "W:\n"
        "ln(i + 1) / ln(W) for `log`, i / W for `linear`; W is `warmup_num_steps`, at least 2; T is "
        "`total_num_steps`.\n"
        "\n"
        "| type | learning rate at i |\n"
        "| --- | --- |\n"
        "| WarmupLR | min + (max - min) g for i < W, then max |\n"
        "| WarmupDecayLR | the same for i < W, then min + (max - min) max(0, (T - i) / max(1, T - W)) |\n"
        "| WarmupCosineLR | lr (wmin + (1 - wmin) g) for i < W, then lr (cmin + (1 - cmin) (1 + cos(pi p)) / 2) with "
        "p = min(1, (i - W + 1) / max(1, T - W)), wmin = `warmup_min_ratio`, cmin = `cos_min_ratio` |\n"
        "| OneCycle | min + (max - min) s, where s rises from 0 to 1 in `cycle_first_step_size` steps and falls back "
        "in "
        "`cycle_second_step_size`; after the cycle min / (1 + `decay_lr_rate` k / `decay_step_size`), k = 1, 2, ...; "
        "beta1 goes the other way, beta2 is 0.99 |\n"
        "| LRRangeTest | min (1 + rate x) with x = (n - 1) / size, rounded down for a staircase |\n";

void mural_config_help(FILE *out, bool markdown)
{
	if (markdown)
		fputs(markdown_head, out);
	size_t block = 0; /* outermost row of the table that is being written; 0: no block */
	bool table = false;
	for (size_t i = 0; i < mu_config_row_count; i++) {
		const mu_config_row *row = &mu_config_rows[i];
		if (!markdown) {
			print_row_plain(out, row);
			continue;
		}
		/* A table per outermost block; the keys outside blocks come first. */
		size_t top = i;
		while (mu_config_block_of(top) != MU_CONFIG_NO_ROW)
			top = mu_config_block_of(top);
		bool block_row = mu_config_rows[top].type == MU_CONFIG_BLOCK;
		if (!table || (block_row ? top != block : block != 0)) {
			fprintf(out, "\n## %s%s%s\n\n", block_row ? "`" : "",
			        block_row ? mu_config_rows[top].key
			        : block   ? "Other blocks"
			                  : "Top level",
			        block_row ? "`" : "");
			fputs("| key | option | value | default | meaning |\n| --- | --- | --- | --- | --- |\n", out);
			block = block_row ? top : 0;
			table = true;
		}
		print_row_markdown(out, row);
	}
	if (markdown)
		fputs(markdown_tail, out);
}

/* Words from `column` on, the next lines as far in. */
static void print_wrapped(FILE *out, const char *text)
{
	int at = COLUMN;
	while (*text) {
		int n = (int)strcspn(text, " ");
		if (at > COLUMN && at + 1 + n > WIDTH) {
			fprintf(out, "\n%*s", COLUMN, "");
			at = COLUMN;
		} else if (at > COLUMN) {
			fputc(' ', out);
			at++;
		}
		fprintf(out, "%.*s", n, text);
		at += n;
		text += n + strspn(text + n, " ");
	}
	fputc('\n', out);
}

static void print_option(FILE *out, const char *option, const char *argument, const char *help)
{
	int width = fprintf(out, "  --%s%s%s", option, *argument ? " " : "", argument);
	if (width >= COLUMN) {
		fputc('\n', out);
		width = 0;
	}
	fprintf(out, "%*s", COLUMN - width, "");
	print_wrapped(out, help);
}

static const char *argument_text(const mu_config_row *row)
{
	switch (row->type) {
	case MU_CONFIG_WHOLE: return "N";
	case MU_CONFIG_REAL: return "X";
	case MU_CONFIG_TEXT: return row->range ? row->range : "TEXT";
	case MU_CONFIG_CHOICE: return row->range;
	case MU_CONFIG_REALS:
	case MU_CONFIG_FLOATS: return "X,X,...";
	case MU_CONFIG_SIDES: return "N|HxW";
	case MU_CONFIG_SET: return "WORD,WORD,...";
	case MU_CONFIG_SHARES: return "equal|auto|N,N,...|replay:FILE";
	case MU_CONFIG_BOOL:
	case MU_CONFIG_BLOCK:
	case MU_CONFIG_ANY: return "";
	}
	return "";
}

static bool counts(size_t row, bool evaluation)
{
	return mu_config_rows[row].option && (!evaluation || (mu_config_rows[row].flags & MU_CONFIG_EVAL));
}

/* Several rows may share an option: it is listed once, with what it means for each. */
static bool is_listed(size_t row)
{
	for (size_t i = 0; i < row; i++)
		if (mu_config_rows[i].option && !strcmp(mu_config_rows[i].option, mu_config_rows[row].option))
			return true;
	return false;
}

static void print_row_option(FILE *out, size_t first)
{
	const mu_config_row *row = &mu_config_rows[first];
	char option[64], argument[160] = "", help[640] = "";
	snprintf(option, sizeof option, "%s%s", row->type == MU_CONFIG_BOOL ? "[no-]" : "", row->option);
	for (size_t i = first; i < mu_config_row_count; i++) {
		const mu_config_row *r = &mu_config_rows[i];
		size_t used = strlen(help), used_argument = strlen(argument);
		if (!r->option || strcmp(r->option, row->option))
			continue;
		if (i == first || r->type == MU_CONFIG_CHOICE || r->type != row->type)
			snprintf(argument + used_argument, sizeof argument - used_argument, "%s%s",
			         used_argument ? "|" : "", argument_text(r));
		bool tell_default = r->fallback && *r->fallback && r->type != MU_CONFIG_BOOL;
		snprintf(help + used, sizeof help - used, "%s%s%s%s%s [%s]", used ? "; " : "", r->help,
		         tell_default ? " (default " : "", tell_default ? r->fallback : "", tell_default ? ")" : "",
		         r->key);
	}
	print_option(out, option, argument, help);
}

void mural_config_help_options(FILE *out, bool evaluation)
{
	print_option(out, "precision", "fp32|bf16|fp16",
	             "type of parameters and activations [fp16.enabled, bf16.enabled]");
	for (size_t i = 0; i < mu_config_row_count; i++)
		if (counts(i, evaluation) && !is_listed(i))
			print_row_option(out, i);
	for (size_t i = 0; i < mu_config_short_count && !evaluation; i++)
		print_option(out, mu_config_shorts[i].option, "X", mu_config_shorts[i].help);
}
