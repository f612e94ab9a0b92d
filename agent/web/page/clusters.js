// Groups of tests that are clustered: the last rounds, with what moved together in them.
import {get} from './api.js';
import {createChart} from './chart.js';
import {address, ago, duration, h, name, notice, number, plain, replace, style, time, to, toChange, verdict, waiting} from './dom.js';
import {due, keepLooking, redraw, table} from './states.js';
import {ask, markSaid, personField, say, sayButtons, triageBadge} from './triage.js';

const PAGE = 20;

function listed(items, most, show) {
	return [items.slice(0, most).map(show), items.length > most
		? h('li', h('details', h('summary', `and ${number(items.length - most)} more`), h('ul.plain-list', items.slice(most).map(show)))) : null];
}

function member(found) {
	return h('li', to('/explore', {test: found.test, metric: found.series}, name(found.test, 100), ' ', name(found.series, 100)));
}

function share(label) {
	return h('li', h('strong', `${number(100 * label.share)}%`), ' ', name(label.label, 200), h('span.quiet.small', ` (of all ${number(100 * label.overall)}%)`));
}

function place(cluster) {
	const from = cluster.commit_before ?? cluster.version_before, to = cluster.commit_after ?? cluster.version_after;
	return [time(cluster.time), to ? [' · ', from ? [h('code', name(from, 40)), ' .. '] : '', h('code', name(to, 40))] : null];
}

function chartOf(cluster, last, element) {
	return createChart(element, {unit: '', scale: 'auto', lines: [{name: 'centroid', times: last.times, values: cluster.centroid,
		changes: [{id: cluster.change, source: 'known', time: Date.parse(cluster.time), size: cluster.size, verdict: cluster.direction === 0 ? 0 : cluster.worse ? 1 : -1, triage: 'open'}]}]},
	{small: true, label: `Shape that ${cluster.members} series share`});
}

// What people said of the cluster, and buttons to say it.
function triage(change, context, changed) {
	const press = async state => {
		const wanted = state ? {state} : await ask([change]);
		if (!wanted)
			return;
		const {now, done} = await say([change], wanted, context);
		if (done.length > 0)
			notice(`Cluster ${change.id} is ${now.get(change.id).state} now.`);
		changed({...change, triage: now.get(change.id)});
	};
	const buttons = context.may('triager') ? sayButtons(press, state => ({class: 'small', 'data-key': `${state} ${change.id}`})) : [];

	markSaid(buttons, change.triage.state);
	return h('div',
		h('p', triageBadge(change.triage.state), change.triage.person ? [h('span.small.quiet', ' by ', name(change.triage.person, 60), ' ', ago(change.triage.time))] : '',
			change.triage.note ? [' ', name(change.triage.note, 500)] : null),
		h('div.actions', buttons));
}

function clusterCard(cluster, last, page) {
	const change = page.changes.get(cluster.change);
	const chart = h('div.centroid');
	page.charts.push(() => chartOf(cluster, last, chart));
	return h('li.card', {'data-change': cluster.change ?? ''},
		h('div.card-line',
			h('div', verdict(cluster.worse, cluster.size, cluster.direction), ' ', h('strong', `${number(cluster.members)} series`), ' ',
				cluster.change ? toChange(cluster.change, `change ${cluster.change}`) : null),
			h('span.small.quiet', place(cluster))),
		h('div.cluster-parts', chart,
			h('div',
				h('p.label', 'What they share'),
				cluster.shared.length ? h('ul.plain-list', cluster.shared.map(share)) : h('p.quiet.small', 'Nothing that others have not.'),
				h('p.small.quiet', `strength ${number(cluster.strength)}`)),
			h('div',
				h('p.label', 'Nearest members'),
				h('ul.plain-list', listed(cluster.first_members, 6, member)),
				cluster.members > cluster.first_members.length ? h('p.quiet.small', `of ${number(cluster.members)}`) : null)),
		change ? triage(change, page.context, now => {
			page.changes.set(now.id, now);
			page.draw();
		}) : null);
}

const roundColumns = [
	['Ended', 'wide', round => [time(round.ended), round.problem ? h('div.row-problem', name(round.problem, 400)) : null]],
	['Took', 'number', round => duration(round.duration_seconds)],
	['Tests', 'number', round => [number(round.tests), round.failed_tests ? h('span.warn', ` (${number(round.failed_tests)} failed)`) : '']],
	['Series', 'number', round => [number(round.series), round.left_out ? h('span.quiet', ` (${number(round.left_out)} left out)`) : '']],
	['Moved together', 'number', round => number(round.found)],
	['New', 'number', round => number(round.new)],
];

function groupPart(group, page) {
	const last = group.last;
	return h('section', {'aria-label': plain(group.name, 100)},
		h('div.heading', h('h2', to('/clusters', {group: group.name}, name(group.name, 200))),
			h('span.quiet.small', `${number(group.tests)} tests, every ${duration(group.interval_seconds)}, `,
				group.running ? 'running' : ['next round ', due(group.next_run)])),
		group.failing ? h('p.problem', 'The last round failed: ', name(group.rounds[0]?.problem ?? '', 600)) : null,
		!last ? h('p.quiet', 'No round was ended since the agent was started.')
			: last.clusters.length ? [h('ul.cards', last.clusters.map(cluster => clusterCard(cluster, last, page))),
				last.found > last.clusters.length ? h('p.quiet', `and ${number(last.found - last.clusters.length)} more, less clear`) : null]
				: h('p.quiet', `Nothing moved together in the last round, ${number(last.series)} series in ${number(last.points)} points of time.`),
		group.rounds.length ? h('details', {'data-key': `rounds ${group.name}`}, h('summary', {'data-key': `summary ${group.name}`}, 'Last rounds'),
			table(roundColumns, group.rounds)) : null);
}

export async function show(main, context) {
	style('states.css');
	style('chart.css');
	const search = new URLSearchParams(location.search);
	const group = search.get('group'), after = search.get('after');
	const page = {context, changes: new Map(), charts: [], shown: [], answer: null, draw: () => redraw(main, draw)};
	let before = '';

	function draw() {
		for (const chart of page.shown)
			chart.destroy();
		page.charts = [];
		replace(main, h('div.heading', h('h1', 'Clusters'), h('span.quiet', 'series of many tests that moved together'),
			group ? h('a', {href: '/clusters'}, 'All groups') : null),
		context.may('triager') ? personField(context) : null,
		page.answer.groups.length ? page.answer.groups.map(found => groupPart(found, page))
			: h('p.quiet', group ? 'There is no such group of tests of type cluster.' : ['No group of tests is of ', h('code', 'type: cluster'), '.']),
		page.answer.next ? h('p.pages', h('a', {href: address({after: page.answer.next})}, 'Next page »')) : null);
		page.shown = page.charts.map(make => make());
	}

	async function look() {
		const answer = await get('/api/v1/clusters', {group, after, limit: PAGE}, context.signal);
		const wanted = answer.groups.filter(found => found.last?.clusters.length).map(found => found.name);
		const lists = await Promise.all(wanted.map(test => get('/api/v1/changes', {test, limit: 200}, context.signal)));
		const changes = lists.flatMap(list => list.changes);
		const now = JSON.stringify([answer.groups.map(found => [found.name, found.failing, found.rounds[0]?.ended]), changes.map(change => [change.id, change.triage.version])]);
		page.answer = answer;
		page.changes = new Map(changes.map(change => [change.id, change]));
		if (now !== before)
			redraw(main, draw);
		before = now;
	}

	context.signal.addEventListener('abort', () => page.shown.forEach(chart => chart.destroy()));
	replace(main, h('h1', 'Clusters'), waiting('Loading the last rounds …'));
	await look();
	keepLooking(context, 30, look, ['triage', 'change']);
}
