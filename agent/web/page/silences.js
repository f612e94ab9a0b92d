// Silences: those that hold, will hold and are over; adding one, with what it would select.
import {get, post} from './api.js';
import {ago, badge, duration, h, name, notice, number, plain, remember, replace, style, time, verdict, waiting} from './dom.js';
import {keepLooking, mark, redraw} from './states.js';
import {person, personField} from './triage.js';

const OVER = 200; // shown at most

function testLink(test) {
	return h('a', {href: `/tests?test=${encodeURIComponent(test)}`}, name(test, 80));
}

function more(shown, all) {
	return all > shown ? h('li', {class: 'quiet'}, `and ${number(all - shown)} more`) : null;
}

// What matchers select: a sentence, and lists of the first ones.
function selected(answer) {
	const count = (n, one) => `${number(n)} ${one}${n === 1 ? '' : 's'}`;
	return [
		h('p', {}, 'Selects ', h('strong', {}, count(answer.open_changes, 'open change')), ' now, and news of ',
			h('strong', {}, count(answer.tests, 'test')), '.'),
		answer.warning ? h('p', {class: 'warn'}, '⚠ ', name(answer.warning, 500)) : null,
		answer.open_changes ? h('details', {'data-key': 'changes'}, h('summary', {}, 'Open changes'), h('ul', {}, answer.first_changes.map(change =>
			h('li', {}, h('a', {href: `/change/${change.id}`}, name(change.test, 80), ' ', name(change.metric, 80)), ' ', verdict(change.regression, change.size, change.direction))),
		more(answer.first_changes.length, answer.open_changes))) : null,
		answer.tests ? h('details', {'data-key': 'tests'}, h('summary', {}, 'Tests'), h('ul', {}, answer.first_tests.map(test => h('li', {}, testLink(test))),
			more(answer.first_tests.length, answer.tests))) : null,
	];
}

// Shows it in `box`, if that still waits for it.
async function preview(box, matchers, context, waits = () => true) {
	let found;
	try {
		const answer = await get('/api/v1/silences/preview', {matchers}, context.signal);
		found = answer.problem ? h('p', {class: 'quiet'}, plain(answer.problem, 500)) : selected(answer);
	} catch (error) {
		found = h('p', {class: 'problem'}, plain(error.message, 500));
	}
	if (waits())
		redraw(box, () => replace(box, found));
}

function field(id, label, input, ...hints) {
	return h('div', {class: 'field'}, h('label', {for: id}, label), input, hints);
}

function form(context, added) {
	const search = new URLSearchParams(location.search);
	const text = (id, label, value, options = {}) => h('input', {id, name: id, value, autocomplete: 'off', spellcheck: 'false', ...options});
	const matchers = text('matchers', '', search.get('matchers') ?? '', {required: true, maxlength: 4096, placeholder: 'test=~"db.*", region="eu"', class: 'matchers'});
	const lasts = text('for', '', search.get('for') ?? '2h', {required: true, list: 'lasting', maxlength: 100});
	const from = text('from', '', search.get('from') ?? '', {placeholder: 'now', maxlength: 100});
	const reason = text('reason', '', search.get('reason') ?? '', {maxlength: 1000, placeholder: 'migration to new disks, OPS-1234', spellcheck: 'true'});
	const owner = text('owner', '', search.get('owner') ?? '', {maxlength: 200, placeholder: person(context) ?? context.me.person});
	const none = () => h('p', {class: 'quiet'}, 'What it selects is shown here.');
	const shown = h('div', {class: 'preview', role: 'status', 'aria-live': 'polite'}, none());
	const problem = h('p', {class: 'problem', role: 'alert', hidden: true});
	const submit = h('button', {class: 'main'}, 'Silence');
	let asked = 0, timer = null;

	function look() {
		const turn = ++asked, text = matchers.value.trim();
		remember({matchers: text});
		if (text)
			preview(shown, text, context, () => turn === asked);
		else
			replace(shown, none());
	}

	matchers.addEventListener('input', () => {
		clearTimeout(timer);
		timer = setTimeout(look, 250);
	});
	const element = h('form', {id: 'new', class: 'form panel', 'aria-label': 'New silence', onsubmit: async event => {
		event.preventDefault();
		submit.disabled = true;
		problem.hidden = true;
		// An end (friday 18:00, 2026-12-24) or how long (2h, 3 days).
		const length = lasts.value.trim();
		const lasting = /^[\d.]+\s*[a-z]/i.test(length) ? {for: length} : {until: length};
		try {
			const silence = await post('/api/v1/silences', {matchers: matchers.value, ...lasting, from: from.value.trim() || null,
				reason: reason.value.trim() || null, owner: owner.value.trim() || null,
				person: person(context)});
			notice(`Silence ${silence.id} ${silence.state === 'pending' ? 'will hold' : 'holds'}: ${number(silence.open_changes)} open changes, ${number(silence.tests)} tests.`);
			matchers.value = reason.value = '';
			asked++;
			replace(shown, none());
			remember({matchers: null, for: null, from: null, reason: null, owner: null});
			added(silence);
		} catch (error) {
			if (error.name !== 'AbortError') {
				problem.hidden = false;
				replace(problem, plain(error.message, 500));
			}
		} finally {
			submit.disabled = false;
		}
	}},
	field('matchers', 'What is silenced', matchers, h('p', {class: 'hint'}, 'Matchers of test, group, metric, branch, direction (regression, improvement), source, and of labels and attributes; all must match. ',
		h('code', {}, '='), ' ', h('code', {}, '!='), ' ', h('code', {}, '=~'), ' ', h('code', {}, '!~'))),
	shown,
	h('div', {class: 'fields'},
		field('for', 'For how long, or until when', lasts, h('datalist', {id: 'lasting'}, ['1h', '4h', '1 day', '3 days', '1 week', 'tomorrow 9:00'].map(value => h('option', {value}))),
			h('p', {class: 'hint'}, '2h, 3 days, friday 18:00, 2026-12-24')),
		field('from', 'Begins', from, h('p', {class: 'hint'}, 'now, or a time ahead')),
		field('owner', 'Whose it is', owner, h('p', {class: 'hint'}, 'reminded before it ends'))),
	field('reason', 'Reason', reason),
	problem,
	h('div', {class: 'actions'}, submit, personField(context)));
	if (matchers.value)
		look();
	return {element, fill(silence) {
		matchers.value = silence.matchers;
		reason.value = silence.reason ?? '';
		owner.value = silence.owner ?? '';
		lasts.value = '2h';
		look();
		element.scrollIntoView({block: 'nearest'});
		lasts.focus();
	}};
}

const shapes = {active: ['soon', '◼', 'active'], pending: ['idle', '◷', 'pending'], over: ['idle', '✓', 'over']};

function when(silence) {
	if (silence.state === 'active')
		return ['ends ', ago(silence.until), ' (', time(silence.until), ')'];
	if (silence.state === 'pending')
		return ['begins ', ago(silence.from), ' (', time(silence.from), '), for ', duration((Date.parse(silence.until) - Date.parse(silence.from)) / 1000)];
	return silence.ended ? ['ended ', ago(silence.ended), silence.ended_by ? [' by ', name(silence.ended_by, 80)] : '', '; it was until ', time(silence.until)]
		: ['was over ', ago(silence.until), ' (', time(silence.until), ')'];
}

function card(silence, {context, look, fill}) {
	const reach = h('div', {class: 'preview', hidden: true});
	const end = context.may('triager') && silence.state !== 'over'
		? h('button', {type: 'button', class: 'small', 'data-key': `end ${silence.id}`, onclick: async () => {
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
	const selects = silence.state === 'over' ? null : h('button', {type: 'button', class: 'small', 'data-key': `selects ${silence.id}`, onclick: () => {
		reach.hidden = false;
		replace(reach, waiting('Looking what it selects …'));
		preview(reach, silence.matchers, context);
	}}, 'What it selects');
	return h('li', {class: 'card', 'data-silence': silence.id},
		h('div', {class: 'card-line'}, h('div', {class: 'matchers'}, name(silence.matchers, 600)), mark(shapes[silence.state])),
		silence.reason ? h('p', {}, name(silence.reason, 1000)) : null,
		h('p', {class: 'small quiet'}, badge(`#${silence.id}`), ' ', when(silence),
			silence.owner && silence.owner !== silence.person ? [' · of ', name(silence.owner, 80)] : '',
			' · added ', ago(silence.created), silence.person ? [' by ', name(silence.person, 80)] : ''),
		h('div', {class: 'actions'}, end, selects, context.may('triager')
			? h('button', {type: 'button', class: 'small', 'data-key': `again ${silence.id}`, onclick: () => fill(silence)}, silence.state === 'over' ? 'Again' : 'Copy') : null),
		reach);
}

export async function show(main, context) {
	style('states.css');
	let all = new URLSearchParams(location.search).get('all') === '1', silences = [];
	const lists = h('div', {});
	const entry = context.may('triager') ? form(context, () => {
		open(false);
		opener.focus();
		look();
	}) : null;
	const opener = entry ? h('button', {type: 'button', class: 'main', 'aria-expanded': 'false', 'aria-controls': 'new', onclick: () => open(entry.element.hidden)}, 'New silence') : null;
	const fill = silence => {
		open(true);
		entry.fill(silence);
	};

	function open(yes) {
		entry.element.hidden = !yes;
		opener.setAttribute('aria-expanded', String(yes));
		if (yes)
			entry.element.querySelector('input').focus();
	}

	async function look() {
		silences = (await get('/api/v1/silences', {all: all ? 'true' : null}, context.signal)).silences;
		redraw(main, draw);
	}

	function part(title, state, none) {
		const found = silences.filter(silence => silence.state === state).sort((a, b) => state === 'over' ? b.id - a.id : Date.parse(a.until) - Date.parse(b.until));
		return [h('h2', {}, title, h('span', {class: 'count'}, number(found.length))),
			found.length ? h('ul', {class: 'cards'}, found.slice(0, OVER).map(silence => card(silence, {context, look, fill}))) : h('p', {class: 'quiet'}, none),
			found.length > OVER ? h('p', {class: 'quiet'}, `and ${number(found.length - OVER)} more`) : null];
	}

	function draw() {
		replace(lists, part('Active', 'active', 'Nothing is silenced now.'),
			silences.some(silence => silence.state === 'pending') ? part('Pending', 'pending', '') : null,
			all ? part('Over', 'over', 'None that is still known.') : null,
			h('p', {}, h('button', {type: 'button', 'data-key': 'over', 'aria-pressed': String(all), onclick: () => {
				all = !all;
				remember({all: all ? '1' : null});
				look();
			}}, all ? 'Without those that are over' : 'Also those that are over')));
	}

	replace(main, h('div', {class: 'heading'}, h('h1', {}, 'Silences'), opener), entry?.element, lists);
	if (entry)
		open(new URLSearchParams(location.search).has('matchers'));
	replace(lists, waiting('Loading the silences …'));
	await look();
	keepLooking(context, 30, look, ['silence']);
}
