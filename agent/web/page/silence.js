// Adding a silence: the dialog of all pages, which shows what it would select.
import {get, post} from './api.js';
import {h, many, name, notice, number, plain, replace, to, toChange, verdict} from './dom.js';
import {redraw} from './states.js';
import {dialog, person} from './triage.js';

function more(shown, all) {
	return all > shown ? h('li.quiet', `and ${number(all - shown)} more`) : null;
}

// What matchers select: a sentence, and lists of the first ones.
function selected(answer) {
	return [
		h('p', 'Selects ', h('strong', many(answer.open_changes, 'open change')), ' now, and news of ',
			h('strong', many(answer.tests, 'test')), '.'),
		answer.warning ? h('p.warn', '⚠ ', name(answer.warning, 500)) : null,
		answer.open_changes ? h('details', {'data-key': 'changes'}, h('summary', 'Open changes'), h('ul', answer.first_changes.map(change =>
			h('li', toChange(change.id, name(change.test, 80), ' ', name(change.metric, 80)), ' ', verdict(change.regression, change.size, change.direction))),
		more(answer.first_changes.length, answer.open_changes))) : null,
		answer.tests ? h('details', {'data-key': 'tests'}, h('summary', 'Tests'), h('ul', answer.first_tests.map(test => h('li', to('/tests', {test}, name(test, 80)))),
			more(answer.first_tests.length, answer.tests))) : null,
	];
}

// Shows it in `box`, if that still waits for it.
export async function preview(box, matchers, context, waits = () => true) {
	let found = h('p.quiet', 'What it selects is shown here.');
	if (matchers)
		try {
			const answer = await get('/api/v1/silences/preview', {matchers}, context.signal);
			found = answer.problem ? h('p.quiet', plain(answer.problem, 500)) : selected(answer);
		} catch (error) {
			found = h('p.problem', plain(error.message, 500));
		}
	if (waits())
		redraw(box, () => replace(box, found));
}

// Adds one; `given`: {matchers, for, from, reason, owner}, `choices`: [{text, matchers}] to choose from. The silence, or null.
export function silence(context, given, choices = []) {
	const field = (key, options) => h('input', {type: 'text', name: key, value: given[key] ?? '', autocomplete: 'off', spellcheck: 'false', ...options});
	const matchers = field('matchers', {required: true, maxlength: 4096, placeholder: 'test=~"db.*", region="eu"', class: 'matchers', oninput: () => {
		clearTimeout(timer);
		timer = setTimeout(look, 250);
	}});
	const lasts = field('for', {required: true, maxlength: 100, size: 12, title: '2h, 3 days, friday 18:00, 2026-12-24'});
	const from = field('from', {maxlength: 100, size: 12, placeholder: 'now'});
	const reason = field('reason', {maxlength: 4000, placeholder: 'migration to new disks, OPS-1234', spellcheck: 'true'});
	const owner = field('owner', {maxlength: 200, placeholder: person(context) ?? context.me.person});
	const shown = h('div.preview', {role: 'status', 'aria-live': 'polite'});
	let asked = 0, timer = null;

	function look() {
		const turn = ++asked;
		preview(shown, matchers.value.trim(), context, () => turn === asked);
	}

	look();
	return dialog('New silence', [
		h('p.quiet', 'What it selects is still measured and shown, but not announced until it is over.'),
		choices.length > 1 ? h('fieldset', h('legend', 'What'), choices.map((choice, i) => h('label',
			h('input', {type: 'radio', name: 'choice', checked: i === 0, onchange: () => {
				matchers.value = choice.matchers;
				look();
			}}), h('span', choice.text)))) : null,
		h('label.wide', h('span', 'Matchers'), matchers),
		h('p.quiet', 'Of test, group, metric, branch, direction (regression, improvement), source, and of labels and attributes; all must match. ',
			h('code', '= != =~ !~')),
		shown,
		h('div.bar', h('label', 'For, or until', lasts),
			['1h', '4h', '1 day', '3 days', '1 week'].map(text => h('button', {onclick: () => { lasts.value = text; }}, text)),
			h('label', 'From', from)),
		h('label.wide', h('span', 'Reason'), reason),
		h('label.wide', h('span', 'Owner, who is reminded before it ends'), owner),
	], [{text: 'Cancel', value: null}, {text: 'Silence', main: true, value: async () => {
		// An end (friday 18:00, 2026-12-24) or how long (2h, 3 days).
		const length = lasts.value.trim();
		const lasting = /^[\d.]+\s*[a-z]/i.test(length) ? {for: length} : {until: length};
		const made = await post('/api/v1/silences', {matchers: matchers.value, ...lasting, from: from.value.trim() || null,
			reason: reason.value.trim() || null, owner: owner.value.trim() || null, person: person(context)});
		notice(`Silence ${made.id} ${made.state === 'pending' ? 'will hold' : 'holds'}: ${made.open_changes} open changes, ${made.tests} tests.${made.warning ? ` ${made.warning}` : ''}`);
		return made;
	}}]);
}
