#include "agent/commands/answer_table.h"

#include "agent/report/csv.h"
#include "agent/report/document.h"
#include "agent/report/table.h"

void answer_print(const struct cli *cli, json_t *answer)
{
	struct buf text = {0};

	document_put(&text, answer, true);
	buf_char(&text, '\n');
	text_flush(&text, cli->out);
}

void answer_emit(const struct cli *cli, json_t *answer, const json_t *items,
	const char *const *columns, enum cli_output output)
{
	switch (output) {
	case OUTPUT_TEXT: document_table(cli->arena, items, columns, cli->out); break;
	case OUTPUT_JSON: answer_print(cli, answer); break;
	case OUTPUT_CSV:
		csv_put_header(NULL, columns, false, cli->out);
		for (size_t i = 0; i < json_array_size(items); i++)
			csv_put_row(NULL, json_array_get(items, i), columns, false, cli->out);
		break;
	}
}
