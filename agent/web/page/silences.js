// Silences: those that hold, will hold and are over; adding one, with what it would select.
import {get, post} from './api.js';
import {ago, badge, duration, h, name, notice, number, remember, replace, style, time, waiting} from './dom.js';
import {preview, silence} from './silence.js';
import {keepLooking, mark, redraw} from './states.js';
import {person, personField} from './triage.js';

const OVER = 200; // shown at most

const shapes = {active: ['soon', '◼', 'active'], pending: ['idle', '◷', 'pending'], over: ['idle', '✓', 'over']};

function when(silence) {
	if (silence.state === 'active')
		return ['ends ', ago(silence.until), ' (', time(silence.until), ')'];
	if (silence.state === 'pending')
		return ['begins ', ago(silence.from), ' (', time(silence.from), '), for ', duration((Date.parse(silence.until) - Date.parse(silence.from)) / 1000)];
	return silence.ended ? ['ended ', ago(silence.ended), silence.ended_by ? [' by ', name(silence.ended_by, 80)] : '', '; it was until ', time(silence.until)]
		: ['was over ', ago(silence.until), ' (', time(silence.until), ')'];
}

function card(silence, {context, look, add}) {
	const reach = h('div.preview', {hidden: true});
	const end = context.may('triager') && silence.state !== 'over'
		? h('button.small', {'data-key': `end ${silence.id}`, onclick: async () => {
			end.disabled = true;
			try {
				await post(`/api/v1/silences/${silence.id}/end`, {person: person(context)});
				notice(`Silence ${silence.id} has ended. The changes that it held are announced now.`);
				look();
			} finally {
				end.disabled = false;
			}
		}}, 'End')
		: null;
	const selects = silence.state === 'over' ? null : h('button.small', {'data-key': `selects ${silence.id}`, onclick: () => {
		reach.hidden = false;
		replace(reach, waiting('Looking what it selects …'));
		preview(reach, silence.matchers, context);
	}}, 'What it selects');
	return h('li.card', {'data-silence': silence.id},
		h('div.card-line', h('div.matchers', name(silence.matchers, 600)), mark(shapes[silence.state])),
		silence.reason ? h('p', name(silence.reason, 1000)) : null,
		h('p.small.quiet', badge(`#${silence.id}`), ' ', when(silence),
			silence.owner && silence.owner !== silence.person ? [' · of ', name(silence.owner, 80)] : '',
			' · added ', ago(silence.created), silence.person ? [' by ', name(silence.person, 80)] : ''),
		h('div.actions', end, selects, context.may('triager')
			? h('button.small', {'data-key': `again ${silence.id}`, onclick: () => add({...silence, from: null})}, silence.state === 'over' ? 'Again' : 'Copy') : null),
		reach);
}

export async function show(main, context) {
	style('states.css');
	let all = new URLSearchParams(location.search).get('all') === '1', silences = [];
	const lists = h('div');
	const opener = context.may('triager') ? h('button.main', {onclick: () => add({})}, 'New silence') : null;

	async function add(given) {
		if (await silence(context, {for: '2h', ...given}))
			await look();
	}

	async function look() {
		silences = (await get('/api/v1/silences', {all: all ? 'true' : null}, context.signal)).silences;
		redraw(main, draw);
	}

	function part(title, state, none) {
		const found = silences.filter(silence => silence.state === state).sort((a, b) => state === 'over' ? b.id - a.id : Date.parse(a.until) - Date.parse(b.until));
		return [h('h2', title, h('span.count', number(found.length))),
			found.length ? h('ul.cards', found.slice(0, OVER).map(silence => card(silence, {context, look, add}))) : h('p.quiet', none),
			found.length > OVER ? h('p.quiet', `and ${number(found.length - OVER)} more`) : null];
	}

	function draw() {
		replace(lists, part('Active', 'active', 'Nothing is silenced now.'),
			silences.some(silence => silence.state === 'pending') ? part('Pending', 'pending', '') : null,
			all ? part('Over', 'over', 'None that is still known.') : null,
			h('p', h('button', {'data-key': 'over', 'aria-pressed': String(all), onclick: () => {
				all = !all;
				remember({all: all ? '1' : null});
				look();
			}}, all ? 'Without those that are over' : 'Also those that are over')));
	}

	replace(main, h('div.heading', h('h1', 'Silences'), opener), opener ? personField(context) : null, lists);
	replace(lists, waiting('Loading the silences …'));
	await look();
	keepLooking(context, 30, look, ['silence']);
	const given = Object.fromEntries(new URLSearchParams(location.search));
	if (opener && given.matchers) {
		await add(given);
		remember({matchers: null, for: null, from: null, reason: null, owner: null});
	}
}
