// Elements, and how numbers and times are written. What comes from outside is only ever text.

// h('a.some.classes', {href: '/y', onclick: f, 'aria-label': 'z'}, 'text', element, null, [more]). Attributes may be left out.
export function h(name, ...children) {
	const [tag, ...classes] = name.split('.');
	const element = document.createElement(tag);
	const attributes = children[0]?.constructor === Object ? children.shift() : {};

	if (classes.length > 0)
		element.className = classes.join(' ');
	if (tag === 'button')
		element.type = 'button'; // else it would submit its form
	for (const [key, value] of Object.entries(attributes)) {
		if (value == null || value === false)
			continue;
		if (typeof value === 'function')
			element.addEventListener(key.slice(2), value);
		else if (key === 'value' || key === 'checked' || key === 'disabled' || key === 'selected')
			element[key] = value;
		else if (key === 'href' || key === 'src')
			element.setAttribute(key, safeUrl(String(value)));
		else
			element.setAttribute(key, value === true ? '' : String(value));
	}
	append(element, children);
	return element;
}

export function append(element, children) {
	for (const child of [children].flat(Infinity))
		if (child != null && child !== false)
			element.append(child instanceof Node ? child : String(child));
	return element;
}

export function replace(element, ...children) {
	element.replaceChildren();
	return append(element, children);
}

// Links lead to pages, and run nothing.
function safeUrl(url) {
	const scheme = /^[^/?#]*:/.exec(url.trim());
	return !scheme || /^https?:$/i.test(scheme[0]) ? url : '#';
}

// Text from outside as it is safe to show in a line: control and direction characters are made
// visible, so that a name cannot pose as another; a long one is cut, the whole is in the title.
export function plain(text, most = 200) {
	const clean = String(text ?? '').replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g,
		c => c === '\n' ? '↵' : '�');
	return clean.length > most ? `${clean.slice(0, most - 1)}…` : clean;
}

// A commit as people write it.
export function short(commit, most = 40) {
	return /^[0-9a-f]{12,}$/.test(commit ?? '') ? commit.slice(0, 10) : plain(commit, most);
}

// An element for a name from outside.
export function name(text, most = 200) {
	return h('bdi.name', {title: String(text ?? '').length > most ? plain(text, 2000) : null}, plain(text, most));
}

// Links to pages of the agent.
export const to = (page, parameters, ...content) => h('a', {href: `${page}?${new URLSearchParams(parameters)}`}, content);
export const toChange = (id, ...content) => h('a', {href: `/change/${id}`}, content);

// "3 changes"
export const many = (count, word) => `${number(count)} ${word}${count === 1 ? '' : 's'}`;

// The first ones of a list.
export const names = (texts, most = 50) => texts.slice(0, most).map((text, i) => [i ? ', ' : '', name(text, 80)]);

// 12345.678 -> "12,346"; four significant digits, as few as tell values apart.
export function number(value, unit) {
	if (!Number.isFinite(value))
		return '–';
	const size = Math.abs(value);
	const text = size !== 0 && (size >= 1e9 || size < 1e-4)
		? value.toExponential(3)
		: value.toLocaleString('en', {maximumSignificantDigits: size >= 1000 ? Math.max(4, Math.ceil(Math.log10(size + 1))) : 4});
	return unit ? `${text} ${plain(unit, 20)}` : text;
}

// "+12.3%"
export function percent(value) {
	if (!Number.isFinite(value))
		return '–';
	const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
	return `${value > 0 ? '+' : value < 0 ? '−' : ''}${Math.abs(value).toFixed(digits)}%`;
}

const local = new Intl.DateTimeFormat(undefined, {dateStyle: 'medium', timeStyle: 'short'});
const exact = new Intl.DateTimeFormat(undefined, {dateStyle: 'medium', timeStyle: 'medium'});
const relative = new Intl.RelativeTimeFormat('en', {numeric: 'auto'});

// In the viewer's zone; seconds only where there are some.
export function timeText(value) {
	const date = new Date(value);
	return (date.getSeconds() ? exact : local).format(date);
}

// A time (ISO or ms) as it is written, with UTC on hover.
function moment(value, write) {
	const date = new Date(value ?? NaN);
	if (Number.isNaN(date.getTime()))
		return h('span', '–');
	const iso = date.toISOString();
	return h('time', {datetime: iso, title: `${timeText(date)} (${iso.replace('T', ' ').replace(/\.000Z$|Z$/, ' UTC')})`}, write(date));
}

export const time = value => moment(value, timeText);

// "3 hours ago"
export const ago = (value, now = Date.now()) => moment(value, date => {
	const left = (date.getTime() - now) / 1000;
	for (const [unit, size] of [['year', 31557600], ['month', 2629800], ['day', 86400], ['hour', 3600], ['minute', 60]])
		if (Math.abs(left) >= size)
			return relative.format(Math.trunc(left / size), unit);
	return 'now';
});

// "4 min 20 s"
export function duration(seconds) {
	if (seconds == null)
		return '–';
	const units = [['d', 86400], ['h', 3600], ['min', 60], ['s', 1]];
	let left = Math.round(seconds);
	if (left < 1)
		return `${Math.round(seconds * 1000)} ms`;
	const parts = [];
	for (const [unit, size] of units)
		if (left >= size && parts.length < 2) {
			parts.push(`${Math.floor(left / size)} ${unit}`);
			left %= size;
		}
	return parts.join(' ');
}

// Worse, better or neither: a shape, a word and a colour. `regression` and `direction` as the API
// has them; `size` in percent.
export function verdict(regression, size, direction) {
	const [kind, word] = direction === 0 ? ['neither', 'changed'] : regression ? ['worse', 'worse'] : ['better', 'better'];
	const shape = size == null ? '◆' : size > 0 ? '▲' : '▼';
	return h('span', {class: `verdict ${kind}`}, h('span', {'aria-hidden': 'true'}, shape), ` ${percent(size)} `, h('span.word', word));
}

// What people said of a change, as a word on a label.
export function badge(text, kind = '') {
	return h('span', {class: `badge ${kind}`}, plain(text, 40));
}

// What is named and what it is.
export function facts(...rows) {
	return h('dl.facts', rows.filter(Boolean).map(([term, ...what]) => [h('dt', term), h('dd', what)]));
}

// A line of what went wrong, which stays until it is closed; or of what was done.
export function notice(text, {problem = false, action = null} = {}) {
	const line = h('div', {class: problem ? 'notice problem' : 'notice'}, h('span', plain(text, 500)),
		action ? h('button', {onclick: () => { line.remove(); action.run(); }}, action.text) : null,
		h('button.close', {'aria-label': 'Close', onclick: () => line.remove()}, '×'));
	document.getElementById('notices').append(line);
	if (!problem)
		setTimeout(() => line.remove(), 8000);
	return line;
}

// Shows that something is awaited, and lets it be cancelled.
export function waiting(text, cancel = null) {
	return h('p.waiting', {role: 'status'}, h('span.spinner', {'aria-hidden': 'true'}), plain(text),
		cancel ? h('button', {onclick: cancel}, 'Cancel') : null);
}

// Shows in the box that a promise is awaited, unless it takes no time.
export async function awaited(box, promise, text, cancel = null, patience = 300) {
	const slow = setTimeout(() => replace(box, waiting(text, cancel)), patience);
	try {
		return await promise;
	} finally {
		clearTimeout(slow);
	}
}

// The address of this page with other `parameters` (an object; null removes one).
export function address(parameters) {
	const url = new URL(location.href);
	for (const [key, value] of Object.entries(parameters))
		if (value == null || value === '')
			url.searchParams.delete(key);
		else
			url.searchParams.set(key, value);
	return url.pathname + url.search;
}

// Puts them into the address without a new page.
export const remember = parameters => history.replaceState(null, '', address(parameters));

// Loads a page's own style sheet, once.
export function style(file) {
	if (!document.querySelector(`link[href="/assets/${file}"]`))
		document.head.append(h('link', {rel: 'stylesheet', href: `/assets/${file}`}));
}
