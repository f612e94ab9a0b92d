// What people say about changes: the words and keys for it, and how it is said when somebody else
// was first.
import {post} from './api.js';
import {ago, badge, h, name, notice, number, plain} from './dom.js';

const AT_ONCE = 500; // changes in one request

// In the order of the buttons. `key` is the same on all pages.
export const states = [
	{state: 'acknowledged', action: 'Acknowledge', key: 'a', hint: 'Under investigation'},
	{state: 'expected', action: 'Expected', key: 'e', hint: 'Intended: the new level stays'},
	{state: 'ignored', action: 'Ignore', key: 'i', hint: 'Real, but not worth fixing'},
	{state: 'false', action: 'False alarm', key: 'f', hint: 'No change at all'},
	{state: 'infra', action: 'Infra', key: null, hint: 'The environment changed, not the program'},
	{state: 'fixed', action: 'Fixed', key: null, hint: 'A fix is in, or on its way'},
	{state: 'open', action: 'Reopen', key: null, hint: 'Not triaged'},
];

// Buttons to say it: `press(state)`; null: more than a state. `attributes(state)` are more of theirs.
export function sayButtons(press, attributes = () => ({})) {
	return [...states, {state: null, action: 'Note, owner …', key: 'c', hint: 'With a note, an owner, a link or an end'}].map(({state, action, key, hint}) =>
		h('button', {title: hint, 'data-say': state, onclick: () => press(state), ...attributes(state)}, action,
			key ? h('kbd', {'aria-hidden': 'true'}, key) : null));
}

// Shows which of them says what was said.
export function markSaid(buttons, state) {
	for (const button of buttons) {
		button.setAttribute('aria-pressed', String(button.dataset.say === state));
		button.hidden = state === 'open' && button.dataset.say === 'open';
	}
}

// The state as a label: open ones wait for somebody.
export function triageBadge(state) {
	const label = badge(state === 'false' ? 'false alarm' : state, state === 'open' ? 'warn' : 'said');
	label.dataset.triage = state;
	return label;
}

// A dialog with `content` and buttons [{text, value, main}]. The value of the one that was pressed;
// null if it was closed. A value may be a function: called, and a promise that fails keeps the
// dialog open, with the problem in it.
export function dialog(title, content, buttons) {
	return new Promise(resolve => {
		const problem = h('p.problem', {role: 'alert'});
		const before = document.activeElement;
		let result = null;
		const press = async (event, button) => {
			event.preventDefault();
			problem.textContent = '';
			try {
				result = typeof button.value === 'function' ? await button.value() : button.value;
				box.close();
			} catch (error) {
				problem.textContent = plain(error.message, 500);
			}
		};
		const main = buttons.find(button => button.main);
		const form = h('form', {onsubmit: event => press(event, main)}, h('h2', {id: 'dialog-title'}, title), content, problem,
			h('div.bar.end', buttons.map(button => h('button', {type: button.main ? 'submit' : 'button',
				class: button.main ? 'main' : null, onclick: button.main ? null : event => press(event, button)}, button.text))));
		const box = h('dialog', {'aria-labelledby': 'dialog-title', onclose: () => {
			box.remove();
			before?.focus?.();
			resolve(result);
		}}, form);
		document.body.append(box);
		box.showModal();
	});
}

// Where nobody signs in, a request may say who sends it.
export function person(context) {
	return context.me.unproven ? localStorage.getItem('person') || null : null;
}

// Asks once for a name where nobody signs in.
export function personField(context) {
	if (!context.me.unproven)
		return null;
	return h('label.person-field', 'You are', h('input', {type: 'text', name: 'person', maxlength: 100, size: 9, autocomplete: 'nickname',
		placeholder: context.me.person, value: localStorage.getItem('person') ?? '',
		onchange: event => localStorage.setItem('person', event.target.value.trim())}));
}

// Shows what others have said meanwhile, and asks: 'all' takes them over, 'rest' leaves them out of `some`, null is nothing.
function conflict(changes, wanted, some) {
	const action = states.find(state => state.state === wanted.state)?.action ?? 'what you wrote';
	const line = ({test, metric, triage}) => h('li', name(test, 80), ' ', name(metric, 80), ': ', triageBadge(triage.state), ' by ', name(triage.person ?? 'somebody', 60), ' ', ago(triage.time),
		triage.owner ? [', owner ', name(triage.owner, 60)] : null, triage.note ? h('blockquote', name(triage.note, 500)) : null);

	return dialog('Triaged by somebody else', [h('p', 'Nothing was changed. Others have triaged since this page was loaded:'), h('ul', changes.slice(0, 100).map(line)),
		h('p', 'You wanted: ', h('b', action), wanted.note ? [': ', name(wanted.note, 200)] : null),
	], [{text: 'Leave it as it is', value: null, main: true}, {text: `Take over: ${action}`, value: 'all'},
		...some > changes.length ? [{text: `Only the other ${number(some - changes.length)}`, value: 'rest'}] : []]);
}

// Says it of changes as they were seen: of all in a request, or none. Returns how their triage is `now`, by id, and of which
// changes it was `done`; what went wrong is shown.
export async function say(changes, wanted, context) {
	const now = new Map(changes.map(({id, triage}) => [id, triage])), done = [];
	const sum = some => some.reduce((version, {id}) => version + now.get(id).version, 0); // says whether all are as they were seen

	for (let left = changes; left.length > 0;) {
		const some = left.slice(0, AT_ONCE), asked = {...wanted, version: sum(some), person: person(context)};

		try {
			const answer = some.length === 1 ? await post(`/api/v1/changes/${some[0].id}/triage`, asked)
				: await post('/api/v1/triage', {...asked, ids: some.map(({id}) => id).join(',')});
			for (const {id, triage} of answer.changes)
				now.set(id, triage);
			done.push(...some);
			left = left.slice(AT_ONCE);
		} catch (problem) {
			const others = problem.status === 409 ? problem.answer?.changes : null;

			if (!others) {
				if (problem.name !== 'AbortError')
					notice(problem.message, {problem: true});
				break;
			}
			const touched = others.filter(({id, triage}) => triage.version !== now.get(id)?.version);
			for (const {id, triage} of others)
				now.set(id, triage);
			const answer = await conflict(touched, wanted, some.length);

			if (answer === 'rest')
				left = left.filter(({id}) => !touched.some(other => other.id === id));
			else if (!answer)
				left = left.slice(AT_ONCE);
		}
	}
	return {now, done};
}

// Asks for all that can be said of changes at once: what to say, or null.
export async function ask(changes) {
	const one = changes.length === 1 ? changes[0].triage : {};
	const state = h('select', {name: 'state'}, h('option', {value: ''}, 'as it is'), states.map(({state: value, action}) => h('option', {value}, action)));
	const text = (key, options) => h('input', {type: 'text', name: key, value: one[key] ?? '', autocomplete: 'off', ...options});
	const note = h('textarea', {name: 'note', rows: 4, maxlength: 4000, value: one.note ?? '', placeholder: 'why, or where it is discussed'});
	const fields = {state, owner: text('owner', {maxlength: 200}), note, link: text('link', {maxlength: 2000, placeholder: 'a ticket'}),
		until: text('until', {placeholder: '3 days, friday 18:00, 2026-12-24'})};
	const wanted = await dialog(changes.length === 1 ? 'Say what it is' : `Say what these ${number(changes.length)} are`,
		[['What it is', state], ['Owner', fields.owner], ['Note', note], ['Link', fields.link], ['Open again', fields.until]]
			.map(([label, field]) => h('label.wide', label, field)),
		[{text: 'Cancel', value: null}, {text: 'Say it', main: true, value: () => {
			const said = Object.entries(fields).filter(([key, {value}]) => value !== (key === 'state' ? '' : one[key] ?? '') || (key === 'note' && state.value && value));
			return Object.fromEntries(said.map(([key, {value}]) => [key, value]));
		}}]);
	return wanted && Object.keys(wanted).length > 0 ? wanted : null;
}

// What to say so that it is again as it was.
export const asWas = triage => ({state: triage.state, owner: triage.owner ?? '', note: triage.note ?? '', until: triage.until ?? '',
	...('link' in triage ? {link: triage.link ?? ''} : {})});

// Acts on what is pressed outside of fields, by a table that the help shows: [keys, what they do, act, whether at once]. Else the
// next key waits for what one returns; not those that lead to where what is typed is no key: what follows would be taken for one.
// `more` is shown, too. Returns {help(), after(promise)}: what the first key waits for.
export function keyboard(table, signal, more = []) {
	let turn = Promise.resolve();
	const keys = [...table, [['?'], 'this list', () => { help(); }, true]];
	const help = () => dialog('Keys', h('table.keys', h('tbody', [...keys, ...more].map(([names, text]) => h('tr',
		h('td', names.map(key => [h('kbd', key), ' '])), h('td', text))))), [{text: 'Close', value: null, main: true}]);

	addEventListener('keydown', event => {
		const within = what => event.target instanceof Element && event.target.closest(what);
		const typing = within('input:not([type=checkbox]), textarea, select, [contenteditable]');

		if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented || document.querySelector('dialog[open]'))
			return;
		if (event.key === 'Escape' && typing) {
			typing.blur();
			return;
		}
		const found = typing || (event.key === 'Enter' && within('a, button')) ? null : keys.find(([names]) => names.includes(event.key));
		if (!found)
			return;
		event.preventDefault();
		const [, , act, atOnce] = found;
		if (atOnce)
			act();
		else
			turn = turn.finally(act);
	}, {signal});
	return {help, after(promise) { turn = promise; }};
}
