// The inbox: changes in groups of one cause, the worst first. Filter, choose, say what they are.
import {get, stopper} from './api.js';
import {ago, h, many, name, notice, number, plain, remember, replace, short, style, verdict, waiting} from './dom.js';
import {asWas, ask, keyboard, say, sayButtons, states, triageBadge} from './triage.js';

const PAGE = 50; // groups at once
const ROWS = 5; // shown of each, until more are asked for
const QUIET = 3000; // ms between two looks at what is new
const KEPT = 2000; // ids that /change/ID can step through

// In a sentence: "3 changes are ...".
const said = {open: 'open again', acknowledged: 'acknowledged', expected: 'expected', ignored: 'ignored', infra: 'of the infrastructure',
	'false': 'a false alarm', fixed: 'fixed'};

// By name in the address: label and choices, each with its value there, its word, and the value for the API.
const filters = {
	triage: ['Triage', [['', 'Waiting', 'open,acknowledged'], ['open', 'Open', 'open'], ['acknowledged', 'Acknowledged', 'acknowledged'],
		['accepted', 'Accepted', 'expected,ignored,infra,false'], ['fixed', 'Fixed', 'fixed'], ['any', 'Any', null]]],
	verdict: ['Verdict', [['', 'Any', null], ['worse', 'Worse', 'worse'], ['better', 'Better', 'better'], ['changed', 'Changed', 'changed']]],
	state: ['State', [['', 'Standing', 'confirmed,moved'], ['candidate', 'Not confirmed yet', 'candidate'], ['recovered', 'Over', 'recovered'],
		['withdrawn', 'Withdrawn', 'withdrawn'], ['any', 'Any', null]]],
	owner: ['Owner', [['', 'Anybody', null], ['(nobody)', 'Nobody', '']]],
	by: ['Group by', [['', 'Incident', 'incident'], ['commit', 'Commit', 'commit'], ['test', 'Test', 'test'], ['none', 'Nothing', 'none']]],
	sort: ['Order', [['', 'Worst first', 'worst'], ['latest', 'Latest first', 'latest']]],
};

const kinds = {incident: 'Incident', commit: 'Commit', test: 'Test', change: 'Change'};

// What the address asks for.
function settingsOf(url) {
	return Object.fromEntries(['q', 'at', 'test', ...Object.keys(filters)].map(key => [key, url.searchParams.get(key) ?? '']));
}

// The same for the API. What has a matcher's signs is matchers.
function parametersOf(settings) {
	const text = settings.q.trim();
	const out = {rows: ROWS, test: settings.test || null};
	if (text)
		out[/[=~!{}"'`]/.test(text) ? 'matchers' : 'text'] = text;
	for (const [key, [, choices]] of Object.entries(filters)) {
		const found = choices.find(([value]) => value === settings[key]);
		out[key] = found ? found[2] : settings[key];
	}
	return out;
}

const listing = '/api/v1/inbox';

// Asked for at once, while the page is still being put together.
let first = location.pathname === '/' ? get(listing, {...parametersOf(settingsOf(new URL(location.href))), limit: PAGE}) : null;
first?.catch(() => { /* said when it is awaited */ });

export async function show(main, context) {
	style('inbox.css');
	new Inbox(main, context).begin();
}

class Inbox {
	constructor(main, context) {
		this.main = main;
		this.context = context;
		this.triager = context.may('triager');
		this.settings = settingsOf(context.url);
		this.groups = new Map(); // key -> {key, kind, name, count, ..., element, list, rows}
		this.rows = new Map(); // id -> {change, group, element, waits}
		this.left = new Map(); // id -> the version of its triage with which it left the list
		this.chosen = new Set(); // ids
		this.cursor = null; // a row
		this.undo = null; // of what was said last
	}

	begin() {
		this.build();
		this.keyboard = keyboard(this.keys(), this.context.signal);
		addEventListener('pagehide', () => this.keepOrder());
		this.keyboard.after(this.load());
		this.listen();
	}

	// The page

	build() {
		this.count = h('small', {'aria-live': 'polite'});
		this.field = h('input', {type: 'search', id: 'filter', value: this.settings.q, autocomplete: 'off', spellcheck: 'false',
			placeholder: 'Words, or matchers: test=~"db.*", region="eu"', 'aria-label': 'Filter: words, or matchers as of silences',
			'aria-describedby': 'filter-problem', oninput: () => this.typed()});
		this.problem = h('p.said.problem', {id: 'filter-problem', role: 'alert'});
		const test = h('input', {type: 'text', value: this.settings.test, placeholder: 'db.*', size: 14, autocomplete: 'off', spellcheck: 'false',
			onchange: event => this.set('test', event.target.value.trim())});
		this.selects = {};
		const selects = Object.entries(filters).map(([key, [label, choices]]) => {
			this.selects[key] = h('select', {onchange: event => this.set(key, event.target.value)});
			this.offer(key, choices);
			return h('label', label, this.selects[key]);
		});
		this.list = h('div.list', {onclick: event => event.target.closest('a') && this.place()}, waiting('Looking through the changes'));
		this.end = h('p.legend');
		this.actions = this.triager ? this.buildActions() : h('div.bar.actions', this.buildArrived(), this.helpButton());
		replace(this.main, h('div.inbox', h('h1', 'Inbox', this.count),
			h('form.bar.filters', {role: 'search', onsubmit: event => event.preventDefault()}, this.field, this.problem,
				h('details', {open: matchMedia('(min-width: 40rem)').matches || this.isFiltered()}, h('summary', 'Choose, group, order'), h('div.selects', h('label', 'Test', test), selects))),
			this.actions, this.list, this.end));
		this.page = this.main.firstElementChild;
		new IntersectionObserver(entries => entries.some(e => e.isIntersecting) && this.loadMore(), {rootMargin: '1200px'}).observe(this.end);
	}

	offer(key, choices) {
		const now = this.settings[key];
		const known = choices.some(([value]) => value === now) ? choices : [...choices, [now, now, now]];
		replace(this.selects[key], known.map(([value, word]) => h('option', {value, selected: value === now}, plain(word, 60))));
		this.selects[key].value = now;
	}

	buildActions() {
		this.all = h('input', {type: 'checkbox', 'aria-label': 'Select all that are shown', onchange: event => this.chooseShown(event.target.checked)});
		this.chosenCount = h('span.chosen', {role: 'status'});
		this.buttons = sayButtons(state => state ? this.say({state}) : this.ask());
		return h('div.bar.actions', {role: 'toolbar', 'aria-label': 'Say what the chosen changes are'},
			this.all, this.chosenCount, this.buttons, this.buildArrived(), this.helpButton());
	}

	buildArrived() {
		this.arrived = h('button.arrived', {hidden: true, onclick: () => this.toArrived()});
		return h('span', {'aria-live': 'polite'}, this.arrived);
	}

	helpButton() {
		return h('button', {onclick: () => this.keyboard.help()}, 'Keys', h('kbd', {'aria-hidden': 'true'}, '?'));
	}

	// Loading

	typed() {
		clearTimeout(this.typing);
		this.typing = setTimeout(() => this.set('q', this.field.value), 180);
	}

	set(key, value) {
		this.settings[key] = value;
		this.settings.at = '';
		remember({[key]: value, at: null});
		this.load();
	}

	// One request at a time for the list: a later one ends the earlier. Null: what was asked for is no longer wanted, or there is
	// a problem, which is shown.
	tryFetch(parameters) {
		return this.inFlight = this.fetch(parameters);
	}

	async fetch(parameters) {
		this.asking?.abort();
		const asking = this.asking = stopper(this.context.signal);
		try {
			const early = first;
			first = null;
			const answer = await (early ?? get(listing, {...parametersOf(this.settings), ...parameters}, asking.signal));
			asking.signal.throwIfAborted();
			this.sayProblem(answer.problem ?? '');
			return answer.problem ? null : answer;
		} catch (error) {
			if (error.name !== 'AbortError')
				this.sayProblem(error.message);
			return null;
		} finally {
			if (this.asking === asking)
				this.asking = null;
		}
	}

	sayProblem(text) {
		this.problem.textContent = plain(text, 400);
		if (text)
			this.field.setAttribute('aria-invalid', 'true');
		else
			this.field.removeAttribute('aria-invalid');
	}

	async load() {
		this.page.classList.add('busy');
		const answer = await this.tryFetch({limit: PAGE});
		if (!answer) {
			if (!this.asking) {
				this.page.classList.remove('busy');
				this.list.querySelector('.waiting')?.remove();
			}
			return;
		}
		this.page.classList.remove('busy');
		this.rows.clear();
		this.left.clear();
		this.groups.clear();
		this.chosen.clear();
		this.cursor = null;
		this.newIds = new Set();
		this.take(answer);
		replace(this.list, answer.groups.map(group => this.addGroup(group).element));
		this.shown();
		const at = this.rows.get(Number(this.settings.at));
		if (at)
			this.stand(at, document.activeElement === document.body);
	}

	// Not what an answer has from before something was said: it was on its way meanwhile.
	current(changes) {
		return changes.filter(({id, triage}) => triage.version >= (this.rows.get(id)?.change.triage.version ?? this.left.get(id) ?? 0));
	}

	take(answer) {
		for (const group of answer.groups)
			group.changes = this.current(group.changes);
		answer.groups = answer.groups.filter(({changes}) => changes.length > 0);
		this.total = answer.total;
		this.groupCount = answer.group_count;
		this.waitingCount = answer.waiting;
		this.worse = answer.worse;
		this.cut = answer.more;
		this.next = answer.next;
		const [, choices] = filters.owner;
		const owners = new Set([...this.context.me.unproven ? [] : [this.context.me.person], ...answer.owners]);
		this.offer('owner', [...choices, ...[...owners].map(owner => [owner, owner, owner])]);
	}

	async loadMore() {
		if (this.next == null || this.asking)
			return;
		// By what is there: what was said has left the list.
		const answer = await this.tryFetch({limit: PAGE, after: this.groups.size});
		if (!answer)
			return;
		this.take(answer);
		for (const group of answer.groups)
			if (!this.groups.has(group.key))
				this.list.append(this.addGroup(group).element);
		if (answer.groups.length === 0)
			this.next = null;
		this.shown();
	}

	// After anything in the list has changed.
	shown() {
		const what = this.groupCount < this.total ? ` in ${many(this.groupCount, 'group')}` : '';
		this.count.textContent = `${many(this.total, 'change')}${what}${this.total > 0 ? `, ${this.worse.toLocaleString('en')} worse` : ''}`;
		document.title = `${this.total > 0 ? `(${this.total.toLocaleString('en')}) ` : ''}Inbox · hunter-c`;
		if (this.groups.size === 0 && !this.list.querySelector('.empty'))
			replace(this.list, h('p.empty', this.isFiltered() ? 'No change passes this filter.' : 'Nothing waits here.',
				this.isFiltered() ? [' ', h('a', {href: '/'}, 'Show what waits')] : null));
		else if (this.groups.size > 0)
			this.list.querySelector('.empty')?.remove();
		replace(this.end, this.next != null
			? h('button', {onclick: () => this.loadMore()}, 'Show more')
			: this.cut ? 'These are the last 10,000 that were recorded: narrow the filter to see older ones.' : null);
		this.choosing();
	}

	isFiltered() {
		return Object.keys(filters).some(key => key !== 'by' && key !== 'sort' && this.settings[key]) || this.settings.q.trim() !== '' || this.settings.test !== '';
	}

	// So that /change/ID can step through the list.
	keepOrder() {
		try {
			sessionStorage.setItem('inbox', JSON.stringify({search: location.search,
				ids: this.elements().slice(0, KEPT).map(element => Number(element.dataset.change))}));
		} catch { /* full, or not allowed: then not */ }
	}

	// Groups and rows

	addGroup(data) {
		const group = {...data, changes: null, rows: new Map()};
		group.list = h('ul');
		group.more = h('button', {hidden: true, onclick: () => this.expand(group, 100)});
		group.element = h('section.group', {'data-group': group.key}, group.header = h('header'), group.list, group.more);
		this.groups.set(group.key, group);
		for (const change of data.changes)
			this.addRow(group, change);
		this.fillGroup(group);
		return group;
	}

	// What was in another group leaves that: its cause is known now.
	addRow(group, change, before = null) {
		const old = this.rows.get(change.id), row = {change, group, waits: false};
		if (old?.waits)
			return;
		if (old)
			this.detach(old);
		if (old && old === this.cursor)
			this.cursor = row;
		row.element = h('li.row', {'data-change': change.id, onclick: event => event.target.closest('a, button, input') || this.stand(row, true)});
		this.rows.set(change.id, row);
		group.rows.set(change.id, row);
		this.fillRow(row);
		group.list.insertBefore(row.element, before);
	}

	fillGroup(group) {
		const left = group.count - group.rows.size;
		const alone = group.count === 1;
		group.header.hidden = alone;
		group.more.hidden = left <= 0;
		group.more.textContent = `${left.toLocaleString('en')} more`;
		if (alone)
			return;
		const title = h('h2', kinds[group.kind], group.kind === 'incident' ? ` ${group.key}` : '', group.name ? [' ', h('code', name(group.kind === 'test' ? group.name : short(group.name), 80))] : null);
		const tests = new Set([...group.rows.values()].map(row => row.change.test)).size;
		replace(group.header, this.triager ? h('input', {type: 'checkbox', 'aria-label': `Select all ${group.count} of ${kinds[group.kind]} ${plain(group.name ?? '', 80)}`,
			checked: this.isChosen(group), onchange: event => this.chooseGroup(group, event.target.checked)}) : null,
			title, h('p', many(group.count, 'change'), tests > 1 && left <= 0 ? ` in ${tests} tests` : '',
				group.waiting > 0 && group.waiting < group.count ? `, ${group.waiting.toLocaleString('en')} waiting` : '',
				group.better > 0 && group.better < group.count ? `, ${group.better.toLocaleString('en')} of them better` : '', ', found ', ago(group.latest)));
	}

	fillRow(row) {
		const {change} = row, focused = document.activeElement;
		const part = focused === row.link ? 'link' : focused === row.box ? 'box' : null;
		const box = this.triager ? h('input.pick', {type: 'checkbox', checked: this.chosen.has(change.id),
			'aria-label': `Select ${plain(change.test, 80)} ${plain(change.metric, 80)}`, onchange: event => this.choose(row, event.target.checked)}) : h('span.pick');
		const picture = h('img.chart', {src: `/change/${change.id}.svg?small`, alt: '', loading: 'lazy', fetchpriority: 'low', width: 160, height: 40});
		picture.addEventListener('error', () => { picture.replaceWith(h('span.chart')); });
		replace(row.element, box, verdict(change.regression, change.size, change.direction),
			h('div.what', h('a', {href: `/change/${change.id}`}, name(change.test, 120), ' ', name(change.metric, 120)), this.more(row)),
			h('span.levels', number(change.level_before), ' → ', number(change.level_after, change.unit)),
			picture, this.saidOf(change), h('span.when', ago(change.time)));
		row.link = row.element.querySelector('a');
		row.link.firstElementChild.classList.add('test');
		row.link.addEventListener('focus', () => this.stand(row, false));
		row.box = this.triager ? box : null;
		row[part]?.focus({preventScroll: true});
		this.mark(row);
	}

	// What else tells a change from others.
	more(row) {
		const {change, group} = row;
		const parts = [];
		if (change.branch)
			parts.push(['branch ', name(change.branch, 60)]);
		if (change.kind === 'trend')
			parts.push('gradually');
		if (change.members > 0)
			parts.push([`${change.members.toLocaleString('en')} series`, change.shared ? [' with ', name(change.shared, 80)] : null]);
		if (change.commit && (group.name !== change.commit || group.count === 1))
			parts.push(['commit ', h('code', name(short(change.commit), 40)), change.suspects > 1 ? `, one of ${change.suspects}` : null]);
		if (change.environment)
			parts.push(['on ', name(change.environment, 60)]);
		if (change.state !== 'confirmed' && change.state !== 'moved')
			parts.push({candidate: 'not confirmed yet', withdrawn: 'withdrawn', recovered: 'over'}[change.state]);
		return parts.length === 0 ? null : h('span.more', parts.map((part, i) => i > 0 ? [', ', part] : part));
	}

	saidOf(change) {
		const {triage} = change;
		const owner = change.owner ? h('span.quiet', name(change.owner, 60)) : null;
		if (triage.state === 'open' && !triage.note)
			return h('span.judged', owner);
		return h('span.judged', triage.state === 'open' ? null : triageBadge(triage.state), ' ',
			owner ?? (triage.person ? h('span.quiet', 'by ', name(triage.person, 60)) : null),
			triage.note ? h('span.note', {title: plain(triage.note, 1000)}, plain(triage.note, 120)) : null);
	}

	mark(row) {
		row.element.classList.toggle('chosen', this.chosen.has(row.change.id));
		row.element.classList.toggle('waits', row.waits);
		row.element.classList.toggle('arrived', Boolean(this.newIds?.has(row.change.id)));
		if (row === this.cursor)
			row.element.setAttribute('aria-current', 'true');
		else
			row.element.removeAttribute('aria-current');
		if (row.box)
			row.box.checked = this.chosen.has(row.change.id);
	}

	// The next rows of a group.
	async expand(group, most) {
		group.more.disabled = true;
		try {
			const answer = await get(listing, {...parametersOf(this.settings), in: group.key, after: group.rows.size, limit: most}, this.context.signal);
			if (this.groups.get(group.key) !== group)
				return false; // another list is shown meanwhile
			const found = answer.groups[0];
			const first = group.rows.size;
			for (const change of this.current(found?.changes ?? []))
				if (!this.rows.has(change.id))
					this.addRow(group, change);
			group.count = Math.max(found?.count ?? 0, group.rows.size);
			if (group.rows.size === first)
				group.count = first;
		} catch (error) {
			if (error.name !== 'AbortError')
				notice(error.message, {problem: true});
			return false;
		} finally {
			group.more.disabled = false;
		}
		this.fillGroup(group);
		return true;
	}

	elements() {
		return [...this.list.querySelectorAll('[data-change]')];
	}

	rowOf(element) {
		return element ? this.rows.get(Number(element.dataset.change)) : undefined;
	}

	// Where one stands

	stand(row, focus) {
		const before = this.cursor;
		this.cursor = row;
		if (before && before !== row)
			this.mark(before);
		if (!row)
			return;
		this.newIds?.delete(row.change.id);
		this.mark(row);
		if (focus) {
			row.link.focus({preventScroll: true});
			row.element.scrollIntoView({block: 'nearest'});
		}
		if (before !== row) { // browsers limit how often the address may change
			clearTimeout(this.placing);
			this.placing = setTimeout(() => this.place(), 250);
		}
		this.choosing();
	}

	place() {
		clearTimeout(this.placing);
		remember({at: this.cursor?.change.id});
	}

	async step(by) {
		if (by > 0 && this.cursor?.element === this.elements().at(-1))
			if (this.next !== null)
				await this.loadMore();
			else if (this.cursor.group.rows.size < this.cursor.group.count)
				await this.expand(this.cursor.group, 100);
		const elements = this.elements(); // rows may have left meanwhile
		const at = this.cursor ? elements.indexOf(this.cursor.element) : by > 0 ? -1 : elements.length;
		this.stand(this.rowOf(elements[at + by]) ?? this.cursor, true);
	}

	// Choosing

	choose(row, on) {
		if (on)
			this.chosen.add(row.change.id);
		else
			this.chosen.delete(row.change.id);
		this.mark(row);
		this.choosing();
	}

	isChosen(group) {
		return group.rows.size > 0 && [...group.rows.keys()].every(id => this.chosen.has(id));
	}

	async chooseGroup(group, on) {
		while (on && group.rows.size < group.count)
			if (!await this.expand(group, 1000))
				return;
		for (const row of group.rows.values())
			this.choose(row, on);
	}

	chooseShown(on) {
		for (const row of this.rows.values())
			if (this.chosen.has(row.change.id) !== on)
				this.choose(row, on);
	}

	choosing() {
		if (!this.triager)
			return;
		const count = this.chosen.size;
		this.chosenCount.textContent = count > 0 ? `${count.toLocaleString('en')} selected` : this.cursor ? 'the one marked' : 'none selected';
		for (const button of this.buttons)
			button.disabled = count === 0 && !this.cursor;
		this.all.checked = count > 0 && count === this.rows.size;
		this.all.indeterminate = count > 0 && count < this.rows.size;
		for (const group of this.groups.values()) {
			const box = group.header.querySelector('input');
			if (box)
				box.checked = this.isChosen(group);
		}
	}

	// Saying what changes are

	targets() {
		const chosen = [...this.chosen].map(id => this.rows.get(id)).filter(Boolean);
		return (chosen.length > 0 ? chosen : this.cursor ? [this.cursor] : []).filter(row => !row.waits);
	}

	async say(parameters, rows = this.targets()) {
		if (!this.triager || rows.length === 0)
			return;
		const before = new Map(rows.map(row => [row.change.id, row.change.triage]));
		if (parameters.state && !this.stays(parameters.state))
			this.advance(rows);
		for (const row of rows) {
			row.waits = true;
			this.chosen.delete(row.change.id);
			this.mark(row);
		}
		this.choosing();
		const done = await this.post(parameters, rows);
		this.settle(rows);
		if (done.length > 0)
			this.tell(parameters, done, before);
	}

	// On to the next one that stays.
	advance(rows) {
		if (!this.cursor || !rows.includes(this.cursor))
			return;
		const elements = this.elements(), at = elements.indexOf(this.cursor.element);
		const stays = element => !rows.includes(this.rowOf(element));
		const next = elements.slice(at + 1).find(stays) ?? elements.slice(0, at).reverse().find(stays);
		this.stand(this.rowOf(next) ?? this.cursor, document.activeElement === document.body || this.list.contains(document.activeElement));
	}

	// Returns the rows of which it was said.
	async post(parameters, rows) {
		const {now, done} = await say(rows.map(row => row.change), parameters, this.context);
		for (const row of rows)
			row.waits = false;
		for (const [id, triage] of now)
			this.adoptTriage(id, triage);
		rows.forEach(row => this.mark(row));
		return rows.filter(row => done.some(({id}) => id === row.change.id));
	}

	adoptTriage(id, triage) {
		const row = this.rows.get(id);
		if (!row || triage.version < row.change.triage.version)
			return;
		row.change = {...row.change, owner: triage.owner ?? (row.change.triage.owner ? null : row.change.owner), triage: {...row.change.triage, ...triage}};
		this.fillRow(row);
	}

	// Whether the filter passes that triage.
	stays(state) {
		const [, choices] = filters.triage;
		const wanted = choices.find(([value]) => value === this.settings.triage)?.[2] ?? null;
		return wanted === null || wanted.split(',').includes(state);
	}

	// What no longer passes the filter leaves the list.
	settle(rows) {
		const shift = this.anchor();
		const gone = rows.filter(row => !this.stays(row.change.triage.state));
		this.advance(gone);
		for (const row of gone)
			this.remove(row);
		for (const group of new Set(rows.map(row => row.group)))
			this.refill(group);
		shift();
		this.shown();
		if (this.next !== null && this.rows.size < PAGE)
			this.loadMore();
	}

	remove(row) {
		this.detach(row);
		this.rows.delete(row.change.id);
		this.left.set(row.change.id, row.change.triage.version);
		this.chosen.delete(row.change.id);
		this.total--;
		this.worse -= row.change.regression ? 1 : 0;
		this.groupCount -= row.group.count <= 0 ? 1 : 0;
		if (this.cursor === row)
			this.cursor = null;
	}

	detach(row) {
		const {group} = row;
		row.element.remove();
		group.rows.delete(row.change.id);
		group.count--;
		group.worse -= row.change.regression ? 1 : 0;
		group.better -= row.change.regression || row.change.direction === 0 ? 0 : 1;
		if (group.count > 0)
			this.fillGroup(group);
		else
			this.drop(group);
	}

	drop(group) {
		group.element.remove();
		if (this.groups.get(group.key) === group)
			this.groups.delete(group.key);
	}

	// Others take the place of those that have left.
	async refill(group) {
		if (group.rows.size < Math.min(ROWS, group.count) && this.groups.get(group.key) === group)
			await this.expand(group, ROWS - group.rows.size);
	}

	tell(parameters, rows, before) {
		const what = parameters.state ? said[parameters.state] : 'as you wrote';
		const one = rows[0].change;
		const undo = this.undo = () => {
			if (this.undo === undo)
				this.undo = null;
			this.takeBack(rows, before);
		};
		notice(`${rows.length === 1 ? `${plain(one.test, 60)} ${plain(one.metric, 60)} is` : `${many(rows.length, 'change')} are`} ${what}.`,
			{action: {text: 'Undo', run: undo}});
	}

	// Says again what was said before, of all that had the same at once.
	async takeBack(rows, before) {
		const same = new Map();
		for (const row of rows) {
			const key = JSON.stringify(asWas(before.get(row.change.id)));
			same.set(key, [...same.get(key) ?? [], row]);
		}
		let count = 0;
		for (const [key, some] of same)
			count += (await this.post(JSON.parse(key), some)).length;
		if (count > 0)
			notice(`Undone: ${many(count, 'change')}.`);
		await this.refresh();
		const first = this.rows.get(rows[0].change.id);
		if (first)
			this.stand(first, true);
	}

	async ask() {
		const rows = this.targets(), wanted = this.triager && rows.length > 0 ? await ask(rows.map(row => row.change)) : null;
		if (wanted)
			this.say(wanted, rows);
	}

	keys() {
		const keys = [
			[['j'], 'the next change', () => this.step(1)],
			[['k'], 'the one before', () => this.step(-1)],
			[['o', 'Enter'], 'open it', () => this.cursor && this.cursor.link.click()],
			[['/'], 'to the filter', () => this.field.focus(), true],
			[['g'], 'to the top', () => { scrollTo(0, 0); this.stand(this.rowOf(this.elements()[0]) ?? null, true); }],
			[['r'], 'load again', () => { this.refresh(); }],
		];
		if (this.triager)
			keys.push([['x'], 'select it, or not', () => this.cursor && this.choose(this.cursor, !this.chosen.has(this.cursor.change.id))],
				[['X'], 'select all of its group, or none', () => this.cursor && this.chooseGroup(this.cursor.group, !this.isChosen(this.cursor.group))],
				...states.filter(({key}) => key).map(({state, key}) => [[key], `triage the selection, or else the marked change: ${said[state]}`, () => { this.say({state}); }]),
				[['c'], 'triage with a note, an owner or an end', () => { this.ask(); }],
				[['z'], 'undo the last triage', () => { this.undo?.(); }]);
		return [...keys, [['Escape'], 'select nothing; leave the filter', () => this.chooseShown(false)]];
	}

	// What happens meanwhile

	listen() {
		const soon = () => this.refreshSoon();
		this.context.live?.listen({
			change: soon,
			triage: item => {
				const row = this.rows.get(item.id);
				if (!row)
					soon();
				else if (item.version > row.change.triage.version && !row.waits) {
					this.adoptTriage(item.id, {state: item.triage, owner: item.owner, person: item.person, version: item.version,
						time: new Date().toISOString(), note: null, until: null});
					soon(); // for the note
				}
			},
			again: soon,
		}, this.context.signal);
	}

	// Not all pages at once, and none all the time.
	refreshSoon() {
		this.missed = true;
		this.later ??= setTimeout(async () => {
			this.missed = false;
			await this.refresh();
			this.later = setTimeout(() => {
				this.later = null;
				if (this.missed)
					this.refreshSoon();
			}, QUIET);
		}, 300 + 700 * Math.random());
	}

	// What one looks at stays where it is on the screen, whatever comes or goes above it.
	anchor() {
		const row = this.cursor ?? this.rowOf(this.elements().find(element => element.getBoundingClientRect().bottom > 60));
		const element = row?.element;
		const top = element?.getBoundingClientRect().top;
		return () => {
			if (element?.isConnected && (this.cursor || scrollY > 0))
				scrollBy(0, element.getBoundingClientRect().top - top);
		};
	}

	// The same list as it is now. What has left it stays as long as the page does, unless nobody said anything about it.
	async refresh() {
		while (this.asking)
			await this.inFlight;
		const answer = await this.tryFetch({limit: Math.min(500, Math.max(PAGE, this.groups.size))});
		if (!answer)
			return;
		const shift = this.anchor();
		const known = new Set(this.rows.keys());
		this.take(answer);
		let last = null;
		for (const data of answer.groups) {
			const group = this.groups.get(data.key);
			const element = group ? this.merge(group, data) : this.addGroup(data).element;
			if (!group)
				this.list.insertBefore(element, last ? last.nextElementSibling : this.list.firstElementChild);
			last = element;
		}
		for (const group of this.groups.values())
			if (group.rows.size === 0 && !answer.groups.some(({key}) => key === group.key))
				this.drop(group); // all of it is in others
		for (const [id, row] of this.rows)
			if (!known.has(id)) {
				this.newIds.add(id);
				this.mark(row);
			}
		this.shown();
		shift();
		this.announce();
	}

	merge(group, data) {
		for (const change of data.changes) {
			const row = this.rows.get(change.id);
			if (row?.group !== group)
				this.addRow(group, change, group.list.firstElementChild);
			else if (JSON.stringify(row.change) !== JSON.stringify(change) && !row.waits) {
				row.change = change;
				this.fillRow(row);
			}
		}
		Object.assign(group, {...data, changes: null, count: Math.max(data.count, group.rows.size)});
		this.fillGroup(group);
		return group.element;
	}

	announce() {
		const count = this.newIds.size;
		this.arrived.hidden = count === 0;
		this.arrived.textContent = `${many(count, 'new change')} ↑`;
	}

	toArrived() {
		const first = this.elements().map(element => this.rowOf(element)).find(row => this.newIds.has(row.change.id));
		if (first)
			this.stand(first, true);
		this.newIds.clear();
		for (const row of this.rows.values())
			row.element.classList.remove('arrived');
		this.announce();
	}
}
