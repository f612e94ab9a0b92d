// What the pages of states (tests, silences, status, clusters) share.
import {get} from './api.js';
import {ago, h, number, plain, replace, style, waiting} from './dom.js';

// Draws again without losing the place of the keyboard: what is focused has a data-key that only it
// has, or is drawn just as it was. What is pressed just now stays until it is released: a click on it would be lost.
export function redraw(element, draw) {
	if (element.matches(':active')) {
		setTimeout(() => redraw(element, draw), 50);
		return;
	}
	const focused = element.contains(document.activeElement) ? document.activeElement : null;
	const open = [...element.querySelectorAll('details[open][data-key]')].map(details => details.dataset.key);
	draw();
	for (const details of element.querySelectorAll('details[data-key]'))
		if (open.includes(details.dataset.key))
			details.open = true;
	if (focused && !focused.isConnected)
		[...element.querySelectorAll(focused.localName)].find(other => focused.dataset.key ? other.dataset.key === focused.dataset.key
			: other.isEqualNode(focused))?.focus({preventScroll: true});
}

// Calls `look` again every so often, and soon after what happens; not while the page is hidden.
// Returns what asks for a look now.
export function keepLooking(context, seconds, look, handlers = []) {
	let timer = null, looking = false, again = false;
	const soon = ms => {
		clearTimeout(timer);
		timer = setTimeout(run, ms);
	};
	async function run() {
		if (context.signal.aborted)
			return;
		if (document.hidden) {
			soon(seconds * 1000);
			return;
		}
		if (looking) {
			again = true;
			return;
		}
		looking = true;
		try {
			await look();
		} catch {
			// The next look may succeed; that the agent cannot be reached is said once for all pages.
		}
		looking = false;
		soon(again ? 500 : seconds * 1000);
		again = false;
	}
	context.live?.listen(Object.fromEntries([...handlers, 'again', 'configuration'].map(kind => [kind, () => soon(300)])), context.signal);
	context.signal.addEventListener('abort', () => clearTimeout(timer));
	document.addEventListener('visibilitychange', () => document.hidden || soon(100), {signal: context.signal});
	soon(seconds * 1000);
	return run;
}

// A switch among a few: [value, text, count or null], the chosen one is pressed.
export function choice(label, options, chosen, choose) {
	return h('div.choice', {role: 'group', 'aria-label': label}, options.map(([value, text, count]) =>
		h('button', {'data-key': `choice ${value}`, 'aria-pressed': String(value === chosen), onclick: () => choose(value)},
			plain(text), count == null ? null : h('span.count', number(count)))));
}

// A state by a shape, a word and a colour.
export function mark([kind, shape, word]) {
	return h('span', {class: `state ${kind}`}, h('span', {'aria-hidden': 'true'}, shape), word);
}

// A table; columns: [heading, kind, what a row has there]. Of a kind cells are: 'wide' or 'bare' (they speak for themselves),
// 'word' or 'number' (where there is no room for a head, they say what they are). With a name a long one scrolls by itself.
export function table(columns, rows, attributes = () => ({}), name = null) {
	const isNumber = kind => kind.startsWith('number');
	const says = (heading, kind) => kind === 'word' || isNumber(kind) ? heading.toLowerCase() : null;
	const scrolls = name && rows.length > 8 ? {class: 'table tall', tabindex: 0, role: 'region', 'aria-label': name} : {class: 'table'};

	return h('div', scrolls, h('table.stack',
		h('thead', h('tr', columns.map(([heading, kind]) => h('th', {scope: 'col', class: isNumber(kind) ? 'number' : null}, heading)))),
		h('tbody', rows.map((row, i) => h('tr', attributes(row), columns.map(([heading, kind, cell]) =>
			h('td', {class: kind, 'data-label': says(heading, kind)}, cell(row, i))))))));
}

// A page of what the agent answers now, and again every so often: `draw(answer)` fills `main`.
export async function watch(main, context, {title, path, seconds, draw, handlers}) {
	style('states.css');
	replace(main, h('h1', title), waiting('Asking the agent …'));
	async function look() {
		const answer = await get(path, null, context.signal);
		redraw(main, () => draw(answer));
	}
	await look();
	keepLooking(context, seconds, look, handlers);
}

// When something is due.
export function due(value) {
	const left = value ? Date.parse(value) - Date.now() : NaN;
	const element = ago(value);
	if (Math.abs(left) < 60000)
		element.textContent = left > 0 ? 'in a minute' : 'due';
	return element;
}
