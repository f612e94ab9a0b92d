/*
 * conf/yaml: what is read, with places, and each way a file can be wrong or hostile.
 */
#include "unit.h"

#include <string.h>

#include "agent/base/buf.h"
#include "conf/yaml.h"

struct fixture {
	struct arena *arena;
	struct problems problems;
	const struct yaml_node *root;
};

static struct fixture parse_bytes(const char *text, size_t length)
{
	struct fixture fixture = {.arena = arena_new()};
	fixture.problems.arena = fixture.arena;
	fixture.root = yaml_parse(fixture.arena, "f.yaml", text, length, &fixture.problems);
	return fixture;
}

static struct fixture parse(const char *text)
{
	return parse_bytes(text, strlen(text));
}

/* The tree on one line: {a:1,b:[x,'y']}. */
static void print(const struct yaml_node *node, struct buf *out)
{
	switch (node->kind) {
	case YAML_SCALAR: buf_printf(out, node->quoted ? "'%s'" : "%s", node->text); break;
	case YAML_LIST:
		for (size_t i = 0; i < node->count; i++) {
			buf_char(out, i ? ',' : '[');
			print(node->items[i], out);
		}
		buf_text(out, node->count ? "]" : "[]");
		break;
	case YAML_MAP:
		for (size_t i = 0; i < node->count; i++) {
			buf_char(out, i ? ',' : '{');
			print(node->entries[i].key, out);
			buf_char(out, ':');
			print(node->entries[i].value, out);
		}
		buf_text(out, node->count ? "}" : "{}");
		break;
	}
}

static void expect_tree(const char *text, const char *tree)
{
	struct buf out = {0};
	struct fixture fixture = parse(text);
	for (size_t i = 0; i < fixture.problems.count; i++)
		fail_msg("%s", fixture.problems.items[i].text);
	assert_non_null(fixture.root);
	print(fixture.root, &out);
	assert_string_equal(out.data, tree);
	buf_free(&out);
	arena_free(fixture.arena);
}

static void expect_problem(const char *text, size_t length, const char *problem)
{
	struct fixture fixture = parse_bytes(text, length);
	assert_int_equal(fixture.problems.count, 1);
	assert_int_equal(fixture.problems.errors, 1);
	assert_string_equal(fixture.problems.items[0].text, problem);
	arena_free(fixture.arena);
}

static void expect_error(const char *text, const char *problem)
{
	expect_problem(text, strlen(text), problem);
}

static void test_trees(void **state)
{
	(void)state;
	expect_tree("a: 1\nb: [x, 'y']\nc:\n", "{a:1,b:[x,'y'],c:}");
	expect_tree("- |\n  x\n- >-\n  y\n  z\n- \"q\\n\"\n", "['x\n','y z','q\n']");
	expect_tree("%YAML 1.1\n---\na: b\n...\n", "{a:b}");
	expect_tree("\xef\xbb\xbf"
		    "a: \xc3\xa9\r\nb: c\r\n",
		"{a:\xc3\xa9,b:c}");
	expect_tree("{}", "{}");
	expect_tree("[]", "[]");
	expect_tree("a: !!str 1\nb: !!int 2\nc: ! x\n", "{a:'1',b:'2',c:'x'}");
	expect_tree("a: &x {b: 1}\nc: *x\nd: *x\n", "{a:{b:1},c:{b:1},d:{b:1}}");
	expect_tree("- &x 1\n- &x 2\n- *x\n", "[1,2,2]");
}

static void test_places(void **state)
{
	(void)state;
	struct fixture fixture = parse("a: 1\n\xc3\xa4: {b: [c,\n   d]}\n");
	const struct yaml_node *list = yaml_get(yaml_get(fixture.root, "\xc3\xa4"), "b");
	assert_non_null(list);
	assert_string_equal(list->file, "f.yaml");
	assert_int_equal(list->line, 2);
	assert_int_equal(list->column, 8);
	assert_int_equal(list->items[1]->line, 3);
	assert_int_equal(list->items[1]->column, 4);
	assert_null(yaml_get(fixture.root, "nothing"));
	assert_null(yaml_get(list, "b"));
	assert_null(yaml_get(NULL, "b"));
	arena_free(fixture.arena);
}

static void test_nulls(void **state)
{
	(void)state;
	struct fixture fixture = parse("[~, null, Null, NULL, '', 'null', nil, 0]");
	const bool is_null[] = {true, true, true, true, false, false, false, false};
	for (size_t i = 0; i < fixture.root->count; i++)
		assert_int_equal(yaml_is_null(fixture.root->items[i]), is_null[i]);
	assert_false(yaml_is_null(fixture.root));
	arena_free(fixture.arena);
}

static void test_empty(void **state)
{
	(void)state;
	const char *const texts[] = {"", "# nothing\n", "---\n", "~\n", "\n\n"};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct fixture fixture = parse(texts[i]);
		assert_null(fixture.root);
		assert_int_equal(fixture.problems.count, 0);
		arena_free(fixture.arena);
	}
}

static void test_merge(void **state)
{
	(void)state;
	expect_tree("- &a {x: 1, y: 2}\n- {<<: *a, y: 3, z: 4}\n", "[{x:1,y:2},{x:1,y:3,z:4}]");
	expect_tree("- {<<: {x: 1}, y: 2}\n", "[{x:1,y:2}]");
	expect_tree("- &a {x: 1}\n- &b {x: 2, y: 2}\n- {z: 3, <<: [*a, *b]}\n",
		"[{x:1},{x:2,y:2},{x:1,y:2,z:3}]");
	expect_tree("- {'<<': 1}\n", "[{'<<':1}]");
	expect_tree("- {<<: ~, x: 1}\n", "[{x:1}]");
	expect_error("{<<: 1}", "f.yaml:1:6: \"<<\": expected a map or a list of maps");
	expect_error("{<<: [{a: 1}, b]}", "f.yaml:1:15: \"<<\": expected a map or a list of maps");
	expect_error("<<: {a: 1}\n<<: {b: 1}\n<<: {c: 1}\n",
		"f.yaml:3:1: duplicate key \"<<\": first defined at line 2");
}

static void test_errors(void **state)
{
	(void)state;
	expect_error(
		"a: 1\nb: 2\na: 3\n", "f.yaml:3:1: duplicate key \"a\": first defined at line 1");
	expect_error("? [a]\n: b\n", "f.yaml:1:3: a key must be a scalar");
	expect_error("a: 1\n---\nb: 2\n",
		"f.yaml:2:1: a second document: only one per file is supported");
	expect_error("a: *x\n", "f.yaml:1:4: the alias \"*x\" has no anchor");
	expect_error("a: &x [*x]\n", "f.yaml:1:8: the alias \"*x\" contains itself");
	expect_error("a: &x {b: {c: *x}}\n", "f.yaml:1:15: the alias \"*x\" contains itself");
	expect_error("a: !env X\n", "f.yaml:1:4: the tag \"!env\" is not supported");
	expect_error("a:\n\tb: 1\n", "f.yaml:2:1: a tab character: indent YAML with spaces");
	expect_error("\xc3\xa4: 1\nb: \"\xc3\xa4\xff\"\n", "f.yaml:2:6: not UTF-8: byte 0xff");
	expect_error("a: \x01\n", "f.yaml:1:4: a control character (code 1)");
	expect_problem("a: \0b\n", 6, "f.yaml:1:4: a control character (code 0)");
	expect_error("a: \"x\\0y\"\n", "f.yaml:1:4: a NUL character");
}

static void test_syntax(void **state)
{
	(void)state;
	struct fixture fixture = parse("a: [1, 2\nb: 3\n");
	assert_int_equal(fixture.problems.errors, 1);
	assert_null(fixture.root);
	assert_non_null(strstr(fixture.problems.items[0].text, "f.yaml:2:"));
	assert_non_null(strstr(fixture.problems.items[0].text, "not YAML: "));
	arena_free(fixture.arena);
}

static void test_all_duplicates(void **state)
{
	(void)state;
	struct fixture fixture = parse("a: 1\na: 2\nb: {c: 1, c: 2}\n");
	assert_int_equal(fixture.problems.errors, 2);
	assert_non_null(fixture.root);
	assert_string_equal(yaml_get(fixture.root, "a")->text, "1");
	arena_free(fixture.arena);
}

static void nest(struct buf *text, const char *open, const char *close, int depth)
{
	buf_clear(text);
	for (int i = 0; i < depth; i++)
		buf_text(text, open);
	buf_char(text, 'x');
	for (int i = 0; i < depth; i++)
		buf_text(text, close);
}

static void test_depth(void **state)
{
	(void)state;
	struct buf text = {0};
	nest(&text, "[", "]", 10000);
	expect_error(text.data, "f.yaml:1:101: nested too deeply: more than 100 levels");
	nest(&text, "{a: ", "}", 10000);
	expect_error(text.data, "f.yaml:1:398: nested too deeply: more than 100 levels");
	nest(&text, "- ", "", 10000);
	expect_error(text.data, "f.yaml:1:201: nested too deeply: more than 100 levels");
	nest(&text, "[", "]", 99);
	struct fixture fixture = parse(text.data);
	assert_int_equal(fixture.problems.count, 0);
	arena_free(fixture.arena);
	buf_clear(&text);
	for (int i = 0; i < 10000; i++)
		buf_printf(&text, "%*sa:\n", i, "");
	fixture = parse(text.data);
	assert_int_equal(fixture.problems.errors, 1);
	assert_string_equal(fixture.problems.items[0].text,
		"f.yaml:100:100: nested too deeply: more than 100 levels");
	arena_free(fixture.arena);
	buf_free(&text);
}

/* Nine aliases of nine aliases ...: 28 nodes that are 9^9 leaves. */
static void test_alias_bombs(void **state)
{
	(void)state;
	struct buf text = {0};
	buf_text(&text, "a0: &a0 [x]\n");
	for (int i = 1; i < 10; i++) {
		buf_printf(&text, "a%d: &a%d [*a%d", i, i, i - 1);
		for (int j = 1; j < 9; j++)
			buf_printf(&text, ", *a%d", i - 1);
		buf_text(&text, "]\n");
	}
	struct fixture fixture = parse(text.data);
	assert_int_equal(fixture.problems.errors, 1);
	assert_non_null(strstr(fixture.problems.items[0].text, "too many values"));
	assert_true(arena_size(fixture.arena) < 1000000);
	arena_free(fixture.arena);

	buf_clear(&text);
	buf_text(&text, "- &a {");
	for (int i = 0; i < 10000; i++)
		buf_printf(&text, "k%d: 1, ", i);
	buf_text(&text, "}\n");
	for (int i = 0; i < 10000; i++)
		buf_text(&text, "- {<<: *a}\n");
	fixture = parse(text.data);
	assert_int_equal(fixture.problems.errors, 1);
	assert_non_null(strstr(fixture.problems.items[0].text, "too many values"));
	assert_true(arena_size(fixture.arena) < 400000000);
	arena_free(fixture.arena);
	buf_free(&text);
}

/* Many anchors, many aliases, many keys: none of it quadratic (a quadratic search would take
 * minutes). */
static void test_many(void **state)
{
	(void)state;
	enum { MANY = 200000 };
	struct buf text = {0};
	for (int i = 0; i < MANY; i++)
		buf_printf(&text, "k%d: &anchor%d x\n", i, i);
	for (int i = 0; i < MANY; i++)
		buf_printf(&text, "l%d: *anchor%d\n", i, i);
	struct fixture fixture = parse(text.data);
	assert_int_equal(fixture.problems.count, 0);
	assert_int_equal(fixture.root->count, 2 * MANY);
	arena_free(fixture.arena);
	buf_free(&text);
}

static void test_problems(void **state)
{
	(void)state;
	struct arena *arena = arena_new();
	struct problems problems = {.arena = arena};
	const struct yaml_node node = {.file = "f.yaml", .line = 3, .column = 7};
	char longest[3000];
	problems_add(&problems, true, &node, "key \"%s\"", "a\x1b[31m\n");
	assert_string_equal(problems.items[0].text, "f.yaml:3:7: warning: key \"a?[31m?\"");
	problems_add_file(&problems, false, "g.yaml", 0, 0, "gone");
	assert_string_equal(problems.items[1].text, "g.yaml: gone");
	assert_int_equal(problems.errors, 1);
	for (size_t i = 0; i + 1 < sizeof longest; i += 2)
		memcpy(longest + i, "\xc3\xa4", 2);
	longest[sizeof longest - 2] = '\0';
	problems_add(&problems, false, &node, "%s", longest);
	size_t length = strlen(problems.items[2].text);
	assert_in_range(length, 1000, 1020);
	assert_int_equal((unsigned char)problems.items[2].text[length - 1], 0xa4);
	arena_free(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trees),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_nulls),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_merge),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_syntax),
		cmocka_unit_test(test_all_duplicates),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_alias_bombs),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_problems),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
