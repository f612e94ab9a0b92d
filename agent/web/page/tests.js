// The monitored tests: what state each is in, and one of them with its configuration.
import {get, post} from './api.js';
import {address, ago, duration, facts, h, many, name, names, notice, number, plain, remember, replace, style, time, to, waiting} from './dom.js';
import {choice, due, keepLooking, mark, redraw, table} from './states.js';
import {keyboard} from './triage.js';

const PAGE = 100;

const states = {
	failing: ['bad', '✕', 'failing'],
	stale: ['soon', '◔', 'no new data'],
	new: ['idle', '○', 'not run yet'],
	ok: ['good', '✓', 'ok'],
	elsewhere: ['idle', '→', 'elsewhere'],
};

function stateOf(test) {
	return [mark(states[test.state] ?? ['idle', '?', test.state]),
		test.state === 'elsewhere' ? h('span.small.quiet', test.agent ? [' run by ', name(test.agent, 60)] : ' by no agent yet') : null,
		test.running ? h('span.small.quiet', ' running') : null];
}

// What a run has brought, as a sentence.
function outcome(answer) {
	const run = answer.tests?.[0], asked = answer.elsewhere?.[0];
	if (!run && asked)
		return {text: `${plain(asked.agent ?? 'The next agent', 60)} was asked to run ${plain(asked.test, 60)}.`, problem: false};
	if (!run)
		return {text: 'It was run.', problem: false};
	if (run.failed)
		return {text: `${plain(run.test, 60)} failed: ${run.problem}`, problem: true};
	const news = [[run.new, 'new change', 'new changes'], [run.candidates, 'candidate', 'candidates'], [run.moved, 'moved', 'moved'],
		[run.withdrawn, 'withdrawn', 'withdrawn']].filter(([count]) => count > 0).map(([count, one, many]) => `${count} ${count === 1 ? one : many}`);
	return {text: `${plain(run.test, 60)}: ${number(run.points)} points of ${number(run.series)} series read in ${duration(run.duration_seconds)}, ` +
		(news.length ? news.join(', ') : 'nothing new'), problem: false};
}

const running = new Set();

function runButton(test, context, look) {
	if (!context.may('admin'))
		return null;
	const button = h('button.small', {'data-key': `run ${test}`, disabled: running.has(test), onclick: async () => {
		running.add(test);
		button.disabled = true;
		button.textContent = 'Running …';
		try {
			const {text, problem} = outcome(await post('/api/v1/run', {test}));
			notice(text, {problem});
		} finally {
			running.delete(test);
			button.disabled = false;
			button.textContent = 'Run now';
			look();
		}
	}}, running.has(test) ? 'Running …' : 'Run now');
	return button;
}

const columns = (context, look) => [
	['Test', 'wide', test => [to('/tests', {test: test.name}, name(test.name)), test.problem ? h('div.row-problem', plain(test.problem, 300)) : null]],
	['State', 'bare', stateOf],
	['Last run', 'word', test => ago(test.last_run)],
	['Last point', 'word', test => ago(test.last_point)],
	['Next run', 'word', test => due(test.next_run)],
	['Series', 'number spare', test => number(test.series)],
	['Points', 'number spare', test => number(test.points)],
	[context.may('admin') ? 'Run' : '', 'bare', test => runButton(test.name, context, look)],
];

const kinds = [['', 'All'], ['failing', 'Failing'], ['stale', 'No new data'], ['running', 'Running'], ['new', 'Not run yet'], ['ok', 'Ok'], ['elsewhere', 'Elsewhere']];

async function list(main, context) {
	const search = new URLSearchParams(location.search);
	const after = search.get('after');
	let q = search.get('q') ?? '', state = search.get('state') ?? '', start = after, answer = null;

	const input = h('input', {type: 'search', id: 'q', value: q, placeholder: 'Search names, metrics, tags and sources', 'aria-label': 'Search tests',
		autocomplete: 'off', spellcheck: 'false'});
	const filters = h('div'), body = h('div', {'aria-live': 'off'}), total = h('span.quiet', {role: 'status'});

	async function look() {
		const asked = {q: q || null, state: state || null, after: start, limit: PAGE};
		const found = await get('/api/v1/tests', asked, context.signal);
		if (asked.q === (q || null) && asked.state === (state || null)) {
			answer = found;
			redraw(main, draw);
		}
	}

	function draw() {
		const all = Object.keys(states).reduce((sum, key) => sum + (answer.states[key] ?? 0), 0);
		replace(total, many(answer.total, 'test'));
		replace(filters, choice('State', kinds.map(([value, text]) => [value, text, value ? answer.states[value] ?? 0 : all])
			.filter(([value, , count]) => count > 0 || value === state || value === '' || value === 'failing'), state, chosen => {
			state = chosen;
			start = null;
			remember({state, after: null});
			run();
		}));
		if (!answer.tests.length) {
			replace(body, h('p.quiet', q || state ? 'No test is like that.' : 'No tests are monitored.'));
			return;
		}
		replace(body,
			table(columns(context, run), answer.tests, test => ({'data-test': test.name})),
			h('p.pages', start ? h('a', {href: address({after: null}), 'data-key': 'first'}, '« First page') : null,
				answer.next ? h('a', {href: address({after: answer.next}), 'data-key': 'next'}, 'Next page »') : null));
	}

	let typing = null;
	input.addEventListener('input', () => {
		clearTimeout(typing);
		typing = setTimeout(() => {
			q = input.value.trim();
			start = null;
			remember({q, after: null});
			run();
		}, 150);
	});
	keyboard([[['/'], 'to the search', () => input.focus(), true]], context.signal);
	replace(main, h('div.heading', h('h1', 'Tests'), total), h('div.bar', input, filters), body);
	replace(body, waiting('Loading the tests …'));
	const run = keepLooking(context, 20, look, ['test']);
	await look();
}

function optionRow(option) {
	const value = option.value === null ? h('span.quiet', 'not set') : h('code', name(option.value, 10000));
	return h('tr',
		h('td', {class: option.default ? '' : 'changed', title: option.help}, option.name),
		h('td', {class: option.default ? 'quiet' : ''}, value, option.hidden ? h('span.small.quiet', ' (hidden)') : null,
			h('div.small.quiet', plain(option.help, 500))));
}

const titles = {test: 'Test', source: 'Source: ', server: 'Server: ', detection: 'Detection: ', metric: 'Metric: '};

function sectionOf(section, all) {
	const options = section.options.filter(option => all || !option.default);
	if (!options.length && section.of !== 'metric')
		return null;
	return [h('h2', titles[section.of] ?? section.of, section.of === 'test' ? null : name(section.name)),
		options.length
			? h('div.table', h('table.options.stack', h('tbody', options.map(optionRow))))
			: h('p.quiet.small', 'Everything is as it is by default.')];
}

async function one(main, context, test) {
	document.title = `${plain(test, 60)} · Tests · hunter-c`;
	replace(main, waiting('Loading the test …'));
	let all = new URLSearchParams(location.search).get('all') === '1', state = null;
	const [configuration, listed] = await Promise.all([get('/api/v1/configuration', {test}, context.signal), find()]);
	const head = h('div'), options = h('div');
	const matcher = `test="${test.replace(/[\\"]/g, '\\$&').replace(/\n/g, '\\n')}"`;

	// Its name may be a pattern of others, too.
	async function find() {
		return (await get('/api/v1/tests', {test, limit: 1000}, context.signal)).tests.find(found => found.name === test);
	}

	function drawState() {
		const known = configuration;
		replace(head,
			h('p', state ? stateOf(state) : h('span.state.idle', 'not monitored')),
			state?.problem ? h('p.problem', name(state.problem, 2000)) : null,
			known.unsupported ? h('p.problem', plain(known.unsupported, 1000)) : null,
			h('div.actions', state ? runButton(test, context, run) : null,
				to('/explore', {test}, 'Series'),
				to('/', {q: matcher}, 'Changes'),
				context.may('triager') ? to('/silences', {matchers: matcher}, 'Silence') : null),
			facts(state && ['Last run', ago(state.last_run), state.last_run ? `, took ${duration(state.duration_seconds)}` : ''],
				state && ['Last point', time(state.last_point)],
				state && ['Next run', due(state.next_run), ` (every ${duration(state.interval_seconds)})`],
				state && ['Read', `${number(state.points)} points of ${number(state.series)} series`],
				['Metrics', state?.metrics.length ? names(state.metrics) : 'those that its source has'],
				known.groups.length ? ['Groups', names(known.groups)] : null,
				['Tells', names(known.receivers),
					known.routed ? h('span.quiet', ' by the routes') : null],
				['Defined in', h('code', name(`${known.file}:${known.line}`, 400))]));
	}

	function drawOptions() {
		replace(options,
			h('div.heading', h('h2', 'Configuration in effect'),
				choice('Options', [['', 'Set'], ['1', 'With defaults']], all ? '1' : '', chosen => {
					all = chosen === '1';
					remember({all: all ? '1' : null});
					redraw(main, drawOptions);
				})),
			configuration.sections.map(section => sectionOf(section, all)),
			configuration.metrics_left_out ? h('p.quiet', `and ${number(configuration.metrics_left_out)} more metrics`) : null);
	}

	async function look() {
		state = await find();
		redraw(main, drawState);
	}

	state = listed;
	replace(main, h('p.small', h('a', {href: '/tests'}, '« All tests')), h('h1', name(test, 300)), head, options);
	const run = keepLooking(context, 20, look, ['test']);
	drawState();
	drawOptions();
}

export async function show(main, context) {
	style('states.css');
	const test = new URLSearchParams(location.search).get('test');
	await (test ? one(main, context, test) : list(main, context));
}
