// Any series of any tests: in one plot or in several with one cursor. All that is chosen is in the
// address.
import {get, stopper} from './api.js';
import {h, name, plain, remember, replace, style, to, waiting} from './dom.js';
import {createChart} from './chart.js';

const FOUND_MOST = 40;
const LINES_MOST = 40;
// How it is shown: by name in the address, the label and the choices, the first of which is usual.
const looks = {
	plots: ['Plots', [['one', 'one'], ['split', 'split']]],
	x: ['X', [['time', 'by time'], ['commit', 'by commit']]],
	y: ['Y', [['auto', 'fits the points'], ['zero', 'from zero'], ['log', 'logarithmic'], ['relative', 'relative to the first level']]],
	smooth: ['Smooth', [['0', 'no'], ['5', '5 points'], ['15', '15 points'], ['49', '49 points']]],
	back: ['Back', [['', 'the test\'s range'], ['1 day', '1 day'], ['7 days', '7 days'], ['30 days', '30 days'], ['90 days', '90 days'], ['365 days', '1 year']]],
};

// Pins as the address has them.
export const pinsOf = url => (url.searchParams.get('pins') ?? '').split(',').map(text => /^(\d+):(-?\d+)$/.exec(text)).filter(Boolean)
	.map(found => ({line: Number(found[1]), time: Number(found[2])}));
export const pinsText = pins => pins.map(pin => `${pin.line}:${pin.time}`).join(',') || null;

// From the address: test, metric and branch of each series, and how they are shown.
function read(url) {
	const all = key => url.searchParams.getAll(key);
	const one = ([key, [, choices]]) => [key, (choices.find(([value]) => value === url.searchParams.get(key)) ?? choices[0])[0]];
	const ms = key => {
		const text = url.searchParams.get(key);
		const at = text === null ? NaN : /^-?\d+$/.test(text) ? Number(text) : Date.parse(text);

		return Number.isNaN(at) ? null : at;
	};
	const [since, until] = [ms('since'), ms('until')];
	const metrics = all('metric'), branches = all('branch');

	return {
		series: all('test').map((test, i) => ({test, metric: metrics[i] || '', branch: branches[i] || ''})).slice(0, LINES_MOST),
		...Object.fromEntries(Object.entries(looks).map(one)),
		cleaned: url.searchParams.get('cleaned') === 'true',
		view: since !== null && until !== null && since < until ? [since, until] : null,
		pins: pinsOf(url),
	};
}

function write(state) {
	const url = new URL(location.href);

	for (const key of ['test', 'metric', 'branch'])
		url.searchParams.delete(key);
	for (const one of state.series) {
		url.searchParams.append('test', one.test);
		if (state.series.some(other => other.metric))
			url.searchParams.append('metric', one.metric);
		if (state.series.some(other => other.branch))
			url.searchParams.append('branch', one.branch);
	}
	history.replaceState(null, '', url);
	remember({
		...Object.fromEntries(Object.entries(looks).map(([key, [, [[usual]]]]) => [key, state[key] === usual ? null : state[key]])),
		cleaned: state.cleaned || null,
		since: state.view ? new Date(state.view[0]).toISOString() : null,
		until: state.view ? new Date(state.view[1]).toISOString() : null,
		pins: pinsText(state.pins),
	});
}

const keyOf = one => JSON.stringify([one.test, one.metric, one.branch]);

export const changeLinks = change => (change.id ? [{text: `change ${change.id}`, href: `/change/${change.id}`}] : []);

// ---- Search

function searchBox(context, add) {
	const list = h('ul.found', {id: 'found', role: 'listbox', 'aria-label': 'Series', hidden: true});
	const input = h('input', {type: 'search', placeholder: 'Add a series: words in names of tests, metrics, tags; then {label="value"}', 'aria-label': 'Search for series', role: 'combobox',
		'aria-expanded': 'false', 'aria-controls': 'found', 'aria-autocomplete': 'list', autocomplete: 'off'});
	let asking = null, timer = 0, chosen = -1, rows = [];
	let typed = false, entered = false; // since rows were shown; then Enter waits for those of what was typed

	function close() {
		list.hidden = true;
		chosen = -1;
		entered = false;
		input.setAttribute('aria-expanded', 'false');
		input.removeAttribute('aria-activedescendant');
	}

	function choose(at) {
		chosen = rows.length ? (at + rows.length) % rows.length : -1;
		rows.forEach((row, i) => row.element.setAttribute('aria-selected', String(i === chosen)));
		if (chosen >= 0) {
			input.setAttribute('aria-activedescendant', rows[chosen].element.id);
			rows[chosen].element.scrollIntoView({block: 'nearest'});
		}
	}

	function take(row) {
		add({test: row.test, metric: row.metric, branch: ''});
		input.value = '';
		close();
	}

	// `labels`: those that the series are to have, {region="eu"}, or nothing.
	function show(answer, words, labels) {
		const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);

		rows = [];
		for (const test of answer.tests) {
			const metrics = test.metrics.filter(metric => wanted.every(word => `${test.name} ${metric} ${test.tags.join(' ')} ${test.type} ${test.source ?? ''}`.toLowerCase().includes(word)));

			for (const metric of metrics.length ? metrics : test.metrics)
				rows.push({test: test.name, metric: metric + labels});
			if (test.metrics.length !== 1)
				rows.push({test: test.name, metric: labels});
		}
		const more = Math.max(0, rows.length - FOUND_MOST) + Math.max(0, answer.total - answer.tests.length);

		rows.length = Math.min(rows.length, FOUND_MOST);
		rows.forEach((row, i) => {
			row.element = h('li', {role: 'option', id: `found-${i}`, 'aria-selected': 'false', onmousedown: event => {
				event.preventDefault();
				take(row);
			}}, name(row.test, 120), ' ', h('span.quiet', row.metric ? name(row.metric, 120) : 'all its series'));
		});
		replace(list, rows.map(row => row.element),
			rows.length === 0 ? h('li.quiet', {role: 'option', 'aria-disabled': 'true'}, 'Nothing has these words.') : null,
			more > 0 ? h('li.quiet', {role: 'option', 'aria-disabled': 'true'}, `${more} more: add a word`) : null);
		list.hidden = false;
		input.setAttribute('aria-expanded', 'true');
		choose(0);
		typed = false;
		if (entered && chosen >= 0)
			take(rows[chosen]);
		entered = false;
	}

	async function ask() {
		const text = input.value, [, words, labels] = /^([^{]*)(\{.*)?$/.exec(text.trim()) ?? ['', '', ''];

		asking?.abort();
		asking = stopper(context.signal);
		const {signal} = asking;
		try {
			const answer = await get('/api/v1/tests', {q: words.trim() || null, limit: FOUND_MOST}, signal);
			if (!signal.aborted && document.activeElement === input && text === input.value)
				show(answer, words, labels ?? '');
		} catch (error) {
			if (error.name !== 'AbortError')
				throw error;
		}
	}

	input.addEventListener('input', () => {
		typed = true;
		entered = false;
		clearTimeout(timer);
		timer = setTimeout(ask, 120);
	});
	input.addEventListener('focus', ask);
	input.addEventListener('blur', close);
	input.addEventListener('keydown', event => {
		if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
			event.preventDefault();
			if (list.hidden)
				ask();
			else
				choose(chosen + (event.key === 'ArrowDown' ? 1 : -1));
		} else if (event.key === 'Enter' && typed) {
			event.preventDefault();
			entered = true;
		} else if (event.key === 'Enter' && !list.hidden && chosen >= 0) {
			event.preventDefault();
			take(rows[chosen]);
		} else if (event.key === 'Escape') {
			close();
		}
	});
	return {element: h('div.search', input, list), input};
}

// ---- Data

const firstOf = plot => Math.min(...plot.lines.map(line => line.times[0] ?? Infinity));

// Since a time all is shown; else what the agent shows of it at first.
async function plotOf(one, state, since, signal) {
	const plot = await get('/api/v1/plot', {test: one.test, metric: one.metric || null, branch: one.branch || null, cleaned: state.cleaned ? 'true' : null, since}, signal);

	return since ? {...plot, from: null, to: null} : plot;
}

// Fetches the data of a series, which then has {plot, error, stop}.
async function fetchData(one, state, context, changed) {
	const stop = stopper(context.signal), data = one.data = {plot: null, error: null, stop: () => stop.abort()};

	try {
		data.plot = await plotOf(one, state, state.back || null, stop.signal);
		const first = firstOf(data.plot);

		// What the address shows lies further back.
		if (state.view && !state.back && first > state.view[0] && data.plot.lines.length > 0) {
			const wider = await plotOf(one, state, new Date(state.view[0] - (state.view[1] - state.view[0])).toISOString(), stop.signal);

			if (firstOf(wider) < first)
				data.plot = wider;
		}
	} catch (error) {
		data.error = error.name === 'AbortError' ? 'It was cancelled.' : error.message;
	}
	if (!context.signal.aborted)
		changed();
}

function together(plots, several) {
	const lines = plots.flatMap(plot => plot.lines.map(line => ({...line, spans: plot.spans,
		name: several || plot.lines.length > 1 ? `${plain(line.test)} ${plain(line.name)}` : plain(line.name)})));
	// Where one of several lines has a gap, the others need none.
	const spans = new Map(plots.flatMap(plot => plot.spans.filter(span => plots.length === 1 || span.text !== 'no points').map(span => [JSON.stringify(span), span])));
	const units = new Set(lines.map(line => line.unit));

	return {title: plots.length === 1 ? plain(plots[0].title) : 'Several series', unit: units.size === 1 ? lines[0].unit : null, units,
		lines: lines.slice(0, LINES_MOST), spans: [...spans.values()], left: Math.max(0, lines.length - LINES_MOST)};
}

// ---- The page

export async function show(main, context) {
	style('chart.css');
	style('explore.css');
	const state = read(context.url);
	const charts = h('div.charts');
	const chips = h('ul.chips', {'aria-label': 'Series shown'});
	const waits = h('div.waits', {'aria-live': 'polite'});
	let drawn = []; // {chart, box, only}
	let wasKind = null;

	const search = searchBox(context, one => {
		if (!state.series.some(other => keyOf(other) === keyOf(one)))
			state.series.push(one);
		redraw();
	});

	const branch = h('input.branch', {type: 'text', placeholder: 'branch', 'aria-label': 'A branch to lay over', size: 12});
	const overlay = h('form.overlay', {onsubmit: event => {
		event.preventDefault();
		const text = branch.value.trim();

		for (const one of text ? [...state.series] : [])
			if (!state.series.some(other => keyOf(other) === keyOf({...one, branch: text})) && !one.branch)
				state.series.push({...one, branch: text, data: null});
		branch.value = '';
		redraw();
	}}, branch, h('button', {type: 'submit'}, 'Overlay'));
	const controls = h('div.bar.controls',
		Object.entries(looks).map(([key, [label, choices]]) => h('label', label, h('select', {onchange: event => {
			state[key] = event.target.value;
			if (key !== 'back')
				return redraw();
			state.view = null;
			again();
		}}, choices.map(([value, text]) => h('option', {value, selected: state[key] === value}, text))))),
		h('label', h('input', {type: 'checkbox', checked: state.cleaned, onchange: event => {
			state.cleaned = event.target.checked;
			again();
		}}), 'without cycles'),
		overlay,
		h('button', {onclick: () => moveTo(null)}, 'All'),
		h('button', {onclick: again}, 'Reload'));

	const help = h('details.legend', h('summary', 'Signs and keys'),
		h('p', '▲ ▼ a recorded change, with its levels and the band of places where it may have begun. △ ▽ with a dotted line: not yet confirmed; with a dashed line: ',
			'a detection of these points says otherwise than what is recorded. Hatched: no points, or the source does not answer. Grey: silenced.'),
		h('p', 'Drag zooms, wheel or shift and drag move, double click shows all, a click pins a point. With the plot in focus: ', h('kbd', '←'), ' ', h('kbd', '→'),
			' along the points, with ', h('kbd', 'Shift'), ' move, ', h('kbd', '+'), ' ', h('kbd', '-'), ' ', h('kbd', '0'), ' zoom, ', h('kbd', 'Enter'), ' pin, ',
			h('kbd', '['), ' ', h('kbd', ']'), ' to the changes, ', h('kbd', 'Esc'), ' drop the pins.'));

	replace(main, h('h1', 'Explore'), search.element, chips, controls, waits, charts, help);

	function moveTo(view) {
		state.view = view;
		for (const one of drawn)
			one.chart.setView(view);
		write(state);
	}

	function redraw() {
		write(state);
		draw();
	}

	// All data anew.
	function again() {
		for (const one of state.series) {
			one.data?.stop();
			one.data = null;
		}
		redraw();
	}

	function writeChips() {
		replace(chips, state.series.map((one, i) => h('li.chip',
			to('/tests', {test: one.test}, name(one.test, 80)), one.metric ? [' ', name(one.metric, 80)] : null,
			one.branch ? [' ', h('span.badge', name(one.branch, 40))] : null,
			h('button.close', {'aria-label': `Remove ${plain(one.test, 80)} ${plain(one.metric, 80)}`, onclick: () => {
				state.series.splice(i, 1);
				one.data?.stop();
				state.pins = [];
				redraw();
			}}, '×'))));
	}

	function writeWaits() {
		replace(waits, state.series.map(one => {
			if (one.data.error)
				return h('p.panel', h('span.problem', `${plain(one.test, 120)}: ${plain(one.data.error, 500)} `),
					h('button', {onclick: () => {
						one.data = null;
						draw();
					}}, 'Try again'));
			return one.data.plot ? null : waiting(`Fetching the points of ${plain(one.test, 120)} …`, one.data.stop);
		}));
	}

	function clear() {
		for (const one of drawn)
			one.chart.destroy();
		drawn = [];
	}

	function optionsOf(only) {
		return {x: state.x, scale: state.y, smooth: Number(state.smooth), range: state.view, linked: true, changeLinks,
			onRange: view => {
				state.view = view;
				write(state);
			},
			onPin: pins => {
				state.pins = only === null ? pins : [...state.pins.filter(pin => pin.line !== only), ...pins.map(pin => ({...pin, line: only}))];
				write(state);
			}};
	}

	function draw() {
		writeChips();
		controls.hidden = state.series.length === 0;
		help.hidden = state.series.length === 0;
		for (const one of state.series)
			if (!one.data)
				fetchData(one, state, context, draw);
		writeWaits();
		if (state.series.length === 0) {
			clear();
			replace(charts, h('p.quiet', 'Search for a series above. ', h('a', {href: '/tests'}, 'All tests')));
			return;
		}
		const plots = state.series.map(one => one.data.plot).filter(Boolean);
		const plot = together(plots, state.series.length > 1);
		const ends = plot.lines.filter(line => line.times.length > 0).map(line => [line.times[0], line.times[line.times.length - 1]]);
		const from = Math.min(...ends.map(end => end[0])), to = Math.max(...ends.map(end => end[1]));
		const parts = plots.length === 0 ? [] : state.plots === 'split' ? plot.lines.map((line, i) => ({only: i,
			plot: {title: line.name, unit: line.unit, lines: [line], spans: line.spans, from: ends.length ? from : null, to: ends.length ? to : null}})) : [{only: null, plot}];
		const kind = `${state.plots} ${parts.length}`;

		if (kind !== wasKind || drawn.length === 0) {
			clear();
			replace(charts, noteOf(plot), parts.map(part => {
				const box = h('div', {class: state.plots === 'split' ? 'part' : null});

				drawn.push({box, ...part});
				return box;
			}));
			for (const one of drawn)
				one.chart = createChart(one.box, one.plot, {...optionsOf(one.only),
					pins: one.only === null ? state.pins : state.pins.filter(pin => pin.line === one.only).map(pin => ({...pin, line: 0}))});
			wasKind = kind;
			return;
		}
		charts.querySelector('.note')?.remove();
		charts.prepend(...[noteOf(plot)].filter(Boolean));
		drawn.forEach((one, i) => one.chart.update(parts[i].plot, optionsOf(one.only)));
	}

	function noteOf(plot) {
		if (plot.left > 0)
			return h('p.note.quiet', `${plot.left} more series are not shown.`);
		if (plot.units.size > 1 && state.plots === 'one' && state.y !== 'relative')
			return h('p.note.quiet', 'These series have different units: split the plots, or show them relative to their first level.');
		return null;
	}

	context.live?.listen({
		change: told => state.series.some(one => one.test === told?.test) && refresh(),
		triage: () => refresh(),
		again: () => refresh(),
	}, context.signal);
	let refreshing = 0;

	// What is drawn stays until what is new is there.
	function refresh() {
		clearTimeout(refreshing);
		refreshing = setTimeout(async () => {
			try {
				for (const {data, ...one} of state.series)
					if (data?.plot)
						data.plot = await plotOf(one, state, state.back || null, context.signal);
				draw();
			} catch {
				// the next event, or Reload
			}
		}, 500);
	}

	context.signal.addEventListener('abort', clear);
	draw();
	if (state.series.length === 0)
		search.input.focus({preventScroll: true});
}
