// The inbox: changes in groups of one cause, the worst first. Filter, choose, say what they are.
import {get, stopper} from './api.js';
import {ago, append, h, many, name, notice, number, plain, remember, replace, short, style, toChange, verdict, waiting} from './dom.js';
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

// The page is loaded once, so its state is the module's.
const settings = settingsOf(new URL(location.href));
const groups = new Map(); // key -> {key, kind, name, count, ..., element, list, rows}
const byId = new Map(); // id -> {change, group, element, waits}: the rows
const departed = new Map(); // id -> the version of its triage with which it left the list
const chosen = new Set(); // ids
let newIds = new Set(); // which came while the page was open
let cursor = null; // a row
let lastUndo = null; // of what was said last
let total, groupCount, worse, cut, nextAfter; // of the last answer
let asking, inFlight; // the request, and its end
let typing, placing, later, missed; // timers, and whether there is something new
let context, triager, help;

const heading = h('small', {'aria-live': 'polite'});
const field = h('input', {type: 'search', id: 'filter', value: settings.q, autocomplete: 'off', spellcheck: 'false',
	placeholder: 'Words, or matchers: test=~"db.*", region="eu"', 'aria-label': 'Filter: words, or matchers as of silences',
	'aria-describedby': 'filter-problem', oninput: () => {
		clearTimeout(typing);
		typing = setTimeout(() => set('q', field.value), 180);
	}});
const problem = h('p.said.problem', {id: 'filter-problem', role: 'alert'});
const selects = Object.fromEntries(Object.keys(filters).map(key => [key, h('select', {onchange: event => set(key, event.target.value)})]));
const allBox = h('input', {type: 'checkbox', 'aria-label': 'Select all that are shown', onchange: event => chooseShown(event.target.checked)});
const chosenCount = h('span.chosen', {role: 'status'});
const buttons = sayButtons(state => state ? triageRows({state}) : askTriage());
const arrived = h('button.arrived', {hidden: true, onclick: () => toArrived()});
const list = h('div.list', {onclick: event => event.target.closest('a') && place()}, waiting('Looking through the changes'));
const foot = h('p.legend');
const page = h('div.inbox', h('h1', 'Inbox', heading));

// Asked for at once, while the page is still being put together.
let first = get(listing, {...parametersOf(settings), limit: PAGE});
first.catch(() => { /* said when it is awaited */ });

export async function show(main, given) {
	style('inbox.css');
	context = given;
	triager = context.may('triager');
	const test = h('input', {type: 'text', value: settings.test, placeholder: 'db.*', size: 14, autocomplete: 'off', spellcheck: 'false',
		onchange: event => set('test', event.target.value.trim())});
	for (const [key, [, choices]] of Object.entries(filters))
		offer(key, choices);
	append(page, [
		h('form.bar.filters', {role: 'search', onsubmit: event => event.preventDefault()}, field, problem,
			h('details', {open: matchMedia('(min-width: 40rem)').matches || isFiltered()}, h('summary', 'Choose, group, order'),
				h('div.selects', h('label', 'Test', test), Object.entries(selects).map(([key, select]) => h('label', filters[key][0], select))))),
		h('div.bar.actions', triager ? {role: 'toolbar', 'aria-label': 'Say what the chosen changes are'} : {}, triager ? [allBox, chosenCount, buttons] : null,
			h('span', {'aria-live': 'polite'}, arrived), h('button', {onclick: () => help.help()}, 'Keys', h('kbd', {'aria-hidden': 'true'}, '?'))),
		list, foot]);
	replace(main, page);
	new IntersectionObserver(entries => entries.some(e => e.isIntersecting) && loadMore(), {rootMargin: '1200px'}).observe(foot);
	help = keyboard(keys(), context.signal);
	addEventListener('pagehide', keepOrder);
	help.after(load());
	listen();
}

function offer(key, choices) {
	const now = settings[key];
	const known = choices.some(([value]) => value === now) ? choices : [...choices, [now, now, now]];
	replace(selects[key], known.map(([value, word]) => h('option', {value, selected: value === now}, plain(word, 60))));
	selects[key].value = now;
}

// Loading

function set(key, value) {
	settings[key] = value;
	settings.at = '';
	remember({[key]: value, at: null});
	load();
}

// One request at a time for the list: a later one ends the earlier. Null: what was asked for is no longer wanted, or there is
// a problem, which is shown.
function tryFetch(parameters) {
	return inFlight = fetchList(parameters);
}

async function fetchList(parameters) {
	asking?.abort();
	const own = asking = stopper(context.signal);
	try {
		const early = first;
		first = null;
		const answer = await (early ?? get(listing, {...parametersOf(settings), ...parameters}, own.signal));
		own.signal.throwIfAborted();
		sayProblem(answer.problem ?? '');
		return answer.problem ? null : answer;
	} catch (error) {
		if (error.name !== 'AbortError')
			sayProblem(error.message);
		return null;
	} finally {
		if (asking === own)
			asking = null;
	}
}

function sayProblem(text) {
	problem.textContent = plain(text, 400);
	field.ariaInvalid = text ? 'true' : null;
}

async function load() {
	page.classList.add('busy');
	const answer = await tryFetch({limit: PAGE});
	if (!answer) {
		if (!asking) {
			page.classList.remove('busy');
			list.querySelector('.waiting')?.remove();
		}
		return;
	}
	page.classList.remove('busy');
	byId.clear();
	departed.clear();
	groups.clear();
	chosen.clear();
	cursor = null;
	newIds = new Set();
	take(answer);
	replace(list, answer.groups.map(group => addGroup(group).element));
	shown();
	const at = byId.get(Number(settings.at));
	if (at)
		stand(at, document.activeElement === document.body);
}

// Not what an answer has from before something was said: it was on its way meanwhile.
function current(changes) {
	return changes.filter(({id, triage}) => triage.version >= (byId.get(id)?.change.triage.version ?? departed.get(id) ?? 0));
}

function take(answer) {
	for (const group of answer.groups)
		group.changes = current(group.changes);
	answer.groups = answer.groups.filter(({changes}) => changes.length > 0);
	total = answer.total;
	groupCount = answer.group_count;
	worse = answer.worse;
	cut = answer.more;
	nextAfter = answer.next;
	const [, choices] = filters.owner;
	const owners = new Set([...context.me.unproven ? [] : [context.me.person], ...answer.owners]);
	offer('owner', [...choices, ...[...owners].map(owner => [owner, owner, owner])]);
}

async function loadMore() {
	if (nextAfter == null || asking)
		return;
	// By what is there: what was said has left the list.
	const answer = await tryFetch({limit: PAGE, after: groups.size});
	if (!answer)
		return;
	take(answer);
	for (const group of answer.groups)
		if (!groups.has(group.key))
			list.append(addGroup(group).element);
	if (answer.groups.length === 0)
		nextAfter = null;
	shown();
}

// After anything in the list has changed.
function shown() {
	const what = groupCount < total ? ` in ${many(groupCount, 'group')}` : '';
	heading.textContent = `${many(total, 'change')}${what}${total > 0 ? `, ${number(worse)} worse` : ''}`;
	document.title = `${total > 0 ? `(${number(total)}) ` : ''}Inbox · hunter-c`;
	if (groups.size === 0 && !list.querySelector('.empty'))
		replace(list, h('p.empty', isFiltered() ? 'No change passes this filter.' : 'Nothing waits here.',
			isFiltered() ? [' ', h('a', {href: '/'}, 'Show what waits')] : null));
	else if (groups.size > 0)
		list.querySelector('.empty')?.remove();
	replace(foot, nextAfter != null
		? h('button', {onclick: () => loadMore()}, 'Show more')
		: cut ? 'These are the last 10,000 that were recorded: narrow the filter to see older ones.' : null);
	choosing();
}

function isFiltered() {
	return Object.keys(filters).some(key => key !== 'by' && key !== 'sort' && settings[key]) || settings.q.trim() !== '' || settings.test !== '';
}

// So that /change/ID can step through the list.
function keepOrder() {
	try {
		sessionStorage.setItem('inbox', JSON.stringify({search: location.search,
			ids: inOrder().slice(0, KEPT).map(row => row.change.id)}));
	} catch { /* full, or not allowed: then not */ }
}

// Groups and rows

function addGroup(data) {
	const group = {...data, changes: null, rows: new Map()};
	group.list = h('ul');
	group.more = h('button', {hidden: true, onclick: () => expand(group, 100)});
	group.element = h('section.group', {'data-group': group.key}, group.header = h('header'), group.list, group.more);
	groups.set(group.key, group);
	for (const change of data.changes)
		addRow(group, change);
	fillGroup(group);
	return group;
}

// What was in another group leaves that: its cause is known now.
function addRow(group, change, before = null) {
	const old = byId.get(change.id), row = {change, group, waits: false};
	if (old?.waits)
		return;
	if (old)
		detach(old);
	if (old && old === cursor)
		cursor = row;
	row.element = h('li.row', {'data-change': change.id, onclick: event => event.target.closest('a, button, input') || stand(row, true)});
	byId.set(change.id, row);
	group.rows.set(change.id, row);
	fillRow(row);
	group.list.insertBefore(row.element, before);
}

function fillGroup(group) {
	const left = group.count - group.rows.size;
	const alone = group.count === 1;
	group.header.hidden = alone;
	group.more.hidden = left <= 0;
	group.more.textContent = `${number(left)} more`;
	if (alone)
		return;
	const title = h('h2', kinds[group.kind], group.kind === 'incident' ? ` ${group.key}` : '', group.name ? [' ', h('code', name(group.kind === 'test' ? group.name : short(group.name), 80))] : null);
	const tests = new Set([...group.rows.values()].map(row => row.change.test)).size;
	replace(group.header, triager ? h('input', {type: 'checkbox', 'aria-label': `Select all ${group.count} of ${kinds[group.kind]} ${plain(group.name ?? '', 80)}`,
		checked: isChosen(group), onchange: event => chooseGroup(group, event.target.checked)}) : null,
		title, h('p', many(group.count, 'change'), tests > 1 && left <= 0 ? ` in ${tests} tests` : '',
			group.waiting > 0 && group.waiting < group.count ? `, ${number(group.waiting)} waiting` : '',
			group.better > 0 && group.better < group.count ? `, ${number(group.better)} of them better` : '', ', found ', ago(group.latest)));
}

function fillRow(row) {
	const {change} = row, focused = document.activeElement;
	const part = focused === row.link ? 'link' : focused === row.box ? 'box' : null;
	const box = triager ? h('input.pick', {type: 'checkbox', checked: chosen.has(change.id),
		'aria-label': `Select ${plain(change.test, 80)} ${plain(change.metric, 80)}`, onchange: event => choose(row, event.target.checked)}) : h('span.pick');
	const picture = h('img.chart', {src: `/change/${change.id}.svg?small`, alt: '', loading: 'lazy', fetchpriority: 'low', width: 160, height: 40});
	picture.addEventListener('error', () => { picture.replaceWith(h('span.chart')); });
	replace(row.element, box, verdict(change.regression, change.size, change.direction),
		h('div.what', toChange(change.id, name(change.test, 120), ' ', name(change.metric, 120)), details(row)),
		h('span.levels', number(change.level_before), ' → ', number(change.level_after, change.unit)),
		picture, saidOf(change), h('span.when', ago(change.time)));
	row.link = row.element.querySelector('a');
	row.link.firstElementChild.classList.add('test');
	row.link.addEventListener('focus', () => stand(row, false));
	row.box = triager ? box : null;
	row[part]?.focus({preventScroll: true});
	mark(row);
}

// What else tells a change from others.
function details(row) {
	const {change, group} = row;
	const parts = [];
	if (change.branch)
		parts.push(['branch ', name(change.branch, 60)]);
	if (change.kind === 'trend')
		parts.push('gradually');
	if (change.members > 0)
		parts.push([`${number(change.members)} series`, change.shared ? [' with ', name(change.shared, 80)] : null]);
	if (change.commit && (group.name !== change.commit || group.count === 1))
		parts.push(['commit ', h('code', name(short(change.commit), 40)), change.suspects > 1 ? `, one of ${change.suspects}` : null]);
	if (change.environment)
		parts.push(['on ', name(change.environment, 60)]);
	if (change.state !== 'confirmed' && change.state !== 'moved')
		parts.push({candidate: 'not confirmed yet', withdrawn: 'withdrawn', recovered: 'over'}[change.state]);
	return parts.length === 0 ? null : h('span.more', parts.map((part, i) => i > 0 ? [', ', part] : part));
}

function saidOf(change) {
	const {triage} = change;
	const owner = change.owner ? h('span.quiet', name(change.owner, 60)) : null;
	if (triage.state === 'open' && !triage.note)
		return h('span.judged', owner);
	return h('span.judged', triage.state === 'open' ? null : triageBadge(triage.state), ' ',
		owner ?? (triage.person ? h('span.quiet', 'by ', name(triage.person, 60)) : null),
		triage.note ? h('span.note', {title: plain(triage.note, 1000)}, plain(triage.note, 120)) : null);
}

function mark(row) {
	row.element.classList.toggle('chosen', chosen.has(row.change.id));
	row.element.classList.toggle('waits', row.waits);
	row.element.classList.toggle('arrived', newIds.has(row.change.id));
	row.element.ariaCurrent = row === cursor ? 'true' : null;
	if (row.box)
		row.box.checked = chosen.has(row.change.id);
}

// The next rows of a group.
async function expand(group, most) {
	group.more.disabled = true;
	try {
		const answer = await get(listing, {...parametersOf(settings), in: group.key, after: group.rows.size, limit: most}, context.signal);
		if (groups.get(group.key) !== group)
			return false; // another list is shown meanwhile
		const found = answer.groups[0];
		const first = group.rows.size;
		for (const change of current(found?.changes ?? []))
			if (!byId.has(change.id))
				addRow(group, change);
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
	fillGroup(group);
	return true;
}

// The rows from top to bottom.
function inOrder() {
	return [...list.querySelectorAll('[data-change]')].map(element => byId.get(Number(element.dataset.change)));
}

// Where one stands

function stand(row, focus) {
	const before = cursor;
	cursor = row;
	if (before && before !== row)
		mark(before);
	if (!row)
		return;
	newIds.delete(row.change.id);
	mark(row);
	if (focus) {
		row.link.focus({preventScroll: true});
		row.element.scrollIntoView({block: 'nearest'});
	}
	if (before !== row) { // browsers limit how often the address may change
		clearTimeout(placing);
		placing = setTimeout(() => place(), 250);
	}
	choosing();
}

function place() {
	clearTimeout(placing);
	remember({at: cursor?.change.id});
}

async function step(by) {
	if (by > 0 && cursor && cursor === inOrder().at(-1))
		if (nextAfter !== null)
			await loadMore();
		else if (cursor.group.rows.size < cursor.group.count)
			await expand(cursor.group, 100);
	const rows = inOrder(); // some may have left meanwhile
	const at = cursor ? rows.indexOf(cursor) : by > 0 ? -1 : rows.length;
	stand(rows[at + by] ?? cursor, true);
}

// Choosing

function choose(row, on) {
	if (on)
		chosen.add(row.change.id);
	else
		chosen.delete(row.change.id);
	mark(row);
	choosing();
}

function isChosen(group) {
	return group.rows.size > 0 && [...group.rows.keys()].every(id => chosen.has(id));
}

async function chooseGroup(group, on) {
	while (on && group.rows.size < group.count)
		if (!await expand(group, 1000))
			return;
	for (const row of group.rows.values())
		choose(row, on);
}

function chooseShown(on) {
	for (const row of byId.values())
		if (chosen.has(row.change.id) !== on)
			choose(row, on);
}

function choosing() {
	if (!triager)
		return;
	const count = chosen.size;
	chosenCount.textContent = count > 0 ? `${number(count)} selected` : cursor ? 'the one marked' : 'none selected';
	for (const button of buttons)
		button.disabled = count === 0 && !cursor;
	allBox.checked = count > 0 && count === byId.size;
	allBox.indeterminate = count > 0 && count < byId.size;
	for (const group of groups.values()) {
		const box = group.header.querySelector('input');
		if (box)
			box.checked = isChosen(group);
	}
}

// Saying what changes are

function targets() {
	const rows = [...chosen].map(id => byId.get(id)).filter(Boolean);
	return (rows.length > 0 ? rows : cursor ? [cursor] : []).filter(row => !row.waits);
}

async function triageRows(parameters, rows = targets()) {
	if (!triager || rows.length === 0)
		return;
	const before = new Map(rows.map(row => [row.change.id, row.change.triage]));
	if (parameters.state && !passes(parameters.state))
		advance(rows);
	for (const row of rows) {
		row.waits = true;
		chosen.delete(row.change.id);
		mark(row);
	}
	choosing();
	const done = await post(parameters, rows);
	settle(rows);
	if (done.length > 0)
		tell(parameters, done, before);
}

// On to the next one that stays.
function advance(rows) {
	if (!cursor || !rows.includes(cursor))
		return;
	const all = inOrder(), at = all.indexOf(cursor);
	const stays = row => !rows.includes(row);
	const next = all.slice(at + 1).find(stays) ?? all.slice(0, at).reverse().find(stays);
	stand(next ?? cursor, document.activeElement === document.body || list.contains(document.activeElement));
}

// Returns the rows of which it was said.
async function post(parameters, rows) {
	const {now, done} = await say(rows.map(row => row.change), parameters, context);
	for (const row of rows)
		row.waits = false;
	for (const [id, triage] of now)
		adoptTriage(id, triage);
	rows.forEach(row => mark(row));
	return rows.filter(row => done.some(({id}) => id === row.change.id));
}

function adoptTriage(id, triage) {
	const row = byId.get(id);
	if (!row || triage.version < row.change.triage.version)
		return;
	row.change = {...row.change, owner: triage.owner ?? (row.change.triage.owner ? null : row.change.owner), triage: {...row.change.triage, ...triage}};
	fillRow(row);
}

// Whether the filter passes that triage.
function passes(state) {
	const [, choices] = filters.triage;
	const wanted = choices.find(([value]) => value === settings.triage)?.[2] ?? null;
	return wanted === null || wanted.split(',').includes(state);
}

// What no longer passes the filter leaves the list.
function settle(rows) {
	const shift = anchor();
	const gone = rows.filter(row => !passes(row.change.triage.state));
	advance(gone);
	for (const row of gone)
		remove(row);
	for (const group of new Set(rows.map(row => row.group))) // others take the place of those that have left
		if (group.rows.size < Math.min(ROWS, group.count) && groups.get(group.key) === group)
			expand(group, ROWS - group.rows.size);
	shift();
	shown();
	if (nextAfter !== null && byId.size < PAGE)
		loadMore();
}

function remove(row) {
	detach(row);
	byId.delete(row.change.id);
	departed.set(row.change.id, row.change.triage.version);
	chosen.delete(row.change.id);
	total--;
	worse -= row.change.regression ? 1 : 0;
	groupCount -= row.group.count <= 0 ? 1 : 0;
	if (cursor === row)
		cursor = null;
}

function detach(row) {
	const {group} = row;
	row.element.remove();
	group.rows.delete(row.change.id);
	group.count--;
	group.better -= row.change.regression || row.change.direction === 0 ? 0 : 1;
	if (group.count > 0)
		fillGroup(group);
	else
		drop(group);
}

function drop(group) {
	group.element.remove();
	if (groups.get(group.key) === group)
		groups.delete(group.key);
}

function tell(parameters, rows, before) {
	const what = parameters.state ? said[parameters.state] : 'as you wrote';
	const one = rows[0].change;
	const undo = lastUndo = () => {
		if (lastUndo === undo)
			lastUndo = null;
		takeBack(rows, before);
	};
	notice(`${rows.length === 1 ? `${plain(one.test, 60)} ${plain(one.metric, 60)} is` : `${many(rows.length, 'change')} are`} ${what}.`,
		{action: {text: 'Undo', run: undo}});
}

// Says again what was said before, of all that had the same at once.
async function takeBack(rows, before) {
	const same = new Map();
	for (const row of rows) {
		const key = JSON.stringify(asWas(before.get(row.change.id)));
		same.set(key, [...same.get(key) ?? [], row]);
	}
	let count = 0;
	for (const [key, some] of same)
		count += (await post(JSON.parse(key), some)).length;
	if (count > 0)
		notice(`Undone: ${many(count, 'change')}.`);
	await refresh();
	const first = byId.get(rows[0].change.id);
	if (first)
		stand(first, true);
}

async function askTriage() {
	const rows = targets(), wanted = triager && rows.length > 0 ? await ask(rows.map(row => row.change)) : null;
	if (wanted)
		triageRows(wanted, rows);
}

function keys() {
	const keys = [
		[['j'], 'the next change', () => step(1)],
		[['k'], 'the one before', () => step(-1)],
		[['o', 'Enter'], 'open it', () => cursor && cursor.link.click()],
		[['/'], 'to the filter', () => field.focus(), true],
		[['g'], 'to the top', () => { scrollTo(0, 0); stand(inOrder()[0] ?? null, true); }],
		[['r'], 'load again', () => { refresh(); }],
	];
	if (triager)
		keys.push([['x'], 'select it, or not', () => cursor && choose(cursor, !chosen.has(cursor.change.id))],
			[['X'], 'select all of its group, or none', () => cursor && chooseGroup(cursor.group, !isChosen(cursor.group))],
			...states.filter(({key}) => key).map(({state, key}) => [[key], `triage the selection, or else the marked change: ${said[state]}`, () => { triageRows({state}); }]),
			[['c'], 'triage with a note, an owner or an end', () => { askTriage(); }],
			[['z'], 'undo the last triage', () => { lastUndo?.(); }]);
	return [...keys, [['Escape'], 'select nothing; leave the filter', () => chooseShown(false)]];
}

// What happens meanwhile

function listen() {
	context.live?.listen({
		change: refreshSoon,
		triage: item => {
			const row = byId.get(item.id);
			if (!row)
				refreshSoon();
			else if (item.version > row.change.triage.version && !row.waits) {
				adoptTriage(item.id, {state: item.triage, owner: item.owner, person: item.person, version: item.version,
					time: new Date().toISOString(), note: null, until: null});
				refreshSoon(); // for the note
			}
		},
		again: refreshSoon,
	}, context.signal);
}

// Not all pages at once, and none all the time.
function refreshSoon() {
	missed = true;
	later ??= setTimeout(async () => {
		missed = false;
		await refresh();
		later = setTimeout(() => {
			later = null;
			if (missed)
				refreshSoon();
		}, QUIET);
	}, 300 + 700 * Math.random());
}

// What one looks at stays where it is on the screen, whatever comes or goes above it.
function anchor() {
	const element = (cursor ?? inOrder().find(row => row.element.getBoundingClientRect().bottom > 60))?.element;
	const top = element?.getBoundingClientRect().top;
	return () => {
		if (element?.isConnected && (cursor || scrollY > 0))
			scrollBy(0, element.getBoundingClientRect().top - top);
	};
}

// The same list as it is now. What has left it stays as long as the page does, unless nobody said anything about it.
async function refresh() {
	while (asking)
		await inFlight;
	const answer = await tryFetch({limit: Math.min(500, Math.max(PAGE, groups.size))});
	if (!answer)
		return;
	const shift = anchor();
	const known = new Set(byId.keys());
	take(answer);
	let last = null;
	for (const data of answer.groups) {
		const group = groups.get(data.key);
		const element = group ? merge(group, data) : addGroup(data).element;
		if (!group)
			list.insertBefore(element, last ? last.nextElementSibling : list.firstElementChild);
		last = element;
	}
	for (const group of groups.values())
		if (group.rows.size === 0 && !answer.groups.some(({key}) => key === group.key))
			drop(group); // all of it is in others
	for (const [id, row] of byId)
		if (!known.has(id)) {
			newIds.add(id);
			mark(row);
		}
	shown();
	shift();
	announce();
}

function merge(group, data) {
	for (const change of data.changes) {
		const row = byId.get(change.id);
		if (row?.group !== group)
			addRow(group, change, group.list.firstElementChild);
		else if (JSON.stringify(row.change) !== JSON.stringify(change) && !row.waits) {
			row.change = change;
			fillRow(row);
		}
	}
	Object.assign(group, {...data, changes: null, count: Math.max(data.count, group.rows.size)});
	fillGroup(group);
	return group.element;
}

function announce() {
	const count = newIds.size;
	arrived.hidden = count === 0;
	arrived.textContent = `${many(count, 'new change')} ↑`;
}

function toArrived() {
	const first = inOrder().find(row => newIds.has(row.change.id));
	if (first)
		stand(first, true);
	newIds.clear();
	for (const row of byId.values())
		row.element.classList.remove('arrived');
	announce();
}
