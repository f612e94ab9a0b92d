// A chart of a plot (the JSON of /api/v1/plot), by dygraphs. It fetches nothing, and a page written by
// `report --html` has it, too, behind dom.js.
//
//   const chart = createChart(element, plot, options);
//
// dygraphs draws the lines and the axes; levels, changes, the legend and all that the pointer and the keys do are
// ours. Its labels are markup, in which names are text.
// Of many points those are drawn that a picture of that width can show: the first, least, greatest
// and last of each column of pixels, so that no spike is hidden.

import {duration, facts, h, percent, plain, short, time, timeText} from './dom.js';

const DAY = 86400000;
const LEAST_POINTS = 3; // a view is never narrower
const MARKS_MOST = 60;
const DOTS_SPARSE = 7; // pixels from point to point from which on points have dots
const COLUMN_POINTS = 4;

// numbers and times

const aliases = {us: 'µs', usec: 'µs', msec: 'ms', sec: 's', seconds: 's', bytes: 'B'};
const scales = {
	time: [[1e-9, 'ns'], [1e-6, 'µs'], [1e-3, 'ms'], [1, 's'], [60, 'min'], [3600, 'h']],
	bytes: [[1, 'B'], [1024, 'KiB'], [1024 ** 2, 'MiB'], [1024 ** 3, 'GiB'], [1024 ** 4, 'TiB']],
	number: [[1e-12, 'p'], [1e-9, 'n'], [1e-6, 'µ'], [1, ''], [1e3, 'k'], [1e6, 'M'], [1e9, 'G'], [1e12, 'T']],
};

// How numbers of this unit and size are written: {factor, unit}.
function scaleFor(given, size) {
	const unit = given ? plain(given, 40) : given;
	const find = table => table.find(([, name]) => name === (aliases[unit] ?? unit));
	const known = [scales.time, scales.bytes].find(find);
	const table = known ?? scales.number;
	const base = known ? find(known)[0] : 1;
	let best = known ? table[0] : [1, ''];

	if (!known && unit && /^(%|percent)/.test(unit))
		return {factor: 1, unit};
	if (!(size > 0))
		return {factor: 1, unit: unit || ''};
	for (const one of table)
		if (size * base >= one[0] * 0.9999 && (known || one[0] >= 1 || size < 1e-3))
			best = one;
	if (known)
		return {factor: base / best[0], unit: best[1]};
	if (best[0] === 1e3 && size < 1e4)
		best = [1, ''];
	return {factor: 1 / best[0], unit: best[1] + (unit ? (best[1] ? ' ' : '') + unit : '')};
}

function digits(value, most) {
	if (!Number.isFinite(value))
		return '–';
	return Number(value.toPrecision(most)).toLocaleString('en', {maximumSignificantDigits: most, useGrouping: Math.abs(value) >= 1e4})
		.replaceAll(',', "\u202f");
}

export function formatValue(value, unit) {
	if (!Number.isFinite(value))
		return 'no value';
	const scale = scaleFor(unit, Math.abs(value));

	const glued = scale.unit === '%' || (!unit && scale.unit);

	return digits(value * scale.factor, 5) + (glued ? '' : scale.unit ? '\u00a0' : '') + scale.unit;
}

// An element with a text from outside.
const element = (tag, className, text) => h(tag, {class: className || null}, text == null ? null : plain(text, 4000));

// points

// The first index with a value not below.
function lowerBound(sorted, value) {
	let low = 0, high = sorted.length;

	while (low < high) {
		const middle = (low + high) >> 1;

		if (sorted[middle] < value)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

// Indices of the points that a picture of so many columns shows, and the nearest on either side.
function reduce(x, y, from, to, columns) {
	const out = [], per = columns / (to - from);
	const first = Math.max(0, lowerBound(x, from) - 1);
	let end = lowerBound(x, to);

	while (x[end] <= to) // points may share a time
		end++;
	end = Math.min(x.length, end + 1);

	const few = end - first <= COLUMN_POINTS * columns || !(to > from);
	const columnOf = i => few ? i : Math.floor((x[i] - from) * per);

	for (let i = first, next; i < end; i = next) {
		let begin, least, most, last;

		for (next = i; next < end && columnOf(next) === columnOf(i); next++) {
			if (Number.isNaN(y[next]))
				continue;
			begin ??= next;
			last = next;
			if (!(y[least] <= y[next]))
				least = next;
			if (!(y[most] >= y[next]))
				most = next;
		}
		out.push(...begin === undefined ? [i] : new Set([begin, least, most, last].sort((a, b) => a - b)));
	}
	return out;
}

function movingMedian(values, count) {
	const half = count >> 1;

	return values.map((value, i) => {
		const near = values.slice(Math.max(0, i - half), i + half + 1).filter(one => !Number.isNaN(one)).sort();

		return Number.isNaN(value) ? NaN : (near[(near.length - 1) >> 1] + near[near.length >> 1]) / 2;
	});
}

// The index of the point that is drawn at a place.
const pointAt = (line, at) => (line.points ? line.points[at] : at);

// The attribute of a point, or null.
function attributeOf(line, name, i) {
	const column = line.raw.attributes?.[name], at = column?.at[i] ?? -1;

	return at < 0 ? null : column.values[at];
}

// What a level in percent of counts from.
function baseOf(line) {
	const first = line.changes.find(one => one.source !== 'fresh' && one.source !== 'candidate' && !one.withdrawn && one.before);

	if (first)
		return first.before;
	const some = Array.from(line.values.slice(0, 1000)).filter(v => !Number.isNaN(v)).sort((a, b) => a - b);

	return some[some.length >> 1] ?? NaN;
}

// A value as it is drawn: of relative ones, in percent of the base.
function lifted(line, value) {
	if (line.base === null)
		return value;
	return line.base ? 100 * (value / line.base - 1) : NaN;
}

// Charts with one cursor: those with the option `linked`.
const linked = new Set();

// What is drawn goes no further than this.
function within(context, [x, y, width, height], draw) {
	context.save();
	context.beginPath();
	context.rect(x, y, width, height);
	context.clip();
	draw();
	context.restore();
}

// Lines from one point to another: [x, y, x, y] of each.
function stroke(context, color, width, lines, dash = []) {
	context.strokeStyle = color;
	context.lineWidth = width;
	context.setLineDash(dash);
	context.beginPath();
	for (const [fromX, fromY, toX, toY] of lines) {
		context.moveTo(fromX, fromY);
		context.lineTo(toX, toY);
	}
	context.stroke();
	context.setLineDash([]);
}

const sharp = place => Math.round(place) + 0.5;

// words

// Which way the values went; whether that is worse is said by the word and the colour.
function markOf(change) {
	const up = change.after > change.before, down = change.after < change.before;

	return isSure(change) ? (up ? '▲' : down ? '▼' : '◆') : up ? '△' : down ? '▽' : '◇';
}

function isSure(change) {
	return change.source === 'known' && !change.withdrawn;
}

function verdictClass(change) {
	return change.withdrawn || !change.verdict ? 'quiet' : change.verdict > 0 ? 'worse' : 'better';
}

const sizeText = change => [change.size ? percent(change.size) : '', verdictWords[change.verdict] || 'changed'].join(' ').trim();

const verdictWords = {1: 'worse', '-1': 'better', 0: 'changed'};
const sourceWords = {
	known: '',
	candidate: 'not yet confirmed',
	fresh: 'only a detection on these points finds it; it is not recorded',
	lost: 'recorded; a detection on these points does not find it',
};

function describeChange(change, unit) {
	const parts = [sizeText(change)];

	if (change.before != null)
		parts.push(`from ${formatValue(change.before, unit)} to ${formatValue(change.after, unit)}`);
	parts.push(timeText(change.time));
	if (change.withdrawn)
		parts.push('withdrawn');
	else if (sourceWords[change.source])
		parts.push(sourceWords[change.source]);
	if (change.ended)
		parts.push('over');
	if (change.triage && change.triage !== 'open')
		parts.push(change.triage);
	return parts.join(', ');
}

// dygraphs

let loading = null;

// A report has it already.
const loadDygraph = () => loading ??= Promise.resolve(globalThis.Dygraph ?? import(new URL('dygraph.js', import.meta.url).href).then(() => globalThis.Dygraph));

class Chart {
	constructor(box, plot, options) {
		this.box = box;
		this.options = {scale: 'auto', x: 'time', smooth: 0, small: false, shareRange: true, ...options};
		this.stop = new AbortController();
		this.cursor = null;    // time, ms
		this.view = this.options.range || null; // times of what is shown; null: all
		this.pins = [];
		this.selected = null;  // {line, change}
		this.touches = new Map(); // places on the x axis, by pointer
		this.build();
		if (this.options.linked)
			linked.add(this);
		this.take(plot);
		this.ready = loadDygraph().then(Dygraph => {
			if (!this.stop.signal.aborted)
				this.begin(Dygraph);
		});
	}

	// building

	build() {
		const signal = this.stop.signal;

		this.box.classList.add('chart');
		this.box.classList.toggle('chart-small', this.options.small);
		this.legend = element('div', 'chart-legend');
		this.frame = h('div.chart-frame', {tabindex: 0, role: 'application', 'aria-roledescription': 'chart'});
		this.host = element('div', 'chart-host');
		this.marks = element('div', 'chart-marks');
		this.axis = element('div', 'chart-axis-unit');
		this.empty = element('p', 'chart-empty', 'No points here.');
		this.empty.hidden = true;
		this.spoken = h('div.chart-spoken', {'aria-live': 'polite'});
		this.frame.append(this.host, this.axis, this.marks, this.empty);
		this.panel = element('div', 'chart-panel');
		this.box.replaceChildren(this.legend, this.frame, this.spoken, this.panel);

		for (const [name, call] of Object.entries({
			pointerdown: this.pointerDown, pointermove: this.pointerMove, pointerup: this.pointerUp, wheel: this.wheel, keydown: this.key,
			pointercancel() {
				this.drag = null;
				this.touches.clear();
				this.drawTop();
			},
			pointerleave() {
				if (!this.drag)
					this.showCursor(null);
			},
			dblclick(event) {
				if (event.target === this.frame)
					this.out();
			},
		}))
			this.frame.addEventListener(name, call.bind(this), {signal, passive: false});
		matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.restyle(), {signal});
		this.resizes = new ResizeObserver(() => this.redraw());
		this.resizes.observe(this.frame);
	}

	take(plot) {
		this.plot = plot;
		this.spans = plot.spans || [];
		this.lines = (plot.lines || []).map((raw, index) => ({raw, index, n: raw.times.length, times: new Float64Array(raw.times),
			values: Float64Array.from(raw.values, value => value ?? NaN), changes: raw.changes || [], unit: raw.unit || plot.unit || null, shown: true}));
		this.arrange();
	}

	// Sets where each point is drawn: x, y, and the smooth values.
	arrange() {
		const byCommit = this.options.x === 'commit';

		this.order = byCommit ? this.commitOrder() : null;
		this.half = byCommit ? 0.5 : 0; // of the width that a point has
		for (const line of this.lines) {
			line.base = this.options.scale === 'relative' ? baseOf(line) : null;
			const values = line.base === null ? line.values : line.values.map(value => lifted(line, value));

			line.points = null; // by place, the index of the point; null: the same
			line.x = line.times;
			line.y = values;
			if (byCommit)
				this.placeByCommit(line, values);
			line.smooth = this.options.smooth > 1 ? movingMedian(line.y, this.options.smooth) : null;
		}
		const ends = this.lines.filter(line => line.x.length > 0).flatMap(line => [line.x[0], line.x.at(-1)]);

		if (!byCommit)
			ends.push(...this.home() ?? []);
		this.none = ends.length === 0;
		if (this.none)
			ends.push(Date.now() - DAY, Date.now());
		this.extent = [Math.min(...ends), Math.max(...ends)];
		if (this.extent[0] === this.extent[1])
			this.extent = byCommit ? [this.extent[0] - 1, this.extent[1] + 1] : [this.extent[0] - DAY / 24, this.extent[1] + DAY / 24];
	}

	// Commits in the order in which they were first measured; without commits, the times.
	commitOrder() {
		const firsts = new Map();
		const named = this.lines.some(line => line.raw.attributes?.commit);
		const nameOf = (line, i) => named ? attributeOf(line, 'commit', i) : line.times[i];

		for (const line of this.lines)
			for (let i = 0; i < line.n; i++) {
				const name = nameOf(line, i);

				if (name !== null && !(firsts.get(name) <= line.times[i]))
					firsts.set(name, line.times[i]);
			}
		const names = [...firsts.keys()].sort((a, b) => firsts.get(a) - firsts.get(b));

		return {named, nameOf, names, places: new Map(names.map((name, i) => [name, i])), times: Float64Array.from(names, name => firsts.get(name))};
	}

	placeByCommit(line, values) {
		const at = Array.from(line.times, (time, i) => this.order.places.get(this.order.nameOf(line, i)) ?? -1);

		line.points = [...at.keys()].filter(i => at[i] >= 0).sort((a, b) => at[a] - at[b] || a - b);
		line.x = Float64Array.from(line.points, i => at[i]);
		line.y = Float64Array.from(line.points, i => values[i]);
	}

	// Places on the x axis of times, and back.
	placeOf(time) {
		if (!this.order)
			return time;
		return Math.min(lowerBound(this.order.times, time), Math.max(0, this.order.times.length - 1));
	}

	timeAt(place) {
		if (!this.order)
			return place;
		const at = Math.max(0, Math.min(this.order.times.length - 1, Math.round(place)));

		return this.order.times[at] ?? 0;
	}

	// What is shown at first: what the plot says, or all.
	home() {
		const {from, to} = this.plot;

		return from && to && from < to ? [from, to] : null;
	}

	window() {
		const view = this.view || this.home();
		const [from, to] = view ? view.map(time => this.placeOf(time)) : this.extent;

		return [from - this.half, to + this.half];
	}

	begin(Dygraph) {
		Dygraph.PLUGINS = [Dygraph.Plugins.Axes];
		this.Dygraph = Dygraph;
		this.restyle();
		for (const pin of this.options.pins || [])
			this.pin(pin.line, pin.time, true);
	}

	// drawing

	restyle() {
		const style = getComputedStyle(this.box);
		const read = name => style.getPropertyValue('--' + name).trim();

		this.colors = Object.fromEntries(['text', 'ground', 'grid', 'axis', 'worse', 'better', 'quiet', 'band', 'silence', 'outage', 'cursor', 'zoom'].map(name => [name, read(name)]));
		this.colors.lines = [1, 2, 3, 4, 5, 6, 7, 8].map(n => read('series-' + n));
		this.rem = parseFloat(getComputedStyle(document.documentElement).fontSize) || 16;
		this.writeLegend();
		this.writePanel();
		this.redraw();
	}

	shown() {
		return this.lines.filter(line => line.shown);
	}

	color(line) {
		return this.colors.lines[line.index % this.colors.lines.length];
	}

	left() {
		return (this.options.small ? 2.9 : 3.6) * this.rem;
	}

	reserve(event) {
		const small = this.options.small;

		event.reserveSpaceRight(small ? 4 : 12);
		event.reserveSpaceTop((small ? 0.9 : 1.5) * this.rem);
	}

	redraw() {
		if (!this.Dygraph || this.pending)
			return;
		this.pending = requestAnimationFrame(() => {
			this.pending = 0;
			this.drawNow();
		});
	}

	drawNow() {
		const width = this.frame.clientWidth, height = this.frame.clientHeight;

		if (this.stop.signal.aborted || width < 40 || height < 40)
			return;
		const columns = Math.max(50, Math.round(width - this.left()));
		const range = this.window();
		const rows = this.rows(range, columns);
		const values = this.valueRange(range);
		const options = {file: rows.rows, labels: rows.labels, series: rows.series, dateWindow: range, valueRange: values,
			gridLineColor: this.colors.grid, axisLineColor: this.colors.axis};

		this.empty.hidden = !this.none;
		if (this.cursor === null)
			this.writeReadout();
		this.scale = scaleFor(this.unit(), Math.max(Math.abs(values[0]), Math.abs(values[1])));
		this.axis.textContent = this.scale.unit;
		if (this.dygraph && this.logarithmic === (this.options.scale === 'log')) {
			if (this.width !== width || this.height !== height)
				this.dygraph.resize(width, height);
			this.dygraph.updateOptions(options);
		} else {
			this.make(options, width, height);
		}
		this.width = width;
		this.height = height;
		this.drawTop();
		this.writeMarks();
		if (this.view)
			this.box.dataset.range = this.view.map(Math.round).join(',');
		else
			delete this.box.dataset.range;
	}

	make(options, width, height) {
		if (this.dygraph)
			this.dygraph.destroy();
		this.logarithmic = this.options.scale === 'log';
		new this.Dygraph(this.host, options.file, {
			...options,
			width,
			height,
			plugins: [{toString: () => 'ground', activate: dygraph => {
				this.dygraph = dygraph; // which draws before it is returned
				return {
					layout: event => this.reserve(event),
					willDrawChart: event => this.drawGround(event.drawingContext),
					didDrawChart: event => this.drawLevels(event.drawingContext),
				};
			}}, this.Dygraph.Plugins.Grid],
			interactionModel: {},
			legend: 'never',
			connectSeparatedPoints: true,
			logscale: this.logarithmic,
			highlightCircleSize: 0,
			animatedZooms: false,
			labelsKMB: false,
			gridLineWidth: 1,
			axisLabelFontSize: 0.75 * this.rem,
			axes: {
				x: {ticker: this.xTicks.bind(this), pixelsPerLabel: 5 * this.rem, axisLabelWidth: 4.5 * this.rem, drawGrid: false,
					axisLabelFormatter: this.Dygraph.dateAxisLabelFormatter},
				y: {ticker: this.yTicks.bind(this), pixelsPerLabel: (this.options.small ? 1.9 : 2.4) * this.rem, axisLabelWidth: this.left()},
			},
		});
	}

	// What is drawn.
	rows(range, columns) {
		const labels = ['x'], series = {}, sets = [], shown = this.shown();
		const per = shown.length > 4 ? Math.max(100, Math.round((columns * 4) / shown.length)) : columns;
		const add = (line, label, y, alpha, more) => {
			const indices = reduce(line.x, y, range[0], range[1], per);

			sets.push({x: line.x, y, indices, at: 0});
			labels.push(label + line.index);
			series[label + line.index] = {color: this.color(line), ...more, plotter: event => {
				Object.assign(event.drawingContext, {globalAlpha: alpha, lineJoin: 'bevel'});
				this.Dygraph.Plotters.linePlotter(event);
			}};
			return indices;
		};

		for (const line of shown) {
			line.drawn = add(line, 'line', line.y, line.smooth ? 0.25 : shown.length === 1 ? 0.75 : 0.9,
				{strokeWidth: line.smooth ? 0.5 : this.options.small ? 1 : 1.2, pointSize: this.options.small ? 1.6 : 2.2});
			const visible = line.drawn.length ? (line.x[line.drawn.at(-1)] - line.x[line.drawn[0]]) / (range[1] - range[0]) : 0;

			series['line' + line.index].drawPoints = columns * Math.max(visible, 0.05) > line.drawn.length * (this.options.small ? 4 : DOTS_SPARSE);
			if (line.smooth)
				add(line, 'smooth', line.smooth, 1, {strokeWidth: 2});
		}
		return sets.length ? {rows: merged(sets, range), labels, series} : {rows: range.map(x => [x, null]), labels: ['x', 'none'], series};
	}

	valueRange(range) {
		const logarithmic = this.options.scale === 'log', zero = this.options.scale === 'zero';
		const values = this.shown().flatMap(line => [
			...line.drawn.filter(i => line.x[i] >= range[0] && line.x[i] <= range[1]).map(i => line.y[i]), // which has the least and the greatest
			...this.levels(line).filter(one => one.to > range[0] && one.from < range[1]).flatMap(one => [one.start, one.end]),
		]).filter(value => Number.isFinite(value) && !(logarithmic && value <= 0));

		if (values.length === 0)
			values.push(logarithmic ? 1 : 0, logarithmic ? 10 : 1);
		if (zero)
			values.push(0);
		const low = Math.min(...values), high = Math.max(...values);

		if (logarithmic) {
			const room = Math.max(Math.pow(high / low, 0.06), 1.02);

			return [low / room, high * room];
		}
		const room = low === high ? Math.abs(low) * 0.1 || 1 : (high - low) * 0.07;

		return [zero && low === 0 && high > 0 ? 0 : low - room, zero && high === 0 && low < 0 ? 0 : high + room];
	}

	unit() {
		if (this.options.scale === 'relative')
			return '%';
		const shown = this.shown(), unit = shown.length ? shown[0].unit : this.plot.unit;

		return shown.every(line => line.unit === unit) ? unit || null : null;
	}

	// Those of dygraphs; of commits every few.
	xTicks(from, to, pixels, opts, dygraph) {
		if (!this.order)
			return this.Dygraph.dateTicker(from, to, pixels, opts, dygraph);
		const step = Math.max(1, Math.ceil((to - from) * opts('pixelsPerLabel') / pixels));
		const out = [];

		for (let at = Math.max(0, Math.ceil(from / step) * step); at <= to && at < this.order.names.length; at += step)
			out.push({v: at, label: this.order.named ? short(this.order.names[at], 16).replaceAll('&', '&amp;').replaceAll('<', '&lt;') : String(at + 1)});
		return out;
	}

	// At round values of the unit that is shown.
	yTicks(from, to, pixels, opts, dygraph) {
		const {factor} = this.scale, least = (to - from) * factor * 1e-6;

		return this.Dygraph.numericTicks(from * factor, to * factor, pixels, opts, dygraph)
			.map(({v, label}) => ({v: v / factor, label: label && digits(Math.abs(v) < least ? 0 : v, 12)}));
	}

	// Levels of a line as drawn: from the changes that stand.
	levels(line) {
		const out = [], middle = this.half;
		const changes = line.changes.filter(one => one.source !== 'fresh' && !one.withdrawn && one.before != null && one.after != null);
		const [first, last] = line.x.length ? [line.x[0], line.x.at(-1)] : this.extent;
		const place = (time, shift, unknown) => time ? this.placeOf(time) + shift : unknown;
		const startOf = one => one.trend ? this.placeOf(one.from) : this.placeOf(one.time) - middle;
		let free = first; // from where on nothing is drawn yet

		changes.forEach((one, i) => {
			const start = startOf(one), end = one.trend ? this.placeOf(one.to) : start;
			const before = lifted(line, one.before), after = lifted(line, one.after);
			const until = Math.min(place(one.ended, -middle, Infinity), place(one.level_to, middle, Infinity), i + 1 < changes.length ? startOf(changes[i + 1]) : last);
			const add = (from, to, start, end) => from < to && out.push({from, to, start, end, faint: one.source !== 'known'});

			add(Math.max(free, place(one.level_from, -middle, -Infinity)), start, before, before);
			add(start, end, before, after);
			add(end, until, after, after);
			free = Math.max(until, end);
		});
		return out;
	}

	// Where dygraphs draws, and where a place and a value are there.
	get area() {
		return this.dygraph.plotter_.area;
	}

	X(place) {
		return this.dygraph.toDomXCoord(place);
	}

	Y(value) {
		return this.dygraph.toDomYCoord(value);
	}

	// All that lies beneath the lines.
	drawGround(context) {
		const {x, y, w, h} = this.area;

		within(context, [x, y, w, h + 1], () => {
			for (const span of this.spans)
				this.drawSpan(context, span);
			for (const line of this.shown())
				this.drawChanges(context, line);
		});
	}

	drawSpan(context, span) {
		const {y, h} = this.area;
		const [from, to] = [span.from, span.to].map(time => this.inside(this.X(this.placeOf(time))));
		const width = Math.max(2, to - from);

		context.fillStyle = span.kind === 'silence' ? this.colors.silence : this.colors.outage;
		context.fillRect(from, y, width, h);
		// An outage is hatched, so that it differs by more than colour.
		if (span.kind !== 'outage')
			return;
		within(context, [from, y, width, h], () => {
			const lines = [];

			context.globalAlpha = 0.35;
			for (let x = from - h; x < from + width; x += 9)
				lines.push([x, y + h, x + h, y]);
			stroke(context, this.colors.axis, 1, lines);
		});
	}

	// The bands of places, and the changes.
	drawChanges(context, line) {
		const {x, y, w, h} = this.area;

		for (const one of line.changes) {
			const [at, low, high] = [this.placeOf(one.time) - this.half, this.placeOf(one.from ?? one.time) - this.half, this.placeOf(one.to ?? one.time) + this.half]
				.map(place => this.X(place));

			if (high < x || low > x + w)
				continue;
			context.fillStyle = this.colors.band;
			context.globalAlpha = one.source === 'fresh' || one.withdrawn ? 0.5 : 1;
			if (one.from != null && high - low >= 1)
				context.fillRect(low, y, high - low, h);
			context.globalAlpha = one.withdrawn ? 0.5 : 1;
			stroke(context, this.colors[verdictClass(one)], this.isMeant(one) ? 2 : 1, [[sharp(at), y, sharp(at), y + h]],
				isSure(one) ? [] : one.source === 'candidate' ? [2, 3] : [5, 4]);
		}
		context.globalAlpha = 1;
	}

	// Whether it is the one that the plot is about.
	isMeant(change) {
		return this.plot.mark && change.id === this.plot.mark;
	}

	// Above the lines, in whose noise they would drown; with a rim, so that they are seen there.
	drawLevels(context) {
		const {x, y, w, h} = this.area, shown = this.shown();

		within(context, [x, y, w, h], () => {
			for (const line of shown)
				for (const level of this.levels(line)) {
					const ends = [this.X(level.from), this.Y(level.start), this.X(level.to), this.Y(level.end)];
					const width = this.options.small ? 1.6 : 2.2;

					stroke(context, this.colors.ground, width + 1.4, [ends]);
					stroke(context, shown.length > 1 ? this.color(line) : this.colors.text, width, [ends], level.faint ? [6, 4] : []);
				}
		});
	}

	// The triangles above the changes, as buttons.
	writeMarks() {
		const range = this.window();
		const found = [];

		for (const line of this.shown())
			for (const change of line.changes) {
				const place = this.placeOf(change.time) - this.half;

				if (place >= range[0] && place <= range[1])
					found.push({line, change, x: this.X(place)});
			}
		found.sort((a, b) => Math.abs(b.change.size || 0) - Math.abs(a.change.size || 0));
		found.length = Math.min(found.length, MARKS_MOST);
		found.sort((a, b) => a.x - b.x);
		this.marks.replaceChildren(...found.map(one => this.markButton(one)));
		if (!this.options.small)
			this.labelMarks(found);
	}

	// Size and verdict in words beside the changes, as far as there is room: the next one's mark has its place.
	labelMarks(found) {
		const {area} = this, half = this.rem * 0.6;
		let taken = area.x - this.rem;

		found.forEach(({change, x}, i) => {
			const text = sizeText(change) + (isSure(change) ? '' : '?');
			const room = text.length * this.rem * 0.46;
			const end = i + 1 < found.length ? found[i + 1].x - half : area.x + area.w + this.rem;
			const right = x + half + room <= end;

			if (change.size && (right || x - half - room >= taken)) {
				const label = element('span', `chart-mark-text ${verdictClass(change)} ${right ? '' : 'chart-mark-left'}`, text);

				label.style.setProperty('left', (right ? x + half : x - half) + 'px');
				label.style.setProperty('top', area.y + 'px');
				this.marks.append(label);
			}
			taken = x + half + (right ? room : 0);
		});
	}

	markButton({line, change, x}) {
		const text = plain((this.lines.length > 1 && line.raw.name ? line.raw.name + ': ' : '') + describeChange(change, line.unit), 4000);
		const meant = this.isMeant(change) ? 'chart-meant' : '';
		const out = h('button', {class: `chart-mark ${verdictClass(change)} ${meant}`, tabindex: -1, title: text, 'aria-label': text,
			onclick: () => this.select(line, change)}, markOf(change));

		out.style.setProperty('left', x + 'px');
		out.style.setProperty('top', this.area.y + 'px');
		return out;
	}

	// Cursor, pins and the part that is being chosen, on the canvas that dygraphs has for it.
	drawTop() {
		if (!this.dygraph)
			return;
		const context = this.dygraph.canvas_ctx_;
		const {area} = this;

		context.clearRect(0, 0, this.width, this.height);
		within(context, [area.x - 6, area.y, area.w + 12, area.h], () => {
			if (this.drag && this.drag.kind === 'zoom') {
				const [a, b] = [this.drag.x, this.drag.now].sort((p, q) => p - q);

				context.fillStyle = this.colors.zoom;
				context.fillRect(a, area.y, b - a, area.h);
			}
			if (this.cursor !== null)
				this.drawCursor(context, area);
			this.pins.forEach((pin, i) => this.drawPin(context, pin, String(i + 1)));
		});
	}

	drawCursor(context, area) {
		const place = this.placeOf(this.cursor), x = sharp(this.X(place));

		stroke(context, this.colors.cursor, 1, [[x, area.y, x, area.y + area.h]]);
		for (const line of this.shown()) {
			const at = this.nearest(line, place);

			if (at >= 0)
				this.dot(context, line.x[at], line.y[at], this.options.small ? 2.5 : 3.5, this.color(line), false);
		}
	}

	drawPin(context, pin, text) {
		const line = this.lines[pin.line], at = line && line.shown ? this.indexAt(line, pin.time) : -1;

		if (at < 0)
			return;
		const label = [text, this.X(line.x[at]) + 8, this.Y(line.y[at]) - 7];

		this.dot(context, line.x[at], line.y[at], 5, this.color(line), true);
		context.fillStyle = this.colors.text;
		context.font = `600 ${0.75 * this.rem}px system-ui, sans-serif`;
		context.strokeStyle = this.colors.ground;
		context.lineWidth = 3;
		context.strokeText(...label);
		context.fillText(...label);
	}

	dot(context, x, y, size, color, ring) {
		if (Number.isNaN(y))
			return;
		context.beginPath();
		context.arc(this.X(x), this.Y(y), size, 0, 2 * Math.PI);
		context.fillStyle = color;
		context.strokeStyle = ring ? this.colors.text : this.colors.ground;
		context.lineWidth = ring ? 2 : 1.5;
		context.fill();
		context.stroke();
	}

	// The place of the existing point that is nearest; -1: there is none.
	nearest(line, place) {
		const i = lowerBound(line.x, place);
		let left = i - 1, right = i;

		while (left >= 0 && Number.isNaN(line.y[left]))
			left--;
		while (right < line.x.length && Number.isNaN(line.y[right]))
			right++;
		if (left < 0)
			return right < line.x.length ? right : -1;
		return right < line.x.length && line.x[right] - place < place - line.x[left] ? right : left;
	}

	indexAt(line, time) {
		if (!line.points) {
			const at = lowerBound(line.times, time);

			return at < line.n && line.times[at] === time ? at : -1;
		}
		return line.points.findIndex(i => line.times[i] === time);
	}

	// legend

	writeLegend() {
		const small = this.options.small;

		this.entries = this.lines.map(line => {
			const text = line.raw.name || this.plot.title || '';
			const swatch = element('span', 'chart-swatch'), value = element('span', 'chart-value');
			const parts = [swatch, h('span.chart-name', {title: plain(text, 4000)}, plain(text, 4000)), line.raw.branch ? element('span', 'badge quiet', line.raw.branch) : null, value];
			const entry = small || this.lines.length === 1 ? h('span.chart-entry', parts)
				: h('button.chart-entry', {'aria-pressed': String(line.shown), onclick: () => this.toggle(line)}, parts);

			swatch.style.setProperty('--swatch', this.color(line));
			return {entry, value};
		});
		this.when = element('span', 'chart-when');
		this.legend.replaceChildren(...this.entries.map(one => one.entry), this.when);
		this.frame.setAttribute('aria-label', this.options.label ||
			`${this.plot.title || this.lines.map(line => line.raw.name).join(', ')}: arrow keys move along the points, Enter pins one, plus and minus zoom, brackets go from change to change`);
	}

	toggle(line) {
		line.shown = !line.shown;
		this.entries[line.index].entry.setAttribute('aria-pressed', String(line.shown));
		this.redraw();
	}

	writeReadout() {
		if (!this.entries)
			return;
		// Without a cursor the last points, so that nothing moves when there is one.
		const range = this.window();
		const atOf = line => this.nearest(line, this.cursor === null ? Math.min(range[1], line.x.at(-1) ?? range[1]) : this.placeOf(this.cursor));

		for (const line of this.lines) {
			const at = atOf(line);

			this.entries[line.index].value.textContent = at < 0 ? '' : this.valueText(line, at);
		}
		this.legend.classList.toggle('chart-resting', this.cursor === null);
		this.when.replaceChildren();
		const [line] = this.shown();
		const at = line ? atOf(line) : -1;

		if (at < 0)
			return;
		const point = pointAt(line, at);
		const commit = attributeOf(line, 'commit', point);
		const spans = this.cursor === null || this.options.small ? [] : this.spans.filter(span => span.from <= (this.over ?? this.cursor) && (this.over ?? this.cursor) <= span.to);

		for (const span of spans)
			this.when.append(element('span', 'chart-span', span.text || span.kind), ' ');
		if (commit && !this.options.small)
			this.when.append(element('span', 'chart-commit', short(commit)), ' ');
		this.when.append(time(this.cursor ?? line.times[point]));
	}

	valueText(line, at) {
		const point = pointAt(line, at);
		const value = line.values[point];
		const text = formatValue(value, line.unit);

		return line.base ? `${percent(lifted(line, value))} (${text})` : text;
	}

	// pins

	pointOf(pin) {
		const line = this.lines[pin.line];
		const i = line ? line.times.indexOf(pin.time) : -1;

		if (i < 0)
			return null;
		const attributes = Object.fromEntries(Object.keys(line.raw.attributes || {}).map(name => [name, attributeOf(line, name, i)])
			.filter(([, value]) => value !== null));

		return {line: line.raw, time: pin.time, value: Number.isNaN(line.values[i]) ? null : line.values[i], unit: line.unit,
			attributes, before: i > 0 ? attributeOf(line, 'commit', i - 1) : null};
	}

	writePanel() {
		const parts = [];

		this.box.dataset.pins = this.pins.length;
		if (this.selected)
			parts.push(this.changeCard(this.selected));
		const points = this.pins.map(pin => this.pointOf(pin)).filter(Boolean);

		points.forEach((point, i) => parts.push(this.pinCard(point, i, i > 0 ? points[0] : null)));
		this.panel.replaceChildren(...parts);
	}

	card(className, title, onClose, rows, links) {
		return h('section', {class: `chart-card panel pin ${className}`},
			h('div.chart-card-head', title, h('button.close', {'aria-label': 'Close: ' + title.textContent, onclick: onClose}, '×')),
			facts(...rows.filter(([, fact]) => fact).map(([name, fact]) => [plain(name), typeof fact === 'string' ? plain(fact, 4000) : fact])),
			h('div.chart-links', links.filter(link => link.href).map(link => h('a', {href: link.href, rel: 'noreferrer'}, plain(link.text)))));
	}

	seriesFact(line) {
		return ['series', this.lines.length > 1 ? line.name : null];
	}

	pinCard(point, i, first) {
		const title = element('strong', null, `${i + 1} · ${formatValue(point.value, point.unit)}`);
		const apart = first && (point.time - first.time) / 1000;

		return this.card('', title, () => this.unpin(i), [
			this.seriesFact(point.line), ['time', time(point.time)], ...Object.entries(point.attributes),
			['against 1', first?.value ? `${percent(100 * (point.value / first.value - 1))}, ${duration(Math.abs(apart))} ${apart < 0 ? 'earlier' : 'later'}` : null],
		], pointLinks(point, first));
	}

	changeCard({line, change}) {
		const {unit} = line;
		const title = element('strong', verdictClass(change), `${markOf(change)} ${sizeText(change)}`);
		const state = change.withdrawn ? 'withdrawn: it was announced, and is no longer found' : sourceWords[change.source] || (change.ended ? 'recorded, over' : 'recorded');

		return this.card('chart-change', title, () => this.select(null, null), [
			this.seriesFact(line.raw),
			['level', `${formatValue(change.before, unit)} → ${formatValue(change.after, unit)}`],
			[change.trend ? 'visible' : 'time', time(change.time)],
			[change.trend ? 'from, to' : 'place (95%)', change.from && change.to > change.from ? [time(change.from), ' – ', time(change.to)] : null],
			['commit', change.commit],
			['over since', change.ended ? time(change.ended) : null],
			['state', state],
			['triage', change.source === 'fresh' ? null : change.triage],
		], this.options.changeLinks ? this.options.changeLinks(change) : []);
	}

	select(line, change) {
		this.selected = change && !(this.selected && this.selected.change === change) ? {line, change} : null;
		this.writePanel();
		if (this.selected)
			this.say(describeChange(change, line.unit));
	}

	pin(lineIndex, time, quiet) {
		const line = this.lines[lineIndex];

		if (!line || this.indexAt(line, time) < 0)
			return;
		const known = this.pins.findIndex(pin => pin.line === lineIndex && pin.time === time);

		if (known >= 0 && !quiet) {
			this.unpin(known);
			return;
		}
		if (known < 0)
			this.pins.push({line: lineIndex, time});
		if (this.pins.length > 6)
			this.pins.shift();
		this.pinned(quiet);
	}

	unpin(i) {
		this.pins.splice(i, 1);
		this.pinned(false);
	}

	pinned(quiet) {
		this.writePanel();
		this.drawTop();
		if (!quiet)
			this.options.onPin?.(this.pins.slice());
	}

	// the pointer

	at(event) {
		const box = this.frame.getBoundingClientRect();

		return {x: event.clientX - box.left, y: event.clientY - box.top};
	}

	inside(x) {
		const {area} = this;

		return Math.max(area.x, Math.min(area.x + area.w, x));
	}

	pointerDown(event) {
		if (!this.dygraph || event.button > 0 || event.target !== this.frame)
			return;
		const {x, y} = this.at(event);

		if (event.pointerType === 'touch') {
			this.touches.set(event.pointerId, x);
			if (this.touches.size === 2) {
				const [a, b] = [...this.touches.values()];

				this.drag = {kind: 'pinch', apart: Math.max(20, Math.abs(a - b)), middle: (a + b) / 2, window: this.window()};
				return;
			}
		}
		this.frame.setPointerCapture(event.pointerId);
		this.drag = {kind: 'click', wants: event.shiftKey || event.pointerType === 'touch' ? 'pan' : 'zoom', x: this.inside(x), y, now: x, window: this.window(),
			moved: 0, pointer: event.pointerId};
		this.frame.focus({preventScroll: true, focusVisible: false});
	}

	pointerMove(event) {
		if (!this.dygraph)
			return;
		const {x, y} = this.at(event);

		if (this.touches.has(event.pointerId))
			this.touches.set(event.pointerId, x);
		if (!this.drag) {
			this.hover(x, y);
			return;
		}
		const drag = this.drag;

		if (drag.kind === 'pinch') {
			const [a, b] = [...this.touches.values()];

			this.zoomAround(drag.middle, drag.apart / Math.max(20, Math.abs(a - b)), drag.window);
			return;
		}
		drag.moved = Math.max(drag.moved, Math.abs(x - drag.x));
		drag.now = this.inside(x);
		if (drag.kind === 'click' && drag.moved > 4)
			drag.kind = drag.wants;
		if (drag.kind === 'pan') {
			const {area} = this;
			const by = ((drag.x - x) / area.w) * (drag.window[1] - drag.window[0]);

			this.show(drag.window[0] + by, drag.window[1] + by);
		} else {
			this.drawTop();
		}
	}

	pointerUp(event) {
		const drag = this.drag;

		this.touches.delete(event.pointerId);
		this.drag = null;
		if (!drag || !this.dygraph)
			return;
		if (drag.kind === 'zoom') {
			const [a, b] = [drag.x, drag.now].sort((p, q) => p - q);

			this.show(this.dygraph.toDataXCoord(a), this.dygraph.toDataXCoord(b));
		} else if (drag.kind === 'click') {
			const best = this.pick(drag.x, drag.y);

			this.showCursor(best?.time ?? null);
			if (best)
				this.pin(best.line.index, best.time, false);
		}
		this.drawTop();
	}

	// The point that is meant: of all lines the nearest.
	pick(x, y) {
		const place = this.dygraph.toDataXCoord(x);
		let best = null;

		for (const line of this.shown()) {
			const at = this.nearest(line, place);

			if (at < 0)
				continue;
			const far = Math.hypot(this.X(line.x[at]) - x, (this.Y(line.y[at]) - y) / 2);

			if (!best || far < best.far)
				best = {line, at, far, time: line.times[pointAt(line, at)]};
		}
		return best;
	}

	hover(x, y) {
		const best = this.pick(this.inside(x), y);

		this.over = this.timeAt(this.dygraph.toDataXCoord(this.inside(x))); // also where there are no points
		this.showCursor(best ? best.time : null);
		if (this.spans.length > 0)
			this.writeReadout();
	}

	wheel(event) {
		if (!this.dygraph || this.options.small)
			return;
		const [from, to] = this.window();
		const {x} = this.at(event);

		if (event.ctrlKey || event.metaKey) {
			event.preventDefault();
			this.zoomAround(x, Math.exp(Math.max(-60, Math.min(60, event.deltaY)) / 100), [from, to]);
			return;
		}
		const delta = (Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : event.deltaY) * (event.deltaMode === 1 ? 16 : 1);
		const by = (delta / this.area.w) * (to - from);

		// At the end of the points the page scrolls on.
		if ((this.view === null && !this.home()) || (by < 0 && from <= this.extent[0]) || (by > 0 && to >= this.extent[1]))
			return;
		event.preventDefault();
		this.show(from + by, to + by);
	}

	// the view

	zoomAround(x, factor, [from, to]) {
		const {area} = this;
		const part = (this.inside(x) - area.x) / area.w;
		const middle = from + part * (to - from);

		this.show(middle - (middle - from) * factor, middle + (to - middle) * factor);
	}

	// Shows these places, within what there is.
	show(from, to) {
		const {half} = this;
		const low = this.extent[0] - half, high = this.extent[1] + half;
		const width = Math.max(to - from, this.leastWidth());

		if (to - from < width) {
			const middle = (from + to) / 2;

			from = middle - width / 2;
			to = middle + width / 2;
		}
		if (width >= high - low) {
			this.moveTo(this.home() ? [this.timeAt(low + half), this.timeAt(high - half)] : null);
			return;
		}
		if (from < low) {
			from = low;
			to = low + width;
		} else if (to > high) {
			to = high;
			from = high - width;
		}
		this.moveTo([this.timeAt(from + half), this.timeAt(to - half)]);
	}

	leastWidth() {
		const line = this.lines.find(one => one.n > LEAST_POINTS);

		if (this.order)
			return LEAST_POINTS;
		return line ? Math.min(((line.x[line.x.length - 1] - line.x[0]) / line.x.length) * LEAST_POINTS, this.extent[1] - this.extent[0]) : 1000;
	}

	setView(view) {
		for (const one of this.options.linked && this.options.shareRange ? [...linked].filter(other => other.options.shareRange) : [this]) {
			one.view = view;
			one.redraw();
		}
	}

	// Browsers limit how often an address may change.
	moveTo(view) {
		this.setView(view);
		clearTimeout(this.telling);
		this.telling = setTimeout(() => {
			this.telling = 0;
			this.options.onRange?.(this.view);
		}, 250);
	}

	// To what was shown at first; from there to all points.
	out() {
		this.moveTo(this.view === null && this.home() ? this.extent.map(place => this.timeAt(place)) : null);
	}

	showCursor(time) {
		for (const one of this.options.linked ? linked : [this]) {
			if (one.cursor === time)
				continue;
			one.cursor = time;
			one.writeReadout();
			if (!one.pending)
				one.drawTop();
		}
	}

	// the keys

	key(event) {
		if (!this.dygraph || event.ctrlKey || event.metaKey || event.altKey || event.target !== this.frame)
			return;
		const [from, to] = this.window();
		const {area} = this;
		const focus = this.cursor === null ? area.x + area.w / 2 : this.X(this.placeOf(this.cursor));
		const actions = {
			ArrowLeft: () => (event.shiftKey ? this.pan(-0.2) : this.step(-1)),
			ArrowRight: () => (event.shiftKey ? this.pan(0.2) : this.step(1)),
			'+': () => this.zoomAround(focus, 0.6, [from, to]),
			'=': () => this.zoomAround(focus, 0.6, [from, to]),
			'-': () => this.zoomAround(focus, 1 / 0.6, [from, to]),
			0: () => this.out(),
			'[': () => this.jump(-1),
			']': () => this.jump(1),
			Enter: () => this.pinCursor(),
			' ': () => this.pinCursor(),
			Escape: () => {
				if (this.pins.length === 0 && !this.selected)
					this.showCursor(null);
				this.pins = [];
				this.selected = null;
				this.pinned(false);
			},
		};

		if (!actions[event.key])
			return;
		event.preventDefault();
		event.stopPropagation();
		actions[event.key]();
	}

	pan(part) {
		const [from, to] = this.window();

		if (this.view || this.home())
			this.show(from + part * (to - from), to + part * (to - from));
	}

	current() {
		return this.shown().find(line => line.n > 0) || null;
	}

	step(by) {
		const line = this.current();

		if (!line)
			return;
		const range = this.window();
		let at = by > 0 ? lowerBound(line.x, range[0]) : Math.max(0, lowerBound(line.x, range[1]) - 1);

		if (this.cursor !== null)
			at = this.nearest(line, this.placeOf(this.cursor)) + by;
		while (at > 0 && at < line.x.length - 1 && Number.isNaN(line.y[at]))
			at += by < 0 ? -1 : 1;
		if (at < 0 || at >= line.x.length)
			return;
		const time = line.times[pointAt(line, at)];

		this.over = null;
		this.showCursor(time);
		this.follow(line.x[at]);
		this.say(`${timeText(time)}: ${this.valueText(line, at)}`);
	}

	// Moves the view so that it has this place.
	follow(place) {
		const [from, to] = this.window();

		if (place < from || place > to)
			this.show(place - (to - from) / 2, place + (to - from) / 2);
	}

	jump(by) {
		const all = this.shown().flatMap(line => line.changes.map(change => ({line, change}))).sort((a, b) => a.change.time - b.change.time);

		if (all.length === 0)
			return;
		const from = this.selected ? all.findIndex(one => one.change === this.selected.change) : by > 0 ? -1 : all.length;
		const next = all[Math.max(0, Math.min(all.length - 1, from + by))];

		this.over = null;
		this.showCursor(next.change.time);
		this.follow(this.placeOf(next.change.time));
		this.selected = null;
		this.select(next.line, next.change);
	}

	pinCursor() {
		const line = this.current();

		if (!line || this.cursor === null)
			return;
		const at = this.nearest(line, this.placeOf(this.cursor));

		if (at >= 0)
			this.pin(line.index, line.times[pointAt(line, at)], false);
	}

	say(text) {
		this.spoken.textContent = text;
	}

	// for the page

	update(plot, options = {}) {
		this.options = {...this.options, ...options};
		if ('range' in options && !this.telling)
			this.view = options.range;
		this.selected = null;
		this.take(plot);
		if (this.Dygraph) {
			this.writeLegend();
			this.writePanel();
			this.writeReadout();
			this.redraw();
		}
	}

	destroy() {
		this.stop.abort();
		clearTimeout(this.telling);
		cancelAnimationFrame(this.pending);
		this.resizes.disconnect();
		linked.delete(this);
		this.dygraph?.destroy();
		this.dygraph = null;
	}
}

// A link of a template of the configuration; null if a value is missing.
function link(template, values) {
	let missing = !template;
	const href = (template || '').replace(/\{([^}]*)\}/g, (all, key) => {
		missing ||= !values[key];
		return encodeURIComponent(values[key] ?? '');
	});

	return missing ? null : href;
}

// To the commit of a point, and what is between it and another: `first`, or the point before.
function pointLinks(point, first) {
	const commit = point.attributes.commit;
	const other = first ? first.attributes.commit : point.before;
	const [before, after] = first && first.time > point.time ? [commit, other] : [other, commit];
	const values = {commit, before, after, test: point.line.test, metric: point.line.metric};

	return [{text: 'commit', href: link(point.line.commit_url, values)},
		{text: first ? 'compare with 1' : 'compare with the point before', href: before !== after ? link(point.line.compare_url, values) : null}];
}

// Rows of one x each. A set without a value there has null, which connects its neighbours; NaN
// interrupts its line.
function merged(sets, range) {
	const rows = [];
	const placeOf = set => set.x[set.indices[set.at]] ?? Infinity;
	let next;

	while ((next = Math.min(...sets.map(placeOf))) < Infinity)
		rows.push([next, ...sets.map(set => (placeOf(set) === next ? set.y[set.indices[set.at++]] : null))]);
	return rows.length > 0 ? rows : range.map(x => [x, ...sets.map(() => null)]);
}

// Draws the plot into the element. Options: small, linked, shareRange, scale, x, smooth, range, pins,
// label, changeLinks(change), onRange(range), onPin(pins).
export function createChart(box, plot, options) {
	return new Chart(box, plot, options || {});
}
